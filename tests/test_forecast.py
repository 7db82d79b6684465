"""forecast: ranges that rest on stored runs or a pilot, which hold what they say of the stored runs."""

from __future__ import annotations

import json
import math
import time
from itertools import pairwise
from typing import Any

import pytest

import reprl
from reprl.cli import forecast as forecasts
from reprl.execution.progress import Report, progress_bar
from reprl.kernels import tell_compiling
from reprl.lab.forecast import APART, Forecast, _Pilot, forecast
from reprl.learning.expected import WORLDS, stored_range
from reprl.learning.rounds import RoundFigures
from reprl.learning.settings import Settings
from tests.shop import Shop


def test_samples_that_were_not_enough_move_the_range_up() -> None:
    settings = Settings()
    ranges = [stored_range(settings, 100, beyond) for beyond in (0.0, 1e4, 1e6, 1e8)]
    assert all(one[i] <= two[i] for one, two in pairwise(ranges) for i in range(3))
    assert stored_range(settings, 100, 1e12) == (1e12, 2e12, math.inf)
    finer = stored_range(Settings(quality=0.99), 100)
    assert finer[1] == pytest.approx(100 * stored_range(settings, 100)[1])
    assert stored_range(Settings(epsilon=0.03), 100) == stored_range(settings, 100)  # its share of the gain: unknown


def test_a_pilot_that_is_sure_gives_a_narrow_range() -> None:
    mdp = reprl.make("combination-lock-v0", 3, n_states=3, n_actions=2)
    found = forecast(mdp, access="generative", seconds=10.0)
    low, typical, high = found.samples
    assert high == APART * typical == APART**2 * low
    assert found.basis.startswith("a pilot run finished after")
    assert found.seconds is not None
    assert 0.0 < found.seconds[0] <= found.seconds[2]


def test_time_grows_with_looks_and_with_samples() -> None:
    pilot = _Pilot([100, 200, 400], [1.0, 2.0, 3.0], sure=False, each=0.0)
    assert pilot.at(400) == pytest.approx(3.0)
    assert pilot.at(1600) == pytest.approx(5.0)
    slow = pilot._replace(each=0.005)
    assert slow.at(400) == pytest.approx(3.0)
    assert slow.at(1600) == pytest.approx(1.0 * 5 / 3 + 8.0)
    assert math.isinf(slow.at(math.inf))


def test_a_size_that_settings_fix_is_exact() -> None:
    mdp = reprl.make("gridworld-v0", 2, size=2)
    found = forecast(mdp, rule="paper", constants="scaled", samples=3200)
    assert found.samples == (100.0 * 32,) * 3
    assert found.seconds is None
    assert reprl.learn(mdp, rule="paper", constants="scaled", samples=3200).samples == 3200
    assert str(found) == "3,200 samples (the settings fix it)"


def test_a_limit_bounds_the_range() -> None:
    mdp = reprl.make("gridworld-v0", 2, size=2)
    found = forecast(mdp, seconds=0.0, max_samples=5000)
    assert max(found.samples) <= 5000
    assert found.seconds is None
    assert f"no pilot; 80 % of the stored runs on {WORLDS['episodic']} MDPs" in found.basis


def test_what_nothing_bounds_is_said_so() -> None:
    found = Forecast("episodic", (10.0, 20.0, math.inf), (1.0, 130.0, math.inf), "a test")
    assert str(found) == "10 to any number of samples, 20 typically; 1 s to any time on this machine (a test)"
    json.dumps(found.to_dict(), allow_nan=False)
    assert found.times(2).samples == (20.0, 40.0, math.inf)


def test_a_forecast_says_of_which_promise_it_is() -> None:
    mdp = reprl.make("gridworld-v0", 2, size=2)
    strict, weaker = (forecast(mdp, seconds=0.0, agreement=agreement) for agreement in (1.0, 0.95))
    assert strict.basis.endswith("strict promise")
    assert weaker.basis.endswith("all by parallel samples; approximate promise")
    assert weaker.samples[1] < strict.samples[1]
    recipe = reprl.register(mdp, pilot=40_000, quality=0.5, data_seed=3)
    followed = forecast(mdp, quality=0.5, candidate=recipe.published, seconds=0.5)
    assert followed.basis.endswith("registered promise")


@pytest.mark.parametrize("watched", [True, False])
def test_a_run_on_a_terminal_begins_with_a_line_and_plays_nothing_for_it(
    watched: bool, capsys: pytest.CaptureFixture[str], monkeypatch: Any
) -> None:
    monkeypatch.setattr(forecasts, "progress_wanted", lambda: watched)
    monkeypatch.setattr("reprl.lab.forecast._pilot", lambda *_: pytest.fail("no pilot: its samples would be lost"))
    mdp = reprl.make("gridworld-v0", 2, size=2)
    forecasts.announce(mdp, Settings(access="generative"), runs=2)
    told = capsys.readouterr().err.splitlines()
    tell_compiling(None)
    assert bool(told) is watched
    if watched:
        assert told[0] == "learning in gridworld-v0: 4 states, 4 actions, 2 runs"
        assert told[1].startswith("forecast of each: ")


def test_every_round_tells_how_sure_the_run_is() -> None:
    told: list[Any] = []
    how: Any = {"horizon": 5, "reward_range": Shop.REWARDS, "shared_seed": 1, "data_seed": 1, "max_samples": 1e5}
    result = reprl.learn(Shop, **how, progress=lambda phase, done, total: told.append((phase, done, total)))
    rounds = [phase.figures for phase, *_ in told if hasattr(phase, "figures")]
    assert told[0] == ("round 1", 0, 205), "a line at once"
    assert [one.round for one in rounds] == [*range(1, len(rounds) + 1)]
    assert [one.samples for one in rounds][-1] == result.samples, "no sample is thrown away"
    assert all(one.samples < two.samples for one, two in pairwise(rounds))
    for one in rounds[:-1]:
        low, typical, high = one.forecast
        assert one.samples < low <= typical <= high <= 1e5
        assert 0.0 < one.seconds_left[0] <= one.seconds_left[1]
        assert not one.sure
    assert all(one.forecast[0] <= two.forecast[0] for one, two in pairwise(rounds[:-1])), "tightened from below"
    last = rounds[-1]
    rehearsal = result.rehearsal
    assert rehearsal is not None
    assert (last.sure, last.forecast, last.agree, last.of) == (True, None, rehearsal.agree, rehearsal.of)
    figures = (last.value, last.best_value, last.baseline_value, last.expected_agreement)
    wanted = (result.value, result.best_value, result.baseline_value, result.expected_agreement)
    assert figures == pytest.approx(wanted)
    assert reprl.learn(Shop, **how).receipt.digest == result.receipt.digest, "to be told changes nothing"


def test_a_round_in_words() -> None:
    words = RoundFigures(3, 4920, 7, 20, 3, 5, 0.677, 11.81, 12.3, -6e-6, False, (21856.0, 3e4, 1e5), (4.9, 190.0))
    assert str(words) == (
        "round 3: 4,920 samples; 7 of 20 simulated teams agree, 3 of 5 pairs under fresh seeds; 67.7 % of decisions "
        "alike; earns 11.81 (best 12.3, baseline 0); 21,856 to 100,000 samples in all expected, 4.9 s to 3.2 min more"
    )
    alone = words._replace(forecast=(1e5, 1e5, 1e5), agree=None, of=None, pairs=None, expected_agreement=None)
    assert str(alone).endswith("all 100,000 samples expected, 4.9 s to 3.2 min more")
    assert "teams" not in str(alone)


def test_reports_stay_on_the_screen_of_a_terminal_as_long_as_the_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for force in ("", "1"):
        if force:
            monkeypatch.setenv("FORCE_COLOR", force)
            monkeypatch.setenv("COLUMNS", "120")
        with progress_bar(True, "episodes") as tell:
            assert tell is not None
            tell("round 1", 205, 205)
            tell(Report("round 1: 1,230 samples; [b]", None), 205, 205)
            tell("round 2", 0, 205)
            time.sleep(0.2 if force else 0.0)
        shown = capsys.readouterr().err
        assert ("round 1: 1,230 samples; [b]" in shown) is bool(force), "nothing when piped"
        assert ("round 2" in shown) is bool(force)
