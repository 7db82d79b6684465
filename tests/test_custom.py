"""Mechanisms and couplings of one's own: what they are given, what is checked, and when something counts as proven."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import reprl
from reprl.coupling.mechanisms import Selection, compact
from reprl.paper.rep_var_bandit import Decision, multi_best_arm

KEY = reprl.SharedKey(5)
MEANS = np.array([[0.5, 0.52, 0.1], [0.2, 0.9, 0.9]])
SIZES = np.full(2, 10**7)


def level(scores: Any, *, epsilon: float, delta: float) -> Any:
    """The example of docs/own.md: all arms within ε of the best, alike."""
    near = scores >= scores.max(axis=1, keepdims=True) - epsilon
    return near / near.sum(axis=1, keepdims=True)


class Lent:
    """The package's own mechanism, as if it were somebody's; with or without its proof."""

    def __init__(self, proof: str | None) -> None:
        self.proof = proof

    def __call__(self, scores: Any, *, epsilon: float, delta: float) -> Selection:
        return compact(scores, epsilon=epsilon)


class Threshold:
    """One shared uniform for all rows, read by inverse cumulative: couples any two laws, rows together."""

    proof: str | None = "a note of one's own"

    def __call__(self, key: reprl.SharedKey, laws: Any) -> Any:
        u = key.uniforms(len(laws))
        return np.minimum((u[:, None] >= laws.cumsum(axis=1)).sum(axis=1), laws.shape[1] - 1)

    def bound(self, total_variation: float) -> float:
        return 4.0 * total_variation


def arms(**decision: Any) -> Any:
    how = Decision(rounding="none", **decision)
    return multi_best_arm(KEY, MEANS, SIZES, epsilon=0.2, delta=0.1, decision=how)


def test_a_mechanism_without_a_bound_works_and_promises_nothing() -> None:
    found = arms(mechanism=level)
    np.testing.assert_allclose(found.probabilities, [[0.5, 0.5, 0.0], [0.0, 0.5, 0.5]])
    assert found.guarantee.status == "none"
    assert "level does not say where its bound is proven" in found.guarantee.source
    assert found.guarantee.rho == 1.0


def test_a_mechanism_with_a_bound_is_proven_exactly_if_it_says_so() -> None:
    ours = arms(mechanism="compact")
    proven, silent = arms(mechanism=Lent("my thesis, Lemma 3")), arms(mechanism=Lent(None))
    np.testing.assert_array_equal(proven.arms, ours.arms)
    assert proven.guarantee.status == "proven"
    assert proven.guarantee.source.endswith("; my thesis, Lemma 3")
    assert (proven.guarantee.rho, proven.guarantee.epsilon) == (ours.guarantee.rho, ours.guarantee.epsilon)
    assert silent.guarantee.status == "none"


def test_a_coupling_of_one_s_own_and_its_bound() -> None:
    ours, own = arms(), arms(coupling=Threshold())
    assert own.guarantee.status == "proven"
    tv = compact(MEANS, epsilon=0.1).total_variation
    assert tv is not None
    assert own.guarantee.rho > ours.guarantee.rho

    class Bare(Threshold):
        proof = None
        bound = None  # type: ignore[assignment]

    bare = arms(coupling=Bare())
    np.testing.assert_array_equal(bare.arms, own.arms)
    assert (bare.guarantee.status, bare.guarantee.rho) == ("none", 1.0)
    np.testing.assert_array_equal(
        reprl.correlated_sample(KEY, [[0.5, 0.5]] * 3, Threshold()), (KEY.uniforms(3) >= 0.5).astype(int)
    )


@pytest.mark.parametrize(
    ("decision", "message"),
    [
        ({"mechanism": lambda scores, *, epsilon, delta: scores}, "laws of own:<lambda>.* must sum to 1"),
        ({"mechanism": lambda scores, *, epsilon, delta: [[1.0]]}, "must have the shape of the scores"),
        ({"mechanism": "own:level"}, "is a custom function: pass the function itself"),
        ({"coupling": lambda key, laws: [0]}, "must return 2 whole numbers"),
        ({"coupling": lambda key, laws: np.full(len(laws), 3)}, "must return outcomes from 0 to 2"),
        ({"coupling": lambda key, laws: np.array([2, 0])}, "must return outcomes that can happen, got 2 in row 0"),
    ],
)
def test_faults_are_named(decision: Any, message: str) -> None:
    with pytest.raises(reprl.ReprlError, match=message):
        arms(**decision)
    with pytest.raises(reprl.ReprlError, match="rounding must be 'none' or 'grid'"):
        Decision(coupling=Threshold())
    with pytest.raises(reprl.ReprlError, match="mechanism must be left out unless rule='sampled'"):
        reprl.Settings(mechanism=level)


def test_learners_take_them_and_recipes_name_them() -> None:
    world = reprl.make("gridworld-v0", 2, size=2)
    how: dict[str, Any] = {"rule": "sampled", "access": "generative", "shared_seed": 1, "data_seed": 2, "epsilon": 0.5}
    by_name = reprl.learn(world, constants="paper", **how)
    own = reprl.learn(world, constants="paper", mechanism=Lent("Lemma 3"), **how)
    assert own.policy == by_name.policy
    assert (own.guarantee.status, by_name.guarantee.status) == ("proven", "proven")
    assert own.guarantee.source.endswith("Lemma 3")
    bare = reprl.learn(world, constants="paper", mechanism=level, **how)
    assert bare.guarantee.status == "none"
    rehearsed = reprl.learn(world, mechanism=level, **how)
    assert rehearsed.guarantee.status in ("rehearsed", "none")
    recipe = reprl.Recipe.from_json(own.recipe.to_json())
    assert recipe.settings.to_dict()["mechanism"] == "own:Lent"
    with pytest.raises(reprl.ReprlError, match="pass the function itself"):
        recipe.learn(data_seed=3)
