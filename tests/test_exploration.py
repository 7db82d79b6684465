"""Exploration by episodes: the law of a batch, its halves, its ledger, what it plays, and bytes whoever plays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import reprl
from reprl.execution.pool import WorkerPool
from reprl.mdp.dynamics import Data
from reprl.mdp.evidence import lay_out
from reprl.mdp.model import one_hot
from reprl.randomness import DataStream
from reprl.sources.black_box import play_batch
from reprl.sources.environment import open_environment
from reprl.sources.episodes import EpisodicModel, play_table
from reprl.sources.exploration import BATCHES, FEW, MOST_BATCHES, Episodes, plan_unknown
from reprl.sources.gymnasium.model import GymnasiumModel
from tests.shop import Shop
from tests.statistics import FALSE_ALARM, chi_square


def world() -> reprl.TabularMDP:
    return reprl.make("random-mdp-v0", n_states=4, n_actions=3, horizon=3, seed=5)


def chain(length: int = 6) -> reprl.TabularMDP:
    """A corridor: action 0 falls back to the start, action 1 goes on."""
    transition = np.zeros((length, 2, length))
    for s in range(length):
        transition[s, 0, 0] = 1.0
        transition[s, 1, min(s + 1, length - 1)] = 1.0
    return reprl.TabularMDP(transition, np.zeros((length, 2)), horizon=length)


def uniform(model: Any) -> NDArray[np.float64]:
    return np.full((model.horizon, model.n_states, model.n_actions), 1.0 / model.n_actions)


def test_a_batch_has_the_law_of_independent_episodes() -> None:
    """Visits of cells, actions within them and outcomes within rows, each against the exact law; few draws and many."""
    mdp = world()
    play = np.random.default_rng(1).dirichlet(np.ones(3), (3, 4))
    play[1, 2] = [0.0, 1.0, 0.0]
    for episodes in (300, 200_000):
        both = play_table(EpisodicModel(mdp, 3), play, episodes, DataStream(3, f"law/{episodes}"))
        visits = both[0].counts.visits + both[1].counts.visits
        here = visits.sum(axis=2)
        assert (here.sum(axis=1) == episodes).all()
        rows = [(visits[h, s], play[h, s]) for h in range(3) for s in range(4) if here[h, s] >= 100]
        assert chi_square(rows) > FALSE_ALARM
        state = np.asarray(mdp.initial)
        for h in range(3):
            assert (mdp.fixed_start and h == 0) or chi_square([(here[h], state)]) > FALSE_ALARM
            state = np.einsum("s,sa,sat->t", state, play[h], mdp.transition[h])
        with pytest.raises(AssertionError):
            assert chi_square([(here[2], np.roll(state, 1))]) > FALSE_ALARM, "control"


def test_halves_are_drawn_for_each_episode_and_do_not_depend_on_what_it_shows() -> None:
    mdp, sizes, means = world(), [], []
    for batch in range(200):
        one, two = play_table(EpisodicModel(mdp, batch), uniform(mdp), 400, DataStream(batch, "halves"))
        sizes.append(int(one.starts.sum()))
        means.append(
            float(one.counts.reward_sum.sum() / one.starts.sum() - two.counts.reward_sum.sum() / two.starts.sum())
        )
    assert abs(np.mean(sizes) - 200.0) < 5.0 * 10.0 / np.sqrt(200)
    assert 7.0 < np.std(sizes) < 13.5  # √(400/4) = 10
    assert abs(np.mean(means)) < 5.0 * np.std(means) / np.sqrt(200)


def test_pooled_batches_are_sums_over_steps() -> None:
    mdp, stream = world(), DataStream(1, "pooled")
    assert mdp.stationary
    for pooled, apart in zip(
        play_table(EpisodicModel(mdp, 1), uniform(mdp), 500, stream, pooled=True),
        play_table(EpisodicModel(mdp, 1), uniform(mdp), 500, stream),
        strict=True,
    ):
        assert pooled.counts == apart.counts.pool()


def test_every_sample_is_charged() -> None:
    model = EpisodicModel(world(), 1)
    halves = play_table(model, uniform(model), 123, DataStream(1, "ledger"))
    assert model.ledger.episodes == 123
    assert model.ledger.samples == 123 * model.samples_per_episode
    assert sum(int(half.starts.sum()) for half in halves) == 123


def box(seed: int = 1) -> GymnasiumModel:
    opened = open_environment(Shop, 3, Shop.REWARDS)
    assert isinstance(opened, GymnasiumModel)
    return opened.for_run(seed)


def test_a_black_box_plays_laws_of_actions_and_splits_its_episodes() -> None:
    model = box()
    play = np.random.default_rng(2).dirichlet(np.ones(4), (3, 8))
    with WorkerPool(model) as pool:
        halves = play_batch(model, play, 4000, model.fresh_stream("x"), pool, None)
    visits = halves[0].counts.visits + halves[1].counts.visits
    rows = [(visits[h, s], play[h, s]) for h in range(3) for s in range(7) if visits[h, s].sum() >= 200]
    assert chi_square(rows) > FALSE_ALARM
    assert abs(int(halves[0].starts.sum()) - 2000) < 5 * np.sqrt(1000)
    assert [half.counts.visits[:, 7].min() for half in halves] == [int(half.starts.sum()) for half in halves]
    assert model.ledger.episodes == 4000
    assert model.ledger.samples == 4000 * 4


def test_bytes_of_a_black_box_do_not_depend_on_who_plays() -> None:
    found = []
    for workers in (1, 2):
        model = box(5)
        with WorkerPool(model, workers) as pool:
            halves = play_batch(model, uniform(model), 60, model.fresh_stream("x"), pool, None)
        found.append([half.to_bytes() for half in halves])
    assert found[0] == found[1]


def test_an_action_without_probability_is_never_taken() -> None:
    model = box()
    play = np.zeros((3, 8, 4))
    play[:, :, 1], play[:, :, 2] = 1.0 / 3.0, 2.0 / 3.0
    with WorkerPool(model) as pool:
        halves = play_batch(model, play, 2000, model.fresh_stream("x"), pool, None)
    for half in halves:
        assert not half.counts.visits[:, :7, [0, 3]].any()


def gathered(model: Any, rounds: int, play: Any) -> Any:
    with WorkerPool(model) as pool:
        source = Episodes(model, pool, pooled=True)
        known = source.empty()
        for size in source.sizes(None)[:rounds]:
            known = source.gather(known, size, play)
    return known


def test_odd_batches_walk_down_a_corridor_that_the_soft_policy_never_enters() -> None:
    """A policy that always falls back meets one state; exploration meets them all. Without it, it does not."""
    mdp = chain()
    back = one_hot(np.zeros((6, 6), dtype=np.int64), 2)
    known = gathered(EpisodicModel(mdp, 1), 4, lambda evidence: back)
    assert (known.data.counts.visits[0].sum(axis=1) > 0).all()
    alone = play_table(EpisodicModel(mdp, 1), back, known.size, DataStream(1, "control"))
    assert (sum(half.counts.visits.sum(axis=(0, 2)) for half in alone) > 0).sum() == 1, "control"


def evidence_of(visits: NDArray[np.int64]) -> Any:
    """Evidence of a corridor of pooled rows with so many samples each, (S, A)."""
    mdp = chain(len(visits))
    halves = []
    for share in (visits // 2, visits - visits // 2):
        hits = share.ravel()  # one outcome a row
        counts = reprl.Counts(mdp.outcomes._replace(slot_shift=0), hits.astype(np.int64))
        halves.append(Data(counts, np.eye(len(visits), dtype=np.int64)[0] * 5))
    return lay_out(*halves)


def test_what_is_played_is_the_soft_policy_once_all_rows_are_known() -> None:
    visits = np.full((4, 2), 500)
    play = np.full((4, 4, 2), 0.5)
    assert plan_unknown(evidence_of(visits), play, enough=100.0) is play
    assert plan_unknown(evidence_of(visits), play, enough=np.inf) is not play


def test_a_row_that_hardly_was_tried_is_looked_into() -> None:
    visits = np.full((4, 2), 10 * FEW)
    visits[2, 0] = 3
    play = np.full((4, 4, 2), 0.5)
    found = plan_unknown(evidence_of(visits), play, enough=np.inf)
    ways = found.argmax(axis=2)
    assert [int(ways[h, s]) for h, s in ((1, 0), (2, 1), (3, 2))] == [1, 1, 0]  # on to state 2 by the last step


def test_a_round_has_more_batches_while_rows_are_hardly_tried() -> None:
    model = EpisodicModel(reprl.make("gridworld-v0", size=5, horizon=8), 1)
    with WorkerPool(model) as pool:
        source = Episodes(model, pool, pooled=True)
        source.sizes(None)
        known = source.empty()
        assert source._batches(known) == min(MOST_BATCHES, 100 // 4)
        known = source.gather(known, 200_000, lambda evidence: np.full((8, 25, 4), 0.25))
        assert source._batches(known) == BATCHES


def test_the_limit_is_kept_and_a_longer_run_begins_with_the_same_samples() -> None:
    def spent(limit: int) -> Any:
        model = EpisodicModel(world(), 1)
        with WorkerPool(model) as pool:
            source = Episodes(model, pool, pooled=True)
            sizes, known, seen = source.sizes(limit), source.empty(), []
            for size in sizes:
                known = source.gather(known, size, lambda evidence: uniform(model))
                seen.append(known)
                if source.exhausted(known):
                    break
        assert model.ledger.samples <= limit
        return seen

    short, long = spent(3000), spent(9000)
    assert short[0].one.counts == long[0].one.counts
    assert short[-1].size < long[-1].size
