"""Slow, obvious versions of what is done with logs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from reprl.sources.logs.block_bootstrap import BLOCKS


def count_rows(
    rows: Sequence[dict[str, Any]], horizon: int, piece: int | None = None
) -> list[tuple[Counter[Any], Counter[Any]]]:
    """For each block, outcomes (h, s, a, s', r) and starts of checked rows, label by label; "ended" after done.

    A row without next_state leads to the next row's state, or to "ended" if it is the last of its episode. Where pieces
    of so many rows are dealt instead of episodes, all rows are of step 0.
    """
    blocks: list[tuple[Counter[Any], Counter[Any]]] = []
    dealt, h = -1, 0
    for i, row in enumerate(rows):
        first = i == 0 or row["episode"] != rows[i - 1]["episode"]
        h = 0 if first else h
        if first or (piece and h % piece == 0 and h < horizon):
            dealt += 1
            if dealt < BLOCKS:
                blocks.append((Counter(), Counter()))
        if first:
            blocks[dealt % BLOCKS][1][row["state"]] += 1
        last = i + 1 == len(rows) or rows[i + 1]["episode"] != row["episode"]
        following = row.get("next_state", "ended" if last else rows[min(i + 1, len(rows) - 1)]["state"])
        if row.get("done"):
            following = "ended"
        if h < horizon:
            blocks[dealt % BLOCKS][0][0 if piece else h, row["state"], row["action"], following, row["reward"]] += 1
        h += 1
    return blocks


def fade(share: float, full: float) -> float:
    return min(1.0, max(0.0, 2.0 * share / full - 1.0))


def best_values(visits: Any, mean: Any, law: Any, start: Any, support: float, reach: float, ended: int) -> Any:
    """Q of the rule on a log, (H, S, A), −inf for an action that does not count; loops over everything.

    visits (H, S, A), mean rewards (H, S, A), law (H, S, A, S), start (S,) counts.
    """
    horizon, n_states, n_actions = visits.shape
    value = np.zeros(n_states)
    out = np.full(visits.shape, -np.inf)
    for h in range(horizon - 1, -1, -1):
        here = np.zeros(n_states)
        for s in range(n_states):
            known = 1.0 if s == ended else fade(visits[h, s].sum() / start.sum(), reach)
            for a in range(n_actions):
                most = visits[h, s].max()
                backing = 1.0 if s == ended else fade(visits[h, s, a] / most, support) if most else 0.0
                if known > 0.0 and backing > 0.0:
                    price = 10.0 * horizon * (1.0 - backing)
                    out[h, s, a] = known * (mean[h, s, a] + law[h, s, a] @ value) - price
            here[s] = max(out[h, s].max(), -np.inf) if np.isfinite(out[h, s]).any() else 0.0
        value = here
    return out


def best_values_forever(
    visits: Any, mean: Any, law: Any, starts: int, support: float, reach: float, ended: int, discount: float
) -> tuple[Any, Any]:
    """As ``best_values`` with a discount, (S, A), and how far states are known, by going round a thousand times.

    visits (S, A), mean rewards (S, A), law (S, A, S); an episode of more than 1/(1 − γ) rows counts as several.
    """
    n_states, n_actions = visits.shape
    rows = sum(visits[s].sum() for s in range(n_states) if s != ended)
    episodes = max(starts, rows * (1.0 - discount))
    known = [1.0 if s == ended else fade(visits[s].sum() / episodes, reach) for s in range(n_states)]
    value = np.zeros(n_states)
    for _ in range(1000):
        out = np.full(visits.shape, -np.inf)
        for s in range(n_states):
            for a in range(n_actions):
                most = visits[s].max()
                backing = 1.0 if s == ended else fade(visits[s, a] / most, support) if most else 0.0
                if known[s] > 0.0 and backing > 0.0:
                    price = 10.0 * (1.0 - backing) / (1.0 - discount)
                    out[s, a] = known[s] * (mean[s, a] + discount * law[s, a] @ value) - price
        value = np.array([max(row) if np.isfinite(row).any() else 0.0 for row in out])
    return out, known
