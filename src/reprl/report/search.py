"""The summary of a search: its ladder, what the policy earns, what is certified; of two searches, where they part."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from reprl.artifacts.search import StoredSearch, parted
from reprl.artifacts.verify import compare_policies
from reprl.learning.search_result import RungRecord, SearchResult
from reprl.report import charts
from reprl.report.numbers import counted
from reprl.report.pair import side_by_side, summarize_verification
from reprl.report.run import STATUSES, digests_of
from reprl.report.summary import (
    Badge,
    Fact,
    Figure,
    Listing,
    Mark,
    On,
    Section,
    Summary,
    Table,
    line,
)


class Found(StoredSearch):
    """A search as it is shown: a result's, or what its folder holds."""

    __slots__ = ()

    @classmethod
    def of(cls, run: SearchResult | StoredSearch) -> Found:
        """Read a run once: a result makes its receipt anew whenever it is asked."""
        return cls(run.recipe, run.receipt, run.policy)

    @property
    def winner(self) -> RungRecord | None:
        """The rung whose winner is printed."""
        return self.receipt.details.winner

    @property
    def promises(self) -> list[Fact]:
        """Both promises, in a line each."""
        said, won = self.receipt.guarantee, self.winner
        same = said.words()[1].partition(": ")[2]
        if won is None or said.quality.status != "certified":
            why = (
                said.quality.source if said.quality.status == "none" else "returns have no bound, or no proposal passed"
            )
            good = f"nothing is promised: {why}"
        else:
            proof = f"[{said.quality.status}: {said.quality.source}]"
            good = f"mean return > {won.threshold:.5g}, with probability ≥ {1 - said.delta:.3g} {proof}"
        return [Fact("quality", good, prose=True), Fact("same policy", same, prose=True)]

    @property
    def effort(self) -> str:
        """Samples, episodes and time."""
        return f"{self.receipt.samples:,} in {self.receipt.episodes:,} episodes, {self.receipt.seconds:.1f} s"

    @property
    def earned(self) -> str:
        """What the printed policy earns."""
        found = self.receipt.details.baseline if self.winner is None else self.winner.earned
        if found is None:
            return "not played"
        return f"{found.mean:.5g}, 95 % interval {found.low:.5g} to {found.high:.5g}, {found.episodes:,} episodes"


def summarize_search(run: Found, more: Sequence[Fact] = ()) -> Summary:
    """Return the summary of one run; more are facts that only those know who ran it."""
    receipt, place = run.receipt, run.recipe.environment
    status = receipt.guarantee.status
    tone, meaning = STATUSES[status]
    return Summary(
        kind="run",
        title=place.name,
        badge=Badge(status, tone, On.HTML),
        facts=[*_facts(run), *more],
        sections=(
            Section([*_figures(run), _ladder(run)], "Ladder", "Each rung scans proposals for one that earns more."),
            Section((Listing("Settings", _settings(run)), Listing("Recipe and receipt", digests_of(run)))),
        ),
        warning=f"undecided: {receipt.guarantee.source}" if status == "none" else "",
        lead=f"{place.name}: episodes of at most {place.horizon:,} steps; the policy is {run.policy!r}.",
        heading="Guarantee",
        caption=f"{status}: {meaning}",
        mark=Mark(
            "Policy fingerprint", run.policy.fingerprint, "SHA-256 of the policy. Equal fingerprints, equal policies."
        ),
    )


def _facts(run: Found) -> list[Fact]:
    receipt, settings, both = run.receipt, run.recipe.settings, On.TERMINAL | On.PAGE
    details, won = receipt.details, run.winner
    facts = [Fact("fingerprint", run.policy.fingerprint, on=On.TERMINAL), *run.promises]
    facts.append(Fact("earns", run.earned, prose=True))
    if details.baseline is not None:
        facts.append(Fact("baseline", f"{details.baseline.mean:.5g}", "always the first action, or the given centre"))
    facts.append(Fact("samples", run.effort, on=On.TERMINAL | On.CARD))
    facts.append(Fact("samples", *counted(receipt.samples, "steps of the environment"), on=On.PAGE))
    facts.append(Fact("episodes", *counted(receipt.episodes, ""), on=On.PAGE))
    if settings.target is not None:
        words = "passed" if details.reached else "not passed"
        facts.append(Fact("target", f"{settings.target:g}", words))
    if won is None:
        facts.append(Fact("policy", "no proposal passed a rung: this is the baseline", on=both, prose=True))
    else:
        facts.append(Fact("candidate", f"{won.candidate} of rung {won.rung}", f"after {won.tried:,} were judged"))
    if details.undecided is not None:
        cut = details.undecided
        near = f"mean {cut.mean:.5g}, threshold {details.ladder[-1].threshold:.5g}, " if cut.episodes else ""
        words = f"candidate {cut.candidate} of rung {details.ladder[-1].rung}: {near}{cut.episodes:,} episodes"
        facts.append(Fact("undecided", words, on=both, prose=True))
    if details.clipped:
        facts.append(Fact("clipped", f"{details.clipped:,}", "returns lay outside the return range"))
    return [*facts, Fact("shared seed", str(run.recipe.shared_seed), "publish it with the recipe", On.HTML, True)]


def _ladder(run: Found) -> Table:
    rows = []
    ladder, cut = run.receipt.details.ladder, run.receipt.details.undecided
    for rung in ladder:
        passed = "none" if rung.candidate is None else str(rung.candidate)
        if rung is ladder[-1] and cut is not None:
            passed = "undecided"
        earned = (
            "—" if rung.earned is None else f"{rung.earned.mean:.5g} ({rung.earned.low:.5g} … {rung.earned.high:.5g})"
        )
        bars = (f"{rung.level:.5g}", f"{rung.threshold:.5g}")
        rows.append((str(rung.rung), *bars, passed, f"{rung.tried:,}", earned, f"{rung.samples:,}"))
    text = (
        "A winner is the first candidate, in shared order, above the threshold, which is the level and a shared draw."
    )
    head = ("rung", "level", "threshold", "winner", "judged", "mean return (95 %)", "samples")
    return Table("ladder", "Rungs", head, rows, text, first=40)


def _figures(run: Found) -> list[Figure]:
    """Mean returns of the winners, rung by rung, with intervals."""
    won = [rung for rung in run.receipt.details.ladder if rung.earned is not None]
    points, values = [], []
    for rung in won:
        earned = rung.earned
        assert earned is not None
        tip = f"rung {rung.rung}: candidate {rung.candidate} earns {earned.mean:.5g}, threshold {rung.threshold:.5g}"
        points.append(charts.Point(float(rung.rung), earned.mean, earned.low, earned.high, tip))
        values += [earned.low, earned.high, rung.threshold]
    title, text = "Return of each winner", "Mean return and 95 % interval of the candidate that each rung printed."
    if not points:
        return [Figure("climb", title, text, "empty", "no candidate passed")]
    target = run.recipe.settings.target
    level, label = (won[-1].threshold, "certified above") if target is None else (target, "target")
    low, high = min(*values, level), max(*values, level)
    air = 0.08 * (high - low) or 1.0
    axes = charts.Axis(-0.3, run.receipt.details.ladder[-1].rung + 0.3, whole=True), charts.Axis(low - air, high + air)
    drawn = charts.Curves(*axes, "rung", "mean return", level, label, [("winner", points)])
    return [Figure("climb", title, text, "curves", [drawn])]


def _settings(run: Found) -> dict[str, Any]:
    """What was set, and defaults; without what is left to the environment."""
    return {name: value for name, value in run.recipe.to_dict()["settings"].items() if value is not None}


def summarize_searches(runs: tuple[Found, Found]) -> Summary:
    """Return the summary of two runs: the same policy or not, and where they parted."""
    first, second = runs
    summary = summarize_verification(compare_policies(first.policy, second.policy))
    notes, (both, sides) = parted(first.receipt, second.receipt), _sides(runs)
    return summary._replace(
        title=first.recipe.environment.name,
        lines=[*summary.lines, *(line(f"{note[0].upper()}{note[1:]}.") for note in notes)],
        facts=[*summary.facts, *both],
        sections=[
            Section([sides]),
            *(Section([_ladder(run)], f"{name} run") for name, run in zip(("First", "Second"), runs, strict=True)),
        ],
        mark=Mark("Fingerprint of the first", first.policy.fingerprint, "SHA-256 of the policy"),
    )


def _sides(runs: Sequence[Found]) -> tuple[list[Fact], Table]:
    promises = [[fact.value for fact in run.promises] for run in runs]
    return side_by_side(
        [
            ("fingerprint", [run.policy.fingerprint for run in runs]),
            ("quality", [good for good, _ in promises]),
            ("same policy", [same for _, same in promises]),
            ("earns", [run.earned for run in runs]),
            ("samples", [run.effort for run in runs]),
            ("shared seed", [str(run.recipe.shared_seed) for run in runs]),
            ("recipe", [run.recipe.digest for run in runs]),
            ("data commitment", [run.receipt.data_commitment for run in runs]),
        ]
    )
