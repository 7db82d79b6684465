"""The summary of an audit of searches: how often, and where, two runs printed different policies."""

from __future__ import annotations

from reprl.auditing.evidence import fewest_to_reject
from reprl.auditing.search_audit import SearchAudit
from reprl.report import charts
from reprl.report.numbers import counted, span
from reprl.report.summary import Badge, Cell, Fact, Figure, Listing, Mark, Section, Strong, Summary, Table, line
from reprl.storage.documents import digest


def summarize_search_audit(audit: SearchAudit) -> Summary:
    """Return the summary."""
    n, hits = len(audit.pairs), audit.disagreements
    count = Strong(f"{hits} of {n} pairs")
    share, words = audit.disagreement, f"{hits} of {n} pairs"
    drawn = charts.Interval(share, audit.interval, audit.rho, words, "probability that two runs differ")
    text = "Measured share, 95 % interval, claimed ρ."
    settings = {name: value for name, value in audit.settings.items() if value is not None}
    return Summary(
        kind="audit",
        title=f"search on {audit.environment}",
        badge=Badge(f"ρ = {audit.rho:g} {audit.verdict}", "bad" if audit.verdict == "rejected" else "plain"),
        subject=f"at level {audit.level:g}: search on {audit.environment}",
        lines=[line(count, f" print different policies; 95 % interval {span(*audit.interval)}"), line(_meaning(audit))],
        facts=_facts(audit),
        sections=(
            Section((Figure("interval", "Pairs that differ, and the claim", text, "interval", drawn),), "Evidence"),
            Section((_pairs(audit),)),
            Section((Listing("Search", {**settings, "seed of the audit": str(audit.seed)}),)),
        ),
        lead=f"{n} pairs of searches, episodes of at most {audit.horizon:,} steps",
        heading="Claim",
        caption="A pair: two runs, one shared seed, independent data.",
        mark=Mark("Fingerprint of the audit", digest(audit.to_dict()), "SHA-256 of the audit as canonical JSON."),
    )


def _meaning(audit: SearchAudit) -> str:
    if audit.alternative is not None:
        return f"Sequential test; the verdict 'not rejected' rules out a disagreement of {audit.alternative:g} or more"
    if audit.verdict == "rejected":
        chance = f"with probability at most {audit.p_value:.2g}"
        return f"If disagreement were ≤ {audit.rho:g}, so many would differ {chance}"
    needed = fewest_to_reject(len(audit.pairs), audit.rho, audit.level)
    if needed is None:
        return f"Too few pairs: not even {len(audit.pairs)} of them could reject; ask for more"
    return f"{needed} would reject; fewer are no proof"


def _facts(audit: SearchAudit) -> list[Fact]:
    n = len(audit.pairs)
    value, note = counted(round(audit.samples), "on average")
    facts = [
        Fact("certified", f"{audit.certified} of {2 * n}", "runs"),
        Fact("certified and different", str(audit.false), "pairs"),
        Fact("samples a run", value, f"{note}; seed {audit.seed} repeats this audit"),
    ]
    if audit.value is not None:
        words = f"on average; 95 % interval {span(audit.value.low, audit.value.high, 4)}, Student's"
        facts.append(Fact("return", f"{audit.value.mean:.4g}", words))
    return facts


def _pairs(audit: SearchAudit) -> Table:
    rows = [
        (
            str(number),
            Cell("same" if pair.same else "different", pair.parted, "good" if pair.same else "bad"),
            " and ".join(pair.statuses),
            " and ".join(f"{samples:,}" for samples in pair.samples),
            " and ".join("—" if x is None else f"{x:.5g}" for x in pair.values),
            " and ".join("—" if x is None else f"{x:.5g}" for x in pair.above),
        )
        for number, pair in enumerate(audit.pairs)
    ]
    head = ("pair", "policies", "status", "samples", "mean return", "certified above")
    return Table("pairs", "Pairs of runs", head, rows, first=20)
