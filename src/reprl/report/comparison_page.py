"""The page of a comparison: what each learner pays for agreement."""

from __future__ import annotations

from reprl.report.charts import Axis, Line, bars, curves
from reprl.report.page import badge, escape, facts, figure, fingerprint, number, page, promises, table
from reprl.report.records import Comparison, Point, Row
from reprl.report.run_page import lead


def comparison_page(comparison: Comparison) -> bytes:
    """Return the page."""
    mark = fingerprint("Comparison fingerprint", comparison.digest, "SHA-256 of the comparison as canonical JSON.")
    body = [
        f'<section class="card top">{_summary(comparison)}{mark}</section>',
        f'<section class="card" id="rows"><h2>Learners</h2>{_table(comparison)}</section>',
        f'<div class="figures">{_bars(comparison)}{_curves(comparison)}</div>',
        facts("Environment", {"id": comparison.world.title, **comparison.world.options}),
        promises(
            (
                "Every learner was measured with the same ruler: pairs of runs, one shared seed, independent data.",
                "Intervals are exact at 95 %.",
                "A learner has reached the target at the smallest tried budget that meets both ρ and ε.",
            ),
            (
                "How the learners rank on another environment, or with other targets.",
                "That a learner which did not reach the target never would: only the budgets shown were tried.",
            ),
        ),
    ]
    return page("comparison", comparison.world.title, lead(comparison.world), "".join(body))


def _summary(comparison: Comparison) -> str:
    reached = [row for row in comparison.rows if row.reached and row.samples is not None]
    target = f"disagreement ≤ {comparison.rho:g} and suboptimality ≤ {comparison.epsilon:g}"
    if reached:
        best = min(reached, key=lambda row: row.samples or 0.0)
        sentence = (
            f"<strong>{escape(best.learner)}</strong> reached it with the fewest samples: "
            f"<strong>{number(best.samples or 0.0)}</strong> a run."
        )
    else:
        sentence = "No learner reached it within the budgets tried."
    return (
        f'<div class="guarantee" id="guarantee"><h2>Target {badge("measured", "plain")}</h2>'
        f'<p class="sentence">{target}.</p><p class="sentence second">{sentence}</p>'
        f'<p class="caption">{len(reached)} of {len(comparison.rows)} learners reached the target. Each budget: '
        f"{comparison.pairs} pairs of runs with one shared seed and independent data.</p></div>"
    )


def _table(comparison: Comparison) -> str:
    rows = []
    for row in comparison.rows:
        spread = "" if row.interval is None else f" <small>[{row.interval[0]:.3g}, {row.interval[1]:.3g}]</small>"
        rate = "—" if row.disagreement is None else f"{row.disagreement:.3g}{spread}"
        samples = number(row.samples) if row.samples is not None else f"&gt; {number(row.limit)}"
        loss = "—" if row.suboptimality is None else number(row.suboptimality)
        status = badge("reached", "good") if row.reached else badge("not reached", "warn")
        rows.append((f"<b>{escape(row.learner)}</b>", escape(row.access), samples, rate, loss, status))
    return table(("learner", "access", "samples a run", "disagreement", "suboptimality", "target"), rows)


def _bars(comparison: Comparison) -> str:
    def size(row: Row) -> float:
        return max(1.0, row.limit if row.samples is None else row.samples)

    if not comparison.rows:
        return ""
    axis = Axis.over([size(row) for row in comparison.rows], log=True)
    axis = axis._replace(low=axis.low / 3)
    items = []
    for row in comparison.rows:
        label = number(size(row)) if row.reached else f"not within {number(row.limit)}"
        items.append((row.learner, size(row), label, row.reached, f"{row.learner}: {label} samples"))
    text = "Samples a run at which each learner first met the target, log scale. Hatched: not within the budgets tried."
    return figure("bars", "Samples to reach the target", text, bars(items, axis), wide=True)


def _curves(comparison: Comparison) -> str:
    points = [p for row in comparison.rows for p in row.curve]
    if not points:
        return ""
    x = Axis.over([p.samples for p in points], log=True)
    y = Axis.over([*(p.high for p in points), comparison.rho], zero=True, most=1.0)
    rates = [Line(row.learner, [_rate(row, p) for p in row.curve]) for row in comparison.rows]
    chart = curves(
        rates, x, y, x_name="samples a run", y_name="disagreement", rule=(comparison.rho, f"ρ = {comparison.rho:g}")
    )
    text = "Share of pairs that differ at each budget, with exact 95 % intervals."
    parts = [figure("curve", "Disagreement against samples", text, chart, wide=True)]
    losses = [p.suboptimality for p in points if p.suboptimality is not None]
    if losses:
        y = Axis.over([*losses, comparison.epsilon], zero=True)
        lines = [
            Line(row.learner, [_loss(row, p) for p in row.curve if p.suboptimality is not None])
            for row in comparison.rows
        ]
        rule = (comparison.epsilon, f"ε = {comparison.epsilon:g}")
        chart = curves(lines, x, y, x_name="samples a run", y_name="suboptimality", rule=rule)
        text = "Mean loss against the best policy at each budget: agreement is worth little on a bad policy."
        parts.append(figure("suboptimality", "Suboptimality against samples", text, chart, wide=True))
    return "".join(parts)


def _rate(row: Row, p: Point) -> tuple[float, float, float, float, str]:
    tip = f"{row.learner}, {number(p.samples)} samples: {p.disagreement:.3g} [{p.low:.3g}, {p.high:.3g}]"
    return p.samples, p.disagreement, p.low, p.high, tip


def _loss(row: Row, p: Point) -> tuple[float, float, float, float, str]:
    loss = p.suboptimality or 0.0
    return p.samples, loss, loss, loss, f"{row.learner}, {number(p.samples)} samples: {number(loss)} below the best"
