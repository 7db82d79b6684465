"""The summary of a run: what was learned, from how much, and what is promised of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from reprl.artifacts.folder import StoredRun
from reprl.artifacts.receipt import Receipt
from reprl.artifacts.recipe import Recipe
from reprl.artifacts.search import StoredSearch
from reprl.guarantee import Guarantee
from reprl.learning.result import LearnResult, SoftDetails
from reprl.learning.settings import PAPER_ONLY
from reprl.learning.worth import Note, Worth, every_policy, find_worth
from reprl.mdp.basis import DECIDERS, Basis
from reprl.mdp.policy import Policy
from reprl.report.committee import gain_fact, gain_interval, gain_lines, sections_for
from reprl.report.maps import Maps
from reprl.report.names import action_name, describe_world, state_name
from reprl.report.numbers import counted, percent
from reprl.report.shades import ranks, shade
from reprl.report.sketch import Sketch
from reprl.report.summary import Badge, Fact, Figure, Listing, Mark, On, Section, Summary
from reprl.sources.environment import Environment
from reprl.sources.logs.check import Finding
from reprl.sources.logs.coverage import Coverage

NAMED = 5
"""Cells that are named in which simulated teams differ."""
STATUSES = {
    "proven": ("good", "a proof holds for the constants in use"),
    "certified": ("good", "proven from the data of this run"),
    "rehearsed": ("good", "second teams, simulated from this run's data, support it; not a proof"),
    "none": ("bad", "nothing is promised"),
}
"""Tone of the badge and meaning of every status."""
RULE_ONLY = ("quality", "baseline", "preference", "stationary", "min_probability")
"""Settings that the paper's rule has no use for."""


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
    needed: float | None = None
    """Samples that equality is forecast to need; not stored in folders."""

    @classmethod
    def of(cls, run: LearnResult | StoredRun) -> Run:
        """Read a run once: a result makes a new receipt at every access."""
        found = StoredRun(run.recipe, run.receipt, run.policy)
        if isinstance(run, LearnResult):
            needed = run.details.needed if isinstance(run.details, SoftDetails) else None
            return cls(*found, run.environment, run.spread, run.drift, needed)
        return cls(*found, found.environment, found.receipt.spread)

    @property
    def answer(self) -> str:
        """What it came to, in a word: of the default rule whether both promises are kept; else its status."""
        said = self.receipt.guarantee
        if self.receipt.verdict is None:
            return said.status
        return "decided" if said.decided else "undecided" if said.quality.status == "none" else "quality"

    @property
    def tone(self) -> str:
        """Of the badge that says it."""
        return {"decided": "good", "quality": "plain", "undecided": "bad"}.get(self.answer) or STATUSES[self.answer][0]

    @property
    def logged(self) -> bool:
        """Whether it was learned from a log."""
        return self.receipt.coverage is not None

    @property
    def warning(self) -> str:
        """The last words of one that promises nothing; empty for others."""
        if self.answer != "undecided":
            return ""
        if self.drift:
            why = f"{'the log' if self.logged else 'its samples'} contradicted stationary dynamics"
        else:
            why = "the log ended" if self.logged else "the samples ran out"
        return f"undecided: {why} before this run could promise anything"

    @property
    def cost(self) -> str:
        """Samples and episodes."""
        receipt = self.receipt
        return f"{receipt.samples:,}" + (f" in {receipt.episodes:,} episodes" if receipt.episodes else "")

    @property
    def effort(self) -> str:
        """The same, and time."""
        return f"{self.cost}, {self.receipt.seconds:.1f} s"

    @property
    def worth(self) -> Worth | None:
        """Estimated value of the policy, from the run's own data; None for the paper's rule."""
        return find_worth(self.receipt.choice, self.recipe.settings, self.environment, self.policy, self.spread)

    def earns(self, exact: Worth | None = None) -> str:
        """What the policy earns beside others: exactly where somebody knows it, else by the data; empty if neither."""
        found, value = self.receipt.coverage, self.environment.original_return
        if exact is not None:
            return f"exactly {exact.words}"
        if found is not None:
            between = f"{_short(value(found.value_low))} to {_short(value(found.value_high))}"
            return f"{_short(value(found.value))}, 95 % interval {between}; practice {_short(value(found.practice))}"
        return "" if self.worth is None else f"{self.worth.words}, by this run's data"

    @property
    def disputed(self) -> str:
        """The cells in which simulated teams differ, the most disputed first; empty if there are none."""
        if self.receipt.verdict is None:
            return ""
        cells, noun = [((h, s), x) for h, s, x in self.receipt.to_dict()["verdict"]["apart"]], "cells"
        if (self.policy.table == self.policy.table[0]).all():  # it does the same at every step: each state once
            most = {s: x for (_, s), x in reversed(cells)}
            cells, noun = sorted((((None, s), x) for s, x in most.items()), key=lambda cell: -cell[1]), "states"
        shown = [f"{self._named(*at)} ({percent(x)} of teams)" for at, x in cells[:NAMED]]
        more = [f"and {len(cells) - NAMED} more {noun}"] if len(cells) > NAMED else []
        return "; ".join(shown + more)

    def _named(self, h: int | None, s: int) -> str:
        return state_name(self.environment, s) if h is None else self.environment.cell(h, s)


def promise_facts(said: Guarantee, scale: float) -> list[Fact]:
    """Return both promises with their sources, and what they rest on; scale is as for ``Guarantee.words``."""
    both = replace(said, assumed="").words(scale)
    facts = [Fact(*text.partition(": ")[::2], prose=True) for text in both]
    return [*facts, Fact("assumed", said.assumed, prose=True)] if said.assumed else facts


def confirm_words(run: Run, folder: str, other: str = "") -> str:
    """Return the command by which a second team confirms the quality; empty where no share of a gain is promised.

    other names the environment where that is not in the recipe.
    """
    said, choice = run.receipt.guarantee, run.receipt.choice
    if choice is None or said.quality.status == "none":
        return ""
    gain = choice.best - choice.baseline
    quality = said.share
    if quality is None:  # an ε was asked for: the share of the gain that it comes to, rounded down
        quality = 0.0 if gain <= 0.0 else int(100.0 * (1.0 - said.epsilon / gain)) / 100.0
    log = " --log FILE" if run.logged else ""
    return f"reprl confirm {folder}{other}{log} --quality {quality:g}" if quality > 0.0 else ""


def summarize_run(
    run: Run, worth: Worth | None = None, idle: NDArray[np.bool_] | None = None, more: Sequence[Fact] = ()
) -> Summary:
    """Return the summary.

    worth is exact, where somebody knows it; idle, (H, S), is where a terminal shows no decision, None for what the run
    ignored; more are facts that only those know who ran it.
    """
    receipt, world, policy = run.receipt, run.environment, run.policy
    said, apart = receipt.guarantee, receipt.undecided
    disputed = None if apart is None else apart > 0.0
    maps = Maps(world, receipt.visits.astype(np.float64))
    every = " The table below lists them all." if maps.listed else ""
    statuses = dict.fromkeys((said.quality.status, said.same.status))
    return Summary(
        kind="run",
        title=world.title,
        badge=Badge(run.answer, run.tone, On.HTML),
        lines=gain_lines(run),
        facts=[*_facts(run, worth), *more],
        sections=[*sections_for(run), *_sections(run, maps, maps.note + every)],
        warning=run.warning,
        sketches=[
            Sketch(policy, world, receipt.tiers.ignorable if idle is None else idle, disputed, title=world.labels.name)
        ],
        lead=describe_world(world, world.labels.description),
        heading="Guarantee",
        caption="; ".join(f"{status}: {STATUSES[status][1]}" for status in statuses),
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
    return every_policy(run.spread, run.recipe.settings.epsilon, None, run.environment.scale)


def note_facts(*runs: Run) -> list[Fact]:
    """Say that the goal is met too easily, where that is so in all of these runs and for one reason."""
    notes = [_note(run) for run in runs]
    if notes[0] is None or any(note is None or note.short != notes[0].short for note in notes):
        return []
    return [Fact("note", notes[0].text, prose=True)]


def _facts(run: Run, worth: Worth | None) -> list[Fact]:
    receipt, both = run.receipt, On.TERMINAL | On.PAGE
    facts = [Fact("fingerprint", run.policy.fingerprint, on=On.TERMINAL), *_tiles(run)]
    facts += promise_facts(receipt.guarantee, run.environment.scale)
    if run.logged:
        facts.append(Fact("among", "policies of actions that practice takes often enough: docs/logs.md", prose=True))
    earns, found = run.earns(worth), receipt.coverage
    facts += [Fact("earns", earns, prose=True)] if earns else []
    if found is not None:
        low, high = gain_interval(run, found)
        facts.append(Fact("gain", f"{_short(low)} to {_short(high)} over practice, 95 % interval", on=On.TERMINAL))
    facts += note_facts(run)
    facts.append(Fact("samples", run.effort, on=On.TERMINAL | On.CARD))
    facts += [] if found is None else _coverage(found)
    if receipt.findings:
        facts.append(Fact("the log", _finding(receipt.findings), prose=True))
    if run.policy.basis is not None:
        facts.append(Fact("decided by", _deciders(run.policy.basis), prose=True, folded=run.logged))
    if receipt.verdict is not None and receipt.guarantee.same.status == "none":
        facts += [Fact("teams differ", run.disputed, on=both, prose=True)] if run.disputed else []
        words = confirm_words(run, "DIR")
        how = f"can confirm the quality with this run's folder DIR: {words}"
        facts += [Fact("second team", how, on=On.HTML, prose=True)] if words else []
    facts.append(Fact("shared seed", str(run.recipe.shared_seed), "publish it with the recipe", On.HTML))
    return [*gain_fact(run), *facts]


def _tiles(run: Run) -> list[Fact]:
    """Figures that a page shows at a glance."""
    receipt = run.receipt
    episodes = counted(receipt.episodes, "") if receipt.episodes else ("—", "parallel sampling has none")
    reached = f"{int((receipt.visits > 0).sum()):,} of {receipt.visits.size:,}"
    found = [Fact("samples", *counted(receipt.samples, "observed transitions"), On.PAGE)]
    found.append(Fact("episodes", *episodes, On.PAGE))
    found.append(Fact("sampled cells", reached, "(step, state) pairs with data", On.PAGE, folded=run.logged))
    if receipt.choice is None:
        tiers = receipt.tiers.count
        note = "of reachability" if tiers > 1 else "nothing is ignored"
        found.append(Fact("tiers", str(tiers), note, On.PAGE))
    return found


def _coverage(found: Coverage) -> list[Fact]:
    """How much of a log speaks of the policy."""
    rows = [
        ("covers", f"{found.covered:.1%} of the log's visits are in states where the data decide"),
        ("alike", f"in {found.alike:.1%} of these the log took the policy's action"),
    ]
    left = [
        (found.beyond, "rows at the end of the horizon, or after it, were left out"),
        (found.cut, "episodes stop early, not done"),
    ]
    if any(count for count, _ in left):
        rows.append(("left out", "; ".join(f"{count:,} {what}" for count, what in left if count)))
    return [Fact(label, words, on=On.TERMINAL | On.PAGE, prose=True) for label, words in rows]


def _short(value: float) -> str:
    """A value in the units of a log's rewards."""
    return f"{value:,.0f}" if abs(value) >= 1e4 else f"{value:.4g}"


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
    last = "every state" if tiers.count == 1 else "never reached" if receipt.rule == "soft" else "ignored"
    caption = "How easily a state is reached at a step: tier 1 most easily."
    if receipt.rule == "soft":
        caption = "Tier 1: where the policy comes, by the run's own data; tier 2: where it does not."
    apart = receipt.undecided
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
        title, text = "Teams that differ", "Share of the simulated second teams that would do something else."
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
    hidden = PAPER_ONLY if settings.rule == "soft" else RULE_ONLY
    shown: dict[str, Any] = {name: value for name, value in settings.to_dict().items() if name not in hidden}
    if isinstance(settings.preference, tuple):
        shown["preference"] = ", ".join(action_name(run.environment, int(a)) for a in settings.preference)
    return shown
