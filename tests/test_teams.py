"""Simulated second teams: what they redraw, what they meet that no sample has shown, what they say; the verdict."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from reprl.assurance import verdict
from reprl.assurance.teams import Answers, Round, _ask, ask_teams, keys_of, make_team, make_told, seen_by
from reprl.assurance.verdict import Verdict, find_haunted, is_settled, judge, make_round
from reprl.mdp.evidence import BEST, REWARDS, WORST, Evidence, estimate
from reprl.mdp.model import Model, evaluate, from_start, one_hot, solve
from reprl.rule.soft import LAST, make_room
from reprl.sources.exploration import FEW, LEAST_VISITS, plan_unknown
from tests import naive_soft
from tests.random_models import ask, draws_of, key_of, print_policy
from tests.statistics import FALSE_ALARM, chi_square, chi_square_of

Row = dict[tuple[int, float], tuple[int, int]]
"""Next state and reward: how often either half of the samples showed them."""


def evidence_of(
    rows: list[Row],
    shape: tuple[int, int, int],
    *,
    starts: tuple[list[int], list[int]] | None = None,
    exact: tuple[int, ...] = (),
    fixed_start: bool = False,
) -> Evidence:
    """Lay rows out by hand, with the three places of what no sample has shown; S·A rows are those of all steps."""
    horizon, n_states, n_actions = shape
    unseen = [(0, reward) for reward in REWARDS]
    outcomes = [outcome for row in rows for outcome in [*row, *unseen]]
    hits = np.array([half for row in rows for half in [*row.values(), *[(0, 0)] * 3]], dtype=np.int64).T.copy()
    first = np.concatenate([[0], np.cumsum([len(row) + 3 for row in rows])])
    next_state, reward = np.array([x for x, _ in outcomes], dtype=np.int32), np.array([r for _, r in outcomes])
    begun = np.array([[5] + [0] * (n_states - 1)] * 2 if starts is None else starts)
    shift = 0 if len(rows) == n_states * n_actions and horizon > 1 else n_states * n_actions
    allowed = np.ones(shape, dtype=np.bool_)
    model = Model(first, next_state, reward, np.zeros(first[-1]), shift, allowed, begun.sum(0) / begun.sum(), 0.0)
    known = np.zeros(len(rows), dtype=np.bool_)
    known[list(exact)] = True
    return Evidence(estimate(model, hits.sum(axis=0)), hits, begun, known, fixed_start)


def random_evidence(rng: np.random.Generator, *, stationary: bool = True, empty: float = 0.0) -> Evidence:
    """Draw what a small run may have seen."""
    horizon, n_states, n_actions = shape = int(rng.integers(2, 5)), int(rng.integers(2, 6)), int(rng.integers(2, 4))
    rows: list[Row] = []
    for _ in range(n_states * n_actions * (1 if stationary else horizon)):
        kinds = 0 if rng.random() < empty else rng.integers(1, 4)
        outcomes = {(int(rng.integers(n_states)), float(rng.integers(5)) / 4) for _ in range(kinds)}
        rows.append({each: (int(rng.integers(1, 9)), int(rng.integers(0, 9))) for each in sorted(outcomes)})
    starts = rng.integers(0, 9, n_states) + 1, rng.integers(0, 9, n_states) + 1
    return evidence_of(rows, shape, starts=(starts[0].tolist(), starts[1].tolist()), fixed_start=bool(rng.integers(2)))


def round_of(evidence: Evidence, number: int = 0, *, haunted: bool = True) -> Round:
    """Return a round, in which the run prints what the rule prints."""
    asked, draws = ask(evidence.model), draws_of(number, evidence.model, evidence.model.shift == 0)
    policy, choice = print_policy(evidence.model, asked, draws)
    rows = np.full(evidence.exact.size, haunted)
    return make_round(evidence, asked, draws, policy, choice, rows)


class One(NamedTuple):
    """One team."""

    law: NDArray[np.float64]
    next_state: NDArray[np.int32]
    initial: NDArray[np.float64]
    drawn: NDArray[np.int64]
    starts: NDArray[np.int64]
    policy: NDArray[np.int64]
    differs: bool
    loses: bool
    sums: NDArray[np.float64]


def teams_of(now: Round, count: int, name: str = "0") -> list[One]:
    """Ask teams one by one, and keep what they drew."""
    room, out = make_room(now.draws, now.asked.order.shape[1]), []
    keys = keys_of(name, 77, range(count))
    for k in range(count):
        told, team = make_told(now, 1), make_team(now)
        _ask(now, *seen_by(now.evidence), keys[k : k + 1], team, room, told)
        out.append(One(*team, bool(told.differs[0]), bool(told.loses[0]), told.sums))
    return out


# --- what teams redraw ------------------------------------------------------------------------------------------------


def small() -> Evidence:
    """Three states, two actions, two steps; row 0 has three outcomes, row 1 one, row 2 is exact, row 3 has two."""
    three: Row = {(0, 0.0): (6, 4), (1, 0.5): (2, 1), (2, 1.0): (1, 6)}
    two: Row = {(1, 0.0): (2, 3), (2, 1.0): (1, 0)}
    rows = [three, {(1, 0.5): (3, 3)}, dict(three), two, *(dict(two) for _ in range(8))]
    return evidence_of(rows, (2, 3, 2), starts=([3, 1, 0], [4, 0, 0]), exact=(2,))


@pytest.mark.statistical
def test_redrawn_counts_are_multinomials_of_the_run_s_own_frequencies() -> None:
    """As many samples in every row; hits of a row, and of two rows jointly, have their laws; a tenth off is seen."""
    evidence = small()
    now = round_of(evidence, haunted=False)
    drawn = np.array([team.drawn for team in teams_of(now, 3000)])
    total, samples, first = evidence.total, evidence.samples, evidence.model.first
    np.testing.assert_array_equal(np.add.reduceat(drawn, first[:-1], axis=1), np.tile(samples, (3000, 1)))
    np.testing.assert_array_equal(drawn[:, first[1] : first[3]], np.tile(total[first[1] : first[3]], (3000, 1)))
    assert (drawn[:, total == 0] == 0).all()

    drawn_rows = [row for row in range(samples.size) if row not in (1, 2)]
    parts = [(slice(first[row], first[row + 1] - 3), samples[row]) for row in drawn_rows]
    assert chi_square((drawn[:, part].sum(axis=0), total[part] / n) for part, n in parts) > FALSE_ALARM
    off = [1.1 * total[part] / n for part, n in parts]
    for law in off:
        law[0] = 1.0 - law[1:].sum()
    tilted = zip((drawn[:, part].sum(axis=0) for part, _ in parts), off, strict=True)
    assert chi_square(tilted) < FALSE_ALARM

    one, other = drawn[:, first[3]], drawn[:, first[4]]
    binomial = stats.binom.pmf(np.arange(7), 6, 5 / 6)
    law = {(i, j): binomial[i] * binomial[j] for i in range(7) for j in range(7)}
    assert chi_square_of(Counter(zip(one.tolist(), other.tolist(), strict=True)), law) > FALSE_ALARM
    assert chi_square_of(Counter(zip(one.tolist(), one.tolist(), strict=True)), law) < FALSE_ALARM


@pytest.mark.statistical
def test_starts_are_redrawn_too() -> None:
    evidence = small()
    fixed = round_of(evidence._replace(fixed_start=True), haunted=False)
    starts = np.array([team.starts for team in teams_of(fixed, 2000)])
    np.testing.assert_array_equal(starts.sum(axis=1), 8)
    law = {k: stats.binom.pmf(k, 8, 1 / 8) for k in range(9)}
    assert chi_square_of(Counter(starts[:, 1].tolist()), law) > FALSE_ALARM
    assert (starts[:, 2] == 0).all()

    unseen = np.array([team.starts for team in teams_of(round_of(evidence, haunted=False), 2000)])
    law = {k: stats.poisson.pmf(k, 1.0) for k in range(12)}
    assert chi_square_of(Counter((unseen.sum(axis=1) - 8).tolist()), law) > FALSE_ALARM


def test_larger_teams_redraw_more() -> None:
    now = round_of(small(), haunted=False)._replace(scale=4)
    first = now.evidence.model.first
    for team in teams_of(now, 20):
        np.testing.assert_array_equal(np.add.reduceat(team.drawn, first[:-1]), 4 * now.evidence.samples)
        np.testing.assert_array_equal(team.drawn[first[2] : first[3]], 4 * now.evidence.total[first[2] : first[3]])


def test_a_team_s_model_is_what_it_drew() -> None:
    rng = np.random.default_rng(30)
    for number in range(20):
        now = round_of(random_evidence(rng, stationary=bool(number % 2), empty=0.2), number)
        first = now.evidence.model.first
        for team in teams_of(now, 3):
            totals = np.repeat(np.add.reduceat(team.drawn, first[:-1]), np.diff(first))
            np.testing.assert_array_equal(team.law, team.drawn / totals)
            np.testing.assert_array_equal(team.initial, team.starts / team.starts.sum())


# --- what no sample has shown -----------------------------------------------------------------------------------------


@pytest.mark.statistical
def test_unseen_events_are_poisson_and_of_three_kinds() -> None:
    """In every haunted row, for itself; never elsewhere, nor in an exact row."""
    evidence = small()
    now, first = round_of(evidence), evidence.model.first
    quiet = np.arange(12) % 5 == 4
    now = now._replace(haunted=~quiet & ~evidence.exact)
    drawn = np.array([team.drawn for team in teams_of(now, 3000)])
    extra = drawn[:, first[1:, None] - 3 + np.arange(3)]
    np.testing.assert_array_equal(extra[:, ~now.haunted], 0)
    many = extra[:, now.haunted].sum(axis=2)
    assert ((extra > 0).sum(axis=2) <= 1).all(), "those of a row are of one kind"
    law = {k: stats.poisson.pmf(k, 1.0) for k in range(15)}
    assert chi_square_of(Counter(many.ravel().tolist()), law) > FALSE_ALARM
    assert (
        chi_square_of(Counter(many.ravel().tolist()), {k: stats.poisson.pmf(k, 1.05) for k in range(15)}) < FALSE_ALARM
    )
    kinds = (extra[:, now.haunted] > 0).sum(axis=(0, 1))
    assert chi_square([(kinds, np.full(3, 1 / 3))]) > FALSE_ALARM
    assert chi_square([(kinds, [0.32, 0.32, 0.36])]) < FALSE_ALARM
    joint = {(i, j): law[i] * law[j] for i in range(9) for j in range(9)} | {"more": 2e-6}
    pairs = Counter((i, j) for i, j in many[:, :2].tolist())
    assert chi_square_of(pairs, {key: p / sum(joint.values()) for key, p in joint.items()}) > FALSE_ALARM


@pytest.mark.statistical
@pytest.mark.parametrize("stationary", [True, False])
def test_unseen_events_lead_to_the_places_of_a_step(stationary: bool) -> None:
    """Rows by step to those of their next step; rows of all steps to those of one step a team, uniform in 1 … H."""
    rng = np.random.default_rng(31)
    evidence = random_evidence(rng, stationary=stationary)
    while evidence.model.allowed.shape[:2] != (3, 5):
        evidence = random_evidence(rng, stationary=stationary)
    places = np.array([[4, 0, 1, 2], [4, 1, 2, 3], [4, 2, 3, 4], [4, 3, 4, 0]])
    now = round_of(evidence)._replace(places=places)
    first, (_, n_states, n_actions) = evidence.model.first, evidence.model.allowed.shape
    own = np.arange(first.size - 1) // (n_states * n_actions) + 1
    steps: Counter[int] = Counter()
    for team in teams_of(now, 600):
        found = team.next_state[first[1:, None] - 3 + np.arange(3)]
        step = int(found[0, 0]) + 1 if stationary else 0
        steps[step] += 1
        np.testing.assert_array_equal(found, places[:3, np.full(own.size, step) if stationary else own].T)
    if stationary:
        assert chi_square_of(steps, {1: 1 / 3, 2: 1 / 3, 3: 1 / 3}) > FALSE_ALARM


def test_an_empty_row_leads_to_the_worst_where_the_run_would_go_and_else_to_the_best() -> None:
    """Worst for the run's own policy with the least reward, best with the largest; with probability 1."""
    rng = np.random.default_rng(32)
    seen: Counter[bool] = Counter()
    for number in range(60):
        stationary = bool(number % 2)
        evidence = random_evidence(rng, stationary=stationary, empty=0.3)
        now = round_of(evidence, number)
        first, (_, n_states, n_actions) = evidence.model.first, evidence.model.allowed.shape
        horizon = len(now.policy)
        places = rng.permuted(np.tile(np.arange(horizon + 1) % n_states, (4, 1)), axis=1)
        for team in teams_of(now._replace(places=places), 4):
            found = team.next_state[first[1:, None] - 3 + np.arange(3)]
            steps = [h for h in range(1, horizon + 1) if (found[:, 1:] == places[1:3, h]).all()]
            for row in np.flatnonzero(evidence.samples == 0):
                s, a = divmod(row % (n_states * n_actions), n_actions)
                place = int(team.law[first[row + 1] - 3 : first[row + 1]].argmax())
                assert team.law[first[row + 1] - 3 + place] == 1.0
                own_step = steps if stationary else [row // (n_states * n_actions) + 1]
                leads = {WORST: 3, BEST: 1}[place]
                assert any(
                    (now.policy[h - 1, s] == a) == (place == WORST) and found[row, place] == places[leads, h]
                    for h in own_step
                )
                seen[place == WORST] += 1
    assert min(seen[True], seen[False]) >= 50


def test_places_are_worst_best_and_lossy_by_step() -> None:
    """With empty rows at worst for the run's policy, and at best where something better may hide."""
    rng = np.random.default_rng(33)
    for number in range(30):
        evidence = random_evidence(rng, stationary=bool(number % 2), empty=0.3 * (number % 3 == 0))
        model, empty = evidence.model, np.flatnonzero(evidence.samples == 0)
        now = round_of(evidence, number)
        best = naive_soft.optimum(naive_soft.world_of(model))[0]
        mine = naive_soft.value_of(naive_soft.world_of(model), one_hot(now.policy, model.allowed.shape[2]))[0]
        law, next_state = model.law.copy(), model.next_state.copy()
        for row in empty:
            end = model.first[row + 1] - 3
            law[end : end + 3] = 0.0, 1.0, 0.0
            next_state[end + 1] = best[1:].mean(axis=0).argmax()
        hope = naive_soft.optimum(naive_soft.world_of(model._replace(law=law, next_state=next_state)))[0]
        h = np.arange(len(best))
        worst, top, lossy, own = now.places
        np.testing.assert_allclose(best[h, worst], best.min(axis=1), atol=1e-12)
        np.testing.assert_allclose(hope[h, top], hope.max(axis=1), atol=1e-12)
        np.testing.assert_allclose((hope - mine)[h, lossy], (hope - mine).max(axis=1), atol=1e-12)
        np.testing.assert_allclose(mine[h, own], mine.min(axis=1), atol=1e-12)


# --- what teams say ---------------------------------------------------------------------------------------------------


def test_teams_answer_as_the_naive_rule_does() -> None:
    """Another policy; a loss of the run's policy beyond ε(team); excess costs of the try that printed it."""
    rng = np.random.default_rng(34)
    said: Counter[str] = Counter()
    for number in range(25):
        stationary = bool(number % 2)
        now = round_of(random_evidence(rng, stationary=stationary, empty=0.1), number)
        now = now._replace(weighs=now.choice.attempt != LAST)
        for team in teams_of(now, 4):
            model = now.evidence.model._replace(law=team.law, next_state=team.next_state, initial=team.initial)
            world = naive_soft.world_of(model)
            wanted = naive_soft.print_policy(world, key_of(number), stationary=stationary)
            np.testing.assert_array_equal(team.policy, wanted.policy)
            assert team.differs == (wanted.policy != now.policy).any()
            value = world.start @ naive_soft.value_of(world, one_hot(now.policy, world.pay.shape[2]))[0][0]
            assert team.loses == (wanted.best - value > wanted.epsilon)
            said["differs"] += team.differs
            said["loses"] += team.loses
            if now.weighs:
                every = naive_soft.print_policy(world, key_of(number), stationary=stationary, passes=False)
                level = ("all", "phases", "single")[now.choice.level] if stationary else "single"
                excess = next(each[2] for each in every.bars if each[:2] == (level, now.choice.attempt))
                group = now.draws.groups[now.choice.level]
                cost = excess * 0.5**now.choice.attempt * wanted.epsilon
                np.testing.assert_allclose(team.sums[0, group[0] : group[-1] + 1], cost, atol=1e-9)
                np.testing.assert_allclose(team.sums[1, group[0] : group[-1] + 1], cost**2, atol=1e-9)
    assert min(said.values()) >= 10, said


def same_bytes(one: Answers, two: Answers) -> bool:
    return all(np.asarray(a).tobytes() == np.asarray(b).tobytes() for a, b in zip(one, two, strict=True))


def test_answers_are_the_same_bytes_for_any_number_of_threads() -> None:
    rng = np.random.default_rng(35)
    for number in range(4):
        now = round_of(random_evidence(rng, stationary=bool(number % 2), empty=0.1), number)
        now = now._replace(weighs=now.choice.attempt != LAST)
        alone = ask_teams(now, "3", 9, range(60), None)
        for workers in (1, 2, 5):
            with ThreadPoolExecutor(workers) as pool:
                assert same_bytes(ask_teams(now, "3", 9, range(60), pool), alone)
        later = ask_teams(now, "3", 9, range(40, 60), None)
        np.testing.assert_array_equal(later.differs, alone.differs[40:])
        np.testing.assert_array_equal(later.loses, alone.loses[40:])


def test_answers_add_up() -> None:
    """Shares, means and deviations are those of the teams one by one; other rounds and data seeds ask other teams."""
    now = round_of(random_evidence(np.random.default_rng(36)))._replace(weighs=True)
    assert now.choice.attempt != LAST
    teams = teams_of(now, 40, "2")
    answers = ask_teams(now, "2", 77, range(40), None)
    np.testing.assert_array_equal(answers.differs, [team.differs for team in teams])
    np.testing.assert_array_equal(answers.loses, [team.loses for team in teams])
    np.testing.assert_allclose(answers.apart, np.mean([team.policy != now.policy for team in teams], axis=0))
    excess = np.array([team.sums[0] for team in teams])
    np.testing.assert_allclose(answers.mean, excess.mean(axis=0), atol=1e-12)
    np.testing.assert_allclose(answers.deviation, excess.std(axis=0), atol=1e-7)
    assert not same_bytes(ask_teams(now, "3", 77, range(40), None), answers)
    assert not same_bytes(ask_teams(now, "2", 78, range(40), None), answers)


# --- the verdict ------------------------------------------------------------------------------------------------------


class Staged(NamedTuple):
    """Teams that say what a test wants."""

    differ: tuple[int, ...] = ()
    lose: tuple[int, ...] = ()
    resolved: bool = True


def certain_evidence() -> Evidence:
    """Two states whose outcomes are all certain: nothing is lost held out, and the halves print the run's policy."""
    rows: list[Row] = [{(1, 0.0): (8, 8)}, {(0, 1.0): (8, 8)}, {(1, 0.0): (8, 8)}, {(0, 0.25): (8, 8)}]
    return evidence_of(rows, (3, 2, 2), fixed_start=True)


def judged(
    staged: Staged,
    *,
    looks: int = 0,
    last: bool = False,
    rho: float = 0.1,
    delta: float = 0.1,
    resort: bool = False,
) -> Verdict:
    evidence = certain_evidence()
    now = round_of(evidence)
    choice = now.choice._replace(attempt=LAST) if resort else now.choice

    def teams(now: Round, name: str, numbers: range) -> Answers:
        assert name == str(looks)
        differs, loses = (np.isin(numbers, each) for each in (staged.differ, staged.lose))
        shape = *now.draws.tolerance.shape[1:], now.asked.order.shape[1]
        bar = np.zeros(shape)
        bar[:] = now.draws.tolerance[now.choice.attempt, :, :, None] * 0.5**now.choice.attempt * now.choice.allowed
        apart = np.full(now.policy.shape, differs.mean())
        return Answers(differs, loses, apart, bar, np.zeros(shape) if staged.resolved else np.full(shape, 10.0))

    kept: dict[str, Any] = {"rho": rho, "delta": delta, "min_probability": 0.0, "looks": looks, "last": last}
    return judge(evidence, now.asked, now.draws, now.policy, choice, ask=teams, **kept)


@pytest.mark.parametrize(
    ("staged", "more", "wanted"),
    [
        # one of 40 may object once every comparison is resolved
        (Staged(), {}, (True, True, 40)),
        (Staged(differ=(7,), lose=(3,)), {}, (True, True, 40)),
        (Staged(differ=(7, 9)), {}, (True, False, 40)),
        (Staged(lose=(7, 9)), {}, (False, False, 40)),
        # 80 and two at .05; the smaller of ρ and δ sets the number, each its own share
        (Staged(differ=(7, 9), lose=(1,)), {"rho": 0.05, "delta": 0.05}, (True, False, 80)),
        (Staged(differ=(7,), lose=(1, 2)), {"rho": 0.05, "delta": 0.1}, (True, True, 80)),
        # none of 100, and 20 more for every look, until then
        (Staged(resolved=False), {}, (True, True, 100)),
        (Staged(resolved=False), {"looks": 3}, (True, True, 160)),
        (Staged(resolved=False), {"rho": 0.05, "looks": 1}, (True, True, 240)),
        (Staged(differ=(99,), resolved=False), {}, (True, False, 100)),
        (Staged(differ=(100,), resolved=False), {}, (True, True, 100)),
        (Staged(differ=(2,), resolved=False), {}, (True, False, 100)),
        # one loss decides, and no more teams are asked than the block in which it is said
        (Staged(lose=(2,), resolved=False), {}, (False, False, 40)),
        (Staged(lose=(65,), resolved=False), {}, (False, False, 80)),
        # the last resort compares with other thresholds: strict
        (Staged(), {"resort": True}, (True, True, 100)),
        (Staged(differ=(50,)), {"resort": True}, (True, False, 100)),
    ],
)
def test_how_many_teams_may_object(staged: Staged, more: dict[str, Any], wanted: tuple[bool, bool, int]) -> None:
    found = judged(staged, **more)
    assert (found.good, found.same, found.teams) == wanted
    asked = range(found.teams)
    assert found.agree == found.teams - len(set(staged.differ) & set(asked))
    assert found.content == found.teams - len(set(staged.lose) & set(asked))
    np.testing.assert_allclose(found.apart, (found.teams - found.agree) / found.teams)


def test_no_team_is_asked_where_the_run_says_no(monkeypatch: pytest.MonkeyPatch) -> None:
    """Unless nothing more can be gathered; then forty, of which nothing is promised."""
    monkeypatch.setattr(verdict, "HELD_OUT", -1.0)
    assert judged(Staged())[:2] == (False, False)
    assert judged(Staged()).teams == 0
    found = judged(Staged(), last=True)
    assert (found.good, found.same, found.teams, found.agree) == (False, False, 40, 40)
    monkeypatch.setattr(verdict, "HELD_OUT", 0.7)
    monkeypatch.setattr(verdict, "LOSS", -1.0)
    assert judged(Staged()).teams == 0


def test_settled_is_resolved_or_clear() -> None:
    now = round_of(certain_evidence())
    draws, choice = now.draws, now.choice
    group, allowed = draws.groups[choice.level], 0.5**choice.attempt * choice.allowed
    assert choice.attempt != LAST
    bar = draws.tolerance[choice.attempt, :, :, None] * allowed + np.zeros(2)
    mine = slice(group[0], group[-1] + 1)
    none = np.zeros(bar.shape)

    def settled(mean: NDArray[np.float64], deviation: NDArray[np.float64]) -> bool:
        return is_settled(Answers(np.zeros(40, bool), np.zeros(40, bool), none[0], mean, deviation), draws, choice)

    resolved = np.full(bar.shape, 0.0999 * allowed)
    assert settled(bar, resolved)
    assert not settled(bar, resolved * 1.01)
    loud = np.full(bar.shape, allowed)
    assert settled(bar + 4.51 * allowed, loud)
    assert settled(bar - 4.51 * allowed, loud)
    assert not settled(bar + 4.49 * allowed, loud)
    one = resolved.copy()
    one[mine.start, 1, 1] = allowed
    assert not settled(bar, one)
    elsewhere = np.where(np.isin(np.arange(len(bar)), group)[:, None, None], resolved, 9.0)
    assert settled(bar, elsewhere), "levels that did not print the policy do not matter"


def test_rows_are_haunted_until_what_is_assumed_is_seen() -> None:
    """A row with fewer than log(R/δ)/p samples, R without the exact rows; all rows if nothing is assumed."""
    counts = [150, 295, 296, 297, 400, 999]
    rows: list[Row] = [{(0, 0.5): (n // 2, n - n // 2)} for n in counts]
    evidence = evidence_of(rows, (2, 3, 2), exact=(5,))
    known = np.log(5 / 0.1) / 0.0132  # 296.4
    assert 296 < known < 297
    np.testing.assert_array_equal(find_haunted(evidence, 0.1, 0.0132), [True, True, True, False, False, False])
    np.testing.assert_array_equal(find_haunted(evidence, 0.1, 0.0), [True] * 5 + [False])


def fifty(size: int, rng: np.random.Generator) -> tuple[Evidence, Model]:
    """Fifty rooms behind action 0 of the start, each with chance .02; in each action 1 pays 1 and action 0 nothing.

    Returns what a run may have seen, and the truth.
    """
    rooms = np.arange(1, 51)
    halves = rng.multinomial(size // 2, np.full(50, 0.02), 2)
    opening: Row = {
        (int(s), 0.0): (int(halves[0, s - 1]), int(halves[1, s - 1])) for s in rooms if halves[:, s - 1].any()
    }
    certain: list[Row] = [{(0, float(a)): (size // 2, size // 2)} for _ in rooms for a in range(2)]
    stay: Row = {(0, 0.0): (size // 2, size // 2)}
    evidence = evidence_of([opening, stay, *certain], (2, 51, 2), fixed_start=True)
    first = np.concatenate([[0], 50 + np.arange(102)])
    next_state = np.append(rooms, np.zeros(101, int)).astype(np.int32)
    reward, law = np.append(np.zeros(51), np.tile([0.0, 1.0], 50)), np.append(np.full(50, 0.02), np.ones(101))
    return evidence, Model(first, next_state, reward, law, 0, evidence.model.allowed, np.eye(51)[0], 0.0)


def quality_of(size: int, seed: int) -> tuple[bool, float]:
    """Whether fifty rooms are said to be well played, and the true loss over ε."""
    evidence, truth = fifty(size, np.random.default_rng([size, seed]))
    now = round_of(evidence, seed)
    kept: dict[str, Any] = {"rho": 0.1, "delta": 0.1, "min_probability": 0.0, "looks": 0, "last": False}

    def ask(now: Round, name: str, numbers: range) -> Answers:
        return ask_teams(now, name, seed, numbers, None)

    found = judge(evidence, now.asked, now.draws, now.policy, now.choice, ask=ask, **kept)
    values = np.empty((3, truth.initial.size))
    evaluate(truth, one_hot(now.policy, 2), values)
    return found.good, float((1.0 - from_start(truth, values)) / 0.1)


def test_the_held_out_loss_refuses_what_has_not_been_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fifty outcomes of .02 each: a run of 16 to 64 samples has not met them all, nor have redraws of it.

    Without the held-out loss most of these runs are said to have the quality, and none has. With 1,024 all have.
    """
    sizes = [(size, seed) for size in (16, 32, 64) for seed in range(8)]
    found = [quality_of(*each) for each in sizes]
    assert min(loss for _, loss in found) > 1.0
    assert not any(good for good, _ in found)
    assert all(good and loss <= 1.0 for good, loss in (quality_of(1024, seed) for seed in range(4)))
    monkeypatch.setattr(verdict, "HELD_OUT", np.inf)
    assert sum(quality_of(*each)[0] for each in sizes if each[0] > 16) >= 9


# --- rows that hardly were tried --------------------------------------------------------------------------------------


def naive_plan(evidence: Evidence, play: NDArray[np.float64], enough: float) -> naive_soft.World | None:
    """The model in which exploring is planned: what a look is worth, and where hope leads; None if there is none."""
    model = evidence.model
    world, samples, exact = naive_soft.world_of(model), evidence.samples, evidence.exact
    horizon, n_states, n_actions = model.allowed.shape
    own = np.arange(samples.size).reshape(-1, n_states, n_actions)
    row = np.broadcast_to(own, (horizon, n_states, n_actions)) if model.shift == 0 else own
    visits = naive_soft.visits_of(world, play)
    met = np.array([[samples[row[h, s]].sum() > 0 for s in range(n_states)] for h in range(horizon)])
    known = samples[row] >= enough
    free = ~exact[row]
    if not (met[:, :, None] & free & ~known).any():
        return None
    few = float(FEW)
    while not (met[:, :, None] & free & (samples[row] < min(enough, few))).any():
        few *= 2.0
    pay, law = np.zeros(row.shape), world.law.copy()
    top = int(naive_soft.optimum(world)[0][1:].mean(axis=0).argmax())
    for h, s, a in np.ndindex(*row.shape):
        n = samples[row[h, s, a]]
        often = visits[:, s].sum() if model.shift == 0 else visits[h, s]
        if free[h, s, a] and n < min(enough, few):
            pay[h, s, a] = max(often, LEAST_VISITS) ** 2 / (n + 1.0) ** 2
        if free[h, s, a] and n < min(enough, FEW):
            law[h, s, a] = (1.0 - 1.0 / (n + 1.0)) * law[h, s, a] + np.eye(n_states)[top] / (n + 1.0)
    return world._replace(pay=pay, law=law)


def test_exploring_is_the_best_way_to_look() -> None:
    """A plan for w/(n+1)² in the hopeful model, worth as much as the naive optimum from every state."""
    rng = np.random.default_rng(37)
    planned = 0
    for number in range(80):
        evidence = random_evidence(rng, stationary=bool(number % 2), empty=0.2)
        many = rng.choice([1, 40, 200], evidence.exact.size)
        evidence = evidence._replace(
            hits=evidence.hits * np.repeat(many, np.diff(evidence.model.first)), exact=rng.random(many.size) < 0.2
        )
        play = rng.dirichlet(np.ones(evidence.model.allowed.shape[2]), size=evidence.model.allowed.shape[:2])
        enough = float(rng.choice([np.inf, 30.0, 500.0]))
        wanted, plan = naive_plan(evidence, play, enough), plan_unknown(evidence, play, enough)
        if wanted is None:
            assert plan is play
            continue
        planned += 1
        assert np.isin(plan, (0.0, 1.0)).all()
        assert (plan.sum(axis=2) == 1.0).all()
        best = naive_soft.optimum(wanted)[0]
        np.testing.assert_allclose(naive_soft.value_of(wanted, plan)[0], best, rtol=1e-9, atol=1e-12)
    assert 40 <= planned < 80


def test_well_tried_rows_leave_the_soft_policy() -> None:
    rows: list[Row] = [{(1, 0.5): (200, 200), (0, 0.0): (10, 10)} for _ in range(4)]
    evidence = evidence_of(rows, (3, 2, 2))
    play = np.full((3, 2, 2), 0.5)
    assert plan_unknown(evidence, play, 400.0) is play
    assert plan_unknown(evidence, play, np.inf) is not play
    every = evidence._replace(exact=np.ones(4, dtype=np.bool_))
    assert plan_unknown(every, play, np.inf) is play


def test_a_corridor_is_walked_to_its_untried_end() -> None:
    """Each step back is well tried; a row at the far end that was tried once is looked into, though it pays nothing."""
    rows: list[Row] = []
    for s in range(4):
        rows += [{(max(s - 1, 0), 0.1): (300, 300)}, {(min(s + 1, 3), 0.0): (300, 300)}]
    rows[7] = {(3, 0.0): (1, 0)}
    evidence = evidence_of(rows, (5, 4, 2))
    values, gaps = np.empty((6, 4)), np.empty((5, 4, 2))
    solve(evidence.model, values, gaps)
    greedy = one_hot(gaps.argmin(axis=2), 2)
    assert greedy[0, 0, 0] == 1.0
    plan = plan_unknown(evidence, greedy, np.inf)
    assert [int(plan[h, h].argmax()) for h in range(4)] == [1, 1, 1, 1]
