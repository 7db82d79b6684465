"""Pairs of runs: one shared seed, independent data, and what the true MDP says of both.

Only public names of reprl are called, and what older versions lack is replaced here, so that the same experiment also
measures the code of an older commit: ``PYTHONPATH=OLD/src python -m experiments.quiet --out before.json``.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
from scipy.stats import binomtest

import reprl
from experiments.runner import Job, collect, load, selected
from reprl.learning.settings import Settings

FALSE_ALARM = 1e-6
"""A claim is rejected if its exact binomial test has a smaller p-value."""
RHO = DELTA = 0.1
LEAST_GAIN = 1e-3
"""A gain below this share of the horizon counts as this one, as in ``reprl.canonical.goal``."""
WITH_QUALITY = any(field.name == "quality" for field in fields(Settings))
"""Whether this version of reprl has the keyword."""


class Asked(NamedTuple):
    """The accuracy that is asked for: a quality, or ε in rescaled units."""

    quality: float | None = None
    epsilon: float | None = None

    @property
    def name(self) -> str:
        return f"q={self.quality:g}" if self.quality is not None else f"ε={self.epsilon:g}"

    def allowed(self, mdp: reprl.TabularMDP, baseline: float) -> float:
        """Return the loss that is allowed in the true MDP, from the value of the baseline."""
        if self.epsilon is not None:
            return self.epsilon
        assert self.quality is not None
        return (1.0 - self.quality) * max(best_value(mdp) - baseline, LEAST_GAIN * mdp.horizon)

    def options(self, mdp: reprl.TabularMDP, baseline: float) -> dict[str, Any]:
        """Return the keywords. Versions without quality get ε from the true MDP, which a user could not do."""
        if self.epsilon is not None:
            return {"epsilon": self.epsilon}
        return {"quality": self.quality} if WITH_QUALITY else {"epsilon": self.allowed(mdp, baseline)}


DEFAULT, COARSE = Asked(quality=0.9), Asked(epsilon=0.3)


def best_value(mdp: reprl.TabularMDP) -> float:
    return float(mdp.initial @ mdp.solve().values[0])


def first_action_value(mdp: reprl.TabularMDP) -> float:
    """Return what always the first action that is allowed earns: the baseline where there is no log."""
    allowed = getattr(mdp, "allowed", None)
    first = np.zeros((mdp.horizon, mdp.n_states), dtype=np.int64) if allowed is None else np.argmax(allowed, axis=-1)
    return mdp.evaluate(np.ascontiguousarray(np.broadcast_to(first, (mdp.horizon, mdp.n_states))))


class Case(Protocol):
    """Pairs of runs on one world."""

    @property
    def name(self) -> str:
        """What its measurements are stored under."""

    @property
    def asked(self) -> Asked:
        """The accuracy."""

    def build(self) -> reprl.TabularMDP:
        """Return the true MDP."""

    def baseline(self, mdp: reprl.TabularMDP) -> float:
        """Return the value of the baseline in the true MDP."""

    def run(self, mdp: reprl.TabularMDP, team: int, shared_seed: int, data_seed: int) -> reprl.LearnResult:
        """Return what one team learns."""


COLUMNS = ("pair", "samples", "apart", "loss", "value", "status", "epsilon", "covered", "seconds")
"""Of a row: the pair's number; samples of both runs; 1 if their policies differ; exact loss and value of both; statuses
and ε of both promises; for logs, whether each interval holds the value; seconds of both."""
ROUNDED = 1e-4
"""Black boxes and logs round rewards to multiples of 2**-20: a value may be off by so much."""


def seed_of(name: str, number: int) -> int:
    """Return a seed that depends on nothing but a measurement's name and a number."""
    return int(np.random.default_rng([number, *name.encode()]).integers(2**62))


def measure_pairs(case: Case, numbers: range) -> dict[str, Any]:
    """Run pairs with fresh shared seeds."""
    mdp = case.build()
    best, baseline = best_value(mdp), case.baseline(mdp)
    allowed = case.asked.allowed(mdp, baseline)
    found = {"horizon": mdp.horizon, "allowed": allowed, "best": best, "baseline": baseline}
    return {**found, "rows": [_pair(case, mdp, best, number) for number in numbers]}


def _pair(case: Case, mdp: reprl.TabularMDP, best: float, number: int) -> list[Any]:
    runs, seconds = [], []
    for team in (0, 1):
        began = time.perf_counter()
        shared, data = seed_of(f"{case.name}/shared", number), seed_of(f"{case.name}/data", 2 * number + team)
        runs.append(case.run(mdp, team, shared, data))
        seconds.append(round(time.perf_counter() - began, 2))
    tables = [run.policy.actions[:, : mdp.n_states] for run in runs]
    values = [
        mdp.evaluate(np.ascontiguousarray(np.broadcast_to(table, (mdp.horizon, mdp.n_states)))) for table in tables
    ]
    return [
        number,
        [run.samples for run in runs],
        int(_apart(case, mdp, runs, tables)),
        [round(max(0.0, best - value), 7) for value in values],
        [round(value, 7) for value in values],
        [run.guarantee.status for run in runs],
        [run.guarantee.epsilon for run in runs],
        [_covers(run, value) for run, value in zip(runs, values, strict=True)],
        seconds,
    ]


def _apart(case: Case, mdp: reprl.TabularMDP, runs: list[reprl.LearnResult], tables: list[Any]) -> bool:
    """Say whether a pair breaks its promise: as the case says, or where policies differ at all."""
    apart = getattr(case, "apart", None)
    return not np.array_equal(*tables) if apart is None else bool(apart(mdp, runs[0].policy, runs[1].policy))


def _covers(run: reprl.LearnResult, value: float) -> bool | None:
    """Say whether the interval of a run on a log holds the policy's value; None for other runs."""
    coverage = getattr(run, "coverage", None)
    return None if coverage is None else bool(coverage.value_low - ROUNDED <= value <= coverage.value_high + ROUNDED)


class Count(NamedTuple):
    """Failures among trials, and the exact one-sided test of the claim that they have at most this probability."""

    failures: int
    trials: int
    limit: float

    @property
    def p_value(self) -> float:
        if not self.trials:
            return 1.0
        return float(binomtest(self.failures, self.trials, self.limit, alternative="greater").pvalue)

    @property
    def rejected(self) -> bool:
        return self.p_value < FALSE_ALARM

    def __str__(self) -> str:
        return f"{self.failures}/{self.trials}" + (f" (p={self.p_value:.0e})" if self.rejected else "")


class Counts(NamedTuple):
    """What pairs of one case came to; only runs that promise something can break a promise."""

    pairs: int
    apart: Count
    """Pairs in which both promise and the policies differ."""
    missed: Count
    """Runs that promise and lose more than asked."""
    uncovered: Count
    """Runs on logs that promise and whose 95 % interval misses the value."""
    unpromised: int
    """Runs that promise nothing."""
    samples: list[int]
    seconds: float
    """Of a run, in the mean."""

    @property
    def rejected(self) -> bool:
        return self.apart.rejected or self.missed.rejected or self.uncovered.rejected


def count(found: dict[str, Any]) -> Counts:
    """Count what broke in the rows of one case."""
    rows = [dict(zip(COLUMNS, row, strict=True)) for row in found["rows"]]
    kept = [[status not in ("none", "heuristic") for status in row["status"]] for row in rows]
    both = [row["apart"] for row, promised in zip(rows, kept, strict=True) if all(promised)]
    runs = [
        (row["loss"][team], row["covered"][team], row["epsilon"][team])
        for row, promised in zip(rows, kept, strict=True)
        for team in (0, 1)
        if promised[team]
    ]
    covered = [covers for _, covers, _ in runs if covers is not None]
    missed = [loss > _allowed(found["allowed"], covers, epsilon) + ROUNDED / 10 for loss, covers, epsilon in runs]
    return Counts(
        pairs=len(rows),
        apart=Count(sum(both), len(both), RHO),
        missed=Count(sum(missed), len(runs), DELTA),
        uncovered=Count(covered.count(False), len(covered), 0.05),
        unpromised=2 * len(rows) - len(runs),
        samples=sorted(n for row in rows for n in row["samples"]),
        seconds=float(np.mean([s for row in rows for s in row["seconds"]])) if rows else 0.0,
    )


def _allowed(asked: float, covers: bool | None, promised: float) -> float:
    """Return the loss that a run may have: what is asked; on a log at least what it promises, which may be more."""
    return asked if covers is None else max(asked, promised)


def by_case(measured: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Put the chunks of every case together, and leave out what is no pair."""
    out: dict[str, dict[str, Any]] = {}
    for name, found in measured.items():
        if "rows" not in found:
            continue
        case, _, _ = name.partition("#")
        rows = out[case]["rows"] if case in out else []
        out[case] = {**found, "rows": rows + found["rows"]}
    return out


def chunks(case: Case, pairs: int, size: int) -> dict[str, Job]:
    """Return the measurements of a case, a few pairs each."""
    lows = range(0, pairs, size)
    return {f"{case.name}#{low}": partial(measure_pairs, case, range(low, min(low + size, pairs))) for low in lows}


class Options(NamedTuple):
    """What a command line asks for."""

    out: Path
    jobs: int
    only: list[str]
    pairs: int
    chunk: int
    given: argparse.Namespace


def read_options(name: str, about: str | None, pairs: int, chunk: int, more: Callable[[Any], None]) -> Options:
    """Read the options that these experiments have in common, and an experiment's own."""
    parser = argparse.ArgumentParser(prog=f"experiments.{name}", description=about)
    parser.add_argument("--jobs", type=int, default=1, help="processes; they cannot change the data")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / name / "data.json", help="a JSON file")
    parser.add_argument("--only", action="append", default=[], help="measure only what has this text in its name")
    parser.add_argument("--pairs", type=int, default=pairs, help="of every case")
    parser.add_argument("--chunk", type=int, default=chunk, help="pairs that are measured and stored together")
    parser.add_argument("--show", action="store_true", help="measure nothing: print what is stored")
    more(parser)
    given = parser.parse_args()
    return Options(given.out, given.jobs, given.only, given.pairs, given.chunk, given)


def measure_jobs(
    options: Options, head: dict[str, Any], jobs: dict[str, Job], seconds: Callable[[str], float]
) -> dict[str, Any]:
    """Measure what is missing, the first pairs of every case first, after saying how long that should take."""
    data = load(options.out, head)
    if options.given.show:
        return data
    todo = [name for name in jobs if name not in data["measured"] and selected(name, options.only)]
    todo.sort(key=lambda name: (int(name.partition("#")[2] or -1), -seconds(name)))
    total = sum(map(seconds, todo))
    least = max(total / options.jobs, max(map(seconds, todo), default=0.0))
    print(f"{len(todo)} measurements, about {total:.0f} s of one core, {least:.0f} s with {options.jobs} processes")
    return collect(options.out, head, jobs, todo, options.jobs)
