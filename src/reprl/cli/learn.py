"""reprl learn: one run."""

from __future__ import annotations

import shlex
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from reprl.cli import arguments as args
from reprl.cli.answer import BAD_INPUT, Answer, progress_wanted
from reprl.cli.outcome import describe_outcome, exit_code, is_undecided, outcome_rows, ran_out
from reprl.errors import InputError, ReprlError

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray
    from rich.console import Console

    from reprl.artifacts.folder import StoredRun
    from reprl.artifacts.recipe import Recipe
    from reprl.learning.result import LearnResult
    from reprl.mdp.tabular import TabularMDP
    from reprl.sources.environment import Environment
    from reprl.sources.gymnasium.model import GymnasiumModel


def learn(
    env: args.OptionalEnv = None,
    log: args.Log = None,
    horizon: args.Horizon = None,
    discount: args.Discount = None,
    reward_range: args.RewardRange = None,
    epsilon: args.Epsilon = None,
    epsilon_units: args.EpsilonUnits = None,
    rho: args.Rho = None,
    delta: args.Delta = None,
    access: args.Access = None,
    rule: args.Rule = None,
    preference: args.Preference = None,
    constants: args.Constants = None,
    scale: args.Scale = None,
    shared_seed: args.SharedSeed = None,
    data_seed: args.DataSeed = None,
    out: args.Out = None,
    force: args.Force = False,
    counts: args.KeepCounts = None,
    option: args.Options = None,
    env_option: args.EnvOptions = None,
    max_samples: args.MaxSamples = None,
    certify: args.Certify = False,
    workers: args.Workers = None,
    dask: args.Dask = None,
    timeout: args.Timeout = None,
    column: args.Columns = None,
    states: args.States = None,
    actions: args.Actions = None,
    allowed: args.Allowed = None,
    support: args.Support = None,
    reach: args.Reach = None,
    reward_step: args.RewardStep = None,
    json: args.Json = False,
) -> Answer:
    """Learn a policy once, and say what to publish.

    The [bold]shared seed[/bold] is public: every run that uses it, on its own data, is likely to end in the same
    policy. The [bold]data seed[/bold] is private and fresh in every run; it only serves to repeat this very run.

    Exit code 1: "undecided", samples ran out before the run was sure, nothing is promised; or no proof for --certify.

    reprl learn gridworld-v0 --horizon 6 --shared-seed 7 --out run

    reprl learn --log clinic.csv --horizon 5 --shared-seed 7 --out run
    """
    given: dict[str, Any] = {"epsilon": epsilon, "epsilon_units": epsilon_units, "rho": rho, "delta": delta}
    given |= {"access": access, "rule": rule, "preference": preference, "constants": constants, "scale": scale}
    options = args.learn_options(given, option)
    spec: dict[str, Any] = {"column": column, "states": states, "actions": actions, "allowed": allowed}
    spec |= {"support": support, "reach": reach, "reward_step": reward_step}
    drawn: dict[str, Any] = {"data_seed": data_seed, "max_samples": max_samples, "workers": workers}
    opened = {"env_option": env_option, "timeout": timeout, "counts": counts, "dask": dask, "certify": certify or None}
    env = _check_source(log, env, spec, {**drawn, **opened})
    if log is not None:
        return _learn_log(log, spec, (horizon, discount, reward_range), options, shared_seed, out, force)
    place = (env, horizon, env_option, reward_range, options, _seed(out, shared_seed), timeout, discount)
    world, recipe = args.plan_recipe(*place, by_steps=certify)
    return _learn_from(world, recipe, out, force, counts, (place[0], *place[2:4]), dask, certify=certify, **drawn)


def _learn_log(log: Path, spec: dict[str, Any], told: tuple[Any, Any, Any], *how: Any) -> Answer:
    from reprl.cli.logs import learn_from_log  # which imports from here

    return learn_from_log(log, spec | dict(zip(("horizon", "discount", "reward_range"), told, strict=True)), *how)


def _learn_from(
    world: TabularMDP | GymnasiumModel,
    recipe: Recipe,
    out: Path | None,
    force: bool,
    counts: Path | None,
    again: tuple[str, list[str] | None, tuple[float, float] | None],
    dask: str | None,
    **drawn: Any,
) -> Answer:
    """Learn once from an environment, and keep the data in sums where that was asked for; finished work is shown."""
    from reprl.artifacts.folder import find_finished
    from reprl.execution.tasks import cluster

    if out is not None and counts is None and not force:
        done = find_finished(out, recipe, drawn["data_seed"], certify=drawn["certify"])
        if done is not None:
            return _already(done, out)
    with args.open_out(counts) as keep, cluster(dask):
        result, unsaved = run_recipe(recipe, world, out, force, **drawn)
        unsaved = unsaved or keep(result.counts.sealed())
    out = None if unsaved else out
    document = describe_run(result, out)
    code = BAD_INPUT if unsaved else exit_code(result)
    return Answer(document, lambda console: _show(console, result, world, out, _again(recipe, *again)), code, unsaved)


def _already(run: StoredRun, out: Path) -> Answer:
    """What a folder holds, where nothing was left to do."""
    from reprl.cli.draw import facts

    document: dict[str, Any] = {
        "fingerprint": run.policy.fingerprint,
        "samples": run.receipt.samples,
        "episodes": run.receipt.episodes,
        "guarantee": run.receipt.to_dict()["guarantee"],
        "decided": True,
        "shared_seed": run.recipe.shared_seed,
        "out": str(out),
        "recipe": run.recipe.to_dict(),
        "recipe_digest": run.recipe.digest,
        "receipt": run.receipt.to_dict(),
        "actions": run.policy.actions.tolist(),
        "remark": "finished before: nothing was done",
    }
    rows: list[tuple[str, object]] = [
        ("fingerprint", run.policy.fingerprint),
        ("samples", f"{run.receipt.samples:,}"),
        ("promised", run.receipt.guarantee),
        ("finished", f"before, in {out}: nothing was done (--force learns again)"),
    ]
    return Answer(document, lambda console: console.print(facts(rows)))


def _seed(out: Path | None, shared_seed: int | None) -> int | None:
    """The shared seed that is given, or that of the run in a folder, finished or not."""
    from reprl.artifacts.folder import RECIPE, TASKS, find_file
    from reprl.artifacts.recipe import Recipe
    from reprl.storage.checkpoints import recall

    if out is None or shared_seed is not None:
        return shared_seed
    unfinished = recall(out / TASKS, "shared_seed")
    if unfinished is not None or not find_file(out, RECIPE).is_file():
        return unfinished
    try:
        return Recipe.load(find_file(out, RECIPE)).shared_seed
    except ReprlError:  # whoever opens the folder says what is wrong with it
        return None


def _check_source(log: Path | None, env: str | None, spec: dict[str, Any], drawn: dict[str, Any]) -> str:
    """Return the environment's name; refuse what has no use with a log, or without one, and neither of both."""
    if log is not None:
        args.refuse_without("be left out with --log", {"ENV": env, **args.flags(drawn)})
        return ""
    args.refuse_without("come with --log", args.flags(spec))
    if env is None:
        raise InputError("ENV must be given, or --log FILE; got neither")
    return env


def _again(recipe: Recipe, env: str, env_option: list[str] | None, reward_range: tuple[float, float] | None) -> str:
    """The options that name an environment of one's own; none where the recipe has an id."""
    if recipe.environment.id:
        return ""
    again = f" --env {shlex.quote(env)}" + "".join(f" --env-option {shlex.quote(pair)}" for pair in env_option or ())
    if reward_range is not None:
        again += f" --reward-range {reward_range[0]} {reward_range[1]}"
    return again


def run_recipe(
    recipe: Recipe,
    world: TabularMDP | GymnasiumModel,
    out: Path | None,
    force: bool,
    *,
    data_seed: int | None,
    max_samples: int | None,
    workers: int | None,
    afresh: bool = False,
    certify: bool = False,
    runs: int = 1,
) -> tuple[LearnResult, str]:
    """Run a recipe, and write the run to a folder that was reserved before the work began.

    What it may cost is said before, for so many runs like it; 0 for none.

    Returns:
        The run, and why it could not be written: empty if it could, or was not to be.
    """
    from reprl.artifacts.folder import TASKS, open_folder
    from reprl.cli.announce import announce
    from reprl.sources.gymnasium.model import GymnasiumModel
    from reprl.storage.checkpoints import discard

    box = isinstance(world, GymnasiumModel)  # samples of an MDP in memory cost next to nothing
    kept = out / TASKS if out is not None and box else None
    announce(world, recipe.settings, workers=args.count_workers(workers), max_samples=max_samples, runs=runs)
    with ExitStack() as stack:
        folder = None if out is None else stack.enter_context(open_folder(out, recipe, force=force))
        if kept is not None and force:
            discard(kept)
        result = recipe.learn(
            env=world,
            data_seed=data_seed,
            max_samples=max_samples,
            workers=args.count_workers(workers),
            checkpoint=kept,
            progress=progress_wanted(),
            afresh=afresh,
            certify=certify,
        )
        try:
            if folder is not None:
                folder.write(result)
            if kept is not None:
                discard(kept)
        except ReprlError as error:
            return result, str(error)
    return result, ""


def describe_run(result: LearnResult, out: Path | None) -> dict[str, Any]:
    """Return a run as a JSON document."""
    receipt = result.receipt.to_dict()
    return {
        "fingerprint": result.policy.fingerprint,
        "samples": result.samples,
        "episodes": result.episodes,
        **describe_outcome(result, result.environment),
        "shared_seed": result.shared_seed,
        "data_seed": result.data_seed if result.coverage is None else None,
        "out": None if out is None else str(out),
        "recipe": result.recipe.to_dict(),
        "recipe_digest": result.recipe.digest,
        "receipt": receipt,
        "actions": result.policy.actions.tolist(),
    }


def idle_cells(result: LearnResult, world: TabularMDP | GymnasiumModel) -> NDArray[np.bool_]:
    """(H, S): where a run decided nothing, because a state is ignored or the episode is over."""
    from reprl.sources.gymnasium.model import GymnasiumModel

    idle = result.tiers.ignorable.copy()
    if isinstance(world, GymnasiumModel):
        idle[:, world.ended] = True
    return idle


def effort(result: LearnResult) -> str:
    """Samples, episodes and time of a run."""
    episodes = f" in {result.episodes:,} episodes" if result.episodes else ""
    return f"{result.samples:,}{episodes}, {result.seconds:.1f} s"


def _show(
    console: Console, result: LearnResult, world: TabularMDP | GymnasiumModel, out: Path | None, own: str
) -> None:
    from reprl.sources.environment import describe

    keep = f"the data seed {result.data_seed}: a second team draws its own"
    team = f"reprl replicate {out}/recipe.json{own}"
    show_run(console, result, describe(world), idle_cells(result, world), out, keep=keep, team=team)


def show_run(
    console: Console,
    result: LearnResult,
    names: Environment,
    idle: NDArray[np.bool_],
    out: Path | None,
    *,
    keep: str,
    team: str,
) -> None:
    """Show a run: its policy, what came of it, what to publish and what to keep."""
    from reprl.cli.draw import facts, print_policies

    print_policies(console, [result.policy], names, [names.labels.name], idle)
    recipe = f"{out}/recipe.json" if out is not None else "its recipe (--out DIR writes it)"
    rows: list[tuple[str, object]] = [
        ("fingerprint", result.policy.fingerprint),
        ("samples", effort(result)),
        *outcome_rows(result, names),
        ("publish", f"{recipe}, with it the shared seed {result.shared_seed}"),
        ("keep private", keep),
    ]
    if out is not None:
        rows.append(("second team", team))
    console.print(facts(rows))
    if is_undecided(result):
        console.print(f"undecided: {ran_out(result)} before this run was sure", style="yellow")
