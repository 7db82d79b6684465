"""Audits of agents that are no tables: distances, exact intervals, pages; without torch but where it is installed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

import reprl
from reprl.auditing.agent_record import AgentReport
from reprl.auditing.agents import audit_agents
from reprl.auditing.evidence import bounded_interval, student
from reprl.cli.app import main
from reprl.randomness import DataStream
from reprl.report.card import card
from tests.test_adapters import Model, walk


def pole(env: Any, shared_key: reprl.SharedKey, seed: int, noise: float = 0.0) -> Any:
    """Lean with the pole; a private bias makes two agents differ where it is nearly upright."""
    walk(env, 2)
    bias = noise * (seed / 2**31 - 0.5)
    return Model(lambda seen: int(seen[2] + 0.3 * seen[3] + bias > 0.0))


def audit(**options: Any) -> AgentReport:
    return audit_agents("gym:CartPole-v1", pole, 4, horizon=60, episodes=6, seed=1, **options)


def test_equal_agents_are_at_distance_zero_and_noisy_ones_are_not() -> None:
    same, noisy = audit(), audit(noise=0.8)
    assert same.disagreements == 0
    assert same.identical == 4
    assert same.distance.mean == 0.0
    assert all(pair.alike == 6 for pair in same.pairs)
    assert not same.places
    assert same.gap is not None
    assert same.gap.mean == 0.0
    assert noisy.disagreements >= 3
    assert noisy.verdict == "rejected"
    assert noisy.places[0].apart >= noisy.places[-1].apart > 0.0
    assert noisy.to_json() == audit(noise=0.8).to_json()


def test_a_rejection_is_said_as_a_bound(tmp_path: Path) -> None:
    """The hypothesis is "at most ρ", so its chance is known from above only."""
    page = reprl.write_report(audit(noise=0.8), tmp_path / "audit.html").read_text()
    assert "so many would differ with probability at most 0.0001" in page


def test_figures_are_those_of_a_naive_recount() -> None:
    report = audit(noise=0.8)
    number = 2
    words = DataStream(1, "audit/data", number).integers(2)
    biases = []
    for word in words:
        seed = int(DataStream(int(word) >> 1, "learner/seed").integers(1)[0]) >> 33
        biases.append(0.8 * (seed / 2**31 - 0.5))
    trial = int(DataStream(1, "audit/evaluation", number).integers(1)[0]) >> 1
    env = gymnasium.make("CartPole-v1")
    shares, returns = [], []
    for bias in biases:
        for episode in range(6):
            word = int(DataStream(trial, "learner/episode", episode).integers(1)[0]) >> 33
            seen, _ = env.reset(seed=word)
            apart, total = [], 0.0
            for _ in range(60):
                actions = [int(seen[2] + 0.3 * seen[3] + each > 0.0) for each in biases]
                apart.append(actions[0] != actions[1])
                seen, paid, ended, _, _ = env.step(int(seen[2] + 0.3 * seen[3] + bias > 0.0))
                total += float(paid)
                if ended:
                    break
            shares.append(np.mean(apart))
            returns.append(total)
    pair = report.pairs[number]
    assert pair.distance == pytest.approx(np.mean(shares))
    assert pair.returns == pytest.approx((np.mean(returns[:6]), np.mean(returns[6:])))
    units = np.mean([shares[:6], shares[6:]], axis=0)
    assert pair.alike == int((units == 0.0).sum())


def test_the_document_is_read_back_and_bad_ones_are_refused(tmp_path: Any) -> None:
    report = audit(noise=0.8)
    assert AgentReport.load(report.save(tmp_path / "agents.json")) == report
    for old, new, message in (
        ('"grade": "approximate replicability"', '"grade": "replicability"', "grade must be one of"),
        ('"verdict": "rejected"', '"verdict": "undecided"', "verdict must be one of rejected, not rejected"),
        ('"version": 1', '"version": 2', "version"),
    ):
        with pytest.raises(reprl.ReprlError, match=message):
            AgentReport.from_json(report.to_json().replace(old, new))
    page = reprl.write_report(report, tmp_path / "agents.html").read_text("utf-8")
    assert "approximate replicability" in page
    assert "arXiv:2510.20200" in page
    assert "States in which most pairs differ" in page
    assert "approximate replicability" in card(report)
    assert len(report.to_pandas()) == 4


def test_boxes_of_actions_and_tables_have_the_same_ruler() -> None:
    def push(env: Any, seed: int, size: float) -> Any:
        walk(env, 1)
        return lambda seen: np.array([size * (seed % 2)], dtype=np.float32)

    near = audit_agents("gym:Pendulum-v1", push, 3, horizon=10, episodes=2, seed=3, size=0.1)
    far = audit_agents("gym:Pendulum-v1", push, 3, horizon=10, episodes=2, seed=3, size=1.0)
    assert near.disagreements == 0
    assert far.disagreements > 0
    table = audit_agents("gym:FrozenLake-v1", "ucbvi", 2, horizon=6, episodes=3, seed=1, samples=2000)
    assert table.learner == "ucbvi"
    assert 1900.0 < table.samples <= 2000.0


def test_faults_are_one_line() -> None:
    def nothing(env: Any) -> Any:
        return None

    for call, message in (
        (lambda: audit_agents("gym:CartPole-v1", nothing, 1), "learner nothing must return .* got None"),
        (lambda: audit(gamma=1.5), r"gamma must lie in \(0, 1\), got 1.5"),
        (lambda: audit(samples=10), "the budget of 10 samples is spent"),
    ):
        with pytest.raises(reprl.ReprlError, match=message):
            call()


def test_the_command_line(tmp_path: Any, capsys: Any, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(
        "def train(env, lean=0.3):\n    env.reset()\n    return lambda seen: int(seen[2] + lean * seen[3] > 0)\n"
    )
    line = ["audit", "gym:CartPole-v1", "--learner", "mine.py:train", "--pairs", "2", "--horizon", "30"]
    assert main([*line, "--episodes", "2", "--seed", "1", "-o", "lean=0.2", "--out", "a"]) == 0
    assert "approximate replicability" in capsys.readouterr().out
    assert main(["report", "a", "-o", "a.html"]) == 0
    assert (tmp_path / "a.html").exists()


def test_one_audit_decides_by_the_learner() -> None:
    """Tables are equal or not; agents are asked how often they act alike, wherever gamma asks for it."""
    how: dict[str, Any] = {"pairs": 1, "horizon": 5, "seed": 1}

    def left(env: Any) -> Any:
        env.reset()
        return lambda seen: 0

    for env, learner, more in (
        ("gym:CartPole-v1", left, {}),
        (lambda: gymnasium.make("CartPole-v1"), left, {}),
        ("gym:CartPole-v1", "ars", {"samples": 200}),
        ("gym:FrozenLake-v1", left, {"gamma": 0.1, "evaluation": 2}),
    ):
        found: Any = reprl.audit(env, learner, **how, **more)
        assert isinstance(found, AgentReport)
        assert found.gamma == more.get("gamma", 0.05)
    assert isinstance(reprl.audit("gym:FrozenLake-v1", left, **how), reprl.AuditReport)
    assert isinstance(reprl.audit("gridworld-v0", left, pairs=1, seed=1), reprl.AuditReport)
    with pytest.raises(reprl.ReprlError, match=r"closeness must be left out unless agents are audited, got 0\.1"):
        reprl.audit("gym:FrozenLake-v1", left, closeness=0.1, **how)
    with pytest.raises(reprl.ReprlError, match="runs_per_key must be left out for an audit of agents, got 3"):
        reprl.audit("gym:CartPole-v1", left, runs_per_key=3, **how)


@pytest.mark.parametrize("n", [1, 5, 30])
def test_the_interval_of_bounded_figures(n: int) -> None:
    """Against Chernoff's inequality itself: at each end the bound is 2.5 %, and Hoeffding's interval is no shorter."""
    for mean in (0.0, 0.02, 0.3, 0.5, 1.0):
        low, high = bounded_interval(mean, n)
        assert 0.0 <= low <= mean <= high <= 1.0
        radius = np.sqrt(np.log(40.0) / (2.0 * n))
        assert mean - low <= radius + 1e-9
        assert high - mean <= radius + 1e-9
        for end in (low, high):
            if 0.0 < end < 1.0:
                kl = sum(x * np.log(x / y) for x, y in ((mean, end), (1.0 - mean, 1.0 - end)) if x)
                assert np.exp(-n * kl) == pytest.approx(0.025, rel=0.01)


@pytest.mark.statistical
def test_the_interval_covers() -> None:
    """Coverage ≥ 95 % of the mean of Beta(0.2, 2) figures; false alarm 1e-6; a tenth of the width is the control."""
    from scipy.stats import binomtest

    rng = np.random.default_rng(4)
    truth, trials, missed, control = 0.2 / 2.2, 400, 0, 0
    for _ in range(trials):
        mean = float(rng.beta(0.2, 2.0, size=20).mean())
        low, high = bounded_interval(mean, 20)
        missed += not low <= truth <= high
        control += not mean - 0.1 * (mean - low) <= truth <= mean + 0.1 * (high - mean)
    assert binomtest(missed, trials, 0.05, alternative="greater").pvalue > 1e-6  # power at 0.15: > 0.99
    assert binomtest(control, trials, 0.05, alternative="greater").pvalue < 1e-6


def test_student() -> None:
    from scipy.stats import t

    values = [1.0, 2.0, 4.0, 4.5]
    found = student(values)
    low, high = t.interval(0.95, 3, loc=np.mean(values), scale=np.std(values, ddof=1) / 2.0)
    assert (found.low, found.high) == pytest.approx((low, high))
    assert student([2.0], 0.0, 5.0) == (2.0, 0.0, 5.0)


def test_stable_baselines_models_are_agents() -> None:
    pytest.importorskip("torch")
    stable = pytest.importorskip("stable_baselines3")

    def train(env: Any, shared_key: reprl.SharedKey) -> Any:
        weights = int(2**31 * shared_key.uniforms(1)[0])
        return stable.PPO("MlpPolicy", env, seed=weights, device="cpu", n_steps=64, batch_size=32, n_epochs=1).learn(64)

    report = audit_agents("gym:CartPole-v1", train, 1, horizon=40, episodes=2, seed=1)
    assert report.samples >= 128.0 / 2.0
    assert 0.0 <= report.distance.mean <= 1.0
    lake = reprl.audit("gym:FrozenLake-v1", train, pairs=1, horizon=5, seed=1)
    assert lake.learner == "train"


def test_an_audit_that_was_stopped_goes_on_with_its_pairs(tmp_path: Path) -> None:
    """Two pairs, then a stop: they are reported by themselves, and four go on from them, to the same bytes."""
    trained: list[int] = []

    def counted(env: Any, shared_key: reprl.SharedKey, seed: int) -> Any:
        if len(trained) == 5:
            raise KeyboardInterrupt
        trained.append(seed)
        return pole(env, shared_key, seed, 0.8)

    def run(pairs: int, folder: Path | None) -> str:
        given: dict[str, Any] = {"seed": 1} if folder is None else {"checkpoint": folder}
        return audit_agents("gym:CartPole-v1", counted, pairs, horizon=60, episodes=6, **given).to_json()

    folder = tmp_path / "pairs"
    with pytest.raises(KeyboardInterrupt):
        audit_agents(
            "gym:CartPole-v1",
            counted,
            4,
            horizon=60,
            episodes=6,
            seed=1,
            checkpoint=folder,
        )
    trained.append(0)
    partial = AgentReport.from_json(run(2, folder))
    assert len(partial.pairs) == 2
    assert len(trained) == 6, "nothing was trained again"
    whole = run(4, folder)
    assert len(trained) == 10
    trained.clear()
    trained += [0] * 6
    assert whole == run(4, None)
    with pytest.raises(reprl.ReprlError, match="must hold tasks of this work, with episodes 7, got episodes 6"):
        audit_agents("gym:CartPole-v1", counted, 4, horizon=60, episodes=7, checkpoint=folder)


@pytest.mark.slow
def test_workers_cannot_change_an_audit_of_agents() -> None:
    assert audit(noise=0.8, workers=2).to_json() == audit(noise=0.8).to_json()
    with pytest.raises(reprl.ReprlError, match="workers must be 1 for an environment that cannot be opened again"):
        audit_agents(gymnasium.make("CartPole-v1"), pole, 2, workers=2)
