"""Search beyond tables: proposals, policies, scans, ladders, their claim, and everything around a run."""

from __future__ import annotations

import json
import math
import runpy
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple, cast

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest, kstest

import reprl
from reprl.artifacts.search import SearchReceipt, SearchRecipe
from reprl.auditing.search_audit import SearchAudit
from reprl.errors import DocumentError, InputError
from reprl.execution.pool import WorkerPool
from reprl.learning.search import aim_of
from reprl.mdp.policy import Policy
from reprl.randomness import SharedKey
from reprl.search.betting import Levels, MeanTest, rung_risk, scan_levels
from reprl.search.families import Networks, Own, Tables, tables_for
from reprl.search.heads import Clip, Pick, head_of
from reprl.search.ladder import Aim, climb
from reprl.search.networks import Inputs, Linear, Tanh, first_inputs
from reprl.search.policies import OwnPolicy, VectorPolicy
from reprl.search.proposals import near_normals, propose_normal, propose_table
from reprl.search.scan import Rung, scan
from reprl.search.settings import SearchSettings
from reprl.sources.returns import WIDTH, Play, Range, ReturnModel, Returns

STATISTICAL = 1e-6
load_run: Any = reprl.load_run


def learn(env: Any, **options: Any) -> Any:
    """reprl.learn, whose result is of a kind that only the environment decides."""
    return reprl.learn(env, **options)


class Lever(gymnasium.Env[Any, Any]):
    """One step: action x in [−1, 1] pays 1 with probability 1 − |x − 0.5|/2."""

    observation_space: Any = spaces.Box(-1.0, 1.0, (2,), np.float32)
    action_space: Any = spaces.Box(-1.0, 1.0, (1,), np.float32)
    reward_range: Any = (0.0, 1.0)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self.np_random.uniform(-1.0, 1.0, 2).astype(np.float32), {}

    def step(self, action):
        paid = float(self.np_random.random() < 1.0 - abs(float(action[0]) - 0.5) / 2.0)
        return np.zeros(2, dtype=np.float32), paid, True, False, {}


class Walk(gymnasium.Env[Any, Any]):
    """Eight steps on a line; an action moves, with noise; what is paid is the place, from 0 to 1."""

    observation_space = spaces.Box(-np.inf, np.inf, (1,), np.float64)
    action_space = spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place, self.time = 0.0, 0
        return np.array([0.0]), {}

    def step(self, action):
        self.place += (0.25 if action == 1 else -0.25) + 0.1 * float(self.np_random.random() - 0.5)
        self.time += 1
        return np.array([50.0 * self.place]), min(max(self.place, 0.0), 1.0), self.time == 8, False, {}


def lever(data_seed=1, **options):
    return ReturnModel(Lever, 1, data_seed=data_seed, **options)


def opened(model, family, limit=None, workers=1):
    return Returns(model, WorkerPool(model, workers), family.acting, limit)


def constant_family(model):
    return Networks(Linear(), first_inputs(model.observation_space, None), head_of(model.action_space))


# Proposals


def test_near_normals_are_exact_and_close_to_normal():
    key = SharedKey(7).derive("search", "proposal", 0, 3)
    draws = near_normals(key, 5)
    uniforms = key.uniforms(60).reshape(5, 12)
    for draw, row in zip(draws, uniforms, strict=True):
        whole = sum(int(u * 2**32) for u in row)
        assert draw == (whole - 6 * (2**32 - 1)) / 2**32  # integers of Python, which are exact
    assert kstest(near_normals(SharedKey(1), 20_000), "norm").pvalue > STATISTICAL


def test_proposals_have_golden_bits():
    weights = propose_normal(SharedKey(5).derive("x"), np.ones(3), np.array([0, 1, -1]), None)
    again = propose_normal(SharedKey(5).derive("x"), np.ones(3), np.array([0, 1, -1]), None)
    assert [w.hex() for w in weights] == [w.hex() for w in again]
    assert all(w * 2.0**32 == int(w * 2.0**32) for w in weights)  # multiples of 2**-32, so nothing was rounded


def test_half_of_the_first_proposals_have_no_constant():
    network = Linear()
    shape = network.sizes(2, 3), network.owners(2, 3)
    found = [propose_normal(SharedKey(9).derive(j), *shape, None) for j in range(400)]
    without = [(weights.reshape(3, 3)[:, 2] == 0.0).all() for weights in found]
    assert binomtest(sum(without), 400, 0.5).pvalue > STATISTICAL
    assert all((weights.reshape(3, 3)[:, :2] != 0.0).any() for weights in found)


@given(st.integers(0, 2**32), st.integers(1, 12), st.integers(2, 5))
@settings(max_examples=30, deadline=None)
def test_a_proposed_table_differs_from_its_centre(seed, cells, actions):
    key = SharedKey(seed)
    centre = propose_table(key.derive("centre"), cells, actions, None)
    near = propose_table(key.derive("near"), cells, actions, centre)
    assert (near != centre).any()
    assert set(near) <= set(range(actions))


@given(st.integers(0, 2**32))
@settings(max_examples=30, deadline=None)
def test_a_proposal_near_a_centre_changes_it(seed):
    key, n = SharedKey(seed), 6
    centre = propose_normal(key.derive("centre"), np.ones(n), np.arange(n), None)
    assert (propose_normal(key.derive("near"), np.ones(n), np.arange(n), centre) != centre).any()


# Policies


def naive_scores(network, weights, x, n):
    """Scores by sums that are written out."""
    d = len(x)
    if isinstance(network, Tanh):
        first = weights[: network.hidden * (d + 1)].reshape(network.hidden, d + 1)
        last = weights[network.hidden * (d + 1) :].reshape(n, network.hidden + 1)
        units = [math.tanh(sum(w * v for w, v in zip(row, x, strict=False)) + row[d]) for row in first]
        return [sum(w * u for w, u in zip(row, units, strict=False)) + row[-1] for row in last]
    features = [*x, 1.0]
    if network.quadratic:
        features += [x[i] * x[j] for i in range(d) for j in range(i, d)]
    return [sum(w * v for w, v in zip(row, features, strict=True)) for row in weights.reshape(n, -1)]


@pytest.mark.parametrize("network", [Linear(), Linear(True), Tanh(5)])
def test_scores_are_those_of_a_naive_version_and_do_not_depend_on_the_batch(network):
    stream = np.random.default_rng(1)
    x, n = stream.normal(size=(7, 3)), 4
    weights = stream.normal(size=(2, network.size(3, n)))
    rows = np.array([0, 1, 0, 1, 1, 0, 1])
    found = network.scores(x, rows, weights, n)
    for i in range(7):
        np.testing.assert_allclose(found[i], naive_scores(network, weights[rows[i]], x[i], n), rtol=1e-12)
        assert (network.scores(x[i : i + 1], rows[i : i + 1], weights, n)[0] == found[i]).all()
    assert network.owners(3, n).size == network.sizes(3, n).size == network.size(3, n)


def test_ties_go_to_the_first_action_and_boxes_are_clipped():
    assert Pick((3,), (5,), None).choose(np.array([[1.0, 1.0, 0.0]])).tolist() == [5]
    multi = head_of(spaces.MultiDiscrete([2, 3]))
    assert multi.choose(np.array([[0.0, 1.0, 0.0, 0.0, 2.0]])).tolist() == [[1, 2]]
    box = head_of(spaces.Box(np.array([-2.0, -np.inf]), np.array([4.0, np.inf]), dtype=np.float64))
    assert box.choose(np.array([[0.0, 7.0], [9.0, -3.0], [-1.0, 0.0]])).tolist() == [
        [1.0, 7.0],
        [4.0, -3.0],
        [-2.0, 0.0],
    ]
    with pytest.raises(InputError, match="action space must be Discrete"):
        head_of(spaces.Text(3))


POLICIES: list[Any] = [
    VectorPolicy(np.arange(6) / 3.0, Linear(), Inputs((0.5, 0.0), (2.0, 0.1), (2,)), Pick((2,), (0,), None)),
    VectorPolicy(
        np.arange(6) / 7.0, Linear(True), Inputs((0.5, 0.0), (2.0, 0.1), (2,)), Clip((-1.0,), (math.inf,), (1,))
    ),
    VectorPolicy(np.arange(14) / 7.0, Tanh(3), Inputs((0.5,), (2.0,), (1,)), Pick((2,), (0,), None)),
    OwnPolicy("here:Family", [0.1, -3.0]),
]


@pytest.mark.parametrize("policy", POLICIES)
def test_a_policy_is_read_as_it_was_written(policy, tmp_path):
    again: Any = Policy.from_json(policy.to_json())
    assert again == policy
    assert type(again) is type(policy)
    assert again.to_json() == policy.to_json()
    policy.save(tmp_path / "policy.json")
    assert Policy.load(tmp_path / "policy.json") == policy
    forged = json.loads(policy.to_json())
    forged["weights"][0] += 1e-9
    with pytest.raises(DocumentError, match="policy fingerprint must be"):
        Policy.from_json(json.dumps(forged))
    with pytest.raises(InputError, match="must be a table of actions"):
        _ = policy.table


def test_policies_act_in_batches_and_compare():
    policy = POLICIES[0]
    assert policy.act([0.5, 0.2]) == 1
    assert policy.predict(np.array([0.5, 0.2]))[0] == 1
    assert policy.predict(np.array([[0.5, 0.2]]))[0].tolist() == [1]
    assert policy.predict(np.array([[0.5, 0.2], [0.5, -9.0]]))[0].tolist() == [1, 0]
    other = VectorPolicy(policy.weights + np.eye(6)[0], *policy._shape)
    assert policy.disagreement(other) == 1 / 6
    verdict = reprl.verify(policy, other)
    assert (verdict.same, verdict.weights) == (False, (1, 6))
    with pytest.raises(InputError, match="observation must be 2 finite numbers"):
        policy.act([0.5, math.nan])
    with pytest.raises(InputError, match="must be of one kind"):
        policy.disagreement(POLICIES[2])
    for one in POLICIES:
        with pytest.raises(InputError, match="weights must be left out for policies that are no tables, got"):
            one.disagreement(one, weights=[1.0])
    assert "linear" in policy._repr_html_()


def test_one_observation_of_a_box_with_one_row_is_no_batch():
    inputs = first_inputs(spaces.Box(-1.0, 1.0, (1, 4), np.float32), None)
    policy = VectorPolicy(np.arange(10) / 3.0 - 1.0, Linear(), inputs, Pick((2,), (0,), None))
    one = np.array([[0.5, 0.2, -0.3, 0.1]])
    assert np.shape(policy.predict(one)[0]) == ()
    assert policy.predict(one)[0] == policy.act(one)
    assert policy.predict(one[None])[0].tolist() == [policy.act(one)]
    assert policy.predict(np.stack([one, -one, one]))[0].tolist() == [policy.act(x) for x in (one, -one, one)]
    again: Any = Policy.from_json(policy.to_json())
    assert again.inputs.shape == (1, 4)
    flat = VectorPolicy(policy.weights, Linear(), inputs._replace(shape=(4,)), policy.head)
    assert flat.fingerprint != policy.fingerprint
    for wrong in (one[0], np.zeros((2, 4))):
        with pytest.raises(InputError, match=r"observations must be finite numbers of shape \(1, 4\), or a batch"):
            policy.predict(wrong)


# The source of returns


def test_returns_do_not_depend_on_workers_batches_or_lanes():
    model = lever()
    family = constant_family(model)
    weights = [family.propose(SharedKey(1).derive(j), None) for j in range(3)]
    plays = [Play(w, f"p/{j}", 0, 5) for j, w in enumerate(weights)]
    together = opened(model, family).play(plays)
    for play, found in zip(plays, together, strict=True):
        parts = [opened(lever(), family).play([play._replace(first=k, episodes=1)])[0] for k in range(5)]
        assert np.concatenate(parts).tolist() == found.tolist()
    vector = ReturnModel(
        lambda: SyncVectorEnv([Lever] * 4, autoreset_mode=AutoresetMode.DISABLED), 1, reward_range=(0, 1), data_seed=1
    )
    assert [x.tolist() for x in opened(vector, family).play(plays)] == [x.tolist() for x in together]
    assert model.ledger.samples == model.ledger.episodes == 15


def test_rewards_of_a_vector_environment_are_known_like_those_of_its_id():
    made = lambda: gymnasium.make_vec(  # noqa: E731
        "CartPole-v1", 2, "sync", vector_kwargs={"autoreset_mode": AutoresetMode.DISABLED}
    )
    how: dict[str, Any] = {"target": 20.0, "shared_seed": 3, "data_seed": 1, "max_samples": 100_000}
    one, two = learn("gym:CartPole-v1", **how), learn(made, **how)
    assert one.guarantee.status == two.guarantee.status == "certified"
    assert (one.policy, one.samples) == (two.policy, two.samples)
    barto = lambda: gymnasium.make_vec("CartPole-v1", 2, "sync", sutton_barto_reward=True)  # noqa: E731
    assert ReturnModel(barto, data_seed=1).reward_range is None  # an option that changes rewards


@pytest.mark.slow
def test_an_asynchronous_vector_plays_the_same_episodes():
    made = lambda: AsyncVectorEnv([Walk, Walk], autoreset_mode=AutoresetMode.DISABLED)  # noqa: E731
    returns = []
    for source in (Walk, made):
        model = ReturnModel(source, 8, reward_range=(0, 1), data_seed=3)
        family = constant_family(model)
        weights = np.linspace(-1.0, 1.0, family.size)
        returns.append(opened(model, family).play([Play(weights, "x", 0, 5)])[0])
        model.close()
    assert (returns[0] == returns[1]).all()


def test_two_processes_play_the_same_episodes():
    how = {"horizon": 1, "target": 0.9, "shared_seed": 3, "data_seed": 4, "max_samples": 3_000}
    one, two = (learn(Lever, workers=w, **how) for w in (1, 2))
    assert one.receipt.digest == two.receipt.digest
    assert one.policy == two.policy


def test_a_reward_outside_the_range_is_an_error_and_returns_are_clipped_on_demand():
    with pytest.raises(InputError, match=r"reward must be a number from 0 to 0\.5"):
        learn(Lever, horizon=1, reward_range=(0.0, 0.5), data_seed=1)
    result = learn(Lever, horizon=1, return_range=(0.0, 0.5), target=0.3, data_seed=1, max_samples=3_000)
    assert result.details.clipped > 0
    assert result.value is not None
    assert result.value <= 0.5


# Scan and ladder


def unit_judge(risk, threshold):
    return lambda j: MeanTest.checked(0.0, 1.0, threshold, scan_levels(risk, j))


def lever_mean(weights, family):
    """The exact mean return: only the constant is seen in the limit of small input weights, so they are set to 0."""
    x = min(max(float(weights[-1]), -1.0), 1.0)
    return 1.0 - abs(x - 0.5) / 2.0


class Constants(Networks):
    """Proposals whose input weights are 0, so that means are known exactly."""

    def propose(self, key, centre):
        weights = super().propose(key, centre)
        weights[:-1] = 0.0
        return weights


def constants(model):
    return Constants(*constant_family(model))


def spread_rungs(candidates):
    """Three rungs with their means and the widest gap between two of them: so wide that no verdict takes long."""
    found = []
    for seed in range(100):
        family = constants(lever(seed))
        rung = Rung(SharedKey(seed), 0, family, None, candidates)
        means = [lever_mean(rung.weights(j), family) for j in range(candidates)]
        low, high = max(pairwise(sorted(means)), key=lambda ends: ends[1] - ends[0])
        if high - low > 0.2:
            found.append((rung, means, (low, high)))
    assert len(found) >= 3
    return found[:3]


def test_a_scan_prints_the_first_candidate_above():
    for seed, (rung, means, gap) in enumerate(spread_rungs(8)):
        middle = sum(gap) / 2.0
        found = scan(rung, opened(lever(seed), rung.family), unit_judge(0.05, middle))
        assert found.winner == next(j for j, mean in enumerate(means) if mean > middle)
        assert found.tried == found.winner + 1


def test_a_scan_says_that_none_passes_and_names_who_is_undecided():
    model = lever()
    family = constants(model)
    rung = Rung(SharedKey(1), 0, family, None, 4)
    best = max(lever_mean(rung.weights(j), family) for j in range(4))
    none = scan(rung, opened(model, family), unit_judge(0.05, min(best + 0.1, 0.999)))
    assert (none.winner, none.undecided, none.tried) == (None, None, 4)
    cut = scan(rung, opened(lever(), family, limit=20), unit_judge(0.05, lever_mean(rung.weights(0), family)))
    assert cut.undecided is not None
    assert cut.undecided.candidate == 0
    assert cut.undecided.episodes <= 20


def test_a_ladder_climbs_by_verdicts_alone():
    model = lever()
    family = constants(model)
    aim = Aim(Range(0.0, 1.0), 0.95, 0.2, 0.5, 0.02)
    judge = lambda rung, threshold: unit_judge(rung_risk(0.1, rung, None), threshold)  # noqa: E731
    found = climb(SharedKey(2), opened(model, family), family, aim, judge, candidates=4, near=4, rungs=6)
    assert [step.rung for step in found.steps] == list(range(len(found.steps)))
    passed = [step for step in found.steps if step.found.winner is not None]
    assert all(step.threshold >= step.level for step in found.steps)
    assert all(one.threshold < two.threshold for one, two in pairwise(passed))
    assert found.weights is None or lever_mean(found.weights, family) > found.floor


class Sure(Lever):
    """What is paid depends on the action alone."""

    def step(self, action):
        return np.zeros(2, dtype=np.float32), 1.0 - abs(float(action[0]) - 0.9), True, False, {}

    action_space = spaces.Box(0.0, 8.0, (1,), np.float32)
    reward_range = (-7.0, 1.0)


def test_without_a_target_a_ladder_comes_down_and_climbs_until_three_rungs_in_a_row_fail():
    how: dict[str, Any] = {"horizon": 1, "shared_seed": 5, "max_samples": 10**5}
    first, second = (learn(Sure, data_seed=seed, **how) for seed in (1, 2))
    assert first.policy == second.policy
    assert first.guarantee.status == second.guarantee.status == "certified"
    assert not first.details.reached
    ladder = first.details.ladder
    won = [rung.candidate is not None for rung in ladder]
    down = won.index(True)  # levels fall by a quarter of the way to the floor until something passes
    assert [rung.level for rung in ladder[: down + 1]] == pytest.approx(
        [7.875 * 0.75**k - 7.0 for k in range(down + 1)]
    )
    assert won[-3:] == [False] * 3
    assert not any(won[k : k + 3] == [False] * 3 for k in range(down, len(won) - 3))
    assert first.certified_return == ladder[-4].threshold < first.estimate.high
    assert [rung.tried for rung in ladder[:down]] == [256] * down
    assert [rung.tried for rung in ladder[-3:]] == [16] * 3
    cut = learn(Sure, horizon=1, shared_seed=5, data_seed=1, max_samples=100)
    assert cut.guarantee.status == "none"


@given(st.integers(0, 2**32), st.integers(1, 63), st.lists(st.booleans(), min_size=32, max_size=32))
@settings(max_examples=200, deadline=None)
def test_thresholds_stay_inside_the_bounds_whatever_the_verdicts(seed, place, verdicts):
    """A rung just below the target once had a threshold beyond the bound of returns."""
    bounds = Range(-200.0, 0.0)
    asked: list[float] = []

    class Told(NamedTuple):
        """A test that says what it is told, after the first episodes."""

        verdict: str
        told: str

        def begin(self):
            return self

        def bet(self, bets, samples):
            return self._replace(verdict=self.told)

    def judge(rung, threshold):
        asked.append(threshold)
        return lambda j: Told("undecided", "above" if verdicts[rung] else "below")

    target = None if place == 63 else bounds.low + place * 200.0 / 63
    model = lever()
    family = constants(model)
    aim = aim_of(target, bounds)
    climb(SharedKey(seed), opened(model, family), family, aim, judge, candidates=1, near=1, rungs=32)
    assert all(bounds.low < threshold <= aim.level + aim.room < bounds.high for threshold in asked)


@pytest.mark.statistical
def test_false_and_different_answers_stay_within_the_risk():
    """400 pairs of scans at ρ = 0.4 beside the threshold; false-alarm rate 1e-6. Halved wealth is rejected."""

    def wrong(strength, runs=400, rho=0.4):
        bad = 0
        for number in range(runs):
            key = SharedKey(11).derive(number)
            means = 0.5 + np.where(key.uniforms(4) < 0.5, -0.004, 0.004)
            right = int(np.argmax(means > 0.5)) if (means > 0.5).any() else None
            stream = np.random.default_rng([3, number])
            answer = None
            for j, mean in enumerate(means):
                levels = Levels(*(min(level**strength, 0.99) for level in scan_levels(rho / 2.0, j)))
                test = MeanTest.checked(0.0, 1.0, 0.5, levels)
                bets = test.begin()
                for _ in range(60):  # undecided after 6,000 counts as right: it claims nothing
                    bets = test.bet(bets, (stream.random(100) < mean).astype(float))
                    if bets.verdict != "undecided":
                        break
                if bets.verdict == "undecided":
                    answer = right
                    break
                if bets.verdict == "above":
                    answer = j
                    break
            bad += answer != right
        return binomtest(bad, runs, rho / 2.0, alternative="greater").pvalue

    assert wrong(1.0) > STATISTICAL
    assert wrong(0.1) < STATISTICAL  # the negative control


# A run and everything around it


@pytest.fixture(scope="module")
def pair():
    how = {"horizon": 8, "reward_range": (0, 1), "shared_seed": 5, "target": 3.0}
    return [learn(Walk, data_seed=d, **how) for d in (1, 2)]


def test_two_runs_agree_and_the_return_is_certified(pair):
    one, two = pair
    assert one.policy == two.policy
    assert one.guarantee.status == two.guarantee.status == "certified"
    assert one.samples != two.samples or one.receipt.digest != two.receipt.digest
    assert one.certified_return is not None
    assert one.estimate is not None
    assert one.certified_return < one.estimate.high
    assert one.value > one.baseline_value
    assert one.samples == 8 * one.episodes  # every step is counted
    assert [r.candidate for r in one.details.ladder] == [r.candidate for r in two.details.ladder]


def test_a_run_is_saved_loaded_verified_and_reported(pair, tmp_path):
    one, two = pair
    one.save(tmp_path / "one")
    two.save(tmp_path / "two")
    stored = load_run(tmp_path / "one")
    assert stored.policy == one.policy
    assert stored.receipt.digest == one.receipt.digest
    assert stored.recipe.digest == one.recipe.digest == two.recipe.digest
    assert SearchRecipe.from_json(one.recipe.to_json()) == one.recipe
    assert SearchReceipt.from_json(one.receipt.to_json()).digest == one.receipt.digest
    assert reprl.verify(tmp_path / "one", tmp_path / "two").same
    assert reprl.verify(one, stored).same
    page = reprl.write_report(tmp_path / "one", tmp_path / "one.html").read_text()
    assert "certified" in page
    assert one.policy.fingerprint in page
    both = reprl.write_report(tmp_path / "one", tmp_path / "both.html", second=tmp_path / "two").read_text()
    assert "exactly the same policy" in both
    assert "certified" in one._repr_html_()
    forged = json.loads(one.receipt.to_json())
    forged["samples"] += 1
    with pytest.raises(DocumentError, match="receipt digest must be"):
        SearchReceipt.from_json(json.dumps(forged))


def test_a_recipe_is_followed_on_fresh_data(pair):
    second = pair[0].recipe.learn(env=Walk, data_seed=9)
    assert second.policy == pair[0].policy
    assert second.recipe.digest == pair[0].recipe.digest
    with pytest.raises(InputError, match="must be the recipe's environment"):
        pair[0].recipe.learn(env=Lever)


def test_a_run_that_is_cut_names_the_candidate_and_goes_on(tmp_path):
    how = {"horizon": 8, "reward_range": (0, 1), "shared_seed": 5, "data_seed": 1, "target": 3.0}
    cut = learn(Walk, max_samples=200, checkpoint=tmp_path / "tasks", **how)
    assert cut.guarantee.status == "none"
    assert cut.samples <= 200
    assert cut.details.undecided is not None
    assert f"candidate {cut.details.undecided.candidate} of rung" in cut.guarantee.source
    on = learn(Walk, checkpoint=tmp_path / "tasks", **how)
    assert on.receipt.digest == learn(Walk, **how).receipt.digest


def test_tables_are_searched_on_request():
    found = [
        learn("two-goals-v0", learner="search", shared_seed=2, data_seed=d, candidates=4, near=2, rungs=2, target=1.0)
        for d in (1, 2)
    ]
    assert found[0].policy.stationary
    assert found[0].guarantee.status == "certified"
    assert found[0].policy == found[1].policy


class Family:
    """A user's own: one number, the action."""

    size = 1
    centre = np.array([0.0])

    @staticmethod
    def from_vector(weights):
        class Acting:
            def act(self, observation):
                return np.clip(weights, -1.0, 1.0).astype(np.float32)

        return Acting()


def test_a_users_own_family_is_searched(tmp_path):
    result = learn(Lever, horizon=1, target=0.8, policy=Family(), shared_seed=1, data_seed=1)
    assert result.details.reached
    assert abs(result.policy.act([0.0, 0.0])[0] - 0.5) < 0.4
    assert abs(result.baseline_value - 0.75) < 0.4
    again: Any = Policy.from_json(result.policy.to_json())
    with pytest.raises(InputError, match="must be bound to its family"):
        again.act([0.0, 0.0])
    assert again.bind(Family()).act([0.0, 0.0]) == result.policy.act([0.0, 0.0])
    second = result.recipe.learn(env=Lever, policy=Family(), data_seed=2)
    assert second.policy == result.policy
    result.save(tmp_path / "run")
    with pytest.raises(InputError, match="policy must be the recipe's family"):
        load_run(tmp_path / "run").recipe.learn(env=Lever)


def test_a_checkpoint_of_stable_baselines_is_the_centre(tmp_path):
    pytest.importorskip("torch", reason="a checkpoint of Stable-Baselines3 needs the extra agents")
    stable = pytest.importorskip("stable_baselines3", reason="a checkpoint needs the extra agents")
    module = runpy.run_path(str(Path(__file__).parent.parent / "examples" / "published_network.py"))
    model = stable.PPO("MlpPolicy", "CartPole-v1", seed=3, device="cpu", n_steps=64, batch_size=32, n_epochs=1)
    model.learn(64).save(tmp_path / "ppo.zip")
    family = module["LastLayer"](*module["from_ppo"](tmp_path / "ppo.zip"))
    centre = family.from_vector(family.centre)
    seen = np.random.default_rng(0).normal(size=(64, 4)).astype(np.float32)
    assert [centre.act(x) for x in seen] == model.predict(seen, deterministic=True)[0].tolist()
    how: dict[str, Any] = {"target": 11.0, "policy": family, "shared_seed": 2, "max_samples": 100_000}
    runs = [learn("gym:CartPole-v1", data_seed=seed, **how) for seed in (1, 2)]
    assert runs[0].details.reached
    assert runs[0].policy == runs[1].policy


def test_returns_without_a_bound_are_refused():
    class Unbounded(Lever):
        reward_range = None

    for how in ({"target": 0.5}, {}):
        with pytest.raises(
            InputError, match=r"return_range or reward_range must be given .* about clipped returns"
        ) as found:
            learn(Unbounded, horizon=1, shared_seed=1, data_seed=1, **how)
        assert len(str(found.value).splitlines()) == 1
    assert (
        learn(Unbounded, horizon=1, return_range=(0, 1), target=0.5, shared_seed=1, data_seed=1).certified_return > 0.5
    )


class Odd(Lever):
    def __init__(self, observation=None, paid=None, known=(0.0, 1.0)):
        self.odd, self.paid, self.reward_range = observation, paid, known

    def reset(self, *, seed=None, options=None):
        seen, info = super().reset(seed=seed)
        return (seen if self.odd is None else self.odd), info

    def step(self, action):
        seen, paid, *rest = super().step(action)
        return (seen, paid if self.paid is None else self.paid, *rest)


BAD = [
    ({"target": 2.0}, Lever, r"target must lie in \[0, 1\), the range of returns, got 2"),
    ({"horizon": None}, Lever, "horizon must be given for an environment without a time limit, got None"),
    ({"policy": "table"}, Lever, "policy must not be 'table'"),
    ({"policy": "cubic"}, Lever, "policy must be 'linear', 'quadratic', 'tanh', 'table' or an object"),
    ({"policy": 3}, Lever, "policy must have size and from_vector"),
    ({"epsilon": 0.3}, Lever, "option must be one of rho, delta, target"),
    ({"discount": 0.9}, Lever, "discount must be left out for a search"),
    ({"learner": "magic"}, Lever, "learner must be 'search', or left out for tables, got 'magic'"),
    ({"observation_range": ([0.0], [1.0])}, Lever, "observation_range must be two rows of 2 numbers"),
    ({"return_range": (1.0, 0.0)}, Lever, "return_range must be \\(low, high\\) with low < high"),
    ({"candidates": 0}, Lever, "candidates must be a whole number"),
    ({}, lambda: Odd(observation=np.zeros(3)), "observation must always have 2 numbers"),
    ({}, lambda: Odd(observation=np.array([0.0, math.nan])), "observation must be finite numbers, got"),
    ({}, lambda: Odd(paid=math.nan), "reward must be a number from 0 to 1"),
    ({"return_range": (0, 1)}, lambda: Odd(paid=math.nan, known=None), "reward must be a finite number, got nan"),
    ({"epsilon": 0.1}, "gym:CartPole-v1", "option must be one of rho"),
]


@pytest.mark.parametrize(("options", "env", "message"), BAD)
def test_bad_input_is_named(options, env, message):
    with pytest.raises(InputError, match=message):
        learn(env() if env is Lever else env, **{"horizon": 1, "data_seed": 1, **options})


class Pull(Lever):
    """The lever with two actions."""

    action_space: Any = spaces.Discrete(2)


@pytest.mark.parametrize("action", [0.25, np.array([0.25]), 2, None])
def test_an_action_outside_the_space_is_named(action):
    class Constant(Family):
        @staticmethod
        def from_vector(weights):
            return OwnAct(action)

    with pytest.raises(InputError, match=r"policy must return a member of Discrete\(2\), got"):
        learn(Pull, horizon=1, target=0.5, policy=Constant(), data_seed=1)
    with pytest.raises(InputError, match="action space must be Discrete"):
        tables_for(spaces.Discrete(2), Lever.action_space)


class OwnAct(NamedTuple):
    """Always the same."""

    action: Any

    def act(self, observation):
        return self.action


def test_a_family_whose_size_does_not_fit_is_named():
    class Short(Family):
        centre = np.zeros(2)

    with pytest.raises(InputError, match="centre of the policy class must have 1 numbers"):
        Own.of(Short())
    with pytest.raises(InputError, match="weights must be 6 numbers for this linear policy, got 5"):
        VectorPolicy(np.zeros(5), Linear(), Inputs((0.0, 0.0), (1.0, 1.0), (2,)), Pick((2,), (0,), None))


def test_tables_know_their_spaces():
    family = tables_for(spaces.Discrete(3), spaces.Discrete(2, start=4))
    assert isinstance(family, Tables)
    policy = family.policy(np.array([1.0, 0.0, 1.0]))
    assert [policy.act(s) for s in range(3)] == [5, 4, 5]
    act = family.acting([np.array([1.0, 0.0, 1.0])])
    assert act(np.array([[0.0], [1.0]]), np.array([0, 0])) == [5, 4]


@pytest.mark.parametrize("env", ["two-goals-v0", "gym:FrozenLake-v1", "gym:Blackjack-v1"])
@pytest.mark.parametrize(("name", "value"), [("candidates", 5), ("target", 1.0), ("return_range", (0, 1))])
def test_a_keyword_of_a_search_does_not_make_one(env, name, value):
    message = rf"^{name} must come with learner='search' where observations are no Box, got"
    with pytest.raises(InputError, match=message):
        learn(env, horizon=5, reward_range=(-1, 1), **{name: value})
    with pytest.raises(InputError, match=message):
        learn("gym:CartPole-v1", horizon=5, rule="canonical", **{name: value})
    with pytest.raises(InputError, match=message):
        audit(env, learner="reprl", **{name: value})


def test_a_guessed_keyword_is_refused():
    for env in ("two-goals-v0", "gym:CartPole-v1"):
        with pytest.raises(InputError, match=r"option must be one of .* got 'tolerance'"):
            learn(env, tolerance=0.1)


@pytest.mark.parametrize(
    ("env", "how", "times"),
    [
        ("gym:Blackjack-v1", {"horizon": 8, "reward_range": (-1, 1), "max_samples": 500}, 1),
        ("gym:FrozenLake-v1", {"horizon": 8, "max_samples": 500}, 1),
        ("gym:CartPole-v1", {"target": 11.0, "max_samples": 2_000}, WIDTH),
    ],
)
def test_an_environment_is_opened_once_for_each_copy_that_plays(env, how, times, monkeypatch):
    made, make = [], gymnasium.make

    def counted(*given, **options):
        made.append(given)
        return make(*given, **options)

    monkeypatch.setattr(gymnasium, "make", counted)
    learn(env, shared_seed=1, data_seed=1, **how)
    assert len(made) == times


@pytest.mark.parametrize("space", [spaces.Box(-1.0, 1.0, (2,), np.float32), spaces.Discrete(3)])
def test_a_factory_is_called_once_for_each_copy_that_plays(space):
    made = []

    class Counted(Lever):
        observation_space: Any = space
        action_space: Any = spaces.Discrete(2)

        def __init__(self):
            made.append(self)

        def reset(self, *, seed=None, options=None):
            super().reset(seed=seed)
            return self.observation_space.sample(), {}

        def step(self, action):
            return self.observation_space.sample(), float(action), True, False, {}

    box = isinstance(space, spaces.Box)
    learn(Counted, horizon=1, data_seed=1, max_samples=400, **({"target": 0.4} if box else {}))
    assert len(made) == (WIDTH if box else 1)


def test_an_error_of_the_users_environment_comes_through():
    class Broken(Lever):
        def __init__(self):
            raise ZeroDivisionError("no sensor")

    with pytest.raises(ZeroDivisionError, match="no sensor") as found:
        learn(Broken, horizon=1, target=0.5)
    assert any("in the factory" in note for note in found.value.__notes__)
    gymnasium.register("Broken-v0", cast(Any, Broken))
    try:
        with pytest.raises(ZeroDivisionError, match="no sensor") as found:
            learn("gym:Broken-v0", horizon=1)
    finally:
        del gymnasium.registry["Broken-v0"]
    assert any("in gymnasium.make of 'gym:Broken-v0'" in note for note in found.value.__notes__)
    with pytest.raises(InputError, match=r"the factory .* must return a gymnasium.Env, got 3"):
        learn(lambda: 3, horizon=1)


def test_settings_are_checked():
    assert SearchSettings(rho=0.1, delta=0.5).risk == 0.05
    assert SearchSettings(rho=0.5, delta=0.1).risk == 0.1
    with pytest.raises(InputError, match="rho must lie in"):
        SearchSettings(rho=1.5)


# Audits and comparisons


def audit(env: Any, **options: Any) -> Any:
    """reprl.audit, whose report is of a kind that only the learner decides."""
    return reprl.audit(env, **options)


def test_searches_are_audited(tmp_path):
    how: dict[str, Any] = {"horizon": 8, "reward_range": (0, 1), "target": 3.0, "seed": 3, "pairs": 2}
    found = audit(Walk, checkpoint=tmp_path / "kept", **how)
    again = audit(Walk, checkpoint=tmp_path / "kept", **how)
    assert found.to_dict() == again.to_dict() == audit(Walk, workers=2, **how).to_dict()
    assert (found.disagreements, found.false, found.certified) == (0, 0, 4)
    assert found.verdict == "not rejected"
    assert found.value is not None
    assert all(above > 3.0 for pair in found.pairs for above in pair.above)
    assert SearchAudit.from_json(found.to_json()).to_dict() == found.to_dict()
    assert len(found.to_pandas()) == 4
    page = reprl.write_report(found, tmp_path / "audit.html").read_text()
    assert "0 of 2 pairs" in page
    assert "not rejected" in repr(found)
    (tmp_path / "audit.json").write_text(found.to_json())
    assert reprl.write_report(tmp_path / "audit.json", tmp_path / "again.html").read_text() == page
    with pytest.raises(InputError, match="discount must be left out for an audit of searches"):
        audit(Walk, discount=0.9, **how)


def test_an_audit_of_searches_finds_runs_that_are_cut_to_differ():
    """Runs of so few samples are cut at another candidate now and then; the audit says where."""
    how: dict[str, Any] = {"horizon": 1, "rho": 0.05, "sequential": True, "pairs": 30, "seed": 1}
    found = audit(Lever, target=0.5, max_samples=150, **how)
    assert found.certified < 2 * len(found.pairs)
    apart = [pair for pair in found.pairs if pair.differ]
    assert all("they part at rung" in pair.parted for pair in apart)
    assert found.verdict == ("rejected" if len(apart) > 2 else found.verdict)


def test_a_rejected_audit_of_searches_says_its_chance_as_a_bound(tmp_path):
    found = audit(Lever, target=0.3, max_samples=80, horizon=1, rho=0.01, pairs=30, seed=1)
    assert found.verdict == "rejected"
    page = reprl.write_report(found, tmp_path / "audit.html").read_text()
    assert f"so many would differ with probability at most {found.p_value:.2g}" in page
