"""A policy beside practice: the gain splits into cells, a hidden factor is bounded, other settings are shown."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import reprl
from reprl.errors import LogWarning
from reprl.mdp.dynamics import Data, empirical_dynamics
from reprl.report.run import Run, summarize_run
from reprl.sources.logs.coverage import value_of_practice
from reprl.sources.logs.practice import MOST_ODDS, odds_needed, split_gain, worst_value
from reprl.sources.logs.read import read_log
from reprl.sources.logs.spec import LogSpec
from reprl.sources.logs.tables import open_table
from tests.shop_log import make_log, shop

FRAILTY = 0.5
"""Share of the patients who are frail, which no column says."""
TREATED = {False: 0.8, True: 0.2}
"""How often the drug is given, to the strong and to the frail: the odds are 4 and 1/4, those of all are 1."""
ODDS = 4.0


def read(rows: dict[str, Any], horizon: int, n_states: int, *, pooled: bool = False) -> Data:
    states = tuple(str(s) for s in range(n_states))
    return read_log(open_table(rows), LogSpec(horizon=horizon, states=states, actions=("0", "1")), pooled=pooled).data


@pytest.mark.parametrize("pooled", [False, True])
def test_the_gain_is_the_sum_of_what_cells_gain(pooled: bool) -> None:
    habit = np.array([[0.8, 0.2], [0.3, 0.7]])
    data = read(make_log(shop(0.4), habit, 5000, 1), 2, 2, pooled=pooled)
    rng = np.random.default_rng(2)
    for _ in range(5):
        actions = rng.integers(0, 2, (2, 3))
        gain, visits = split_gain(data, actions)
        value = -empirical_dynamics(data).policy_loss(np.zeros(3), actions)
        tolerance = 0.02 if pooled else 1e-12  # pooled, practice's own value is of all steps together
        assert gain.sum() == pytest.approx(value - value_of_practice(data), abs=tolerance)
        assert visits.sum(axis=1) == pytest.approx([1.0, 1.0])


def frail_log(episodes: int, seed: int, horizon: int) -> tuple[dict[str, Any], float, float]:
    """Rows of a clinic whose doctors see who is frail; and what always giving the drug, and practice, truly earn.

    Frailty is drawn anew at every step. The drug harms: it lowers the chance of recovery by 0.05 for everybody.
    """
    rng = np.random.default_rng(seed)
    frail = rng.random((episodes, horizon)) < FRAILTY
    drug = rng.random((episodes, horizon)) < np.where(frail, TREATED[True], TREATED[False])
    well = np.where(frail, 0.35, 0.85) - 0.05 * drug
    paid = (rng.random((episodes, horizon)) < well).astype(float)
    state = np.zeros((episodes, horizon), dtype=np.int64)
    rows = {
        "episode": np.repeat(np.arange(episodes), horizon),
        "state": state.ravel(),
        "action": drug.astype(int).ravel(),
        "reward": paid.ravel(),
        "next_state": state.ravel(),
    }
    return rows, horizon * (0.6 - 0.05), horizon * (0.6 - 0.05 * 0.5)


@pytest.mark.parametrize("horizon", [1, 3])
def test_a_hidden_factor_that_makes_a_gain_is_within_the_bound(horizon: int) -> None:
    """The log shows a gain of about +0.10 a step, the truth is a loss."""
    rows, true, practice = frail_log(100_000, 3, horizon)
    data, always = read(rows, horizon, 1), np.ones((horizon, 2), dtype=np.int64)
    seen = worst_value(data, always, 1.0)
    assert seen == pytest.approx(-empirical_dynamics(data).policy_loss(np.zeros(2), always))
    assert seen - value_of_practice(data) > 0.08 * horizon
    assert true < practice
    assert worst_value(data, always, ODDS) <= true  # the bound at the true odds ratio holds
    assert worst_value(data, always, 1.05) > true  # and what is hidden is needed: a weak factor does not explain it
    found = odds_needed(data, always, seen - practice)
    assert found is not None
    assert 1.0 < found < ODDS


def naive_worst(x: NDArray[np.float64], law: NDArray[np.float64], share: float, odds: float) -> float:
    """The least mean over weights between share + (1 − share)/odds and share + (1 − share)·odds whose mean is 1."""
    from scipy.optimize import linprog

    bounds = [(p * (share + (1 - share) / odds), p * (share + (1 - share) * odds)) for p in law]
    found = linprog(x, A_eq=np.ones((1, x.size)), b_eq=[1.0], bounds=bounds).fun
    assert found is not None
    return float(found)


def test_the_worst_value_of_one_step_is_that_of_a_linear_program() -> None:
    rng = np.random.default_rng(5)
    for _ in range(10):
        rewards = rng.integers(0, 5, 60) / 4.0
        rows = {
            "episode": np.arange(60),
            "state": np.zeros(60, dtype=int),
            "action": rng.integers(0, 2, 60),
            "reward": rewards,
            "next_state": np.zeros(60, dtype=int),
        }
        data, odds = read(rows, 1, 1), float(rng.uniform(1.0, 6.0))
        taken = rows["action"] == 1
        values, counts = np.unique(rewards[taken], return_counts=True)
        wanted = naive_worst(values, counts / counts.sum(), float(taken.mean()), odds)
        assert worst_value(data, np.ones((1, 2), dtype=np.int64), odds) == pytest.approx(wanted, abs=1e-6)


def test_without_a_gain_there_is_nothing_to_explain_and_a_sure_one_needs_much() -> None:
    data = read(make_log(shop(), np.full((2, 2), 0.5), 5000, 1), 2, 2)
    best = np.array([[0, 1, 0], [0, 1, 0]])
    assert odds_needed(data, best, -0.1) is None
    assert odds_needed(data, best, 5.0) == MOST_ODDS
    small, large = (odds_needed(data, best, gain) or 0.0 for gain in (0.1, 0.4))
    assert 1.0 < small < large


@pytest.fixture(scope="module")
def found() -> reprl.LearnResult:
    """A log of the shop in euros, each visit between −5 and 15, by people who prefer the wrong action."""
    rows = make_log(shop(), np.array([[0.3, 0.7], [0.6, 0.4]]), 20_000, 7)
    rows["reward"] = 20.0 * rows["reward"] - 5.0
    return reprl.learn_log(rows, horizon=2, reward_range=(-5.0, 15.0), shared_seed=1, quality=0.7)


def test_changed_cells_are_ranked_with_intervals_and_settings_are_varied(found: reprl.LearnResult) -> None:
    beside = found.beside
    assert beside is not None
    assert beside.changed == len(beside.changes) == 4
    sizes = [abs(change.gain) for change in beside.changes]
    assert sizes == sorted(sizes, reverse=True)
    assert all(change.low < change.gain < change.high for change in beside.changes)
    assert all(change.action != change.usual for change in beside.changes)
    names = [each.setting for each in beside.variants]
    assert names == ["quality 0.4", "quality 0.85", "ties by index"]
    assert beside.odds is not None
    assert beside.odds > 1.5
    again = reprl.Receipt.from_json(found.receipt.to_json())
    assert again.beside == found.receipt.beside


def figures(text: str) -> list[str]:
    """Numbers of a text."""
    return re.findall(r"-?[0-9]+(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?", text)


@pytest.mark.parametrize(("episodes", "quality"), [(120, 0.9), (20_000, 0.7), (20_000, None)])
def test_every_value_on_a_terminal_is_in_the_rewards_own_units(episodes: int, quality: float | None) -> None:
    """Rewards from 0 to 1000 in place of 0 to 1: what is said in units of value is a thousand times as much."""
    rows = make_log(shop(), np.array([[0.5, 0.5], [0.5, 0.5]]), episodes, 7)
    many = rows | {"reward": 1000.0 * rows["reward"]}
    asked: dict[str, Any] = {"horizon": 2, "shared_seed": 1}
    goals: list[dict[str, Any]] = [{"quality": quality}] * 2 if quality else [{"epsilon": 0.2}, {"epsilon": 200.0}]
    plain = reprl.learn_log(rows, **asked, **goals[0])
    scaled = reprl.learn_log(many, **asked, **goals[1], reward_range=(0.0, 1000.0))
    again = scaled.recipe.learn_log(many)
    assert plain.policy == scaled.policy == again.policy
    assert scaled.epsilon == pytest.approx(1000.0 * plain.epsilon)
    shown = [{fact.label: fact.text for fact in summarize_run(Run.of(run)).facts} for run in (plain, scaled, again)]
    one, two, three = ([float(x) for x in figures(f"{each['earns']} {each['gain']}")] for each in shown)
    assert len(one) == 8
    assert [x for x in two if x != 95.0] == pytest.approx([1000.0 * x for x in one if x != 95.0], rel=1e-3)
    assert two == three
    if quality is None:
        assert [each["quality"].split(",")[0] for each in shown] == ["loses at most 0.2", *["loses at most 200"] * 2]
    tables = plain.to_pandas(), scaled.to_pandas()
    assert np.allclose(1000.0 * tables[0]["value"], tables[1]["value"])


def test_subgroups_are_valued_apart(tmp_path: Path) -> None:
    """In one of two wards the other action is the good one."""
    first, second = make_log(shop(), np.full((2, 2), 0.5), 3000, 1), make_log(shop(), np.full((2, 2), 0.5), 3000, 2)
    second["action"] = 1 - second["action"]
    second["episode"] = second["episode"] + 3000
    rows = {name: np.concatenate([first[name], second[name]]) for name in first}
    rows["ward"] = np.repeat(["east", "west"], 6000)
    asked: dict[str, Any] = {"horizon": 2, "shared_seed": 1}
    rows = {name: column[:12000] for name, column in rows.items()}
    with pytest.warns(LogWarning, match="the first half of the episodes and the second contradict one world"):
        found = reprl.learn_log(rows, columns={"group": "ward"}, **asked)
    assert found.beside is not None
    east, west = found.beside.groups
    assert (east.name, east.episodes, west.name, west.episodes) == ("east", 3000, "west", 3000)
    assert min(east.gain_high, west.gain_high) < 0.0 < max(east.gain_low, west.gain_low)  # one policy for both
    with pytest.warns(LogWarning, match="contradict one world"):
        plain = reprl.learn_log({name: column for name, column in rows.items() if name != "ward"}, **asked)
    assert plain.policy == found.policy
    assert "Subgroups" in reprl.write_report(found, tmp_path / "run.html").read_text()
    rows["ward"] = np.tile(["east", "west"], 6000)
    fault = pytest.raises(reprl.ReprlError, match="must be the same in all rows of an episode")
    with pytest.warns(LogWarning, match="contradict one world"), fault:
        reprl.learn_log(rows, columns={"group": "ward"}, **asked)
