"""What reprl learn and reprl replicate do with a log in the place of an environment."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reprl.cli import arguments as args
from reprl.cli.answer import BAD_INPUT, Answer
from reprl.cli.learn import describe_run, show_run
from reprl.cli.outcome import exit_code
from reprl.errors import InputError, ReprlError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from reprl.artifacts.recipe import Recipe
    from reprl.learning.result import LearnResult


def learn_from_log(
    log: Path, given: dict[str, Any], options: dict[str, Any], shared_seed: int | None, out: Path | None, force: bool
) -> Answer:
    """Learn once from a log; given are the options that say what it is a log of."""
    from reprl.artifacts.recipe import Recipe
    from reprl.learning.learner import check_options, make_settings
    from reprl.learning.logged import end_of, specify
    from reprl.randomness import fresh_seed
    from reprl.sources.logs.tables import open_table

    world = {name: value for name, value in given.items() if value is not None}
    columns = args.read_columns(world.pop("column", None))
    states, actions = (args.read_labels(f"--{name}", world.pop(name, None)) for name in ("states", "actions"))
    horizon, discount = world.pop("horizon", None), world.pop("discount", None)
    if horizon is None and discount is None:
        raise InputError("--horizon or --discount must be given with --log: how many steps count, got neither")
    check_options(options)
    world |= end_of(horizon, discount)
    table = open_table(log, columns)
    environment = specify(table, states, actions, **world).environment(table.columns)
    settings = make_settings(options, environment)
    seed = fresh_seed() if shared_seed is None else shared_seed
    recipe = Recipe.plan(environment, settings, seed)
    result, unsaved = run_log(recipe, log, columns, out, force)
    out = None if unsaved else out
    names, idle = result.environment, result.tiers.ignorable
    keep, team = "the log: a second team has its own", f"reprl replicate {out}/recipe.json --log FILE"
    return Answer(
        describe_run(result, out),
        lambda console: show_run(console, result, names, idle, out, keep=keep, team=team),
        BAD_INPUT if unsaved else exit_code(result),
        unsaved,
    )


def run_log(
    recipe: Recipe,
    log: Path,
    columns: Mapping[str, str | None],
    out: Path | None,
    force: bool,
    *,
    afresh: bool = False,
) -> tuple[LearnResult, str]:
    """Run the recipe of a log, and write the run to a folder that was reserved before the work began.

    Returns:
        The run, and why it could not be written: empty if it could, or was not to be.
    """
    from reprl.artifacts.folder import open_folder

    with ExitStack() as stack:
        folder = None if out is None else stack.enter_context(open_folder(out, recipe, force=force))
        result = recipe.learn_log(log, columns=columns, afresh=afresh)
        try:
            if folder is not None:
                folder.write(result)
        except ReprlError as error:
            return result, str(error)
    return result, ""
