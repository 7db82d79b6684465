"""The command line: what it prints, what it refuses, and the exit codes that scripts rely on."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

import reprl
from reprl.artifacts.folder import load_run
from reprl.cli.app import app, main
from reprl.cli.environment import read_object
from reprl.errors import ReprlError
from reprl.mdp.policy import Policy

WORLD = ["gridworld-v0", "--horizon", "3", "--env-option", "size=2"]
QUICK = ["--access", "generative"]
FEW = ["--rule", "paper", "--constants", "scaled", "--scale", "0.01", "--epsilon", "3"]
"""Mostly noise: two data sets end in different policies."""
COMMANDS = [
    "twice",
    "learn",
    "check-log",
    "replicate",
    "verify",
    "confirm",
    "audit",
    "report",
    "list",
]
FILE = """
import gymnasium, numpy, reprl
mdp = reprl.TabularMDP(numpy.full((2, 2, 2), 0.5), [[0.1, 0.9], [0.5, 0.2]], horizon=2)
other = reprl.TabularMDP(numpy.full((2, 2, 2), 0.5), [[0.1, 0.9], [0.5, 0.3]], horizon=2)
def grid(size=2, horizon=3): return reprl.make("gridworld-v0", horizon, size=size)
def lake(): return gymnasium.make("FrozenLake-v1", max_episode_steps=-1)
def broken(): return 1 / 0
class Coin(gymnasium.Env):
    observation_space = action_space = gymnasium.spaces.Discrete(2)
    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return 0, {}
    def step(self, action):
        return int(self.np_random.integers(2)), float(self.np_random.random() < 0.3 + 0.4 * action), False, False, {}
def clinic(fee=0.1):
    labels = reprl.Labels("clinic", states=("well", "ill"), actions=("wait", "treat"))
    return reprl.TabularMDP(numpy.full((2, 2, 2), 0.5), [[fee, 0.9], [0.5, 0.2]], horizon=2, labels=labels)
def coin_flips(model, shared_key, bias=0.5):
    return 1 * (numpy.random.default_rng(model.data_seed).random((model.horizon, model.n_states)) < bias)
seven = 7
"""


@pytest.fixture
def call(capsys):
    """Run a command line; return its exit code, what it printed and what it complained about."""

    def run(*words: object) -> tuple[int, str, str]:
        code = main([str(word) for word in words])
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return run


@pytest.fixture
def answer(call):
    """Run a command line with --json; return its exit code and its one document."""

    def run(*words: object) -> tuple[int, dict]:  # type: ignore[type-arg]
        code, out, err = call(*words, "--json")
        assert err == ""
        assert out.count("\n") == 1
        return code, json.loads(out)

    return run


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    path = Path(tmp_path_factory.mktemp("cli")) / "run"
    assert main(["learn", *WORLD, *QUICK, "--shared-seed", "7", "--data-seed", "1", "--out", str(path), "--json"]) == 0
    return path


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(FILE)
    return path


def test_a_file_is_run_once_however_often_it_is_named_and_again_if_it_changed(tmp_path, monkeypatch):
    """What two names in a file mean are objects of one class: an environment knows its own learner's."""
    path = tmp_path / "twice.py"
    path.write_text("class Thing: pass\none, other = Thing(), Thing()\n")
    monkeypatch.chdir(tmp_path)
    one, other = read_object("ENV", "twice.py:one"), read_object("--learner", f"{path}:other")
    assert type(one) is type(other)
    assert one is not other
    path.write_text("one = 1\n")
    assert read_object("ENV", "twice.py:one") == 1


# Refusals

WRONG = [
    (["nonsense"], "nonsense"),
    (["--nonsense"], "--nonsense"),
    (["learn"], "ENV"),
    (["learn", "gridworld"], "'gridworld'"),
    (["learn", "gym:FrozenLake-v1"], "horizon"),
    (["learn", "gridworld-v0", "--nonsense"], "--nonsense"),
    (["learn", "gridworld-v0", "extra"], "extra"),
    (["learn", "gridworld-v0", "--horizon", "six"], "'six'"),
    (["learn", "gridworld-v0", "--horizon", "0"], "0"),
    (["learn", "gridworld-v0", "--horizon", "1" * 5000], "111"),
    (["learn", "gridworld-v0", "--epsilon", "much"], "'much'"),
    (["learn", "gridworld-v0", "--epsilon", "nan"], "nan"),
    (["learn", "gridworld-v0", "--epsilon", "99"], "99"),
    (["learn", "gridworld-v0", "--rho", "1.5"], "1.5"),
    (["learn", "gridworld-v0", "--delta", "0"], "0"),
    (["learn", "gridworld-v0", "--access", "psychic"], "'psychic'"),
    (["learn", "gridworld-v0", "--constants", "magic"], "'magic'"),
    (["learn", "gridworld-v0", "--shared-seed", "-1"], "-1"),
    (["learn", "gridworld-v0", "--shared-seed", "x"], "'x'"),
    (["learn", "gridworld-v0", "--data-seed", str(2**64)], str(2**64)),
    (["learn", "gridworld-v0", "--workers", "0"], "0"),
    (["learn", "gridworld-v0", "--max-samples", "3"], "3"),
    (["learn", "gridworld-v0", "--rule", "magic"], "'magic'"),
    (["learn", "gridworld-v0", "--constants", "scaled"], "rule='paper'"),
    (["learn", "river-swim-v0", "-H", "1", "--rule", "paper", "--constants", "proven"], "hours of one core: allow"),
    (["learn", "gridworld-v0", "--preference", "best"], "'best'"),
    (["learn", "gridworld-v0", "--preference", "0,1,2"], "missing"),
    (["learn", "gridworld-v0", "--preference", "0,1,2,2"], "2 times"),
    (["learn", "gridworld-v0", "--preference", "0,1,2,up"], "'up'"),
    (["learn", "gridworld-v0", "--preference", "0,,1"], "'0,,1'"),
    (["learn", "gridworld-v0", "--rule", "paper", "--preference", "shared"], "'shared'"),
    (["learn", "gridworld-v0", "-o", "coupling"], "'coupling'"),
    (["learn", "gridworld-v0", "-o", "coupling=best"], "'best'"),
    (["learn", "gridworld-v0", "-o", "colour=red"], "'colour'"),
    (["learn", "gridworld-v0", "--rho", "0.1", "-o", "rho=0.2"], "rho=0.2"),
    (["learn", "gridworld-v0", "-o", "samples=1", "-o", "samples=2"], "samples"),
    (["learn", "gridworld-v0", "--env-option", "size=huge"], "'huge'"),
    (["learn", "gridworld-v0", "--env-option", "horizon=3"], "horizon"),
    (["learn", "gridworld-v0", "--env-option", "colour=1"], "'colour'"),
    (["learn", "absent.py:mdp"], "'absent.py'"),
    (["learn", "mine.py"], "mine.py:NAME"),
    (["learn", "gridworld-v0", "--reward-range", "0", "1"], "'reward_range'"),
    (["learn", "gym:Blackjack-v1", "-H", "2", "--reward-range", "0", "much"], "'much'"),
    (["learn", "gym:Blackjack-v1", "-H", "2", "--reward-range", "2", "1"], "(2.0, 1.0)"),
    (["learn", "gym:Blackjack-v1", "-H", "2"], "--reward-range LOW HIGH"),
    (["learn", "gym:Blackjack-v1", "--reward-range", "0", "1", "--env-option", "reward_range=[0,1]"], "'reward_range'"),
    (["twice", "gridworld-v0", "--data-seed", "1"], "[1]"),
    (["twice", "gridworld-v0", "--data-seed", "1", "--data-seed", "1"], "[1, 1]"),
    (["twice", "gridworld-v0", "--data-seed", "x"], "'x'"),
    (["replicate"], "RECIPE"),
    (["replicate", "absent.json"], "absent.json"),
    (["verify", "absent", "--proof"], "--proof"),
    (["confirm", "absent"], "--target"),
    (["confirm", "absent", "--target", "1"], "absent"),
    (["learn", "gridworld-v0", "--quality", "1"], "1"),
    (["learn", "gridworld-v0", "--quality", "0.8", "--epsilon", "0.3"], "epsilon=0.3"),
    (["verify", "absent"], "--log FILE"),
    (["check-log", "absent.csv"], "absent.csv"),
    (["verify", "--data", "a.csv", "absent"], "for two logs, got neither"),
    (["verify", "--data", "a.csv"], "A and B"),
    (["verify", "a", "b", "--horizon", "5"], "--data"),
    (["verify", "absent", "absent"], "absent"),
    (["audit", "gridworld-v0", "--learner", "nobody"], "'nobody'"),
    (["audit", "gridworld-v0", "--learner", "mine.py"], "mine.py:NAME"),
    (["audit", "gridworld-v0", "--learner", "absent.py:f"], "'absent.py'"),
    (["audit", "gridworld-v0", "--pairs", "0"], "0"),
    (["audit", "gridworld-v0", "--level", "2"], "2"),
    (["audit", "gridworld-v0", "--pairs", "few"], "'few'"),
    (["audit", "gym:CartPole-v1", "--learner", "ars", "--sequential"], "for an audit of agents"),
    (["audit", "gym:CartPole-v1", "--learner", "ars", "--discount", "0.9"], "for an audit of agents"),
    (["report", "absent", "-o", "x.html"], "absent"),
    (["report", "absent"], "--out"),
    (["list", "extra"], "extra"),
    (["list", "--nonsense"], "--nonsense"),
]


@pytest.mark.parametrize(("words", "quoted"), WRONG, ids=lambda x: " ".join(x)[:50] if isinstance(x, list) else "")
def test_bad_input_is_refused_in_one_line_that_quotes_it(call, words, quoted):
    code, out, err = call(*words)
    assert (code, out) == (2, "")
    assert err.startswith("reprl: ")
    assert err.count("\n") == 1
    assert quoted in err
    assert "Traceback" not in err
    code, out, err = call(*words, "--json")
    assert (code, err) == (2, "")
    assert quoted in json.loads(out)["error"] or "--json" in json.loads(out)["error"]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("broken", "broken must build an environment, got ZeroDivisionError: 'division by zero'"),
        ("seven", "got 7"),
        ("absent", "must define 'absent'"),
        ("lake", "horizon must be given"),
    ],
)
def test_a_file_that_gives_no_environment_is_refused(call, file, name, message):
    code, out, err = call("learn", f"{file}:{name}", *QUICK)
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1


def test_a_file_that_fails_is_refused(call, tmp_path):
    path = tmp_path / "bad.py"
    path.write_text("raise SystemExit(3)")
    code, _, err = call("learn", f"{path}:mdp")
    assert code == 2
    assert "bad.py must run, got SystemExit: '3'" in err
    path.write_text("def (")
    code, _, err = call("learn", f"{path}:mdp")
    assert code == 2
    assert "SyntaxError" in err


# Help


def test_help_lists_every_command_and_explains_the_seeds(call):
    code, out, _ = call("--help")
    assert code == 0
    assert sorted(COMMANDS) == sorted(str(command.name) for command in app.registered_commands)
    for name in COMMANDS:
        assert f" {name} " in out
    assert "shared seed" in out
    assert "data seed" in out


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_with_an_example_and_json(call, name):
    code, out, _ = call(name, "--help")
    assert code == 0
    assert "--json" in out
    assert "reprl " in out.split("Usage:", 1)[1].split("\n", 1)[1]


def test_the_version_is_the_package_s(call):
    assert call("--version") == (0, f"reprl {reprl.__version__}\n", "")


def test_a_bare_command_prints_help_and_is_bad_input(call):
    code, out, err = call()
    assert code == 2
    assert "Usage: reprl" in out + err


# Answers


def test_learn_says_what_to_publish_and_what_to_keep(call, tmp_path):
    out = tmp_path / "run"
    code, printed, err = call("learn", *WORLD, *QUICK, "--shared-seed", 7, "--data-seed", 12345, "--out", out)
    assert (code, err) == (0, "")
    run = load_run(out)
    assert run.policy.fingerprint in printed
    assert re.search(r"publish +.*recipe.json, which holds the shared seed 7\n", printed)
    assert re.search(r"keep private +the data seed 12345", printed)
    told = (
        r"earns at least 90 % of the gain .* with probability ≥ 0\.9 \[rehearsed: in \d+ of \d+ simulated data sets\]"
    )
    assert re.search(rf"quality +{told}\n", printed)
    assert re.search(
        r"same policy +a second team prints it .* ≥ 0\.9 \[rehearsed: \d+ of \d+ simulated teams\]", printed
    )
    assert re.search(r"earns +[\d.]+; the best policy [\d.]+, the baseline \(always ↑\) 0: [\d.]+ % of", printed)
    assert "every step" in printed
    assert "\x1b" not in printed


def test_learn_prints_one_document_that_agrees_with_the_folder(answer, tmp_path):
    code, document = answer("learn", *WORLD, *QUICK, "--shared-seed", 7, "--data-seed", 1, "--out", tmp_path / "run")
    run = load_run(tmp_path / "run")
    assert code == 0
    assert document["fingerprint"] == run.policy.fingerprint
    assert document["recipe"] == run.recipe.to_dict()
    assert document["receipt"] == run.receipt.to_dict()
    assert [document["guarantee"][name]["status"] for name in ("quality", "same")] == ["rehearsed"] * 2
    assert document["decided"] is True
    assert (document["shared_seed"], document["data_seed"]) == (7, 1)
    assert Policy(document["actions"]) == run.policy


def test_learn_is_the_library_s_learn(answer):
    _, document = answer("learn", *WORLD, *QUICK, "--shared-seed", 7, "--data-seed", 1, "--rho", "0.05")
    mdp = reprl.make("gridworld-v0", horizon=3, size=2)
    direct = reprl.learn(mdp, shared_seed=7, data_seed=1, rho=0.05, access="generative")
    assert {**document["receipt"], "timings": 0} == {**direct.receipt.to_dict(), "timings": 0}


def test_learn_keeps_another_recipe_s_folder_unless_forced(call, folder, tmp_path):
    target = tmp_path / "run"
    assert call("learn", *WORLD, *QUICK, "--shared-seed", 7, "--out", target)[0] == 0
    before = load_run(target).receipt
    code, _, err = call("learn", *WORLD, *QUICK, "--shared-seed", 8, "--out", target)
    assert code == 2
    assert "--force" in err
    assert load_run(target).receipt == before
    assert call("learn", *WORLD, *QUICK, "--shared-seed", 8, "--out", target, "--force")[0] == 0
    assert load_run(target).recipe.shared_seed == 8


def test_the_second_team_arrives_at_the_same_policy(call, answer, folder, tmp_path):
    code, document = answer("replicate", folder / "recipe.json", "--data-seed", 2, "--out", tmp_path / "second")
    assert code == 0
    assert document["same"] is True
    assert document["receipt"]["data_commitment"] != load_run(folder).receipt.data_commitment
    code, out, _ = call("verify", folder, tmp_path / "second")
    assert code == 0
    assert "same policy" in out
    assert len(re.findall(rf"^fingerprint +{load_run(folder).policy.fingerprint}$", out, re.MULTILINE)) == 1


def test_a_run_that_is_not_sure_exits_1_and_prints_no_figure(call, answer, tmp_path):
    words = ["inventory-v0", "--max-samples", 4_000, "--shared-seed", 7, "--data-seed", 1]
    code, out, err = call("learn", *words, "--out", tmp_path / "run")
    assert (code, err) == (1, "")
    assert re.search(r"quality +nothing is promised: only \d+ of 40 simulated data sets say", out)
    assert re.search(r"same policy +nothing is promised: only \d+ of 40 simulated teams print this policy\n", out)
    assert "with probability ≥" not in out
    assert re.search(r"teams differ +\d on the shelf \([\d.]+ % of teams\)", out)
    assert re.search(r"to continue +reprl replicate .* --data-seed 1 --out .* --force --max-samples 16000\n", out)
    assert out.endswith("undecided: the samples ran out before this run could promise anything\n")
    code, document = answer("learn", *words)
    assert (code, document["decided"]) == (1, False)
    assert [document["guarantee"][name]["risk"] for name in ("quality", "same")] == [None] * 2
    assert document["teams_differ"][0]["state_name"].endswith("on the shelf")
    assert call("report", tmp_path / "run", "-o", tmp_path / "run.html")[0] == 0
    page = (tmp_path / "run.html").read_text()
    assert "Nothing is promised" in page
    assert "with probability at least" not in page
    code, out, _ = call("twice", *words, "--data-seed", 2)
    assert code == 1
    assert out.count("nothing is promised") >= 2
    assert "with probability ≥" not in out
    code, document = answer("replicate", tmp_path / "run", "--data-seed", 2, "--max-samples", 2_000)
    assert code == 1
    assert "was undecided when" in call("verify", tmp_path / "run", tmp_path / "run")[1]


def test_preference_is_by_name_or_number(answer, file):
    for text, order in (("treat,wait", [1, 0]), ("1, 0", [1, 0]), ("wait,1", [0, 1]), ("shared", "shared")):
        _, document = answer("learn", f"{file}:clinic", *QUICK, "--preference", text)
        assert document["recipe"]["settings"]["preference"] == order


def test_replicate_exits_1_where_the_first_team_has_another_policy(call, answer, tmp_path):
    target = tmp_path / "run"
    assert call("learn", *WORLD, *FEW, "--shared-seed", 7, "--data-seed", 1, "--out", target)[0] == 0
    code, document = answer("replicate", target, "--data-seed", 3)
    assert code == 1
    assert document["same"] is False
    assert document["comparison"]["different"] >= 1
    code, out, _ = call("replicate", target, "--data-seed", 3)
    assert code == 1
    assert "different policies" in out
    assert re.search(r"\d+ of 12 cells differ", out)


def test_the_same_data_is_no_replication(answer, folder):
    code, document = answer("replicate", folder, "--data-seed", 1)
    assert code == 0
    assert "determinism, not replicability" in document["remark"]
    code, document = answer("verify", folder, folder / "receipt.json")
    assert code == 0
    assert "determinism, not replicability" in document["remarks"][0]


def test_a_recipe_without_its_receipt_has_nothing_to_compare_with(answer, folder, tmp_path):
    load_run(folder).recipe.save(tmp_path / "lonely.json")
    code, document = answer("replicate", tmp_path / "lonely.json")
    assert (code, document["same"]) == (0, None)


def test_the_receipt_of_another_recipe_is_not_compared(answer, folder, tmp_path):
    replace(load_run(folder).recipe, shared_seed=8).save(tmp_path / "recipe.json")
    load_run(folder).receipt.save(tmp_path / "receipt.json")
    code, document = answer("replicate", tmp_path)
    assert (code, document["same"]) == (0, None)
    assert "belongs to another recipe" in document["remark"]


def test_replicate_does_not_overwrite_the_first_run(call, folder):
    before = load_run(folder).receipt
    code, _, err = call("replicate", folder, "--out", folder)
    assert code == 2
    assert "another folder" in err
    assert load_run(folder).receipt == before


def test_a_recipe_that_cannot_be_honoured_is_refused(call, folder, tmp_path):
    text = (folder / "recipe.json").read_text()
    path = tmp_path / "recipe.json"
    for old, new, field in (
        ('"stream_version": 1', '"stream_version": 2', "stream_version"),
        ('"shared_seed": 7', '"shared_seed": "7"', "shared_seed"),
        ('"size": 2', '"size": 3', "environment.n_states"),
        ('"id": "gridworld-v0"', '"id": "gridworld-v7"', "environment"),
        ('"version": 1,\n  "env', '"version": 2,\n  "env', "version"),
    ):
        assert old in text
        path.write_text(text.replace(old, new))
        code, out, err = call("replicate", path)
        assert (code, out) == (2, "")
        assert field in err
        assert err.count("\n") == 1


def test_an_environment_of_one_s_own_travels_by_its_file(call, answer, file, tmp_path):
    run = tmp_path / "run"
    code, out, _ = call("learn", f"{file}:mdp", *QUICK, "--shared-seed", 1, "--data-seed", 4, "--out", run)
    assert code == 0
    assert f"reprl replicate {run}/recipe.json --env {file}:mdp\n" in out
    code, _, err = call("replicate", run)
    assert code == 2
    assert "environment.id" in err
    code, _, err = call("replicate", run, "--env", f"{file}:other")
    assert code == 2
    assert "environment.digest" in err
    code, document = answer("replicate", run, "--env", f"{file}:mdp", "--data-seed", 5)
    assert (code, document["same"]) == (0, True)


def test_the_names_of_one_s_own_environment_are_in_the_report_and_the_comparison(call, answer, file, tmp_path):
    for name, data_seed in (("first", 1), ("second", 2)):
        words = ["learn", f"{file}:clinic", *QUICK, "--shared-seed", 1, "--data-seed", data_seed]
        assert call(*words, "--out", tmp_path / name)[0] == 0
    assert call("report", tmp_path / "first", "-o", tmp_path / "first.html")[0] == 0
    page = (tmp_path / "first.html").read_text()
    assert "State names unknown" not in page
    assert all(name in page for name in ("clinic", "well", "ill", "wait", "treat"))
    policy = load_run(tmp_path / "first").policy
    Policy(1 - policy.actions).save(tmp_path / "other.json")
    code, document = answer("verify", tmp_path / "first", tmp_path / "other.json")
    assert code == 1
    assert [cell["state_name"] for cell in document["first"]] == ["well", "ill", "well", "ill"]
    assert sorted(document["first"][0]["action_names"]) == ["treat", "wait"]
    assert document["values"] is None
    call("learn", f"{file}:mdp", *QUICK, "--shared-seed", 1, "--out", tmp_path / "nameless")
    Policy(1 - policy.actions).save(tmp_path / "nameless" / "policy.json")
    code, document = answer("verify", tmp_path / "first" / "policy.json", tmp_path / "nameless" / "policy.json")
    assert document["first"][0]["state_name"] == "well"  # a receipt of another policy does not count


def test_a_second_team_gives_the_factory_its_options(call, answer, file, tmp_path):
    _, out, _ = call("learn", f"{file}:clinic", *QUICK, "--env-option", "fee=0.2", "--out", tmp_path / "run")
    assert f"--env {file}:clinic --env-option fee=0.2\n" in out
    assert call("replicate", tmp_path / "run", "--env", f"{file}:clinic")[0] == 2
    words = ["replicate", tmp_path / "run", "--env", f"{file}:clinic", "--env-option", "fee=0.2"]
    assert answer(*words)[1]["same"] is not None
    code, _, err = call("replicate", tmp_path / "run", "--env-option", "fee=0.2")
    assert code == 2
    assert "must come with --env" in err


def test_a_plain_gymnasium_env_gets_its_reward_range(call, file, tmp_path):
    coin = ["learn", f"{file}:Coin", "-H", 2, "--shared-seed", 1, "--workers", 1]
    code, _, err = call(*coin)
    assert code == 2
    assert "--reward-range LOW HIGH" in err
    code, out, _ = call(*coin, "--reward-range", -1, 1, "--out", tmp_path / "run")
    assert code == 0
    assert re.search(r"ended +· ", out)
    assert "or the episode is over" in out
    assert f"--env {file}:Coin --reward-range -1.0 1.0\n" in out
    assert load_run(tmp_path / "run").receipt.labels.states == ("0", "1", "ended")
    again = ["replicate", tmp_path / "run", "--env", f"{file}:Coin", "--workers", 1, "--reward-range"]
    assert call(*again, -1, 1)[0] in (0, 1)
    code, _, err = call(*again, -2, 1)
    assert code == 2
    assert "environment.reward_range (-1.0, 1.0), got (-2.0, 1.0)" in err


def test_factories_get_their_options_and_a_horizon(answer, file):
    _, document = answer("learn", f"{file}:grid", "--env-option", "size=3", "-H", 2, *QUICK)
    assert document["recipe"]["environment"]["horizon"] == 2
    assert document["recipe"]["environment"]["n_states"] == 9
    _, document = answer("learn", f"{file}:lake", "-H", 2, *QUICK)
    assert document["recipe"]["environment"]["id"] is None
    assert document["recipe"]["environment"]["n_states"] == 16


def test_verify_names_the_first_cells_that_differ(call, answer, folder, tmp_path):
    policy = load_run(folder).policy
    actions = policy.actions.copy()
    actions[1, 0] = (actions[1, 0] + 1) % 4
    Policy(actions).save(tmp_path / "other.json")
    code, document = answer("verify", folder, tmp_path / "other.json")
    assert code == 1
    assert (document["different"], document["cells"]) == (1, 12)
    cell = document["first"][0]
    assert (cell["step"], cell["state"], cell["state_name"]) == (1, 0, "0,0 start")
    assert cell["action_names"] == ["↑→↓←"[policy.actions[1, 0]], "↑→↓←"[actions[1, 0]]]
    assert document["value_difference"] == abs(document["values"][0] - document["values"][1])
    code, out, _ = call("verify", folder, tmp_path / "other.json")
    assert code == 1
    assert re.search(r"1 of 12 cells differ \(8\.33%\)", out)
    assert "0,0 start" in out


def test_verify_compares_bare_policies_by_number(call, answer, folder, tmp_path):
    for name, actions in (("a", [[0, 1], [1, 0]]), ("b", [[0, 1], [1, 1]]), ("c", [[0, 1]])):
        Policy(actions).save(tmp_path / f"{name}.json")
    code, document = answer("verify", tmp_path / "a.json", tmp_path / "b.json")
    assert code == 1
    assert document["first"] == [
        {"step": 1, "state": 1, "actions": [0, 1], "state_name": "1", "action_names": ["0", "1"]}
    ]
    assert document["values"] is None
    code, out, _ = call("verify", tmp_path / "a.json", tmp_path / "c.json")
    assert code == 1
    assert "shapes (H, S) differ: (2, 2) and (1, 2)" in out
    load_run(folder).receipt.save(tmp_path / "receipt.json")
    code, out, _ = call("verify", tmp_path / "receipt.json", tmp_path / "a.json")
    assert code == 1
    assert "Only fingerprints are known" in out
    code, document = answer("verify", tmp_path / "a.json", tmp_path / "b.json", "--env", "river-swim-v0")
    assert code == 1
    assert document["first"][0]["state_name"] == "1"  # 6 states: not this policy's world


def test_verify_takes_the_environment_by_name(answer, folder, tmp_path):
    policy = load_run(folder).policy
    policy.save(tmp_path / "a.json")
    Policy((policy.actions + 1) % 4).save(tmp_path / "b.json")
    world = tmp_path / "world.py"
    world.write_text(FILE)
    _, document = answer("verify", tmp_path / "a.json", tmp_path / "b.json", "--env", f"{world}:grid")
    assert document["different"] == 12
    assert document["values"] is not None


def test_verify_refuses_a_mixture(call, folder, tmp_path):
    for name in ("recipe.json", "receipt.json"):
        (tmp_path / name).write_text((folder / name).read_text())
    Policy([[0, 1]]).save(tmp_path / "policy.json")
    code, _, err = call("verify", folder, tmp_path)
    assert code == 2
    assert "got a mixture" in err


def test_twice_shows_two_equal_fingerprints(call, answer):
    seeds = ["--shared-seed", 7, "--data-seed", 1, "--data-seed", 2]
    code, document = answer("twice", *WORLD, *QUICK, *seeds)
    assert code == 0
    assert document["same"] is True
    assert [run["data_seed"] for run in document["runs"]] == [1, 2]
    assert document["runs"][0]["receipt"]["data_commitment"] != document["runs"][1]["receipt"]["data_commitment"]
    code, out, _ = call("twice", *WORLD, *QUICK, *seeds)
    short = document["fingerprints"][0][:12]
    assert code == 0
    assert out.count(short) == 1
    assert "\nsame policy\n" in out
    assert re.search(r"rehearsed: \d+ of \d+ simulated teams", out)
    assert re.search(r"data seed +1 +2\n", out)
    assert "a single action may be worse than the best one" in out
    assert re.search(r"greedy planning on these two data sets differs in \d+ of 12 cells: it shares no random", out)


def test_twice_exits_1_when_runs_differ(call, answer):
    few = [*FEW, "--shared-seed", 7, "--data-seed", 1, "--data-seed", 3]
    code, document = answer("twice", *WORLD, *few)
    assert code == 1
    assert document["same"] is False
    code, out, _ = call("twice", *WORLD, *few)
    assert code == 1
    assert "different policies" in out


def test_twice_draws_fresh_seeds(answer):
    _, document = answer("twice", *WORLD, *QUICK)
    seeds = [run["data_seed"] for run in document["runs"]] + [document["shared_seed"]]
    assert len(set(seeds)) == 3


def test_environments_and_learners_are_listed_together_and_alone(answer, call):
    found = answer("list")[1]
    assert [entry["id"] for entry in found["environments"]] == [x.id for x in reprl.catalogue()]
    assert {"reprl", "ucbvi", "ars"} <= {entry["name"] for entry in found["learners"]}
    for kind in ("environments", "learners"):
        assert answer("list", kind)[1] == {kind: found[kind]}
    out = call("list")[1]
    assert all(entry.id in out for entry in reprl.catalogue())
    assert "ucbvi" in out
    assert "ucbvi" not in call("list", "environments")[1]


def test_an_audit_exits_1_when_it_rejects(answer, call, tmp_path):
    code, document = answer("audit", *WORLD, *QUICK, "--pairs", 3, "--seed", 1)
    assert (code, document["verdict"]) == (0, "not rejected")
    out = tmp_path / "audit.json"
    words = ["audit", *WORLD, "--learner", "greedy", "-o", "samples=48", "--pairs", 8, "--seed", 1, "--workers", 1]
    code, document = answer(*words, "--out", out)
    assert (code, document["verdict"]) == (1, "rejected")
    assert json.loads(out.read_text()) == document
    assert "rejected" in call(*words)[1]


def test_an_audit_takes_a_learner_from_a_file(call, answer, file):
    words = ["audit", f"{file}:mdp", "--learner", f"{file}:coin_flips", "--pairs", 20, "--seed", 1]
    code, document = answer(*words)
    assert (code, document["learner"], document["verdict"]) == (1, "coin_flips", "rejected")
    code, document = answer(*words, "-o", "bias=1")
    assert (code, document["disagreements"], document["options"]) == (0, 0, {"bias": 1})
    assert answer(*words, "--workers", 2) == answer(*words)
    code, _, err = call("audit", *WORLD, "--learner", f"{file}:seven")
    assert code == 2
    assert "got 7" in err


def test_an_audit_starts_no_processes_unless_told(call, monkeypatch):
    monkeypatch.setattr("joblib.Parallel", None)
    words = ["audit", *WORLD, "--learner", "greedy", "-o", "samples=48", "--pairs", 1]
    assert call(*words)[0] == 0
    assert call(*words, "--workers", 2)[0] == 3


def test_a_report_is_written_from_a_run_folder(answer, folder, tmp_path):
    code, document = answer("report", folder, "-o", tmp_path / "run.html")
    assert code == 0
    page = (tmp_path / "run.html").read_text()
    assert document["bytes"] == len(page.encode())
    assert load_run(folder).policy.fingerprint in page


def test_tables_fold_on_a_narrow_screen(call, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    for words in (["list"], ["twice", *WORLD, *QUICK, "--shared-seed", "7"]):
        _, out, _ = call(*words)
        assert max(map(len, out.splitlines())) <= 40


def test_a_fault_of_ours_does_not_look_like_an_answer(call, monkeypatch):
    monkeypatch.setattr("reprl.mdp.catalogue.catalogue", lambda: 1 / 0)
    code, out, err = call("list")
    assert (code, out) == (3, "")
    assert "Traceback" in err
    code, out, _ = call("list", "--json")
    assert code == 3
    assert json.loads(out) == {"error": "ZeroDivisionError: division by zero"}


@pytest.mark.parametrize(
    ("error", "code"), [(ReprlError("bad"), 2), (OSError(28, "No space left on device"), 2), (KeyboardInterrupt(), 130)]
)
def test_expected_errors_become_one_line(call, monkeypatch, error, code):
    def fail():
        raise error

    monkeypatch.setattr("reprl.mdp.catalogue.catalogue", fail)
    found, out, err = call("list")
    assert (found, out) == (code, "")
    assert err.count("\n") == 1


def test_a_finished_run_is_not_made_again(answer, call, tmp_path):
    words = ["learn", *WORLD, *QUICK, "--shared-seed", 7, "--out", tmp_path / "run"]
    _, first = answer(*words, "--data-seed", 1)
    before = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "run").iterdir()}

    def untouched() -> bool:
        return {path.name: path.stat().st_mtime_ns for path in (tmp_path / "run").iterdir()} == before

    for again in (words, [*words, "--data-seed", 1], [*words[:-4], *words[-2:]]):  # the last without a shared seed
        code, second = answer(*again)
        assert code == 0
        assert second["remark"] == "finished before: nothing was done"
        assert {name: first[name] for name in second if name != "remark"} == {
            name: value for name, value in second.items() if name != "remark"
        }
        assert untouched()
    code, out, _ = call(*words)
    assert "nothing was done (--force learns again)" in out
    assert call(*words, "--rho", 0.2)[0] == 2  # another recipe is refused as ever
    assert untouched()
    code, other = answer(*words, "--data-seed", 2)  # other data are other work
    assert "remark" not in other
    assert other["receipt"]["data_commitment"] != first["receipt"]["data_commitment"]
    assert "remark" not in answer(*words, "--force")[1]
