"""ε in the units of an environment's own rewards, at the border: inside, rewards lie in [0, 1]."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reprl.errors import InputError, check_real
from reprl.mdp.tabular import TabularMDP
from reprl.sources.environment import Environment, describe
from reprl.sources.gymnasium.model import GymnasiumModel


def with_rescaled_epsilon(
    options: Mapping[str, Any], world: TabularMDP | GymnasiumModel | Environment
) -> dict[str, Any]:
    """Return options with ε, if it is given, in the units of values, which settings and recipes know alone."""
    if options.get("epsilon") is None:
        return dict(options)
    return {**options, "epsilon": rescale_epsilon(options["epsilon"], world)}


def rescale_epsilon(epsilon: float, world: TabularMDP | GymnasiumModel | Environment) -> float:
    """Return ε over the width of the reward range."""
    place = world if isinstance(world, Environment) else describe(world)
    check_real("epsilon", epsilon, 0.0, float("inf"))
    low, high = place.units
    if (low, high) == (0.0, 1.0):
        return float(epsilon)
    most = place.criterion.effective_horizon * (high - low)
    if epsilon > most:
        raise InputError(
            f"epsilon must lie in (0, {most:g}] in the rewards' own units, as rewards over {place.criterion} lie "
            f"between {low:g} and {high:g} each, got {epsilon:g}"
        )
    return float(epsilon) / (high - low)
