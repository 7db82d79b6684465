"""Policy: what two runs either share exactly or do not. Its first kind is a table of actions, (H, S) or (S,)."""

from __future__ import annotations

import hashlib
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from reprl.errors import DocumentError, InputError, check_array, check_choice, check_int, quote
from reprl.execution.terminal import open_card
from reprl.mdp.basis import FALLBACKS, Basis, basis_kind
from reprl.mdp.criterion import Sized, criterion_of
from reprl.mdp.interface import Interface
from reprl.mdp.labels import Labels
from reprl.storage.documents import JsonDocument, decode, stated_format
from reprl.storage.fields import ANYTHING, SHA256, Document, many, optional
from reprl.storage.frames import cell_columns, frame

if TYPE_CHECKING:
    import pandas as pd

_MAX_ACTION = 2**31 - 1


class Policy(JsonDocument):
    """The interface of every kind of policy. ``Policy(actions)`` makes a TablePolicy.

    A kind has ``act``, ``fingerprint``, ``to_dict`` and ``disagreement``; what is batched, compared, hashed and saved
    follows from these. Policies are immutable, and two are the same if their fingerprints are.
    """

    __slots__ = ()

    def __new__(cls, *parts: Any, **named: Any) -> Policy:
        """Make a table, unless a kind is asked for by its name."""
        return super().__new__(TablePolicy if cls is Policy else cls)

    def act(self, observation: Any, step: int | None = None) -> Any:
        """Return what to do after so many steps of an episode: an action as the environment takes it."""
        raise NotImplementedError

    @property
    def fingerprint(self) -> str:
        """SHA-256, in 64 hexadecimal digits, of what the policy does."""
        raise NotImplementedError

    def disagreement(self, other: Policy, weights: Any = None) -> float:
        """Return the share of decisions, weighted if weights are given, in which two policies differ."""
        raise NotImplementedError

    @property
    def ignores_step(self) -> bool:
        """Whether it does the same at every step, so that ``act`` needs none."""
        return False

    @property
    def interface(self) -> Interface | None:
        """Spaces and names of the environment that it was learned in; None if it knows none."""
        return None

    @property
    def labels(self) -> Labels:
        """Names of states and actions; empty where it knows none."""
        return Labels() if self.interface is None else self.interface.labels

    @property
    def names(self) -> str | None:
        """SHA-256 of the names of states and actions, which the fingerprint does not cover; None if it knows none."""
        return self.labels.digest

    @property
    def basis(self) -> Basis | None:
        """Whether data, preference or default decided each cell; None if not recorded."""
        return None

    @property
    def table(self) -> NDArray[np.int64]:
        """Its actions, a row for each step, (H, S), or one row for all steps; an error if it is no table.

        Code that reads it accepts tables only.
        """
        raise InputError(f"policy must be a table of actions, got {quote(self)}")

    @property
    def stationary(self) -> bool:
        """Whether it is a table with one row for all steps, (S,)."""
        return False

    @property
    def actions(self) -> NDArray[np.int64]:
        """The table of action indices, (H, S), or (S,) if it is stationary; read-only."""
        return self.table[0] if self.stationary else self.table

    @property
    def horizon(self) -> int:
        """Rows of the table: H, or 1 for a stationary policy."""
        return int(self.table.shape[0])

    @property
    def n_states(self) -> int:
        """S."""
        return int(self.table.shape[1])

    def differs(self, other: Policy) -> NDArray[np.bool_]:
        """Return the cells, (H, S), in which two tables differ; a stationary one is the same row at every step."""
        mine, theirs = self.table, other.table
        if mine.shape != theirs.shape and not (
            mine.shape[1] == theirs.shape[1] and (self.stationary or other.stationary)
        ):
            raise InputError(f"policies must have one shape to be compared, got {mine.shape} and {theirs.shape}")
        return np.asarray(mine != theirs)

    def to_pandas(self) -> pd.DataFrame:
        """Return a row for each step and state: action, and names where they are known."""
        labels = self.labels
        columns = cell_columns((self.horizon, self.n_states), labels.states)
        columns["action"] = self.table.ravel()
        if labels.actions:
            columns["action_name"] = np.array(labels.actions, dtype=object)[self.table.ravel()]
        if self.basis is not None:
            columns["decided_by"] = self.basis.names.ravel()
            if labels.actions:
                columns["practice_mostly"] = np.array([*labels.actions, None], dtype=object)[self.basis.usual.ravel()]
        return frame(columns)

    def predict(
        self, observations: Any, state: Any = None, episode_start: ArrayLike | None = None, deterministic: bool = True
    ) -> tuple[Any, NDArray[np.int64] | None]:
        """Return the actions for a batch of observations, or for one, as models of Stable-Baselines3 do.

        Args:
            observations: one observation, or a list or array of them, one for each of n parallel environments.
            state: what the last call returned: how many steps of its episode each environment has made; None for the
                first step. A policy that ignores the step needs and returns none.
            episode_start: (n,) booleans: where an episode begins, the step is 0.
            deterministic: not read, as every policy here is deterministic.

        Returns:
            The actions, and the state for the next call.
        """
        single = self._is_single(observations)
        batch = [observations] if single else list(observations)
        if self.ignores_step:
            found, after = [self.act(seen) for seen in batch], None
        else:
            steps = np.zeros(len(batch), dtype=np.int64) if state is None else np.array(state, dtype=np.int64).ravel()
            if steps.size != len(batch):
                raise InputError(f"state must hold one step for each of {len(batch)} observations, got {quote(state)}")
            if episode_start is not None:
                steps[np.broadcast_to(np.asarray(episode_start, dtype=np.bool_), steps.shape)] = 0
            found, after = [self.act(seen, int(step)) for seen, step in zip(batch, steps, strict=True)], steps + 1
        if single:
            return found[0], after
        return found if any(isinstance(action, dict | tuple) for action in found) else np.array(found), after

    def _is_single(self, observations: Any) -> bool:
        """Whether something is one observation and no batch of them."""
        return np.ndim(observations) == 0

    @property
    def short_fingerprint(self) -> str:
        """The first 12 digits of the fingerprint, for people; compare the whole one."""
        return self.fingerprint[:12]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Policy) and self.fingerprint == other.fingerprint

    def __hash__(self) -> int:
        return int(self.fingerprint[:15], 16)

    def _repr_html_(self) -> str:
        """Show a map and the fingerprint in a notebook."""
        return open_card(self)

    @classmethod
    def from_json(cls, text: str | bytes) -> Policy:
        """Read what ``to_json`` wrote, a policy of any kind; anything else is a ReprlError."""
        module, _, name = KINDS.get(str(stated_format(decode(text, "policy"))), "").partition(":")
        kind: Any = TablePolicy if not module else getattr(import_module(module), name)
        found: Policy = kind.from_json(text)
        return found


KINDS = {
    "reprl-vector-policy": "reprl.search.policies:VectorPolicy",
    "reprl-own-policy": "reprl.search.policies:OwnPolicy",
}
"""Formats of policies that are no tables, and the class that reads each: they stand above this module, so they are
opened by name. A kind of one's own is read if its format and "module:class" are put here."""
FORMATS = ("reprl-policy", *KINDS)
"""Formats of all documents that are policies."""


class TablePolicy(Policy):
    """A table of actions.

    Args:
        actions: (H, S) table of action indices; or (S,) for a *stationary* one, which does the same at every step.
        interface: the environment's spaces and names, which make it fit to act there. Two tables that name states or
            actions differently are not equal; the fingerprint is of the bare table.
        basis: who decided each cell, of a policy that was learned from a log; no part of what it is either.
    """

    __slots__ = ("_basis", "_fingerprint", "_interface", "_stationary", "_table")

    def __init__(
        self, actions: ArrayLike | Policy, interface: Interface | None = None, basis: Basis | None = None
    ) -> None:
        if isinstance(actions, Policy):
            self._table, self._stationary = actions.table, actions.stationary
            interface, basis = interface or actions.interface, basis or actions.basis
        else:
            self._table, self._stationary = _checked(actions)
        self._interface, self._basis = interface, basis
        self._fingerprint = ""

    @property
    def table(self) -> NDArray[np.int64]:
        """The actions with a row for each step, (H, S), or the one row of a stationary policy, (1, S)."""
        return self._table

    @property
    def stationary(self) -> bool:
        """Whether it has one row for all steps."""
        return self._stationary

    @property
    def ignores_step(self) -> bool:
        """Whether it takes the same action at every step: it is stationary, or all its rows are equal."""
        return self._stationary or bool((self._table == self._table[0]).all())

    @property
    def interface(self) -> Interface | None:
        """Spaces and names of the environment that it was learned in; None for a bare table."""
        return self._interface

    @property
    def basis(self) -> Basis | None:
        """Who decided each cell, and what the log shows there; None if it was not learned from a log."""
        return self._basis

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self.actions, dtype=dtype) if copy or dtype is not None else self.actions

    def act(
        self, observation: Any, step: int | None = None, *, strict: bool = False, fallback: str | None = None
    ) -> Any:
        """Return what to do: an action as the environment takes it.

        Args:
            observation: what the environment shows, or a state's name; a state's number where its dynamics are known,
                or for a bare table. Of numbers, an array is as good: it is answered by one.
            step: how many steps of the episode are over, from 0 to H − 1; one that ignores the step has no need of it.
            strict: of a policy from a log, whether to refuse cells that nobody decided.
            fallback: of a policy from a log, what to do in those cells: "practice" for the action that the log takes
                most often there; None for what the table says. What practice does there is no part of what two teams
                agree on: their logs hardly show it.
        """
        if step is None and self.ignores_step and not (strict or fallback):
            h = 0
        else:
            h = check_int("step", 0 if step is None and self._stationary else step, 0, self._last_step)
        h = 0 if self._stationary else h
        row, known = self._table[h], self._interface or Interface()
        if known.observation is None and np.ndim(observation) > 0 and not isinstance(observation, list | tuple):
            states = [known.state(s, self.n_states) for s in observation]
            return (
                np.array([self._answer(h, s, strict, fallback) for s in states]) if strict or fallback else row[states]
            )
        return known.member(self._answer(h, known.state(observation, self.n_states), strict, fallback))

    @property
    def _last_step(self) -> int | None:
        return None if self._stationary else self.horizon - 1

    def _answer(self, h: int, s: int, strict: bool, fallback: str | None) -> int:
        """What to do in a cell."""
        action = int(self._table[h, s])
        if not strict and fallback is None:
            return action
        if fallback is not None:
            check_choice("fallback", fallback, FALLBACKS)
        if self._basis is None:
            name = "fallback" if fallback else "strict"
            raise InputError(
                f"{name} must be left out for a policy that does not say who decided, got {quote(fallback or strict)}"
            )
        known = self._interface or Interface()
        cell = f"state {known.labels.state(s)!r}" + ("" if self._stationary else f" at step {h}")
        return self._basis.answer(h, s, action, cell, strict=strict, fallback=fallback)

    def _is_single(self, observations: Any) -> bool:
        if self._interface is None or self._interface.observation is None:
            return np.ndim(observations) == 0
        try:
            self._interface.state(observations, self.n_states)
        except InputError:
            return isinstance(observations, str)  # no name of a state: act says so
        return True

    def disagreement(self, other: Policy, weights: Any = None) -> float:
        """Return the share of cells in which two tables differ, or of the steps of an episode.

        Args:
            other: a table for the same states and steps.
            weights: what a cell counts, (H, S), not negative, not all 0; None for all alike. Or an MDP, or two tables
                in a tuple, how often each of the two policies comes to a cell: then the share of an episode's steps at
                which they differ, for episodes of this policy or of the other, whichever is larger.
        """
        apart = self.differs(other)
        if weights is None:
            return float(apart.mean())
        if hasattr(weights, "occupancy"):
            weights = weights.occupancy(self), weights.occupancy(other)
        if isinstance(weights, tuple) and len(weights) == 2 and np.ndim(weights[0]) > 0:
            return max(self._share(apart, visits) for visits in weights)
        return self._share(apart, weights)

    @staticmethod
    def _share(apart: NDArray[np.bool_], weights: Any) -> float:
        """The share of the weight at which two tables differ."""
        given = check_array("weights", weights, (1, 2))
        if given.shape[-1] != apart.shape[1] or given.min() < 0.0 or not given.sum() > 0.0:
            raise InputError(f"weights must be (H, S) = {apart.shape} numbers, not negative, got {quote(weights)}")
        try:
            given = np.broadcast_to(given, np.broadcast_shapes(given.shape, apart.shape))
        except ValueError:
            raise InputError(f"weights must have shape (H, S) = {apart.shape}, got {given.shape}") from None
        return float((given * apart).sum() / given.sum())

    @property
    def fingerprint(self) -> str:
        """SHA-256, in 64 hexadecimal digits, of H, S and the actions in row order, little-endian.

        A stationary policy says "stationary" for H: it is not the one of a single step.
        """
        if not self._fingerprint:
            rows = "stationary" if self.stationary else self.horizon
            header = f"reprl-policy 1 {rows} {self.n_states}\n".encode()
            self._fingerprint = hashlib.sha256(header + self.table.astype("<i4").tobytes()).hexdigest()
        return self._fingerprint

    __hash__ = Policy.__hash__

    def __eq__(self, other: object) -> bool:
        """Equal shapes and equal actions everywhere, of states and actions that have the same names, if any."""
        if not isinstance(other, TablePolicy) or not np.array_equal(self.actions, other.actions):  # (1, S) is not (S,)
            return False
        return self.interface is None or other.interface is None or not self.labels.difference(other.labels)

    def __repr__(self) -> str:
        form = "stationary" if self.stationary else f"horizon={self.horizon}"
        return f"Policy({form}, n_states={self.n_states}, fingerprint={self.short_fingerprint})"

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle by actions, so that the copy is checked and write-protected like the original."""
        return TablePolicy, (self.actions, self.interface, self.basis)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON document of this policy."""
        return {**_DOCUMENT.write(self), **({"horizon": None} if self.stationary else {})}

    @classmethod
    def from_json(cls, text: str | bytes) -> TablePolicy:
        """Read what ``to_json`` wrote; anything else is a ReprlError."""
        document = _DOCUMENT.read(text)
        policy = cls(document["actions"])
        sizes = {"horizon": None if policy.stationary else policy.horizon, "n_states": policy.n_states}
        for name, actual in sizes.items():
            if document[name] != actual:
                raise DocumentError(f"policy {name} must match its actions ({actual}), got {quote(document[name])}")
        if document["fingerprint"] != policy.fingerprint:
            stated = quote(document["fingerprint"])
            raise DocumentError(f"policy fingerprint must be {policy.fingerprint} for these actions, got {stated}")
        interface = None
        if document["interface"] is not None:
            interface = Interface.read("policy interface", document["interface"], policy.n_states)
        names = None if interface is None else interface.labels.digest
        if document["names"] != names:
            found = "none" if document["names"] is None else "those of other names"
            raise DocumentError(f"policy names must be the digest of its names, {names}, got {found}")
        basis = document["basis"]
        if basis is not None and basis.decided.shape != policy.table.shape:
            raise DocumentError(
                f"policy basis must have the shape of its actions {policy.table.shape}, got {basis.decided.shape}"
            )
        return cls(policy, interface, basis)


def _table_shape(at: Any) -> tuple[int, int]:
    """(H, S) of the actions in a document; they are checked later."""
    rows = at.actions if at.actions and isinstance(at.actions[0], list) else [at.actions]
    return len(rows), len(rows[0])


_DOCUMENT = Document(
    "policy",
    "reprl-policy",
    1,
    TablePolicy,
    {
        "horizon": ANYTHING,
        "n_states": ANYTHING,
        "fingerprint": ANYTHING,
        "actions": many(ANYTHING, make=list)._replace(write=lambda actions: actions.tolist()),
        "interface": ANYTHING._replace(write=lambda known: known and known.to_dict()),
        "names": optional(SHA256),
        "basis": optional(basis_kind(_table_shape)),
    },
)
"""The table itself says what the other fields must be."""


def check_policy(policy: Policy | ArrayLike, world: Sized) -> Policy:
    """Return policy as a Policy for an MDP of these sizes: stationary with a discount.

    A stationary policy also fits a world with a horizon, where it is repeated at every step.
    """
    checked = policy if isinstance(policy, Policy) else Policy(policy)
    check_fits(checked, world)
    shape = criterion_of(world).policy_shape(world.n_states)
    if checked.stationary and len(shape) == 2:
        checked = Policy(np.tile(checked.table, (shape[0], 1)), checked.interface)
    return checked


def check_fits(checked: Policy, world: Sized) -> None:
    """Refuse a policy that does not fit an MDP of these sizes, in memory of the policy's own size."""
    shape = criterion_of(world).policy_shape(world.n_states)
    repeated = checked.stationary and len(shape) == 2
    if checked.actions.shape != (shape[1:] if repeated else shape):
        form = "(H, S)" if len(shape) == 2 else "(S,), as this world is discounted,"
        raise InputError(f"policy must have shape {form} = {shape}, got {checked.actions.shape}")
    actions = checked.table
    if actions.max() >= world.n_actions:
        h, s = (int(i) for i in np.argwhere(actions >= world.n_actions)[0])
        raise InputError(f"policy action [{h}, {s}] must be from 0 to {world.n_actions - 1}, got {actions[h, s]}")
    mask = getattr(world, "allowed", None)
    if mask is not None:
        mask = mask if repeated else mask[: len(actions)]
        wanted = np.broadcast_to(actions, (max(len(mask), len(actions)), actions.shape[1]))
        taken = np.take_along_axis(mask, wanted[..., None], axis=2)[..., 0]
        if not taken.all():
            h, s = (int(i) for i in np.argwhere(~taken)[0])
            may = ", ".join(map(str, np.flatnonzero(mask[h, s])))
            raise InputError(f"policy action [{h}, {s}] must be allowed there ({may}), got {wanted[h, s]}")


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
