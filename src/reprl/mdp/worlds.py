"""The builders of the catalogue: one pure function for each environment.

The defaults of a builder are the options of its catalogue id. A published id is a promise: the same options give the
same arrays for ever, so no builder calls a transcendental function or a generator whose stream may change. A change of
behaviour is a new id.
"""

from __future__ import annotations

import hashlib
from math import comb

import numpy as np
from numpy.typing import ArrayLike, NDArray

from reprl.errors import InputError, check_array, check_int, check_real
from reprl.mdp.labels import Labels, RewardMap
from reprl.mdp.rows import MAX_ENTRIES, check_entries
from reprl.mdp.tabular import TabularMDP
from reprl.randomness import fill_words

ARROWS = ("↑", "→", "↓", "←")
_MOVES = ((-1, 0), (0, 1), (1, 0), (0, -1))

Array = NDArray[np.float64]


def random_mdp(
    horizon: int = 5,
    *,
    n_states: int = 10,
    n_actions: int = 3,
    seed: int = 0,
    support: int | None = None,
    stationary: bool = True,
) -> TabularMDP:
    """Every cell leads to `support` random states with flat Dirichlet weights; Bernoulli rewards of uniform mean.

    Randomness:
        The catalogue's own stream, addressed by (seed, part, step): a smaller horizon is a prefix of a larger one.
    """
    horizon = check_int("horizon", horizon, 1, 10**6)
    n_actions, n_states = _size("n_actions", n_actions), _size("n_states", n_states)
    width = n_states if support is None else check_int("support", support, 1, n_states)
    if not isinstance(stationary, bool):
        raise InputError(f"stationary must be True or False, got {stationary!r}")
    steps = 1 if stationary else horizon
    kernel = blank(n_states, n_actions, steps)
    reward = np.empty((steps, n_states, n_actions, 1))
    rows = n_states * n_actions
    for h in range(steps):
        place = ("random-mdp-v0", seed, h)
        order = _uniforms(rows * n_states, *place, "support").reshape(rows, n_states).argsort(axis=1, kind="stable")
        # The gaps between sorted uniforms are flat Dirichlet, without a logarithm.
        cuts = np.sort(_uniforms(rows * (width - 1), *place, "transition").reshape(rows, width - 1), axis=1)
        weights = np.diff(cuts, axis=1, prepend=0.0, append=1.0)
        np.put_along_axis(kernel[h].reshape(rows, n_states), order[:, :width], weights, axis=1)
        reward[h] = _uniforms(rows, *place, "reward").reshape(n_states, n_actions, 1)
    labels = Labels(states=_numbered("s", n_states), actions=_numbered("a", n_actions))
    return TabularMDP(kernel[0] if stationary else kernel, _spread(reward, n_states), 0, horizon, labels=labels)


def gridworld(horizon: int = 6, *, size: int = 4, slip: float = 0.2) -> TabularMDP:
    """A slippery square: from one corner to the opposite one, where every step that ends there pays 1."""
    size = _size("size", size, 2)
    cells = size * size
    kernel, reward = _grid(size, slip, goals=(cells - 1,))
    return TabularMDP(kernel, reward, 0, horizon, "deterministic", labels=_grid_labels(size, 0, (cells - 1,)))


def two_goals(horizon: int = 6, *, size: int = 5, slip: float = 0.0, chance: float = 0.5) -> TabularMDP:
    """From the centre of a square to either of two corners; a step that ends in one pays 1 with probability chance."""
    size = _size("size", size, 3)
    if size % 2 == 0:
        raise InputError(f"size must be odd, so that the square has a centre, got {size}")
    mean = check_real("chance", chance, 0.0, 1.0, open_high=False)
    goals = (0, size * size - 1)
    kernel, reward = _grid(size, slip, goals)
    start = size * size // 2
    return TabularMDP(kernel, reward * mean, start, horizon, labels=_grid_labels(size, start, goals))


def combination_lock(horizon: int = 10, *, n_states: int = 10, n_actions: int = 3, seed: int = 0) -> TabularMDP:
    """One action of each state turns the lock on, all others reset it; the last state pays 1 a step.

    Randomness:
        The code is read from the catalogue's own stream at (seed, "code").
    """
    n_states, n_actions = _size("n_states", n_states, 2), _size("n_actions", n_actions, 2)
    kernel = blank(n_states, n_actions)[0]
    code = (_uniforms(n_states - 1, "combination-lock-v0", seed, "code") * n_actions).astype(np.int64)
    kernel[:-1, :, 0] = 1.0
    kernel[np.arange(n_states - 1), code] = np.eye(n_states)[1:]
    kernel[-1, :, -1] = 1.0
    reward = np.zeros((n_states, n_actions))
    reward[-1] = 1.0
    labels = Labels(states=(*_numbered("pin ", n_states - 1), "open"), actions=_numbered("digit ", n_actions))
    return TabularMDP(kernel, _spread(reward, n_states), 0, horizon, "deterministic", labels=labels)


def river_swim(horizon: int = 20, *, n_states: int = 6) -> TabularMDP:
    """A river: drifting left is certain and pays 0.005 at the bank, right is slow and pays 1 at the far end."""
    n = _size("n_states", n_states, 3)
    kernel = blank(n, 2)[0]
    for s in range(n):
        kernel[s, 0, max(s - 1, 0)] = 1.0
        kernel[s, 1, max(s - 1, 0)] += 0.05
        kernel[s, 1, s] += 0.6
        kernel[s, 1, min(s + 1, n - 1)] += 0.35
    reward = np.zeros((n, 2))
    reward[0, 0], reward[-1, 1] = 0.005, 1.0
    names = ("left bank", *(f"metre {s}" for s in range(1, n - 1)), "right bank")
    labels = Labels(states=names, actions=("←", "→"), grid=(1, n))
    return TabularMDP(kernel, _spread(reward, n), 0, horizon, "deterministic", labels=labels)


def inventory(
    horizon: int = 8, *, capacity: int = 5, demand: int = 4, price: float = 4.0, cost: float = 2.0, holding: float = 1.0
) -> TabularMDP:
    """A shelf: order overnight, sell to a binomial number of customers by day, pay for what is ordered and kept."""
    capacity, demand = _size("capacity", capacity), check_int("demand", demand, 1, 60)
    price, cost, holding = (
        check_real(name, value, 0.0, 1e9, open_low=False)
        for name, value in (("price", price), ("cost", cost), ("holding", holding))
    )
    n = capacity + 1
    kernel = blank(n, n)[0]
    profit = np.full(kernel.shape, np.nan)
    for stock, order, wanted in np.ndindex(n, n, demand + 1):
        shelf = min(stock + order, capacity)
        left = max(shelf - wanted, 0)
        kernel[stock, order, left] += comb(demand, wanted) / 2**demand
        profit[stock, order, left] = price * (shelf - left) - cost * (shelf - stock) - holding * left
    reward, units = _rescale(profit)
    labels = Labels(
        states=tuple(f"{s} on the shelf" for s in range(n)), actions=_numbered("order ", n), reward_map=units
    )
    return TabularMDP(kernel, reward, 0, horizon, "deterministic", labels=labels)


def maintenance(horizon: int = 12, *, n_states: int = 6, wear: float = 0.5, service: float = 0.25) -> TabularMDP:
    """A machine that earns less as it wears: operate it, service it for part of a day's output, or replace it."""
    n = _size("n_states", n_states, 2)
    wear = check_real("wear", wear, 0.0, 1.0, open_low=False, open_high=False)
    output = check_real("service", service, 0.0, 1.0, open_low=False, open_high=False)
    kernel = blank(n, 3)[0]
    reward = np.zeros((n, 3))
    broken = n - 1
    for s in range(n):
        kernel[s, 0, s] += 1.0 - wear
        kernel[s, 0, min(s + 1, broken)] += wear
        kernel[s, 1, s if s == broken else max(s - 2, 0)] = 1.0
        kernel[s, 2, 0] = 1.0
        reward[s, 0] = (broken - s) / broken
        reward[s, 1] = 0.0 if s == broken else output
    names = ("new", *(f"wear {s}" for s in range(1, broken)), "broken")
    labels = Labels(states=names, actions=("operate", "service", "replace"))
    return TabularMDP(kernel, _spread(reward, n), 0, horizon, labels=labels)


def queue_admission(
    horizon: int = 10,
    *,
    capacity: int = 5,
    arrival: float = 0.5,
    service: float = 0.5,
    fee: float = 1.0,
    holding: float = 0.25,
) -> TabularMDP:
    """A waiting room: admit the customer at the door for a fee or turn them away; everyone inside costs by the step."""
    capacity = _size("capacity", capacity)
    arrival = check_real("arrival", arrival, 0.0, 1.0, open_low=False, open_high=False)
    service = check_real("service", service, 0.0, 1.0, open_low=False, open_high=False)
    fee = check_real("fee", fee, 0.0, 1e9, open_low=False)
    holding = check_real("holding", holding, 0.0, 1e9, open_low=False)
    n = 2 * (capacity + 1)
    kernel = blank(n, 2)[0]
    profit = np.empty((n, 2))
    for inside, door, action in np.ndindex(capacity + 1, 2, 2):
        s = 2 * inside + door
        admitted = int(door == 1 and action == 0 and inside < capacity)
        waiting = inside + admitted
        profit[s, action] = fee * admitted - holding * waiting
        for served, chance in ((1, service), (0, 1.0 - service)):
            after = 2 * max(waiting - served, 0)
            kernel[s, action, after] += chance * (1.0 - arrival)
            kernel[s, action, after + 1] += chance * arrival
    reward, units = _rescale(profit)
    names = tuple(
        f"{k} inside, {'one' if door else 'none'} at the door" for k in range(capacity + 1) for door in (0, 1)
    )
    labels = Labels(states=names, actions=("admit", "reject"), reward_map=units)
    return TabularMDP(kernel, _spread(reward, n), 0, horizon, "deterministic", labels=labels)


def gambler(horizon: int = 20, *, goal: int = 16, start: int = 6, win: float = 0.4) -> TabularMDP:
    """Stake coins on a toss that wins with a given chance, as many as you have and still need; the goal pays 1.

    The textbook's gambler (Sutton and Barto, example 4.3): where the coin is against you, many stakes are equally good,
    and which one a solver prints is decided by rounding.
    """
    goal = check_int("goal", goal, 2)
    start = check_int("start", start, 1, goal - 1)
    chance = check_real("win", win, 0.0, 1.0)
    stakes = goal // 2
    check_entries("a dense MDP (steps·S·A·S)", stakes * (goal + 1) ** 2)
    rows: list[tuple[float, ...]] = []
    for capital in range(goal + 1):
        most = min(capital, goal - capital)
        for stake in range(1, most + 1):
            rows.append((capital, stake - 1, capital + stake, chance, float(capital + stake == goal)))
            rows.append((capital, stake - 1, capital - stake, 1.0 - chance, 0.0))
        if most == 0:
            rows.append((capital, 0, capital, 1.0, 0.0))
    allowed = np.arange(stakes) < np.maximum(1, np.minimum(np.arange(goal + 1), goal - np.arange(goal + 1)))[:, None]
    names = ("broke", *(f"{capital} coins" for capital in range(1, goal)), "rich")
    labels = Labels(states=names, actions=tuple(f"stake {k + 1}" for k in range(stakes)), grid=(1, goal + 1))
    return TabularMDP.from_outcomes(
        rows, n_states=goal + 1, n_actions=stakes, horizon=horizon, initial=start, labels=labels, allowed=allowed
    )


def hard_instance(biases: ArrayLike, n_actions: int = 2) -> TabularMDP:
    """The lower-bound MDP: uniform transitions and start; actions 0 and 1 have mean reward ±biases, the others −2.

    Args:
        biases: p, (H, S) in [−1, 1].
        n_actions: A ≥ 2; action 0 is a₊, action 1 is a₋.

    Guarantee:
        Rewards are mapped from [−2, 1] to [0, 1], so a policy with v = ±1 for a₊, a₋ has value
        (2H + (1/S) Σ v·p)/3, and a gap of ε here is 3ε there. Rewards are drawn 0 or 1 with the mapped mean; one such
        draw needs one Rademacher(p) draw (pay 1 on +1, pay 1 with probability 1/3 on −1), so the reduction stands.
    """
    p = check_array("biases", biases, 2)
    if p.size == 0 or np.abs(p).max() > 1.0:
        raise InputError(
            f"biases must be (H, S) numbers in [-1, 1], got shape {p.shape}, up to {np.abs(p).max(initial=0)}"
        )
    horizon, n_states = p.shape
    n_actions = _size("n_actions", n_actions, 2)
    check_entries("a dense MDP (steps·S·A·S)", horizon * n_actions * n_states**2)
    kernel = blank(n_states, n_actions)[0] + 1.0 / n_states
    reward = np.zeros((horizon, n_states, n_actions))
    reward[:, :, 0] = (2.0 + p) / 3.0
    reward[:, :, 1] = (2.0 - p) / 3.0
    actions = ("a₊", "a₋", *(f"a⊥{k}" for k in range(1, n_actions - 1)))
    labels = Labels(states=_numbered("s", n_states), actions=actions, reward_map=RewardMap(-2.0, 1.0))
    start = np.full(n_states, 1.0 / n_states)
    return TabularMDP(kernel, _spread(reward, n_states), start, horizon, labels=labels)


def seeded_hard_instance(
    horizon: int | None = None,
    *,
    n_states: int | None = None,
    n_actions: int = 2,
    bias: float = 0.2,
    seed: int = 0,
    biases: ArrayLike | None = None,
) -> TabularMDP:
    """The hard instance with |p| = bias and signs from a seed (4 states, horizon 3), or with all biases (H, S) given.

    Randomness:
        The signs are read from the catalogue's own stream at (seed, "signs").
    """
    if biases is not None:
        table = check_array("biases", biases, 2)
        for name, value, actual in (("horizon", horizon, table.shape[0]), ("n_states", n_states, table.shape[1])):
            if value is not None and value != actual:
                raise InputError(f"{name} must be {actual}, as biases has it, got {value!r}")
        return hard_instance(table, n_actions)
    size = check_real("bias", bias, 0.0, 1.0, open_low=False, open_high=False)
    steps = check_int("horizon", 3 if horizon is None else horizon, 1, 10**6)
    states = _size("n_states", 4 if n_states is None else n_states)
    check_entries("a dense MDP (steps·S·A·S)", steps * _size("n_actions", n_actions, 2) * states**2)
    signs = np.where(_uniforms(steps * states, "hard-instance-v0", seed, "signs") < 0.5, -1.0, 1.0)
    return hard_instance(size * signs.reshape(steps, states), n_actions)


def blank(n_states: int, n_actions: int, steps: int = 1) -> Array:
    """Return zeros (steps, S, A, S), or refuse a table that would not fit in memory."""
    check_entries("a dense MDP (steps·S·A·S)", steps * n_actions * n_states**2)
    return np.zeros((steps, n_states, n_actions, n_states))


def _size(name: str, value: object, low: int = 1) -> int:
    """Return a number of states or actions, or of what makes them, that no table could exceed."""
    return check_int(name, value, low, MAX_ENTRIES)


def _numbered(stem: str, n: int) -> tuple[str, ...]:
    return tuple(f"{stem}{i}" for i in range(n))


def _spread(reward: Array, n_states: int) -> Array:
    """Give rewards of cells, (S, A), (H, S, A) or either with a last axis of 1, all axes (1 or H, S, A, S)."""
    cells = reward if reward.ndim == 4 else reward[..., None]
    cells = cells if cells.ndim == 4 else cells[None]
    return np.broadcast_to(cells, (*cells.shape[:3], n_states))


def _rescale(profit: Array) -> tuple[Array, RewardMap]:
    """Map money to [0, 1] over its range; NaN marks what cannot happen and becomes 0."""
    low, high = float(np.nanmin(profit)), float(np.nanmax(profit))
    units = RewardMap(low, high if high > low else low + 1.0)
    reward = np.nan_to_num((profit - units.low) / (units.high - units.low), nan=0.0)
    return (reward[None] if reward.ndim == 3 else reward), units


def _grid(size: int, slip: float, goals: tuple[int, ...]) -> tuple[Array, Array]:
    """Moves on a square that slip to either side; walls stop them; goals hold, and pay 1 for a step that ends there."""
    slip = check_real("slip", slip, 0.0, 1.0, open_low=False, open_high=False)
    cells = size * size
    kernel = blank(cells, 4)
    for s, a in np.ndindex(cells, 4):
        for turn, chance in ((0, 1.0 - slip), (1, slip / 2), (3, slip / 2)):
            down, right = _MOVES[(a + turn) % 4]
            row = min(max(s // size + down, 0), size - 1)
            column = min(max(s % size + right, 0), size - 1)
            kernel[0, s, a, s if s in goals else row * size + column] += chance
    reward = np.zeros((1, cells, 4, cells))
    reward[..., list(goals)] = 1.0
    return kernel[0], reward


def _grid_labels(size: int, start: int, goals: tuple[int, ...]) -> Labels:
    special = {start: "start", **dict.fromkeys(goals, "goal")}
    cells = range(size * size)
    places = (f"{s // size},{s % size}" + (f" {special[s]}" if s in special else "") for s in cells)
    return Labels(states=tuple(places), actions=ARROWS, grid=(size, size))


def _uniforms(n: int, world: str, seed: int, *part: str | int) -> Array:
    """Return n draws of the catalogue's stream: Philox under a digest of the address, the same in every release."""
    seed = check_int("seed", seed, 0, 2**64 - 1)
    address = " ".join(map(str, (world, seed, *part)))
    digest = hashlib.blake2b(address.encode(), digest_size=16, person=b"reprl-catalogue").digest()
    words = np.empty(n, dtype=np.uint64)
    key, lane = (np.uint64(int.from_bytes(half, "little")) for half in (digest[:8], digest[8:]))
    fill_words(key, lane, np.uint64(0), words)
    return ((words >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53
