"""reprl replicate: the second team."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from reprl.cli import arguments as args
from reprl.cli.answer import DIFFERENT, Answer
from reprl.cli.learn import describe_run, effort, run_recipe
from reprl.cli.outcome import exit_code, is_undecided, outcome_rows, ran_out
from reprl.cli.verify import SAME_DATA, SAME_LOG
from reprl.errors import ReprlError

if TYPE_CHECKING:
    from rich.console import Console

    from reprl.artifacts.recipe import Recipe
    from reprl.artifacts.verify import Evidence, Verification
    from reprl.learning.learner import LearnResult
    from reprl.mdp.gymnasium.model import GymnasiumModel
    from reprl.mdp.tabular import TabularMDP


def replicate(
    recipe: Annotated[Path, typer.Argument(metavar="RECIPE", help="A recipe, or the run folder that holds one.")],
    log: args.Log = None,
    column: args.Columns = None,
    data_seed: args.DataSeed = None,
    out: args.Out = None,
    force: args.Force = False,
    env: args.OtherEnv = None,
    env_option: args.EnvOptions = None,
    reward_range: args.RewardRange = None,
    max_samples: args.MaxSamples = None,
    workers: args.Workers = None,
    afresh: Annotated[
        bool, typer.Option("--afresh", help="Choose again, instead of following the recipe's candidate.")
    ] = False,
    json: args.Json = False,
) -> Answer:
    """Repeat a recipe on fresh data: you are the second team.

    Where a receipt lies beside the recipe, its policy and yours are compared: exit code 0 if they are the same, 1 if
    not, or if your run was undecided when its samples ran out. A recipe that this release cannot honour is refused.

    The candidate that the recipe publishes (which tolerance was chosen) is followed, so nothing is chosen. ρ speaks of
    runs that share nothing but the seed: --afresh makes such a one.

    reprl replicate run/recipe.json --out second

    reprl replicate run --env plant.py:make_plant

    reprl replicate run --log ours.csv --out second
    """
    from reprl.artifacts.folder import RECIPE, find_file
    from reprl.artifacts.recipe import Recipe

    folder = recipe if recipe.is_dir() else recipe.parent
    wanted = Recipe.load(find_file(recipe, RECIPE) if recipe.is_dir() else recipe)
    first, remark = _first_team(folder, wanted, None if force else out)
    if log is not None:
        from reprl.cli.logs import run_log

        drawn = {"--data-seed": data_seed, "--max-samples": max_samples, "--workers": workers}
        opened = {"--env": env, "--env-option": env_option, "--reward-range": reward_range}
        args.refuse_without("be left out with --log", {**drawn, **opened})
        world, result = None, run_log(wanted, log, args.read_columns(column), out, force, afresh=afresh)
    else:
        args.refuse_without("come with --log", {"--column": column})
        world = wanted.make(args.open_other(env, wanted.environment.horizon, env_option, reward_range))
        result = run_recipe(
            wanted, world, out, force, data_seed=data_seed, max_samples=max_samples, workers=workers, afresh=afresh
        )
    comparison, remark = _compare(first, result, world, remark)
    document = {
        **describe_run(result, out),
        "same": None if comparison is None else comparison.same,
        "comparison": None if comparison is None else comparison.as_dict(),
        "remark": remark,
    }
    code = exit_code(result) if comparison is None or comparison.same else DIFFERENT
    return Answer(document, lambda console: _show(console, result, comparison, remark), code)


def _compare(
    first: Evidence | None, result: LearnResult, world: TabularMDP | GymnasiumModel | None, remark: str | None
) -> tuple[Verification | None, str | None]:
    """Compare with the first team, where there is one; and remark if both had the same data."""
    from reprl.artifacts.verify import compare_policies

    if first is None or first.receipt is None:
        return None, remark
    names = None if world is not None else result.environment.labels
    comparison = compare_policies(first.policy or first.fingerprint, result.policy, world, names)
    if first.receipt.data_commitment != result.receipt.data_commitment:
        return comparison, remark
    return comparison, SAME_DATA if result.coverage is None else SAME_LOG


def _first_team(folder: Path, wanted: Recipe, out: Path | None) -> tuple[Evidence | None, str | None]:
    """What the first team left beside its recipe, where `out` must not overwrite it, or why it does not count."""
    from reprl.artifacts.folder import RECEIPT, find_file
    from reprl.artifacts.verify import load_evidence

    path = find_file(folder, RECEIPT)
    if not path.exists():
        return None, None
    first = load_evidence(path)
    if first.receipt is None or first.receipt.recipe != wanted.digest:
        return None, f"{path} belongs to another recipe, so nothing was compared"
    if out is not None and out.resolve() == folder.resolve():
        raise ReprlError(f"--out must be another folder than that of the first run, got {out}")
    return first, None


def _show(console: Console, result: LearnResult, comparison: Verification | None, remark: str | None) -> None:
    from reprl.cli.draw import facts, print_comparison

    rows: list[tuple[str, object]] = [
        ("fingerprint", result.policy.fingerprint),
        ("samples", effort(result)),
        *outcome_rows(result, result.environment),
        ("keep private", f"the data seed {result.data_seed}" if result.coverage is None else "the log"),
    ]
    console.print(facts(rows))
    if comparison is not None:
        print_comparison(console, comparison)
    if is_undecided(result):
        console.print(f"undecided: {ran_out(result)} before this run was sure", style="yellow")
    if remark:
        console.print(remark, soft_wrap=True)
