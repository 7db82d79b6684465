"""What is measured of a pair of halves."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.logs import plan
from reprl.learning.logged import learn_log
from reprl.learning.result import LearnResult
from reprl.mdp.counts import Counts
from reprl.mdp.planning import empirical_values, greedy_policy
from reprl.mdp.policy import Policy
from reprl.mdp.tabular import TabularMDP

RIDGE = 1.0


def simulate(
    mdp: TabularMDP, behaviour: NDArray[np.float64], episodes: int, rng: np.random.Generator
) -> dict[str, NDArray[Any]]:
    """Make a log: rows of (episode, state, action, reward, next state), in order."""
    horizon = mdp.horizon
    columns = {name: np.empty((episodes, horizon), dtype=np.int32) for name in ("state", "action", "next_state")}
    reward = np.empty((episodes, horizon))
    state = _draw(np.broadcast_to(np.cumsum(mdp.initial), (1, mdp.n_states)), np.zeros(episodes, dtype=int), rng)
    for h in range(horizon):
        action = _draw(np.cumsum(behaviour[h], axis=1), state, rng)
        laws = np.cumsum(mdp.transition[h], axis=2).reshape(-1, mdp.n_states)
        following = _draw(laws, state * mdp.n_actions + action, rng)
        mean = mdp.reward[h][state, action]
        paid = rng.random(episodes) < mean if mdp.reward_kind == "bernoulli" else mean
        for name, column in (("state", state), ("action", action), ("next_state", following)):
            columns[name][:, h] = column
        reward[:, h] = paid
        state = following
    flat: dict[str, NDArray[Any]] = {name: column.ravel() for name, column in columns.items()}
    return {"episode": np.repeat(np.arange(episodes, dtype=np.int64), horizon), **flat, "reward": reward.ravel()}


def _draw(laws: NDArray[np.float64], rows: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
    """Draw from cumulated laws, one for each row."""
    below = rng.random(rows.size)[:, None] >= laws[rows]
    drawn: NDArray[np.int64] = np.minimum(below.sum(axis=1), laws.shape[1] - 1)
    return drawn


def fitted_policy(counts: Counts) -> Policy:
    """Fitted value iteration: at each step, ridge regression on indicators of state, action and both, then greedy."""
    horizon, n_states, n_actions = counts.outcomes.shape
    s, a = (index.ravel() for index in np.indices((n_states, n_actions)))
    features = np.hstack([np.eye(n_states)[s], np.eye(n_actions)[a], np.eye(s.size)])
    value, scores = np.zeros(n_states), np.empty(counts.outcomes.shape)
    for h in reversed(range(horizon)):
        n = counts.visits[h].ravel().astype(float)
        target = np.nan_to_num(counts.mean_return(h, value)).ravel()
        gram = features.T @ (n[:, None] * features) + RIDGE * np.eye(features.shape[1])
        scores[h] = (features @ np.linalg.solve(gram, features.T @ (n * target))).reshape(n_states, n_actions)
        value = scores[h].max(axis=1)
    return greedy_policy(scores)


def pair(world: str, size: int, number: int) -> dict[str, Any]:
    """Learn from both halves of a fresh log under a fresh shared seed."""
    mdp = plan.WORLDS[world].build()
    behaviour = plan.practice(mdp, plan.WORLDS[world].temperature)
    rng = np.random.default_rng([plan.SEED, list(plan.WORLDS).index(world), size, number])
    log = simulate(mdp, behaviour, size // mdp.horizon, rng)
    began = time.process_time()
    runs = [_learn(log, mdp, half, number) for half in (0, 1)]
    seconds = (time.process_time() - began) / 2
    best = float(mdp.initial @ mdp.solve().values[0])
    decided = ~(runs[0].tiers.ignorable | runs[1].tiers.ignorable)
    found: dict[str, Any] = {
        "pair": number,
        "sure": [run.guarantee.status == "rehearsed" for run in runs],
        "unknown": [run.coverage.unknown for run in runs if run.coverage is not None],
        "inside": [
            run.coverage.value_low <= mdp.evaluate(run.policy.actions[:, : mdp.n_states]) <= run.coverage.value_high
            for run in runs
            if run.coverage is not None
        ],
        "practice": best - _practice(mdp, behaviour),
        "seconds": seconds,
    }
    contenders = {
        "reprl": [run.policy for run in runs],
        "greedy": [greedy_policy(empirical_values(run.counts)) for run in runs],
        "fitted": [fitted_policy(run.counts) for run in runs],
    }
    for name, (one, other) in contenders.items():
        apart = one.actions != other.actions
        loss = [best - mdp.evaluate(policy.actions[:, : mdp.n_states]) for policy in (one, other)]
        found[name] = {"apart": int(apart.sum()), "apart_decided": int((apart & decided).sum()), "loss": max(loss)}
    return found


def _learn(log: dict[str, NDArray[Any]], mdp: TabularMDP, half: int, number: int) -> LearnResult:
    """Every other episode."""
    kept = log["episode"] % 2 == half
    return learn_log(
        {name: column[kept] for name, column in log.items()},
        horizon=mdp.horizon,
        states=range(mdp.n_states),
        actions=range(mdp.n_actions),
        rho=plan.RHO,
        shared_seed=plan.SEED + number,
    )


def _practice(mdp: TabularMDP, behaviour: NDArray[np.float64]) -> float:
    value = np.zeros(mdp.n_states)
    for h in reversed(range(mdp.horizon)):
        value = (behaviour[h] * (mdp.reward[h] + mdp.transition[h] @ value)).sum(axis=1)
    return float(mdp.initial @ value)
