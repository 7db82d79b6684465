"""Registered candidates: the pilot's choice, the recipe that publishes it, the runs that follow it."""

from __future__ import annotations

import io
import json
import math
import warnings
from typing import Any

import numpy as np
import pytest
from rich.console import Console

import reprl
from experiments.price.boxes import REWARDS, TwoQueues
from reprl.artifacts.register import register_log
from reprl.canonical.bound import BoundRule, TableReader
from reprl.canonical.choice import choose, make_rule
from reprl.canonical.gaps import find_gaps
from reprl.canonical.goal import Goal
from reprl.canonical.preferred import CLEAR
from reprl.canonical.registered import ROOM, Cells, Published, Registration, _widest, choose_registered, find_firmest
from reprl.canonical.selection import Registered
from reprl.cli.app import main
from reprl.errors import DocumentError, InputError, PilotWarning
from reprl.learning.learner import make_settings
from reprl.mdp.counts import tally
from reprl.mdp.dynamics import Data, empirical_dynamics, true_dynamics
from reprl.randomness import SharedKey
from reprl.report.run import Run, summarize_run
from reprl.report.terminal import render
from reprl.sources.environment import describe
from reprl.sources.parallel import GenerativeModel
from tests.clinic_log import ACTIONS, HORIZON, STATES, make_log
from tests.statistics import FALSE_ALARM, exceeds, keeps, power
from tests.test_alike import Season

pytestmark = pytest.mark.filterwarnings("ignore::reprl.errors.PilotWarning")


def world(seed: int = 0, n_states: int = 5, n_actions: int = 3, horizon: int = 4) -> reprl.TabularMDP:
    rng = np.random.default_rng(seed)
    transition = rng.dirichlet(np.ones(n_states), (n_states, n_actions))
    return reprl.TabularMDP(transition, rng.uniform(0.0, 1.0, (n_states, n_actions)), 0, horizon)


def rule_of(mdp: reprl.TabularMDP) -> Any:
    shape = (mdp.horizon, mdp.n_states, mdp.n_actions)
    return make_rule(SharedKey(1).derive("rule"), shape, goal=Goal(quality=0.9), stationary=mdp.stationary)


# --- the choice -------------------------------------------------------------------------------------------------------


def _naive_margin(gap: Any, spread: Any, order: Any, u: float) -> tuple[int, float]:
    """What a tolerance picks in a cell, and how far the nearest comparison is that can change it."""
    chosen = next(a for a in order if gap[a] <= u)
    margin, passed = CLEAR, False
    for a in order:
        if a == chosen:
            passed = True
            if gap[a] > 0.0:
                margin = min(margin, (u - gap[a]) / spread[a])
        elif not passed:
            margin = min(margin, (gap[a] - u) / spread[a])
        elif gap[chosen] == 0.0:
            margin = min(margin, (gap[a] + u) / spread[a])
    return chosen, margin


@pytest.mark.parametrize("seed", range(20))
def test_the_widest_hole_is_as_wide_as_any_tolerance_finds(seed: int) -> None:
    rng = np.random.default_rng(seed)
    gap, spread, order = rng.uniform(0.0, 1.0, 4), rng.uniform(0.5, 2.0, 4), rng.permutation(4)
    gap[rng.integers(4)] = 0.0
    for level in (0.01, 0.05, 0.2):
        u = float(_widest(gap[None, None], spread[None, None], order, np.full((1, 1), level))[0, 0])
        picked = [_naive_margin(gap, spread, order, each) for each in np.linspace(1e-6, 1.1, 4001)]
        firm = [(gap[a], a) for a, margin in picked if margin >= level + 1e-3]
        if math.isinf(u):
            assert all(a == order[0] for _, a in firm)
        else:
            chosen, margin = _naive_margin(gap, spread, order, u)
            assert margin >= level - 1e-9
            assert not firm or gap[chosen] <= min(firm)[0]
            assert margin >= max(each for a, each in picked if a == chosen) - 1e-3


@pytest.mark.parametrize("seed", range(6))
def test_the_firmest_candidate_is_firmer_than_the_rule_and_loses_little(seed: int) -> None:
    mdp = world(seed)
    rule, dynamics = rule_of(mdp), true_dynamics(mdp)
    found = find_firmest(rule, dynamics, pooled=True, by_visits=False)
    assert found is not None
    printed = choose_registered(rule, found.cells, dynamics)
    assert printed.loss <= ROOM * printed.epsilon
    assert printed.loss == pytest.approx(printed.best - mdp.evaluate(printed.policy))
    assert printed.margin == pytest.approx(found.margin)
    assert found.margin >= choose(rule, dynamics).margin
    assert found.considered > 100


def test_a_candidate_prints_what_its_tolerances_say_block_by_block() -> None:
    mdp = world(3)
    rule, dynamics = rule_of(mdp), true_dynamics(mdp)
    gaps = find_gaps(dynamics, rule.order)
    tolerances = np.full((4, 5), 0.1)
    tolerances[2, 1] = math.inf
    cells = Cells((0, 1, 2, 3), (2, 0, 1), tolerances)
    table = choose_registered(rule, cells, dynamics).policy.table
    for h, s in np.ndindex(4, 5):
        expected = next(a for a in (2, 0, 1) if gaps.gap[h, s, a] <= 0.1) if (h, s) != (2, 1) else 2
        assert table[h, s] == expected
    blocks = choose_registered(rule, Cells((0, 3), (0, 1, 2), np.full((2, 5), 0.2)), dynamics).policy.table
    assert (blocks[:3] == blocks[0]).all()


# --- recipes and runs -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def study() -> reprl.Recipe:
    return reprl.register("two-goals-v0", pilot=20_000, access="generative", data_seed=5, by="the first team")


def test_teams_follow_a_registered_recipe_on_fresh_data(study: reprl.Recipe, tmp_path: Any) -> None:
    assert study.registration is not None
    assert (study.registration.by, study.registration.data_seed) == ("the first team", 5)
    read = reprl.Recipe.from_json(study.to_json())
    assert read.digest == study.digest
    one, two = reprl.learn(read, data_seed=1), read.learn(data_seed=2)
    assert one.policy == two.policy
    assert one.guarantee.status == two.guarantee.status == "rehearsed"
    assert one.guarantee.kind == "registered"
    assert one.receipt.to_dict()["guarantee"]["promise"] == "registered"
    assert one.recipe.digest == study.digest
    stored = reprl.load_run(one.save(tmp_path / "one"))
    assert stored.recipe.registration == study.registration
    assert "Registered promise" in one._repr_html_()
    strict = read.learn(data_seed=1, afresh=True, max_samples=2**16)
    assert strict.guarantee.kind == "strict"


def test_pilot_data_are_not_used_again(study: reprl.Recipe) -> None:
    with pytest.raises(InputError, match="data_seed must be another one than the pilot's, got 5"):
        reprl.learn(study, data_seed=5)


def test_what_a_recipe_says_is_not_said_again(study: reprl.Recipe) -> None:
    with pytest.raises(InputError, match=r"quality must be left out for a recipe, which says it, got 0\.5"):
        reprl.learn(study, quality=0.5)
    with pytest.raises(InputError, match="certify must be False for a registered candidate, got True"):
        reprl.learn(study, certify=True)


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        (("starts",), [1], "candidate cells.starts must rise from 0 to at most 5"),
        (("order",), [0, 0, 1, 2], "candidate cells.order must name every action from 0 to 3 once"),
        (("tolerances",), [[0.1]], "candidate cells.tolerances must be 1 x 25 numbers above 0"),
        (("tolerances",), [[0.1], [0.1, 0.2]], "tolerances must be rows of one length"),
    ],
)
def test_a_candidate_that_does_not_fit_is_refused(study: reprl.Recipe, path: Any, value: Any, words: str) -> None:
    document = json.loads(study.to_json())
    document["candidate"]["cells"] |= {"starts": [0], "tolerances": [[0.1] * 25]}
    document["candidate"]["cells"][path[0]] = value
    with pytest.raises((InputError, DocumentError), match=words):
        reprl.Recipe.from_json(json.dumps(document))


def test_a_registered_candidate_comes_with_its_registration(study: reprl.Recipe) -> None:
    document = json.loads(study.to_json())
    document["registration"] = None
    with pytest.raises((InputError, DocumentError), match="recipe registration must be given for its candidate"):
        reprl.Recipe.from_json(json.dumps(document))


def test_a_pilot_that_is_too_small_is_refused() -> None:
    with pytest.raises(InputError, match="pilot must be at least 100, the samples of one parallel call, got 10"):
        reprl.register("two-goals-v0", pilot=10, access="generative")
    with pytest.raises(InputError, match="pilot must be larger to choose a candidate, got one after which"):
        reprl.register("two-goals-v0", pilot=200, access="generative", data_seed=1)
    with pytest.raises(InputError, match=r"agreement must be 1 for a candidate to be registered, got 0\.9"):
        reprl.register(world(), pilot=2000, agreement=0.9)


def test_a_pilot_that_leaves_its_choice_open_is_warned_of(tmp_path: Any, capsys: pytest.CaptureFixture[str]) -> None:
    how: dict[str, Any] = {"access": "generative", "data_seed": 3}
    with pytest.warns(PilotWarning, match="the pilot is small for this environment: (only|the candidate loses)"):
        reprl.register("random-mdp-v0", pilot=2_000, **how)
    with warnings.catch_warnings():
        warnings.simplefilter("error", PilotWarning)
        reprl.register(world(2), pilot=3_000_000, **how)
    words = ["random-mdp-v0", "--access", "generative", "--pilot", "2000", "--data-seed", "3"]
    assert main(["register", *words]) == 0
    assert "warning" in capsys.readouterr().out
    assert main(["register", *words, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["warning"].startswith("the pilot is small")


@pytest.mark.statistical
def test_runs_that_stop_without_a_rehearsal_break_the_promise() -> None:
    """The negative control of registered pairs: the same recipe, at a size that nobody has rehearsed.

    False alarm 1e-6; 60 pairs reject a disagreement of 0.5 with a probability of more than 0.99.
    """
    mdp = world(2)
    recipe = reprl.register(mdp, pilot=3_000_000, access="generative", data_seed=3)
    run = recipe.learn(env=mdp, data_seed=1)
    assert run.guarantee.status == "rehearsed"
    assert isinstance(recipe.published, Published)
    rule, cells = rule_of(mdp), recipe.published.cells

    def differs(pair: int, calls: int) -> bool:
        found = []
        for team in (0, 1):
            counts = GenerativeModel(mdp, 2 * pair + team).pooled.sample(calls)
            data = Data(counts, np.array([calls, 0, 0, 0, 0]))
            found.append(choose_registered(rule, cells, empirical_dynamics(data)).policy)
        return bool(found[0] != found[1])

    enough = run.samples // (mdp.n_states * mdp.n_actions)
    kept, broken = (sum(differs(pair, calls) for pair in range(60)) for calls in (enough, 2))
    assert keeps(kept, 60, 0.1, power=0.01, finds=0.5)
    assert exceeds(broken, 60, 0.1) <= FALSE_ALARM
    assert power(60, 0.1, 0.5) > 0.99


def test_episodes_and_black_boxes_are_registered_too() -> None:
    import gymnasium

    recipe = reprl.register(world(1), pilot=20_000, data_seed=3)
    assert reprl.learn(recipe.make(world(1)), shared_seed=0, candidate=recipe.published).guarantee.kind == "registered"
    box = reprl.register(
        lambda: gymnasium.make("CliffWalking-v1"), pilot=60_000, horizon=15, reward_range=(-100.0, 0.0), data_seed=3
    )
    assert box.settings.stationary is True
    assert box.registration is not None
    assert box.registration.episodes > 0


def test_a_recipe_without_an_id_is_run_on_the_environment_that_is_given() -> None:
    how: dict[str, Any] = {"horizon": 15, "reward_range": REWARDS, "data_seed": 3}
    recipe = reprl.register(TwoQueues, pilot=20_000, **how)
    with pytest.raises(InputError, match="this one was built by hand, pass it as env"):
        recipe.learn(data_seed=1)
    run = recipe.learn(env=TwoQueues, data_seed=1, max_samples=2000)
    assert (run.guarantee.status, run.guarantee.kind) == ("none", "registered")
    with pytest.raises(InputError, match=r"env must be a TabularMDP, a GymnasiumModel, an id, .*, got 7"):
        recipe.learn(env=7)


def test_a_log_may_be_the_pilot_of_other_logs(tmp_path: Any) -> None:
    pilot, ours = make_log(5000, 1), make_log(20_000, 2)
    recipe = register_log(pilot, horizon=HORIZON, states=STATES, actions=ACTIONS, quality=0.5)
    assert recipe.registration is not None
    assert recipe.registration.log is not None
    run = recipe.learn_log(ours)
    assert run.followed
    assert run.recipe.digest == recipe.digest
    with pytest.raises(InputError, match="log must be another one than the pilot's"):
        recipe.learn_log(pilot)


def test_the_command_registers_and_replicates(tmp_path: Any, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "study.json"
    how = ["--access", "generative", "--pilot", "20000", "--data-seed", "5", "--shared-seed", "1"]
    assert main(["register", "two-goals-v0", *how, "--by", "team A", "--out", str(path), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["promise"]["kind"] == "registered"
    assert document["registration"]["by"] == "team A"
    for team in ("first", "second"):
        out = str(tmp_path / team)
        assert main(["replicate", str(path), "--data-seed", str(10 + len(team)), "--out", out, "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["promise"]["kind"] == "registered"
    assert main(["verify", str(tmp_path / "first"), str(tmp_path / "second"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["remarks"] == []
    assert main(["replicate", str(path), "--data-seed", "5"]) == 2
    assert "another one than the pilot's" in capsys.readouterr().err


# --- steps that turn out to differ ------------------------------------------------------------------------------------


def two_steps(change: float) -> tuple[reprl.TabularMDP, reprl.Recipe]:
    """Return an MDP of one state and two steps that differ, and a recipe that takes them to be alike.

    Its tolerance for the first step lies between the gap of pooled steps and that of the first step.
    """
    reward = np.zeros((2, 1, 2))
    reward[:, 0, 0], reward[0, 0, 1], reward[1, 0, 1] = 0.6, 0.5 - change, 0.5
    mdp = reprl.TabularMDP(np.ones((2, 1, 2, 1)), reward, 0)
    settings = make_settings({"stationary": True, "epsilon": 1.2, "quality": None}, mdp)
    cells = Cells((0, 1), (1, 0), np.array([[0.1 + 0.85 * change], [math.inf]]))
    made = Registration("nobody", "2026-01-01", 1, 0, 11, None, 1, 0.0)
    return mdp, reprl.Recipe.plan(describe(mdp), settings, 1).register(Published(cells, made))


@pytest.mark.statistical
def test_runs_that_find_a_contradiction_late_or_never_learn_one_policy() -> None:
    """40 pairs, of which many have one run that stopped before it found that steps differ and one that found it.

    The control reads the candidate off data by step in the runs that found it, which breaks the promise.
    """
    mdp, recipe = two_steps(0.2)
    runs = [recipe.learn(env=mdp, data_seed=seed, max_samples=10**6) for seed in range(1000, 1080)]
    assert all(run.guarantee.status == "rehearsed" for run in runs)
    found = [bool(run.apart) for run in runs]
    assert min(found.count(True), found.count(False)) > 20
    assert isinstance(recipe.published, Published)
    rule, cells, by_step = rule_of(mdp), recipe.published.cells, []
    for run in runs:
        read = None if run.certificate_data is None else empirical_dynamics(run.certificate_data.data)
        by_step.append(choose_registered(rule, cells, read).policy if run.apart and read is not None else run.policy)
    kept = sum(one.policy != two.policy for one, two in zip(runs[::2], runs[1::2], strict=True))
    broken = sum(one != two for one, two in zip(by_step[::2], by_step[1::2], strict=True))
    assert keeps(kept, 40, 0.1, power=0.001, finds=0.5)
    assert exceeds(broken, 40, 0.1) <= FALSE_ALARM


@pytest.mark.statistical
def test_the_same_of_a_recipe_that_a_pilot_has_chosen() -> None:
    """40 pairs, 2 at most without a promise."""
    rng = np.random.default_rng(11)
    transition, reward = rng.dirichlet(np.ones(6), (6, 3)), rng.uniform(0.2, 0.8, (6, 3))
    reward = np.repeat(reward[None], 6, 0)
    state, action = rng.integers(6), rng.integers(3)
    reward[2:, state, action] = np.clip(reward[2:, state, action] + 0.2, 0.0, 1.0)
    mdp = reprl.TabularMDP(np.repeat(transition[None], 6, 0), reward, 0)
    recipe = reprl.register(mdp, pilot=20_000, data_seed=3, stationary=True, quality=0.95)
    runs = [recipe.learn(env=mdp, data_seed=seed, max_samples=10**6) for seed in range(100, 180)]
    assert 20 < sum(bool(run.apart) for run in runs) < 60
    pairs = list(zip(runs[::2], runs[1::2], strict=True))
    pairs = [pair for pair in pairs if all(run.guarantee.status == "rehearsed" for run in pair)]
    assert len(pairs) >= 38
    kept = sum(one.policy != two.policy for one, two in pairs)
    assert keeps(kept, len(pairs), 0.1, power=0.001, finds=0.6)


def test_a_black_box_whose_steps_differ_still_ends_in_a_promise(tmp_path: Any) -> None:
    """The pilot is too small to show it, a run is not: the recipe is followed, and the receipt says so."""
    how: dict[str, Any] = {"horizon": 10, "reward_range": Season.REWARDS, "data_seed": 3}
    recipe = reprl.register(Season, pilot=4000, quality=0.95, **how)
    assert recipe.settings.stationary is True
    run = recipe.learn(env=Season, data_seed=4, max_samples=400_000)
    assert run.apart
    assert (run.guarantee.status, run.guarantee.kind) == ("rehearsed", "registered")
    words = "its loss is by step, as samples contradict stationary dynamics: in state "
    assert words in run.guarantee.source
    out = io.StringIO()
    Console(file=out, width=2000).print(render(summarize_run(Run.of(run))))
    assert "pooled to follow the candidate, not for its loss, since the samples contradict" in out.getvalue()
    stored = reprl.load_run(run.save(tmp_path / "run"))
    assert words in stored.receipt.guarantee.source
    assert stored.recipe.digest == recipe.digest
    assert not run.counts.outcomes.pooled


def test_such_a_run_that_was_stopped_continues_to_the_same_end(tmp_path: Any) -> None:
    recipe = reprl.register(Season, pilot=4000, quality=0.95, horizon=10, reward_range=Season.REWARDS, data_seed=3)
    whole = recipe.learn(env=Season, data_seed=4, max_samples=400_000)
    kept = str(tmp_path / "tasks")
    cut = recipe.learn(env=Season, data_seed=4, max_samples=60_000, checkpoint=kept)
    assert cut.apart
    assert cut.guarantee.status == "none"
    found = recipe.learn(env=Season, max_samples=400_000, checkpoint=kept)
    assert (found.policy, found.counts, found.guarantee) == (whole.policy, whole.counts, whole.guarantee)


def test_a_pilot_that_shows_that_steps_differ_chooses_by_step() -> None:
    recipe = reprl.register(Season, pilot=200_000, horizon=10, reward_range=Season.REWARDS, data_seed=3)
    assert recipe.settings.stationary is False
    assert recipe.candidate is not None
    assert recipe.candidate.cells is not None
    assert recipe.candidate.cells.starts == tuple(range(10))


def test_a_candidate_reads_pooled_steps_as_before_the_contradiction() -> None:
    mdp, recipe = two_steps(0.2)
    rng, shape = np.random.default_rng(1), (2, 1, 2)
    rows = [(h, 0, a, 0, float(rng.random() < mdp.reward[h, 0, a])) for h in (0, 1) for a in (0, 1) for _ in range(400)]
    data, rule = Data(tally(rows, shape), np.array([800])), rule_of(mdp)
    assert isinstance(recipe.published, Published)
    bound, pools = (BoundRule(rule, TableReader(), Registered(recipe.published, pools)) for pools in (False, True))
    late, pooled, by_step = pools.choose(data), bound.choose(data.pool()), bound.choose(data)
    assert late.policy == pooled.policy != by_step.policy
    assert late.choice.margin == pooled.choice.margin
    lost = by_step.dynamics.policy_loss(find_gaps(by_step.dynamics, rule.order).value[0], late.policy.table)
    assert late.choice.loss == pytest.approx(lost)
