"""What is measured and what came out; the ruler is ``reprl.audit``."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import reprl
from reprl.auditing.evidence import exact_interval
from reprl.decide.best_arm import Decision
from reprl.learning.settings import Settings

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
        return exact_interval(self.disagreements, self.pairs)


@cache
def build(world: str, options: str) -> reprl.TabularMDP:
    """Return the world, built once."""
    mdp = reprl.make(world, **json.loads(options))
    assert isinstance(mdp, reprl.TabularMDP)
    return mdp


def measure(what: Setting, calls: int, pairs: int, purpose: str) -> Record:
    """Audit a setting at one number of calls.

    Randomness:
        The audit's seed is a digest of (purpose, setting, calls): the order of measurements cannot change one.
    """
    mdp = build(what.world, what.options)
    address = json.dumps([purpose, asdict(what), calls], sort_keys=True)
    seed = int.from_bytes(hashlib.blake2b(address.encode(), digest_size=8).digest(), "little")
    if what.coupling == "greedy":
        each = reprl.GenerativeModel(mdp, 0).samples_per_call
        report = reprl.audit(mdp, "greedy", pairs, seed=seed, samples=calls * each)
    else:
        learner = reprl.learner(
            access="generative",
            epsilon=what.epsilon,
            calls=calls,
            coupling=what.coupling,
            mechanism=what.mechanism,
            block=what.block,
        )
        report = reprl.audit(mdp, learner, pairs, seed=seed)
    assert report.suboptimality is not None
    worst = round(max(report.suboptimality.max, 0.0), 6)
    return Record(setting=what, calls=calls, pairs=pairs, disagreements=report.disagreements, worst_loss=worst)


def save(name: str, records: list[Record]) -> None:
    """Store records, one per line."""
    lines = [json.dumps(asdict(record)) for record in records]
    (DATA / f"{name}.json").write_text("[\n" + ",\n".join(lines) + "\n]\n", encoding="utf-8")


def load(name: str) -> list[Record]:
    """Read records back."""
    rows = json.loads((DATA / f"{name}.json").read_text(encoding="utf-8"))
    return [replace(Record(**row), setting=Setting(**row["setting"])) for row in rows]
