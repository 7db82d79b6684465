"""The paper's algorithm as a whole: its constants, boosting, what a run says of itself, and what it refuses."""

from __future__ import annotations

import math
from dataclasses import fields, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import reprl
from experiments.episodic_pair import __main__ as pair_experiment
from experiments.whole import __main__ as experiment
from experiments.whole import plan as plan_of
from experiments.whole import present
from reprl.coupling.spec import COUPLINGS
from reprl.learning.full import run_paper
from reprl.learning.settings import Settings
from reprl.mdp.counts import Counts
from reprl.mdp.tiers import Tiers
from reprl.paper import plan, proven
from reprl.paper.constants import Constants, Task, paper_calls
from reprl.paper.full import ignore_starved
from reprl.paper.q_agent import explore_episodes, make_agent, make_schedule, restart
from reprl.paper.q_explore import explore
from reprl.paper.rep_explore import draw_ignored
from reprl.paper.rep_var_bandit import plan_best_arm
from reprl.paper.runs import Exploration, RunSettings
from tests.statistics import FALSE_ALARM, exceeds, keeps

ROOT = Path(__file__).parent.parent
SCALED: dict[str, Any] = {"rule": "paper", "access": "episodic", "constants": "scaled", "epsilon": 0.5}
BOOSTED: dict[str, Any] = {**SCALED, "boosted": True}


def task(n_states: int = 4, n_actions: int = 2, horizon: int = 3, **options: Any) -> Task:
    asked: dict[str, Any] = {"epsilon": 0.5, "rho": 0.1, "delta": 0.1, "access": "episodic", "boosted": True}
    return Task(n_states, n_actions, horizon, **{**asked, "coupling": "joint", **options})


def small() -> reprl.TabularMDP:
    return reprl.make("hard-instance-v0", 2, n_states=2, bias=0.3)


# Constants.


def test_scale_one_is_the_paper_and_its_formulas() -> None:
    asked = task()
    assert Constants.scaled(1.0, asked) == Constants.paper(asked)
    found, (s, a, h) = Constants.paper(asked), (4, 2, 3)
    assert found.delta == pytest.approx(0.1 - 0.01)  # exploration has the rest of Lemma 4.1's 0.1
    zeta = 0.25 / (h**2 * math.log(s * a * h / (0.25 * found.delta)) ** 5)
    kappa = 0.01 / math.log2(1 / zeta)
    log = math.log(s * h / kappa)
    runs = math.ceil(s * h * log / kappa**2)
    assert (found.zeta, found.kappa) == pytest.approx((zeta, kappa))
    assert found.tiers == math.ceil(math.log2(1 / zeta))
    assert found.partition_runs == pytest.approx(runs)
    assert found.failure == pytest.approx(kappa / sum(found.partition_runs + more for more in found.data_runs))
    for tier, (more, length) in enumerate(zip(found.data_runs, found.episodes, strict=True), 1):
        beta = 2.0**tier * zeta
        assert more == pytest.approx(log**2 * runs + s * h * log / (kappa**4 * beta**2))
        accuracy = 2.0**-tier * kappa
        assert length == pytest.approx(s * 2 * a * h**5 * math.log(s * a * h / found.failure) / accuracy**2)
    assert found.bonus == pytest.approx([2.0] * (found.tiers - 1))
    assert found.by_tier == pytest.approx([2.0**t * 0.25 / (8 * h * found.tiers) for t in range(1, found.tiers)])
    assert (found.guide, found.pessimism, found.quota, found.keep_records) == (1.0, 1.0, h, False)
    assert (found.seeds, found.threshold, found.tolerance) == (4, 0.6, 0.05)
    assert found.pulls == plan_best_arm(4, epsilon=0.5 / 6, rho=0.05, delta=0.1 / 3).pulls


@given(
    st.integers(1, 40),
    st.integers(1, 8),
    st.integers(1, 8),
    st.floats(0.001, 0.49),
    st.booleans(),
    st.sampled_from(COUPLINGS),
)
def test_hypotheses_of_the_papers_lemmas_hold(s: int, a: int, h: int, rho: float, boosted: bool, grade: str) -> None:
    """Mι and mι stay below κ over all tiers (Lemma 5.14); exploration and induction share the δ (Lemma 4.1)."""
    asked = task(s, a, h, epsilon=0.4, rho=rho, delta=0.8 * rho, coupling=grade, boosted=boosted)
    found = Constants.paper(asked)
    assert sum(found.partition_runs + more for more in found.data_runs) * found.failure <= found.kappa * (1 + 1e-9)
    lost = found.kappa * math.log2(1.0 / found.zeta)  # Lemma 5.1: κ for each of log(1/ζ) tiers
    assert found.delta + lost <= (0.1 if boosted else 0.8 * rho) * (1 + 1e-9)
    assert 2 * lost <= (0.1 if boosted else rho) * (1 + 1e-9)


@given(st.floats(0.01, 0.99), st.integers(1, 40), st.integers(1, 8), st.integers(1, 8), st.booleans())
def test_sizes_lie_between_their_core_and_the_papers(f: float, s: int, a: int, h: int, boosted: bool) -> None:
    asked = task(s, a, h, epsilon=0.4, boosted=boosted)
    paper, found = Constants.paper(asked), Constants.scaled(f, asked)
    assert 3 <= found.tiers <= max(3, paper.tiers)
    assert s <= found.partition_runs <= paper.partition_runs
    for name in ("seeds", "candidates", "frequencies", "pulls", "total"):
        assert getattr(found, name) <= getattr(paper, name)
    assert Constants.scaled(min(1.0, f * 1.01), asked).total >= found.total
    assert all(abs(after - 4 * before) <= 4 for before, after in pairwise(found.episodes))


@pytest.mark.parametrize("scale", [0.05, 1.0])
def test_sizes_grow_with_states_actions_and_draws_as_the_papers_do(scale: float) -> None:
    """Twice the states: twice m, M and K up to logarithms, of which M has ten; draws multiply m and M (Lemma A.1)."""
    one, two = (Constants.scaled(scale, task(s, 2, 3)) for s in (64, 128))
    for name in ("partition_runs", "data_runs", "episodes"):
        more, less = (np.array(getattr(found, name), dtype=float).ravel()[:2] for found in (two, one))
        assert (abs(np.log2(more / less) - 1.0) < (0.12 if scale < 1 else 1.5)).all()
    joint = Constants.scaled(scale, task(6, 2, 3))
    product = Constants.scaled(scale, task(6, 2, 3, coupling="product"))
    assert product.partition_runs == pytest.approx(18 * joint.partition_runs, rel=0.06)
    assert product.data_runs[0] == pytest.approx(18 * joint.data_runs[0], rel=0.05)


def test_asking_rho_directly_shrinks_zeta_and_kappa_in_proportion() -> None:
    boosted, direct = (Constants.paper(task(rho=0.02, epsilon=e, boosted=b)) for e, b in ((1.0, True), (0.5, False)))
    assert (direct.zeta, direct.kappa) == pytest.approx((boosted.zeta, boosted.kappa))
    assert (direct.seeds, direct.learners) == (0, 1)
    tenth = Constants.paper(task(rho=0.002, boosted=False, delta=0.09 + 0.001))  # less for exploration, too
    assert tenth.zeta == pytest.approx(direct.zeta / 10)


def test_parallel_sampling_has_one_tier_and_the_papers_calls() -> None:
    asked = task(access="generative")
    found = Constants.paper(asked)
    assert found.calls == paper_calls(4, 2, 3, epsilon=0.25, rho=0.01, delta=0.1, coupling=asked.coupling)
    assert (found.tiers, found.episodes) == (1, ())
    assert found.by_tier == pytest.approx((2 * 0.25 / 24,))
    assert Constants.scaled(0.1, asked).calls < found.calls


def test_plan_has_boosted_runs_and_what_episodes_would_cost() -> None:
    rows = {(row.algorithm, row.access): row for row in plan(n_states=4, n_actions=2, horizon=3, epsilon=0.5)}
    for grade in COUPLINGS:
        direct = rows[f"paper, {grade}", "parallel"]
        boosted = rows[f"paper, {grade}, boosted", "parallel"]
        episodic = rows[f"paper, {grade}, boosted", "episodic"]
        asked = Settings(rule="paper", boosted=True, coupling=grade, epsilon=0.5)
        assert boosted.samples == pytest.approx(asked.paper.constants_for(4, 2, 3, 24).total * 24)
        # Parallel samples are drawn as counts, whatever all learners add up to; nobody can count so many episodes.
        assert (direct.kind, boosted.kind, episodic.kind) == ("exact", "exact", "order")
        assert direct.samples < boosted.samples < episodic.samples


# A run.


@pytest.fixture(scope="module")
def result() -> Any:
    return reprl.learn(small(), **BOOSTED, scale=0.03, shared_seed=1, data_seed=2)


def test_a_scaled_run_is_whole_and_promises_nothing(result: Any) -> None:
    constants = result.constants
    assert result.guarantee.status == "none"
    assert "every slack to the power 0.03" in result.guarantee.source
    assert f"{constants.total:.3g} episodes" in result.guarantee.source
    assert result.tiers.count == constants.tiers == 3
    assert len(result.ballots) == constants.seeds == 4
    assert all(one.candidates.total() == constants.candidates for one in result.ballots)
    assert all(one.frequencies.total() == constants.frequencies for one in result.ballots)
    assert result.policy.actions.tolist() in [p.actions.tolist() for one in result.ballots for p in one.heavy]
    assert constants.learners * constants.each < result.episodes <= constants.total
    assert result.samples <= constants.total * 3  # the start is random, and counts
    assert (result.explored.ignored.shape, result.induction.laws.shape) == ((2, 2, 2), (2, 2, 2))
    assert result.verdict is None


def test_same_seeds_same_bytes_whatever_the_workers(result: Any) -> None:
    again = reprl.learn(small(), **BOOSTED, scale=0.03, shared_seed=1, data_seed=2, workers=3)
    assert again.policy == result.policy
    assert np.array_equal(again.counts.hits, result.counts.hits)
    assert again.receipt.to_dict()["visits"] == result.receipt.to_dict()["visits"]


def test_recipes_carry_the_scale(result: Any) -> None:
    recipe = reprl.Recipe.from_json(result.recipe.to_json())
    assert (recipe.settings.constants, recipe.settings.scale, recipe.settings.boosted) == ("scaled", 0.03, True)
    assert recipe.digest == result.recipe.digest
    assert recipe.learn(data_seed=2, env=small()).policy == result.policy


def test_states_whose_fresh_data_lack_an_action_are_ignored() -> None:
    mdp = small()
    full = reprl.GenerativeModel(mdp, 1).sample(3)
    hits = full.hits.copy()
    hits[full.outcomes.slots(0, 0, 1)[1]] = 0
    tiers = ignore_starved(Tiers.from_levels([[1, 2], [2, 1]], 3), Counts(full.outcomes, hits))
    assert tiers.level.tolist() == [[3, 2], [2, 1]]


def test_direct_runs_make_one_learner() -> None:
    asked = Settings(**SCALED, scale=0.03)
    model = reprl.EpisodicModel(small(), 1)
    found = run_paper(model, reprl.SharedKey(1), asked)
    assert found.ballots == ()
    assert found.constants is not None
    assert model.ledger.episodes == found.constants.each
    kept = run_paper(
        reprl.EpisodicModel(small(), 1),
        reprl.SharedKey(1),
        asked,
        constants=replace(found.constants, keep_records=True),
    )
    assert kept.counts.visits.sum() == found.constants.each > found.counts.visits.sum()


def test_fingerprint_of_fixed_seeds(result: Any) -> None:
    assert result.policy.short_fingerprint == "84a2bd6dc222"
    assert (result.samples, int(result.counts.hits.sum())) == (1_866_224, 24_946)


@pytest.mark.slow
@pytest.mark.statistical
def test_pairs_of_scaled_runs_by_episodes_agree_and_are_near_optimal() -> None:
    """The algorithm of Theorem 6.1 itself, ρ = 0.1 over 40 pairs, false alarm 1e-6, fresh shared and data seeds.

    Control: the same algorithm with one run of 40 episodes for each size, which is rejected at ρ.
    """
    mdp = small()
    asked = Settings(**BOOSTED, scale=0.03, mechanism="exponential")
    best, apart, missed, parted = mdp.evaluate(mdp.solve().policy), 0, 0, 0
    direct = replace(asked, boosted=False)
    full = direct.paper.constants_for(2, 2, 2, 3)
    starved = replace(full, partition_runs=1, data_runs=(1, 1), episodes=(40, 40))
    for i in range(40):
        key, models = reprl.SharedKey(7000 + i), [reprl.EpisodicModel(mdp, 9000 + 2 * i + half) for half in (0, 1)]
        one, two = (run_paper(model, key, asked) for model in models)
        assert min(len(one.ballots), len(two.ballots)) == 4
        apart += one.policy != two.policy
        missed += sum(mdp.evaluate(run.policy) < best - 0.5 for run in (one, two))
        one, two = (run_paper(model, key, direct, constants=starved) for model in models)
        parted += one.policy != two.policy
    assert exceeds(parted, 40, 0.1) < FALSE_ALARM, parted
    assert keeps(apart, 40, 0.1, power=0.002, finds=0.55), apart
    assert keeps(missed, 80, 0.1, power=0.02, finds=0.45), missed


# Boosting from parallel samples, where sizes are small enough to repeat.


@pytest.mark.statistical
def test_boosting_parts_fewer_pairs_than_what_it_boosts() -> None:
    """ρ = 0.1 over 40 pairs, false alarm 1e-6. Control: the learners that are boosted are rejected there."""
    mdp = reprl.make("hard-instance-v0", 2, n_states=2, bias=0.25)
    asked = Settings(**{**BOOSTED, "epsilon": 1.0, "access": "generative"}, scale=0.1, mechanism="exponential")
    apart = base = 0
    for i in range(40):
        one, two = (run_paper(reprl.GenerativeModel(mdp, 2 * i + half), reprl.SharedKey(i), asked) for half in (0, 1))
        apart += one.policy != two.policy
        base += sum(
            next(iter(a.candidates)) != next(iter(b.candidates)) for a, b in zip(one.ballots, two.ballots, strict=True)
        )
    assert exceeds(base, 160, 0.1) < FALSE_ALARM, base
    assert keeps(apart, 40, 0.1, power=0.002, finds=0.55), apart


def test_the_papers_parallel_shape_is_proven_and_refused_only_where_a_word_cannot_count() -> None:
    asked: dict[str, Any] = {"rule": "paper", "boosted": True}
    asked |= {"rho": 0.4, "delta": 0.3}
    smallest = Settings(**asked, epsilon=1.0).paper.constants_for(2, 2, 1, 4)
    assert smallest.total > 2**62  # all learners together: an integer of any length
    assert smallest.check() is smallest
    large = Settings(**asked, epsilon=0.1).paper.constants_for(16, 4, 6, 384)
    with pytest.raises(
        reprl.ReprlError, match=r"^the paper's constants ask for [\d.e+]+ parallel calls of one learner"
    ):
        large.check()
    settings = Settings(**{**asked, "epsilon": 2.0}, mechanism="exponential")
    paper = settings.paper.constants_for(2, 2, 2, 8)
    few = replace(paper, candidates=2, frequencies=2)  # the sizes of a learner are the paper's; only fewer of them
    found = run_paper(reprl.GenerativeModel(small(), 1), reprl.SharedKey(1), settings, constants=few)
    assert found.induction is not None
    assert found.induction.guarantee.status == "proven"
    assert found.induction.guarantee.rho <= 0.01
    assert found.induction.guarantee.epsilon <= 1.0
    assert found.guarantee.status == "none"  # fewer learners than Lemma 4.1 asks for


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"scale": 0.0}, r"scale must lie in \(0, 1\], got 0"),
        ({"scale": 1.5}, r"scale must lie in \(0, 1\], got 1.5"),
        ({"scale": 0.5, "constants": "paper"}, "scale must be left out unless constants='scaled', got 0.5"),
        ({"rho": 0.5, "boosted": True}, r"rho must lie in \(0, 0.5\) for a boosted learner, got 0.5"),
        ({"max_samples": 1000}, r"max_samples must be at least \d+ for these settings, got 1000"),
        ({"scale": 1.0}, r"the paper's constants ask for .* episodes in tier 1 alone, .* in all"),
        ({"scale": 0.6}, r"constants at scale=0.6 ask for .* use constants='scaled' with samples or a smaller scale"),
        ({"epsilon": 7.0}, r"epsilon must lie in \(0, 6\] in the rewards' own units"),
    ],
)
def test_what_is_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(reprl.ReprlError, match=words):
        reprl.learn(small(), **{**SCALED, **options}, shared_seed=1, data_seed=1)


def test_every_constant_has_a_word_of_its_own() -> None:
    wanted = {"kappa", "partition_runs", "data_runs", "episodes", "failure", "bonus", "zeta", "tiers", "quota"}
    wanted |= {"pessimism", "seeds", "threshold", "tolerance"}
    assert wanted <= {field.name for field in fields(Constants)}


# The fewest episodes at which a run is proven (docs/proofs/whole.md).


@pytest.mark.parametrize(("id", "horizon"), [("combination-lock-v0", 4), ("random-mdp-v0", 3)])
@pytest.mark.parametrize("bonus", [1.0, 0.05])
def test_values_of_the_start_add_up_to_no_more_than_the_bound(id: str, horizon: int, bonus: float) -> None:
    """§1, a bound without probability: Σ_k V₁ᵏ ≤ σ₁ for every c, and with c = 1 the mean is ≤ λ(K)."""
    mdp = reprl.make(id, horizon, n_states=4, n_actions=2)
    assert isinstance(mdp, reprl.TabularMDP)
    sizes, episodes, failure = (4, 2, horizon), 3000, 0.01
    agent, world = make_agent(*sizes), reprl.EpisodicModel(mdp, 3).arrays
    assert world is not None
    restart(agent, *sizes)
    schedule = make_schedule(*sizes, episodes=episodes, bonus=bonus, guide=1.0, failure=failure)
    hits, position, total, least = np.zeros(mdp.outcomes.n_slots, dtype=np.int64), 0, 0.0, math.inf
    for _ in range(episodes):
        value = float(agent.value[0])
        total, least = total + value, min(least, value)
        position, _ = explore_episodes(world, agent, schedule, np.uint64(7), np.uint64(1), position, 1, hits)
    log, bound = math.log(2 * 4 * 2 * episodes * horizon / failure), 0.0
    for offered in (8, *[16] * (horizon - 2), 4):  # the last step, those between, the first
        root = math.sqrt(horizon**3 * log * offered * episodes)
        bound = offered * horizon + (1 + 1 / horizon) * bound + 2 * (horizon + 1) / (horizon + 0.5) * bonus * root
    assert total <= bound
    if bonus == 1.0:
        assert proven.visits_left(*sizes, episodes, failure) == pytest.approx(bound / episodes)
        assert least <= total / episodes
    else:  # the control: a fifth of the bound is too little
        assert total > bound / 5


def test_more_is_asked_for_more() -> None:
    base = proven.Problem(3, 2, 2, 0.5, 0.1, 0.1)
    least = proven.proven_sizes(base).episodes
    for more in (
        {"n_states": 6},
        {"n_actions": 4},
        {"horizon": 4},
        {"epsilon": 0.25},
        {"rho": 0.05},
        {"delta": 0.05},
    ):
        assert proven.proven_sizes(base._replace(**more)).episodes > least
    with pytest.raises(reprl.ReprlError, match="epsilon"):
        proven.proven_sizes(base._replace(epsilon=3.0))


@pytest.mark.parametrize("n", [1, 2, 7, 60])
@pytest.mark.parametrize("horizon", [1, 3, 9])
def test_weights_of_the_agents_averages(n: int, horizon: int) -> None:
    """§1: Σ_i α_tⁱ/√i ≤ (H+1)/(H+½)/√t, and the weight of a target over all later visits is at most 1 + 1/H."""

    def weight(i: int, t: int) -> float:
        rest = math.prod(1 - (horizon + 1) / (horizon + j) for j in range(i + 1, t + 1))
        return (horizon + 1) / (horizon + i) * rest

    most = (horizon + 1) / (horizon + 0.5) / math.sqrt(n)
    assert 0.9 * most * horizon / (horizon + 1) <= sum(weight(i, n) / math.sqrt(i) for i in range(1, n + 1)) <= most
    assert sum(weight(n, t) for t in range(n, n + 400)) <= 1 + 1 / horizon + 1e-12


# A pair that can be played (docs/proofs/whole.md §6).


@pytest.mark.parametrize("episodes", [60, 300, 2000])
def test_the_first_value_bounds_what_a_larger_quota_leaves_under_explored(episodes: int) -> None:
    """q = ⌊Hℓ⌋, c = 1, in 40 runs on each of two worlds. Control: a quota a hundred times larger is not bounded."""
    broken = 0
    for mdp in (reprl.make("combination-lock-v0", 3, n_states=3), pair_experiment.world()):
        sizes = (mdp.n_states, mdp.n_actions, mdp.horizon)
        failure = 1e-6
        quota = math.floor(mdp.horizon * math.log(2.0 * math.prod(sizes) * episodes / failure))
        settings = RunSettings(episodes=episodes, bonus=1.0, guide=1.0, failure=failure)
        for number in range(40):
            model = reprl.EpisodicModel(mdp, number)
            found = explore(model, settings, 1, quota=quota, purpose="x")
            far = found.counts.visits.min(axis=2) < 100 * quota
            assert mdp.reachability(found.short == 1) <= found.first_value[0] + 1e-9
            broken += mdp.reachability(far) > found.first_value[0] + 1e-9
    assert broken > 0 or episodes < 2000


@pytest.mark.parametrize("quota", [None, 2000])
def test_sizes_of_a_pair_meet_their_conditions_and_no_fewer_runs_do(quota: int | None) -> None:
    problem = proven.Problem(2, 2, 2, 1.0, 0.2, 0.2)
    found = proven.certified_sizes(problem, 0.07, 4_000_000, quota)

    def parted(runs: int) -> float:
        """Arms of both steps, and values of the last one alone."""
        arms, values = 2 + math.sqrt(2), math.sqrt(2)
        cells = math.sqrt(2) * (arms + values) / math.sqrt(2 * found.quota * runs)
        return 2 * math.sqrt(2 * math.log(2) * 3 / (2 * runs - 1)) + math.pi / 0.07 * cells

    assert parted(found.runs) == pytest.approx(proven.disagreement(problem, found.runs, found.quota, 0.07))
    assert parted(found.runs) <= 0.2 < parted(found.runs - 2)
    assert found.quota == (quota or math.floor(2 * math.log(2 * 8 * 4_000_000 / found.failure)))
    assert found.runs * found.failure <= 0.1 * problem.delta
    with pytest.raises(reprl.ReprlError, match=r"^window must be larger: 0.0001 asks for \d+ runs"):
        proven.certified_sizes(problem, 0.0001, 4_000_000)


def explored(runs: int, value: float, records: int, missed: NDArray[np.bool_]) -> Exploration:
    """What made-up exploration runs of the pair's world found, each with one value and so many records everywhere."""
    outcomes = pair_experiment.world().outcomes
    counts = Counts(outcomes, np.full(outcomes.n_slots, records, dtype=np.int64))
    short = missed.sum(axis=0, dtype=np.int64)
    return Exploration(runs, short, missed, counts, np.full(runs, value), np.zeros(2, dtype=np.int64))


def test_a_certified_loss_is_what_the_proof_says() -> None:
    problem = proven.Problem(2, 2, 2, 1.0, 0.2, 0.2)
    sizes = proven.certified_sizes(problem, 0.07, 4_000_000)
    missed = np.zeros((100, 2, 2), dtype=np.bool_)
    missed[:, 0, 1] = True  # no episode begins there
    known = 2 * (3 * 0.07 + 4 * sizes.noise)
    nothing, last = np.array([[0, 1], [0, 0]], dtype=bool), np.array([[0, 1], [0, 1]], dtype=bool)
    assert proven.certified_loss(problem, sizes, explored(100, 0.03, 10**9, missed), nothing, 0) == pytest.approx(known)
    missed[3, 1, 1] = True
    found = explored(100, 0.03, 10**9, missed)
    found.first_value[3] = 0.1
    assert proven.certified_loss(problem, sizes, found, last, 0) == pytest.approx(
        known + 2 * 0.1
    )  # run 3 alone covers it
    found.first_value[3] = 1.0
    mean = (99 * 0.03 + 1.0) / 100
    assert proven.certified_loss(problem, sizes, found, last, 0) == pytest.approx(known + 2 * mean / 0.16)  # Markov
    larger = sizes._replace(quota=4 * sizes.quota)
    assert proven.certified_loss(problem, larger, found, last, 0) == pytest.approx(known + 2 * 2 * mean / 0.16)
    assert proven.certified_loss(problem, sizes, explored(100, 0.03, 10**3, missed), nothing, 0) is None


@pytest.mark.parametrize("factor", [1, 4, 30])
def test_what_a_set_can_cost_is_covered_by_the_runs_that_left_it(factor: int) -> None:
    """§6: R(I) ≤ Σ over I of min V₁/v, for any quota and sets that are drawn. Control: without v some are not."""
    broken = 0
    for mdp in (reprl.make("combination-lock-v0", 3, n_states=3), reprl.make("river-swim-v0", 3, n_states=3)):
        problem = proven.Problem(mdp.n_states, mdp.n_actions, mdp.horizon, 1.0, 0.2, 0.2)
        for episodes in (200, 2000):
            quota = factor * proven.find_quota(problem, episodes, 1e-6)
            settings = RunSettings(episodes=episodes, bonus=1.0, guide=1.0, failure=1e-6)
            found = explore(reprl.EpisodicModel(mdp, 3), settings, 12, quota=quota, purpose="x")
            for number in range(20):
                ignored = draw_ignored(reprl.SharedKey(number), found.short / 12, "joint")
                ignored[0] &= mdp.initial > 0
                each = [found.first_value[found.missed[:, h, s]].min() for h, s in np.argwhere(ignored)]
                worth = mdp.reachability(ignored)
                assert worth <= sum(each) * math.sqrt(factor) + 1e-9
                broken += worth > sum(each) + 1e-9
    assert broken == 0 if factor == 1 else True


def test_a_small_pair_by_episodes_agrees_and_states_a_loss_that_holds() -> None:
    plan = pair_experiment.QUICK["certified/2,2,2"]
    found = pair_experiment.measure(plan, 0)
    assert found["same"]
    for one in found["runs"]:
        assert one["episodes"] == found["sizes"]["runs"] * plan.length
        assert one["certified"] is not None
        assert one["loss"] <= one["certified"] <= plan.epsilon * (1 + 1e-9)


# The stored experiment.


def test_the_page_shows_the_stored_experiment_and_there_is_as_much_as_was_planned() -> None:
    data = experiment.EXPERIMENT.load(ROOT / "experiments" / "whole" / "data.json", quick=False)
    page = (ROOT / "docs" / "whole.md").read_text("utf-8")
    assert present.tables(data).strip() == page.partition(present.START)[2].partition(present.END)[0].strip()
    assert set(data["measured"]) == set(experiment.jobs(quick=False))
    found = present.rows_of(data)
    assert [len(rows) for rows in found.values()] == [40] * 4
    for name, one in data["measured"].items():
        if name.startswith("pairs/"):
            assert one["digest"] == plan_of.WORLDS[name.partition("/")[2].partition("#")[0]]().digest[:16]


def test_tables_follow_from_rows() -> None:
    assert present.slope([2.0, 4.0, 8.0], [4.0, 16.0, 64.0])[0] == pytest.approx(2.0)
    same = [{"pairs": 100, "apart": 10, "samples": 4.0**i} for i in range(1, 4)]
    assert present.needed([2.0, 4.0, 8.0], same, 0.1)[0] == pytest.approx(2.0)
