"""Guarantee: two promises, what they print and say together, and what they refuse."""

from __future__ import annotations

import dataclasses
import math
from itertools import product
from typing import Any

import pytest

from reprl.errors import ReprlError
from reprl.guarantee import STATUSES, Guarantee, Promise

GOOD: dict[str, Any] = {
    "rho": 0.1,
    "delta": 0.05,
    "epsilon": 0.3,
    "status": "proven",
    "source": "docs/proofs/coupling.md §7",
}


@pytest.mark.parametrize("status", STATUSES)
def test_no_figure_is_shown_without_its_status_and_source(status: str) -> None:
    lines = str(Guarantee.of(**{**GOOD, "status": status})).splitlines()
    source = "docs/proofs/coupling.md §7"
    if status == "none":
        assert lines == [f"{what}: nothing is promised: {source}" for what in ("quality", "same policy")]
        return
    assert lines == [
        f"quality: loses at most 0.3, with probability ≥ 0.95 [{status}: {source}]",
        f"same policy: a second team prints it with probability ≥ 0.9 [{status}: {source}]",
    ]


@pytest.mark.parametrize(("quality", "same"), [*product(STATUSES, STATUSES)])
def test_both_together_are_as_good_as_the_weaker(quality: str, same: str) -> None:
    found = Guarantee(quality=Promise(quality, 0.05, "of quality"), same=Promise(same, 0.1, "of same"), epsilon=0.3)
    weaker = max(STATUSES.index(quality), STATUSES.index(same))
    assert found.status == STATUSES[weaker]
    assert found.decided == (weaker < STATUSES.index("none"))
    assert found.source == ("of same" if same == STATUSES[weaker] else "of quality")
    assert (found.rho, found.delta) == (0.1, 0.05)
    assert [("of same" in line, "of quality" in line) for line in found.words()] == [(False, True), (True, False)]


def test_a_share_and_what_is_assumed_are_said_and_losses_are_in_units_of_the_rewards() -> None:
    parts = Promise("certified", 0.1, "x"), Promise("none", 1.0, "y")
    share = Guarantee(quality=parts[0], same=parts[1], epsilon=0.2, share=0.9, assumed="steps are alike")
    good, same = share.words()
    assert good == "quality: earns at least 90 % of the gain over the baseline, with probability ≥ 0.9 [certified: x]"
    assert same == "same policy: nothing is promised: y; assumed: steps are alike"
    assert "loses at most 2," in dataclasses.replace(share, share=None).words(10.0)[0]


def test_other_figures_keep_their_support_and_may_lose_it() -> None:
    found = Guarantee.of(**GOOD)
    other = found.but(rho=0.2, epsilon=0.4)
    assert (other.rho, other.delta, other.epsilon, other.status) == (0.2, 0.05, 0.4, "proven")
    assert other.source == found.source
    assert found.but() == found
    bare = found.without("too few")
    assert (bare.quality.status, bare.same.status, bare.source) == ("none", "none", "too few")


@pytest.mark.parametrize(
    ("field", "value", "named"),
    [
        ("rho", -0.1, "risk"),
        ("rho", math.nan, "risk"),
        ("rho", math.inf, "risk"),
        ("delta", -1e-9, "risk"),
        ("delta", "0.1", "risk"),
        ("epsilon", math.nan, "epsilon"),
        ("epsilon", None, "epsilon"),
        ("epsilon", True, "epsilon"),
        ("status", "Proven", "status"),
        ("status", "certain", "status"),
        ("status", None, "status"),
    ],
)
def test_figures_that_promise_nothing_are_refused(field: str, value: object, named: str) -> None:
    with pytest.raises(ReprlError, match=f"^guarantee {named} must ") as caught:
        Guarantee.of(**{**GOOD, field: value})
    assert repr(value) in str(caught.value)


@pytest.mark.parametrize("share", [0.0, 1.0, -0.5, math.nan, "0.9"])
def test_a_share_that_is_none_is_refused(share: Any) -> None:
    part = Promise("rehearsed", 0.1, "x")
    with pytest.raises(ReprlError, match=r"^guarantee share must "):
        Guarantee(quality=part, same=part, epsilon=0.1, share=share)


def test_a_guarantee_cannot_be_edited() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        Guarantee.of(**GOOD).epsilon = 0.0  # type: ignore[misc]
