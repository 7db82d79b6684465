"""Black boxes under the weaker promises: what a run waits for, and the stored pairs of docs/register.md."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from reprl.assurance.rehearsal import Rehearsal
from reprl.assurance.stopping import Doubts, _missing
from reprl.canonical.allocation import ASIDE, FOCUS, allocate_cells
from scipy.stats import binomtest

import reprl
from experiments.defaults.worlds import blackjack
from experiments.pairs import count
from experiments.price.__main__ import PAGE, PROMISES, page_table
from experiments.price.boxes import ALONE, BOXES, DATA, REWARDS, ROOM, SERVED, Cards, Case, TwoQueues, table, two_queues
from experiments.price.numbers import EPISODES, of_promise
from experiments.runner import ROOT, between
from reprl.mdp.dynamics import true_dynamics
from tests.statistics import keeps

pytestmark = pytest.mark.filterwarnings("ignore::reprl.errors.PilotWarning")

PASSED = Rehearsal(40, 40, 0, 0, True, np.zeros((1, 1)), 0.01)
MEASURED: dict[str, Any] = json.loads((ROOT / DATA).read_text("utf-8"))["measured"]
EXACT: dict[str, Any] = json.loads((ROOT / EPISODES).read_text("utf-8"))["measured"]


def test_the_weaker_promises_add_what_is_hardly_explored_to_the_loss() -> None:
    doubts = Doubts(loss=0.03, unknown=0.04, hidden=0.01)
    assert _missing(0.1, PASSED, doubts, cellwise=True) == ""
    assert "under-sampled cells is 0.04" in _missing(0.1, PASSED, doubts, cellwise=False)
    for more, words in (
        ({"unknown": 0.08}, "under-sampled cells is 0.08"),
        ({"unknown": 0.065}, "could cost it 0.01"),
        ({"unknown": 0.055}, "known to a standard deviation of 0.01"),
        ({"unknown": 0.0, "loss": 0.1}, "the policy loses 0.1"),
    ):
        assert words in _missing(0.1, PASSED, doubts._replace(**more), cellwise=True)


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


def test_samples_go_first_to_the_cells_that_decide() -> None:
    rng = np.random.default_rng(1)
    mdp = reprl.TabularMDP(rng.dirichlet(np.ones(4), (4, 3)), rng.uniform(0.0, 1.0, (4, 3)), 0, 3)
    dynamics = true_dynamics(mdp)
    actions = np.zeros((3, 4), dtype=np.int64)
    weight = allocate_cells(np.arange(3), dynamics, np.full((3, 4), 0.2), actions)
    assert FOCUS <= weight.max() <= FOCUS * (1.0 + ASIDE * mdp.horizon**2)
    assert weight.min() >= 0.0


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


@pytest.mark.parametrize("group", ["agreement", "registered"])
def test_a_small_box_ends_in_a_promise(group: str) -> None:
    case = Case(group, "shop H=10")
    mdp = case.build()
    run = case.run(mdp, 0, 1, 5)
    assert run.guarantee.status == "rehearsed"
    assert run.guarantee.kind == ("approximate" if group == "agreement" else "registered")
    assert not case.apart(mdp, run.policy, run.policy)


def test_stored_pairs_keep_their_promise_and_every_box_has_one() -> None:
    """False alarm 1e-6; the pairs of a box are few, so all are tested together."""
    broken = pairs = 0
    promising: set[str] = set()
    for name, one in MEASURED.items():
        if name == f"alone/{ALONE}":
            assert one["status"] == "rehearsed"
            assert one["share"] >= 0.9
            continue
        seen = count(one)
        broken, pairs = broken + seen.apart.failures, pairs + seen.apart.trials
        assert seen.missed.failures == 0
        if seen.apart.trials:
            promising.add(name.partition("/")[2].partition("#")[0])
    assert promising == set(BOXES) - {ALONE}
    assert keeps(broken, pairs, 0.1, power=0.001, finds=0.6)


def test_the_page_shows_the_stored_boxes() -> None:
    text = (ROOT / "docs" / "register.md").read_text("utf-8")
    assert between(text, ("<!-- boxes -->", "<!-- end -->"), table(MEASURED, EXACT)) == text


def test_the_page_shows_the_stored_promises() -> None:
    text = (ROOT / "docs" / "register.md").read_text("utf-8")
    strict, weaker = (json.loads((ROOT / file).read_text("utf-8"))["measured"] for file in (PAGE["price"], PROMISES))
    assert between(text, ("<!-- promises -->", "<!-- end -->"), page_table({**strict, **weaker})) == text


@pytest.mark.parametrize("file", [PROMISES, EPISODES])
def test_no_weaker_promise_is_rejected(file: str) -> None:
    """The smallest group, 210 pairs, finds a failure probability of 0.3 with a power of .99, one of 0.2 with .32."""
    for group in ("agreement", "registered"):
        seen = of_promise(file, group)
        assert not any(one.rejected for one in seen)
        failures, trials = (sum(getattr(one.apart, part) for one in seen) for part in ("failures", "trials"))
        assert trials >= 200
        assert binomtest(failures, trials, 0.1, alternative="greater").pvalue > 1e-6
