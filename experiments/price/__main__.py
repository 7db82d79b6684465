"""python -m experiments.price --jobs N --out FILE: what does replicability cost, over an accurate policy alone?

The price is the number of samples at which the default learner stops, over the number at which greedy planning on the
same kind of data first loses no more than asked in 18 of 20 runs (in hindsight, by doubling). Both take parallel
samples. Beside them stands what the rule alone needs: data with which 18 of 20 pairs print the same policy, in
hindsight. --first chooses the seeds of the generated worlds, so that worlds can be held out: the default range is for
tuning, others are not. --promises also measures runs that promise a share of the decisions and runs that follow a
registered candidate; --controls the same with a tenth of the samples, which the tests of ρ should reject.
"""

from __future__ import annotations

import json
import math
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.defaults.worlds import WORLDS as DEFAULTS
from experiments.pairs import DEFAULT, RHO, Count, by_case, chunks, count, measure_jobs, read_options
from experiments.price.alone import rule_samples
from experiments.price.measure import CONTROLS, FURTHER, GROUPS, LIMIT, Case, greedy_samples
from experiments.price.worlds import PHASED, TARGETS, generate, generated
from experiments.runner import ROOT, Job
from reprl import TabularMDP
from reprl.sources.protocol import Access

PAGE = {
    "price": "experiments/price/data.json",
    "held": "experiments/price/held.json",
    "defaults": "experiments/defaults/data.json",
}
"""Stored data of docs/canonical.md, by the marks of their tables."""
PROMISES, HELD = "experiments/price/promises.json", "experiments/price/held.json"
"""Stored data of docs/register.md: of the worlds of docs/canonical.md, and of worlds made after all was fixed."""
SECONDS = {"greedy": 5.0, "rule": 20.0, "pairs": 1.0}
"""Of a search for a size, and of a run, roughly."""


def main() -> None:
    """Measure, store, print."""
    options = read_options("price", __doc__, pairs=10, chunk=5, more=_own_options)
    worlds = {f"generated/{name}": build for name, build in generated(options.given.first, options.given.each).items()}
    if not options.given.first:
        worlds |= {f"targets/{name}": build for name, build in TARGETS.items()}
        worlds |= {f"phased/{name}": build for name, build in PHASED.items()}
    jobs: dict[str, Job] = {}
    for name, build in worlds.items():
        limit = FURTHER if name.startswith("phased/") else LIMIT
        strict = Case("pairs", name, build, limit=limit)
        jobs[f"greedy/{name}"] = partial(greedy_samples, strict)
        jobs[f"rule/{name}"] = partial(rule_samples, strict)
        wanted = (*(GROUPS if options.given.promises else GROUPS[:1]), *(CONTROLS if options.given.controls else ()))
        for group in wanted:
            jobs |= chunks(Case(group, name, build, limit=limit), options.pairs, options.chunk)
    data = measure_jobs(options, {"experiment": "price"}, jobs, partial(_seconds, options.chunk))
    print(table(data["measured"]))
    if options.given.promises:
        print(promises(data["measured"]))


def _own_options(parser: Any) -> None:
    parser.add_argument("--first", type=int, default=0, help="seed of the first generated world of each kind")
    parser.add_argument("--each", type=int, default=5, help="generated worlds of each of the six kinds")
    parser.add_argument("--promises", action="store_true", help="also approximate and registered runs")
    parser.add_argument("--controls", action="store_true", help="also such runs with a tenth of the samples")


def _seconds(chunk: int, name: str) -> float:
    return SECONDS.get(name.partition("/")[0], 2 * chunk * SECONDS["pairs"])


def prices(measured: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return what is known of every world for which both were measured."""
    out: dict[str, dict[str, Any]] = {}
    for name, found in by_case({key: row for key, row in measured.items() if key.startswith("pairs/")}).items():
        world = name.partition("/")[2]
        least, rule = (measured.get(f"{what}/{world}", {}).get("samples") for what in ("greedy", "rule"))
        if least is None:
            continue
        seen = count(found)
        out[world] = {
            "allowed": found["allowed"],
            "greedy": least,
            "rule": math.inf if rule is None else rule / least,
            "seen": seen,
            "runs": np.array(seen.samples) / least,
        }
    return out


def per_cell() -> dict[Access, dict[str, NDArray[np.float64]]]:
    """Return the samples per cell, (pairs, 2), of all stored runs at the default quality, by access and world.

    A cell is (h, s, a) or, where steps are pooled, (s, a). Black boxes are left out.
    """
    out: dict[Access, dict[str, NDArray[np.float64]]] = {"generative": {}, "episodic": {}}
    for file in PAGE:
        found = json.loads((ROOT / PAGE[file]).read_text("utf-8"))["measured"]
        for name, case in by_case(found).items():
            group, _, world = name.partition("/")
            if group not in (GROUPS[0], DEFAULT.name):
                continue
            if file == "defaults" and DEFAULTS[world].box is not None:
                continue
            mdp = DEFAULTS[world].build() if file == "defaults" else _build(world)
            cells = mdp.n_states * mdp.n_actions * (1 if mdp.stationary else mdp.horizon)
            used = np.array([row[1] for row in case["rows"]]) / cells
            out["episodic" if file == "defaults" else "generative"][world] = used
    return out


def per_cell_of(promise: str) -> dict[str, NDArray[np.float64]]:
    """Return the same of stored runs under a weaker promise, by parallel samples, but of worlds in PHASED."""
    found, out = json.loads((ROOT / PROMISES).read_text("utf-8"))["measured"], {}
    for name, case in by_case({key: row for key, row in found.items() if key.startswith(f"{promise}/")}).items():
        if name.startswith(f"{promise}/phased/"):
            continue
        mdp = _build(name.partition("/")[2])
        cells = mdp.n_states * mdp.n_actions * (1 if mdp.stationary else mdp.horizon)
        out[name] = np.array([row[1] for row in case["rows"]]) / cells
    return out


def _build(world: str) -> TabularMDP:
    """Return a world by its name here."""
    group, _, name = world.partition("/")
    if group == "generated":
        kind, _, seed = name.partition(" ")
        return generate(kind, int(seed))
    return {"targets": TARGETS, "phased": PHASED}[group][name]()


def table(measured: dict[str, Any]) -> str:
    """Return a row for each world of the design and for each kind of generated world, and one for each group."""
    lines = [
        "| environment | ε | greedy | ours, median | price | 10 % … 90 % | of the rule alone | pairs that differ | "
        "quality missed | no promise | s a run |",
        "|" + "---|" * 11,
    ]
    found = prices(measured)
    kinds: dict[str, list[dict[str, Any]]] = {}
    for world, row in found.items():
        kinds.setdefault(world.rpartition(" ")[0] if world.startswith("generated/") else world, []).append(row)
    lines += [_row(kind, rows) for kind, rows in kinds.items()]
    for group in ("targets", "phased", "generated"):
        rows = [row for world, row in found.items() if world.startswith(group)]
        if rows:
            lines += ["", f"{group}: {_summary(rows)}"]
    return "\n".join(lines)


def _row(kind: str, rows: list[dict[str, Any]]) -> str:
    """Return one world, or the medians over the worlds of one kind; quantiles are of all their runs."""
    allowed, least = (np.median([row[name] for row in rows]) for name in ("allowed", "greedy"))
    ours = np.median([np.median(row["seen"].samples) for row in rows])
    low, middle, high = np.quantile(np.concatenate([row["runs"] for row in rows]), (0.1, 0.5, 0.9))
    alone, apart, missed = np.median([row["rule"] for row in rows]), _share(rows, "apart"), _share(rows, "missed")
    silent, seconds = sum(row["seen"].unpromised for row in rows), np.mean([row["seen"].seconds for row in rows])
    name = kind if len(rows) == 1 else f"{kind}, {len(rows)} environments"
    return (
        f"| {name} | {allowed:.2g} | {least:.2g} | {ours:.2g} | {middle:.3g} | {low:.3g} … {high:.3g} | {alone:.3g} | "
        f"{apart} | {missed} | {silent} | {seconds:.1f} |"
    )


def _share(rows: list[dict[str, Any]], part: str) -> str:
    failures, trials = (sum(getattr(getattr(row["seen"], part), x) for row in rows) for x in ("failures", "trials"))
    return f"{failures}/{trials}"


def promises(measured: dict[str, Any]) -> str:
    """Return a row for each world: samples of a run under each kind of promise, and how often pairs broke it."""
    head = ("strict", "agreement 0.95", "registered")
    lines = [
        f"| environment | {' | '.join(f'{name}, samples (10 % … 90 %) | apart | missed | none' for name in head)} |",
        "|" + "---|" * (1 + 4 * len(head)),
    ]
    cases = {name: count(found) for name, found in by_case(measured).items()}
    worlds = list(dict.fromkeys(name.partition("/")[2] for name in cases))
    for world in worlds:
        cells = [world]
        for group in GROUPS:
            seen = cases.get(f"{group}/{world}")
            if seen is None:
                cells += ["–"] * 4
                continue
            low, middle, high = np.quantile(seen.samples, (0.1, 0.5, 0.9))
            cells += [f"{middle:.2g} ({low:.2g} … {high:.2g})", str(seen.apart), str(seen.missed), str(seen.unpromised)]
        lines.append(f"| {' | '.join(cells)} |")
    lines += ["", *(_broken(cases, group) for group in (*GROUPS, *CONTROLS))]
    return "\n".join(line for line in lines if line is not None)


def page_table(measured: dict[str, Any]) -> str:
    """Return the table of docs/register.md: samples of a run, over one world or five generated ones."""
    lines = [
        "| environment | strict | agreement 0.95 | registered |",
        "|---|---|---|---|",
    ]
    kinds: dict[str, dict[str, list[list[int]]]] = {}
    for name, found in by_case(measured).items():
        group, _, world = name.partition("/")
        kind = world.rpartition(" ")[0] if world.startswith("generated/") else world
        kinds.setdefault(kind, {}).setdefault(group, []).append(count(found).samples)
    for kind, groups in kinds.items():
        cells = []
        for group in GROUPS:
            samples = groups.get(group, [])
            middle = np.median([np.median(each) for each in samples]) if samples else math.nan
            low, high = np.quantile(np.concatenate(samples), (0.1, 0.9)) if samples else (math.nan, math.nan)
            cells.append(f"{_short(middle)} ({_short(low)} … {_short(high)})" if samples else "–")
        number = len(groups[GROUPS[1]])
        name = kind.partition("/")[2] + (f", {number} generated" if number > 1 else "")
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _short(number: float) -> str:
    return f"{number:.1e}".replace("e+0", "e").replace("e+", "e")


def _broken(cases: dict[str, Any], group: str) -> str:
    """Say how often the promise of a group was broken, over all its worlds."""
    seen = [each for name, each in cases.items() if name.startswith(f"{group}/")]
    apart, trials = (sum(getattr(each.apart, part) for each in seen) for part in ("failures", "trials"))
    missed, runs = (sum(getattr(each.missed, part) for each in seen) for part in ("failures", "trials"))
    rejected = sum(each.apart.rejected for each in seen)
    chance, silent = Count(apart, trials, RHO).p_value, sum(each.unpromised for each in seen)
    return (
        f"{group}: {apart} of {trials} promising pairs apart (p = {chance:.2g} for ρ), rejected on {rejected} of "
        f"{len(seen)} environments; {missed} of {runs} runs lose too much; {silent} promise nothing"
    )


def _summary(rows: list[dict[str, Any]]) -> str:
    """Say what the worlds of a group have in common. A run that promised nothing counts with the samples it took."""
    medians = [float(np.median(row["runs"])) for row in rows]
    low, middle, high = np.quantile(medians, (0.1, 0.5, 0.9))
    apart, missed = (sum(getattr(row["seen"], name).failures for row in rows) for name in ("apart", "missed"))
    both, promised = (sum(getattr(row["seen"], name).trials for row in rows) for name in ("apart", "missed"))
    nothing = sum(row["seen"].unpromised for row in rows)
    return (
        f"{len(rows)} environment{'s' if len(rows) > 1 else ''}, median price {middle:.3g} ({low:.3g} … {high:.3g}); "
        f"{apart} of {both} pairs differ, "
        f"{missed} of {promised} runs lose more than asked, {nothing} promise nothing"
    )


if __name__ == "__main__":
    main()
