"""The summary of a comparison: what each learner pays for agreement."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from reprl.auditing.comparison import Comparison, Row, worth_words
from reprl.auditing.search import Tried
from reprl.report.charts import Axis, Bar, Bars, Curves, Point
from reprl.report.names import describe_world
from reprl.report.numbers import number, span
from reprl.report.summary import Badge, Cell, Figure, Line, Listing, Mark, On, Section, Strong, Summary, Table, line
from reprl.storage.documents import digest, plain


def summarize_comparison(comparison: Comparison) -> Summary:
    """Return the summary."""
    world = comparison.environment
    rows = sorted(comparison.rows, key=lambda row: (row.access, row.samples or math.inf))
    return Summary(
        kind="comparison",
        title=f"Comparison on {world.title}",
        badge=Badge(f"{sum(row.reached for row in rows)} of {len(rows)} reach the target"),
        subject=f"on {world.labels.name}",
        lines=_lines(comparison, rows),
        sections=(
            Section((_table(comparison, rows),)),
            Section([*_bars(rows), *_curves(comparison, rows)]),
            Section((Listing("Environment", {"id": world.title, **plain(world.options)}),)),
        ),
        lead=describe_world(world),
        heading="Learners",
        caption=f"Each budget: up to {comparison.pairs} pairs of runs with one shared seed and independent data. "
        f"Seed {comparison.seed} repeats this comparison.",
        mark=Mark("Comparison fingerprint", digest(comparison.to_dict()), "SHA-256 of it as canonical JSON."),
    )


def _lines(comparison: Comparison, rows: Sequence[Row]) -> list[Line]:
    """Who needed least, for each kind of access by itself: the two kinds of samples are not the same good."""
    target = f"Target: disagreement ≤ {comparison.rho:g}"
    if comparison.target is not None:
        target += f" and mean return > {comparison.target:g}"
    elif comparison.black_box:
        target += "; the best value of a black box is not known, so values are shown but not judged"
    else:
        target += f" and mean loss ≤ {comparison.epsilon:g}"
    repeat = (
        f"to a factor of √2, up to {comparison.pairs} pairs a budget; seed {comparison.seed} repeats this comparison"
    )
    lines = [line(target), line(repeat, on=On.TERMINAL | On.CARD)]
    for access, reached in _by_access([row for row in rows if row.reached]):
        best = reached[0]
        samples = Strong(number(round(best.samples or 0.0)))
        lines.append(line(f"Fewest {access} samples: ", Strong(best.learner), ", ", samples, " a run"))
    return lines if len(lines) > 2 else [*lines, line("No learner reached it within the budgets tried")]


def _by_access(rows: Sequence[Row]) -> list[tuple[str, list[Row]]]:
    return [(access, [row for row in rows if row.access == access]) for access in dict.fromkeys(r.access for r in rows)]


def _table(comparison: Comparison, learners: Sequence[Row]) -> Table:
    rows = []
    for row in learners:
        shown, needed = row.shown, row.needed
        samples = Cell(f"not reached at {row.limit:,.0f}", look="warn")
        fitted = "—" if needed is None else Cell(f"{needed.samples:.2g}", span(needed.low, needed.high, 2))
        rate = Cell(f"{shown.disagreement:.2g}", span(*shown.interval, 2))
        name = Cell(row.learner, look="strong")
        reached = samples if row.samples is None else f"{row.samples:,.0f}"
        rows.append((name, row.access, reached, fitted, rate, worth_words(shown)))
    worth = "value, by episodes" if comparison.black_box else "mean loss"
    head = ("learner", "access", "samples a run", "by the fitted curve", "disagreement there", worth)
    text = "The smallest budget that meets the target, to a factor of √2."
    return Table("rows", "Samples to reach the target", head, rows, text, first=len(rows))


def _bars(learners: Sequence[Row]) -> list[Figure]:
    def size(row: Row) -> float:
        return max(1.0, row.limit if row.samples is None else row.samples)

    if not learners:
        return []
    axis = Axis.over([size(row) for row in learners], log=True)
    items = []
    for access, rows in _by_access(learners):
        for k, row in enumerate(rows):
            label = number(round(size(row))) if row.reached else f"not within {number(round(row.limit))}"
            tip = f"{row.learner}: {label} {access} samples"
            items.append(Bar(f"{row.learner}, {access}", size(row), label, tip, row.reached, k))
    text = "Samples a run at which each learner first met the target, log scale. Hatched: not within the budgets tried."
    drawn = Bars(axis._replace(low=axis.low / 3), items)
    return [Figure("bars", "Samples to reach the target", text, "bars", drawn, wide=True)]


def _curves(comparison: Comparison, rows: Sequence[Row]) -> list[Figure]:
    points = [p for row in rows for p in row.points]
    if not points:
        return []
    x = Axis.over([p.samples for p in points], log=True)

    def figure(name: str, text: str, read: Callable[[Row, Tried], Point], y: Axis, level: float, label: str) -> Figure:
        """One chart for each kind of access, on the same axes."""
        noun = name.partition(" ")[0]
        drawn = [
            Curves(x, y, "samples a run", f"{noun}, {access}", level, label, [_curve(row, read) for row in own])
            for access, own in _by_access(rows)
        ]
        return Figure(noun.lower(), name, text, "curves", drawn, wide=True)

    rho, epsilon = comparison.rho, comparison.epsilon
    y = Axis.over([*(p.interval[1] for p in points), rho], zero=True, most=1.0)
    text = "Share of pairs that differ at each budget. Point at a learner for its 95 % intervals."
    figures = [figure("Disagreement against samples", text, _rate, y, rho, f"ρ = {rho:g}")]
    if not comparison.black_box:
        y = Axis.over([*(p.suboptimality or 0.0 for p in points), epsilon], zero=True)
        text = "Mean loss against the best policy at each budget: runs that agree on a bad policy are of little use."
        figures.append(figure("Suboptimality against samples", text, _loss, y, epsilon, f"ε = {epsilon:g}"))
    return figures


def _curve(row: Row, read: Callable[[Row, Tried], Point]) -> tuple[str, list[Point]]:
    return row.learner, sorted(read(row, p) for p in row.points)


def _rate(row: Row, p: Tried) -> Point:
    tip = f"{row.learner}, {number(round(p.samples))} samples: {p.disagreement:.3g} {span(*p.interval)}"
    return Point(p.samples, p.disagreement, *p.interval, tip)


def _loss(row: Row, p: Tried) -> Point:
    loss = p.suboptimality or 0.0
    return Point(
        p.samples, loss, loss, loss, f"{row.learner}, {number(round(p.samples))} samples: {number(loss)} below the best"
    )
