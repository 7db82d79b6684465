"""Pages of two runs and of large policies, and a command line that fits its terminal."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import reprl
from reprl.cli.app import main
from reprl.execution.terminal import LIKE_ASCII
from reprl.mdp.criterion import Criterion
from reprl.mdp.labels import Labels
from reprl.report.maps import Maps
from reprl.report.names import axes, short_names
from reprl.report.page import render_page
from reprl.report.summary import Badge, Figure, Mark, Section, Summary
from reprl.report.worth import worth_of
from reprl.sources.environment import Environment


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("runs")
    mdp = reprl.make("gridworld-v0", 3, size=2)
    options: dict[str, Any] = {"access": "generative", "epsilon": 0.5, "shared_seed": 7}
    first = reprl.learn(mdp, data_seed=1, **options)
    second = reprl.learn(mdp, data_seed=2, **options)
    other = reprl.learn(mdp, data_seed=3, **{**options, "preference": (3, 2, 1, 0)})
    return [run.save(folder / str(i)) for i, run in enumerate((first, second, other))]


def test_two_runs_on_one_page(runs: list[Path], tmp_path: Path) -> None:
    same = reprl.write_report(runs[0], tmp_path / "same.html", second=runs[1]).read_text("utf-8")
    assert "exactly the same policy" in same
    assert 'id="cells-that-differ"' not in same
    stored = [reprl.load_run(path) for path in runs]
    apart = stored[0].policy.actions != stored[2].policy.actions
    assert apart.any()
    differ = reprl.write_report(runs[0], tmp_path / "differ.html", second=runs[2]).read_text("utf-8")
    assert f"<strong>{apart.sum()} of {apart.size}</strong> cells" in differ
    assert "The two runs followed different recipes." in differ
    assert (apart == apart[0]).all()  # policies that do the same at every step are drawn once
    assert differ.count('<rect class="framed"') == apart[0].sum()
    mdp = stored[0].recipe.make()
    assert isinstance(mdp, reprl.TabularMDP)
    for run in (stored[0], stored[2]):
        assert f"{mdp.evaluate(run.policy):.4g}; the best policy " in differ
        assert run.policy.short_fingerprint in differ


def test_two_sources_must_be_runs(runs: list[Path], tmp_path: Path) -> None:
    audit = reprl.audit(reprl.make("gridworld-v0", 3, size=2), "greedy", 2, samples=200, seed=1)
    with pytest.raises(reprl.ReprlError, match="two sources must be two runs"):
        reprl.write_report(runs[0], tmp_path / "x.html", second=audit)
    with pytest.raises(reprl.ReprlError, match="env must be left out unless the source is a run"):
        reprl.write_report(audit, tmp_path / "x.html", env=reprl.make("gridworld-v0", 3, size=2))
    assert not (tmp_path / "x.html").exists()


def test_a_run_states_what_its_policy_is_worth(runs: list[Path], tmp_path: Path) -> None:
    run = reprl.load_run(runs[0])
    mdp = reprl.make("gridworld-v0", 3, size=2)
    worth = worth_of(run)
    assert worth is not None
    assert worth.value == mdp.evaluate(run.policy)
    assert worth.best == pytest.approx(mdp.initial @ mdp.solve().values[0])
    page = reprl.write_report(runs[0], tmp_path / "run.html").read_text("utf-8")
    assert f"exactly {worth.value:.4g}; {worth.others}</dd>" in page
    assert worth.baseline == mdp.evaluate(np.zeros((3, 4), dtype=int)) == 0.0
    # The control: an environment that nobody names is not opened, and another one is refused.
    by_hand = run._replace(recipe=reprl.learn(_by_hand(), access="generative", epsilon=1.0, data_seed=1).recipe)
    assert worth_of(by_hand) is None
    with pytest.raises(reprl.ReprlError, match="must be the recipe's"):
        worth_of(run, reprl.make("gridworld-v0", 4, size=2))


def _by_hand() -> reprl.TabularMDP:
    return reprl.TabularMDP(np.ones((2, 2, 2)) / 2, np.zeros((2, 2)), horizon=2)


def test_the_command_writes_both(runs: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "both.html"
    assert main(["report", str(runs[0]), str(runs[1]), "-o", str(out), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["second"] == str(runs[1])
    assert "exactly the same policy" in out.read_text("utf-8")


def large(n_states: int, names: tuple[str, ...]) -> Environment:
    states = tuple(f"patient {s}" for s in range(n_states))
    return Environment(None, {}, Criterion(5), n_states, len(names), labels=Labels(states=states, actions=names))


DRUGS = tuple(f"fluids {i}, vasopressors {j}" for i in range(5) for j in range(5))


def test_pairs_of_actions_have_two_axes() -> None:
    found = axes(large(2, DRUGS))
    assert found is not None
    assert (found.rows[3], found.columns[1]) == ("fluids 3", "vasopressors 1")
    assert found.places[16] == (3, 1)
    assert short_names(large(2, DRUGS))[16] == "3·1"
    # The controls: one that is missing, one that is there twice, names of one part.
    for names in (DRUGS[:-1], (*DRUGS[:-1], DRUGS[0]), ("up", "down"), ()):
        assert axes(large(2, names)) is None


def test_a_large_policy_is_a_table_to_search_in() -> None:
    world = large(716, DRUGS)
    weight = np.tile(np.arange(716.0), (5, 1))
    maps = Maps(world, weight)
    assert maps.listed
    assert maps.states.tolist() == list(range(676, 716)), "those with most samples are drawn"
    actions = np.arange(716)[None] % 25 + np.zeros((5, 1), dtype=np.int64)
    actions[3:, 7] = 0
    ignored = np.zeros((5, 716), dtype=bool)
    ignored[:2, 8] = True
    figures = [
        maps.policy(actions, ignored),
        Figure("listing", "Every state", "", "listing", maps.listing(actions, ignored, weight)),
    ]
    page = render_page(Summary("run", "x", Badge("none"), sections=[Section(figures)], mark=Mark("", "0" * 64, "")))
    text = page.decode()
    rows = re.findall(r'<tr><th scope="row">(patient \d+)</th>.*?</tr>', text)
    assert rows == [f"patient {s}" for s in range(716)]
    [row] = re.findall(r'<th scope="row">patient 7</th>.*?</tr>', text)
    assert re.findall(r'<i class="(\w+)" style="--n:(\d)"', row) == [("l7", "3"), ("l0", "2")]
    [row] = re.findall(r'<th scope="row">patient 8</th>.*?</tr>', text)
    assert re.findall(r'<i class="(\w+)" style="--n:(\d)"', row) == [("none", "2"), ("l8", "3")]
    colours = re.findall(r"\.actions i\.l\d+\{background:(.*?)\}", text)
    assert len(set(colours)) == 25
    assert not Maps(large(40, DRUGS), weight[:, :40]).listed


@pytest.mark.parametrize(
    ("text", "shown"), [("→ ρ ≤ 0.1 … ─", b"> rho <= 0.1 ... -"), ("é", b"e"), ("漢", b"?"), ("plain", b"plain")]
)
def test_terminals_without_unicode_get_signs_that_they_have(text: str, shown: bytes) -> None:
    assert text.encode("ascii", LIKE_ASCII) == shown
    assert text.encode("utf-8", LIKE_ASCII) == text.encode()


def run(*words: str, **more: str) -> str:
    import os

    environment = {**os.environ, "PYTHONUTF8": "0", **more}
    done = subprocess.run(
        [sys.executable, "-m", "reprl", *words], env=environment, capture_output=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode() + done.stderr.decode()


def test_the_shell_can_complete() -> None:
    more = {"_REPRL_COMPLETE": "complete_bash", "COMP_CWORD": "2"}
    assert run(**{**more, "COMP_WORDS": "reprl learn gr"}).split() == ["gridworld-v0"]
    assert run(**{**more, "COMP_WORDS": "reprl learn zz"}).split() == []


def test_gymnasium_finds_modules_of_the_working_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "my_lake_of_ours.py").write_text(
        "import gymnasium\n"
        "gymnasium.register('Lake-v0', entry_point='gymnasium.envs.toy_text.frozen_lake:FrozenLakeEnv')\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry not in ("", str(tmp_path))])
    words = ["learn", "gym:my_lake_of_ours:Lake-v0", "--horizon", "2", "--access", "generative", "--epsilon", "1"]
    assert main([*words, "--json"]) == 0, capsys.readouterr().out
