"""Black boxes of the experiments: each is the exact MDP that judges its runs."""

from __future__ import annotations

import numpy as np
from experiments.defaults.worlds import blackjack
from experiments.price.boxes import REWARDS, ROOM, SERVED, Cards, TwoQueues, two_queues

from reprl.mdp.dynamics import true_dynamics


def test_fast_cards_are_blackjack() -> None:
    """Returns of 20,000 hands; within 6 standard errors of the exact value (false alarm 2e-9)."""
    cards, mdp, paid = Cards(), blackjack(), []
    law = np.array([int(hand // 22 < 15) for hand in range(mdp.n_states)])
    for seed in range(20_000):
        hand, _ = cards.reset(seed=seed)
        for _ in range(mdp.horizon):
            hand, reward, over, *_ = cards.step(int(hand[0] < 15))
            if over:
                break
        paid.append(reward)
    exact = 2.0 * mdp.evaluate(np.tile(law, (mdp.horizon, 1))) - mdp.horizon
    assert abs(np.mean(paid) - exact) < 6.0 * np.std(paid) / len(paid) ** 0.5


def test_the_exact_queues_are_the_box() -> None:
    """Frequencies and mean rewards of 20,000 steps; within 6 standard errors and 6 counts (false alarm 1e-6)."""
    box, mdp, rng = TwoQueues(), two_queues(), np.random.default_rng(2)
    seen, paid = np.zeros((ROOM**2, 3, ROOM**2)), np.zeros((ROOM**2, 3))
    state, _ = box.reset(seed=1)
    for _ in range(20_000):
        action, before = int(rng.integers(3)), state[0] * ROOM + state[1]
        state, reward, *_ = box.step(action)
        seen[before, action, state[0] * ROOM + state[1]] += 1
        paid[before, action] += (reward - REWARDS[0]) / (REWARDS[1] - REWARDS[0])
    n = seen.sum(axis=2)
    exact = true_dynamics(mdp)
    law, means = np.zeros_like(seen), np.zeros_like(paid)
    for s, a in np.ndindex(ROOM**2, 3):
        here, slots = exact.outcomes.slots(0, s, a)
        np.add.at(law[s, a], exact.outcomes.next_state[here], exact.probability[slots])
        means[s, a] = exact.probability[slots] @ exact.outcomes.reward[here]
    assert (n > 10).all()
    share = seen / n[:, :, None]
    assert (share[law == 0.0] == 0.0).all()
    assert (np.abs(share - law) <= 6.0 * np.sqrt(law * (1.0 - law) / n[:, :, None]) + 6.0 / n[:, :, None]).all()
    assert (np.abs(paid / n - means) <= 6.0 * 0.5 / np.sqrt(n)).all()
    assert SERVED[0] > SERVED[1]
