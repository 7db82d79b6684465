"""The canonical learner: the loop with f(ξ, ·), from samples that are drawn on demand."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from reprl.assurance.certificate import HALFWAY, SKIPPED
from reprl.assurance.stopping import StopRule, certificate_data_from
from reprl.canonical.bound import BoundRule, Reader, TableReader
from reprl.canonical.choice import make_rule
from reprl.canonical.registered import Published
from reprl.canonical.selection import Registered
from reprl.errors import InputError
from reprl.execution.pool import WorkerPool
from reprl.execution.settings import Execution
from reprl.learning.adapters import adds_end
from reprl.learning.loop import Outcome, run_loop
from reprl.learning.result import CanonicalDetails, Details, Run
from reprl.learning.rounds import RoundTeller
from reprl.learning.settings import Settings
from reprl.mdp.criterion import Criterion, criterion_of
from reprl.mdp.tiers import Tiers
from reprl.randomness import SharedKey, check_shared_key
from reprl.sources.access import WAYS, Proof
from reprl.sources.protocol import check_model


class Gathered(NamedTuple):
    """What the loop came to, and under which settings."""

    settings: Settings
    rule: BoundRule
    outcome: Outcome
    apart: str
    """Evidence against stationary dynamics of a black box; empty if there is none."""

    @property
    def run(self) -> Run:
        """The result."""
        end, rule = self.outcome.judgement, self.rule
        proof = certificate_data_from(self.outcome.known.certificate_source())
        details = CanonicalDetails(
            end.found.choice, rule.followed, end.drift, end.certificate, proof, self.apart, rule.published
        )
        return canonical_run(self.settings, rule, self.outcome, details)


def gather_canonical(
    model: Any,
    shared_key: SharedKey,
    settings: Settings,
    stop: StopRule,
    execution: Execution,
    *,
    candidate: tuple[str, int] | Published | None = None,
    limit: int | None = None,
    proof: Proof | None = None,
) -> Gathered:
    """Gather data, in rounds that double, until a stop rule is content with f(ξ, ·) of the run's own frequencies.

    candidate, (kind, number) of a recipe or what it has registered, is followed instead of choosing afresh; proof says
    how data are gathered for a certificate.

    Guarantee:
        As the stop rule says; the policy is f(ξ, ·) of the run's own frequencies (docs/proofs/canonical.md).

    Randomness:
        Shared, at shared_key.derive("rule"), as ``choose`` says. Data: the model's samples, and streams
        (data seed, "rehearsal/ROUND/…").
    """
    check_model(model, settings.access, f"access={settings.access!r}", masked=True)
    settings = settings.resolve_stationarity(model, certify=proof is not None)
    if proof is not None:
        _check_provable(model, settings)
    if isinstance(candidate, Published):
        candidate.registration.check_fresh(model.data_seed, log=False)
    criterion = criterion_of(model)
    settings.check_accuracy(criterion)
    if criterion.stationary and not settings.pooled:
        raise InputError(
            "stationary must be True for a discounted world: say so if its law does not depend on the step, got "
            f"{settings.stationary}"
        )
    sizes, key = (model.n_states, model.n_actions), check_shared_key(shared_key)
    reader = TableReader((model.n_states - 1,) if adds_end(model) else ())
    rule = bind_rule(key, criterion, sizes, settings, reader, candidate)
    told = execution.progress
    teller = None if told is None else RoundTeller(told, model, settings, stop, limit)
    tell, progress = (None, None) if teller is None else (teller.end, teller.progress)
    with WorkerPool(model, execution.workers, execution.checkpoint) as pool:
        open_as = partial(WAYS[settings.access].source, model, pool, progress=progress, proof=proof)
        outcome = run_loop(open_as(pooled=settings.pooled), rule, stop, limit, tell=tell)
        apart = ""
        registered = isinstance(candidate, Published)
        if outcome.judgement.drift and (settings.stationary is None or registered) and not criterion.stationary:
            # Nobody has said that steps are alike, and they are not: go on as a run that never took them to be. A
            # recipe does not tell who said it. What it has registered still reads pooled steps, as in runs that stopped
            # before they could know; what its policy loses is that by step (docs/proofs/agreement.md §4).
            apart = outcome.judgement.drift
            rule = bind_rule(key, criterion, sizes, replace(settings, stationary=False), reader, None)
            if isinstance(candidate, Published):
                rule = rule._replace(selection=Registered(candidate, pools=True))
            outcome = run_loop(open_as(pooled=False), rule, stop, limit, outcome.known.apart(), tell)
            if registered:
                end = outcome.judgement
                words = (
                    f"{end.guarantee.source}; its loss is by step, as samples contradict stationary dynamics: {apart}"
                )
                outcome = outcome._replace(judgement=end._replace(guarantee=replace(end.guarantee, source=words)))
    return Gathered(settings, rule, outcome, apart)


PROOF = Proof(SKIPPED, HALFWAY)


def bind_rule(
    shared_key: SharedKey,
    criterion: Criterion,
    sizes: tuple[int, int],
    settings: Settings,
    reader: Reader,
    candidate: tuple[str, int] | Published | None,
) -> BoundRule:
    """Return f(ξ, ·) of data, with all candidates or the one that a recipe has published."""
    rule = make_rule(
        shared_key.derive("rule"),
        (criterion.rows, *sizes),
        goal=settings.goal,
        baseline=settings.baseline_actions((criterion.rows, *sizes)),
        preference=settings.resolve_actions((), sizes[1]).preference,
        stationary=settings.pooled,
        criterion=criterion,
    )
    return BoundRule.bind(rule, reader, candidate, settings.agreement)


def canonical_run(settings: Settings, rule: BoundRule, outcome: Outcome, details: Details) -> Run:
    """Put the result together."""
    found, decided = outcome.judgement.found, rule.decided(outcome.judgement.found)
    level = np.where(decided, 1, 2).astype(np.int64)
    return Run(
        policy=found.policy,
        guarantee=outcome.judgement.guarantee,
        settings=settings,
        tiers=Tiers.single(*level.shape) if decided.all() else Tiers.from_levels(level, 2),
        counts=outcome.data.counts,
        values=rule.values(found),
        rehearsal=outcome.judgement.rehearsal,
        spread=rule.spread(found),
        occupancy=rule.occupancy(found),
        details=details,
    )


def _check_provable(model: Any, settings: Settings) -> None:
    """Refuse what no certificate covers."""
    if settings.pooled:
        raise InputError("stationary must be False, or left out, for a run that is to be certified, got True")
    why = "the proof goes from the last step back, and here is none"
    criterion_of(model).require_horizon(f"certify must be False for a discounted world ({why})", "True for ")
