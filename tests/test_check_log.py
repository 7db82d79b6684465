"""check_log: what is found in a log, what is not, and what a user who has not looked is told."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import binomtest

import reprl
from experiments.faulty_logs.worlds import FAULTS, SOUND, judge, make_faulty
from reprl.cli.app import main
from reprl.errors import InputError, LogWarning
from reprl.sources.logs import scan
from reprl.sources.logs.check import SEVERITIES, LogCheck
from reprl.sources.logs.copies import expected_pairs
from reprl.sources.logs.label_encoding import near_duplicates
from reprl.sources.logs.read import read_log
from reprl.sources.logs.scan import scan_of
from reprl.sources.logs.spec import LogSpec
from reprl.sources.logs.tables import open_table
from tests.clinic_log import ACTIONS, HORIZON, STATES, make_log

CLINIC: dict[str, Any] = {"horizon": HORIZON, "states": STATES, "actions": ACTIONS}


def copied(log: dict[str, Any], episodes: int, times: int) -> dict[str, Any]:
    """The first episodes of a log, so many times."""
    out = {name: np.tile(column[: episodes * HORIZON], times) for name, column in log.items()}
    return out | {"episode": np.repeat(np.arange(episodes * times), HORIZON)}


def said(found: LogCheck) -> str:
    return "\n".join(map(str, found.findings))


def test_a_sound_log_is_described_and_nothing_is_wrong_with_it() -> None:
    found = reprl.check_log(make_log(500, 1), horizon=HORIZON)
    assert (found.rows, found.episodes, found.worst, found.biased) == (1500, 500, None, False)
    assert found.lengths == {"shortest": 3, "median": 3, "longest": 3}
    assert found.ends == {"terminated": 0, "truncated": 0, "done": 0, "early": 0, "full": 500}
    assert (found.n_states, found.n_actions, found.rewards) == (3, 4, (0.0, 1.0))
    assert found.support["possible"] == 12
    assert found.support["supported"] == 9  # surgery is too rare
    assert 0.0 < found.support["removed_rows"] < 0.05
    assert 0.35 < found.practice["usual_share"] < 0.45
    assert 3.0 < found.practice["actions_in_effect"] < 3.4
    assert "nothing is wrong" in repr(found)
    assert json.loads(json.dumps(found.to_dict()))["biased"] is False


@pytest.mark.parametrize(("episodes", "times"), [(300, 60), (200, 2), (25, 3)])
def test_copied_episodes_are_noticed(episodes: int, times: int) -> None:
    """300 episodes that were copied 60 times gave intervals that missed 6 of 6."""
    log = copied(make_log(episodes, 1), episodes, times)
    found = reprl.check_log(log, horizon=HORIZON)
    assert found.biased
    assert f"every episode stands {times} times or a multiple of it" in said(found)
    assert not reprl.check_log(make_log(episodes, 1), horizon=HORIZON).biased


def test_learning_says_the_worst_line() -> None:
    log = copied(make_log(60, 1), 60, 20)
    with pytest.warns(LogWarning, match="bias: every episode stands 20 times"):
        result = reprl.learn_log(log, **CLINIC)
    assert result.check is not None
    assert result.check.biased
    assert result.receipt.findings is not None
    assert result.receipt.findings[0].severity == "bias"
    assert "every episode stands 20 times" in result._repr_html_()


@pytest.mark.parametrize("order", ["block", "doubled"])
def test_some_episodes_that_were_copied_are_noticed_by_their_order(order: str) -> None:
    """In a small world equal episodes are no wonder, and copies are told by what stands beside them."""
    log = make_log(3000, 1)
    episode = np.concatenate([log["episode"], 3000 + np.arange(900).repeat(HORIZON)])
    more = {name: np.concatenate([column, column[: 900 * HORIZON]]) for name, column in log.items()} | {
        "episode": episode
    }
    if order == "doubled":
        place = np.lexsort((more["step"], episode, np.where(episode >= 3000, episode - 3000, episode)))
        more = {name: column[place] for name, column in more.items()}
    assert reprl.check_log(more, horizon=HORIZON).biased
    assert not reprl.check_log(log, horizon=HORIZON).biased


@pytest.mark.parametrize("seed", range(5))
def test_a_log_explains_its_own_coincidences(seed: int) -> None:
    log = make_log(4000, seed)
    table, spec = open_table(log), LogSpec(**CLINIC)
    pairs, expected = scan_of(table).copies.pairs, expected_pairs(read_log(table, spec).data)
    assert pairs == pytest.approx(expected, rel=0.1)
    rows = list(
        zip(
            *(log[name].reshape(-1, HORIZON).tolist() for name in ("state", "action", "reward", "next_state")),
            strict=True,
        )
    )
    contents = np.unique([repr(row) for row in rows], return_counts=True)[1]
    assert pairs == (contents * (contents - 1) // 2).sum()


def test_copies_are_told_from_a_share_of_many_episodes(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = scan_of(open_table(make_log(8000, 2))).copies
    monkeypatch.setattr(scan, "MOST_HASHES", 1000)
    part = scan_of(open_table(make_log(8000, 2))).copies
    assert part.neighbours == whole.neighbours
    assert part.pairs == pytest.approx(whole.pairs, rel=0.5)
    assert scan_of(open_table(copied(make_log(2000, 1), 2000, 4))).copies.factor == 4


def test_chunks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    log = make_faulty("flagged dropout", 2).log
    whole = scan_of(open_table(log))
    for size in (1, 2, 7, 100):
        monkeypatch.setattr("reprl.sources.logs.tables.CHUNK", size)
        part = scan_of(open_table({name: column[:400] for name, column in log.items()}))
        monkeypatch.setattr("reprl.sources.logs.tables.CHUNK", 1 << 17)
        whole = scan_of(open_table({name: column[:400] for name, column in log.items()}))
        assert part.copies == whole.copies
        assert (part.lengths.number == whole.lengths.number).all()
        assert part._replace(lengths=whole.lengths) == whole


@pytest.mark.parametrize(
    ("labels", "groups"),
    [
        (("run", "run ", "Run", "walk"), (("run", "run ", "Run"),)),
        (("a-b", "a_b", "a b", "ab"), (("a-b", "a_b", "a b"),)),
        (("3.50", "3.5", "3,5", "03", "3"), (("3.50", "3.5", "3,5"), ("03", "3"))),
        (("-1", "1", "- 1"), (("-1", "- 1"),)),
        (("ﬁt", "fit"), (("ﬁt", "fit"),)),
        (("a", "b", "1", "2"), ()),
    ],
)
def test_near_duplicates(labels: tuple[str, ...], groups: Any) -> None:
    assert near_duplicates(labels) == groups


def test_what_is_missing_is_counted_with_a_recipe() -> None:
    log = {name: column.astype(object) for name, column in make_log(200, 1).items()}
    log["state"][[5, 9]], log["action"][3], log["reward"][7] = "NA", None, np.nan
    found = reprl.check_log(log | {"terminal": log["step"] * 0, "ward": log["step"]}, horizon=HORIZON)
    assert found.missing == {"state": 2, "action": 1, "reward": 1}
    assert "column 'state' in 2 of 600 rows, first in row 6 → leave these episodes out" in said(found)
    assert "column 'reward' in 1 of 600 rows, first in row 8 → write the reward" in said(found)
    assert "column 'terminal' looks like the end of an episode" in said(found)
    assert found.unused == ("terminal", "ward")
    assert [f.severity for f in found.findings] == sorted((f.severity for f in found.findings), key=SEVERITIES.index)
    assert found.biased


def test_what_is_refused_by_row_is_a_finding() -> None:
    log = make_log(200, 1)
    log["step"][4] = 7
    found = reprl.check_log(log, horizon=HORIZON)
    assert found.worst is not None
    assert found.worst.severity == "error"
    assert "row 5, column 'step' must be 1" in found.worst.what


def test_ranges_and_limits_are_named() -> None:
    log = make_log(300, 1)
    found = reprl.check_log(log | {"reward": log["reward"] * 30 - 10})
    assert "rewards go from -10 to 20 → reward_range=(-10, 20)" in said(found)
    longer = reprl.check_log(log | {"done": log["step"] == 2}, horizon=5)
    assert longer.biased
    assert "300 of 300 episodes are done after 3 rows, before the horizon 5: a time limit? → horizon=3" in said(longer)
    sure = reprl.check_log(log | {"done": log["step"] == 2}, horizon=5, done_at_limit="terminated")
    assert not sure.biased
    assert "are the fewest that anything is promised of" in said(reprl.check_log(make_log(40, 1)))


def test_the_command(tmp_path: Path, capsys: Any) -> None:
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    log = pandas.DataFrame(make_log(300, 1) | {"ward": 1})
    log.rename(columns={"state": "health"}).to_csv(tmp_path / "log.csv", index=False)
    told = ["check-log", str(tmp_path / "log.csv"), "--horizon", "3", "--column", "state=health"]
    assert main(told) == 0
    shown = capsys.readouterr().out
    assert "900 in 300 episodes" in shown
    assert "ward" in shown
    assert "nothing is wrong with this log" in shown
    assert main([*told, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["unused"] == ["ward"]
    pandas.concat([log, log.assign(episode=log.episode + 300)]).to_csv(tmp_path / "twice.csv", index=False)
    assert main(["check-log", str(tmp_path / "twice.csv")]) == 1
    assert "every episode stands 2 times" in capsys.readouterr().out
    assert main(["check-log", str(tmp_path / "none.csv")]) == 2
    assert main(["learn", "--log", str(tmp_path / "twice.csv"), "--horizon", "3"]) in (0, 1)
    out = capsys.readouterr()
    assert "bias: every episode stands 2 times" in out.out
    assert "Warning" not in out.err


# Labels


def test_numbers_are_one_label_in_every_form(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    text = "episode,step,state,action,reward,done\n0,0.0,3,1.0,0.5,0.0\n0,1.0,3.0,1,1,1.0\n1,0,3,1,0,0\n1,1,3,1,0,1\n"
    (tmp_path / "log.csv").write_text(text)
    found = reprl.check_log(tmp_path / "log.csv")
    assert (found.n_states, found.n_actions, found.episodes) == (1, 1, 2)
    log = {
        "episode": [0, 0],
        "state": np.array([3, "3"], dtype=object),
        "action": np.array([1.0, 1], dtype=object),
        "reward": [0, 0],
    }
    assert reprl.check_log(log).n_states == 1
    log["state"] = np.array([3, "x"], dtype=object)
    with pytest.raises(InputError, match="must be a number, as in the rows before, got a text, 'x'"):
        reprl.check_log(log)


@pytest.mark.parametrize("nothing", ["", "NA", "NaN", "null", "None", "  "])
def test_what_stands_for_nothing_is_no_state(tmp_path: Path, nothing: str) -> None:
    pytest.importorskip("pyarrow")
    (tmp_path / "log.csv").write_text(f"episode,state,action,reward\n0,x,a,0\n1,{nothing},a,0\n")
    frame = {"episode": [0, 1], "state": ["x", nothing], "action": ["a", "a"], "reward": [0.0, 0.0]}
    for log in (tmp_path / "log.csv", frame):
        with pytest.raises(
            InputError, match="row 2, column 'state' must not be empty, got nothing: leave the episode out"
        ):
            reprl.learn_log(log, horizon=1)
        assert reprl.check_log(log).missing == {"state": 1}


def test_an_action_may_be_called_none() -> None:
    log = {"episode": [0, 1], "state": ["x", "x"], "action": ["None", "drug"], "reward": [0.0, 1.0]}
    found = reprl.check_log(log, actions=["None", "drug"])
    assert found.missing == {}
    assert reprl.learn_log(log, horizon=1, actions=["None", "drug"]).counts.visits[0, 0].tolist() == [1, 1]


@pytest.mark.parametrize("sign", [";", "\t", "|"])
def test_other_separators_and_decimal_commas_are_found(tmp_path: Path, sign: str) -> None:
    pytest.importorskip("pyarrow")
    text = (
        "episode,state,action,reward\n0,x,a,0;5\n1,y,a,1\n".replace(",", sign).replace("0;5", "0,5")
        if sign != ";"
        else ""
    )
    text = text or "episode;state;action;reward\n0;x;a;0,5\n1;y;a;1\n"
    (tmp_path / "log.csv").write_text(text)
    found = reprl.check_log(tmp_path / "log.csv")
    assert (found.rows, found.n_states, found.rewards) == (2, 2, (0.5, 1.0))
    (tmp_path / "log.csv").write_text('episode,state,action,reward\n0,x,a,"0,5"\n')
    with pytest.raises(InputError, match=r"got '0,5' \(decimal commas are read where ';' separates the columns\)"):
        reprl.learn_log(tmp_path / "log.csv", horizon=1)


# Two hundred logs, of which these are the first; the others are for `make test-long`


def never_silent(seeds: range) -> None:
    """Fail if a fault is not said and the interval misses too often; and if a sound log is complained of."""
    silent: list[tuple[str, int, bool]] = []
    for fault in FAULTS:
        for seed in seeds:
            found = judge(make_faulty(fault, seed))
            if fault in SOUND:
                assert not found.said, (fault, seed, found)
            elif "told" not in fault:
                assert found.said, (fault, seed)
            if found.said in ("", "warning") and found.holds is not None:
                silent.append((fault, seed, found.holds))
    missed = [each for each in silent if not each[2]]
    assert binomtest(len(missed), len(silent), 0.1, alternative="greater").pvalue > 1e-6, missed


@pytest.mark.slow
def test_faults_are_never_silent() -> None:
    never_silent(range(1))


@pytest.mark.long
def test_two_hundred_logs_are_never_silent() -> None:
    never_silent(range(1, 17))


def test_reading_tells_how_far_it_is(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    log = pandas.DataFrame(make_log(400, 1))
    log.to_csv(tmp_path / "log.csv", index=False)
    log.to_parquet(tmp_path / "log.parquet")
    told: list[tuple[str, int, int]] = []
    for source in (tmp_path / "log.csv", tmp_path / "log.parquet", log):
        told.clear()
        reprl.check_log(source, progress=lambda *what: told.append(what))
        assert told[-1] == ("comparing episodes", 1200, 1200)  # in a small world many are alike
        assert [*dict.fromkeys(phase for phase, _, _ in told)] == [
            "looking through the log",
            "counting",
            "comparing episodes",
        ]
        assert all(0 < done <= total < 1300 for _, done, total in told)
    told.clear()
    reprl.learn_log(log, **CLINIC, progress=lambda *what: told.append(what))
    assert ("counting", 1200, 1200) in told
    with pytest.raises(InputError, match="progress must be True or False, or a function"):
        reprl.check_log(log, progress=3)  # type: ignore[arg-type]


# What is not in any flag or label: changed worlds, running totals, codes, copies with other rewards


def joined(first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any]:
    """Two logs, one after the other."""
    second = second | {"episode": second["episode"] + first["episode"].max() + 1}
    return {name: np.concatenate([first[name], second[name]]) for name in first}


def test_a_world_or_codes_that_changed_midway_are_noticed(tmp_path: Path) -> None:
    first, second = make_log(1500, 1), make_log(1500, 2)
    assert reprl.check_log(joined(first, second), horizon=HORIZON).worst is None
    swapped = {"wait": "drug A", "drug A": "wait"}
    recoded = second | {"action": np.array([swapped.get(name, name) for name in second["action"].tolist()])}
    found = reprl.check_log(joined(first, recoded), horizon=HORIZON)
    assert found.biased
    assert "the first half of the episodes and the second contradict one world: after" in said(found)
    poorer = second | {"reward": second["reward"] * (np.arange(second["reward"].size) % 2)}
    for stationary in (False, True):
        found = reprl.check_log(joined(first, poorer), horizon=HORIZON, stationary=stationary)
        assert "a reward of at least" in said(found)
    with pytest.warns(LogWarning, match="contradict one world"):
        result = reprl.learn_log(joined(first, poorer), **CLINIC)
    assert "The log contradicts it" in reprl.write_report(result, tmp_path / "page.html").read_text()


def test_practice_that_changes_midway_is_no_fault() -> None:
    other = make_log(1500, 2, habit=(0.1, 0.1, 0.7, 0.1))
    assert reprl.check_log(joined(make_log(1500, 1), other), horizon=HORIZON).worst is None


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_running_totals_are_noticed(sign: float) -> None:
    log = make_faulty("none", 1).log
    rewards = sign * np.cumsum(log["reward"].reshape(-1, 6), axis=1).ravel()
    assert "looks like a running total" in said(reprl.check_log(log | {"reward": rewards}))


@pytest.mark.parametrize(
    "rewards", [(-1, -1, -1, -1, -1, 10), (1, 1, 1, 1, 1, 0), (0, 0, 0, 0, 0, 1), (1, 1, 1, 1, 1, 1)]
)
def test_costs_of_steps_and_rewards_at_the_end_are_no_totals(rewards: tuple[float, ...]) -> None:
    log = make_faulty("none", 1).log
    assert "running total" not in said(reprl.check_log(log | {"reward": np.tile(rewards, log["reward"].size // 6)}))


def test_codes_and_labels_that_stand_for_nothing_are_noticed() -> None:
    log = make_log(300, 1)
    rewards = np.where(np.arange(log["reward"].size) % 50 == 7, -999.0, log["reward"])
    assert "reward -999 stands in 18 rows, far from all others" in said(reprl.check_log(log | {"reward": rewards}))
    assert "stands in" not in said(reprl.check_log(log | {"reward": 99.0 * log["reward"]}))  # 0 and 99, nothing else
    spread = np.linspace(0.0, 999.0, log["reward"].size)
    assert "stands in" not in said(reprl.check_log(log | {"reward": spread}))
    states = log["state"].astype("U12")
    states[4::90] = "?"
    without = {name: column for name, column in log.items() if name != "next_state"}
    assert "states whose label looks like that of nothing: '?'" in said(reprl.check_log(without | {"state": states}))
    assert near_duplicates(("drug A", "drug\u200b A", "drug B")) == (("drug A", "drug\u200b A"),)


@pytest.mark.parametrize("share", [1.0, 0.3])
def test_copies_with_other_rewards_are_noticed(share: float) -> None:
    """A little noise hides copies from those who compare all that stands in a row."""
    log = make_log(1000, 1)
    part = {name: column[: int(share * 1000) * HORIZON] for name, column in log.items()}
    part["episode"] = np.repeat(np.arange(int(share * 1000)), HORIZON)
    both = joined(log, part)
    both["reward"] = np.clip(0.98 * both["reward"] + 0.02 * np.random.default_rng(1).random(both["reward"].size), 0, 1)
    found = reprl.check_log(both, horizon=HORIZON)
    assert found.biased
    assert "but for" in said(found)
    log["reward"] = np.random.default_rng(2).random(log["reward"].size)
    assert not reprl.check_log(log, horizon=HORIZON).biased


def test_a_number_that_cannot_be_read_is_not_called_nothing(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    (tmp_path / "log.csv").write_text('episode,state,action,reward\n0,x,a,"0,5"\n')
    found = said(reprl.check_log(tmp_path / "log.csv"))
    assert "no number stands in column 'reward' in 1 of 1 rows" in found
    assert "write the reward with a decimal point" in found
