"""python -m experiments.price.boxes --out FILE: do black boxes end in a promise under the weaker kinds, and how soon?

Pairs of runs at the default quality, one process, judged by the exact MDP; a pair that follows a registered candidate
has a pilot of its own. A run that was stopped goes on where it was.
"""

from __future__ import annotations

import time
from bisect import bisect_right
from functools import cache, partial
from typing import Any, NamedTuple

import gymnasium
import numpy as np
from gymnasium import spaces

import reprl
from experiments.defaults.worlds import CARDS, WORLDS, Rows, World, deal, hit, merged, stick
from experiments.pairs import (
    DEFAULT,
    RHO,
    Asked,
    best_value,
    count,
    first_action_value,
    measure_jobs,
    measure_pairs,
    read_options,
)
from experiments.price.measure import AGREEMENT
from experiments.runner import Job
from reprl.sources.environment import open_environment

ROOM, HORIZON, REWARDS = 4, 15, (-9.5, 0.0)
"""Lengths that a queue may have, steps of an episode, and the range of rewards."""


class TwoQueues(gymnasium.Env[Any, Any]):
    """Two queues of at most three customers, seen as MultiDiscrete([4, 4]): serve the first, the second, or wait.

    At a step one more customer comes to the first queue with probability 0.4 and to the second with 0.3; a service
    succeeds with probability 0.9 and 0.6. What waits costs 1 and 2 a customer, a service 0.5.
    """

    def __init__(self) -> None:
        self.observation_space, self.action_space = spaces.MultiDiscrete([ROOM, ROOM]), spaces.Discrete(3)
        self.waiting = (0, 0)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.waiting = (0, 0)
        return self.waiting, {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        served, first, second = self.np_random.random(3)
        done = int(action) < 2 and served < SERVED[int(action)]
        self.waiting, reward = turn(self.waiting, int(action), done, (first < COMES[0], second < COMES[1]))
        return self.waiting, reward, False, False, {}


SERVED, COMES = (0.9, 0.6), (0.4, 0.3)


def turn(waiting: tuple[int, int], action: int, done: bool, come: tuple[bool, bool]) -> tuple[tuple[int, int], float]:
    """Return who waits after a step, and its reward."""
    left = [max(0, n - 1) if done and queue == action else n for queue, n in enumerate(waiting)]
    first, second = (min(ROOM - 1, n + int(new)) for n, new in zip(left, come, strict=True))
    return (first, second), -1.0 * first - 2.0 * second - (0.5 if action < 2 else 0.0)


def two_queues() -> reprl.TabularMDP:
    """Return the exact MDP."""
    rows: Rows = []
    for first, second, action, done, one, two in np.ndindex(ROOM, ROOM, 3, 2, 2, 2):
        served = SERVED[action] if action < 2 else 0.0
        chance = served if done else 1.0 - served
        chance *= (COMES[0] if one else 1.0 - COMES[0]) * (COMES[1] if two else 1.0 - COMES[1])
        after, reward = turn((first, second), action, bool(done), (bool(one), bool(two)))
        rescaled = (reward - REWARDS[0]) / (REWARDS[1] - REWARDS[0])
        rows.append((first * ROOM + second, action, after[0] * ROOM + after[1], chance, rescaled))
    sizes: dict[str, Any] = {"n_states": ROOM**2, "n_actions": 3, "horizon": HORIZON}
    return reprl.TabularMDP.from_outcomes([row for row in merged(rows) if row[3] > 0.0], **sizes, initial=0)


class Cards(gymnasium.Env[Any, Any]):
    """Blackjack by its exact law: as Gymnasium's Blackjack-v1, several times as fast, as draws are made together."""

    def __init__(self) -> None:
        sizes = spaces.Discrete(32), spaces.Discrete(11), spaces.Discrete(2)
        self.observation_space, self.action_space = spaces.Tuple(sizes), spaces.Discrete(2)
        self.hand, self.first, self.draws = (0, 0, 0), True, list[float]()

    def draw(self, law: Law) -> Any:
        """Return one of the outcomes of a law."""
        if not self.draws:
            self.draws = self.np_random.random(16).tolist()
        return law.outcomes[bisect_right(law.below, self.draws.pop())]

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.draws, self.first = [], True
        self.hand = self.draw(_dealt())
        return self.hand, {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        first, self.first = self.first, False
        if not action:
            return self.hand, self.draw(_paid(first, *self.hand)), True, False, {}
        after = self.draw(_hands(*self.hand))
        if after is None:
            return self.hand, -1.0, True, False, {}
        self.hand = after
        return after, 0.0, False, False, {}


class Law(NamedTuple):
    """Outcomes, and the chance of those up to each."""

    outcomes: list[Any]
    below: list[float]

    @classmethod
    def of(cls, chances: dict[Any, float]) -> Law:
        below = np.cumsum([*chances.values()])
        return cls([*chances], (below / below[-1])[:-1].tolist())


@cache
def _dealt() -> Law:
    hands = {divmod(one, 2): chance for one, chance in enumerate(deal()) if chance > 0.0}
    return Law.of({(*divmod(hand, 11), soft): chance for (hand, soft), chance in hands.items()})


@cache
def _paid(first: bool, total: int, shown: int, soft: int) -> Law:
    return Law.of(stick(0 if first else 1, total, shown, soft))


@cache
def _hands(total: int, shown: int, soft: int) -> Law:
    """Return the law of the next hand; None if bust."""
    chances: dict[Any, float] = {}
    for card, chance in CARDS.items():
        after = hit(total, soft, card)
        key = None if after is None else (after[0], shown, after[1])
        chances[key] = chances.get(key, 0.0) + chance
    return Law.of(chances)


class Box(NamedTuple):
    """A black box, and the sizes of its pilot and of a run at most."""

    world: World
    pilot: int
    limit: int = 2**25


BOXES: dict[str, Box] = {
    "shop H=10": Box(WORLDS["shop H=10"], 30_000),
    "two queues H=15": Box(World(two_queues, REWARDS, TwoQueues, seconds=3.0), 50_000),
    "inventory 30×10 H=20": Box(WORLDS["inventory 30×10 H=20"], 1_000_000),
    "Blackjack H=8": Box(WORLDS["Blackjack H=8"], 1_000_000),
    "Blackjack H=8, its law": Box(WORLDS["Blackjack H=8"]._replace(box=Cards), 1_000_000),
}
ALONE = "Blackjack H=8"
"""Of this box one run is measured, which takes minutes."""
GROUPS = ("agreement", "registered")
DATA = "experiments/price/boxes.json"
"""Stored data of docs/register.md."""


class Case(NamedTuple):
    """Pairs of runs in a black box; the group, one of GROUPS, is the kind of promise."""

    group: str
    box: str
    asked: Asked = DEFAULT

    @property
    def name(self) -> str:
        return f"{self.group}/{self.box}"

    def build(self) -> reprl.TabularMDP:
        return BOXES[self.box].world.build()

    def baseline(self, mdp: reprl.TabularMDP) -> float:
        return first_action_value(mdp)

    def run(self, mdp: reprl.TabularMDP, team: int, shared_seed: int, data_seed: int) -> reprl.LearnResult:
        world, pilot, limit = BOXES[self.box]
        place = open_environment(world.box, mdp.horizon, world.rewards)
        options: dict[str, Any] = {**self.asked.options, "rho": RHO, "shared_seed": shared_seed}
        if self.group == "agreement":
            how: dict[str, Any] = {"agreement": AGREEMENT, "data_seed": data_seed, "max_samples": limit}
            return reprl.learn(place, **options, **how)
        # Both runs of a pair follow one recipe: the pilot's data seed depends on the shared seed alone.
        recipe = reprl.register(place, pilot=pilot, data_seed=shared_seed + 1, **options)
        return recipe.learn(env=place, data_seed=data_seed, max_samples=limit)

    def apart(self, mdp: reprl.TabularMDP, one: reprl.Policy, two: reprl.Policy) -> bool:
        """Say whether two policies break the promise, by the exact MDP; an ended episode does not count."""
        tables = [np.ascontiguousarray(policy.actions[:, : mdp.n_states]) for policy in (one, two)]
        tables = [np.ascontiguousarray(np.broadcast_to(table, (mdp.horizon, mdp.n_states))) for table in tables]
        visits = [mdp.occupancy(table) for table in tables]
        if self.box.startswith("Blackjack"):
            visits = [np.where(np.arange(mdp.n_states) == mdp.n_states - 1, 0.0, each) for each in visits]
        if self.group == "registered":
            return bool((tables[0] != tables[1]).any())
        return max(float(each[tables[0] != tables[1]].sum() / each.sum()) for each in visits) > 1.0 - AGREEMENT + 1e-9


def measure(case: Case, number: int) -> dict[str, Any]:
    """Measure a pair, and the processor time of one of its runs, a pilot included."""
    began = time.process_time()
    found = measure_pairs(case, range(number, number + 1))
    return {**found, "cpu": round((time.process_time() - began) / 2.0, 1)}


def alone(case: Case) -> dict[str, Any]:
    """Measure one run, where a pair takes too long."""
    mdp, began, clock = case.build(), time.process_time(), time.perf_counter()
    run = case.run(mdp, 0, *SEEDS)
    cpu, seconds = time.process_time() - began, time.perf_counter() - clock
    value, base = mdp.evaluate(np.ascontiguousarray(run.policy.actions[:, : mdp.n_states])), case.baseline(mdp)
    return {
        "samples": run.samples,
        "episodes": run.episodes,
        "status": run.guarantee.status,
        "share": round((value - base) / (best_value(mdp) - base), 4),
        "alike": run.expected_agreement,
        "cpu": round(cpu),
        "seconds": round(seconds),
    }


SEEDS = 9, 1
"""Shared seed and data seed of a single run."""


def main() -> None:
    """Measure, store, print."""
    options = read_options("price", __doc__, pairs=10, chunk=1, more=lambda parser: None)
    cases = [Case(group, box) for box in BOXES for group in GROUPS if box != ALONE]
    cases.remove(Case("registered", "Blackjack H=8, its law"))  # takes too long
    jobs: dict[str, Job] = {
        f"{case.name}#{number}": partial(measure, case, number) for case in cases for number in range(options.pairs)
    }
    jobs[f"alone/{ALONE}"] = partial(alone, Case("agreement", ALONE))
    data = measure_jobs(options, {"experiment": "boxes"}, jobs, lambda name: 10.0)
    print(table(data["measured"], {}))


def table(measured: dict[str, Any], exact: dict[str, Any]) -> str:
    """Return a row for each box and promise; samples and processor time are medians and the most.

    exact holds pairs on exact MDPs, by episodes, of which no processor time is told.
    """
    lines = [
        "| black box | promise | pairs | samples of a run | CPU seconds | share of the gain, least | promise broken | "
        "runs without a promise |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for box in BOXES:
        for group in GROUPS:
            found = [row for name, row in measured.items() if name.startswith(f"{group}/{box}#")]
            if not found:
                continue
            cpu = [one["cpu"] for one in found]
            promise = "agreement 0.95" if group == "agreement" else f"registered, pilot {BOXES[box].pilot:.0e}"
            lines.append(_row(box, promise.replace("e+0", "e"), found, f"{np.median(cpu):.2g} (most {max(cpu):.2g})"))
    words = {"pairs": "strict", "agreement": "agreement 0.95", "registered": "registered"}
    for box in dict.fromkeys(name.partition("/box/")[2].partition("#")[0] for name in exact if "/box/" in name):
        for group, promise in words.items():
            found = [row for name, row in exact.items() if name.startswith(f"{group}/box/{box}#")]
            lines += [_row(f"{box}, exact MDP", promise, found, "–")] if found else []
    return "\n".join(lines)


def _row(box: str, promise: str, found: list[dict[str, Any]], cpu: str) -> str:
    """Return the row of all pairs of a box under a promise."""
    seen = count({**found[0], "rows": [row for one in found for row in one["rows"]]})
    gain = found[0]["best"] - found[0]["baseline"]
    least = min((value - one["baseline"]) / gain for one in found for row in one["rows"] for value in row[4])
    samples = f"{_figure(np.median(seen.samples))} (most {_figure(max(seen.samples))})"
    cells = (box, promise, seen.pairs, samples, cpu, f"{100 * least:.0f} %", seen.apart, seen.unpromised)
    return f"| {' | '.join(map(str, cells))} |"


def _figure(number: float) -> str:
    return f"{number:.1e}".replace("e+0", "e")


if __name__ == "__main__":
    from experiments.price.boxes import main as run  # other processes cannot import what __main__ defines

    run()
