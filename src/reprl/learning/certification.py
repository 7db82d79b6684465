"""What a finished run proves by its own data, wherever they are kept."""

from __future__ import annotations

from reprl.assurance.certificate import Certificate, CertificateData, make_certificate
from reprl.canonical.choice import Rule, follow, make_rule
from reprl.errors import InputError, check_probability
from reprl.learning.settings import Settings
from reprl.mdp.criterion import Criterion
from reprl.mdp.policy import Policy
from reprl.randomness import SharedKey


def rule_of(
    shape: tuple[int, int, int], shared_seed: int, settings: Settings, followed: tuple[str, int] | None = None
) -> Rule:
    """Return f(ξ, ·) of settings, whose baseline is a table, or the one candidate of it that a run has followed."""
    settings = settings.resolve_actions((), shape[2])
    settings.check_accuracy(Criterion(shape[0]))
    baseline = settings.baseline_actions(shape)
    if baseline is not None and baseline.max() >= shape[2]:
        raise InputError(f"baseline must name actions from 0 to {shape[2] - 1}, got {baseline.max()}")
    rule = make_rule(
        SharedKey(shared_seed).derive("rule"),
        shape,
        goal=settings.goal,
        baseline=baseline,
        preference=settings.preference,
    )
    return rule if followed is None else follow(rule, *followed)


def check_apart(settings: Settings, name: str) -> None:
    """Refuse a run that pooled its steps: its rule has stationary candidates, which no certificate covers."""
    if settings.pooled:
        raise InputError(
            f"{name} must have a model for each step to be certified (certify=True, or stationary=False), got a run "
            "that pooled steps"
        )


def certify_run(
    settings: Settings,
    given: CertificateData,
    shared_seed: int,
    policy: Policy,
    delta: float | None,
    *,
    followed: tuple[str, int] | None,
    samples: int,
) -> Certificate:
    """Say what the data of a run prove of the policy that it printed.

    δ is None for what keeps the settings' promises; followed is the candidate of a recipe, if the run was told to take
    it.
    """
    delta = settings.asked.certified_delta if delta is None else check_probability("delta", delta)
    rule = rule_of(given.data.counts.outcomes.shape, shared_seed, settings, followed)
    certificate, proven = make_certificate(rule, given, shared_seed, delta, samples=samples)
    if certificate.proven and proven != policy:
        return certificate._replace(proven=False, reason="the data prove another policy than the one this run printed")
    return certificate
