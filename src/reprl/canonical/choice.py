"""The choice among candidates: the whole rule, f(ξ, M).

Every tolerance gives a policy and, where the law does not depend on the step, a stationary one and one that changes at
few steps. Candidates that give the same policy need no separation, so policies are compared: the weight of a policy is
the POOL-norm of the weights of its candidates, which are margins less the loss. The policy with the largest weight, up
to a little shared noise of its own, is chosen; one that changes with the step must weigh more than a stationary one by
a shared handicap.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from reprl.canonical.gaps import Gaps, Ties, break_ties, common_actions, find_gaps
from reprl.canonical.goal import Goal
from reprl.canonical.preferred import CLEAR, PHASED, PREFERRED, STATIONARY, Candidates, phases_of, weigh_tolerances
from reprl.errors import InputError, check_choice, check_int, quote
from reprl.mdp.backup import in_order
from reprl.mdp.criterion import Criterion
from reprl.mdp.dynamics import Dynamics
from reprl.mdp.policy import Policy
from reprl.randomness import SharedKey

KINDS = (PREFERRED, STATIONARY, PHASED)
OCTAVES, STEPS, CELLS = 20, 2, 1 << 10
"""The tolerances: STEPS in every octave from the effective horizon down, with a shared offset; one octave more for
every doubling of the cells (h, s) beyond CELLS, so that a policy that loses the smallest tolerance in every cell loses
little. They depend on H and S alone, not on the law, nor on ε."""
NOISE = 0.3
"""Shared noise of a policy's log weight, uniform in [0, NOISE]."""
CARE = 1.0
"""Weight of the log of what is left of the allowed loss: of two policies that are as firm, the better one."""
LEAST_MARGIN = 1e-9
"""Smaller margins count as this one."""
POOL = 3.0
"""The norm that pools weights of candidates. A sum, 1, would let many small margins outweigh a large one, and small
ones look smaller than they are until much data is in; the largest alone moves with the tolerances' shared offset."""
HANDICAP = (1.8, 4.2)
"""What is taken from the log weight of a policy that changes with the step, where there are stationary candidates:
shared, uniform between these. Greedy policies with and without steps often hang on one comparison and are equally
firm."""
ROOM = (0.75, 0.95)
"""A candidate's loss must stay below a shared random share of ε(M), uniform between these: no world is at the edge for
every key."""


class Rule(NamedTuple):
    """f(ξ, ·): everything about the rule that no data enter."""

    key: SharedKey
    """ξ, at the address of the rule."""
    shape: tuple[int, int, int]
    """(H, S, A), with H = 1 if discounted."""
    criterion: Criterion
    goal: Goal
    baseline: NDArray[np.int64] | None
    """(H, S): what the gain is measured from; None for the most preferred action everywhere."""
    preference: str | tuple[int | str, ...] | None
    order: NDArray[np.int64]
    """(A,): actions, the most preferred first."""
    tolerances: NDArray[np.float64]
    """(J,), falling: candidates of the kind PREFERRED."""
    stationary: NDArray[np.float64]
    """The same for the kind STATIONARY; empty unless the law is said not to depend on the step, of which there are
    several."""
    phased: NDArray[np.float64]
    """The same for the kind PHASED; empty also if each phase is one step."""
    first: int
    """Number of the first candidate: 0, unless only one that a recipe has published is left."""
    room: float
    """The share of ε(M) that a candidate may lose."""
    handicap: float = 0.0
    """What is taken from the log weight of a policy that changes with the step."""

    def policy(self, table: NDArray[np.int64]) -> Policy:
        """Return a table, (H, S), as a policy: stationary if the criterion is discounted."""
        return Policy(self.criterion.actions(table))


class Choice(NamedTuple):
    """What the rule makes of a model."""

    policy: Policy
    kind: str
    """One of KINDS."""
    candidate: int
    """Number of the tolerance in the rule."""
    tolerance: float
    """u: of the tolerances that print this policy, the one with the widest margin."""
    margin: float
    """Its margin: (z/margin)² samples of every cell put z standard deviations between the world and a boundary."""
    lead: float
    """How far its log weight is ahead of the next policy's that was weighed; infinite if there is no other."""
    loss: float
    """V* − V^π in the model."""
    value: float
    """V^π in the model."""
    tightest: tuple[int, int, int] | None
    """Cell (h, s, a) attaining the minimum margin, of a stationary one at the step with the most visits; None where no
    comparison is near."""
    baseline: float
    """The value of the baseline in the model."""
    epsilon: float
    """ε(M): what the policy may lose."""

    @property
    def best(self) -> float:
        """V* from the start, in the model."""
        return self.value + self.loss


def make_rule(
    key: SharedKey,
    shape: tuple[int, int, int],
    *,
    goal: Goal,
    baseline: NDArray[np.int64] | None = None,
    preference: str | Sequence[int | str] | None = None,
    stationary: bool = False,
    criterion: Criterion | None = None,
) -> Rule:
    """Draw the rule's shared parts.

    A gain is measured from baseline, (H, S) actions, or from the most preferred action everywhere. preference is None
    by index, "shared" for a random order, or the actions, best first. stationary says that the law does not depend on
    the step, so that policies without steps may compete. The criterion's effective horizon stands for H; None for the
    shape's.

    Randomness:
        Shared, at key.derive("tolerance"), ("room"), ("handicap") and ("preference"); ``choose`` reads
        ("policy", fingerprint).
    """
    criterion = Criterion(shape[0]) if criterion is None else criterion
    asked = preference if preference is None or isinstance(preference, str) else tuple(preference)
    offset, share, less = (float(key.derive(name).uniforms(1)[0]) for name in ("tolerance", "room", "handicap"))
    tolerances = criterion.effective_horizon * 2.0 ** (-(np.arange(count_tolerances(shape)) + offset) / STEPS)
    several = stationary and shape[0] > 1
    return Rule(
        key=key,
        shape=shape,
        criterion=criterion,
        goal=goal,
        baseline=baseline,
        preference=asked,
        order=preference_order(key, shape[2], asked),
        tolerances=tolerances,
        stationary=tolerances if several else np.empty(0),
        phased=tolerances if several and shape[0] > 2 else np.empty(0),
        first=0,
        room=ROOM[0] + (ROOM[1] - ROOM[0]) * share,
        handicap=HANDICAP[0] + (HANDICAP[1] - HANDICAP[0]) * less if several else 0.0,
    )


def count_tolerances(shape: tuple[int, int, int]) -> int:
    """Return how many tolerances a rule for an environment of a shape, (H, S, A), has."""
    times = -(-shape[0] * shape[1] // CELLS)
    return STEPS * (OCTAVES + max(0, times - 1).bit_length())


def with_key(rule: Rule, key: SharedKey) -> Rule:
    """Return the same rule under another key."""
    return make_rule(
        key,
        rule.shape,
        goal=rule.goal,
        baseline=rule.baseline,
        preference=rule.preference,
        stationary=rule.stationary.size > 0,
        criterion=rule.criterion,
    )


def follow(rule: Rule, kind: str, candidate: int) -> Rule:
    """Return the rule with one candidate only, which a recipe has published: what is left needs far less data."""
    allowed = candidates_of(rule, kind)
    check_int("candidate", candidate, 0, allowed.size - 1)
    keep, none = allowed[candidate : candidate + 1], np.empty(0)
    fields: dict[str, NDArray[np.float64]] = {field: keep if each == kind else none for each, field in _FIELDS.items()}
    return rule._replace(first=candidate, **fields)  # type: ignore[arg-type]


_FIELDS = {PREFERRED: "tolerances", STATIONARY: "stationary", PHASED: "phased"}


def candidates_of(rule: Rule, kind: str) -> NDArray[np.float64]:
    """Return the tolerances of the candidates of a kind."""
    found: NDArray[np.float64] = getattr(rule, _FIELDS[check_choice("kind", kind, KINDS)])
    if not found.size:
        raise InputError(f"kind must be one that the rule has candidates of, got {quote(kind)}")
    return found


def preference_order(key: SharedKey, n_actions: int, preference: str | Sequence[int | str] | None) -> NDArray[np.int64]:
    """Return the actions, the most preferred first."""
    if preference is None:
        return np.arange(n_actions)
    if isinstance(preference, str):
        if preference != "shared":
            raise InputError(f"preference must be None, 'shared' or a list of all actions, got {quote(preference)}")
        return np.argsort(key.derive("preference").uniforms(n_actions), kind="stable")
    if sorted(map(str, preference)) != sorted(map(str, range(n_actions))):
        raise InputError(f"preference must name each of the {n_actions} actions once, got {quote(list(preference))}")
    return np.array(preference, dtype=np.int64)


class _Entry(NamedTuple):
    """A policy that may be chosen, with the candidate of the largest weight that prints it."""

    score: float
    policy: Policy
    kind: str
    candidate: int
    margin: float
    loss: float
    tightest: tuple[int, int, int] | None


def choose(rule: Rule, dynamics: Dynamics, practice: float | None = None, ties: Ties | None = None) -> Choice:
    """Return f(ξ, M).

    practice is the value of the baseline where M says it itself, as a log does; None to evaluate the rule's. ties,
    for simulated second teams: which of several actions that tie is the best; None for f itself, by M alone.

    Guarantee:
        A pure function of all. The policy loses less than rule.room·ε(M) ≤ 0.95·ε(M) in M whenever some candidate does.

    Randomness:
        Shared, at rule.key.derive("policy", fingerprint), whose address is the policy and not how it was found.
    """
    gaps = find_gaps(dynamics, rule.order)
    if ties is not None:
        gaps = break_ties(dynamics, gaps, ties)
    best, practice, epsilon = find_goal(rule, dynamics, gaps, practice)
    entries = _printed(rule, weigh_candidates(rule, dynamics, gaps), rule.room * epsilon)
    entries.sort(key=lambda entry: (-entry.score, entry.loss))  # stable: equal ones keep the order of candidates
    first = entries[0]
    other = next((entry.score for entry in entries if entry.policy != first.policy), -math.inf)
    return Choice(
        policy=first.policy,
        kind=first.kind,
        candidate=rule.first + first.candidate,
        tolerance=float(candidates_of(rule, first.kind)[first.candidate]),
        margin=first.margin,
        lead=first.score - other if math.isfinite(other) else math.inf,
        loss=first.loss,
        value=best - first.loss,
        tightest=first.tightest,
        baseline=practice,
        epsilon=epsilon,
    )


class WorldGoal(NamedTuple):
    """What a goal comes to in a model."""

    best: float
    """V* from the start."""
    baseline: float
    epsilon: float
    """ε(M)."""


def find_goal(rule: Rule, dynamics: Dynamics, gaps: Gaps, practice: float | None) -> WorldGoal:
    """Return what the rule's goal comes to in a model; practice as in ``choose``."""
    best = start_value(dynamics, gaps.value[0])
    if practice is None:
        actions = gaps.default if rule.baseline is None else rule.baseline
        practice = best - dynamics.policy_loss(gaps.value[0], actions)
    return WorldGoal(best, practice, rule.goal.allowed_loss(best - practice, rule.criterion.effective_horizon))


def start_value(dynamics: Dynamics, values: NDArray[np.float64]) -> float:
    """Return the mean of values, (S,), over the start, summed in the order of states."""
    return float(in_order(dynamics.initial, values))


def weigh_candidates(rule: Rule, dynamics: Dynamics, gaps: Gaps) -> dict[str, Candidates]:
    """Apply the rule with every tolerance, by kind.

    Those with phases need an action that may be taken at every step of one, in every state: a matter of the mask alone.
    """
    out = {}
    for kind, field in _FIELDS.items():
        tolerances, phases = getattr(rule, field), phases_of(kind, rule.shape[0])
        if tolerances.size and (phases is None or np.any(common_actions(dynamics, phases), axis=2).all()):
            out[kind] = weigh_tolerances(dynamics, gaps, rule.order, tolerances, phases)
    return out


def _weights(margin: NDArray[np.float64], loss: NDArray[np.float64], room: float) -> NDArray[np.float64]:
    """Log weights of candidates: log margin + CARE·log(1 − loss/room)."""
    left = 1.0 - loss / room
    with np.errstate(divide="ignore", invalid="ignore"):
        firm = np.log(np.clip(margin, LEAST_MARGIN, CLEAR)) + CARE * np.log(left)
    return np.where(left > 0.0, firm, -np.inf)


def noise_of(rule: Rule, policy: Policy) -> float:
    """Return what is added to a policy's log weight: shared noise, less the handicap if it changes with the step."""
    noise = NOISE * float(rule.key.derive("policy", policy.fingerprint).uniforms(1)[0])
    return noise if policy.ignores_step else noise - rule.handicap


def _printed(rule: Rule, found: dict[str, Candidates], room: float) -> list[_Entry]:
    """The policies that tolerances print, each with the candidate of the largest weight, but for some that come third.

    The heaviest are asked for their noise first; no other is once it cannot be among the first two.
    """
    margins, losses = (np.concatenate([getattr(each, name) for each in found.values()]) for name in ("margin", "loss"))
    kinds, weights = list(found.items()), _weights(margins, losses, room)
    numbers: dict[bytes, int] = {}
    policy_of = np.concatenate(
        [
            np.array([numbers.setdefault(table.tobytes(), len(numbers)) for table in each.tables])[each.table]
            for each in found.values()
        ]
    )
    order = np.argsort(policy_of, kind="stable")  # those of a policy beside each other
    begins = np.searchsorted(policy_of[order], np.arange(len(numbers) + 1))
    pooled = np.logaddexp.reduceat(POOL * weights[order], begins[:-1]) / POOL
    entries: dict[int, _Entry] = {}
    best = second = -math.inf
    for number in np.argsort(-pooled, kind="stable").tolist():
        if pooled[number] + NOISE < second:
            break
        group = order[begins[number] : begins[number + 1]]
        first = int(group[np.argmax(weights[group])])
        which, j = divmod(first, order.size // len(kinds))  # kinds have the same number of tolerances
        kind, weighed = kinds[which]
        table, (h, s, a) = weighed.tables[weighed.table[j]], weighed.tightest[j].tolist()
        if pooled[number] + (NOISE - rule.handicap) < second and (table != table[0]).any():
            continue
        policy = rule.policy(table)
        score = float(pooled[number]) + noise_of(rule, policy)
        margin, loss = float(margins[first]), float(losses[first])
        entries[number] = _Entry(score, policy, kind, j, margin, loss, None if h < 0 else (h, s, a))
        best, second = max(best, score), max(second, min(best, score))
    return [entries[number] for number in sorted(entries)]
