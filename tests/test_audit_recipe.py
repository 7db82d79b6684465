"""Audits of a recipe: what its pairs share, what the report says of that, and what is refused."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from reprl.artifacts.register import register_log
from reprl.canonical.choice import make_rule
from reprl.canonical.gaps import find_gaps
from reprl.canonical.goal import Goal
from reprl.canonical.registered import Cells, Published, Registration
from rich.console import Console

import reprl
from experiments.price.boxes import REWARDS, TwoQueues
from reprl.auditing.audit import curve
from reprl.auditing.pairs import pair_seeds
from reprl.auditing.recipes import read_recipe
from reprl.cli.app import main
from reprl.errors import DocumentError, InputError
from reprl.learning.learner import make_settings
from reprl.mdp.dynamics import true_dynamics
from reprl.randomness import SharedKey
from reprl.sources.environment import describe
from tests.clinic_log import ACTIONS, HORIZON, STATES, make_log
from tests.statistics import FALSE_ALARM

pytestmark = pytest.mark.filterwarnings("ignore::reprl.errors.PilotWarning")
SEED = 7
"""Of the audits."""


@pytest.fixture(scope="module")
def study() -> reprl.Recipe:
    return reprl.register("two-goals-v0", pilot=20_000, access="generative", data_seed=5, shared_seed=3)


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


def at_an_edge(mdp: reprl.TabularMDP) -> reprl.Recipe:
    """Return a recipe whose candidate has its tolerance exactly at the gap of the start."""
    settings = make_settings({"access": "generative"}, mdp).resolve_stationarity(mdp)
    shape = (mdp.horizon, mdp.n_states, mdp.n_actions)
    rule = make_rule(SharedKey(1).derive("rule"), shape, goal=Goal(quality=0.9), stationary=True)
    gap = find_gaps(true_dynamics(mdp), rule.order).gap[0, 0]
    worse = int(gap.argmax())
    tolerances = np.full(shape[:2], np.inf)
    tolerances[0, 0] = gap[worse]
    cells = Cells(tuple(range(mdp.horizon)), (worse, 1 - worse), tolerances)
    made = Registration("nobody", "2026-01-01", 1, 0, 11, None, 1, 0.0)
    return reprl.Recipe.plan(describe(mdp), settings, 1).register(Published(cells, made))


def test_runs_of_a_registered_recipe_share_its_seed_and_differ_in_data_only(study: reprl.Recipe, path: Path) -> None:
    report = reprl.audit(study, pairs=4, seed=SEED)
    assert report.promise == "registered"
    assert report.recipe is not None
    assert (report.recipe.digest, report.recipe.shared_seed) == (study.digest, 3)
    assert report.recipe.about.startswith("any two runs that follow this recipe")
    assert report.rho == study.settings.rho
    policies = [study.learn(data_seed=seed).policy for seed in pair_seeds(SEED, 0)[1]]
    assert (report.distinct[0] == 1) == (policies[0] == policies[1])
    again = reprl.audit(str(path), pairs=4, seed=SEED)
    assert again.to_dict() == reprl.audit(path, pairs=4, seed=SEED).to_dict() == report.to_dict()
    assert reprl.AuditReport.from_json(report.to_json()).recipe == report.recipe
    assert reprl.audit("two-goals-v0", study, pairs=4, seed=SEED).to_dict() == report.to_dict()
    words = shown(report)
    assert "claim tested" in words
    assert "(registered)" in words
    assert f"{study.digest[:12]}; test and interval are about any two runs that follow this recipe" in words
    assert "shared seeds" not in words


def test_the_pilots_data_are_not_used() -> None:
    pilot = pair_seeds(SEED, 0)[1][0]
    study = reprl.register("two-goals-v0", pilot=20_000, access="generative", data_seed=pilot)
    with pytest.raises(InputError, match="data_seed must be another one than the pilot's"):
        study.learn(data_seed=pilot)
    assert reprl.audit(study, pairs=2, seed=SEED).pairs == 2


@pytest.mark.parametrize("options", [{}, {"agreement": 0.9}, {"rule": "paper", "constants": "scaled", "epsilon": 0.5}])
def test_of_other_recipes_every_pair_has_a_fresh_seed(options: dict[str, Any]) -> None:
    mdp = reprl.make("two-goals-v0")
    settings = make_settings({"access": "generative", "rho": 0.2, **options}, mdp)
    recipe = reprl.Recipe.plan(describe(mdp), settings, 9)
    sizes: dict[str, Any] = {"max_samples": 200_000} if settings.rule == "canonical" else {}
    given = {"access": "generative", "rho": 0.2, **options, **sizes}
    report, plain = (
        reprl.audit(recipe, pairs=2, seed=SEED, **sizes),
        reprl.audit("two-goals-v0", pairs=2, seed=SEED, **given),
    )
    assert report.recipe is not None
    assert report.recipe.shared_seed is None
    assert "for a random shared seed; its own seed and candidate are not used" in shown(report)
    found = report.to_dict()
    found["recipe"] = None
    found["options"]["stationary"] = None  # which a recipe has resolved
    assert found == plain.to_dict()
    assert report.promise == ("approximate" if "agreement" in options else "strict")


def test_a_run_folders_recipe_is_chosen_afresh(tmp_path: Path) -> None:
    run = reprl.learn("two-goals-v0", access="generative", data_seed=1, max_samples=50_000)
    run.save(tmp_path / "run")
    report = reprl.audit(tmp_path / "run" / "recipe.json", pairs=2, seed=SEED, max_samples=50_000)
    assert report.promise == "strict"
    assert report.recipe is not None
    assert report.recipe.digest == run.recipe.digest


@pytest.mark.statistical
def test_a_candidate_at_an_edge_is_rejected_and_its_cell_is_named() -> None:
    """Negative control: at the edge every pair differs with probability ½.

    40 pairs then reject ρ = 0.1 at 1e-6 with a probability of 0.92.
    """
    mdp = chain()
    report = reprl.audit(mdp, at_an_edge(mdp), pairs=40, seed=SEED, samples=4000)
    assert report.verdict == "rejected"
    assert report.p_value is not None
    assert report.p_value < FALSE_ALARM
    edge = at_an_edge(mdp).published
    assert isinstance(edge, Published)
    for found in report.first_divergence:
        assert (found.stage, found.step, found.state) == ("comparison", 0, 0)
        assert f"the tolerance is {edge.cells.tolerances[0, 0]:.3g}" in found.text
    assert np.count_nonzero(report.by_cell) == 1


@pytest.mark.statistical
def test_a_recipe_that_is_cut_to_a_few_samples_is_rejected() -> None:
    """Negative control of the size: 60 pairs of 2 samples of every state and action, against the rehearsed size."""
    rng = np.random.default_rng(2)
    mdp = reprl.TabularMDP(rng.dirichlet(np.ones(5), (5, 3)), rng.uniform(0.0, 1.0, (5, 3)), 0, 4)
    study = reprl.register(mdp, pilot=3_000_000, access="generative", data_seed=3)
    few, enough = curve(mdp, study, [30, 1_000_000], 60, seed=SEED)
    assert few.low > 0.2
    assert enough.disagreement <= 0.1


def test_a_black_box_is_audited_by_its_recipe() -> None:
    how: dict[str, Any] = {"horizon": 15, "reward_range": REWARDS, "data_seed": 3}
    recipe = reprl.register(TwoQueues, pilot=20_000, **how)
    with pytest.raises(InputError, match="this one was built by hand, pass it as env, and the recipe as learner"):
        reprl.audit(recipe, pairs=2)
    report = reprl.audit(TwoQueues, recipe, pairs=3, seed=SEED, max_samples=2000, evaluation=10)
    assert report.promise == "registered"
    assert report.samples == 2000


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"quality": 0.5}, r"quality must be left out for a recipe, which says it, got 0\.5"),
        ({"rho": 0.2}, r"rho must be left out for a recipe, which says it, got 0\.2"),
        ({"horizon": 4}, "horizon must be left out for a recipe, which says it, got 4"),
        ({"agreement": 0.9}, r"agreement must be left out for a recipe, which says it, got 0\.9"),
        ({"access": "episodic"}, "access must be left out for a recipe, which says it, got 'episodic'"),
        ({"learner": "greedy"}, "learner must be left out for a recipe, which says it, got 'greedy'"),
        ({"runs_per_key": 3}, "runs_per_key must be 2 for a registered recipe, .*more pairs instead; got 3"),
        ({"samples": 0}, "samples must be"),
    ],
)
def test_what_a_recipe_says_is_not_said_again(study: reprl.Recipe, options: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        reprl.audit(study, pairs=2, **options)


def test_recipes_that_cannot_be_audited_are_refused(study: reprl.Recipe, path: Path, tmp_path: Path) -> None:
    log = register_log(make_log(5000, 1), horizon=HORIZON, states=STATES, actions=ACTIONS, quality=0.5)
    with pytest.raises(InputError, match=r"recipe must be of an environment to be audited, got that of a log \(log.*"):
        reprl.audit(log, pairs=2)
    with pytest.raises(InputError, match="the environment given must be the recipe's, with environment"):
        reprl.audit("random-mdp-v0", study, pairs=2)
    with pytest.raises(InputError, match=r"cannot read .*nothing\.json"):
        reprl.audit(tmp_path / "nothing.json", pairs=2)
    path.write_text(path.read_text().replace('"order"', '"other"'))
    with pytest.raises(DocumentError, match=r"candidate\.cells must have only the fields|candidate.cells"):
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
    words = ["audit", str(path), "--pairs", "3", "--seed", "7"]
    assert main([*words, "--json", "--out", str(tmp_path / "audit.json")]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["promise"] == "registered"
    assert document["recipe"]["about"].startswith("any two runs that follow this recipe, each on fresh data")
    assert reprl.AuditReport.load(tmp_path / "audit.json").to_dict() == document
    assert main(["report", str(tmp_path / "audit.json"), "-o", str(tmp_path / "audit.html")]) == 0
    assert "any two runs that follow this recipe" in (tmp_path / "audit.html").read_text()
    capsys.readouterr()
    folder = str(tmp_path / "bundle")
    assert main([*words[:3], "2", *words[4:], "--out", folder]) == 0
    assert main([*words, "--out", folder]) == 0
    assert "are about any two runs that follow this recipe" in capsys.readouterr().out
    assert reprl.AuditReport.load(tmp_path / "bundle" / "audit.json").to_dict() == document
    settings = ["two-goals-v0", "--access", "generative"]
    assert main(["audit", *settings, *words[2:], "--out", folder]) == 2  # other runs than those kept there
    assert "must hold tasks of this work" in capsys.readouterr().err


def test_the_command_takes_the_environment_that_a_recipe_does_not_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mdp = chain()
    at_an_edge(mdp).save(tmp_path / "edge.json")
    (tmp_path / "plant.py").write_text(
        "from tests.test_audit_recipe import chain\n\n\ndef plant():\n    return chain()\n"
    )
    words = ["audit", str(tmp_path / "edge.json"), "--pairs", "12", "--seed", "7", "-o", "samples=4000"]
    assert main(words) == 2
    assert "pass it as env (--env file.py:name)" in capsys.readouterr().err
    assert main([*words, "--env", f"{tmp_path}/plant.py:plant"]) == 1
    assert "rejected" in capsys.readouterr().out
