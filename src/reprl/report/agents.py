"""The summary of an audit of agents: how often, and where, two trainings came to act differently."""

from __future__ import annotations

from reprl.auditing.agent_record import GRADE, AgentReport
from reprl.auditing.evidence import fewest_to_reject
from reprl.report import charts
from reprl.report.numbers import chosen, counted, percent, span
from reprl.report.summary import (
    Badge,
    Cell,
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
from reprl.storage.documents import digest

_DRAWN = 40
"""Pairs that a chart shows."""


def summarize_agents(report: AgentReport) -> Summary:
    """Return the summary."""
    n, (seen, done) = len(report.pairs), report.spaces
    place = {"id": report.environment, "observations": seen, "actions": done}
    learner = {"learner": report.learner, **report.options, "seed of the audit": str(report.seed)}
    return Summary(
        kind="agents",
        title=f"{report.learner} on {report.environment}",
        badge=Badge(
            f"ρ = {report.rho:g} at γ = {report.gamma:g} {report.verdict}",
            "bad" if report.verdict == "rejected" else "plain",
        ),
        subject=f"at level {report.level:g}: {report.learner} on {report.environment}",
        lines=_lines(report),
        facts=_facts(report),
        sections=(
            Section(_evidence(report), "Evidence"),
            Section((_pairs(report),)),
            Section((_places(report),)),
            Section((Listing("Environment", place), Listing("Learner", learner))),
        ),
        lead=f"{n} pairs of trainings, episodes of at most {report.horizon:,} steps",
        heading="Claim",
        caption="arXiv:2510.20200 (Hopkins, Impagliazzo, Ye) defines this notion of agreement, which is weaker than "
        "equality of policies. A pair: two trainings, one shared seed, independent data.",
        mark=Mark("Fingerprint of the audit", digest(report.to_dict()), "SHA-256 of the audit as canonical JSON."),
    )


def _lines(report: AgentReport) -> list[Line]:
    n = len(report.pairs)
    return [
        line(
            Strong(f"{report.disagreements} of {n} pairs"),
            f" act differently in more than {percent(report.gamma)} of the states that they visit; "
            f"95 % interval {span(*report.interval)} (exact)",
        ),
        line(_meaning(report)),
        line(f"Grade: {GRADE}"),
    ]


def _meaning(report: AgentReport) -> str:
    if report.verdict == "rejected":
        chance = f"with probability at most {report.p_value:.2g}"
        return f"If at most a share {report.rho:g} of pairs differed, so many would differ {chance}"
    needed = fewest_to_reject(len(report.pairs), report.rho, report.level)
    if needed is None:
        return f"Too few pairs: not even {len(report.pairs)} of them could reject; ask for more"
    return f"{needed} differing pairs would reject; fewer are no proof, and states that no agent visited are not judged"


def _facts(report: AgentReport) -> list[Fact]:
    mean, alike = report.distance, f"{report.identical} of {len(report.pairs)}"
    value, note = counted(round(report.samples), "on average")
    facts = [
        Fact("mean distance", percent(mean.mean), f"of states; 95 % interval {span(mean.low, mean.high)}"),
        Fact("never differ", alike, "pairs, in all states that either visited"),
        Fact("samples a training", value, f"{note}; seed {report.seed} repeats this audit"),
    ]
    for name, each in (("return", report.value), ("difference in return", report.gap)):
        if each is not None:
            note = f"on average; 95 % interval {span(each.low, each.high, 4)}, Student's"
            facts.append(Fact(name, f"{each.mean:.4g}", note))
    return facts


def _evidence(report: AgentReport) -> list[Figure]:
    n, gamma = len(report.pairs), percent(report.gamma)
    name = f"probability that two agents differ in more than {gamma} of the states"
    share, words = report.disagreements / n, f"{report.disagreements} of {n} pairs"
    drawn = charts.Interval(share, report.interval, report.rho, words, name)
    rows = [
        charts.Bar(
            f"pair {k}",
            100.0 * pair.distance,
            f"{percent(pair.distance)}, 95 % {percent(pair.interval[0])} to {percent(pair.interval[1])}",
            f"pair {k}: {pair.alike} of {report.episodes} seeds without any difference, {pair.states:,} states",
            pair.distance > report.gamma,
        )
        for k, pair in enumerate(report.pairs[:_DRAWN])
    ]
    axis = charts.Axis.over(
        [100.0 * max(pair.distance for pair in report.pairs), 100.0 * report.gamma], zero=True, most=100.0
    )
    first = "Measured share, exact interval, claimed ρ."
    text = f"Per cent of visited states in which the two act differently; hatched: at most γ = {gamma}."
    return [
        Figure("interval", "Pairs that differ, and the claim", first, "interval", drawn),
        Figure("distances", "Distance of each pair", text, "bars", charts.Bars(axis, rows)),
    ]


def _pairs(report: AgentReport) -> Table:
    rows = []
    for k, pair in enumerate(report.pairs):
        change = pair.difference
        low, high = (percent(end) for end in pair.interval)
        rows.append(
            (
                str(k),
                Cell(percent(pair.distance), f"[{low}, {high}]"),
                Cell(f"{pair.alike} of {report.episodes}", span(*pair.alike_interval, 2)),
                f"{pair.returns[0]:.4g} and {pair.returns[1]:.4g}",
                Cell(
                    f"{pair.returns[0] - pair.returns[1]:+.3g}",
                    "" if change is None else f"[{change.low:+.3g}, {change.high:+.3g}]",
                ),
            )
        )
    head = ("pair", "distance", "episodes alike", "returns", "difference")
    return Table("pairs", "Pairs of trainings", head, rows, "With 95 % intervals.", first=20)


def _places(report: AgentReport) -> Table:
    rows = [
        (str(place.step), Cell(place.observation, look="digest"), percent(place.apart), chosen(place.actions))
        for place in report.places
    ]
    text = "States in which the two agents of a pair differed; those in which most pairs differ come first."
    head = ("step", "observation", "pairs that differ", "agents chose")
    return Table("places", "States in which most pairs differ", head, rows, text, On.TERMINAL | On.PAGE, first=20)
