"""reprl twice: two independent runs side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reprl.cli.answer import DIFFERENT, Answer
from reprl.cli.learn import describe_run, effort, idle_cells, plan_recipe, run_recipe
from reprl.cli.options import ENV, SHARED_SEED, Asked, Folder, Work, World, option
from reprl.cli.outcome import (
    accuracy_words,
    exit_code,
    is_undecided,
    promise,
    ran_out,
    spread_words,
    ties_rows,
    undecided_words,
)
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
    shared_seed: int | None = SHARED_SEED,
    data_seed: list[int] | None = option("Private; give it twice, once for each run, or leave it out."),
    work: Work,
) -> Answer:
    """Learn twice on independent data with one shared seed: are the policies the same?

    Each run draws a [bold]data seed[/bold] of its own; both use the same [bold]shared seed[/bold]. Exit code 0 if they
    end in the same policy, 1 if not, or if a run was still undecided when its samples ran out.

    reprl twice gridworld-v0 --horizon 6 --shared-seed 7

    reprl twice maintenance-v0 --rho 0.05 --access generative
    """
    seeds = _two_seeds(data_seed)
    opened, recipe = plan_recipe(env, world, asked.options(), shared_seed, work.timeout)
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
    code = exit_code(*runs) if comparison.same else DIFFERENT
    return Answer(document, lambda console: _show(console, runs, opened, comparison, greedy), code)


def _two_seeds(given: list[int] | None) -> tuple[int, int]:
    from reprl.randomness import fresh_seed

    if not given:
        return fresh_seed(), fresh_seed()
    if len(given) != 2 or given[0] == given[1]:
        raise InputError(f"--data-seed must be given for both runs, two different ones, got {given}")
    return given[0], given[1]


def _show(
    console: Console,
    runs: list[LearnResult],
    world: TabularMDP | GymnasiumModel,
    comparison: Verification,
    greedy: int,
) -> None:
    from rich.text import Text

    from reprl.cli.draw import facts, print_comparison, print_policies, table_of
    from reprl.mdp.tabular import TabularMDP
    from reprl.sources.environment import describe

    names = describe(world)
    console.print(f"{names.labels.name}: {names.labels.description}".rstrip(": "))
    policies, titles = [run.policy for run in runs], ["run 1", "run 2"]
    print_policies(console, policies, names, titles, idle_cells(runs[0], world) & idle_cells(runs[1], world))
    table = table_of("", *titles)
    table.add_row("data seed", *(str(run.data_seed) for run in runs))
    table.add_row("shared seed", *(str(run.shared_seed) for run in runs))
    table.add_row("samples", *(effort(run) for run in runs))
    if isinstance(world, TabularMDP) and comparison.values is not None:
        best = float(world.initial @ world.solve().values[0])
        table.add_row("value", *(f"{value:.4f} (best {best:.4f})" for value in comparison.values))
    if any(run.rehearsal is not None for run in runs):
        table.add_row("rehearsal", *(_agreeing(run) for run in runs))
    table.add_row("fingerprint", *(Text(run.policy.short_fingerprint, "bold") for run in runs))
    console.print(table)
    print_comparison(console, comparison)
    cells = runs[0].policy.table.size
    plain = f"greedy planning on these two data sets differs in {greedy} of {cells} cells: it shares no randomness"
    weakest = max(runs, key=is_undecided)
    accuracy = ("accuracy", accuracy_words(weakest, weakest.environment))
    rows: list[tuple[str, object]] = [("promised", promise(weakest)), accuracy, *ties_rows(runs)]
    for number, run in enumerate(runs, 1):
        if is_undecided(run):
            rows.append((f"undecided, run {number}", undecided_words(run, names)))
    if all(run.met_by_all for run in runs):
        rows.append(("note", spread_words(runs[0])))
    console.print(facts([*rows, ("for comparison", plain)]))
    if is_undecided(weakest):
        console.print(f"undecided: {ran_out(weakest)} before a run was sure", style="yellow")


def _agreeing(run: LearnResult) -> str:
    """What simulated second teams did, in short."""
    found = run.rehearsal
    if found is None:
        return ""
    pairs = f", {found.pairs_agree} of {found.pairs} fresh pairs" if found.pairs else ""
    return f"{found.agree} of {found.of} teams agree{pairs}"
