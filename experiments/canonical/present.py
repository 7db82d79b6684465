"""Tables of the canonical learner; reads stored data only."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from experiments.canonical.plan import EPSILON, IN_HEAD_TO_HEAD, Case, cases
from reprl.auditing.evidence import exact_interval, p_value
from reprl.mdp.worlds import ARROWS

Data = dict[str, Any]
START, END = "<!-- tables: python -m experiments.canonical -->\n", "<!-- end of tables -->\n"
HEAD_TO_HEAD = Path(__file__).parent.parent / "head_to_head" / "data.json"
EARLY = 8
WAYS = {"generative": "parallel", "episodic": "episodes"}


class Summary(NamedTuple):
    """What the pairs of a case say."""

    case: Case
    pairs: int
    mean: float
    median: float
    high: float
    """90 % quantile."""
    unsure: int
    """Runs that reached their limit and promised nothing."""
    sure_pairs: int
    """Pairs of which both runs promised."""
    apart: int
    """Of all pairs."""
    sure_apart: int
    """Of those of which both runs promised."""
    early: int
    """Of those apart, the pairs in which one run had stopped with at most an eighth of the other's samples."""
    missed: int
    """Promising runs whose policy loses more than ε in the true world."""
    runs: int
    """Promising runs."""


def summaries(data: Data, group: str) -> list[Summary]:
    """Sum up every case of a group that has been measured."""
    out = []
    for case in (case for case in cases() if case.group == group):
        found = [found for name, found in data["measured"].items() if name.partition("#")[0] == case.name]
        if found:
            out.append(_sum_up(case, np.array([row for chunk in found for row in chunk["rows"]])))
    return out


def _sum_up(case: Case, rows: Any) -> Summary:
    """Rows as ``measure.pairs`` returns them."""
    samples, apart = rows[:, 1:3], rows[:, 3].astype(bool)
    loss, sure = rows[:, 4:6], rows[:, 6:8].astype(bool)
    both = sure.all(axis=1)
    return Summary(
        case=case,
        pairs=len(rows),
        mean=float(samples.mean()),
        median=float(np.median(samples)),
        high=float(np.quantile(samples, 0.9)),
        unsure=int((~sure).sum()),
        sure_pairs=int(both.sum()),
        apart=int(apart.sum()),
        sure_apart=int((apart & both).sum()),
        early=int((apart & both & (EARLY * samples.min(axis=1) <= samples.max(axis=1))).sum()),
        missed=int(((loss > case.epsilon) & sure).sum()),
        runs=int(sure.sum()),
    )


class Need(NamedTuple):
    """What runs on one world used."""

    case: Case
    per_cell: Any
    """(pairs, 2): samples per cell (h, s, a), brought to ε = 0.3 by 1/ε²."""


def per_cell(data: Data) -> list[Need]:
    """Return what ``reprl.lab.forecast`` is based on."""
    out = []
    for case in cases():
        found = [found for name, found in data["measured"].items() if name.partition("#")[0] == case.name]
        if found:
            world = case.build()
            pooled = case.stationary is None and world.stationary
            cells = (1 if pooled else world.horizon) * world.n_states * world.n_actions
            samples = np.array([row[1:3] for chunk in found for row in chunk["rows"]], dtype=float)
            out.append(Need(case, samples / cells * (case.epsilon / EPSILON) ** 2))
    return out


def tables(data: Data) -> str:
    """Return the tables of the page as Markdown."""
    parts = {
        "Targets": _cost_table(summaries(data, "targets"), data),
        "Held-out worlds": _cost_table(summaries(data, "held out"), data),
        "Worlds made last": _cost_table(summaries(data, "made last"), data),
        "The catalogue, parallel sampling": _cost_table(summaries(data, "catalogue"), data),
        "All pairs together": _pooled(data),
        "Against the best rival in hindsight": _ratios(data),
        "Rehearsal against truth": _rehearsed(data),
        "Distinct policies over shared seeds": _lists(data),
        "Cost of one look": _costs(data),
        "Black boxes": _boxes(data),
        "The gridworld's policy": _drawn(data),
    }
    return "\n".join(f"### {title}\n\n{text}" for title, text in parts.items() if text)


def _cost_table(found: list[Summary], data: Data) -> str:
    """Samples and pairs apart, a line for each case."""
    if not found:
        return ""
    wanted = any(one.case.target for one in found)
    head = [
        "world",
        "access",
        "mean",
        "median",
        "90 %",
        "target",
        "pairs apart",
        "95 % interval",
        "p",
        "ε missed",
        "unsure",
    ]
    lines = [_line(name for name in head if wanted or name != "target")]
    lines.append("|---" * (len(head) - (not wanted)) + "|")
    for one in found:
        low, high = exact_interval(one.sure_apart, one.sure_pairs) if one.sure_pairs else (0.0, 1.0)
        p = p_value(one.sure_apart, one.sure_pairs, data["rho"]) if one.sure_pairs else 1.0
        target = [] if not wanted else [_target(one)]
        least = "≥ " if one.unsure else ""
        lines.append(
            _line(
                [
                    one.case.world,
                    WAYS[one.case.access],
                    least + short(one.mean),
                    short(one.median),
                    short(one.high),
                    *target,
                    f"{one.sure_apart}/{one.sure_pairs}",
                    f"{low:.2f} … {high:.2f}",
                    f"**{p:.2g}**" if p < 0.05 else f"{p:.2g}",
                    f"{one.missed}/{one.runs}",
                    f"{one.unsure}/{2 * one.pairs}",
                ]
            )
        )
    return "\n".join(lines) + "\n"


def _target(one: Summary) -> str:
    if one.case.target is None:
        return "—"
    return f"{short(one.case.target)}: {'met' if one.mean <= one.case.target and not one.unsure else 'missed'}"


def _pooled(data: Data) -> str:
    """Disagreement and accuracy over all worlds of a group."""
    head = [
        "group",
        "worlds",
        "pairs apart",
        "95 % interval",
        "p",
        "worlds rejected at 5 %",
        "stopped early",
        "ε missed",
    ]
    lines = [_line(head), "|---" * len(head) + "|"]
    for group in ("targets", "held out", "made last", "catalogue"):
        found = [one for one in summaries(data, group) if one.sure_pairs]
        if not found:
            continue
        apart, pairs = sum(one.sure_apart for one in found), sum(one.sure_pairs for one in found)
        rejected = sum(p_value(one.sure_apart, one.sure_pairs, data["rho"]) < 0.05 for one in found)
        low, high = exact_interval(apart, pairs)
        missed = f"{sum(one.missed for one in found)}/{sum(one.runs for one in found)}"
        tested, early = f"{p_value(apart, pairs, data['rho']):.2g}", f"{sum(one.early for one in found)} of {apart}"
        interval = f"{low:.3f} … {high:.3f}"
        lines.append(
            _line([group, str(len(found)), f"{apart}/{pairs}", interval, tested, str(rejected), early, missed])
        )
    return "\n".join(lines) + "\n"


def best_rival(data: Data, world: str) -> tuple[str, float] | None:
    """Who needs least in hindsight on a catalogue world, and how much; reprl's own canonical rule does not compete."""
    if world in IN_HEAD_TO_HEAD:
        start = f"table/generative/{IN_HEAD_TO_HEAD[world]}/"
        measured = json.loads(HEAD_TO_HEAD.read_text())["measured"]
    else:
        start, measured = f"rival/{world}/", data["measured"]
    rows = {name.removeprefix(start): row for name, row in measured.items() if name.startswith(start)}
    sizes = {
        label: float(row["needed"][0] if row["needed"] else row["samples"])
        for label, row in rows.items()
        if row["samples"] is not None and "canonical" not in label
    }
    return min(sizes.items(), key=lambda item: item[1]) if sizes else None


def _ratios(data: Data) -> str:
    """The canonical learner's own sizes over the best rival's hindsight budget."""
    found = summaries(data, "catalogue")
    if not found:
        return ""
    lines = [
        _line(["world", "best rival", "its budget", "median", "ratio (≤ 4)", "mean", "ratio (≤ 16)"]),
        "|---" * 7 + "|",
    ]
    for one in found:
        rival = best_rival(data, one.case.world)
        if rival is None:
            lines.append(_line([one.case.world, "not measured", "—", short(one.median), "—", short(one.mean), "—"]))
            continue
        label, size = rival
        ratios = [_ratio(one.median / size, 4.0), _ratio(one.mean / size, 16.0)]
        lines.append(
            _line([one.case.world, label, short(size), short(one.median), ratios[0], short(one.mean), ratios[1]])
        )
    return "\n".join(lines) + "\n"


def _ratio(value: float, most: float) -> str:
    return f"{value:.2g}" if value <= most else f"**{value:.3g}**"


def rehearsals(data: Data) -> list[Data]:
    """Predicted and measured agreement at every world and size, with what a passed rehearsal was worth."""
    out = []
    for name, found in data["measured"].items():
        if name.startswith("rehearsed/"):
            _, world, calls = name.split("/")
            rows = np.array(found["rows"])
            passed = rows[:, (5, 10)].astype(bool)
            teams = rows[:, (1, 6)].sum() / rows[:, (2, 7)].sum()
            both = passed.all(axis=1)
            out.append(
                {
                    "world": world,
                    "calls": int(calls),
                    "predicted": float(teams),
                    "apart": int(rows[:, 0].sum()),
                    "pairs": len(rows),
                    "passed": int(passed.sum()),
                    "passed_pairs": int(both.sum()),
                    "passed_apart": int(rows[both, 0].sum()),
                }
            )
    return out


def _rehearsed(data: Data) -> str:
    found = rehearsals(data)
    if not found:
        return ""
    head = ["world", "calls", "teams that agree", "pairs that agree", "rehearsals passed", "pairs of passed, apart"]
    lines = [_line(head), "|---" * len(head) + "|"]
    for one in found:
        agree = f"{one['pairs'] - one['apart']}/{one['pairs']}"
        passed = [f"{one['passed']}/{2 * one['pairs']}", f"{one['passed_apart']}/{one['passed_pairs']}"]
        lines.append(_line([one["world"], str(one["calls"]), f"{one['predicted']:.2f}", agree, *passed]))
    return "\n".join(lines) + "\n"


def _lists(data: Data) -> str:
    worlds = [name.split("/", 2)[2] for name in data["measured"] if name.startswith("listed/canonical/")]
    if not worlds:
        return ""
    lines = [_line(["world", "canonical", "its three commonest", "sampled", "its three commonest"]), "|---" * 5 + "|"]
    for world in worlds:
        row = [world]
        for rule in ("canonical", "sampled"):
            found = data["measured"].get(f"listed/{rule}/{world}")
            row += ["—", "—"] if found is None else [f"{len(found['shares'])} of {found['seeds']}", _commonest(found)]
        lines.append(_line(row))
    return "\n".join(lines) + "\n"


def _commonest(found: Data) -> str:
    return ", ".join(str(number) for number in found["shares"][:3])


def _costs(data: Data) -> str:
    lines = [_line(["world", "calls", "choose", "redraw", "rehearse", "teams", "pairs", "memory"]), "|---" * 8 + "|"]
    for name, found in data["measured"].items():
        if name.startswith("cost/"):
            memory = f"{found['peak_bytes'] / 2**30:.2f} GiB (world {found['mdp_bytes'] / 2**30:.2f})"
            for one in found["looks"]:
                seconds = [f"{one[part]:.2f} s" for part in ("choose", "redraw", "rehearse")]
                asked = [f"{one['agree']}/{one['of']}", str(one["pairs"])]
                lines.append(_line([name.partition("/")[2], str(one["calls"]), *seconds, *asked, memory]))
    return "\n".join(lines) + "\n" if len(lines) > 2 else ""


def _boxes(data: Data) -> str:
    lines = [_line(["black box", "steps", "seconds", "status", "policy"]), "|---" * 5 + "|"]
    for name, found in data["measured"].items():
        if name.startswith("box/"):
            for samples, seconds, status, policy in found["rows"]:
                lines.append(_line([name.partition("/")[2], f"{samples:,}", f"{seconds:g}", status, f"`{policy}`"]))
        elif name.startswith("table/"):
            low, middle, high = np.quantile(found["samples"], (0.0, 0.5, 1.0))
            steps, sure = (
                f"{middle:.1e} ({low:.1e} … {high:.1e})",
                f"{found['sure']} of {len(found['samples'])} rehearsed",
            )
            lines.append(_line([f"shop as a table, {name.partition('/')[2]}", steps, "–", sure, "–"]))
    return "\n".join(lines) + "\n" if len(lines) > 2 else ""


def _drawn(data: Data) -> str:
    """Arrows on the grid at every step; small dots where the policy comes with probability below 0.001."""
    found = data["measured"].get("drawn")
    if found is None:
        return ""
    actions, visits, gap = (np.array(found[name]) for name in ("actions", "visits", "gap"))
    size = int(actions.shape[1] ** 0.5)
    rows = ["   ".join(f"step {h}".ljust(2 * size - 1) for h in range(len(actions)))]
    for row in range(size):
        cells = [range(row * size, (row + 1) * size)] * len(actions)
        shown = (
            " ".join("G" if s == size**2 - 1 else ARROWS[actions[h, s]] if visits[h, s] >= 1e-3 else "·" for s in part)
            for h, part in enumerate(cells)
        )
        rows.append("   ".join(shown))
    text = "\n".join(f"    {line.rstrip()}" for line in rows)
    worst = (visits * gap).sum()
    return (
        f"{text}\n\nTolerance {found['tolerance']:.3g}; {short(found['samples'])} steps; it loses {found['loss']:.3f} "
        f"of {found['best']:.3f}, of ε = {EPSILON:g} allowed. Largest gap of an action taken with probability ≥ 0.001: "
        f"{gap[visits >= 1e-3].max():.3g}; all gaps together, by visits: {worst:.3f}.\n"
    )


def _line(cells: Any) -> str:
    return f"| {' | '.join(cells)} |"


def short(number: float) -> str:
    """3.6e7 for 35 600 000."""
    mantissa, _, exponent = f"{number:.1e}".partition("e")
    return f"{mantissa}e{int(exponent)}"
