"""check_learner: the contract of a learner, for people who write their own."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from reprl.errors import InputError, ReprlError, check_choice, quote
from reprl.learning.adapters import EnvLearner, as_learner, policy_of, seeded_generators
from reprl.learning.protocol import Learner, access_of, name_of
from reprl.mdp.policy import Policy
from reprl.mdp.tabular import TabularMDP
from reprl.randomness import SharedKey
from reprl.sources.access import WAYS
from reprl.sources.environment import fresh_model, make
from reprl.sources.gymnasium.model import GymnasiumModel
from reprl.sources.protocol import ACCESSES, Access

_SEEDS = ((1, 2), (1, 3), (4, 2))
"""(shared seed, data seed) of the runs, each made twice."""


def check_learner(
    learner: Callable[..., Any],
    env: TabularMDP | GymnasiumModel | None = None,
    *,
    access: Access | None = None,
    **options: Any,
) -> None:
    """Check a learner against the contract: raise a ReprlError that says in one line what is wrong, if anything is.

    Args:
        learner: ``learner(model, shared_key, **options)``, or ``train(env, **options)`` of a gymnasium.Env; either
            returns a Run, a policy, a table of actions or of Q values, a function of an observation, or a model with
            ``predict`` (``env_learner``).
        env: where to try it; None for two small MDPs, of 3 states and 2 steps and of 4 states and 2 steps.
        access: "episodic" or "generative"; None for what the learner's ``access`` says, episodes where it does not.
        options: passed on to the learner.

    Guarantee:
        Checked, with three pairs of seeds on each MDP: the policy fits the model; its samples are drawn through the
        model, whose ledger counts them; a run is a function of (shared key, data seed, model) alone, whatever the
        state of the random generators of the process and however often the learner was called before; those generators
        are left as they were. Replicability is not checked:
        ``reprl.audit`` measures it. Shared draws from a constant seed are not found.

    Randomness:
        Shared and data seeds are fixed. The generators of numpy and random are seeded for a run and restored after it.
    """
    if not callable(learner):
        raise InputError(f"learner must be callable as learner(model, shared_key) or train(env), got {quote(learner)}")
    learner = as_learner(learner)
    name, says = name_of(learner), getattr(learner, "access", None)
    if says is not None and says not in ACCESSES:
        raise InputError(f"learner {name} has access {quote(says)}: it must be one of {', '.join(ACCESSES)}")
    if access is not None:
        check_choice("access", access, ACCESSES)
    way = access_of(learner, access)
    small = (make("random-mdp-v0", 2, n_states=3, n_actions=2), make("gridworld-v0", 2, size=2))
    for world in small if env is None else (env,):
        WAYS[way].check(world, name)
        for seeds in _SEEDS:
            (policy, samples), (other, others) = (_run(learner, way, world, seeds, state, options) for state in (5, 6))
            if (policy, samples) != (other, others):
                found = "gave two policies" if policy != other else f"drew {samples} and then {others} samples"
                why = "it draws randomness of its own, or remembers earlier calls"
                raise InputError(f"learner {name} {found} for one key and one data seed: {why}")


def _run(
    learner: Learner,
    access: str,
    world: TabularMDP | GymnasiumModel,
    seeds: tuple[int, int],
    state: int,
    options: dict[str, Any],
) -> tuple[Policy, int]:
    """Policy and samples of one run under a state of the process's generators; what it alone can show is checked."""
    name, place = name_of(learner), world.labels.name
    shared, data = seeds
    with fresh_model(world, access, data) as model, _watched(name, state):
        try:
            output = learner(model, SharedKey(shared), **options)
        except Exception as error:
            reason = " ".join(str(error).split())
            raise InputError(f"learner {name} failed on {place}: {type(error).__name__}: {reason}") from error
    try:
        policy = policy_of(output, model)
    except ReprlError as error:
        raise InputError(f"learner {name} returned no policy for {place}: {error}") from None
    if model.ledger.samples <= 0:
        where = "the environment that it is given" if isinstance(learner, EnvLearner) else "its model"
        raise InputError(f"learner {name} drew no samples through {where}: the ledger is empty")
    return policy, model.ledger.samples


@contextmanager
def _watched(name: str, state: int) -> Iterator[None]:
    """Seed the global generators, see whether they were touched, and give the caller's back."""
    with seeded_generators(state):
        before = _states()
        yield
        for module, one, two in zip(("numpy", "random"), before, _states(), strict=True):
            if one != two:
                raise InputError(
                    f"learner {name} touched the global random state of {module}: samples come from the model, shared "
                    "draws from the key"
                )


def _states() -> tuple[object, object]:
    state = np.random.get_state(legacy=False)  # noqa: NPY002
    words = state["state"]["key"].tobytes(), state["state"]["pos"], state["has_gauss"], state["gauss"]
    return words, random.getstate()
