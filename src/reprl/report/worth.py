"""Worth where the environment can be known: the exact values of a stored policy, the best one and the baseline."""

from __future__ import annotations

from reprl.artifacts.folder import StoredRun
from reprl.artifacts.recipe import Recipe
from reprl.errors import ReprlError
from reprl.learning.baseline import exact_baseline
from reprl.learning.worth import Worth, baseline_name
from reprl.mdp.catalogue import PREFIX
from reprl.mdp.environment import describe
from reprl.mdp.policy import Policy, check_policy
from reprl.mdp.tabular import TabularMDP
from reprl.sources.gymnasium.model import GymnasiumModel


def worth_of(run: StoredRun, env: TabularMDP | GymnasiumModel | None = None) -> Worth | None:
    """Return what a run's policy is worth; None where the environment is a black box or not known.

    env is None to open a small one of the catalogue; no file decides what else is opened here.
    """
    id = run.recipe.environment.id
    if env is None and (id is None or id.startswith(PREFIX)):
        return None
    try:
        world = run.recipe.make_small() if env is None else run.recipe.make(env)
    except ReprlError:
        if env is not None:
            raise
        return None
    return exact_worth(run.recipe, world, check_policy(run.policy, world)) if isinstance(world, TabularMDP) else None


def exact_worth(recipe: Recipe, world: TabularMDP, policy: Policy) -> Worth:
    """Return what a policy is worth in an MDP that is known, beside the best one and the baseline of a recipe."""
    place, asked = describe(world), recipe.settings
    best, baseline = float(world.initial @ world.solve().values[0]), None
    if asked.rule == "soft":
        baseline = place.original_return(exact_baseline(world, asked))
    value = place.original_return(world.evaluate(policy))
    return Worth(value, place.original_return(best), baseline, baseline_name(asked, place))
