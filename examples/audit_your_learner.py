"""Audit your learner.

Does the learner that you use today agree with itself? An audit runs it in pairs, with fresh data in every run, and
counts the pairs whose policies differ. Here it is Q-learning as in a textbook, on a clinic with two drugs that work
equally well, and then reprl.
"""

import numpy as np

import reprl

STATES, ACTIONS = ("well", "mild", "moderate", "severe", "critical"), ("wait", "drug A", "drug B")


def clinic():
    """Five states of health; both drugs help alike and cost some comfort."""
    better, worse, comfort = (0.2, 0.6, 0.6), (0.4, 0.1, 0.1), (1.0, 0.9, 0.9)
    transition = np.zeros((5, 3, 5))
    for s in range(5):
        for a in range(3):
            transition[s, a, max(s - 1, 0)] += better[a]
            transition[s, a, min(s + 1, 4)] += worse[a]
            transition[s, a, s] += 1 - better[a] - worse[a]
    reward = np.outer((1.0, 0.75, 0.5, 0.25, 0.0), comfort)
    labels = reprl.Labels("clinic", states=STATES, actions=ACTIONS)
    return reprl.TabularMDP(transition, reward, initial=2, horizon=5, labels=labels)


def q_learning(model, shared_key, episodes=1000):
    """Q-learning as in a textbook; it ignores the shared key, as learners do today."""
    q = np.zeros((model.horizon + 1, model.n_states, model.n_actions))
    private = np.random.default_rng(model.data_seed)
    for _ in range(episodes):
        state = model.reset()
        for h in range(model.horizon):
            explore = private.random() < 0.2
            action = int(private.integers(model.n_actions) if explore else q[h, state].argmax())
            seen = model.step(action)
            q[h, state, action] += 0.1 * (seen.reward + q[h + 1, seen.state].max() - q[h, state, action])
            state = seen.state
    return q[:-1].argmax(axis=2)


if __name__ == "__main__":
    for learner, pairs, options in ((q_learning, 5, {}), ("greedy", 20, {}), ("reprl", 3, {"access": "generative"})):
        report = reprl.audit(clinic(), learner, pairs=pairs, seed=1, **options)
        print(report.learner, f"{report.disagreements} of {report.pairs} pairs differ: ρ = 0.1 {report.verdict}")
    print("Few pairs say little of a learner that passes; a real audit takes hundreds.")
