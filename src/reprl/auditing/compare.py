"""compare: the smallest budget at which each learner both replicates and is good, all measured with one ruler."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from reprl.auditing.search import Search, smallest_budget
from reprl.auditing.world import World, describe
from reprl.errors import ReprlError, check_choice, check_int, quote
from reprl.files import write_atomic
from reprl.learning.learner import open_environment
from reprl.learning.protocol import SizedLearner, fresh_model
from reprl.learning.settings import ACCESSES
from reprl.mdp.tabular import TabularMDP
from reprl.randomness import DataStream, fresh_seed

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

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


class Contender(NamedTuple):
    """A learner that enters a comparison."""

    label: str
    name: str
    """In ``reprl.peers.learners()``."""
    access: str
    options: Mapping[str, Any]

    def make(self, budget: int | None = None) -> SizedLearner:
        """Return the learner that spends at most a budget."""
        from reprl.peers import make_learner

        extra = {"access": self.access} if self.name == "reprl" else {}
        return make_learner(self.name, samples=budget, **extra, **self.options)

    def least(self, mdp: TabularMDP) -> int:
        """Return the first budget of a search, as the learner says."""
        with fresh_model(mdp, self.access, 0) as model:
            return self.make().least(model)


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
    rho: float
    limit: int
    search: Search

    @property
    def reached(self) -> bool:
        """Whether some budget passed."""
        return self.search.found is not None

    def as_dict(self) -> dict[str, Any]:
        """Return the row of the JSON document."""
        search, needed = self.search, self.search.needed(self.rho)
        shown = search.found or search.points[-1]
        return {
            "learner": self.learner,
            "access": self.access,
            "options": dict(self.options),
            "samples": None if search.found is None else search.found.samples,
            "failed": None if search.failed is None else search.failed.samples,
            "needed": None if needed is None else list(needed),
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
        table.add_column("learner")
        table.add_column("access")
        for name in ("samples", "by the fitted curve", "disagreement there", "loss"):
            table.add_column(name, justify="right")
        order = sorted(self.rows, key=lambda row: (row.access, row.as_dict()["samples"] or math.inf))
        for row in order:
            shown = row.search.found or row.search.points[-1]
            low, high = shown.interval
            samples = f"{shown.samples:,.0f}" if row.reached else f"not reached at {row.search.spent:,.0f}"
            needed = row.search.needed(self.rho)
            fitted = "" if needed is None else f"{needed.samples:.2g} [{needed.low:.2g}, {needed.high:.2g}]"
            rate = f"{shown.disagreement:.2g} [{low:.2g}, {high:.2g}]"
            table.add_row(row.learner, row.access, samples, fitted, rate, f"{shown.suboptimality:.2g}")
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
        contender.make,
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
        rho=rho,
        limit=max(least, limit),
        search=search,
    )


def _plain(value: Any) -> Any:
    return value.tolist() if hasattr(value, "tolist") else quote(value)
