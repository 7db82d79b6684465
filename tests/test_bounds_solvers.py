"""The replicable solvers at their proven sizes, the inequalities behind them, and the integrated race.

Statistical tests reject a right implementation with probability at most FALSE_ALARM = 1e-6 each; their seeds are fixed.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from reprl.coupling.correlated import correlated_sample, disagreement_bound
from reprl.coupling.mechanisms import compact
from reprl.errors import ReprlError
from reprl.lab.lower_bounds import problems, solvers, sources
from reprl.lab.lower_bounds.disagreement import race_disagreement
from reprl.lab.lower_bounds.problems import Algorithm
from reprl.randomness import DataStream, SharedKey
from tests.statistics import FALSE_ALARM, exceeds, keeps

ROOT = SharedKey(20250917)
SIGNS = [
    ("every", "joint"),
    ("average", "joint"),
    ("every", "product"),
    ("average", "product"),
]


def instances(n: int, gap: float, number: int) -> list[Any]:
    """Instances that are hard in different ways: ties, the cube, its edge and middle, large biases."""
    kinds: list[Callable[[int], Any]] = [
        lambda i: np.zeros(n),
        lambda i: problems.cube_instance(n, gap / 2, ROOT.derive("cube", i)),
        lambda i: np.full(n, 0.45 * gap),
        lambda i: np.full(n, -0.25 * gap),
        lambda i: problems.cube_instance(n, 1.0, ROOT.derive("wide", i)),
    ]
    return [kinds[i % len(kinds)](i) for i in range(number)]


def play(solver: Algorithm, biases: list[Any], excess: Callable[[Any, Any], float]) -> tuple[int, int]:
    """Run pairs, a fresh key each; count the pairs that differ and the first runs that miss the accuracy."""
    different = missed = 0
    for i, p in enumerate(biases):
        pair = [sources.rademacher(p, 2 * i + run) for run in (0, 1)]
        one, two = (solver(ROOT.derive("pair", i), source) for source in pair)
        assert pair[0].samples == pair[1].samples == solver.samples
        different += not np.array_equal(one, two)
        missed += excess(p, one) >= solver.guarantee.epsilon
    return different, missed


@pytest.mark.statistical
@pytest.mark.parametrize(("target", "coupling"), SIGNS)
@pytest.mark.parametrize("n", [3, 12])
def test_sign_solver_keeps_its_promise(target: str, coupling: str, n: int) -> None:
    options: dict[str, Any] = {"epsilon": 0.2, "rho": 0.2, "delta": 0.05}
    solver = solvers.sign_solver(n, **options, target=target, coupling=coupling)
    gap = solvers.plan_signs(n, **options, target=target, coupling=coupling).gap
    assert solver.guarantee.status == "proven"
    different, missed = play(solver, instances(n, gap, 200), problems.sign_excess)
    assert keeps(different, 200, 0.2, power=0.93)
    assert keeps(missed, 200, 0.05, power=0.04, finds=0.18)
    if target == "every":
        tested = play(solver, instances(n, gap, 100), lambda p, v: 2 * problems.infinity_excess(p, v))
        assert keeps(tested[1], 100, 0.05, power=0.00458, finds=0.24)


@pytest.mark.statistical
def test_plain_signs_do_not_replicate_on_the_same_samples() -> None:
    """Negative control: sgn(p̂) is as accurate, and fails the test of replicability."""
    solver = solvers.sign_solver(12, epsilon=0.2, rho=0.2, delta=0.05)

    def plain(key: SharedKey, source: Any) -> Any:
        return problems.sign(2.0 * source.count(solver.samples) - solver.samples)

    greedy = Algorithm(run=plain, guarantee=solver.guarantee, samples=solver.samples)
    different, missed = play(greedy, [np.zeros(12)] * 100, problems.sign_excess)
    assert exceeds(different, 100, 0.2) < FALSE_ALARM
    assert missed == 0


@pytest.mark.statistical
def test_far_too_few_samples_are_promised_nothing_and_fail() -> None:
    options: dict[str, Any] = {"epsilon": 0.2, "rho": 0.2, "delta": 0.05}
    few = solvers.sign_solver(12, **options, samples=300)
    assert few.guarantee.status == "none"
    different, _ = play(few, instances(12, 0.2, 100), problems.sign_excess)
    assert exceeds(different, 100, 0.2) < FALSE_ALARM
    planned = solvers.plan_signs(12, **options).samples
    assert solvers.sign_solver(12, **options, samples=planned).guarantee.status == "proven"


def test_average_target_needs_fewer_samples_and_loses_a_sixth_of_its_gap() -> None:
    u = np.linspace(0, 1, 100_001)
    c = np.cos(np.pi * u / 2) ** 2
    # The derivative of u·c/(1 + c) is at most 1 + π/2 in size, so between grid points it rises by less than 3e-5.
    assert (u * c / (1 + c)).max() + 3e-5 < solvers.MEAN_LOSS
    law = compact([[0.5, 0.5 - 0.3]], epsilon=0.4).probabilities[0, 1]
    assert law == pytest.approx(np.cos(np.pi * 0.75 / 2) ** 2 / (1 + np.cos(np.pi * 0.75 / 2) ** 2))
    for n in (16, 64, 256):
        every, average = (
            solvers.plan_signs(n, epsilon=0.1, rho=0.1, delta=0.01, target=t).samples for t in solvers.TARGETS
        )
        assert average < every
    huge = solvers.plan_signs(10**6, epsilon=0.1, rho=0.1, delta=0.01, target="average")
    assert huge.samples < 2.3 * 10**6 / (0.1 * 0.1) ** 2


@pytest.mark.parametrize(("n", "rho", "epsilon"), [(4, 0.1, 0.2), (256, 0.01, 0.05), (31, 0.3, 1.0)])
def test_planned_sizes_are_the_rate_of_the_lower_bound_without_logarithms(n: int, rho: float, epsilon: float) -> None:
    for coupling, rate in (("joint", 8 * np.pi**2 * n), ("product", 2 * np.pi**2 * n * n)):
        m = solvers.plan_signs(n, epsilon=epsilon, rho=rho, delta=0.01, coupling=coupling).samples
        assert rate <= m * (rho * epsilon) ** 2 <= rate * (1 + 2 * rho)


def test_two_sign_laws_are_as_close_as_the_proof_says() -> None:
    """TV ≤ (π/gap)·‖p̂₁ − p̂₂‖₂, by enumeration (docs/proofs/lower-bounds.md §1)."""
    rng = np.random.default_rng(4)
    for _ in range(300):
        n, gap = int(rng.integers(1, 7)), float(rng.uniform(0.05, 2))
        one = rng.uniform(-gap, gap, n)
        two = one + rng.normal(0, gap / 8, n)
        laws = [compact(np.stack([p, -p], axis=1), epsilon=gap).probabilities for p in (one, two)]
        tv = 0.5 * np.abs(np.subtract(*(product(law) for law in laws))).sum()
        assert tv <= np.pi / gap * np.linalg.norm(one - two) + 1e-12


def product(law: Any) -> Any:
    """The law of all 2ⁿ outcomes."""
    out = np.ones(1)
    for row in law:
        out = np.outer(out, row).reshape(-1)
    return out


# -------------------------------------------------------------------------------------------- means and finite classes


@pytest.mark.statistical
def test_mean_solver_keeps_its_promise() -> None:
    n = 8
    solver = solvers.mean_solver(n, epsilon=0.1 * n, rho=0.2, delta=0.05)
    biases = [problems.cube_instance(n, 1.0, ROOT.derive("means", i)) for i in range(200)]
    different, missed = play(solver, biases, problems.mean_excess)
    assert keeps(different, 200, 0.2, power=0.93)
    assert keeps(missed, 200, 0.05, power=0.04, finds=0.18)
    assert 2 * np.pi**2 * n <= solver.samples * (0.2 * 0.1) ** 2 <= 2 * np.pi**2 * n * 1.2
    few = solvers.mean_solver(n, epsilon=0.1 * n, rho=0.2, delta=0.05, samples=200)
    assert exceeds(play(few, biases, problems.mean_excess)[0], 200, 0.2) < FALSE_ALARM


@pytest.mark.statistical
@pytest.mark.parametrize("mechanism", ["exponential", "compact"])
def test_pac_learner_keeps_its_promise(mechanism: str) -> None:
    rng = np.random.default_rng(5)
    labels = rng.choice([-1.0, 1.0], (24, 6))
    options: dict[str, Any] = {"epsilon": 0.2, "rho": 0.2, "delta": 0.05, "mechanism": mechanism}
    counts = {"planned": [0, 0], "few": [0, 0]}
    for name, samples in (("planned", None), ("few", 40)):
        learner = solvers.pac_learner(labels, **options, samples=samples)
        assert learner.guarantee.status == ("none" if samples else "proven")
        for i in range(200):
            law = np.random.default_rng(i).dirichlet(np.ones(12)).reshape(6, 2) if i % 2 else np.full((6, 2), 1 / 12)
            pair = [sources.LabelledSource(law, 2 * i + run) for run in (0, 1)]
            one, two = (learner(ROOT.derive("pac", i), source) for source in pair)
            assert pair[0].samples == learner.samples
            counts[name][0] += not np.array_equal(one, two)
            counts[name][1] += problems.pac_excess(law, labels, one) > 0.2
    assert keeps(counts["planned"][0], 200, 0.2, power=0.93)
    assert keeps(counts["planned"][1], 200, 0.05, power=0.04, finds=0.18)
    assert exceeds(counts["few"][0], 200, 0.2) < FALSE_ALARM


# ------------------------------------------------------------------------------------------------- the integrated race


def exact_race(p: Any, q: Any) -> float:
    """1 − Σ_x 1/Σ_y max(P(y)/P(x), Q(y)/Q(x)), over all outcomes that both laws allow."""
    one, two = product(p), product(q)
    agree = 0.0
    for a, b in zip(one, two, strict=True):
        if a > 0 and b > 0:
            agree += 1 / np.maximum(one / a, two / b).sum()
    return 1 - agree


def law_pairs(number: int) -> list[tuple[Any, Any]]:
    rng = np.random.default_rng(6)
    out = []
    for _ in range(number):
        n = int(rng.integers(1, 9))
        p = rng.uniform(0, 1, n) ** rng.choice([1, 6])
        q = np.clip(p + rng.normal(0, 0.1, n), 0, 1)
        p, q = (np.where(rng.uniform(size=n) < 0.15, np.round(x), x) for x in (p, q))
        out.append((np.stack([1 - p, p], axis=1), np.stack([1 - q, q], axis=1)))
    for n, k in itertools.product((1, 2, 5), (3, 4)):
        p, q = rng.dirichlet(np.ones(k), (2, n))
        p[rng.integers(n), rng.integers(k)] = 0.0
        out.append((p / p.sum(axis=1, keepdims=True), 0.7 * p / p.sum(axis=1, keepdims=True) + 0.3 * q))
    return out


def test_integrated_race_is_the_enumerated_race() -> None:
    for i, (p, q) in enumerate(law_pairs(60)):
        estimate = race_disagreement(p, q, DataStream(i, "race"), draws=20_000)
        assert estimate == pytest.approx(exact_race(p, q), abs=0.03)
        assert estimate <= disagreement_bound(p, q) + 0.03
        if p.shape[1] > 2:
            rows = [exact_race(p[[j]], q[[j]]) for j in range(len(p))]
            alone = race_disagreement(p, q, DataStream(i, "race"), coupling="product")
            assert alone == pytest.approx(1 - np.prod(1 - np.array(rows)), abs=1e-12)


@pytest.mark.statistical
@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("method", ["joint", "product"])
def test_integrated_race_is_what_the_coupling_does(method: str, k: int) -> None:
    rng = np.random.default_rng(7)
    p = rng.dirichlet(np.ones(k), 10)
    laws = [p, 0.85 * p + 0.15 * rng.dirichlet(np.ones(k), 10)]
    predicted = race_disagreement(laws[0], laws[1], DataStream(1, "race"), coupling=method, draws=200_000)
    seen = 0
    for i in range(4000):
        one, two = (correlated_sample(ROOT.derive("race", i), law, method) for law in laws)
        seen += not np.array_equal(one, two)
    slack = 0.006  # 5 standard deviations of the integral
    assert keeps(seen, 4000, predicted + slack, power=0.99)
    assert keeps(4000 - seen, 4000, 1 - predicted + slack, power=0.99)
    assert exceeds(seen, 4000, predicted * 0.7) < FALSE_ALARM


def test_disjoint_and_equal_laws_are_exact() -> None:
    sure = np.array([[0.0, 1.0], [0.5, 0.5]])
    assert race_disagreement(sure, sure[:, ::-1], DataStream(1, "race")) == 1.0
    assert race_disagreement(sure, sure, DataStream(1, "race")) == pytest.approx(0.0, abs=1e-12)


BAD: list[tuple[Callable[[], Any], str]] = [
    (lambda: solvers.plan_signs(0, epsilon=0.1, rho=0.1, delta=0.1), "n must be a whole number from 1 to .*, got 0"),
    (lambda: solvers.plan_signs(4, epsilon=0.0, rho=0.1, delta=0.1), r"epsilon must lie in \(0, 2\], got 0"),
    (lambda: solvers.plan_signs(4, epsilon=0.1, rho=1.5, delta=0.1), r"rho must lie in \(0, 1\), got 1.5"),
    (lambda: solvers.plan_signs(4, epsilon=0.1, rho=0.1, delta=0), r"delta must lie in \(0, 1\), got 0"),
    (
        lambda: solvers.plan_signs(4, epsilon=0.1, rho=0.1, delta=0.1, target="best"),
        "target must be one of every",
    ),
    (
        lambda: solvers.plan_signs(4, epsilon=0.1, rho=0.1, delta=0.1, coupling="x"),
        "coupling must be one of joint, product",
    ),
    (lambda: solvers.sign_solver(4, epsilon=0.1, rho=0.1, delta=0.1, samples=0), "samples must be .*, got 0"),
    (
        lambda: solvers.sign_solver(4, epsilon=0.1, rho=0.1, delta=0.1)(ROOT, sources.rademacher([0.0], 1)),
        "the source must have 4 coordinates, as the algorithm, got 1",
    ),
    (
        lambda: solvers.sign_solver(1, epsilon=0.1, rho=0.1, delta=0.1)(1, sources.rademacher([0.0], 1)),  # type: ignore[arg-type]
        "shared key must be a reprl.SharedKey, got 1",
    ),
    (lambda: solvers.mean_solver(2, epsilon=5.0, rho=0.1, delta=0.1), r"epsilon must lie in \(0, 4\], got 5"),
    (lambda: solvers.pac_learner([[0.5]], epsilon=0.1, rho=0.1, delta=0.1), "hypotheses must consist of −1 and"),
    (lambda: solvers.pac_learner([[1.0]], epsilon=0.1, rho=0.1, delta=0.1, mechanism="x"), "mechanism must be one of"),
    (
        lambda: solvers.pac_learner([[1.0]], epsilon=0.1, rho=0.1, delta=0.1)(
            ROOT, sources.LabelledSource([[0.5, 0], [0, 0.5]], 1)
        ),
        "the source must have 1 points, as the hypotheses, got 2",
    ),
    (lambda: race_disagreement([[1.0]], [[1.0]], DataStream(1, "x")), r"first must have shape \(n, k\)"),
    (lambda: race_disagreement([[0.5, 0.5]], [[0.5, 0.6]], DataStream(1, "x")), r"second\[0\] must sum to 1"),
    (
        lambda: race_disagreement([[0.5, 0.5]], [[0.5, 0.5]] * 2, DataStream(1, "x")),
        "both products must have one shape",
    ),
    (lambda: Algorithm(run=3, guarantee=None, samples=1), "an Algorithm must have a callable run"),  # type: ignore[arg-type]
]


@pytest.mark.parametrize(("call", "message"), BAD)
def test_bad_input_is_refused_with_one_line(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(ReprlError, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)


def test_signs_are_the_same_for_every_order_of_other_calls() -> None:
    """Shared draws are addressed: another algorithm under the same key moves nothing."""
    solver = solvers.sign_solver(6, epsilon=0.2, rho=0.2, delta=0.05)
    key = ROOT.derive("addresses")
    alone = solver(key, sources.rademacher(np.zeros(6), 1))
    for _ in itertools.repeat(None, 3):
        solvers.mean_solver(6, epsilon=1.0, rho=0.2, delta=0.05)(key, sources.rademacher(np.zeros(6), 9))
        assert np.array_equal(solver(key, sources.rademacher(np.zeros(6), 1)), alone)
