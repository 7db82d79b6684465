"""compare: searches find planted thresholds, records are whole, the experiment can be stopped and goes on."""

from __future__ import annotations

import io
import json
import math
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from experiments.head_to_head import __main__ as experiment
from experiments.head_to_head import measure, present
from reprl.auditing.compare import compare, contenders, run_row
from reprl.auditing.comparison import Comparison
from reprl.auditing.search import Tried, crossing, smallest_budget
from reprl.errors import ReprlError
from reprl.randomness import DataStream, SharedKey
from reprl.sources.environment import make
from reprl.sources.gymnasium.model import make_gymnasium

ROOT = Path(__file__).parent.parent
WORLD = make("combination-lock-v0", 4, n_states=4, n_actions=3)
BEST = WORLD.solve().policy.actions
TARGET: dict[str, Any] = {"access": "generative", "epsilon": 0.3, "rho": 0.1}


@dataclass(frozen=True)
class Planted:
    """A learner whose runs part with a probability that the budget alone decides, and that is good from `good` on."""

    budget: int
    rate: float
    good: int = 0
    refuses: bool = False

    def __call__(self, model: Any, shared_key: SharedKey) -> Any:
        if self.refuses:
            raise ReprlError("samples must be more, got few")
        model.sample(max(1, self.budget // model.samples_per_call))
        table = np.array(BEST) if self.budget >= self.good else (BEST + 1) % 3
        # One data stream parts from the other half of the time: rate 1 − (1 − p)² − p² = 2p(1 − p).
        p = 0.5 * (1.0 - math.sqrt(1.0 - 2.0 * min(0.5, self.rate)))
        if DataStream(model.data_seed, "planted").uniforms(1)[0] < p:
            table = table.copy()
            table[-1, -1] = (table[-1, -1] + 1) % 3
        return table


def _flat(rate: float, budget: int) -> Planted:
    return Planted(budget, rate)


def planted(threshold: int, **options: Any) -> Any:
    """Disagreement 0.5 below the threshold, 0.001 from it on."""
    return lambda budget: Planted(budget, 0.5 if budget < threshold else 0.001, **options)


@pytest.mark.parametrize("threshold", [100, 5_000, 40_000])
def test_a_planted_threshold_is_found_to_a_factor_of_the_square_root_of_two(threshold: int) -> None:
    found = smallest_budget(WORLD, planted(threshold), low=48, limit=10**6, pairs=60, seed=1, **TARGET)
    assert found.found is not None
    assert threshold <= found.found.budget <= 1.5 * threshold
    assert found.failed is None or found.failed.budget < threshold
    assert found.found.suboptimality is not None
    assert found.found.suboptimality <= 0.3
    assert found.found.interval[0] <= 0.001 <= found.found.interval[1]
    assert [point.budget for point in found.points] == sorted(point.budget for point in found.points)


def test_accuracy_is_asked_for_as_well() -> None:
    found = smallest_budget(WORLD, planted(100, good=20_000), low=48, limit=10**6, pairs=60, seed=1, **TARGET)
    assert found.found is not None
    assert 20_000 <= found.found.budget <= 30_000
    assert found.failed is not None
    assert found.failed.suboptimality is not None
    assert found.failed.suboptimality > 0.3
    assert found.failed.disagreements <= 5


def test_the_limit_is_kept_and_said() -> None:
    found = smallest_budget(WORLD, planted(10**9), low=48, limit=1_000, pairs=60, seed=1, **TARGET)
    assert found.found is None
    assert max(point.budget for point in found.points) == 768
    assert found.spent <= 1_000
    assert found.failed == found.points[-1]


def test_a_lucky_pass_is_not_taken_for_an_answer() -> None:
    def make_learner(budget: int) -> Planted:
        return Planted(budget, 0.001 if budget in (96, 192 * 32) or budget > 10_000 else 0.5)

    found = smallest_budget(WORLD, make_learner, low=48, limit=10**6, pairs=60, seed=1, **TARGET)
    assert found.found is not None
    assert found.found.budget > 192 * 16


@pytest.mark.statistical
@pytest.mark.slow
def test_rates_that_lie_clearly_on_one_side_of_rho_are_judged_so() -> None:
    # Wrong with probability 5 % at most, so more than 12 of 40 with less than 1e-6; each rate is the other's control.
    for rate, passes in ((0.02, True), (0.3, False)):
        right = 0
        for seed in range(40):
            found = smallest_budget(WORLD, partial(_flat, rate), low=48, limit=48, pairs=120, seed=seed, **TARGET)
            right += (found.found is not None) is passes
        assert right >= 28


def test_refusals_fail_a_budget_and_are_raised_if_there_is_nothing_else() -> None:
    def late(budget: int) -> Planted:
        return Planted(budget, 0.001, refuses=budget < 400)

    found = smallest_budget(WORLD, late, low=48, limit=10**5, pairs=40, seed=1, **TARGET)
    assert found.found is not None
    assert 400 <= found.found.budget <= 600
    assert "samples must be more" in found.errors[0]
    with pytest.raises(ReprlError, match="samples must be more"):
        smallest_budget(WORLD, lambda b: Planted(b, 0.0, refuses=True), low=48, limit=100, pairs=4, seed=1, **TARGET)


@pytest.mark.slow
def test_seed_and_workers_fix_the_answer() -> None:
    once, again, two = (
        smallest_budget(WORLD, planted(1_000), low=48, limit=10**4, pairs=20, seed=5, workers=workers, **TARGET)
        for workers in (1, 1, 2)
    )
    assert once == again == two


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rho": 1.5}, "rho must lie"),
        ({"epsilon": -1.0}, "epsilon must lie"),
        ({"access": "psychic"}, "access must be"),
        ({"low": 0}, "low must"),
        ({"limit": 3}, "limit must"),
        ({"pairs": 0}, "pairs must"),
        ({"seed": -1}, "seed must"),
    ],
)
def test_bad_input_is_named(change: dict[str, Any], message: str) -> None:
    arguments = {**TARGET, "low": 48, "limit": 100, "pairs": 4, "seed": 1, **change}
    with pytest.raises(ReprlError, match=message):
        smallest_budget(WORLD, planted(10), **arguments)


def test_contenders_are_labelled_and_checked() -> None:
    labels = [(one.label, one.access) for one in contenders(["reprl", "greedy"])]
    assert labels == [
        ("reprl (canonical)", "generative"),
        ("reprl (joint)", "generative"),
        ("reprl (product)", "generative"),
        ("greedy", "generative"),
        ("reprl (canonical)", "episodic"),
        ("reprl (joint)", "episodic"),
        ("reprl (product)", "episodic"),
    ]
    rules = {one.label: one.options["rule"] for one in contenders(["reprl"])}
    assert rules == {
        "reprl (canonical)": "canonical",
        **dict.fromkeys(("reprl (joint)", "reprl (product)"), "paper"),
    }
    with pytest.raises(ReprlError, match=r"learners must be among .*got 'greddy'"):
        contenders(["greddy"])
    with pytest.raises(ReprlError, match="access 'episodic'"):
        contenders(["greedy"], access="episodic")
    with pytest.raises(ReprlError, match="list of names"):
        contenders("greedy")


@pytest.mark.slow
def test_every_contender_runs_at_its_first_budget_and_keeps_to_it() -> None:
    for one in contenders():
        row = run_row(WORLD, one, epsilon=0.3, rho=0.1, pairs=1, limit=1, seed=3)
        assert row.points[0].samples <= one.minimum_budget(WORLD), one.label


def test_a_comparison_is_a_record_a_file_and_a_table(tmp_path: Path) -> None:
    found = compare(WORLD, ["reprl", "greedy"], access="generative", pairs=12, limit=2**14, seed=1)
    assert [row.learner for row in found.rows] == ["reprl (canonical)", "reprl (joint)", "reprl (product)", "greedy"]
    found.save(tmp_path / "comparison.json")
    document = json.loads((tmp_path / "comparison.json").read_text())
    assert document == json.loads(json.dumps(found.to_dict()))
    assert [row.reached for row in found.rows] == [True] * 4
    again = Comparison.load(tmp_path / "comparison.json")
    assert again.rows == found.rows
    assert again.to_json() == found.to_json() == (tmp_path / "comparison.json").read_text()
    console = Console(width=120, record=True, file=io.StringIO())
    found.show(console)
    text = console.export_text()
    assert "greedy" in text
    assert "seed 1" in text


def test_a_black_box_is_not_sampled_in_parallel() -> None:
    with pytest.raises(ReprlError, match="learners must have access 'episodic', got greedy"):
        compare(make_gymnasium("Blackjack-v1", 3, reward_range=(-1.0, 1.0)), ["greedy"])
    with pytest.raises(ReprlError, match="access must be 'episodic' for a black box"):
        compare(make_gymnasium("Blackjack-v1", 3, reward_range=(-1.0, 1.0)), ["greedy"], access="generative")


def test_a_known_curve_gives_its_own_crossing() -> None:
    exact = (3.0 / math.log(1.0 / 0.9)) ** 2
    rates = {n: 1.0 - math.exp(-3.0 / math.sqrt(n)) for n in (200.0, 400.0, 800.0, 1600.0)}
    many = crossing([(n, 10**6, round(10**6 * p)) for n, p in rates.items()], 0.1)
    assert many.samples == pytest.approx(exact, rel=0.02)
    few = crossing([(n, 50, round(50 * p)) for n, p in rates.items()], 0.1)
    assert few.low < exact < few.high
    assert few.high / few.low > 4.0 * many.high / many.low


@pytest.mark.statistical
def test_crossing_intervals_cover() -> None:
    # Coverage 95 % of 200: fewer than 165 with probability below 1e-9 if it is 0.95, below 1e-6 if it is 0.93.
    generator = np.random.default_rng(7)
    sizes = 900.0 * 2.0 ** np.arange(-4, 3)
    rates = 1.0 - np.exp(math.log(0.9) * np.sqrt(900.0 / sizes))
    covered = 0
    for _ in range(200):
        found = crossing([(n, 40, int(generator.binomial(40, p))) for n, p in zip(sizes, rates, strict=True)], 0.1)
        covered += found.low <= 900.0 <= found.high
    assert covered >= 165


def test_slopes_on_planted_data() -> None:
    x = [4.0, 8.0, 16.0, 32.0]
    fit = measure.slope(x, [5.0 * v**3 for v in x], [0.1] * 4)
    assert fit["slope"] == pytest.approx(3.0)
    assert 0.05 < fit["high"] - 3.0 < 0.2
    rough = measure.slope(x, [5.0 * v**3 * w for v, w in zip(x, (1.0, 3.0, 0.3, 1.0), strict=True)], [0.1] * 4)
    assert rough["high"] - rough["low"] > 5.0 * (fit["high"] - fit["low"])


@pytest.mark.slow
def test_the_quick_experiment_can_be_stopped_and_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = list(experiment.jobs(quick=True))
    chosen = [name for name in names if name.startswith("table/generative/") and "lock" in name]
    chosen += [name for name in names if name.startswith("sweep/")][-1:]
    some = replace(experiment.EXPERIMENT, jobs=_only(experiment.jobs, chosen))
    whole = some.collect(tmp_path / "whole.json", True, [])

    def stop(entry: Any, effort: Any) -> Any:
        raise KeyboardInterrupt

    stopped = tmp_path / "stopped.json"
    with monkeypatch.context() as patch:
        patch.setattr(measure, "point", stop)
        with pytest.raises(KeyboardInterrupt):
            some.collect(stopped, True, [])
    assert list(json.loads(stopped.read_text())["measured"]) == chosen[:-1]
    before = stopped.read_text()
    some.collect(stopped, True, ["nothing has this name"])
    assert stopped.read_text() == before
    assert some.collect(stopped, True, []) == whole
    assert stopped.read_bytes() == (tmp_path / "whole.json").read_bytes()
    with pytest.raises(ReprlError, match="measured with another effort"):
        experiment.EXPERIMENT.load(stopped, quick=False)


def _only(jobs: Any, names: list[str]) -> Any:
    return lambda quick: {name: job for name, job in jobs(quick).items() if name in names}


@pytest.mark.slow
def test_the_quick_version_runs_from_one_command(tmp_path: Path) -> None:
    experiment.EXPERIMENT.main(["--quick", "--only", "lock", "--only", "states", "--out", str(tmp_path)], None)
    assert (tmp_path / "head-to-head.svg").exists()
    assert "combination-lock" in (tmp_path / "tables.md").read_text()


@pytest.fixture(scope="module")
def data() -> Any:
    return json.loads((ROOT / "experiments" / "head_to_head" / "data.json").read_text())


def test_the_page_shows_the_stored_data(data: Any) -> None:
    page = (ROOT / "docs" / "head-to-head.md").read_text()
    shown = page.partition(present.START)[2].partition(present.END)[0]
    assert shown.strip() == present.tables(data).strip()


def test_the_stored_experiment_is_the_planned_one(data: Any) -> None:
    assert set(data["measured"]) == set(experiment.jobs(quick=False)), "all of it, from one run"
    assert experiment.EXPERIMENT.load(ROOT / "experiments" / "head_to_head" / "data.json", quick=False) == data
    with pytest.raises(ReprlError, match="was measured with another effort: move it away"):
        experiment.EXPERIMENT.load(ROOT / "experiments" / "head_to_head" / "data.json", quick=True)


def test_points_are_ordered_by_budget() -> None:
    one = Tried(5, 5.0, 1, 0, (0.0, 1.0), 0.0)
    assert one < one._replace(budget=6)
