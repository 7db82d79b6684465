"""reprl twice: two independent runs side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reprl.cli.answer import DIFFERENT, FINE, Answer
from reprl.cli.learn import describe_run, idle_cells, plan_recipe, run_recipe
from reprl.cli.options import ENV, SHARED_SEED, Asked, Folder, Work, World, given, option
from reprl.cli.search import Search, is_search, learn_two
from reprl.errors import InputError

if TYPE_CHECKING:
    from rich.console import Console

    from reprl.artifacts.verify import Verification
    from reprl.learning.result import LearnResult
    from reprl.mdp.tabular import TabularMDP
    from reprl.sources.gymnasium.model import GymnasiumModel


def twice(
    env: str = ENV,
    *,
    world: World,
    asked: Asked,
    search: Search,
    shared_seed: int | None = SHARED_SEED,
    data_seed: list[int] | None = option("Private: give it twice, once for each run, or leave it out."),
    work: Work,
) -> Answer:
    """Learn twice on independent data with one shared seed: are the policies the same?

    Each run draws its own [bold]data seed[/bold]; both use the same [bold]shared seed[/bold]. Exit code 0: the same
    policy. 1: different policies.

    reprl twice gridworld-v0 --horizon 6 --shared-seed 7

    reprl twice maintenance-v0 --rho 0.05 --access generative

    reprl twice gym:CartPole-v1 --target 475
    """
    seeds, options = _two_seeds(data_seed), asked.options()
    if is_search(env, world, given(search), options):
        wanted = {name: value for name, value in given(search).items() if name != "learner"}
        return learn_two(env, world, {**options, **wanted}, shared_seed, seeds, work)
    opened, recipe = plan_recipe(env, world, options, shared_seed, work.timeout)
    runs = [
        run_recipe(recipe, opened, Folder(), work, data_seed=seed, runs=ahead)[0]
        for seed, ahead in zip(seeds, (2, 0), strict=True)
    ]
    from reprl.artifacts.verify import compare_policies
    from reprl.lab.baselines import empirical_values, greedy_policy

    comparison = compare_policies(runs[0].policy, runs[1].policy, opened)
    plain = [greedy_policy(empirical_values(run.counts, run.environment.criterion)) for run in runs]
    greedy = int((plain[0].differs(plain[1])).sum())
    document = {
        **comparison.to_dict(),
        "shared_seed": recipe.shared_seed,
        "greedy_different": greedy,
        "runs": [describe_run(run, None) for run in runs],
    }
    code = FINE if comparison.same else DIFFERENT
    return Answer(document, lambda console: _show(console, runs, opened, comparison, greedy), code)


def _two_seeds(wanted: list[int] | None) -> tuple[int, int]:
    from reprl.randomness import fresh_seed

    if not wanted:
        return fresh_seed(), fresh_seed()
    if len(wanted) != 2 or wanted[0] == wanted[1]:
        raise InputError(f"--data-seed must be given for both runs, two different ones, got {wanted}")
    return wanted[0], wanted[1]


def _show(
    console: Console,
    runs: list[LearnResult],
    world: TabularMDP | GymnasiumModel,
    comparison: Verification,
    greedy: int,
) -> None:
    from reprl.mdp.tabular import TabularMDP
    from reprl.report.pair import summarize_pair
    from reprl.report.run import Run
    from reprl.report.summary import Fact
    from reprl.report.terminal import render
    from reprl.report.worth import exact_worth

    one, two = (Run.of(run) for run in runs)
    worth = None
    if isinstance(world, TabularMDP) and comparison.values is not None:
        worth = [exact_worth(run.recipe, world, run.policy) for run in (one, two)]
    cells = runs[0].policy.table.size
    plain = f"greedy planning on these two data sets differs in {greedy} of {cells} cells: it shares no randomness"
    idle = idle_cells(runs[0], world) & idle_cells(runs[1], world)
    seeds, more = [run.data_seed for run in runs], [Fact("for comparison", plain)]
    names = one.environment.labels
    console.print(f"{names.name}: {names.description}".rstrip(": "))
    console.print(render(summarize_pair((one, two), worth, seeds=seeds, idle=idle, more=more)))
