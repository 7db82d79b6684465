"""Searches on the command line: reprl learn, twice and replicate where a policy is no table of an MDP."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reprl.cli.answer import BAD_INPUT, DIFFERENT, FINE, UNDECIDED, Answer, progress_wanted
from reprl.cli.options import Folder, Work, World, count_workers, group, option, read_pairs
from reprl.errors import InputError, quote

if TYPE_CHECKING:
    from rich.console import Console

    from reprl.artifacts.search import SearchRecipe
    from reprl.artifacts.verify import Evidence
    from reprl.learning.search_result import SearchResult
    from reprl.sources.returns import ReturnModel

_REMARKS = "remarks"


@group
class Sought:
    """What a search is asked for."""

    target: float | None = option(
        "A mean return that is enough, in reward units. Default: climb towards the bound of returns."
    )
    policy: str | None = option("linear, quadratic, tanh or table. Default: linear, and table for finite observations.")
    return_range: tuple[float, float] | None = option(
        "Bounds of a return. Returns are clipped to them.", metavar="LOW HIGH"
    )


@group
class Search(Sought):
    """A search, for observations that are real numbers."""

    learner: str | None = option("'search' for a search in any environment. Default: only if observations are a Box.")


def source_of(env: str, world: World) -> tuple[Any, dict[str, Any]]:
    """Return what a name on the command line means, and what is left to tell ``gymnasium.make``.

    It is an id, or what file.py:name builds: the environment's own options are bound to a factory.
    """
    from reprl.cli.environment import built, find_modules, names_object, read_object

    find_modules(env)
    options = read_pairs("--env-option", world.env_option)
    if env.startswith("gym:") or not names_object(env):
        return env, options
    return built(read_object("ENV", env), world.horizon, options), {}


def is_search(env: str, world: World, asked: dict[str, Any], options: dict[str, Any]) -> bool:
    """Whether a call is for a search; asked are the options of its group."""
    from reprl.learning.search_opening import wants_search

    found = {name: value for name, value in asked.items() if name != "learner"}
    source, given = source_of(env, world)
    return wants_search(source, asked.get("learner"), {**options, **found}, given)


def plan_search(
    env: str, world: World, options: dict[str, Any], shared_seed: int | None, data_seed: int | None
) -> tuple[ReturnModel, SearchRecipe]:
    """Open an environment as a source of returns, and write down what is searched for in it."""
    from reprl.artifacts.search import SearchRecipe
    from reprl.learning.search import open_returns
    from reprl.learning.search_opening import search_settings
    from reprl.randomness import fresh_seed

    if world.discount is not None:
        raise InputError(f"--discount must be left out for a search, got {quote(world.discount)}")
    settings = search_settings(options)
    source, given = source_of(env, world)
    ranges = world.reward_range, settings.return_range
    model = open_returns(source, world.horizon, *ranges, data_seed, given)
    return model, SearchRecipe.plan(model, settings, fresh_seed() if shared_seed is None else shared_seed)


def run_search(recipe: SearchRecipe, model: ReturnModel, folder: Folder, work: Work) -> tuple[SearchResult, str]:
    """Run a recipe and write it to a folder; the finished tasks of a run that was cut stay there, to go on with."""
    from reprl.artifacts.folder import TASKS
    from reprl.cli.learn import run_and_write
    from reprl.learning.search import learn_search

    kept = None if folder.out is None else folder.out / TASKS
    how: dict[str, Any] = {"max_samples": work.max_samples, "workers": count_workers(work.workers)}
    how |= {"timeout": work.timeout, "checkpoint": kept, "progress": progress_wanted()}
    run = partial(learn_search, model, recipe.settings, recipe.shared_seed, **how)
    return run_and_write(recipe, folder, run, kept)


def learn_once(
    env: str,
    world: World,
    options: dict[str, Any],
    shared_seed: int | None,
    data_seed: int | None,
    folder: Folder,
    work: Work,
) -> Answer:
    """Search once, and say what to publish."""
    from reprl.artifacts.folder import TASKS
    from reprl.storage.checkpoints import recall

    if data_seed is None and folder.out is not None and not folder.force:
        data_seed = recall(folder.out / TASKS, "data_seed")
    model, recipe = plan_search(env, world, options, shared_seed, data_seed)
    result, unsaved = run_search(recipe, model, folder, work)
    document = {**describe_search(result), "out": None if folder.out is None or unsaved else str(folder.out)}
    code = BAD_INPUT if unsaved else exit_code(result)
    out = None if unsaved else folder.out
    return Answer(document, lambda console: _show(console, result, out), code, unsaved)


def exit_code(*results: SearchResult) -> int:
    """Return the code of runs that nobody compares."""
    return UNDECIDED if any(result.guarantee.status == "none" for result in results) else FINE


def describe_search(result: SearchResult) -> dict[str, Any]:
    """Return a run as a JSON document."""
    receipt = result.receipt.to_dict()
    return {
        "fingerprint": result.policy.fingerprint,
        "samples": result.samples,
        "episodes": result.episodes,
        "guarantee": receipt["guarantee"],
        "decided": result.guarantee.status != "none",
        "value": result.value,
        "best_value": result.best_value,
        "baseline_value": result.baseline_value,
        "certified_return": result.certified_return,
        "shared_seed": result.shared_seed,
        "data_seed": result.data_seed,
        "recipe": result.recipe.to_dict(),
        "recipe_digest": result.recipe.digest,
        "receipt": receipt,
        "policy": result.policy.to_dict(),
    }


def learn_two(
    env: str, world: World, options: dict[str, Any], shared_seed: int | None, seeds: tuple[int, int], work: Work
) -> Answer:
    """Search twice on independent data: are the policies the same?"""
    from reprl.artifacts.search import parted
    from reprl.artifacts.verify import compare_policies

    model, recipe = plan_search(env, world, options, shared_seed, seeds[0])
    runs = [run_search(recipe, each, Folder(), work)[0] for each in (model, model.for_run(seeds[1]))]
    comparison = compare_policies(runs[0].policy, runs[1].policy)
    document = {
        **comparison.to_dict(),
        "shared_seed": recipe.shared_seed,
        _REMARKS: parted(runs[0].receipt, runs[1].receipt),
        "runs": [describe_search(run) for run in runs],
    }
    code = exit_code(*runs) if comparison.same else DIFFERENT

    def show(console: Console) -> None:
        from reprl.report.search import Found, summarize_searches
        from reprl.report.terminal import render

        console.print(render(summarize_searches((Found.of(runs[0]), Found.of(runs[1])))))

    return Answer(document, show, code)


def repeat(
    recipe: SearchRecipe,
    first: Evidence | None,
    env: Any,
    allow: list[str],
    data_seed: int | None,
    folder: Folder,
    work: Work,
) -> Answer:
    """Run a recipe on fresh data, and compare with the first team where its receipt is there."""
    from reprl.artifacts.search import parted
    from reprl.artifacts.verify import compare_policies

    model = recipe.make(env, allow=allow, data_seed=data_seed)
    result, unsaved = run_search(recipe, model, folder, work)
    same = None if first is None else first.fingerprint == result.policy.fingerprint
    notes = [] if first is None or first.search is None else parted(first.search, result.receipt)
    comparison = None if first is None else compare_policies(first.policy or first.fingerprint, result.policy)
    document = {
        **describe_search(result),
        "out": None if folder.out is None or unsaved else str(folder.out),
        "same": same,
        "comparison": None if comparison is None else comparison.to_dict(),
        _REMARKS: notes,
    }
    code = BAD_INPUT if unsaved else DIFFERENT if same is False else exit_code(result)

    def show(console: Console) -> None:
        from reprl.report.terminal import render

        _show(console, result, None)
        if comparison is not None:
            console.print(render(comparison))
        for note in notes:
            console.print(f"note: {note}")

    return Answer(document, show, code, unsaved)


def _show(console: Console, result: SearchResult, out: Path | None) -> None:
    from reprl.report.search import Found, summarize_search
    from reprl.report.summary import Fact
    from reprl.report.terminal import render

    recipe = f"{out}/recipe.json" if out is not None else "its recipe (--out DIR writes it)"
    more = [
        Fact("publish", f"{recipe}, which holds the shared seed {result.shared_seed}"),
        Fact("keep private", f"the data seed {result.data_seed}: a second team draws its own"),
    ]
    more += [Fact("second team", f"reprl replicate {out}/recipe.json")] if out is not None else []
    console.print(render(summarize_search(Found.of(result), more)))
