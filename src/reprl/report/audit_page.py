"""The page of an audit: how often pairs of runs disagreed, where, and by how little."""

from __future__ import annotations

from collections import Counter

import numpy as np

from reprl.auditing.divergence import Divergence
from reprl.auditing.record import AuditReport
from reprl.report.charts import interval, tally
from reprl.report.maps import Maps
from reprl.report.names import action_name, state_name
from reprl.report.page import (
    badge,
    counted,
    escape,
    facts,
    figure,
    fingerprint,
    number,
    page,
    percent,
    promises,
    table,
    tiles,
)
from reprl.report.run_page import ARROW, lead
from reprl.report.shades import shade
from reprl.storage.documents import digest, plain

_TONES = {"rejected": "bad", "not rejected": "plain", "undecided": "warn"}
_SHOWN, _MOST = 6, 100
"""Divergences shown at once, and listed at all."""


def audit_page(audit: AuditReport) -> bytes:
    """Return the page."""
    weight = audit.by_cell if audit.by_cell_weighted is None else audit.by_cell_weighted + 1e-3 * audit.by_cell
    if audit.policies is not None:
        weight = np.where(audit.policies.reached, weight, 0.0)
    maps = Maps(audit.environment, weight)
    body = [
        f'<section class="card top">{_verdict(audit)}{_fingerprint(audit)}</section>',
        tiles(_tiles(audit)),
        f'<h2 class="part">Evidence</h2><div class="figures">{_evidence(audit)}</div>',
        f'<h2 class="part">Where runs part</h2><p class="note">{escape(maps.note)}</p>{maps.slider()}',
        f'<div class="figures">{_where(audit, maps)}</div>{_cells(audit)}{_divergences(audit)}',
        f'<div class="figures">{facts("Learner options", plain(audit.options))}{facts("Test", _test(audit))}</div>',
        promises(
            (
                f"Runs with one shared seed and fresh data differed in {audit.disagreements} of {audit.pairs} pairs.",
                "The interval is exact: it holds at its level whatever the true probability is.",
                "“Rejected” means that the data contradict the claimed ρ at the stated level.",
            ),
            (
                "That the claim is true: “not rejected” is the absence of evidence against it.",
                "How the learner behaves on another environment or with other options.",
                "Which of two differing policies is better; see the value gap for what it costs.",
            ),
        ),
    ]
    title = f"{audit.learner} on {audit.environment.title}"
    return page("audit", title, lead(audit.environment), ARROW + "".join(body), maps.data())


def _verdict(audit: AuditReport) -> str:
    low, high = audit.interval
    kind = "95\u00a0% confidence sequence" if audit.sequential else "exact 95\u00a0% interval"
    mark = badge(audit.verdict, _TONES[audit.verdict])
    claims = {
        "rejected": "These pairs contradict the claim that",
        "not rejected": "These pairs do not contradict the claim that",
        "undecided": "These pairs neither contradict nor support the claim that",
    }
    return (
        f'<div class="guarantee" id="guarantee"><h2>Claim: ρ ≤ {audit.rho:g} {mark}</h2>'
        f'<p class="sentence">Runs disagreed in <strong>{audit.disagreements} of {audit.pairs}</strong> pairs. '
        f"The probability of disagreement lies between <strong>{low:.3g}</strong> and <strong>{high:.3g}</strong> "
        f"({kind}).</p>"
        f'<p class="sentence second">{claims[audit.verdict]} at most {percent(audit.rho)} of pairs differ.</p>'
        f'<p class="caption">A pair: two runs, one shared seed, independent data. '
        f"{'Sequential test' if audit.sequential else 'Fixed-size test'} at level {audit.level:g}.</p></div>"
    )


def _fingerprint(audit: AuditReport) -> str:
    return fingerprint("Audit fingerprint", digest(audit.to_dict()), "SHA-256 of the audit as canonical JSON.")


def _tiles(audit: AuditReport) -> list[tuple[str, str, str]]:
    items = [
        ("disagreement", f"{audit.disagreement:.3g}", f"{audit.disagreements} of {audit.pairs} pairs"),
        ("claimed ρ", f"{audit.rho:g}", "allowed probability of disagreement"),
        ("samples a run", *counted(audit.samples, "mean over all runs")),
    ]
    for name, both, remark in (
        ("value gap", audit.value_gap, "between the two policies of a pair"),
        ("suboptimality", audit.suboptimality, "below the best policy"),
    ):
        if both is not None:
            items.append((name, number(both[0]), f"mean; at most {number(both[1])}, {remark}"))
    found = audit.policies
    if found is not None:
        remark = f"in all runs; {found.over_seeds} over {audit.pairs} shared seeds"
        items.insert(2, ("distinct policies", number(found.over_runs), remark))
        if found.monte_carlo is not None:
            for name, each in (("value", found.monte_carlo.value), ("value gap", found.monte_carlo.gap)):
                words = f"[{each.low:.3g}, {each.high:.3g}], by {found.monte_carlo.episodes} episodes a policy"
                items.append((name, f"{each.mean:.3g}", words))
    return items


def _evidence(audit: AuditReport) -> str:
    low, high = audit.interval
    tip = f"{audit.disagreements} of {audit.pairs} pairs: {audit.disagreement:.4g}, interval [{low:.4g}, {high:.4g}]"
    parts = [
        figure(
            "interval",
            "Disagreement against the claim",
            "Measured share, exact 95 % interval, and the claimed ρ.",
            interval(low, audit.disagreement, high, audit.rho, tip),
        )
    ]
    counts = Counter(audit.distinct)
    rows = [(f"{k} distinct {'policy' if k == 1 else 'policies'}", counts[k]) for k in sorted(counts)]
    if rows:
        runs = (
            f"{audit.runs_per_key} runs with each of {len(audit.distinct)} shared seeds; one policy is full agreement."
        )
        parts.append(figure("distinct", "Distinct policies per shared seed", runs, tally(rows, "seeds")))
    return "".join(parts)


def _where(audit: AuditReport, maps: Maps) -> str:
    reached = None if audit.policies is None else audit.policies.reached
    by_cell = audit.by_cell if reached is None else np.where(reached, audit.by_cell, 0.0)
    maps.tell("pairs that differ", by_cell)
    left = " Cells that no policy reaches are left out." if reached is not None and not reached.all() else ""
    parts = [
        maps.figure(
            "by-cell",
            "Disagreement map",
            f"Share of pairs whose actions differ in a state at a step.{left}",
            shade(by_cell, "orange", low=0.0, none="always the same"),
        )
    ]
    if audit.by_cell_weighted is not None:
        maps.tell("times reachability", audit.by_cell_weighted)
        text = (
            "The same, times the largest probability with which any policy reaches the state: what a user can notice."
        )
        scale = shade(audit.by_cell_weighted, "orange", low=0.0, none="none")
        parts.append(maps.figure("by-cell-weighted", "Weighted by reachability", text, scale))
    return "".join(parts)


def _cells(audit: AuditReport) -> str:
    if not audit.cells:
        return ""
    rows = []
    for cell in audit.cells[:_SHOWN]:
        chosen = ", ".join(f"{action_name(audit.environment, a)} {percent(share)}" for a, share in cell.actions)
        stake = "—" if cell.stake is None else "0: an exact tie" if cell.stake == 0 else number(cell.stake)
        often = cell.visited if cell.reachability is None else cell.reachability
        reach = "—" if often is None else number(often)
        where = f"step {cell.step}, {state_name(audit.environment, cell.state)}"
        rows.append((escape(where), percent(cell.disagreement), reach, escape(stake), escape(chosen)))
    played = audit.cells[0].visited is not None
    head = ("where", "pairs that differ", "visited" if played else "reachability", "at stake", "runs chose")
    return (
        '<section class="card" id="cells-that-matter"><h2>Cells that matter most</h2><p class="caption">By how often '
        "pairs differ and how likely the cell is reached; at stake is the largest difference in value between the "
        f"actions chosen.</p>{table(head, rows)}</section>"
    )


def _divergences(audit: AuditReport) -> str:
    found = audit.first_divergence
    if not found:
        return (
            '<section class="card" id="divergences"><h2>First divergences</h2>'
            '<p class="caption">No pair parted, or the learner does not say where.</p></section>'
        )
    stages = Counter(d.stage for d in found)
    summary = "".join(f"<span>{badge(stage, 'plain')} {count}</span>" for stage, count in stages.most_common())
    rows = [_divergence(audit, d) for d in found[:_MOST]]
    head = ("pair", "stage", "where", "actions", "margin", "what happened")
    rest = table(head, rows[_SHOWN:]) + ("" if len(found) <= _MOST else f"<p>and {len(found) - _MOST:,} more</p>")
    more = f"<details><summary>{len(found) - _SHOWN:,} more</summary>{rest}</details>" if len(found) > _SHOWN else ""
    return (
        f'<section class="card" id="divergences"><h2>First divergences</h2><p class="caption">The first choice in '
        f"which two runs of a pair parted, and how close the call was: a small margin is a near tie.</p>"
        f'<p class="stages">{summary}</p>{table(head, rows[:_SHOWN])}{more}</section>'
    )


def _divergence(audit: AuditReport, d: Divergence) -> tuple[str, ...]:
    place = []
    if d.tier is not None:
        place.append(f"tier {d.tier}")
    if d.step is not None:
        place.append(f"step {d.step}")
    if d.state is not None:
        place.append(state_name(audit.environment, d.state) if audit.environment.labels.states else f"state {d.state}")
    actions = "—" if d.actions is None else " / ".join(action_name(audit.environment, a) for a in d.actions)
    margin = "—" if d.margin is None else number(d.margin)
    return str(d.pair), escape(d.stage), escape(", ".join(place) or "—"), escape(actions), margin, escape(d.text)


def _test(audit: AuditReport) -> dict[str, object]:
    return {
        "pairs": audit.pairs,
        "runs per shared seed": audit.runs_per_key,
        "level": audit.level,
        "p-value": "—" if audit.p_value is None else number(audit.p_value),
        "sequential": "yes" if audit.sequential else "no",
        "learner": audit.learner,
        "environment": audit.environment.title,
    }
