"""The compiled environments of experiments/search are Gymnasium's: same seeds and policies, same returns."""

from __future__ import annotations

import numpy as np
import pytest

from experiments.search.classic import ClassicModel
from reprl.randomness import SharedKey
from reprl.search.families import Networks
from reprl.search.heads import head_of
from reprl.search.networks import Linear
from reprl.search.scales import first_inputs
from reprl.sources.returns import ReturnModel


@pytest.mark.parametrize("name", ["CartPole-v1", "MountainCar-v0", "Acrobot-v1", "Pendulum-v1"])
def test_compiled_episodes_earn_what_gymnasium_pays(name):
    compiled, own = ClassicModel(name, 1), ReturnModel(name, data_seed=1)
    family = Networks(Linear(), first_inputs(own.observation_space, None), head_of(own.action_space))
    act = family.acting([family.propose(SharedKey(3).derive(j), None) for j in range(2)])
    rows, seeds = [0, 0, 1, 1], [11, 12, 13, 14]
    np.testing.assert_allclose(compiled.play(act, rows, seeds), own.play(act, rows, seeds), rtol=1e-5)
    assert compiled.ledger.samples == own.ledger.samples
