"""UCBVI and model-based planning against rlberry-scool, on the same data, in its own interpreter.

Needs RLBERRY_PYTHON=/path/to/python of an environment with rlberry 0.7 and rlberry-scool; skipped without.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
from typing import Any

import numpy as np
import pytest

import reprl
from reprl.lab.baselines import empirical_values, make_learner
from reprl.lab.baselines.memory import Optimism, explore, plain, replan

PYTHON = os.environ.get("RLBERRY_PYTHON")
pytestmark = [pytest.mark.slow, pytest.mark.skipif(not PYTHON, reason="RLBERRY_PYTHON is not set")]

EPISODES, CALLS, TRAINED = 6000, 200, 800
"""Episodes and calls of the data that both plan on; episodes that each trains for."""
CLOSE, LOSS = 1e-9, 0.05
"""What action values may differ by, and what trained policies may lose on average."""

_SCRIPT = """
import json, sys
import numpy as np
from rlberry.envs.finite_mdp import FiniteMDP
from rlberry_scool.agents.ucbvi import UCBVIAgent
from rlberry_scool.agents.mbqvi import MBQVIAgent
from rlberry_scool.agents.ucbvi import ucbvi as module
spec = json.load(sys.stdin)
P, R, H = np.array(spec["transition"]), np.array(spec["reward"]), spec["horizon"]
S, A = P.shape[0], P.shape[1]
env = FiniteMDP(R, P, initial_state_distribution=0)
out = {}
if spec["what"] == "plan":
    agent = UCBVIAgent(env, gamma=1.0, horizon=H, stage_dependent=True)
    agent.v_max = np.arange(H, 0, -1.0)
    for h, s, a, t, r in spec["steps"]:
        agent._update(int(s), int(a), int(t), r, int(h))
    agent.B_sa = np.array(spec["bonus"])
    module.backward_induction_sd(agent.Q, agent.V, agent.R_hat + agent.B_sa, agent.P_hat, 1.0, float(H))
    out["optimistic"] = agent.Q.tolist()
    agent.fit(budget=0)
    out["empirical"] = agent.Q_policy.tolist()
elif spec["what"] == "mbqvi":
    class Replay(FiniteMDP):
        def sample(self, state, action):
            t, r = self.queue[state, action].pop()
            return t, r, False, False, {}
    env = Replay(R, P, initial_state_distribution=0)
    env.queue = {(s, a): [tuple(x) for x in spec["data"][s][a]] for s in range(S) for a in range(A)}
    agent = MBQVIAgent(env, n_samples=spec["n"], gamma=1.0, horizon=H)
    agent.env.unwrapped.queue = env.queue
    agent.fit()
    out["q"] = agent.Q.tolist()
else:
    found = []
    for seed in range(spec["runs"]):
        agent = UCBVIAgent(env, gamma=1.0, horizon=H, stage_dependent=True, seeder=seed,
                           bonus_scale_factor=spec["scale"])
        agent.fit(budget=spec["episodes"])
        found.append(agent.Q_policy.argmax(axis=2).tolist())
    out["policies"] = found
print(json.dumps(out))
"""


def ask(**spec: Any) -> dict[str, Any]:
    assert PYTHON is not None
    done = subprocess.run(
        [PYTHON, "-W", "ignore", "-c", _SCRIPT], input=json.dumps(spec), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


def world() -> tuple[reprl.TabularMDP, dict[str, Any]]:
    """A homogeneous MDP whose rewards, as rlberry's are, are paid as they stand."""
    rng = np.random.default_rng(2)
    moves, reward = rng.dirichlet(np.ones(4), size=(4, 3)), rng.random((4, 3)).round(3)
    mdp = reprl.TabularMDP(moves, reward, 0, 3, "deterministic")
    return mdp, {"transition": moves.tolist(), "reward": reward.tolist(), "horizon": 3}


def test_plans_agree_on_the_same_data() -> None:
    """With every cell seen and no cap reached, optimistic and empirical action values agree to 1e-9."""
    mdp, spec = world()
    uniform = Optimism(np.full(3, 50.0), 1.0, 0.0, 1.0, 0.0, math.inf, 0.0, -1.0)  # bonuses so large that all are tried
    outcomes, seen = explore(reprl.EpisodicModel(mdp, 1), uniform, EPISODES, "test")
    visited = seen.visits.reshape(3, 4, 3)[1:]
    assert visited.min() > 0
    steps = []
    for h in range(3):
        for s in range(4):
            for a in range(3):
                table, slots = outcomes.slots(h, s, a)
                for t, r, n in zip(outcomes.next_state[table], outcomes.reward[table], seen.hits[slots], strict=True):
                    steps += [[h, s, a, int(t), float(r)]] * int(n)
    mild = Optimism(np.array([0.003, 0.002, 0.001]), 1.0, 0.0, 1.0, 1.0, math.inf, 0.0, -1.0)
    n = np.maximum(seen.visits.reshape(3, 4, 3), 1)
    bonus = mild.scale[:, None, None] * np.sqrt(1.0 / n)
    theirs = ask(what="plan", steps=steps, bonus=bonus.tolist(), **spec)
    scores = np.empty(seen.visits.size)
    seen_cells = seen.visits.reshape(3, 4, 3) > 0
    for optimism, name in ((plain(3), "empirical"), (mild, "optimistic")):
        replan(outcomes, seen, optimism, scores)
        gap = np.abs(scores.reshape(3, 4, 3) - np.array(theirs[name]))[seen_cells].max()
        print(f"{name}: largest difference {gap:.1e} over {seen_cells.sum()} cells")
        assert gap < CLOSE


def test_model_based_planning_agrees_with_mbqvi() -> None:
    """MBQVI keeps one table for all steps, so it is given the samples of one step and compared at the last step."""
    mdp, spec = world()
    counts = reprl.GenerativeModel(mdp, 5).sample(CALLS)
    data: list[list[list[list[float]]]] = []
    for s in range(4):
        data.append([])
        for a in range(3):
            table, slots = counts.outcomes.slots(2, s, a)
            rows = zip(
                counts.outcomes.next_state[table], counts.outcomes.reward[table], counts.hits[slots], strict=True
            )
            data[-1].append([[int(t), float(r)] for t, r, n in rows for _ in range(int(n))])
    shared = counts.hits.reshape(3, -1)[2]
    same = reprl.Counts(counts.outcomes, np.tile(shared, 3))
    theirs = ask(what="mbqvi", data=data, n=CALLS, **spec)
    gap = np.abs(empirical_values(same) - np.array(theirs["q"])).max()
    print(f"MBQVI: largest difference {gap:.1e}")
    assert gap < CLOSE


def test_both_learn_near_optimal_policies() -> None:
    mdp, spec = world()
    best = mdp.evaluate(mdp.solve().policy)
    theirs = ask(what="learn", runs=3, episodes=TRAINED, scale=0.1, **spec)
    losses = [best - mdp.evaluate(np.array(policy)) for policy in theirs["policies"]]
    learner = make_learner("ucbvi", samples=TRAINED * 3, replan="episode")
    ours = [best - mdp.evaluate(learner(reprl.EpisodicModel(mdp, i), reprl.SharedKey(0))) for i in range(5)]
    print(f"mean loss: rlberry {np.mean(losses):.4f}, ours {np.mean(ours):.4f}")
    assert np.mean(ours) < LOSS
    assert np.mean(losses) < LOSS
