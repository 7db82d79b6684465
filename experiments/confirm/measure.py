"""Confirmations and scans of simulated policies, and of two that were published."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.special import stdtrit

import reprl
from experiments.confirm import plan
from reprl.artifacts.confirmation import Confirmation
from reprl.randomness import DataStream
from reprl.search.betting import Levels, MeanTest, rung_risk, scan_levels
from reprl.search.scan import Rung, scan
from reprl.sources.returns import Play

Floats = np.ndarray[Any, np.dtype[np.float64]]


def _test(threshold: float, above: float, below: float) -> MeanTest:
    return MeanTest.checked(0.0, 1.0, threshold, Levels(above, below))


def _student(x: Floats, target: float, delta: float) -> bool:
    """Whether a one-sided t-test says that the mean is above the target."""
    n, spread = x.size, x.std(ddof=1)
    if spread == 0.0:
        return bool(x[0] > target)
    return bool((x.mean() - target) * math.sqrt(n) / spread > stdtrit(n - 1, 1.0 - delta))


def below(strength: float, first: int, count: int) -> dict[str, Any]:
    """Confirm policies whose mean is just below the target: laws of two random values with a random weight."""
    false = by_look = by_size = undecided = 0
    for k in range(first, first + count):
        u = DataStream(plan.SEED, "below", k).uniforms(3 + plan.MOST)
        (a, b), weight = np.sort(u[:2]), 0.02 + 0.96 * u[2]
        returns = np.where(u[3:] < weight, b, a)
        target = min(a + weight * (b - a) + plan.BELOW, 1.0 - 1e-9)
        test = _test(target, plan.DELTA**strength, plan.DELTA**strength)
        verdict = test.bet(test.begin(), returns).verdict
        false += verdict == "above"
        undecided += verdict == "undecided"
        by_look += any(_student(returns[:n], target, plan.DELTA) for n in plan.LOOKS)
        by_size += _student(returns[:32], target, plan.DELTA)
    return {"policies": count, "false": false, "undecided": undecided, "looks": by_look, "fixed": by_size}


def episodes(case: str) -> dict[str, Any]:
    """Episodes until a policy above the target is confirmed, and the size at which a t-test confirms it as often."""
    law, target = plan.CASES[case]
    values, weights = np.array(law).T
    found, shown = [], []
    for k in range(plan.RUNS):
        u = DataStream(plan.SEED, f"episodes/{case}", k).uniforms(20_000)
        x = values[np.searchsorted(np.cumsum(weights)[:-1], u, side="right")]
        test = _test(target, plan.DELTA, plan.DELTA)
        bets = test.bet(test.begin(), x)
        found.append([bets.samples, bets.verdict])
        shown.append(x)
    return {"rows": found, "t_test": _t_test(shown, target)}


def _t_test(shown: Sequence[Floats], target: float) -> int | None:
    """Return the size at which a t-test confirms a share of POWER of all series; None if their length is too small."""
    sizes = [round(8 * 1.1**k) for k in range(80) if round(8 * 1.1**k) <= shown[0].size]
    enough = plan.POWER * len(shown)
    return next((n for n in sizes if sum(_student(x[:n], target, plan.DELTA) for x in shown) >= enough), None)


def redrawn_t_test(returns: Floats, target: float) -> int | None:
    """The same for a published policy, whose returns are drawn again from those that its confirmation holds."""
    kept = np.sort(returns)
    draws = (DataStream(plan.SEED, "t-test", k).uniforms(4_000) for k in range(plan.RUNS))
    return _t_test([kept[(u * kept.size).astype(np.int64)] for u in draws], target)


def scans(by: str, strength: float, first: int, count: int) -> dict[str, Any]:
    """Two teams scan the same arms, coins beside the threshold, for the first above: is each answer the true one?"""
    wrong = different = samples = 0
    for k in range(first, first + count):
        u = DataStream(plan.SEED, "scan/worlds", k).uniforms(1 + 2 * plan.ARMS)
        theta = 0.3 + 0.4 * u[0]
        gap = plan.GAPS[0] + (plan.GAPS[1] - plan.GAPS[0]) * u[1 : 1 + plan.ARMS]
        means = theta + np.where(u[1 + plan.ARMS :] < 1 / 3, gap, -gap)
        truth = next((j for j, mean in enumerate(means) if mean > theta), None)
        answers = []
        for team in (0, 1):
            answer, spent = SCANS[by](means, theta, strength, f"scan/team {team}/{k}")
            answers.append(answer)
            samples += spent
        wrong += any(answer != truth for answer in answers)
        different += answers[0] != answers[1]
    return {"pairs": count, "wrong": wrong, "different": different, "samples": samples}


def naive_scan(means: Floats, theta: float, strength: float, purpose: str) -> tuple[int | None, int]:
    """Return the first arm that is found above θ, None if none is, and the samples taken."""
    samples = 0
    for j, mean in enumerate(means):
        test = _judge(theta, strength, j)
        bets, stream = test.begin(), DataStream(plan.SEED, purpose, j)
        size = 64
        while bets.verdict == "undecided":
            bets = test.bet(bets, (stream.uniforms(size, bets.samples) < mean).astype(float))
            size = max(64, bets.samples)
        samples += bets.samples
        if bets.verdict == "above":
            return j, samples
    return None, samples


def _judge(theta: float, strength: float, j: int) -> MeanTest:
    above, lower = scan_levels(rung_risk(plan.RHO, 0, 1), j)
    return _test(theta, above**strength, lower**strength)


class Arms(NamedTuple):
    """Coins, as a search sees them: a family whose weights are their means, and a source of their returns."""

    means: Floats
    purpose: str
    played: list[int]

    def propose(self, key: reprl.SharedKey, centre: Any) -> Floats:
        """Return the mean of the arm at an address."""
        return np.atleast_1d(self.means[int(key.labels[-1])])

    def affordable(self) -> None:
        """Samples are not limited."""

    def play(self, plays: Sequence[Play]) -> list[Floats]:
        """Toss coins; the words are those that the naive scan reads."""
        found = []
        for each in plays:
            stream = DataStream(plan.SEED, self.purpose, int(each.purpose.rpartition("/")[2]))
            found.append((stream.uniforms(each.episodes, each.first) < each.weights[0]).astype(float))
            self.played[0] += each.episodes
        return found


def search_scan(means: Floats, theta: float, strength: float, purpose: str) -> tuple[int | None, int]:
    """The same by the code of a search."""
    arms: Any = Arms(means, purpose, [0])
    rung = Rung(reprl.SharedKey(plan.SEED), 0, arms, None, len(means))
    return scan(rung, arms, lambda j: _judge(theta, strength, j)).winner, arms.played[0]


SCANS = {"naive": naive_scan, "search": search_scan}


def ppo() -> dict[str, Any]:
    """Confirm an agent of Stable-Baselines3 that was trained on CartPole with data of its own."""
    import torch
    from stable_baselines3 import PPO

    torch.set_num_threads(1)
    model = PPO("MlpPolicy", "CartPole-v1", seed=plan.SEED % 2**31, device="cpu", **plan.PPO).learn(plan.STEPS)
    return _published(
        reprl.confirm(model, "CartPole-v1", target=plan.CART_TARGET, delta=plan.DELTA, data_seed=plan.SEED)
    )


def lake() -> dict[str, Any]:
    """Confirm a table of FrozenLake, in the world that it was learned in and in Gymnasium's own."""
    world = reprl.make("gym:FrozenLake-v1", horizon=int(plan.LAKE["horizon"]))
    run = reprl.learn(world, epsilon=0.3, shared_seed=7, data_seed=plan.SEED, max_samples=4_000_000)
    target = plan.LAKE["target"]
    found = reprl.confirm(run, target=target, delta=plan.DELTA, data_seed=plan.SEED)
    box = reprl.confirm(
        run.policy, "gym:FrozenLake-v1", target=target, delta=plan.DELTA, data_seed=plan.SEED, reward_range=(0.0, 1.0)
    )
    return {
        **_published(found),
        "box": _published(box),
        "learned with": int(run.samples),
        "learned": run.guarantee.status,
    }


def _published(found: Confirmation) -> dict[str, Any]:
    names = ("verdict", "status", "target", "mean", "interval", "episodes", "samples", "seconds")
    values, counts = zip(*found.returns, strict=True)
    needed = redrawn_t_test(np.repeat(values, counts), found.target)
    return {name: getattr(found, name) for name in names} | {"t_test": needed}
