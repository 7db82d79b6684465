"""The choice among candidates: the rule whole, f(ξ, M).

Every tolerance prints a policy. Tolerances that print the same one need no separation, so it is policies that are
compared: a policy's weight is the sum of the margins of the tolerances that print it, each less what it loses. Policies
drawn from laws compete by the same ruler. The heaviest, up to a little shared noise of its own, is the world's policy.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from reprl.coupling.correlated import correlated_sample
from reprl.coupling.grade import Grade
from reprl.errors import ReprlError, check_choice, check_int, quote
from reprl.mdp.dynamics import Dynamics
from reprl.mdp.forever import whole
from reprl.mdp.policy import Policy
from reprl.randomness import SharedKey
from reprl.rule.gaps import Gaps, find_gaps
from reprl.rule.preferred import CLEAR, Candidates, policy_loss, weigh_tolerances
from reprl.rule.sampled import plateau_laws

KINDS = ("preferred", "sampled")
TOLERANCES = 24
"""J: tolerances on a log grid with a shared offset, from 2⁻⁷·ε/H to H."""
WIDTHS = (1.0, 2.0, 4.0)
"""Widths of plateau laws, in ε/H times a shared factor in [1, 2)."""
NOISE = 0.3
"""Shared noise of a policy's log weight, uniform in [0, NOISE]."""
LEAST_MARGIN = 1e-9
"""Smaller margins count as this one."""
ROOM = (0.5, 0.95)
"""A candidate's loss must stay below a shared random share of ε, uniform between these: no world is at the edge for
every key."""


class Rule(NamedTuple):
    """f(ξ, ·): everything about the rule that no data enter."""

    key: SharedKey
    """ξ, at the address of the rule."""
    shape: tuple[int, int, int]
    """(H, S, A)."""
    epsilon: float
    preference: str | tuple[int | str, ...] | None
    order: NDArray[np.int64]
    """(A,): actions, the most preferred first."""
    tolerances: NDArray[np.float64]
    """(J,), rising: candidates of the kind "preferred"."""
    widths: NDArray[np.float64]
    """Candidates of the kind "sampled"."""
    first: int
    """Number of the first candidate: 0, unless only one that a recipe has published is left."""
    room: float
    """What a candidate may lose, less than ε."""
    floor: float
    """τ: where a policy comes with a smaller probability, it says the most preferred action."""
    discount: float = 0.0
    """γ of a discounted world, whose shape is (1, S, A); 0 where there is a horizon."""

    def policy(self, table: NDArray[np.int64]) -> Policy:
        """Return a table, (H, S), as a policy: stationary if the world is discounted."""
        return Policy(table[0] if self.discount else table)


class Choice(NamedTuple):
    """What the rule makes of a model."""

    policy: Policy
    kind: str
    """"preferred" or "sampled"."""
    candidate: int
    """Number of the tolerance, or of the width, in the rule."""
    tolerance: float
    """u: of the tolerances that print this policy, the one with the widest margin; the width of a sampled one."""
    margin: float
    """Its margin: (z/margin)² samples of every cell put z standard deviations between the world and a boundary."""
    lead: float
    """How far its log weight is ahead of the next policy's that was weighed; infinite if there is no other."""
    loss: float
    """V* − V^π in the model."""
    value: float
    """V^π in the model."""
    tightest: tuple[int, int, int] | None
    """The comparison (h, s, a) that the margin is of; None where none is near, or for a sampled one."""


def make_rule(
    key: SharedKey,
    shape: tuple[int, int, int],
    *,
    epsilon: float,
    preference: str | Sequence[int | str] | None = None,
    discount: float = 0.0,
) -> Rule:
    """Draw the rule's shared parts.

    Args:
        key: ξ.
        shape: (H, S, A).
        epsilon: accuracy, in units of value.
        preference: None by index, "shared" for a random order, or the actions, best first.
        discount: γ of a discounted world, for which 1/(1 − γ) takes the place of H; 0 where there is a horizon.

    Randomness:
        Shared, at key.derive("tolerance"), ("width"), ("room"), ("floor") and ("preference"); ``choose`` reads
        ("policy", fingerprint) and ("sampled", number).
    """
    _, n_states, n_actions = shape
    horizon = whole(discount) if discount else shape[0]
    asked = preference if preference is None or isinstance(preference, str) else tuple(preference)
    low, high = math.log(epsilon / horizon) - 7.0 * math.log(2.0), math.log(horizon)
    names = ("tolerance", "width", "room", "floor")
    offset, factor, share, part = (float(key.derive(name).uniforms(1)[0]) for name in names)
    return Rule(
        key=key,
        shape=shape,
        epsilon=epsilon,
        preference=asked,
        order=preference_order(key, n_actions, asked),
        tolerances=np.exp(low + (high - low) / TOLERANCES * (np.arange(TOLERANCES) + offset)),
        widths=np.array(WIDTHS) * (epsilon / horizon * 2.0**factor),
        first=0,
        room=epsilon * (ROOM[0] + (ROOM[1] - ROOM[0]) * share),
        floor=epsilon / (16.0 * horizon * n_states) * 2.0**-part,
        discount=discount,
    )


def with_key(rule: Rule, key: SharedKey) -> Rule:
    """Return the same rule under another key."""
    return make_rule(key, rule.shape, epsilon=rule.epsilon, preference=rule.preference, discount=rule.discount)


def follow(rule: Rule, kind: str, candidate: int) -> Rule:
    """Return the rule with one candidate only, which a recipe has published: what is left needs far less data."""
    allowed = {"preferred": rule.tolerances, "sampled": rule.widths}[check_choice("kind", kind, KINDS)]
    check_int("candidate", candidate, 0, allowed.size - 1)
    keep, none = allowed[candidate : candidate + 1], np.empty(0)
    return rule._replace(
        tolerances=keep if kind == "preferred" else none, widths=keep if kind == "sampled" else none, first=candidate
    )


def preference_order(key: SharedKey, n_actions: int, preference: str | Sequence[int | str] | None) -> NDArray[np.int64]:
    """Return the actions, the most preferred first."""
    if preference is None:
        return np.arange(n_actions)
    if isinstance(preference, str):
        if preference != "shared":
            raise ReprlError(f"preference must be None, 'shared' or a list of all actions, got {quote(preference)}")
        return np.argsort(key.derive("preference").uniforms(n_actions), kind="stable")
    if sorted(map(str, preference)) != sorted(map(str, range(n_actions))):
        raise ReprlError(f"preference must name each of the {n_actions} actions once, got {quote(list(preference))}")
    return np.array(preference, dtype=np.int64)


class _Entry(NamedTuple):
    """A policy that may be chosen."""

    score: float
    policy: Policy
    kind: str
    candidate: int
    margin: float


def choose(rule: Rule, dynamics: Dynamics) -> Choice:
    """Return f(ξ, M).

    Args:
        rule: f(ξ, ·).
        dynamics: M, true or estimated.

    Guarantee:
        A pure function of both. The policy loses less than rule.room ≤ 0.95·ε in M whenever some candidate does; the
        smallest tolerance does unless the floor costs that much.

    Randomness:
        Shared, at rule.key.derive("policy", fingerprint), whose address is the policy and not how it was found, and at
        rule.key.derive("sampled", number of the width).
    """
    gaps = find_gaps(dynamics, rule.order)
    found = weigh_tolerances(dynamics, gaps, rule.order, rule.tolerances, rule.floor)
    entries = _preferred(rule, found)
    entries += _sampled(rule, dynamics, gaps, max((entry.score for entry in entries), default=-math.inf))
    entries.sort(key=lambda entry: -entry.score)  # stable: equal scores keep the order of candidates
    first = entries[0]
    other = next((entry.score for entry in entries if entry.policy != first.policy), -math.inf)
    ahead = first.score - other if math.isfinite(other) else math.inf
    worth = float(dynamics.initial @ gaps.value[0])
    if first.kind == "sampled":
        width, loss = float(rule.widths[first.candidate]), policy_loss(dynamics, gaps.value[0], first.policy.table)
        number = rule.first + first.candidate
        return Choice(first.policy, "sampled", number, width, first.margin, ahead, loss, worth - loss, None)
    j = first.candidate
    h, s, a = (int(i) for i in found.tightest[j])
    loss = float(found.loss[j])
    return Choice(
        policy=first.policy,
        kind="preferred",
        candidate=rule.first + j,
        tolerance=float(rule.tolerances[j]),
        margin=first.margin,
        lead=ahead,
        loss=loss,
        value=worth - loss,
        tightest=None if h < 0 else (h, s, a),
    )


def _weight(rule: Rule, margin: NDArray[np.float64], loss: NDArray[np.float64]) -> NDArray[np.float64]:
    """Log weights of candidates: log margin + ½·log(1 − loss/room)."""
    left = 1.0 - loss / rule.room
    with np.errstate(divide="ignore", invalid="ignore"):
        weight: NDArray[np.float64] = np.where(
            left > 0.0, np.log(np.clip(margin, LEAST_MARGIN, CLEAR)) + 0.5 * np.log(left), -np.inf
        )
    return weight


def noise_of(rule: Rule, policy: Policy) -> float:
    """Return the shared noise of a policy's log weight."""
    return NOISE * float(rule.key.derive("policy", policy.fingerprint).uniforms(1)[0])


def _preferred(rule: Rule, found: Candidates) -> list[_Entry]:
    """The policies that tolerances print, each with the tolerance of the largest weight."""
    weights = _weight(rule, found.margin, found.loss)
    printed: dict[bytes, list[int]] = {}
    for j in range(rule.tolerances.size):
        printed.setdefault(found.actions[j].tobytes(), []).append(j)
    entries = []
    for group in printed.values():
        policy = rule.policy(found.actions[group[0]])
        score = float(np.logaddexp.reduce(weights[group])) + noise_of(rule, policy)
        widest = group[int(np.argmax(weights[group]))]
        entries.append(_Entry(score, policy, "preferred", widest, float(found.margin[widest])))
    return entries


def _sampled(rule: Rule, dynamics: Dynamics, gaps: Gaps, rival: float) -> list[_Entry]:
    """The policies drawn from plateau laws; a width that cannot beat the rival's score is not drawn from at all."""
    horizon, n_states, n_actions = rule.shape
    grade = Grade.auto(horizon * n_states, n_actions)
    entries = []
    for number, width in enumerate(rule.widths):
        laws, firm = plateau_laws(dynamics, gaps, rule.order, float(width), rule.floor)
        margin = np.array([firm])
        if float(_weight(rule, margin, np.zeros(1))[0]) + NOISE <= rival:
            continue
        key = rule.key.derive("sampled", rule.first + number)
        drawn = correlated_sample(key, laws.reshape(-1, n_actions), grade.method, grade.block)
        policy = rule.policy(drawn.reshape(horizon, n_states))
        loss = np.array([policy_loss(dynamics, gaps.value[0], policy.table)])
        score = float(_weight(rule, margin, loss)[0]) + noise_of(rule, policy)
        entries.append(_Entry(score, policy, "sampled", number, float(margin[0])))
    return entries
