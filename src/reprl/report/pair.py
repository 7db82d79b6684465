"""The summary of two runs: the same policy or not, where not, and what each of them is worth and promises."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from reprl.artifacts.folder import StoredRun
from reprl.artifacts.verify import Verification, compare_policies, remarks
from reprl.learning.worth import Worth
from reprl.mdp.labels import Labels
from reprl.report.maps import Maps
from reprl.report.names import describe_world
from reprl.report.numbers import counted, number
from reprl.report.run import Run, note_facts, promise_facts
from reprl.report.sketch import Sketch
from reprl.report.summary import Badge, Block, Cell, Fact, Line, Mark, On, Section, Strong, Summary, Table, line

_NAMES = ("first", "second")
_LISTED = 300
"""Differing cells that a page lists."""


def summarize_verification(found: Verification) -> Summary:
    """Return the summary of a comparison of two policies."""
    rows = [(cell.step, cell.state, *cell.actions) for cell in found.first]
    facts = []
    if found.values is not None:
        a, b = found.values
        facts.append(
            Fact("values", f"{a:.6g} and {b:.6g}", f"differ by {abs(a - b):.3g}", On.HTML if found.same else On.ALL)
        )
    return Summary(
        kind="two runs",
        title="Two runs",
        badge=Badge("same policy", "good") if found.same else Badge("different policies", "bad"),
        lines=_lines(found),
        facts=facts,
        sections=[Section([_cells(found.labels, rows, found.different or 0)])],
        heading="Two runs",
    )


def _lines(found: Verification) -> list[Line]:
    if found.same:
        exact = Strong("exactly the same policy")
        return [line("Both hold ", exact, ", in every state at every step.", on=On.PAGE)]
    if found.renamed:
        return [line("Names differ: ", Strong(found.renamed), f"{_also(found)}")]
    if found.weights is not None:
        return [line(Strong(f"{found.weights[0]:,} of {found.weights[1]:,}"), " weights differ")]
    if found.different is not None:
        cells = found.cells or 1
        share = f"({found.different / cells:.2%})"
        return [line(Strong(f"{found.different:,} of {cells:,}"), f" cells differ {share}")]
    if found.shapes is not None:
        return [line(f"Their shapes (H, S) differ: {found.shapes[0]} and {found.shapes[1]}")]
    return [line("Only fingerprints are known; give policies or run folders to see where")]


def _also(found: Verification) -> str:
    """What the tables of policies with different names have in common."""
    if found.fingerprints[0] == found.fingerprints[1]:
        return "; the tables of numbers are equal, but a number means different actions or states"
    return "" if found.different is None else f"; {found.different:,} of {found.cells or 1:,} cells differ besides"


def _cells(labels: Labels, cells: Sequence[tuple[int, int, int, int]], total: int) -> Table:
    rows = [(str(h), labels.state(s), labels.action(a), labels.action(b)) for h, s, a, b in cells]
    head = ("step", "state", "first", "second")
    return Table("cells-that-differ", "Cells that differ", head, rows, total=total)


def summarize_pair(
    runs: tuple[Run, Run],
    worth: Sequence[Worth] | None = None,
    *,
    seeds: Sequence[int] = (),
    idle: NDArray[np.bool_] | None = None,
    more: Sequence[Fact] = (),
) -> Summary:
    """Return the summary of two runs.

    worth is exact, where somebody knows it; idle, (H, S), is where neither decided anything, None for what both
    ignored; more are facts that only those know who ran them.
    """
    first, second = runs
    world = first.environment
    found = compare_policies(first.policy, second.policy, labels=world.labels)
    both, sides = _sides(runs, worth, seeds)
    summary, sections, maps, apart = summarize_verification(found), [Section([sides])], None, None
    idle = first.receipt.tiers.ignorable & second.receipt.tiers.ignorable if idle is None else idle
    if found.different:
        apart = first.policy.table != second.policy.table
        maps = Maps(world, first.receipt.visits.astype(np.float64) + second.receipt.visits)
        for name, run in zip(_NAMES, runs, strict=True):
            maps.tell(f"{name} run", run.policy.table, maps.names)
        words = ("Policy of the first run", "the second run takes another action")
        where = np.argwhere(apart)[:_LISTED].tolist()
        cells = [(h, s, int(first.policy.table[h, s]), int(second.policy.table[h, s])) for h, s in where]
        blocks: list[Block] = [
            maps.policy(first.policy.table, idle, apart, words),
            _cells(world.labels, cells, found.different),
        ]
        sections.append(
            Section(blocks, "Where they differ", f"{maps.note} Framed: the two policies take different actions.")
        )
    other = "the same" if found.same else f"{second.policy.short_fingerprint}…"
    notes = remarks([StoredRun(*run[:3]) for run in runs])
    return summary._replace(
        title=world.title,
        lines=[*summary.lines, *(line(f"{note[0].upper()}{note[1:]}.") for note in notes)],
        facts=[*both, *_facts(runs, worth), *more],
        sections=sections,
        warning=first.warning or second.warning,
        sketches=[Sketch(first.policy, world, idle, frame="", title="both runs")]
        if found.same
        else [
            Sketch(run.policy, world, idle, apart, frame="", title=f"{name} run")
            for name, run in zip(_NAMES, runs, strict=True)
        ],
        lead=describe_world(world, world.labels.description),
        mark=Mark(
            "Fingerprint of the first", first.policy.fingerprint, f"SHA-256 of the policy; the second run's is {other}"
        ),
        maps=maps,
    )


def _facts(runs: tuple[Run, Run], worth: Sequence[Worth] | None) -> list[Fact]:
    facts = [
        Fact(f"teams differ, {name} run", run.disputed, prose=True)
        for name, run in zip(_NAMES, runs, strict=True)
        if run.disputed and run.receipt.guarantee.same.status == "none"
    ]
    facts += note_facts(*runs)
    for name, run in zip(_NAMES, runs, strict=True):
        facts.append(Fact(f"samples, {name}", *counted(run.receipt.samples, "observed transitions"), On.PAGE))
    if worth is not None and worth[0].value != worth[1].value:
        gap = number(abs(worth[0].value - worth[1].value))
        facts.append(Fact("difference in value", gap, "of the two policies, exactly"))
    return facts


def _sides(runs: Sequence[Run], worth: Sequence[Worth] | None, seeds: Sequence[int]) -> tuple[list[Fact], Table]:
    """What both runs say alike, as facts, and what they do not, as a table."""
    promises = [
        {each.label: each.value for each in promise_facts(run.receipt.guarantee, run.environment.scale)} for run in runs
    ]
    exact = [None, None] if worth is None else worth
    rows: list[tuple[str, Sequence[str]]] = [
        ("fingerprint", [run.policy.fingerprint for run in runs]),
        *((name, [each.get(name, "") for each in promises]) for name in ("quality", "same policy", "assumed")),
        ("earns", [run.earns(each) for run, each in zip(runs, exact, strict=True)]),
        ("samples", [run.cost for run in runs]),
        ("shared seed", [str(run.recipe.shared_seed) for run in runs]),
        ("data seed", [str(seed) for seed in seeds]),
        ("recipe", [run.recipe.digest for run in runs]),
        ("data commitment", [run.receipt.data_commitment for run in runs]),
    ]
    return side_by_side(rows)


def side_by_side(rows: Sequence[tuple[str, Sequence[str]]]) -> tuple[list[Fact], Table]:
    """Return what is the same for two runs as facts, and what is not as a table, of which digests need not be whole."""
    digests = ("fingerprint", "recipe", "data commitment")
    both = [Fact(name, texts[0], prose=True) for name, texts in rows if any(texts) and texts[0] == texts[1]]
    given = [
        (name, *(Cell(text[:12], look="digest") if name in digests else text for text in texts))
        for name, texts in rows
        if any(texts) and texts[0] != texts[1]
    ]
    return both, Table("sides", "Side by side", ("", "first run", "second run"), given, first=len(given))
