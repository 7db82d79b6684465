"""The stored experiment on the canonical learner: it is the planned one, and its page shows its data."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from experiments.canonical import __main__ as experiment
from experiments.canonical import measure, plan, present
from experiments.canonical.last import LAST, traps
from experiments.canonical.worlds import BY_EPISODES, HELD_OUT
from experiments.runner import store
from reprl.mdp.policy import Policy
from tests.former import former

ROOT = Path(__file__).parent.parent
FILE = ROOT / "experiments" / "canonical" / "data.json"


@pytest.fixture(scope="module")
def data() -> Any:
    return json.loads(FILE.read_text())


def test_the_page_shows_the_stored_data(data: Any) -> None:
    page = (ROOT / "docs" / "canonical.md").read_text()
    shown = page.partition(present.START)[2].partition(present.END)[0]
    assert shown.strip() == present.tables(data).strip()


def test_the_stored_experiment_is_the_planned_one(data: Any) -> None:
    assert set(data["measured"]) <= set(experiment.jobs(quick=False))
    former(experiment.EXPERIMENT, FILE, data)


def test_the_worlds_are_those_that_were_measured(data: Any) -> None:
    digests = {name.partition("#")[0]: found["digest"] for name, found in data["measured"].items() if "#" in name}
    for case in plan.cases():
        if not case.world.startswith("FrozenLake"):  # Gymnasium's own, which has versions of its own
            assert digests[case.name] == case.build().digest[:16], case.name


def test_there_is_as_much_evidence_as_was_asked_for(data: Any) -> None:
    assert len(HELD_OUT) >= 15
    assert len(BY_EPISODES) >= 5
    assert len(LAST) >= 15
    for group, least in (("targets", 40), ("catalogue", 40), ("held out", 20), ("made last", 60)):
        assert all(one.pairs >= least for one in present.summaries(data, group))
    points = present.rehearsals(data)
    assert len({point["world"] for point in points}) >= 6
    assert len({point["calls"] for point in points}) >= 4


def test_in_the_traps_every_policy_that_keeps_to_one_action_loses_too_much() -> None:
    """Why runs give up there: all 3**10 of them, by their values."""
    mdp = traps()
    choices = np.stack(np.meshgrid(*[range(3)] * 10, indexing="ij"), axis=-1).reshape(-1, 10)
    actions = np.pad(choices, ((0, 0), (0, 1)))  # in the trap nothing matters
    states, value = np.arange(11), np.zeros(actions.shape)
    law, pay = mdp.transition[0][states, actions], mdp.reward[0][states, actions]
    for _ in range(mdp.horizon):
        value = pay + np.einsum("psy,py->ps", law, value)
    steady = Policy(np.tile(actions[value[:, 0].argmax()], (mdp.horizon, 1)))
    assert value[:, 0].max() == pytest.approx(mdp.evaluate(steady))
    assert float(mdp.initial @ mdp.solve().values[0]) - value[:, 0].max() > plan.EPSILON


def test_summaries_follow_from_rows() -> None:
    case = plan.cases()[0]
    rows = np.array([[0, 10, 30, 0, 0.1, 0.2, 1, 1], [1, 20, 20, 1, 0.4, 0.0, 1, 1], [2, 10, 99, 1, 0.0, 0.9, 1, 0]])
    name = f"{case.name}#0"
    (one,) = present.summaries({"measured": {name: {"rows": rows.tolist()}}, "rho": 0.1}, case.group)
    assert (one.pairs, one.apart, one.sure_pairs, one.sure_apart) == (3, 2, 2, 1)
    assert (one.unsure, one.missed, one.runs) == (1, 1, 5)
    assert one.early == 0
    assert one.mean == pytest.approx(31.5)
    assert one.median == 20.0


def test_what_is_stored_is_read_back(tmp_path: Path) -> None:
    data = {
        **experiment.EXPERIMENT.load(tmp_path / "none.json", quick=True),
        "measured": {"a/ε#0": {"rows": [[0, 1]]}, "b": {}},
    }
    store(tmp_path / "data.json", data)
    assert experiment.EXPERIMENT.load(tmp_path / "data.json", quick=True) == data


def test_a_chunk_is_measured_alike_whenever_it_is(data: Any) -> None:
    (case,) = [case for case in plan.cases() if case.world == "hard instance S=16 H=3 bias 0.08"]
    again, stored = (measure.pairs(case, range(2))["rows"] for _ in range(2))
    assert again == stored
    assert len(again[0]) == len(data["measured"][f"{case.name}#0"]["rows"][0])
