"""reprl verify: are two runs the same, and if not, where and by how much; do two logs agree."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from reprl.cli.answer import DIFFERENT, FINE, Answer
from reprl.cli.options import LogFile, OtherWorld, argument, refuse
from reprl.cli.verify_data import Data, compare_data
from reprl.errors import InputError

if TYPE_CHECKING:
    from rich.console import Console

    from reprl.artifacts.recompute import Recomputed
    from reprl.artifacts.verify import Evidence, Verification
    from reprl.sources.environment import Environment

PROMISES = ("quality", "same policy", "assumed")


def verify(
    a: Path = argument("A", "A run folder, a policy or a receipt; with --data a log."),
    b: Path | None = argument("[B]", "The other one; may be left out with --log.", None),
    *,
    data: Data,
    other: OtherWorld,
    logged: LogFile,
) -> Answer:
    """Compare two runs: exit code 0 if they hold the same policy, 1 if not.

    If the environment is built in, or named by --env, the difference in value is shown too. Reading the files imports
    nothing and opens no other environment.

    --log FILE computes value and gain over practice again from that log: exit code 1 if it contradicts a receipt.
    The digest of a receipt detects accidental changes only; docs/security.md shows how to sign one.

    --data tests whether two logs can come from one environment: exit code 1 if they contradict each other. A sequential
    betting test compares the outcomes of each (step, state, action). "Not contradicted" is no proof.

    reprl verify run second

    reprl verify run/policy.json second/policy.json

    reprl verify run --log ours.csv

    reprl verify --data ours.csv theirs.csv --recipe run
    """
    if data.data:
        if b is None:
            raise InputError("verify --data must get two logs, A and B, got one")
        refuse("be left out with --data", log=logged.log, env=other.env, env_option=other.env_option)
        return compare_data(a, b, data, other.reward_range, logged)
    refuse("come with --data", data)
    from reprl.artifacts.verify import compare_policies, find_names, find_world, load_evidence, remarks

    if b is None and logged.log is None:
        raise InputError("verify must get a second run, or --log FILE, got neither")
    if logged.log is None:
        refuse("come with --log", column=logged.column)
    sides = (load_evidence(a), load_evidence(a if b is None else b))
    given = other.open(_place(sides))
    world, notes = find_world(sides) if given is None else (given, [])
    first, second = (side.policy or side.fingerprint for side in sides)
    called = sides[0].labels, sides[1].labels
    comparison = compare_policies(first, second, world, find_names(sides), called)
    notes += [] if b is None else remarks(sides)
    shown = sides if b is not None else sides[:1]
    again = _recompute(shown, logged)
    document = {
        **comparison.to_dict(),
        "paths": [side.path for side in shown],
        "guarantees": [None if side.receipt is None else side.receipt.to_dict()["guarantee"] for side in shown],
        "verdicts": [None if side.receipt is None else side.receipt.to_dict()["verdict"] for side in shown],
        "remarks": notes,
        "log": [each.to_dict() for each in again],
    }
    bad = any(each.contradicted for each in again)
    code = FINE if comparison.same and not bad else DIFFERENT
    both = comparison if b is not None else None
    return Answer(document, lambda console: _show(console, shown, both, notes, again), code)


def _recompute(sides: tuple[Evidence, ...], logged: LogFile) -> list[Recomputed]:
    """Value and gain of every side, by a log; two sides with one policy are computed once."""
    from reprl.artifacts.recompute import recompute

    if logged.log is None:
        return []
    return [recompute(side, logged.log, logged.columns()) for side in sides]


def _place(sides: tuple[Evidence, ...]) -> Environment | None:
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


def _promises(side: Evidence) -> dict[str, str]:
    """What a receipt promises; ε is in rewards' own units where a recipe says them."""
    from reprl.artifacts.folder import named_environment
    from reprl.report.run import promise_facts

    if side.receipt is None:
        return {}
    scale = 1.0 if side.recipe is None else named_environment(side.recipe, side.receipt).scale
    return {fact.label: fact.value for fact in promise_facts(side.receipt.guarantee, scale)}


def _show(
    console: Console,
    sides: tuple[Evidence, ...],
    comparison: Verification | None,
    notes: list[str],
    again: list[Recomputed],
) -> None:
    from reprl.execution.terminal import fact_rows
    from reprl.report.terminal import render

    promises = [_promises(side) for side in sides]
    rows = [
        *_rows("path", [side.path for side in sides]),
        *_rows("fingerprint", [side.fingerprint for side in sides]),
        *_rows("names", [] if comparison is None else comparison.names),
        *(row for name in PROMISES for row in _rows(name, [found.get(name) for found in promises])),
        *_rows("by this log", again),
    ]
    console.print(fact_rows(rows))
    if comparison is not None:
        console.print(render(comparison))
    for remark in notes:
        console.print(f"note: {remark}")


def _rows(name: str, values: Sequence[object]) -> list[tuple[str, object]]:
    """What both sides say, once where it is the same, without what neither says."""
    texts = ["" if value is None else str(value) for value in values]
    if len(set(texts)) <= 1:
        return [(name, text) for text in texts[:1] if text]
    return [(f"{name}, {side}", text) for side, text in zip(("first", "second"), texts, strict=True) if text]
