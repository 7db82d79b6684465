"""Basis: why a policy that was learned from a log says what it says, cell by cell."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from reprl.errors import InputError
from reprl.storage.documents import digest
from reprl.storage.fields import Kind, read_fields, wholes

DECIDERS = ("default", "preference", "data")
"""Who decides a cell: nobody, because hardly anything is known of it or the policy never comes there, so that it says
the most preferred action; the order of preference, among several actions that count as equal; or the data, because one
action alone is within the tolerance of the best."""
DEFAULT, PREFERENCE, DATA = range(3)
FALLBACKS = ("practice",)


class Basis(NamedTuple):
    """Who decided each cell of a table, and what the log shows there."""

    decided: NDArray[np.int64]
    """(H, S): the place in DECIDERS."""
    samples: NDArray[np.int64]
    """(H, S): rows of the log in this cell, all actions together."""
    agree: NDArray[np.int64]
    """(H, S): rows of those in which the log did what the policy says."""
    usual: NDArray[np.int64]
    """(H, S): the action that the log took most often there, or in this state at other steps; −1 where it never was."""

    @property
    def names(self) -> NDArray[np.object_]:
        """(H, S): who decided, in a word."""
        return np.array(DECIDERS, dtype=object)[self.decided]

    def counts(self) -> dict[str, int]:
        """Return how many cells each of DECIDERS decided."""
        found = np.bincount(self.decided.ravel(), minlength=len(DECIDERS)).tolist()
        return dict(zip(DECIDERS, found, strict=True))

    @property
    def digest(self) -> str:
        """SHA-256 of all tables."""
        return digest({"format": "reprl-basis 1", **self.to_dict()})

    def answer(self, h: int, s: int, action: int, cell: str, *, strict: bool, fallback: str | None) -> int:
        """Return the action of a cell: the table's, or if the cell holds a default, practice's or an error.

        strict refuses a default; fallback="practice" puts what the log does most often in its place. cell is for the
        error.
        """
        if self.decided[h, s] != DEFAULT:
            return action
        usual = int(self.usual[h, s])
        if fallback is not None and usual >= 0:
            return usual
        rows = f"{int(self.samples[h, s])} rows of the log"
        if strict:
            raise InputError(
                f"observation must be in a cell that data or the preference decided (strict=True), got {cell}, which "
                f"has {rows}: the table holds a default there"
            )
        if fallback is not None:
            raise InputError(f"observation must be in a state of the log for fallback='practice', got {cell}")
        return action

    def to_dict(self) -> dict[str, Any]:
        """Return a part of a JSON document."""
        return {name: table.tolist() for name, table in self._asdict().items()}


def basis_kind(shape: Any) -> Kind:
    """Return how a document holds a basis, whose tables have a shape that may depend on other fields."""
    table = {
        "decided": wholes(shape, 0, len(DECIDERS) - 1),
        "samples": wholes(shape, 0, 2**62),
        "agree": wholes(shape, 0, 2**62),
        "usual": wholes(shape, -1, 2**31 - 1),
    }
    return Kind(lambda where, value, at: Basis(**read_fields(where, value, table, at)), lambda basis: basis.to_dict())
