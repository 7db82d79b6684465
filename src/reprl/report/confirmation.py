"""The summary of a confirmation: of a return above a target, or of a quality; which of the two, it says."""

from __future__ import annotations

from reprl.artifacts.confirm_quality import QualityConfirmation
from reprl.artifacts.confirmation import Confirmation
from reprl.report import charts
from reprl.report.numbers import percent
from reprl.report.summary import Badge, Fact, Figure, Line, Listing, Mark, On, Section, Strong, Summary, line

_BINS = 20
_TONES = {"confirmed": "good", "refuted": "bad", "undecided": "warn"}


def summarize_confirmation(found: Confirmation) -> Summary:
    """Return the summary."""
    claim = f"{found.policy} earns more than {found.target:g} on {found.environment}"
    place = {
        "environment": found.environment,
        "digest": found.environment_digest,
        "steps of an episode, at most": found.horizon,
        "bounds of a return": list(found.return_range),
    }
    about = {"policy": found.policy, "fingerprint": found.fingerprint, "data commitment": found.data_commitment}
    drawn = [Figure("returns", "Returns", "Episodes that decided; orange: at most the target.", "bars", _bars(found))]
    return Summary(
        kind="confirmation",
        title=claim,
        badge=Badge(found.verdict, _TONES[found.verdict]),
        subject=claim,
        lines=_lines(found),
        facts=_facts(found),
        sections=(
            *((Section(drawn, "Evidence"),) if found.returns else ()),
            Section((Listing("Environment", place), Listing("Policy", about))),
        ),
        lead=f"{found.played:,} episodes of at most {found.horizon:,} steps",
        heading="Claim",
        caption=_CAPTIONS[found.status],
        mark=Mark("Fingerprint of the confirmation", found.digest, "SHA-256 of everything but the seconds."),
    )


_CAPTIONS = {
    "certified": "Valid at any stopping time, for independent episodes and bounded returns (docs/proofs/search.md §5).",
    "rehearsed": "An approximate interval from logged episodes, for Markov states (docs/logs.md).",
    "none": "The samples ran out before the test decided.",
}


def _bracket(status: str) -> str:
    return "" if status == "none" else f" [{status}]"


def _lines(found: Confirmation) -> list[Line]:
    answers = {
        "confirmed": "The expected return is above the target.",
        "refuted": "The expected return is below the target.",
        "undecided": "Nothing is certified: take more samples (max_samples), or a target farther from the mean.",
    }
    lines = [line(Strong(answers[found.verdict]))]
    if found.status == "certified":
        lines.append(line(f"A false answer has probability at most {found.delta:g}."))
    return lines


def _facts(found: Confirmation) -> list[Fact]:
    low, high = found.interval
    facts = [
        Fact("test", f"a return above a target{_bracket(found.status)}", prose=True),
        Fact("target", f"{found.target:g}"),
        Fact("mean return", f"{found.mean:.6g}", f"in [{low:.6g}, {high:.6g}], each end at level {found.delta:g}"),
        Fact("episodes", f"{found.played:,}", f"of which the first {found.episodes:,} decided"),
        Fact("samples", f"{found.samples:,}"),
    ]
    if found.unseen is not None:
        facts.append(
            Fact("actions that the log never tried", f"{found.unseen:.4g}", "more could be earned there, at most")
        )
    if found.fingerprint is not None:
        facts.append(Fact("policy", found.fingerprint[:12], found.policy))
    return facts


def _bars(found: Confirmation) -> charts.Bars:
    """Episodes by their return, in bins of equal width where there are many returns."""
    values = [value for value, _ in found.returns]
    low, high = (min(values), max(values)) if values else (0.0, 0.0)
    width = (high - low) / _BINS
    counts: dict[float, int] = {}
    for value, count in found.returns:
        place = value if len(values) <= _BINS else low + width * min(_BINS - 1, int((value - low) / width))
        counts[place] = counts.get(place, 0) + count
    rows = [
        charts.Bar(
            f"{start:.5g}" if len(values) <= _BINS else f"{start:.4g} to {start + width:.4g}",
            float(count),
            f"{count:,}",
            f"{count:,} of {found.episodes:,} episodes",
            colour=0 if start > found.target else 1,
        )
        for start, count in sorted(counts.items())
    ]
    return charts.Bars(charts.Axis.over([row.value for row in rows] or [1.0], zero=True), rows)


def summarize_quality(found: QualityConfirmation) -> Summary:
    """Return the summary of the answer to a claim about a quality."""
    claim = f"{found.fingerprint[:12]} earns at least {percent(found.quality)} of the gain on {found.environment}"
    answers = {
        "confirmed": "By these data the policy has the quality.",
        "refuted": "On both halves of these data another policy beats it by more than is allowed.",
        "undecided": "Nothing is promised: these data do not decide. More of them, or a lower quality, may.",
    }
    figure = f"{found.value:.4g}; the best policy {found.best:.4g}, the baseline {found.baseline:.4g}; by these data"
    facts = [
        Fact("test", f"quality, by simulated data sets{_bracket(found.status)}", prose=True),
        Fact("data sets", f"{found.content} of {found.teams}", "that were simulated do not say that it loses too much"),
        Fact("earns", figure, prose=True),
        Fact("samples", f"{found.samples:,}", f"in {found.episodes:,} episodes" if found.episodes else ""),
        Fact("policy", found.fingerprint, on=On.TERMINAL),
    ]
    if found.min_probability > 0.0:
        rare = f"no outcome that matters is rarer than 1 in {1.0 / found.min_probability:.3g}"
        facts.append(Fact("assumed", f"{rare} (min_probability={found.min_probability:g})", prose=True))
    about = {
        "environment": found.environment,
        "digest": found.environment_digest,
        "fingerprint of the policy": found.fingerprint,
        "data commitment": found.data_commitment,
    }
    lines = [line(Strong(answers[found.verdict]))]
    if found.status != "none":
        lines.append(line(f"A false answer has probability at most {found.delta:g}: rehearsed, not proven."))
    return Summary(
        kind="confirmation",
        title=claim,
        badge=Badge(found.verdict, _TONES[found.verdict]),
        subject=claim,
        lines=lines,
        facts=facts,
        sections=[Section([Listing("Policy and environment", about)])],
        lead=f"{found.samples:,} samples of one's own",
        heading="Claim",
        caption="Simulated data sets say whether the policy loses more than is allowed (docs/confirm.md).",
        mark=Mark("Fingerprint of the confirmation", found.digest, "SHA-256 of everything but the seconds."),
    )
