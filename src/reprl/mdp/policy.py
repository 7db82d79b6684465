"""Policy: the table of actions, (H, S) or (S,), that two runs either share exactly or do not."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from reprl.errors import DocumentError, InputError, check_int, quote
from reprl.execution.terminal import open_card
from reprl.mdp.criterion import Sized, criterion_of
from reprl.storage.documents import dump, load
from reprl.storage.fields import ANYTHING, Document, many
from reprl.storage.files import write_atomic
from reprl.storage.frames import cell_columns, frame

if TYPE_CHECKING:
    import pandas as pd

    from reprl.mdp.interface import Interface

_TABLE, _NAMED, _STATIONARY = 1, 2, 3
"""Versions of a document: a bare table, one that knows its environment's spaces and names, and a stationary one, which
has no horizon and may know them."""
_MAX_ACTION = 2**31 - 1


class Policy:
    """A deterministic policy: immutable, comparable, with a canonical fingerprint.

    Args:
        actions: (H, S) table of action indices; or (S,) for a *stationary* one, which does the same at every step.
        interface: the environment's spaces and names, which make it fit to act there; no part of what it *is*: neither
            equality nor the fingerprint looks at it.
    """

    __slots__ = ("_fingerprint", "_interface", "_stationary", "_table")

    def __init__(self, actions: ArrayLike | Policy, interface: Interface | None = None) -> None:
        """Check and freeze a table of actions."""
        if isinstance(actions, Policy):
            self._table, self._stationary = actions.table, actions.stationary
            interface = interface or actions.interface
        else:
            self._table, self._stationary = _checked(actions)
        self._interface = interface
        self._fingerprint = ""

    @property
    def actions(self) -> NDArray[np.int64]:
        """The table of action indices, (H, S), or (S,) if it is stationary; read-only."""
        return self._table[0] if self._stationary else self._table

    @property
    def table(self) -> NDArray[np.int64]:
        """The same with a row for each step, (H, S), or the one row of a stationary policy, (1, S)."""
        return self._table

    @property
    def stationary(self) -> bool:
        """Whether it does the same at every step."""
        return self._stationary

    @property
    def interface(self) -> Interface | None:
        """Spaces and names of the environment that it was learned in; None for a bare table."""
        return self._interface

    def act(self, observation: Any, step: int | None = None) -> Any:
        """Return what to do: an action as the environment takes it.

        Args:
            observation: what the environment shows, or a state's name; a state's number where its dynamics are known,
                or for a bare table.
            step: how many steps of the episode are over, from 0 to H − 1; a stationary policy has no need of it.
        """
        from reprl.mdp.interface import Interface

        if self.stationary:
            h = 0 if step is None else min(0, check_int("step", step, 0))
        else:
            h = check_int("step", step, 0, self.horizon - 1)
        interface = self.interface or Interface()
        return interface.member(int(self.table[h, interface.state(observation, self.n_states)]))

    @property
    def horizon(self) -> int:
        """Rows of the table: H, or 1 for a stationary policy."""
        return int(self.table.shape[0])

    @property
    def n_states(self) -> int:
        """S."""
        return int(self.table.shape[1])

    @property
    def fingerprint(self) -> str:
        """SHA-256, in 64 hexadecimal digits, of the version, H, S and the actions in row order, little-endian.

        A stationary policy says "stationary" for H: it is not the one of a single step.
        """
        if not self._fingerprint:
            form = f"{_STATIONARY} stationary" if self.stationary else f"{_TABLE} {self.horizon}"
            header = f"reprl-policy {form} {self.n_states}\n".encode()
            self._fingerprint = hashlib.sha256(header + self.table.astype("<i4").tobytes()).hexdigest()
        return self._fingerprint

    @property
    def short_fingerprint(self) -> str:
        """The first 12 digits of the fingerprint, for people; compare the whole one."""
        return self.fingerprint[:12]

    def __eq__(self, other: object) -> bool:
        """Equal shapes and equal actions everywhere."""
        return isinstance(other, Policy) and np.array_equal(self.actions, other.actions)  # (1, S) is not (S,)

    def __hash__(self) -> int:
        """Hash by fingerprint."""
        return int(self.fingerprint[:15], 16)

    def __repr__(self) -> str:
        """Show the shape and the short fingerprint."""
        form = "stationary" if self.stationary else f"horizon={self.horizon}"
        return f"Policy({form}, n_states={self.n_states}, fingerprint={self.short_fingerprint})"

    def _repr_html_(self) -> str:
        """Show a map and the fingerprint in a notebook."""
        return open_card(self)

    def to_pandas(self) -> pd.DataFrame:
        """Return a row for each step and state: action, and names where they are known."""
        labels = None if self.interface is None else self.interface.labels
        columns = cell_columns((self.horizon, self.n_states), () if labels is None else labels.states)
        columns["action"] = self.table.ravel()
        if labels is not None and labels.actions:
            columns["action_name"] = np.array(labels.actions, dtype=object)[self.table.ravel()]
        return frame(columns)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle by actions, so that the copy is checked and write-protected like the original."""
        return Policy, (self.actions, self.interface)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON document of this policy."""
        version = _STATIONARY if self.stationary else _TABLE if self.interface is None else _NAMED
        return _DOCUMENT.write(self, version)

    def to_json(self) -> str:
        """Return the document as text."""
        return dump(self.to_dict())

    @classmethod
    def from_json(cls, text: str | bytes) -> Policy:
        """Read what ``to_json`` wrote; anything else is a ReprlError."""
        document = _DOCUMENT.read(text)
        policy, stationary = cls(document["actions"]), "horizon" not in document
        if policy.stationary != stationary:
            form = "(S,)" if stationary else "(H, S)"
            raise DocumentError(f"policy actions must have shape {form} in this version, got {policy.actions.shape}")
        for name, actual in (("horizon", policy.horizon), ("n_states", policy.n_states)):
            if name in document and document[name] != actual:
                raise DocumentError(f"policy {name} must match its actions ({actual}), got {quote(document[name])}")
        if document["fingerprint"] != policy.fingerprint:
            stated = quote(document["fingerprint"])
            raise DocumentError(f"policy fingerprint must be {policy.fingerprint} for these actions, got {stated}")
        if "interface" not in document or (stationary and document["interface"] is None):
            return policy
        from reprl.mdp.interface import Interface

        return cls(policy, Interface.read("policy interface", document["interface"], policy.n_states))

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the policy to path as JSON, all or nothing."""
        return write_atomic(path, self.to_json().encode())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Policy:
        """Read a policy that ``save`` wrote."""
        return load(path, cls.from_json)


_DOCUMENT = Document(
    "policy",
    "reprl-policy",
    (_STATIONARY, _TABLE, _NAMED),
    Policy,
    {
        "horizon": ANYTHING._replace(until=_NAMED),
        "n_states": ANYTHING,
        "fingerprint": ANYTHING,
        "actions": many(ANYTHING, make=list)._replace(write=lambda actions, version: actions.tolist()),
        "interface": ANYTHING._replace(write=lambda known, version: known and known.to_dict(), since=_NAMED),
    },
)
"""The table itself says what the other fields must be."""


def check_policy(policy: Policy | ArrayLike, world: Sized) -> Policy:
    """Return policy as a Policy that fits a world of these sizes: stationary for one that is discounted.

    A stationary policy also fits a world with a horizon, where it is repeated at every step.
    """
    checked = policy if isinstance(policy, Policy) else Policy(policy)
    shape = criterion_of(world).policy_shape(world.n_states)
    if checked.stationary and len(shape) == 2:
        checked = Policy(np.tile(checked.table, (shape[0], 1)), checked.interface)
    if checked.actions.shape != shape:
        form = "(H, S)" if len(shape) == 2 else "(S,), as this world is discounted,"
        raise InputError(f"policy must have shape {form} = {shape}, got {checked.actions.shape}")
    actions = checked.table
    if actions.max() >= world.n_actions:
        h, s = (int(i) for i in np.argwhere(actions >= world.n_actions)[0])
        raise InputError(f"policy action [{h}, {s}] must be from 0 to {world.n_actions - 1}, got {actions[h, s]}")
    mask = getattr(world, "allowed", None)
    if mask is not None:
        mask = mask[: len(actions)]
        taken = np.take_along_axis(mask, actions[..., None], axis=2)[..., 0]
        if not taken.all():
            h, s = (int(i) for i in np.argwhere(~taken)[0])
            may = ", ".join(map(str, np.flatnonzero(mask[h, s])))
            raise InputError(f"policy action [{h}, {s}] must be allowed there ({may}), got {actions[h, s]}")
    return checked


def _checked(actions: ArrayLike) -> tuple[NDArray[np.int64], bool]:
    """Return the table, a row for each step, and whether its one row is for all steps."""
    wanted = "an (H, S) table of action indices, or (S,)"
    try:
        table = np.asarray(actions)
    except (ValueError, TypeError, OverflowError):
        raise InputError(f"actions must be {wanted}, got {quote(actions)}") from None
    if table.dtype.kind not in "iuf" or table.ndim not in (1, 2) or 0 in table.shape:
        raise InputError(f"actions must be {wanted}, got {table.dtype} of shape {table.shape}")
    stationary = table.ndim == 1
    table = np.atleast_2d(table).astype(np.float64 if table.dtype.kind == "f" else table.dtype)  # halves overflow
    bad = ~((table >= 0) & (table <= _MAX_ACTION) & (table == np.floor(table)))
    if bad.any():
        h, s = (int(i) for i in np.argwhere(bad)[0])
        raise InputError(f"actions[{h}, {s}] must be an action index from 0 to {_MAX_ACTION}, got {table[h, s]}")
    frozen = np.ascontiguousarray(table, dtype=np.int64).copy()
    frozen.setflags(write=False)
    return frozen, stationary
