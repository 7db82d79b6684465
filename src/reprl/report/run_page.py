"""The page of a run: what was learned, from how much, and what is promised of it."""

from __future__ import annotations

from typing import Any

import numpy as np

from reprl.artifacts.folder import StoredRun
from reprl.documents import plain
from reprl.mdp.environment import Environment
from reprl.report.maps import Maps
from reprl.report.names import action_name
from reprl.report.page import badge, counted, escape, facts, figure, fingerprint, number, page, percent, promises, tiles
from reprl.report.shades import ranks, shade


def run_page(run: StoredRun) -> bytes:
    """Return the page."""
    world = run.environment
    maps = Maps(world, run.receipt.visits.astype(np.float64))
    settings = facts("Settings", run.recipe.settings.as_dict())
    body = [
        f'<section class="card top">{_guarantee(run)}{_fingerprint(run)}</section>',
        tiles(_tiles(run)),
        f'<h2 class="part">Over steps and states</h2><p class="note">{escape(maps.note)}</p>{maps.slider()}',
        f'<div class="figures">{_figures(run, maps)}</div>',
        f'<div class="figures">{settings}{facts("Recipe and receipt", _papers(run))}</div>',
        _promises(),
    ]
    return page("run", world.title, lead(world, world.labels.description), ARROW + "".join(body), maps.data())


ARROW = (
    '<svg class="defs" aria-hidden="true"><defs><g id="arrow"><path class="shaft" d="M-.27 0H.1"/>'
    '<path class="head" d="M.05 -.19L.31 0L.05 .19Z"/></g></defs></svg>'
)


def lead(world: Environment, description: str = "") -> str:
    """Describe an environment in a line; audits and comparisons carry no words of its own for it."""
    options = ", ".join(f"{name} {value}" for name, value in plain(world.options).items())
    sizes = f"{world.n_states:,} states, {world.n_actions:,} actions, horizon {world.horizon:,}"
    parts = (description, sizes, options)
    return " · ".join(part for part in parts if part)


def _guarantee(run: StoredRun) -> str:
    promise = run.receipt.guarantee
    proven = promise.status == "proven"
    meaning = (
        "a written proof holds with the constants that ran"
        if proven
        else "sample sizes were calibrated by measurement, not proven; another environment may need more"
    )
    mark = badge(promise.status, "good" if proven else "warn")
    return (
        f'<div class="guarantee" id="guarantee"><h2>Guarantee {mark}</h2>'
        f'<p class="sentence">Two runs of this recipe, with the same shared seed and fresh, independent data, end in '
        f"<strong>exactly the same policy</strong> with probability at least "
        f"<strong>{percent(max(0.0, 1 - promise.rho))}</strong>.</p>"
        f'<p class="sentence second">The policy earns within <strong>{number(promise.epsilon)}</strong> of the best '
        f"possible with probability at least <strong>{percent(max(0.0, 1 - promise.delta))}</strong>.</p>"
        f'<p class="caption"><b>{escape(promise.status)}</b> — {meaning}. Source: {escape(promise.source)}</p></div>'
    )


def _fingerprint(run: StoredRun) -> str:
    return fingerprint(
        "Policy fingerprint", run.policy.fingerprint, "SHA-256 of the policy. Equal fingerprints, equal policies."
    )


def _tiles(run: StoredRun) -> list[tuple[str, str, str]]:
    receipt = run.receipt
    reached = f"{int((receipt.visits > 0).sum()):,} of {receipt.visits.size:,}"
    items = [
        ("samples", *counted(receipt.samples, "observed transitions")),
        ("episodes", *(counted(receipt.episodes, "") if receipt.episodes else ("—", "parallel sampling has none"))),
        ("sampled cells", reached, "(step, state) pairs with data"),
        ("tiers", str(receipt.tiers.count), "of reachability" if receipt.tiers.count > 1 else "nothing is ignored"),
        ("shared seed", str(run.recipe.shared_seed), "publish it with the recipe"),
    ]
    if run.recipe.settings.access == "episodic":
        items.append(("stretch", number(receipt.stretch), "widening of the decision windows"))
    return items


def _figures(run: StoredRun, maps: Maps) -> str:
    world, receipt = run.environment, run.receipt
    visits, values, tiers = receipt.visits.astype(np.float64), receipt.values[:-1], receipt.tiers
    maps.tell("action", run.policy.actions, [action_name(world, a) for a in range(world.n_actions)])
    maps.tell("tier", tiers.level)
    maps.tell("samples", visits)
    maps.tell("value", values)
    last = "ignored" if tiers.count > 1 else "every state"
    figures = [
        maps.policy(run.policy.actions, tiers.ignorable),
        maps.figure(
            "tiers",
            "Tiers",
            "How easily a state is reached at a step: tier 1 most easily.",
            ranks(tiers.level, tiers.count, "tier", last),
        ),
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
        _fractional(run, maps),
    ]
    return "".join(figures)


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
    document = run.receipt.as_dict()
    shown = {"recipe digest": run.recipe.digest, "receipt digest": document["digest"]}
    for name in ("data_commitment", "package_version", "stream_version"):
        shown[name.replace("_", " ")] = document[name]
    return {**shown, "seconds": f"{document['timings']['seconds']:.3g}"}


def _promises() -> str:
    return promises(
        (
            "A second team with this recipe and fresh data gets this very policy, with the probability above.",
            "The fingerprint covers every action at every step, ignored states included.",
            "The data commitment ties this receipt to its data seed, which stays private if it was drawn at random.",
        ),
        (
            "That another shared seed leads to the same policy.",
            "That a run on another environment, even a similar one, agrees.",
            "Anything, if the data of two runs are not independent.",
        ),
    )
