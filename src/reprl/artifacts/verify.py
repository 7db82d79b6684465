"""Are two runs the same, and if not, where and by how much."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np

from reprl.artifacts.folder import POLICY, RECEIPT, RECIPE, StoredRun, find_file, load_run
from reprl.artifacts.receipt import Receipt
from reprl.artifacts.recipe import Recipe
from reprl.artifacts.search import SearchReceipt, StoredSearch, parted
from reprl.errors import DocumentError, InputError, ReprlError, quote
from reprl.execution.terminal import open_card
from reprl.learning.adapters import lasting
from reprl.learning.result import LearnResult
from reprl.learning.search_result import SearchResult
from reprl.mdp.catalogue import PREFIX
from reprl.mdp.labels import Labels
from reprl.mdp.policy import FORMATS, Policy, TablePolicy
from reprl.mdp.tabular import TabularMDP
from reprl.search.policies import OwnPolicy, VectorPolicy
from reprl.sources.environment import describe
from reprl.sources.gymnasium.model import GymnasiumModel
from reprl.storage.documents import read_document, stated_format

SAME_DATA = "both runs used one data seed: equal policies show determinism, not replicability"
SAME_LOG = "both runs read one log: equal policies show determinism, not replicability"
FIRST = 10
"""Differing cells that a comparison names."""


class Evidence(NamedTuple):
    """One side of a comparison: what a path holds."""

    path: str
    fingerprint: str
    policy: Policy | None
    receipt: Receipt | None
    recipe: Recipe | None
    search: SearchReceipt | None = None
    """Of a search, whose receipt is of another kind."""

    @property
    def labels(self) -> Labels | None:
        """Names of states and actions: those of the policy, or of the receipt where that is all there is."""
        if self.policy is not None and getattr(self.policy, "names", None) is not None:
            return self.policy.labels
        return None if self.receipt is None else self.receipt.labels


def load_evidence(path: str | os.PathLike[str]) -> Evidence:
    """Read a run folder, a policy or a receipt; files that lie beside one of these are used if they belong to it."""
    source = Path(path)
    if source.is_dir():
        return _stored(str(source), load_run(source))
    format = stated_format(read_document(source))
    policy: Policy | None = None
    receipt: Receipt | None = None
    if format == "reprl-receipt":
        receipt, policy = Receipt.load(source), _beside(source, POLICY, Policy)
        if policy is not None and not _belong(policy, receipt):
            policy = None
    elif format == "reprl-search-receipt":
        found = SearchReceipt.load(source)
        return Evidence(str(source), found.fingerprint, _matching(source, found.fingerprint), None, None, found)
    elif format in FORMATS:
        policy, receipt = Policy.load(source), _beside(source, RECEIPT, Receipt)
        if receipt is not None and not _belong(policy, receipt):
            receipt = None
    else:
        raise DocumentError(f"{source} must be a policy, a receipt or a run folder, got {quote(format)}")
    recipe = _beside(source, RECIPE, Recipe)
    if recipe is not None and (receipt is None or receipt.recipe != recipe.digest):
        recipe = None
    known = policy or receipt
    assert known is not None
    return Evidence(str(source), known.fingerprint, policy, receipt, recipe)


def _belong(policy: Policy, receipt: Receipt) -> bool:
    """Whether a policy is a receipt's: the same table of the same names."""
    return policy.fingerprint == receipt.fingerprint and not policy.labels.difference(receipt.labels)


def _matching(source: Path, fingerprint: str) -> Policy | None:
    """The policy beside a receipt, if it is the receipt's."""
    policy = _beside(source, POLICY, Policy)
    return policy if policy is not None and policy.fingerprint == fingerprint else None


def _stored(name: str, run: StoredRun | LearnResult | StoredSearch | SearchResult) -> Evidence:
    if isinstance(run, StoredSearch | SearchResult):
        return Evidence(name, run.policy.fingerprint, run.policy, None, None, run.receipt)
    return Evidence(name, run.policy.fingerprint, run.policy, run.receipt, run.recipe)


def _side(name: str, given: object) -> Evidence:
    """Return what is known of one side of ``verify``."""
    if isinstance(given, str | os.PathLike):
        return load_evidence(given)
    if isinstance(given, StoredRun | LearnResult | StoredSearch | SearchResult):
        return _stored(name, given)
    fingerprint = getattr(given, "fingerprint", None)
    if not isinstance(fingerprint, str):
        allowed = "a result, a policy, or the path of a run folder, a policy or a receipt"
        raise InputError(f"{name} must be {allowed}, got {quote(given)}")
    return Evidence(name, fingerprint, cast(Policy, given), None, None)


def verify(a: object, b: object, env: TabularMDP | GymnasiumModel | None = None) -> Verification:
    """Compare the policies of two runs: whether they are the same and, if not, where and by how much they differ.

    Args:
        a: a result, a stored run, a policy, or the path of a run folder, a policy or a receipt.
        b: the other one.
        env: where both act, for names and values; None for what the recipes name, if that is of reprl's own catalogue.

    Guarantee:
        Same means equal fingerprints, whatever kind of policies these are, and the same names of states and actions
        where both sides have names. Cells and values are for tables only.
    """
    sides = (_side("a", a), _side("b", b))
    first, second = (side.policy or side.fingerprint for side in sides)
    world = find_world(sides)[0] if env is None else env
    called = (sides[0].labels, sides[1].labels)
    return compare_policies(first, second, world, find_names(sides), called)


def find_world(sides: Sequence[Evidence]) -> tuple[TabularMDP | GymnasiumModel | None, list[str]]:
    """Return the environment of both sides, if it can be known, and why values are missing if not."""
    known = [side.recipe for side in sides if side.recipe is not None and side.recipe.environment.id is not None]
    if not known or known[0].of_log:
        return None, []
    id = str(known[0].environment.id)
    if id.startswith(PREFIX):  # a stranger's folder must not decide what is opened here
        return None, [f"values are missing: {quote(id)} is opened only where you name it (--env)"]
    try:
        return known[0].make_small(), []
    except ReprlError as error:
        return None, [f"values are missing: {error}"]


def find_names(sides: Sequence[Evidence]) -> Labels | None:
    """Return the names in the receipts, unless these contradict each other."""
    found = {side.receipt.labels for side in sides if side.receipt is not None}
    return found.pop() if len(found) == 1 else None


def _beside(source: Path, name: str, kind: Any) -> Any:
    try:
        return kind.load(find_file(source.parent, name))
    except ReprlError:
        return None


def remarks(sides: Sequence[Evidence | StoredRun]) -> list[str]:
    """Return remarks on a comparison of two runs: promises that were not made, data that were not fresh."""
    searches = [side.search for side in sides if isinstance(side, Evidence) and side.search is not None]
    if len(searches) == 2:
        return parted(*searches)
    receipts = [(_called(side, number), side.receipt) for number, side in enumerate(sides)]
    found = [
        f"{name} was undecided when its {'samples ran out' if receipt.coverage is None else 'log ended'}: "
        "no same policy is promised of it"
        for name, receipt in receipts
        if receipt is not None and receipt.guarantee.same.status == "none" and receipt.verdict is not None
    ]
    (_, first), (_, second) = receipts
    if first is None or second is None:
        return found
    if first.recipe != second.recipe:
        return [*found, "the two runs followed different recipes"]
    if first.data_commitment == second.data_commitment:
        return [*found, SAME_DATA if first.coverage is None else SAME_LOG]
    return found


def _called(side: Evidence | StoredRun, number: int) -> str:
    return side.path if isinstance(side, Evidence) else ("the first run", "the second run")[number]


class CellDifference(NamedTuple):
    """One (step, state) at which two policies part."""

    step: int
    state: int
    actions: tuple[int, int]


@dataclass(frozen=True, kw_only=True)
class Verification:
    """Two fingerprints and what separates them."""

    fingerprints: tuple[str, str]
    shapes: tuple[tuple[int, int], tuple[int, int]] | None
    """(H, S) of both policies; None where one is known by its receipt alone."""
    different: int | None
    """Cells that differ; None where the shapes do, or a policy is missing."""
    first: tuple[CellDifference, ...]
    """The first of them, in order of step and state."""
    values: tuple[float, float] | None
    """Expected returns in the rewards' own units, where the dynamics are known."""
    labels: Labels
    """Known names of states and actions."""
    weights: tuple[int, int] | None = None
    """How many weights differ, of how many, where policies are vectors of one kind."""
    alike: float | None = None
    """Share of an episode's decisions that both take alike, in episodes of the one or the other, whichever is less;
    None where the dynamics are not known."""
    names: tuple[str | None, str | None] = (None, None)
    """SHA-256 of the names of states and actions on both sides; None where there are none."""
    renamed: str = ""
    """Where names differ, in words; empty if nowhere, or if one side has none."""

    @property
    def same(self) -> bool:
        """Whether the two are one policy: the same table, of states and actions of the same names."""
        return self.fingerprints[0] == self.fingerprints[1] and not self.renamed

    def __repr__(self) -> str:
        if self.same:
            return f"Verification(same policy {self.fingerprints[0][:12]})"
        if self.renamed:
            return f"Verification(different policies: {self.renamed})"
        where = "" if self.different is None else f" in {self.different:,} of {self.cells:,} cells"
        if self.weights is not None:
            where = f" in {self.weights[0]:,} of {self.weights[1]:,} weights"
        if self.alike is not None:
            where += f", {100 * self.alike:.3g} % of decisions alike"
        return f"Verification(different policies{where})"

    def _repr_html_(self) -> str:
        """Show whether the two are the same, and where not, in a notebook."""
        return open_card(self)

    @property
    def cells(self) -> int | None:
        """H·S, where both have it."""
        return None if self.different is None or self.shapes is None else self.shapes[0][0] * self.shapes[0][1]

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON document."""
        first = [
            {
                **cell._asdict(),
                "actions": list(cell.actions),
                "state_name": self.labels.state(cell.state),
                "action_names": [self.labels.action(a) for a in cell.actions],
            }
            for cell in self.first
        ]
        cells, values = self.cells, self.values
        return {
            "same": self.same,
            "fingerprints": list(self.fingerprints),
            "names": list(self.names),
            "renamed": self.renamed or None,
            "shapes": None if self.shapes is None else [list(shape) for shape in self.shapes],
            "cells": cells,
            "different": self.different,
            "fraction": None if cells is None or self.different is None else self.different / cells,
            "first": first,
            "values": None if values is None else list(values),
            "value_difference": None if values is None else abs(values[0] - values[1]),
            **({} if self.same else {"alike": self.alike}),
            **({} if self.weights is None else {"weights": list(self.weights)}),
        }


def compare_policies(
    a: Policy | str,
    b: Policy | str,
    env: TabularMDP | GymnasiumModel | None = None,
    labels: Labels | None = None,
    called: tuple[Labels | None, Labels | None] | None = None,
) -> Verification:
    """Compare two policies, or fingerprints where there is no more.

    env gives names and, if its dynamics are known, values; called are the names of states and actions on each side,
    None for those that the policies carry.
    """
    prints = tuple(x if isinstance(x, str) else x.fingerprint for x in (a, b))
    world = None if env is None else describe(env)
    names = labels or Labels()
    if world is not None:
        fits = not isinstance(a, TablePolicy) or a.table.shape == (world.horizon, world.n_states)
        names = world.labels if fits else Labels()
    shapes = different = values = alike = None
    first: tuple[CellDifference, ...] = ()
    if isinstance(a, TablePolicy) and isinstance(b, TablePolicy):  # others have no cells to name
        shapes = ((a.horizon, a.n_states), (b.horizon, b.n_states))
        if shapes[0] == shapes[1]:
            where = np.argwhere(a.differs(b))
            different = len(where)
            first = tuple(
                CellDifference(int(h), int(s), (int(a.table[h, s]), int(b.table[h, s]))) for h, s in where[:FIRST]
            )
        if isinstance(env, TabularMDP) and all(_fits(policy, env) for policy in (a, b)):
            place = describe(env)
            values = (place.original_return(env.evaluate(a)), place.original_return(env.evaluate(b)))
            alike = 1.0 - a.disagreement(b, tuple(lasting(env, policy) for policy in (a, b)))
    one, two = called or (None if isinstance(x, str) else getattr(x, "labels", None) for x in (a, b))
    one, two = one or Labels(), two or Labels()
    return Verification(
        fingerprints=(prints[0], prints[1]),
        shapes=shapes,
        different=different,
        first=first,
        values=values,
        labels=names,
        weights=_weights(a, b),
        alike=alike,
        names=(one.digest, two.digest),
        renamed=one.difference(two),
    )


def _weights(a: Policy | str, b: Policy | str) -> tuple[int, int] | None:
    """How many weights of two policies differ, where both are vectors of one kind."""
    if not isinstance(a, VectorPolicy | OwnPolicy) or type(a) is not type(b):
        return None
    try:
        share = a.disagreement(cast(Policy, b))
    except InputError:
        return None
    return round(share * a.weights.size), a.weights.size


def _fits(policy: TablePolicy, env: TabularMDP) -> bool:
    return policy.table.shape == (env.horizon, env.n_states) and int(policy.table.max()) < env.n_actions
