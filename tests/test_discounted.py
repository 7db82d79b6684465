"""Discounted worlds: values against other solvers, the stationary policy and its files, learners and refusals."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import linprog

import reprl
from reprl import Policy, ReprlError, TabularMDP
from reprl.cli.app import main
from reprl.learning.learner import ReprlLearner, truncate_if_needed
from reprl.learning.settings import Settings
from reprl.mdp.criterion import MOST, Criterion, check_discount
from reprl.randomness import SharedKey
from reprl.sources.episodes import EpisodicModel
from reprl.sources.protocol import Access

DISCOUNTS = (0.3, 0.9, 0.99)


def random_world(seed: int, *, masked: bool = False) -> TabularMDP:
    rng = np.random.default_rng(seed)
    transition = rng.dirichlet(np.full(6, 0.4), size=(6, 3))
    allowed = None
    if masked:
        allowed = rng.random((6, 3)) < 0.6
        allowed[~allowed.any(axis=1), 0] = True
    return TabularMDP(transition, rng.random((6, 3)), rng.dirichlet(np.ones(6)), 5, allowed=allowed)


def by_linear_program(mdp: TabularMDP) -> NDArray[np.float64]:
    """V* as the least V with V ≥ r + γPV for everything that may be done."""
    gamma, may = mdp.discount or 0.0, np.ones((6, 3), bool) if mdp.allowed is None else mdp.allowed[0]
    s, a = np.nonzero(may)
    rows = gamma * mdp.transition[0][s, a] - np.eye(6)[s]
    found = linprog(np.ones(6), A_ub=rows, b_ub=-mdp.reward[0][s, a], bounds=(None, None))
    assert found.x is not None
    values: NDArray[np.float64] = found.x
    return values


def by_matrix(mdp: TabularMDP, actions: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Values and discounted visits of a policy by one linear system."""
    states = np.arange(mdp.n_states)
    system = np.eye(mdp.n_states) - (mdp.discount or 0.0) * mdp.transition[0][states, actions]
    return np.linalg.solve(system, mdp.reward[0][states, actions]), np.linalg.solve(system.T, mdp.initial)


@pytest.mark.parametrize("discount", DISCOUNTS)
@pytest.mark.parametrize("masked", [False, True])
def test_values_agree_with_a_linear_program(discount: float, masked: bool) -> None:
    for seed in range(4):
        mdp = random_world(seed, masked=masked).discounted(discount)
        solution = mdp.solve()
        assert np.allclose(solution.values[0], by_linear_program(mdp), atol=1e-6 / (1 - discount))
        assert np.array_equal(solution.values[1], discount * solution.values[0]) or np.allclose(
            solution.values[1], discount * solution.values[0], rtol=1e-14
        )
        assert mdp.evaluate(solution.policy) == pytest.approx(float(mdp.initial @ solution.values[0]), abs=1e-11)


def test_river_swim_agrees_with_quantecon() -> None:
    markov = pytest.importorskip("quantecon.markov")
    for discount in (0.9, 0.95, 0.99):
        mdp = reprl.make("river-swim-v0", discount=discount)
        found = markov.DiscreteDP(np.array(mdp.reward[0]), np.array(mdp.transition[0]), discount).solve(
            method="policy_iteration"
        )
        solution = mdp.solve()
        assert np.abs(solution.values[0] - found.v).max() < 1e-11
        assert np.array_equal(solution.policy.actions, found.sigma)


@pytest.mark.parametrize("discount", DISCOUNTS)
def test_policies_are_evaluated_as_by_a_linear_system(discount: float) -> None:
    mdp = random_world(5).discounted(discount)
    actions = np.random.default_rng(1).integers(3, size=6)
    values, visits = by_matrix(mdp, actions)
    assert np.allclose(mdp.values(actions)[0], values, rtol=1e-12)
    assert np.allclose(mdp.occupancy(actions)[0], visits, rtol=1e-12)
    assert mdp.occupancy(actions).sum() == pytest.approx(1 / (1 - discount))
    marked = np.zeros((1, 6), bool)
    marked[0, 2] = True
    assert mdp.reachability(marked, actions) == pytest.approx(visits[2])
    best = max(by_matrix(mdp, np.array(plan))[1][2] for plan in np.ndindex(*(3,) * 6))
    assert mdp.reachability(marked) == pytest.approx(best)


def test_policies_of_both_forms_keep_apart_and_come_back(tmp_path: Path) -> None:
    stationary, one_step = Policy([1, 0, 2]), Policy([[1, 0, 2]])
    assert stationary != one_step
    assert stationary.fingerprint != one_step.fingerprint
    assert stationary.actions.shape == (3,)
    assert stationary.table.shape == (1, 3)
    assert stationary.act(2) == stationary.act(2, 10**6) == 2
    assert one_step.act(2) == 2, "it has no other step"
    for policy, step in ((one_step, 1), (Policy([[1, 0, 2], [0, 0, 2]]), None)):
        with pytest.raises(ReprlError, match="step must be"):
            policy.act(2, step)
    document = json.loads(stationary.to_json())
    assert (document["horizon"], json.loads(one_step.to_json())["horizon"]) == (None, 1)
    assert Policy.load(stationary.save(tmp_path / "p.json")) == stationary
    for name, value in (("actions", [[1, 0, 2]]), ("n_states", 4), ("version", 2), ("horizon", 1)):
        with pytest.raises(ReprlError):
            Policy.from_json(json.dumps({**document, name: value}))


def test_a_stationary_policy_is_repeated_where_there_is_a_horizon() -> None:
    mdp = random_world(1)
    actions = np.array([0, 1, 2, 0, 1, 2])
    assert mdp.evaluate(actions) == mdp.evaluate(np.tile(actions, (5, 1)))
    with pytest.raises(ReprlError, match=r"shape \(S,\)"):
        mdp.discounted(0.9).evaluate(np.tile(actions, (5, 1)))


@pytest.mark.parametrize("access", ["generative", "episodic"])
def test_two_teams_arrive_at_one_stationary_policy(access: Access, tmp_path: Path) -> None:
    runs = [reprl.learn("river-swim-v0", discount=0.9, access=access, shared_seed=5, data_seed=x) for x in (1, 2)]
    assert runs[0].policy == runs[1].policy
    assert runs[0].policy.stationary
    assert {run.guarantee.status for run in runs} == {"rehearsed"}
    world = reprl.make("river-swim-v0", discount=0.9)
    assert world.evaluate(world.solve().policy) - world.evaluate(runs[0].policy) < 0.3
    runs[0].save(tmp_path / "run")
    stored = reprl.load_run(tmp_path / "run")
    assert stored.recipe.environment.discount == 0.9
    assert stored.policy == runs[0].policy
    again = stored.recipe.learn(data_seed=3)
    assert again.policy == runs[0].policy
    assert again.recipe.digest == stored.recipe.digest
    page = reprl.write_report(tmp_path / "run", tmp_path / "run.html").read_text("utf-8")
    assert "discount 0.9" in page
    assert "every step" in page


def test_the_command_line_learns_verifies_and_plays(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    base = ["learn", "river-swim-v0", "--discount", "0.9", "--access", "generative", "--shared-seed", "5", "--json"]
    documents = []
    for team in ("a", "b"):
        assert main([*base, "--out", str(tmp_path / team)]) == 0
        documents.append(json.loads(capsys.readouterr().out))
    assert documents[0]["fingerprint"] == documents[1]["fingerprint"]
    assert np.shape(documents[0]["actions"]) == (6,)
    assert main(["verify", str(tmp_path / "a"), str(tmp_path / "b"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["values"] is not None


def test_the_audit_counts_pairs_of_a_discounted_world() -> None:
    report = reprl.audit("river-swim-v0", pairs=3, discount=0.9, access="generative", seed=1)
    assert report.disagreements == 0
    assert report.by_cell.shape == (1, 6)


class Coin(gymnasium.Env[Any, Any]):
    """A black box of two states: action 1 moves with probability 0.9, action 0 with 0.2; only state 1 pays."""

    observation_space = gymnasium.spaces.Discrete(2)
    action_space = gymnasium.spaces.Discrete(2)
    reward_range = (0.0, 1.0)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[np.int64, Any]:
        super().reset(seed=seed)
        self.state = 0
        return np.int64(0), {}

    def step(self, action: np.int64) -> tuple[np.int64, float, bool, bool, dict[str, Any]]:
        paid = float(self.state)
        if self.np_random.random() < (0.9 if action else 0.2):
            self.state = 1 - self.state
        return np.int64(self.state), paid, False, False, {}


def test_a_black_box_is_discounted_unless_the_user_says_that_steps_differ() -> None:
    with pytest.raises(ReprlError, match="stationary must be True"):
        reprl.learn(Coin, discount=0.8, horizon=10, stationary=False, shared_seed=1, data_seed=1)
    run = reprl.learn(Coin, discount=0.5, horizon=8, epsilon=0.4, shared_seed=1, data_seed=1)
    assert run.policy.actions[:2].tolist() == [1, 0]
    assert run.environment.discount == 0.5


def test_the_reduction_prints_a_policy_of_h_steps() -> None:
    world = reprl.make("river-swim-v0", discount=0.5)
    cut = truncate_if_needed(world, "paper", 0.4)
    horizon = Criterion.of(1, 0.5).reduced_horizon(0.4)
    assert horizon is not None
    assert isinstance(cut, TabularMDP)
    assert (cut.horizon, cut.discount) == (horizon, None)
    assert 0.5**horizon / 0.5 <= 0.4 < 0.5 ** (horizon - 2) / 0.5 + 0.4
    difference = world.solve().values[0] - cut.solve().values[0]
    assert (difference >= -1e-12).all()
    assert (difference <= 0.5**horizon / 0.5 + 1e-12).all()
    run = reprl.learn("river-swim-v0", discount=0.5, rule="paper", epsilon=0.4, shared_seed=1)
    assert run.policy.actions.shape == (horizon, 6)
    assert run.recipe.make().digest == cut.digest


def test_what_cannot_be_discounted_is_refused() -> None:
    world = reprl.make("river-swim-v0", discount=0.9)
    for bad in (0.0, 1.0, -1, "x", True, MOST + 1e-5, float("nan")):
        with pytest.raises(ReprlError, match="discount must"):
            check_discount(bad)
    with pytest.raises(ReprlError, match="discount must be left out"):
        reprl.learn(world, discount=0.9)
    with pytest.raises(ReprlError, match="time-homogeneous"):
        random_world(0).discounted(0.9).truncated(3).discounted(0.9)
    with pytest.raises(ReprlError, match=r"epsilon must lie in \(0, 10\]"):
        reprl.learn(world, epsilon=11.0)
    with pytest.raises(ReprlError, match="model must have a horizon"):
        reprl.audit(world, "greedy", pairs=1, samples=1000)
    with pytest.raises(ReprlError, match="length must come with a discount"):
        reprl.make("river-swim-v0", length=3)


def test_a_budget_sets_the_size_and_episodes_are_charged_in_full() -> None:
    world = reprl.make("river-swim-v0", 30, discount=0.9)
    model = EpisodicModel(world, 1)
    settings = Settings()
    run = ReprlLearner(settings, samples=30_000).run(model, SharedKey(1))
    assert model.ledger.samples <= 30_000
    assert model.ledger.samples == 30 * model.ledger.episodes
    assert run.counts.outcomes.shape == (1, 6, 2)
