"""Audits of a recipe: what its pairs share, what the report says of that, and what is refused."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

import reprl
from reprl.auditing.audit import curve
from reprl.auditing.pairs import pair_seeds
from reprl.auditing.recipes import read_recipe
from reprl.cli.app import main
from reprl.errors import DocumentError, InputError
from reprl.learning.learner import make_settings
from reprl.sources.environment import describe
from tests.clinic_log import ACTIONS, HORIZON, STATES, make_log
from tests.shop import Shop
from tests.statistics import FALSE_ALARM, exceeds, keeps

SEED = 7
"""Of the audits."""
SIZE: dict[str, Any] = {"max_samples": 20_000}


@pytest.fixture(scope="module")
def study() -> reprl.Recipe:
    mdp = reprl.make("two-goals-v0")
    return reprl.Recipe.plan(describe(mdp), make_settings({"access": "generative"}, mdp), 3)


@pytest.fixture
def path(study: reprl.Recipe, tmp_path: Path) -> Path:
    study.save(tmp_path / "study.json")
    return tmp_path / "study.json"


def shown(report: Any) -> str:
    out = io.StringIO()
    Console(file=out, width=1000).print(report)
    return out.getvalue()


def chain() -> reprl.TabularMDP:
    rng = np.random.default_rng(4)
    return reprl.TabularMDP(rng.dirichlet(np.ones(4), (4, 2)), rng.uniform(0.0, 1.0, (4, 2)), 0, 3)


def of_chain(**options: Any) -> reprl.Recipe:
    """Return the recipe of an environment that was built by hand."""
    return reprl.Recipe.plan(describe(chain()), make_settings({"access": "generative", **options}, chain()), 1)


@pytest.mark.parametrize(
    "options", [{}, {"rule": "paper", "constants": "scaled", "epsilon": 0.5}], ids=["soft", "paper"]
)
def test_every_pair_has_a_fresh_seed_and_the_recipes_settings(options: dict[str, Any]) -> None:
    mdp = reprl.make("two-goals-v0")
    settings = make_settings({"access": "generative", "rho": 0.2, **options}, mdp)
    recipe = reprl.Recipe.plan(describe(mdp), settings, 9)
    sizes = SIZE if settings.rule == "soft" else {}
    given: dict[str, Any] = {"access": "generative", "rho": 0.2, **options, **sizes}
    report, plain = (
        reprl.audit(recipe, pairs=2, seed=SEED, **sizes),
        reprl.audit("two-goals-v0", pairs=2, seed=SEED, **given),
    )
    assert report.recipe is not None
    assert report.recipe.digest == recipe.digest
    assert report.rho == 0.2
    assert "for a random shared seed; its own seed is not used" in shown(report)
    found = report.to_dict()
    found["recipe"] = None
    found["options"]["stationary"] = None  # which a recipe has resolved
    assert found == plain.to_dict()


def test_the_runs_of_a_pair_follow_the_recipe_but_for_its_seed(study: reprl.Recipe, path: Path) -> None:
    report = reprl.audit(study, pairs=3, seed=SEED, **SIZE)
    for number in range(3):
        shared, data = pair_seeds(SEED, number)
        runs = [
            reprl.learn("two-goals-v0", access="generative", shared_seed=shared.seed, data_seed=d, **SIZE) for d in data
        ]
        assert (report.distinct[number] == 1) == (runs[0].policy == runs[1].policy)
    again = reprl.audit(str(path), pairs=3, seed=SEED, **SIZE)
    assert again.to_dict() == reprl.audit(path, pairs=3, seed=SEED, **SIZE).to_dict() == report.to_dict()
    assert reprl.AuditReport.from_json(report.to_json()).recipe == report.recipe
    assert reprl.audit("two-goals-v0", study, pairs=3, seed=SEED, **SIZE).to_dict() == report.to_dict()


def test_a_run_folders_recipe_can_be_audited(tmp_path: Path) -> None:
    run = reprl.learn("two-goals-v0", access="generative", data_seed=1, **SIZE)
    run.save(tmp_path / "run")
    report = reprl.audit(tmp_path / "run" / "recipe.json", pairs=2, seed=SEED, **SIZE)
    assert report.recipe is not None
    assert report.recipe.digest == run.recipe.digest


@pytest.mark.statistical
def test_a_recipe_that_is_cut_to_a_few_samples_is_rejected() -> None:
    """Negative control of the size: 60 pairs of 2 samples of every state and action, against enough of them."""
    few, enough = curve(chain(), of_chain(), [48, 400_000], 60, seed=SEED)
    assert few.low > 0.2
    assert exceeds(round(60 * few.disagreement), 60, 0.1) < FALSE_ALARM
    assert keeps(round(60 * enough.disagreement), 60, 0.1, power=0.01, finds=0.41)


def test_a_black_box_is_audited_by_its_recipe() -> None:
    run = reprl.learn(Shop, horizon=4, reward_range=Shop.REWARDS, data_seed=3, max_samples=2000)
    with pytest.raises(InputError, match="this one was built by hand, pass it as env, and the recipe as learner"):
        reprl.audit(run.recipe, pairs=2)
    report = reprl.audit(Shop, run.recipe, pairs=3, seed=SEED, max_samples=2000, evaluation=10)
    assert report.recipe is not None
    assert report.recipe.digest == run.recipe.digest
    assert 0 < report.samples <= 2000


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"quality": 0.5}, r"quality must be left out for a recipe, which says it, got 0\.5"),
        ({"rho": 0.2}, r"rho must be left out for a recipe, which says it, got 0\.2"),
        ({"horizon": 4}, "horizon must be left out for a recipe, which says it, got 4"),
        ({"access": "episodic"}, "access must be left out for a recipe, which says it, got 'episodic'"),
        ({"learner": "greedy"}, "learner must be left out for a recipe, which says it, got 'greedy'"),
        ({"samples": 0}, "samples must be"),
    ],
)
def test_what_a_recipe_says_is_not_said_again(study: reprl.Recipe, options: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        reprl.audit(study, pairs=2, **options)


def test_recipes_that_cannot_be_audited_are_refused(study: reprl.Recipe, path: Path, tmp_path: Path) -> None:
    log = reprl.learn_log(make_log(500, 1), horizon=HORIZON, states=STATES, actions=ACTIONS, quality=0.5).recipe
    with pytest.raises(InputError, match=r"recipe must be of an environment to be audited, got that of a log \(log.*"):
        reprl.audit(log, pairs=2)
    with pytest.raises(InputError, match="the environment given must be the recipe's, with environment"):
        reprl.audit("random-mdp-v0", study, pairs=2)
    with pytest.raises(InputError, match=r"cannot read .*nothing\.json"):
        reprl.audit(tmp_path / "nothing.json", pairs=2)
    path.write_text(path.read_text().replace('"quality"', '"other"'))
    with pytest.raises(DocumentError, match=r"recipe settings must have only the fields"):
        reprl.audit(path, pairs=2)
    path.write_text(path.read_text()[:-200])
    with pytest.raises(DocumentError):
        reprl.audit(path, pairs=2)
    assert read_recipe("two-goals-v0") is None


def test_the_recipe_of_a_search_is_refused(tmp_path: Path) -> None:
    run = reprl.learn("gym:CartPole-v1", target=20, max_samples=2000, data_seed=1)
    with pytest.raises(InputError, match=r"got that of a search: audit its environment with the same options"):
        reprl.audit(run.recipe, pairs=2)


def test_the_command_audits_a_recipe(path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["audit", str(path), "--pairs", "3", "--seed", "7", "-o", "max_samples=5000"]
    assert main([*words, "--json", "--out", str(tmp_path / "audit.json")]) in (0, 1)
    document = json.loads(capsys.readouterr().out)
    assert document["recipe"]["about"].startswith("two runs with this recipe's settings")
    assert reprl.AuditReport.load(tmp_path / "audit.json").to_dict() == document
    assert main(["report", str(tmp_path / "audit.json"), "-o", str(tmp_path / "audit.html")]) == 0
    assert "two runs with this recipe&#x27;s settings" in (tmp_path / "audit.html").read_text().replace(
        "&#39;", "&#x27;"
    )
    capsys.readouterr()
    folder = str(tmp_path / "bundle")
    assert main([*words[:3], "2", *words[4:], "--out", folder]) in (0, 1)
    assert main([*words, "--out", folder]) in (0, 1)
    assert "are about two runs with this recipe's settings" in " ".join(capsys.readouterr().out.split())
    assert reprl.AuditReport.load(tmp_path / "bundle" / "audit.json").to_dict() == document
    settings = ["two-goals-v0", "--access", "generative"]
    assert main(["audit", *settings, *words[2:], "--out", folder]) == 2  # other runs than those kept there
    assert "must hold tasks of this work" in capsys.readouterr().err


def test_the_command_takes_the_environment_that_a_recipe_does_not_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    of_chain().save(tmp_path / "chain.json")
    (tmp_path / "plant.py").write_text(
        "from tests.test_audit_recipe import chain\n\n\ndef plant():\n    return chain()\n"
    )
    words = ["audit", str(tmp_path / "chain.json"), "--pairs", "12", "--seed", "7", "-o", "samples=48"]
    assert main(words) == 2
    assert "pass it as env (--env file.py:name)" in capsys.readouterr().err
    assert main([*words, "--env", f"{tmp_path}/plant.py:plant"]) == 1
    assert "rejected" in capsys.readouterr().out
