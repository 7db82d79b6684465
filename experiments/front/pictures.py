"""Agreement and return, two policies side by side, and one picture for every world of the catalogue."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from numpy.typing import NDArray

import reprl
from experiments.search.present import rows_of
from experiments.stored import stored
from reprl.mdp.worlds import ARROWS

Data = dict[str, Any]
START, END = "<!-- tables: python -m experiments.front -->\n", "<!-- end of tables -->\n"
SMALL = {"river-swim-v0": {"horizon": 12}, "gambler-v0": {"horizon": 12}}
"""Worlds drawn at other than their default size."""


def draw(data: Data, folder: Path) -> None:
    """Draw what the page shows."""
    mpl.rcdefaults()
    mpl.rcParams.update({"svg.hashsalt": "reprl", "font.size": 9})  # arrows as outlines: not every font has them
    (folder / "worlds").mkdir(parents=True, exist_ok=True)
    agreement(data, folder / "agreement.svg")
    two_policies(data, folder / "two-policies.svg")
    for entry in reprl.catalogue():
        world(entry.id, folder / "worlds" / f"{entry.id}.svg")


class Bar(NamedTuple):
    """What one learner reaches."""

    name: str
    equal: float
    """Share of pairs that end in the same policy."""
    earned: float
    """Mean return, over the best."""


def gridworld(data: Data) -> list[Bar]:
    """Return reprl and greedy planning on the same data: all pairs of teams, under one shared seed."""
    teams = [*data["measured"].values()]
    bars = []
    for name, field, value in (
        ("reprl", "fingerprint", "value"),
        ("greedy, same data", "greedy_fingerprint", "greedy_value"),
    ):
        equal = [a[field] == b[field] for a, b in combinations(teams, 2)]
        bars.append(Bar(name, float(np.mean(equal)), float(np.mean([team[value] / team["best"] for team in teams]))))
    return bars


CARTPOLE = 500.0
"""The largest return of CartPole-v1."""


def cartpole() -> list[Bar]:
    """Return reprl's search, and agents of other methods: the same where two act alike in every state met."""
    pairs = rows_of(stored("search"), "CartPole-v1")
    returns = [row[8 + i] for row in pairs for i in range(2)]
    bars = [Bar("reprl", float(np.mean([row[1] for row in pairs])), float(np.mean(returns)) / CARTPOLE)]
    agents = stored("agents")["measured"]
    for name, key in (("PPO", "PPO, shared randomness"), ("ARS", "ARS"), ("cross-entropy", "CEM")):
        distances = [pair["distance"] for pair in agents[key]["pairs"]]
        bars.append(Bar(name, float(np.mean([one == 0.0 for one in distances])), agents[key]["value"][0] / CARTPOLE))
    return bars


def agreement(data: Data, path: Path) -> None:
    """Two bars for each learner: pairs that end in the same policy, and the return."""
    panels = {"icy gridworld (table)": gridworld(data), "CartPole-v1 (four real numbers)": cartpole()}
    figure, axes = plt.subplots(1, 2, figsize=(8.4, 2.6), layout="constrained", width_ratios=[2, 3])
    for axis, (title, bars) in zip(axes, panels.items(), strict=True):
        places = np.arange(len(bars))
        for shift, field, colour, label in (
            (-0.2, "equal", "#0b3c5d", "pairs of teams with the same policy"),
            (0.2, "earned", "#8fb8de", "return, over the best return"),
        ):
            shares = [getattr(bar, field) for bar in bars]
            drawn = axis.bar(places + shift, shares, 0.38, color=colour, label=label)
            axis.bar_label(drawn, [f"{share:.0%}" for share in shares], fontsize=8)
        axis.set_title(title, fontsize=10)
        axis.set_xticks(places, [bar.name for bar in bars])
        axis.set_ylim(0.0, 1.15)
        axis.set_yticks([])
        axis.spines[["top", "right", "left"]].set_visible(False)
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=2, frameon=False)
    _save(figure, path)


def two_policies(data: Data, path: Path) -> None:
    """Rows are policies, columns steps; the redder a cell, the more of all teams do there what most do not."""
    teams = [*data["measured"].values()]
    size, horizon = data["options"]["size"], data["options"]["horizon"]
    idle = np.array([team["ignored"] for team in teams], dtype=bool).any(axis=0)
    figure, axes = plt.subplots(4, horizon, figsize=(1.25 * horizon + 1.1, 5.9), layout="constrained")
    pair = (1, 1 + _typical(np.array([team["greedy"] for team in teams])[:, ~idle]))
    for row, (kind, name) in enumerate((kind, name) for kind in ("actions", "greedy") for name in pair):
        every = np.array([team[kind] for team in teams])
        for h, axis in enumerate(axes[row]):
            _arrows(axis, every[name - 1, h], idle[h], _minority(every[:, h]), size)
            if row == 0:
                axis.set_title(f"step {h}", fontsize=9)
        axes[row][0].set_ylabel(f"{'reprl' if kind == 'actions' else 'greedy'}\nteam {name}", fontsize=10)
    _save(figure, path)


def _typical(actions: NDArray[Any]) -> int:
    """Return the team that parts from the first in as many cells as others do in the median."""
    apart = (actions[1:] != actions[0]).sum(axis=1)
    return 1 + int(np.argsort(apart, kind="stable")[apart.size // 2])


def _minority(actions: NDArray[Any]) -> NDArray[np.float64]:
    """Return the share of teams, (teams, S), that do not take a state's most common action."""
    shares = np.array([(actions == a).mean(axis=0) for a in range(actions.max() + 1)])
    rest: NDArray[np.float64] = 1.0 - shares.max(axis=0)
    return rest


def _arrows(axis: Any, actions: NDArray[Any], idle: NDArray[Any], apart: NDArray[Any], size: int) -> None:
    axis.imshow(np.where(idle, 0.0, apart).reshape(size, size), cmap="Reds", vmin=0.0, vmax=0.8)
    for s, action in enumerate(actions):
        text, colour = ("·", "0.6") if idle[s] else (ARROWS[action], "#0b3c5d")
        axis.text(s % size, s // size, text, ha="center", va="center", color=colour, fontsize=12)
    axis.set_xticks(np.arange(size + 1) - 0.5, [])
    axis.set_yticks(np.arange(size + 1) - 0.5, [])
    axis.grid(color="0.85", linewidth=0.6)
    axis.tick_params(length=0)


def world(name: str, path: Path) -> None:
    """Draw the best values of a world, step by step, and how many actions are best, where there is a choice."""
    mdp = reprl.make(name, **SMALL.get(name, {}))
    assert isinstance(mdp, reprl.TabularMDP)
    values = mdp.solve().values
    scores = np.array([mdp.reward[h] + mdp.transition[h] @ values[h + 1] for h in range(mdp.horizon)])
    ties = (scores >= scores.max(axis=2, keepdims=True) - 1e-12).sum(axis=2)
    grid = mdp.labels.grid if mdp.labels.grid and min(mdp.labels.grid) > 1 else None
    shape = (0.42 * mdp.horizon + 2.6, 0.24 * mdp.n_states + 1.2) if grid is None else (6.4, 3.1)
    figure, axes = plt.subplots(1, 1 if grid is None else 2, figsize=shape, layout="constrained", squeeze=False)
    if grid is None:
        _table(axes[0, 0], mdp, values[:-1].T, ties.T)
    else:
        for axis, h, title in zip(axes[0], (0, mdp.horizon - 1), ("first step", "last step"), strict=True):
            _map(axis, scores[h], values[h], grid, mdp)
            axis.set_title(title)
    figure.suptitle(f"{name}: best values, best actions")
    _save(figure, path)


def _table(axis: Any, mdp: reprl.TabularMDP, values: NDArray[Any], ties: NDArray[Any]) -> None:
    axis.imshow(values, cmap="Blues", aspect="auto", vmin=0.0, vmax=max(1e-9, 1.6 * values.max()))
    best = mdp.solve().policy.actions.T
    for s, h in np.ndindex(*values.shape):
        name = mdp.labels.action(int(best[s, h]))
        text = name[:7] if ties[s, h] == 1 else f"{ties[s, h]} tied"
        axis.text(h, s, text, ha="center", va="center", fontsize=6.5, color="0.1" if ties[s, h] == 1 else "#9b1c1c")
    axis.set_yticks(range(mdp.n_states), [mdp.labels.state(s) for s in range(mdp.n_states)], fontsize=7)
    axis.set_xticks(range(mdp.horizon), [str(h) for h in range(mdp.horizon)], fontsize=7)
    axis.set_xlabel("step")


def _map(axis: Any, scores: NDArray[Any], values: NDArray[Any], grid: tuple[int, int], mdp: reprl.TabularMDP) -> None:
    rows, columns = grid
    axis.imshow(values.reshape(rows, columns), cmap="Blues", vmin=0.0, vmax=max(1e-9, 1.6 * values.max()))
    for s, row in enumerate(scores):
        best = np.flatnonzero(row >= row.max() - 1e-12)
        text = "·" if best.size == row.size else "".join(mdp.labels.action(int(a)) for a in best)
        colour = "#9b1c1c" if 1 < best.size < row.size else "0.1"
        axis.text(s % columns, s // columns, text, ha="center", va="center", fontsize=10, color=colour)
    axis.set_xticks([])
    axis.set_yticks([])


def tables(data: Data) -> str:
    """Return what each team came to."""
    lines = ["| | team 1 | team 2 |", "|---|---|---|"]
    teams = [*data["measured"].values()]
    ours, greedy = (len({team[kind] for team in teams}) for kind in ("fingerprint", "greedy_fingerprint"))
    shown = {
        "fingerprint": lambda team: f"`{team['fingerprint'][:12]}`",
        "samples": lambda team: f"{team['samples']:,} in {team['episodes']:,} episodes",
        "seconds": lambda team: f"{team['seconds']:.1f}",
        "value, and the best": lambda team: f"{team['value']:.4f}, {team['best']:.4f}",
        "rehearsal": lambda team: "{} of {} simulated second teams agree".format(*team["rehearsal"]),
    }
    for name, show in shown.items():
        lines.append(f"| {name} | {' | '.join(show(team) for team in teams[:2])} |")
    counted = f"Different policies among {len(teams)} teams: reprl {ours}, greedy {greedy}."
    return "\n".join(lines) + f"\n\n{counted}\n"


def _save(figure: Any, path: Path) -> None:
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)
