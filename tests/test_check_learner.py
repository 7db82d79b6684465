"""check_learner: every learner of the package keeps the contract, and every way to break it is named in one line."""

from __future__ import annotations

import itertools
import random
from typing import Any

import numpy as np
import pytest

import reprl
from reprl.lab.baselines import learners, make_learner
from reprl.learning.adapters import policy_of
from reprl.learning.learner import learner as bound_learner
from reprl.learning.protocol import name_of
from reprl.paper.boosting import Boosted

OURS = [
    (entry.name, access, {"access": access, **rule} if entry.name == "reprl" else {})
    for entry in learners()
    for access in entry.access
    for rule in ([{}, {"rule": "paper", "constants": "scaled"}] if entry.name == "reprl" else [{}])
]
FRESH = itertools.count()


def zeros(model: Any) -> Any:
    return np.zeros((model.horizon, model.n_states), dtype=int)


def episode(model: Any) -> Any:
    """One episode of action 0, and where it ended."""
    state = model.reset()
    for _ in range(model.horizon):
        state = model.step(0).state
    return state


@pytest.mark.parametrize(("name", "access", "extra"), OURS)
def test_every_learner_of_the_package_keeps_the_contract(name: str, access: str, extra: dict[str, Any]) -> None:
    reprl.check_learner(make_learner(name, epsilon=1.0, **extra))
    if access == "generative":
        reprl.check_learner(make_learner(name, samples=10_000, **extra))


@pytest.mark.parametrize(
    "options",
    [
        {"rule": "paper", "constants": "scaled", "samples": 10**8, "epsilon": 1.0},
        {"rho": 0.2, "epsilon": 0.5, "stationary": False},
    ],
    ids=["paper", "soft"],
)
def test_bound_and_boosted_learners_keep_it_too(options: dict[str, Any]) -> None:
    base = bound_learner(access="generative", **options)
    reprl.check_learner(base)
    reprl.check_learner(base.run, access="generative")
    boosted = Boosted(learner=base, read=policy_of, rho=0.3, delta=0.2, epsilon=2.0, runs=2, pulls=10)
    reprl.check_learner(boosted, access="generative")


def test_a_user_s_own_learner_its_options_and_a_black_box() -> None:
    def mine(model: Any, key: reprl.SharedKey, *, shift: int) -> Any:
        first = int(np.floor(model.n_actions * key.uniforms(1)[0]))
        return zeros(model) + (episode(model) + first + shift) % model.n_actions

    reprl.check_learner(mine, shift=1)
    reprl.check_learner(mine, reprl.GymnasiumModel("FrozenLake-v1", 3), shift=2)
    with pytest.raises(reprl.ReprlError, match=r"^learner mine failed on .*: TypeError: .*'shift'$"):
        reprl.check_learner(mine)


def of_its_own(model: Any, key: reprl.SharedKey) -> Any:
    episode(model)
    return zeros(model) + np.random.default_rng().integers(model.n_actions, size=(model.horizon, model.n_states))


def remembers(model: Any, key: reprl.SharedKey) -> Any:
    episode(model)
    return zeros(model) + next(FRESH) % model.n_actions


def remembers_its_size(model: Any, key: reprl.SharedKey) -> Any:
    for _ in range(1 + next(FRESH)):
        episode(model)
    return zeros(model)


def numpy_draws(model: Any, key: reprl.SharedKey) -> Any:
    episode(model)
    return np.random.randint(model.n_actions, size=(model.horizon, model.n_states))  # noqa: NPY002


def numpy_seeds(model: Any, key: reprl.SharedKey) -> Any:
    episode(model)
    np.random.seed(0)  # noqa: NPY002
    return zeros(model)


def random_draws(model: Any, key: reprl.SharedKey) -> Any:
    episode(model)
    return zeros(model) + random.randrange(model.n_actions)


def peeks(model: Any, key: reprl.SharedKey) -> Any:
    return model.mdp.solve().policy


def elsewhere(model: Any, key: reprl.SharedKey) -> Any:
    return zeros(model) + episode(reprl.EpisodicModel(model.mdp, 1)) % model.n_actions


def transposed(model: Any, key: reprl.SharedKey) -> Any:
    episode(model)
    return zeros(model).T


def too_far(model: Any, key: reprl.SharedKey) -> Any:
    episode(model)
    return zeros(model) + model.n_actions


def fractions(model: Any, key: reprl.SharedKey) -> Any:
    episode(model)
    return zeros(model) + 0.5


def nothing(model: Any, key: reprl.SharedKey) -> Any:
    episode(model)


def raises(model: Any, key: reprl.SharedKey) -> Any:
    raise ZeroDivisionError("no\nluck")


def keyless(model: Any) -> Any:
    return zeros(model)


class Psychic:
    access = "psychic"

    def __call__(self, model: Any, key: reprl.SharedKey) -> Any:
        return zeros(model)


TWICE = "for one key and one data seed: it draws randomness of its own, or remembers earlier calls$"
INSTEAD = "samples come from the model, shared draws from the key$"


@pytest.mark.parametrize(
    ("learner", "line"),
    [
        (7, r"^learner must be callable as learner\(model, shared_key\) or train\(env\), got 7$"),
        (Psychic(), "^learner Psychic has access 'psychic': it must be one of episodic, generative$"),
        (of_its_own, f"^learner of_its_own gave two policies {TWICE}"),
        (remembers, f"^learner remembers gave two policies {TWICE}"),
        (remembers_its_size, rf"^learner remembers_its_size drew \d+ and then \d+ samples {TWICE}"),
        (numpy_draws, f"^learner numpy_draws touched the global random state of numpy: {INSTEAD}"),
        (numpy_seeds, f"^learner numpy_seeds touched the global random state of numpy: {INSTEAD}"),
        (random_draws, f"^learner random_draws touched the global random state of random: {INSTEAD}"),
        (peeks, "^learner peeks drew no samples through its model: the ledger is empty$"),
        (elsewhere, "^learner elsewhere drew no samples through its model: the ledger is empty$"),
        (
            transposed,
            r"^learner transposed returned no policy for .*: policy must have shape \(H, S\) = \(2, 3\) .* got ",
        ),
        (too_far, r"^learner too_far returned no policy for .*: policy action \[0, 0\] must be from 0 to 1, got 2$"),
        (fractions, r"^learner fractions returned no policy for .*: actions\[0, 0\] must be an action index"),
        (nothing, "^learner nothing returned no policy for .*: a learner must return a policy, .* got None$"),
        (raises, "^learner raises failed on .*: ZeroDivisionError: no luck$"),
        (keyless, "^learner keyless failed on .*: TypeError: .*positional"),
    ],
    ids=lambda part: name_of(part) if callable(part) else "",
)
def test_what_is_wrong_is_said_in_one_line(learner: Any, line: str) -> None:
    with pytest.raises(reprl.ReprlError, match=line) as caught:
        reprl.check_learner(learner)
    assert "\n" not in str(caught.value)


def test_access_is_the_learner_s_own_or_what_is_asked_for() -> None:
    greedy = make_learner("greedy", samples=1000)
    with pytest.raises(reprl.ReprlError, match=r"^access must be 'generative' for greedy, got 'episodic'$"):
        reprl.check_learner(greedy, access="episodic")
    with pytest.raises(reprl.ReprlError, match=r"^access must be one of"):
        reprl.check_learner(greedy, access="psychic")  # type: ignore[arg-type]
    with pytest.raises(reprl.ReprlError, match=r"^access must be 'episodic' for a black box"):
        reprl.check_learner(greedy, reprl.GymnasiumModel("FrozenLake-v1", 3))


@pytest.mark.parametrize("learner", [numpy_draws, make_learner("greedy", samples=1000)], ids=name_of)
def test_the_caller_s_generators_are_given_back(learner: Any) -> None:
    np.random.seed(11)  # noqa: NPY002
    random.seed(11)
    expected = np.random.random(), random.random()  # noqa: NPY002
    np.random.seed(11)  # noqa: NPY002
    random.seed(11)
    if learner is numpy_draws:
        with pytest.raises(reprl.ReprlError):
            reprl.check_learner(learner)
    else:
        reprl.check_learner(learner)
    assert (np.random.random(), random.random()) == expected  # noqa: NPY002
