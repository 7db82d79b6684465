"""Action masks: what nobody may do is never planned, sampled, played or printed."""

from __future__ import annotations

import pickle
from typing import Any

import gymnasium
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reprl
from reprl.errors import ReprlError
from reprl.execution.pool import WorkerPool
from reprl.lab.baselines import make_learner
from reprl.learning.settings import Settings
from reprl.learning.soft import bind_rule
from reprl.mdp.dynamics import Data
from reprl.mdp.evidence import lay_out
from reprl.mdp.model import true_model
from reprl.randomness import SharedKey
from reprl.sources.episodes import EpisodicModel
from reprl.sources.exploration import Episodes, plan_unknown
from reprl.sources.parallel import GenerativeModel
from reprl.sources.protocol import Access

SHAPE = (4, 5, 3)


def random_mask(seed: int, *, by_step: bool = False) -> Any:
    """At least one action everywhere, and not all of them."""
    rng = np.random.default_rng(seed)
    mask = rng.random(SHAPE if by_step else SHAPE[1:]) < 0.5
    np.put_along_axis(mask, rng.integers(0, 3, (*mask.shape[:-1], 1)), True, axis=-1)
    mask[..., 0, :] = [True, False, True]
    return mask


def masked(seed: int = 0, *, by_step: bool = False, junk: float = 0.0) -> reprl.TabularMDP:
    """A random world with a mask; rows of masked cells hold anything."""
    mdp = reprl.make("random-mdp-v0", SHAPE[0], n_states=SHAPE[1], n_actions=SHAPE[2], seed=seed)
    mask = random_mask(seed, by_step=by_step)
    law = np.array(mdp.transition if by_step else mdp.transition[0])
    law[~mask] = junk
    return reprl.TabularMDP(law, mdp.reward[0], 0, None if by_step else SHAPE[0], allowed=mask)


def best_by_hand(mdp: reprl.TabularMDP) -> float:
    """Backward induction over the allowed actions, one by one."""
    assert mdp.allowed is not None
    value = np.zeros(SHAPE[1])
    for h in reversed(range(SHAPE[0])):
        value = np.array(
            [
                max(
                    mdp.reward[h, s, a] + mdp.transition[h, s, a] @ value
                    for a in range(SHAPE[2])
                    if mdp.allowed[h, s, a]
                )
                for s in range(SHAPE[1])
            ]
        )
    return float(value[0])


def keeps_to(policy: reprl.Policy, mdp: reprl.TabularMDP) -> bool:
    assert mdp.allowed is not None
    return bool(np.take_along_axis(mdp.allowed, policy.actions[..., None], axis=2).all())


# The world.


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.booleans())
def test_planning_is_over_what_is_allowed(seed: int, by_step: bool) -> None:
    mdp = masked(seed, by_step=by_step)
    found = mdp.solve()
    assert keeps_to(found.policy, mdp)
    assert mdp.evaluate(found.policy) == pytest.approx(best_by_hand(mdp), abs=1e-12)
    assert found.values[0, 0] == pytest.approx(best_by_hand(mdp), abs=1e-12)
    everywhere = np.zeros(SHAPE[:2], dtype=bool)
    everywhere[-1] = True
    assert mdp.reachability(everywhere) == pytest.approx(1.0)


def test_what_is_said_of_masked_cells_is_not_read() -> None:
    plain, junk = masked(3), masked(3, junk=-7.0)
    assert plain.digest == junk.digest != reprl.make("random-mdp-v0", 4, n_states=5, n_actions=3, seed=3).digest
    assert pickle.loads(pickle.dumps(plain)).digest == plain.digest
    assert plain.stationary
    assert not masked(3, by_step=True).stationary


def test_a_mask_that_allows_everything_is_none() -> None:
    mdp = reprl.make("river-swim-v0", horizon=3)
    same = reprl.TabularMDP(
        mdp.transition[0], mdp.reward[0], 0, 3, "deterministic", allowed=np.ones((6, 2), dtype=bool)
    )
    assert same.allowed is None
    assert same.digest == mdp.digest


@pytest.mark.parametrize(
    ("allowed", "words"),
    [
        (np.ones((5, 3)), r"^allowed must be booleans of shape \(5, 3\) or \(4, 5, 3\), got float64 of shape \(5, 3\)"),
        (np.ones((3, 5), dtype=bool), r"^allowed must be booleans of shape .* got bool of shape \(3, 5\)"),
        ([[True], [True, False]], r"^allowed must be booleans of shape \(S, A\) or \(H, S, A\), got"),
        (np.arange(15).reshape(5, 3) != 0, None),
        (np.arange(15).reshape(5, 3) > 2, r"^allowed\[0\] must hold at least one action, got none of 3\Z"),
    ],
)
def test_masks_that_are_refused(allowed: Any, words: str | None) -> None:
    mdp = reprl.make("random-mdp-v0", 4, n_states=5, n_actions=3)

    def build() -> reprl.TabularMDP:
        return reprl.TabularMDP(mdp.transition[0], mdp.reward[0], 0, 4, allowed=allowed)

    if words is None:
        assert build().allowed is not None
        return
    with pytest.raises(ReprlError, match=words):
        build()


def test_a_policy_that_does_what_nobody_may_is_refused() -> None:
    mdp = masked()
    with pytest.raises(ReprlError, match=r"^policy action \[0, 0\] must be allowed there \(0, 2\), got 1\Z"):
        mdp.evaluate(np.ones(SHAPE[:2], dtype=int))


# Samples.


@pytest.mark.parametrize("by_step", [False, True])
def test_masked_cells_are_neither_sampled_nor_paid_for(by_step: bool) -> None:
    mdp = masked(by_step=by_step)
    assert mdp.allowed is not None
    model = GenerativeModel(mdp, 1)
    counts = model.sample(7)
    assert counts.visits.tolist() == (7 * mdp.allowed).tolist()
    assert model.ledger.samples == 7 * int(mdp.allowed.sum())
    if not by_step:
        pooled = model.pooled.sample(7)
        assert pooled.visits.tolist() == (7 * mdp.allowed).tolist()
        assert model.pooled.samples_per_call == int(mdp.allowed[0].sum())


def test_episodes_refuse_a_masked_action_and_count_nothing() -> None:
    model = EpisodicModel(masked(), 1)
    model.reset()
    with pytest.raises(ReprlError, match=r"^action must be allowed in state 0 at step 0 \(0, 2\), got 1\Z"):
        model.step(1)
    assert model.ledger.samples == 0
    model.step(2)


@pytest.mark.parametrize("pooled", [False, True])
def test_exploration_keeps_to_the_mask_and_looks_for_nothing_else(pooled: bool) -> None:
    mdp = masked()
    assert mdp.allowed is not None
    model = EpisodicModel(mdp, 1)
    rule = bind_rule(SharedKey(1), Settings(stationary=pooled), mdp.allowed, mdp.criterion)
    with WorkerPool(model) as pool:
        source = Episodes(model, pool, pooled=pooled)
        known = source.empty()
        for size in source.sizes(20_000):
            known = source.gather(known, size, lambda evidence: rule.play(evidence.model))
    evidence = known.evidence()
    visits = (known.one + known.two).counts.visits
    assert visits.sum() > 0
    assert not visits[~mdp.allowed].any()
    soft = rule.play(evidence.model)
    for play in (soft, plan_unknown(evidence, soft, np.inf)):
        assert not play[~mdp.allowed].any()
        assert np.allclose(play.sum(axis=2), 1.0)
    tried = evidence.samples.reshape(-1, SHAPE[2])
    least = tried[
        (mdp.allowed[0] if pooled else mdp.allowed).reshape(tried.shape) & (tried.sum(axis=1) > 0)[:, None]
    ].min()
    assert least > 0
    assert plan_unknown(evidence, soft, float(least)) is soft  # what nobody may do is not missing
    assert plan_unknown(evidence, soft, float(least + 1)) is not soft


# Rules.


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10**6), st.booleans(), st.sampled_from([None, "shared", (2, 1, 0)]))
def test_the_rule_says_only_what_is_allowed_wherever_it_comes(seed: int, by_step: bool, preference: Any) -> None:
    mdp = masked(seed, by_step=by_step)
    assert mdp.allowed is not None
    assert keeps_to(reprl.choose(mdp, shared_seed=seed, epsilon=0.3, preference=preference), mdp)
    asked = Settings(epsilon=0.3, preference=preference).resolve_stationarity(mdp)
    rule, model = bind_rule(SharedKey(seed), asked, mdp.allowed, mdp.criterion), true_model(mdp)
    table, choice = rule.choose(model)
    policy = reprl.Policy(table)
    assert keeps_to(policy, mdp)
    assert choice.best == pytest.approx(best_by_hand(mdp), abs=1e-9)
    assert choice.best - choice.value < 0.3
    assert mdp.evaluate(policy) == pytest.approx(choice.value, abs=1e-9)
    few = GenerativeModel(mdp, seed)
    thin = lay_out(*(Data(few.sample(1), few.draw_starts(1), mdp.allowed) for _ in range(2)))
    assert keeps_to(reprl.Policy(rule.choose(thin.model)[0]), mdp)


@pytest.mark.parametrize("access", ["generative", "episodic"])
def test_two_runs_agree_on_an_allowed_policy(access: Access) -> None:
    mdp = masked(1)
    first, second = (reprl.learn(mdp, access=access, shared_seed=3, data_seed=d) for d in (1, 2))
    assert first.policy == second.policy
    assert keeps_to(first.policy, mdp)
    assert first.guarantee.status == "rehearsed"
    assert mdp.evaluate(first.policy) > best_by_hand(mdp) - 0.3
    assert keeps_to(reprl.learn(mdp, access=access, shared_seed=3, data_seed=1, max_samples=200).policy, mdp)


@pytest.mark.parametrize(
    "learn",
    [
        lambda mdp: reprl.learn(mdp, rule="paper", constants="scaled", access="episodic"),
        lambda mdp: reprl.learn(mdp, rule="paper"),
        lambda mdp: make_learner("greedy")(GenerativeModel(mdp, 1), SharedKey(1)),
        lambda mdp: make_learner("ucbvi")(EpisodicModel(mdp, 1), SharedKey(1)),
    ],
)
def test_others_refuse_a_mask(learn: Any) -> None:
    with pytest.raises(
        ReprlError, match=r"^model must allow every action for .*, got \d+ masked of 60: only reprl with"
    ):
        learn(masked())


# Gymnasium.


def test_gymnasium_shows_the_mask() -> None:
    mdp = masked(by_step=True)
    assert mdp.allowed is not None
    env = reprl.to_gymnasium(mdp, 1)
    state, info = env.reset()
    for h in range(SHAPE[0]):
        assert info["action_mask"].tolist() == mdp.allowed[h, state].astype(int).tolist()
        action = env.action_space.sample(info["action_mask"])
        state, _, _, truncated, info = env.step(action)
    assert truncated
    assert info["action_mask"].dtype == np.int8
    assert not hasattr(env, "P")
    whole = reprl.to_gymnasium(reprl.make("river-swim-v0"), 1)
    assert whole.reset()[1] == {}
    assert isinstance(env, gymnasium.Env)
