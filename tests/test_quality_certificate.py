"""Certificates of quality: what they say is true, whatever policy was taken from the data, at every look."""

from __future__ import annotations

import math

import numpy as np
import pytest

import reprl
from reprl import ReprlError
from reprl.assurance.quality_certificate import RATES, TOP, certify_quality
from reprl.mdp.counts import Counts
from reprl.mdp.dynamics import Data
from reprl.mdp.evidence import estimate, lay_out
from reprl.mdp.model import evaluate, from_start, one_hot, solve, true_model
from reprl.sources.parallel import GenerativeModel
from tests.naive_quality import naive_certificate
from tests.statistics import FALSE_ALARM, exceeds, keeps

DELTA = 0.1
SIZES = (8, 64, 512)


def table(transition, reward, horizon, start=0):
    return reprl.TabularMDP(np.array(transition, float), np.array(reward, float), start, horizon)


def tied_world():
    """Three actions that are one and the same, a coin each, twice; the start is drawn."""
    return table([[[0.5, 0.5]] * 3] * 2, [[0.0] * 3, [1.0] * 3], 2, np.array([0.3, 0.7]))


def rare_trap():
    """One action is sure; the other looks as good and leads, once in 150 times, where nothing is paid any more."""
    stay, trap = [1.0, 0.0], [149 / 150, 1 / 150]
    return table([[stay, trap], [[0.0, 1.0]] * 2], [[0.5, 0.5], [0.0, 0.0]], 4)


def rare_prize():
    """One action pays a little; the other opens, once in 40 times, a room where all is paid."""
    stay, door = [1.0, 0.0], [39 / 40, 1 / 40]
    return table([[stay, door], [[0.0, 1.0]] * 2], [[0.02, 0.0], [1.0, 1.0]], 3)


def missing_mass():
    """One action leads to one of twelve rooms, ten of which pay; few of them are seen at first."""
    gamble = [0.0] + [1 / 12] * 12
    rest = [1.0] + [0.0] * 12
    return table([[rest, gamble]] + [[rest, rest]] * 12, [[0.4, 0.0]] + [[1.0, 0.0]] * 10 + [[0.0, 0.0]] * 2, 2)


def close_coins():
    """A coin and a sure reward, a hair better."""
    return table([[[0.5, 0.5], [1.0, 0.0]], [[1.0, 0.0]] * 2], [[0.0, 0.26], [0.5, 0.5]], 2)


def random_world():
    rng = np.random.default_rng(5)
    return table(rng.dirichlet(np.full(3, 0.5), (3, 2)), rng.uniform(size=(3, 2)), 3, rng.dirichlet(np.ones(3)))


WORLDS = (tied_world, rare_trap, rare_prize, missing_mass, close_coins, random_world)


def looks(mdp, seed, sizes=SIZES, *, pooled=True):
    """The evidence of a run at every one of its looks."""
    model, halves = GenerativeModel(mdp, seed), None
    source = model.pooled if pooled else model
    for size in sizes:
        more = (size - (0 if halves is None else 2 * halves[0].starts.sum())) // 2
        new = [Data(source.sample(more), source.draw_starts(more), mdp.allowed) for _ in range(2)]
        halves = new if halves is None else [a + b for a, b in zip(halves, new, strict=True)]
        yield lay_out(*halves, fixed_start=mdp.fixed_start)


def solved(model):
    """V* and the gaps."""
    values, gaps = np.empty((len(model.allowed) + 1, model.initial.size)), np.empty(model.allowed.shape)
    solve(model, values, gaps)
    return values, gaps


def value_of(model, actions):
    values = np.empty((len(actions) + 1, model.initial.size))
    evaluate(model, one_hot(actions, model.allowed.shape[2]), values)
    return from_start(model, values)


def flattered(model, truth, best):
    """The policy of an enemy who knows V*: in every cell the action whose samples flatter it most."""
    n_actions = model.allowed.shape[2]
    luck = np.empty(model.allowed.shape)
    for h, s, a in np.ndindex(luck.shape):
        means = []
        for m in (model, truth):
            row = h * m.shift + s * n_actions + a
            outcomes = slice(m.first[row], m.first[row + 1])
            means.append(m.law[outcomes] @ (m.reward[outcomes] + best[h + 1, m.next_state[outcomes]]))
        luck[h, s, a] = means[0] - means[1]
    return luck.argmax(axis=2)


def count_false(world, trials, shrink=1.0, *, pooled=True):
    """How many runs make a false statement at any look, about any of three policies."""
    mdp = world()
    truth = true_model(mdp)
    best, gaps = solved(truth)
    top, base = from_start(truth, best), np.zeros(gaps.shape[:2], dtype=np.int64)
    gain, laws, false = top - value_of(truth, base), one_hot(base, gaps.shape[2]), 0
    for seed in range(trials):
        wrong = False
        for evidence in looks(mdp, seed, pooled=pooled):
            greedy = solved(evidence.model)[1].argmin(axis=2)
            for policy in (greedy, flattered(evidence.model, truth, best), base):
                said = certify_quality(evidence, policy, laws, DELTA, shrink=shrink)
                lost = top - value_of(truth, policy)
                wrong |= said.loss < lost or said.gain > gain or gain - lost < said.quality * gain
        false += wrong
    return false


@pytest.mark.parametrize("world", WORLDS, ids=lambda world: world.__name__)
def test_certificates_are_true_with_probability_one_minus_delta(world):
    """450 runs a world, 2,700 together, 24,300 certificates; a run is false if any of its nine is."""
    assert keeps(count_false(world, 450), 450, DELTA, power=0.9)


def test_steps_of_their_own_are_certified_too():
    assert keeps(count_false(random_world, 450, pooled=False), 450, DELTA, power=0.9)


@pytest.mark.parametrize("world", WORLDS, ids=lambda world: world.__name__)
def test_a_tenth_of_the_radii_is_refuted(world):
    """Negative control."""
    assert exceeds(count_false(world, 450, 0.1), 450, DELTA) < FALSE_ALARM


def stopped(mdp, seed, truth, best):
    """Evidence in which an enemy ended the samples of every cell when they misled most, up or down."""
    rng, outcomes = np.random.default_rng([11, seed]), mdp.outcomes._replace(slot_shift=0)
    hits = np.zeros(outcomes.n_slots, dtype=np.int64)
    for row in range(outcomes.first.size - 1):
        slots = slice(outcomes.first[row], outcomes.first[row + 1])
        law, worths = truth.law[slots], outcomes.reward[slots] + best[1, outcomes.next_state[slots]]
        drawn = rng.choice(law.size, 512, p=law)
        error = np.cumsum(worths[drawn] - law @ worths) / np.sqrt(np.arange(1, 513))
        end = 8 + (error if row % 2 else -error)[7:].argmax()
        hits[slots] = np.bincount(drawn[:end], minlength=law.size)
    starts = rng.multinomial(512, mdp.initial).astype(np.int64)
    none = Data(Counts(outcomes, 0 * hits), 0 * starts, None)
    return lay_out(Data(Counts(outcomes, hits), starts, None), none, fixed_start=mdp.fixed_start)


@pytest.mark.parametrize("shrink", [1.0, 0.1])
def test_who_ends_the_samples_of_a_cell_may_look_at_them(shrink):
    """As an explorer does; with a tenth of the radii it is refuted."""
    mdp = random_world()
    truth = true_model(mdp)
    best, gaps = solved(truth)
    top, base = from_start(truth, best), np.zeros(gaps.shape[:2], dtype=np.int64)
    gain, laws, false = top - value_of(truth, base), one_hot(base, 2), 0
    for seed in range(450):
        evidence = stopped(mdp, seed, truth, best)
        policy = solved(evidence.model)[1].argmin(axis=2)
        said = certify_quality(evidence, policy, laws, DELTA, shrink=shrink)
        lost = top - value_of(truth, policy)
        false += said.loss < lost or said.gain > gain or gain - lost < said.quality * gain
    if shrink == 1.0:
        assert keeps(false, 450, DELTA, power=0.9)
    else:
        assert exceeds(false, 450, DELTA) < FALSE_ALARM


@pytest.mark.parametrize(("chance", "seed"), [(0.5, 1), (0.03, 2)])
def test_a_radius_holds_for_all_numbers_of_samples_at_once(chance, seed):
    """Sequences of coins, both sides, n = 1 … 1,024; a tenth of the radius is refuted."""
    rng, log = np.random.default_rng(seed), math.log(2 * RATES / DELTA)
    number = np.arange(1, 1025)
    misses = {1.0: 0, 0.1: 0}
    rates = TOP * 0.5 ** np.arange(RATES)[:, None]
    bend = -np.log1p(-rates) - rates
    for _ in range(1000):
        error = np.cumsum((rng.random(1024) < chance) - chance) / number
        mean = error + chance
        square = mean * (1.0 - mean) + error**2  # about the expectation
        for scale in misses:
            radius = (scale**2 * log / (rates * number) + bend / rates * square).min(axis=0)
            misses[scale] += (np.abs(error) > radius).any()
    assert keeps(misses[1.0], 1000, DELTA, power=0.99)
    assert exceeds(misses[0.1], 1000, DELTA) < FALSE_ALARM


@pytest.mark.parametrize("pooled", [True, False])
@pytest.mark.parametrize("number", range(8))
def test_the_kernel_is_the_proof(number, pooled):
    """Against plain loops: with a drawn start, forbidden actions, and rows that have fewer samples, or none."""
    rng = np.random.default_rng(number)
    laws = rng.dirichlet(np.full(4, 0.4), (4, 3))
    mdp = table(laws, rng.uniform(size=(4, 3)), 3, rng.dirichlet(np.ones(4)) if number % 2 else 0)
    *_, evidence = looks(mdp, number, (8, 64, 512, 2**12, 2**16), pooled=pooled)
    allowed = rng.random((3, 4, 3)) < 0.8
    allowed[:, :, number % 3] = True
    if number % 4 > 1:  # some rows have no samples, some hardly any
        scale = rng.choice([0, 64, 1, 1, 1], evidence.samples.size).repeat(np.diff(evidence.model.first))
        hits = np.where(scale > 0, evidence.hits // np.maximum(scale, 1), 0)
        evidence = evidence._replace(hits=hits, model=estimate(evidence.model, hits.sum(axis=0)))
    evidence = evidence._replace(model=evidence.model._replace(allowed=allowed))
    policy = solved(evidence.model)[1].argmin(axis=2)
    baseline = one_hot(allowed.argmax(axis=2), 3)
    said = certify_quality(evidence, policy, baseline, 0.05)
    assert said == pytest.approx(naive_certificate(evidence, policy, baseline, 0.05), rel=1e-7, abs=1e-7)


def test_what_is_known_costs_nothing_and_much_data_prove_much():
    mdp = random_world()
    truth = true_model(mdp)
    best, gaps = solved(truth)
    base = gaps.argmax(axis=2)
    policy, gain = gaps.argmin(axis=2), from_start(truth, best) - value_of(truth, base)
    *_, evidence = looks(mdp, 1, (2**14,))
    said = certify_quality(evidence, policy, one_hot(base, 2), DELTA)
    assert 0.9 <= said.quality <= 1.0
    assert 0.0 <= said.loss <= 0.1 * gain
    law = np.zeros_like(evidence.model.law)
    law[evidence.total > 0] = truth.law
    model = evidence.model._replace(law=law, initial=truth.initial)
    known = evidence._replace(exact=np.ones_like(evidence.exact), fixed_start=True, model=model)
    said = certify_quality(known, policy, one_hot(base, 2), DELTA)
    assert said == pytest.approx((0.0, gain, 1.0), abs=1e-6)
    said = certify_quality(known, base, one_hot(base, 2), DELTA)
    assert said == pytest.approx((gain, gain, 0.0), abs=1e-6)


def test_a_discount_is_refused():
    *_, evidence = looks(random_world(), 0)
    discounted = evidence._replace(model=evidence.model._replace(gamma=0.9))
    with pytest.raises(ReprlError, match="horizon"):
        certify_quality(discounted, np.zeros((2, 3), dtype=np.int64), np.ones((2, 3, 2)), DELTA)
