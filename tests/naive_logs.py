"""Slow, obvious versions of what is done with logs."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

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


def read_practice(visits: Any, mask: Any, least: float, shift: Any, ended: int) -> tuple[Any, Any, Any]:
    """What practice allows, (H, S, A) nested lists; its law, the same; and the actions of each state in its order.

    visits (1 or H, S, A) and mask (H, S, A) are nested lists.
    """
    allowed: list[list[list[bool]]] = []
    laws: list[list[list[float]]] = []
    orders: list[list[int]] = []
    for s in range(len(mask[0])):
        times = [sum(step[s][a] for step in visits) for a in range(len(mask[0][0]))]
        octaves = [math.floor(math.log2(n / sum(times)) + shift[s]) if n else -math.inf for n in times]
        orders.append(sorted(range(len(times)), key=lambda a, octaves=octaves: (-octaves[a], a)))  # type: ignore[misc]
    for h in range(len(mask)):
        allowed.append([])
        laws.append([])
        for s, may in enumerate(mask[h]):
            seen = visits[h if len(visits) > 1 else 0][s]
            if not sum(seen):
                seen = [sum(step[s][a] for step in visits) for a in range(len(may))]
            if s == ended:
                seen = [0] * len(may)
            total = sum(seen)
            usual = max((a for a in range(len(may)) if may[a]), key=lambda a: (seen[a], -a))
            allowed[h].append(
                [may[a] and (a == usual or (total > 0 and seen[a] / total >= least)) for a in range(len(may))]
            )
            laws[h].append([seen[a] / total if total else float(a == usual) for a in range(len(may))])
    return allowed, laws, orders
