"""Couplings: which coordinates of a product of laws are drawn together: fixed by the settings, never by data."""

from __future__ import annotations

from typing import Literal, get_args

Coupling = Literal["joint", "product"]
"""All coordinates together, or each by itself."""
COUPLINGS = get_args(Coupling)


def count_draws(coupling: str, n: int) -> int:
    """Return how many draws a coupling makes of n ≥ 1 coordinates."""
    return n if coupling == "product" else 1
