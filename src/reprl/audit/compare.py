"""compare: the smallest budget at which each learner both replicates and is good, all measured with one ruler."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from reprl.audit.evidence import VERDICTS, SequentialTest
from reprl.audit.pairs import Subject, Trial, run_keys
from reprl.audit.world import World, describe
from reprl.errors import ReprlError, check_choice, check_int, check_probability, check_real, quote
from reprl.files import write_atomic
from reprl.learn.boosting import Learner
from reprl.learn.episodic import practical_stages
from reprl.learn.learner import open_environment
from reprl.learn.settings import ACCESSES
from reprl.mdp.access import EpisodicModel, GenerativeModel
from reprl.mdp.tabular import TabularMDP
from reprl.randomness import DataStream, fresh_seed

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

LEVEL = 0.05
"""Chance of each of the two errors of a judgement."""
MARGIN = (0.75, 1.5)
"""Disagreement of at most the first times ρ should pass, of at least the second times ρ should fail."""
STEP = 2.0
RESOLUTION = math.sqrt(2.0)
"""A bracket is not split further than this."""
LIMITS = {"generative": 2**34, "episodic": 2**22}
"""Largest budgets of `compare`: parallel samples cost no time, episodes do."""
VARIANTS: Mapping[tuple[str, str], Mapping[str, Mapping[str, Any]]] = {
    ("reprl", "generative"): {
        "reprl (joint)": {"coupling": "joint"},
        "reprl (product)": {"coupling": "product"},
    },
    ("reprl", "episodic"): {"reprl (auto)": {"coupling": "auto"}, "reprl (product)": {"coupling": "product"}},
    ("karbasi-gaussian", "generative"): {
        "karbasi-gaussian (shared)": {"coupling": "shared"},
        "karbasi-gaussian (correlated)": {"coupling": "correlated"},
    },
}
"""Learners that enter a comparison more than once: (name, access) → label → options."""
_FORMAT, _VERSION = "reprl-comparison", 1
Tell = Callable[[str, int], None]


class Point(NamedTuple):
    """What pairs of runs showed at one budget."""

    budget: int
    samples: float
    """Mean of what a run drew; a learner may stop before its budget."""
    pairs: int
    disagreements: int
    interval: tuple[float, float]
    """95 %, valid although the pairs were watched one by one."""
    suboptimality: float
    """Mean over all runs of the optimal value less the policy's, both exact."""
    verdict: str
    """Of the sequential test: "rejected", "not rejected", "undecided" when it ran out of pairs; or why a run failed."""
    passed: bool

    @property
    def disagreement(self) -> float:
        """Fraction of pairs whose policies differ."""
        return self.disagreements / self.pairs


class Search(NamedTuple):
    """The budgets that were tried, and the smallest one that will do."""

    found: Point | None
    """The smallest budget that passed, or None."""
    failed: Point | None
    """The largest budget below it that failed, or the largest of all."""
    points: tuple[Point, ...]
    """By budget."""

    @property
    def spent(self) -> float:
        """The most samples of a run at any budget tried."""
        return max(point.samples for point in self.points)


def smallest_budget(
    mdp: TabularMDP,
    make: Callable[[int], Learner],
    *,
    access: str,
    epsilon: float,
    rho: float,
    low: int,
    limit: int,
    pairs: int = 100,
    seed: int | None = None,
    workers: int = 1,
    tell: Callable[[Point], None] | None = None,
) -> Search:
    """Find the smallest budget with disagreement ≤ ρ and mean suboptimality ≤ ε, to a factor of √2.

    Budgets are doubled from `low` until one passes and the next one passes too; disagreement need not fall with the
    budget, and a lucky pass is thus not taken for an answer (at the limit there is no next one). Then the bracket is
    split once, at its geometric middle. A search also ends where a doubled budget is not used.

    Args:
        mdp: the environment; its dynamics give exact values.
        make: from a budget to a learner(model, shared_key) that draws at most so many samples.
        access: the model that the learner needs, "generative" or "episodic".
        epsilon: accepted mean suboptimality over all runs.
        rho: accepted disagreement.
        low: the first budget.
        limit: the largest budget.
        pairs: at most so many pairs at each budget, one fresh shared key each and independent data.
        seed: shared keys and data seeds follow from it; None draws one.
        workers: processes; they cannot change the answer.
        tell: told of every point as it is done.

    Guarantee:
        At one budget: a disagreement of at most 0.75·ρ fails, and one of at least 1.5·ρ passes, with probability at
        most 5 % each if the sequential test decides (docs/proofs/audit.md §2). A test that runs out of pairs, as it
        often does in between, passes if at most a share ρ of them differed. Errors over all budgets are not bounded.
        A budget at which a run ends in an error and no policy fails; if all do, the last error is raised.

    Randomness:
        Data stream (seed, "compare/BUDGET") gives the seed of each budget's pairs; see ``run_key``.
    """
    if not isinstance(mdp, TabularMDP):
        raise ReprlError(f"mdp must be a TabularMDP: suboptimality needs exact values, got {quote(mdp)}")
    check_choice("access", access, ACCESSES)
    epsilon, rho = check_real("epsilon", epsilon, 0.0, math.inf), check_probability("rho", rho)
    low = check_int("low", low, 1, 2**62)
    limit = check_int("limit", limit, low, 2**62)
    pairs = check_int("pairs", pairs, 1, 10**6)
    seed = fresh_seed() if seed is None else check_int("seed", seed, 0, 2**64 - 1)
    points: list[Point] = []

    def judge(budget: int) -> Point:
        point = _judge(mdp, make(budget), access, budget, (epsilon, rho), pairs, seed, workers)
        points.append(point)
        if tell is not None:
            tell(point)
        return point

    failed = found = None
    budget = low
    while budget <= limit:
        point = judge(budget)
        if point.passed and found is not None:
            break
        found, failed = (point, failed) if point.passed else (None, point)
        if len(points) > 1 and points[-1].samples <= 1.01 * points[-2].samples:
            break
        budget = round(STEP * budget)
    while found is not None and failed is not None and found.budget > 1.01 * RESOLUTION * failed.budget:
        point = judge(round(math.sqrt(found.budget * failed.budget)))
        found, failed = (point, failed) if point.passed else (found, point)
    if all(point.verdict not in VERDICTS for point in points):
        raise ReprlError(points[-1].verdict)
    return Search(found, failed, tuple(sorted(points)))


def _judge(
    mdp: TabularMDP,
    learner: Learner,
    access: str,
    budget: int,
    target: tuple[float, float],
    pairs: int,
    seed: int,
    workers: int,
) -> Point:
    """Run pairs until the sequential test decides or they are used up."""
    epsilon, rho = target
    own = int(DataStream(seed, f"compare/{budget}").integers(1)[0])
    subject = Subject(name="learner", access=access, options={}, call=learner)
    trial = Trial(env=mdp, world=describe(mdp), subject=subject, seed=own, runs=2, scores=None)
    test = SequentialTest.checked(MARGIN[0] * rho, LEVEL, min(MARGIN[1] * rho, (1.0 + rho) / 2.0))
    hits = keys = samples = 0
    value, verdict = 0.0, "undecided"
    try:
        for found in run_keys(trial, range(pairs), workers, 2 * workers):
            assert found.values is not None
            keys += 1
            hits += bool((found.actions[0] != found.actions[1]).any())
            samples += sum(found.samples)
            value += sum(found.values)
            verdict = test.decide(hits, keys)
            if verdict != "undecided":
                break
    except ReprlError as error:  # a pair without two policies: apart, and worth nothing
        if workers > 1:  # which had begun more pairs than one process would have
            return _judge(mdp, learner, access, budget, target, pairs, seed, 1)
        keys, hits, samples, verdict = keys + 1, hits + 1, samples + 2 * budget, f"a run failed: {error}"
    loss = max(0.0, float(mdp.initial @ mdp.solve().values[0]) - value / (2 * keys))
    agrees = verdict == "not rejected" or (verdict == "undecided" and hits <= rho * keys)
    interval = test.interval(hits, keys)
    return Point(budget, samples / (2 * keys), keys, hits, interval, loss, verdict, agrees and loss <= epsilon)


class Contender(NamedTuple):
    """A learner that enters a comparison."""

    label: str
    name: str
    """In ``reprl.peers.learners()``."""
    access: str
    options: Mapping[str, Any]

    def make(self, mdp: TabularMDP, budget: int) -> Learner:
        """Return the learner that spends at most a budget; reprl's episodic runs are cut to it."""
        from reprl.peers import make_learner

        if self.name == "reprl" and self.access == "episodic":
            runs = budget // self._cost(mdp)
            made: Learner = make_learner("reprl", access="episodic", runs=max(1, runs), **self.options)
            return made
        extra = {"access": self.access} if self.name == "reprl" else {}
        made = make_learner(self.name, samples=budget, **extra, **self.options)
        return made

    def least(self, mdp: TabularMDP) -> int:
        """Return the first budget of a search: a parallel call, an episode for each cell, or one run of each kind."""
        if self.access == "generative":
            return GenerativeModel(mdp, 0).samples_per_call
        if self.name == "reprl":
            return self._cost(mdp)
        return EpisodicModel(mdp, 0).samples_per_episode * (mdp.horizon * mdp.n_states * mdp.n_actions + 2)

    def _cost(self, mdp: TabularMDP) -> int:
        """Samples of one partition run and one data run of reprl."""
        (stage,) = practical_stages(mdp.n_states, mdp.n_actions, mdp.horizon)
        return (stage.partition.episodes + stage.data.episodes) * EpisodicModel(mdp, 0).samples_per_episode


def contenders(
    learners: Sequence[str] | None = None, *, access: str | None = None, epsilon: float = 0.3, rho: float = 0.1
) -> list[Contender]:
    """Return who takes part: the named learners, or all, under every access they have (or the one asked for)."""
    from reprl.peers import learners as list_learners

    known = {entry.name: entry for entry in list_learners()}
    if isinstance(learners, str) or (learners is not None and not learners):
        raise ReprlError(f"learners must be a list of names, got {quote(learners)}")
    if access is not None:
        check_choice("access", access, ACCESSES)
    out = []
    for way in ("generative", "episodic") if access is None else (access,):
        for name in learners or known:
            if name not in known:
                raise ReprlError(f"learners must be among {', '.join(known)}; got {quote(name)}")
            entry = known[name]
            if way not in entry.access:
                continue
            aims = {key: value for key, value in (("epsilon", epsilon), ("rho", rho)) if key in entry.options}
            for label, options in VARIANTS.get((name, way), {name: {}}).items():
                out.append(Contender(label, name, way, {**aims, **options}))
    if not out:
        raise ReprlError(f"learners must have access {access!r}, got {', '.join(learners or known)}")
    return out


@dataclass(frozen=True, kw_only=True)
class Row:
    """One learner of a comparison."""

    learner: str
    access: str
    options: Mapping[str, Any]
    limit: int
    search: Search

    @property
    def reached(self) -> bool:
        """Whether some budget passed."""
        return self.search.found is not None

    def as_dict(self) -> dict[str, Any]:
        """Return the row of the JSON document."""
        search = self.search
        shown = search.found or search.points[-1]
        return {
            "learner": self.learner,
            "access": self.access,
            "options": dict(self.options),
            "samples": None if search.found is None else search.found.samples,
            "failed": None if search.failed is None else search.failed.samples,
            "limit": self.limit if search.found else search.spent,
            "reached": self.reached,
            "pairs": shown.pairs,
            "disagreements": shown.disagreements,
            "disagreement": shown.disagreement,
            "interval": list(shown.interval),
            "suboptimality": shown.suboptimality,
            "curve": [[p.samples, p.disagreement, *p.interval, p.suboptimality] for p in search.points],
            "counts": [[p.budget, p.pairs, p.disagreements] for p in search.points],
        }


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """What each learner pays for (ε, ρ) on one environment."""

    world: World
    epsilon: float
    rho: float
    pairs: int
    seed: int
    rows: tuple[Row, ...]

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON document of this comparison."""
        world, labels = self.world, self.world.labels
        return {
            "format": _FORMAT,
            "version": _VERSION,
            "environment": {
                "id": world.id,
                "options": json.loads(json.dumps(dict(world.options), default=_plain)),
                "horizon": world.horizon,
                "n_states": world.n_states,
                "n_actions": world.n_actions,
                "labels": {
                    "name": labels.name,
                    "states": list(labels.states),
                    "actions": list(labels.actions),
                    "grid": None if labels.grid is None else list(labels.grid),
                },
            },
            "epsilon": self.epsilon,
            "rho": self.rho,
            "pairs": self.pairs,
            "seed": self.seed,
            "rows": [row.as_dict() for row in self.rows],
        }

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the comparison as JSON, whole or not at all."""
        text = json.dumps(self.as_dict(), indent=1, ensure_ascii=False)
        write_atomic(Path(path), (text + "\n").encode())

    def __rich__(self) -> Table:
        """Show a table for the terminal, the cheapest learner of each access first."""
        from rich.table import Table

        title = (
            f"Samples a run to disagreement ≤ {self.rho:g} and mean loss ≤ {self.epsilon:g}: {self.world.labels.name}"
        )
        table = Table(title=title, title_justify="left", box=None)
        for name, side in (("learner", "left"), ("access", "left"), ("samples", "right"), ("disagreement", "right")):
            table.add_column(name, justify=side)  # type: ignore[arg-type]
        table.add_column("loss", justify="right")
        order = sorted(self.rows, key=lambda row: (row.access, row.as_dict()["samples"] or math.inf))
        for row in order:
            shown = row.search.found or row.search.points[-1]
            low, high = shown.interval
            samples = f"{shown.samples:,.0f}" if row.reached else f"not reached at {row.search.spent:,.0f}"
            rate = f"{shown.disagreement:.2g} [{low:.2g}, {high:.2g}]"
            table.add_row(row.learner, row.access, samples, rate, f"{shown.suboptimality:.2g}")
        table.caption = f"to a factor of √2, up to {self.pairs} pairs a budget; repeat with seed {self.seed}"
        table.caption_justify = "left"
        return table

    def show(self, console: Console | None = None) -> None:
        """Print the comparison on a terminal."""
        from rich.console import Console

        (console or Console()).print(self)


def compare(
    env: TabularMDP | str | Any,
    learners: Sequence[str] | None = None,
    *,
    horizon: int | None = None,
    epsilon: float = 0.3,
    rho: float = 0.1,
    access: str | None = None,
    pairs: int = 40,
    limit: int | None = None,
    seed: int | None = None,
    workers: int = 1,
    progress: Tell | None = None,
) -> Comparison:
    """Find the smallest budget of each learner on one environment.

    Args:
        env: a TabularMDP, an id for ``reprl.make``, or anything else of known dynamics that ``reprl.learn`` takes.
        learners: names in ``reprl.peers.learners()``; None for all of them.
        horizon: H, for an id.
        epsilon: accepted mean suboptimality; also what the learners are asked for.
        rho: accepted disagreement; also what the learners are asked for.
        access: "generative", "episodic", or None for both.
        pairs: at most so many pairs of runs at each budget.
        limit: the largest budget; None for 2³⁴ parallel samples and 2²² steps.
        seed: shared keys and data seeds follow from it; None draws one, to be read off the comparison.
        workers: processes; they cannot change the comparison.
        progress: told (label, budget) after every budget.

    Guarantee:
        That of ``smallest_budget``, for each row by itself. The learners' own constants are their practical presets.

    Randomness:
        Data stream (seed, "compare/ACCESS/LABEL") gives the seed of each row.
    """
    world = open_environment(env, horizon)
    if not isinstance(world, TabularMDP):
        raise ReprlError(f"env must have known dynamics: suboptimality needs exact values, got {quote(env)}")
    seed = fresh_seed() if seed is None else check_int("seed", seed, 0, 2**64 - 1)
    rows = []
    for contender in contenders(learners, access=access, epsilon=epsilon, rho=rho):
        most = LIMITS[contender.access] if limit is None else check_int("limit", limit, 1, 2**62)
        row = run_row(
            world,
            contender,
            epsilon=epsilon,
            rho=rho,
            pairs=pairs,
            limit=most,
            seed=seed,
            workers=workers,
            progress=progress,
        )
        rows.append(row)
    return Comparison(world=describe(world), epsilon=epsilon, rho=rho, pairs=pairs, seed=seed, rows=tuple(rows))


def run_row(
    mdp: TabularMDP,
    contender: Contender,
    *,
    epsilon: float,
    rho: float,
    pairs: int,
    limit: int,
    seed: int,
    workers: int = 1,
    progress: Tell | None = None,
) -> Row:
    """Search the smallest budget of one contender; a limit below its first budget is raised to it."""
    least = contender.least(mdp)
    own = int(DataStream(seed, f"compare/{contender.access}/{contender.label}").integers(1)[0])
    search = smallest_budget(
        mdp,
        lambda budget: contender.make(mdp, budget),
        access=contender.access,
        epsilon=epsilon,
        rho=rho,
        low=least,
        limit=max(least, limit),
        pairs=pairs,
        seed=own,
        workers=workers,
        tell=None if progress is None else lambda point: progress(contender.label, point.budget),
    )
    return Row(
        learner=contender.label,
        access=contender.access,
        options=contender.options,
        limit=max(least, limit),
        search=search,
    )


def _plain(value: Any) -> Any:
    return value.tolist() if hasattr(value, "tolist") else quote(value)
