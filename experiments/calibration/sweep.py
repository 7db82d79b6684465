"""The sweep as data: which worlds calibrate the generative learner, which are held out, and which fill the table."""

from __future__ import annotations

from experiments.calibration.pairs import Setting, setting


def hard(
    n_states: int,
    horizon: int,
    epsilon: float,
    reach: float,
    *,
    seed: int = 0,
    n_actions: int | None = None,
    **how: str,
) -> Setting:
    """The lower bound's MDP with its gap at a fraction `reach` of the window ε/H inside which arms are drawn.

    Two coins of mean (2 ± bias)/3 are 2·bias/3 apart.
    """
    bias = round(1.5 * reach * epsilon / horizon, 6)
    options = {"n_states": n_states, "horizon": horizon, "bias": bias, "seed": seed}
    more = {} if n_actions is None else {"n_actions": n_actions}
    return setting("hard-instance-v0", options | more, epsilon, **how)


def random(
    n_states: int, n_actions: int, horizon: int, seed: int, epsilon: float, support: int | None = None, **how: str
) -> Setting:
    """A random MDP."""
    options = {"n_states": n_states, "n_actions": n_actions, "horizon": horizon, "seed": seed}
    return setting("random-mdp-v0", options | ({} if support is None else {"support": support}), epsilon, **how)


def _named() -> list[Setting]:
    """The worlds with a story, at a small and a large accuracy."""
    worlds: list[tuple[str, dict[str, float]]] = [
        ("gridworld-v0", {"size": 3, "horizon": 4}),
        ("gridworld-v0", {"size": 4, "horizon": 6}),
        ("gridworld-v0", {"size": 4, "horizon": 12}),
        ("gridworld-v0", {"size": 5, "horizon": 8}),
        ("two-goals-v0", {"size": 5, "horizon": 6}),
        ("two-goals-v0", {"size": 5, "horizon": 8, "slip": 0.2}),
        ("combination-lock-v0", {"n_states": 10, "n_actions": 3, "horizon": 10}),
        ("river-swim-v0", {"n_states": 6, "horizon": 20}),
        ("inventory-v0", {"capacity": 3, "horizon": 4}),
        ("inventory-v0", {"capacity": 5, "horizon": 8}),
        ("maintenance-v0", {"n_states": 4, "horizon": 6}),
        ("maintenance-v0", {"n_states": 6, "horizon": 12}),
        ("queue-admission-v0", {"capacity": 3, "horizon": 6}),
        ("queue-admission-v0", {"capacity": 5, "horizon": 10}),
    ]
    return [setting(world, options, epsilon) for world, options in worlds for epsilon in (0.3, 1.0)]


CALIBRATION: list[Setting] = [
    *(hard(16, 3, 0.6, reach) for reach in (0.5, 0.67, 0.8, 0.9, 1.0)),
    *(hard(n_states, 3, 0.6, 0.8) for n_states in (4, 40, 80)),
    *(hard(16, horizon, round(0.1 * horizon, 3), 0.8) for horizon in (1, 2, 6, 10)),
    *(hard(16, 3, epsilon, 0.8) for epsilon in (0.1, 0.3, 1.0)),
    *(random(10, n_actions, 3, seed, 0.6) for n_actions in (2, 4, 8, 16) for seed in (0, 1)),
    *(random(10, 4, 3, seed, epsilon) for seed in (0, 1) for epsilon in (0.3, 1.0)),
    *(random(20, 4, 5, 2, epsilon) for epsilon in (0.3, 1.0)),
    *(random(10, 3, 10, 4, epsilon) for epsilon in (0.3, 1.0)),
    random(40, 4, 5, 3, 1.0),
    *_named(),
    *(hard(n_states, 3, 0.6, 0.8, coupling="product") for n_states in (4, 16, 40)),
    hard(16, 3, 0.6, 0.5, coupling="product"),
    hard(16, 6, 0.6, 0.8, coupling="product"),
    *(hard(n_states, 3, 0.6, 0.8, n_actions=4, coupling="product") for n_states in (4, 16)),
    hard(16, 3, 0.6, 0.8, n_actions=4),
    *(random(10, n_actions, 3, 0, 0.6, coupling="product") for n_actions in (2, 8)),
    random(20, 4, 5, 2, 1.0, coupling="product"),
    setting("gridworld-v0", {"size": 4, "horizon": 6}, 0.3, coupling="product"),
    setting("gridworld-v0", {"size": 4, "horizon": 6}, 1.0, coupling="product"),
    setting("inventory-v0", {"capacity": 5, "horizon": 8}, 1.0, coupling="product"),
    setting("maintenance-v0", {"n_states": 6, "horizon": 12}, 1.0, coupling="product"),
    setting("queue-admission-v0", {"capacity": 5, "horizon": 10}, 0.3, coupling="product"),
]
"""Where the constants come from: every world of the catalogue, and the lower bound's at its least favourable biases."""

QUICK: list[Setting] = [hard(4, 2, 0.4, 0.8), random(5, 2, 2, 0, 0.6)]
"""Two small settings, for a run that only shows that everything works."""

_OTHERS: list[Setting] = [
    setting("gridworld-v0", {"size": 3, "horizon": 8}, 0.5),
    setting("gridworld-v0", {"size": 5, "horizon": 6}, 0.2),
    setting("gridworld-v0", {"size": 4, "horizon": 5, "slip": 0.4}, 1.0),
    setting("two-goals-v0", {"size": 3, "horizon": 5, "slip": 0.1}, 0.4),
    setting("combination-lock-v0", {"n_states": 8, "n_actions": 4, "horizon": 8, "seed": 3}, 0.3),
    setting("river-swim-v0", {"n_states": 8, "horizon": 15}, 0.8),
    setting("inventory-v0", {"capacity": 4, "horizon": 5, "demand": 6}, 0.5),
    setting("inventory-v0", {"capacity": 7, "horizon": 6}, 1.0),
    setting("maintenance-v0", {"n_states": 8, "horizon": 8, "wear": 0.3}, 0.8),
    setting("queue-admission-v0", {"capacity": 8, "horizon": 8, "arrival": 0.7}, 0.1),
]
_LAWLESS: list[Setting] = [
    hard(12, 4, 0.5, 0.85, seed=7),
    hard(24, 2, 0.3, 0.75, seed=5),
    hard(8, 7, 1.0, 0.8, seed=9),
    random(15, 3, 4, 11, 0.5),
    random(8, 6, 6, 12, 0.3),
    random(25, 2, 5, 13, 1.0),
    random(12, 4, 4, 14, 0.2, support=3),
    random(6, 12, 3, 15, 0.8),
]
HELD_OUT: list[tuple[Setting, float]] = [
    *((what, 0.1) for what in _OTHERS),
    *((what, rho) for what in _LAWLESS for rho in (0.05, 0.1, 0.2)),
    (hard(50, 2, 0.5, 0.8, seed=6), 0.1),
    *((random(6, n_actions, 3, seed, 0.8), 0.1) for n_actions in (32, 64) for seed in (21, 22)),
    (hard(12, 4, 0.5, 0.85, seed=7, coupling="product"), 0.1),
    (hard(24, 2, 0.3, 0.75, seed=5, coupling="product"), 0.1),
    (random(15, 3, 4, 11, 0.5, coupling="product"), 0.1),
    (random(25, 2, 5, 13, 1.0, coupling="product"), 0.2),
    (random(6, 12, 3, 15, 0.8, coupling="product"), 0.05),
    (setting("gridworld-v0", {"size": 3, "horizon": 8}, 0.5, coupling="product"), 0.1),
    (setting("inventory-v0", {"capacity": 4, "horizon": 5, "demand": 6}, 0.5, coupling="product"), 0.1),
]
"""Other seeds, sizes, accuracies and options, each with the ρ that is asked for."""

TABLE_WORLDS: dict[str, tuple[str, dict[str, float]]] = {
    "gridworld, 4×4, H=6": ("gridworld-v0", {"size": 4, "horizon": 6}),
    "random MDP, S=10, A=4, H=3": ("random-mdp-v0", {"n_states": 10, "n_actions": 4, "horizon": 3}),
    "hard instance, S=16, H=3": ("hard-instance-v0", {"n_states": 16, "horizon": 3}),
    "hard instance, bias 0, S=16, H=3": ("hard-instance-v0", {"n_states": 16, "horizon": 3, "bias": 0.0}),
}
TABLE_LEARNERS: dict[str, dict[str, str]] = {
    "compact, joint": {"mechanism": "compact", "coupling": "joint"},
    "compact, product": {"mechanism": "compact", "coupling": "product"},
    "exponential, joint": {"mechanism": "exponential", "coupling": "joint"},
    "exponential, product": {"mechanism": "exponential", "coupling": "product"},
    "greedy": {"coupling": "greedy"},
}
TABLE_EPSILON = 0.3
TABLE_RHO = 0.1
