"""Audits of a recipe: which learner its runs are, where they sample, and what the runs of a pair share."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Annotated, Any, NamedTuple

from reprl.artifacts.folder import load_recipe
from reprl.artifacts.recipe import Recipe
from reprl.artifacts.search import SearchRecipe
from reprl.errors import InputError, refuse
from reprl.learning.learner import ReprlLearner
from reprl.mdp.tabular import TabularMDP
from reprl.sources.gymnasium.model import GymnasiumModel
from reprl.storage import fields as f

WHY = "for a recipe, which says it"
_SIZES = ("samples", "max_samples")
"""Options that a recipe does not say."""
_FRESH = "two runs with this recipe's settings, for a random shared seed; its own seed is not used"


class Audited(NamedTuple):
    """The recipe whose runs were audited."""

    digest: Annotated[str, f.SHA256]
    about: Annotated[str, f.printable()]
    """What test and interval are about."""


class Plan(NamedTuple):
    """What the runs of a recipe are, in an audit."""

    env: TabularMDP | GymnasiumModel
    learner: ReprlLearner
    recipe: Audited


def find_recipe(env: Any, learner: Any) -> tuple[Recipe, Any] | None:
    """Return the recipe that is given as environment or as learner, and the environment given beside it, if any."""
    for given, beside in ((env, None), (learner, env)):
        recipe = read_recipe(given)
        if recipe is not None:
            refuse(WHY, learner=None if given is learner or learner == ReprlLearner.name else learner)
            return recipe, beside
    return None


def read_recipe(given: Any) -> Recipe | None:
    """Return a recipe, also by the path of its file, a str that ends in .json or an ``os.PathLike``; None for others.

    A recipe that no audit can run is refused.
    """
    if isinstance(given, os.PathLike) or (isinstance(given, str) and given.endswith(".json")):
        given = load_recipe(given)
    if isinstance(given, SearchRecipe):
        how = "audit its environment with the same options (reprl audit ENV --target RETURN)"
        raise InputError(f"recipe must be of a table of actions to be audited, got that of a search: {how}")
    if not isinstance(given, Recipe):
        return None
    if given.of_log:
        raise InputError(
            f"recipe must be of an environment to be audited, got that of a log ({given.environment.title}): every run "
            "of an audit draws new data"
        )
    return given


def follow_recipe(recipe: Recipe, env: Any, options: Mapping[str, Any]) -> Plan:
    """Return what an audit of a recipe runs.

    env is None where the recipe names it; only the sizes may be options.
    """
    refuse(WHY, **{name: value for name, value in options.items() if name not in _SIZES})
    if recipe.environment.id is None and env is None:
        raise InputError(
            "recipe environment.id must name an environment, got null: this one was built by hand, pass it as env, and "
            "the recipe as learner"
        )
    sizes: dict[str, Any] = {name: options.get(name) for name in _SIZES}
    return Plan(recipe.make(env), ReprlLearner(recipe.settings, **sizes), Audited(recipe.digest, _FRESH))
