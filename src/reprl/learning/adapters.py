"""Adapters: learners and agents as people have them, as learners and policies of this package.

There is one protocol, learner(model, shared_key) → policy. A function of a gymnasium.Env becomes such a learner here,
and what learners come back with (tables, Q tables, functions, models of Stable-Baselines3) becomes a policy.
"""

from __future__ import annotations

import inspect
import random
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from reprl.errors import InputError, ReprlError, check_int, quote
from reprl.learning.protocol import Run, name_of
from reprl.mdp.catalogue import PREFIX
from reprl.mdp.criterion import criterion_of
from reprl.mdp.policy import Policy, check_policy
from reprl.mdp.tabular import TabularMDP
from reprl.randomness import DataStream, SharedKey
from reprl.sources.gymnasium.model import GymnasiumModel
from reprl.sources.logs.spec import ENDED, ID
from reprl.sources.protocol import Model, mask_of

_OFFERED = ("shared_key", "seed", "samples")
"""What a function of an environment is given, besides, if it has a parameter of that name."""
_ALLOWED = (
    "a policy, an (H, S) or (S,) table of actions, an (H, S, A) or (S, A) table of Q values, a function of an "
    "observation, or a model with predict"
)


@dataclass(frozen=True)
class EnvLearner:
    """A function train(env, …) as a learner: it gets a gymnasium.Env and returns any of what ``policy_of`` takes.

    Guarantee:
        A run is a function of (shared key, data seed, environment), if training is one of its arguments, of the
        environment and of the generators of numpy, random and, if loaded by then, torch.

    Randomness:
        See ``LearnerEnv``. Word 0 of data stream (data seed, "learner/seed") is the private `seed`, word 1 seeds the
        generators of the process for as long as training takes; they are given back as they were.
    """

    train: Callable[..., Any]
    """train(env), with any of the parameters shared_key, seed (private) and samples (the budget) it may have."""
    samples: int | None = None
    """The budget: a step beyond it is an error; None for no limit."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """What else it is called with."""
    access: ClassVar[str] = "episodic"

    def __post_init__(self) -> None:
        """Refuse what cannot be called, and a parameter without a value."""
        if not callable(self.train):
            raise InputError(f"train must be callable as train(env), got {quote(self.train)}")
        if self.samples is not None:
            check_int("samples", self.samples, 1)

    @property
    def name(self) -> str:
        """The function's own."""
        return name_of(self.train)

    def __call__(self, model: Any, shared_key: SharedKey, *, samples: int | None = None, **options: Any) -> Any:
        """Open the environment behind a model, train in it, and return whatever training returned."""
        from reprl.sources.gymnasium.learner_env import open_for_learner

        budget = self.samples if samples is None else check_int("samples", samples, 1)
        with open_for_learner(model, budget) as env:
            given = options if budget is None else {**options, "samples": budget}
            return self.on(env, shared_key, model.data_seed, **given)

    def on(self, env: Any, shared_key: SharedKey, data_seed: int, **options: Any) -> Any:
        """Train in an environment that is open."""
        seed, state = (int(word) >> 33 for word in DataStream(data_seed, "learner/seed").integers(2))
        given = {"shared_key": shared_key, "seed": seed, **self.options, **options}
        given = {name: given[name] for name in given if name not in _OFFERED or name in _parameters(self.train)}
        with seeded_generators(state):
            return self.train(env, **given)


def env_learner(train: Callable[..., Any], *, samples: int | None = None, **options: Any) -> EnvLearner:
    """Return a function of a gymnasium.Env as a learner for audits and comparisons.

    A function whose first parameter is called ``env`` is taken for one without this.

    Args:
        train: ``train(env, **options)``. If it has parameters of these names it is also given `shared_key` (the same in
            both runs of a pair), `seed` (a private number of 31 bits) and `samples` (its budget). It returns a table of
            actions, a Q table, a function from an observation (and a step) to an action, or a model with ``predict``.
        samples: the most that it may draw, starts included; ``env.samples_left`` says what is left.
        options: passed on.
    """
    return EnvLearner(train, samples, options)


def as_learner(learner: Any) -> Any:
    """Return a function of an environment as a learner, anything else as it is."""
    if isinstance(learner, EnvLearner) or not callable(learner):
        return learner
    return EnvLearner(learner) if next(iter(_parameters(learner)), "") == "env" else learner


@contextmanager
def seeded_generators(state: int) -> Iterator[None]:
    """Seed the generators of the process, numpy's, random's and torch's if it is loaded, and give the caller's back."""
    torch = sys.modules.get("torch")
    theirs = np.random.get_state(), random.getstate()  # noqa: NPY002
    of_torch = None if torch is None else torch.get_rng_state()
    try:
        np.random.seed(state % 2**32)  # noqa: NPY002
        random.seed(state)
        if torch is not None:
            torch.manual_seed(state)
        yield
    finally:
        np.random.set_state(theirs[0])  # noqa: NPY002
        random.setstate(theirs[1])
        if torch is not None:
            torch.set_rng_state(of_torch)


class Agent:
    """Something that acts, whatever it is made of; it remembers nothing between steps.

    Args:
        source: a Policy, a model with ``predict(observation, deterministic=True)`` as those of Stable-Baselines3, or a
            function from an observation, or an observation and the number of steps taken, to an action.
    """

    def __init__(self, source: Any) -> None:
        self.source = source
        policy = isinstance(source, Policy)
        self._predicts = not policy and callable(getattr(source, "predict", None))
        self.stepwise = policy or (not self._predicts and _wants_step(source))

    def act(self, observation: Any, step: int) -> Any:
        """Return the action as the environment takes it."""
        if isinstance(self.source, Policy):
            return self.source.act(observation, step)
        if self._predicts:
            return _plain(self.source.predict(observation, deterministic=True)[0])
        return _plain(self.source(observation, step) if self.stepwise else self.source(observation))

    def act_all(self, observations: Sequence[Any], first: int = 0) -> list[Any]:
        """Return the actions at steps first, first + 1, …: all at once where a model can, which is much faster."""
        arrays = self._predicts and all(isinstance(seen, np.ndarray) and seen.ndim for seen in observations)
        if not arrays or not observations:
            return [self.act(seen, first + step) for step, seen in enumerate(observations)]
        return [_plain(action) for action in self.source.predict(np.stack(observations), deterministic=True)[0]]


def acts(output: object) -> bool:
    """Whether something acts on observations, as a function or a model does."""
    return callable(output) or callable(getattr(output, "predict", None))


def policy_of(output: Any, model: Model) -> Policy:
    """Return what a learner came to as a policy that fits its model.

    Args:
        output: a Run; a Policy; a table of actions, (H, S) or, for all steps, (S,); Q values, (H, S, A) or (S, A), of
            which the first best allowed action is taken; a function from an observation, or an observation and a step,
            to an action; or a model with ``predict``. The state "ended", which only this package adds to an
            environment, may be left out of tables, and nobody is asked what to do there.
        model: where it learned.
    """
    output = output.policy if isinstance(output, Run) else output
    if isinstance(output, Policy):
        return check_policy(output, model)
    if output is None:
        raise InputError(f"a learner must return {_ALLOWED}, got None")
    return check_policy(_tabulate(Agent(output), model) if acts(output) else _table(output, model), model)


def _tabulate(agent: Agent, model: Model) -> NDArray[np.int64]:
    """Ask an agent in every state, at every step if it looks at it."""
    box = model if isinstance(model, GymnasiumModel) else None
    table = np.zeros((model.horizon, model.n_states), dtype=np.int64)
    asked = range(model.n_states - 1 if adds_end(model) else model.n_states)
    for h in range(model.horizon):
        for s in asked:
            if h and not agent.stepwise:
                table[h, s] = table[0, s]
                continue
            action = agent.act(np.int64(s) if box is None else box.observations.decode(s), h)
            try:
                table[h, s] = check_int("action", action, 0) if box is None else box.actions.encode(action)
            except ReprlError as error:
                raise type(error)(f"in state {s} at step {h}: {error}") from None
    criterion = criterion_of(model)
    if criterion.stationary and (table != table[0]).any():
        h, s = (int(i) for i in np.argwhere(table != table[0])[0])
        raise InputError(
            f"policy must not depend on the step where there is a discount, got actions {table[0, s]} and "
            f"{table[h, s]} in state {s} at steps 0 and {h}"
        )
    return criterion.actions(table)


def _table(output: Any, model: Model) -> NDArray[Any]:
    """Return a table of actions or of Q values as (H, S) actions."""
    try:
        table = np.asarray(output)
    except (ValueError, TypeError, OverflowError):
        raise InputError(f"a learner must return {_ALLOWED}, got {quote(output)}") from None
    if table.dtype.kind not in "iuf":
        raise InputError(f"a learner must return {_ALLOWED}, got {quote(output)}")
    criterion, S, A = criterion_of(model), model.n_states, model.n_actions
    H = criterion.rows
    rows = (S, S - 1) if adds_end(model) else (S,)
    actions = table.shape in [shape for s in rows for shape in ((H, s), (s,))]
    scored = table.dtype.kind == "f"  # whole numbers are actions: a table laid the wrong way round is no Q table
    values = scored and table.shape in [shape for s in rows for shape in ((H, s, A), (s, A))]
    if not actions and not values:
        sizes = f"(H, S) = {(H, S)} or (S,), or as Q values, floats, (S, A) or (H, S, A) with A = {A}"
        raise InputError(f"policy must have shape {sizes}, got {table.shape}")
    if actions and values:  # H = S = A, or the like
        values = bool((table != np.floor(table)).any())
        if not values:
            both = "actions (H, S) or Q values (S, A)"
            raise InputError(f"a {table.shape} table of floats may be {both}: return whole numbers, or argmax")
    if values:
        table = _best(table, model)
    table = np.broadcast_to(table, (H, table.shape[-1]))
    return criterion.actions(table if table.shape[1] == S else np.pad(table, ((0, 0), (0, 1))))


def _best(scores: NDArray[Any], model: Model) -> NDArray[np.int64]:
    """The first of the best actions that may be taken, (H, S) or (S,)."""
    if np.isnan(scores).any():
        place = [int(i) for i in np.argwhere(np.isnan(scores))[0]]
        raise InputError(f"Q values must be numbers, got nan at {place}")
    mask = mask_of(model)
    if mask is not None:
        scores = np.where(mask[: criterion_of(model).rows, : scores.shape[-2]], scores, -np.inf)
    best: NDArray[np.int64] = scores.argmax(axis=-1)
    return best


def adds_end(model: object) -> bool:
    """Whether the last state is the added one for ended episodes of Gymnasium or of a log."""
    if isinstance(model, GymnasiumModel):
        return True
    labels = getattr(getattr(model, "mdp", model), "labels", None)
    return labels is not None and labels.name.startswith((PREFIX, ID)) and labels.states[-1:] == (ENDED,)


def lasting(world: TabularMDP, policy: Policy) -> NDArray[np.float64]:
    """Return how often a policy comes to each cell, (H, S), as long as an episode lasts: not where it has ended."""
    visits = world.occupancy(policy).copy()
    visits[:, world.n_states - adds_end(world) :] = 0.0
    return visits


def _parameters(function: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    try:
        return inspect.signature(function).parameters
    except (TypeError, ValueError):
        return {}


def _wants_step(function: Callable[..., Any]) -> bool:
    """Whether a function is to be called with (observation, step)."""
    places = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    given = [p for p in _parameters(function).values() if p.kind in places]
    return len(given) > 1 and (given[1].default is inspect.Parameter.empty or given[1].name == "step")


def _plain(action: Any) -> Any:
    """An action without the array that models wrap a single number in."""
    return action.item() if isinstance(action, np.ndarray | np.generic) and action.ndim == 0 else action
