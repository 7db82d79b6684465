"""Random models for the tests of the rule: with masks, ties, halves of samples, by step or not, discounted or not."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from reprl.mdp.model import Model, one_hot
from reprl.randomness import SharedKey
from reprl.rule.draws import Draws, draw
from reprl.rule.soft import Asked, Choice, apply_rule, make_room

DYADIC = 8
"""Laws that tie are multiples of one in so many, and rewards of halves: then sums are exact in any order."""


class Shape(NamedTuple):
    """What a random model is like."""

    horizon: int = 4
    n_states: int = 5
    n_actions: int = 3
    stationary: bool = True
    dyadic: bool = False
    masked: bool = False
    gamma: float = 0.0


def random_shape(rng: np.random.Generator, **fixed: Any) -> Shape:
    """Draw what a model is like."""
    sizes = {
        "horizon": int(rng.integers(1, 8)),
        "n_states": int(rng.integers(1, 8)),
        "n_actions": int(rng.integers(2, 5)),
    }
    kinds = {name: bool(rng.integers(2)) for name in ("stationary", "dyadic", "masked")}
    return Shape(**(sizes | kinds | fixed))


def random_model(rng: np.random.Generator, shape: Shape) -> Model:
    """Draw a model; rows have one to four outcomes, which may share a state; dyadic ones tie often."""
    horizon, n_states, n_actions = shape.horizon, shape.n_states, shape.n_actions
    rows = n_states * n_actions * (1 if shape.stationary or shape.gamma else horizon)
    lengths = rng.integers(1, 5, rows)
    first = np.concatenate([[0], np.cumsum(lengths)])
    if shape.dyadic:
        law = np.concatenate([1.0 + rng.multinomial(DYADIC - n, np.full(n, 1.0 / n)) for n in lengths]) / DYADIC
        reward = rng.choice([0.0, 0.5, 1.0], first[-1], p=[0.7, 0.15, 0.15])
    else:
        law = np.concatenate([rng.dirichlet(np.full(n, 0.7)) for n in lengths])
        reward = rng.random(first[-1])
    steps = 1 if shape.gamma else horizon
    allowed = np.ones((steps, n_states, n_actions), dtype=np.bool_)
    if shape.masked:
        own_step = rng.random() < 0.5
        allowed = rng.random((steps if own_step else 1, n_states, n_actions)) < 0.6
        spare = rng.integers(0, n_actions, allowed.shape[:2])
        allowed |= np.arange(n_actions) == spare[:, :, None]
        allowed = np.ascontiguousarray(np.broadcast_to(allowed, (steps, n_states, n_actions)))
    initial = np.eye(n_states)[rng.integers(n_states)]
    if not shape.dyadic and rng.random() < 0.5:
        initial = rng.dirichlet(np.ones(n_states))
    shift = 0 if rows == n_states * n_actions else n_states * n_actions
    next_state = rng.integers(0, n_states, first[-1]).astype(np.int32)
    return Model(first, next_state, reward, law, shift, allowed, initial, shape.gamma)


def random_asked(rng: np.random.Generator, model: Model) -> Asked:
    """Draw what is asked: quality or an absolute loss, a baseline and an order of one's own or not."""
    _, n_states, n_actions = model.allowed.shape
    first = one_hot(model.allowed.argmax(axis=2), n_actions)
    own = np.where(model.allowed, rng.random(model.allowed.shape), 0.0)
    own /= own.sum(axis=2, keepdims=True)
    share, epsilon = (
        (float(rng.choice([0.05, 0.1, 0.4])), 0.0) if rng.random() < 0.7 else (0.0, float(rng.random()) * 0.3)
    )
    order = np.tile(np.arange(n_actions), (n_states, 1))
    if rng.random() < 0.5:
        order = rng.permuted(order, axis=1)
    return Asked(first if rng.random() < 0.5 else own, order, share, epsilon)


def random_halves(rng: np.random.Generator, model: Model, size: int) -> tuple[Model, NDArray[np.float64]]:
    """Draw so many samples of every row in either half; the model and the two laws that they show."""
    pairs = zip(model.first[:-1], model.first[1:], strict=True)
    laws = (
        np.concatenate([rng.multinomial(size, model.law[a:b] / model.law[a:b].sum(), 2) for a, b in pairs], axis=1)
        / size
    )
    return model._replace(law=laws.mean(axis=0)), laws


def key_of(number: int) -> SharedKey:
    """Return ξ, at the address of the rule."""
    return SharedKey(number).derive("rule")


def draws_of(number: int, model: Model, stationary: bool) -> Draws:
    """Return what ξ decides for a model; a discounted one has one step, which is not several."""
    return draw(key_of(number), model.allowed.shape, stationary=stationary and not model.gamma)


def print_policy(
    model: Model, asked: Asked, draws: Draws, halves: NDArray[np.float64] | None = None
) -> tuple[NDArray[np.int64], Choice]:
    """Return f(ξ, M), or its crossed form, by the kernel."""
    policy = np.empty(model.allowed.shape[:2], dtype=np.int64)
    laws = np.empty((0, model.law.size)) if halves is None else halves
    return policy, apply_rule(model, laws, asked, draws, make_room(draws, model.allowed.shape[2]), policy)


def ask(model: Model, *, share: float = 0.1, epsilon: float = 0.0) -> Asked:
    """Return what a default run asks for."""
    _, n_states, n_actions = model.allowed.shape
    order = np.tile(np.arange(n_actions), (n_states, 1))
    return Asked(one_hot(model.allowed.argmax(axis=2), n_actions), order, 0.0 if epsilon else share, epsilon)


def stopping(rng: np.random.Generator | None, horizon: int, ways: int) -> Model:
    """Waiting to the end pays 1, and each way to stop a little less than waiting is worth: early tries stop too often.

    State 0 waits, state 1 has stopped; the last action waits, the others stop. Without rng their pay is evenly spaced.
    """
    n_actions = ways + 1
    next_state = np.ones((horizon, 2, n_actions), dtype=np.int32)
    reward = np.zeros((horizon, 2, n_actions))
    next_state[:, 0, -1] = 0
    reward[-1, 0, -1] = 1.0
    each = (
        np.tile((np.arange(ways) + 1) / (ways + 2), (horizon, 1))
        if rng is None
        else rng.uniform(0.0, 0.9, (horizon, ways))
    )
    reward[:, 0, :-1] = each
    rows = reward.size
    allowed = np.ones(reward.shape, dtype=np.bool_)
    flat = np.arange(rows + 1), next_state.ravel(), reward.ravel(), np.ones(rows)
    return Model(*flat, 2 * n_actions, allowed, np.array([1.0, 0.0]), 0.0)
