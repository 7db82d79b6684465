"""The learner by episodes alone: Theorem 6.1 (joint, blocked) and Theorem A.5 (product) of the paper."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from reprl.decide.forecast import forecast_disagreement
from reprl.decide.induction import Induction, tiered_induction
from reprl.decide.window import ignored_starts, is_accurate, loss_bound, shared_stretch
from reprl.errors import ReprlError, check_int, quote
from reprl.explore.qexplore import Exploration, RunSettings
from reprl.explore.rep_explore import Explored, Stage, rep_explore
from reprl.guarantee import Guarantee
from reprl.learning.settings import Settings
from reprl.mdp.access import Episodic, EpisodicModel
from reprl.mdp.counts import Counts
from reprl.mdp.gymnasium.model import GymnasiumModel
from reprl.mdp.tiers import Tiers
from reprl.randomness import SharedKey, check_shared_key

EPISODES_PER_CELL = 32
"""K of a practical run, per cell, at level 0: four times the ladder's top, 4 times as many at each further level."""
LEVELS = 4
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


class EpisodicRun(NamedTuple):
    """What an episodic run produced."""

    induction: Induction
    explored: Explored
    guarantee: Guarantee
    stretch: float
    level: int
    """How often exploration was begun again with longer runs."""


def practical_stages(n_states: int, n_actions: int, horizon: int, level: int = 0) -> tuple[Stage, ...]:
    """Return the one stage of the practical preset; the forecast adds data runs to it."""
    episodes = 4**level * EPISODES_PER_CELL * n_states * n_actions * horizon
    run = RunSettings(episodes=episodes, bonus=BONUS, guide=GUIDE)
    return (Stage(partition=run, partition_runs=PARTITION_RUNS, data=run, data_runs=0, quotas=QUOTAS),)


def paper_stages(
    n_states: int, n_actions: int, horizon: int, *, epsilon: float, delta: float, coupling: str
) -> tuple[Stage, ...]:
    """Return RepLevelExplore's stages (Algorithm 6), constants that the paper leaves open set to 1.

    The product grade multiplies m and M by S·H (Lemma A.1). ι is κ/m², an inverse polynomial.
    """
    cells = n_states * horizon
    zeta = epsilon / (horizon**2 * math.log(n_states * n_actions * horizon / (epsilon * delta)) ** 5)
    if zeta > 0.5:
        raise ReprlError(f"epsilon must be small enough for two tiers (ζ ≤ 1/2) at these sizes, got ζ = {zeta:.3g}")
    levels = max(2, math.ceil(math.log2(1.0 / zeta)))
    kappa = 0.01 / math.log2(1.0 / zeta)
    log = math.log(max(3.0, cells / kappa))
    grade = cells if coupling == "product" else 1
    runs = math.ceil(grade * cells * log / kappa**2)
    iota = kappa / float(runs) ** 2
    stages = []
    for tier in range(1, levels):
        beta = 2.0**tier * zeta
        data_runs = math.ceil(log**2 * runs + grade * cells * log / (kappa**4 * beta**2))
        accuracy = 2.0**-tier * kappa
        size = n_states * 2 * n_actions * horizon**5 * math.log(n_states * n_actions * horizon / iota)
        episodes = math.ceil(size / accuracy**2)
        if (runs + data_runs) * episodes > _MOST:
            raise ReprlError(
                f"the paper's constants ask for {float(runs + data_runs) * episodes:.3g} episodes in tier {tier} "
                "alone; at most 2**62 can be counted: use constants='practical'"
            )
        run = RunSettings(episodes=episodes, bonus=2.0, guide=1.0, failure=iota)
        stages.append(Stage(partition=run, partition_runs=runs, data=run, data_runs=data_runs, quotas=((horizon,),)))
    return tuple(stages)


def run_episodic(
    model: EpisodicModel | GymnasiumModel,
    shared_key: SharedKey,
    settings: Settings,
    *,
    max_samples: int | None = None,
    workers: int = 1,
    progress: Callable[[str, int, int], None] | None = None,
) -> EpisodicRun:
    """Explore, partition, collect, decide.

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
    if not isinstance(model, EpisodicModel | GymnasiumModel):
        allowed = "a reprl.EpisodicModel or a reprl.GymnasiumModel"
        raise ReprlError(f"model must be {allowed} for access='episodic', got {quote(model)}")
    key = check_shared_key(shared_key)
    sizes = (model.n_states, model.n_actions, model.horizon)
    settings.check_horizon(model.horizon)
    budget = _Budget(model, max_samples)
    promise = settings.promise("heuristic", _source(settings))
    stretch, level = 1.0, 0
    if settings.constants == "paper":
        partition = settings.decision(model.n_states * model.horizon, 2)
        stages = paper_stages(*sizes, epsilon=settings.epsilon, delta=settings.delta, coupling=partition.coupling)
        explored = _explore(key.derive("explore"), model, stages, settings, budget, workers, progress)
    else:
        for level in range(LEVELS if settings.runs is None else 1):
            begun = key.derive("explore") if level == 0 else key.derive("explore").derive("level", level)
            stages = practical_stages(*sizes, level)
            sizer = _Sizer(key, model, settings, budget, stages[0], level)
            explored = _explore(begun, model, stages, settings, budget, workers, progress, sizer)
            if sizer.enough:
                break
        if sizer.loss > settings.epsilon:
            missed = f"exploration missed epsilon={settings.epsilon:g}; its own data bound the loss"
            promise = replace(promise, epsilon=sizer.loss, source=missed)
        stretch = _stretch(key, explored.counts, explored.tiers, explored.starts, settings)
    accuracy = settings.accuracy(explored.tiers)
    induction = tiered_induction(
        key.derive("decide"),
        explored.counts,
        explored.tiers,
        accuracy=accuracy.stretched(stretch),
        delta=settings.failure,
        decision=settings.decision(model.n_states, model.n_actions),
    )
    # The induction supposes a reachability partition that both runs share; exploration found one, unproven.
    modest = replace(induction.guarantee, status="heuristic")
    return EpisodicRun(induction._replace(guarantee=modest), explored, promise, stretch, level)


def _source(settings: Settings) -> str:
    if settings.constants == "paper":
        return "constants that the paper leaves open"
    return "docs/calibration.md" if settings.runs is None else "neither proven nor calibrated for this number of runs"


def _explore(
    key: SharedKey,
    model: Episodic,
    stages: tuple[Stage, ...],
    settings: Settings,
    budget: _Budget,
    workers: int,
    progress: Callable[[str, int, int], None] | None,
    sizer: _Sizer | None = None,
) -> Explored:
    """Explore in stages, with as many runs as were asked for, if the budget allows it."""
    if settings.runs is not None:
        stages = tuple(replace(stage, partition_runs=settings.runs, data_runs=0) for stage in stages)
    budget.require(sum(stage.episodes() for stage in stages) * model.samples_per_episode)
    partition = settings.decision(model.n_states * model.horizon, 2)
    return rep_explore(
        key,
        model,
        stages,
        coupling=partition.coupling,
        block=partition.block,
        data_runs=sizer,
        workers=workers,
        progress=progress,
    )


class _Budget:
    """What the samples may add up to."""

    def __init__(self, model: Episodic, max_samples: int | None) -> None:
        self.limit = _MOST if max_samples is None else check_int("max_samples", max_samples, 1)
        self.ledger = model.ledger
        self.start = model.ledger.samples

    def require(self, samples: int) -> None:
        """Refuse to go on if `samples` more could pass the limit."""
        total = self.ledger.samples - self.start + samples
        if total > self.limit:
            raise ReprlError(f"max_samples must be at least {total} for these settings, got {self.limit}")


def _stretch(key: SharedKey, counts: Counts, tiers: Tiers, starts: NDArray[np.int64], settings: Settings) -> float:
    """How much wider than ε/H windows may be; rounded values would add errors that windows do not bound."""
    left = settings.epsilon - ignored_starts(counts, tiers, starts)
    if settings.rounding != "none" or left <= 0.0:
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


class _Sizer:
    """Looks at the partition runs of a level: are they enough for ε, and how many data runs make them enough for ρ?"""

    def __init__(
        self, key: SharedKey, model: Episodic, settings: Settings, budget: _Budget, stage: Stage, level: int
    ) -> None:
        self.key = key
        self.model = model
        self.settings = settings
        self.budget = budget
        self.stage = stage
        self.level = level
        self.enough = True
        self.loss = 0.0

    def __call__(self, seen: Exploration, tiers: Tiers) -> int:
        """Return M, so that all m + M runs together have a forecast disagreement of FORECAST_TARGET·ρ.

        Where the states that are ignored cost too much, a longer exploration comes next and M is 0, unless this was the
        last one.
        """
        settings, model = self.settings, self.model
        if settings.runs is not None:
            return 0
        accuracy = settings.accuracy(tiers)
        self.loss = ignored_starts(seen.counts, tiers, seen.starts) + loss_bound(
            seen.counts, tiers, accuracy, delta=settings.failure, mechanism=settings.mechanism
        )
        self.enough = is_accurate(self.key.derive("enough", self.level), self.loss, settings.epsilon)
        if not self.enough and self.level + 1 < LEVELS:
            return 0
        decision = settings.decision(model.n_states, model.n_actions)
        accuracy = accuracy.stretched(_stretch(self.key, seen.counts, tiers, seen.starts, settings))
        pilot = tiered_induction(
            self.key.derive("pilot"), seen.counts, tiers, accuracy=accuracy, delta=settings.failure, decision=decision
        )
        forecast = forecast_disagreement(
            seen.counts,
            tiers,
            pilot,
            accuracy=accuracy,
            decision=decision,
            delta=settings.failure,
            growth=1.0,
            data_seed=model.data_seed,
        )
        growth = (FORECAST_SCALE * forecast / (FORECAST_TARGET * settings.rho)) ** 2
        runs = max(0, math.ceil(seen.runs * (growth - 1.0)))
        self.budget.require(runs * self.stage.data.episodes * model.samples_per_episode)
        return runs
