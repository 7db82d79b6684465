"""Names of states and actions are part of what two teams agree on."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import reprl
from reprl.cli.app import main
from reprl.errors import DocumentError
from reprl.mdp.interface import Interface
from reprl.mdp.labels import Labels
from reprl.mdp.policy import Policy
from tests.clinic_log import ACTIONS, HORIZON, STATES, make_log

ASKED: dict[str, Any] = {"horizon": HORIZON, "states": STATES, "actions": ACTIONS, "shared_seed": 3}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run, and one of a log in which two drugs have each other's names, in the other order."""
    folder = tmp_path_factory.mktemp("runs")
    log = make_log(300, 1)
    reprl.learn_log(log, **ASKED).save(folder / "one")
    swapped = {"drug A": "drug B", "drug B": "drug A"}
    other = log | {"action": np.array([swapped.get(name, name) for name in log["action"].tolist()])}
    reprl.learn_log(other, **ASKED | {"actions": [swapped.get(name, name) for name in ACTIONS]}).save(folder / "two")
    return folder


def swap(folder: Path, which: str, *, reseal: bool) -> None:
    """Exchange two names in policy.json, as somebody would who edits it."""
    path = folder / "policy.json"
    document = json.loads(path.read_text())
    names = document["interface"]["labels"][which]
    names[1], names[2] = names[2], names[1]
    if reseal:
        labels = Labels(
            states=document["interface"]["labels"]["states"], actions=document["interface"]["labels"]["actions"]
        )
        document["names"] = labels.digest
    path.write_text(json.dumps(document))


@pytest.mark.parametrize("reseal", [False, True], ids=["as it was", "sealed again"])
@pytest.mark.parametrize("which", ["states", "actions"])
def test_swapped_names_are_noticed_everywhere(
    runs: Path, tmp_path: Path, which: str, reseal: bool, capsys: Any
) -> None:
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    folder = tmp_path / "edited"
    shutil.copytree(runs / "one", folder)
    swap(folder, which, reseal=reseal)
    with pytest.raises(DocumentError, match="names"):
        reprl.load_run(folder)
    with pytest.raises(DocumentError, match="names"):
        reprl.verify(folder, runs / "one")
    assert main(["report", str(folder), "-o", str(tmp_path / "page.html")]) == 2
    pandas.DataFrame(make_log(300, 2)).to_csv(tmp_path / "log.csv", index=False)
    assert main(["replicate", str(folder), "--log", str(tmp_path / "log.csv")]) == 2
    assert main(["verify", str(folder), str(runs / "one")]) == 2
    bare = main(["verify", str(folder / "policy.json"), str(runs / "one" / "policy.json")])
    assert bare == (1 if reseal else 2)
    out = capsys.readouterr()
    assert "names" in out.err + out.out.lower()


def test_tables_of_different_names_are_different_policies(runs: Path, capsys: Any) -> None:
    one, two = (reprl.load_run(runs / name) for name in ("one", "two"))
    assert one.policy.fingerprint == two.policy.fingerprint
    assert one.policy != two.policy
    found = reprl.verify(one, two)
    assert not found.same
    assert found.renamed == "action 1 is 'drug A' in the first and 'drug B' in the second"
    assert found.names == (one.policy.names, two.policy.names)
    assert main(["verify", str(runs / "one"), str(runs / "two"), "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert (document["same"], document["different"]) == (False, 0)
    assert document["renamed"] == found.renamed
    receipts = [str(runs / name / "receipt.json") for name in ("one", "two")]
    assert main(["verify", *receipts]) == 1
    assert "Names differ: action 1" in capsys.readouterr().out
    assert main(["verify", receipts[0], str(runs / "one" / "policy.json")]) == 0
    assert "names differ" in found._repr_html_().lower()


def test_a_bare_table_is_compared_by_its_fingerprint(runs: Path) -> None:
    named = reprl.load_run(runs / "one").policy
    bare = Policy(named.actions)
    assert bare.names is None
    assert bare == named
    assert reprl.verify(bare, named).same
    assert bare.fingerprint == named.fingerprint
    assert bare.to_dict()["names"] is None


def test_names_that_only_one_side_has_are_not_compared() -> None:
    full, states = Labels(states=("a", "b"), actions=("x",)), Labels(states=("a", "b"))
    assert full.difference(states) == Labels().difference(full) == ""
    assert full.difference(Labels(states=("a",))) == "there are 2 names of states in the first and 1 in the second"
    assert Labels().digest is None
    assert full.digest != Labels(states=("a",), actions=("b", "x")).digest
    table = np.array([[0, 0]])
    assert Policy(table, Interface(full)) == Policy(table, Interface(states))
    assert Policy(table, Interface(full)) != Policy(table, Interface(Labels(states=("b", "a"))))


def test_who_decided_is_sealed_too(runs: Path, tmp_path: Path) -> None:
    folder = tmp_path / "edited"
    shutil.copytree(runs / "one", folder)
    document = json.loads((folder / "policy.json").read_text())
    document["basis"]["decided"][0][0] = (document["basis"]["decided"][0][0] + 1) % 3
    for basis in (document["basis"], None):
        (folder / "policy.json").write_text(json.dumps({**document, "basis": basis}))
        with pytest.raises(DocumentError, match="policy basis must be the one that the receipt seals"):
            reprl.load_run(folder)
