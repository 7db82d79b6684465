"""The one loop, with a source written here: a new source, rule or stop rule changes nothing in the loop."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from reprl.assurance.stopping import Budget, Judgement, Rehearsed, Round
from reprl.canonical.bound import BoundRule, TableReader
from reprl.canonical.choice import make_rule
from reprl.canonical.goal import Goal
from reprl.execution.settings import Execution
from reprl.guarantee import Asked
from reprl.learning.loop import Outcome, run_loop
from reprl.mdp.counts import tally
from reprl.mdp.criterion import Criterion
from reprl.mdp.dynamics import Data
from reprl.randomness import SharedKey
from reprl.sources.protocol import Ledger
from reprl.sources.source import TableSamples, Wanted

CHANCES = (0.3, 0.7)
ASKED = Asked(epsilon=0.2, rho=0.1, delta=0.1)


class Coins:
    """Throws of two coins, as a DataSource: one state, one step, an action for each coin."""

    ran_out, claim, fixed_start = "out of throws", "nobody", True

    def __init__(self, data_seed: int) -> None:
        self.ledger, self.data_seed, self.asked = Ledger(), data_seed, 0
        self._rng = np.random.default_rng(data_seed)

    def sizes(self, limit: int | None) -> list[int]:
        return [20 * 2**number for number in range(10)]

    def empty(self) -> TableSamples:
        return TableSamples(Data(tally([], (1, 1, 2)), np.zeros(1, dtype=np.int64)), Criterion(1), "calls", True)

    def gather(self, known: TableSamples, size: int, wanted: Wanted | None) -> TableSamples:
        self.asked += wanted is not None and wanted().weight.shape == (1, 1, 2)
        more = size - known.size
        rows = [(0, 0, a, 0, float(x)) for a in (0, 1) for x in self._rng.random(more) < CHANCES[a]]
        self.ledger.samples += len(rows)
        fresh = Data(tally(np.array(rows), (1, 1, 2)), np.array([more]))
        return known._replace(data=known.data + fresh, round=known.round + 1)

    def exhausted(self, known: TableSamples) -> bool:
        return False

    def drift(self, known: TableSamples) -> str:
        return ""

    shortage = hint = drift


def rule(shared_seed: int = 1, candidate: tuple[str, int] | None = None, epsilon: float = ASKED.epsilon) -> BoundRule:
    made = make_rule(SharedKey(shared_seed).derive("rule"), (1, 1, 2), goal=Goal(epsilon=epsilon))
    return BoundRule.bind(made, TableReader(), candidate)


def learn(data_seed: int, stop: Any = None, **options: Any) -> tuple[Coins, Outcome]:
    source = Coins(data_seed)
    return source, run_loop(source, rule(**options), stop or Rehearsed(ASKED, Execution()))


@pytest.mark.parametrize("shared_seed", [1, 2, 3])
def test_a_source_of_one_s_own_runs_through_the_loop(shared_seed: int) -> None:
    (first, one), (_, two) = (learn(seed, shared_seed=shared_seed) for seed in (10, 11))
    assert one.judgement.guarantee.status == two.judgement.guarantee.status == "rehearsed"
    assert one.judgement.found.policy == two.judgement.found.policy
    assert one.judgement.found.policy.actions.tolist() == [[1]]
    assert first.ledger.samples == 2 * one.known.size < 2 * Coins(0).sizes(None)[-1]
    assert one.judgement.rehearsal is not None
    assert one.judgement.rehearsal.passed


def test_a_budget_is_spent_and_the_source_is_told_what_is_wanted() -> None:
    source, outcome = learn(1, Budget(ASKED))
    sizes = source.sizes(None)
    assert outcome.known.size == sizes[-1]
    assert source.asked == len(sizes) - 1  # not before the first round
    assert outcome.judgement.guarantee.status == "none"


def test_a_stop_rule_of_one_s_own_sees_every_round_until_it_has_enough() -> None:
    seen: list[tuple[int, bool]] = []

    class Third:
        def judge(self, now: Round) -> Judgement:
            seen.append((now.known.round, now.last))
            return Judgement(now.known.round == 3, now.found, ASKED.promise("none", "three rounds"))

    source, outcome = learn(1, Third())
    assert seen == [(1, False), (2, False), (3, False)]
    assert outcome.known.size == source.sizes(None)[2]


def test_a_rule_that_follows_one_candidate_asks_no_pairs_under_fresh_keys() -> None:
    outcome = learn(1, candidate=("preferred", 8))[1]
    assert outcome.judgement.rehearsal is not None
    assert outcome.judgement.rehearsal.pairs == 0
    assert outcome.judgement.guarantee.registered
