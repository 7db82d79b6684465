"""The learner by episodes alone: Theorem 6.1 (joint, blocked) and Theorem A.5 (product) of the paper."""

from __future__ import annotations

import math
from dataclasses import replace

from reprl.coupling.grade import Grade
from reprl.decide.forecast import forecast_disagreement
from reprl.decide.induction import Induction, tiered_induction
from reprl.decide.window import ignored_starts, is_accurate, loss_bound, shared_stretch
from reprl.errors import ReprlError, check_int
from reprl.explore.rep_explore import Explored, Progress, Stage, collect_data, find_partition
from reprl.explore.runs import RunSettings
from reprl.guarantee import Guarantee
from reprl.learning.protocol import Run
from reprl.learning.settings import Settings
from reprl.mdp.access import Episodic, check_model
from reprl.randomness import SharedKey, check_shared_key

EPISODES_PER_CELL = 32
"""K of a practical run, per cell, in the first attempt, four times the ladder's top; 4 times as many in each next."""
ATTEMPTS = 4
"""How often exploration is begun, each time with longer runs, until its own data bound the loss by ε."""
PARTITION_RUNS = 800
"""m of the practical preset."""
QUOTAS = ((1, 2, 3, 4, 6, 8),)
"""The one ladder of the practical preset: records per action and run, a small part of the even share."""
BONUS = 0.1
GUIDE = 0.01
_MOST = 2**62
FORECAST_SCALE = 0.45
"""Measured disagreement over forecast, which sums upper bounds."""
FORECAST_TARGET = 0.48
"""Share of ρ that the forecast may use."""


def practical_stages(n_states: int, n_actions: int, horizon: int, attempt: int = 0) -> tuple[Stage, ...]:
    """Return the one stage of the practical preset; the forecast adds data runs to it."""
    episodes = 4**attempt * EPISODES_PER_CELL * n_states * n_actions * horizon
    run = RunSettings(episodes=episodes, bonus=BONUS, guide=GUIDE)
    return (Stage(run=run, partition_runs=PARTITION_RUNS, data_runs=0, quotas=QUOTAS),)


def paper_stages(
    n_states: int, n_actions: int, horizon: int, *, epsilon: float, delta: float, grade: Grade
) -> tuple[Stage, ...]:
    """Return RepLevelExplore's stages (Algorithm 6), constants that the paper leaves open set to 1.

    The product grade multiplies m and M by S·H (Lemma A.1). ι is κ/m², an inverse polynomial.
    """
    cells = n_states * horizon
    zeta = epsilon / (horizon**2 * math.log(n_states * n_actions * horizon / (epsilon * delta)) ** 5)
    if zeta > 0.5:
        raise ReprlError(f"epsilon must be small enough for two tiers (ζ ≤ 1/2) at these sizes, got ζ = {zeta:.3g}")
    tiers = max(2, math.ceil(math.log2(1.0 / zeta)))
    kappa = 0.01 / math.log2(1.0 / zeta)
    log = math.log(max(3.0, cells / kappa))
    apart = cells if grade.method == "product" else 1
    runs = math.ceil(apart * cells * log / kappa**2)
    iota = kappa / float(runs) ** 2
    stages = []
    for tier in range(1, tiers):
        beta = 2.0**tier * zeta
        data_runs = math.ceil(log**2 * runs + apart * cells * log / (kappa**4 * beta**2))
        accuracy = 2.0**-tier * kappa
        size = n_states * 2 * n_actions * horizon**5 * math.log(n_states * n_actions * horizon / iota)
        episodes = math.ceil(size / accuracy**2)
        if (runs + data_runs) * episodes > _MOST:
            raise ReprlError(
                f"the paper's constants ask for {float(runs + data_runs) * episodes:.3g} episodes in tier {tier} "
                "alone; at most 2**62 can be counted: use constants='practical'"
            )
        run = RunSettings(episodes=episodes, bonus=2.0, guide=1.0, failure=iota)
        stages.append(Stage(run=run, partition_runs=runs, data_runs=data_runs, quotas=((horizon,),)))
    return tuple(stages)


def run_episodic(
    model: Episodic,
    shared_key: SharedKey,
    settings: Settings,
    *,
    max_samples: int | None = None,
    workers: int = 1,
    progress: Progress | None = None,
) -> Run:
    """Explore until the data bound the loss by ε, collect until they forecast agreement, decide.

    Args:
        model: where episodes are played.
        shared_key: ξ.
        settings: accuracy, replicability and how to decide.
        max_samples: never draw more; a run that would need more is refused before it does.
        workers: threads, or processes for a black box.
        progress: called with the phase, its episodes done and all its episodes.

    Guarantee:
        Heuristic: ``practical`` is calibrated, and the paper leaves constants of its exploration open.

    Randomness:
        Shared, at shared_key.derive("explore"), ("enough"), ("window"), ("pilot") and ("decide"). Data:
        streams of the model's data seed.
    """
    check_model(model, "episodic", "access='episodic'")
    key = check_shared_key(shared_key)
    settings.check_horizon(model.horizon)
    limit = _MOST if max_samples is None else check_int("max_samples", max_samples, 1)
    before = model.ledger.samples
    adaptive = settings.constants == "practical" and settings.runs is None
    grade = settings.grade(model.n_states * model.horizon, 2)
    for attempt in range(ATTEMPTS if adaptive else 1):
        stages = _stages(model, settings, grade, attempt)
        _require(model, sum(stage.episodes() for stage in stages), before, limit)
        begun = key.derive("explore") if attempt == 0 else key.derive("explore").derive("level", attempt)
        explored = find_partition(begun, model, stages, grade=grade, workers=workers, progress=progress)
        loss = _loss(explored, settings) if adaptive else 0.0
        if not adaptive or is_accurate(key.derive("enough", attempt), loss, settings.epsilon):
            break
    if adaptive:
        (stage,) = stages
        runs = _data_runs(key, model, stage, explored, settings)
        _require(model, runs * stage.run.episodes, before, limit)
        stages = (replace(stage, data_runs=runs),)
    explored = collect_data(explored, model, stages, workers=workers, progress=progress)
    stretch = _stretch(key, explored, settings)
    induction = _decide(key.derive("decide"), explored, settings, stretch)
    return Run(
        policy=induction.policy,
        guarantee=_promise(settings, loss),
        settings=settings,
        tiers=explored.tiers,
        counts=explored.counts,
        values=induction.values,
        induction=induction,
        explored=explored,
        stretch=stretch,
        level=attempt,
    )


def _require(model: Episodic, episodes: int, before: int, limit: int) -> None:
    """Refuse to go on if so many more episodes could pass the limit on samples."""
    total = model.ledger.samples - before + episodes * model.samples_per_episode
    if total > limit:
        raise ReprlError(f"max_samples must be at least {total} for these settings, got {limit}")


def _stages(model: Episodic, settings: Settings, grade: Grade, attempt: int) -> tuple[Stage, ...]:
    """Return the stages of the preset, with as many runs as were asked for."""
    sizes = (model.n_states, model.n_actions, model.horizon)
    if settings.constants == "paper":
        stages = paper_stages(*sizes, epsilon=settings.epsilon, delta=settings.delta, grade=grade)
    else:
        stages = practical_stages(*sizes, attempt)
    if settings.runs is None:
        return stages
    return tuple(replace(stage, partition_runs=settings.runs, data_runs=0) for stage in stages)


def _loss(explored: Explored, settings: Settings) -> float:
    """Bound what the policy may lose, by the data themselves: what is ignored, and what windows let through."""
    counts, tiers, accuracy = explored.counts, explored.tiers, settings.accuracy(explored.tiers)
    return ignored_starts(counts, tiers, explored.starts) + loss_bound(
        counts, tiers, accuracy, delta=settings.failure, mechanism=settings.mechanism
    )


def _data_runs(key: SharedKey, model: Episodic, stage: Stage, explored: Explored, settings: Settings) -> int:
    """Return M, so that all m + M runs together have a forecast disagreement of FORECAST_TARGET·ρ."""
    stretch = _stretch(key, explored, settings)
    forecast = forecast_disagreement(
        explored.counts,
        explored.tiers,
        _decide(key.derive("pilot"), explored, settings, stretch),
        accuracy=settings.accuracy(explored.tiers).stretched(stretch),
        decision=settings.decision(model.n_states, model.n_actions),
        delta=settings.failure,
        data_seed=model.data_seed,
    )
    growth = (FORECAST_SCALE * forecast / (FORECAST_TARGET * settings.rho)) ** 2
    return max(0, math.ceil(stage.partition_runs * (growth - 1.0)))


def _stretch(key: SharedKey, explored: Explored, settings: Settings) -> float:
    """How much wider than ε/H windows may be; rounded values would add errors that windows do not bound."""
    if settings.constants == "paper" or settings.rounding != "none":
        return 1.0
    counts, tiers = explored.counts, explored.tiers
    left = settings.epsilon - ignored_starts(counts, tiers, explored.starts)
    if left <= 0.0:
        return 1.0
    return shared_stretch(
        key.derive("window"),
        counts,
        tiers,
        accuracy=settings.accuracy(tiers),
        epsilon=left,
        delta=settings.failure,
        mechanism=settings.mechanism,
    )


def _decide(key: SharedKey, explored: Explored, settings: Settings, stretch: float) -> Induction:
    """Turn what was found into a policy, with windows so much wider than ε/H."""
    _, n_states, n_actions = explored.counts.outcomes.shape
    found = tiered_induction(
        key,
        explored.counts,
        explored.tiers,
        accuracy=settings.accuracy(explored.tiers).stretched(stretch),
        delta=settings.failure,
        decision=settings.decision(n_states, n_actions),
    )
    # The induction supposes a reachability partition that both runs share; exploration found one, unproven.
    return found._replace(guarantee=replace(found.guarantee, status="heuristic"))


def _promise(settings: Settings, loss: float) -> Guarantee:
    """Return what was asked for, or the loss that exploration could not avoid."""
    if settings.constants == "paper":
        source = "constants that the paper leaves open"
    elif settings.runs is not None:
        source = "neither proven nor calibrated for this number of runs"
    elif loss > settings.epsilon:
        source = f"exploration missed epsilon={settings.epsilon:g}; its own data bound the loss"
    else:
        source = "docs/calibration.md"
    return replace(settings.promise("heuristic", source), epsilon=max(settings.epsilon, loss))
