"""Grade: how many coordinates of a product are coupled together."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reprl.coupling.custom import Coupling, check_own, own_name
from reprl.errors import check_int

METHODS = ("joint", "blocked", "product")
COUPLINGS = ("auto", *METHODS)
DEFAULT_BLOCK = 32
_AUTO_BITS = 40.0


@dataclass(frozen=True)
class Grade:
    """The grade of a coupling, which cuts n coordinates into blocks; fixed by the configuration, never by data."""

    method: str | Coupling = "joint"
    """"joint" couples all coordinates together, "blocked" each run of `block`, "product" each by itself; a function of
    one's own is given all of them."""
    block: int = DEFAULT_BLOCK
    """Coordinates per block for "blocked"."""

    def __post_init__(self) -> None:
        """Check both fields once."""
        check_own("method", self.method, METHODS)
        object.__setattr__(self, "block", check_int("block", self.block, 1))

    @classmethod
    def auto(cls, n_coordinates: int, n_outcomes: int) -> Grade:
        """Return the strongest grade within reach for these sizes: joint while kⁿ ≤ 2⁴⁰, else blocks of that size."""
        bits = math.log2(max(n_outcomes, 2))
        method = "joint" if n_coordinates * bits <= _AUTO_BITS else "blocked"
        return cls(method, max(1, int(_AUTO_BITS / bits)))

    @classmethod
    def resolve(cls, coupling: str | Coupling, block: int, n_coordinates: int, n_outcomes: int) -> Grade:
        """Return the grade that a user's keywords, one of COUPLINGS and a block, mean for these sizes."""
        check_own("coupling", coupling, COUPLINGS)
        return cls.auto(n_coordinates, n_outcomes) if coupling == "auto" else cls(coupling, block)

    @property
    def name(self) -> str:
        """The method by name, also one of somebody's own."""
        return own_name(self.method)

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


JOINT = Grade("joint")
PRODUCT = Grade("product")
