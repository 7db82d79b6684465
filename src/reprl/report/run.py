"""The summary of a run: what was learned, from how much, and what is promised of it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from reprl.artifacts.folder import StoredRun
from reprl.artifacts.receipt import Receipt
from reprl.artifacts.recipe import Recipe
from reprl.artifacts.search import StoredSearch
from reprl.assurance.certificate import CONFIDENCE, SOURCES, Certificate
from reprl.assurance.coverage import Coverage
from reprl.canonical.cellwise import AGREED
from reprl.guarantee import PROMISES
from reprl.learning.result import LearnResult
from reprl.learning.settings import PAPER_ONLY
from reprl.learning.worth import Note, Worth, baseline_name, every_policy, find_worth
from reprl.mdp.basis import DECIDERS, Basis
from reprl.mdp.labels import Labels
from reprl.mdp.policy import Policy
from reprl.report.committee import gain_fact, gain_lines, sections_for
from reprl.report.maps import Maps
from reprl.report.names import action_name, describe_world, state_name
from reprl.report.numbers import counted, number, percent
from reprl.report.shades import ranks, shade
from reprl.report.sketch import Sketch
from reprl.report.summary import Badge, Fact, Figure, Line, Listing, Mark, On, Section, Strong, Summary, line
from reprl.sources.environment import Environment
from reprl.sources.logs.check import Finding

NAMED = 5
"""Undecided cells that are named."""
STATUSES = {
    "proven": ("good", "a proof holds for the constants in use"),
    "certified": ("good", "proven from the data of this run"),
    "rehearsed": ("good", "second teams, simulated from this run's data, learned the same policy; not a proof"),
    "heuristic": ("warn", "no proof covers the constants in use; another environment may need more"),
    "none": ("bad", "nothing is promised"),
}
"""Tone of the badge and meaning of every status."""
_SUPPORTED = "among policies that do what the log supports"
_HELPS = (
    "a lower quality (docs/rehearsal.md); or a weaker promise, which often needs fewer samples: --agreement 0.95, "
    "or reprl register (docs/register.md)"
)
"""What a user may try who asked for the strict promise and got none."""


_FOLDED = ("accuracy", "rehearsal", "ties", "confidence", "tightest", "followed", "tolerance", "sampled cells", "earns")
"""Facts that a committee need not read, by their labels."""


class Run(NamedTuple):
    """A run as it is shown: a result's, or what its folder holds."""

    recipe: Recipe
    receipt: Receipt
    policy: Policy
    environment: Environment
    spread: float | None
    """Value of the best policy minus that of the worst, in the run's model, as far as it is known."""
    drift: str = ""
    """Evidence against stationary dynamics; in a folder only the promise says so."""
    apart: str = ""
    """Evidence that made a black box get a model for each step; not stored in folders."""

    @classmethod
    def of(cls, run: LearnResult | StoredRun) -> Run:
        """Read a run once: a result makes a new receipt at every access."""
        found = StoredRun(run.recipe, run.receipt, run.policy)
        if isinstance(run, LearnResult):
            return cls(*found, run.environment, run.spread, run.drift, run.apart)
        return cls(*found, found.environment, found.receipt.spread)

    @property
    def is_undecided(self) -> bool:
        """Whether it was rehearsed and undecided when its samples ran out."""
        return self.receipt.guarantee.status == "none" and self.receipt.rehearsal is not None

    @property
    def logged(self) -> bool:
        """Whether it was learned from a log."""
        return self.receipt.coverage is not None

    @property
    def scale(self) -> float:
        """What rescaled rewards are times in their own units."""
        return self.environment.scale

    @property
    def ran_out(self) -> str:
        """Why it stopped while it was undecided."""
        if self.drift:
            return f"{'the log' if self.logged else 'its samples'} contradicted stationary dynamics"
        return "the log ended" if self.logged else "the samples ran out"

    @property
    def source(self) -> str:
        """Where the support of the promise is described."""
        page = "docs/logs.md" if self.logged else "docs/rehearsal.md"
        return page if self.receipt.guarantee.status == "rehearsed" else self.receipt.guarantee.source

    @property
    def promise(self) -> str:
        """The promise in a line, with its status."""
        words, rehearsed, _ = self.receipt.guarantee.words(self.scale).partition(" [rehearsed")
        return f"{words}{f', {_SUPPORTED}' if self.logged else ''} [rehearsed: {self.source}]" if rehearsed else words

    @property
    def sentences(self) -> list[Line]:
        """The same in sentences."""
        promise = self.receipt.guarantee  # what is certified is so against every policy
        among = f" {_SUPPORTED}" if self.logged and promise.status != "certified" else ""
        if promise.status == "none":
            return [line("Nothing is promised: a second team may learn another policy.", on=On.HTML)]
        loss = promise.epsilon * self.scale
        same, good = (Strong(percent(max(0.0, 1 - chance))) for chance in (promise.rho, promise.delta))
        probably = " with probability at least "
        ends = [" learn ", Strong("exactly the same policy")]
        if promise.agreement < 1.0:
            ends = [" take the same action at ", Strong(percent(promise.agreement)), " of the steps of an episode"]
        start = "Two runs of this recipe, with the same shared seed and fresh, independent data,"
        ends = [start, *ends, probably, same, "."]
        earns = ["The policy earns within ", Strong(number(loss)), f" of the best possible{among}"]
        if promise.quality is not None:
            name = baseline_name(self.recipe.settings, self.environment)
            gain = f" of the gain of the best policy{among} over {name},"
            earns = ["The policy earns at least ", Strong(percent(promise.quality)), gain]
        kind = line(Strong(f"{promise.kind.capitalize()} promise"), f": {PROMISES[promise.kind]}.", on=On.HTML)
        found = [line(*ends, on=On.HTML), line(*earns, probably, good, ".", on=On.HTML), kind]
        return [*found, line(self.differing, on=On.HTML)] if self.differing else found

    @property
    def differing(self) -> str:
        """A remark on ρ if simulated teams with this shared seed did not all agree; otherwise empty."""
        found = self.receipt.rehearsal
        if found is None or not found.pairs or found.agree == found.of or self.receipt.guarantee.status != "rehearsed":
            return ""
        other = "learned another policy" if found.agreement is None else "agreed at too few steps"
        return (
            f"With this shared seed, {found.of - found.agree} of {found.of} simulated second teams {other}. The "
            "pairs under other seeds agree. ρ is an average over shared seeds; for this one it may be larger."
        )

    @property
    def effort(self) -> str:
        """Samples, episodes and time."""
        receipt = self.receipt
        episodes = f" in {receipt.episodes:,} episodes" if receipt.episodes else ""
        return f"{receipt.samples:,}{episodes}, {receipt.seconds:.1f} s"

    @property
    def epsilon(self) -> float:
        """The allowed loss in units of value: as asked, or estimated from the quality and the run's data."""
        choice = self.receipt.choice
        return self.recipe.settings.epsilon or (0.0 if choice is None else choice.epsilon or 0.0)

    @property
    def worth(self) -> Worth | None:
        """Estimated value of the policy, from the run's own data; None for the rule "paper"."""
        recipe, choice = self.recipe, self.receipt.choice
        return find_worth(choice, recipe.settings, self.environment, self.policy, recipe.shared_seed, self.spread)

    @property
    def accuracy(self) -> str:
        """ε in reward units, and as a share of the gap between the best and the worst policy."""
        world, epsilon, quality = self.environment, self.epsilon, self.recipe.settings.quality
        low, high = world.units
        length = world.criterion.effective_horizon
        words = f"ε = {epsilon * (high - low):.4g}; returns lie between {length * low:g} and {length * high:g}"
        if quality is not None:
            words = f"quality {quality:g}, which by this run's data means {words}"
        if world.units != (0.0, 1.0):
            words += f" (each reward from {low:g} to {high:g})"
        if self.spread:
            share, gap = percent(epsilon / self.spread), self.spread * (high - low)
            words += f"; ε is {share} of {gap:.3g}, the gap between the best and the worst policy"
        return words

    @property
    def ties(self) -> str:
        """How ties were broken; empty for the rule "paper"."""
        choice = self.receipt.choice
        return "" if choice is None else choice.words(self.recipe.settings.preference, self.scale)

    def _named(self, h: int | None, s: int) -> str:
        return state_name(self.environment, s) if h is None else self.environment.cell(h, s)

    @property
    def disputed(self) -> str:
        """The cells in which simulated teams differ, the most disputed first."""
        cells, noun = [((h, s), x) for h, s, x in self.receipt.to_dict()["undecided"]], "cells"
        if (self.policy.table == self.policy.table[0]).all():  # it does the same at every step: each state once
            cells, noun = [*{s: ((None, s), x) for (_, s), x in reversed(cells)}.values()][::-1], "states"
        shown = [f"{self._named(*at)} ({percent(x)} of teams differ)" for at, x in cells[:NAMED]]
        more = [f"and {len(cells) - NAMED} more {noun}"] if len(cells) > NAMED else []
        return "; ".join(shown + more) or "no cell in the rehearsal; the promise says why"


def summarize_run(
    run: Run, worth: Worth | None = None, idle: NDArray[np.bool_] | None = None, more: Sequence[Fact] = ()
) -> Summary:
    """Return the summary.

    worth is exact, where somebody knows it; idle, (H, S), is where a terminal shows no decision, None for what the run
    ignored; more are facts that only those know who ran it.
    """
    receipt, world, policy = run.receipt, run.environment, run.policy
    status, found = receipt.guarantee.status, receipt.rehearsal
    tone, meaning = STATUSES[status]
    disputed = None if found is None else found.apart > 0.0
    maps = Maps(world, receipt.visits.astype(np.float64))
    every = " The table below lists them all." if maps.listed else ""
    return Summary(
        kind="run",
        title=world.title,
        badge=Badge(status, tone, On.HTML),
        lines=[*gain_lines(run), *run.sentences],
        facts=[*_facts(run, worth), *more],
        sections=[*sections_for(run), *_sections(run, maps, maps.note + every)],
        warning=f"undecided: {run.ran_out} before this run could promise anything" if run.is_undecided else "",
        sketches=[
            Sketch(policy, world, receipt.tiers.ignorable if idle is None else idle, disputed, title=world.labels.name)
        ],
        lead=describe_world(world, world.labels.description),
        heading="Guarantee",
        caption=f"{status}: {meaning}. Source: {run.source}",
        mark=Mark(
            "Policy fingerprint", policy.fingerprint, "SHA-256 of the policy. Equal fingerprints, equal policies."
        ),
        maps=maps,
    )


def _sections(run: Run, maps: Maps, note: str) -> list[Section]:
    """Maps, settings and papers; for a log, all but the policy itself behind a fold."""
    figures = _figures(run, maps)
    papers = (Listing("Settings", _settings(run)), Listing("Recipe and receipt", digests_of(run)))
    if not run.logged:
        return [Section(figures, "Over steps and states", note), Section(papers)]
    plain = [each for each in figures if each.name in ("policy", "listing")]
    rest = [each for each in figures if each not in plain]
    return [
        Section(plain, "The policy", note),
        Section([*rest, *papers], fold="For specialists: maps of samples and values, settings, digests"),
    ]


def _note(run: Run) -> Note | None:
    """What is said of the policy's worth; of the paper's rule, only whether every policy would do."""
    if run.worth is not None:
        return run.worth.note
    return every_policy(run.spread, run.recipe.settings.epsilon, None, run.scale)


def share_of(alike: float) -> str:
    """A share in per cent, rounded down, so that nothing but all is 100 %."""
    return f"{math.floor(1000.0 * alike + 1e-9) / 10.0:g} %"


def note_facts(*runs: Run) -> list[Fact]:
    """Say that the goal is met too easily, where that is so in all of these runs and for one reason."""
    notes = [_note(run) for run in runs]
    if notes[0] is None or any(note is None or note.short != notes[0].short for note in notes):
        return []
    return [Fact("note", notes[0].text, prose=True)]


def _facts(run: Run, worth: Worth | None) -> list[Fact]:
    receipt, both = run.receipt, On.TERMINAL | On.PAGE
    facts = [Fact("fingerprint", run.policy.fingerprint, on=On.TERMINAL), *_tiles(run, worth)]
    if run.worth is not None:
        facts.append(Fact("earns", f"{run.worth.words}, by this run's data", prose=True))
    facts += note_facts(run)
    facts.append(Fact("samples", run.effort, on=On.TERMINAL | On.CARD))
    facts.append(Fact("promised", run.promise, on=On.TERMINAL))
    facts += [Fact("this seed", words, on=On.TERMINAL, prose=True) for words in (run.differing,) if words]
    if receipt.guarantee.status != "none":
        kind = receipt.guarantee.kind
        facts.append(Fact("promise kind", f"{kind}: {PROMISES[kind]}", on=On.TERMINAL, prose=True))
    facts.append(Fact("accuracy", run.accuracy, on=both, prose=True))
    if receipt.rehearsal is not None and not run.is_undecided:
        facts.append(Fact("rehearsal", str(receipt.rehearsal), prose=True))
    if receipt.rehearsal is not None and receipt.rehearsal.alike is not None:
        words = f"a second team is expected to take the same action at {share_of(receipt.rehearsal.alike)} of the steps"
        facts.append(Fact("same actions", words, prose=True))
    if receipt.certified is not None:
        facts += certificate_facts(receipt.certified.certificate, receipt.labels, run.scale)
    if receipt.choice is not None:
        facts.append(Fact("ties", run.ties, on=both, prose=True))
    if run.apart:
        each = (
            "each has its own model"
            if run.recipe.registration is None
            else "pooled to follow the candidate, not for its loss"
        )
        words = f"{each}, since the samples contradict stationary dynamics: {run.apart}"
        facts.append(Fact("steps", words, on=both, prose=True))
    if receipt.choice is not None and receipt.choice.followed:
        followed = run.recipe.candidate or receipt.choice.published
        words = "the recipe's candidate" + ("" if followed is None else f", {followed.words(run.scale)}")
        made = run.recipe.registration
        if made is not None:
            words += f"; chosen by {made.by} on {made.at}, on {made.samples:,} pilot samples that no run may use again"
        facts.append(Fact("followed", words, on=both, prose=True))
    if receipt.coverage is not None:
        facts += _coverage(receipt.coverage, run.environment)
    if receipt.findings:
        facts.append(Fact("the log", _finding(receipt.findings), prose=True))
    if run.policy.basis is not None:
        facts.append(Fact("decided by", _deciders(run.policy.basis), prose=True))
    if run.is_undecided:
        facts += _undecided(run)
    facts.append(Fact("shared seed", str(run.recipe.shared_seed), "publish it with the recipe", On.HTML))
    return [*gain_fact(run), *(each._replace(folded=run.logged and each.label in _FOLDED) for each in facts)]


def _undecided(run: Run) -> list[Fact]:
    """Where it is undecided and, where a weaker promise could be asked for, what may help."""
    asked, facts = run.recipe.settings, [Fact("undecided", run.disputed, on=On.TERMINAL)]
    if asked.agreement == 1.0 and run.recipe.registration is None:
        facts.append(Fact("what helps", _HELPS, on=On.TERMINAL, prose=True))
    return facts


def _tiles(run: Run, worth: Worth | None) -> list[Fact]:
    """Figures that a page shows at a glance."""
    receipt = run.receipt
    found = [] if worth is None else [("exact value", f"{worth.value:.4g}", worth.others)]
    episodes = counted(receipt.episodes, "") if receipt.episodes else ("—", "parallel sampling has none")
    reached = f"{int((receipt.visits > 0).sum()):,} of {receipt.visits.size:,}"
    found += [("samples", *counted(receipt.samples, "observed transitions")), ("episodes", *episodes)]
    found.append(("sampled cells", reached, "(step, state) pairs with data"))
    if receipt.choice is not None:
        how = "followed" if receipt.choice.followed else "chosen"
        note = f"candidate {receipt.choice.candidate}, {how}"
        note = "scale of the tolerances of all states" if receipt.choice.kind == AGREED else note
        found.append(("tolerance", number(run.scale * receipt.choice.tolerance), note))
    else:
        tiers = receipt.tiers.count
        found.append(("tiers", str(tiers), "of reachability" if tiers > 1 else "nothing is ignored"))
    return [Fact(*each, On.PAGE) for each in found]


def certificate_facts(found: Certificate, labels: Labels, scale: float | None) -> list[Fact]:
    """What a certificate says; labels are the names of states and actions, scale is as in its words."""
    facts, both = [Fact("certificate", found.words(scale), prose=True)], On.TERMINAL | On.PAGE
    if found.fingerprint is not None:
        facts.append(Fact("proven policy" if found.proven else "ahead", found.fingerprint, on=On.TERMINAL))
    words = f"δ = {found.delta:g}, {CONFIDENCE}; {SOURCES[found.source]}"
    facts.append(Fact("confidence", words, on=both, prose=True))
    if found.tightest is not None:
        h, s, a = found.tightest
        words = f"step {h}, state {labels.state(s)}, action {labels.action(a)}"
        facts.append(Fact("tightest", f"{words}, with a proven margin of {found.margin:.3g}", on=both, prose=True))
    if found.undecided and not found.proven:
        cells = ", ".join(f"step {h} state {labels.state(s)}" for h, s in found.undecided[:NAMED])
        more = f" and {len(found.undecided) - NAMED} more" if len(found.undecided) > NAMED else ""
        facts.append(Fact("not decided", cells + more, on=both, prose=True))
    return facts


def _coverage(found: Coverage, world: Environment) -> list[Fact]:
    """What a log says of the policy; values in the units of its rewards."""
    value, floor, top, practice = map(
        world.original_return, (found.value, found.value_low, found.value_high, found.practice)
    )
    gain = [world.scale * x for x in (found.gain_low, found.gain_high)]

    def words(x: float) -> str:
        return f"{x:,.0f}" if abs(x) >= 1e4 else f"{x:.4g}"

    earned = f"practice earns {words(practice)}"
    rows = [
        ("covers", f"{found.covered:.1%} of the log's visits are in states where the data decide"),
        ("alike", f"in {found.alike:.1%} of these the log took the policy's action"),
        ("value", f"{words(value)} by the log, 95 % interval {words(floor)} to {words(top)}; {earned}"),
        ("gain", f"{words(gain[0])} to {words(gain[1])} over practice, 95 % interval"),
    ]
    if found.unknown > 0.0:
        worth = world.scale * found.unknown
        rows.append(("hardly reached", f"states that the log hardly reaches could be worth {worth:.3g} more"))
    left = [
        (found.beyond, "rows at the end of the horizon, or after it, were left out"),
        (found.cut, "episodes stop early, not done"),
    ]
    if any(count for count, _ in left):
        rows.append(("left out", "; ".join(f"{count:,} {what}" for count, what in left if count)))
    return [Fact(label, words, on=On.TERMINAL | On.PAGE, prose=True) for label, words in rows]


def _finding(findings: Sequence[Finding]) -> str:
    """The worst that was found, with what to do about it."""
    more = f" (and {len(findings) - 1} more: reprl check-log)" if len(findings) > 1 else ""
    return f"{findings[0]}{more}"


def _deciders(basis: Basis) -> str:
    """How many cells data, the preference and nobody decided."""
    found = basis.counts()
    return (
        f"data in {found['data']:,} cells, the preference among equal actions in {found['preference']:,}; "
        f"{found['default']:,} hold a default: too little is known there, or the policy never reaches them"
    )


def _figures(run: Run, maps: Maps) -> list[Figure]:
    receipt, policy = run.receipt, run.policy
    low, high = run.environment.units
    visits, tiers = receipt.visits.astype(np.float64), receipt.tiers
    values = receipt.values[:-1] * (high - low) + low * run.environment.criterion.remaining[:, None]
    for label, told, names in (
        ("action", policy.table, maps.names),
        ("tier", tiers.level, ()),
        ("samples", visits, ()),
        ("value", values, ()),
    ):
        maps.tell(label, told, names)
    if policy.basis is not None:
        maps.tell("decided by", policy.basis.decided, DECIDERS)
        usual = policy.basis.usual
        maps.tell("practice mostly", np.where(usual < 0, len(maps.names), usual), [*maps.names, "never there"])
    last = "ignored" if tiers.count > 1 else "every state"
    caption = "How easily a state is reached at a step: tier 1 most easily."
    if receipt.rule == "canonical":
        caption = "Where the policy is often enough to decide; elsewhere it takes the most preferred action."
    apart = None if receipt.rehearsal is None else receipt.rehearsal.apart
    text = "Observed transitions from each state at each step, all actions together."
    scale = shade(visits, log=True, none="no samples")
    figures = [
        maps.policy(policy.table, tiers.ignorable, None if apart is None else apart > 0.0),
        maps.figure("tiers", "Tiers", caption, ranks(tiers.level, tiers.count, "tier", last)),
        maps.figure("samples", "Samples", text, scale),
    ]
    text = "Expected reward still to come, as the decision estimated it."
    figures.append(maps.figure("values", "Estimated value", text, shade(values, low=min(0.0, float(values.min())))))
    if receipt.rule == "paper":
        figures.append(_fractional(run, maps))
    if apart is not None:
        title, text = "Undecided", "Share of the simulated second teams that would do something else."
        if apart.any():
            maps.tell("teams that differ", apart)
            scale = shade(apart, "orange", low=0.0, high=1.0, none="none of them")
            figures.append(maps.figure("undecided", title, text, scale))
        else:
            figures.append(Figure("undecided", title, text, "empty", "all of them do the same everywhere"))
    if maps.listed:
        text = (
            "What to do from the first step to the last, one bar for each stretch with one action; grey: no decision."
        )
        rows = maps.listing(policy.table, tiers.ignorable, visits)
        figures.append(Figure("listing", "Every state", text, "listing", rows, wide=True))
    return figures


def _fractional(run: Run, maps: Maps) -> Figure:
    receipt, title = run.receipt, "μ̂: how often under-explored"
    if receipt.fractional is None or not len(receipt.fractional):
        text = "Parallel sampling reaches every state at will, so no state is ever under-explored."
        return Figure("fractional", title, text, "empty", "μ̂ = 0 everywhere")
    for k, table in enumerate(receipt.fractional):
        maps.tell(f"μ̂ of tier {k + 1}", table)
    for k, table in enumerate(() if receipt.ignored is None else receipt.ignored):
        maps.tell(f"left out of tier {k + 1}", table, ("no", "yes"))
    text = "Share of exploration runs that saw a state too seldom for a tier; between 0 and 1 the shared seed decides."
    scales = [shade(table, low=0.0, high=1.0) for table in receipt.fractional]
    return maps.figure("fractional", title, text, *scales, tabs=[f"tier {k + 1}" for k in range(len(scales))])


def digests_of(run: Run | StoredSearch) -> dict[str, Any]:
    """Digests, commitment and versions of a run of either kind."""
    document = run.receipt.to_dict()
    shown = {"recipe digest": run.recipe.digest, "receipt digest": document["digest"]}
    if isinstance(run, Run) and run.policy.names is not None:
        shown["names digest"] = run.policy.names
    for name in ("data_commitment", "package_version", "stream_version"):
        shown[name.replace("_", " ")] = document[name]
    return {**shown, "seconds": f"{document['timings']['seconds']:.3g}"}


def _settings(run: Run) -> dict[str, Any]:
    """The settings that the rule has a use for, with actions by name."""
    settings = run.recipe.settings
    hidden = PAPER_ONLY if settings.rule == "canonical" else ("preference",)
    shown: dict[str, Any] = {name: value for name, value in settings.to_dict().items() if name not in hidden}
    if isinstance(settings.preference, tuple):
        shown["preference"] = ", ".join(action_name(run.environment, int(a)) for a in settings.preference)
    return shown
