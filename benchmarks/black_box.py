"""Black boxes: the time of episodes, over that of a bare loop that seeds, resets and steps the same environment.

Both take the same actions on the same seeds, in one process, by turns; the least CPU time of each is kept. So does a
gymnasium.vector.SyncVectorEnv, which is what make_vec opens where an environment has no vectorized form of its own; one
that has ended is reset to its next seed.
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

PAGE = "scale.md"
REPEATS, EPISODES, TOGETHER = 9, 200, 16
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
    """Return the CPU seconds of the package, of the bare loop and of a vector environment."""
    import numpy as np
    from gymnasium.vector import AutoresetMode, SyncVectorEnv

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

    def opened() -> Any:
        return GymnasiumModel(source, horizon, reward_range=rewards, data_seed=1).env

    together = SyncVectorEnv([opened] * TOGETHER, autoreset_mode=AutoresetMode.DISABLED)

    def vector() -> None:
        shares = [episodes[i::TOGETHER] for i in range(TOGETHER)]
        number, step, left = np.zeros(TOGETHER, dtype=int), np.zeros(TOGETHER, dtype=int), EPISODES
        together.reset(seed=[share[0][0] for share in shares])
        while left > 0:
            now = [share[n % len(share)] for share, n in zip(shares, number, strict=True)]
            together.step(np.array([taken[h] for (_, taken), h in zip(now, step, strict=True)]))
            step += 1
            over = step == [len(taken) for _, taken in now]
            if over.any():
                left -= int(over.sum())
                number[over], step[over] = number[over] + 1, 0
                following = [share[n % len(share)][0] for share, n in zip(shares, number, strict=True)]
                together.reset(seed=following, options={"reset_mask": over})

    def ours() -> None:
        play_episodes(model, actions, stream, range(EPISODES), None)

    found: dict[str, float] = {}
    for part in (ours, bare, vector) * (REPEATS + 1):
        start = time.process_time()
        part()
        seconds = time.process_time() - start
        found[part.__name__] = min(found.get(part.__name__, seconds), seconds)
    return found


def _measured(source: Path) -> dict[str, dict[str, float]]:
    """Measure a version in a process of its own."""
    code = "import json; from benchmarks.black_box import *; print(json.dumps({n: measure(n) for n in WORLDS}))"
    environment = {**os.environ, "PYTHONPATH": f"{source}{os.pathsep}{SOURCE.parent}"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, stdout=subprocess.PIPE, check=True)
    found: dict[str, dict[str, float]] = json.loads(done.stdout)
    return found


def run() -> list[dict[str, Any]]:
    older = os.environ.get("REPRL_BEFORE")
    now, before = _measured(SOURCE), _measured(Path(older)) if older else {}
    rows: list[dict[str, Any]] = []
    for name in WORLDS:
        ours, vector = (now[name][part] / now[name]["bare"] for part in ("ours", "vector"))
        row: dict[str, Any] = {"black box": name, "reprl / bare loop": round(ours, 2)}
        if older:
            row["before / bare loop"] = round(before[name]["ours"] / before[name]["bare"], 2)
        rows.append(row | {"vector environment / bare loop": round(vector, 2)})
    return rows
