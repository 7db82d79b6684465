"""Policy: the (H, S) table of actions that two runs either share exactly or do not."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from reprl.documents import Reader, dump, load
from reprl.errors import ReprlError, check_int, quote
from reprl.files import write_atomic
from reprl.frames import cell_columns, frame

if TYPE_CHECKING:
    import pandas as pd

    from reprl.mdp.interface import Interface

_FORMAT = "reprl-policy"
_TABLE, _VERSION = 1, 2
"""Versions of a document: a bare table, and one that knows its environment's spaces and names."""
_NAMES = ("horizon", "n_states", "fingerprint", "actions")
_MAX_ACTION = 2**31 - 1


class Policy:
    """A deterministic, time-dependent policy: immutable, comparable, with a canonical fingerprint.

    Args:
        actions: (H, S) table of action indices.
        interface: the environment's spaces and names, which make it fit to act there; no part of what it *is*: neither
            equality nor the fingerprint looks at it.
    """

    __slots__ = ("_actions", "_fingerprint", "_interface")

    def __init__(self, actions: ArrayLike | Policy, interface: Interface | None = None) -> None:
        """Check and freeze a table of actions."""
        if isinstance(actions, Policy):
            self._actions, interface = actions.actions, interface or actions.interface
        else:
            self._actions = _checked(actions)
        self._interface = interface
        self._fingerprint = ""

    @property
    def actions(self) -> NDArray[np.int64]:
        """The (H, S) table of action indices, read-only."""
        return self._actions

    @property
    def interface(self) -> Interface | None:
        """Spaces and names of the environment that it was learned in; None for a bare table."""
        return self._interface

    def act(self, observation: Any, step: int) -> Any:
        """Return what to do: an action as the environment takes it.

        Args:
            observation: what the environment shows, or a state's name; a state's number where its dynamics are known,
                or for a bare table.
            step: how many steps of the episode are over, from 0 to H − 1.
        """
        from reprl.mdp.interface import Interface

        h = check_int("step", step, 0, self.horizon - 1)
        interface = self.interface or Interface()
        return interface.member(int(self.actions[h, interface.state(observation, self.n_states)]))

    @property
    def horizon(self) -> int:
        """H."""
        return int(self.actions.shape[0])

    @property
    def n_states(self) -> int:
        """S."""
        return int(self.actions.shape[1])

    @property
    def fingerprint(self) -> str:
        """SHA-256, in 64 hexadecimal digits, of the version, H, S and the actions in row order, little-endian."""
        if not self._fingerprint:
            header = f"{_FORMAT} {_TABLE} {self.horizon} {self.n_states}\n".encode()
            self._fingerprint = hashlib.sha256(header + self.actions.astype("<i4").tobytes()).hexdigest()
        return self._fingerprint

    @property
    def short_fingerprint(self) -> str:
        """The first 12 digits of the fingerprint, for people; compare the whole one."""
        return self.fingerprint[:12]

    def __eq__(self, other: object) -> bool:
        """Equal shapes and equal actions everywhere."""
        return isinstance(other, Policy) and np.array_equal(self.actions, other.actions)

    def __hash__(self) -> int:
        """Hash by fingerprint."""
        return int(self.fingerprint[:15], 16)

    def __repr__(self) -> str:
        """Show the shape and the short fingerprint."""
        return f"Policy(horizon={self.horizon}, n_states={self.n_states}, fingerprint={self.short_fingerprint})"

    def _repr_html_(self) -> str:
        """Show a map and the fingerprint in a notebook."""
        from reprl import card

        return card(self)

    def to_pandas(self) -> pd.DataFrame:
        """Return a row for each step and state: action, and names where they are known."""
        labels = None if self.interface is None else self.interface.labels
        columns = cell_columns((self.horizon, self.n_states), () if labels is None else labels.states)
        columns["action"] = self.actions.ravel()
        if labels is not None and labels.actions:
            columns["action_name"] = np.array(labels.actions, dtype=object)[self.actions.ravel()]
        return frame(columns)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle by actions, so that the copy is checked and write-protected like the original."""
        return Policy, (self.actions, self.interface)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON document of this policy."""
        document = {
            "format": _FORMAT,
            "version": _TABLE if self.interface is None else _VERSION,
            "horizon": self.horizon,
            "n_states": self.n_states,
            "fingerprint": self.fingerprint,
            "actions": self.actions.tolist(),
        }
        return document if self.interface is None else {**document, "interface": self.interface.as_dict()}

    def to_json(self) -> str:
        """Return the document as text."""
        return dump(self.to_dict())

    @classmethod
    def from_json(cls, text: str | bytes) -> Policy:
        """Read what ``to_json`` wrote; anything else is a ReprlError."""
        document = Reader.open(text, "policy", _FORMAT, _VERSION, (*_NAMES, "interface"), earlier={_TABLE: _NAMES})
        policy = cls(document.items("actions"))
        for name, actual in (("horizon", policy.horizon), ("n_states", policy.n_states)):
            if document[name] != actual:
                raise ReprlError(f"policy {name} must match its actions ({actual}), got {quote(document[name])}")
        if document["fingerprint"] != policy.fingerprint:
            stated = quote(document["fingerprint"])
            raise ReprlError(f"policy fingerprint must be {policy.fingerprint} for these actions, got {stated}")
        if document["version"] == _TABLE:
            return policy
        from reprl.mdp.interface import Interface

        return cls(policy, Interface.read(document, policy.n_states))

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the policy to path as JSON, all or nothing."""
        return write_atomic(path, self.to_json().encode())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Policy:
        """Read a policy that ``save`` wrote."""
        return load(path, cls.from_json)


class Sized(Protocol):
    """Anything with the sizes of an MDP."""

    @property
    def horizon(self) -> int:
        """H."""

    @property
    def n_states(self) -> int:
        """S."""

    @property
    def n_actions(self) -> int:
        """A."""


def check_policy(policy: Policy | ArrayLike, world: Sized) -> Policy:
    """Return policy as a Policy that fits a world of these sizes."""
    checked = policy if isinstance(policy, Policy) else Policy(policy)
    actions, shape = checked.actions, (world.horizon, world.n_states)
    if actions.shape != shape:
        raise ReprlError(f"policy must have shape (H, S) = {shape}, got {actions.shape}")
    if actions.max() >= world.n_actions:
        h, s = (int(i) for i in np.argwhere(actions >= world.n_actions)[0])
        raise ReprlError(f"policy action [{h}, {s}] must be from 0 to {world.n_actions - 1}, got {actions[h, s]}")
    mask = getattr(world, "allowed", None)
    if mask is not None:
        taken = np.take_along_axis(mask, actions[..., None], axis=2)[..., 0]
        if not taken.all():
            h, s = (int(i) for i in np.argwhere(~taken)[0])
            may = ", ".join(map(str, np.flatnonzero(mask[h, s])))
            raise ReprlError(f"policy action [{h}, {s}] must be allowed there ({may}), got {actions[h, s]}")
    return checked


def _checked(actions: ArrayLike) -> NDArray[np.int64]:
    try:
        table = np.asarray(actions)
    except (ValueError, TypeError, OverflowError):
        raise ReprlError(f"actions must be an (H, S) table of action indices, got {quote(actions)}") from None
    if table.dtype.kind not in "iuf" or table.ndim != 2 or 0 in table.shape:
        raise ReprlError(f"actions must be an (H, S) table of action indices, got {table.dtype} of shape {table.shape}")
    bad = ~((table >= 0) & (table <= _MAX_ACTION) & (table == np.floor(table)))
    if bad.any():
        h, s = (int(i) for i in np.argwhere(bad)[0])
        raise ReprlError(f"actions[{h}, {s}] must be an action index from 0 to {_MAX_ACTION}, got {table[h, s]}")
    frozen = np.ascontiguousarray(table, dtype=np.int64).copy()
    frozen.setflags(write=False)
    return frozen
