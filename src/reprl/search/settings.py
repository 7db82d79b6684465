"""SearchSettings: what two runs of a search must share, checked once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, TypedDict

from reprl.errors import InputError, check_int, check_probability, check_real, quote

POLICIES = ("linear", "quadratic", "tanh", "table")
"""Families that have a name."""


class SearchOptions(TypedDict, total=False):
    """The fields of ``SearchSettings`` as keywords of ``reprl.learn``."""

    target: float | None
    policy: Any
    hidden: int
    candidates: int | None
    near: int | None
    rungs: int
    observation_range: Any
    return_range: Sequence[float] | None


@dataclass(frozen=True, kw_only=True)
class SearchSettings:
    """What a search is asked for. The same in every run of a recipe."""

    rho: float = 0.1
    """Allowed probability that two runs end in different policies."""
    delta: float = 0.1
    """Allowed probability that the printed policy's return is not above what is certified."""
    target: float | None = None
    """A mean return that would do, in reward units; None to climb towards the bound of returns as far as it gets."""
    policy: Any = None
    """"linear", "quadratic" (linear in products too), "tanh" (a hidden layer), "table" (finite observations), or an
    object with ``size`` and ``from_vector``; None for "linear", and "table" where observations are finite."""
    hidden: int = 16
    """Units of "tanh"."""
    candidates: int | None = None
    """Proposals that a rung scans while there is no winner yet, at most; None for 2048, and 256 without a target."""
    near: int | None = None
    """Proposals near the last winner that a rung scans, at most; None for 32, and 16 without a target."""
    rungs: int = 32
    """Levels that are tried, at most."""
    observation_range: Any = None
    """(low, high) of every number in an observation, which scale the inputs; None for the bounds of the space where
    they are finite."""
    return_range: tuple[float, float] | None = None
    """(low, high) of a return, which is clipped to it; None for horizon times reward range."""

    def __post_init__(self) -> None:
        """Check every field that does not depend on the environment."""
        check_probability("rho", self.rho)
        check_probability("delta", self.delta)
        if self.target is not None:
            check_real("target", self.target, -math.inf, math.inf)
        if isinstance(self.policy, str) and self.policy not in POLICIES:
            allowed = f"{', '.join(map(repr, POLICIES))} or an object with size and from_vector"
            raise InputError(f"policy must be {allowed}, got {quote(self.policy)}")
        check_int("hidden", self.hidden, 1, 1024)
        for name in ("candidates", "near"):
            if getattr(self, name) is not None:
                check_int(name, getattr(self, name), 1, 2**20)
        check_int("rungs", self.rungs, 1, 1000)

    @property
    def proposals(self) -> tuple[int, int]:
        """Proposals of a rung, at most, without a winner and near one."""
        most, near = (256, 16) if self.target is None else (2048, 32)
        return self.candidates or most, self.near or near

    @property
    def risk(self) -> float:
        """What one team may be wrong with: two then agree but with ρ, and each keeps δ."""
        return min(self.delta, self.rho / 2.0)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


SEARCH_ONLY = tuple(field.name for field in fields(SearchSettings) if field.name not in ("rho", "delta"))
"""Keywords of ``reprl.learn`` that only a search has a use for."""
