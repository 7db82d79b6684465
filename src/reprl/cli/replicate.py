"""reprl replicate: the second team."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from reprl.cli.answer import BAD_INPUT, DIFFERENT, Answer, progress_wanted
from reprl.cli.learn import describe_run, run_and_write, run_recipe
from reprl.cli.options import ALLOW, DATA_SEED, Folder, LogFile, OtherWorld, Work, argument, option, refuse
from reprl.cli.outcome import exit_code
from reprl.cli.search import repeat
from reprl.errors import InputError

if TYPE_CHECKING:
    from rich.console import Console

    from reprl.artifacts.recipe import Recipe
    from reprl.artifacts.search import SearchRecipe
    from reprl.artifacts.verify import Evidence, Verification
    from reprl.auditing.two_sample import SameWorld
    from reprl.learning.result import LearnResult
    from reprl.mdp.counts import Counts
    from reprl.mdp.tabular import TabularMDP
    from reprl.sources.gymnasium.model import GymnasiumModel


def replicate(
    recipe: Path = argument("RECIPE", "A recipe, or the run folder that holds one."),
    *,
    other: OtherWorld,
    allow: list[str] | None = ALLOW,
    data_seed: int | None = DATA_SEED,
    work: Work,
    counts: Path | None = option(
        "The first team's counts, to test whether your transitions contradict them.", metavar="FILE"
    ),
    folder: Folder,
    logged: LogFile,
) -> Answer:
    """Repeat a recipe on fresh data: you are the second team.

    If the folder of the recipe holds a receipt, its policy and yours are compared. Exit code 0: the same policy. 1:
    different policies, or the samples ran out before your run knew its quality.

    reprl replicate run/recipe.json --out second

    reprl replicate run --env plant.py:make_plant --counts first.counts

    reprl replicate run --log ours.csv --out second

    The digest of a black box covers spaces, horizon and reward range, not the dynamics. With the first team's --counts,
    your transitions are tested against theirs; if they contradict, the exit code is 1. A recipe may come from a
    stranger: it can import only Gymnasium, and what --allow names (docs/security.md).
    """
    from reprl.artifacts.folder import RECIPE, find_file, load_recipe
    from reprl.artifacts.recipe import Recipe
    from reprl.learning.learner import limit_time

    beside = recipe if recipe.is_dir() else recipe.parent
    wanted = load_recipe(find_file(recipe, RECIPE) if recipe.is_dir() else recipe)
    if not isinstance(wanted, Recipe):
        refuse("be left out for the recipe of a search", counts=counts, log=logged.log)
        return _repeat_search(wanted, beside, other, allow, data_seed, folder, work)
    instead = folder.force and folder.out is not None and folder.out.resolve() == beside.resolve()
    first, remark = (None, None) if instead else _first_team(beside, wanted, folder.out)
    kept = _first_counts(counts, wanted, first)
    world: TabularMDP | GymnasiumModel | None = None
    if logged.log is not None:
        refuse("be left out with --log", work, other, data_seed=data_seed, allow=allow)
        repeat = partial(wanted.learn_log, logged.log, columns=logged.columns(), progress=progress_wanted())
        result, unsaved = run_and_write(wanted, folder, repeat)
    else:
        refuse("come with --log", column=logged.column)
        world = wanted.make(other.open(wanted.environment), allow=allow or ())
        limit_time(world, work.timeout)
        result, unsaved = run_recipe(wanted, world, folder, work, data_seed=data_seed)
    return _answer(result, world, first, remark, kept, None if unsaved else folder.out, unsaved)


def _repeat_search(
    wanted: SearchRecipe,
    beside: Path,
    other: OtherWorld,
    allow: list[str] | None,
    data_seed: int | None,
    folder: Folder,
    work: Work,
) -> Answer:
    """Repeat the recipe of a search."""
    from reprl.artifacts.folder import RECEIPT, find_file
    from reprl.artifacts.verify import load_evidence
    from reprl.cli.environment import read_object

    path = find_file(beside, RECEIPT)
    first = load_evidence(path) if path.exists() else None
    if first is not None and (first.search is None or first.search.recipe != wanted.digest):
        first = None
    if first is not None and folder.out is not None and not folder.force and folder.out.resolve() == beside.resolve():
        raise InputError(f"--out must be another folder than that of the first run, got {folder.out}")
    env = None if other.env is None else read_object("ENV", other.env)
    return repeat(wanted, first, env, allow or [], data_seed, folder, work)


def _answer(
    result: LearnResult,
    world: TabularMDP | GymnasiumModel | None,
    first: Evidence | None,
    remark: str | None,
    kept: Counts | None,
    out: Path | None,
    unsaved: str,
) -> Answer:
    """Compare the policies of both teams, and their data where the first has left them."""
    from reprl.auditing.two_sample import same_world

    comparison, remark = _compare(first, result, world, remark)
    tested = None if kept is None else same_world(kept, result.counts)
    document = {
        **describe_run(result, out),
        "same": None if comparison is None else comparison.same,
        "comparison": None if comparison is None else comparison.to_dict(),
        "same_world": None if tested is None else tested.to_dict(),
        "remark": remark,
    }
    code = BAD_INPUT if unsaved else _code(result, comparison, tested)
    return Answer(document, lambda console: _show(console, result, comparison, tested, remark), code, unsaved)


def _code(result: LearnResult, comparison: Verification | None, tested: SameWorld | None) -> int:
    """Return the exit code: the answer is "different" where policies differ or the environments do."""
    apart = (comparison is not None and not comparison.same) or (tested is not None and tested.contradicted)
    return DIFFERENT if apart else exit_code(result)


def _first_counts(path: Path | None, wanted: Recipe, first: Evidence | None) -> Counts | None:
    """Read the first team's data, which must be those of its receipt, where there is one."""
    from reprl.mdp.counts import Counts

    if path is None:
        return None
    counts, place = Counts.load(path), wanted.environment
    shape = (place.horizon, place.n_states, place.n_actions)
    if counts.outcomes.shape != shape:
        raise InputError(f"--counts must have the recipe's shape (H, S, A) = {shape}, got {counts.outcomes.shape}")
    if first is not None and first.receipt is not None:
        visits = counts.visits.astype(object).sum(axis=2)
        if visits.shape != first.receipt.visits.shape or (visits != first.receipt.visits).any():
            raise InputError(f"--counts must be the data of the first team's receipt, got those of another run: {path}")
    return counts


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
    from reprl.artifacts.verify import SAME_DATA, SAME_LOG

    return comparison, SAME_DATA if result.coverage is None else SAME_LOG


def _first_team(folder: Path, wanted: Recipe, out: Path | None) -> tuple[Evidence | None, str | None]:
    """What the first team left beside its recipe, where `out` must not overwrite it, or why it does not count."""
    from reprl.artifacts.folder import POLICY, RECEIPT, find_file, load_run
    from reprl.artifacts.verify import load_evidence

    path = find_file(folder, RECEIPT)
    if not path.exists():
        return None, None
    first = load_evidence(path)
    if first.receipt is None or first.receipt.recipe != wanted.digest:
        return None, f"{path} belongs to another recipe, so nothing was compared"
    if out is not None and out.resolve() == folder.resolve():
        raise InputError(f"--out must be another folder than that of the first run, got {out}")
    if find_file(folder, POLICY).exists():
        load_run(folder)  # its table and names are those that the receipt seals, or this is an error
    return first, None


def _show(
    console: Console,
    result: LearnResult,
    comparison: Verification | None,
    tested: SameWorld | None,
    remark: str | None,
) -> None:
    from reprl.report.run import Run, summarize_run
    from reprl.report.summary import Fact
    from reprl.report.terminal import render

    keep = Fact("keep private", f"the data seed {result.data_seed}" if result.coverage is None else "the log")
    console.print(render(summarize_run(Run.of(result), more=[keep])._replace(sketches=())))
    if comparison is not None:
        console.print(render(comparison))
    if tested is not None:
        _show_test(console, result, tested)
    if remark:
        console.print(remark)


def _show_test(console: Console, result: LearnResult, tested: SameWorld) -> None:
    """Say whether both teams can have sampled one environment."""
    if not tested.contradicted:
        console.print(
            "your transitions do not contradict the first team's counts; this does not prove equal environments",
            style="dim",
        )
        return
    console.print("another environment: your transitions contradict the first team's counts", style="bold red")
    console.print(f"by chance alone with probability at most {tested.p_value:.2g}; where it shows most:")
    for item in tested.contrasts:
        console.print(f"  {item.words(result.environment)}", soft_wrap=True)
