"""What long work will cost, printed before it begins where standard error is a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from reprl.cli.answer import progress_wanted
from reprl.execution.terminal import visible

if TYPE_CHECKING:
    from reprl.canonical.registered import Published
    from reprl.learning.settings import Settings
    from reprl.mdp.tabular import TabularMDP
    from reprl.sources.gymnasium.model import GymnasiumModel

LONG = 10.0
"""Seconds from which on work is long."""
_PILOT = 0.3


def announce(world: TabularMDP | GymnasiumModel) -> None:
    """Say at once what is learned in, and later, if so, that kernels have to be compiled; where people look on."""
    if not progress_wanted():
        return
    from rich.console import Console

    from reprl.kernels import tell_compiling
    from reprl.sources.environment import describe

    def say(line: str) -> None:
        Console(stderr=True, highlight=False, markup=False).print(visible(line), style="dim", soft_wrap=True)

    place = describe(world)
    say(f"learning in {place.title}: {place.n_states} states, {place.n_actions} actions")
    tell_compiling(lambda: say("compiling kernels, once: later runs find them in a cache (reprl warm-up fills it)"))


def print_forecast(
    world: TabularMDP | GymnasiumModel,
    settings: Settings,
    *,
    workers: int,
    max_samples: int | None,
    runs: float = 1.0,
    candidate: tuple[str, int] | Published | None = None,
) -> None:
    """Print a forecast of runs one after the other, if standard error is a terminal and they may take long.

    The pilot's samples are its own: no run reads them, and no result depends on it.
    """
    if not runs or not progress_wanted():
        return
    from rich.console import Console

    from reprl.errors import ReprlError
    from reprl.lab.forecast import forecast

    how: Any = {"max_samples": max_samples, "workers": workers, "candidate": candidate, **settings.to_dict()}
    try:
        found = forecast(world, seconds=_PILOT, **how)
    except ReprlError:  # the run itself will say what is wrong
        return
    found = found.times(runs)
    if found.seconds is None or found.seconds[2] >= LONG:
        many = f"{runs:g} runs: " if runs > 1 else ""
        Console(stderr=True, highlight=False, markup=False).print(
            f"forecast: {many}{found}", style="dim", soft_wrap=True
        )
