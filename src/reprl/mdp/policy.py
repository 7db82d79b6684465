"""Policy: the (H, S) table of actions that two runs either share exactly or do not."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from reprl.documents import Reader, dump, load
from reprl.errors import ReprlError, quote
from reprl.files import write_atomic

_FORMAT = "reprl-policy"
_VERSION = 1
_MAX_ACTION = 2**31 - 1


class Policy:
    """A deterministic, time-dependent policy: immutable, comparable, with a canonical fingerprint.

    Args:
        actions: (H, S) table of action indices.
    """

    __slots__ = ("_actions", "_fingerprint")

    def __init__(self, actions: ArrayLike | Policy) -> None:
        """Check and freeze a table of actions."""
        self._actions = actions.actions if isinstance(actions, Policy) else _checked(actions)
        self._fingerprint = ""

    @property
    def actions(self) -> NDArray[np.int64]:
        """The (H, S) table of action indices, read-only."""
        return self._actions

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
            header = f"{_FORMAT} {_VERSION} {self.horizon} {self.n_states}\n".encode()
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

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle by actions, so that the copy is checked and write-protected like the original."""
        return Policy, (self.actions,)

    def to_json(self) -> str:
        """Return the canonical JSON document of this policy."""
        document = {
            "format": _FORMAT,
            "version": _VERSION,
            "horizon": self.horizon,
            "n_states": self.n_states,
            "fingerprint": self.fingerprint,
            "actions": self.actions.tolist(),
        }
        return dump(document)

    @classmethod
    def from_json(cls, text: str | bytes) -> Policy:
        """Read what ``to_json`` wrote; anything else is a ReprlError."""
        document = Reader.open(text, "policy", _FORMAT, _VERSION, ("horizon", "n_states", "fingerprint", "actions"))
        policy = cls(document.items("actions"))
        for name, actual in (("horizon", policy.horizon), ("n_states", policy.n_states)):
            if document[name] != actual:
                raise ReprlError(f"policy {name} must match its actions ({actual}), got {quote(document[name])}")
        if document["fingerprint"] != policy.fingerprint:
            stated = quote(document["fingerprint"])
            raise ReprlError(f"policy fingerprint must be {policy.fingerprint} for these actions, got {stated}")
        return policy

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
