"""Black boxes: the time of episodes, over that of a bare loop that seeds, resets and steps the same environment.

Both take the same actions on the same seeds, in one process, by turns; the least CPU time of each is kept.
REPRL_BEFORE=path/to/an/older/src adds a column for that version and the quotient of the two.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

REPEATS, EPISODES = 9, 200
SOURCE = Path(__file__).parents[1] / "src"
WORLDS = ("Blackjack-v1, H = 10", "shop, 7 states, H = 5", "inventory 30×10, H = 20")


def _worlds() -> dict[str, tuple[Any, int, tuple[float, float]]]:
    import gymnasium

    from tests.shop import Shop

    class Inventory(gymnasium.Env[Any, Any]):
        """Up to 30 items, orders of up to 9, Poisson demand."""

        observation_space, action_space = gymnasium.spaces.Discrete(31), gymnasium.spaces.Discrete(10)

        def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[int, Any]:
            super().reset(seed=seed)
            self.stock = 15
            return self.stock, {}

        def step(self, action: Any) -> tuple[int, float, bool, bool, Any]:
            held = min(30, self.stock + int(action))
            sold = min(held, int(self.np_random.poisson(4)))
            self.stock = held - sold
            return self.stock, 2.0 * sold - 0.5 * int(action) - 0.1 * held, False, False, {}

    environments = (("Blackjack-v1", 10, (-1.0, 1.0)), (Shop, 5, Shop.REWARDS), (Inventory, 20, (-20.0, 60.0)))
    return dict(zip(WORLDS, environments, strict=True))


def measure(name: str) -> dict[str, float]:
    """Return the CPU seconds of the package and of the bare loop."""
    import numpy as np

    from reprl.randomness import DataStream
    from reprl.sources.black_box import play_episodes, seeds
    from reprl.sources.gymnasium.model import GymnasiumModel

    source, horizon, rewards = _worlds()[name]
    model, stream = GymnasiumModel(source, horizon, reward_range=rewards, data_seed=1), DataStream(1, "benchmark")
    actions = np.random.default_rng(0).integers(0, model.n_actions, size=(horizon, model.n_states))
    env = model.env
    episodes: list[tuple[int, list[Any]]] = []
    for seed in seeds(stream.key, 0, range(EPISODES)):
        state = model.reset(seed)
        taken: list[Any] = []
        for row in actions.tolist():
            if state != model.ended:
                taken.append(model.actions.decode(row[state]))
                state = model.step(row[state]).state
        episodes.append((seed, taken))

    def bare() -> None:
        for seed, taken in episodes:
            env.reset(seed=seed)
            for action in taken:
                env.step(action)

    def ours() -> None:
        play_episodes(model, actions, stream, range(EPISODES), None)

    found: dict[str, float] = {}
    for part in (ours, bare) * (REPEATS + 1):
        start = time.process_time()
        part()
        seconds = time.process_time() - start
        found[part.__name__] = min(found.get(part.__name__, seconds), seconds)
    return found


def _ratios(source: Path) -> dict[str, float]:
    """Measure a version in a process of its own: its time over that of the bare loop."""
    code = "import json; from benchmarks.black_box import *; print(json.dumps({n: measure(n) for n in WORLDS}))"
    environment = {**os.environ, "PYTHONPATH": f"{source}{os.pathsep}{SOURCE.parent}"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, stdout=subprocess.PIPE, check=True)
    return {name: found["ours"] / found["bare"] for name, found in json.loads(done.stdout).items()}


def run() -> list[dict[str, Any]]:
    older = os.environ.get("REPRL_BEFORE")
    now, before = _ratios(SOURCE), _ratios(Path(older)) if older else {}
    rows: list[dict[str, Any]] = []
    for name in WORLDS:
        row: dict[str, Any] = {"black box": name, "now / bare loop": round(now[name], 3)}
        if older:
            row |= {"before / bare loop": round(before[name], 3), "now / before": round(now[name] / before[name], 3)}
        rows.append(row)
    return rows
