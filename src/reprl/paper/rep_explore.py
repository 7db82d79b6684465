"""RepExplore (Algorithm 5) and RepLevelExplore (Algorithm 6): a partition that replicates, and data for it.

A *stage* makes m runs to see which states are under-explored, how often (the fractional set μ̂), draws the set I
from the product of Bernoullis B(μ̂) by correlated sampling (`find_partition`), and makes M more runs for data
(`collect_data`). The paper has one stage per tier. A stage may also settle several tiers from one set of runs.

Each tier has a *ladder* of quotas: a run's set is then the one of a quota drawn at random from the ladder, averaged
over that draw, which leaves the law of I what it was and its fractions far steadier from one batch of runs to the next.
The paper's ladder has one rung, H.

The records of all m + M runs are kept. Which states are under-explored depends on the numbers of records alone, and
given these the records are fresh draws, so the paper need not throw those of the m runs away. That supposes an M that
was fixed beforehand.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from reprl.coupling.correlated import draw
from reprl.coupling.spec import Grade
from reprl.errors import InputError, check_int, quote
from reprl.mdp.counts import Counts
from reprl.mdp.tiers import Tiers
from reprl.paper.q_explore import explore
from reprl.paper.runs import Exploration, RunSettings
from reprl.randomness import SharedKey, check_shared_key
from reprl.sources.protocol import Episodic
from reprl.storage.checkpoints import Checkpoint

Progress = Callable[[str, int, int], None]
"""Told of a phase: its name, its episodes done, all its episodes."""


@dataclass(frozen=True, kw_only=True)
class Stage:
    """One stage of exploration: which runs, how many, and the quotas of the tiers that it settles."""

    run: RunSettings
    """How every run behaves."""
    partition_runs: int
    """m: runs that estimate μ̂."""
    data_runs: int
    """M: further runs, which only collect data."""
    quotas: tuple[tuple[int, ...], ...]
    """One ladder per tier settled: records per action below which a state is under-explored; (H,) in the paper."""

    def __post_init__(self) -> None:
        """Check every field."""
        check_int("partition_runs", self.partition_runs, 1, 2**31)
        check_int("data_runs", self.data_runs, 0, 2**31)
        if not self.quotas:
            raise InputError("quotas must name at least one tier, got none")
        for ladder in self.quotas:
            if not isinstance(ladder, tuple) or not ladder:
                raise InputError(f"a ladder of quotas must be a tuple of at least one rung, got {quote(ladder)}")
            for quota in ladder:
                check_int("quota", quota, 1, 2**62)

    @property
    def rungs(self) -> tuple[int, ...]:
        """All quotas, ladder after ladder."""
        return tuple(quota for ladder in self.quotas for quota in ladder)

    def fractional(self, seen: Exploration) -> list[NDArray[np.float64]]:
        """μ̂ of each tier, (H, S): the fraction of runs, and of rungs, for which a state was under-explored."""
        parts = np.split(seen.short, np.cumsum([len(ladder) for ladder in self.quotas])[:-1])
        return [part.sum(axis=0) / (len(part) * seen.runs) for part in parts]

    def episodes(self) -> int:
        """Episodes that the stage plays."""
        return (self.partition_runs + self.data_runs) * self.run.episodes


class Explored(NamedTuple):
    """What exploration has found."""

    tiers: Tiers
    counts: Counts
    """Records of all runs so far. The partition depends on how many there are, never on what they show."""
    fractional: NDArray[np.float64]
    """(L−1, H, S): μ̂ of each tier, the fraction of runs (and rungs) for which a state was under-explored."""
    ignored: NDArray[np.bool_]
    """(L−1, H, S): the sets I drawn from B(μ̂)."""
    first_value: NDArray[np.float64]
    """The agents' final V₁ in the partition runs, all stages: a bound on under-explored reachability when c = 2."""
    starts: NDArray[np.int64]
    """(S,): how many episodes of the partition runs began in each state."""
    length: int = 0
    """How often a run that may choose its length has made it four times as long."""


def find_partition(
    key: SharedKey,
    model: Episodic,
    stages: tuple[Stage, ...],
    *,
    grade: Grade,
    workers: int = 1,
    checkpoint: Checkpoint | None = None,
    progress: Progress | None = None,
) -> Explored:
    """Make the m runs of every stage; return the partition into tiers that they give, and their records.

    Args:
        key: shared randomness; the same key in both runs.
        model: the MDP in memory or the black box, by episodes.
        stages: what to do; tiers are numbered through all stages.
        grade: how the correlated sampling of I couples (h, s), h outermost.
        workers: threads, or processes for a black box.
        checkpoint: where batches of runs are kept.
        progress: called with the phase, its episodes done and all its episodes.

    Guarantee:
        I has law B(μ̂), so its expected reachability is the average over the runs that gave μ̂ (Lemma 5.10), for every
        policy. Two runs draw different I with probability at most the coupling's bound at their μ̂.

    Randomness:
        Shared, at key.derive("ignore", tier). Data: fresh streams of the model, one per stage.
    """
    check_shared_key(key)
    if not stages:
        raise InputError("exploration needs at least one stage, got none")
    runs = [stage.partition_runs for stage in stages]
    seen = _explore_stages(model, stages, runs, "partition", workers, checkpoint, progress)
    mu = np.array([tier for stage, batch in zip(stages, seen, strict=True) for tier in stage.fractional(batch)])
    ignored = np.array([draw_ignored(key.derive("ignore", t + 1), mu[t], grade) for t in range(len(mu))])
    tiers = stack_tiers(ignored)
    starts = np.sum([batch.starts for batch in seen], axis=0)
    if np.delete(tiers.ignorable[0], list(model.known)).all():
        made = " and ".join(f"{stage.partition_runs} runs of {stage.run.episodes} episodes" for stage in stages)
        least, begun = min(min(stage.rungs) for stage in stages), int(np.count_nonzero(starts))
        raise InputError(
            f"exploration must settle some state of step 0, got none after {made}: {least} records of every action in "
            f"a run are too many for the {begun} {'state' if begun == 1 else 'states'} that episodes began in, at "
            f"horizon {model.horizon}; rule='canonical' needs no such runs"
        )
    return Explored(
        tiers,
        Counts.merge([batch.counts for batch in seen]),
        mu,
        ignored,
        first_value=np.concatenate([batch.first_value for batch in seen]),
        starts=starts,
    )


def collect_data(
    explored: Explored,
    model: Episodic,
    stages: tuple[Stage, ...],
    *,
    keep: bool = True,
    workers: int = 1,
    checkpoint: Checkpoint | None = None,
    progress: Progress | None = None,
) -> Explored:
    """Make the M further runs of every stage; return what was found before with their records.

    Args:
        explored: what the partition runs found.
        model: as in find_partition.
        stages: as in find_partition.
        keep: whether the records of the partition runs are data too; the paper collects data afresh.
        workers: threads, or processes for a black box.
        checkpoint: where batches of runs are kept.
        progress: called with the phase, its episodes done and all its episodes.

    Randomness:
        Data: fresh streams of the model, one per stage with M > 0. No shared address is read.
    """
    runs = [stage.data_runs for stage in stages]
    batches = _explore_stages(model, stages, runs, "data", workers, checkpoint, progress)
    more = [batch.counts for batch in batches]
    if not keep and not more:
        raise InputError(f"data_runs must be at least 1 where no records are kept, got {runs}")
    return explored._replace(counts=Counts.merge([explored.counts, *more] if keep else more))


def _explore_stages(
    model: Episodic,
    stages: tuple[Stage, ...],
    runs: list[int],
    phase: str,
    workers: int,
    checkpoint: Checkpoint | None,
    progress: Progress | None,
) -> list[Exploration]:
    """Make a batch of runs for every stage that has any."""
    found = []
    for i, (stage, n) in enumerate(zip(stages, runs, strict=True)):
        if n == 0:
            continue
        tell = None if progress is None else partial(progress, f"stage {i + 1} of {len(stages)}: {phase}")
        how: dict[str, Any] = {"workers": workers, "checkpoint": checkpoint, "progress": tell}
        found.append(explore(model, stage.run, n, quotas=stage.rungs, purpose=f"{i}/{phase}", **how))
    return found


def draw_ignored(key: SharedKey, mu: NDArray[np.float64], grade: Grade) -> NDArray[np.bool_]:
    """Draw I ~ B(μ̂): every (h, s) with probability mu[h, s], by correlated sampling over all of them."""
    inside = mu.reshape(-1)
    drawn = draw(key, np.stack([1.0 - inside, inside], axis=1), grade).choice
    chosen: NDArray[np.bool_] = drawn.reshape(mu.shape) == 1
    return chosen


def stack_tiers(ignored: NDArray[np.bool_]) -> Tiers:
    """Build the partition: a state is in the first tier whose set does not ignore it, or in the last one."""
    level = 1 + np.logical_and.accumulate(ignored).sum(axis=0)
    return Tiers.from_levels(level, len(ignored) + 1)
