"""Pairs of runs: how often two learners with one shared key and independent data end in different policies."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from scipy.stats import beta

import reprl
from reprl.decide.best_arm import Decision
from reprl.learning.settings import Settings
from reprl.peers import empirical_values, greedy_policy

DATA = Path(__file__).parent / "data"


@dataclass(frozen=True, kw_only=True)
class Setting:
    """What is measured: a world, an accuracy and a way to decide."""

    world: str
    options: str
    """Options of the world as JSON, so that a setting can be hashed and stored."""
    epsilon: float
    coupling: str = "auto"
    """A coupling of reprl, or "greedy" for the plain argmax."""
    mechanism: str = "compact"
    block: int = 32

    @property
    def name(self) -> str:
        """World and options on one line."""
        given = ", ".join(f"{key}={value}" for key, value in json.loads(self.options).items())
        return f"{self.world}({given})"

    @property
    def sizes(self) -> tuple[int, int, int]:
        """(S, A, H)."""
        mdp = build(self.world, self.options)
        return mdp.n_states, mdp.n_actions, mdp.horizon

    def option(self, name: str) -> float:
        """One option of the world."""
        return float(json.loads(self.options)[name])

    @property
    def decision(self) -> Decision:
        """The decision rule, with "auto" resolved from the sizes."""
        n_states, n_actions, _ = self.sizes
        return Settings(coupling=self.coupling, block=self.block).decision(n_states, n_actions)

    @property
    def n_blocks(self) -> int:
        """How many groups of states are coupled separately."""
        return self.decision.grade.count(self.sizes[0])


def setting(world: str, options: Mapping[str, Any], epsilon: float, **how: Any) -> Setting:
    """Return a setting from plain options."""
    return Setting(world=world, options=json.dumps(dict(options)), epsilon=epsilon, **how)


@dataclass(frozen=True, kw_only=True)
class Record:
    """What pairs of runs showed at one number of parallel calls."""

    setting: Setting
    calls: int
    pairs: int
    disagreements: int
    worst_loss: float
    """Largest suboptimality of any policy seen, in units of value."""

    @property
    def rate(self) -> float:
        """Fraction of pairs that disagree."""
        return self.disagreements / self.pairs

    @property
    def interval(self) -> tuple[float, float]:
        """Exact (Clopper–Pearson) 95 % interval for the disagreement."""
        k, n = self.disagreements, self.pairs
        low = 0.0 if k == 0 else float(beta.ppf(0.025, k, n - k + 1))
        high = 1.0 if k == n else float(beta.ppf(0.975, k + 1, n - k))
        return low, high


@cache
def build(world: str, options: str) -> reprl.TabularMDP:
    """Return the world, built once."""
    mdp = reprl.make(world, **json.loads(options))
    assert isinstance(mdp, reprl.TabularMDP)
    return mdp


@cache
def best_value(world: str, options: str) -> float:
    """Return the optimal value from the initial law."""
    mdp = build(world, options)
    return mdp.evaluate(mdp.solve().policy)


def measure(what: Setting, calls: int, pairs: int, purpose: str) -> Record:
    """Run pairs at one number of calls.

    Randomness:
        A fresh shared key in every pair and fresh data in every run, both digests of (purpose, setting, calls, number):
        the order of measurements cannot change one.
    """
    mdp = build(what.world, what.options)
    disagreements = 0
    policies = set()
    for i in range(pairs):
        key = reprl.SharedKey(_seed(purpose, what, calls, i, "shared"))
        first, second = (_run(mdp, what, calls, key, _seed(purpose, what, calls, i, side)) for side in ("a", "b"))
        disagreements += first != second
        policies |= {first, second}
    best = best_value(what.world, what.options)
    worst = max(best - mdp.evaluate(policy) for policy in policies)
    return Record(
        setting=what, calls=calls, pairs=pairs, disagreements=disagreements, worst_loss=round(max(worst, 0.0), 6)
    )


def _run(mdp: reprl.TabularMDP, what: Setting, calls: int, key: reprl.SharedKey, data_seed: int) -> reprl.Policy:
    model = reprl.GenerativeModel(mdp, data_seed)
    if what.coupling == "greedy":
        return greedy(model.sample(calls))
    learner = reprl.learner(
        access="generative",
        epsilon=what.epsilon,
        calls=calls,
        coupling=what.coupling,
        mechanism=what.mechanism,
        block=what.block,
    )
    return learner(model, key)


def greedy(counts: reprl.Counts) -> reprl.Policy:
    """Return the policy that is best in the empirical MDP, the lowest index on ties: no coupling at all."""
    return greedy_policy(empirical_values(counts))


def _seed(purpose: str, what: Setting, calls: int, pair: int, side: str) -> int:
    address = json.dumps([purpose, asdict(what), calls, pair, side], sort_keys=True)
    return int.from_bytes(hashlib.blake2b(address.encode(), digest_size=8).digest(), "little")


def save(name: str, records: list[Record]) -> None:
    """Store records, one per line."""
    lines = [json.dumps(asdict(record)) for record in records]
    (DATA / f"{name}.json").write_text("[\n" + ",\n".join(lines) + "\n]\n", encoding="utf-8")


def load(name: str) -> list[Record]:
    """Read records back."""
    rows = json.loads((DATA / f"{name}.json").read_text(encoding="utf-8"))
    return [replace(Record(**row), setting=Setting(**row["setting"])) for row in rows]
