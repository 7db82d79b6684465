"""reprl play: a saved policy at work in its environment."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from reprl.cli.answer import Answer
from reprl.cli.options import ALLOW, RUN, OtherWorld, option
from reprl.cli.search import play_search
from reprl.errors import check_int

if TYPE_CHECKING:
    from rich.console import Console

    from reprl.artifacts.folder import StoredRun
    from reprl.mdp.tabular import TabularMDP
    from reprl.sources.gymnasium.model import GymnasiumModel
    from reprl.sources.gymnasium.play import Episode

_SHOWN = 3
"""Episodes that are shown step by step."""


def play(
    run: Path = RUN,
    *,
    episodes: int = option("Number of episodes. Default 1.", "-n", default=1),
    seed: int | None = option("Seed of the episodes. Drawn at random if left out."),
    other: OtherWorld,
    allow: list[str] | None = ALLOW,
) -> Answer:
    """Play a saved policy in its environment, and show observations, actions and rewards, in the rewards' own units.

    The environment is drawn if it can draw itself as text. No promise depends on these episodes.

    reprl play run

    reprl play run --episodes 100 --seed 1 --json
    """
    from reprl.artifacts.folder import load_run
    from reprl.artifacts.search import StoredSearch
    from reprl.cli.environment import read_object
    from reprl.randomness import DataStream, fresh_seed
    from reprl.sources.access import episode_steps
    from reprl.sources.gymnasium.play import open_to_play
    from reprl.sources.gymnasium.play import play as play_once

    check_int("--episodes", episodes, 1, 10**6)
    stored = load_run(run)
    start = check_int("--seed", fresh_seed() if seed is None else seed, 0, 2**64 - 1)
    if isinstance(stored, StoredSearch):
        env = None if other.env is None else read_object("ENV", other.env)
        return play_search(stored, episodes, start, env, allow or [])
    world = stored.recipe.make(other.open(stored.recipe.environment), allow=allow or ())
    seeds = [int(word) >> 1 for word in DataStream(start, "play").integers(episodes)]
    opened = open_to_play(world)
    try:
        played = [play_once(stored.policy, opened, each, episode_steps(world)) for each in seeds]
    finally:
        opened.close()
    document = _document(stored, world, start, played)
    return Answer(document, lambda console: _show(console, stored, document, played))


def _document(
    stored: StoredRun, world: TabularMDP | GymnasiumModel, seed: int, played: list[Episode]
) -> dict[str, Any]:
    from reprl.mdp.tabular import TabularMDP
    from reprl.storage.documents import plain

    totals = [_own_units(world, episode) for episode in played]
    expected = None
    if isinstance(world, TabularMDP):
        expected = world.labels.reward_map.restore(world.evaluate(stored.policy), world.criterion.effective_horizon)
    return {
        "fingerprint": stored.policy.fingerprint,
        "seed": seed,
        "returns": totals,
        "mean_return": sum(totals) / len(totals),
        "expected_return": expected,
        "episodes": [
            {"ended": episode.ended, "moves": [plain(move._replace(picture=None)._asdict()) for move in episode.moves]}
            for episode in played
        ],
    }


def _own_units(world: TabularMDP | GymnasiumModel, episode: Episode) -> float:
    """The return in the rewards' own units; what plays a table pays from 0 to 1."""
    from reprl.mdp.tabular import TabularMDP
    from reprl.sources.access import episode_steps

    if isinstance(world, TabularMDP) and (world.origin is None or not world.origin.id.startswith("gym:")):
        steps = sum(world.criterion.factor**h for h in range(episode_steps(world)))
        return world.labels.reward_map.restore(episode.discounted(world.criterion.factor), steps)
    return episode.discounted(world.criterion.factor)


def _show(console: Console, stored: StoredRun, document: dict[str, Any], played: list[Episode]) -> None:
    for number, episode in enumerate(played[:_SHOWN]):
        if len(played) > 1:
            console.print(f"episode {number}", style="bold")
        _show_episode(console, stored, episode)
    if len(played) > _SHOWN:
        console.print(f"… and {len(played) - _SHOWN} more episodes")
    mean = f"return {document['mean_return']:.4g}" + (f", mean of {len(played)} episodes" if len(played) > 1 else "")
    if document["expected_return"] is not None:
        mean += f"; expected {document['expected_return']:.4g}"
    console.print(f"{mean}; repeat with --seed {document['seed']}", style="bold")


def _show_episode(console: Console, stored: StoredRun, episode: Episode) -> None:
    from rich.text import Text

    from reprl.mdp.interface import Interface

    interface, labels = stored.policy.interface or Interface(), stored.receipt.labels

    def name(observation: Any) -> str:
        return labels.state(interface.state(observation, stored.policy.n_states))

    for move in episode.moves:
        if move.picture is not None and "\n" in move.picture:
            console.print(Text.from_ansi(move.picture.strip("\n")))
        h, s = move.step, interface.state(move.observation, stored.policy.n_states)
        action = labels.action(int(stored.policy.table[h, s]))
        console.print(f"step {h}: {name(move.observation)}, action {action}, reward {move.reward:g}")
    if episode.picture is not None and "\n" in episode.picture:
        console.print(Text.from_ansi(episode.picture.strip("\n")))
    end = "the episode is over" if episode.ended else "the horizon is reached"
    console.print(f"{end} in {'' if episode.ended else name(episode.last)}".removesuffix(" in "))
