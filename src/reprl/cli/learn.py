"""reprl learn: one run."""

from __future__ import annotations

import shlex
import warnings
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reprl.cli.answer import BAD_INPUT, HINTS, Answer, announce, progress_wanted
from reprl.cli.options import (
    DASK,
    DATA_SEED,
    DONE_AT_LIMIT,
    EARLY_ENDS,
    OPTIONAL_ENV,
    SHARED_SEED,
    Asked,
    Folder,
    LogFile,
    OtherWorld,
    Work,
    World,
    count_workers,
    given,
    group,
    open_out,
    option,
    read_labels,
    refuse,
)
from reprl.cli.outcome import describe_outcome, exit_code
from reprl.cli.search import Search, is_search, learn_once
from reprl.errors import InputError, LogWarning, ReprlError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from rich.console import Console

    from reprl.artifacts.folder import StoredRun
    from reprl.artifacts.recipe import Recipe
    from reprl.artifacts.search import SearchRecipe
    from reprl.learning.result import LearnResult
    from reprl.mdp.tabular import TabularMDP
    from reprl.report.run import Run
    from reprl.sources.gymnasium.model import GymnasiumModel


@group
class LogWorld:
    """The contents of the log."""

    states: str | None = option("Labels of a log's states. Default: those found in it.", metavar="A,B,…")
    actions: str | None = option("Labels of a log's actions. Default: those found in it.", metavar="A,B,…")
    allowed: Path | None = option(
        "Allowed actions: a table with a row for each pair of a log's state and action.", metavar="FILE"
    )
    reward_step: float | None = option("Rescaled rewards of a log are rounded to multiples of this.")
    early_ends: str | None = EARLY_ENDS
    done_at_limit: str | None = DONE_AT_LIMIT


def learn(
    env: str | None = OPTIONAL_ENV,
    *,
    world: World,
    asked: Asked,
    search: Search,
    shared_seed: int | None = SHARED_SEED,
    data_seed: int | None = DATA_SEED,
    work: Work,
    dask: str | None = DASK,
    folder: Folder,
    continue_: Path | None = option("Continue the run in this folder, with all its samples.", metavar="DIR"),
    counts: Path | None = option(
        "Write the data as counts to this file, so that a second team can test theirs against them.", metavar="FILE"
    ),
    logged: LogFile,
    log_world: LogWorld,
) -> Answer:
    """Learn a policy once, and say what to publish.

    The [bold]shared seed[/bold] is public: runs that use it, each on its own data, learn the same policy with high
    probability. The [bold]data seed[/bold] is private and fresh in every run.

    A run goes on until its quality and the same policy are both promised, or the samples run out. Exit code 1: they ran
    out before the quality was known ("undecided"); a run that ends with its quality alone has not failed.

    reprl learn gridworld-v0 --horizon 6 --shared-seed 7 --out run

    reprl learn gym:CartPole-v1 --target 475 --shared-seed 7 --out run

    reprl learn --log clinic.csv --horizon 5 --shared-seed 7 --out run

    To continue a run that was stopped, or has not both promises, with all its samples:

    reprl learn --continue run --max-samples 5000000
    """
    options = asked.options()
    if continue_ is not None:
        alone: dict[str, Any] = {"shared_seed": shared_seed, "data_seed": data_seed}
        alone["out"] = folder.out
        alone |= {"log": logged.log, "column": logged.column, "horizon": world.horizon, "discount": world.discount}
        refuse("be left out with --continue", asked, search, log_world, force=folder.force, **alone)
        return go_on(
            continue_,
            OtherWorld(env=env, env_option=world.env_option, reward_range=world.reward_range),
            work,
            counts,
            dask,
        )
    if logged.log is not None:
        drawn = {"data_seed": data_seed, "env_option": world.env_option, "counts": counts, "dask": dask}
        refuse("be left out with --log", work, ENV=env, **drawn)
        return _learn_log(logged, given(log_world), world, options, shared_seed, folder)
    refuse("come with --log", log_world, column=logged.column)
    if env is None:
        raise InputError("ENV must be given, or --log FILE; got neither")
    if is_search(env, world, given(search), options):
        refuse("be left out for a search", counts=counts, dask=dask)
        wanted = {name: value for name, value in given(search).items() if name != "learner"}
        seeds = _seed(folder.out, shared_seed), data_seed
        return learn_once(env, world, {**options, **wanted}, *seeds, folder, work)
    opened, recipe = plan_recipe(env, world, options, _seed(folder.out, shared_seed), work.timeout)
    return _learn_from(opened, recipe, folder, counts, _again(recipe, env, world), dask, data_seed, work)


def plan_recipe(
    env: str, world: World, options: dict[str, Any], shared_seed: int | None, timeout: float | None
) -> tuple[TabularMDP | GymnasiumModel, Recipe]:
    """Open an environment and write down what is to be learned in it."""
    from reprl.artifacts.recipe import Recipe
    from reprl.learning.learner import check_options, limit_time, make_settings, truncate_if_needed
    from reprl.randomness import fresh_seed
    from reprl.sources.environment import describe

    check_options(options)
    opened = world.open(env)
    settings = make_settings(options, opened)
    opened = truncate_if_needed(opened, settings.rule, settings.epsilon)
    limit_time(opened, timeout)
    return opened, Recipe.plan(describe(opened), settings, fresh_seed() if shared_seed is None else shared_seed)


def _learn_log(
    logged: LogFile,
    spec: dict[str, Any],
    world: World,
    options: dict[str, Any],
    shared_seed: int | None,
    folder: Folder,
) -> Answer:
    """Learn once from a log; spec says what it is a log of."""
    from reprl.artifacts.recipe import Recipe
    from reprl.learning.learner import check_options, make_settings
    from reprl.learning.logged import end_of, specify
    from reprl.randomness import fresh_seed
    from reprl.sources.logs.tables import GROUP, watched_table

    columns = logged.columns()
    states, actions = (read_labels(f"--{name}", spec.pop(name, None)) for name in ("states", "actions"))
    if world.horizon is None and world.discount is None:
        raise InputError("--horizon or --discount must be given with --log: how many steps count, got neither")
    check_options(options)
    spec |= end_of(world.horizon, world.discount)
    if world.reward_range is not None:
        spec["reward_range"] = world.reward_range
    tells_all = bool(world.discount or options.get("stationary"))
    with watched_table(logged.log, columns, progress_wanted()) as table:
        used = {role: name for role, name in table.columns.items() if role != GROUP}  # subgroups decide nothing
        environment = specify(table, states, actions, tells_all=tells_all, **spec).environment(used)
        settings = make_settings(options, environment)
        recipe = Recipe.plan(environment, settings, fresh_seed() if shared_seed is None else shared_seed)
        result, unsaved = run_and_write(recipe, folder, partial(recipe.learn_log, table))
    out = None if unsaved else folder.out
    return _answer(result, result.tiers.ignorable, out, unsaved, "the log: a second team has its own", "")


def _learn_from(
    world: TabularMDP | GymnasiumModel,
    recipe: Recipe,
    folder: Folder,
    counts: Path | None,
    again: str,
    dask: str | None,
    data_seed: int | None,
    work: Work,
) -> Answer:
    """Learn once from an environment, and keep the data in sums where that was asked for; finished work is shown."""
    from reprl.artifacts.folder import find_finished

    if folder.out is not None and not folder.force:
        done = find_finished(folder.out, recipe, data_seed)
        if done is not None and counts is None:
            return _already(done, folder.out)
        _check_decided(folder.out)
    return _run(world, recipe, folder, counts, again, dask, work, data_seed=data_seed)


def _run(
    world: TabularMDP | GymnasiumModel,
    recipe: Recipe,
    folder: Folder,
    counts: Path | None,
    again: str,
    dask: str | None,
    work: Work,
    **how: Any,
) -> Answer:
    """Run a recipe, and say what to publish."""
    from reprl.execution.tasks import cluster

    with open_out(counts) as save, cluster(dask):
        result, unsaved = run_recipe(recipe, world, folder, work, **how)
        unsaved = unsaved or save(result.counts.sealed())
    out = None if unsaved else folder.out
    keep = f"the data seed {result.data_seed}: a second team draws its own"
    return _answer(result, idle_cells(result, world), out, unsaved, keep, again)


def _check_decided(out: Path) -> None:
    """Refuse to begin again in the place of an undecided run, whose samples can be gone on with."""
    from reprl.artifacts.folder import RECEIPT, find_file, load_run

    if not find_file(out, RECEIPT).is_file():
        return
    try:
        receipt = load_run(out).receipt
    except ReprlError:  # whoever opens the folder says what is wrong with it
        return
    if receipt.verdict is not None and not receipt.guarantee.decided:
        raise InputError(
            f"{out} must not hold an undecided run, got one of {receipt.samples:,} samples: go on with them (reprl "
            f"learn --continue {shlex.quote(str(out))}), begin again (--force), or take another folder"
        )


def go_on(out: Path, other: OtherWorld, work: Work, counts: Path | None, dask: str | None) -> Answer:
    """Continue the run in a folder, which was stopped or was undecided, as if it had never stopped."""
    from reprl.artifacts.folder import RECIPE, TASKS, find_file, find_finished, load_recipe
    from reprl.artifacts.recipe import Recipe
    from reprl.learning.learner import limit_time
    from reprl.storage.checkpoints import recall_work

    begun = recall_work(out / TASKS)
    path = find_file(out, RECIPE)
    stored = load_recipe(path) if path.is_file() else None
    done = find_finished(out, stored, None) if isinstance(stored, Recipe) else None
    if done is not None and counts is None:
        return _already(done, out)
    if begun is None:
        raise InputError(f"--continue must name a folder with an unfinished run, its {TASKS} folder in it, got {out}")
    if stored is not None and not isinstance(stored, Recipe):
        return _go_on_searching(out, stored, other, begun["data_seed"], work)
    if begun["kind"] != "learn":
        raise InputError(f"--continue must name a run of reprl learn, got an unfinished {begun['kind']} in {out}")
    recipe = Recipe.begun(begun) if stored is None else stored
    _check_more(out, work.max_samples)
    world = recipe.make(other.open(recipe.environment))
    limit_time(world, work.timeout)
    again = "" if recipe.environment.id else f" --env {shlex.quote(str(other.env))}"
    return _run(world, recipe, Folder(out=out), counts, again, dask, work, data_seed=begun["data_seed"])


def _go_on_searching(out: Path, recipe: SearchRecipe, other: OtherWorld, data_seed: int, work: Work) -> Answer:
    from reprl.cli.environment import read_object
    from reprl.cli.search import repeat

    env = None if other.env is None else read_object("ENV", other.env)
    return repeat(recipe, None, env, [], data_seed, Folder(out=out), work)


def _check_more(out: Path, max_samples: int | None) -> None:
    """Refuse a limit that a finished run has reached already."""
    from reprl.artifacts.folder import RECEIPT, find_file, load_run

    if max_samples is not None and find_file(out, RECEIPT).is_file() and load_run(out).receipt.samples >= max_samples:
        had = load_run(out).receipt.samples
        raise InputError(f"--max-samples must be more than the {had:,} samples that {out} has, got {max_samples}")


def _answer(
    result: LearnResult, idle: NDArray[np.bool_], out: Path | None, unsaved: str, keep: str, again: str
) -> Answer:
    """The run, with what to publish and what to keep."""
    code = BAD_INPUT if unsaved else exit_code(result)
    return Answer(
        describe_run(result, out), lambda console: _show(console, result, idle, out, keep, again), code, unsaved
    )


def _already(run: StoredRun, out: Path) -> Answer:
    """What a folder holds, where nothing was left to do."""
    from reprl.execution.terminal import fact_rows
    from reprl.report.run import promise_facts

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
        *((fact.label, fact.value) for fact in promise_facts(run.receipt.guarantee, run.environment.scale)),
        ("finished", f"before, in {out}: nothing was done (--force learns again)"),
    ]
    return Answer(document, lambda console: console.print(fact_rows(rows)))


def _seed(out: Path | None, shared_seed: int | None) -> int | None:
    """The shared seed that is given, or that of the run in a folder, finished or not."""
    from reprl.artifacts.folder import RECIPE, TASKS, find_file, load_recipe
    from reprl.storage.checkpoints import recall

    if out is None or shared_seed is not None:
        return shared_seed
    unfinished = recall(out / TASKS, "shared_seed")
    if unfinished is not None or not find_file(out, RECIPE).is_file():
        return unfinished
    try:
        return int(load_recipe(find_file(out, RECIPE)).shared_seed)
    except ReprlError:  # whoever opens the folder says what is wrong with it
        return None


def _again(recipe: Recipe, env: str, world: World) -> str:
    """The options that name an environment of one's own; none where the recipe has an id."""
    if recipe.environment.id:
        return ""
    again = "".join(f" --env-option {shlex.quote(pair)}" for pair in world.env_option or ())
    if world.reward_range is not None:
        again += f" --reward-range {world.reward_range[0]} {world.reward_range[1]}"
    return f" --env {shlex.quote(env)}{again}"


def run_recipe(
    recipe: Recipe,
    world: TabularMDP | GymnasiumModel,
    folder: Folder,
    work: Work,
    *,
    data_seed: int | None,
    runs: int = 1,
) -> tuple[LearnResult, str]:
    """Run a recipe in an environment, which is said before, with the number of runs like it; 0 for none."""
    from reprl.artifacts.folder import TASKS

    if runs:
        announce(world, runs)
    kept = None if folder.out is None or recipe.settings.rule == "paper" else folder.out / TASKS
    how: dict[str, Any] = {"workers": count_workers(work.workers), "max_samples": work.max_samples}
    how |= {"data_seed": data_seed, "checkpoint": kept, "progress": progress_wanted()}
    return run_and_write(recipe, folder, partial(recipe.learn, env=world, **how), kept)


def run_and_write(
    recipe: Recipe | SearchRecipe,
    folder: Folder,
    learn: Callable[[], Any],
    kept: Path | None = None,
) -> tuple[Any, str]:
    """Learn, and write the run to a folder that is reserved before the work begins.

    Args:
        recipe: what is run.
        folder: where to.
        learn: the run.
        kept: the folder of its finished tasks, which a run that was stopped or undecided keeps, to go on with.

    Returns:
        The run, and why it could not be written: empty if it could, or was not to be.
    """
    from reprl.artifacts.folder import open_folder
    from reprl.storage.checkpoints import discard

    with ExitStack() as stack:
        reserved = None
        if folder.out is not None:
            reserved = stack.enter_context(open_folder(folder.out, recipe, force=folder.force))
        if kept is not None and folder.force:
            discard(kept)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", LogWarning)  # the answer says it
                result = learn()
        except KeyboardInterrupt:
            if kept is not None and kept.is_dir():
                HINTS.append(
                    f"finished work is kept; continue with: reprl learn --continue {shlex.quote(str(folder.out))}"
                )
            raise
        try:
            if reserved is not None:
                reserved.write(result)
            if kept is not None and result.guarantee.status != "none":
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
        **describe_outcome(result),
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


def _show(
    console: Console, result: LearnResult, idle: NDArray[np.bool_], out: Path | None, keep: str, again: str
) -> None:
    """Show a run: its policy, what came of it, what to publish and what to keep."""
    from reprl.report.run import Run, summarize_run
    from reprl.report.summary import Fact
    from reprl.report.terminal import render

    run = Run.of(result)
    recipe = f"{out}/recipe.json" if out is not None else "its recipe (--out DIR writes it)"
    more = [("publish", f"{recipe}, which holds the shared seed {result.shared_seed}"), ("keep private", keep)]
    more += ways_on(run, result.data_seed, out, again)
    console.print(render(summarize_run(run, idle=idle, more=[Fact(*each) for each in more])))


def ways_on(run: Run, data_seed: int, out: Path | None, again: str) -> list[tuple[str, str]]:
    """Return what a second team can do, and what would decide the run, as commands; again names the environment."""
    from reprl.learning.soft import MOST_TIMES
    from reprl.report.run import confirm_words

    folder, log = "DIR" if out is None else shlex.quote(str(out)), " --log FILE" if run.logged else ""
    if run.answer not in ("quality", "undecided"):
        return [] if out is None else [("second team", f"reprl replicate {folder}/recipe.json{again}{log}")]
    words = confirm_words(run, folder, again)
    if words and out is None:
        words += ", with the folder that --out DIR writes"
    found = [("second team", words)] if words else []
    if run.logged or run.drift:
        return found
    if run.answer == "quality" and run.needed is None:
        return [*found, ("forecast", f"no same policy, not even with {MOST_TIMES:,} times as many samples")]
    more = int(float(f"{run.needed or 4 * run.receipt.samples:.2g}"))
    if run.needed is not None:
        found.append(("forecast", f"the same policy with about {more:,} samples in all"))
    return [*found, ("to continue", f"{_continue(data_seed, out, again)} --max-samples {more}")]


def _continue(data_seed: int, out: Path | None, again: str) -> str:
    """How to go on with a run: from its folder, or, where that keeps no samples, by drawing the same ones once more."""
    from reprl.artifacts.folder import TASKS

    if out is None:
        return f"the same command with --data-seed {data_seed}"
    folder, env = shlex.quote(str(out)), again.partition(" --env ")[2]
    if (out / TASKS).is_dir():
        return f"reprl learn {env + ' ' if env else ''}--continue {folder}"
    return f"reprl replicate {folder}{again} --data-seed {data_seed} --out {folder} --force"
