"""The page of a comparison: what each learner pays for agreement."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from reprl.auditing.comparison import Comparison, Row, worth_words
from reprl.auditing.search import Tried
from reprl.report.charts import Axis, Bar, Line, bars, curves
from reprl.report.page import badge, escape, facts, figure, fingerprint, number, page, promises, table
from reprl.report.run_page import lead
from reprl.storage.documents import digest, plain

Reading = Callable[[Row, Tried], tuple[float, float, float, float, str]]


def comparison_page(comparison: Comparison) -> bytes:
    """Return the page."""
    sha = digest(comparison.to_dict())
    mark = fingerprint("Comparison fingerprint", sha, "SHA-256 of the comparison as canonical JSON.")
    body = [
        f'<section class="card top">{_summary(comparison)}{mark}</section>',
        f'<section class="card" id="rows"><h2>Learners</h2>{_table(comparison)}</section>',
        f'<div class="figures">{_bars(comparison)}{_curves(comparison)}</div>',
        facts("Environment", {"id": comparison.environment.title, **plain(comparison.environment.options)}),
        promises(
            (
                "Every learner was measured with the same ruler: pairs of runs, one shared seed, independent data.",
                "Intervals are at 95 %, and hold although pairs may have been watched one by one.",
                "A learner has reached the target at the smallest tried budget that meets both ρ and ε.",
            ),
            (
                "How the learners rank on another environment, or with other targets.",
                "That a learner which did not reach the target never would: only the budgets shown were tried.",
            ),
        ),
    ]
    return page("comparison", comparison.environment.title, lead(comparison.environment), "".join(body))


def _summary(comparison: Comparison) -> str:
    """Say who needed least, for each kind of access by itself: the two kinds of samples are not the same good."""
    reached = [row for row in comparison.rows if row.reached and row.samples is not None]
    target = f"disagreement ≤ {comparison.rho:g}"
    if comparison.black_box:
        target += "; the best value of a black box is not known, so what policies earn is only shown"
    else:
        target += f" and suboptimality ≤ {comparison.epsilon:g}"
    lines = []
    for access, rows in _by_access(reached):
        best = min(rows, key=lambda row: row.samples or 0.0)
        lines.append(
            f"Fewest {escape(access)} samples: <strong>{escape(best.learner)}</strong>, "
            f"<strong>{number(round(best.samples or 0.0))}</strong> a run."
        )
    sentence = "<br>".join(lines) or "No learner reached it within the budgets tried."
    return (
        f'<div class="guarantee" id="guarantee"><h2>Target {badge("measured", "plain")}</h2>'
        f'<p class="sentence">{target}.</p><p class="sentence second">{sentence}</p>'
        f'<p class="caption">{len(reached)} of {len(comparison.rows)} learners reached the target. Each budget: up to '
        f"{comparison.pairs} pairs of runs with one shared seed and independent data.</p></div>"
    )


def _by_access(rows: Sequence[Row]) -> list[tuple[str, list[Row]]]:
    return [(access, [row for row in rows if row.access == access]) for access in dict.fromkeys(r.access for r in rows)]


def _table(comparison: Comparison) -> str:
    rows = []
    for row in comparison.rows:
        low, high = row.shown.interval
        rate = f"{row.shown.disagreement:.3g} <small>[{low:.3g}, {high:.3g}]</small>"
        samples = number(round(row.samples)) if row.samples is not None else f"&gt; {number(round(row.limit))}"
        loss = worth_words(row.shown)
        status = badge("reached", "good") if row.reached else badge("not reached", "warn")
        rows.append((f"<b>{escape(row.learner)}</b>", escape(row.access), samples, rate, loss, status))
    worth = "value, by episodes" if comparison.black_box else "suboptimality"
    return table(("learner", "access", "samples a run", "disagreement", worth, "target"), rows)


def _bars(comparison: Comparison) -> str:
    def size(row: Row) -> float:
        return max(1.0, row.limit if row.samples is None else row.samples)

    if not comparison.rows:
        return ""
    axis = Axis.over([size(row) for row in comparison.rows], log=True)
    axis = axis._replace(low=axis.low / 3)
    items = []
    for access, rows in _by_access(comparison.rows):
        for k, row in enumerate(rows):
            label = number(round(size(row))) if row.reached else f"not within {number(round(row.limit))}"
            tip = f"{row.learner}: {label} {access} samples"
            items.append(Bar(f"{row.learner}, {access}", size(row), label, tip, row.reached, k))
    text = "Samples a run at which each learner first met the target, log scale. Hatched: not within the budgets tried."
    return figure("bars", "Samples to reach the target", text, bars(items, axis), wide=True)


def _curves(comparison: Comparison) -> str:
    points = [p for row in comparison.rows for p in row.points]
    if not points:
        return ""
    x = Axis.over([p.samples for p in points], log=True)
    y = Axis.over([*(p.interval[1] for p in points), comparison.rho], zero=True, most=1.0)
    text = "Share of pairs that differ at each budget. Point at a learner for its 95 % intervals."
    rule = (comparison.rho, f"ρ = {comparison.rho:g}")
    chart = _charts(comparison, _rate, "disagreement", x, y, rule)
    rates = figure("curve", "Disagreement against samples", text, chart, wide=True)
    if comparison.black_box:
        return rates
    y = Axis.over([*(p.suboptimality or 0.0 for p in points), comparison.epsilon], zero=True)
    rule = (comparison.epsilon, f"ε = {comparison.epsilon:g}")
    text = "Mean loss against the best policy at each budget: agreement is worth little on a bad policy."
    chart = _charts(comparison, _loss, "suboptimality", x, y, rule)
    return rates + figure("suboptimality", "Suboptimality against samples", text, chart, wide=True)


def _charts(comparison: Comparison, read: Reading, name: str, x: Axis, y: Axis, rule: tuple[float, str]) -> str:
    """Return one chart for each kind of access, on the same axes."""
    charts = []
    for access, rows in _by_access(comparison.rows):
        lines = [Line(row.learner, sorted(read(row, p) for p in row.points)) for row in rows]
        charts.append(curves(lines, x, y, x_name="samples a run", y_name=f"{name}, {access}", rule=rule))
    return "".join(charts)


def _rate(row: Row, p: Tried) -> tuple[float, float, float, float, str]:
    low, high = p.interval
    tip = f"{row.learner}, {number(round(p.samples))} samples: {p.disagreement:.3g} [{low:.3g}, {high:.3g}]"
    return p.samples, p.disagreement, low, high, tip


def _loss(row: Row, p: Tried) -> tuple[float, float, float, float, str]:
    loss = p.suboptimality or 0.0
    tip = f"{row.learner}, {number(round(p.samples))} samples: {number(loss)} below the best"
    return p.samples, loss, loss, loss, tip
