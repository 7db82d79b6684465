"""The summary of an audit: how often pairs of runs disagreed, where, and by how little."""

from __future__ import annotations

from collections import Counter

import numpy as np

from reprl.auditing.divergence import STAGES, Divergence
from reprl.auditing.evidence import fewest_to_reject
from reprl.auditing.record import AuditReport
from reprl.learning.worth import Worth
from reprl.report import charts
from reprl.report.maps import Maps
from reprl.report.names import action_name, describe_world, state_name
from reprl.report.numbers import chosen, counted, number, percent, span
from reprl.report.shades import shade
from reprl.report.summary import (
    Badge,
    Block,
    Fact,
    Figure,
    Line,
    Listing,
    Mark,
    On,
    Section,
    Strong,
    Summary,
    Table,
    line,
)
from reprl.storage.documents import digest, plain

_TONES = {"rejected": "bad", "not rejected": "plain", "undecided": "warn"}
_LISTED = 100
"""Divergences that a page lists."""


def summarize_audit(audit: AuditReport) -> Summary:
    """Return the summary."""
    weight = audit.by_cell if audit.by_cell_weighted is None else audit.by_cell_weighted + 1e-3 * audit.by_cell
    weight = np.where(audit.policies.reached, weight, 0.0)
    world = audit.environment
    maps = Maps(world, weight, worst=True)
    kind = "Sequential" if audit.sequential else "Fixed-size"
    where: list[Block] = [*_figures(audit, maps), _cells(audit), _stages(audit), _divergences(audit)]
    test = Listing("Test", _test(audit))
    return Summary(
        kind="audit",
        title=f"{audit.learner} on {world.title}",
        badge=Badge(f"ρ = {audit.rho:g} {audit.verdict}", _TONES[audit.verdict]),
        subject=f"at level {audit.level:g}: {audit.learner} on {world.labels.name}, {audit.access}",
        lines=_lines(audit),
        facts=_facts(audit),
        sections=(
            Section(_evidence(audit), "Evidence"),
            Section(where, "Where runs differ", maps.note),
            Section((Listing("Learner options", plain(audit.options)), test)),
        ),
        lead=describe_world(world),
        heading="Claim",
        caption=f"A pair: two runs, one shared seed, independent data. {kind} test at level {audit.level:g}.",
        mark=Mark("Audit fingerprint", digest(audit.to_dict()), "SHA-256 of the audit as canonical JSON."),
        maps=maps,
    )


def _lines(audit: AuditReport) -> list[Line]:
    rate, kind = f"{audit.disagreement:.3g}", "at all times" if audit.sequential else "exact"
    return [
        line(
            Strong(f"{audit.disagreements} of {audit.pairs} pairs"),
            f" differ: disagreement {rate}, 95 % interval {span(*audit.interval)} ({kind})",
        ),
        line(_meaning(audit)),
    ]


def _meaning(audit: AuditReport) -> str:
    """What the verdict says and what it does not."""
    rho, other = f"{audit.rho:g}", f"{audit.alternative or 0.0:g}"
    if audit.sequential:
        return {
            "rejected": f"A learner with disagreement ≤ {rho} is rejected, at any time, "
            f"with probability ≤ {audit.level:g}",
            "not rejected": f"A learner with disagreement ≥ {other} would pass with probability ≤ {audit.level:g}; "
            f"nothing is proven about {rho} itself",
            "undecided": f"{audit.pairs} pairs decide neither against ≤ {rho} nor against ≥ {other}",
        }[audit.verdict]
    if audit.verdict == "rejected":
        return f"If disagreement were ≤ {rho}, so many would differ with probability at most {audit.p_value:.2g}"
    needed = fewest_to_reject(audit.pairs, audit.rho, audit.level)
    if needed is None:
        return f"Too few pairs: not even {audit.pairs} of {audit.pairs} could reject; ask for more"
    return f"{needed} of {audit.pairs} differing pairs would reject ρ; fewer do not prove that the learner replicates"


def _facts(audit: AuditReport) -> list[Fact]:
    found = audit.policies
    facts = []
    if audit.recipe is not None:
        about = f"{audit.recipe.digest[:12]}; test and interval are about {audit.recipe.about}"
        facts.append(Fact("recipe", about, prose=True))
    if audit.runs_per_key > 2:
        note = (
            "the estimate averages all their pairs, test and interval count the first two; "
            f"up to {max(audit.distinct)} distinct policies under one seed"
        )
        facts.append(Fact("runs per seed", str(audit.runs_per_key), note))
    if found.over_runs > 1:
        runs = audit.pairs * audit.runs_per_key
        note = f"in {runs} runs, {found.over_seeds} over {audit.pairs} shared seeds; the most common"
        facts.append(Fact("distinct policies", number(found.over_runs), f"{note} in {percent(found.most_common)}"))
    if found.apart < audit.disagreements:
        apart = f"{found.apart} of {audit.disagreements}"
        facts.append(Fact("differ where reached", apart, "pairs differ in a cell that is ever reached"))
    for name, both, note in (
        ("value gap", audit.value_gap, "between the two policies of a pair"),
        ("suboptimality", audit.suboptimality, "below the best policy"),
    ):
        if both is not None:
            facts.append(Fact(name, number(both.mean), f"on average, {number(both.max)} at most, {note}"))
    if audit.earned is not None:
        facts.append(Fact("earns", f"{Worth(*audit.earned).words}, on average over all runs", prose=True))
    played = found.monte_carlo
    if played is not None:
        note = f"by {played.episodes} episodes a policy (Student's interval)"
        for name, each in (("value", played.value), ("value gap", played.gap)):
            facts.append(Fact(name, f"{each.mean:.3g}", f"{span(each.low, each.high)}, {note}"))
    value, note = counted(round(audit.samples), "on average")
    return [*facts, Fact("samples a run", value, f"{note}; seed {audit.seed} repeats this audit")]


def _evidence(audit: AuditReport) -> list[Figure]:
    counts, seeds = f"{audit.disagreements} of {audit.pairs} pairs", Counter(audit.distinct)
    drawn = charts.Interval(audit.disagreement, audit.interval, audit.rho, counts)
    text = "Measured share, exact 95 % interval, and the claimed ρ."
    figures = [Figure("interval", "Disagreement against the claim", text, "interval", drawn)]
    if seeds:
        names = [(f"{k} distinct {'policy' if k == 1 else 'policies'}", seeds[k]) for k in sorted(seeds)]
        bars = [charts.Bar(name, n, f"{n:,} seeds", f"{name}: {n:,} seeds") for name, n in names]
        text = f"{audit.runs_per_key} runs with each of {len(audit.distinct)} shared seeds; one policy: all agree."
        rows = charts.Bars(charts.Axis(0.0, max(seeds.values())), bars)
        figures.append(Figure("distinct", "Distinct policies per shared seed", text, "bars", rows))
    return figures


def _figures(audit: AuditReport, maps: Maps) -> list[Figure]:
    reached = audit.policies.reached
    by_cell = np.where(reached, audit.by_cell, 0.0)
    maps.tell("pairs that differ", by_cell)
    left = " Cells that no policy reaches are left out." if not reached.all() else ""
    text = f"Share of pairs whose actions differ in a state at a step.{left}"
    scale = shade(by_cell, "orange", low=0.0, none="always the same")
    figures = [maps.figure("by-cell", "Disagreement map", text, scale)]
    if audit.by_cell_weighted is not None:
        maps.tell("times reachability", audit.by_cell_weighted)
        text = "The same, times the largest probability with which any policy reaches the state: what users can notice."
        scale = shade(audit.by_cell_weighted, "orange", low=0.0, none="none")
        figures.append(maps.figure("by-cell-weighted", "Weighted by reachability", text, scale))
    return figures


def _cells(audit: AuditReport) -> Table:
    world = audit.environment
    rows = []
    once = len(audit.by_cell) > 1 and bool((audit.by_cell == audit.by_cell[0]).all())  # all policies are stationary
    cells = [*{cell.state: cell for cell in reversed(audit.cells)}.values()][::-1] if once else audit.cells
    for cell in cells:
        stake = "—" if cell.stake is None else "exact tie" if cell.stake == 0 else number(cell.stake)
        often = cell.visited if cell.reachability is None else cell.reachability
        actions = chosen([(action_name(world, a), share) for a, share in cell.actions])
        reach = "—" if often is None else percent(often)
        place = state_name(world, cell.state) if once else world.cell(cell.step, cell.state)
        rows.append((place, percent(cell.disagreement), reach, stake, actions))
    apart = (audit.by_cell > 0.0) & audit.policies.reached
    apart = apart[:1] if once else apart
    tied = sum(cell.stake == 0 for cell in cells)
    ties = f" {tied} of {len(rows)} listed are exact ties." if tied else ""
    every = " Runs take the same action at every step, so each state is listed once." if once else ""
    text = (
        "Sorted by how often pairs differ and how easily the state is reached. At stake: the largest difference "
        f"in value between the actions chosen.{ties}{every}"
    )
    played = any(cell.visited is not None for cell in audit.cells)
    head = ("where", "pairs that differ", "visited" if played else "reachable", "at stake", "runs chose")
    return Table("cells-that-matter", "Where runs disagree", head, rows, text, first=6, total=int(apart.sum()))


def _stages(audit: AuditReport) -> Table:
    rows = []
    for stage in dict.fromkeys((*STAGES, *(item.stage for item in audit.first_divergence))):
        items = [item for item in audit.first_divergence if item.stage == stage]
        if items:
            closest = min(items, key=lambda item: float("inf") if item.margin is None else item.margin)
            rows.append((stage, str(len(items)), closest.text))
    text = "The stage in which the two runs of a pair first differ, and the closest call: a small margin is a near tie."
    return Table("stages", "First divergence by stage", ("stage", "pairs", "closest call"), rows, text, first=_LISTED)


def _divergences(audit: AuditReport) -> Table:
    found = audit.first_divergence
    head = ("pair", "stage", "where", "actions", "margin", "what happened")
    rows = [_divergence(audit, item) for item in found[:_LISTED]]
    title, text = "First divergence of each pair", "" if rows else "No pair differs, or the learner does not say where."
    return Table("divergences", title, head, rows, text, On.PAGE, 6, len(found))


def _divergence(audit: AuditReport, d: Divergence) -> tuple[str, ...]:
    world, place = audit.environment, []
    if d.tier is not None:
        place.append(f"tier {d.tier}")
    if d.step is not None:
        place.append(f"step {d.step}")
    if d.state is not None:
        place.append(state_name(world, d.state))
    actions = "—" if d.actions is None else " / ".join(action_name(world, a) for a in d.actions)
    margin = "—" if d.margin is None else number(d.margin)
    return str(d.pair), d.stage, ", ".join(place) or "—", actions, margin, d.text


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
