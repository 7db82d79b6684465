"""The page of two runs: the same policy or not, where not, and what each of them is worth and promises."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from reprl.artifacts.folder import StoredRun
from reprl.artifacts.verify import compare_policies, remarks
from reprl.report.maps import Maps
from reprl.report.names import action_name, state_name
from reprl.report.page import badge, counted, escape, fingerprint, number, page, percent, promises, table, tiles
from reprl.report.run_page import ARROW, STATUSES, lead, promise_words
from reprl.report.worth import Worth

_SHOWN, _MOST = 10, 300
"""Differing cells shown at once, and listed at all."""


def pair_page(first: StoredRun, second: StoredRun, worth: tuple[Worth, Worth] | None) -> bytes:
    """Return the page."""
    runs, world = (first, second), first.environment
    found = compare_policies(first.policy, second.policy, labels=world.labels)
    body = [
        f'<section class="card top">{_verdict(runs, found.different, found.cells)}'
        f"{fingerprint('Fingerprint of the first', first.policy.fingerprint, _other(runs))}</section>",
        tiles(_tiles(runs, worth)),
        f'<section class="card" id="sides"><h2>Side by side</h2>{_sides(runs, worth)}</section>',
    ]
    data = None
    if found.different:
        maps = Maps(world, first.receipt.visits.astype(np.float64) + second.receipt.visits)
        apart = first.policy.differs(second.policy)
        for name, run in zip(("first", "second"), runs, strict=True):
            maps.tell(f"{name} run", run.policy.table, [action_name(world, a) for a in range(world.n_actions)])
        idle = first.receipt.tiers.ignorable & second.receipt.tiers.ignorable
        body += [
            f'<h2 class="part">Where they differ</h2><p class="note">{escape(maps.note)} Framed: the two do different '
            f"things.</p>{maps.slider()}",
            f'<div class="figures">{maps.policy(first.policy.table, idle, apart, _WORDS)}</div>',
            _cells(first, second, apart),
        ]
        data = maps.data()
    body.append(_promises(bool(found.different)))
    return page("two runs", world.title, lead(world, world.labels.description), ARROW + "".join(body), data)


_WORDS = ("Policy of the first run", "the second run does something else")


def _verdict(runs: tuple[StoredRun, StoredRun], different: int | None, cells: int | None) -> str:
    same = runs[0].policy == runs[1].policy
    mark = badge("same policy", "good") if same else badge("different policies", "bad")
    if same:
        sentence = "Both runs hold <strong>exactly the same policy</strong>, in every state at every step."
    elif different is None or cells is None:
        sentence = "The two policies are of different sizes."
    else:
        sentence = (
            f"The policies differ in <strong>{different:,} of {cells:,}</strong> cells ({percent(different / cells)})."
        )
    notes = "".join(f'<p class="sentence second">{escape(note[0].upper() + note[1:])}.</p>' for note in remarks(runs))
    return (
        f'<div class="guarantee" id="guarantee"><h2>Two runs {mark}</h2><p class="sentence">{sentence}</p>{notes}</div>'
    )


def _other(runs: tuple[StoredRun, StoredRun]) -> str:
    if runs[0].policy == runs[1].policy:
        return "SHA-256 of the policy; the second run's is the same."
    return f"SHA-256 of the policy; the second run's is {runs[1].policy.short_fingerprint}…"


def _tiles(runs: tuple[StoredRun, StoredRun], worth: tuple[Worth, Worth] | None) -> list[tuple[str, str, str]]:
    items = []
    for name, run in zip(("first", "second"), runs, strict=True):
        items.append((f"samples, {name}", *counted(run.receipt.samples, "observed transitions")))
    if worth is not None:
        items += [
            (f"value, {name}", f"{each.value:.4g}", each.words)
            for name, each in zip(("first", "second"), worth, strict=True)
        ]
        items.append(
            ("difference in value", number(abs(worth[0].value - worth[1].value)), "of the two policies, exactly")
        )
    return items


def _sides(runs: tuple[StoredRun, StoredRun], worth: tuple[Worth, Worth] | None) -> str:
    rows = [
        ("fingerprint", *(f'<span class="digest">{run.policy.short_fingerprint}</span>' for run in runs)),
        ("status", *(badge(run.receipt.guarantee.status, STATUSES[run.receipt.guarantee.status][0]) for run in runs)),
        ("promised", *(escape(promise_words(run)) for run in runs)),
        ("rehearsal", *(escape(run.receipt.rehearsal or "—") for run in runs)),
        ("samples", *(f"{run.receipt.samples:,}" for run in runs)),
        ("episodes", *(f"{run.receipt.episodes:,}" if run.receipt.episodes else "—" for run in runs)),
        ("shared seed", *(str(run.recipe.shared_seed) for run in runs)),
        ("recipe", *(f'<span class="digest">{run.recipe.digest[:12]}</span>' for run in runs)),
        ("data commitment", *(f'<span class="digest">{run.receipt.data_commitment[:12]}</span>' for run in runs)),
    ]
    if worth is not None:
        rows.insert(4, ("value", *(f"{each.value:.6g}; {escape(each.words)}" for each in worth)))
    return table(("", "first run", "second run"), rows)


def _cells(first: StoredRun, second: StoredRun, apart: NDArray[np.bool_]) -> str:
    world = first.environment
    places = np.argwhere(apart)[:_MOST].tolist()
    rows = [
        (
            str(h),
            escape(state_name(world, s)),
            *(escape(action_name(world, int(run.policy.table[h, s]))) for run in (first, second)),
        )
        for h, s in places
    ]
    head = ("step", "state", "first run", "second run")
    more = int(apart.sum()) - len(places)
    rest = table(head, rows[_SHOWN:]) + (f"<p>and {more:,} more</p>" if more else "")
    extra = (
        f"<details><summary>{int(apart.sum()) - _SHOWN:,} more</summary>{rest}</details>" if len(rows) > _SHOWN else ""
    )
    return (
        '<section class="card" id="cells-that-differ"><h2>Cells that differ</h2>'
        f"{table(head, rows[:_SHOWN])}{extra}</section>"
    )


def _promises(differ: bool) -> str:
    kept = [
        "Policies are compared action by action, ignored states included.",
        "Values are exact where the environment's dynamics are known, and left out elsewhere.",
    ]
    if differ:
        kept.append("One pair that differs contradicts no promise by itself: with probability ρ it may.")
    return promises(
        kept,
        (
            "That the data of the two runs were independent: equal data commitments show that they were not.",
            "How often other pairs agree; an audit measures that.",
        ),
    )
