"""The stored experiment: its slopes follow from its points, its page shows its data, its measurements hold together."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from experiments.lower_bounds import measure, present, sweep
from experiments.lower_bounds.__main__ import slopes

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def data() -> Any:
    return json.loads((ROOT / "experiments" / "lower_bounds" / "data.json").read_text())


def test_slopes_follow_from_the_points(data: Any) -> None:
    again = slopes(data["points"], data["learner"], data["edges"])
    assert [row["series"] for row in again] == [row["series"] for row in data["slopes"]]
    assert [row["slope"] for row in again] == pytest.approx([row["slope"] for row in data["slopes"]], abs=1e-9)


def test_the_page_shows_the_stored_data(data: Any) -> None:
    page = (ROOT / "docs" / "lower-bounds.md").read_text()
    shown = page.partition(present.START)[2].partition(present.END)[0]
    assert shown.strip() == present.tables(data).strip()


def test_the_sweep_is_the_one_asked_for(data: Any) -> None:
    joint = [row for row in data["points"] if row["series"] == sweep.JOINT.name]
    assert [row["n"] for row in joint if row["sweep"] == "n"] == [4, 8, 16, 32, 64, 128, 256]
    assert len({row["rho"] for row in joint}) >= 5
    assert len({row["epsilon"] for row in joint}) >= 4


def test_measured_sizes_are_accurate_and_below_the_proven_ones(data: Any) -> None:
    for row in data["points"]:
        assert row["samples"] < row["proven"]
        assert max(row["worst_excess"].values()) < 1.0
        if row.get("real"):
            low, high = row["real"]["interval"]
            assert low <= 1.5 * row["rho"]
            assert high >= row["rho"] / 1.5
    assert all(row["worst_excess"] < 1.0 for row in data["learner"])


@pytest.mark.parametrize(("name", "expected"), [("n", 1.0), ("rho", 2.0), ("epsilon", 2.0)])
def test_the_joint_solver_has_the_slopes_of_the_lower_bound(data: Any, name: str, expected: float) -> None:
    (row,) = [r for r in data["slopes"] if (r["series"], r["sweep"]) == (sweep.JOINT.name, name)]
    assert abs(row["slope"] - expected) < 0.3


def test_a_known_curve_gives_its_own_answer() -> None:
    sizes = [100, 200, 400]
    assert measure.solve(sizes, 3.0 / np.sqrt(sizes), 0.2) == pytest.approx(225.0)
    fit = measure.slope([1.0, 2.0, 4.0, 8.0], [3.0, 12.0, 48.0, 192.0])
    assert fit["slope"] == pytest.approx(2.0)
    assert [fit["low"], fit["high"]] == pytest.approx([2.0, 2.0], abs=1e-6)
