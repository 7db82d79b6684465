"""Arguments that several commands share, and how their text is read."""

from __future__ import annotations

import ast
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from importlib import util
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from reprl.errors import InputError, ReprlError, quote

if TYPE_CHECKING:
    from reprl.artifacts.recipe import Recipe
    from reprl.mdp.tabular import TabularMDP
    from reprl.sources.environment import Environment
    from reprl.sources.gymnasium.model import GymnasiumModel


@cache
def settings_help() -> dict[str, str]:
    """The docstring and default of every field of ``Settings``, read off its source: importing it is slow."""
    spec = util.find_spec("reprl.learning.settings")
    assert spec is not None
    assert spec.origin is not None
    tree = ast.parse(Path(spec.origin).read_text(encoding="utf-8"))
    body = next(node.body for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "Settings")
    texts = {}
    for field, doc in pairwise(body):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and isinstance(doc, ast.Expr):
            default = ast.unparse(field.value).strip("'") if field.value else ""
            texts[field.target.id] = f"{ast.literal_eval(doc.value)} Default {default}."
    return texts


def whole(text: str) -> int:
    """Read a whole number, quoting what is none."""
    try:
        return int(text)
    except ValueError:
        raise typer.BadParameter(f"must be a whole number, got {quote(text)}") from None


def real(text: str) -> float:
    """Read a number, quoting what is none."""
    try:
        return float(text)
    except ValueError:
        raise typer.BadParameter(f"must be a number, got {quote(text)}") from None


def option(
    *names: str,
    help: str,
    kind: Callable[[str], Any] | None = None,
    metavar: str | None = None,
    complete: Callable[[str], list[tuple[str, str]]] | None = None,
) -> Any:
    """Declare an option; a number is read by ``whole`` or ``real``."""
    shown = metavar or ("N" if kind is whole else "X" if kind is real else None)
    return typer.Option(*names, help=help, parser=kind, metavar=shown, show_default=False, autocompletion=complete)


def _setting(name: str, kind: Callable[[str], Any] | None = None) -> Any:
    return option(f"--{name}", help=settings_help()[name], kind=kind, metavar=None if kind else "NAME")


def complete_env(incomplete: str) -> list[tuple[str, str]]:
    """What a shell may offer for an environment."""
    from reprl.mdp.catalogue import catalogue

    return [(entry.id, entry.description) for entry in catalogue() if entry.id.startswith(incomplete)]


def complete_learner(incomplete: str) -> list[tuple[str, str]]:
    """What a shell may offer for the name of a learner."""
    from reprl.lab.baselines.registry import learners

    return [(entry.name, entry.description) for entry in learners() if entry.name.startswith(incomplete)]


Env = Annotated[
    str,
    typer.Argument(
        metavar="ENV",
        help="An id of 'reprl envs', gym:ID, or file.py:name.",
        show_default=False,
        autocompletion=complete_env,
    ),
]
Horizon = Annotated[int | None, option("--horizon", "-H", help="H, the steps of an episode.", kind=whole)]
Discount = Annotated[
    float | None,
    option("--discount", help="γ of a world without an end; --horizon is then how long episodes are.", kind=real),
]
RewardRange = Annotated[
    tuple[float, float] | None,
    option("--reward-range", help="Bounds of the reward of a Gymnasium environment.", kind=real, metavar="LOW HIGH"),
]
Epsilon = Annotated[float | None, _setting("epsilon", real)]
EpsilonUnits = Annotated[
    str | None,
    option(
        "--epsilon-units",
        help='Units of --epsilon: "rescaled" (rewards in [0, 1]), "original" (the rewards\' own) or "spread" '
        "(a share of the way from the worst policy to the best). Default rescaled.",
        metavar="NAME",
    ),
]
Rho = Annotated[float | None, _setting("rho", real)]
Delta = Annotated[float | None, _setting("delta", real)]
Access = Annotated[str | None, _setting("access")]
Rule = Annotated[str | None, _setting("rule")]
Preference = Annotated[
    str | None,
    option("--preference", help="Actions, best first, by name or number; or 'shared'. For ties.", metavar="A,B,…"),
]
Constants = Annotated[str | None, _setting("constants")]
Scale = Annotated[float | None, _setting("scale", real)]
SharedSeed = Annotated[
    int | None,
    option("--shared-seed", help="Public: the same in every run that shall agree. Drawn if left out.", kind=whole),
]
DataSeed = Annotated[
    int | None,
    option("--data-seed", help="Private: fresh in every run. Drawn if left out, as it should be.", kind=whole),
]
Options = Annotated[
    list[str] | None,
    option("--option", "-o", help="Any other option of the learner, such as coupling=joint.", metavar="KEY=VALUE"),
]
EnvOptions = Annotated[
    list[str] | None,
    option("--env-option", help="An option of the environment, such as size=5.", metavar="KEY=VALUE"),
]
MaxSamples = Annotated[
    int | None, option("--max-samples", help="Never draw more; not sure by then: exit code 1.", kind=whole)
]
Certify = Annotated[
    bool, typer.Option("--certify", help="Go on until the run's own data prove the policy, or out of samples.")
]
Workers = Annotated[
    int | None, option("--workers", help="They cannot change a result. Default: one for each core.", kind=whole)
]
Dask = Annotated[str | None, option("--dask", help="Do the work on this Dask cluster; same result.", metavar="ADDRESS")]
Timeout = Annotated[
    float | None,
    option("--timeout", help="Seconds that an episode of a black box may take. Default: any.", kind=real),
]
Out = Annotated[Path | None, option("--out", help="Write recipe, receipt and policy here.", metavar="DIR")]
KeepCounts = Annotated[
    Path | None,
    option("--counts", help="Write the data as counts here, for a second team to test theirs by.", metavar="FILE"),
]
FirstCounts = Annotated[
    Path | None,
    option("--counts", help="The first team's counts: do your transitions contradict them?", metavar="FILE"),
]
Force = Annotated[bool, typer.Option("--force", help="Overwrite a folder that holds another recipe.")]
OtherEnv = Annotated[
    str | None, option("--env", help="The environment, for a recipe without an id: file.py:name.", metavar="ENV")
]
OptionalEnv = Annotated[
    str | None,
    typer.Argument(
        metavar="[ENV]",
        help="An id of 'reprl envs', gym:ID, or file.py:name.",
        show_default=False,
        autocompletion=complete_env,
    ),
]
Log = Annotated[
    Path | None,
    option("--log", help="Learn from logged episodes instead: .csv, .csv.gz or .parquet.", metavar="FILE"),
]
Columns = Annotated[
    list[str] | None,
    option(
        "--column", help="Which column of the log is what, such as state=SOFA; step= for none.", metavar="ROLE=NAME"
    ),
]
States = Annotated[
    str | None, option("--states", help="Labels of a log's states. Default: those that it holds.", metavar="A,B,…")
]
Actions = Annotated[
    str | None, option("--actions", help="Labels of a log's actions. Default: those that it holds.", metavar="A,B,…")
]
Allowed = Annotated[
    Path | None,
    option(
        "--allowed",
        help="What may be done where: a table with a row for each pair of a log's state and action.",
        metavar="FILE",
    ),
]
Support = Annotated[
    float | None, option("--support", help="Relative share that makes a logged action count. Default 0.2.", kind=real)
]
Reach = Annotated[
    float | None,
    option("--reach", help="Share of the episodes that makes a logged state count. Default 0.005.", kind=real),
]
RewardStep = Annotated[
    float | None, option("--reward-step", help="Grid that a log's rescaled rewards are rounded to.", kind=real)
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document instead.")]


def read_pairs(name: str, pairs: list[str] | None) -> dict[str, Any]:
    """Read key=value texts; a value is JSON where it can be, such as 5, 0.1 or null, and text elsewhere."""
    values: dict[str, Any] = {}
    for pair in pairs or []:
        key, sign, text = pair.partition("=")
        if not sign or not key.isidentifier():
            raise InputError(f"{name} must be KEY=VALUE, got {quote(pair)}")
        if key in values:
            raise InputError(f"{name} must give every key once, got {key} twice")
        values[key] = _read_value(text)
    return values


def _read_value(text: str) -> Any:
    try:
        return json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return text


def _refuse(name: str) -> Any:
    raise ValueError(name)


def read_preference(text: str) -> str | tuple[int | str, ...]:
    """Read actions between commas, those in digits as numbers; "shared" stands for itself."""
    if text == "shared":
        return text
    items = [item.strip() for item in text.split(",")]
    if not all(items):
        raise InputError(f"--preference must be actions between commas, or 'shared', got {quote(text)}")
    return tuple(int(item) if item.isascii() and item.isdigit() and len(item) < 10 else item for item in items)


def read_columns(pairs: list[str] | None) -> dict[str, str | None]:
    """Read ROLE=NAME texts; an empty name stands for a column that is not to be used."""
    columns: dict[str, str | None] = {}
    for pair in pairs or []:
        role, sign, name = pair.partition("=")
        if not sign or role in columns:
            raise InputError(f"--column must be ROLE=NAME, every role once, got {quote(pair)}")
        columns[role] = name or None
    return columns


def read_labels(name: str, text: str | None) -> list[str] | None:
    """Read labels between commas."""
    if text is None:
        return None
    labels = [item.strip() for item in text.split(",")]
    if not all(labels):
        raise InputError(f"{name} must be labels between commas, got {quote(text)}")
    return labels


def flags(values: dict[str, Any]) -> dict[str, Any]:
    """Name values by their options on the command line."""
    return {f"--{name.replace('_', '-')}": value for name, value in values.items()}


def refuse_without(what: str, given: dict[str, Any]) -> None:
    """Refuse options that have no use without, or beside, another."""
    for name, value in given.items():
        if value is not None:
            raise InputError(f"{name} must {what}, got {quote(value)}")


def learn_options(given: dict[str, Any], pairs: list[str] | None) -> dict[str, Any]:
    """Merge options that have a flag of their own with those of -o; neither may repeat the other."""
    options = {name: value for name, value in given.items() if value is not None}
    if "preference" in options:
        options["preference"] = read_preference(options["preference"])
    for name, value in read_pairs("--option", pairs).items():
        if name in options:
            raise InputError(f"--option must not repeat --{name.replace('_', '-')}, got {name}={value}")
        options[name] = value
    return options


@contextmanager
def open_out(out: Path | None) -> Iterator[Callable[[str | bytes], str]]:
    """Open an output before work begins; yield what writes a text or bytes there and says why not, if it cannot."""
    from reprl.storage.files import open_output

    if out is None:
        yield lambda _: ""
        return
    with open_output(out, parents=True) as write:

        def save(data: str | bytes) -> str:
            try:
                write(data.encode() if isinstance(data, str) else data)
            except ReprlError as error:
                return str(error)
            return ""

        yield save


@contextmanager
def open_results(out: Path | None, name: str) -> Iterator[tuple[Callable[[str | bytes], str], Path | None]]:
    """Open an output as ``open_out`` does: a file if it ends in .json, and otherwise a folder.

    Yields:
        What writes a text to the file, or to a file of this name in the folder, and the place for finished tasks in the
        folder; None where there is no folder.
    """
    whole = out is not None and out.suffix != ".json"
    with open_out(out / name if out is not None and whole else out) as save:
        yield save, out / "tasks" if out is not None and whole else None


def count_workers(workers: int | None) -> int:
    """Return the number asked for, or one for each core."""
    return (os.cpu_count() or 1) if workers is None else workers


def open_other(
    env: str | None, place: Environment | None, env_option: list[str] | None, reward_range: tuple[float, float] | None
) -> TabularMDP | GymnasiumModel | None:
    """Open the environment of --env, if it is given, with the horizon, discount and range that a recipe recorded."""
    options = read_pairs("--env-option", env_option)
    if env is not None:
        from reprl.cli.environment import open_named

        if place is None:
            return open_named(env, None, options, reward_range)
        horizon, more = place.criterion.keywords
        return open_named(env, horizon, options | more, reward_range, place.reward_range)
    if options or reward_range:
        raise InputError(f"--env-option and --reward-range must come with --env, got {quote(options or reward_range)}")
    return None


def world_options(env_option: list[str] | None, discount: float | None) -> dict[str, Any]:
    """Return the options of an environment, the discount among them."""
    options = read_pairs("--env-option", env_option)
    if discount is not None:
        if "discount" in options:
            raise InputError(f"--env-option must not repeat --discount, got discount={quote(options['discount'])}")
        options["discount"] = discount
    return options


def plan_recipe(
    env: str,
    horizon: int | None,
    env_option: list[str] | None,
    reward_range: tuple[float, float] | None,
    options: dict[str, Any],
    shared_seed: int | None,
    timeout: float | None = None,
    discount: float | None = None,
    *,
    by_steps: bool = False,
) -> tuple[TabularMDP | GymnasiumModel, Recipe]:
    """Open an environment and write down what is to be learned in it; a proof goes by steps, unless told not to."""
    from reprl.artifacts.recipe import Recipe
    from reprl.cli.environment import open_named
    from reprl.learning.learner import check_options, limit_time, make_settings, suited
    from reprl.randomness import fresh_seed
    from reprl.sources.environment import describe

    options = {"stationary": False, **options} if by_steps else options
    check_options(options)
    world = open_named(env, horizon, world_options(env_option, discount), reward_range)
    settings = make_settings(options, world)
    world = suited(world, settings.rule, settings.epsilon)
    limit_time(world, timeout)
    seed = fresh_seed() if shared_seed is None else shared_seed
    return world, Recipe.plan(describe(world), settings, seed)
