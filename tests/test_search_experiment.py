"""The compiled environments of experiments/search are Gymnasium's: same seeds and policies, same returns."""

from __future__ import annotations

import numpy as np
import pytest

from experiments.search import boxes
from experiments.search.classic import ClassicModel
from experiments.search.tables import RETURNS, TableModel, box
from experiments.search.worlds import WORLDS
from reprl.randomness import SharedKey
from reprl.search.families import Networks, tables_for
from reprl.search.heads import head_of
from reprl.search.networks import Linear, first_inputs
from reprl.sources.returns import ReturnModel


@pytest.mark.parametrize("name", ["CartPole-v1", "MountainCar-v0", "Acrobot-v1", "Pendulum-v1"])
def test_compiled_episodes_earn_what_gymnasium_pays(name):
    compiled, own = ClassicModel(name, 1), ReturnModel(name, data_seed=1)
    family = Networks(Linear(), first_inputs(own.observation_space, None), head_of(own.action_space))
    act = family.acting([family.propose(SharedKey(3).derive(j), None) for j in range(2)])
    rows, seeds = [0, 0, 1, 1], [11, 12, 13, 14]
    np.testing.assert_allclose(compiled.play(act, rows, seeds), own.play(act, rows, seeds), rtol=1e-5)
    assert compiled.ledger.samples == own.ledger.samples


@pytest.mark.parametrize("name", ["FrozenLake H=40", "Blackjack H=8", "shop H=10"])
def test_tables_earn_in_the_kernel_what_the_box_pays_on_average(name):
    """Both means are the exact value of a table, within five standard errors; that of another table is not."""
    of, world, n = WORLDS[name], WORLDS[name].build(), 4000
    compiled = TableModel(name, 1)
    own = ReturnModel(box(name), compiled.horizon, reward_range=of.rewards, return_range=RETURNS.get(name), data_seed=1)
    family = tables_for(own.observation_space, own.action_space)
    best = np.asarray(world.solve().policy.actions)[0]
    act = family.acting([best[: family.size].astype(float)])

    def value(actions):
        table = np.broadcast_to(actions, (world.horizon, world.n_states))
        return of.original(world.evaluate(table), world.horizon)

    for model in (compiled, own):
        returns = model.play(act, [0] * n, list(range(1000, 1000 + n)))
        error = 5.0 * returns.std() / n**0.5
        assert abs(returns.mean() - value(best)) < error
        assert abs(returns.mean() - value(np.zeros_like(best))) > error  # negative control
    assert compiled.ledger.samples == pytest.approx(own.ledger.samples, rel=0.1)


def test_the_published_lander_is_the_centre():
    """With the published constants the family acts as Gymnasium's own ``heuristic`` says."""
    pytest.importorskip("Box2D", reason="needs the package box2d")
    from gymnasium.envs.box2d import lunar_lander

    acting = boxes.Landers().from_vector(boxes.Landers.centre)

    class Discrete:
        continuous = False

        @property
        def unwrapped(self):
            return self

    seen = np.random.default_rng(0).normal(size=(200, 8))
    seen[:, 6:] = seen[:, 6:] > 1.0
    assert [acting.act(x) for x in seen] == [lunar_lander.heuristic(Discrete(), x) for x in seen]
