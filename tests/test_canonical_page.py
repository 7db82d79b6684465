"""docs/canonical.md shows what is stored, and what is stored keeps the promises."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from experiments.defaults.__main__ import table as defaults
from experiments.pairs import by_case, count
from experiments.price.__main__ import PAGE, per_cell, per_cell_of
from experiments.price.__main__ import table as prices
from experiments.runner import ROOT
from reprl.learning.expected import STORED, WORLDS, stored_range
from reprl.learning.settings import Settings


def measured(file: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((ROOT / PAGE[file]).read_text("utf-8"))["measured"]
    return found


@pytest.mark.parametrize("file", list(PAGE))
def test_tables_are_those_of_the_stored_data(file: str) -> None:
    page = (ROOT / "docs" / "canonical.md").read_text("utf-8")
    shown = page.partition(f"<!-- {file} -->\n")[2].partition("\n<!-- end -->")[0]
    assert shown == (defaults if file == "defaults" else prices)(measured(file))


@pytest.mark.parametrize("file", list(PAGE))
def test_no_promise_is_rejected(file: str) -> None:
    promised = {name: row for name, row in measured(file).items() if "-cut/" not in name}
    assert not [name for name, case in by_case(promised).items() if count(case).rejected]


def test_the_stored_range_holds_eight_of_ten_stored_runs() -> None:
    """Every world weighs the same. If the experiments were measured again, renew STORED from ``per_cell``."""
    for access, needs in per_cell().items():
        assert len(needs) == WORLDS[access]
        low, _, high = stored_range(Settings(access=access), 1)
        inside = np.mean([((need >= 0.99 * low) & (need <= 1.01 * high)).mean() for need in needs.values()])
        assert 0.7 <= inside <= 0.95
        assert 0.4 <= np.mean([(need <= STORED[access][10]).mean() for need in needs.values()]) <= 0.65


@pytest.mark.parametrize(("group", "promise"), [("agreement", "approximate"), ("registered", "registered")])
def test_the_stored_range_of_weaker_promises_holds_eight_of_ten_stored_runs(group: str, promise: str) -> None:
    needs = per_cell_of(group)
    assert len(needs) == WORLDS[promise]
    low, typical, high = stored_range(Settings(access="generative"), 1, promise=promise)
    inside = np.mean([((need >= 0.99 * low) & (need <= 1.01 * high)).mean() for need in needs.values()])
    assert 0.7 <= inside <= 0.95
    assert typical < stored_range(Settings(access="generative"), 1)[1]
