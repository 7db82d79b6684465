"""The rule bound to ξ and to what is asked: from a model to a policy, and to the soft policy that explores for it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from reprl.mdp.model import Model, evaluate, from_start, occupancy, one_hot, solve
from reprl.randomness import SharedKey
from reprl.rule.draws import Draws, draw
from reprl.rule.soft import LAST, Asked, Choice, add_up, allow, apply_rule, make_room, soften, temperature


class SoftRule(NamedTuple):
    """f(ξ, ·)."""

    draws: Draws
    asked: Asked

    @classmethod
    def bind(
        cls,
        key: SharedKey,
        allowed: NDArray[np.bool_],
        *,
        stationary: bool,
        quality: float | None = 0.9,
        epsilon: float | None = None,
        baseline: NDArray[np.float64] | None = None,
        order: NDArray[np.int64] | None = None,
    ) -> SoftRule:
        """Bind the rule.

        Args:
            key: ξ, at the address of the rule.
            allowed: (H, S, A): the actions that may be taken.
            stationary: whether the law is the same at all of several steps.
            quality: share of the gain over the baseline that must be earned; None where epsilon is given.
            epsilon: the loss that is allowed, in units of value.
            baseline: (H, S, A): laws of actions; None for the first allowed action.
            order: (S, A): the actions of each state, the most preferred first; None by index.
        """
        shape = allowed.shape
        baseline = one_hot(allowed.argmax(axis=2), shape[2]) if baseline is None else np.ascontiguousarray(baseline)
        order = np.tile(np.arange(shape[2]), (shape[1], 1)) if order is None else order
        share = 0.0 if epsilon is not None or quality is None else 1.0 - quality
        return cls(draw(key, shape, stationary=stationary), Asked(baseline, order, share, epsilon or 0.0))

    def choose(self, model: Model) -> tuple[NDArray[np.int64], Choice]:
        """Return f(ξ, M), (H, S), and what it is worth.

        Guarantee:
            It loses at most draws.room·ε(M) ≤ .7·ε(M) in the model (docs/proofs/rule.md).
        """
        policy = np.empty(self.draws.last.shape, dtype=np.int64)
        none = np.empty((0, model.law.size))
        return policy, apply_rule(
            model, none, self.asked, self.draws, make_room(self.draws, self.asked.order.shape[1]), policy
        )

    def count_equal(self, model: Model, choice: Choice) -> NDArray[np.int64]:
        """Return how many actions of each cell, (H, S), were good enough for the policy that was printed."""
        room = make_room(self.draws, self.asked.order.shape[1])
        if choice.attempt == LAST:
            solve(model, room.values, room.gaps)
            bar = self.draws.last * choice.allowed / model.length
            return np.asarray((room.gaps <= bar[:, :, None]).sum(axis=2))
        group, share = self.draws.groups[choice.level], 0.5**choice.attempt * choice.allowed
        heat = temperature(choice.allowed, self.draws.shift, model.length, choice.attempt)
        soften(model, heat, False, room.play, room.values, room.part)
        occupancy(model, room.play, room.visits, room.mass)
        losses = np.where(model.allowed, room.visits[:, :, None], 1.0) * room.part
        add_up(losses, group, room.costs)
        mine = room.costs[group]
        bar = self.draws.tolerance[choice.attempt][group] * share
        return np.asarray((mine - mine.min(axis=2, keepdims=True) <= bar[:, :, None]).sum(axis=2))

    def play(self, model: Model) -> NDArray[np.float64]:
        """Return the soft policy of the first try, laws of actions (H, S, A): what a run plays to learn."""
        room = make_room(self.draws, self.asked.order.shape[1])
        evaluate(model, self.asked.baseline, room.values)
        gain = -from_start(model, room.values)
        solve(model, room.values, room.gaps)
        gain += from_start(model, room.values)
        allowed = allow(self.asked.epsilon, self.asked.share, gain, model.length)
        heat = temperature(allowed, self.draws.shift, model.length, 0)
        soften(model, heat, False, room.play, room.values, room.part)
        return room.play
