"""Guarantee: composition, what it prints, and what it refuses."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import pytest

from reprl.errors import ReprlError
from reprl.guarantee import STATUSES, Guarantee

GOOD: dict[str, Any] = {
    "rho": 0.1,
    "delta": 0.05,
    "epsilon": 0.3,
    "status": "proven",
    "source": "docs/proofs/coupling.md §7",
}


@pytest.mark.parametrize("status", STATUSES)
def test_no_figure_is_shown_without_its_status_and_source(status: str) -> None:
    text = str(Guarantee(**{**GOOD, "status": status}))
    if status == "none":
        assert text == "nothing is promised: docs/proofs/coupling.md §7"
        return
    assert text == (
        f"disagreement ≤ 0.1, suboptimality ≤ 0.3 with probability ≥ 0.95 [{status}: docs/proofs/coupling.md §7]"
    )


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("rho", -0.1),
        ("rho", math.nan),
        ("rho", math.inf),
        ("delta", -1e-9),
        ("delta", "0.1"),
        ("epsilon", math.nan),
        ("epsilon", None),
        ("epsilon", True),
        ("status", "Proven"),
        ("status", "certain"),
        ("status", None),
    ],
)
def test_figures_that_promise_nothing_are_refused(field: str, value: object) -> None:
    with pytest.raises(ReprlError, match=f"^guarantee {field} must ") as caught:
        Guarantee(**{**GOOD, field: value})
    assert repr(value) in str(caught.value)


def test_a_guarantee_cannot_be_edited() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        Guarantee(**GOOD).rho = 0.0  # type: ignore[misc]
