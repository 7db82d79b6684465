"""reprl verify --data: do two logs contradict each other?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from reprl.cli.answer import DIFFERENT, FINE, Answer
from reprl.cli.options import HORIZON, LogFile, group, option, refuse
from reprl.errors import InputError

if TYPE_CHECKING:
    from rich.console import Console

    from reprl.auditing.two_sample import SameWorld
    from reprl.mdp.counts import Counts
    from reprl.sources.environment import Environment


@group
class Data:
    """Two logs instead of two runs."""

    data: bool = option("Test whether the logs A and B contradict each other.", default=False)
    recipe: Path | None = option("A recipe or run folder: labels, horizon and rewards of the logs.", metavar="RECIPE")
    horizon: int | None = HORIZON
    level: float | None = option("Allowed probability of a false contradiction. Default 0.001.")


def compare_data(a: Path, b: Path, asked: Data, reward_range: tuple[float, float] | None, logged: LogFile) -> Answer:
    """Test two logs."""
    from reprl.auditing.two_sample import same_world

    given = {} if asked.level is None else {"level": asked.level}
    first, second, names = _read_logs((a, b), asked.recipe, asked.horizon, reward_range, logged)
    tested = same_world(first, second, **given)
    words = [item.words(names) for item in tested.contrasts]
    verdict = "different" if tested.contradicted else "not contradicted"
    document = {**tested.to_dict(), "verdict": verdict, "words": words, "paths": [str(a), str(b)]}
    code = DIFFERENT if tested.contradicted else FINE
    return Answer(document, lambda console: _show(console, tested, words), code)


def _read_logs(
    paths: tuple[Path, Path],
    recipe: Path | None,
    horizon: int | None,
    reward_range: tuple[float, float] | None,
    logged: LogFile,
) -> tuple[Counts, Counts, Environment]:
    """Count both logs by one list of labels: the recipe's, or all that either of them holds."""
    from reprl.artifacts.folder import RECIPE, find_file, load_recipe
    from reprl.sources.logs.read import read_log
    from reprl.sources.logs.scan import find_labels
    from reprl.sources.logs.spec import LogSpec
    from reprl.sources.logs.tables import open_table

    columns = logged.columns()
    if recipe is not None:
        refuse("be left out with --recipe", horizon=horizon, reward_range=reward_range)
        wanted = load_recipe(find_file(recipe, RECIPE) if recipe.is_dir() else recipe)
        spec = LogSpec.of(wanted.environment)
        published = wanted.environment.options["columns"]
        columns = {role: name for role, name in published.items() if role != name} | columns
        tables = [open_table(path, columns) for path in paths]
    else:
        if horizon is None:
            raise InputError("--horizon or --recipe must be given for two logs, got neither")
        tables = [open_table(path, columns) for path in paths]
        found = [find_labels(table) for table in tables]
        labels: dict[str, Any] = {
            name: tuple(dict.fromkeys(found[0][name] + found[1][name])) for name in ("states", "actions")
        }
        spec = LogSpec(horizon=horizon, reward_range=reward_range or LogSpec.reward_range, **labels)
    pooled = spec.criterion.stationary
    first, second = (read_log(table, spec, pooled=pooled).data.counts for table in tables)
    return first, second, spec.environment({})


def _show(console: Console, tested: SameWorld, words: list[str]) -> None:
    if not tested.contradicted:
        console.print("not contradicted: both logs can come from one environment; this is no proof that they do")
        return
    console.print("different: the two logs contradict each other", style="bold red")
    console.print(f"by chance alone with probability at most {tested.p_value:.2g}; where it shows most:")
    for line in words:
        console.print(f"  {line}", soft_wrap=True)
