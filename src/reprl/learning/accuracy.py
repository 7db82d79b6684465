"""ε in other units than those of values: the rewards' own, or a share of what there is to win."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, get_args

from reprl.canonical.gaps import TIE, value_spread
from reprl.errors import InputError, check_choice, check_real, quote
from reprl.mdp.dynamics import true_dynamics
from reprl.mdp.tabular import TabularMDP
from reprl.sources.environment import Environment, describe
from reprl.sources.gymnasium.model import GymnasiumModel

EpsilonUnits = Literal["rescaled", "original", "spread"]
EPSILON_UNITS = get_args(EpsilonUnits)
"""Values, of rewards in [0, 1]; the rewards' own units; a share of the way from the worst policy to the best."""


def with_rescaled_epsilon(
    options: Mapping[str, Any], world: TabularMDP | GymnasiumModel | Environment
) -> dict[str, Any]:
    """Return options without epsilon_units and with ε in the units of values, which settings and recipes know alone.

    No sample of the world is drawn; a share of the spread needs its dynamics.
    """
    own = {name: value for name, value in options.items() if name != "epsilon_units"}
    units = check_choice("epsilon_units", options.get("epsilon_units", "rescaled"), EPSILON_UNITS)
    if units == "rescaled":
        return own
    if own.get("epsilon") is None:
        raise InputError(f"epsilon must be given with epsilon_units={units!r}, got none")
    return {**own, "epsilon": rescale_epsilon(own["epsilon"], units, world)}


def rescale_epsilon(epsilon: float, units: str, world: TabularMDP | GymnasiumModel | Environment) -> float:
    """Return ε in the units of values, where every reward lies in [0, 1].

    Args:
        epsilon: in `units`.
        units: "rescaled" gives it back; "original" divides it by the width of the reward range; "spread" multiplies it
            with the difference between the best and the worst policy, rounded to six digits, so that the last bits of
            a computation are in no recipe.
        world: whose reward range, or whose dynamics, are known before any data are drawn.
    """
    check_choice("epsilon_units", units, EPSILON_UNITS)
    if units == "original":
        return _from_original(epsilon, world if isinstance(world, Environment) else describe(world))
    if units == "spread":
        return _from_share(epsilon, world)
    return epsilon


def _from_original(epsilon: float, place: Environment) -> float:
    low, high = place.units
    check_real("epsilon", epsilon, 0.0, float("inf"))
    most = place.criterion.effective_horizon * (high - low)
    if epsilon > most:
        raise InputError(
            f"epsilon must lie in (0, {most:g}] in the rewards' own units, as rewards over {place.criterion} lie "
            f"between {low:g} and {high:g} each, got {epsilon:g}"
        )
    return float(epsilon) / (high - low)


def _from_share(share: float, world: TabularMDP | GymnasiumModel | Environment) -> float:
    if not isinstance(world, TabularMDP):
        whom = world.title if isinstance(world, Environment) else quote(world)
        raise InputError(
            "epsilon_units must be 'rescaled' or 'original' where the dynamics are not known beforehand, so that "
            f"nobody can say what the best policy is worth more than the worst, got 'spread' for {whom}"
        )
    check_real("epsilon, as a share of the spread,", share, 0.0, 1.0)
    spread = value_spread(true_dynamics(world))
    if spread <= TIE:
        raise InputError(
            "epsilon_units must be 'rescaled' or 'original' for an environment in which all policies are worth the "
            "same, got 'spread'"
        )
    return float(f"{share * spread:.6g}")
