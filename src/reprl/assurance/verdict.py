"""Verdict: after a round, is the quality known, and would a second team print the policy? Each is judged by itself."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from reprl.assurance.teams import BLOCK, Answers, Frequencies, Round, redraw_rows
from reprl.mdp.evidence import Evidence, estimate, hopeful
from reprl.mdp.model import evaluate, from_start, one_hot, solve
from reprl.randomness import DataStream
from reprl.rule.bound import SoftRule
from reprl.rule.draws import Draws
from reprl.rule.soft import LAST, Asked, Choice, allow, apply_rule, lost, make_room

LOSS, HELD_OUT = 0.95, 0.7
"""Share of the allowed loss that the policy may lose in the run's own estimate, and held out."""
RESOLVED, CLEAR = 0.1, 4.5
"""A comparison is resolved where its standard deviation over the teams is at most this share of the try's allowed loss;
clear where its mean is at least so many of them from its threshold."""


Ask = Callable[[Round, str, range], Answers]
"""Asks the teams with these numbers, in a round of this name."""


class Verdict(NamedTuple):
    """What a round supports."""

    good: bool
    """Whether the policy has the quality."""
    same: bool
    """Whether a second team would print it."""
    held_out: float
    """What the rule on one half of the data loses on the other half, as a share of the allowed loss."""
    crossed: bool
    """Whether the run's own two halves, cross-fitted, print the policy."""
    teams: int
    """Simulated second teams that were asked; 0 if nothing could depend on them."""
    agree: int
    """Those that print the policy."""
    content: int
    """Those that do not say that it loses more than is allowed."""
    apart: NDArray[np.float64]
    """(H, S): share of the teams that take another action."""


def judge(
    evidence: Evidence,
    asked: Asked,
    draws: Draws,
    policy: NDArray[np.int64],
    choice: Choice,
    *,
    rho: float,
    delta: float,
    min_probability: float,
    looks: int,
    last: bool,
    ask: Ask,
) -> Verdict:
    """Judge a round.

    Args:
        evidence: of the run.
        asked: what the rule measures a policy by.
        draws: ξ.
        policy: (H, S): the run's own.
        choice: the run's own.
        rho: largest probability that two runs differ.
        delta: largest probability that the quality is missed.
        min_probability: p: no outcome that matters is rarer; 0 if nothing is assumed.
        looks: rounds that were judged before.
        last: whether nothing more can be gathered; teams are then asked in any case.
        ask: asks teams.

    Guarantee:
        Rehearsed (docs/rehearsal.md). After few = 4/min(ρ, δ) teams at most a share ρ/4, or δ/4, may object if every
        comparison of the try that printed the policy is resolved or clear; otherwise none of 10/min(ρ, δ) and
        2/min(ρ, δ) more for every look.

    Randomness:
        That of `ask`, under the name LOOKS.
    """
    room, theirs = make_room(draws, asked.order.shape[1]), np.empty_like(policy)
    held_out = hold_out(evidence, asked, draws) / choice.allowed
    good = choice.best - choice.value <= LOSS * choice.allowed and held_out <= HELD_OUT
    crossed = False
    if good or last:
        apply_rule(evidence.model, evidence.crossed(), asked, draws, room, theirs)
        crossed = bool((theirs == policy).all())
    if not good and not last:
        return Verdict(False, False, held_out, crossed, 0, 0, 0, np.zeros(policy.shape))
    haunted = find_haunted(evidence, delta, min_probability)
    now = make_round(evidence, asked, draws, policy, choice, haunted)
    least = min(rho, delta)
    few = _whole_blocks(4.0 / least)
    many = _whole_blocks(10.0 / least) + looks * _whole_blocks(2.0 / least)
    name = str(looks)
    answers = ask(now._replace(weighs=choice.attempt != LAST), name, range(few))
    lenient = choice.attempt != LAST and is_settled(answers, draws, choice)
    differs, loses, apart = int(answers.differs.sum()), int(answers.loses.sum()), few * answers.apart
    teams = few
    while not lenient and good and loses == 0 and teams < many:
        more = ask(now, name, range(teams, teams + 2 * BLOCK))
        teams += 2 * BLOCK
        differs, loses, apart = (
            differs + int(more.differs.sum()),
            loses + int(more.loses.sum()),
            apart + 2 * BLOCK * more.apart,
        )
    good = good and loses <= (few * delta / 4.0 if lenient else 0.0)
    same = good and crossed and differs <= (few * rho / 4.0 if lenient else 0.0)
    return Verdict(good, same, held_out, crossed, teams, teams - differs, teams - loses, apart / teams)


def _whole_blocks(number: float) -> int:
    return 2 * BLOCK * math.ceil(number / (2 * BLOCK) - 1e-9)


def hold_out(evidence: Evidence, asked: Asked, draws: Draws) -> float:
    """Return what the rule on one half of the data loses on the other half, on average both ways."""
    room, total = make_room(draws, asked.order.shape[1]), 0.0
    policy = np.empty(draws.last.shape, dtype=np.int64)
    halves = evidence.half(0), evidence.half(1)
    for guide, other in (halves, halves[::-1]):
        apply_rule(guide, np.empty((0, guide.law.size)), asked, draws, room, policy)
        solve(other, room.values, room.gaps)
        total += lost(other, room.gaps, policy, room.mass)
    return 0.5 * total


def find_haunted(evidence: Evidence, delta: float, min_probability: float) -> NDArray[np.bool_]:
    """Return the rows, (rows,), in which an outcome that no sample has shown may matter."""
    enough = enough_samples(int((~evidence.exact).sum()), delta, min_probability)
    return np.asarray(~evidence.exact & (evidence.samples < enough))


def enough_samples(rows: int, delta: float, min_probability: float) -> float:
    """Return how many samples of a row have shown whatever matters in it; infinite if nothing is assumed."""
    return math.log(max(1, rows) / delta) / min_probability if min_probability > 0.0 else math.inf


def make_round(
    evidence: Evidence,
    asked: Asked,
    draws: Draws,
    policy: NDArray[np.int64],
    choice: Choice,
    haunted: NDArray[np.bool_],
) -> Round:
    """Return what the teams of a round share."""
    none = np.empty((0, evidence.model.law.size))
    return Round(evidence, asked, draws, policy, choice, haunted, find_places(evidence, policy), none)


def find_places(evidence: Evidence, policy: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return where a team's unseen outcomes lead, (4, H+1): see ``Round.places``."""
    model = evidence.model
    best, gaps = np.empty((len(policy) + 1, model.initial.size)), np.empty(model.allowed.shape)
    mine, hope = np.empty_like(best), np.empty_like(best)
    solve(model, best, gaps)
    evaluate(model, one_hot(policy, model.allowed.shape[2]), mine)
    samples = evidence.samples
    solve(hopeful(model, samples, best) if (samples == 0).any() else model, hope, gaps)
    return np.array([best.argmin(axis=1), hope.argmax(axis=1), (hope - mine).argmax(axis=1), mine.argmin(axis=1)])


def is_settled(answers: Answers, draws: Draws, choice: Choice) -> bool:
    """Whether every comparison of the try that printed the policy is resolved or clear."""
    group, allowed = draws.groups[choice.level], 0.5**choice.attempt * choice.allowed
    mine = slice(group[0], group[-1] + 1)
    bar = draws.tolerance[choice.attempt, mine, :, None] * allowed
    mean, deviation = answers.mean[mine], answers.deviation[mine]
    return bool(((deviation <= RESOLVED * allowed) | (np.abs(mean - bar) >= CLEAR * deviation)).all())


def forecast(now: Round, name: str, most: int, ask: Ask) -> int | None:
    """Return how many times the run's samples equality is likely to need, a power of two up to `most`; None if more.

    It is the smallest at which 39 of 40 teams of that size print the policy (docs/rehearsal.md says how well it does).
    """
    scale = 2
    while scale <= most:
        answers = ask(now._replace(scale=scale), f"{name}/{scale}", range(4 * BLOCK))
        if answers.differs.sum() <= 1:
            return scale
        scale *= 2
    return None


def judge_policy(
    evidence: Evidence,
    asked: Asked,
    draws: Draws,
    policy: NDArray[np.int64],
    *,
    delta: float,
    min_probability: float,
    looks: int,
    stream: Callable[[str], DataStream],
    ask: Ask,
) -> tuple[str, int, int]:
    """Judge a policy that was published before these data: "confirmed", "refuted" or "undecided", with teams.

    Args:
        evidence: of one's own.
        asked: what a loss is measured by.
        draws: any ξ; no decision of the rule is read.
        policy: (H, S): the published one.
        delta: largest probability of a wrong answer.
        min_probability: as in ``judge``.
        looks: times that these data, or a part of them, were judged before.
        stream: private streams by purpose.
        ask: asks teams.

    Returns:
        The verdict, the teams that say the policy loses no more than is allowed, and all that were asked.

    Guarantee:
        Rehearsed: confirmed if none of 10/δ and 2/δ more for every look says that it loses more than is allowed.
        Refuted only if on both halves of the data the policy that is optimal there beats it by more, on a share 1 − δ/4
        of as many redraws of the other half.
    """
    _, choice = SoftRule(draws, asked).choose(evidence.model)
    haunted = find_haunted(evidence, delta, min_probability)
    now = make_round(evidence, asked, draws, policy, choice, haunted)
    many, teams, content = _whole_blocks(10.0 / delta) + looks * _whole_blocks(2.0 / delta), 0, 0
    while content == teams < many:
        answers = ask(now, f"confirm/{looks}", range(teams, teams + 2 * BLOCK))
        teams, content = teams + 2 * BLOCK, content + int((~answers.loses).sum())
    if content == teams:
        return "confirmed", content, teams
    beaten = all(
        _beats(evidence, asked, policy, guide, many, stream(f"refute/{looks}/{guide}")) >= 1.0 - delta / 4.0
        for guide in (0, 1)
    )
    return "refuted" if beaten else "undecided", content, teams


def _beats(
    evidence: Evidence, asked: Asked, policy: NDArray[np.int64], guide: int, times: int, stream: DataStream
) -> float:
    """Return on which share of redraws of one half the best policy of the other half beats a policy by too much."""
    model, hits = evidence.half(guide), evidence.hits[1 - guide]
    values, gaps = np.empty((len(policy) + 1, model.initial.size)), np.empty(model.allowed.shape)
    solve(model, values, gaps)
    n_actions = model.allowed.shape[2]
    best, mine, total = one_hot((gaps == 0.0).argmax(axis=2), n_actions), one_hot(policy, n_actions), 0
    seen, drawn = Frequencies.of(model.first, hits), np.empty(hits.size, np.int64)
    for k in range(times):
        key = np.uint64(DataStream(stream.data_seed, f"{stream.purpose}/{k}").key)
        redraw_rows(key, model.first, seen, 1, evidence.exact, drawn)
        other = estimate(evidence.half(1 - guide), drawn)
        worth = []
        for play in (best, mine, asked.baseline):
            evaluate(other, play, values)
            worth.append(from_start(other, values))
        least = allow(asked.epsilon, asked.share, worth[0] - worth[2], model.length)
        total += worth[0] - worth[1] > least
    return total / times
