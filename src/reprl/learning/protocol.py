"""What a learner is, and what it returns.

A learner is anything that can be called as learner(model, shared_key): it draws its samples from the model and its
shared randomness from the key. ``reprl.check_learner`` tells whether one keeps to that. A function of a gymnasium.Env
becomes a learner in ``reprl.learning.adapters``, which also reads what learners return.
"""

from __future__ import annotations

from typing import Any, Protocol

from numpy.typing import ArrayLike

from reprl.errors import InputError
from reprl.learning.result import Run as Run
from reprl.mdp.policy import Policy
from reprl.randomness import SharedKey
from reprl.sources.protocol import ACCESSES


class Learner(Protocol):
    """learner(model, shared_key) → a Run, a policy, or anything else that ``adapters.policy_of`` reads as one.

    It may say more of itself: ``name``, for people, and ``access``, the model that it needs ("generative" for Parallel,
    "episodic" for Episodic, which is also what is taken for granted).
    """

    def __call__(self, model: Any, shared_key: SharedKey, /, *args: Any, **options: Any) -> Run | Policy | ArrayLike:
        """Learn from fresh samples of the model."""


def name_of(learner: object) -> str:
    """Return the name that people know a learner by."""
    name = getattr(learner, "name", None) or getattr(learner, "__name__", None)
    return name if isinstance(name, str) else type(learner).__name__


def access_of(learner: object, asked: str | None = None) -> str:
    """Return the access that a learner needs or was asked for; "episodic" by default."""
    needed = getattr(learner, "access", None)
    needed = needed if needed in ACCESSES else None
    if needed is not None and asked is not None and asked != needed:
        raise InputError(f"access must be {needed!r} for {name_of(learner)}, got {asked!r}")
    return asked or needed or "episodic"


def number_within(samples: int, each: int, what: str) -> int:
    """Return how many units of `each` samples a budget pays for, at least one."""
    if samples < each:
        raise InputError(f"samples must be at least {each}, {what}, got {samples}")
    return min(samples, 2**62) // each
