"""The choice among candidates: the rule whole, f(ξ, M).

Every tolerance prints a policy. Tolerances that print the same one need no separation, so it is policies that are
compared: a policy's weight is the sum of the margins of the tolerances that print it, each less what it loses. The
policy with the largest weight, up to a little shared noise of its own, is the world's.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from reprl.errors import ReprlError, quote
from reprl.mdp.policy import Policy
from reprl.randomness import SharedKey
from reprl.mdp.dynamics import Dynamics
from reprl.rule.gaps import find_gaps
from reprl.rule.preferred import weigh_tolerances

TOLERANCES = 24
"""J: candidates on a log grid with a shared offset, from 2⁻⁷·ε/H to H."""
NOISE = 0.3
"""Shared noise of a policy's log weight, uniform in [0, NOISE]."""
ROOM = 0.95
"""Share of ε that a candidate's loss must stay below."""


class Rule(NamedTuple):
    """f(ξ, ·): everything about the rule that no data enter."""

    key: SharedKey
    """ξ, at the address of the rule."""
    shape: tuple[int, int, int]
    """(H, S, A)."""
    epsilon: float
    preference: str | tuple[int, ...] | None
    order: NDArray[np.int64]
    """(A,): actions, the most preferred first."""
    tolerances: NDArray[np.float64]
    """(J,), rising."""
    floor: float
    """τ: where a policy comes with a smaller probability, it says the most preferred action."""


class Choice(NamedTuple):
    """What the rule makes of a model."""

    policy: Policy
    tolerance: float
    """u: of the tolerances that print this policy, the one with the widest margin."""
    margin: float
    """Its margin: (z/margin)² samples of every cell put z standard deviations between the world and a boundary."""
    lead: float
    """How far its log weight is ahead of the next policy's; infinite if every tolerance prints this one."""
    loss: float
    """V* − V^π in the model."""
    value: float
    """V^π in the model."""
    tightest: tuple[int, int, int] | None
    """The comparison (h, s, a) that the margin is of; None where none is near."""


def make_rule(
    key: SharedKey,
    shape: tuple[int, int, int],
    *,
    epsilon: float,
    preference: str | Sequence[int] | None = None,
) -> Rule:
    """Draw the rule's shared parts.

    Args:
        key: ξ.
        shape: (H, S, A).
        epsilon: accuracy, in units of value.
        preference: None by index, "shared" for a random order, or the actions, best first.

    Randomness:
        Shared, at key.derive("tolerance"), ("floor") and ("preference"); ``choose`` reads ("policy", fingerprint).
    """
    horizon, n_states, n_actions = shape
    low, high = math.log(epsilon / horizon) - 7.0 * math.log(2.0), math.log(horizon)
    offset = float(key.derive("tolerance").uniforms(1)[0])
    tolerances = np.exp(low + (high - low) / TOLERANCES * (np.arange(TOLERANCES) + offset))
    floor = epsilon / (16.0 * horizon * n_states) * 2.0 ** -float(key.derive("floor").uniforms(1)[0])
    asked = preference if preference is None or isinstance(preference, str) else tuple(preference)
    return Rule(key, shape, epsilon, asked, preference_order(key, n_actions, asked), tolerances, floor)


def with_key(rule: Rule, key: SharedKey) -> Rule:
    """Return the same rule under another key."""
    return make_rule(key, rule.shape, epsilon=rule.epsilon, preference=rule.preference)


def preference_order(key: SharedKey, n_actions: int, preference: str | Sequence[int] | None) -> NDArray[np.int64]:
    """Return the actions, the most preferred first."""
    if preference is None:
        return np.arange(n_actions)
    if isinstance(preference, str):
        if preference != "shared":
            raise ReprlError(f"preference must be None, 'shared' or a list of all actions, got {quote(preference)}")
        return np.argsort(key.derive("preference").uniforms(n_actions), kind="stable")
    order = list(preference)
    if sorted(order) != list(range(n_actions)):
        raise ReprlError(f"preference must name each of the {n_actions} actions once, got {quote(preference)}")
    return np.array(order, dtype=np.int64)


def choose(rule: Rule, dynamics: Dynamics) -> Choice:
    """Return f(ξ, M).

    Args:
        rule: f(ξ, ·).
        dynamics: M, true or estimated.

    Guarantee:
        A pure function of both. The policy loses less than 0.95·ε in M whenever some candidate does; the smallest
        tolerance does unless the floor costs that much.

    Randomness:
        Shared, at rule.key.derive("policy", fingerprint): the address is the policy, not how it was found.
    """
    gaps = find_gaps(dynamics, rule.order)
    found = weigh_tolerances(dynamics, gaps, rule.order, rule.tolerances, rule.floor)
    share = found.loss / (ROOM * rule.epsilon)
    with np.errstate(divide="ignore", invalid="ignore"):
        weights = np.where(share < 1.0, np.log(np.maximum(found.margin, 1e-9)) + 0.5 * np.log1p(-share), -np.inf)
    printed: dict[bytes, list[int]] = {}
    for j in range(rule.tolerances.size):
        printed.setdefault(found.actions[j].tobytes(), []).append(j)
    groups = list(printed.values())
    policies = [Policy(found.actions[group[0]]) for group in groups]
    scores = np.array(
        [
            np.logaddexp.reduce(weights[group]) + NOISE * float(rule.key.derive("policy", policy.fingerprint).uniforms(1)[0])
            for group, policy in zip(groups, policies, strict=True)
        ]
    )
    ranked = np.argsort(-scores, kind="stable")
    group = groups[ranked[0]]
    j = group[int(np.argmax(weights[group]))]
    lead = float(scores[ranked[0]] - scores[ranked[1]]) if len(groups) > 1 else math.inf
    tightest = tuple(int(i) for i in found.tightest[j])
    return Choice(
        policy=policies[ranked[0]],
        tolerance=float(rule.tolerances[j]),
        margin=float(found.margin[j]),
        lead=lead if not math.isnan(lead) else 0.0,
        loss=float(found.loss[j]),
        value=float(dynamics.initial @ gaps.value[0] - found.loss[j]),
        tightest=None if tightest[0] < 0 else tightest,  # type: ignore[arg-type]
    )
