"""CouplingSpec: which coordinates of a product of laws are drawn together."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from reprl.coupling.custom import CUSTOM, Coupling, check_custom, coupling_bound, custom_name
from reprl.errors import check_int

Method = Literal["joint", "blocked", "product"]
METHODS = get_args(Method)
CouplingName = Literal["auto", Method]
COUPLINGS = get_args(CouplingName)
DEFAULT_BLOCK = 32
_AUTO_BITS = 40.0


@dataclass(frozen=True)
class CouplingSpec:
    """How n coordinates are cut into blocks that are coupled; fixed by the configuration, never by data."""

    method: str | Coupling = "joint"
    """"joint" couples all coordinates together, "blocked" each run of `block`, "product" each by itself; a custom
    function is given all of them."""
    block: int = DEFAULT_BLOCK
    """Coordinates per block for "blocked"."""

    def __post_init__(self) -> None:
        check_custom("method", self.method, METHODS)
        object.__setattr__(self, "block", check_int("block", self.block, 1))

    @classmethod
    def auto(cls, n_coordinates: int, n_outcomes: int) -> CouplingSpec:
        """Return the strongest coupling that is feasible: joint while kⁿ ≤ 2⁴⁰, else blocks of that size."""
        bits = math.log2(max(n_outcomes, 2))
        method = "joint" if n_coordinates * bits <= _AUTO_BITS else "blocked"
        return cls(method, max(1, int(_AUTO_BITS / bits)))

    @classmethod
    def resolve(cls, coupling: str | Coupling, block: int, n_coordinates: int, n_outcomes: int) -> CouplingSpec:
        """Return what a user's keywords, one of COUPLINGS and a block, mean for these sizes."""
        check_custom("coupling", coupling, COUPLINGS)
        return cls.auto(n_coordinates, n_outcomes) if coupling == "auto" else cls(coupling, block)

    @property
    def name(self) -> str:
        """The method by name, also that of a custom function."""
        return custom_name(self.method)

    @property
    def custom(self) -> bool:
        """Whether the coupling is a custom function."""
        return self.name.startswith(CUSTOM)

    def bound(self, total_variation: float) -> float | None:
        """Bound the chance that two runs draw a block differently; None for a custom function without a bound."""
        if self.custom:
            return coupling_bound(self.method, total_variation)
        return 2.0 * total_variation / (1.0 + total_variation)

    def size(self, n: int) -> int:
        """Coordinates in a full block of n ≥ 1; the last block may have fewer."""
        return {"blocked": min(n, self.block), "product": 1}.get(self.name, n)

    def count(self, n: int) -> int:
        """Number of blocks of n coordinates."""
        return -(-n // self.size(n)) if n else 0

    def starts(self, n: int) -> NDArray[np.int64]:
        """First coordinate of every block."""
        return np.arange(self.count(n), dtype=np.int64) * self.size(n)

    def blocks(self, n: int) -> list[slice]:
        """The blocks, as slices that partition range(n)."""
        size = self.size(n)
        return [slice(low, min(low + size, n)) for low in self.starts(n).tolist()]


JOINT = CouplingSpec("joint")
PRODUCT = CouplingSpec("product")
