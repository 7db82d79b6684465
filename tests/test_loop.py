"""The one loop, with a source written here: a new source changes nothing in the loop, the rule or the verdict."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

from reprl.assurance.teams import ask_teams
from reprl.assurance.verdict import Verdict, judge
from reprl.learning.loop import Outcome, Round, run_loop
from reprl.mdp.counts import tally
from reprl.mdp.criterion import Criterion
from reprl.mdp.dynamics import Data
from reprl.randomness import SharedKey
from reprl.rule.bound import SoftRule
from reprl.sources.protocol import Ledger
from reprl.sources.source import Samples, Soft

CHANCES = (0.3, 0.7)
ALLOWED = np.ones((1, 1, 2), dtype=np.bool_)


class Coins:
    """Throws of two coins, as a DataSource: one state, one step, an action for each coin."""

    def __init__(self, data_seed: int, chances: tuple[float, float] = CHANCES) -> None:
        self.ledger, self.data_seed, self.said, self.chances = Ledger(), data_seed, "", chances
        self._rng = np.random.default_rng(data_seed)

    def sizes(self, limit: int | None) -> list[int]:
        return [20 * 2**number for number in range(10)]

    def empty(self) -> Samples:
        none = Data(tally([], (1, 1, 2)), np.zeros(1, dtype=np.int64))
        return Samples(none, none, Criterion(1), fixed_start=True)

    def gather(self, known: Samples, size: int, soft: Soft) -> Samples:
        more = (size - known.size) // 2
        halves = []
        for half in (known.one, known.two):
            rows = [(0, 0, a, 0, float(x)) for a in (0, 1) for x in self._rng.random(more) < self.chances[a]]
            self.ledger.samples += len(rows)
            halves.append(half + Data(tally(np.array(rows), (1, 1, 2)), np.array([more])))
        if known.size:
            assert soft(known.evidence()).shape == (1, 1, 2)
        return known._replace(one=halves[0], two=halves[1], round=known.round + 1)

    def exhausted(self, known: Samples) -> bool:
        return False

    def drift(self, known: Samples) -> str:
        return self.said


def learn(
    data_seed: int, shared_seed: int = 1, said: str = "", chances: tuple[float, float] = CHANCES, **options: Any
) -> tuple[Coins, Outcome]:
    source = Coins(data_seed, chances)
    source.said = said
    rule = SoftRule.bind(SharedKey(shared_seed).derive("rule"), ALLOWED, stationary=False, **options)

    def judged(now: Round) -> Verdict:
        how: dict[str, Any] = {"rho": 0.1, "delta": 0.1, "min_probability": 0.0, "looks": now.number}
        ask = partial(_ask, data_seed)
        return judge(now.evidence, rule.asked, rule.draws, now.policy, now.choice, last=now.last, ask=ask, **how)

    return source, run_loop(source, rule, judged)


def _ask(data_seed: int, now: Any, name: str, numbers: range) -> Any:
    return ask_teams(now, name, data_seed, numbers, None)


@pytest.mark.parametrize("shared_seed", [1, 2, 3])
def test_a_source_of_one_s_own_runs_through_the_loop(shared_seed: int) -> None:
    (first, one), (_, two) = (learn(seed, shared_seed, quality=0.9) for seed in (10, 11))
    assert one.verdict.good
    assert one.verdict.same
    assert two.verdict.same
    assert one.round.policy.tolist() == two.round.policy.tolist() == [[1]]
    assert first.ledger.samples == 2 * one.round.samples.size < 2 * first.sizes(None)[-1]


def test_a_run_that_may_gather_no_more_ends_with_what_it_has() -> None:
    source, outcome = learn(1, epsilon=1e-6, order=np.array([[0, 1]]), chances=(0.5, 0.5))
    assert outcome.round.last
    assert outcome.round.samples.size == source.sizes(None)[-1]
    assert not outcome.verdict.same
    assert outcome.verdict.teams >= 40  # it says how many teams would print the policy


def test_a_contradiction_ends_a_run_once_the_quality_is_known() -> None:
    _, outcome = learn(10, said="the coin was changed", quality=0.9)
    assert outcome.round.drift == "the coin was changed"
    assert outcome.verdict.good
