"""python -m experiments.attacks [--quick] [--only TEXT]: pairs of runs in environments made to break their promises.

Each pair has a fresh shared seed and independent data. Losses are exact. Controls switch one part of the rehearsal off;
they must break. Takes some minutes of one core, and rewrites experiments/attacks/data.json and the tables in
docs/rehearsal.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from contextlib import nullcontext
from functools import partial
from typing import Any
from unittest.mock import patch

import numpy as np

import reprl
from experiments.attacks.worlds import World, worlds
from experiments.pairs import Count, best_value, first_action_value, seed_of
from experiments.runner import Experiment, Job
from experiments.stored import short
from reprl.assurance import verdict

RHO = DELTA = 0.1
QUALITY, LEAST_GAIN = 0.9, 1e-3
CHUNK = 10
ROUNDED = 1e-6
"""Of an exact loss over ε."""
Data = dict[str, Any]


def _one_kind_less(evidence: Any, policy: Any, find: Any = verdict.find_places) -> Any:
    """Places of unseen outcomes without the state in which the run's policy loses most: the worst in its place."""
    places = find(evidence, policy)
    places[2] = places[0]
    return places


SWITCHES: dict[str, tuple[str, Any]] = {
    "two kinds of unseen events": ("find_places", _one_kind_less),
    "one exception in 40 at every look": ("is_settled", lambda *_: True),
    "no held-out loss": ("hold_out", lambda *_: 0.0),
}
CONTROLS = (
    ("two kinds of unseen events", "hidden room, pooled"),
    ("two kinds of unseen events", "hidden room, by episodes"),
    ("one exception in 40 at every look", "coin against a hair more"),
    ("one exception in 40 at every look", "coin beside a real gain"),
    ("no held-out loss", "fifty outcomes of .02"),
    ("no held-out loss", "fifty beside a real gain"),
)


def run(world: World, mdp: reprl.TabularMDP, **seeds: int) -> tuple[reprl.LearnResult, reprl.LearnResult | None]:
    """Return what one team learns, and what it had when it first promised quality; None if it never did."""
    access: Any = world.access
    steps = 1 if mdp.stationary and access == "generative" else mdp.horizon
    good: list[int] = []

    def tell(phase: Any, done: int, total: int) -> None:
        figures = getattr(phase, "figures", None)
        if figures is not None and figures.good:
            good.append(figures.samples)

    asked: Data = {"rho": RHO, "delta": DELTA, "quality": QUALITY, "min_probability": world.min_probability}
    asked |= {"access": access, "stationary": world.stationary, "progress": tell, **seeds}
    last = reprl.learn(mdp, max_samples=world.most * steps * mdp.n_states * mdp.n_actions, **asked)
    first = last if not good or good[0] == last.samples else reprl.learn(mdp, max_samples=good[0], **asked)
    return last, first if first.guarantee.quality.status != "none" else None


def measure(name: str, control: str, first: int) -> Data:
    """Run some pairs.

    A row: whether both runs promise the same policy, whether it differs, the exact losses over ε of both where quality
    was first promised (null if it never was), and the samples of both at that moment and at the end.
    """
    world = worlds()[name]
    mdp = world.build()
    best, baseline = best_value(mdp), first_action_value(mdp)
    allowed = (1.0 - QUALITY) * max(best - baseline, LEAST_GAIN * mdp.horizon)
    rows = []
    for number in range(first, first + CHUNK):
        with patch.object(verdict, *SWITCHES[control]) if control else nullcontext():
            shared = seed_of(f"{name}/shared", number)
            data = [seed_of(f"{name}/data", 2 * number + team) for team in (0, 1)]
            both = [run(world, mdp, shared_seed=shared, data_seed=seed) for seed in data]
        ends, early = [last for last, _ in both], [found for _, found in both]
        tables = [np.ascontiguousarray(last.policy.table) for last in ends]
        rows.append(
            [
                int(all(last.guarantee.same.status != "none" for last in ends)),
                int(not np.array_equal(*tables)),
                [None if each is None else round(_loss(mdp, best, each) / allowed, 4) for each in early],
                [None if each is None else each.samples for each in early],
                [last.samples for last in ends],
            ]
        )
    return {"rows": rows}


def _loss(mdp: reprl.TabularMDP, best: float, result: reprl.LearnResult) -> float:
    return best - mdp.evaluate(np.ascontiguousarray(result.policy.table))


def jobs(quick: bool) -> dict[str, Job]:
    """Return every measurement, the first pairs of all environments first."""
    cases = [*((name, "") for name in worlds()), *((name, control) for control, name in CONTROLS)]
    pairs = {name: CHUNK if quick else world.pairs for name, world in worlds().items()}
    return {
        f"{control or 'default'}/{name}#{first}": partial(measure, name, control, first)
        for first in range(0, max(pairs.values()), CHUNK)
        for name, control in cases
        if first < pairs[name]
    }


def head(quick: bool) -> Data:
    """Return what the data are measured with."""
    return {"quality": QUALITY, "rho": RHO, "delta": DELTA, "quick": quick}


def by_case(data: Data) -> dict[str, list[Any]]:
    """Return the rows of every case."""
    found: dict[str, list[Any]] = {}
    for name, part in data["measured"].items():
        found.setdefault(name.partition("#")[0], []).extend(part["rows"])
    return found


def counts(rows: list[Any]) -> tuple[Count, Count]:
    """Return promised pairs that differ, and promised qualities that are missed."""
    promised = [row[1] for row in rows if row[0]]
    lost = [loss > 1.0 + ROUNDED for row in rows for loss in row[2] if loss is not None]
    return Count(sum(promised), len(promised), RHO), Count(sum(lost), len(lost), DELTA)


def tables(data: Data) -> str:
    """Return a row for each environment, and one for each control."""
    columns = "pairs | both promise the policy | of them differ | p | runs that promise quality | of them miss | p"
    lines = [
        f"| environment | assumed | {columns} | largest loss / ε | samples to quality | to the end |",
        "|---" * 12 + "|",
    ]
    more = ["", f"| control | environment | {columns} |", "|---" * 9 + "|"]
    for case, rows in by_case(data).items():
        control, _, name = case.partition("/")
        figures = [str(len(rows)), *(text for one in counts(rows) for text in _shown(one))]
        if control == "default":
            assumed = worlds()[name].min_probability
            worst = max((loss for row in rows for loss in row[2] if loss is not None), default=math.nan)
            figures += ["–" if math.isnan(worst) else f"{worst:.2g}"]
            figures += [_median(n for row in rows for n in row[which]) for which in (3, 4)]
            lines.append(f"| {name} | {f'p = {assumed:g}' if assumed else 'nothing'} | {' | '.join(figures)} |")
        else:
            more.append(f"| {control} | {name} | {' | '.join(figures)} |")
    return "\n".join([*lines, *more])


def _median(samples: Iterable[int | None]) -> str:
    middle = float(np.median([math.inf if n is None else n for n in samples]))
    return short(middle) if math.isfinite(middle) else "–"


def _shown(one: Count) -> tuple[str, str, str]:
    return (str(one.trials), str(one.failures), f"{one.p_value:.2g}") if one.trials else ("0", "–", "–")


EXPERIMENT = Experiment(
    name="attacks",
    page="rehearsal.md",
    jobs=jobs,
    head=head,
    tables=tables,
    marks=("<!-- tables: python -m experiments.attacks -->", "<!-- end of tables -->"),
)

if __name__ == "__main__":
    EXPERIMENT.main(None, __doc__)
