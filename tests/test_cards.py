"""Objects that show themselves: short in a console, a card in a notebook, a table for pandas."""

from __future__ import annotations

import io
import json
import sys
from html.parser import HTMLParser
from typing import Any

import nbclient
import nbformat
import numpy as np
import pytest
from rich.console import Console

import reprl
from reprl.artifacts.verify import compare_policies
from reprl.execution.progress import progress_bar
from reprl.mdp.labels import Labels
from reprl.report.card import card


@pytest.fixture(scope="module")
def result() -> reprl.LearnResult:
    mdp = reprl.make("gridworld-v0", 3, size=2)
    return reprl.learn(mdp, access="generative", epsilon=0.5, shared_seed=7, data_seed=1)


@pytest.fixture(scope="module")
def shown(result: reprl.LearnResult, tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    stored = reprl.load_run(result.save(tmp_path_factory.mktemp("runs") / "run"))
    audit = reprl.audit(reprl.make("gridworld-v0", 3, size=2), "greedy", 4, samples=200, seed=1)
    other = compare_policies(result.policy, reprl.Policy(1 - result.policy.actions % 2))
    return [
        result,
        stored,
        result.policy,
        audit,
        other,
        reprl.Policy(np.tile(np.arange(30)[:, None] % 2, 50)),
    ]


class Parser(HTMLParser):
    """Counts what is open."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.open.append(tag)
        self.tags.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_representations_are_short_and_cards_whole(shown: list[Any]) -> None:
    for thing in [*shown, shown[0].receipt]:
        assert len(repr(thing)) < 200, type(thing)
        assert "\n" not in repr(thing)
    for thing in shown:
        parser = Parser()
        parser.feed(thing._repr_html_())
        parser.close()
        assert parser.open == []
        assert "script" not in parser.tags
        assert len(thing._repr_html_()) < 100_000


def test_a_card_says_what_matters(shown: list[Any]) -> None:
    result, stored, policy, audit, *_ = (thing._repr_html_() for thing in shown)
    assert shown[0].policy.short_fingerprint in result
    assert "rehearsed" in result
    assert "simulated teams" in result
    assert stored.replace(f"{shown[1].receipt.seconds:.1f} s", "") == result.replace(f"{shown[0].seconds:.1f} s", "")
    assert "Policy for gridworld-v0" in policy
    assert audit.count("of 4 pairs</b> differ") == 1
    assert "34 more states and 18 more steps" in shown[-1]._repr_html_()


def test_names_from_outside_are_escaped() -> None:
    mdp = reprl.TabularMDP(np.ones((2, 2, 2)) / 2, np.zeros((2, 2)), horizon=2)
    mdp.labels = Labels(name="<b>x", states=("<i>", "b"), actions=("<script>alert(1)</script>", "no"))
    found = reprl.learn(mdp, access="generative", epsilon=1.0, shared_seed=1, data_seed=1)._repr_html_()
    assert "<script" not in found
    assert "&lt;script&gt;" in found


def test_no_card_for_anything_else() -> None:
    with pytest.raises(reprl.ReprlError, match="card must be of a policy, a run or an audit, got 3"):
        card(3)


def test_frames_hold_a_row_for_each_cell(shown: list[Any]) -> None:
    result, stored, policy, audit, *_ = shown
    table = result.to_pandas()
    assert len(table) == 3 * 4
    assert table["action"].tolist() == result.policy.actions.ravel().tolist()
    assert table["samples"].tolist() == result.receipt.visits.ravel().tolist()
    assert table.loc[0, "state_name"] == "0,0 start"
    assert stored.to_pandas().equals(table)
    assert policy.to_pandas().equals(table[["step", "state", "state_name", "action", "action_name"]])
    assert audit.to_pandas()["disagreement"].tolist() == audit.by_cell.ravel().tolist()
    assert list(shown[-1].to_pandas().columns) == ["step", "state", "action"]
    assert result.to_dict() == stored.to_dict()
    assert audit.to_dict() == json.loads(audit.to_json())


def test_without_pandas_the_error_says_what_to_install(
    result: reprl.LearnResult, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(reprl.ReprlError, match=r"to_pandas needs pandas: pip install '\.\[pandas\]'"):
        result.to_pandas()


NOTEBOOK = (
    "import reprl\n"
    "from reprl.execution.progress import progress_bar\n"
    "with progress_bar(True, 'episodes') as tell:\n"
    "    tell('explore', 5, 10)\n"
    "    tell('explore', 10, 10)",
    "result = reprl.learn(reprl.make('gridworld-v0', 3, size=2), epsilon=0.5, shared_seed=7, data_seed=1, "
    "access='generative')\nresult",
)


@pytest.mark.slow
def test_a_real_notebook_shows_a_card_and_a_bar_without_widgets() -> None:
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in NOTEBOOK])
    nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
    bar, card = (cell.outputs for cell in notebook.cells)
    assert [output.output_type for output in bar] == ["display_data"], "no warning, no text on standard error"
    assert bar[0].data["text/html"] == "", "the bar is gone when the work is done"
    assert 'class="reprl-card"' in card[-1].data["text/html"]
    assert card[-1].data["text/plain"].startswith("LearnResult(gridworld-v0: ")


def test_outside_a_notebook_nothing_of_ipython_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "IPython", None)
    with progress_bar(True, "episodes") as tell:
        assert tell is not None
        tell("explore", 1, 2)


def test_a_result_is_shown_as_by_the_command() -> None:
    result, console = reprl.learn("two-goals-v0", access="generative", data_seed=1, max_samples=5000), io.StringIO()
    result.show(Console(file=console, width=1000))
    assert result.policy.fingerprint in console.getvalue()
    assert "promised" in console.getvalue()
