"""reprl verify: are two runs the same, and if not, where and by how much."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from reprl.cli.answer import DIFFERENT, FINE, Answer
from reprl.cli.options import OtherWorld, argument

if TYPE_CHECKING:
    from rich.console import Console

    from reprl.artifacts.verify import Evidence, Verification
    from reprl.sources.environment import Environment


def verify(
    a: Path = argument("A", "A run folder, a policy or a receipt."),
    b: Path = argument("B", "The other one."),
    *,
    other: OtherWorld,
) -> Answer:
    """Compare two runs: exit code 0 if they hold the same policy, 1 if not.

    Policies are compared cell by cell, receipts by the fingerprints in them. Receipts also hold the names of states
    and actions. Where a recipe with an id of the catalogue lies beside, or --env names the environment, the difference
    in value is computed. Nothing is imported on behalf of the files: no other environment is opened unless you name it.

    reprl verify run second

    reprl verify run/policy.json second/policy.json
    """
    from reprl.artifacts.verify import compare_policies, find_names, find_world, load_evidence, remarks

    sides = (load_evidence(a), load_evidence(b))
    given = other.open(_place(sides))
    world, notes = find_world(sides) if given is None else (given, [])
    first, second = (side.policy or side.fingerprint for side in sides)
    comparison = compare_policies(first, second, world, find_names(sides))
    notes += remarks(sides)
    document = {
        **comparison.to_dict(),
        "paths": [side.path for side in sides],
        "rehearsals": [_rehearsal(side) for side in sides],
        "certificates": [_certificate(side) for side in sides],
        "remarks": notes,
    }
    code = FINE if comparison.same else DIFFERENT
    return Answer(document, lambda console: _show(console, sides, comparison, notes), code)


def _place(sides: tuple[Evidence, Evidence]) -> Environment | None:
    """What is known of the environment: all that a recipe says, or the horizon of a policy."""
    from reprl.mdp.criterion import Criterion
    from reprl.mdp.policy import TablePolicy
    from reprl.sources.environment import Environment

    for side in sides:
        if side.recipe is not None:
            return side.recipe.environment
    tables = [side.policy for side in sides if isinstance(side.policy, TablePolicy)]
    found = next((policy for policy in tables if not policy.stationary), None)
    return None if found is None else Environment(None, {}, Criterion(found.horizon), found.n_states, 1)


def _rehearsal(side: Evidence) -> dict[str, Any] | None:
    """What simulated second teams did in a run, as far as its receipt is there and says it."""
    return None if side.receipt is None else side.receipt.to_dict()["rehearsal"]


def _certificate(side: Evidence) -> dict[str, Any] | None:
    """What a run's own data prove, as its receipt states it."""
    return None if side.receipt is None else side.receipt.to_dict().get("certificate")


def _show(console: Console, sides: tuple[Evidence, Evidence], comparison: Verification, notes: list[str]) -> None:
    from reprl.execution.terminal import fact_rows
    from reprl.report.terminal import render

    rows: list[tuple[str, object]] = [(side.path, side.fingerprint) for side in sides]
    rows += [
        (f"{side.path}, rehearsal", side.receipt.rehearsal)
        for side in sides
        if side.receipt is not None and side.receipt.rehearsal is not None
    ]
    rows += [
        (f"{side.path}, certificate", side.receipt.certified.certificate)
        for side in sides
        if side.receipt is not None and side.receipt.certified is not None
    ]
    console.print(fact_rows(rows))
    console.print(render(comparison))
    for remark in notes:
        console.print(f"note: {remark}", soft_wrap=True)
