"""The hard MDP of the lower bounds (proof of Theorem 1.4): biases → MDP, policy → signs, and learners as sign solvers.

Coordinate i = h·S + s of a bias vector is the pair (s, h). Action 0 is a₊ with reward of mean p[s, h], action 1 is a₋
with mean −p[s, h], every other action pays −2; rewards are mapped from [−2, 1] to [0, 1]. A ±1 draw becomes a 0/1
reward with one private coin: +1 pays 1, −1 pays 1 with probability ⅓, which has mean (2 + p)/3 (`hard_instance`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from reprl.errors import InputError, check_int, quote
from reprl.guarantee import Guarantee
from reprl.lab.lower_bounds.problems import Algorithm, Vector, sign_excess
from reprl.lab.lower_bounds.simulation import SimulatedEpisodes, SimulatedParallel, as_table, episode_vectors
from reprl.lab.lower_bounds.sources import VectorSource, check_biases, check_dimension
from reprl.learning.full import run_paper
from reprl.learning.learner import ReprlLearner
from reprl.mdp.catalogue import hard_instance
from reprl.mdp.policy import Policy
from reprl.mdp.tabular import TabularMDP
from reprl.randomness import SharedKey
from reprl.sources.parallel import GenerativeModel


def make_hard_mdp(biases: ArrayLike, *, n_states: int, n_actions: int = 2) -> TabularMDP:
    """Build the hard MDP of biases p, (H·S,) in [−1, 1] (proof of Theorem 1.4, items 1–5, item 4 read for a₋)."""
    return hard_instance(as_table(check_biases(biases), n_states), n_actions)


def policy_to_signs(policy: Policy) -> Vector:
    """Return v with +1 where the policy plays a₊ and −1 where it plays a₋; dummies, arbitrary in the proof, give +1."""
    return np.where(policy.actions == 1, -1.0, 1.0).reshape(-1)


def signs_to_policy(signs: ArrayLike, *, n_states: int) -> Policy:
    """Return the policy of a sign vector: the inverse of policy_to_signs for policies without dummies."""
    return Policy((as_table(check_biases(signs), n_states) < 0.0).astype(np.int64))


def value_of_signs(biases: ArrayLike, signs: ArrayLike, *, n_states: int) -> float:
    """Return the value, rewards in [0, 1], of the policy of a sign vector: (2H + (1/S)·Σ v_i p_i)/3 (Theorem 1.4).

    Guarantee:
        Equal to ``make_hard_mdp(biases).evaluate(signs_to_policy(signs))``: V* − V = (H/3)·sign_excess.
    """
    p = check_biases(biases)
    horizon = as_table(p, n_states).shape[0]
    best = math.fsum(np.abs(p)) / p.size
    return float(horizon * (2.0 + best - sign_excess(p, signs)) / 3.0)


def signs_from_learner(
    learner: Callable[[Any, SharedKey], Policy],
    *,
    guarantee: Guarantee,
    calls: int,
    n_states: int,
    horizon: int,
    n_actions: int = 2,
) -> Algorithm:
    """Turn a learner from parallel samples into a solver of sign-one-way marginals (proof of Theorem 1.4).

    The learner makes so many parallel calls; its guarantee has epsilon in units of value with rewards in [0, 1].

    Guarantee:
        Same ρ and δ, accuracy every level above 3ε/H, 2·calls vectors of dimension n = S·H.

    Randomness:
        Shared, the learner's at key. Data: as SimulatedParallel.
    """
    run = _play(SimulatedParallel, learner, n_states, horizon, n_actions)
    return Algorithm(run=run, guarantee=_scaled(guarantee, horizon), samples=2 * check_int("calls", calls, 1))


def signs_from_reprl(learner: ReprlLearner, *, n_states: int, horizon: int, n_actions: int = 2) -> Algorithm:
    """Turn the paper's learner from parallel samples into a solver of sign-one-way marginals; see signs_from_learner.

    The learner has access="generative" and rule="paper", and is not boosted.

    Guarantee:
        What the learner itself promises at its settings, status included, ε scaled by 3/H.
    """
    asked = learner.settings if isinstance(learner, ReprlLearner) else None
    if asked is None or (asked.access, asked.rule) != ("generative", "paper") or asked.boosted:
        raise InputError(
            f"learner must be a reprl learner with access='generative' and rule='paper', not boosted, got "
            f"{quote(learner)}"
        )
    public = make_hard_mdp(np.zeros(n_states * horizon), n_states=n_states, n_actions=n_actions)
    # The learner computes what it can prove from sample sizes alone, so a run on the public MDP has the same guarantee.
    rehearsal = GenerativeModel(public, 0)
    guarantee = run_paper(rehearsal, SharedKey(0), asked).guarantee
    calls = rehearsal.ledger.calls
    sizes = {"n_states": n_states, "horizon": horizon, "n_actions": n_actions}
    return signs_from_learner(learner, guarantee=guarantee, calls=calls, **sizes)


def signs_from_episodes(
    learner: Callable[[Any, SharedKey], Policy],
    *,
    guarantee: Guarantee,
    episodes: int,
    n_states: int,
    horizon: int,
    n_actions: int = 2,
    delta: float = 0.01,
) -> Algorithm:
    """Turn a learner that plays so many episodes into a solver of sign-one-way marginals (proof of Theorem 1.5).

    As signs_from_learner; δ is the failure of the bound on the vectors used.

    Guarantee:
        Same ρ, accuracy 3ε/H, failure of the learner + δ; at most `episode_vectors` vectors.

    Randomness:
        Shared, the learner's at key. Data: as SimulatedEpisodes.
    """
    run = _play(SimulatedEpisodes, learner, n_states, horizon, n_actions)
    most = episode_vectors(episodes, n_states=n_states, horizon=horizon, delta=delta)
    return Algorithm(run=run, guarantee=_scaled(guarantee, horizon, delta), samples=most, exact=False)


def _play(
    model: Callable[..., Any], learner: Callable[[Any, SharedKey], Policy], n_states: int, horizon: int, n_actions: int
) -> Callable[[SharedKey, VectorSource], Vector]:
    """Return the signs of the policy that a learner finds in a simulated model of the hard MDP."""

    def run(key: SharedKey, source: VectorSource) -> Vector:
        check_dimension(source, n_states * horizon)
        return policy_to_signs(learner(model(source, n_states=n_states, n_actions=n_actions), key))

    return run


def _scaled(inner: Guarantee, horizon: int, delta: float = 0.0) -> Guarantee:
    """Values with rewards in [0, 1] to sign-one-way accuracy: a factor 3/H."""
    return replace(inner, delta=inner.delta + delta, epsilon=3.0 * inner.epsilon / check_int("horizon", horizon, 1))
