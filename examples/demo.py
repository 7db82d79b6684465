"""Train twice on independent data with one shared seed, and see whether the two policies are the same."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from rich.columns import Columns
from rich.console import Console
from rich.panel import Panel
from rich.table import Table

import reprl

SHARED_SEED = 7
SHADES = " ░▒▓█"


def draw(actions: NDArray[np.int64], values: NDArray[np.float64], labels: tuple[str, ...], columns: int) -> str:
    """Draw one step of a grid policy: the arrow of every state over a shade for its value."""
    top = max(float(values.max()), 1e-9)
    lines = []
    for low in range(0, actions.size, columns):
        cells = []
        for s in range(low, low + columns):
            shade = SHADES[min(int(values[s] / top * len(SHADES)), len(SHADES) - 1)]
            cells.append(f"{labels[actions[s]]}{shade * 2}")
        lines.append("  ".join(cells))
    return "\n".join(lines)


def main() -> None:
    """Solve, sample, learn twice, compare."""
    console = Console()
    mdp = reprl.make("gridworld-v0", size=4, horizon=6)
    best = mdp.solve()
    console.print(f"[bold]{mdp.labels.name}[/bold]: {mdp.labels.description}")
    sizes = f"{mdp.n_states} states, {mdp.n_actions} actions, horizon {mdp.horizon}"
    console.print(f"{sizes}; start top left, goal bottom right")

    runs = [reprl.learn(mdp, shared_seed=SHARED_SEED, epsilon=0.3, rho=0.1) for _ in range(2)]
    maps = [
        Panel(draw(run.policy.actions[0], best.values[0], mdp.labels.actions, 4), title=f"run {i + 1}, first step")
        for i, run in enumerate(runs)
    ]
    console.print(Columns(maps))
    console.print("arrows: the learned action; shade: the exact optimal value of the state")

    table = Table("", "run 1", "run 2")
    table.add_row("data seed (fresh)", *(str(run.data_seed) for run in runs))
    table.add_row("shared seed", *(str(run.shared_seed) for run in runs))
    table.add_row("samples", *(f"{run.samples:,}" for run in runs))
    table.add_row("value (optimum)", *(f"{mdp.evaluate(run.policy):.4f} ({best.values[0, 0]:.4f})" for run in runs))
    table.add_row("fingerprint", *(f"[bold]{run.policy.short_fingerprint}[/bold]" for run in runs))
    console.print(table)
    same = runs[0].policy == runs[1].policy
    console.print("[bold green]same policy[/bold green]" if same else "[bold red]different policies[/bold red]")
    console.print(f"promised: {runs[0].guarantee}", markup=False)

    plain = [_greedy(mdp, run.counts) for run in runs]
    different = int((plain[0].actions != plain[1].actions).sum())
    cells = plain[0].actions.size
    console.print(f"for comparison, greedy planning on the very same data differs in {different} of {cells} cells")


def _greedy(mdp: reprl.TabularMDP, counts: reprl.Counts) -> reprl.Policy:
    """Empirical backward induction, lowest action on ties: what most people run."""
    value = np.zeros(mdp.n_states)
    actions = np.empty((mdp.horizon, mdp.n_states), dtype=np.int64)
    for h in reversed(range(mdp.horizon)):
        scores = counts.mean_return(h, value)
        actions[h], value = scores.argmax(axis=1), scores.max(axis=1)
    return reprl.Policy(actions)


if __name__ == "__main__":
    main()
