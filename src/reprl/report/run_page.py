"""The page of a run: what was learned, from how much, and what is promised of it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from reprl.artifacts.folder import StoredRun
from reprl.assurance.certificate import SOURCES
from reprl.learning.settings import SAMPLED_ONLY
from reprl.report.listing import policy_listing
from reprl.report.maps import Maps
from reprl.report.names import action_name
from reprl.report.page import badge, counted, escape, facts, figure, fingerprint, number, page, percent, promises, tiles
from reprl.report.shades import ranks, shade
from reprl.report.worth import Worth
from reprl.sources.environment import Environment
from reprl.storage.documents import plain


def run_page(run: StoredRun, worth: Worth | None = None) -> bytes:
    """Return the page; with the policy's value where somebody knows it."""
    world = run.environment
    maps = Maps(world, run.receipt.visits.astype(np.float64))
    settings = facts("Settings", _settings(run))
    every = " The table below lists them all." if maps.listed else ""
    body = [
        f'<section class="card top">{_guarantee(run, worth)}{_fingerprint(run)}</section>',
        tiles(_tiles(run, worth)),
        f'<h2 class="part">Over steps and states</h2><p class="note">{escape(maps.note)}{every}</p>{maps.slider()}',
        f'<div class="figures">{_figures(run, maps)}</div>',
        policy_listing(maps, run.policy.table, run.receipt.tiers.ignorable, run.receipt.visits.astype(np.float64))
        if maps.listed
        else "",
        f'<div class="figures">{settings}{facts("Recipe and receipt", _papers(run))}</div>',
        _promises(run),
    ]
    return page("run", world.title, lead(world, world.labels.description), ARROW + "".join(body), maps.data())


ARROW = (
    '<svg class="defs" aria-hidden="true"><defs><g id="arrow"><path class="shaft" d="M-.27 0H.1"/>'
    '<path class="head" d="M.05 -.19L.31 0L.05 .19Z"/></g></defs></svg>'
)


def lead(world: Environment, description: str = "") -> str:
    """Describe an environment in a line; audits and comparisons carry no words of its own for it."""
    options = ", ".join(f"{name} {value}" for name, value in plain(world.options).items())
    sizes = f"{world.n_states:,} states, {world.n_actions:,} actions, {world.criterion}"
    parts = (description, sizes, options)
    return " · ".join(part for part in parts if part)


STATUSES = {
    "proven": ("good", "a written proof holds with the constants that ran"),
    "certified": ("good", "proven from the data of this very run"),
    "rehearsed": ("good", "second teams were simulated from this run's own data and agreed; a simulation, not a proof"),
    "heuristic": ("warn", "constants that no proof pins; another environment may need more"),
    "none": ("bad", "nothing supports a figure, so none is shown"),
}
"""Tone of the badge and meaning of every status."""


def promise_words(run: StoredRun) -> str:
    """The promise of a run in a line."""
    promise = run.receipt.guarantee
    if promise.status == "none":
        return "nothing"
    return (
        f"the same policy with probability ≥ {percent(max(0.0, 1 - promise.rho))}; within {number(promise.epsilon)} of "
        f"the best with probability ≥ {percent(max(0.0, 1 - promise.delta))}"
    )


def _guarantee(run: StoredRun, worth: Worth | None) -> str:
    promise = run.receipt.guarantee
    tone, meaning = STATUSES[promise.status]
    if promise.status == "none":
        sentence = '<p class="sentence">Nothing is promised of this policy: a second team may come to another one.</p>'
    else:
        sentence = (
            f'<p class="sentence">Two runs of this recipe, with the same shared seed and fresh, independent data, end '
            f"in <strong>exactly the same policy</strong> with probability at least "
            f"<strong>{percent(max(0.0, 1 - promise.rho))}</strong>.</p>"
            f'<p class="sentence second">The policy earns within <strong>{number(promise.epsilon)}</strong>'
            f"{_original(run, promise.epsilon)} of the best possible with probability at least "
            f"<strong>{percent(max(0.0, 1 - promise.delta))}</strong>.</p>"
        )
    if worth is not None:
        sentence += (
            f'<p class="sentence second" id="worth">It is worth <strong>{worth.value:.4g}</strong>, the best policy '
            f"<strong>{worth.best:.4g}</strong>: {number(max(0.0, worth.best - worth.value))} is lost, where ε allows "
            f"{number(worth.epsilon)}.</p>"
        )
    mark = badge(promise.status, tone)
    page = "reprl docs rehearsal" if run.receipt.coverage is None else "reprl docs logs"
    source = page if promise.status == "rehearsed" else promise.source
    return (
        f'<div class="guarantee" id="guarantee"><h2>Guarantee {mark}</h2>{sentence}{_decided(run)}'
        f'<p class="caption"><b>{escape(promise.status)}</b> — {meaning}. Source: {escape(source)}</p></div>'
    )


def _original(run: StoredRun, value: float) -> str:
    """The same in the rewards' own units, where they were rescaled."""
    original = run.environment.original(value)
    return "" if original is None else f" ({number(original)} in the rewards' own units)"


def _decided(run: StoredRun) -> str:
    """How the canonical rule came to the policy, in sentences."""
    receipt, settings = run.receipt, run.recipe.settings
    lines = []
    if receipt.rehearsal is not None and receipt.guarantee.status != "none":
        lines.append(f"{receipt.rehearsal}.")
    if receipt.certified is not None:
        found = receipt.certified.certificate
        lines.append(f"Certificate (δ = {number(found.delta)}, {SOURCES[found.source]}): {found}.")
        if found.tightest is not None:
            h, s, a = found.tightest
            cell, action = run.environment.cell(h, s), action_name(run.environment, a)
            lines.append(f"Its tightest comparison: {cell}, {action}, with a proven margin of {number(found.margin)}.")
    if receipt.choice is not None:
        words = receipt.choice.words(settings.preference)
        lines.append(f"{words[0].upper()}{words[1:]}.")
        if receipt.choice.followed:
            lines.append("This run followed the candidate that its recipe publishes; ρ speaks of choosing afresh.")
    if receipt.coverage is not None:
        lines.append("Learned from a log: the best possible is among policies that do what the log supports.")
    if receipt.spread is not None and receipt.spread <= settings.epsilon:
        lines.append(f"Every policy is within ε here: best and worst differ by {number(receipt.spread)} in its model.")
    return "".join(f'<p class="sentence second">{escape(line)}</p>' for line in lines)


def _fingerprint(run: StoredRun) -> str:
    return fingerprint(
        "Policy fingerprint", run.policy.fingerprint, "SHA-256 of the policy. Equal fingerprints, equal policies."
    )


def _tiles(run: StoredRun, worth: Worth | None) -> list[tuple[str, str, str]]:
    receipt = run.receipt
    reached = f"{int((receipt.visits > 0).sum()):,} of {receipt.visits.size:,}"
    items = [
        ("samples", *counted(receipt.samples, "observed transitions")),
        ("episodes", *(counted(receipt.episodes, "") if receipt.episodes else ("—", "parallel sampling has none"))),
        ("sampled cells", reached, "(step, state) pairs with data"),
    ]
    if worth is not None:
        items.insert(0, ("value of the policy", f"{worth.value:.4g}", worth.words))
    if receipt.rehearsal is not None:
        found = receipt.rehearsal
        pairs = f"; {found.pairs_agree} of {found.pairs} pairs under fresh seeds" if found.pairs else ""
        items.append(("rehearsal", f"{found.agree} of {found.of}", f"simulated teams agree{pairs}"))
    if receipt.certified is not None:
        proof = receipt.certified.certificate
        state = "proven" if proof.proven else "not proven"
        items.append(("certificate", state, f"δ = {number(proof.delta)}, look in round {proof.round}"))
    if receipt.choice is not None:
        name = "width" if receipt.choice.kind == "sampled" else "tolerance"
        how = "followed" if receipt.choice.followed else "chosen"
        items.append((name, number(receipt.choice.tolerance), f"candidate {receipt.choice.candidate}, {how}"))
    else:
        tiers = receipt.tiers.count
        items.append(("tiers", str(tiers), "of reachability" if tiers > 1 else "nothing is ignored"))
    if receipt.coverage is not None:
        log = receipt.coverage
        items.append(("covered", percent(log.covered), "of the log's visits, by data; the rest by default"))
        interval = f"{number(log.value_low)} to {number(log.value_high)}; practice {number(log.practice)}"
        items.append(("value by the log", number(log.value), f"95 % {interval}, rescaled"))
    items.append(("shared seed", str(run.recipe.shared_seed), "publish it with the recipe"))
    return items


def _figures(run: StoredRun, maps: Maps) -> str:
    world, receipt = run.environment, run.receipt
    visits, values, tiers = receipt.visits.astype(np.float64), receipt.values[:-1], receipt.tiers
    maps.tell("action", run.policy.table, [action_name(world, a) for a in range(world.n_actions)])
    maps.tell("tier", tiers.level)
    maps.tell("samples", visits)
    maps.tell("value", values)
    last = "ignored" if tiers.count > 1 else "every state"
    caption = "How easily a state is reached at a step: tier 1 most easily."
    if receipt.rule == "canonical":
        caption = "Where the policy itself comes often enough to decide; elsewhere it says the most preferred action."
    apart = None if receipt.rehearsal is None else receipt.rehearsal.apart
    figures = [
        maps.policy(run.policy.table, tiers.ignorable, None if apart is None else apart > 0.0),
        maps.figure("tiers", "Tiers", caption, ranks(tiers.level, tiers.count, "tier", last)),
        maps.figure(
            "samples",
            "Samples",
            "Observed transitions from each state at each step, all actions together.",
            shade(visits, log=True, none="no samples"),
        ),
        maps.figure(
            "values",
            "Estimated value",
            "Expected reward still to come, as the decision estimated it.",
            shade(values, low=min(0.0, float(values.min()))),
        ),
        _fractional(run, maps) if receipt.rule == "sampled" else "",
        _undecided(apart, maps),
    ]
    return "".join(figures)


def _undecided(apart: NDArray[np.float64] | None, maps: Maps) -> str:
    """Where simulated second teams part."""
    if apart is None:
        return ""
    title, text = "Undecided", "Share of the simulated second teams that would do something else."
    if not apart.any():
        return figure("undecided", title, text, '<p class="empty">all of them do the same everywhere</p>')
    maps.tell("teams that differ", apart)
    return maps.figure("undecided", title, text, shade(apart, "orange", low=0.0, high=1.0, none="none of them"))


def _fractional(run: StoredRun, maps: Maps) -> str:
    title = "μ̂: how often under-explored"
    if run.receipt.fractional is None or not len(run.receipt.fractional):
        text = "Parallel sampling reaches every state at will, so no state is ever under-explored."
        return figure("fractional", title, text, '<p class="empty">μ̂ = 0 everywhere</p>')
    layers = []
    for k, table in enumerate(run.receipt.fractional):
        maps.tell(f"μ̂ of tier {k + 1}", table)
        layers.append((f"tier {k + 1}", shade(table, low=0.0, high=1.0)))
    for k, table in enumerate(() if run.receipt.ignored is None else run.receipt.ignored):
        maps.tell(f"left out of tier {k + 1}", table, ("no", "yes"))
    text = "Share of exploration runs that saw a state too seldom for a tier; between 0 and 1 the shared seed decides."
    return maps.layers("fractional", title, text, layers)


def _papers(run: StoredRun) -> dict[str, Any]:
    document = run.receipt.to_dict()
    shown = {"recipe digest": run.recipe.digest, "receipt digest": document["digest"]}
    for name in ("data_commitment", "package_version", "stream_version"):
        shown[name.replace("_", " ")] = document[name]
    return {**shown, "seconds": f"{document['timings']['seconds']:.3g}"}


def _settings(run: StoredRun) -> dict[str, Any]:
    """The settings that the rule has a use for, with actions by name."""
    settings = run.recipe.settings
    hidden = SAMPLED_ONLY if settings.rule == "canonical" else ("preference",)
    shown: dict[str, Any] = {name: value for name, value in settings.to_dict().items() if name not in hidden}
    if isinstance(settings.preference, tuple):
        shown["preference"] = ", ".join(action_name(run.environment, int(a)) for a in settings.preference)
    return shown


def _promises(run: StoredRun) -> str:
    first = "A second team with this recipe and fresh data gets this very policy, with the probability above."
    if run.receipt.guarantee.status == "none":
        first = "The run ended without a promise; the framed cells are those that further data could still change."
    return promises(
        (
            first,
            "The fingerprint covers every action at every step, ignored states included.",
            "The data commitment ties this receipt to its data seed, which stays private if it was drawn at random.",
        ),
        (
            "That another shared seed leads to the same policy.",
            "That a run on another environment, even a similar one, agrees.",
            "Anything, if the data of two runs are not independent.",
        ),
    )
