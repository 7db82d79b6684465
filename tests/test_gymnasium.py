"""Gymnasium in and out, against the environments' own tables, their own samples, and Gymnasium's own checker."""

import itertools
from collections import Counter
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.utils.env_checker import check_env
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest

from reprl.errors import ReprlError
from reprl.mdp.catalogue import catalogue
from reprl.mdp.counts import Counts, tally
from reprl.mdp.labels import RewardMap
from reprl.mdp.spaces import Codec
from reprl.mdp.tabular import TabularMDP
from reprl.randomness import DataStream
from reprl.sources.environment import make
from reprl.sources.episodes import EpisodicModel
from reprl.sources.gymnasium.model import GymnasiumModel, from_gymnasium, to_gymnasium

PUBLISHED: list[tuple[str, dict[str, Any]]] = [
    ("FrozenLake-v1", {}),
    ("FrozenLake-v1", {"is_slippery": False, "reward_schedule": (10, -5, -1)}),
    ("FrozenLake8x8-v1", {"success_rate": 0.7}),
    ("CliffWalking-v1", {}),
    ("CliffWalkingSlippery-v1", {}),
    ("Taxi-v4", {}),
    ("Taxi-v4", {"is_rainy": True}),
]
NAMES = [f"{id}{'+' * bool(options)}{i}" for i, (id, options) in enumerate(PUBLISHED)]


def exact(id: str, horizon: int, **options: Any) -> TabularMDP:
    mdp = make(f"gym:{id}", horizon, **options)
    assert isinstance(mdp, TabularMDP)
    return mdp


def black_box(id: str, horizon: int, **options: Any) -> GymnasiumModel:
    model = make(f"gym:{id}", horizon, **options)
    assert isinstance(model, GymnasiumModel)
    return model


# --- published dynamics -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("id", "options"), PUBLISHED, ids=NAMES)
def test_optimal_values_are_those_of_the_published_table(id, options):
    """An independent induction on P in original units, where an ended transition is worth its reward alone."""
    horizon = 15
    mdp = exact(id, horizon, **options)
    core: Any = gymnasium.make(id, **options).unwrapped
    value = np.zeros(len(core.P))
    for h in reversed(range(horizon)):
        worth = np.zeros((len(core.P), len(core.P[0])))
        for s, a in itertools.product(range(len(core.P)), range(len(core.P[0]))):
            for p, following, reward, ended in core.P[s][a]:
                worth[s, a] += p * (reward + (0.0 if ended else value[following]))
        value = worth.max(axis=1)
        ours = mdp.solve().values[h][: len(value)]
        restored = mdp.labels.reward_map.restore(ours, horizon - h)
        np.testing.assert_allclose(restored, value, atol=1e-9)
    assert (mdp.labels.reward_map.low, mdp.labels.reward_map.high) == (
        min(0, *(t[2] for row in core.P.values() for cell in row.values() for t in cell)),
        max(0, *(t[2] for row in core.P.values() for cell in row.values() for t in cell)),
    )


@pytest.mark.parametrize(("id", "options"), PUBLISHED, ids=NAMES)
def test_every_cell_against_a_slow_reading_of_the_table(id, options):
    mdp = exact(id, 3, **options)
    core: Any = gymnasium.make(id, **options).unwrapped
    n = len(core.P)
    assert mdp.n_states == (n if id.startswith("FrozenLake") else n + 1)
    for s, a in itertools.product(range(n), range(len(core.P[0]))):
        law: Counter[int] = Counter()
        paid = 0.0
        for p, following, reward, ended in core.P[s][a]:
            law[n if ended and mdp.n_states > n else following] += p
            paid += p * reward
        np.testing.assert_allclose(mdp.transition[0, s, a], [law[t] for t in range(mdp.n_states)], atol=1e-12)
        assert mdp.labels.reward_map.restore(mdp.reward[0, s, a], 1) == pytest.approx(paid, abs=1e-9)
    np.testing.assert_allclose(mdp.initial[:n], core.initial_state_distrib)


def test_sizes_grids_and_kinds():
    lake, cliff, taxi = exact("FrozenLake-v1", 12), exact("CliffWalking-v1", 12), exact("Taxi-v4", 12)
    assert (lake.n_states, cliff.n_states, taxi.n_states) == (16, 49, 501)
    assert (lake.labels.grid, cliff.labels.grid, taxi.labels.grid) == ((4, 4), (4, 12), None)
    assert (lake.labels.reward_map, cliff.labels.reward_map) == (RewardMap(0, 1), RewardMap(-100, 0))
    assert taxi.labels.reward_map == RewardMap(-10, 20)
    assert cliff.labels.states[-1] == "ended"
    assert lake.labels.name == "gym:FrozenLake-v1"
    assert {mdp.reward_kind for mdp in (lake, cliff, taxi)} == {"deterministic"}


def test_two_rewards_on_one_way_are_drawn_with_the_right_mean():
    """On the slippery cliff's first cell, a fall (−100) and a bump (−1) both lead back to the start."""
    core: Any = gymnasium.make("CliffWalkingSlippery-v1").unwrapped
    ways = {(t, r) for _, t, r, _ in core.P[36][1]}
    assert {(36, -100), (36, -1)} <= ways
    assert exact("CliffWalkingSlippery-v1", 5).reward_kind == "bernoulli"


def test_a_reward_range_may_be_wider_but_not_narrower():
    wide = exact("FrozenLake-v1", 12, reward_range=(-1, 3))
    plain = exact("FrozenLake-v1", 12)
    best = [mdp.initial @ mdp.solve().values[0] for mdp in (wide, plain)]
    assert wide.labels.reward_map.restore(best[0], 12) == pytest.approx(best[1])
    with pytest.raises(ReprlError, match=r"must contain every published reward, got \[0, 0.5\] and 1"):
        exact("FrozenLake-v1", 12, reward_range=(0, 0.5))


class Listed(gymnasium.Env[Any, Any]):
    """Two states and two actions with a published table; never played."""

    def __init__(self, table: list[list[tuple[float, int, float, bool]]]) -> None:
        self.observation_space, self.action_space = spaces.Discrete(2), spaces.Discrete(2)
        self.initial_state_distrib = np.array([0.25, 0.75])
        self.P = {s: dict.fromkeys(range(2), table[s]) for s in range(2)}


def test_a_final_state_that_pays_is_left_when_the_episode_ends():
    entry = [(0.5, 1, 3.0, True), (0.5, 0, 1.0, False), (0.0, 1, 99.0, False)]
    mdp = from_gymnasium(Listed([entry, [(1.0, 1, 2.0, True)]]), 2)
    assert mdp.n_states == 3
    assert mdp.labels.reward_map == RewardMap(0, 3), "what cannot happen does not count"
    np.testing.assert_allclose(mdp.transition[0, :, 0], [[0.5, 0.0, 0.5], [0.0, 0.0, 1.0], [0.0, 0.0, 1.0]])
    np.testing.assert_allclose(3 * mdp.solve().values[0], [3.0, 2.0, 0.0])


def test_constant_rewards_and_sizes_that_coincide():
    """S = A = H = 2, where a reward of shape (2, 2, 2) could be read in two ways."""
    mdp = from_gymnasium(Listed([[(1.0, 1, 7.0, False)], [(1.0, 0, 7.0, False)]]), 2)
    assert (mdp.n_states, mdp.outcomes.row_shift) == (2, 0)
    assert mdp.labels.reward_map.restore(mdp.evaluate([[0, 0], [0, 0]]), 2) == 14.0


@pytest.mark.statistical
@pytest.mark.parametrize(("id", "draws"), [("FrozenLake-v1", 300), ("CliffWalking-v1", 3), ("Taxi-v4", 1)])
def test_the_real_environment_moves_by_the_exact_law(id, draws):
    """Every cell of the real environment is stepped; exact binomial tests share a false-alarm rate of 1e-6."""
    mdp = exact(id, 3)
    env = gymnasium.make(id, max_episode_steps=-1)
    core: Any = env.unwrapped
    env.reset(seed=5)
    n = len(core.P)
    tests = []
    for s, a in itertools.product(range(n), range(mdp.n_actions)):
        if mdp.n_states == n and (mdp.transition[0, s, :, s] == 1).all():
            continue  # a hole or the goal: over
        seen: Counter[tuple[int, float]] = Counter()
        for _ in range(draws):
            core.s = s
            following, reward, ended, _, _ = core.step(a)
            paid = mdp.labels.reward_map.forward(float(reward))
            seen[n if ended and mdp.n_states > n else following, paid] += 1
        table, _ = mdp.outcomes.slots(0, s, a)
        law = dict(
            zip(
                zip(mdp.outcomes.next_state[table].tolist(), mdp.outcomes.reward[table].tolist(), strict=True),
                mdp.probability[table].tolist(),
                strict=True,
            )
        )
        assert set(seen) <= set(law)
        tests += [(seen[outcome], min(p, 1.0)) for outcome, p in law.items()]
    assert min(binomtest(k, draws, p).pvalue for k, p in tests) > 1e-6 / len(tests)


# --- black boxes ------------------------------------------------------------------------------------------------------


def play(model: GymnasiumModel | EpisodicModel, episodes: int, seed: int) -> list[tuple[int, int, int, int, float]]:
    """Rows (h, s, a, next state, reward) of episodes with uniformly random actions."""
    rows = []
    words = DataStream(seed, "test actions").integers(episodes * model.horizon)
    actions = iter((words % np.uint64(model.n_actions)).tolist())
    for _ in range(episodes):
        state = model.reset()
        for h in range(model.horizon):
            action = next(actions)
            seen = model.step(action)
            assert seen.done == (h == model.horizon - 1)
            rows.append((h, state, action, seen.state, seen.reward))
            state = seen.state
    return rows


@pytest.mark.statistical
def test_black_box_agrees_with_exact_dynamics():
    """FrozenLake seen only through its episodes; exact binomial tests share a false-alarm rate of 1e-6."""
    horizon = 6
    mdp = exact("FrozenLake-v1", horizon)
    model = GymnasiumModel("FrozenLake-v1", horizon, data_seed=11)
    assert (model.n_states, model.ended, model.reward_map) == (17, 16, RewardMap(0, 1))
    counts = tally(play(model, 4000, seed=1), (horizon, 17, 4))
    over = [s for s in range(16) if (mdp.transition[0, s, :, s] == 1).all()]
    assert len(over) == 5
    tests = []
    for s, a in itertools.product(range(16), range(4)):
        seen = np.sum([counts.successors(h, s, a) for h in range(horizon)], axis=0)
        if s in over:
            assert seen.sum() == 0
            continue
        law = mdp.transition[0, s, a].copy()
        law = np.append(np.where(np.isin(np.arange(16), over), 0.0, law), law[over].sum())
        assert (seen[law == 0] == 0).all()
        tests += [(int(k), int(seen.sum()), min(p, 1.0)) for k, p in zip(seen, law, strict=True) if p and seen.sum()]
    assert len(tests) > 50
    assert min(binomtest(*test).pvalue for test in tests) > 1e-6 / len(tests)
    assert (counts.successors(3, 16, 0) > 0).nonzero()[0].tolist() == [16]
    wrong = GymnasiumModel("FrozenLake-v1", horizon, data_seed=11, success_rate=0.5)
    other = tally(play(wrong, 4000, seed=1), (horizon, 17, 4)).successors(0, 0, 2)
    assert binomtest(int(other[1]), int(other.sum()), 1 / 3).pvalue < 1e-6, "the negative control must fail"


def test_black_box_is_a_function_of_data_seed_and_episode():
    first = GymnasiumModel("FrozenLake-v1", 8, data_seed=3)
    again = GymnasiumModel("gym:FrozenLake-v1", 8, data_seed=3)
    other = first.with_data_seed(4)
    assert other.ledger.samples == 0
    for episode in range(20):
        first.reset()
        again.reset()
        if episode % 3:
            continue  # abandoned at once in one model, played in the other: the next episode must not notice
        for _ in range(8):
            first.step(1)
    tracks = [
        [(model.reset(), *(model.step(2) for _ in range(8))) for _ in range(15)] for model in (first, again, other)
    ]
    assert tracks[0] == tracks[1]
    assert tracks[0] != tracks[2]
    assert GymnasiumModel("FrozenLake-v1", 8).data_seed != GymnasiumModel("FrozenLake-v1", 8).data_seed


def test_blackjack_tuples_match_the_environment_played_by_hand():
    horizon = 6
    model = black_box("Blackjack-v1", horizon, reward_range=(-1, 1), data_seed=9)
    assert (model.n_states, model.n_actions) == (32 * 11 * 2 + 1, 2)
    env = gymnasium.make("Blackjack-v1")
    ends = steps = 0
    for episode in range(300):
        seed = int(DataStream(9, "gymnasium", episode).integers(1)[0]) >> 1
        member, _ = env.reset(seed=seed)
        assert model.reset() == (member[0] * 11 + member[1]) * 2 + member[2]
        ended = False
        for h in range(horizon):
            action = int(h == 0)
            seen = model.step(action)
            if ended:
                assert seen == (704, 0.5, h == horizon - 1)
                continue
            member, reward, ended, _, _ = env.step(action)
            steps += 1
            state = 704 if ended else (member[0] * 11 + member[1]) * 2 + member[2]
            assert seen == (state, (float(reward) + 1) / 2, h == horizon - 1)
        ends += ended
    assert ends == 300
    assert (model.ledger.samples, model.ledger.episodes) == (300 + steps, 300)


class Rooms(gymnasium.Env[dict[str, Any], Any]):
    """Dict observations and MultiDiscrete actions; counts up, pays what it is told to."""

    def __init__(self, pays: Any = 0.25, show: int | None = None) -> None:
        self.observation_space = spaces.Dict({"b": spaces.MultiBinary((1, 2)), "a": spaces.Discrete(3, start=-1)})
        self.action_space = spaces.MultiDiscrete([2, 3])
        self.pays, self.show, self.count = pays, show, 0

    def look(self) -> dict[str, Any]:
        bits = np.array([[self.count // 2 % 2, self.count % 2]], dtype=np.int8)
        return {"a": self.count // 4 - 1 if self.show is None else self.show, "b": bits}

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        super().reset(seed=seed)
        self.count = 0
        return self.look(), {}

    def step(self, action: Any) -> Any:
        assert action in self.action_space
        self.count += int(action[0]) * 3 + int(action[1])
        return self.look(), self.pays, False, False, {}


def test_dict_and_multidiscrete_are_mixed_radix():
    model = GymnasiumModel(Rooms, 3, reward_range=(-1, 2), data_seed=0)
    assert (model.n_states, model.n_actions) == (3 * 4 + 1, 6)
    assert model.reset() == 0
    assert [model.step(5).state, model.step(1).state, model.step(3).state] == [5, 6, 9]
    assert model.ledger.samples == 4


def test_rewards_are_rescaled_and_rounded():
    model = GymnasiumModel(lambda: Rooms(pays=0.1), 1, reward_range=(0, 1), data_seed=0)
    model.reset()
    reward = model.step(0).reward
    assert (reward * 2**20).is_integer()
    assert abs(reward - 0.1) <= 2.0**-21


@pytest.mark.parametrize("pays", [2.5, -1.01, float("nan"), float("inf"), "much", None])
def test_rewards_out_of_range_are_named(pays):
    model = GymnasiumModel(lambda: Rooms(pays=pays), 3, reward_range=(-1, 2), data_seed=0)
    model.reset()
    with pytest.raises(ReprlError, match=r"reward at step 1 must lie in reward_range \[-1, 2\], got"):
        model.step(0)


def test_observations_out_of_the_space_are_named():
    model = GymnasiumModel(lambda: Rooms(show=7), 3, reward_range=(-1, 2))
    with pytest.raises(ReprlError, match=r"observation must be a member of Dict"):
        model.reset()


def test_box_spaces_are_refused_with_the_wrappers_to_use():
    for horizon in (5, 50):
        with pytest.raises(ReprlError, match=r"observation space .* gymnasium\.wrappers\.DiscretizeObservation"):
            make("gym:CartPole-v1", horizon, reward_range=(0, 1))
    with pytest.raises(ReprlError, match=r"action space .* gymnasium\.wrappers\.DiscretizeAction"):
        GymnasiumModel(
            lambda: gymnasium.wrappers.DiscretizeObservation(gymnasium.make("Pendulum-v1"), bins=3),
            5,
            reward_range=(-20, 0),
        )


def test_discretised_boxes_are_welcome():
    def cells() -> gymnasium.Env[Any, Any]:
        return gymnasium.wrappers.DiscretizeObservation(gymnasium.make("MountainCar-v0"), bins=5)

    model = GymnasiumModel(cells, 10, reward_range=(-1, 0), data_seed=2)
    assert (model.n_states, model.n_actions) == (26, 3)
    assert {row[4] for row in play(model, 5, seed=0)} == {0.0}


def test_time_limits_are_lifted_for_ids_and_refused_elsewhere():
    lifted = black_box("Taxi-v4", 300, fickle_passenger=True, reward_range=(-10, 20), data_seed=1)
    lifted.reset()
    for _ in range(300):
        lifted.step(0)
    assert lifted.ledger.samples == 301
    limited = GymnasiumModel(lambda: gymnasium.make("CliffWalking-v1", max_episode_steps=3), 5, data_seed=1)
    limited.reset()
    limited.step(0)
    limited.step(0)
    with pytest.raises(ReprlError, match=r"truncated an episode at step 3: .* horizon of at most 3, got 5"):
        limited.step(0)
    fitting = GymnasiumModel(lambda: gymnasium.make("CliffWalking-v1", max_episode_steps=3), 3, data_seed=1)
    fitting.reset()
    assert [fitting.step(0).done for _ in range(3)] == [False, False, True]


def test_wrapped_or_fickle_environments_are_not_taken_for_their_table():
    def doubled() -> gymnasium.Env[Any, Any]:
        return gymnasium.wrappers.TransformReward(gymnasium.make("FrozenLake-v1"), lambda r: 2.0 * float(r))

    with pytest.raises(ReprlError, match="must publish its dynamics"):
        from_gymnasium(doubled, 5)
    with pytest.raises(ReprlError, match="must publish its dynamics"):
        from_gymnasium("Taxi-v4", 5, fickle_passenger=True)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: make("gym:FrozenLake-v1"), r"horizon must be given for a Gymnasium environment, got None"),
        (lambda: make("gym:FrozenLake-v1", 0), r"horizon must be a whole number from 1"),
        (lambda: make("gym:FrozenLake-v1", 5, data_seed=3), r"data_seed must not be given for FrozenLake-v1"),
        (lambda: GymnasiumModel("FrozenLake-v1"), r"horizon must be given"),
        (lambda: make("gym:Blackjack-v1", 5), r"reward_range must be given as \(low, high\)"),
        (lambda: make("gym:Blackjack-v1", 5, reward_range=(1, -1)), r"reward_range must be .* got \(1, -1\)"),
        (lambda: make("gym:Blackjack-v1", 5, reward_range=(0.5, 1)), r"low ≤ 0 ≤ high"),
        (lambda: make("gym:Blackjack-v1", 5, reward_range=3), r"reward_range must be .* got 3"),
        (lambda: make("gym:Blackjac-v1", 5), r"'Blackjac-v1' .*Did you mean: `Blackjack`"),
        (lambda: make("gym:", 5), r"gymnasium must be able to make ''"),
        (lambda: make("gym:FrozenLake-v1", 5, colour=1), r"unexpected keyword argument 'colour'"),
        (lambda: GymnasiumModel(7, 5), r"a factory or a gymnasium\.Env, got 7"),  # type: ignore[arg-type]
        (lambda: GymnasiumModel(lambda: 7, 5), r"must return a gymnasium\.Env, got 7"),  # type: ignore[arg-type,return-value]
        (lambda: GymnasiumModel(Rooms, 5, colour=1), r"options must come with a Gymnasium id"),
        (lambda: GymnasiumModel(Rooms(), 5, reward_range=(0, 1)).with_data_seed(3), r"from an id or a factory"),
        (lambda: GymnasiumModel("FrozenLake-v1", 5).step(0), r"call reset first \(horizon 5\)"),
    ],
)
def test_bad_input_is_one_line(build, message):
    with pytest.raises(ReprlError, match=message) as caught:
        build()
    assert "\n" not in str(caught.value)


# --- spaces -----------------------------------------------------------------------------------------------------------

leaves = st.one_of(
    st.builds(lambda n, start: spaces.Discrete(n, start=start), st.integers(1, 3), st.integers(-2, 2)),
    st.builds(spaces.MultiDiscrete, st.lists(st.integers(1, 3), min_size=1, max_size=2)),
    st.builds(
        lambda start: spaces.MultiDiscrete(np.array([[2], [3]]), start=np.array([[start], [1]])),
        st.integers(-2, 2),
    ),
    st.builds(spaces.MultiBinary, st.integers(1, 2)),
)
finite = st.recursive(
    leaves,
    lambda part: st.one_of(
        st.lists(part, min_size=1, max_size=2).map(spaces.Tuple),
        st.dictionaries(st.sampled_from("xyz"), part, min_size=1, max_size=2).map(spaces.Dict),
    ),
    max_leaves=3,
)


@settings(deadline=None, max_examples=80)
@given(finite)
def test_codec_numbers_every_member_once(space):
    codec = Codec(space, "observation")
    members = [codec.decode(number) for number in range(codec.size)]
    assert all(space.contains(member) for member in members)
    assert [codec.encode(member) for member in members] == list(range(codec.size))
    space.seed(0)
    assert all(0 <= codec.encode(space.sample()) < codec.size for _ in range(5))


def test_first_component_is_most_significant():
    codec = Codec(spaces.Tuple([spaces.Discrete(2), spaces.MultiDiscrete([3, 4])]), "action")
    flat = [(int(first), *(int(x) for x in rest)) for first, rest in map(codec.decode, range(24))]
    assert flat == list(itertools.product(range(2), range(3), range(4)))


def test_too_many_members_are_refused():
    with pytest.raises(ReprlError, match=r"at most 2147483647 members, got 4294967296"):
        Codec(spaces.MultiBinary(32), "observation")


# --- the way out ------------------------------------------------------------------------------------------------------


MASKED = ("gambler-v0",)
"""Gymnasium's checker plays any action, and publishes no masks."""


@pytest.mark.parametrize("id", [entry.id for entry in catalogue() if entry.id not in MASKED])
def test_exported_environments_pass_gymnasiums_checker(id):
    mdp = make(id, 5)
    assert isinstance(mdp, TabularMDP)
    check_env(to_gymnasium(mdp))  # any warning is an error here
    check_env(to_gymnasium(mdp, data_seed=3))


def test_export_plays_the_episodic_model():
    mdp = make("gridworld-v0")
    env, model = to_gymnasium(mdp, data_seed=17), EpisodicModel(mdp, 17)
    for _ in range(5):
        assert env.reset()[0] == model.reset()
        for h in range(6):
            state, reward, terminated, truncated, _ = env.step(np.int64(1 + h % 2))
            assert (int(state), reward) == model.step(1 + h % 2)[:2]
            assert (terminated, truncated) == (False, h == 5)


def test_export_honours_seeds():
    env = to_gymnasium(make("random-mdp-v0"), data_seed=17)

    def track(seed: int | None) -> list[tuple[Any, ...]]:
        env.reset(seed=seed)
        return [env.step(np.int64(0))[:2] for _ in range(5)]

    opened = track(None)
    one = track(1)
    two = [track(2), track(None)]
    assert track(1) == one
    assert [track(2), track(None)] == two
    assert opened != one
    assert one != two[0]


def test_export_needs_a_reset():
    with pytest.raises(gymnasium.error.ResetNeeded):
        to_gymnasium(make("gridworld-v0")).step(np.int64(0))


@pytest.mark.parametrize("id", [entry.id for entry in catalogue() if entry.id not in ("hard-instance-v0", *MASKED)])
def test_round_trip_is_exact(id):
    mdp = make(id)
    assert isinstance(mdp, TabularMDP)
    again = from_gymnasium(to_gymnasium(mdp), mdp.horizon, reward_range=(0, 1))
    assert again.reward_kind == mdp.reward_kind or set(mdp.outcomes.reward) <= {0.0, 1.0}
    for field in ("first", "next_state", "reward"):
        np.testing.assert_array_equal(getattr(again.outcomes, field), getattr(mdp.outcomes, field))
    np.testing.assert_allclose(again.probability, mdp.probability, rtol=1e-14)
    np.testing.assert_array_equal(again.initial, mdp.initial)


def test_time_dependent_mdps_publish_nothing_but_can_be_played():
    mdp = make("hard-instance-v0")
    env = to_gymnasium(mdp)
    assert not hasattr(env, "P")
    model = GymnasiumModel(lambda: to_gymnasium(mdp), mdp.horizon, reward_range=(0, 1), data_seed=1)
    assert len(play(model, 10, seed=0)) == 10 * mdp.horizon


# --- tally ------------------------------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=60)
@given(st.data())
def test_tally_is_what_a_dictionary_counts(data):
    shape = data.draw(st.tuples(st.integers(1, 3), st.integers(1, 3), st.integers(1, 2)))
    step = st.tuples(*(st.integers(0, n - 1) for n in (*shape, shape[1])), st.sampled_from([0.0, -0.0, 0.25, 1.0]))
    rows = data.draw(st.lists(step, max_size=30))
    counts = tally(rows, shape)
    naive = Counter(rows)
    assert int(counts.hits.sum()) == len(rows)
    for h, s, a in itertools.product(*map(range, shape)):
        table, slots = counts.outcomes.slots(h, s, a)
        columns = (counts.outcomes.next_state[table], counts.outcomes.reward[table], counts.hits[slots])
        seen = {(int(t), float(r)): int(k) for t, r, k in zip(*columns, strict=True)}
        assert seen == {key[3:]: k for key, k in naive.items() if key[:3] == (h, s, a)}
        assert list(seen) == sorted(seen)
    cut = data.draw(st.integers(0, len(rows)))
    assert Counts.merge([tally(rows[:cut], shape), tally(rows[cut:], shape)]) == counts
    assert tally(rows[::-1], shape) == counts
    assert Counts.from_bytes(counts.to_bytes()) == counts


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([(0, 0, 0, 2, 0.0)], r"samples\[0, 3\] must be an index below 2, got 2"),
        ([(0, 0.5, 0, 1, 0.0)], r"samples\[0, 1\] must be an index below 2, got 0.5"),
        ([(0, 0, 0, 1, 0.0), (0, 0, 0, 1, 1.5)], r"samples\[1, 4\] must be a reward in \[0, 1\], got 1.5"),
        ([(0, 0, 0, 1)], r"samples must have shape \(n, 5\), got \(1, 4\)"),
        ([("h", "s", "a", "t", "r")], r"samples must be an array of real numbers"),
    ],
)
def test_tally_quotes_bad_rows(rows, message):
    with pytest.raises(ReprlError, match=message):
        tally(rows, (1, 2, 1))
