"""Confirmations: every kind of policy and environment, certificates that check themselves, error rates, bad input."""

from __future__ import annotations

import json
from typing import Any

import gymnasium
import numpy as np
import pytest

import reprl
from reprl.artifacts.confirmation import Confirmation
from reprl.cli.app import main
from reprl.errors import DocumentError, InputError, WorkerError
from reprl.sources.episodes import EpisodicModel
from tests.clinic_log import ACTIONS, HORIZON, STATES, make_log, world
from tests.statistics import FALSE_ALARM, exceeds, keeps


def upright(observation: Any) -> int:
    """A controller that keeps CartPole up for about 490 steps of 500."""
    return int(observation[2] + observation[3] > 0.0)


class Coin(gymnasium.Env[Any, Any]):
    """Three tosses, each of which pays 1 with probability `chance`; a policy has nothing to decide."""

    observation_space = gymnasium.spaces.Box(-1.0, 1.0, (2,))
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, chance: float = 0.5, pays: float = 1.0) -> None:
        self.chance, self.pays = chance, pays

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.left = 3
        return np.zeros(2, dtype=np.float32), {}

    def step(self, action: Any) -> Any:
        self.left -= 1
        paid = self.pays * float(self.np_random.random() < self.chance)
        return np.zeros(2, dtype=np.float32), paid, self.left == 0, False, {}


def coin(**options: Any) -> Any:
    """A factory of coins."""
    return lambda: Coin(**options)


COIN: dict[str, Any] = {"horizon": 3, "reward_range": (0.0, 1.0)}


def test_a_function_is_confirmed_and_refuted_on_cartpole():
    found = reprl.confirm(upright, "CartPole-v1", target=450.0, data_seed=1)
    assert (found.verdict, found.status) == ("confirmed", "certified")
    assert found.interval[0] > 450.0
    assert found.return_range == (0.0, 500.0)
    assert found.played >= found.episodes
    assert found.policy == "upright"
    poor = reprl.confirm(lambda seen: 0, "gym:CartPole-v1", target=450.0, data_seed=1)
    assert poor.verdict == "refuted"
    assert poor.interval[1] < 450.0
    assert poor.episodes < 5


def test_the_answer_does_not_depend_on_workers_nor_on_where_it_stopped(tmp_path):
    one = reprl.confirm(upright, "CartPole-v1", target=450.0, data_seed=5)
    two = reprl.confirm(upright, "CartPole-v1", target=450.0, data_seed=5, workers=2)
    assert one.digest == two.digest
    first = reprl.confirm(
        upright, "CartPole-v1", target=450.0, data_seed=5, checkpoint=tmp_path / "tasks", max_samples=20_000
    )
    assert (first.verdict, first.status) == ("undecided", "none")
    assert first.samples <= 20_000
    again = reprl.confirm(upright, "CartPole-v1", target=450.0, checkpoint=tmp_path / "tasks")
    assert again.verdict == "confirmed"
    assert again.returns == one.returns
    with pytest.raises(InputError, match="must hold tasks of this work, with policy"):
        reprl.confirm(lambda seen: 0, "CartPole-v1", target=450.0, checkpoint=tmp_path / "tasks")
    with pytest.raises(InputError, match="must hold tasks of this work, with target 440"):
        reprl.confirm(upright, "CartPole-v1", target=440.0, checkpoint=tmp_path / "tasks")


def test_a_table_in_memory_by_policy_function_and_model():
    mdp = reprl.make("gridworld-v0", horizon=6)
    best = mdp.solve().policy
    value = mdp.evaluate(best)
    assert reprl.confirm(best, mdp, target=0.9 * value, data_seed=1).verdict == "confirmed"
    assert reprl.confirm(best, "gridworld-v0", target=1.1 * value, data_seed=1).verdict == "refuted"
    by_function = reprl.confirm(lambda s, step: int(best.table[step, s]), mdp, target=0.9 * value, data_seed=1)
    by_policy = reprl.confirm(best, mdp, target=0.9 * value, data_seed=1)
    assert by_function.returns == by_policy.returns
    assert by_policy.fingerprint == best.fingerprint
    assert by_function.fingerprint is None


def test_returns_of_a_table_are_those_of_single_steps():
    for name in ("gridworld-v0", "river-swim-v0"):
        mdp = reprl.make(name, horizon=7)
        policy, batch, single = mdp.solve().policy, EpisodicModel(mdp, 5), EpisodicModel(mdp, 5)
        expected = []
        for k in range(3, 40):
            state, total = single.reset(k), 0.0
            for h in range(7):
                seen = single.step(int(policy.table[h, state]))
                total, state = total + seen.reward, seen.state
            expected.append(total)
        assert batch.returns(policy, 3, 37).tolist() == expected
        assert (batch.ledger.samples, batch.ledger.episodes) == (single.ledger.samples, single.ledger.episodes)


def test_rewards_are_in_their_own_units():
    mdp = reprl.make("gym:CliffWalking-v1", horizon=15)
    assert isinstance(mdp, reprl.TabularMDP)
    best = mdp.solve().policy
    value = mdp.labels.reward_map.restore(mdp.evaluate(best), 15)
    found = reprl.confirm(best, mdp, target=value - 20.0, data_seed=2)
    assert found.verdict == "confirmed"
    assert found.mean == pytest.approx(value)
    assert found.return_range == (-1500.0, 0.0)


def test_a_black_box_model_and_a_tighter_range():
    model = reprl.make("gym:Blackjack-v1", horizon=10, reward_range=(-1.0, 1.0))
    stick = reprl.confirm(lambda seen: 0, model, target=-0.5, data_seed=3)
    assert stick.verdict == "confirmed"
    assert stick.return_range == (-10.0, 10.0)
    tight = reprl.confirm(lambda seen: 0, model, target=-0.5, data_seed=3, return_range=(-1.0, 1.0))
    assert tight.episodes < stick.episodes
    with pytest.raises(InputError, match=r"return_range \[-0.5, 1\], got -1 in episode \d+: give a wider one"):
        reprl.confirm(lambda seen: 0, model, target=-0.2, data_seed=3, return_range=(-0.5, 1.0))


def test_a_run_folder_confirms_itself_and_a_page_is_written(tmp_path, capsys):
    run = reprl.learn(reprl.make("gridworld-v0", horizon=3, size=2), epsilon=0.5, shared_seed=1, data_seed=2)
    run.save(tmp_path / "run")
    out = tmp_path / "second"
    code = main(["confirm", str(tmp_path / "run"), "--target", "0.05", "--out", str(out), "--data-seed", "4", "--json"])
    document = json.loads(capsys.readouterr().out)
    assert code == 0
    assert document["verdict"] == "confirmed"
    assert document["fingerprint"] == run.policy.fingerprint
    assert Confirmation.load(out / "confirmation.json").to_dict() == document
    assert "certified" in (out / "confirmation.html").read_text()
    assert not (out / "tasks").exists()
    assert main(["confirm", str(tmp_path / "run" / "recipe.json"), "--target", "2.9", "--data-seed", "4"]) == 1
    assert "refuted" in capsys.readouterr().out
    assert main(["report", str(out / "confirmation.json"), "-o", str(tmp_path / "page.html")]) == 0
    assert (tmp_path / "page.html").read_text() == (out / "confirmation.html").read_text()
    assert main(["report", str(out), "-o", str(tmp_path / "folder.html")]) == 0
    assert (tmp_path / "folder.html").read_text() == (out / "confirmation.html").read_text()


def test_the_mean_is_of_all_episodes_that_were_played():
    """A batch is played to its end though the first episodes decide: none of its returns is thrown away."""
    mdp = reprl.make("gridworld-v0", horizon=3, size=2)
    policy = reprl.Policy(mdp.solve().policy.table)
    found = reprl.confirm(policy, mdp, target=0.01, data_seed=1)
    assert found.verdict == "confirmed"
    assert found.episodes < found.played == 16
    assert found.mean == pytest.approx(EpisodicModel(mdp, 1).returns(policy, 0, 16).mean(), rel=1e-12)
    assert sum(count for _, count in found.returns) == found.episodes
    assert f"mean {found.mean:.6g} of 16 episodes" in repr(found)
    assert Confirmation.from_json(found.to_json()) == found


def test_a_search_is_confirmed_by_its_folder(tmp_path):
    run = reprl.learn("gym:CartPole-v1", target=150.0, shared_seed=3, data_seed=4)
    run.save(tmp_path / "run")
    found = reprl.confirm(tmp_path / "run", target=140.0, data_seed=5)
    assert found.verdict == "confirmed"
    assert found.fingerprint == run.policy.fingerprint
    assert reprl.confirm(run, target=499.9, data_seed=5, max_samples=30_000).verdict != "confirmed"


def test_a_file_names_policy_and_environment(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text("def agent(seen): return int(seen[2] + seen[3] > 0)\n")
    words = ["confirm", "mine.py:agent", "--env", "gym:CartPole-v1", "--target", "300", "--data-seed", "1"]
    assert main([*words, "--workers", "1"]) == 0
    assert "agent earns more than 300 on gym:CartPole-v1" in capsys.readouterr().out
    assert main([*words, "--workers", "1", "--max-samples", "600"]) == 1
    assert "undecided" in capsys.readouterr().out


def test_a_log_is_judged_by_its_interval(tmp_path):
    first = reprl.learn_log(
        make_log(4000, 1), horizon=HORIZON, states=STATES, actions=ACTIONS, epsilon=0.3, shared_seed=2
    )
    first.save(tmp_path / "north")
    worth = world().evaluate(reprl.Policy(first.policy.table[:, : len(STATES)]))
    south = make_log(4000, 10)
    found = reprl.confirm(first, log=south, target=worth - 0.3)
    assert (found.verdict, found.status) == ("confirmed", "rehearsed")
    assert found.interval[0] < worth < found.interval[1]
    assert found.unseen is not None
    assert reprl.confirm(tmp_path / "north", log=south, target=worth + 0.3).verdict == "refuted"
    assert reprl.confirm(first, log=make_log(50, 9), target=worth - 0.3).status == "none"
    assert Confirmation.from_json(found.to_json()) == found
    with pytest.raises(InputError, match="policy must be a run that was learned from a log"):
        reprl.confirm(upright, log=south, target=1.0)


def test_certificates_check_themselves():
    found = reprl.confirm(lambda seen: 0, coin(chance=0.7), target=1.5, data_seed=1, **COIN)
    assert found.verdict == "confirmed"
    document = json.loads(found.to_json())
    above, _ = found.log_wealth or (0.0, 0.0)
    assert above >= np.log(1 / 0.05) - 1e-6
    for change, said in (
        ({"target": 1.9}, "digest must be"),
        ({"returns": []}, "digest must be"),
        ({"delta": 0.7}, "delta must lie in"),
        ({"verdict": "certain"}, "verdict must be one of"),
    ):
        with pytest.raises(InputError, match=said):
            Confirmation.from_json(json.dumps(document | change))
    for forged in ({"target": 2.0}, {"delta": 1e-9}, {"verdict": "refuted"}, {"returns": ((3.0, found.episodes - 1),)}):
        with pytest.raises(DocumentError):
            type(found)(**(vars_of(found) | forged)).check()


def vars_of(found: Confirmation) -> dict[str, Any]:
    """The fields of a confirmation."""
    return {name: getattr(found, name) for name in Confirmation.__dataclass_fields__}


def test_false_confirmations_are_as_rare_as_claimed():
    """Policies that earn exactly the target; the control plays with δ^¼, which is to halve the radii."""
    delta, trials = 0.1, 400

    def false(used: float) -> int:
        mdp = reprl.TabularMDP(np.ones((1, 1, 1)), np.array([[0.5]]), horizon=2)
        found = (
            reprl.confirm(lambda s: 0, mdp, target=1.0, delta=used, data_seed=seed, max_samples=1500)
            for seed in range(trials)
        )
        return sum(each.verdict == "confirmed" for each in found)

    assert keeps(false(delta), trials, delta, power=0.8)
    assert exceeds(false(0.49), trials, delta) < FALSE_ALARM


class Broken(Coin):
    """A coin that pays what is no number from its second toss on."""

    def step(self, action: Any) -> Any:
        seen, paid, over, cut, info = super().step(action)
        return seen, (float("nan") if self.left < 2 else paid), over, cut, info


class Stuck(Coin):
    """A coin that never comes down."""

    def step(self, action: Any) -> Any:
        import time

        time.sleep(60)


def stuck() -> Stuck:
    """A factory that can be sent to another process."""
    return Stuck()


@pytest.mark.parametrize(
    ("policy", "env", "options", "said"),
    [
        (
            upright,
            "CartPole-v1",
            {"target": 600.0},
            "target must lie between the bounds of a return, (0, 500), got 600",
        ),
        (upright, "CartPole-v1", {"target": "x"}, "target must lie in"),
        (upright, "CartPole-v1", {"target": 1.0, "delta": 0.5}, "delta must lie in (0, 0.5), got 0.5"),
        (upright, "CartPole-v1", {"target": 1.0, "max_samples": 0}, "max_samples must be"),
        (upright, "CartPole-v1", {"target": 1.0, "return_range": (2, 1)}, "return_range must be (low, high)"),
        (upright, None, {"target": 1.0}, "env must be given for a policy that comes without a recipe"),
        (3, "CartPole-v1", {"target": 1.0}, "policy must be a policy, a run, a path to one"),
        ("absent", "CartPole-v1", {"target": 1.0}, "absent"),
        (upright, coin(), {"target": 1.0}, "horizon must be given for an environment without a time limit"),
        (upright, coin(), {"target": 1.0, "horizon": 3}, "return_range must be given as (low, high), or reward_range"),
        (lambda s: 5, coin(), {"target": 1.0, **COIN}, "policy must return a member of Discrete(2), got 5"),
        (
            lambda s: 0,
            lambda: Broken(),
            {"target": 1.0, **COIN},
            "reward must be a number from 0 to 1 at step 1, got nan",
        ),
        (
            lambda s: 0,
            coin(chance=2.0, pays=2.0),
            {"target": 1.0, **COIN},
            "reward must be a number from 0 to 1 at step 0, got 2.0",
        ),
        (reprl.Policy([[0, 1]]), "CartPole-v1", {"target": 0.5}, "policy must fit the environment"),
        (lambda s: 9, "gridworld-v0", {"target": 1.0, "horizon": 3}, "policy action [0, 0] must be from 0 to 3, got 9"),
        (lambda s: 0, "gridworld-v0", {"target": 1.0, "timeout": 3.0}, "timeout must be None where dynamics are known"),
        (lambda s: 0, "gridworld-v0", {"target": 1.0, "reward_range": (0, 1)}, "reward_range must be left out"),
    ],
)
def test_bad_input_is_one_line(policy, env, options, said):
    with pytest.raises(InputError) as caught:
        reprl.confirm(policy, env, **options)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_model_of_other_spaces_is_refused():
    class Model:
        observation_space = gymnasium.spaces.Box(0.0, 1.0, (7,))
        action_space = gymnasium.spaces.Discrete(2)

        def predict(self, observation: Any, deterministic: bool = True) -> Any:
            return 0, None

    with pytest.raises(
        InputError, match=r"policy must fit the environment, with observation_space Box.*got Box.*\(7,\)"
    ):
        reprl.confirm(Model(), "CartPole-v1", target=100.0)


def test_an_episode_that_hangs_ends_the_work():
    with pytest.raises(WorkerError, match="an episode must end within"):
        reprl.confirm(lambda s: 0, stuck, target=1.0, timeout=0.5, **COIN)


def test_stable_baselines_models_are_confirmed():
    pytest.importorskip("torch")
    stable = pytest.importorskip("stable_baselines3")
    model = stable.PPO("MlpPolicy", "CartPole-v1", seed=0, device="cpu", n_steps=64, batch_size=32, n_epochs=1)
    found = reprl.confirm(model.learn(64), "CartPole-v1", target=400.0, data_seed=1)
    assert found.verdict == "refuted"
    assert found.policy == "stable_baselines3.PPO"
