"""reprl.paper.plan: its rows, which of them are exact, and what it refuses."""

from __future__ import annotations

import copy
import math
import pickle
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reprl
from reprl.paper import plan
from reprl.paper.constants import paper_calls

GOOD: dict[str, Any] = {"n_states": 6, "n_actions": 3, "horizon": 4, "epsilon": 0.3, "rho": 0.1, "delta": 0.05}
EXACT = ["paper, joint", "paper, joint, boosted", "paper, product"]
"""A boosted product asks one learner for more calls than a word can count."""


def samples(**change: Any) -> dict[tuple[str, str], float]:
    return {(row.algorithm, row.access): row.samples for row in plan(**{**GOOD, **change})}


def test_rows_are_ours_the_rivals_and_the_bounds() -> None:
    table = plan(**GOOD)
    assert [row.algorithm for row in table if row.kind == "exact"] == EXACT
    orders = [(row.algorithm, row.access) for row in table if row.kind == "order"]
    assert orders == [
        ("paper, joint, boosted", "episodic"),
        ("paper, product, boosted", "parallel"),
        ("paper, product, boosted", "episodic"),
        ("Hopkins et al., joint", "parallel"),
        ("Hopkins et al., joint", "episodic"),
        ("Hopkins et al., efficient", "episodic"),
        ("Eaton et al., rPVI", "parallel"),
        ("Eaton et al., R-max", "episodic"),
        ("Karbasi et al., joint", "parallel"),
        ("Karbasi et al., grid", "parallel"),
        ("lower bound", "parallel"),
        ("lower bound", "episodic"),
        ("no replicability", "episodic"),
    ]
    assert tuple(table) == table.rows
    assert len(table) == len(table.rows)
    assert all(row.source and row.samples > 0 for row in table)


def test_rates_are_those_of_the_papers() -> None:
    """The rates of the table at S=6, A=3, H=4, every unstated constant 1."""
    found, tail, log = samples(), 1 / (0.3 * 0.1) ** 2, math.log(1 / 0.05) ** 4
    assert found["Hopkins et al., joint", "parallel"] == pytest.approx(36 * 3 * 4**7 * log * tail)
    assert found["Hopkins et al., joint", "episodic"] == pytest.approx(36 * 3 * 4**11 * log * tail)
    assert found["Hopkins et al., efficient", "episodic"] == pytest.approx(216 * 3 * 4**11 * log * tail)
    assert found["Eaton et al., rPVI", "parallel"] == pytest.approx(216 * 27 * tail)
    assert found["Eaton et al., R-max", "episodic"] == 6**7 * 3**7
    assert found["Karbasi et al., joint", "parallel"] == pytest.approx(36 * 9 * tail)
    assert found["Karbasi et al., grid", "parallel"] == pytest.approx(216 * 27 * tail)
    assert found["lower bound", "parallel"] == pytest.approx(36 * 3 * 256 * tail)
    assert found["lower bound", "episodic"] == pytest.approx(36 * 256 * tail)
    assert found["no replicability", "episodic"] == pytest.approx(6 * 3 * 64 / 0.09)


@pytest.mark.parametrize("horizon", [1, 2, 5, 20])
def test_lower_bounds_are_the_theorems_at_the_same_accuracy_per_step(horizon: int) -> None:
    """Theorems 1.4 and 1.5 bound accuracy ε·H by S²A·H²/(ρε)² and S²·H²/(ρε)²: ours is in units of value."""
    per_step = 0.3
    found = samples(horizon=horizon, epsilon=per_step * horizon)
    for access, actions in (("parallel", 3), ("episodic", 1)):
        assert found["lower bound", access] == pytest.approx(36 * actions * horizon**2 / (0.1 * per_step) ** 2)


def test_the_papers_calls_are_the_formula() -> None:
    """docs/proofs/decision.md §3: m = ⌈9216·S·log³(3SAH/min(δ,ρ))·(4H²/ε)²·(H/ρ)²⌉, S² for product."""
    expected = 9216 * 6 * math.log(3 * 6 * 3 * 4 / 0.05) ** 3 * (64 / 0.3) ** 2 * (4 / 0.1) ** 2
    for coupling, times in (("joint", 1), ("product", 6)):
        calls = paper_calls(6, 3, 4, epsilon=0.3, rho=0.1, delta=0.05, coupling=coupling)
        assert calls == pytest.approx(times * expected, rel=1e-12)
        assert samples()[f"paper, {coupling}", "parallel"] == 72 * calls
    assert paper_calls(6, 3, 4, epsilon=0.3, rho=0.1, delta=0.9, coupling="joint") == paper_calls(
        6, 3, 4, epsilon=0.3, rho=0.1, delta=0.1, coupling="joint"
    )


@settings(max_examples=30, deadline=None)
@given(
    n_states=st.integers(1, 300),
    n_actions=st.integers(2, 30),
    horizon=st.integers(1, 30),
    epsilon=st.floats(0.01, 1.0),
    rho=st.floats(0.001, 0.9),
    delta=st.floats(0.001, 0.9),
)
def test_harder_problems_never_need_fewer_samples(**case: Any) -> None:
    here = samples(**case)
    assert all(n > 0 for n in here.values())
    here.pop(("proven, joint", "episodic"), None)  # a quota of one more record saves runs: only almost monotone
    for name in ("n_states", "n_actions", "horizon"):
        there = samples(**{**case, name: case[name] + 1})
        assert all(there[row] >= here[row] * (1 - 1e-12) for row in here)
    for name in ("epsilon", "rho", "delta"):
        there = samples(**{**case, name: case[name] * 0.9})
        assert all(there[row] >= here[row] * (1 - 1e-12) for row in here)
    assert here["paper, product", "parallel"] >= here["paper, joint", "parallel"]
    assert here["paper, joint", "parallel"] > here["lower bound", "parallel"]


def test_it_prints_as_a_table_that_says_what_is_exact() -> None:
    lines = str(plan(**GOOD)).splitlines()
    assert lines[0].split() == ["algorithm", "access", "samples", "kind", "runtime", "source"]
    assert len(lines) == 18
    column = lines[0].index("kind")
    kinds = [line[column : column + 8].strip() for line in lines[1:]]
    assert kinds == ["exact", "exact", "order", "exact", "order", "order", "at most", *["order"] * 10]
    assert all(line == line.rstrip() for line in lines)
    for row, line in zip(plan(**GOOD), lines[1:], strict=True):
        assert line.startswith(row.algorithm)
        assert f"{row.samples:.3g}" in line


def test_it_can_be_copied_compared_and_pickled() -> None:
    table = plan(**GOOD)
    assert pickle.loads(pickle.dumps(table)) == copy.deepcopy(table) == table == plan(**GOOD)
    assert table != plan(**{**GOOD, "rho": 0.2})


def test_rho_and_delta_have_defaults() -> None:
    sizes = {name: GOOD[name] for name in ("n_states", "n_actions", "horizon", "epsilon")}
    assert plan(**sizes) == plan(**sizes, rho=0.1, delta=0.1)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"n_states": 0}, "n_states must be a whole number of at least 1, got 0"),
        ({"n_actions": 2.5}, "n_actions must be a whole number of at least 1, got 2.5"),
        ({"horizon": True}, "horizon must be a whole number of at least 1, got True"),
        ({"epsilon": 4.5}, r"epsilon must lie in \(0, 4\], as values lie in \[0, H\], got 4.5"),
        ({"epsilon": 0}, r"epsilon must lie in \(0, inf\), got 0"),
        ({"epsilon": math.inf}, r"epsilon must lie in \(0, inf\), got inf"),
        ({"rho": 0.0}, r"rho must lie in \(0, 1\), got 0.0"),
        ({"rho": 1.0}, r"rho must lie in \(0, 1\), got 1.0"),
        ({"delta": 2}, r"delta must lie in \(0, 1\), got 2"),
        ({"delta": None}, r"delta must lie in \(0, 1\), got None"),
        ({"epsilon": 1e-200}, r"these settings need more samples than a float can hold \(.*epsilon=1e-200.*\)"),
        ({"rho": 1e-300}, r"these settings need more samples than a float can hold \(.*rho=1e-300.*\)"),
        ({"n_states": 10**60}, r"these settings need more samples than a float can hold \(n_states=10+, .*\)"),
    ],
)
def test_bad_input_is_refused(change: dict[str, Any], text: str) -> None:
    with pytest.raises(reprl.ReprlError, match=f"^{text}$"):
        plan(**{**GOOD, **change})
