"""Policies that a vector of weights says: a VectorPolicy acts by itself, an OwnPolicy through a user's code."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from reprl.errors import DocumentError, InputError, check_array, quote
from reprl.mdp.policy import Policy
from reprl.search.heads import Clip, Head, Pick
from reprl.search.networks import Inputs, Network, make_network
from reprl.storage import fields as f
from reprl.storage.fields import Document, Kind, read_fields

Floats = np.ndarray[Any, np.dtype[np.float64]]
FORMAT = "reprl-vector-policy"
_MOST = 2**20


class VectorPolicy(Policy):
    """A linear policy or a small network: observation → inputs → scores → action.

    Args:
        weights: (size,) as the network lays them out.
        network: ``Linear`` or ``Tanh``.
        inputs: offset and scale of every number in an observation.
        head: how scores become an action.

    Guarantee:
        Weights, and so the fingerprint, are the same bits on every machine. Scores are sums of floats in a fixed order;
        tanh may differ in its last bit from one machine to another, and with it an action where two scores nearly tie.
    """

    __slots__ = ("_fingerprint", "_stacked", "head", "inputs", "network", "weights")

    def __init__(self, weights: ArrayLike, network: Network, inputs: Inputs, head: Head) -> None:
        """Check and freeze the weights."""
        found = check_array("weights", weights, 1).copy()
        needed = network.size(inputs.size, head.scores)
        if found.size != needed:
            raise InputError(f"weights must be {needed} numbers for this {network.name} policy, got {found.size}")
        found.setflags(write=False)
        self.weights: Floats = found
        self.network, self.inputs, self.head = network, inputs, head
        self._stacked = found[None]
        self._fingerprint = ""

    @property
    def ignores_step(self) -> bool:
        """It does the same at every step."""
        return True

    def act(self, observation: Any, step: int | None = None) -> Any:
        """Return what to do: an action as the environment takes it."""
        seen = np.asarray(observation, dtype=np.float64).ravel()
        if seen.size != self.inputs.size or not np.isfinite(seen).all():
            raise InputError(f"observation must be {self.inputs.size} finite numbers, got {quote(observation)}")
        found = self.choose(seen[None])[0]
        return int(found) if isinstance(self.head, Pick) and self.head.shape is None else found

    def choose(self, observations: Floats) -> Any:
        """Return the actions for observations that are flat rows, (n, d)."""
        rows = np.zeros(len(observations), dtype=np.int64)
        scores = self.network.scores(self.inputs.read(observations), rows, self._stacked, self.head.scores)
        return self.head.choose(scores)

    def predict(
        self, observations: Any, state: Any = None, episode_start: ArrayLike | None = None, deterministic: bool = True
    ) -> tuple[Any, NDArray[np.int64] | None]:
        """Return the actions for a batch of observations, or for one, as models of Stable-Baselines3 do."""
        seen = np.asarray(observations, dtype=np.float64)
        single = seen.shape == self.inputs.shape
        if not (single or seen.shape[1:] == self.inputs.shape) or not np.isfinite(seen).all():
            wanted = f"finite numbers of shape {self.inputs.shape}, or a batch of these"
            raise InputError(f"observations must be {wanted}, got {quote(observations)}")
        rows = seen.reshape(-1, self.inputs.size)
        found = self.choose(rows)
        return (found[0] if single else found), None

    def disagreement(self, other: Policy, weights: ArrayLike | None = None) -> float:
        """Return the share of weights in which two policies of one kind differ.

        Args:
            other: a policy with the same network, inputs and head.
            weights: must be left out: which observations matter, only episodes tell (``audit_agents``).
        """
        _refuse_weights(weights)
        if not isinstance(other, VectorPolicy) or self._shape != other._shape:
            raise InputError(f"policies must be of one kind to be compared, got {self!r} and {other!r}")
        return float((self.weights != other.weights).mean())

    @property
    def _shape(self) -> tuple[Any, ...]:
        return self.network, self.inputs, self.head

    @property
    def fingerprint(self) -> str:
        """SHA-256, in 64 hexadecimal digits, of the network, the inputs, the head and the weights, little-endian."""
        if not self._fingerprint:
            inputs = f"{_hexes(self.inputs.offset)} {_hexes(self.inputs.scale)}"
            inputs += "" if len(self.inputs.shape) == 1 else f" {self.inputs.shape}"
            shape = f"{self.network!r} {inputs} {_head_text(self.head)}"
            text = f"reprl-vector-policy 1 {shape}\n".encode()
            self._fingerprint = hashlib.sha256(text + self.weights.astype("<f8").tobytes()).hexdigest()
        return self._fingerprint

    def __repr__(self) -> str:
        """Show the kind and the short fingerprint."""
        return f"Policy({self.network.name}, {self.weights.size} weights, fingerprint={self.short_fingerprint})"

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle what it is made of."""
        return VectorPolicy, (self.weights, self.network, self.inputs, self.head)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON document of this policy."""
        return _DOCUMENT.write(self)

    @classmethod
    def from_json(cls, text: str | bytes) -> VectorPolicy:
        """Read what ``to_json`` wrote; anything else is a ReprlError."""
        found = _DOCUMENT.read(text)
        stated = found.pop("fingerprint")
        policy = cls(**found)
        if stated != policy.fingerprint:
            raise DocumentError(
                f"policy fingerprint must be {policy.fingerprint} for these weights, got {quote(stated)}"
            )
        return policy


class OwnPolicy(Policy):
    """A policy of a user's own family: known by the family's name and its weights, acting through the user's code."""

    __slots__ = ("_acting", "_weights", "family")

    def __init__(self, family: str, weights: ArrayLike, acting: Any = None) -> None:
        """Take the weights, and what acts; None where only a document is known."""
        self._weights = check_array("weights", weights, 1).copy()
        self._weights.setflags(write=False)
        self.family, self._acting = family, acting

    @property
    def weights(self) -> Floats:
        """(size,)."""
        return self._weights

    @property
    def ignores_step(self) -> bool:
        """It is asked without the step."""
        return True

    def act(self, observation: Any, step: int | None = None) -> Any:
        """Return what the user's policy does."""
        if self._acting is None:
            raise InputError(
                f"policy of {self.family} must be bound to its family to act (bind), got its weights alone"
            )
        return self._acting.act(observation)

    def bind(self, family: Any) -> OwnPolicy:
        """Return the same policy, acting by an object with ``from_vector``."""
        return OwnPolicy(self.family, self._weights, family.from_vector(self._weights.copy()))

    def disagreement(self, other: Policy, weights: ArrayLike | None = None) -> float:
        """Return the share of weights in which two policies of one family differ; weights must be left out."""
        _refuse_weights(weights)
        if not isinstance(other, OwnPolicy) or (other.family, other.weights.size) != (self.family, self.weights.size):
            raise InputError(f"policies must be of one family to be compared, got {self!r} and {other!r}")
        return float((self.weights != other.weights).mean())

    @property
    def fingerprint(self) -> str:
        """SHA-256, in 64 hexadecimal digits, of the family's name and the weights, little-endian."""
        head = f"reprl-own-policy 1 {self.family}\n".encode()
        return hashlib.sha256(head + self._weights.astype("<f8").tobytes()).hexdigest()

    def __repr__(self) -> str:
        """Show the family and the short fingerprint."""
        return f"Policy({self.family}, {self._weights.size} weights, fingerprint={self.short_fingerprint})"

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle what it is made of."""
        return OwnPolicy, (self.family, self._weights, self._acting)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON document of this policy; the user's code is no part of it."""
        return _OWN.write(self)

    @classmethod
    def from_json(cls, text: str | bytes) -> OwnPolicy:
        """Read what ``to_json`` wrote; ``bind`` makes it act."""
        found = _OWN.read(text)
        stated = found.pop("fingerprint")
        policy = cls(**found)
        if stated != policy.fingerprint:
            raise DocumentError(
                f"policy fingerprint must be {policy.fingerprint} for these weights, got {quote(stated)}"
            )
        return policy


def _refuse_weights(weights: ArrayLike | None) -> None:
    if weights is not None:
        raise InputError(f"weights must be left out for policies that are no tables, got {quote(weights)}")


def _hexes(numbers: tuple[float, ...]) -> str:
    return ",".join(float(x).hex() for x in numbers)


def _head_text(head: Head) -> str:
    return repr(head) if isinstance(head, Pick) else f"Clip {_hexes(head.low)} {_hexes(head.high)} {head.shape}"


def _read_network(where: str, value: Any, at: Any) -> Network:
    fields = read_fields(where, value, {"kind": f.choice(("linear", "quadratic", "tanh")), "hidden": _HIDDEN})
    return make_network(fields["kind"], fields["hidden"] or 16)


_HIDDEN = f.optional(f.whole(1, 1024))
_BOUND = Kind(
    lambda where, value, at: value if value in ("-inf", "inf") else f.real(-math.inf).read(where, value, at),
    lambda value: value if math.isfinite(value) else ("inf" if value > 0 else "-inf"),
)
_SHAPE = f.many(f.whole(1, _MOST))
_PICK = {
    "kind": f.choice(("pick",)),
    "sizes": f.many(f.whole(1, _MOST)),
    "start": f.many(f.whole(-(2**62), 2**62)),
    "shape": f.optional(_SHAPE),
    "dtype": f.choice(("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")),
}
_CLIP = {
    "kind": f.choice(("clip",)),
    "low": f.many(_BOUND),
    "high": f.many(_BOUND),
    "shape": _SHAPE,
    "dtype": f.choice(("float16", "float32", "float64")),
}


def _read_head(where: str, value: Any, at: Any) -> Head:
    if isinstance(value, Mapping) and value.get("kind") == "pick":
        given = read_fields(where, dict(value), _PICK)
        del given["kind"]
        head: Head = Pick(**given)
        entries = 1 if head.shape is None else math.prod(head.shape)
        if not 1 <= len(given["sizes"]) == len(given["start"]) == entries:
            raise DocumentError(f"{where}.sizes and start must be lists of {entries} items, got {quote(given)}")
        return head
    given = read_fields(where, value, _CLIP)
    del given["kind"]
    given |= {name: tuple(float(x) for x in given[name]) for name in ("low", "high")}
    head = Clip(**given)
    if not len(head.low) == len(head.high) == math.prod(head.shape):
        raise DocumentError(f"{where}.low and high must fit its shape {head.shape}, got {quote(given)}")
    return head


def _write_head(head: Head) -> dict[str, Any]:
    bounds = {}
    if isinstance(head, Clip):
        bounds = {name: [_BOUND.write(x) for x in getattr(head, name)] for name in ("low", "high")}
    plain = {name: list(x) if isinstance(x, tuple) else x for name, x in head._asdict().items()}
    return {"kind": "pick" if isinstance(head, Pick) else "clip", **plain, **bounds}


def _read_inputs(where: str, value: Any, at: Any) -> Inputs:
    row = f.many(f.real(-math.inf))
    given = read_fields(where, value, {"offset": row, "scale": f.many(f.real(open_low=True)), "shape": _SHAPE})
    offset, scale = (tuple(float(x) for x in given[name]) for name in ("offset", "scale"))
    found = Inputs(offset, scale, tuple(given["shape"]))
    if not 1 <= len(found.offset) == len(found.scale) == math.prod(found.shape) <= _MOST:
        raise DocumentError(f"{where} must have an offset and a scale for each number, got {quote(value)}")
    return found


_WEIGHTS = f.many(f.real(-math.inf), make=lambda items: np.array(items, dtype=np.float64))._replace(
    write=lambda weights: weights.tolist()
)
_DOCUMENT = Document(
    "policy",
    FORMAT,
    1,
    VectorPolicy,
    {
        "fingerprint": f.ANYTHING,
        "network": Kind(
            _read_network,
            lambda net: {"kind": net.name, "hidden": net.hidden if net.name == "tanh" else None},
        ),
        "inputs": Kind(_read_inputs, lambda x: {name: list(row) for name, row in cast(Any, x)._asdict().items()}),
        "head": Kind(_read_head, _write_head),
        "weights": _WEIGHTS,
    },
)
"""Numbers are written so that they are read as the same bits."""
_OWN = Document(
    "policy",
    "reprl-own-policy",
    1,
    OwnPolicy,
    {"fingerprint": f.ANYTHING, "family": f.printable(), "weights": _WEIGHTS},
)
