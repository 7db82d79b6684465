"""The rule "sampled" by episodes alone: Theorem 6.1 (joint, blocked) and Theorem A.5 (product) of the paper.

This is the preset ``practical``; ``learning.whole`` runs the paper's own. With a number of runs set by hand, a run
makes one stage of ``rep_explore``. Otherwise it makes rounds of exploration runs until a rehearsal passes. What it
prints is then an estimate of a function f(ξ, M), and two runs need nothing in common but ξ; what f reads of the world M
is this:

- for each length ℓ < LENGTHS of an exploration run, 4^ℓ times the first, the law μ_ℓ(h, s): the chance that
  such a run misses a quota there. The set I_ℓ of ignored cells is drawn from B(μ_ℓ) by ξ;
- what ignoring I_ℓ costs, `ignoring_cost`. The first length at which that is below a limit drawn by ξ is taken, or the
  last one. Which length it is depends on data by this comparison alone, and the comparison takes part in the rehearsal;
- the rewards and transitions, which the induction on the partition of that length reads.

How many runs of each length were made is no part of f: more of them estimate the same things better. A simulated second
team draws the runs of every length anew, with replacement, and the records anew given their numbers.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from reprl.assurance.rehearsal import Answer, kept_rehearsal, rehearse
from reprl.canonical.gaps import value_spread
from reprl.guarantee import Guarantee
from reprl.learning.loss import best_value, ignoring_cost, policy_loss_bound
from reprl.learning.practical import Verdict, by_hand, decide, may_stop, rehearsed_promise
from reprl.learning.protocol import Run
from reprl.learning.rounds import Progress, check_limit, most_of, telling
from reprl.learning.settings import Settings
from reprl.mdp.criterion import criterion_of
from reprl.mdp.dynamics import Data, empirical_dynamics, redraw_data
from reprl.mdp.tiers import Tiers
from reprl.paper.q_explore import explore
from reprl.paper.rep_explore import Stage, draw_ignored
from reprl.paper.rep_level_explore import Explored, find_partition, stack_tiers
from reprl.paper.rep_rl_bandit import Induction
from reprl.paper.runs import Exploration, RunSettings, join, resample_missed
from reprl.randomness import DataStream, SharedKey, check_shared_key
from reprl.sources.exploration import no_data
from reprl.sources.protocol import Episodic, check_model
from reprl.storage.checkpoints import Checkpoint

EPISODES_PER_CELL = 32
"""K of a practical run, per cell, at the first length, four times the ladder's top; 4 times as many at each next."""
LENGTHS = 4
"""Lengths of a practical run."""
FIRST_RUNS = 32
"""Exploration runs of the first round, of each length that it needs; twice as many, all together, in each next."""
QUOTAS = (1, 2, 3, 4, 6, 8)
"""The ladder of the practical preset: records per action and run, a small part of the even share."""
BONUS = 0.1
GUIDE = 0.01
IGNORED = (0.125, 0.5)
"""Share of ε that ignored states may cost: its limit is drawn between these, log-uniformly, by the shared key."""


def practical_run(n_states: int, n_actions: int, horizon: int, length: int = 0) -> RunSettings:
    """Return how an exploration run of the practical preset behaves."""
    episodes = 4**length * EPISODES_PER_CELL * n_states * n_actions * horizon
    return RunSettings(episodes=episodes, bonus=BONUS, guide=GUIDE)


def run_episodic(
    model: Episodic,
    shared_key: SharedKey,
    settings: Settings,
    *,
    max_samples: int | None = None,
    workers: int = 1,
    checkpoint: Checkpoint | None = None,
    progress: Progress | None = None,
) -> Run:
    """Explore and decide, again with twice the runs while a rehearsal says so.

    Args:
        model: where episodes are played.
        shared_key: ξ.
        settings: accuracy, replicability and how to decide.
        max_samples: never draw more. A rehearsed run that is not sure by then promises nothing; a size that is fixed
            beforehand is refused.
        workers: threads, or processes for a black box.
        checkpoint: where exploration runs and rehearsals are kept.
        progress: called with the phase, its episodes done and all its episodes.

    Guarantee:
        "rehearsed" if simulated second teams came to the same policy and its loss in the run's own data, where what is
        unseen is worth all that it could be, is at most ε; "none" otherwise, and for a number of runs set by hand.

    Randomness:
        Shared, at shared_key.derive("explore"), ("enough") and ("decide"). Data: streams of the model's data seed, and
        (data seed, "rehearsal/ROUND/…").
    """
    check_model(model, "episodic", "access='episodic'")
    key = check_shared_key(shared_key)
    criterion_of(model).check_epsilon(settings.epsilon)
    if settings.runs is None:
        return _run_rounds(model, key, settings, max_samples, workers, checkpoint, progress)
    spec = settings.coupling_spec(model.n_states * model.horizon, 2)
    run = practical_run(model.n_states, model.n_actions, model.horizon)
    stages = (Stage(run=run, partition_runs=settings.runs, data_runs=0, quotas=(QUOTAS,)),)
    check_limit(max_samples, sum(stage.episodes() for stage in stages) * model.samples_per_episode)
    how: dict[str, Any] = {"workers": workers, "checkpoint": checkpoint, "progress": progress}
    explored = find_partition(key.derive("explore"), model, stages, coupling=spec, **how)
    induction = decide(key, explored.counts, explored.tiers, settings)
    return _finish(settings, explored, induction, by_hand(settings, "exploration runs"), None)


class _Found(NamedTuple):
    """f(ξ, ·) of some data."""

    length: int
    """Length of the exploration runs, as a power of 4."""
    tiers: Tiers
    ignored: NDArray[np.bool_]
    """(H, S): I."""
    cost: float
    """What ignoring it costs."""
    induction: Induction


def _find(
    key: SharedKey, means: list[NDArray[np.float64]], data: Data, settings: Settings, last: int = LENGTHS - 1
) -> _Found | None:
    """Return f(ξ, ·), or None where it needs runs of a length that nobody has made.

    Args:
        key: ξ.
        means: for each length, how many quotas runs missed, (H, S), on average.
        data: all records.
        settings: as they are.
        last: the length that is taken whatever it costs.

    Randomness:
        Shared, at key.derive("explore", "level", length, "ignore", 1), without "level" and the number at the first
        length, ("enough", length) and ("decide").
    """
    low, high = IGNORED
    for length, mean in enumerate(means):
        place = key.derive("explore") if length == 0 else key.derive("explore").derive("level", length)
        ignored = draw_ignored(place.derive("ignore", 1), mean / len(QUOTAS), settings.coupling_spec(mean.size, 2))
        tiers = stack_tiers(ignored[None])
        cost = ignoring_cost(data, tiers)
        share = low * (high / low) ** float(key.derive("enough", length).uniforms(1)[0])
        if length >= last or cost <= share * settings.epsilon:
            return _Found(length, tiers, ignored, cost, decide(key, data.counts, tiers, settings))
    return None


class _Explorer:
    """Exploration runs of every length that a run has needed so far."""

    def __init__(
        self, model: Episodic, most: int, workers: int, checkpoint: Checkpoint | None, progress: Progress | None
    ) -> None:
        self.seen: list[Exploration] = []
        self.data = no_data(model)
        self.spent = False
        """Whether the limit on samples kept some runs from being made."""
        self._model, self._workers, self._progress = model, workers, progress
        self.checkpoint = checkpoint
        self._end = model.ledger.samples + most

    def bring(self, length: int, runs: int, phase: str) -> None:
        """Make runs of a length until there are so many, or as many as the limit allows."""
        model = self._model
        settings = practical_run(model.n_states, model.n_actions, model.horizon, length)
        wanted = runs - (self.seen[length].runs if length < len(self.seen) else 0)
        affordable = (self._end - model.ledger.samples) // (settings.episodes * model.samples_per_episode)
        self.spent |= affordable < wanted
        if min(wanted, affordable) < 1:
            return
        more = explore(
            model,
            settings,
            min(wanted, affordable),
            quotas=QUOTAS,
            purpose=f"{length}/{phase}",
            workers=self._workers,
            checkpoint=self.checkpoint,
            progress=None if self._progress is None else telling(self._progress, f"{phase}, length {length + 1}"),
        )
        if length < len(self.seen):
            self.seen[length] = join(self.seen[length], more)
        else:
            self.seen.append(more)
        self.data += Data(more.counts, more.starts)

    @property
    def means(self) -> list[NDArray[np.float64]]:
        """For each length, how many quotas runs missed, (H, S), on average."""
        return [seen.missed.sum(axis=0) / seen.runs for seen in self.seen]


def _run_rounds(
    model: Episodic,
    key: SharedKey,
    settings: Settings,
    max_samples: int | None,
    workers: int,
    checkpoint: Checkpoint | None,
    progress: Progress | None,
) -> Run:
    """Explore, find, rehearse; again with twice the runs."""
    shortest = practical_run(model.n_states, model.n_actions, model.horizon).episodes * model.samples_per_episode
    explorer = _Explorer(model, most_of(model, "episodic", max_samples, shortest), workers, checkpoint, progress)
    number, last = 0, LENGTHS - 1
    while True:
        number += 1
        found = None
        for length in range(LENGTHS):
            explorer.bring(length, FIRST_RUNS * 2 ** (number - 1), f"round {number}")
            if explorer.spent:
                last = len(explorer.seen) - 1
            found = _find(key, explorer.means, explorer.data, settings, last)
            if found is not None and (found.length <= length or explorer.spent):
                break
        assert found is not None  # the last length is taken whatever it costs
        stream = DataStream(model.data_seed, f"rehearsal/{number}")
        verdict = _rehearse(key, explorer, found, settings, last, stream)
        if may_stop(verdict, settings.epsilon) or explorer.spent:
            break
    guarantee = rehearsed_promise(settings, verdict)
    if explorer.spent and found.cost > IGNORED[1] * settings.epsilon:
        why = f"what was hardly explored could be worth {found.cost:.3g}"
        guarantee = settings.promise("none", f"out of samples before it was sure: {why}")
    seen = explorer.seen[found.length]
    explored = Explored(
        found.tiers,
        explorer.data.counts,
        explorer.means[found.length][None] / len(QUOTAS),
        found.ignored[None],
        first_value=seen.first_value,
        starts=seen.starts,
        length=found.length,
    )
    return _finish(settings, explored, found.induction, guarantee, verdict)


def _rehearse(
    key: SharedKey, explorer: _Explorer, found: _Found, settings: Settings, last: int, stream: DataStream
) -> Verdict:
    """Ask simulated second teams, whose runs, records, length and partition are their own; and the loss."""
    data, policy = explorer.data, found.induction.policy
    lanes = int(np.prod(data.counts.outcomes.shape)) + 1  # lanes below are those of the records and starts

    def team(fresh: SharedKey | None, share: int, draw: int) -> Answer:
        own = redraw_data(data, share, draw)
        means = [resample_missed(seen, share, draw, lanes + length) for length, seen in enumerate(explorer.seen)]
        other = _find(fresh or key, means, own, settings, last)
        return Answer(None if other is None else other.induction.policy, best_value(own))

    make = partial(rehearse, team, policy, rho=settings.rho, epsilon=settings.epsilon, stream=stream)
    rehearsal = kept_rehearsal(explorer.checkpoint, stream, make)
    return Verdict(rehearsal, policy_loss_bound(data, policy))


def _finish(
    settings: Settings, explored: Explored, induction: Induction, guarantee: Guarantee, verdict: Verdict | None
) -> Run:
    """Put the result together."""
    # The induction supposes a reachability partition that both runs share; exploration found one, unproven.
    unproven = replace(induction.guarantee, status="heuristic")
    return Run(
        policy=induction.policy,
        guarantee=guarantee,
        settings=settings,
        tiers=explored.tiers,
        counts=explored.counts,
        values=induction.values,
        rehearsal=None if verdict is None else verdict.rehearsal,
        spread=value_spread(empirical_dynamics(Data(explored.counts, explored.starts))),
        induction=induction._replace(guarantee=unproven),
        explored=explored,
    )
