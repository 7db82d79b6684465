"""Algorithm 4 (QExplore) in a black box: the agent plays an environment through its own reset and step alone.

Every episode is seeded by its address (batch, run, episode), so runs may be split over processes in any way. Where a
model knows the law of a state, the agent finds no value there, an episode that comes there is over, and the state is
never under-explored.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from reprl.errors import ReprlError
from reprl.execution.pool import WorkerPool
from reprl.paper.q_agent import make_agent, mark_short, restart, update
from reprl.paper.runs import Exploration, Orders
from reprl.sources.black_box import Records, as_counts, known_records, seeds
from reprl.sources.protocol import Episodic


class Findings(NamedTuple):
    """What some runs of a batch found."""

    records: Records
    short: NDArray[np.int64]
    missed: dict[int, NDArray[np.bool_]]
    """By run."""
    first_value: dict[int, float]
    """By run."""
    starts: NDArray[np.int64]


def explore_black_box(
    model: Episodic, orders: Orders, runs: int, workers: int, progress: Callable[[int, int], None] | None
) -> Exploration:
    """Make independent exploration runs; ``explore`` for a model without tables.

    Args:
        model: a GymnasiumModel, or anything else with reset and step, which then orders its episodes by itself.
        orders: settings, quota and data stream.
        runs: how many.
        workers: processes, each with its own copy of the environment.
        progress: called with the episodes done and the episodes of the batch.

    Guarantee:
        As ``explore``; bytes do not depend on workers if an episode of the environment is a function of its seed and
        actions. Every sample is charged; of an interrupted batch, all but those of episodes that were cut short in
        another process.
    """
    total = runs * orders.settings.episodes
    with WorkerPool(model, min(workers, runs)) as pool:
        hands = min(pool.workers, runs)
        shares = [(orders, range(w, runs, hands)) for w in range(hands)]
        found, *others = pool.work(explore_runs, shares, total, progress)
    for part in others:
        found.records.update(part.records)
        found.missed.update(part.missed)
        found.first_value.update(part.first_value)
        found.short[...] += part.short
        found.starts[...] += part.starts
    shape = (model.horizon, model.n_states, model.n_actions)
    found.records.update(known_records(model, total))
    value = np.array([found.first_value[run] for run in range(runs)])
    missed = np.array([found.missed[run] for run in range(runs)])
    return Exploration(runs, found.short, missed, as_counts(found.records, shape), value, found.starts)


def explore_runs(
    model: Episodic, orders: Orders, runs: Iterable[int], after_episode: Callable[[], None] | None
) -> Findings:
    """Make some runs of a batch, one after the other, on one environment.

    Args:
        model: the environment; its ledger is charged.
        orders: what every run does.
        runs: their numbers.
        after_episode: called after every episode.
    """
    sizes, settings = (model.n_states, model.n_actions, model.horizon), orders.settings
    agent = make_agent(*sizes)
    schedule = settings.schedule(*sizes)
    known = list(model.known)
    short = np.zeros((model.horizon, model.n_states), dtype=np.int64)
    found = Findings(Counter(), short, {}, {}, np.zeros(model.n_states, dtype=np.int64))
    width, choice, value = 2 * model.n_actions, agent.choice, agent.value

    def play(seed: int) -> int:
        """Play until a phantom is taken or there is nothing more to see; return the first state."""
        state = start = model.reset(seed)
        for h in range(model.horizon):
            if state in known:
                break
            cell = h * model.n_states + state
            action = int(choice[cell])
            a = action % model.n_actions
            seen = model.step(a)
            if action != a:
                found.records[cell * model.n_actions + a, seen.state, seen.reward] += 1
                update(agent, schedule, cell, action, width, 0.0)
                break
            update(agent, schedule, cell, action, width, value[(h + 1) * model.n_states + seen.state])
            state = seen.state
        return start

    for run in runs:
        restart(agent, *sizes)
        value.reshape(-1, model.n_states)[:, known] = 0.0
        starts = np.zeros(model.n_states, dtype=np.int64)
        for episode, seed in enumerate(seeds(orders.key, run, range(settings.episodes))):
            try:
                starts[play(seed)] += 1
            except ReprlError as error:
                raise type(error)(f"{error} (run {run}, episode {episode})") from None
            except Exception as error:
                error.add_note(f"while exploring {model}: run {run}, episode {episode}")
                raise
            if after_episode is not None:
                after_episode()
        found.missed[run] = np.zeros((model.horizon, model.n_states), dtype=np.bool_)
        mark_short(agent.visits, orders.quota, found.short, found.missed[run])
        found.missed[run][:, known] = False
        found.first_value[run] = float(starts / settings.episodes @ value[: model.n_states])
        found.starts[...] += starts
    found.short[:, known] = 0
    return found
