"""reprl register: choose a candidate on pilot data, and publish it before any other data."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reprl.cli.answer import BAD_INPUT, Answer, progress_wanted
from reprl.cli.learn import LogWorld
from reprl.cli.options import (
    DATA_SEED,
    OPTIONAL_ENV,
    SHARED_SEED,
    Asked,
    LogFile,
    World,
    count_workers,
    given,
    open_out,
    option,
    read_labels,
    refuse,
)
from reprl.errors import InputError, PilotWarning

if TYPE_CHECKING:
    from rich.console import Console

    from reprl.artifacts.recipe import Recipe


def register(
    env: str | None = OPTIONAL_ENV,
    *,
    pilot: int | None = option("Samples of the pilot, in total; they are not used again.", metavar="N"),
    by: str | None = option("Name of the person or team that chooses.", metavar="NAME"),
    out: Path | None = option("Write the recipe here.", metavar="FILE.json"),
    world: World,
    asked: Asked,
    shared_seed: int | None = SHARED_SEED,
    data_seed: int | None = DATA_SEED,
    workers: int | None = option("Number of workers; results do not depend on it. Default: one for each core."),
    timeout: float | None = option("Seconds that an episode of a black box may take. Default: any."),
    logged: LogFile,
    log_world: LogWorld,
) -> Answer:
    """Choose a candidate on pilot data, and write the recipe that every team then follows on fresh data.

    As in a registered study, the choice is made and published first. Later runs do not have to agree on it, and need
    fewer samples. ρ is then about any two runs that follow the recipe. A run on the pilot's data is refused.

    reprl register gridworld-v0 --horizon 6 --pilot 100000 --out study.json

    reprl replicate study.json --out first

    reprl register --log pilot.csv --horizon 5 --states low,mid,high --actions wait,treat --out study.json
    """
    from reprl.artifacts.register import register as choose
    from reprl.artifacts.register import register_log

    options: dict[str, Any] = asked.options()
    own = {"by": by, "reward_range": world.reward_range}
    options |= {name: value for name, value in own.items() if value is not None}
    options |= {"horizon": world.horizon, "discount": world.discount, "shared_seed": _fresh(shared_seed)}
    with open_out(out) as save, warnings.catch_warnings(record=True) as doubts:
        warnings.simplefilter("always", PilotWarning)
        if logged.log is not None:
            drawn = {"data_seed": data_seed, "env_option": world.env_option, "workers": workers, "timeout": timeout}
            refuse("be left out with --log", ENV=env, pilot=pilot, **drawn)
            labels = {name: read_labels(f"--{name}", getattr(log_world, name)) for name in ("states", "actions")}
            recipe = register_log(logged.log, columns=logged.columns(), **{**given(log_world), **labels}, **options)
        else:
            refuse("come with --log", log_world, column=logged.column)
            if env is None or pilot is None:
                raise InputError("ENV and --pilot N must be given, or --log FILE; got neither")
            how: dict[str, Any] = {"workers": count_workers(workers), "timeout": timeout, "progress": progress_wanted()}
            options = {name: value for name, value in options.items() if name not in ("horizon", "discount")}
            options.pop("reward_range", None)
            recipe = choose(world.open(env), pilot=pilot, data_seed=data_seed, **how, **options)
        unsaved = save(recipe.to_json())
    small = next((str(one.message) for one in doubts if issubclass(one.category, PilotWarning)), None)
    document = {**_describe(recipe, out), "warning": small}
    return Answer(document, lambda console: _show(console, recipe, out, small), BAD_INPUT if unsaved else 0, unsaved)


def _fresh(shared_seed: int | None) -> int:
    from reprl.randomness import fresh_seed

    return fresh_seed() if shared_seed is None else shared_seed


def _describe(recipe: Recipe, out: Path | None) -> dict[str, Any]:
    from reprl.guarantee import PROMISES

    document = recipe.to_dict()
    return {
        "recipe": document,
        "recipe_digest": recipe.digest,
        "registration": document["registration"],
        "promise": {"kind": "registered", "meaning": PROMISES["registered"]},
        "out": None if out is None else str(out),
    }


def _show(console: Console, recipe: Recipe, out: Path | None, small: str | None) -> None:
    """Show what was chosen, on what, and what comes next."""
    from reprl.execution.terminal import fact_rows
    from reprl.guarantee import PROMISES

    made = recipe.registration
    assert made is not None
    pilot = f"{made.samples:,} samples" + (f" in {made.episodes:,} episodes" if made.episodes else "")
    data = f"data seed {made.data_seed}" if made.log is None else f"log {made.log}"
    where = "its recipe (--out FILE.json writes it)" if out is None else str(out)
    log = "" if made.log is None else " --log FILE"
    asked = recipe.settings
    goal = f"ε = {asked.epsilon:g}" if asked.quality is None else f"quality {asked.quality:g}"
    rows: list[tuple[str, object]] = [
        ("registered", f"{recipe.environment.title}, recipe {recipe.digest[:12]}"),
        ("candidate", recipe.candidate),
        ("chosen by", f"{made.by}, {made.at}"),
        ("pilot", f"{pilot}, {data}: not to be used again"),
        ("considered", f"{made.considered:,} candidates; margin {made.margin:.3g} (standard errors) of the one chosen"),
        *([] if small is None else [("warning", small)]),
        ("promise kind", f"registered: {PROMISES['registered']}"),
        ("asked", f"{goal}, ρ = {asked.rho:g}, δ = {asked.delta:g}; shared seed {recipe.shared_seed}"),
        ("publish", where),
        ("every team", f"reprl replicate {out or 'RECIPE'}{log}"),
    ]
    console.print(fact_rows(rows))
