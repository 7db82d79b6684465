"""The canonical learner: gather data, in rounds that double, until it is sure enough what f(ξ, M) is; print that.

Sure enough is what simulated second teams say or, if a certificate is asked for, what the data prove.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from reprl.assurance.certificate import (
    HALFWAY,
    SKIPPED,
    Certificate,
    Witness,
    certified_delta,
    make_certificate,
    witness_of,
)
from reprl.assurance.rehearsal import Answer, Rehearsal, kept_rehearsal, rehearse
from reprl.canonical.allocation import influence
from reprl.canonical.choice import Choice, Rule, choose, follow, make_rule, with_key
from reprl.canonical.gaps import find_gaps, value_spread
from reprl.canonical.preferred import decided_cells
from reprl.errors import InputError
from reprl.execution.pool import Crew
from reprl.guarantee import Guarantee
from reprl.learning.protocol import Run
from reprl.learning.rounds import FIRST, Progress, call, doubling, most_of, telling
from reprl.learning.settings import Settings
from reprl.mdp.counts import Counts
from reprl.mdp.criterion import criterion_of
from reprl.mdp.dynamics import Data, Dynamics, empirical_dynamics, redraw
from reprl.mdp.homogeneity import steps_alike
from reprl.mdp.policy import Policy
from reprl.mdp.tabular import Labels
from reprl.mdp.tiers import Tiers
from reprl.randomness import DataStream, SharedKey, check_shared_key
from reprl.sources.exploration import cover, cover_planned, no_data
from reprl.sources.optimism import find_unknown, weigh_unseen
from reprl.sources.protocol import check_model, is_stationary, mask_of
from reprl.storage.checkpoints import Checkpoint

UNKNOWN = 0.1
"""Share of ε that cells of which too little is known may be worth when a run stops."""


class _Look(NamedTuple):
    """What a run knows after a round."""

    dynamics: Dynamics
    choice: Choice
    rehearsal: Rehearsal | None
    value: NDArray[np.float64]
    """(H+1, S): V* in the model."""
    unknown: float
    """What cells of which too little is known could be worth."""
    unseen: float
    """What rare outcomes that no sample has shown could cost the policy."""
    drift: str = ""
    """What shows that the steps of a black box are not alike, though the user said so; empty if nothing does."""


class _Steps:
    """The steps of a black box whose samples are pooled because the user says that they are alike, kept apart to see.

    Whether they contradict the user stops a run and takes its promise away; no choice depends on it.
    """

    def __init__(self, model: Any, settings: Settings) -> None:
        """Keep nothing where the world shows by itself that its steps are alike, or nobody says so."""
        watched = settings.stationary and settings.access == "episodic" and not is_stationary(model)
        self.labels = getattr(model, "labels", Labels())
        self.counts = no_data(model).counts if watched else None

    def keep(self, more: Counts) -> None:
        """Note a batch."""
        if self.counts is not None:
            self.counts += more

    def drift(self) -> str:
        """Say what contradicts the user, if anything does."""
        return "" if self.counts is None else steps_alike(self.counts).drift(self.labels)


def run_canonical(
    model: Any,
    shared_key: SharedKey,
    settings: Settings,
    *,
    max_samples: int | None = None,
    spend: int | None = None,
    candidate: tuple[str, int] | None = None,
    certify: bool = False,
    workers: int = 1,
    checkpoint: Checkpoint | None = None,
    progress: Progress | None = None,
) -> Run:
    """Gather, choose, rehearse; again with twice the data while the rehearsal, or the certificate, says so.

    Args:
        model: where samples come from, of the settings' access.
        shared_key: ξ.
        settings: accuracy, replicability and preference.
        max_samples: never draw more; a run that is not sure by then promises nothing. None for LIMITS.
        spend: draw about so many, whatever a rehearsal would say, and ask for none.
        candidate: (kind, number) of a recipe, followed instead of choosing afresh, without pairs under fresh keys.
        certify: stop when the data prove the policy, and not before.
        workers: processes for a black box, threads for the rehearsal of a large world.
        checkpoint: where batches of a black box and rehearsals are kept.
        progress: called with the phase, what is done of it and all of it.

    Guarantee:
        Status "certified" if the data prove the policy (docs/proofs/certificate.md), "rehearsed" if ``_is_sure`` (docs/
        rehearsal.md), else "none". The policy is f(ξ, ·) of the run's own frequencies (docs/proofs/canonical.md).

    Randomness:
        Shared, at shared_key.derive("rule"), as ``choose`` says. Data: the model's samples, and streams
        (data seed, "rehearsal/ROUND/…").
    """
    check_model(model, settings.access, f"access={settings.access!r}", masked=True)
    settings = settings.pooling(model, apart=certify)
    model = _provable(model, settings) if certify else source(model, settings)
    rule = _rule_for(model, check_shared_key(shared_key), settings, candidate)
    data, steps = no_data(model, pooled=bool(settings.stationary)), _Steps(model, settings)
    weight: NDArray[np.float64] | None = None
    sizes = list(_sizes(model, settings, max_samples if spend is None else spend, certify=certify))
    with Crew(model, workers, checkpoint) as crew:
        for number, size in enumerate(sizes, 1):
            tell = None if progress is None else telling(progress, f"round {number}")
            looking = certify and number > SKIPPED
            data, witness = _gather(model, data, number, size, settings, weight, crew, tell, steps, planned=looking)
            known = _known(data, model)
            proof, last = _Proof(None, None), size == sizes[-1]
            if looking or (certify and last):  # before that, a look by episodes would spend all of δ
                proof = _prove(rule, witness, shared_key, settings, model, last=last)
            drift = steps.drift()
            ask = not spend and (not certify or (last and not proof.proven))
            stream = DataStream(model.data_seed, f"rehearsal/{number}") if ask else None
            look = _look(rule, known, settings, stream, crew, pairs=candidate is None)._replace(drift=drift)
            if drift or (proof.proven if certify else _is_sure(look, settings)):
                break
            weight = influence(rule, look.dynamics) if settings.access == "episodic" else None
    run = _finish(rule, known, _proven(look, proof), settings, witness)
    return _certified(run if candidate is None else _following(run), proof.certificate)


def _rule_for(model: Any, shared_key: SharedKey, settings: Settings, candidate: tuple[str, int] | None) -> Rule:
    """Return f(ξ, ·) for a model, or the one candidate of it that a recipe has published."""
    _check_endless(model, settings)
    criterion = criterion_of(model)
    shape = (criterion.rows, model.n_states, model.n_actions)
    preference = settings.numbered((), shape[2]).preference
    key = shared_key.derive("rule")
    rule = make_rule(
        key,
        shape,
        epsilon=settings.epsilon,
        preference=preference,
        steady=bool(settings.stationary),
        criterion=criterion,
    )
    return rule if candidate is None else follow(rule, *candidate)


def _known(data: Data, model: Any) -> Data:
    """What the rule reads of the data: those of one step that comes again, where the world is discounted."""
    return data.under(criterion_of(model))


def _check_endless(model: Any, settings: Settings) -> None:
    """Refuse an accuracy that every policy has, and a discounted world whose law may depend on the step."""
    criterion = criterion_of(model)
    criterion.check_epsilon(settings.epsilon)
    if criterion.stationary and not settings.stationary:
        raise InputError(
            "stationary must be True for a discounted world: say so if its law does not depend on the step, got "
            f"{settings.stationary}"
        )


def _provable(model: Any, settings: Settings) -> Any:
    """Return what is sampled, or refuse what no certificate covers."""
    if settings.stationary:
        raise InputError("stationary must be False, or left out, for a run that is to be certified, got True")
    criterion_of(model).require_horizon("certify must be False for a discounted world", "True for ")
    if mask_of(model) is not None:
        raise InputError("certify must be False for an environment that masks actions, got True")
    return source(model, settings)


class _Proof(NamedTuple):
    """What the data of a round prove; nothing where nobody asked."""

    certificate: Certificate | None
    policy: Policy | None

    @property
    def proven(self) -> bool:
        return self.certificate is not None and self.certificate.proven


def _prove(
    rule: Rule, witness: Witness, shared_key: SharedKey, settings: Settings, model: Any, *, last: bool
) -> _Proof:
    """Try to certify; a run that will gather no more also says how much more it would take."""
    delta, samples = certified_delta(settings), model.ledger.samples if last else None
    return _Proof(*make_certificate(rule, witness, shared_key.seed, delta, samples=samples))


class _Gathered(NamedTuple):
    """All data, and those that a certificate could be made from."""

    data: Data
    witness: Witness


def _gather(
    model: Any,
    data: Data,
    number: int,
    size: int,
    settings: Settings,
    weight: NDArray[np.float64] | None,
    crew: Crew,
    tell: Callable[[int, int], None] | None,
    steps: _Steps,
    *,
    planned: bool,
) -> _Gathered:
    """Bring data to the size of a round: by calls, by episodes, or by episodes that are all planned beforehand."""
    more = size - int(data.starts.sum())
    world = getattr(model, "mdp", None)
    fixed_start = world is not None and bool(world.fixed_start)
    if settings.access == "generative":
        data = data + call(model, more)
        return _Gathered(data, witness_of(data, "calls", fixed_start=fixed_start))
    bearable = UNKNOWN * settings.epsilon
    if planned:
        fresh = cover_planned(model, data, more, weight, bearable=bearable, crew=crew, progress=tell)
        return _Gathered(data + fresh, Witness(fresh, "rounds", number, fixed_start))
    data = cover(model, data, more, weight, bearable=bearable, crew=crew, progress=tell, keep=steps.keep)
    return _Gathered(data, Witness(data, "episodes", number, fixed_start))


def source(model: Any, settings: Settings) -> Any:
    """Return what is sampled: the model, or, where steps are pooled, the one that draws once for all of them."""
    if settings.access == "episodic" or not settings.stationary:
        return model
    if getattr(model, "pooled", None) is None:
        raise InputError(f"stationary must be left out for a model that has no `pooled` sampling, got True for {model}")
    return model.pooled


def _sizes(model: Any, settings: Settings, limit: int | None, *, certify: bool) -> Iterator[int]:
    """Numbers of calls or episodes, all rounds together; where steps are pooled, an episode tells about H cells."""
    parallel = settings.access == "generative"
    unit = int(model.samples_per_call if parallel else model.samples_per_episode)
    first = FIRST * (1 if parallel else model.n_states * model.n_actions)
    if settings.stationary and not parallel:
        first = -(-first // model.horizon)
    return doubling(
        first, most_of(model, settings.access, limit, unit) // unit, HALFWAY if certify and parallel else None
    )


def _look(rule: Rule, data: Data, settings: Settings, stream: DataStream | None, crew: Crew, *, pairs: bool) -> _Look:
    """Choose, and rehearse the choice if there is a stream to do it with."""
    dynamics = empirical_dynamics(data)
    choice = choose(rule, dynamics)
    rehearsal = None
    if stream is not None:

        def team(key: SharedKey | None, share: int, draw: int) -> Answer:
            found = choose(rule if key is None else with_key(rule, key), redraw(data, share, draw))
            return Answer(found.policy, found.value + found.loss)

        ask = partial(rehearse, team, choice.policy, rho=settings.rho, epsilon=settings.epsilon, stream=stream)
        make = partial(ask, pairs=pairs, workers=crew.workers)
        rehearsal = kept_rehearsal(crew.checkpoint, stream, make)
    value, visits = find_gaps(dynamics, rule.order).value, dynamics.occupancy(choice.policy.table)
    unseen = weigh_unseen(data, value, visits, choice.policy.table, settings.delta)
    return _Look(dynamics, choice, rehearsal, value, find_unknown(data).worth, unseen)


def _is_sure(look: _Look, settings: Settings) -> bool:
    """Whether a run may stop.

    No sample contradicts what the user says of the steps, the last rehearsal passed, cells of which too little is known
    could be worth at most 0.1·ε, outcomes that no sample has shown could cost less than ε, and the policy loses less
    than ε in the model.
    """
    if look.drift or look.rehearsal is None or max(look.choice.loss, look.unseen) >= settings.epsilon:
        return False
    return look.rehearsal.passed and look.unknown <= UNKNOWN * settings.epsilon


def _finish(rule: Rule, data: Data, look: _Look, settings: Settings, witness: Witness) -> Run:
    """Put the result together."""
    visits = look.dynamics.occupancy(look.choice.policy.table)
    decided = decided_cells(visits, rule.floor, look.choice.kind)
    level = np.where(decided, 1, 2).astype(np.int64)
    return Run(
        policy=look.choice.policy,
        guarantee=_promise(look, settings),
        settings=settings,
        tiers=Tiers.single(*level.shape) if decided.all() else Tiers.from_levels(level, 2),
        counts=data.counts,
        values=look.value,
        choice=look.choice,
        rehearsal=look.rehearsal,
        spread=value_spread(look.dynamics),
        drift=look.drift,
        witness=rule.criterion.either(witness.kept(), None),
    )


def _proven(look: _Look, proof: _Proof) -> _Look:
    """Let the proven policy be the choice, should the data of all rounds together have chosen another."""
    if not proof.proven or proof.certificate is None or proof.policy is None or proof.policy == look.choice.policy:
        return look
    best = float(look.dynamics.initial @ look.value[0])
    loss = look.dynamics.policy_loss(look.value[0], proof.policy.table)
    found = proof.certificate
    choice = look.choice._replace(
        policy=proof.policy,
        kind="preferred",
        candidate=found.candidate,
        tolerance=found.tolerance,
        margin=found.margin,
        lead=found.lead,
        loss=loss,
        value=best - loss,
        tightest=found.tightest,
    )
    return look._replace(choice=choice)


def _certified(run: Run, certificate: Certificate | None) -> Run:
    """Put a certificate into a run, if there is one, and its promise in place of the rehearsal's if it is proven."""
    run = replace(run, certificate=certificate)
    if certificate is None or not certificate.proven:
        return run
    guarantee = Guarantee(
        rho=2.0 * certificate.delta,
        delta=certificate.delta,
        epsilon=certificate.loss,
        status="certified",
        source="docs/proofs/certificate.md, for any two certified runs of this shared seed",
    )
    return replace(run, guarantee=guarantee)


def _following(run: Run) -> Run:
    """Say that a run has followed a published candidate, and what its promise then speaks of."""
    source = run.guarantee.source
    if run.guarantee.status != "none":
        source = f"{source}; it follows the recipe's candidate, while ρ speaks of choosing afresh"
    return replace(run, guarantee=replace(run.guarantee, source=source), followed=True)


def with_hint(run: Run) -> Run:
    """Say of a run that is not sure, and kept the steps of a black box apart, that they look alike, if they do."""
    rehearsed = run.settings.rule == "canonical" and run.rehearsal is not None and run.certificate is None
    if run.guarantee.status != "none" or not rehearsed or run.settings.stationary or run.counts.outcomes.horizon == 1:
        return run
    if steps_alike(run.counts).contradicted:
        return run
    hint = "no sample tells its steps apart: where you know that they are alike, stationary=True needs fewer"
    return replace(run, guarantee=replace(run.guarantee, source=f"{run.guarantee.source}; {hint}"))


def _promise(look: _Look, settings: Settings) -> Guarantee:
    """What was asked for, if the rehearsal passed; otherwise nothing, and why."""
    if look.drift:
        return settings.promise_nothing_for(look.drift)
    if look.rehearsal is None:
        return settings.promise("none", "the size was set by hand and nobody rehearsed it")
    if _is_sure(look, settings):
        return settings.promise("rehearsed", f"{look.rehearsal} (docs/rehearsal.md)")
    if look.unknown > UNKNOWN * settings.epsilon:
        why = f"what was hardly explored could be worth {look.unknown:.3g}"
    elif look.choice.loss >= settings.epsilon:
        why = f"the policy loses {look.choice.loss:.3g} by its own data"
    elif look.unseen >= settings.epsilon:
        why = f"outcomes that no sample has shown yet could cost it {look.unseen:.3g}"
    elif look.rehearsal.error >= settings.epsilon:
        why = f"the best value is only known to a standard deviation of {look.rehearsal.error:.3g}"
    else:
        why = f"only {look.rehearsal}"
    return settings.promise("none", f"out of samples before it was sure: {why}")
