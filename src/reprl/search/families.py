"""Families: sets of policies that a search proposes from, each policy named by a vector of weights.

A family has a ``size``, proposes vectors from shared randomness, acts for many policies at once, and makes the policy
that is printed. A user's own needs ``size``, ``from_vector(weights)`` and, on what that returns, ``act(observation)``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from reprl.errors import InputError, ReprlError, check_array, check_int, quote
from reprl.mdp.interface import Interface
from reprl.mdp.labels import Labels
from reprl.mdp.policy import Policy
from reprl.randomness import SharedKey
from reprl.search.heads import Head, Pick, head_of
from reprl.search.networks import Inputs, Network
from reprl.search.policies import OwnPolicy, VectorPolicy
from reprl.search.proposals import propose_normal, propose_table

Floats = np.ndarray[Any, np.dtype[np.float64]]
Act = Callable[[Floats, Any], Any]
"""From observations, flat rows (n, d), and the number of each row's policy, to actions of the environment."""


class Family(Protocol):
    """What a search proposes from."""

    @property
    def name(self) -> str:
        """What recipes call it."""

    @property
    def size(self) -> int:
        """Weights of a policy."""

    @property
    def centre(self) -> Floats | None:
        """What the first rung proposes near; None for proposals out of nothing."""

    def propose(self, key: SharedKey, centre: Floats | None) -> Floats:
        """Return the weights of the candidate at an address."""

    def acting(self, weights: Sequence[Floats]) -> Act:
        """Return how policies with these weights act."""

    def policy(self, weights: Floats) -> Policy:
        """Return the policy with these weights."""


class NetworkAct(NamedTuple):
    """How several policies with one network act; a compiled environment may read its fields."""

    network: Network
    offset: Floats
    scale: Floats
    head: Head
    weights: Floats
    """(policies, size)."""

    def __call__(self, seen: Floats, rows: Any) -> Any:
        """Return the actions for observations, (n, d), each by the policy in its row."""
        x = (seen - self.offset) / self.scale
        return self.head.choose(self.network.scores(x, rows, self.weights, self.head.scores))


class Networks(NamedTuple):
    """Linear policies or small networks on real observations."""

    network: Network
    inputs: Inputs
    head: Head

    @property
    def name(self) -> str:
        """What recipes call it."""
        return self.network.name

    @property
    def size(self) -> int:
        """Weights of a policy."""
        return self.network.size(self.inputs.size, self.head.scores)

    @property
    def centre(self) -> None:
        """The first rung proposes out of nothing."""
        return None

    def propose(self, key: SharedKey, centre: Floats | None) -> Floats:
        """Return the weights of the candidate at an address."""
        shape = self.inputs.size, self.head.scores
        return propose_normal(key, self.network.sizes(*shape), self.network.owners(*shape), centre)

    def acting(self, weights: Sequence[Floats]) -> Act:
        """Return how policies with these weights act."""
        inputs = np.array(self.inputs.offset), np.array(self.inputs.scale)
        found: Act = NetworkAct(self.network, *inputs, self.head, np.stack(list(weights))).__call__
        return found

    def policy(self, weights: Floats) -> Policy:
        """Return the policy with these weights."""
        return VectorPolicy(weights, *self)


class Tables(NamedTuple):
    """Stationary tables for finite observations; a weight is the number of an action."""

    interface: Interface
    n_states: int
    n_actions: int

    @property
    def name(self) -> str:
        """What recipes call it."""
        return "table"

    @property
    def size(self) -> int:
        """States."""
        return self.n_states

    @property
    def centre(self) -> None:
        """The first rung proposes random tables."""
        return None

    def propose(self, key: SharedKey, centre: Floats | None) -> Floats:
        """Return the table of the candidate at an address."""
        return propose_table(key, self.n_states, self.n_actions, centre)

    def acting(self, weights: Sequence[Floats]) -> Act:
        """Return how policies with these tables act: an observation is the number of a state."""
        tables = np.stack(list(weights)).astype(np.int64)
        members = [self.interface.member(a) for a in range(self.n_actions)]
        return lambda seen, rows: [members[a] for a in tables[rows, seen[:, 0].astype(np.int64)]]

    def policy(self, weights: Floats) -> Policy:
        """Return the table as a policy; the last state, where an episode has ended, decides nothing."""
        ended = () if self.interface.observation is None else (0,)
        return Policy(np.concatenate((weights.astype(np.int64), ended)).astype(np.int64), self.interface)


@runtime_checkable
class OwnFamily(Protocol):
    """What a user may supply; ``centre`` and ``scale``, vectors of `size`, are read where there are any."""

    size: int

    def from_vector(self, weights: Floats) -> Any:
        """Return something with ``act(observation)``."""


class Own(NamedTuple):
    """A user's own family, as a search needs it."""

    name: str
    size: int
    family: Any
    start: Floats | None
    scale: Floats
    actions: Any = None
    """The space that every action is checked with."""

    @classmethod
    def of(cls, family: object, actions: Any = None) -> Own:
        """Check what the user gives."""
        if not isinstance(family, OwnFamily):
            raise InputError(f"policy must have size and from_vector(weights), got {quote(family)}")
        size = check_int("size of the policy class", family.size, 1, 2**26)
        parts: list[Floats | None] = []
        for name in ("centre", "scale"):
            given = getattr(family, name, None)
            found = None if given is None else check_array(name, given, 1)
            if found is not None and found.size != size:
                raise InputError(f"{name} of the policy class must have {size} numbers, its size, got {found.size}")
            parts.append(found)
        kind = family if isinstance(family, type) else type(family)
        scale = np.ones(size) if parts[1] is None else parts[1]
        return cls(f"{kind.__module__}:{kind.__qualname__}", size, family, parts[0], scale, actions)

    @property
    def centre(self) -> Floats | None:
        """The user's, which is then part of the recipe."""
        return self.start

    def propose(self, key: SharedKey, centre: Floats | None) -> Floats:
        """Return the weights of the candidate at an address."""
        return propose_normal(key, self.scale, np.full(self.size, -1), centre)

    def acting(self, weights: Sequence[Floats]) -> Act:
        """Return how policies with these weights act."""
        found = [self._made(each) for each in weights]
        return lambda seen, rows: [self._checked(found[k].act(x)) for k, x in zip(rows, seen, strict=True)]

    def _checked(self, action: Any) -> Any:
        """Return an action of the space; one of a Box may have another type of numbers."""
        if self.actions is not None and not self.actions.contains(action):
            kind = getattr(self.actions, "dtype", None)
            if kind is None or np.dtype(kind).kind != "f" or not self.actions.contains(np.asarray(action, dtype=kind)):
                raise InputError(f"policy must return a member of {self.actions}, got {quote(action)}")
        return action

    def policy(self, weights: Floats) -> Policy:
        """Return the policy with these weights."""
        return OwnPolicy(self.name, weights, self._made(weights))

    def _made(self, weights: Floats) -> Any:
        try:
            made = self.family.from_vector(weights.copy())
        except ReprlError:
            raise
        except Exception as error:
            raise InputError(
                f"from_vector must take {self.size} weights, got {type(error).__name__}: {error}"
            ) from None
        if not callable(getattr(made, "act", None)):
            raise InputError(f"from_vector must return something with act(observation), got {quote(made)}")
        return made


class Named(NamedTuple):
    """A user's own family that a recipe names; the user must give it to run the recipe."""

    name: str


def tables_for(observation: Any, action: Any) -> Tables:
    """Return the family of tables for finite spaces."""
    from reprl.mdp.spaces import Codec, space_document

    seen, done = Codec(observation, "observation"), Codec(action, "action")
    return Tables(Interface(Labels(), space_document(observation), space_document(action)), seen.size, done.size)


def head_for(action: Any) -> Head:
    """Return the head of a network for a space of actions."""
    head = head_of(action)
    if isinstance(head, Pick) and head.scores > 2**16:
        raise InputError(f"action space must have at most {2**16} actions in all for a network, got {head.scores}")
    return head
