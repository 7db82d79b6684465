"""Certificates from logs of a fixed practice: what they prove is true, and what they do not cover is refused."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binom, binomtest

import reprl
from experiments.faulty_logs.worlds import drop_out, make_rows, make_world
from reprl import ReprlError
from reprl.artifacts.certify import certify_folder, check_certificate
from reprl.artifacts.receipt import Receipt
from reprl.assurance.certificate import CertificateData, bound_practice, make_certificate
from reprl.assurance.concentration import GRID, levels
from reprl.assurance.value_bounds import bound_best
from reprl.assurance.verdict import judge, prepare
from reprl.canonical.choice import choose
from reprl.errors import LogWarning
from reprl.learning.certification import rule_of
from reprl.learning.settings import Settings
from reprl.mdp.counts import tally
from reprl.mdp.dynamics import Data, true_dynamics
from reprl.sources.logs.read import read_log
from reprl.sources.logs.spec import LogSpec
from reprl.sources.logs.tables import open_table

HORIZON = 2
GOOD, BAD = 0.9, 0.15
"""How often the good action pays, and the other one."""


def shop(worse: float = BAD) -> reprl.TabularMDP:
    """Two states, in which other actions are good; the good one also tends to stay in the first state."""
    transition = np.array([[[0.9, 0.1], [0.5, 0.5]], [[0.5, 0.5], [0.9, 0.1]]])
    return reprl.TabularMDP(transition, np.array([[GOOD, worse], [worse, 0.8]]), [0.5, 0.5], HORIZON)


def with_end(mdp: reprl.TabularMDP) -> reprl.TabularMDP:
    """The same world with the state that every log adds."""
    h, s, a, _ = mdp.transition.shape
    transition, reward = np.zeros((h, s + 1, a, s + 1)), np.zeros((h, s + 1, a))
    transition[:, :s, :, :s], reward[:, :s] = mdp.transition, mdp.reward
    transition[:, s, :, s] = 1.0
    return reprl.TabularMDP(transition, reward, [*mdp.initial, 0.0])


def make_log(mdp: reprl.TabularMDP, habit: NDArray[np.float64], episodes: int, seed: int) -> dict[str, Any]:
    """Episodes of people who take every action as often as habit, (S, A), says."""
    rng = np.random.default_rng(seed)
    state = rng.choice(mdp.n_states, episodes, p=mdp.initial)
    rows: dict[str, list[NDArray[Any]]] = {name: [] for name in ("state", "action", "reward", "next_state")}
    for h in range(mdp.horizon):
        action = (rng.random(episodes)[:, None] > np.cumsum(habit, axis=1)[state]).sum(axis=1)
        law = np.cumsum(mdp.transition[h], axis=2)[state, action]
        after = np.minimum((rng.random(episodes)[:, None] > law).sum(axis=1), mdp.n_states - 1)
        paid = (rng.random(episodes) < mdp.reward[h][state, action]).astype(float)
        for name, values in zip(rows, (state, action, paid, after), strict=True):
            rows[name].append(values)
        state = after
    flat = {name: np.stack(values, axis=1).ravel() for name, values in rows.items()}
    return {"episode": np.repeat(np.arange(episodes), mdp.horizon), **flat}


def value_of_habit(mdp: reprl.TabularMDP, habit: NDArray[np.float64]) -> float:
    value = np.zeros(mdp.n_states)
    for h in range(mdp.horizon - 1, -1, -1):
        value = (habit * (mdp.reward[h] + mdp.transition[h] @ value)).sum(axis=1)
    return float(mdp.initial @ value)


COIN = np.full((2, 2), 0.5)


def of_the_world(mdp: reprl.TabularMDP, seed: int, practice: float, **asked: Any) -> reprl.Policy:
    """f(ξ, M), with what practice earns as the baseline."""
    world = with_end(mdp)
    rule = rule_of(world.transition.shape[:3], seed, Settings(**asked))
    return choose(rule, true_dynamics(world), practice).policy


@pytest.fixture(scope="module")
def log() -> dict[str, Any]:
    return make_log(shop(), COIN, 60_000, 1)


def test_a_log_proves_the_policy_of_the_world_itself(log: dict[str, Any]) -> None:
    mdp = shop()
    for seed in range(3):
        found = reprl.learn_log(log, horizon=HORIZON, quality=0.7, shared_seed=seed, certify=True)
        assert found.certificate is not None
        assert found.certificate.proven
        assert found.certificate.source == "log"
        assert found.guarantee.status == "certified"
        assert "of one fixed practice" in found.guarantee.source
        assert found.policy == of_the_world(mdp, seed, value_of_habit(mdp, COIN), quality=0.7)
        gain = mdp.solve().values[0] @ mdp.initial - value_of_habit(mdp, COIN)
        low, high = found.certificate.gain or (1.0, 0.0)
        assert low <= gain <= high
        assert found.certificate.share is not None
        assert found.certificate.share > 0.7


def test_what_is_certified_from_many_logs_is_true() -> None:
    """40 logs of 40 keys, 0.05 for each certificate: more than 12 false ones have a probability below 1e-6."""
    proven, false = 0, 0
    for number in range(40):
        mdp = shop(0.15 + 0.6 * (number % 10) / 10)
        rows = make_log(mdp, COIN, 20_000, 1000 + number)
        data = read_log(open_table(rows), spec_of(), pooled=False).data
        given = CertificateData(data, "log", 1, False)
        rule = rule_of(data.counts.outcomes.shape, number, Settings(quality=0.5))
        certificate, policy = make_certificate(rule, given, number, 0.05)
        if certificate.proven:
            proven += 1
            false += policy != of_the_world(mdp, number, value_of_habit(mdp, COIN), quality=0.5)
    assert proven >= 4
    assert binomtest(false, 40, 0.05, alternative="greater").pvalue > 1e-6


def spec_of(allowed: Any = None) -> LogSpec:
    return LogSpec(horizon=HORIZON, states=("0", "1"), actions=("0", "1"), allowed=allowed)


def test_what_practice_earns_lies_between_its_bounds_and_not_between_shrunk_ones() -> None:
    every = np.array([[0.8, 0.2], [0.3, 0.7], [0.5, 0.5]])
    for mdp, pooled in ((shop(), False), (shop(), True), (ending_shop(), False), (ending_shop(), True)):
        habit = every[: mdp.n_states]
        true, level = value_of_habit(mdp, habit), levels((2, 3, 2), 40, 0.05).worth
        missed = shrunk = 0
        for seed in range(50):
            rows = make_log(mdp, habit, 300, seed)
            spec = spec_of()
            if mdp.n_states == 3:
                rows, spec = end_rows(rows), replace(spec, done_at_limit="terminated")
            data = read_log(open_table(rows), spec, pooled=pooled).data
            low, high = bound_practice(data, level)
            missed += not low <= true <= high
            low, high = bound_practice(data, 1e-4 * level)
            shrunk += not low <= true <= high
        assert missed == 0
        assert shrunk > 10


def ending_shop() -> reprl.TabularMDP:
    """The shop, where some episodes end after their first step: the third state, which pays nothing."""
    whole = with_end(shop())
    transition = whole.transition.copy()
    transition[:, :2] *= 0.7
    transition[:, :2, :, 2] = 0.3
    return reprl.TabularMDP(transition, whole.reward, [0.5, 0.5, 0.0])


def end_rows(rows: dict[str, Any]) -> dict[str, Any]:
    """Write episodes that came to the third state as done."""
    live = rows["state"] < 2
    done = rows["next_state"] == 2
    rows = {name: column[live] for name, column in {**rows, "done": done}.items()}
    rows["next_state"] = np.where(rows["done"], 0, rows["next_state"])
    return rows


def test_bounds_with_a_mask_are_those_of_the_smaller_world() -> None:
    rng = np.random.default_rng(4)
    rows = np.array(
        [
            (h, s, a, y, rng.integers(2))
            for h in range(2)
            for s in range(3)
            for a in range(2)
            for y in rng.choice(3, 500, p=rng.dirichlet(np.ones(3)))
        ]
    )
    mask, spent = np.broadcast_to([True, True, False], (2, 3, 3)), levels((2, 3, 2), 40, 0.05)
    starts = np.array([500, 0, 0])
    small, large = Data(tally(rows, (2, 3, 2)), starts), Data(tally(rows, (2, 3, 3)), starts, mask)
    plain, masked = (
        bound_best(prepare(data, by_steps=True, fixed_start=True), spent.compare, spent.cell, spent.spread)
        for data in (small, large)
    )
    for name in ("low", "high", "hat_low", "hat_high", "start", "path", "wide"):
        assert np.array_equal(getattr(plain, name), getattr(masked, name)), name
    for name in ("gap_low", "gap_high", "own_low", "own_high", "plausible"):
        assert np.array_equal(getattr(plain, name), getattr(masked, name)[:, :, :2]), name
    assert np.isinf(masked.gap_low[:, :, 2]).all()
    assert not masked.plausible[:, :, 2].any()


@pytest.mark.parametrize("quality", [0.5, None])
def test_a_masked_world_is_certified_and_its_policy_keeps_to_the_mask(quality: float | None) -> None:
    """The forbidden action would be the best in the first state."""
    mdp = shop()
    allowed = np.array([[False, True], [True, True]])
    masked = reprl.TabularMDP(mdp.transition[0], mdp.reward[0], mdp.initial, HORIZON, allowed=allowed)
    asked: dict[str, Any] = {"epsilon": 0.3} if quality is None else {"quality": quality}
    proven = 0
    for seed in range(3):
        found = reprl.learn(
            masked, access="generative", shared_seed=seed, data_seed=seed, certify=True, max_samples=10**6, **asked
        )
        assert (found.policy.table[:, 0] == 1).all()
        assert found.certificate is not None
        rule = rule_of((HORIZON, 2, 2), seed, Settings(**asked))
        if found.certificate.proven:
            proven += 1
            assert found.policy == choose(rule, true_dynamics(masked)).policy
    assert proven


def test_a_mask_is_kept_with_the_data(tmp_path: Path, log: dict[str, Any]) -> None:
    rows = dict(log)
    names: dict[str, Any] = {"states": [0, 1], "actions": [0, 1], "allowed": [[0], [0, 1]]}
    rows["action"] = np.where(rows["state"] == 0, 0, np.arange(rows["state"].size) % 2)
    found = reprl.learn_log(rows, horizon=HORIZON, epsilon=1.0, shared_seed=1, certify=True, **names)
    folder = found.save(tmp_path / "run")
    told, again, differences = check_certificate(folder / "receipt.json", folder / "counts.bin")
    assert not differences
    assert told.fingerprint == again.fingerprint
    data = Data.load(folder / "counts.bin")
    assert data.allowed is not None
    assert not data.allowed[:, 0, 1].any()


def test_a_stationary_log_is_judged_by_cells(log: dict[str, Any]) -> None:
    mdp = shop()
    found = reprl.learn_log(log, horizon=HORIZON, quality=0.5, shared_seed=2, certify=True, stationary=True)
    assert found.certificate is not None
    assert found.counts.outcomes.pooled
    assert found.certificate.proven
    assert found.policy == of_the_world(mdp, 2, value_of_habit(mdp, COIN), quality=0.5)
    assert found.certificate_data is not None
    sample = prepare(found.certificate_data.data, by_steps=True, fixed_start=False)
    assert not sample.by_steps


def test_what_no_certificate_covers_is_refused_with_its_reason(log: dict[str, Any]) -> None:
    with pytest.raises(ReprlError, match="the proof goes from the last step back, and here is none"):
        reprl.learn_log(log, discount=0.9, certify=True)
    short = {name: column[:-1] for name, column in log.items()}
    with pytest.raises(ReprlError, match="1 episodes do not show their whole return"):
        reprl.learn_log(short, horizon=HORIZON, certify=True)
    assert reprl.learn_log(short, horizon=HORIZON, certify=True, epsilon=1.0).certificate is not None
    with pytest.raises(ReprlError, match=r"no certificate covers others, got \('steady', 3\)"):
        reprl.learn_log(log, horizon=HORIZON, certify=True, stationary=True, candidate=("steady", 3))


def test_an_action_that_nobody_takes_is_not_proven_about(log: dict[str, Any]) -> None:
    found = reprl.learn_log(log, horizon=HORIZON, actions=[0, 1, 2], epsilon=0.3, shared_seed=1, certify=True)
    assert found.certificate is not None
    assert not found.certificate.proven
    assert "2 allowed pairs of a state and an action were never seen" in str(found.certificate)


def test_every_recipe_that_is_tried_on_the_same_data_is_counted(tmp_path: Path, log: dict[str, Any]) -> None:
    folder = tmp_path / "run"
    asked: dict[str, Any] = {"horizon": HORIZON, "quality": 0.7, "certify": True}
    first = reprl.learn_log(log, shared_seed=1, **asked)
    first.save(folder)
    assert Receipt.load(folder / "receipt.json").certified.tried == ()  # type: ignore[union-attr]
    reprl.learn_log(log, shared_seed=2, **asked).save(folder, force=True)
    third = reprl.learn_log(log, shared_seed=3, **asked)
    third.save(folder, force=True)
    third.save(folder)  # the same again is no new try
    kept = Receipt.load(folder / "receipt.json")
    assert kept.certified is not None
    assert len(kept.certified.tried) == 2
    assert first.recipe.digest in kept.certified.tried
    assert kept.guarantee.delta == pytest.approx(3 * first.guarantee.delta)
    assert kept.guarantee.rho == pytest.approx(3 * first.guarantee.rho)
    assert "3 recipes were tried on these data, which cost 3·δ" in kept.guarantee.source
    assert certify_folder(folder).proven
    fresh = reprl.learn_log(make_log(shop(), COIN, 60_000, 2), shared_seed=4, **asked)
    fresh.save(folder, force=True)
    assert Receipt.load(folder / "receipt.json").certified.tried == ()  # type: ignore[union-attr]


def test_radii_that_are_shrunk_prove_too_much() -> None:
    """The negative control of the many logs above."""
    false = 0
    for number in range(40):
        mdp = shop(0.85)
        data = read_log(open_table(make_log(mdp, COIN, 200, number)), spec_of(), pooled=False).data
        rule = rule_of(data.counts.outcomes.shape, number, Settings(quality=0.5))
        sample = prepare(data, by_steps=True, fixed_start=False)
        verdict = judge(rule, sample, 0.05, practice=partial(bound_practice, data), shrink=0.02)
        if verdict.proven:
            false += verdict.policy != of_the_world(mdp, number, value_of_habit(mdp, COIN), quality=0.5)
    assert false > 5


def test_counts_that_are_no_logs_are_refused() -> None:
    rows = [(0, s, a, 0, 1) for s in range(2) for a in range(2)]
    data = Data(tally(rows, (1, 2, 2)), np.array([4, 0]))
    with pytest.raises(ReprlError, match="certificate data of a log must have 4 samples of every cell"):
        CertificateData(data, "log", 1, False).check()


def test_a_log_whose_rows_are_no_fair_sample_is_refused(log: dict[str, Any]) -> None:
    """Copies would count as fresh episodes; rows that are left out for what followed would not be draws of the law."""
    part = {name: column[:4000] for name, column in log.items()}
    copied = {name: np.concatenate([column, column]) for name, column in part.items()}
    copied["episode"][4000:] += 2000
    with (
        pytest.warns(LogWarning, match="stands 2 times"),
        pytest.raises(
            ReprlError, match="every row is a fair draw, got a log that is not: bias: every episode stands 2"
        ),
    ):
        reprl.learn_log(copied, horizon=HORIZON, epsilon=1.0, certify=True)
    cut = {name: column for name, column in part.items() if name != "next_state"}
    cut["truncated"] = np.arange(4000) % 2 == 1
    with pytest.raises(ReprlError, match="which rows count was read off its longest episode"):
        reprl.learn_log(cut, horizon=3, epsilon=1.0, certify=True)


@pytest.mark.parametrize("kinds", [[(0, 0), (1, 1)], [(0, 0), (1, 0)]])
def test_every_log_of_a_tiny_world_misses_practice_less_often_than_the_level_says(kinds: list[tuple[int, int]]) -> None:
    """All logs of 60 episodes of two kinds, whose rewards are alike or not: probabilities are exact."""
    spec, many = LogSpec(horizon=2, states=("0",), actions=("0",)), 60
    data = [read_log(open_table(log_of(kinds, (many - k, k))), spec).data for k in range(many + 1)]
    control = 0.0
    for share in (0.02, 0.1, 0.5):
        chance, true = binom.pmf(np.arange(many + 1), many, share), share * sum(kinds[1])
        for level in (2.0, 4.0, 6.0, 8.0):
            most = 2 * GRID * math.exp(-level)

            def missed(level: float, chance: Any = chance, true: float = true) -> float:
                bounds = np.array([bound_practice(one, level) for one in data])
                return float(chance[(true < bounds[:, 0] - 1e-12) | (true > bounds[:, 1] + 1e-12)].sum())

            assert missed(level) <= most
            control = max(control, missed(0.02 * level) - most)
    assert control > 0.1


def log_of(kinds: list[tuple[int, int]], times: tuple[int, ...]) -> dict[str, Any]:
    """Episodes of two steps in one state, with these rewards so many times."""
    paid = np.array([kind for kind, many in zip(kinds, times, strict=True) for _ in range(many)], dtype=float)
    rows = np.zeros(2 * len(paid), dtype=int)
    return {"episode": np.arange(len(rows)) // 2, "state": rows, "action": rows, "reward": paid.ravel()}


@pytest.mark.parametrize("pooled", [False, True])
def test_intervals_from_logs_with_ends_and_dropout_hold_and_shrunk_ones_do_not(pooled: bool) -> None:
    """10 worlds, δ = 0.1 each: more than 7 misses have a probability below 1e-6."""
    spent, tight = (levels((3, 6, 3), 40, 0.1, shrink=shrink) for shrink in (1.0, 0.03))
    missed = shrunk = 0
    for seed in range(10):
        world = make_world((9, seed), 0.1)
        rows = drop_out(make_rows(world, 300, (9, seed, 1), 3), 0.1, np.random.default_rng(seed))
        rows["next_state"] = np.where(rows["terminated"], 0, rows["next_state"])
        spec = LogSpec(horizon=3, states=tuple("01234"), actions=tuple("012"))
        sample = prepare(read_log(open_table(rows), spec, pooled=pooled).data, by_steps=True, fixed_start=False)
        assert sample.by_steps is not pooled
        value, gaps = np.zeros(6), np.zeros((3, 6, 3))
        best: list[NDArray[np.float64]] = []
        for h in (2, 1, 0):
            each = np.vstack([world.reward + world.transition @ value, np.zeros(3)])
            value = each.max(axis=1)
            gaps[h] = value[:, None] - each
            best.insert(0, value)
        for level in (spent, tight):
            found = bound_best(sample, level.compare, level.cell, level.spread)
            inside = (found.low[:3] <= np.array(best) + 1e-9) & (np.array(best) <= found.high[:3] + 1e-9)
            close = (found.gap_low <= gaps + 1e-9) & (gaps <= found.gap_high + 1e-9)
            out = not (inside.all() and close.all())
            missed, shrunk = missed + (out and level is spent), shrunk + (out and level is tight)
    assert missed <= 7
    assert shrunk > 7
