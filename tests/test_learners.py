"""Many learners in one kernel: each is the learner of the loops, all are counted, and the paper's own sizes run."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import reprl
from reprl.learning.full import run_paper
from reprl.learning.settings import Settings
from reprl.mdp.counts import Counts
from reprl.mdp.tiers import Tiers
from reprl.paper import learners
from reprl.paper.learners import ParallelLearners, draw_learner
from reprl.paper.rep_rl_bandit import tiered_induction
from tests.statistics import FALSE_ALARM, chi_square

S, A, H = 3, 3, 2


def asked(**options: Any) -> Settings:
    given = {"rule": "paper", "constants": "scaled", "boosted": True, "scale": 0.1, "epsilon": 1.0}
    return Settings(**{**given, **options})


def batch(settings: Settings, calls: int = 40, seed: int = 5, workers: int = 1) -> ParallelLearners:
    mdp = reprl.make("random-mdp-v0", H, n_states=S, n_actions=A)
    constants = replace(settings.paper.constants_for(S, A, H, S * A * H), calls=calls)
    return ParallelLearners(reprl.GenerativeModel(mdp, seed), constants, settings.paper.decision, workers)


def test_threads_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learners, "CHUNK", 13)
    one, many = (batch(asked(), workers=n) for n in (1, 3))
    assert [*one.many(reprl.SharedKey(4), 100).items()] == [*many.many(reprl.SharedKey(4), 100).items()]
    assert {p: n for p, (_, _, n) in one._first.items()} == {p: n for p, (_, _, n) in many._first.items()}


@pytest.mark.parametrize("mechanism", ["exponential", "compact"])
@pytest.mark.parametrize("coupling", ["joint", "product"])
@pytest.mark.parametrize("rounding", [False, True])
def test_every_learner_is_the_one_of_the_loops(
    mechanism: str, coupling: str, rounding: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(learners, "CHUNK", 37)
    settings = asked(mechanism=mechanism, coupling=coupling)
    found, key, n = batch(settings), reprl.SharedKey(4), 100
    found._decision = replace(found._decision, rounding=rounding)
    counted = found.many(key, n)
    assert counted.total() == n
    assert len(counted) > 5  # so few calls that learners differ
    assert found._model.ledger.calls == 40 * n
    _, data, _ = next(iter(found._first.values()))
    wanted: Counter[reprl.Policy] = Counter()
    for number in range(n):
        hits = np.zeros(data.outcomes.n_slots, dtype=np.int64)
        draw_learner(data, number, hits)
        induction = tiered_induction(
            key.derive("decide"),
            Counts(data.outcomes, hits),
            Tiers.single(H, S),
            accuracy=found._constants.accuracy,
            delta=found._constants.delta,
            decision=found._decision,
        )
        wanted[induction.policy] += 1
    assert counted == wanted
    for policy in counted:
        assert found.replay(policy)[0].policy == policy


@pytest.mark.statistical
def test_learners_of_a_batch_have_independent_data_of_the_right_law() -> None:
    """Counts of one cell over 3000 learners against their binomial law; control: another law. False alarm 1e-6."""
    reward = np.full((1, 2), 0.3)
    mdp = reprl.TabularMDP(np.ones((1, 2, 1)), reward, 0, 1)
    data = reprl.GenerativeModel(mdp, 3).for_learners(8, 3000)
    hits, tally = np.zeros(data.outcomes.n_slots, dtype=np.int64), np.zeros((9, 9))
    for number in range(3000):
        draw_learner(data, number, hits)
        paid = data.outcomes.reward == 1.0
        first, second = hits[paid]
        tally[first, second] += 1
    from scipy import stats

    for p, holds in ((0.3, True), (0.33, False)):
        law = stats.binom.pmf(np.arange(9), 8, p)
        assert (chi_square([(tally.ravel(), np.outer(law, law).ravel())]) > FALSE_ALARM) == holds


def test_another_key_and_another_seed_decide_otherwise_and_a_search_that_is_too_long_is_refused() -> None:
    found = batch(asked())
    assert found.many(reprl.SharedKey(1), 50) != found.many(reprl.SharedKey(2), 50)
    assert batch(asked(), seed=6).many(reprl.SharedKey(1), 50) != batch(asked(), seed=7).many(reprl.SharedKey(1), 50)
    found._decision = replace(found._decision, max_nodes=1)
    with pytest.raises(reprl.ReprlError, match=r"^coupling of the states of a step passed max_nodes=1: choose"):
        found.many(reprl.SharedKey(1), 50)


def test_other_models_are_made_one_by_one() -> None:
    mdp = reprl.make("random-mdp-v0", H, n_states=S, n_actions=A)
    assert ParallelLearners.ready(reprl.GenerativeModel(mdp, 1))
    assert not ParallelLearners.ready(reprl.EpisodicModel(mdp, 1))


@pytest.mark.slow
def test_theorem_4_13_runs_boosted_at_the_papers_own_constants() -> None:
    """A million learners of 10¹³ calls each: proven, near-optimal, the same policy, and every sample is counted."""
    mdp = reprl.make("hard-instance-v0", 1, n_states=2, bias=0.1)
    options = {"constants": "paper", "scale": None, "rho": 0.4, "delta": 0.4, "epsilon": 0.5}
    settings = asked(mechanism="exponential", **options)
    models = [reprl.GenerativeModel(mdp, seed) for seed in (11, 12)]
    one, two = (run_paper(model, reprl.SharedKey(9), settings) for model in models)
    assert one.policy == two.policy
    assert one.guarantee.status == two.guarantee.status == "proven"
    assert mdp.evaluate(one.policy) >= mdp.evaluate(mdp.solve().policy) - 0.5
    constants = settings.paper.constants_for(2, 2, 1, 4)
    assert constants.learners > 10**6
    assert constants.total > 2**62
    heavies = len({policy for ballot in one.ballots for policy in ballot.heavy})
    assert models[0].ledger.calls == constants.learners * constants.calls + heavies * constants.pulls
