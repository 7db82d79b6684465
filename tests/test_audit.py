"""audit: what it counts, for whom it works, and that nothing but the seed changes it."""

from __future__ import annotations

import io
import itertools
import json
from typing import Any

import gymnasium
import numpy as np
import pytest
from rich.console import Console

import reprl
from reprl.auditing.audit import curve
from reprl.auditing.exact_quantities import largest_reach, optimal_scores, reachable
from reprl.auditing.record import AuditReport
from reprl.errors import ReprlError
from reprl.learning.learner import learner as bound_learner
from reprl.learning.settings import RULES
from reprl.randomness import DataStream
from tests.statistics import FALSE_ALARM, exceeds, keeps

EPISODES: Any = {"access": "episodic", "rule": "paper", "constants": "scaled", "epsilon": 1.0}

GRID = reprl.make("gridworld-v0")
TINY = reprl.make("gridworld-v0", 2, size=2)
SMALL = reprl.make("random-mdp-v0", 3, n_states=4, n_actions=3)


def greedy(model, shared_key, calls=400):
    counts = model.sample(calls)
    horizon, n_states, _ = counts.outcomes.shape
    actions, value = np.empty((horizon, n_states), dtype=int), np.zeros(n_states)
    for h in reversed(range(horizon)):
        scores = counts.mean_return(h, value)
        actions[h], value = scores.argmax(axis=1), scores.max(axis=1)
    return actions


def q_learning(model, shared_key, episodes=60):
    """Ten lines that a user might bring."""
    q = np.full((model.horizon + 1, model.n_states, model.n_actions), float(model.horizon))
    q[-1], n = 0.0, np.zeros(q.shape)
    for _ in range(episodes):
        state = model.reset()
        for h in range(model.horizon):
            action = int(q[h, state].argmax())
            seen = model.step(action)
            n[h, state, action] += 1
            rate = (model.horizon + 1) / (model.horizon + n[h, state, action])
            q[h, state, action] += rate * (seen.reward + q[h + 1, seen.state].max() - q[h, state, action])
            state = seen.state
    return q[:-1].argmax(axis=2)


def scatter(model, shared_key):
    """A table that depends on the key, and in some cells on the data too."""
    shape = (model.horizon, model.n_states)
    shared = shared_key.uniforms(model.horizon * model.n_states).reshape(shape)
    private = DataStream(model.data_seed, "test").uniforms(model.horizon * model.n_states).reshape(shape)
    return ((shared * 3).astype(int) + (private < 0.15)) % 3


def coin(p: float) -> Any:
    """A learner whose two runs differ with probability exactly p."""
    q = (1 - np.sqrt(1 - 2 * p)) / 2

    def toss(model, shared_key):
        table = np.zeros((model.horizon, model.n_states), dtype=int)
        table[0, 0] = DataStream(model.data_seed, "test").uniforms(1)[0] < q
        return table

    return toss


# --- the two learners that the tool must tell apart -------------------------------------------------------------------


@pytest.mark.statistical
def test_greedy_is_rejected_on_the_gridworld_and_its_ties_are_named():
    report = reprl.audit(GRID, greedy, 60, access="generative", seed=1)
    assert report.verdict == "rejected"
    assert exceeds(report.disagreements, report.pairs, 0.1) < FALSE_ALARM
    assert report.disagreement > 0.9
    assert report.samples == 400 * 16 * 4 * 6
    # The diagonal ties by symmetry, start included, and every such cell is called an exact tie.
    scores = optimal_scores(GRID)
    tied = {(cell.step, cell.state) for cell in report.ties}
    assert {(0, 0), (2, 5), (4, 10)} <= tied
    for cell in report.cells:
        worth = [scores[cell.step, cell.state, a] for a, _ in cell.actions]
        assert cell.stake is not None
        assert cell.stake <= max(worth) - min(worth) + 1e-12
        if (cell.step, cell.state) in tied:
            assert max(worth) - min(worth) < 1e-9 or len(cell.actions) > 2
    assert all(item.stage == "policy" for item in report.first_divergence)
    assert any(item.margin == 0.0 and "exact tie" in item.text for item in report.first_divergence)
    # Ties cost nothing: policies differ in almost every pair, values hardly.
    assert report.value_gap is not None
    assert report.value_gap.max < 0.05


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize(
    ("options", "starve", "stage"),
    [
        pytest.param(
            {"rule": "soft", "epsilon": 0.3, "stationary": False},
            {"samples": 4 * 2 * 4 * 4},
            None,
        ),
        pytest.param(
            {"rule": "paper", "constants": "scaled", "epsilon": 0.1, "samples": 10**10},
            {"samples": 20 * 2 * 4 * 4},
            None,
        ),
    ],
    ids=["soft", "paper"],
)
def test_reprl_is_not_rejected_on_the_gridworld_and_starved_it_is(options, starve, stage):
    """60 pairs, tied at the start; false alarm below 1e-6. The control has four samples of every cell."""
    report = reprl.audit(TINY, "reprl", 60, access="generative", rho=0.1, seed=2, **options)
    assert keeps(report.disagreements, report.pairs, 0.1, power=0.01, finds=0.41)
    assert report.verdict == "not rejected"
    assert (report.options["rho"], report.options["rule"]) == (0.1, options["rule"])
    starved = reprl.audit(TINY, "reprl", 60, access="generative", rho=0.1, seed=2, **{**options, **starve})
    assert starved.samples < report.samples
    assert exceeds(starved.disagreements, starved.pairs, 0.1) < FALSE_ALARM
    assert starved.verdict == "rejected"
    assert stage is None or {item.stage for item in starved.first_divergence} == {stage}
    assert len(starved.first_divergence) == starved.disagreements


def test_settings_bound_into_a_learner_are_used_and_its_stages_seen():
    bound = reprl.audit(GRID, bound_learner(rule="paper", constants="scaled", samples=200 * 384), 4, seed=3)
    named = reprl.audit(GRID, "reprl", 4, rule="paper", constants="scaled", samples=200 * 384, seed=3)
    assert bound.to_json() == named.to_json()
    assert bound.first_divergence[0].stage == "arms"


def test_episodic_reprl_shows_its_stages():
    report = reprl.audit(SMALL, "reprl", 2, **EPISODES, scale=0.01, seed=1)
    assert report.access == "episodic"
    assert all(item.stage in ("partition", "arms", "rounding") for item in report.first_divergence)
    assert len(report.first_divergence) == report.disagreements


def test_rivals_go_by_name_and_aim_for_the_rho_that_is_tested():
    report = reprl.audit(GRID, "greedy", 4, seed=1, samples=153_600)
    assert (report.learner, report.access, report.samples) == ("greedy", "generative", 153_600)
    aimed = reprl.audit(SMALL, "rpvi", 2, rho=0.3, seed=1, samples=1000)
    assert aimed.options["rho"] == 0.3


# --- users' own learners and environments -----------------------------------------------------------------------------


def test_ten_lines_of_q_learning_can_be_audited():
    report = reprl.audit(GRID, q_learning, 20, seed=1, episodes=30)  # type: ignore[call-arg]
    assert (report.learner, report.access) == ("q_learning", "episodic")
    assert report.samples == 30 * 6
    assert report.verdict == "rejected"
    assert report.options == {"episodes": 30}


class Dice(gymnasium.Env[Any, Any]):
    """Two dice to choose from, one slightly better, with a tie at every second state."""

    observation_space = gymnasium.spaces.Discrete(3)
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return 0, {}

    def step(self, action):
        state = int(self.np_random.integers(3))
        return state, float(self.np_random.random() < 0.5), False, False, {}


def test_a_black_box_can_be_audited_without_knowing_its_values():
    model = reprl.GymnasiumModel(Dice, 3, reward_range=(0, 1))
    report = reprl.audit(model, q_learning, 10, seed=1)
    assert report.environment.n_states == 4
    assert report.disagreement > 0.5
    assert (report.value_gap, report.suboptimality, report.by_cell_weighted) == (None, None, None)
    assert report.samples == 60 * 4
    assert report.first_divergence[0].margin is None
    assert report.cells[0].reachability is None
    # A factory and the model it makes are one environment; so is the same env, already open.
    assert reprl.audit(Dice, q_learning, 10, horizon=3, reward_range=(0, 1), seed=1).to_json() == report.to_json()
    assert reprl.audit(Dice(), q_learning, 10, horizon=3, reward_range=(0, 1), seed=1).to_json() == report.to_json()


def test_a_registered_environment_can_be_audited_exactly_and_as_a_black_box():
    exact = reprl.audit("gym:FrozenLake-v1", q_learning, 4, horizon=5, seed=1)
    assert exact.value_gap is not None
    boxed = reprl.audit(reprl.GymnasiumModel("FrozenLake-v1", 5), q_learning, 4, seed=1)
    assert boxed.environment.labels.name == "gym:FrozenLake-v1"
    assert boxed.environment.labels.state(16) == "ended"
    assert boxed.value_gap is None


# --- counting ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("runs", [2, 5])
def test_figures_are_those_of_a_naive_recount(runs):
    seen: list[Any] = []

    def watched(model, shared_key):
        seen.append((shared_key.seed, model.data_seed, scatter(model, shared_key)))
        return seen[-1][2]

    pairs = 7
    report = reprl.audit(SMALL, watched, pairs, runs_per_key=runs, seed=4)
    tables = [[table for _, _, table in seen[i * runs : (i + 1) * runs]] for i in range(pairs)]
    assert len({key for key, _, _ in seen}) == pairs
    assert len({data for _, data, _ in seen}) == pairs * runs
    both = [pair for group in tables for pair in itertools.combinations(group, 2)]
    naive = np.zeros((3, 4))
    for one, two in both:
        naive += one != two
    np.testing.assert_allclose(report.by_cell, naive / len(both), atol=1e-12)
    assert report.disagreement == pytest.approx(np.mean([(one != two).any() for one, two in both]))
    assert report.disagreements == sum((group[0] != group[1]).any() for group in tables)
    assert report.distinct == tuple(len({table.tobytes() for table in group}) for group in tables)
    gaps = [abs(SMALL.evaluate(one) - SMALL.evaluate(two)) for one, two in both]
    assert report.value_gap == pytest.approx((np.mean(gaps), np.max(gaps)))
    best = SMALL.evaluate(SMALL.solve().policy)
    losses = [best - SMALL.evaluate(table) for _, _, table in seen]
    assert report.suboptimality == pytest.approx((np.mean(losses), np.max(losses)))
    assert report.by_cell_weighted is not None
    scores = optimal_scores(SMALL)
    for cell in report.cells:
        h, s = cell.step, cell.state
        alone = np.zeros((3, 4), dtype=bool)
        alone[h, s] = True
        reach = SMALL.reachability(alone)
        assert cell.reachability == pytest.approx(reach)
        assert report.by_cell_weighted[h, s] == pytest.approx(naive[h, s] / len(both) * reach)
        stake = max(abs(scores[h, s, one[h, s]] - scores[h, s, two[h, s]]) for one, two in both)
        assert cell.stake == pytest.approx(stake)
        shares = {a: np.mean([table[h, s] == a for _, _, table in seen]) for a, _ in cell.actions}
        assert dict(cell.actions) == pytest.approx(shares)
        assert sum(shares.values()) == pytest.approx(1.0)
    reached = reachable(SMALL)
    assert not reached.all()
    assert len(report.cells) == np.count_nonzero(naive * reached)
    assert report.policies is not None
    assert report.policies.over_runs == len({table.tobytes() for _, _, table in seen})
    assert report.policies.over_seeds == len({group[0].tobytes() for group in tables})
    assert report.policies.apart == sum(((group[0] != group[1]) & reached).any() for group in tables)
    assert report.policies.monte_carlo is None


@pytest.mark.parametrize("stationary", [True, False])
def test_reachability_of_every_cell_is_the_models_own(stationary):
    mdp = reprl.make("random-mdp-v0", 4, n_states=5, n_actions=2, support=2, stationary=stationary)
    cells = np.ones((4, 5), dtype=bool)
    cells[2, 3] = False
    most = largest_reach(mdp, cells)
    for h, s in np.ndindex(4, 5):
        alone = np.zeros((4, 5), dtype=bool)
        alone[h, s] = cells[h, s]
        assert most[h, s] == pytest.approx(mdp.reachability(alone))


def test_test_and_interval_count_one_designated_pair_a_key():
    """With many runs a key nearly always holds some pair that differs: counting them as independent would be wrong."""
    report = reprl.audit(SMALL, coin(0.18), 40, runs_per_key=12, seed=1)
    exact = reprl.audit(SMALL, coin(0.18), 40, runs_per_key=2, seed=1)
    assert report.disagreements <= 40
    low, high = report.interval
    assert high - low == pytest.approx(exact.interval[1] - exact.interval[0], abs=0.1)
    assert report.disagreement != report.disagreements / 40
    assert max(report.distinct) == 2


# --- sequential -------------------------------------------------------------------------------------------------------


def test_sequential_stops_early_both_ways_and_is_a_prefix_of_the_full_audit():
    bad = reprl.audit(SMALL, scatter, 50, sequential=True, seed=1)
    assert (bad.verdict, bad.max_pairs, bad.p_value, bad.alternative) == ("rejected", 50, None, 0.2)
    assert bad.pairs <= 4
    assert bad.interval[0] > 0.1 or bad.pairs < 3
    good = reprl.audit(SMALL, lambda model, key: np.zeros((3, 4), int), 50, sequential=True, seed=1)
    assert good.verdict == "not rejected"
    assert 5 < good.pairs < 50
    assert good.interval[0] == 0.0
    short = reprl.audit(SMALL, scatter, bad.pairs, seed=1)
    assert short.by_cell.tolist() == bad.by_cell.tolist()
    unsure = reprl.audit(SMALL, lambda model, key: np.zeros((3, 4), int), 5, sequential=True, seed=1)
    assert (unsure.verdict, unsure.pairs) == ("undecided", 5)


@pytest.mark.statistical
def test_sequential_audits_of_a_learner_at_rho_are_rarely_rejected():
    """Whole audits at the edge of the hypothesis; the control disagrees far more often and is caught."""
    verdicts = [reprl.audit(SMALL, coin(0.1), 30, sequential=True, seed=seed).verdict for seed in range(40)]
    assert keeps(verdicts.count("rejected"), len(verdicts), 0.05, power=0.00038, finds=0.39)
    caught = [reprl.audit(SMALL, coin(0.45), 30, sequential=True, seed=seed).verdict for seed in range(20)]
    assert exceeds(caught.count("rejected"), len(caught), 0.05) < FALSE_ALARM


# --- repetition, workers, files ---------------------------------------------------------------------------------------


def test_the_seed_fixes_the_report_and_another_changes_it():
    one, two, other = (reprl.audit(SMALL, scatter, 6, seed=seed).to_json() for seed in (5, 5, 6))
    assert one == two
    assert one != other
    fresh = reprl.audit(SMALL, scatter, 6)
    assert reprl.audit(SMALL, scatter, 6, seed=fresh.seed).to_json() == fresh.to_json()


@pytest.mark.slow
def test_workers_cannot_change_a_byte():
    for env, learner, options in (
        (SMALL, scatter, {"runs_per_key": 3}),
        (SMALL, coin(0.3), {"sequential": True}),
        (GRID, "reprl", {"rule": "paper", "constants": "scaled", "samples": 200 * 384}),
        (TINY, "reprl", {"access": "generative", "rho": 0.2, "stationary": False}),
        (reprl.GymnasiumModel(Dice, 3, reward_range=(0, 1)), q_learning, {}),
    ):
        alone = reprl.audit(env, learner, 9, seed=7, **options)
        assert reprl.audit(env, learner, 9, seed=7, workers=2, **options).to_json() == alone.to_json()


def fails_late(model: Any, shared_key: Any) -> Any:
    """Never agrees with itself, and breaks down in a pair that a sequential audit does not need."""
    if shared_key.seed == int(DataStream(3, "audit/shared").integers(1, 5)[0]) >> 1:
        raise RuntimeError("late")
    cells = np.arange(model.horizon * model.n_states).reshape(model.horizon, model.n_states)
    return model.data_seed // 4**cells % 4  # two seeds share all these digits once in 65536 pairs


@pytest.mark.slow
def test_an_error_in_a_pair_that_is_not_needed_is_not_seen():
    """Whatever the number of workers: pairs that were begun ahead of need may fail unheard."""
    options: dict[str, Any] = {"pairs": 8, "seed": 3, "sequential": True}
    small = reprl.make("gridworld-v0", 2, size=2)
    one, many = (reprl.audit(small, fails_late, workers=workers, **options) for workers in (1, 4))
    assert one.to_dict() == many.to_dict()
    assert one.verdict == "rejected"
    with pytest.raises(ReprlError, match=r"failed in pair 5, run 0: RuntimeError: late"):
        reprl.audit(small, fails_late, workers=2, **{**options, "sequential": False})


@pytest.mark.parametrize("options", [{}, {"rule": "paper", "constants": "scaled"}], ids=RULES)
def test_reprl_takes_a_budget_like_its_rivals(options):
    small = reprl.make("gridworld-v0", 2, size=2)
    report = reprl.audit(small, "reprl", pairs=2, samples=32_000, access="generative", seed=1, **options)
    if options:
        assert report.samples == 32_000
    else:
        assert 0 < report.samples <= 32_000, "it may be sure before"
    assert report.learner == "reprl"


def test_a_report_survives_its_file(tmp_path):
    for report in (
        reprl.audit(GRID, greedy, 4, access="generative", seed=1),
        reprl.audit(reprl.GymnasiumModel(Dice, 3, reward_range=(0, 1)), q_learning, 3, seed=1, sequential=True),
    ):
        path = report.save(tmp_path / "audit.json")
        again = AuditReport.load(path)
        assert again.to_dict() == report.to_dict()
        assert render(again) == render(report)
        assert (again.interval, again.first_divergence, again.cells) == (
            report.interval,
            report.first_divergence,
            report.cells,
        )


def test_the_document_has_the_published_fields():
    document = json.loads(reprl.audit("gridworld-v0", greedy, 4, access="generative", horizon=3, seed=1).to_json())
    assert document["environment"]["id"] == "gridworld-v0"
    assert document["environment"]["labels"]["grid"] == [4, 4]
    assert document["environment"]["labels"]["actions"] == ["↑", "→", "↓", "←"]
    assert {
        *("format", "version", "environment", "learner", "options", "rho", "level", "pairs", "disagreements"),
        *("disagreement", "interval", "verdict", "sequential", "runs_per_key", "distinct", "by_cell"),
        *("by_cell_weighted", "value_gap", "suboptimality", "first_divergence", "samples"),
    } <= set(document)
    assert np.shape(document["by_cell"]) == (3, 16)
    divergence = document["first_divergence"][0]
    assert set(divergence) == {"pair", "stage", "tier", "step", "state", "margin", "actions", "text"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "reprl-policy"}, "audit format must be 'reprl-audit', got 'reprl-policy'"),
        ({"version": 2}, "audit version must be 1 for this release of reprl, got 2"),
        ({"by_cell": [[0.0]]}, "audit by_cell must be a list of 3 items, got 1 items"),
        ({"environment": {}}, "audit environment must have the field 'id'"),
        ({"interval": None}, "audit interval must be a list of 2 items, got None"),
        ({"rho": 7}, r"audit rho must lie in \[0, 1\], got 7"),
        ({"verdict": "maybe"}, "audit verdict must be one of rejected, not rejected, undecided; got 'maybe'"),
        ({"access": "psychic"}, "audit access must be one of episodic, generative; got 'psychic'"),
        ({"sequential": 1}, "audit sequential must be true or false, got 1"),
        ({"max_pairs": 1}, "audit max_pairs must be a whole number from 2 to .*, got 1"),
        ({"distinct": [1, 3]}, r"audit distinct\[1\] must be a whole number from 1 to 2, got 3"),
        ({"samples": float("nan")}, "audit numbers must be finite, got NaN"),
        ({"value_gap": {"mean": 0.0}}, "audit value_gap must have the field 'max'"),
        ({"by_cell": [[0.0, 0.0, 0.0, 2.0]] * 3}, r"audit by_cell\[0\]\[3\] must be a number from 0 to 1, got 2.0"),
        ({"comment": "mine"}, "audit must have only the fields .* got 'comment'"),
    ],
)
def test_a_spoiled_document_is_refused(change, message):
    document = reprl.audit(SMALL, scatter, 2, seed=1).to_dict()
    with pytest.raises(ReprlError, match=message):
        AuditReport.from_json(json.dumps({**document, **change}))
    with pytest.raises(ReprlError, match="JSON"):
        AuditReport.from_json("{")


def render(report: AuditReport) -> str:
    stream = io.StringIO()
    report.show(Console(file=stream, width=160))
    return stream.getvalue()


def test_progress_tells_every_pair():
    told: list[tuple[str, int, int]] = []
    reprl.audit(SMALL, scatter, 3, seed=1, progress=lambda *news: told.append(news))
    assert told == [("audit", 1, 3), ("audit", 2, 3), ("audit", 3, 3)]


def test_curve_falls_as_data_grow():
    each = 16 * 4 * 6
    for rule, sizes in (("paper", [100 * each, 10**12 * each]), ("soft", [8 * each, 10**6 * each])):
        more = {"constants": "scaled"} if rule == "paper" else {}
        points = curve(GRID, "reprl", sizes, 8, access="generative", rule=rule, seed=1, **more)
        assert points[0].disagreement > points[1].disagreement
        assert points[0].samples == sizes[0]
        assert points[1].low <= points[1].disagreement <= points[1].high
    theirs = curve(GRID, "greedy", [3840, 7680], 2, access="generative", seed=1)
    assert [point.samples for point in theirs] == [3840, 7680]
    with pytest.raises(ReprlError, match="sizes must name at least one size"):
        curve(GRID, "reprl", [])


# --- bad input --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"pairs": 0}, "pairs must be a whole number from 1"),
        ({"rho": 1.5}, r"rho must lie in \(0, 1\), got 1\.5"),
        ({"level": 0}, r"level must lie in \(0, 1\), got 0"),
        ({"runs_per_key": 1}, "runs_per_key must be a whole number from 2"),
        ({"workers": 0}, "workers must be"),
        ({"seed": -1}, "seed must be"),
        ({"sequential": 1}, "sequential must be True or False, got 1"),
        ({"progress": "yes"}, r"progress must be True or False, or a function of \(phase, done, total\), got 'yes'"),
        ({"alternative": 0.3}, "alternative must be left out unless sequential=True"),
        ({"access": "offline"}, "access must be one of episodic, generative; got 'offline'"),
        ({"horizon": 4}, "horizon must be left out"),
        ({"learner": "reprl", "epsilonn": 1}, "option must be one of epsilon"),
        ({"learner": "reprl", "shared_seed": 1}, "option must be one of epsilon"),
        ({"learner": "no-such"}, "learner must be one of reprl"),
        ({"learner": 7}, "learner must be a name, a callable"),
        ({"learner": bound_learner(), "epsilon": 0.1}, "options must be left out"),
        ({"env": "gridworld-v9"}, "environment must be one of"),
        ({"env": "gridworld-v9", "learner": scatter}, "environment must be one of"),
    ],
)
def test_bad_arguments_are_named(options, message):
    given: dict[str, Any] = {"env": SMALL, "learner": scatter, "pairs": 2, **options}
    with pytest.raises(ReprlError, match=message):
        reprl.audit(given.pop("env"), given.pop("learner"), given.pop("pairs"), **given)


def broken(model, shared_key):
    if scatter(model, shared_key)[0, 0] != 0:
        raise ZeroDivisionError("no luck")
    return scatter(model, shared_key)


@pytest.mark.parametrize(
    ("learner", "message"),
    [
        (
            broken,
            r"learner broken failed in pair \d, run [01]: ZeroDivisionError: no luck \(test_audit\.py, line \d+\)",
        ),
        (
            lambda model, key: [[0, 0]],
            r"pair 0, run 0: policy must have shape \(H, S\) = \(3, 4\) or .*got \(1, 2\)",
        ),
        (lambda model, key: np.full((3, 4), 3), r"action \[0, 0\] must be from 0 to 2, got 3"),
        (lambda model, key: np.full((3, 4), 0.5), r"actions\[0, 0\] must be an action index"),
        (lambda model, key: None, "pair 0, run 0: a learner must return a policy, .*got None"),
        (lambda model: 0, r"failed in pair 0, run 0: TypeError: .*takes 1 positional argument"),
    ],
)
def test_a_learners_faults_say_where_they_came(learner, message):
    with pytest.raises(ReprlError, match=message):
        reprl.audit(SMALL, learner, 8, seed=1)


def test_a_black_box_has_no_parallel_samples():
    model = reprl.GymnasiumModel(Dice, 3, reward_range=(0, 1))
    with pytest.raises(ReprlError, match="access must be 'episodic' for a black box"):
        reprl.audit(model, greedy, 2, access="generative")
    with pytest.raises(ReprlError, match="access must be 'episodic' for a black box"):
        reprl.audit(model, "greedy", 2)
    with pytest.raises(ReprlError, match="access must be 'generative' for greedy, got 'episodic'"):
        reprl.audit(GRID, "greedy", 2, access="episodic")
