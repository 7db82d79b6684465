"""Criterion: what a policy is judged by, the total reward of H steps or the discounted reward.

A discounted MDP is stored as a one-step table with continuation γV: tables are (1, S, A), values (2, S) with the second
row γ times the first. So whatever reads one step of a finite horizon, gaps, laws, comparisons, reads these as well;
only sums over all steps differ. They are here, and nothing else asks which of the two a criterion is.
"""

from __future__ import annotations

import math
from typing import NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from reprl.errors import InputError, check_real, quote
from reprl.kernels import read_only
from reprl.mdp.backup import (
    Terms,
    backward,
    discounted_visits,
    in_order,
    losses,
    one_hot,
    owned,
    sweep,
    terms,
    walk,
)
from reprl.mdp.outcomes import Outcomes

MOST = 0.9999
"""The largest discount: nearer to 1, rounding errors would exceed the smallest gaps."""
LENGTH = 0.01
"""Episodes of a discounted MDP are so long that what comes after them counts less than this, relative to all."""

Values = NDArray[np.float64]
T = TypeVar("T")


class Sized(Protocol):
    """Anything with the sizes of an MDP."""

    @property
    def horizon(self) -> int:
        """H."""

    @property
    def n_states(self) -> int:
        """S."""

    @property
    def n_actions(self) -> int:
        """A."""


def check_discount(discount: object) -> float:
    """Return γ if it is one."""
    if isinstance(discount, bool) or not isinstance(discount, int | float | np.floating | np.integer):
        raise InputError(f"discount must be a number in (0, {MOST}], got {quote(discount)}")
    return check_real("discount", float(discount), 0.0, MOST, open_high=False)


def criterion_of(world: Sized) -> Criterion:
    """Return the criterion of an environment or a model; one that has none is judged by its horizon."""
    found = getattr(world, "criterion", None)
    return found if isinstance(found, Criterion) else Criterion.of(world.horizon, getattr(world, "discount", None))


class Criterion(NamedTuple):
    """Finite horizon, or discounted; a tuple of numbers, so that kernels may take it."""

    rows: int
    """Of tables: H, or 1 if discounted."""
    gamma: float = 0.0
    """γ, or 0 where there is a horizon."""

    @classmethod
    def of(cls, horizon: int, discount: float | None = None) -> Criterion:
        """Read the keywords `horizon` and `discount`; the former does not count where there is the latter."""
        return cls(horizon) if discount is None else cls(1, check_discount(discount))

    @property
    def discount(self) -> float | None:
        """γ; None where there is a horizon."""
        return self.gamma or None

    @property
    def stationary(self) -> bool:
        """Whether its policies are the same at every step, and the laws that they are learned for."""
        return self.gamma > 0.0

    @property
    def factor(self) -> float:
        """What a reward counts one step later: γ, or 1."""
        return self.gamma or 1.0

    @property
    def effective_horizon(self) -> float:
        """The largest value that there could be: H, or 1/(1 − γ)."""
        return 1.0 / (1.0 - self.gamma) if self.gamma else float(self.rows)

    @property
    def remaining(self) -> Values:
        """(rows,): the most that could be earned from each step on: H − h, or 1/(1 − γ)."""
        return np.array([self.effective_horizon] if self.gamma else range(self.rows, 0, -1), dtype=np.float64)

    @property
    def episode_length(self) -> int:
        """Default length of episodes: H, or so long that γ^length ≤ LENGTH."""
        return math.ceil(math.log(LENGTH) / math.log(self.gamma)) if self.gamma else self.rows

    def reduced_horizon(self, epsilon: float) -> int | None:
        """Return ⌈log(1/(ε(1 − γ)))/(1 − γ)⌉, at least 1: later steps are worth at most ε; None if there is an H."""
        most = self.effective_horizon
        return max(1, math.ceil(math.log(most / epsilon) * most)) if self.gamma else None

    def check_epsilon(self, epsilon: float) -> None:
        """Refuse an accuracy that every policy has."""
        most = self.effective_horizon
        if epsilon > most:
            words = "1/(1 − γ)" if self.gamma else "H"
            raise InputError(f"epsilon must lie in (0, {most:g}], as values lie in [0, {words}], got {epsilon:g}")

    def require_horizon(self, wanted: str, got: str = "", hint: str = "") -> None:
        """Refuse a discounted criterion; `wanted` says what must be, `got` and `hint` stand around what is."""
        if self.gamma:
            raise InputError(f"{wanted}, got {got}{self}{hint}")

    def require_discount(self, message: str) -> float:
        """Return γ, or refuse a finite horizon."""
        if not self.gamma:
            raise InputError(message)
        return self.gamma

    def either(self, finite: T, discounted: T) -> T:
        """Return the one of two that belongs to this criterion, where no method here answers."""
        return discounted if self.gamma else finite

    def __str__(self) -> str:
        """For people: "horizon 6" or "discount 0.9"."""
        return f"discount {self.gamma:g}" if self.gamma else f"horizon {self.rows:,}"

    @property
    def keywords(self) -> tuple[int | None, dict[str, float]]:
        """The keyword `horizon` and the option `discount` that it was made with."""
        return (None, {"discount": self.gamma}) if self.gamma else (self.rows, {})

    @property
    def argument(self) -> str:
        """For a repr: "horizon=6" or "discount=0.9"."""
        return f"discount={self.gamma:g}" if self.gamma else f"horizon={self.rows}"

    @property
    def steps(self) -> str:
        """All steps in words."""
        return "every step" if self.gamma else f"steps 0 to {self.rows - 1}"

    def step(self, h: int, word: str = "step") -> str:
        """A step in words: "step 3" or "every step"."""
        return "every step" if self.gamma else f"{word} {h}"

    def cell(self, h: int, state: str) -> str:
        """A step, where there are several kinds of them, and a state in words."""
        return f"state {state}" if self.gamma else f"step {h}, state {state}"

    def policy_shape(self, n_states: int) -> tuple[int, ...]:
        """Shape of a policy's actions: (H, S), or (S,)."""
        return (n_states,) if self.gamma else (self.rows, n_states)

    def actions(self, table: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return a table, (rows, S), in the shape of a policy's actions."""
        return table[0] if self.gamma else table

    def best_values(
        self, outcomes: Outcomes, law: Values, may: NDArray[np.bool_], actions: NDArray[np.int64] | None = None
    ) -> Values:
        """Return V* and what follows the last row, (rows + 1, S); fill actions, (rows, S). 0 where nothing may be."""
        values = np.zeros((self.rows + 1, outcomes.n_states))
        values[-1] = self.continuation(outcomes, law, may)
        backward(outcomes, law, terms(may), 1.0, values, _written(outcomes, actions))
        return values

    def continuation(self, outcomes: Outcomes, law: Values, may: NDArray[np.bool_]) -> Values:
        """Return the best values of what follows the last row, (S,): nothing, or γ·V*."""
        none = np.zeros(outcomes.n_states)
        return np.multiply(self.gamma, self.extreme_values(outcomes, law, may)) if self.gamma else none

    def extreme_values(self, outcomes: Outcomes, law: Values, may: NDArray[np.bool_], sign: float = 1.0) -> Values:
        """Return V* (sign 1) or the least value (sign −1), (S,); 0 where nothing may be done. may is (rows, S, A)."""
        if self.gamma:
            return sweep(outcomes, law, terms(may), self.gamma, (self.gamma, sign), _written(outcomes))
        return _first(outcomes, law, terms(may), _written(outcomes), sign)

    def policy_values(self, outcomes: Outcomes, law: Values, actions: NDArray[np.int64]) -> Values:
        """Return the values of a policy, (rows, S), with what follows the last row, (rows + 1, S)."""
        values = np.zeros((self.rows + 1, outcomes.n_states))
        if self.gamma:
            values[1] = self.gamma * sweep(outcomes, law, terms(), self.gamma, (self.gamma, 1.0), owned(actions))
        backward(outcomes, law, terms(), 1.0, values, owned(actions))
        return values

    def policy_losses(
        self, outcomes: Outcomes, law: Values, tables: NDArray[np.int64], best: Values, initial: Values
    ) -> Values:
        """Return how much less than `best`, (S,), each of several policies, (K, rows, S), is worth from the start."""
        tables, nothing, found = owned(tables), terms(), np.empty(len(tables))
        if self.gamma:
            how = self.gamma, (self.gamma, 1.0)
            found[:] = [in_order(initial, best - sweep(outcomes, law, nothing, *how, table)) for table in tables]
        else:
            values = np.zeros((self.rows + 1, outcomes.n_states))
            losses(outcomes, law, nothing, tables, best, initial, values, found)
        return found

    def collect(self, outcomes: Outcomes, law: Values, may: NDArray[np.bool_], bonus: Values) -> NDArray[np.int64]:
        """Return the policy, (rows, S), that collects the largest expected sum of bonuses, (rows, S, A), of H steps."""
        actions = _written(outcomes)
        _first(_unpaid(outcomes), law, terms(may, bonus), actions)
        return actions

    def reach_values(
        self, outcomes: Outcomes, law: Values, may: NDArray[np.bool_], inside: NDArray[np.bool_]
    ) -> Values:
        """Return the most visits, times γ^t where discounted, to a set of states, (rows, S), from each state, (S,)."""
        if self.gamma:
            lengths = np.diff(outcomes.first[:: outcomes.n_actions])
            paid = outcomes._replace(reward=np.repeat(inside[0], lengths).astype(np.float64))
            return self.extreme_values(paid, law, may)
        return _first(_unpaid(outcomes), law, terms(may, after=inside.astype(np.float64)), _written(outcomes))

    def occupancy(self, outcomes: Outcomes, law: Values, actions: NDArray[np.int64], initial: Values) -> Values:
        """Return Pr[x_h = s] of a policy, (H, S), or several, (K, H, S); discounted, Σ_t γ^t Pr[x_t = s], H being 1."""
        tables = owned(actions).reshape(-1, *actions.shape[-2:])
        visits = np.zeros(tables.shape)
        if self.gamma:
            for found, table in zip(visits, tables, strict=True):
                found[0] = self.play_occupancy(outcomes, law, one_hot(table[0], outcomes.n_actions), initial)
        else:
            visits[:, 0] = initial
            walk(outcomes, law, tables, visits)
        return visits.reshape(actions.shape)

    def play_occupancy(self, outcomes: Outcomes, law: Values, play: Values, start: Values) -> Values:
        """Return Σ_t γ^t Pr[x_t = s], (S,), for play, (S, A) laws of actions; signed if start is. Discounted only."""
        return discounted_visits(outcomes, law, play, start, self.gamma)


def _written(outcomes: Outcomes, actions: NDArray[np.int64] | None = None) -> NDArray[np.int64]:
    """Where a backup writes its actions."""
    return np.zeros(outcomes.shape[:2], dtype=np.int64) if actions is None else actions


def _first(outcomes: Outcomes, law: Values, added: Terms, actions: NDArray[np.int64], sign: float = 1.0) -> Values:
    """Return the values of the first row of a finite horizon, (S,)."""
    values = np.zeros((outcomes.horizon + 1, outcomes.n_states))
    backward(outcomes, law, added, sign, values, actions)
    first: Values = values[0]
    return first


def _unpaid(outcomes: Outcomes) -> Outcomes:
    """The same table without rewards."""
    return outcomes._replace(reward=read_only(np.zeros_like(outcomes.reward)))
