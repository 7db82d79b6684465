"""Every learner behind the protocol: names, options, budgets, ledgers, seeds, and near-optimal policies."""

from __future__ import annotations

import pickle
from functools import partial
from typing import Any

import numpy as np
import pytest

import reprl
from reprl.lab.baselines import LearnerEntry, learners, make_learner
from reprl.learning.learner import ReprlLearner
from reprl.learning.learner import learner as bound_learner
from reprl.learning.settings import RULES, Settings
from reprl.mdp.policy import Policy

NAMES = [entry.name for entry in learners()]
BASELINES = [name for name in NAMES if name != "reprl"]
GENERATIVE = [e.name for e in learners() if e.access == ("generative",)]


def small(starts: int = 1) -> reprl.TabularMDP:
    rng = np.random.default_rng(3)
    initial = np.zeros(4)
    initial[:starts] = 1.0 / starts
    return reprl.TabularMDP(rng.dirichlet(np.ones(4), size=(3, 4, 2)), rng.random((3, 4, 2)), initial)


def open_model(name: str, mdp: reprl.TabularMDP, seed: int) -> Any:
    return (reprl.GenerativeModel if name in GENERATIVE else reprl.EpisodicModel)(mdp, seed)


def entry(name: str) -> LearnerEntry:
    return next(e for e in learners() if e.name == name)


def test_every_rival_of_the_comparison_is_there() -> None:
    assert NAMES == [
        "reprl",
        "rpvi",
        "karbasi-grid",
        "karbasi-gaussian",
        "karbasi-softmax",
        "list-robust",
        "replicable-rmax",
        "ucb-h",
        "ucbvi",
        "reward-free-ucbvi",
        "greedy",
    ]
    replicable = {e.name for e in learners() if e.replicable}
    assert replicable == {*NAMES} - {"ucb-h", "ucbvi", "reward-free-ucbvi", "greedy"}


@pytest.mark.parametrize("name", NAMES)
def test_entries_are_complete(name: str) -> None:
    e = entry(name)
    assert e.description
    assert e.source
    assert set(e.access) <= {"generative", "episodic"}
    assert {"epsilon", "delta", "constants", "samples"} <= set(e.options)
    assert ("rho" in e.options) == e.replicable
    assert e.options["samples"] is None
    with pytest.raises(TypeError):
        e.options["epsilon"] = 1.0  # type: ignore[index]


def test_reprl_is_the_package_s_own_learner() -> None:
    mine = make_learner("reprl", epsilon=1.0)
    assert isinstance(mine, ReprlLearner)
    assert mine == bound_learner(epsilon=1.0)
    assert make_learner("reprl", rule="paper") == bound_learner(rule="paper") != bound_learner()
    options = entry("reprl").options
    assert (options["rule"], options["preference"]) == ("soft", None)
    assert set(options) == {*Settings.__dataclass_fields__, "samples"}


@pytest.mark.parametrize("rule", RULES)
def test_reprl_within_a_budget_draws_what_it_pays_for(rule: str) -> None:
    more = {"constants": "scaled", "epsilon": 1.0} if rule == "paper" else {}
    bound = partial(make_learner, "reprl", rule=rule, **more)
    model = reprl.GenerativeModel(small(), 0)
    bound(access="generative", samples=1000)(model, reprl.SharedKey(0))
    assert model.ledger.samples == 1000 // 24 * 24
    for samples in (10**7, 10**8) if rule == "paper" else (10**5, 10**6):
        played = reprl.EpisodicModel(small(), 0)
        bound(access="episodic", samples=samples)(played, reprl.SharedKey(0))
        assert samples / 8 < played.ledger.samples <= samples


def test_reprl_refuses_a_budget_that_pays_for_nothing() -> None:
    few = make_learner("reprl", access="episodic", samples=2)
    with pytest.raises(reprl.ReprlError, match=r"samples must be at least 3, one episode, got 2"):
        few(reprl.EpisodicModel(small(), 0), reprl.SharedKey(0))
    few = make_learner("reprl", access="generative", samples=23)
    with pytest.raises(reprl.ReprlError, match=r"samples must be at least 24, one parallel call, got 23"):
        few(reprl.GenerativeModel(small(), 0), reprl.SharedKey(0))
    few = make_learner("reprl", rule="paper", constants="scaled", samples=24)
    with pytest.raises(reprl.ReprlError, match=r"samples must pay for at least \d+ parallel calls, .*, got 1"):
        few(reprl.GenerativeModel(small(), 0), reprl.SharedKey(0))
    with pytest.raises(reprl.ReprlError, match="samples must be left out unless constants='scaled', got 1000"):
        make_learner("reprl", rule="paper", samples=1000)


def test_reprl_takes_the_options_of_its_rule_alone() -> None:
    asked = make_learner("reprl", preference=[2, 0, 1])
    assert isinstance(asked, ReprlLearner)
    assert asked.settings.preference == (2, 0, 1)
    with pytest.raises(reprl.ReprlError, match="preference must be left out unless rule='soft'"):
        make_learner("reprl", rule="paper", preference="shared")
    with pytest.raises(reprl.ReprlError, match="coupling must be left out unless rule='paper', got 'product'"):
        make_learner("reprl", coupling="product")
    with pytest.raises(reprl.ReprlError, match="rule must be one of soft, paper; got 'canonical'"):
        make_learner("reprl", rule="canonical")


@pytest.mark.parametrize("bad", ["rpvl", "ucb_h", "", None, 3])
def test_unknown_names_are_refused(bad: Any) -> None:
    with pytest.raises(reprl.ReprlError, match="learner must be one of reprl, rpvi"):
        make_learner(bad)


def test_a_close_name_or_option_is_suggested() -> None:
    with pytest.raises(reprl.ReprlError, match="did you mean 'rpvi'"):
        make_learner("rpvl")
    with pytest.raises(reprl.ReprlError, match="did you mean 'epsilon'"):
        make_learner("rpvi", epsilom=1)
    with pytest.raises(reprl.ReprlError, match="option of greedy must be one of"):
        make_learner("greedy", rho=0.1)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("rpvi", {"rho": 1.5}),
        ("rpvi", {"epsilon": 0.0}),
        ("rpvi", {"samples": 0}),
        ("rpvi", {"samples": 1.5}),
        ("greedy", {"constants": "sharp"}),
        ("karbasi-gaussian", {"coupling": "joint"}),
        ("ucb-h", {"bonus": -1.0}),
        ("ucbvi", {"replan": "never"}),
        ("ucbvi", {"output": "best"}),
        ("replicable-rmax", {"rounds": 0}),
    ],
)
def test_bad_options_are_refused_before_any_model(name: str, options: dict[str, Any]) -> None:
    with pytest.raises(reprl.ReprlError, match=next(iter(options))):
        make_learner(name, **options)


@pytest.mark.parametrize("name", BASELINES)
def test_learners_carry_their_description_and_pickle(name: str) -> None:
    learner = make_learner(name, samples=5000)
    assert learner.name == name
    assert (learner.access,) == entry(name).access
    assert learner.replicable == entry(name).replicable
    copy = pickle.loads(pickle.dumps(learner))
    mdp = small()
    assert copy(open_model(name, mdp, 1), reprl.SharedKey(2)) == learner(open_model(name, mdp, 1), reprl.SharedKey(2))


@pytest.mark.parametrize("starts", [1, 3])
@pytest.mark.parametrize("name", BASELINES)
def test_budgets_are_never_passed_and_every_sample_is_counted(name: str, starts: int) -> None:
    mdp = small(starts)
    for samples in (997, 20011):
        model = open_model(name, mdp, 5)
        each = model.samples_per_call if name in GENERATIVE else model.samples_per_episode
        make_learner(name, samples=samples)(model, reprl.SharedKey(1))
        units = model.ledger.calls if name in GENERATIVE else model.ledger.episodes
        assert 0 < model.ledger.samples <= samples
        assert model.ledger.samples == units * each
        if name not in ("replicable-rmax", "reward-free-ucbvi"):  # these two may stop early
            assert units == samples // each


@pytest.mark.parametrize("name", BASELINES)
def test_a_budget_too_small_for_one_sample_is_refused(name: str) -> None:
    with pytest.raises(reprl.ReprlError, match="samples must be at least"):
        make_learner(name, samples=2)(open_model(name, small(), 0), reprl.SharedKey(0))


@pytest.mark.parametrize("name", BASELINES)
def test_the_wrong_kind_of_model_is_refused(name: str) -> None:
    mdp = small()
    wrong = reprl.EpisodicModel(mdp, 0) if name in GENERATIVE else reprl.GenerativeModel(mdp, 0)
    for model in (wrong, mdp):
        with pytest.raises(reprl.ReprlError, match=f"model must be .* {name}"):
            make_learner(name, samples=5000)(model, reprl.SharedKey(0))
    with pytest.raises(reprl.ReprlError, match="shared key must be"):
        make_learner(name, samples=5000)(open_model(name, mdp, 0), 7)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", BASELINES)
def test_an_accuracy_that_every_policy_has_is_refused(name: str) -> None:
    with pytest.raises(reprl.ReprlError, match=r"epsilon must lie in \(0, 3\]"):
        make_learner(name, samples=5000, epsilon=3.5)(open_model(name, small(), 0), reprl.SharedKey(0))


@pytest.mark.parametrize("name", BASELINES)
def test_paper_constants_beyond_the_ledger_are_refused_unless_there_is_a_budget(name: str) -> None:
    mdp, asked = small(), {"epsilon": 1e-9, "constants": "paper"}
    with pytest.raises(reprl.ReprlError, match=r"these settings need .* samples; at most 2\*\*62"):
        make_learner(name, **asked)(open_model(name, mdp, 0), reprl.SharedKey(0))
    model = open_model(name, mdp, 0)
    make_learner(name, samples=10**4, **asked)(model, reprl.SharedKey(0))
    assert 0 < model.ledger.samples <= 10**4


@pytest.mark.parametrize("name", BASELINES)
def test_paper_asks_for_more_than_practical(name: str) -> None:
    """On a world with two states and one step, where the paper's numbers can be drawn."""
    mdp = reprl.TabularMDP(np.full((1, 2, 2, 2), 0.5), np.array([[[0.2, 0.9], [0.6, 0.1]]]))
    spent = {}
    for constants in ("practical", "paper"):
        model = open_model(name, mdp, 0)
        policy = make_learner(name, epsilon=1.0, constants=constants)(model, reprl.SharedKey(0))
        assert isinstance(policy, Policy)
        spent[constants] = model.ledger.samples
    assert spent["paper"] > spent["practical"]


@pytest.mark.parametrize("name", BASELINES)
def test_fixed_seeds_fix_bytes_and_fresh_seeds_do_not(name: str) -> None:
    mdp = reprl.make("gridworld-v0", horizon=4, size=3)
    learner = make_learner(name, samples=30_000)

    def fingerprint(shared: int, data: int) -> str:
        return str(learner(open_model(name, mdp, data), reprl.SharedKey(shared)).fingerprint)

    assert fingerprint(1, 2) == fingerprint(1, 2)
    assert len({fingerprint(1, data) for data in range(8)}) > 1
    by_key = {fingerprint(shared, 2) for shared in range(8)}
    assert (len(by_key) > 1) == entry(name).replicable, "replicable baselines read the key, the others must not"


GOLDEN = {
    "rpvi": "338e0f94dfeb",
    "karbasi-grid": "6e40ebfe3c47",
    "karbasi-gaussian": "beb6bd3b4d33",
    "karbasi-softmax": "9109ee8fff1a",
    "list-robust": "582e1fa105d8",
    "replicable-rmax": "b07e74cdef9c",
    "ucb-h": "5896c08c5493",
    "ucbvi": "52dde163be14",
    "reward-free-ucbvi": "2e3f4a69cc56",
    "greedy": "122ec40916a4",
}


@pytest.mark.parametrize("name", GOLDEN)
def test_fingerprints_of_fixed_seeds(name: str) -> None:
    mdp = reprl.make("gridworld-v0", horizon=4, size=3)
    policy = make_learner(name, samples=30_000)(open_model(name, mdp, 2), reprl.SharedKey(1))
    assert policy.short_fingerprint == GOLDEN[name]


NEAR: dict[str, dict[str, Any]] = {
    "gridworld-v0": {"size": 3, "horizon": 4},
    "random-mdp-v0": {"n_states": 6, "n_actions": 3, "horizon": 3},
    "two-goals-v0": {"size": 3, "horizon": 5, "slip": 0.1},
    "river-swim-v0": {"n_states": 5, "horizon": 10},
}


@pytest.mark.parametrize("world", NEAR)
@pytest.mark.parametrize("name", BASELINES)
def test_near_optimal_with_the_preset_s_samples(name: str, world: str) -> None:
    """Suboptimality at most ε in at least 4 of 5 runs at fixed seeds; action 0 everywhere is the negative control."""
    mdp = reprl.make(world, **NEAR[world])
    assert isinstance(mdp, reprl.TabularMDP)
    best, epsilon = mdp.evaluate(mdp.solve().policy), 0.3
    idle = best - mdp.evaluate(np.zeros((mdp.horizon, mdp.n_states), dtype=int))
    assert idle > epsilon
    losses = []
    for seed in range(5):
        learner = make_learner(name, epsilon=epsilon)
        losses.append(best - mdp.evaluate(learner(open_model(name, mdp, seed), reprl.SharedKey(seed))))
    assert sum(loss > epsilon for loss in losses) <= 1, losses
