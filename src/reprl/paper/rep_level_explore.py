"""Algorithm 6 (RepLevelExplore): a partition of the states into tiers, the same in two runs, and data for each tier.

RepExplore (Algorithm 5) once for every tier but the last. The m runs of all tiers come first, then the M runs of all:
they read different streams, so the order changes nothing.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from reprl.errors import InputError
from reprl.execution.settings import Execution
from reprl.mdp.counts import Counts
from reprl.mdp.tiers import Tiers
from reprl.paper.q_explore import explore
from reprl.paper.rep_explore import Stage, draw_ignored
from reprl.paper.runs import Exploration
from reprl.randomness import SharedKey, check_shared_key
from reprl.sources.protocol import Episodic

ALONE = Execution()
"""One worker, nobody told."""


class Explored(NamedTuple):
    """What exploration has found."""

    tiers: Tiers
    counts: Counts
    """Records of all runs so far. The partition depends on how many there are, never on what they show."""
    fractional: NDArray[np.float64]
    """(L−1, H, S): μ̂ of each tier, the fraction of runs for which a state was under-explored."""
    ignored: NDArray[np.bool_]
    """(L−1, H, S): the sets I drawn from B(μ̂)."""
    first_value: NDArray[np.float64]
    """The agents' final V₁ in the partition runs, all stages: a bound on under-explored reachability when c = 2."""
    starts: NDArray[np.int64]
    """(S,): how many episodes of the partition runs began in each state."""


def rep_level_explore(
    key: SharedKey,
    model: Episodic,
    stages: tuple[Stage, ...],
    *,
    coupling: str,
    keep: bool = False,
    execution: Execution = ALONE,
) -> Explored:
    """Algorithm 6 from the first line to the last: `find_partition`, then `collect_data`, which say what is what."""
    explored = find_partition(key, model, stages, coupling=coupling, execution=execution)
    return collect_data(explored, model, stages, keep=keep, execution=execution)


def find_partition(
    key: SharedKey, model: Episodic, stages: tuple[Stage, ...], *, coupling: str, execution: Execution = ALONE
) -> Explored:
    """Make the m runs of every stage; return the partition into tiers that they give, and their records.

    Args:
        key: shared randomness; the same key in both runs.
        model: the MDP in memory or the black box, by episodes.
        stages: what to do, one for each tier that is decided.
        coupling: which (h, s), h outermost, are drawn together in I.
        execution: workers, and who is told.

    Guarantee:
        I has law B(μ̂), so its expected reachability is the average over the runs that gave μ̂ (Lemma 5.10), for every
        policy. Two runs draw different I with probability at most the coupling's bound at their μ̂.

    Randomness:
        Shared, at key.derive("ignore", tier). Data: fresh streams of the model, one per stage.
    """
    check_shared_key(key)
    if not stages:
        raise InputError("exploration needs at least one stage, got none")
    seen = _explore_stages(model, stages, [stage.partition_runs for stage in stages], "partition", execution)
    mu = np.array([batch.short / batch.runs for batch in seen])
    ignored = np.array([draw_ignored(key.derive("ignore", t + 1), mu[t], coupling) for t in range(len(mu))])
    tiers = stack_tiers(ignored)
    starts = np.sum([batch.starts for batch in seen], axis=0)
    if np.delete(tiers.ignorable[0], list(model.known)).all():
        made = " and ".join(f"{stage.partition_runs} runs of {stage.run.episodes} episodes" for stage in stages)
        least, begun = min(stage.quota for stage in stages), int(np.count_nonzero(starts))
        raise InputError(
            f"exploration must settle some state of step 0, got none after {made}: {least} records of every action in "
            f"a run are too many for the {begun} {'state' if begun == 1 else 'states'} that episodes began in, at "
            f"horizon {model.horizon}; rule='canonical' needs no such runs"
        )
    first_value = np.concatenate([batch.first_value for batch in seen])
    return Explored(tiers, Counts.merge([batch.counts for batch in seen]), mu, ignored, first_value, starts)


def collect_data(
    explored: Explored, model: Episodic, stages: tuple[Stage, ...], *, keep: bool = True, execution: Execution = ALONE
) -> Explored:
    """Make the M further runs of every stage; return what was found before with their records.

    With `keep` the records of the partition runs are data too; the paper collects data afresh.

    Randomness:
        Data: fresh streams of the model, one per stage with M > 0. No shared address is read.
    """
    runs = [stage.data_runs for stage in stages]
    more = [batch.counts for batch in _explore_stages(model, stages, runs, "data", execution)]
    if not keep and not more:
        raise InputError(f"data_runs must be at least 1 where no records are kept, got {runs}")
    return explored._replace(counts=Counts.merge([explored.counts, *more] if keep else more))


def _explore_stages(
    model: Episodic, stages: tuple[Stage, ...], runs: list[int], phase: str, execution: Execution
) -> list[Exploration]:
    """Make a batch of runs for every stage that has any."""
    found, tell = [], execution.progress
    for i, (stage, n) in enumerate(zip(stages, runs, strict=True)):
        if n == 0:
            continue
        progress = None if tell is None else partial(tell, f"stage {i + 1} of {len(stages)}: {phase}")
        how: dict[str, Any] = {"workers": execution.workers, "progress": progress}
        found.append(explore(model, stage.run, n, quota=stage.quota, purpose=f"{i}/{phase}", **how))
    return found


def stack_tiers(ignored: NDArray[np.bool_]) -> Tiers:
    """Build the partition: a state is in the first tier whose set does not ignore it, or in the last one."""
    level = 1 + np.logical_and.accumulate(ignored).sum(axis=0)
    return Tiers.from_levels(level, len(ignored) + 1)
