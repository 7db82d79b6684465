"""How episodes of a log end: terminated, truncated by a time limit, or censored, and what is refused."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reprl
from reprl.cli.app import main
from reprl.errors import InputError
from reprl.sources.logs.ends import DONE, GOES_ON, TERMINATED, TRUNCATED, UNSAID, Lengths, combine_flags, resolve_ends
from reprl.sources.logs.read import read_log
from reprl.sources.logs.spec import LogSpec
from reprl.sources.logs.tables import open_table
from tests.simulated_logs import HORIZON, make_faulty, make_rows, make_world
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
    assert flagged.guarantee == plain.guarantee
    assert flagged.guarantee.status == "rehearsed"
    assert flagged.coverage == plain.coverage
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


def test_done_in_some_of_the_longest_episodes_is_an_end() -> None:
    log, done = walk(500, 1), np.arange(2000) % 8 == 3
    spec = LogSpec(horizon=4, states=("0", "1", "2"), actions=("0", "1"))
    lengths = Lengths(np.array([4]), np.array([[0, 250, 0, 0, 250]]))
    assert resolve_ends(open_table(log | {"done": done}), spec, lengths, pooled=True).limit == -1
    same = Lengths(np.array([4]), np.array([[0, 0, 0, 0, 500]]))
    assert resolve_ends(open_table(log | {"done": done}), spec, same, pooled=True).limit == 3
    mixed = Lengths(np.array([2, 4]), np.array([[0, 0, 0, 0, 100], [0, 0, 0, 0, 400]]))  # some ended, some were stopped
    found = resolve_ends(open_table(log | {"done": done}), spec, mixed, pooled=True)
    assert (found.limit, found.kept) == (-1, 3)


def test_a_discounted_log_with_a_time_limit_goes_on() -> None:
    """A continuing world whose episodes are cut into fours: with ends after every fourth row it would be worth less."""
    log, done = walk(3000, 1), np.arange(12000) % 4 == 3
    told: dict[str, Any] = {"horizon": None, "discount": 0.8}
    plain, flagged = ring(log, **told), ring(log | {"done": done}, **told)
    assert plain.coverage is not None
    assert flagged.coverage is not None
    assert flagged.coverage.value == pytest.approx(plain.coverage.value, abs=1e-9)
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
    with pytest.raises(InputError, match="done_at_limit must be one of truncated, terminated; got 'x'"):
        ring(walk(10, 1), done_at_limit="x")
    spec = LogSpec(horizon=2, states=("x",), actions=("a",))
    told = LogSpec(horizon=2, states=("x",), actions=("a",), early_ends="censored", done_at_limit="truncated")
    assert "early_ends" not in spec.environment({}).options
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
