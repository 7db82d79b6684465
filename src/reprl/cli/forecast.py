"""What long work begins with, printed at once where standard error is a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from reprl.cli.answer import progress_wanted
from reprl.execution.terminal import visible

if TYPE_CHECKING:
    from reprl.canonical.registered import Published
    from reprl.learning.settings import Settings
    from reprl.mdp.tabular import TabularMDP
    from reprl.sources.gymnasium.model import GymnasiumModel


def announce(
    world: TabularMDP | GymnasiumModel,
    settings: Settings,
    *,
    max_samples: int | None = None,
    runs: int = 1,
    candidate: tuple[str, int] | Published | None = None,
) -> None:
    """Say at once what is learned in and what stored runs needed; later, if so, that kernels have to be compiled.

    No environment is played for it: a run's own rounds then say what it may still take.
    """
    if not progress_wanted():
        return
    from rich.console import Console

    from reprl.errors import ReprlError
    from reprl.kernels import tell_compiling
    from reprl.lab.forecast import forecast
    from reprl.sources.environment import describe

    def say(line: str) -> None:
        Console(stderr=True, highlight=False, markup=False).print(visible(line), style="dim", soft_wrap=True)

    place = describe(world)
    many = f", {runs} runs" if runs > 1 else ""
    say(f"learning in {place.title}: {place.n_states:,} states, {place.n_actions} actions{many}")
    how: Any = {"max_samples": max_samples, "candidate": candidate, **settings.to_dict()}
    try:
        found = forecast(world, seconds=0.0, **how)
        say(f"forecast{' of each' if many else ''}: {found}")
    except ReprlError:  # the run itself will say what is wrong
        pass
    tell_compiling(lambda: say("compiling kernels, once: later runs find them in a cache (reprl warm-up fills it)"))
