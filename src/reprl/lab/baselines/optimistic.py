"""Baselines that play episodes optimistically: UCB-H, UCBVI, and reward-free UCBVI. None of them replicates."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from reprl.kernels import njit
from reprl.lab.baselines.memory import Optimism, explore, plain, plan_policy, word
from reprl.lab.baselines.task import BaselineTask
from reprl.mdp.draws import draw_outcome
from reprl.mdp.policy import Policy
from reprl.paper.q_agent import Agent, Schedule, make_schedule, update
from reprl.sources.protocol import EpisodeArrays, Episodic

UCB_H_BONUS = 0.03
"""Practical c of the bonus c·sqrt(H³ log(SAHK/δ)/t); 2 is what Azuma's inequality asks for."""
UCB_H_EPISODES = 0.05
"""Practical episodes: this · S·A·H³/ε²."""
UCBVI_BONUS = 0.3
"""Practical c of the bonus c·(H−h)·sqrt(log(SAHK/δ)/n)."""
UCBVI_EPISODES = 0.03
"""Practical episodes: this · S·A·H³/ε²."""
REWARD_FREE_BONUS = 0.03
"""Practical c of the bonus c·H·sqrt(2β(n)/n); 1 in the paper."""
REWARD_FREE_EPISODES = 0.02
"""Practical episodes at most: this · S·A·H³/ε²."""
_SLICE = 2_000_000


def ucb_h(task: BaselineTask, *, bonus: float | None = None) -> Policy:
    """Optimistic Q-learning with Hoeffding bonuses (Jin, Allen-Zhu, Bubeck, Jordan 2018); greedy for the final Q.

    QAgent with the real reward: α_t = (H+1)/(H+t), b_t = c·sqrt(H³ log(SAHK/δ)/t).

    "paper" is c = 2, K = H⁵SA·log(SAHK/δ)/ε²: the regret bound with its unstated constant at 1. bonus is c itself.

    Guarantee:
        The paper bounds the regret of the policies played. The greedy policy of the last table, which is what one
        keeps, has no bound there. Nothing is promised about two runs.

    Randomness:
        Shared: none. Data: one batch of the model, lane = episode.
    """
    (horizon, n_states, n_actions), model = task.shape, task.model
    episodes = task.episodes(
        paper=lambda: _fixed_point(
            task, lambda log: horizon**5 * n_states * n_actions * log / task.epsilon**2, task.delta
        ),
        practical=lambda: UCB_H_EPISODES * n_states * n_actions * horizon**3 / task.epsilon**2,
    )
    c = bonus if bonus is not None else 2.0 if task.paper else UCB_H_BONUS
    schedule = make_schedule(
        n_states, n_actions, horizon, episodes=episodes, bonus=c, guide=1.0, failure=task.delta, phantoms=False
    )
    agent = make_learning_agent(n_states, n_actions, horizon)
    arrays = model.arrays
    if arrays is None:
        _learn_by_steps(model, agent, schedule, episodes)
    else:
        key = np.uint64(model.fresh_stream("ucb-h").key)
        for first in range(0, episodes, max(1, _SLICE // horizon)):
            count = min(episodes - first, max(1, _SLICE // horizon))
            _learn_episodes(arrays, agent, schedule, key, first, count)
            model.ledger.episodes += count
            model.ledger.samples += count * model.samples_per_episode
    return Policy(agent.choice.reshape(horizon, n_states).copy())


def make_learning_agent(n_states: int, n_actions: int, horizon: int) -> Agent:
    """Return QAgent's tables without phantom actions: Q = V = H everywhere."""
    cells = horizon * n_states
    value = np.full(cells + n_states, float(horizon))
    value[cells:] = 0.0
    q = np.full(cells * n_actions, float(horizon))
    return Agent(q, np.zeros(q.size, dtype=np.int64), np.zeros(cells, dtype=np.int64), value, np.zeros(0, np.uint64))


@njit(cache=True, nogil=True)
def _learn_episodes(
    world: EpisodeArrays, agent: Agent, schedule: Schedule, key: np.uint64, first: int, episodes: int
) -> None:
    """Play episodes first, first + 1, … and learn from each step."""
    outcomes = world.outcomes
    n_states, n_actions = outcomes.n_states, outcomes.n_actions
    for episode in range(first, first + episodes):
        lane = np.uint64(episode)
        s = world.start_state[draw_outcome(world.start, 0, word(key, lane, 0))]
        for h in range(outcomes.horizon):
            cell = h * n_states + s
            a = agent.choice[cell]
            row = h * outcomes.row_shift + s * n_actions + a
            e = draw_outcome(world.table, row, word(key, lane, h + 1))
            s = outcomes.next_state[e]
            future = outcomes.reward[e] + agent.value[(h + 1) * n_states + s]
            update(agent, schedule, cell, a, n_actions, future)


def _learn_by_steps(model: Episodic, agent: Agent, schedule: Schedule, episodes: int) -> None:
    """The kernel's loop for a black box, which charges its own ledger."""
    for _ in range(episodes):
        s = model.reset()
        for h in range(model.horizon):
            cell = h * model.n_states + s
            a = int(agent.choice[cell])
            seen = model.step(a)
            s = seen.state
            future = seen.reward + float(agent.value[(h + 1) * model.n_states + s])
            update(agent, schedule, cell, a, model.n_actions, future)


def ucbvi(
    task: BaselineTask, *, bonus: float | None = None, replan: str = "doubling", output: str = "empirical"
) -> Policy:
    """Value iteration with upper confidence bounds (Azar, Osband, Munos 2017), Hoeffding bonus, stage-dependent.

    Q_h = r̂ + P̂V_{h+1} + b, V_h = min(H − h, max Q_h) with no running minimum; what exceeds the cap breaks ties there.

    "practical" is b = c·(H−h)·sqrt(L/n), "paper" b = 7·H·L/sqrt(n), L = log(5·SAH·KH/δ), K from the regret bound of
    Theorem 1 with S·H states. bonus is c, or what replaces 7. Plans are made after every "episode", as in the paper, or
    at each "doubling" of a cell's visits: S·A·H·log K of them. The output is greedy in the final "empirical" or
    "optimistic" model.

    Guarantee:
        The paper bounds the regret of the policies played, not of the last one. Nothing is promised about two runs.

    Randomness:
        Shared: none. Data: one batch of the model, lane = episode.
    """
    (horizon, n_states, _), cells, epsilon, delta = task.shape, task.cells, task.epsilon, task.delta

    def bounded(log: float) -> float:
        return (
            1600.0 * horizon**3 * cells * (log / epsilon) ** 2
            + 500.0 * horizon**3 * cells * n_states * log**2 / epsilon
        )

    episodes = task.episodes(
        paper=lambda: _fixed_point(task, bounded, delta / (5.0 * horizon)),
        practical=lambda: UCBVI_EPISODES * cells * horizon**2 / epsilon**2,
    )
    if task.paper:
        scale = np.full(horizon, (7.0 if bonus is None else bonus) * horizon)
        fixed = math.log(5.0 * cells * horizon * episodes / delta) ** 2
    else:
        scale = (UCBVI_BONUS if bonus is None else bonus) * np.arange(horizon, 0, -1.0)
        fixed = math.log(cells * episodes / delta)
    optimism = Optimism(scale, fixed, 0.0, 1.0, 1.0, math.inf, 0.0 if replan == "episode" else 2.0, -1.0)
    outcomes, memory = explore(task.model, optimism, episodes, "ucbvi")
    return plan_policy(outcomes, memory, plain(horizon) if output == "empirical" else optimism)


def reward_free_ucbvi(task: BaselineTask, *, bonus: float | None = None, replan: str = "doubling") -> Policy:
    """Reward-free exploration as in RF-UCRL (Kaufmann et al. 2021), then backward induction in the empirical model.

    Episodes follow the bound E_h = min(H − h, c·H·sqrt(2β(n)/n) + P̂ max E_{h+1}) on the error of any policy's value,
    β(n) = log(2SAH/δ) + (S−1)·log(e(1 + n/(S−1))), until E is at most ε/2 at every start that was seen.

    "practical" is c below 1, "paper" c = 1 and at most the K of its sample-complexity theorem. bonus is c itself;
    replan is as in ucbvi.

    Guarantee:
        "paper": where it stops by itself, ε-optimal for every reward with probability 1 − δ, for a fixed start.
        Nothing is promised about two runs.

    Randomness:
        Shared: none. Data: one batch of the model, lane = episode.
    """
    (horizon, n_states, _), cells = task.shape, task.cells

    def paper() -> float:
        lead = 144.0 * (1.0 + math.sqrt(2.0)) ** 2 * horizon**3 * cells
        return lead * (math.log(3.0 * cells / task.delta) + n_states) / task.epsilon**2

    practical = REWARD_FREE_EPISODES * cells * horizon**2
    episodes = task.episodes(paper=paper, practical=lambda: practical / task.epsilon**2)
    c = bonus if bonus is not None else 1.0 if task.paper else REWARD_FREE_BONUS
    fixed, slope = 2.0 * (math.log(2.0 * cells / task.delta) + n_states - 1.0), 2.0 * (n_states - 1.0)
    growth = 0.0 if replan == "episode" else 2.0
    scale = np.full(horizon, c * horizon)
    optimism = Optimism(scale, fixed, slope, max(1.0, n_states - 1.0), 0.0, math.inf, growth, task.epsilon / 2.0)
    outcomes, memory = explore(task.model, optimism, episodes, "reward-free-ucbvi")
    return plan_policy(outcomes, memory, plain(horizon))


def _fixed_point(task: BaselineTask, episodes_for: Callable[[float], float], delta: float) -> float:
    """Return K with K = episodes_for(log(S·A·H·K/δ)), which grows with K more slowly than K itself."""
    episodes = 1.0
    for _ in range(64):
        episodes = episodes_for(math.log(task.cells * episodes / delta))
    return episodes
