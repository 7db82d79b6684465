"""TabularMDP: a validated MDP, with a horizon or discounted, and exact dynamic programming on it."""

from __future__ import annotations

import copy
import hashlib
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from reprl.errors import InputError, check_array, check_choice, check_distribution, check_int, quote, rounding_of
from reprl.mdp.criterion import Criterion
from reprl.mdp.labels import Labels, Origin
from reprl.mdp.outcomes import Outcomes
from reprl.mdp.policy import Policy, check_policy
from reprl.mdp.rows import Rows, Sparse, check_entries, dense_rows, outcome_rows, read_sizes, sparse_rows, tabulate

REWARD_KINDS = ("bernoulli", "deterministic")


class Solution(NamedTuple):
    """An optimal policy (lowest action on ties) and the optimal values, (H+1, S).

    Of a discounted world, a stationary policy and (2, S): V* and γ·V*.
    """

    policy: Policy
    values: NDArray[np.float64]


class TabularMDP:
    """An MDP with time-dependent transitions and rewards in [0, 1]; ``discounted`` gives one without an end.

    Args:
        transition: probabilities, (H, S, A, S), or (S, A, S) with ``horizon`` for a time-homogeneous MDP; or for such a
            one a matrix of scipy.sparse, (S·A, S), row s·A + a.
        reward: means in [0, 1], (H, S, A) or (S, A), either with a trailing next-state axis; (1, S, A, S) is (S, A, S).
            With sparse transitions (S, A), or a sparse matrix like them.
        initial: start distribution (S,), a state index, or None for state 0.
        horizon: H; needed with (S, A, S) transitions.
        reward_kind: "bernoulli" draws 0 or 1 with the given mean, "deterministic" pays the mean itself.
        labels: names for people; no computation reads them.
        allowed: (S, A) or (H, S, A) booleans, at least one action in every state; None for all. What transition and
            reward say of other actions is not read: nobody may take them.

    Arrays are copied, normalised row by row and write-protected. Only positive probabilities are stored.
    """

    origin: Origin | None = None
    """Set by ``make``; None for an MDP that was built by hand."""
    criterion: Criterion
    """Finite horizon or discounted; the tables of a discounted MDP hold one step. See ``discounted``."""
    _episodes: TabularMDP | None = None

    def __init__(
        self,
        transition: ArrayLike | Sparse,
        reward: ArrayLike | Sparse,
        initial: ArrayLike | int | None = None,
        horizon: int | None = None,
        reward_kind: str = "bernoulli",
        *,
        labels: Labels | None = None,
        allowed: ArrayLike | None = None,
    ) -> None:
        read = _read_sparse if hasattr(transition, "tocsr") else _read_dense
        rows, steps, mask = read(transition, reward, horizon, allowed)
        self._take(rows, steps, mask, initial, reward_kind, labels)

    @classmethod
    def from_outcomes(
        cls,
        outcomes: ArrayLike,
        *,
        n_states: int,
        n_actions: int,
        horizon: int,
        initial: ArrayLike | int | None = None,
        reward_kind: str = "deterministic",
        labels: Labels | None = None,
        allowed: ArrayLike | None = None,
    ) -> TabularMDP:
        """Build an MDP from a list of what can happen.

        Args:
            outcomes: (n, 5) rows (state, action, next state, probability, reward), or (n, 6) with the step before them.
            n_states: S.
            n_actions: A.
            horizon: H.
            initial: as for an MDP of arrays, and so are the others.
            reward_kind: by default an outcome pays its reward; one next state may come with several.
            labels: names for people.
            allowed: what may be done; cells in which nothing may happen otherwise have to be masked.
        """
        shape = read_sizes(n_states, n_actions, horizon)
        mask = None if allowed is None else _mask(allowed, (shape[2], *shape[:2]))
        mdp = cls.__new__(cls)
        mdp._take(outcome_rows(outcomes, *shape, mask), shape[2], mask, initial, reward_kind, labels)
        return mdp

    def _take(
        self,
        rows: Rows,
        horizon: int,
        mask: NDArray[np.bool_] | None,
        initial: ArrayLike | int | None,
        reward_kind: str,
        labels: Labels | None,
    ) -> None:
        """Take the content of these rows."""
        self.criterion, self.n_states, self.n_actions = Criterion(horizon), rows.n_states, rows.n_actions
        self.reward_kind = check_choice("reward_kind", reward_kind, REWARD_KINDS)
        self._mask = mask
        self.initial = _initial(initial, self.n_states)
        self.labels = (labels or Labels()).check(self.n_states, self.n_actions)
        self.outcomes, self.probability = tabulate(rows, horizon, self.reward_kind)

    def discounted(self, discount: float, length: int | None = None) -> TabularMDP:
        """Return the discounted MDP with the same dynamics: a reward counts γ times as much at each later step.

        Args:
            discount: γ.
            length: steps of an episode, for learners that sample by episodes; None for so many that what comes later
                counts less than 1 % of all.
        """
        if not self.stationary:
            raise InputError(f"an MDP must be time-homogeneous to be discounted, got {quote(self)}")
        if self._mask is not None and len(self._mask) > 1:
            raise InputError(f"allowed must not depend on the step in a discounted MDP, got {self._mask.shape}")
        self.criterion.require_horizon("an MDP must have a horizon to be discounted")
        found = Criterion.of(1, discount)
        steps = found.episode_length if length is None else check_int("length", length, 1, 10**6)
        made = self._judged_by(found)
        made._episodes = self.with_horizon(steps)
        return made

    def with_horizon(self, horizon: int) -> TabularMDP:
        """Return the same stationary MDP with another horizon."""
        if not self.stationary or (self._mask is not None and len(self._mask) > 1):
            raise InputError(f"an MDP must be time-homogeneous to change its horizon, got {quote(self)}")
        return self._judged_by(Criterion(check_int("horizon", horizon, 1, 10**6)))

    def truncated(self, horizon: int) -> TabularMDP:
        """Return the first H steps of a discounted MDP, with γ^h times the reward at step h.

        Guarantee:
            Every policy of H steps is worth, without an end, what it is worth here, and at most γ^H/(1 − γ) more.
        """
        gamma = self.criterion.require_discount(f"an MDP must be discounted to be truncated, got {quote(self)}")
        steps = check_int("horizon", horizon, 1, 10**6)
        check_entries("a world over all steps", steps * self.probability.size)
        cells, table, made = self.n_states * self.n_actions, self.outcomes, self.with_horizon(steps)
        shifts = table.first[-1] * np.arange(steps)
        first = np.append((table.first[:-1] + shifts[:, None]).ravel(), steps * table.first[-1])
        reward = (gamma ** np.arange(steps)[:, None] * table.reward).ravel()
        made.outcomes = Outcomes(steps, *table.shape[1:], cells, 0, first, np.tile(table.next_state, steps), reward)
        made.probability = np.tile(self.probability, steps)
        for array in (*made.outcomes[5:], made.probability):
            array.setflags(write=False)
        return made

    def _judged_by(self, criterion: Criterion) -> TabularMDP:
        """Return a copy with another criterion."""
        made = copy.copy(self)
        made.criterion, made.outcomes = criterion, self.outcomes._replace(horizon=criterion.rows)
        for name in ("transition", "reward", "digest", "_episodes"):  # what was derived for the old one
            made.__dict__.pop(name, None)
        return made

    @property
    def horizon(self) -> int:
        """H; 1 for a discounted MDP, whose tables hold one step."""
        return self.criterion.rows

    @property
    def discount(self) -> float | None:
        """γ; None where there is a horizon."""
        return self.criterion.discount

    @property
    def episodes(self) -> TabularMDP:
        """The MDP with a horizon that episodes are drawn from: this one, unless it is discounted."""
        return self._episodes or self

    @cached_property
    def transition(self) -> NDArray[np.float64]:
        """Dense transition probabilities, (H, S, A, S), read-only; a view of one step when time-homogeneous."""
        rows = self.outcomes.first.size - 1
        check_entries("dense transitions", rows * self.n_states)
        dense = np.zeros((rows, self.n_states))
        row = np.repeat(np.arange(rows), np.diff(self.outcomes.first))
        np.add.at(dense, (row, self.outcomes.next_state), self.probability)
        return self._by_step(dense.reshape(-1, self.n_states, self.n_actions, self.n_states))

    @cached_property
    def reward(self) -> NDArray[np.float64]:
        """Mean reward of each cell, (H, S, A), read-only."""
        mean = np.add.reduceat(self.probability * self.outcomes.reward, self.outcomes.first[:-1])
        return self._by_step(mean.reshape(-1, self.n_states, self.n_actions))

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the dynamics: equal digests, equal laws."""
        state = hashlib.sha256(f"reprl-mdp 1 {self.outcomes.shape} {self.outcomes.row_shift}\n".encode())
        if self.episodes is not self:
            state.update(f"discount {self.discount!r} length {self.episodes.horizon}\n".encode())
        if self._mask is not None:
            state.update(f"allowed {self._mask.shape}\n".encode() + np.packbits(self._mask).tobytes())
        table = self.outcomes
        for array, kind in (
            (self.initial, "<f8"),
            (table.first, "<i8"),
            (table.next_state, "<i4"),
            (table.reward, "<f8"),
            (self.probability, "<f8"),
        ):
            state.update(array.astype(kind).tobytes())
        return state.hexdigest()

    @property
    def stationary(self) -> bool:
        """Whether it was built as time-homogeneous: one law and one reward for every step."""
        return self.outcomes.row_shift == 0

    @property
    def allowed(self) -> NDArray[np.bool_] | None:
        """(H, S, A): the actions that may be taken, read-only; None if all may."""
        return None if self._mask is None else np.broadcast_to(self._mask, self.outcomes.shape)

    @property
    def fixed_start(self) -> bool:
        """Whether every episode starts in the same state."""
        return int(np.count_nonzero(self.initial)) == 1

    def solve(self) -> Solution:
        """Return an optimal policy and the optimal values by backward induction; the lowest action wins ties.

        Discounted, by value iteration until nothing moves (error at most 10⁻¹⁵/(1 − γ)).
        """
        actions = np.empty((self.horizon, self.n_states), dtype=np.int64)
        values = self.criterion.best_values(*self._law, self._may, actions)
        return Solution(Policy(self.criterion.actions(actions)), values)

    def evaluate(self, policy: Policy | ArrayLike) -> float:
        """Return the expected total reward, or discounted reward, of a policy from the initial distribution."""
        return float(self.initial @ self.values(policy)[0])

    def values(self, policy: Policy | ArrayLike) -> NDArray[np.float64]:
        """Return the expected reward to go under a policy, (H+1, S); discounted, (2, S), V^π and γ·V^π."""
        return self.criterion.policy_values(*self._law, check_policy(policy, self).table)

    def occupancy(self, policy: Policy | ArrayLike) -> NDArray[np.float64]:
        """Return Pr[x_h = s] under a policy, (H, S); discounted, Σ_t γ^t Pr[x_t = s], (1, S)."""
        return self.criterion.occupancy(*self._law, check_policy(policy, self).table, self.initial)

    def reachability(self, states: ArrayLike, policy: Policy | ArrayLike | None = None) -> float:
        """Return Σ_h Pr[x_h ∈ states_h], for a policy or, with policy=None, its maximum over all policies.

        Of a discounted world Σ_t γ^t Pr[x_t ∈ states], with states of shape (1, S).

        Args:
            states: (H, S) booleans, the set of states at each step.
            policy: whose visits to count; None for the policy that visits most.
        """
        try:
            inside = np.asarray(states)
        except ValueError:
            raise InputError(f"states must be booleans of one (H, S) shape, got {quote(states)}") from None
        if inside.shape != (self.horizon, self.n_states) or inside.dtype.kind != "b":
            allowed = f"({self.horizon}, {self.n_states})"
            raise InputError(f"states must be booleans of shape {allowed}, got {inside.dtype} of shape {inside.shape}")
        if policy is not None:
            return float((self.occupancy(policy) * inside).sum())
        return float(self.initial @ self.criterion.reach_values(*self._law, self._may, inside))

    def __repr__(self) -> str:
        sizes = f"{self.criterion.argument}, n_states={self.n_states}, n_actions={self.n_actions}"
        return f"TabularMDP({self.labels.name}, {sizes}, outcomes={self.probability.size})"

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Write-protect the arrays again: pickling forgets it."""
        self.__dict__.update(state)
        for array in (
            self.initial,
            self.probability,
            *self.outcomes[5:],
            *(() if self._mask is None else (self._mask,)),
        ):
            array.setflags(write=False)

    def __getstate__(self) -> dict[str, Any]:
        """Leave dense tables out of a pickle; they are remade when asked for."""
        return {name: value for name, value in self.__dict__.items() if name not in ("transition", "reward")}

    @property
    def _law(self) -> tuple[Outcomes, NDArray[np.float64]]:
        """The table as backups read it: one law for all steps that share their rows."""
        return self.outcomes._replace(slot_shift=0), self.probability

    @property
    def _may(self) -> NDArray[np.bool_]:
        """(1 or H, S, A): what may be done."""
        return np.ones((1, self.n_states, self.n_actions), dtype=np.bool_) if self._mask is None else self._mask

    def _by_step(self, table: NDArray[np.float64]) -> NDArray[np.float64]:
        """Give every step a view of its table; read-only."""
        view = np.broadcast_to(table, (self.horizon, *table.shape[1:]))
        view.setflags(write=False)
        return view


def _read_dense(
    transition: Any, reward: Any, horizon: int | None, allowed: Any
) -> tuple[Rows, int, NDArray[np.bool_] | None]:
    """Read arrays: what can happen, H, and the mask."""
    kernel = check_array("transition", transition, (3, 4))
    steps = _horizon(kernel, horizon)
    n_states, n_actions = _sizes(kernel)
    mask = None if allowed is None else _mask(allowed, (steps, n_states, n_actions))
    kernel = kernel if mask is None else _rest(kernel, mask)
    check_distribution("transition", kernel, rounding_of(transition))
    means = _reward_table(reward, steps, n_states, n_actions)
    means = means if mask is None else np.where(mask[..., None], means, 0.0)
    return dense_rows(kernel, means), steps, mask


def _read_sparse(
    transition: Any, reward: Any, horizon: int | None, allowed: Any
) -> tuple[Rows, int, NDArray[np.bool_] | None]:
    """Read sparse matrices: what can happen, H, and the mask."""
    if horizon is None:
        raise InputError("horizon must be given with sparse transitions, got None")
    steps = check_int("horizon", horizon, 1, 10**6)
    n_rows, n_states = transition.shape
    shape = (steps, n_states, n_rows // max(n_states, 1))
    mask = None if allowed is None else _mask(allowed, shape)
    return sparse_rows(transition, reward, mask), steps, mask


def _horizon(transition: NDArray[np.float64], horizon: int | None) -> int:
    if transition.ndim == 4:
        if horizon is not None and check_int("horizon", horizon, 1) != transition.shape[0]:
            raise InputError(f"horizon must be {transition.shape[0]}, as transition has it, got {horizon}")
        return check_int("horizon", transition.shape[0], 1)
    if horizon is None:
        raise InputError("horizon must be given with transition of shape (S, A, S), got None")
    return check_int("horizon", horizon, 1, 10**6)


def _sizes(transition: NDArray[np.float64]) -> tuple[int, int]:
    n_states, n_actions, n_next = transition.shape[-3:]
    if n_states != n_next or n_states == 0 or n_actions == 0:
        raise InputError(f"transition must have shape (H, S, A, S) or (S, A, S), none empty, got {transition.shape}")
    return n_states, n_actions


def _mask(allowed: ArrayLike, shape: tuple[int, int, int]) -> NDArray[np.bool_] | None:
    """Return which actions may be taken, (1 or H, S, A), read-only; None if all may."""
    try:
        mask = np.asarray(allowed)
    except ValueError:
        raise InputError(f"allowed must be booleans of shape (S, A) or (H, S, A), got {quote(allowed)}") from None
    if mask.dtype.kind != "b" or mask.shape not in (shape, shape[1:]):
        wanted = f"{shape[1:]} or {shape}"
        raise InputError(f"allowed must be booleans of shape {wanted}, got {mask.dtype} of shape {mask.shape}")
    none = ~mask.any(axis=-1)
    if none.any():
        where = [int(i) for i in np.argwhere(none)[0]]
        raise InputError(f"allowed{where} must hold at least one action, got none of {shape[2]}")
    if mask.all():
        return None
    mask = np.array(mask.reshape(-1, *shape[1:]))
    mask.setflags(write=False)
    return mask


def _rest(transition: NDArray[np.float64], mask: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return transitions in which masked actions stay in their state."""
    n_states = transition.shape[-1]
    stay = np.eye(n_states)[:, None, :]
    out = np.where(mask[..., None], transition.reshape(-1, *transition.shape[-3:]), stay)
    return out[0] if transition.ndim == 3 and len(mask) == 1 else out


def _reward_table(reward: ArrayLike, horizon: int, n_states: int, n_actions: int) -> NDArray[np.float64]:
    """Return reward means as (steps, S, A, 1 or S) with steps 1 or H."""
    means = check_array("reward", reward, (2, 3, 4))
    cell = (n_states, n_actions)
    forms = {cell: (1, *cell, 1), (horizon, *cell): (horizon, *cell, 1)}
    full = {(*cell, n_states): (1, *cell, n_states), (horizon, *cell, n_states): (horizon, *cell, n_states)}
    full[1, *cell, n_states] = (1, *cell, n_states)
    if means.shape in forms and means.shape in full:
        raise InputError(
            f"reward of shape {means.shape} could be (H, S, A) or (S, A, S'): give it as (H, S, A, S') or (1, S, A, S')"
        )
    shape = {**forms, **full}.get(means.shape)
    if shape is None:
        allowed = ", ".join(map(str, [*forms, *full]))
        raise InputError(f"reward must have one of the shapes {allowed}, got {means.shape}")
    if means.min() < 0.0 or means.max() > 1.0:
        where = tuple(int(i) for i in np.argwhere((means < 0.0) | (means > 1.0))[0])
        raise InputError(f"reward{list(where)} must lie in [0, 1], got {means[where]:g}")
    return means.reshape(shape)


def _initial(initial: ArrayLike | int | None, n_states: int) -> NDArray[np.float64]:
    if initial is None or np.isscalar(initial) or (isinstance(initial, np.ndarray) and initial.ndim == 0):
        start = np.zeros(n_states)
        start[0 if initial is None else check_int("initial", initial, 0, n_states - 1)] = 1.0
    else:
        start = check_distribution("initial", check_array("initial", initial, 1), rounding_of(initial))
        if start.shape != (n_states,):
            raise InputError(f"initial must have shape ({n_states},), got {start.shape}")
        start = start / start.sum()
    start.setflags(write=False)
    return start
