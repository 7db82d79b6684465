"""How episodes of a log end: terminated, truncated by a time limit, or censored, and what is refused."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reprl
from experiments.faulty_logs.worlds import HORIZON, make_faulty, make_rows, make_world
from reprl.cli.app import main
from reprl.errors import InputError
from reprl.sources.logs.ends import (
    DONE,
    GOES_ON,
    TERMINATED,
    TRUNCATED,
    UNSAID,
    Lengths,
    combine_flags,
    resolve_ends,
    seems_limited,
)
from reprl.sources.logs.read import read_log
from reprl.sources.logs.spec import LogSpec
from reprl.sources.logs.tables import open_table
from tests.test_logs import outcomes_of
from tests.test_logs_alike import RING, bare, walk


def ring(log: Any, **options: Any) -> reprl.LearnResult:
    return reprl.learn_log(log, **{"horizon": 4, **RING, "shared_seed": 3} | options)


def dropped(log: dict[str, Any], chance: float, seed: int) -> dict[str, Any]:
    """The log of people who stop being observed with this chance after every row."""
    rng, episodes = np.random.default_rng(seed), int(log["episode"][-1]) + 1
    steps = rng.geometric(chance, episodes).clip(max=4)
    keep = np.arange(log["episode"].size) % 4 < np.repeat(steps, 4)
    return {name: column[keep] for name, column in log.items()}


# Episodes that stop early


def test_episodes_that_stop_without_a_flag_are_not_taken_as_over() -> None:
    """With 10 % dropout a log that says nothing of ends was read as one of episodes that are over, silently."""
    cut = dropped(walk(3000, 1), 0.1, 2)
    with pytest.raises(
        InputError, match=r"\d+ of 3,000 episodes stop before step 4, and no column says why \(early_ends="
    ):
        ring(bare(cut))
    whole, told, wrong = (
        ring(walk(3000, 1)),
        ring(bare(cut), early_ends="censored"),
        ring(bare(cut), early_ends="terminated"),
    )
    assert whole.coverage is not None
    assert told.coverage is not None
    assert wrong.coverage is not None
    assert told.coverage.value == pytest.approx(whole.coverage.value, abs=0.06)
    assert wrong.coverage.value < whole.coverage.value - 0.3  # what it was
    assert (
        told.coverage.cut
        == told.coverage.beyond
        == len({*cut["episode"]}) - int((np.bincount(cut["episode"]) == 4).sum())
    )


def test_with_next_states_an_episode_that_stops_is_counted_and_said() -> None:
    cut = dropped(walk(3000, 1), 0.1, 2)
    found = ring(cut)
    assert found.coverage is not None
    assert found.coverage.beyond == 0
    assert found.coverage.cut > 500
    assert found.check is not None
    assert found.check.worst is not None
    assert "episodes stop early, not done: taken as dropout" in found.check.worst.what
    assert found.receipt.findings is not None
    assert found.receipt.findings[0] == found.check.worst


def test_all_episodes_shorter_than_the_horizon() -> None:
    with pytest.raises(InputError, match="all episodes stop before the horizon 9, the longest after 4 rows"):
        ring(bare(walk(200, 1)), horizon=9)


# Time limits


@pytest.mark.parametrize("next_states", [True, False])
def test_done_at_the_time_limit_does_not_contradict_steps_that_are_alike(next_states: bool) -> None:
    """Gymnasium's convention. It was read as a law that depends on the step, and every promise was withdrawn."""
    log = walk(3000, 1) if next_states else bare(walk(3000, 1))
    done = np.arange(12000) % 4 == 3
    plain, flagged = ring(log, stationary=True), ring(log | {"done": done}, stationary=True)
    assert flagged.policy == plain.policy
    assert flagged.guarantee.status == "rehearsed"
    assert flagged.coverage is not None
    assert flagged.coverage.beyond == 3000  # the rows of the last step, whatever they say
    assert flagged.recipe.environment.options["done_at_limit"] == "unknown"
    stopped = ring(log | {"done": done}, stationary=True, done_at_limit="truncated")
    assert stopped.coverage == plain.coverage
    told = ring(log | {"done": done}, stationary=True, done_at_limit="terminated")
    if next_states:
        assert told.guarantee.status == "none"  # as it was
        assert "steps" in told.guarantee.source or told.drift


def test_a_flag_that_names_the_time_limit_needs_no_guess() -> None:
    log, stop = walk(500, 1), np.arange(2000) % 4 == 3
    spec = LogSpec(horizon=4, states=("0", "1", "2"), actions=("0", "1"))
    plain = read_log(open_table(log), spec, pooled=True).data
    for more in ({"truncated": stop}, {"terminated": 0 * stop, "truncated": stop}, {"done": stop, "truncated": stop}):
        assert read_log(open_table(log | more), spec, pooled=True).data.counts == plain.counts
    over = read_log(open_table(log | {"terminated": stop}), spec, pooled=True).data
    assert over.counts != plain.counts


def lengths_of(*rows: tuple[int, int, int]) -> Lengths:
    """From (length, episodes that go on, episodes that are done)."""
    return Lengths(np.array([length for length, _, _ in rows]), np.array([[0, on, 0, 0, done] for _, on, done in rows]))


@pytest.mark.parametrize("word", [None, "unknown", "truncated", "terminated"])
def test_logs_of_any_size_are_read_alike(word: str | None) -> None:
    """It was read off the longest episodes what `done` at the last step is: two teams could read it differently."""
    spec = LogSpec(horizon=4, states=("0", "1", "2"), actions=("0", "1"), done_at_limit=word)
    table = open_table(walk(5, 1) | {"done": np.arange(20) % 4 == 3})
    found = {
        resolve_ends(table, spec, lengths, pooled=True)._replace(problem="", skewed=0)
        for lengths in (
            lengths_of((4, 0, 500)),
            lengths_of((4, 250, 250)),
            lengths_of((1, 0, 2), (3, 1, 0)),
            lengths_of((2, 0, 100), (4, 0, 400)),
            lengths_of((2, 0, 1), (4, 0, 1)),
            lengths_of((9, 3, 40)),
        )
    }
    assert len(found) == 1
    (reading,) = found
    expected = {"truncated": (4, 3), "terminated": (4, -1)}.get(word or "", (3, -1))
    assert (reading.kept, reading.limit) == expected


def test_a_time_limit_that_nobody_has_declared_is_refused() -> None:
    log = walk(50, 1) | {"done": np.arange(200) % 4 == 3}
    words = (
        r"all of them are done there \(horizon=4 if .* columns=\{'truncated': 'done'\} if .*'terminated' if they are"
    )
    for options in ({"horizon": 9, "stationary": True}, {"horizon": None, "discount": 0.8}):
        with pytest.raises(InputError, match=words):
            ring(log, **options)
        assert ring(log, **options, done_at_limit="terminated").policy is not None
        assert ring(log, **options, columns={"truncated": "done", "done": None}).policy is not None
    worst = reprl.check_log(log, discount=0.8).worst
    assert worst is not None
    assert worst.severity == "error"
    with pytest.raises(InputError, match="horizon must be given, the time limit in rows, with a discount"):
        ring(log, horizon=None, discount=0.8, done_at_limit="truncated")


def test_ends_by_chance_do_not_look_like_a_time_limit() -> None:
    rng = np.random.default_rng(3)
    for chance in (0.05, 0.3, 0.7):
        for episodes in (2, 20, 200, 5000):
            length, number = np.unique(rng.geometric(chance, episodes), return_counts=True)
            rows = zip(length.tolist(), [0] * length.size, number.tolist(), strict=True)
            assert not seems_limited(lengths_of(*rows)), (chance, episodes)
    assert seems_limited(lengths_of((2, 0, 30), (4, 0, 20)))
    assert not seems_limited(lengths_of((2, 0, 30), (4, 1, 20)))


def test_a_word_that_the_log_contradicts_is_a_bias() -> None:
    case = make_rows(make_world(1, 0.05), 300, 2, HORIZON)
    ended = case["terminated"].astype(bool)
    log = {name: column for name, column in case.items() if name != "terminated"}
    log |= {"done": ended | (case["step"] == HORIZON - 1), "next_state": np.where(ended, 0, case["next_state"])}
    found = reprl.check_log(log, horizon=HORIZON, stationary=True, done_at_limit="truncated")
    assert found.biased
    assert "episodes are done earlier, so that some may have ended there too" in str(found.worst)
    plain = reprl.check_log(log, horizon=HORIZON, stationary=True)
    assert not plain.biased
    assert any("row 6 of every episode is left out: 'done' there may be" in finding.what for finding in plain.findings)


def test_a_discounted_log_with_a_time_limit_goes_on() -> None:
    """A continuing world whose episodes are cut into fours: with ends after every fourth row it would be worth less."""
    log, done = walk(3000, 1), np.arange(12000) % 4 == 3
    told: dict[str, Any] = {"horizon": 4, "discount": 0.8}
    plain, flagged = ring(log, **told), ring(log | {"done": done}, **told, done_at_limit="truncated")
    assert plain.coverage is not None
    assert flagged.coverage is not None
    assert flagged.coverage.value == pytest.approx(plain.coverage.value, abs=1e-9)
    left_out = ring(log | {"done": done}, **told).coverage
    assert left_out is not None
    assert left_out.value == pytest.approx(plain.coverage.value, abs=0.1)
    over = ring(log | {"done": done}, **told, done_at_limit="terminated")
    assert over.coverage is not None
    assert over.coverage.value < plain.coverage.value - 0.3


# Reading, by hand and by a plain loop


def test_flags_are_combined() -> None:
    one = np.array([0, 1, 0, 1])
    two = np.array([0, 0, 1, 1])
    assert combine_flags({}, 4).tolist() == [UNSAID] * 4
    assert combine_flags({"done": one}, 4).tolist() == [GOES_ON, DONE, GOES_ON, DONE]
    assert combine_flags({"done": one | two, "truncated": two}, 4).tolist() == [
        GOES_ON,
        TERMINATED,
        TRUNCATED,
        TRUNCATED,
    ]
    assert combine_flags({"done": one | two, "terminated": two}, 4).tolist() == [
        GOES_ON,
        TRUNCATED,
        TERMINATED,
        TERMINATED,
    ]
    assert combine_flags({"terminated": one, "truncated": two}, 4).tolist() == [
        GOES_ON,
        TERMINATED,
        TRUNCATED,
        TERMINATED,
    ]


def plain_reading(episodes: Any, horizon: int, early: str) -> Counter[Any]:
    """What counts of episodes [(state, action, reward)…] that end as told, by a loop; no next states are known."""
    out: Counter[Any] = Counter()
    longest = max(len(steps) for steps, _ in episodes)
    limit = min(longest, horizon)
    stopped = limit < horizon and limit > 1 and any(end == "truncated" and len(s) == limit for s, end in episodes)
    for steps, end in episodes:
        for h, (state, action, reward) in enumerate(steps):
            if h >= horizon or (stopped and h >= limit - 1):
                continue
            if h + 1 < len(steps):
                following = steps[h + 1][0]
            elif h == horizon - 1 or end == "terminated" or (end == "none" and early == "terminated"):
                following = "ended"  # at the last step it is of no account
            else:
                continue
            out[h, state, action, following, reward] += 1
    return out


@given(
    st.lists(
        st.tuples(
            st.lists(
                st.tuples(st.sampled_from("xyz"), st.sampled_from("ab"), st.sampled_from([0.0, 1.0])),
                min_size=1,
                max_size=5,
            ),
            st.sampled_from(["terminated", "truncated", "none"]),
        ),
        min_size=1,
        max_size=6,
    ),
    st.integers(1, 5),
    st.sampled_from(["terminated", "censored"]),
)
@settings(max_examples=150, deadline=None)
def test_reading_ends_is_the_plain_loop(episodes: Any, horizon: int, early: str) -> None:
    rows: dict[str, list[Any]] = {
        name: [] for name in ("episode", "state", "action", "reward", "terminated", "truncated")
    }
    for number, (steps, end) in enumerate(episodes):
        for i, (state, action, reward) in enumerate(steps):
            last = i + 1 == len(steps)
            row = (number, state, action, reward, last and end == "terminated", last and end == "truncated")
            for name, value in zip(rows, row, strict=True):
                rows[name].append(value)
    spec = LogSpec(horizon=horizon, states=tuple("xyz"), actions=tuple("ab"), early_ends=early)
    found = read_log(open_table(rows), spec)
    expected = plain_reading(episodes, horizon, early)
    ended = {k: v for k, v in outcomes_of(found, spec).items() if k[0] < horizon - 1}
    assert ended == {k: v for k, v in expected.items() if k[0] < horizon - 1}
    assert found.rows == sum(expected.values())


def test_words_about_ends_are_checked_and_kept() -> None:
    with pytest.raises(InputError, match="early_ends must be one of terminated, censored; got 'over'"):
        ring(walk(10, 1), early_ends="over")
    with pytest.raises(InputError, match="done_at_limit must be one of unknown, truncated, terminated; got 'x'"):
        ring(walk(10, 1), done_at_limit="x")
    spec = LogSpec(horizon=2, states=("x",), actions=("a",))
    told = LogSpec(horizon=2, states=("x",), actions=("a",), early_ends="censored", done_at_limit="truncated")
    assert spec.environment({}).options["early_ends"] is None
    assert LogSpec.of(told.environment({})) == told
    assert told.digest != spec.digest


def test_a_second_team_reads_ends_as_the_recipe_says() -> None:
    cut = bare(dropped(walk(800, 1), 0.1, 2))
    first = ring(cut, early_ends="censored")
    second = first.recipe.learn_log(bare(dropped(walk(800, 4), 0.1, 5)))
    assert second.coverage is not None
    assert second.coverage.cut > 0


def test_the_command_takes_ends(tmp_path: Any, capsys: Any) -> None:
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    path = str(tmp_path / "log.csv")
    pandas.DataFrame(bare(dropped(walk(300, 1), 0.1, 2))).to_csv(path, index=False)
    assert main(["learn", "--log", path, "--horizon", "4"]) == 2
    assert "early_ends='terminated'" in capsys.readouterr().err
    assert main(["learn", "--log", path, "--horizon", "4", "--early-ends", "censored"]) in (0, 1)
    assert "episodes stop early" in capsys.readouterr().out


def test_ends_and_stops_in_one_log_without_next_states_are_said_to_be_skewed() -> None:
    case = make_faulty("flagged dropout", 1)
    found = reprl.check_log(case.log, horizon=HORIZON, early_ends="censored")
    assert found.biased
    assert found.worst is not None
    assert "ends look more frequent than they are" in found.worst.what
    log = make_rows(make_world(1, 0.05), 300, 2, HORIZON)
    assert not reprl.check_log(log | {"next_state": log["next_state"].clip(0)}, horizon=HORIZON).biased
