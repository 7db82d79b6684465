"""Head to head: searches find planted thresholds, the experiment can be stopped and goes on."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from experiments.head_to_head import __main__ as experiment
from experiments.head_to_head import measure
from experiments.head_to_head.budget import crossing, smallest_budget
from experiments.head_to_head.plan import contenders
from reprl.errors import ReprlError
from reprl.randomness import DataStream, SharedKey
from reprl.sources.environment import make

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
    assert found["reached"]
    assert threshold <= found["budget"] <= 1.5 * threshold
    assert found["failed"] is None or found["failed"] < threshold
    assert found["suboptimality"] <= 0.3
    assert found["interval"][0] <= 0.001 <= found["interval"][1]
    budgets = [budget for budget, *_ in found["counts"]]
    assert budgets == sorted(budgets)
    assert found == smallest_budget(WORLD, planted(threshold), low=48, limit=10**6, pairs=60, seed=1, **TARGET)


def test_accuracy_is_asked_for_as_well() -> None:
    found = smallest_budget(WORLD, planted(100, good=20_000), low=48, limit=10**6, pairs=60, seed=1, **TARGET)
    assert 20_000 <= found["samples"] <= 30_000
    lost = {line[0]: (line[-1], apart) for line, (_, _, apart) in zip(found["curve"], found["counts"], strict=True)}
    loss, apart = lost[found["failed"]]
    assert loss > 0.3
    assert apart <= 5


def test_the_limit_is_kept_and_said() -> None:
    found = smallest_budget(WORLD, planted(10**9), low=48, limit=1_000, pairs=60, seed=1, **TARGET)
    assert not found["reached"]
    assert found["samples"] is None
    assert max(budget for budget, *_ in found["counts"]) == 768
    assert found["limit"] <= 1_000
    assert found["failed"] == found["curve"][-1][0]


def test_a_lucky_pass_is_not_taken_for_an_answer() -> None:
    def make_learner(budget: int) -> Planted:
        return Planted(budget, 0.001 if budget in (96, 192 * 32) or budget > 10_000 else 0.5)

    found = smallest_budget(WORLD, make_learner, low=48, limit=10**6, pairs=60, seed=1, **TARGET)
    assert found["samples"] > 192 * 16


@pytest.mark.statistical
@pytest.mark.slow
def test_rates_that_lie_clearly_on_one_side_of_rho_are_judged_so() -> None:
    # Wrong with probability 5 % at most, so more than 12 of 40 with less than 1e-6; each rate is the other's control.
    for rate, passes in ((0.02, True), (0.3, False)):
        right = 0
        for seed in range(40):
            found = smallest_budget(WORLD, partial(_flat, rate), low=48, limit=48, pairs=120, seed=seed, **TARGET)
            right += found["reached"] is passes
        assert right >= 28


def test_refusals_fail_a_budget_and_are_told_if_there_is_nothing_else() -> None:
    def late(budget: int) -> Planted:
        return Planted(budget, 0.001, refuses=budget < 400)

    found = smallest_budget(WORLD, late, low=48, limit=10**5, pairs=40, seed=1, **TARGET)
    assert 400 <= found["samples"] <= 600
    assert found["counts"][0] == [48, 1, 1]
    never = smallest_budget(
        WORLD, lambda b: Planted(b, 0.0, refuses=True), low=48, limit=100, pairs=4, seed=1, **TARGET
    )
    assert not never["reached"]
    assert "samples must be more, got few" in never["error"]


@pytest.mark.slow
def test_every_learner_of_the_plan_keeps_to_its_budget() -> None:
    for one in contenders(0.3, 0.1):
        asked: dict[str, Any] = {"epsilon": 0.3, "rho": 0.1, "pairs": 1, "limit": 20_000, "seed": 3}
        row = measure.row(WORLD, one, **asked)
        assert all(line[0] <= budget for line, (budget, *_) in zip(row["curve"], row["counts"], strict=True)), one.label


def test_a_known_curve_gives_its_own_crossing() -> None:
    exact = (3.0 / math.log(1.0 / 0.9)) ** 2
    rates = {n: 1.0 - math.exp(-3.0 / math.sqrt(n)) for n in (200.0, 400.0, 800.0, 1600.0)}
    many = crossing([(n, 10**6, round(10**6 * p)) for n, p in rates.items()], 0.1)
    assert many[0] == pytest.approx(exact, rel=0.02)
    few = crossing([(n, 50, round(50 * p)) for n, p in rates.items()], 0.1)
    assert few[1] < exact < few[2]
    assert few[2] / few[1] > 4.0 * many[2] / many[1]


@pytest.mark.statistical
def test_crossing_intervals_cover() -> None:
    # Coverage 95 % of 200: fewer than 165 with probability below 1e-9 if it is 0.95, below 1e-6 if it is 0.93.
    generator = np.random.default_rng(7)
    sizes = 900.0 * 2.0 ** np.arange(-4, 3)
    rates = 1.0 - np.exp(math.log(0.9) * np.sqrt(900.0 / sizes))
    covered = 0
    for _ in range(200):
        found = crossing([(n, 40, int(generator.binomial(40, p))) for n, p in zip(sizes, rates, strict=True)], 0.1)
        covered += found[1] <= 900.0 <= found[2]
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


def test_the_stored_experiment_is_the_planned_one(data: Any) -> None:
    assert set(data["measured"]) == set(experiment.jobs(quick=False)), "all of it, from one run"
    assert experiment.EXPERIMENT.load(ROOT / "experiments" / "head_to_head" / "data.json", quick=False) == data
    with pytest.raises(ReprlError, match="was measured with another effort: move it away"):
        experiment.EXPERIMENT.load(ROOT / "experiments" / "head_to_head" / "data.json", quick=True)
