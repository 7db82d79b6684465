"""The hard MDP: the value identity, both simulations against the real thing, and what they use.

Statistical tests reject a right implementation with probability at most FALSE_ALARM = 1e-6 each; their seeds are fixed.
"""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from typing import Any

import numpy as np
import pytest

from reprl.errors import ReprlError
from reprl.guarantee import Guarantee
from reprl.lab.lower_bounds import hard_mdp as hard
from reprl.lab.lower_bounds.problems import cube_instance, sign_excess
from reprl.lab.lower_bounds.simulation import SimulatedEpisodes, SimulatedParallel, episode_vectors
from reprl.lab.lower_bounds.sources import rademacher
from reprl.mdp.policy import Policy
from reprl.randomness import DataStream, SharedKey
from reprl.sources.episodes import EpisodicModel
from reprl.sources.parallel import GenerativeModel
from tests import naive
from tests.statistics import FALSE_ALARM, chi_square, chi_square_of, exceeds, keeps

# -------------------------------------------------------------------------------------------------- the value identity


def test_value_gap_of_a_policy_is_a_third_of_h_times_the_sign_error() -> None:
    rng = np.random.default_rng(1)
    for _ in range(300):
        horizon, states, actions = (int(rng.integers(1, high)) for high in (6, 9, 5))
        actions += 1
        p = rng.uniform(-1, 1, horizon * states)
        mdp = hard.make_hard_mdp(p, n_states=states, n_actions=actions)
        policy = Policy(rng.integers(0, 2, (horizon, states)))
        v = hard.policy_to_signs(policy)
        value, best = mdp.evaluate(policy), float(mdp.initial @ mdp.solve().values[0])
        assert abs(value - hard.value_of_signs(p, v, n_states=states)) < 1e-12
        assert abs(best - value - horizon / 3 * sign_excess(p, v)) < 1e-12
        assert hard.signs_to_policy(v, n_states=states) == policy
        # In the units of the paper: V = (1/S)·Σ v·p.
        assert abs(mdp.labels.reward_map.restore(value, horizon) - (v * p).sum() / states) < 1e-12


def test_dummies_only_lose() -> None:
    """The inequality in the proof of Theorem 1.4: with dummies the signs are at least as good as the policy."""
    rng = np.random.default_rng(2)
    for _ in range(200):
        p = rng.uniform(-1, 1, 6)
        mdp = hard.make_hard_mdp(p, n_states=3, n_actions=4)
        policy = Policy(rng.integers(0, 4, (2, 3)))
        gap = float(mdp.initial @ mdp.solve().values[0]) - mdp.evaluate(policy)
        assert 2 / 3 * sign_excess(p, hard.policy_to_signs(policy)) <= gap + 1e-12


# ------------------------------------------------------------------------------------------------- parallel simulation

P = np.array([0.6, -0.3, 1.0, -1.0, 0.0, 0.25])


class OneVectorForBoth(SimulatedParallel):
    """Wrong on purpose: one vector pays both a₊ and a₋."""

    def sample(self, n: int) -> Any:
        plus = self.source.count(n)
        self.source.count = lambda sizes: plus  # type: ignore[method-assign]
        return super().sample(n)


@pytest.mark.statistical
def test_parallel_counts_have_the_law_of_every_cell() -> None:
    real = hard.make_hard_mdp(P, n_states=2, n_actions=3)
    counts = SimulatedParallel(rademacher(P, 5), n_states=2, n_actions=3).sample(10**6)

    def p_value(mdp: Any) -> float:
        laws = []
        for h, s, a in itertools.product(range(3), range(2), range(3)):
            ours, slots = counts.outcomes.slots(h, s, a)
            theirs, _ = mdp.outcomes.slots(h, s, a)
            law = dict(
                zip(
                    zip(mdp.outcomes.next_state[theirs], mdp.outcomes.reward[theirs], strict=True),
                    mdp.probability[theirs],
                    strict=True,
                )
            )
            seen = zip(counts.outcomes.next_state[ours], counts.outcomes.reward[ours], strict=True)
            laws.append((counts.hits[slots], [law.get(outcome, 0.0) for outcome in seen]))
        return chi_square(laws)

    assert (counts.visits == 10**6).all()
    assert p_value(real) > FALSE_ALARM
    assert p_value(hard.make_hard_mdp(P + np.eye(6)[0] / 100, n_states=2, n_actions=3)) < FALSE_ALARM


def reward_pairs(model: type[SimulatedParallel] | None, calls: int) -> Any:
    """Rewards of a₊ and a₋ in one cell, summed over a few calls, as an index; from the real MDP when model is None."""
    p = np.array([0.2])
    real = hard.make_hard_mdp(p, n_states=1)
    out = np.zeros((calls + 1) ** 2, dtype=int)
    for seed in range(1500):
        source = rademacher(p, seed)
        view = GenerativeModel(real, seed) if model is None else model(source, n_states=1)
        ones = view.sample(calls).reward_sum[0, 0].astype(int)
        out[ones[0] * (calls + 1) + ones[1]] += 1
        assert model is None or model is OneVectorForBoth or source.samples == 2 * calls
    return out


@pytest.mark.statistical
def test_parallel_rewards_of_the_two_actions_are_independent() -> None:
    mean = np.array([(2 + 0.2) / 3, (2 - 0.2) / 3])
    single = [np.array([(1 - m) ** 2, 2 * m * (1 - m), m * m]) for m in mean]
    law = np.outer(*single).reshape(-1)
    assert chi_square([(reward_pairs(SimulatedParallel, 2), law)]) > FALSE_ALARM
    assert chi_square([(reward_pairs(None, 2), law)]) > FALSE_ALARM
    assert chi_square([(reward_pairs(OneVectorForBoth, 2), law)]) < FALSE_ALARM


def test_parallel_ledgers_are_exact_and_p_is_hidden() -> None:
    source = rademacher(P, 1)
    model = SimulatedParallel(source, n_states=3, n_actions=4)
    model.sample(10)
    model.sample(7)
    assert source.samples == 2 * 17
    assert model.ledger.calls == 17
    assert model.ledger.samples == 17 * (3 * 4 * 2 + 1)  # and a random start
    assert model.mdp.digest == hard.make_hard_mdp(np.zeros(6), n_states=3, n_actions=4).digest


@pytest.mark.statistical
def test_mean_return_of_the_simulation_is_the_value() -> None:
    policy = Policy([[0, 1], [2, 0], [1, 1]])
    value = hard.make_hard_mdp(P, n_states=2, n_actions=3).evaluate(policy)
    mean = SimulatedParallel(rademacher(P, 3), n_states=2, n_actions=3).mean_return(policy, 10**8)
    # A return lies in [0, 3]: by Hoeffding's inequality a miss this large has probability below 1e-6.
    assert abs(mean - value) < 3 * np.sqrt(np.log(2 / FALSE_ALARM) / (2 * 10**8))
    assert abs(mean - value - 0.01) > 3 * np.sqrt(np.log(2 / FALSE_ALARM) / (2 * 10**8))


# ------------------------------------------------------------------------------------------------- episodic simulation


class PerAction(SimulatedEpisodes):
    """The count of Theorem 1.5's proof, wrong: (s, a₊, h) and (s, a₋, h) each read the vectors from the first on."""

    def step(self, action: int) -> Any:
        if not hasattr(self, "per_action"):
            self.per_action = [np.zeros_like(self._visits) for _ in range(2)]
        if action < 2:
            self._visits = self.per_action[action]
        return super().step(action)


def two_episodes(model: type[SimulatedEpisodes] | None, p: Any, seed: int) -> tuple[float, ...]:
    """Play a₊ in one episode and a₋ in the next, over two steps; return all that was seen."""
    source = rademacher(p, seed)
    env: Any = EpisodicModel(hard.make_hard_mdp(p, n_states=2), seed) if model is None else model(source, n_states=2)
    seen: list[float] = []
    for action in (0, 1):
        seen.append(env.reset())
        for _ in range(2):
            state, reward, _ = env.step(action)
            seen += [state, reward]
    return tuple(seen)


@pytest.mark.statistical
@pytest.mark.parametrize("model", [SimulatedEpisodes, None, PerAction])
def test_episodes_have_the_law_of_the_real_mdp(model: type[SimulatedEpisodes] | None) -> None:
    p = np.array([0.4, -0.2, 0.1, 0.8])
    mdp = hard.make_hard_mdp(p, n_states=2)
    table = naive.by_step(mdp.transition, mdp.reward[..., None].repeat(2, axis=-1), 2)
    one, two = (naive.trajectory_law(*table, list(mdp.initial), [[a, a]] * 2, "bernoulli") for a in (0, 1))
    # Rewards can depend on each other only where both episodes were in one state: keep starts and rewards.
    law: dict[Any, float] = defaultdict(float)
    for (first, weight), (second, chance) in itertools.product(one.items(), two.items()):
        law[first[0], first[2], first[4], second[0], second[2], second[4]] += weight * chance
    seen = Counter((x[0], x[2], x[4], x[5], x[7], x[9]) for x in (two_episodes(model, p, seed) for seed in range(4000)))
    p_value = chi_square_of(seen, law)
    assert (p_value < FALSE_ALARM) == (model is PerAction)


@pytest.mark.statistical
def test_episodes_use_as_many_vectors_as_the_busiest_state_is_visited() -> None:
    states, horizon, episodes, delta = 4, 3, 40, 0.05
    over, short, trials = 0, 0, 600
    for seed in range(trials):
        source = rademacher(np.zeros(states * horizon), seed)
        env = SimulatedEpisodes(source, n_states=states, n_actions=3)
        uniforms = DataStream(seed, "actions").uniforms(episodes * horizon)
        visits = np.zeros((horizon, states), dtype=int)
        for episode in range(episodes):
            state = env.reset()
            for h in range(horizon):
                action = int(3 * uniforms[episode * horizon + h]) if seed % 2 else 0
                visits[h, state] += action < 2
                state = env.step(action).state
        assert source.samples == visits.max()
        assert env.ledger.episodes == episodes
        assert env.ledger.samples == episodes * (horizon + 1)
        over += source.samples > episode_vectors(episodes, n_states=states, horizon=horizon, delta=delta)
        short += source.samples > episodes / states
    assert keeps(over, trials, delta, power=0.57)
    assert exceeds(short, trials, delta) < FALSE_ALARM  # m/S alone would be too few


# ------------------------------------------------------------------------------------------------- learners as solvers


def counting_learner(episodes: int) -> Any:
    """Not replicable, for the accounting alone: play every action in turn, then take the better of a₊ and a₋."""

    def learn(model: Any, key: SharedKey) -> Policy:
        paid, tries = np.zeros((2, model.horizon, model.n_states, 2))
        for episode in range(episodes):
            state = model.reset()
            for h in range(model.horizon):
                action = (episode + h) % 2
                seen = model.step(action)
                paid[h, state, action] += seen.reward
                tries[h, state, action] += 1
                state = seen.state
        return Policy((paid / np.maximum(tries, 1)).argmax(axis=2))

    return learn


@pytest.mark.statistical
def test_an_episodic_learner_solves_signs_with_the_stated_vectors() -> None:
    inner = Guarantee.of(rho=1.0, delta=0.05, epsilon=0.3, status="none", source="tests")
    solver = hard.signs_from_episodes(
        counting_learner(400), guarantee=inner, episodes=400, n_states=3, horizon=2, delta=0.01
    )
    assert solver.guarantee.epsilon == pytest.approx(3 * 0.3 / 2)
    assert solver.guarantee.delta == pytest.approx(0.06)
    assert not solver.exact
    missed = over = 0
    for seed in range(60):
        p = cube_instance(6, 1.0, SharedKey(1).derive("episodes", seed))
        source = rademacher(p, seed)
        missed += sign_excess(p, solver(SharedKey(seed), source)) >= solver.guarantee.epsilon
        over += source.samples > solver.samples
    assert keeps(missed + over, 60, solver.guarantee.delta, power=0.00151, finds=0.34)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: hard.make_hard_mdp(np.zeros(5), n_states=2), "n_states must divide the number of biases 5, got 2"),
        (lambda: hard.make_hard_mdp(np.full(4, 2.0), n_states=2), r"biases\[0\] must lie in \[-1, 1\], got 2"),
        (lambda: hard.make_hard_mdp(np.zeros(4), n_states=0), "n_states must be a whole number of at least 1, got 0"),
        (lambda: hard.make_hard_mdp(np.zeros(4), n_states=2, n_actions=1), "n_actions must be .*, got 1"),
        (lambda: SimulatedParallel(rademacher([0.0], 1), n_states=1).sample(0), "n must be .*, got 0"),
        (lambda: SimulatedEpisodes(rademacher([0.0], 1), n_states=1).step(0), "call reset first"),
        (lambda: episode_vectors(0, n_states=2, horizon=2, delta=0.1), "episodes must be .*, got 0"),
        (lambda: episode_vectors(5, n_states=2, horizon=2, delta=1.5), r"delta must lie in \(0, 1\), got 1.5"),
    ],
)
def test_bad_input_is_refused_with_one_line(call: Any, message: str) -> None:
    with pytest.raises(ReprlError, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)
