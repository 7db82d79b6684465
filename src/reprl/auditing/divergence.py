"""First divergence: which stage of two runs parted first, in which cell, and how close the call was."""

from __future__ import annotations

import math
from typing import Annotated, NamedTuple

import numpy as np
from numpy.typing import NDArray

from reprl.auditing.exact_quantities import TIE
from reprl.learning.protocol import Run
from reprl.mdp.policy import Policy
from reprl.paper.rep_rl_bandit import Induction
from reprl.sources.environment import Environment
from reprl.storage.fields import many, real, whole

STAGES = ("try", "comparison", "partition", "arms", "rounding", "policy")
"""In the order in which a run passes them: the first two of the default rule, then those of "paper"; "policy" for
learners that show nothing but their policy."""

Pair = tuple[Run, Run]
Inductions = tuple[Induction, Induction]


class Divergence(NamedTuple):
    """Where a pair of runs parted first."""

    pair: int
    stage: str
    """One of STAGES."""
    tier: int | None
    step: Annotated[int | None, whole(0, lambda at: at.environment.horizon)]
    state: Annotated[int | None, whole(0, lambda at: at.environment.n_states - 1)]
    margin: Annotated[float | None, real(-math.inf)]
    """How close the call was, in the stage's own units: see ``first_divergence``; 0 is an exact tie."""
    actions: Annotated[tuple[int, int] | None, many(whole(0, lambda at: at.environment.n_actions - 1), 2)]
    """What the two runs chose."""
    text: str
    """The same for people."""


def first_divergence(number: int, first: Run, second: Run, world: Environment) -> Divergence | None:
    """Compare two runs of a learner that shows its stages, one by one, in the order in which they decide.

    Returns:
        None if the policies agree. Of the default rule: the try, where another one passed (margin: how much the shares
        of the allowed loss that were lost differ); otherwise the comparison, in the first cell that differs (margin:
        the same). Of the rule "paper" the first of: the partition, tier by tier (margin: |μ̂ − μ̂'| of the cell);
        then, from the last step back, the arms (gap between the scores of the two actions, averaged over the runs) and
        the rounding of values (their distance). Of the cells that part in one draw, the one whose laws lie furthest
        apart is named.
    """
    if first.policy == second.policy:
        return None
    pair = (first, second)
    if first.choice is not None and second.choice is not None:
        return _asked(number, pair, world)
    if first.induction is None or second.induction is None:
        return policy_divergence(number, first.policy, second.policy, world, None)
    found = _partition(number, pair, world)
    inductions = (first.induction, second.induction)
    for h in reversed(range(world.horizon)):
        found = found or _arms(number, pair, inductions, h, world) or _rounding(number, pair, inductions, h, world)
    return found


def policy_divergence(
    number: int,
    first: Policy,
    second: Policy,
    world: Environment,
    scores: NDArray[np.float64] | None,
    reachable: NDArray[np.bool_] | None = None,
) -> Divergence | None:
    """Name the last step, and its first state, in which two policies differ, among cells that a policy reaches.

    scores are Q*, (H, S, A), if it is known: the margin is the distance of the two actions in it. reachable, (H, S),
    are the cells that some policy reaches.
    """
    apart = first.differs(second)
    if not apart.any():
        return None
    reached = apart if reachable is None else apart & reachable
    apart, beyond = (
        (reached, "")
        if reached.any()
        else (apart, "; neither policy was seen there" if scores is None else "; no policy gets there")
    )
    h = int(np.flatnonzero(apart.any(axis=1))[-1])
    s = int(np.flatnonzero(apart[h])[0])
    a, b = int(first.table[h, s]), int(second.table[h, s])
    margin = None if scores is None else float(abs(scores[h, s, a] - scores[h, s, b]))
    if margin is None:
        close = "their values are not known"
    elif margin <= TIE:
        margin, close = 0.0, "an exact tie"
    else:
        close = f"a gap of {margin:.3g} in value"
    text = f"{world.cell(h, s)}: {world.labels.action(a)} against {world.labels.action(b)}, {close}{beyond}"
    return Divergence(number, "policy", None, h, s, margin, (a, b), text)


def _asked(number: int, pair: Pair, world: Environment) -> Divergence:
    """Name the try that passed in one run alone, or else the first cell whose comparison came out differently."""
    one, two = (run.choice for run in pair)
    assert one is not None
    assert two is not None
    lost = [(choice.best - choice.value) / choice.allowed for choice in (one, two)]
    margin = abs(lost[0] - lost[1])
    knew = (
        f"the policies lose {lost[0]:.2g} and {lost[1]:.2g} of what is allowed ({one.allowed:.3g}, {two.allowed:.3g})"
    )
    if (one.level, one.attempt) != (two.level, two.attempt):
        tries = " and ".join(f"try {x.attempt} of level {x.level}" for x in (one, two))
        return Divergence(number, "try", None, None, None, margin, None, f"{tries} passed; {knew}")
    h, s = (int(i) for i in np.argwhere(pair[0].policy.differs(pair[1].policy))[0])
    actions = int(pair[0].policy.table[h, s]), int(pair[1].policy.table[h, s])
    text = f"{world.cell(h, s)}: {_versus(world, actions)}, in try {one.attempt} of level {one.level}; {knew}"
    return Divergence(number, "comparison", None, h, s, margin, actions, text)


def _versus(world: Environment, actions: tuple[int, int]) -> str:
    return f"{world.labels.action(actions[0])} against {world.labels.action(actions[1])}"


def _partition(number: int, pair: Pair, world: Environment) -> Divergence | None:
    levels = [run.tiers.level for run in pair]
    apart = levels[0] != levels[1]
    if not apart.any():
        return None
    lower = np.minimum(*levels)
    tier = int(lower[apart].min())  # the draw of this tier's set parted the runs, before any later tier's
    apart &= lower == tier
    if any(run.explored is None or len(run.explored.fractional) < tier for run in pair):
        h, s = _furthest(apart, np.zeros(apart.shape))
        text = f"{world.cell(h, s)}: in tier {levels[0][h, s]} of one run and {levels[1][h, s]} of the other"
        return Divergence(number, "partition", tier, h, s, None, None, text)
    mu = [run.explored.fractional[tier - 1] for run in pair if run.explored is not None]
    h, s = _furthest(apart, np.abs(mu[0] - mu[1]))
    margin = float(abs(mu[0][h, s] - mu[1][h, s]))
    inside = ["kept" if level[h, s] == tier else "ignored" for level in levels]
    text = (
        f"{world.cell(h, s)}: {inside[0]} by one run and {inside[1]} by the other in tier {tier}; under-explored in a "
        f"fraction {mu[0][h, s]:.4g} and {mu[1][h, s]:.4g} of their runs{_others(apart)}"
    )
    return Divergence(number, "partition", tier, h, s, margin, None, text)


def _arms(number: int, pair: Pair, inductions: Inductions, h: int, world: Environment) -> Divergence | None:
    one, two = inductions
    chosen = [run.policy.table[h] for run in pair]
    level = pair[0].tiers.level[h]
    apart = chosen[0] != chosen[1]
    if not apart.any():
        return None
    tier = int(level[apart].min())
    apart &= level == tier
    distance = 0.5 * np.abs(one.laws[h] - two.laws[h]).sum(axis=1)
    (s,) = _furthest(apart, distance)
    a, b = int(chosen[0][s]), int(chosen[1][s])
    gaps = [float(run.scores[h, s, a] - run.scores[h, s, b]) for run in inductions]
    noise = float(np.abs(one.scores[h, s] - two.scores[h, s])[[a, b]].max())
    margin = abs(gaps[0] + gaps[1]) / 2.0
    text = (
        f"{world.cell(h, s)}, tier {tier}: {world.labels.action(a)} against {world.labels.action(b)}, whose scores "
        f"differ by {gaps[0]:+.3g} in one run and {gaps[1]:+.3g} in the other; a score moved by {noise:.3g} between "
        f"the runs, the laws by {distance[s]:.3g} in total variation{_others(apart)}"
    )
    return Divergence(number, "arms", tier, h, s, margin, (a, b), text)


def _rounding(number: int, pair: Pair, inductions: Inductions, h: int, world: Environment) -> Divergence | None:
    values = [run.values[h] for run in inductions]
    apart = values[0] != values[1]
    if not apart.any():
        return None
    (s,) = _furthest(apart, np.abs(values[0] - values[1]))
    margin = float(abs(values[0][s] - values[1][s]))
    tier = int(pair[0].tiers.level[h, s])
    text = (
        f"{world.cell(h, s)}, tier {tier}: its value was rounded to {values[0][s]:.6g} in one run and "
        f"{values[1][s]:.6g} in the other{_others(apart)}"
    )
    return Divergence(number, "rounding", tier, h, s, margin, None, text)


def _furthest(apart: NDArray[np.bool_], distance: NDArray[np.float64]) -> tuple[int, ...]:
    """The marked place with the greatest distance, the first of equals."""
    place = np.unravel_index(int(np.where(apart, distance, -1.0).argmax()), apart.shape)
    return tuple(int(i) for i in place)


def _others(apart: NDArray[np.bool_]) -> str:
    more = int(apart.sum()) - 1
    return f" (and {more} more {'cell' if more == 1 else 'cells'} of this draw)" if more else ""
