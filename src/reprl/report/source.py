"""Source: what a report is made of, read from a run folder, a JSON file or memory, and checked."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from reprl.artifacts.documents import digest
from reprl.artifacts.folder import load_run
from reprl.artifacts.receipt import Receipt
from reprl.artifacts.recipe import Recipe
from reprl.auditing.divergence import Divergence
from reprl.auditing.record import Cell
from reprl.errors import ReprlError, check_int, check_real, quote
from reprl.mdp.policy import Policy
from reprl.mdp.tabular import Labels
from reprl.report.reader import Reader, load
from reprl.report.records import Audit, Comparison, Point, Row, Run, World

VERDICTS = ("rejected", "not rejected", "undecided")
_RUN = ("recipe", "receipt", "policy")


def read_source(source: object) -> Run | Audit | Comparison:
    """Tell what a source is and read it.

    Args:
        source: a run folder; an audit or comparison file; the documents of either as mappings (a run as
            {"recipe": …, "receipt": …, "policy": …}); or an object with ``as_dict``, or with these three attributes.
    """
    if isinstance(source, str | os.PathLike):
        path = Path(source)
        return _run(*load_run(path)) if path.is_dir() else _from_document(load(path), str(path))
    if not isinstance(source, Mapping) and all(hasattr(source, name) for name in _RUN):
        parts = {name: getattr(source, name) for name in _RUN}
    else:
        parts = dict(_plain(source))
        if not set(_RUN) <= set(parts):
            return _from_document(parts, "report source")
    kinds = zip((Recipe, Receipt, Policy), _RUN, strict=True)
    recipe, receipt, policy = (_part(kind, parts[name]) for kind, name in kinds)
    return _run(recipe, receipt, policy)


def _part(kind: Any, value: Any) -> Any:
    return value if isinstance(value, kind) else kind.from_json(json.dumps(_plain(value), default=_number))


def _plain(value: Any) -> Mapping[str, Any]:
    """Return a record as a mapping."""
    if not isinstance(value, Mapping) and callable(getattr(value, "as_dict", None)):
        value = value.as_dict()
    if not isinstance(value, Mapping):
        raise ReprlError(
            f"report source must be a run folder, an audit, a comparison or a path to one, got {quote(value)}"
        )
    return value


def _number(value: Any) -> Any:
    """Let documents in memory hold NumPy values."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    raise ReprlError(f"report source must hold JSON values only, got {quote(value)}")


def _digest(document: Mapping[str, Any]) -> str:
    """SHA-256 of the document as canonical JSON."""
    try:
        return digest(json.loads(json.dumps(document, default=_number)))
    except (ValueError, TypeError, RecursionError) as error:
        raise ReprlError(f"report source must hold JSON values only: {error}") from None


def _from_document(document: Mapping[str, Any], name: str) -> Audit | Comparison:
    format = document.get("format")
    if format == "reprl-audit":
        return _audit(document)
    if format == "reprl-comparison":
        return _comparison(document)
    if isinstance(format, str) and format.removeprefix("reprl-") in _RUN:
        raise ReprlError(f"{name} is one file of a run: give the folder that holds recipe, receipt and policy")
    raise ReprlError(f"{name} must say format 'reprl-audit' or 'reprl-comparison', got {quote(format)}")


def _run(recipe: Recipe, receipt: Receipt, policy: Policy) -> Run:
    """Check that three records belong together and find the names of the environment."""
    if receipt.recipe != recipe.digest:
        raise ReprlError(f"receipt must belong to its recipe {recipe.digest}, got {receipt.recipe}")
    if receipt.fingerprint != policy.fingerprint:
        raise ReprlError(f"receipt fingerprint must be its policy's {policy.fingerprint}, got {receipt.fingerprint}")
    world = _place(recipe, receipt.labels)
    shape = (world.horizon, world.n_states)
    for name, table in (("policy", policy.actions), ("receipt tiers", receipt.tiers.level), ("visits", receipt.visits)):
        if table.shape != shape:
            raise ReprlError(f"{name} must have shape {shape} like the recipe's environment, got {table.shape}")
    if int(policy.actions.max()) >= world.n_actions:
        raise ReprlError(f"actions must be below {world.n_actions} as in the recipe, got {policy.actions.max()}")
    return Run(world, recipe, receipt, policy)


def _place(recipe: Recipe, labels: Labels) -> World:
    """Return a recipe's environment with the names that the receipt carries."""
    id, options, horizon, n_states, n_actions, _ = recipe.environment
    if len(labels.actions) not in (0, n_actions):
        raise ReprlError(f"receipt labels.actions must be {n_actions} texts or none, got {len(labels.actions)}")
    return _named(World(id, options, horizon, n_states, n_actions, Labels(), ""), labels)


def _sizes(environment: Reader, labels: Labels) -> World:
    id = None if environment("id") is None else environment.text("id")
    options = environment.part("options").document
    sizes = (environment.whole("horizon", 1), environment.whole("n_states", 1), environment.whole("n_actions", 1))
    return World(id, {str(name): value for name, value in options.items()}, *sizes, labels=labels, unnamed="")


def _named(world: World, labels: Labels) -> World:
    fits = labels.grid is None or labels.grid[0] * labels.grid[1] <= world.n_states
    missing = [noun for noun, names in (("states", labels.states), ("actions", labels.actions)) if not names]
    unnamed = f"the environment names no {' and no '.join(missing)}" if missing else ""
    return world._replace(labels=labels if fits else labels._replace(grid=None), unnamed=unnamed)


def _labelled(document: Reader) -> World:
    """Read the environment of an audit or a comparison, which carries its own names."""
    environment = document.part("environment")
    world = _sizes(environment, Labels())
    if environment.document.get("labels") is None:
        return world._replace(unnamed="the environment names no states and no actions")
    names = environment.part("labels")
    grid = None
    if names.document.get("grid") is not None:
        shape = names.list("grid")
        if len(shape) != 2:
            raise ReprlError(f"grid must be [rows, columns], got {quote(shape)}")
        rows, columns = (check_int("grid", length, 1, world.n_states) for length in shape)
        grid = (rows, columns)
    labels = Labels(
        name=names.text("name") if names.document.get("name") is not None else "mdp",
        states=names.texts("states", world.n_states),
        actions=names.texts("actions", world.n_actions),
        grid=grid,
    )
    return _named(world, labels)


def _audit(document: Mapping[str, Any]) -> Audit:
    audit = Reader.of_format("audit", document, "reprl-audit")
    world = _labelled(audit)
    shape = (world.horizon, world.n_states)
    pairs = audit.whole("pairs", 1)
    return Audit(
        world=world,
        learner=audit.text("learner"),
        options=audit.part("options").document,
        rho=audit.real("rho", 0.0, 1.0),
        level=audit.real("level", 0.0, 1.0),
        pairs=pairs,
        disagreements=audit.whole("disagreements", 0, pairs),
        disagreement=audit.real("disagreement", 0.0, 1.0),
        interval=_pair(audit, "interval", 1.0),
        verdict=audit.choice("verdict", VERDICTS),
        sequential=bool(audit("sequential")),
        runs_per_key=audit.whole("runs_per_key", 1),
        distinct=tuple(check_int("audit distinct", number, 1) for number in audit.list("distinct")),
        by_cell=audit.table("by_cell", shape),
        by_cell_weighted=audit.maybe_table("by_cell_weighted", shape),
        value_gap=_mean_max(audit, "value_gap"),
        suboptimality=_mean_max(audit, "suboptimality"),
        divergences=tuple(_divergence(item, world) for item in audit.list("first_divergence")),
        cells=tuple(_cell(item, world) for item in (audit.list("cells") if "cells" in audit.document else ())),
        samples=audit.real("samples"),
        curve=_curve(audit),
        p_value=audit.maybe_real("p_value", 0.0),
        digest=_digest(document),
    )


def _divergence(item: object, world: World) -> Divergence:
    record = Reader("first_divergence", item)
    actions = None
    if record.document.get("actions") is not None:
        both = record.list("actions")
        if len(both) != 2:
            raise ReprlError(f"first_divergence actions must be two, got {quote(both)}")
        first, second = (check_int("action", action, 0, world.n_actions - 1) for action in both)
        actions = (first, second)
    return Divergence(
        pair=record.whole("pair"),
        stage=record.text("stage"),
        tier=record.maybe_whole("tier"),
        step=record.maybe_whole("step", world.horizon),
        state=record.maybe_whole("state", world.n_states - 1),
        margin=record.maybe_real("margin"),
        actions=actions,
        text=record.text("text"),
    )


def _cell(item: object, world: World) -> Cell:
    record = Reader("cell", item)
    actions = []
    for choice in record.list("actions"):
        if not isinstance(choice, list | tuple) or len(choice) != 2:
            raise ReprlError(f"cell actions must be pairs of an action and its share, got {quote(choice)}")
        share = check_real("share of an action", choice[1], 0.0, 1.0, open_low=False, open_high=False)
        actions.append((check_int("action", choice[0], 0, world.n_actions - 1), share))
    return Cell(
        step=record.whole("step", 0, world.horizon - 1),
        state=record.whole("state", 0, world.n_states - 1),
        disagreement=record.real("disagreement", 0.0, 1.0),
        reachability=record.maybe_real("reachability", 0.0),
        stake=record.maybe_real("stake", 0.0),
        actions=tuple(actions),
    )


def _comparison(document: Mapping[str, Any]) -> Comparison:
    comparison = Reader.of_format("comparison", document, "reprl-comparison")
    return Comparison(
        world=_labelled(comparison),
        epsilon=comparison.real("epsilon"),
        rho=comparison.real("rho", 0.0, 1.0),
        pairs=comparison.whole("pairs", 1),
        rows=tuple(_row(item) for item in comparison.list("rows")),
        digest=_digest(document),
    )


def _row(item: object) -> Row:
    row = Reader("comparison row", item)
    return Row(
        learner=row.text("learner"),
        access=row.text("access"),
        samples=row.maybe_real("samples", 0.0),
        limit=row.real("limit"),
        reached=bool(row("reached")),
        disagreement=row.maybe_real("disagreement", 0.0),
        interval=None if row.document.get("interval") is None else _pair(row, "interval", 1.0),
        suboptimality=row.maybe_real("suboptimality"),
        curve=_curve(row),
    )


def _pair(reader: Reader, field: str, high: float) -> tuple[float, float]:
    ends = reader.list(field)
    if len(ends) != 2:
        raise ReprlError(f"{reader.name} {field} must be [low, high], got {quote(ends)}")
    low, top = (check_real(f"{reader.name} {field}", end, 0.0, high, open_low=False, open_high=False) for end in ends)
    return low, top


def _mean_max(reader: Reader, field: str) -> tuple[float, float] | None:
    if reader.document.get(field) is None:
        return None
    part = reader.part(field)
    return part.real("mean", -float("inf")), part.real("max", -float("inf"))


def _curve(reader: Reader) -> tuple[Point, ...]:
    """Read [samples, disagreement, low, high(, suboptimality)] rows in order of samples."""
    points = []
    for row in reader.list("curve") if reader.document.get("curve") is not None else ():
        if not isinstance(row, list | tuple) or len(row) not in (4, 5):
            raise ReprlError(f"{reader.name} curve must hold rows of 4 or 5 numbers, got {quote(row)}")
        samples = check_real(f"{reader.name} curve samples", row[0], 0.0, float("inf"))
        rates = [
            check_real(f"{reader.name} curve disagreement", x, 0.0, 1.0, open_low=False, open_high=False)
            for x in row[1:4]
        ]
        loss = None if len(row) == 4 or row[4] is None else row[4]
        if loss is not None:
            loss = check_real(f"{reader.name} curve suboptimality", loss, -float("inf"), float("inf"))
        points.append(Point(samples, rates[0], rates[1], rates[2], loss))
    return tuple(sorted(points, key=lambda point: point.samples))
