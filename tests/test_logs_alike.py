"""Logs whose rows tell about every step: what the last step may tell, and whether the log itself allows it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import reprl
from reprl.cli.outcome import exit_code
from reprl.report.run import Run
from reprl.sources.logs.block_bootstrap import Digits
from reprl.sources.logs.read import Log, read_log
from reprl.sources.logs.spec import LogSpec
from reprl.sources.logs.tables import open_table
from tests.statistics import FALSE_ALARM, exceeds, keeps
from tests.test_same_world import naive

HORIZON = 4
RING: dict[str, Any] = {"states": range(3), "actions": range(2)}


def walk(episodes: int, seed: int, *, length: int = HORIZON, later: float = 0.8) -> dict[str, NDArray[Any]]:
    """Three states in a ring: "go" moves on with probability 0.8, from the third step on `later`; state 2 pays."""
    rng = np.random.default_rng(seed)
    state, rows = rng.integers(3, size=episodes), []
    for step in range(length):
        action = rng.integers(2, size=episodes)
        moves = (action == 1) & (rng.random(episodes) < (0.8 if step < 2 else later))
        following = (state + moves) % 3
        rows.append((np.arange(episodes), state, action, (state == 2).astype(float), following))
        state = following
    names = ("episode", "state", "action", "reward", "next_state")
    return {name: np.stack(column, axis=1).ravel() for name, column in zip(names, zip(*rows, strict=True), strict=True)}


def bare(log: dict[str, Any]) -> dict[str, Any]:
    """The same log without the column that says where rows lead."""
    return {name: column for name, column in log.items() if name != "next_state"}


def read(log: Any, **spec: Any) -> Log:
    return read_log(open_table(log), LogSpec(**({"horizon": HORIZON, **RING} | spec)), pooled=True)


# What the last step may tell


def test_a_last_row_that_does_not_say_where_it_led_tells_nothing_of_other_steps() -> None:
    log = walk(500, 1)
    whole, without = read(log), read(bare(log))
    early = read({name: column[np.arange(2000) % HORIZON < HORIZON - 1] for name, column in log.items()})
    assert (whole.rows, whole.beyond) == (2000, 0)
    assert (without.rows, without.beyond, without.cut) == (1500, 500, 0)
    ended = 3
    assert without.data.counts.visits[0, :ended].sum() == 1500
    assert not any(without.data.counts.successors(0, s, a)[ended] for s in range(3) for a in range(2))
    assert np.array_equal(without.data.counts.visits[0, :ended], early.data.counts.visits[0, :ended])


def test_the_value_does_not_depend_on_whether_the_last_row_says_where_it_led() -> None:
    """With "ended" after every last row a log of four steps would say that one row of four ends: 2.78 became 1.70."""
    told: dict[str, Any] = {"horizon": HORIZON, **RING, "stationary": True, "shared_seed": 3}
    whole, without = (reprl.learn_log(log, **told) for log in (walk(4000, 1), bare(walk(4000, 1))))
    assert whole.policy == without.policy
    assert whole.guarantee.status == without.guarantee.status == "rehearsed"
    assert whole.coverage is not None
    assert without.coverage is not None
    assert without.coverage.value == pytest.approx(whole.coverage.value, abs=0.05)
    assert without.coverage.beyond == 4000


def test_longer_episodes_and_those_that_are_done_do_not_decide_which_last_rows_count() -> None:
    """Either would choose rows by what followed them."""
    longer = bare(walk(300, 2, length=HORIZON + 2))
    assert np.array_equal(read(longer).data.counts.hits, read(bare(walk(300, 2))).data.counts.hits)
    done = np.arange(300 * HORIZON) % HORIZON == HORIZON - 1
    some = {**bare(walk(300, 2)), "done": done & (np.arange(done.size) % 8 == 3)}
    assert np.array_equal(read(some).data.counts.hits, read(bare(walk(300, 2))).data.counts.hits)


def test_a_last_row_must_say_where_it_led_if_there_is_a_column_for_it() -> None:
    log: dict[str, Any] = {name: column.tolist() for name, column in walk(2, 1).items()}
    log["next_state"][HORIZON - 1] = None
    with pytest.raises(reprl.ReprlError, match=r"row 4\b.*next_state.*must say where the last row"):
        read(log)
    assert read_log(open_table(log), LogSpec(horizon=HORIZON, **RING)).rows == 2 * HORIZON  # steps apart: of no account


def test_without_a_last_step_a_log_must_say_whether_episodes_ended() -> None:
    """A log that stops is not one whose episodes end: with "ended" after every last row values would be too low."""
    log = bare(walk(20, 1))
    with pytest.raises(
        reprl.ReprlError, match=r"column next_state, done or terminated for a discount.*got episode, state, action"
    ):
        reprl.learn_log(log, discount=0.9, **RING)
    log["done"] = np.arange(80) % HORIZON == HORIZON - 1
    with pytest.raises(reprl.ReprlError, match="must say what 'done' after 4 rows is"):
        read(log, horizon=1, discount=0.9)
    assert read(log, horizon=1, discount=0.9, length=4).rows == 60  # a time limit, after which nobody knows
    assert read(log, horizon=1, discount=0.9, done_at_limit="terminated").rows == 80


def test_one_step_leads_nowhere_and_counts() -> None:
    assert read(bare(walk(50, 1, length=1)), horizon=1).rows == 50


# Whether the log allows it


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.lists(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 6)), max_size=12), max_size=5))
def test_digits_count_steps(chunks: list[list[tuple[int, int]]]) -> None:
    digits, seen = Digits(), [pair for chunk in chunks for pair in chunk]
    for chunk in chunks:
        columns = np.array(chunk, dtype=np.int64).reshape(-1, 2)
        digits.add(columns[:, 0], columns[:, 1])
    names = np.array([3, 1, 0, 2, 6, 5, 4])
    found = digits.named(names)
    assert digits.steps == max((step + 1 for step, _ in seen), default=0)
    for thing in range(7):
        steps = [step for step, other in seen if other == thing]
        assert found[0, names[thing]] == len(steps)
        for digit in range(found.shape[0] - 1):
            assert found[1 + digit, names[thing]] == sum(step >> digit & 1 for step in steps)
    assert found.shape[0] == 1 + max((step.bit_length() for step, _ in seen), default=0)


@pytest.mark.parametrize(("spec", "digits"), [({}, 2), ({"horizon": 3}, 2), ({"horizon": 1, "discount": 0.9}, 62)])
def test_the_evidence_is_that_of_the_formula(spec: dict[str, Any], digits: int) -> None:
    log = walk(30, 5)
    found, kept = read(log, **spec), spec.get("horizon", HORIZON) if "discount" not in spec else HORIZON
    assert found.steps is not None
    columns = (log[name] for name in ("state", "action", "next_state", "reward"))
    rows: list[tuple[float, ...]] = [(0, int(s), int(a), int(y), float(r)) for s, a, y, r in zip(*columns, strict=True)]
    owned = 0.0
    for digit in range(2):
        sides = [
            [row for i, row in enumerate(rows) if i % HORIZON < kept and (i % HORIZON) >> digit & 1 == side]
            for side in (0, 1)
        ]
        owned += math.exp(naive(sides[0], sides[1], (1, 4, 2))) / digits
    assert found.steps.judge().log_evidence == pytest.approx(math.log(owned), abs=1e-9)


@pytest.mark.statistical
def test_steps_that_are_alike_are_hardly_ever_told_apart() -> None:
    """400 logs at level 0.1: false alarm 1e-6; and 20 logs that drift, the control."""
    level, logs = 0.1, 400

    def caught(seed: int, later: float) -> bool:
        steps = read(walk(200, seed, later=later)).steps
        assert steps is not None
        return steps.judge().log_evidence >= -math.log(level)

    assert keeps(sum(caught(seed, 0.8) for seed in range(logs)), logs, level, power=0.85)
    assert exceeds(sum(caught(seed, 0.4) for seed in range(20)), 20, level) < FALSE_ALARM


@pytest.mark.parametrize("told", [{"horizon": HORIZON, "stationary": True}, {"discount": 0.9}])
def test_a_log_that_contradicts_its_reader_promises_nothing(told: dict[str, Any]) -> None:
    found = reprl.learn_log(walk(4000, 1, later=0.5), **RING, **told, shared_seed=3)
    instead = "stationary=False" if "stationary" in told else "a horizon instead of a discount"
    for promised in (found.guarantee.quality, found.guarantee.same):
        assert promised.status == "none"
        assert promised.source.startswith("the log contradicts that all steps are alike (in state ")
        assert "at steps 2, 3" in promised.source
        assert promised.source.endswith(f": {instead}")
    assert exit_code(found) == 1
    assert "the log contradicted stationary dynamics" in Run.of(found).warning
    apart = reprl.learn_log(walk(20_000, 1, later=0.5), **RING, horizon=HORIZON, shared_seed=3)
    assert apart.guarantee.status == "rehearsed"  # with steps apart it is a world like others
