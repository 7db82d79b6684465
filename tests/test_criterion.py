"""Criterion: finite horizon or discounted, against naive sums; and faults of asking for it in many places."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reprl
from reprl.errors import ReprlError
from reprl.mdp.criterion import LENGTH, Criterion, criterion_of
from reprl.mdp.dynamics import empirical_dynamics, true_dynamics

SEEDS = st.integers(0, 2**16)
DISCOUNTS = st.sampled_from([None, 0.3, 0.9])


def world(seed: int, discount: float | None) -> reprl.TabularMDP:
    """A small random MDP, by horizon 4 or discounted, in which one action is masked."""
    draw = np.random.default_rng(seed)
    allowed = np.ones((3, 2), dtype=np.bool_)
    allowed[1, 0] = False
    transition = draw.dirichlet(np.ones(3), size=(3, 2))
    start = draw.dirichlet(np.ones(3))
    mdp = reprl.TabularMDP(transition, draw.random((3, 2)), start, 4, "deterministic", allowed=allowed)
    return mdp if discount is None else mdp.discounted(discount)


def steps_of(mdp: reprl.TabularMDP) -> int:
    """As many steps as matter at the precision of a float."""
    return mdp.horizon if mdp.discount is None else 700


def test_a_criterion_knows_its_sizes_and_its_words() -> None:
    finite, endless = Criterion.of(6), Criterion.of(17, 0.9)
    assert (finite.rows, endless.rows) == (6, 1)
    assert (finite.discount, endless.discount) == (None, 0.9)
    assert finite.effective_horizon == 6.0
    assert endless.effective_horizon == pytest.approx(10.0)
    assert finite.remaining.tolist() == [6, 5, 4, 3, 2, 1]
    assert endless.remaining.tolist() == [endless.effective_horizon]
    assert (finite.policy_shape(5), endless.policy_shape(5)) == ((6, 5), (5,))
    assert (str(finite), str(endless)) == ("horizon 6", "discount 0.9")
    assert (finite.step(3), endless.step(0)) == ("step 3", "every step")
    assert (finite.steps, endless.steps) == ("steps 0 to 5", "every step")
    assert (finite.cell(3, "x"), endless.cell(0, "x")) == ("step 3, state x", "state x")
    assert (finite.keywords, endless.keywords) == ((6, {}), (None, {"discount": 0.9}))
    assert (finite.factor, endless.factor) == (1.0, 0.9)
    assert finite.episode_length == 6
    assert 0.9**endless.episode_length <= LENGTH < 0.9 ** (endless.episode_length - 1)
    assert finite.reduced_horizon(0.1) is None
    later = endless.reduced_horizon(0.1)
    assert later is not None
    assert 0.9**later / (1 - 0.9) <= 0.1


def test_a_criterion_refuses_what_does_not_belong_to_it() -> None:
    finite, endless = Criterion.of(6), Criterion.of(1, 0.9)
    finite.check_epsilon(6.0)
    finite.require_horizon("a world must have a horizon")
    assert endless.require_discount("never") == 0.9
    with pytest.raises(ReprlError, match=r"epsilon must lie in \(0, 6\], as values lie in \[0, H\], got 6.1"):
        finite.check_epsilon(6.1)
    with pytest.raises(ReprlError, match=r"epsilon must lie in \(0, 10\], as values lie in \[0, 1/\(1 − γ\)\], got 11"):
        endless.check_epsilon(11)
    with pytest.raises(ReprlError, match=r"a world must have a horizon, got discount 0\.9"):
        endless.require_horizon("a world must have a horizon")
    with pytest.raises(ReprlError, match="length must come with a discount"):
        finite.require_discount("length must come with a discount")
    for bad in (0.0, 1.0, -1.0, float("nan"), True, "x"):
        with pytest.raises(ReprlError, match="discount must"):
            Criterion.of(1, bad)  # type: ignore[arg-type]


def test_what_has_no_criterion_is_judged_by_its_horizon() -> None:
    class Bare:
        horizon, n_states, n_actions = 4, 2, 2

    assert criterion_of(Bare()) == Criterion(4)
    mdp = reprl.make("river-swim-v0", discount=0.8)
    assert criterion_of(mdp) == criterion_of(reprl.EpisodicModel(mdp, 1)) == Criterion(1, 0.8)
    assert reprl.EpisodicModel(mdp, 1).horizon == mdp.episodes.horizon > 1


@given(SEEDS, DISCOUNTS)
@settings(max_examples=40, deadline=None)
def test_backups_are_those_of_the_sums_that_they_stand_for(seed: int, discount: float | None) -> None:
    mdp = world(seed, discount)
    draw = np.random.default_rng(seed)
    table = np.where(np.arange(3) == 1, 1, draw.integers(0, 2, (mdp.horizon, 3)))
    law, gamma = true_dynamics(mdp), mdp.criterion.factor
    value, visits, mass = 0.0, np.zeros((mdp.horizon, 3)), np.array(mdp.initial)
    for step in range(steps_of(mdp)):
        h = step % mdp.horizon
        rows = np.arange(3), table[h]
        visits[h] += gamma**step * mass
        value += gamma**step * mass @ mdp.reward[h][rows]
        mass = mass @ mdp.transition[h][rows]
    assert law.occupancy(table) == pytest.approx(visits, abs=1e-12)
    assert mdp.evaluate(mdp.criterion.actions(table)) == pytest.approx(value, abs=1e-12)
    best = mdp.solve().values[0]
    assert law.policy_loss(best, table) == pytest.approx(mdp.initial @ best - value, abs=1e-12)
    several = np.stack([table, table[::-1], np.where(np.arange(3) == 1, 1, 0 * table)])
    assert np.array_equal(law.occupancy(several), [law.occupancy(each) for each in several])
    assert law.policy_losses(best, several).tolist() == [law.policy_loss(best, each) for each in several]
    assert value <= mdp.initial @ best + 1e-12


def test_data_are_read_as_their_criterion_says() -> None:
    mdp = reprl.make("river-swim-v0")
    model = reprl.GenerativeModel(mdp, 1)
    from reprl.mdp.dynamics import Data

    data = Data(model.pooled.sample(50), model.pooled.draw_starts(50))
    assert data.under(mdp.criterion) is data
    once = data.under(Criterion.of(1, 0.8))
    assert empirical_dynamics(once).outcomes.shape == (1, 6, 2)
    with pytest.raises(ReprlError, match="pooled"):
        Data(model.sample(5), model.draw_starts(5)).under(Criterion.of(1, 0.8))


class Table:
    """A learner that knows the answer."""

    def __init__(self, answer: object, access: str) -> None:
        self.answer, self.access = answer, access

    def __call__(self, model: object, key: reprl.SharedKey) -> object:
        return self.answer


@pytest.mark.parametrize("access", ["generative", "episodic"])
@pytest.mark.parametrize(
    "answer",
    [
        np.ones(6, dtype=int),
        np.ones((1, 6), dtype=int),
        np.tile([0.2, 0.7], (6, 1)),
        lambda state: 1,
        lambda state, step: 1,
        reprl.Policy(np.ones(6, dtype=int)),
    ],
    ids=["table", "row", "scores", "function", "function of a step", "policy"],
)
def test_a_discounted_mdp_takes_what_a_learner_returns(answer: object, access: str) -> None:
    mdp = reprl.make("river-swim-v0", discount=0.8)
    report = reprl.audit(mdp, Table(answer, access), pairs=2)
    assert report.disagreement == 0.0
    assert report.by_cell.shape == (1, 6)


def test_a_policy_of_a_discounted_mdp_must_not_depend_on_the_step() -> None:
    mdp = reprl.make("river-swim-v0", discount=0.8)
    with pytest.raises(ReprlError, match="must not depend on the step where there is a discount"):
        reprl.audit(mdp, Table(lambda state, step: step % 2, "episodic"), pairs=2)


def test_a_discounted_black_box_is_audited() -> None:
    box = reprl.GymnasiumModel("Blackjack-v1", 6, reward_range=(-1, 1)).discounted(0.9)
    for answer in (np.zeros(box.n_states, dtype=int), np.zeros(box.n_states - 1, dtype=int), lambda seen: 0):
        report = reprl.audit(box, Table(answer, "episodic"), pairs=2, evaluation=20)
        assert report.disagreement == 0.0
        assert report.by_cell.shape == (1, box.n_states)
    report = reprl.audit(
        box, "reprl", pairs=1, evaluation=20, epsilon=9.0, rho=0.3, delta=0.3, stationary=True, max_samples=1500
    )
    assert report.by_cell.shape == (1, box.n_states)


def test_played_episodes_of_a_discounted_black_box_count_by_the_discount() -> None:
    box = reprl.GymnasiumModel("Blackjack-v1", 6, reward_range=(-1, 1), data_seed=3).discounted(0.5)
    policy = reprl.Policy(np.ones(box.n_states, dtype=int))
    played = box.play(policy, 40)
    assert played.returns.mean() == pytest.approx(box.for_run(3).mean_return(policy, 40))
    assert played.visits.shape == (1, box.n_states)
    assert played.visits.sum() <= box.for_run(3).ledger.samples + 40 * 6
    plain = reprl.GymnasiumModel("Blackjack-v1", 6, reward_range=(-1, 1), data_seed=3)
    assert played.returns.mean() < plain.play(reprl.Policy(np.ones((6, box.n_states), dtype=int)), 40).returns.mean()
