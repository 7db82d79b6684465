"""Small black boxes with finite observations: a search over tables whose target is 90 % of the gain.

Searches play the exact dynamics of the box in a kernel; tests/test_search_experiment.py compares them with the box.
"""

from __future__ import annotations

import time
from functools import partial
from typing import Any, NamedTuple

import gymnasium
import numpy as np

import reprl
from experiments.pairs import best_value, first_action_value
from experiments.search.worlds import WORLDS
from reprl.kernels import njit
from reprl.learning.search import learn_search
from reprl.randomness import DataStream
from reprl.search.settings import SearchSettings
from reprl.sources.returns import ReturnModel

LIMIT = 100_000_000
"""Steps of a search, at most; a fifth in Blackjack."""
PAIRS = {"inventory 30×10 H=20": 10, "shop H=10": 10, "FrozenLake H=40": 10, "Blackjack H=8": 1}
QUALITY = 0.9
RETURNS = {"Blackjack H=8": (-1.0, 1.0), "FrozenLake H=40": (0.0, 1.0)}
"""Bounds of a return that are tighter than horizon times rewards: one reward is paid, at the end."""
NAMES = tuple(PAIRS)


BOX = "FrozenLake H=40"
"""Whose dynamics are published: it is played as a box here."""


class Lake(gymnasium.Env[Any, Any]):
    """FrozenLake without its published table, so that only episodes are seen."""

    def __init__(self) -> None:
        self._inner = gymnasium.make("FrozenLake-v1", max_episode_steps=-1)
        self.observation_space, self.action_space = self._inner.observation_space, self._inner.action_space

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        return self._inner.reset(seed=seed, options=options)

    def step(self, action: Any) -> Any:
        return self._inner.step(action)


def box(name: str) -> Any:
    """Return the environment as a user would give it: episodes of FrozenLake end in a hole or at the goal."""
    return Lake if name == BOX else WORLDS[name].box


@njit(cache=True)
def _uniform(state: Any) -> tuple[Any, float]:
    """The next state of SplitMix64, and a number in [0, 1)."""
    state = np.uint64(state) + np.uint64(0x9E3779B97F4A7C15)
    z = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return state, float((z ^ (z >> np.uint64(31))) >> np.uint64(11)) * 2.0**-53


@njit(cache=True)
def _play(
    words: Any, rows: Any, tables: Any, shape: Any, start: Any, first: Any, after: Any, below: Any, paid: Any,
    over: Any, found: Any, steps: Any,
) -> None:  # fmt: skip
    """Play one episode after the other; shape is (horizon, row_shift, actions)."""
    horizon, shift, n_actions = shape
    for i in range(len(words)):
        state, u = _uniform(words[i])
        s = np.searchsorted(start, u, side="right")
        total, h = 0.0, 0
        while h < horizon and not over[s]:
            row = h * shift + s * n_actions + tables[rows[i], s]
            state, u = _uniform(state)
            place = first[row]
            while place + 1 < first[row + 1] and u >= below[place]:
                place += 1
            total += paid[place]
            s = after[place]
            h += 1
        found[i], steps[i] = total, h


class TableModel(ReturnModel):
    """A box as a source of returns that plays tables in its exact MDP, in a kernel."""

    def __init__(self, name: str, data_seed: int) -> None:
        """Take a box by its name; a state that nothing leaves and that pays nothing ends an episode."""
        of, world = WORLDS[name], WORLDS[name].build()
        super().__init__(
            box(name), world.horizon, reward_range=of.rewards, return_range=RETURNS.get(name), data_seed=data_seed
        )
        law, (low, high) = world.outcomes, of.rewards
        paid = low + (high - low) * law.reward
        cells = np.repeat(np.arange(law.first.size - 1), np.diff(law.first)) // world.n_actions % world.n_states
        moves = (law.next_state != cells) | (np.abs(paid) > 1e-12)
        over = np.bincount(cells, moves, minlength=world.n_states) == 0
        below = np.concatenate([np.cumsum(p) for p in np.split(world.probability, law.first[1:-1])])
        shape = world.horizon, law.row_shift, world.n_actions
        self._law = shape, np.cumsum(world.initial)[:-1], law.first, law.next_state, below, paid, over
        self._states = world.n_states

    def play(self, act: Any, rows: Any, words: Any, after_episode: Any = None) -> Any:
        """Play an episode for every seed and return what each earned."""
        n = getattr(self.observation_space, "n", 704)
        numbers = np.arange(n).reshape(-1, 1)
        tables = np.zeros((max(rows) + 1, self._states), dtype=np.int64)
        for k in set(rows):
            tables[k, :n] = act(numbers, np.full(n, k))
        found, steps = np.empty(len(words)), np.empty(len(words), dtype=np.int64)
        _play(np.array(words, dtype=np.uint64), np.asarray(rows), tables, *self._law, found, steps)
        self.ledger.episodes += len(words)
        self.ledger.samples += int(steps.sum())
        return found


class Row(NamedTuple):
    """One run."""

    status: str
    samples: int
    share: float
    """Of what the best policy earns more than always taking the first action, in exact arithmetic."""
    seconds: float


def jobs() -> dict[str, Any]:
    """Return the measurements by name."""
    return {f"tables/{name}/search#{k}": partial(run, name, k) for name in NAMES for k in range(PAIRS[name])}


def run(name: str, number: int, seed: int = 20271118) -> dict[str, Any]:
    """Two runs of one shared seed with independent data; seconds are those of the processor."""
    of, world = WORLDS[name], WORLDS[name].build()
    base, best = first_action_value(world), best_value(world)
    target = of.original(base + QUALITY * (best - base), world.horizon)
    settings, rows, runs = SearchSettings(rho=0.1, target=target), [], []
    most = LIMIT // (5 if name == "Blackjack H=8" else 1)
    for word in DataStream(seed, f"tables/{name}/search", number).integers(2):
        began, model = time.process_time(), TableModel(name, int(word) >> 1)
        runs.append(learn_search(model, settings, seed + number, max_samples=most))
        share = (_value(world, runs[-1].policy) - base) / (best - base)
        spent = round(time.process_time() - began, 1)
        rows.append(Row(runs[-1].guarantee.status, int(runs[-1].samples), round(share, 4), spent))
    return {"same": int(runs[0].policy == runs[1].policy), "target": target, "runs": rows}


def _value(world: reprl.TabularMDP, policy: reprl.Policy) -> float:
    """Return what a policy of the box is worth; the box may have one more state, in which an episode has ended."""
    actions = np.atleast_2d(policy.actions)[:, : world.n_states]
    return float(world.evaluate(np.broadcast_to(actions, (world.horizon, world.n_states))))


def table(measured: dict[str, Any]) -> list[str]:
    """Return the lines of the table in Markdown; none where nothing is stored."""
    lines = []
    for name in NAMES:
        stored = [one for key, one in measured.items() if key.startswith(f"tables/{name}/search#")]
        if not stored:
            continue
        found = [(bool(one["same"]), [Row(*row) for row in one["runs"]]) for one in stored]
        rows = [row for _, both in found for row in both]
        alike = [same for same, both in found if any(row.share for row in both)]  # not where nothing was found
        equal = f"{sum(alike)} of {len(alike)}" if alike else "—"
        kept = [row for row in rows if row.status != "none"]
        status = "".join(f"{each}, " for each in sorted({row.status for row in kept}))
        reached = sum(row.share >= QUALITY for row in kept)
        samples, seconds = (np.median([row[k] for row in rows]) for k in (1, 3))
        lines.append(
            f"| {name} | {status}{len(kept)} of {len(rows)} runs | {equal} | {samples:,.0f} "
            f"| {seconds:.1f} | {reached} of {len(rows)} |"
        )
    head = (
        "environment",
        "promise",
        "pairs equal",
        "samples, median",
        "seconds, median",
        "promise, and 90 % of the gain",
    )
    return ["", f"| {' | '.join(head)} |", "|---" * len(head) + "|", *lines] if lines else []
