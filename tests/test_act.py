"""Policies at work: what is seen becomes a state, an action what the environment takes; saved, loaded, played."""

from __future__ import annotations

import json
import pickle
from collections import OrderedDict
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

import reprl
from reprl.mdp.interface import Interface
from reprl.mdp.spaces import Codec, read_space, space_document
from reprl.sources.gymnasium.learner_env import open_world
from reprl.sources.gymnasium.model import GymnasiumModel
from reprl.sources.gymnasium.tabular_env import TabularEnv

SPACES = [
    spaces.Discrete(4),
    spaces.Discrete(3, start=-1),
    spaces.MultiDiscrete([2, 3]),
    spaces.MultiDiscrete(np.array([[2, 1], [1, 2]]), start=np.array([[0, 1], [2, 3]])),
    spaces.MultiBinary([2, 1]),
    spaces.Tuple([spaces.Discrete(2), spaces.MultiBinary(2)]),
    spaces.Dict(OrderedDict([("z", spaces.Discrete(2)), ("a", spaces.Tuple([spaces.Discrete(3, start=5)]))])),
]


@pytest.mark.parametrize("space", SPACES, ids=str)
def test_spaces_are_read_again_as_they_were(space: spaces.Space[Any]) -> None:
    document = json.loads(json.dumps(space_document(space)))
    again = read_space("space", document)
    one, two = Codec(space, "observation"), Codec(again, "observation")
    assert again == space
    assert [str(one.decode(n)) for n in range(one.size)] == [str(two.decode(n)) for n in range(two.size)]
    assert [two.encode(one.decode(n)) for n in range(one.size)] == list(range(one.size))


@pytest.mark.parametrize(
    "document",
    [
        None,
        {"kind": "box"},
        {"kind": "discrete", "n": 0, "start": 0},
        {"kind": "discrete", "n": 2},
        {"kind": "multi-binary", "shape": [100]},
        {"kind": "multi-discrete", "n": [2, 0], "start": [0, 0], "dtype": "int64"},
        {"kind": "multi-discrete", "n": [2], "start": [0, 0], "dtype": "int64"},
        {"kind": "multi-discrete", "n": [2], "start": [0], "dtype": "O"},
        {"kind": "tuple", "parts": []},
        {"kind": "dict", "parts": [["a"]]},
        {"kind": "dict", "parts": [[1, {"kind": "discrete", "n": 2, "start": 0}]]},
    ],
)
def test_what_is_no_space_is_refused(document: object) -> None:
    with pytest.raises(reprl.ReprlError, match=r"^space"):
        read_space("space", document)


class Signals(gymnasium.Env[Any, Any]):
    """The right thing to do is what is seen: a Dict of a side and a colour, for a Tuple of two answers."""

    observation_space = spaces.Dict({"colour": spaces.Discrete(2), "side": spaces.Discrete(2, start=1)})
    action_space = spaces.Tuple([spaces.Discrete(2), spaces.Discrete(2, start=1)])
    reward_range = (0.0, 1.0)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.seen = {"colour": int(self.np_random.integers(2)), "side": 1 + int(self.np_random.integers(2))}
        return self.seen, {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        paid = float(tuple(action) == (self.seen["colour"], self.seen["side"]))
        self.seen = {"colour": int(self.np_random.integers(2)), "side": 1 + int(self.np_random.integers(2))}
        return self.seen, paid, False, False, {}


@pytest.fixture(scope="module")
def signals() -> reprl.Policy:
    """Do what is seen; the fifth state is the end."""
    model = GymnasiumModel(Signals, 2, reward_range=(0, 1))
    return reprl.Policy([[0, 1, 2, 3, 0]] * 2, Interface.of(model))


def earned(policy: reprl.Policy, env: gymnasium.Env[Any, Any], seed: int) -> float:
    """The return of one episode, played as docs/report.md shows it."""
    seen, total = env.reset(seed=seed)[0], 0.0
    for step in range(policy.horizon):
        seen, reward, ended, truncated, _ = env.step(policy.act(seen, step))
        total += float(reward)
        if ended or truncated:
            break
    return total


def test_a_loaded_policy_acts_on_dicts_and_answers_in_tuples(signals: reprl.Policy, tmp_path: Any) -> None:
    policy = reprl.Policy.load(signals.save(tmp_path / "policy.json"))
    assert policy == signals
    env, total = Signals(), 0.0
    seen, _ = env.reset(seed=3)
    for step in range(policy.horizon):
        action = policy.act(seen, step)
        assert env.action_space.contains(action)
        seen, reward, *_ = env.step(action)
        total += reward
    assert total == policy.horizon, "it does what it sees"
    # The control: a policy that does something else earns less, so the sum above is the policy's doing.
    wrong = reprl.Policy((policy.actions + 1) % 4, policy.interface)
    assert earned(wrong, Signals(), 3) == 0.0 < earned(policy, Signals(), 3)
    for bad in ({"colour": 2, "side": 1}, 0, (0, 1), "blue"):
        with pytest.raises(reprl.ReprlError, match=r"^observation must be"):
            policy.act(bad, 0)
    assert policy.interface is not None
    named = policy.interface.labels.states[2]
    assert policy.act(named, 1) == policy.act({"colour": 1, "side": 1}, 1)


def test_numbers_and_names_of_states_and_bare_tables() -> None:
    mdp = reprl.make("maintenance-v0", 3)
    policy = reprl.Policy(mdp.solve().policy, Interface.of(mdp))
    assert [policy.act(s, 1) for s in range(6)] == [policy.act(name, 1) for name in mdp.labels.states]
    assert [policy.act(np.int64(s), 1) for s in range(6)] == policy.actions[1].tolist()
    bare = reprl.Policy(policy.actions)
    assert bare == policy
    assert bare.act(2, 0) == policy.act(2, 0)
    for bad, line in (
        (6, r"^observation must be .*0.*5.* got 6"),
        ("rusty", r"^observation must be the name of a state \(new, wear 1, .*got 'rusty'"),
        (1.5, r"^observation must be the number of a state, from 0 to 5, or its name, got 1\.5$"),
    ):
        with pytest.raises(reprl.ReprlError, match=line):
            policy.act(bad, 0)
    with pytest.raises(reprl.ReprlError, match=r"^step must be .* got 3"):
        policy.act(0, 3)
    with pytest.raises(reprl.ReprlError, match="the states have no names"):
        bare.act("new", 0)


def test_the_interface_is_kept_and_is_no_part_of_the_policy() -> None:
    mdp = reprl.make("maintenance-v0", 3)
    bare = mdp.solve().policy
    policy = reprl.Policy(bare, Interface.of(mdp))
    assert policy.fingerprint == bare.fingerprint
    for copy in (pickle.loads(pickle.dumps(policy)), reprl.Policy.from_json(policy.to_json()), reprl.Policy(policy)):
        assert copy.interface == policy.interface != None  # noqa: E711
    assert json.loads(bare.to_json())["version"] == 1
    document = json.loads(policy.to_json())
    assert document["version"] == 1
    for change, line in (
        ({"interface": []}, "policy interface must be an object"),
        ({"interface": None}, "policy names must be the digest of its names, None, got those of other names"),
        ({"interface": {**document["interface"], "action": {"kind": "discrete", "n": 3, "start": 0}}}, "or neither"),
    ):
        with pytest.raises(reprl.ReprlError, match=line):
            reprl.Policy.from_json(json.dumps({**document, **change}))


def test_spaces_must_have_the_size_of_the_table(signals: reprl.Policy) -> None:
    document = json.loads(signals.to_json())
    document["interface"]["observation"] = {"kind": "discrete", "n": 7, "start": 0}
    with pytest.raises(reprl.ReprlError, match=r"observation must have 4 members, .* got 7"):
        reprl.Policy.from_json(json.dumps(document))


def test_tables_draw_themselves() -> None:
    env = TabularEnv(reprl.make("gridworld-v0", 3, size=2), render_mode="ansi")
    env.reset(seed=1)
    assert env.render() == "@ .\n. ."
    env = TabularEnv(reprl.make("maintenance-v0", 3), render_mode="ansi")
    env.reset(seed=1)
    assert env.render() == "new"
    silent = reprl.to_gymnasium(reprl.make("maintenance-v0", 3))
    silent.reset(seed=1)
    assert silent.render() is None


def test_play_earns_on_average_what_the_policy_is_worth() -> None:
    """4,000 episodes of returns in [0, 3]: the mean errs by more than 0.18 with probability below 1e-6 (Hoeffding)."""
    mdp = reprl.make("maintenance-v0", 3)
    policy, env = mdp.solve().policy, open_world(mdp)
    mean = float(np.mean([earned(policy, env, seed) for seed in range(4000)]))
    assert abs(mean - mdp.evaluate(policy)) < 0.18
    # The control: the worst a policy can do lies further off than that.
    worst = reprl.Policy(np.full((3, 6), 2))
    assert abs(mdp.evaluate(worst) - mdp.evaluate(policy)) > 0.36


def test_learning_gives_a_policy_that_knows_its_environment(tmp_path: Any) -> None:
    result = reprl.learn(Signals, horizon=1, epsilon=0.5, shared_seed=7, data_seed=1, max_samples=200)
    policy = reprl.load_run(result.save(tmp_path / "run")).policy
    assert policy.interface == Interface.of(GymnasiumModel(Signals, 1))
    assert Signals.action_space.contains(policy.act({"colour": 1, "side": 2}, 0))


def test_what_stands_behind_a_world_is_opened_as_itself() -> None:
    mdp = reprl.make("gym:FrozenLake-v1", 4)
    assert isinstance(mdp, reprl.TabularMDP)
    env = open_world(mdp)
    assert env.spec is not None
    assert env.spec.id == "FrozenLake-v1"
    env.close()
    assert isinstance(open_world(GymnasiumModel(Signals, 2, reward_range=(0, 1))).unwrapped, Signals)
