"""Searches on the command line, on Gymnasium's own CartPole: what a user types, what it prints, and exit codes."""

from __future__ import annotations

import json

import pytest

from reprl.cli.app import main

CART = ["gym:CartPole-v1", "--target", "20", "--shared-seed", "3"]


@pytest.fixture
def cli(capsys):
    def run(*words):
        code = main([str(word) for word in words])
        out, err = capsys.readouterr()
        return code, out, err

    return run


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("search") / "run"
    assert main(["learn", *CART, "--data-seed", "1", "--out", str(path)]) == 0
    return path


def test_a_published_search_is_repeated_verified_played_and_shown(cli, folder, tmp_path):
    code, out, _ = cli("replicate", folder, "--out", tmp_path / "second", "--data-seed", 2)
    assert code == 0
    assert "same policy" in out
    code, out, _ = cli("verify", folder, tmp_path / "second")
    assert code == 0
    assert "same policy" in out
    code, out, _ = cli("play", folder, "--episodes", 2, "--seed", 5)
    assert code == 0
    assert "mean of 2 episodes" in out
    code, out, _ = cli("confirm", folder, "--target", 15, "--data-seed", 3)
    assert code == 0
    assert "confirmed" in out
    code, _, _ = cli("report", folder, "-o", tmp_path / "one.html")
    assert code == 0
    assert "covers every weight" in (tmp_path / "one.html").read_text()


def test_a_cut_search_differs_says_where_and_goes_on_to_the_same_bytes(cli, folder, tmp_path):
    cut = tmp_path / "cut"
    how = ["learn", *CART, "--data-seed", "2"]
    code, out, _ = cli(*how, "--max-samples", 5_000, "--out", cut)
    assert code == 1
    assert "of rung 0 is undecided after" in out
    code, out, _ = cli("verify", folder, cut)
    assert code == 1
    assert "of 10 weights differ" in out
    assert "they differ from rung 0" in out
    code, _, _ = cli("report", folder, cut, "-o", tmp_path / "two.html")
    assert code == 0
    assert "They differ from rung 0" in (tmp_path / "two.html").read_text()
    code, _, _ = cli(*how, "--out", cut)
    assert code == 0
    code, _, _ = cli(*how, "--workers", 2, "--out", tmp_path / "two")
    assert code == 0
    receipts = [json.loads((path / "receipt.json").read_text()) for path in (cut, tmp_path / "two")]
    assert receipts[0]["digest"] == receipts[1]["digest"]
    assert (cut / "policy.json").read_bytes() == (tmp_path / "two" / "policy.json").read_bytes()


def test_two_searches_an_audit_and_a_comparison(cli, tmp_path):
    code, out, _ = cli("twice", *CART)
    assert code == 0
    assert "same policy" in out
    ask = ["gym:CartPole-v1", "--target", "20", "--seed", "1"]
    code, out, _ = cli("audit", *ask, "--pairs", 2, "--out", tmp_path / "audit.json")
    assert code == 0
    assert "0 of 2 pairs print different policies" in out
    code, _, _ = cli("report", tmp_path / "audit.json", "-o", tmp_path / "audit.html")
    assert code == 0
    learners = ["--learner", "search", "--learner", "cem"]
    code, out, _ = cli("compare", *ask, "--pairs", 2, *learners, "--limit", 20_000)
    assert "reprl (search)" in out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--target", "600"], "target must lie in [0, 500), the range of returns, got 600"),
        (
            ["--rule", "soft", "--horizon", "20"],
            "into cells with gymnasium.wrappers.DiscretizeObservation",
        ),
        (["--policy", "cubic"], "policy must be 'linear', 'quadratic', 'tanh', 'table' or an object"),
        (["--target", "20", "--discount", "0.9"], "discount must be left out for a search, got 0.9"),
    ],
)
def test_bad_input_is_one_line(cli, words, said):
    code, _, err = cli("learn", "gym:CartPole-v1", *words)
    assert code == 2
    assert said in err
    assert len(err.strip().splitlines()) == 1


def test_an_environment_of_a_file_is_searched_where_it_shows_a_box(cli, tmp_path):
    (tmp_path / "mine.py").write_text(
        "import gymnasium\n"
        "import reprl\n"
        "def cart(limit=50): return gymnasium.make('CartPole-v1', max_episode_steps=int(limit))\n"
        "def goals(): return reprl.make('two-goals-v0')\n"
    )
    how = ["--shared-seed", 3, "--data-seed", 1, "--max-samples", 3_000, "--reward-range", 0, 1]
    code, out, _ = cli("learn", f"{tmp_path}/mine.py:cart", "--env-option", "limit=20", *how, "--json")
    assert code in (0, 1)
    assert json.loads(out)["recipe"]["environment"]["horizon"] == 20
    code, _, err = cli("learn", f"{tmp_path}/mine.py:goals", "--target", 1)
    assert code == 2
    assert "target must come with learner='search' where observations are no Box, got 1" in err
