"""Listing: a policy over many states as a table to search in, a strip of actions over the steps of each state."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from reprl.report.maps import Maps
from reprl.report.names import action_name, state_name
from reprl.report.page import escape, number
from reprl.sources.environment import Environment

_MOST = 5_000
"""States that a page lists."""


def policy_listing(
    maps: Maps, actions: NDArray[np.int64], ignored: NDArray[np.bool_], visits: NDArray[np.float64]
) -> str:
    """Return the card of the table; the states with most samples where there are too many for a page.

    Args:
        maps: names and colours.
        actions: (H, S).
        ignored: (H, S), where nothing was decided.
        visits: (H, S), samples.
    """
    world, total = maps.world, visits.sum(axis=0)
    states = np.sort(np.argsort(-total, kind="stable")[:_MOST]).tolist()
    rows = "".join(
        f'<tr><th scope="row">{escape(state_name(world, s))}</th><td><div class="strip">'
        f'{_strip(world, actions[:, s], ignored[:, s])}</div></td><td class="num">{number(total[s])}</td></tr>'
        for s in states
    )
    head = "".join(f'<th scope="col">{name}</th>' for name in ("state", world.criterion.steps, "samples"))
    left = world.n_states - len(states)
    rest = f" The {left:,} states with the fewest samples are left out." if left else ""
    return (
        '<section class="card" id="listing"><h2>Every state</h2><p class="caption">What to do from the first step to '
        f"the last, one bar for each stretch with one action; grey where nothing was decided.{rest}</p>"
        '<p class="search js-only"><input type="search" data-search="states" placeholder="state or action" '
        'aria-label="search states and actions"><span class="found"></span></p>'
        f'<div class="list {maps.ramp}" id="states" tabindex="0"><table><thead><tr>{head}</tr></thead>'
        f"<tbody>{rows}</tbody></table></div></section>"
    )


def _strip(world: Environment, actions: NDArray[np.int64], ignored: NDArray[np.bool_]) -> str:
    """The stretches of equal actions of one state."""
    kinds = np.where(ignored, -1, actions)
    starts = [0, *(np.flatnonzero(np.diff(kinds)) + 1).tolist(), kinds.size]
    parts = []
    for low, high in pairwise(starts):
        a, length = int(kinds[low]), high - low
        wide = f' style="--n:{length}"' if length > 1 else ""
        name = "" if a < 0 else escape(action_name(world, a))
        parts.append(f'<i class="{"none" if a < 0 else f"l{a}"}"{wide} title="{name}">{name}</i>')
    return "".join(parts)
