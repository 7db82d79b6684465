"""The page of an audit of agents: how often, and where, two trainings came to act differently."""

from __future__ import annotations

from reprl.auditing.agent_record import GRADE, AgentReport
from reprl.report.charts import Axis, Bar, bars, interval
from reprl.report.page import (
    badge,
    counted,
    escape,
    facts,
    figure,
    fingerprint,
    page,
    percent,
    promises,
    table,
    tiles,
)
from reprl.storage.documents import digest


def agents_page(report: AgentReport) -> bytes:
    """Return the page."""
    sha = digest(report.to_dict())
    mark = fingerprint("Fingerprint of the audit", sha, "SHA-256 of the audit as canonical JSON.")
    body = [
        f'<section class="card top">{_verdict(report)}{mark}</section>',
        tiles(_tiles(report)),
        f'<h2 class="part">Evidence</h2><div class="figures">{_evidence(report)}</div>',
        f'<section class="card" id="pairs"><h2>Pairs of trainings</h2>{_pairs(report)}</section>',
        _places(report),
        facts("Environment", {"id": report.environment, "observations": report.spaces[0], "actions": report.spaces[1]}),
        facts("Learner", {"learner": report.learner, **report.options, "seed of the audit": report.seed}),
        _promises(report),
    ]
    lead = f"{report.learner}, {len(report.pairs)} pairs of trainings, episodes of at most {report.horizon:,} steps"
    return page("agents", report.environment, lead, "".join(body))


def _verdict(report: AgentReport) -> str:
    low, high = report.interval
    tone = "bad" if report.verdict == "rejected" else "plain"
    return (
        f'<div class="guarantee" id="guarantee"><h2>Claim: ρ ≤ {report.rho:g} at γ = {report.gamma:g} '
        f"{badge(report.verdict, tone)}</h2>"
        f'<p class="sentence">In <strong>{report.disagreements} of {len(report.pairs)}</strong> pairs of trainings the '
        f"two agents act differently in more than {percent(report.gamma)} of the states they meet.</p>"
        f'<p class="sentence second">The probability of such a pair lies between {low:.3g} and {high:.3g} '
        f"(95 %, exact).</p>"
        f'<p class="caption">Grade: {GRADE} (Hopkins, Impagliazzo, Ye, arXiv:2510.20200), weaker than equality of '
        f"policies. A pair: two trainings, one shared seed, independent data.</p></div>"
    )


def _tiles(report: AgentReport) -> list[tuple[str, str, str]]:
    mean = report.distance
    items = [
        ("mean distance", percent(mean.mean), f"of states; 95 % [{percent(mean.low)}, {percent(mean.high)}]"),
        ("never differ", f"{report.identical} of {len(report.pairs)}", "pairs, in all states that either met"),
        ("samples a training", *counted(round(report.samples), "mean")),
    ]
    for name, each in (("return", report.value), ("difference in return", report.gap)):
        if each is not None:
            items.append((name, f"{each.mean:.4g}", f"mean; 95 % [{each.low:.4g}, {each.high:.4g}], Student's"))
    return items


def _evidence(report: AgentReport) -> str:
    low, high = report.interval
    share = report.disagreements / len(report.pairs)
    tip = f"{report.disagreements} of {len(report.pairs)} pairs: {share:.4g}, interval [{low:.4g}, {high:.4g}]"
    name = f"probability that two agents are more than {percent(report.gamma)} apart"
    rows = [
        Bar(
            f"pair {k}",
            100.0 * pair.distance,
            f"{percent(pair.distance)}, 95 % {percent(pair.interval[0])} to {percent(pair.interval[1])}",
            f"pair {k}: {pair.alike} of {report.episodes} seeds without any difference, {pair.states:,} states",
            pair.distance > report.gamma,
        )
        for k, pair in enumerate(report.pairs[:40])
    ]
    axis = Axis.over([100.0 * max(pair.distance for pair in report.pairs), 100.0 * report.gamma], zero=True, most=100.0)
    chart = interval(low, share, high, report.rho, tip, name)
    first = figure("interval", "Pairs apart against the claim", "Measured share, exact interval, claimed ρ.", chart)
    text = f"Per cent of states met in which the two act differently; hatched: at most γ = {percent(report.gamma)}."
    return first + figure("distances", "How far each pair is apart", text, bars(rows, axis))


def _pairs(report: AgentReport) -> str:
    rows = []
    for k, pair in enumerate(report.pairs):
        low, high = pair.alike_interval
        change = pair.difference
        span = "" if change is None else f" <small>[{change.low:+.3g}, {change.high:+.3g}]</small>"
        rows.append(
            (
                str(k),
                f"{percent(pair.distance)} <small>[{percent(pair.interval[0])}, {percent(pair.interval[1])}]</small>",
                f"{pair.alike} of {report.episodes} <small>[{low:.2g}, {high:.2g}]</small>",
                f"{pair.returns[0]:.4g} and {pair.returns[1]:.4g}",
                f"{pair.returns[0] - pair.returns[1]:+.3g}{span}",
            )
        )
    return table(("pair", "distance", "episodes alike", "returns", "difference"), rows)


def _places(report: AgentReport) -> str:
    if not report.places:
        return ""
    rows = [
        (
            str(place.step),
            f'<span class="digest">{escape(place.observation)}</span>',
            percent(place.apart),
            escape(", ".join(f"{action} {share:.0%}" for action, share in place.actions)),
        )
        for place in report.places
    ]
    return (
        '<section class="card" id="places"><h2>States in which most pairs part</h2><p class="caption">All agents were '
        "asked about states in which one pair parted; those that split most pairs come first.</p>"
        f"{table(('step', 'observation', 'pairs apart', 'agents chose'), rows)}</section>"
    )


def _promises(report: AgentReport) -> str:
    return promises(
        (
            "Both agents of a pair are asked in every state that either of them meets, on the same evaluation seeds.",
            f"If at most {percent(report.rho)} of pairs were more than {percent(report.gamma)} apart on such episodes, "
            f"it would be rejected with probability at most {report.level:g}.",
            "Intervals of distances are valid for any law, by episode; those of returns are Student's, approximate.",
        ),
        (
            "That the agents are equal, or what they do in states that neither meets.",
            "Anything of another environment, budget or learner; “not rejected” proves nothing.",
        ),
    )
