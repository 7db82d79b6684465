"""The options of the commands: each is declared once, most of them in groups that several commands take.

A command is a function of groups and options: ``def twice(env: str = ENV, *, world: World, work: Work) -> Answer``.
``as_typer`` shows Typer the fields of every group, one panel of the help page for each, and adds ``--json``.
"""

from __future__ import annotations

import ast
import inspect
import json
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from importlib import util
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, dataclass_transform, get_args, get_type_hints

import typer

from reprl.cli.answer import Answer
from reprl.errors import InputError, ReprlError, quote

if TYPE_CHECKING:
    from reprl.mdp.policy import Policy
    from reprl.mdp.tabular import TabularMDP
    from reprl.sources.environment import Environment
    from reprl.sources.gymnasium.model import GymnasiumModel

G = TypeVar("G")
Completion = Callable[[str], list[tuple[str, str]]]


class _Declared(NamedTuple):
    """An option or argument; the parameter or field that it is the default of gives its name and type."""

    help: str | None
    short: tuple[str, ...]
    default: Any
    metavar: str | None
    complete: Completion | None
    positional: bool

    def info(self, name: str, kind: Any, panel: str | None) -> Any:
        """Return what Typer knows of it; without a text of its own, the help is that of the field of ``Settings``."""
        common: dict[str, Any] = {"show_default": False, "autocompletion": self.complete, "rich_help_panel": panel}
        if self.positional:
            return typer.Argument(self.default, metavar=self.metavar, help=self.help, **common)
        inner = {kind, *get_args(kind), *(each for part in get_args(kind) for each in get_args(part))}
        read = whole if int in inner else real if float in inner else None
        shown = None if kind is bool else self.metavar or ("N" if read is whole else "X" if read is real else "NAME")
        names = (f"--{name.strip('_').replace('_', '-')}", *self.short)  # continue_ is no keyword of Python
        text = settings_help()[name] if self.help is None else self.help
        return typer.Option(self.default, *names, help=text, parser=read, metavar=shown, **common)


def option(
    help: str | None = None,
    *short: str,
    default: Any = None,
    metavar: str | None = None,
    complete: Completion | None = None,
) -> Any:
    """Declare an option, as the default of a parameter or of a group's field; ``...`` for one that must be given."""
    return _Declared(help, short, default, metavar, complete, False)


def argument(metavar: str, help: str, default: Any = ..., complete: Completion | None = None) -> Any:
    """Declare an argument without a name; it must be given unless it has a default."""
    return _Declared(help, (), default, metavar, complete, True)


@dataclass_transform(frozen_default=True, kw_only_default=True)
def group(kind: type[G]) -> type[G]:
    """Make a class a group of options; its docstring is the title of its panel."""
    declared = {name: kind.__dict__[name] for name in inspect.get_annotations(kind)}
    for name, each in declared.items():
        setattr(kind, name, each.default)
    kind.declared = getattr(kind, "declared", {}) | declared  # type: ignore[attr-defined]
    return dataclass(frozen=True, kw_only=True)(kind)


def as_typer(command: Callable[..., Answer]) -> Callable[..., Answer]:
    """Return a command with the parameters that Typer shall see."""
    groups: dict[str, Any] = {}
    shown: dict[str, tuple[Any, Any]] = {}
    for name, parameter in inspect.signature(command, eval_str=True).parameters.items():
        if is_dataclass(parameter.annotation):
            kind: Any = parameter.annotation
            groups[name] = kind
            hints, panel = get_type_hints(kind), inspect.cleandoc(kind.__doc__ or "").rstrip(".")
            shown |= {
                each: (hints[each], declared.info(each, hints[each], panel)) for each, declared in kind.declared.items()
            }
        else:
            info = parameter.default.info(name, parameter.annotation, None)
            shown[name] = (parameter.annotation, info)
    shown["json"] = (bool, option("Print one JSON document instead.", default=False).info("json", bool, None))

    def run(**words: Any) -> Answer:
        values = {name: info.default for name, (_, info) in shown.items()} | words
        del values["json"]  # read by `main`, which needs it for errors too
        for name, kind in groups.items():
            values[name] = kind(**{each.name: values.pop(each.name) for each in fields(kind)})
        return command(**values)

    run.__name__, run.__doc__ = command.__name__, command.__doc__
    run.__annotations__ = {name: kind for name, (kind, _) in shown.items()}
    run.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=info, annotation=kind)
            for name, (kind, info) in shown.items()
        ]
    )
    return run


@cache
def settings_help() -> dict[str, str]:
    """The docstring and default of every field of ``Settings``, read off its source: importing it is slow."""
    spec = util.find_spec("reprl.learning.settings")
    assert spec is not None
    assert spec.origin is not None
    tree = ast.parse(Path(spec.origin).read_text(encoding="utf-8"))
    body = next(node.body for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "Settings")
    texts = {}
    for line, doc in pairwise(body):
        if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name) and isinstance(doc, ast.Expr):
            value = line.value.value if isinstance(line.value, ast.Constant) else None
            default = "" if value is None else f" Default {value!s}."
            texts[line.target.id] = f"{ast.literal_eval(doc.value)}{default}"
    return texts


def whole(text: str | int) -> int:
    """Read a whole number, also one written as 1e6, quoting what is none."""
    try:
        if isinstance(text, str) and re.fullmatch(r"\d+(\.\d+)?[eE]\d{1,2}", text) and float(text).is_integer():
            return int(float(text))
        return int(text)
    except ValueError:
        raise typer.BadParameter(f"must be a whole number, got {quote(text)}") from None


def real(text: str) -> float:
    """Read a number, quoting what is none."""
    try:
        return float(text)
    except ValueError:
        raise typer.BadParameter(f"must be a number, got {quote(text)}") from None


def complete_env(incomplete: str) -> list[tuple[str, str]]:
    """What a shell may offer for the name of an environment."""
    from reprl.mdp.catalogue import catalogue

    return [(entry.id, entry.description) for entry in catalogue() if entry.id.startswith(incomplete)]


def complete_learner(incomplete: str) -> list[tuple[str, str]]:
    """What a shell may offer for the name of a learner."""
    from reprl.lab.baselines.registry import learners

    return [(entry.name, entry.description) for entry in learners() if entry.name.startswith(incomplete)]


NAMED = "A name of 'reprl list environments', gym:ID, or file.py:NAME."
ENV = argument("ENV", NAMED, complete=complete_env)
OPTIONAL_ENV = argument("[ENV]", NAMED, None, complete_env)
RUN = argument("RUN", "A run folder.")
HORIZON = option("H, the number of steps of an episode. Built-in environments have a default.", "-H")
REWARD_RANGE = option("Bounds of the reward of a Gymnasium environment.", metavar="LOW HIGH")
ENV_OPTION = option("An option of the environment, such as size=5.", metavar="KEY=VALUE")
SETTING = option()
"""One that is a field of ``Settings``, whose docstring is its help."""
BASELINE = option(
    "The policy that --quality is measured from: always this action, by name or number, or a policy (FILE.json). "
    "Default: always the first allowed action; for a log, current practice.",
    metavar="ACTION|FILE.json",
)
PREFERENCE = option(
    "Order in which equally good actions are taken: all actions by name or number, most preferred first, or 'shared' "
    "for a random order. Default: the environment's.",
    metavar="A,B,…",
)
OPTION = option("Any other option of the learner, such as coupling=joint.", "-o", metavar="KEY=VALUE")
SHARED_SEED = option("Public: all runs that should agree use the same one. Drawn at random if left out.")
DATA_SEED = option("Private: only needed to repeat exactly this run. Leave it out, and a fresh one is drawn.")
WORKERS = option("Number of workers; results do not depend on it. Default: one for each core.")
LOG_COLUMN = option("The column for a role, such as state=SOFA; step= for none.", metavar="ROLE=NAME")
EARLY_ENDS = option(
    "How to read episodes of a log that stop before the horizon without a flag: terminated (over) or censored (no "
    "longer observed).",
    metavar="WORD",
)
DONE_AT_LIMIT = option(
    "How to read 'done' in the last row of the horizon, where rows count for every step: truncated (a time limit), "
    "terminated, or unknown (these rows are left out). Default unknown.",
    metavar="WORD",
)
DASK = option("Run on this Dask cluster. The result is the same.", metavar="ADDRESS")
OTHER_ENV = option("Your environment, if the recipe does not name one: such as file.py:NAME.", metavar="ENV")
ALLOW = option("A module that the recipe's environment may import. May be repeated.", metavar="MODULE")


@group
class World:
    """The environment."""

    horizon: int | None = HORIZON
    discount: float | None = option("Discount factor γ; --horizon is then the length of episodes.")
    reward_range: tuple[float, float] | None = REWARD_RANGE
    env_option: list[str] | None = ENV_OPTION

    def open(self, name: str) -> TabularMDP | GymnasiumModel:
        """Open the environment that a name means."""
        from reprl.cli.environment import open_named

        options = read_pairs("--env-option", self.env_option)
        if self.discount is not None:
            if "discount" in options:
                raise InputError(f"--env-option must not repeat --discount, got discount={quote(options['discount'])}")
            options["discount"] = self.discount
        return open_named(name, self.horizon, options, self.reward_range)


@group
class OtherWorld:
    """The environment, if the recipe does not name it."""

    env: str | None = OTHER_ENV
    env_option: list[str] | None = ENV_OPTION
    reward_range: tuple[float, float] | None = REWARD_RANGE

    def open(self, place: Environment | None) -> TabularMDP | GymnasiumModel | None:
        """Open the environment that is named, if any, with the criterion and the range that a recipe recorded."""
        options = read_pairs("--env-option", self.env_option)
        if self.env is None:
            if options or self.reward_range:
                given = quote(options or self.reward_range)
                raise InputError(f"--env-option and --reward-range must come with --env, got {given}")
            return None
        from reprl.cli.environment import open_named

        horizon, more = (None, {}) if place is None else place.criterion.keywords
        recorded = None if place is None else place.reward_range
        return open_named(self.env, horizon, options | more, self.reward_range, recorded)


@group
class Asked:
    """What is asked, and the rule."""

    quality: float | None = SETTING
    baseline: str | None = BASELINE
    epsilon: float | None = SETTING
    rho: float | None = SETTING
    delta: float | None = SETTING
    min_probability: float | None = SETTING
    access: str | None = SETTING
    rule: str | None = SETTING
    preference: str | None = PREFERENCE
    constants: str | None = SETTING
    scale: float | None = SETTING
    option: list[str] | None = OPTION

    def options(self, **more: Any) -> dict[str, Any]:
        """Return the keywords of ``reprl.learn``: options with a flag, and those of -o, which must not repeat them."""
        found = given(self) | {name: value for name, value in more.items() if value is not None}
        pairs = read_pairs("--option", found.pop("option", None))
        if "preference" in found:
            found["preference"] = _read_preference(found["preference"])
        if "baseline" in found:
            found["baseline"] = read_baseline(found["baseline"])
        for name, value in pairs.items():
            if name in found:
                raise InputError(f"--option must not repeat {_flag(name)}, got {name}={value}")
        return found | pairs


@group
class Work:
    """Samples and processes."""

    max_samples: int | None = option(
        "Largest number of samples, such as 1e6. A run that has not even its quality then ends with exit code 1. "
        "Default: 2³⁸; 2²⁸ for a black box."
    )
    workers: int | None = WORKERS
    timeout: float | None = option("Time limit for an episode of a black box, in seconds. Default: none.")


@group
class Folder:
    """The run folder."""

    out: Path | None = option("Write recipe, receipt and policy here.", metavar="DIR")
    force: bool = option("Overwrite a folder that holds another recipe, or an undecided run.", default=False)


@group
class LogFile:
    """A log instead of an environment."""

    log: Path | None = option("Learn from this log of episodes: .csv, .csv.gz or .parquet.", metavar="FILE")
    column: list[str] | None = LOG_COLUMN

    def columns(self) -> dict[str, str | None]:
        """Return role → column."""
        return read_columns(self.column)


@group
class Evidence:
    """Evidence."""

    seed: int | None = option("Seed of the audit, which fixes all shared and data seeds. Drawn at random if left out.")
    out: Path | None = option(
        "Write the result to FILE.json, or to a folder that also keeps every finished pair, so that the same command "
        "continues.",
        metavar="FILE.json|DIR",
    )

    @contextmanager
    def open(self, name: str) -> Iterator[tuple[Callable[[str | bytes], str], Path | None]]:
        """Open the output as ``open_out`` does: a file if it ends in .json, and otherwise a folder.

        Yields:
            What writes a text to the file, or to a file of this name in the folder, and the place for finished tasks in
            the folder; None where there is no folder.
        """
        folder = None if self.out is None or self.out.suffix == ".json" else self.out
        with open_out(self.out if folder is None else folder / name) as save:
            yield save, None if folder is None else folder / "tasks"


def given(group: Any) -> dict[str, Any]:
    """Return the options of a group that were given, by name."""
    found = {each.name: getattr(group, each.name) for each in fields(group)}
    return {name: value for name, value in found.items() if value is not None and value is not False}


def refuse(what: str, *groups: Any, **more: Any) -> None:
    """Refuse the options of groups, and more, which have no use without another, or beside it."""
    found = {name: value for each in groups for name, value in given(each).items()}
    for name, value in (found | more).items():
        if value is not None and value is not False:
            raise InputError(f"{_flag(name)} must {what}, got {quote(value)}")


def _flag(name: str) -> str:
    return name if name.isupper() else f"--{name.replace('_', '-')}"


def read_pairs(name: str, pairs: list[str] | None) -> dict[str, Any]:
    """Read key=value texts; a value is JSON where it can be, such as 5, 0.1 or null, and text elsewhere."""
    values: dict[str, Any] = {}
    for pair in pairs or []:
        key, sign, text = pair.partition("=")
        if not sign or not key.isidentifier():
            raise InputError(f"{name} must be KEY=VALUE, got {quote(pair)}")
        if key in values:
            raise InputError(f"{name} must give every key once, got {key} twice")
        try:
            values[key] = json.loads(text, parse_constant=_refuse_constant)
        except (ValueError, RecursionError):
            values[key] = text
    return values


def read_columns(pairs: list[str] | None) -> dict[str, str | None]:
    """Read ROLE=NAME texts; an empty name stands for a column that is not to be used."""
    columns: dict[str, str | None] = {}
    for pair in pairs or []:
        role, sign, name = pair.partition("=")
        if not sign or role in columns:
            raise InputError(f"--column must be ROLE=NAME, every role once, got {quote(pair)}")
        columns[role] = name or None
    return columns


def _refuse_constant(name: str) -> Any:
    raise ValueError(name)


def _read_preference(text: str) -> str | tuple[int | str, ...]:
    """Read actions between commas, those in digits as numbers; "shared" stands for itself."""
    if text == "shared":
        return text
    items = [item.strip() for item in text.split(",")]
    if not all(items):
        raise InputError(f"--preference must be actions between commas, or 'shared', got {quote(text)}")
    return tuple(_read_action(item) for item in items)


def read_baseline(text: str) -> int | str | Policy:
    """Read a policy from a file that ends in .json, or an action, in digits as a number."""
    if text.endswith(".json"):
        from reprl.mdp.policy import Policy

        return Policy.load(text)
    return _read_action(text)


def _read_action(text: str) -> int | str:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else text


def read_labels(name: str, text: str | None) -> list[str] | None:
    """Read labels between commas."""
    labels = None if text is None else [item.strip() for item in text.split(",")]
    if labels is not None and not all(labels):
        raise InputError(f"{name} must be labels between commas, got {quote(text)}")
    return labels


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


def count_workers(workers: int | None) -> int:
    """Return the number asked for, or one for each core."""
    return (os.cpu_count() or 1) if workers is None else workers
