"""The canonical learner end to end: settings, rounds, promises, golden runs, and how often two runs disagree."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np
import pytest

import reprl
from reprl.errors import ReprlError
from reprl.guarantee import STATUSES, Guarantee
from reprl.learning.learner import ReprlLearner
from reprl.learning.settings import PAPER_ONLY, Settings
from reprl.randomness import DataStream, SharedKey
from reprl.sources.episodes import EpisodicModel
from reprl.sources.gymnasium.model import GymnasiumModel
from reprl.sources.parallel import GenerativeModel
from reprl.sources.protocol import Access
from reprl.sources.source import FIRST, LIMITS
from tests import adversaries
from tests.adversaries import Adversary
from tests.statistics import FALSE_ALARM, exceeds, keeps
from tests.test_blackbox import Stairs

GOLDEN = {
    ("gridworld", "generative"): ("30ac4bdec4adba5bd628c5d88efca51163fd89f49318d7c3ec7a79b0e751632b", 100663296),
    ("gridworld", "episodic"): ("30ac4bdec4adba5bd628c5d88efca51163fd89f49318d7c3ec7a79b0e751632b", 100663296),
    ("river-swim", "generative"): ("aa48f602f319ec0dc0958468cab69d2227b9c987ebe1ac720daaf3af73c3c369", 3932160),
    ("river-swim", "episodic"): ("aa48f602f319ec0dc0958468cab69d2227b9c987ebe1ac720daaf3af73c3c369", 1966080),
    ("stairs", "episodic"): ("52dac14ce0292f095589fc7d1408d9ee123b1cb041151e29bbc58e72c7b58922", 2017),
}
"""Fingerprint and samples of learn(shared_seed=7, data_seed=11, stationary=False), for stream version 3."""


def world(name: str) -> Any:
    """A fresh environment by name."""
    match name:
        case "gridworld":
            return reprl.make("gridworld-v0")
        case "river-swim":
            return reprl.make("river-swim-v0", n_states=5, horizon=6)
        case _:
            return GymnasiumModel(lambda: Stairs(0.1), 3, reward_range=(0, 1), data_seed=1)


def random_world(seed: int = 2, *, n_states: int = 10, n_actions: int = 3, horizon: int = 4) -> reprl.TabularMDP:
    mdp = reprl.make("random-mdp-v0", horizon, n_states=n_states, n_actions=n_actions, seed=seed)
    assert isinstance(mdp, reprl.TabularMDP)
    return mdp


def open_model(mdp: reprl.TabularMDP, access: Access, data: int) -> GenerativeModel | EpisodicModel:
    return GenerativeModel(mdp, data) if access == "generative" else EpisodicModel(mdp, data)


def run(mdp: Any, shared: int = 1, data: int = 2, **options: Any) -> reprl.LearnResult:
    return reprl.learn(mdp, shared_seed=shared, data_seed=data, **options)


# Golden runs.


@pytest.mark.parametrize("name", list(GOLDEN))
def test_runs_are_golden_for_any_number_of_workers(name: tuple[str, str]) -> None:
    for workers in (1, 2):
        result = run(world(name[0]), 7, 11, access=name[1], workers=workers, stationary=False)
        assert (result.policy.fingerprint, result.samples) == GOLDEN[name]
        assert result.guarantee.status == "rehearsed"


def test_a_run_is_a_function_of_its_two_seeds() -> None:
    first, again, other = (run(world("river-swim"), 3, data, access="generative") for data in (4, 4, 5))
    assert first.counts == again.counts
    assert first.policy == again.policy
    assert first.rehearsal is not None
    assert again.rehearsal is not None
    assert first.rehearsal[:5] == again.rehearsal[:5]
    assert first.counts != other.counts


# Shared addresses.


@pytest.mark.parametrize("access", ["generative", "episodic"])
def test_the_data_move_no_shared_draw(access: Access, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fixed addresses are read once and first; all others are those of a policy."""
    read: list[tuple[str | int, ...]] = []
    words = SharedKey.words.fget  # type: ignore[attr-defined]

    def listen(key: SharedKey) -> Any:
        if key.seed == 1:  # pairs of a rehearsal make up keys of their own
            read.append(key.labels)
        return words(key)

    monkeypatch.setattr(SharedKey, "words", property(listen))
    fixed = [("rule", name) for name in ("tolerance", "room", "handicap", "preference")]
    rest = set()
    for data in range(4):
        read.clear()
        run(random_world(1, n_states=3), 1, data, access=access, preference="shared", max_samples=20_000)
        assert read[:4] == fixed
        assert not set(fixed) & set(read[4:])
        rest |= {place[:2] for place in read[4:]}
    assert rest == {("rule", "policy")}


def assert_opened_once(opened: list[str]) -> None:
    """Both teams of a pair ask for the key that they share; nothing else is asked for twice."""
    drawn = [purpose for purpose in opened if "/key/" not in purpose]
    assert len(drawn) == len(set(drawn))
    assert max(opened.count(purpose) for purpose in set(opened)) <= 2


def test_rehearsals_read_streams_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """No purpose is opened twice, except by what only asks for its key again; beside a tie, teams keep their data."""
    opened: list[str] = []
    begin = DataStream.__init__

    def listen(stream: DataStream, data_seed: int, purpose: str, run: int = 0) -> None:
        opened.append(f"{purpose}/{data_seed}" if purpose in ("phantoms", "ties") else purpose)
        begin(stream, data_seed, purpose, run)

    monkeypatch.setattr(DataStream, "__init__", listen)
    run(random_world(1, n_states=3), 1, 5, access="generative", max_samples=50_000, stationary=False)
    assert {purpose.split("/")[0] for purpose in opened} == {"generative", "starts", "rehearsal", "phantoms", "ties"}
    again = {purpose for purpose in opened if opened.count(purpose) > 1 and "/key/" not in purpose}
    assert {purpose.split("/")[0] for purpose in again} <= {"rehearsal", "phantoms"}
    opened.clear()
    monkeypatch.setattr("reprl.canonical.bound.BoundRule.ties", lambda *_: None)
    run(random_world(1, n_states=3), 1, 5, access="generative", max_samples=50_000, stationary=False)
    assert_opened_once(opened)
    kinds = {purpose.split("/")[0] for purpose in opened}
    assert kinds == {"generative", "starts", "rehearsal", "phantoms"}
    opened.clear()
    run(random_world(1, n_states=3), 1, 5, access="generative", max_samples=50_000)
    assert_opened_once(opened)
    assert {purpose.split("/")[0] for purpose in opened} == {"pooled", "pooled starts", "rehearsal", "phantoms"}


# Settings.


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"rule": "greedy"}, "rule must be"),
        ({"rule": None}, "rule must be"),
        ({"preference": "cheapest"}, "preference must be None, 'shared'"),
        ({"preference": 3}, "preference must be None, 'shared'"),
        ({"preference": [0, 1.5, 2]}, "preference must be"),
        ({"preference": [0, True, 2]}, "preference must be"),
        ({"preference": [0, -1, 2]}, "preference must be"),
        ({"preference": [0, 1]}, "preference must name every action once.*'a2', it is missing"),
        ({"preference": []}, "preference must name every action once"),
        ({"preference": [0, 1, 1, 2]}, "preference must name every action once.*'a1', it comes 2 times"),
        ({"preference": [0, 1, 3]}, "preference must"),
        ({"preference": [0, 1, "up"]}, "preference must name actions among"),
        ({"preference": [0, 1, 2], "rule": "paper"}, "preference must be left out unless rule='canonical'"),
    ],
)
def test_settings_that_are_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ReprlError, match=words):
        run(random_world(n_states=3), access="generative", max_samples=10_000, **options)


@pytest.mark.parametrize("name", PAPER_ONLY)
def test_options_of_the_papers_rule_are_refused(name: str) -> None:
    values: dict[str, Any] = {
        "coupling": "product",
        "mechanism": "exponential",
        "constants": "scaled",
        "scale": 0.2,
        "samples": 10,
        "boosted": True,
    }
    with pytest.raises(ReprlError, match=f"{name} must be left out unless rule='paper'"):
        Settings(**{name: values[name]})
    Settings(**{"rule": "paper", "constants": "scaled", name: values[name]})


def test_a_preference_by_name_is_one_by_number() -> None:
    grid = world("gridworld")
    names = grid.labels.actions
    assert len(names) == 4
    numbers = [2, 0, 3, 1]
    first = run(grid, preference=[names[a] for a in numbers], access="generative", max_samples=2**20)
    second = run(grid, preference=numbers, access="generative", max_samples=2**20)
    assert first.settings.preference == second.settings.preference == tuple(numbers)
    assert first.policy == second.policy
    with pytest.raises(ReprlError, match="did you mean"):
        run(grid, preference=[names[0], names[1], names[2], names[3] + "x"], access="generative")


def test_the_preferred_action_is_taken_where_all_are_equal() -> None:
    flat = reprl.TabularMDP(np.full((3, 3, 3), 1 / 3), np.full((3, 3), 0.5), horizon=2)
    for order in ([2, 0, 1], [1, 2, 0]):
        result = run(flat, preference=order, access="generative")
        assert (result.policy.actions == order[0]).all()


def test_an_accuracy_that_every_policy_has_is_refused() -> None:
    with pytest.raises(ReprlError, match="epsilon must lie in"):
        run(random_world(horizon=2), epsilon=2.5, access="generative")


# Promises.


def test_nothing_is_promised_without_a_figure_on_show() -> None:
    for status in STATUSES:
        promise = Guarantee(rho=0.125, delta=0.0625, epsilon=0.3125, status=status, source="here")
        assert (("0.125" in str(promise)) and ("0.312" in str(promise))) == (status != "none")
    assert str(Guarantee(rho=0.1, delta=0.1, epsilon=0.3, status="none", source="why")) == "nothing is promised: why"


@pytest.mark.parametrize("access", ["generative", "episodic"])
def test_too_few_samples_promise_nothing_and_name_what_is_undecided(access: Access) -> None:
    mdp = random_world()
    limit = 120 * FIRST * 4
    result = run(mdp, access=access, max_samples=limit)
    assert result.samples <= limit
    assert result.guarantee.status == "none"
    assert "the samples ran out before the run was decided" in str(result.guarantee)
    assert "0.1" not in str(result.guarantee).split(":")[0]
    assert result.rehearsal is not None
    assert not result.rehearsal.passed
    assert result.undecided
    apart = result.rehearsal.apart
    assert {cell for cell in np.ndindex(*apart.shape) if apart[cell] > 0} == set(result.undecided)
    shares = [apart[cell] for cell in result.undecided]
    assert shares == sorted(shares, reverse=True)


def test_a_sure_run_names_its_teams_and_its_tolerance() -> None:
    result = run(world("gridworld"), access="generative")
    assert result.guarantee.status == "rehearsed"
    assert "simulated second teams learn this policy" in str(result.guarantee)
    assert "disagreement ≤ 0.1" in str(result.guarantee)
    assert result.choice is not None
    assert result.tolerance == result.choice.tolerance
    assert result.samples == result.counts.hits.sum()


def test_what_was_hardly_explored_is_a_reason() -> None:
    """A second action that one team in a thousand episodes would reach: 16 samples of it cannot be had in time."""
    result = run(world("river-swim"), access="episodic", max_samples=6 * 200)
    assert result.guarantee.status == "none"
    assert "the optimistic value of under-sampled cells is" in str(result.guarantee)


def leaking(horizon: int = 100, chance: float = 1e-3) -> reprl.TabularMDP:
    """Every step pays 1, but action 0 leads to a hell once in a thousand: what is gained by 1 is never seen early."""
    kernel, reward = np.zeros((2, 2, 2)), np.zeros((2, 2))
    kernel[0, 0] = 1.0 - chance, chance
    kernel[0, 1, 0] = kernel[1, :, 1] = 1.0
    reward[0] = 1.0, 0.999
    return reprl.TabularMDP(kernel, reward, horizon=horizon)


def test_a_run_fears_outcomes_that_it_has_not_seen() -> None:
    """After 32 calls a leak of 1/1000 is in nobody's data, and all teams agree on the policy that leaks."""
    mdp = leaking()
    few = reprl.learn(mdp, epsilon=1.0, shared_seed=1, data_seed=1, access="generative", max_samples=32 * 400)
    assert few.guarantee.status == "none"
    assert "events that no sample has shown yet could cost it" in few.guarantee.source
    for seed in range(3):
        sure = reprl.learn(mdp, epsilon=1.0, shared_seed=seed, data_seed=seed, access="generative")
        assert sure.guarantee.status == "rehearsed"
        assert float(mdp.initial @ mdp.solve().values[0]) - mdp.evaluate(sure.policy) <= 1.0


@pytest.mark.parametrize("access", ["generative", "episodic"])
def test_a_limit_is_kept_and_one_below_a_unit_refused(access: Access) -> None:
    mdp = random_world(n_states=3, n_actions=2, horizon=2)
    unit = 6 if access == "generative" else 2
    assert run(mdp, access=access, max_samples=unit).samples == unit
    with pytest.raises(ReprlError, match=f"max_samples must be a whole number of at least {unit}"):
        run(mdp, access=access, max_samples=unit - 1)
    for limit in (unit * 5, unit * 100 + 1):
        assert run(mdp, access=access, max_samples=limit).samples <= limit
    assert LIMITS["generative"] > LIMITS["tables"] > LIMITS["black box"]


@pytest.mark.parametrize("access", ["generative", "episodic"])
def test_a_size_set_by_hand_is_spent_and_promises_nothing(access: Access) -> None:
    mdp = world("gridworld")
    spend = 16 * 4 * 6 * 100
    model = open_model(mdp, access, 3)
    result = ReprlLearner(Settings(access=access), spend).run(model, SharedKey(1))
    assert model.ledger.samples == spend
    assert result.rehearsal is None
    assert result.undecided == []
    assert str(result.guarantee) == "nothing is promised: the size was set by hand and nobody rehearsed it"


@pytest.mark.parametrize(
    ("shape", "epsilon"), [((1, 3, 2), 0.3), ((3, 1, 2), 0.3), ((3, 3, 1), 0.3), ((1, 1, 1), 0.3), ((2, 3, 2), 2.0)]
)
@pytest.mark.parametrize("access", ["generative", "episodic"])
def test_the_smallest_worlds(shape: tuple[int, int, int], epsilon: float, access: Access) -> None:
    """H = 1, S = 1, A = 1, all of them, and an accuracy that every policy has."""
    horizon, n_states, n_actions = shape
    mdp = random_world(n_states=n_states, n_actions=n_actions, horizon=horizon)
    result = run(mdp, access=access, epsilon=epsilon, max_samples=2**24)
    assert result.guarantee.status == "rehearsed"
    assert result.policy.actions.shape == (horizon, n_states)
    if n_actions == 1:
        assert result.choice is not None
        assert result.choice.lead == np.inf


# Quality.


@pytest.mark.slow
@pytest.mark.parametrize("access", ["generative", "episodic"])
@pytest.mark.parametrize("name", ["gridworld-v0", "two-goals-v0", "river-swim-v0"])
def test_a_policy_earns_the_quality_that_was_asked_for(name: str, access: Access) -> None:
    """By exact evaluation; the baseline, always the most preferred action, is evaluated here too."""
    mdp = reprl.make(name)
    assert isinstance(mdp, reprl.TabularMDP)
    result = run(mdp, 5, 6, access=access, quality=0.9)
    best, base = mdp.evaluate(mdp.solve().policy), mdp.evaluate(reprl.Policy(np.zeros_like(result.policy.table)))
    assert best - base > 0.05, "otherwise nothing is asked for"
    assert result.guarantee.status == "rehearsed"
    assert mdp.evaluate(result.policy) - base >= 0.9 * (best - base)
    assert result.choice is not None
    assert result.choice.epsilon == pytest.approx(0.1 * (best - base), rel=0.25)


def test_a_baseline_that_is_nearly_the_best_asks_for_little() -> None:
    """Measured from the best policy there is no gain, and ε stays above 0."""
    mdp = world("river-swim")
    best = mdp.solve().policy
    result = run(mdp, 5, 6, access="generative", quality=0.9, baseline=best, max_samples=2**24)
    assert result.choice is not None
    assert result.choice.epsilon == pytest.approx(0.1 * 1e-3 * mdp.horizon, rel=0.5)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gridworld-v0", "two-goals-v0", "river-swim-v0"])
def test_parallel_calls_and_episodes_come_to_one_policy(name: str) -> None:
    """f(ξ, M) knows nothing of how M was sampled: teams with different access and one shared seed agree."""
    for shared in (3, 4):
        calls = run(reprl.make(name), shared, 10, access="generative")
        episodes = run(reprl.make(name), shared, 11, access="episodic")
        assert calls.guarantee.status == episodes.guarantee.status == "rehearsed"
        assert calls.policy == episodes.policy


# Following a published candidate.


def follow_published(mdp: reprl.TabularMDP, shared: int, data: int) -> tuple[int, int, bool]:
    """Samples of a run that follows what another published, of one that chooses afresh; whether the first agrees."""
    settings = Settings(access="generative")
    spent, found = [], []
    candidate = None
    for turn in range(3):  # the publisher, who chose afresh; a follower; a second run that chooses afresh
        model = GenerativeModel(mdp, data + turn)
        options: dict[str, Any] = {"candidate": candidate} if turn == 1 else {}
        result = ReprlLearner(settings, max_samples=2**34, **options).run(model, SharedKey(shared))
        assert result.choice is not None
        candidate = candidate or (result.choice.kind, result.choice.candidate)
        spent.append(model.ledger.samples)
        found.append(result.policy)
        if turn == 1:
            assert (result.choice.kind, result.choice.candidate) == candidate
            assert result.rehearsal is not None
            assert result.rehearsal.pairs == 0  # fresh keys would say nothing about it
            assert result.followed
            assert result.guarantee.status == "none" or result.guarantee.kind == "registered"
    return spent[1], spent[2], found[0] == found[1]


@pytest.mark.long
def test_following_costs_no_more_in_the_median() -> None:
    rows = [follow_published(random_world(n_states=5), shared, 100 * shared) for shared in range(7)]
    follow, afresh, agrees = zip(*rows, strict=True)
    assert np.median(follow) <= np.median(afresh)
    assert sum(agrees) >= 5


def test_a_candidate_that_is_none_is_refused() -> None:
    model = GenerativeModel(random_world(), 1)
    for candidate in (("greedy", 0), ("preferred", 40), ("sampled", 0)):
        with pytest.raises(ReprlError):
            ReprlLearner(Settings(access="generative"), candidate=candidate).run(model, SharedKey(1))
    assert model.ledger.samples == 0


# Disagreement and accuracy where it is hard.


class Hard(NamedTuple):
    """A world that broke calibrated sizes, and how many pairs are run on it."""

    adversary: Adversary
    access: Access = "generative"
    pairs: int = 8


HARD = {
    "equal gaps": lambda: Hard(adversaries.equal_gaps()),
    "equal gaps, episodes": lambda: Hard(adversaries.equal_gaps(), "episodic"),
    "16 arms": lambda: Hard(adversaries.arms()),
    "heaven or hell, H=10": lambda: Hard(adversaries.heaven_or_hell(10)),
    "heaven or hell, H=20": lambda: Hard(adversaries.heaven_or_hell(20)),
    "hub": lambda: Hard(adversaries.hub()),
    "hub, episodes": lambda: Hard(adversaries.hub(), "episodic"),
    "hub, S=102": lambda: Hard(adversaries.hub(102, 0.0008, 1), pairs=2),
    "funnel": lambda: Hard(adversaries.funnel()),
    "small accuracy": lambda: Hard(adversaries.small_accuracy(), pairs=6),
    "twins": lambda: Hard(adversaries.twins(), pairs=6),
}
LOSSY = ("hub, S=102", "small accuracy", "twins")
"""Worlds on which policies from few samples lose more than ε."""
DELTA = RHO = 0.1
CONTROL_CALLS = 2
"""Parallel calls, or episodes per cell, of the runs that must fail."""


class Pair(NamedTuple):
    apart: bool
    missed: tuple[bool, bool]
    statuses: tuple[str, str]


def run_pair(mdp: reprl.TabularMDP, epsilon: float, access: Access, number: int, spend: int | None) -> Pair:
    settings = Settings(access=access, epsilon=epsilon, rho=RHO, delta=DELTA, stationary=False)  # the harder case
    best = float(mdp.initial @ mdp.solve().values[0])
    runs = [
        ReprlLearner(settings, spend, None if spend else 2**38).run(
            open_model(mdp, access, 9000 + 2 * number + i), SharedKey(number)
        )
        for i in (0, 1)
    ]
    missed = [best - float(mdp.evaluate(found.policy)) > epsilon for found in runs]
    return Pair(
        runs[0].policy != runs[1].policy, (missed[0], missed[1]), (runs[0].guarantee.status, runs[1].guarantee.status)
    )


@functools.cache
def hard_pairs(*, control: bool, share: int = 2) -> dict[str, list[Pair]]:
    """Pairs on every world; a share of them, but on those where accuracy is tested, which are few as they are."""
    out = {}
    for name, make in HARD.items():
        (mdp, epsilon), access, pairs = make()
        pairs = pairs if name in LOSSY else pairs // share
        size = CONTROL_CALLS * mdp.n_states * mdp.n_actions * (mdp.horizon + 1)
        spend = size if control else None
        out[name] = [run_pair(mdp, epsilon, access, number, spend) for number in range(pairs)]
    return out


def all_pairs(*, control: bool, share: int) -> list[Pair]:
    return [pair for pairs in hard_pairs(control=control, share=share).values() for pair in pairs]


@pytest.mark.statistical
@pytest.mark.slow
@pytest.mark.parametrize("share", [2, pytest.param(1, marks=pytest.mark.long)])
def test_two_runs_agree_where_it_is_hard(share: int) -> None:
    """All worlds together.

    Of 46 pairs, 18 that differ are rejected at 1e-6, of 78 pairs 24. Power at the disagreement of 0.5 that calibrated
    sizes came to on such worlds: 95 %, and 99.98 % with all pairs. A single world that always fails hides in the pool,
    so those with 8 pairs are tested alone too: 7 are rejected, with a power of 4 % at 0.5 and 81 % at 0.9.
    """
    results = hard_pairs(control=False, share=share)
    apart = {name: sum(pair.apart for pair in pairs) for name, pairs in results.items()}
    pairs = all_pairs(control=False, share=share)
    assert keeps(sum(apart.values()), len(pairs), RHO, power=0.002, finds=0.5), apart
    for name, of in results.items():
        assert len(of) < 8 or keeps(apart[name], len(of), RHO, power=0.0, finds=0.94), name
    control = all_pairs(control=True, share=share)
    assert exceeds(sum(pair.apart for pair in control), len(control), RHO) <= FALSE_ALARM
    check_accuracy(results, hard_pairs(control=True, share=share))


def check_accuracy(results: dict[str, list[Pair]], controls: dict[str, list[Pair]]) -> None:
    """Where two calls per cell miss ε nearly always: of 28 runs, 13 that miss it are rejected at 1e-6.

    Power: 0.1 % at 2δ, 71 % at 0.5, 100 % at 0.7. On the other worlds hardly a policy loses ε.
    """
    for name, pairs in results.items():
        assert all(status == "rehearsed" for pair in pairs for status in pair.statuses), name
    missed = [miss for name in LOSSY for pair in results[name] for miss in pair.missed]
    assert keeps(sum(missed), len(missed), DELTA, power=0.00145, finds=0.57)
    control = [miss for name in LOSSY for pair in controls[name] for miss in pair.missed]
    assert exceeds(sum(control), len(control), DELTA) <= FALSE_ALARM
