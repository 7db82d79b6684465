"""The rule "sampled" by episodes alone: Theorem 6.1 (joint, blocked) and Theorem A.5 (product) of the paper.

This is the preset ``practical``; ``learning.full`` runs the paper's own. With a number of runs set by hand, a run
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

from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from reprl.assurance.stopping import Judgement, Round
from reprl.execution.settings import Execution
from reprl.learning.loop import run_loop
from reprl.learning.loss import best_value, ignoring_cost
from reprl.learning.practical import PracticalRehearsed, by_hand, decide, paper_run
from reprl.learning.result import PaperDetails, Run
from reprl.learning.settings import Settings
from reprl.mdp.criterion import criterion_of
from reprl.mdp.dynamics import Data, redraw_data
from reprl.mdp.policy import Policy
from reprl.mdp.tiers import Tiers
from reprl.paper.q_explore import explore
from reprl.paper.rep_explore import Stage, draw_ignored
from reprl.paper.rep_level_explore import ALONE, Explored, find_partition, stack_tiers
from reprl.paper.rep_rl_bandit import Induction
from reprl.paper.runs import Exploration, RunSettings, join, resample_missed
from reprl.randomness import SharedKey, check_shared_key
from reprl.sources.protocol import Episodic, check_model, no_data
from reprl.sources.source import LIMITS, RAN_OUT, Wanted, Wish, check_limit, most_samples

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
    max_samples: int | None = None,
    execution: Execution = ALONE,
) -> Run:
    """Explore and decide, again with twice the runs while a rehearsal says so.

    A rehearsed run that is not sure after max_samples promises nothing; a size that is fixed beforehand and passes it
    is refused.

    Guarantee:
        "rehearsed" if simulated second teams came to the same policy and its loss in the run's own data, where what is
        unseen is worth all that it could be, is at most ε; "none" otherwise, and for a number of runs set by hand.

    Randomness:
        Shared, at shared_key.derive("explore"), ("enough") and ("decide"). Data: streams of the model's data seed, and
        (data seed, "rehearsal/ROUND/…").
    """
    check_model(model, "episodic", "access='episodic'")
    key = check_shared_key(shared_key)
    criterion_of(model).check_epsilon(settings.asked.epsilon)
    if settings.runs is None:
        return _run_rounds(model, key, settings, max_samples, execution)
    spec = settings.paper.coupling_spec(model.n_states * model.horizon, 2)
    run = practical_run(model.n_states, model.n_actions, model.horizon)
    stages = (Stage(run=run, partition_runs=settings.runs, data_runs=0, quotas=(QUOTAS,)),)
    check_limit(max_samples, sum(stage.episodes() for stage in stages) * model.samples_per_episode)
    explored = find_partition(key.derive("explore"), model, stages, coupling=spec, execution=execution)
    induction = decide(key, explored.counts, explored.tiers, settings)
    data, nothing = Data(explored.counts, explored.starts), by_hand(settings, "exploration runs")
    return paper_run(settings, nothing, data, explored.tiers, PaperDetails(induction, explored))


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
    best: float
    """V* from the start, in the data."""

    @property
    def policy(self) -> Policy:
        """The policy."""
        return self.induction.policy


class _Needs(NamedTuple):
    """Marks that f(ξ, ·) needs runs of a length that was not run."""

    best: float
    policy: None = None


class _Read(NamedTuple):
    """What f reads of exploration runs."""

    means: list[NDArray[np.float64]]
    """For each length, how many quotas runs missed, (H, S), on average."""
    data: Data
    """All records."""
    last: int
    """The length that is taken whatever it costs."""


class _Rule(NamedTuple):
    """f(ξ, ·) of exploration runs, as a rule of the loop."""

    key: SharedKey
    settings: Settings
    followed: bool = False

    def choose(self, read: _Read) -> _Found | _Needs:
        """Return f(ξ, ·).

        Randomness:
            Shared, at key.derive("explore", "level", length, "ignore", 1), without "level" and the number at the first
            length, ("enough", length) and ("decide").
        """
        low, high = IGNORED
        settings, data = self.settings, read.data
        for length, mean in enumerate(read.means):
            place = self.key.derive("explore")
            place = place if length == 0 else place.derive("level", length)
            ignored = draw_ignored(
                place.derive("ignore", 1), mean / len(QUOTAS), settings.paper.coupling_spec(mean.size, 2)
            )
            tiers = stack_tiers(ignored[None])
            cost = ignoring_cost(data, tiers)
            share = low * (high / low) ** float(self.key.derive("enough", length).uniforms(1)[0])
            if length >= read.last or cost <= share * settings.asked.epsilon:
                induction = decide(self.key, data.counts, tiers, settings)
                return _Found(length, tiers, ignored, cost, induction, best_value(data))
        return _Needs(best_value(data))

    def under(self, key: SharedKey) -> _Rule:
        """Return the same rule under another key."""
        return self._replace(key=key)

    def wanted(self, found: _Found) -> Wish:
        """Nothing: exploration runs find their own way."""
        return Wish(np.zeros(0), 0.0)


class _Runs(NamedTuple):
    """Exploration runs of every length that a run has needed so far."""

    seen: tuple[Exploration, ...]
    data: Data
    round: int = 0
    spent: bool = False
    """Whether the limit on samples kept some runs from being made."""
    last: int = LENGTHS - 1
    """The length that is taken whatever it costs."""

    @property
    def name(self) -> str:
        """The number of the round."""
        return str(self.round)

    @property
    def means(self) -> list[NDArray[np.float64]]:
        """For each length, how many quotas runs missed, (H, S), on average."""
        return [seen.missed.sum(axis=0) / seen.runs for seen in self.seen]

    def estimate(self) -> _Read:
        """Return what f reads."""
        return _Read(self.means, self.data, self.last)

    def redraw(self, share: int, key: int) -> _Read:
        """Draw the runs of every length anew, with replacement, and the records anew given their numbers."""
        lanes = int(np.prod(self.data.counts.outcomes.shape)) + 1  # lanes below are those of the records and starts
        means = [resample_missed(seen, share, key, lanes + length) for length, seen in enumerate(self.seen)]
        return _Read(means, redraw_data(self.data, share, key), self.last)

    def certificate_source(self) -> None:
        """None: no certificate covers laws."""


class ExplorationRuns:
    """Exploration runs as a DataSource; a unit is a run of each length that the rule needs."""

    ran_out, claim, fixed_start = RAN_OUT, "", False

    def __init__(self, model: Episodic, rule: _Rule, execution: Execution) -> None:
        self.ledger, self.data_seed = model.ledger, model.data_seed
        self._model, self._rule, self._execution, self._end = model, rule, execution, 0

    def sizes(self, limit: int | None) -> list[int]:
        """Return the numbers of runs; the limit ends them by itself."""
        model = self._model
        shortest = practical_run(model.n_states, model.n_actions, model.horizon).episodes * model.samples_per_episode
        usual = LIMITS["black box" if model.arrays is None else "tables"]
        self._end = model.ledger.samples + most_samples(limit, usual, shortest)
        return [FIRST_RUNS << number for number in range(30)]

    def empty(self) -> _Runs:
        """Return what is known before the first run."""
        return _Runs((), no_data(self._model))

    def gather(self, known: _Runs, size: int, wanted: Wanted | None) -> _Runs:
        """Make runs of the first length until there are so many, and of each next one as long as the rule needs it."""
        known = known._replace(round=known.round + 1)
        for length in range(LENGTHS):
            known = self._bring(known, length, size)
            if known.spent:
                return known._replace(last=len(known.seen) - 1)
            found = self._rule.choose(known.estimate())
            if isinstance(found, _Found) and found.length <= length:
                break
        return known

    def _bring(self, known: _Runs, length: int, runs: int) -> _Runs:
        """Make runs of a length until there are so many, or as many as the limit allows."""
        model, seen, phase = self._model, list(known.seen), f"round {known.round}"
        settings = practical_run(model.n_states, model.n_actions, model.horizon, length)
        wanted = runs - (seen[length].runs if length < len(seen) else 0)
        affordable = (self._end - model.ledger.samples) // (settings.episodes * model.samples_per_episode)
        known = known._replace(spent=known.spent or affordable < wanted)
        if min(wanted, affordable) < 1:
            return known
        tell = self._execution.progress
        more = explore(
            model,
            settings,
            min(wanted, affordable),
            quotas=QUOTAS,
            purpose=f"{length}/{phase}",
            workers=self._execution.workers,
            checkpoint=self._execution.checkpoint,
            progress=None if tell is None else partial(tell, f"{phase}, length {length + 1}"),
        )
        seen[length:] = [join(seen[length], more) if length < len(seen) else more, *seen[length + 1 :]]
        return known._replace(seen=tuple(seen), data=known.data + Data(more.counts, more.starts))

    def exhausted(self, known: _Runs) -> bool:
        """No: the stop rule sees what is spent."""
        return False

    def drift(self, known: _Runs) -> str:
        """Nothing: each step has its own model."""
        return ""

    shortage = hint = drift


@dataclass(frozen=True)
class _Stop:
    """As ``PracticalRehearsed``, and when the limit on samples is reached."""

    rehearsed: PracticalRehearsed

    def judge(self, now: Round) -> Judgement:
        """Rehearse; a run out of samples that ignores too much promises nothing."""
        found, settings = self.rehearsed.judge(now), self.rehearsed.settings
        if not now.known.spent:
            return found
        if now.found.cost > IGNORED[1] * settings.asked.epsilon:
            why = f"{now.source.ran_out}: the optimistic value of under-sampled cells is {now.found.cost:.3g}"
            found = found._replace(guarantee=settings.asked.promise("none", why))
        return found._replace(enough=True)


def _run_rounds(
    model: Episodic, key: SharedKey, settings: Settings, max_samples: int | None, execution: Execution
) -> Run:
    """Explore, find, rehearse; again with twice the runs."""
    rule, stop = _Rule(key, settings), _Stop(PracticalRehearsed(settings, execution))
    outcome = run_loop(ExplorationRuns(model, rule, execution), rule, stop, max_samples)
    known, found = outcome.known, outcome.judgement.found
    seen = known.seen[found.length]
    explored = Explored(
        found.tiers,
        known.data.counts,
        known.means[found.length][None] / len(QUOTAS),
        found.ignored[None],
        first_value=seen.first_value,
        starts=seen.starts,
        length=found.length,
    )
    data, details = Data(explored.counts, explored.starts), PaperDetails(found.induction, explored)
    end = outcome.judgement
    return paper_run(settings, end.guarantee, data, explored.tiers, details, end.rehearsal)
