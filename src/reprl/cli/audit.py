"""reprl audit: how often does a learner disagree with itself."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reprl.cli.answer import Answer, announce, evidence_answer, progress_wanted
from reprl.cli.options import (
    ALLOW,
    DASK,
    NAMED,
    OTHER_ENV,
    Asked,
    Evidence,
    OtherWorld,
    World,
    argument,
    complete_env,
    complete_learner,
    given,
    option,
    refuse,
)
from reprl.cli.search import Sought, is_search, source_of

if TYPE_CHECKING:
    from reprl.artifacts.recipe import Recipe
    from reprl.mdp.tabular import TabularMDP
    from reprl.sources.gymnasium.model import GymnasiumModel

_OURS = {"reprl": None, "search": "search"}
"""Learners that may be a search: by what the environment observes, or by name."""


def audit(
    env: str = argument("ENV", f"{NAMED} Or a recipe, FILE.json, to audit runs of it.", complete=complete_env),
    *,
    learner: str = option(
        "A name of 'reprl list learners', or file.py:name. Default reprl.", default="reprl", complete=complete_learner
    ),
    pairs: int | None = option("Pairs of runs to try. Default 50, or 10 of agents.", "-n"),
    world: World,
    asked: Asked,
    sought: Sought,
    level: float | None = option("Probability of rejecting a learner with disagreement ≤ ρ. Default 0.05."),
    gamma: float | None = option("Of agents: accepted share of states with different actions. Default 0.05."),
    episodes: int | None = option("Episodes that value each policy in a black box. Default 100, or 20 of agents."),
    sequential: bool = option("Test after every pair, and stop at a verdict.", default=False),
    evidence: Evidence,
    workers: int = option("Number of processes; results do not depend on it. Default 1.", default=1),
    env_: str | None = OTHER_ENV,
    allow: list[str] | None = ALLOW,
    dask: str | None = DASK,
) -> Answer:
    """Run a learner in pairs with one shared seed and independent data, and count how many pairs differ.

    Exit code 1: so many pairs differ that a disagreement of at most ρ is rejected. "Not rejected" is no proof.

    Agents are audited with a learner such as ars or ppo, and with a function train(env) of a file where observations
    or actions are real numbers: two of them differ if they act differently in more than a share γ of the states that
    they visit. That is approximate replicability (arXiv:2510.20200), not equality.

    Of a recipe, every pair has a fresh shared seed.

    reprl audit gridworld-v0 --horizon 6 --pairs 20

    reprl audit gridworld-v0 --learner ucbvi -o samples=100000 --out audit.json

    reprl audit gridworld-v0 --pairs 10000 --out evidence --dask tcp://127.0.0.1:8786

    reprl audit gym:CartPole-v1 --target 475 --pairs 20

    reprl audit gym:CartPole-v1 --learner ppo.py:train --out agents

    reprl audit study.json --pairs 40 --out audit.json

    reprl audit plant.py:make_plant --learner mine.py:q_learning -o episodes=1000
    """
    from reprl.auditing.agents import audits_agents
    from reprl.auditing.audit import audit as run_audit
    from reprl.cli.environment import named_learner
    from reprl.execution.tasks import cluster

    if not env.endswith(".json"):
        refuse("come with a recipe, FILE.json", env=env_, allow=allow)
    options = asked.options(level=level, seed=evidence.seed, gamma=gamma, evaluation=episodes)
    runs = 100 if pairs is None else 2 * pairs
    opened: Any
    subject: Any
    with evidence.open("audit.json") as (save, kept), cluster(dask):
        if env.endswith(".json"):
            why, own = "be left out for a recipe, which says it", None if learner == "reprl" else learner
            refuse(
                why, replace(asked, option=None), sought, horizon=world.horizon, discount=world.discount, learner=own
            )
            other = OtherWorld(env=env_, env_option=world.env_option, reward_range=world.reward_range)
            opened, subject = _open_recipe(env, other, allow)
            if "samples" not in options:
                announce(opened, runs)
        elif learner in _OURS and is_search(env, world, {**given(sought), "learner": _OURS[learner]}, options):
            refuse("be left out for an audit of searches", env_option=world.env_option)
            options |= {**given(sought), "horizon": world.horizon, "reward_range": world.reward_range}
            opened, subject = source_of(env, world)[0], "search"
        else:
            refuse("be left out unless a search is audited", sought)
            subject = named_learner(learner)
            if audits_agents(source_of(env, world)[0], subject, gamma):
                refuse("be left out for an audit of agents", env_option=world.env_option, discount=world.discount)
                options |= {"horizon": world.horizon, "reward_range": world.reward_range}
                opened = source_of(env, world)[0]
            else:
                opened = world.open(env)
                if learner == "reprl" and "samples" not in options:
                    announce(opened, runs)
        how: dict[str, Any] = {"workers": workers, "checkpoint": kept, "progress": progress_wanted()}
        found = run_audit(opened, subject, pairs, sequential=sequential, **how, **options)
        unsaved = save(found.to_json())
    return evidence_answer(found, unsaved)


def _open_recipe(path: str, other: OtherWorld, allow: list[str] | None) -> tuple[TabularMDP | GymnasiumModel, Recipe]:
    """Read a recipe and open its environment."""
    from reprl.auditing.recipes import read_recipe

    recipe = read_recipe(Path(path))
    assert recipe is not None
    return recipe.make(other.open(recipe.environment), allow=allow or ()), recipe
