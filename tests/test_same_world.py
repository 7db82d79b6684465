"""same_world: false contradictions are as rare as promised, whatever decides where to sample; real ones are found."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import special

import reprl
from reprl.auditing.two_sample import same_world
from reprl.cli.app import main
from reprl.mdp.counts import tally
from reprl.mdp.homogeneity import BINS, LEVEL
from tests.shop import Shop
from tests.statistics import FALSE_ALARM, exceeds, keeps

WORLD = reprl.make("random-mdp-v0", 3, n_states=4, n_actions=2)


def draw(mdp: reprl.TabularMDP, seed: int, n: int) -> reprl.Counts:
    return reprl.GenerativeModel(mdp, seed).sample(n)


def changed(share: float) -> reprl.TabularMDP:
    """The same world, but for one cell, from which a share of its law is moved to another's."""
    kernel = np.array(WORLD.transition[0])
    kernel[1, 0] = (1.0 - share) * kernel[1, 0] + share * np.eye(4)[0]
    return reprl.TabularMDP(kernel, WORLD.reward, WORLD.initial, 3)


def naive(first: list[tuple[float, ...]], second: list[tuple[float, ...]], shape: tuple[int, int, int]) -> float:
    """The evidence by its formula, event by event, from lists of (h, s, a, next state, reward)."""
    total = 0.0
    for cell in np.ndindex(shape):
        rows = [[row for row in team if row[:3] == cell] for team in (first, second)]
        events: list[Any] = [lambda row, y=y: row[3] == y for y in range(shape[1])]
        events += [lambda row, k=k: row[4] >= k / BINS for k in range(1, BINS)]
        for event in events:
            hits, sizes = [sum(map(event, team)) for team in rows], [len(team) for team in rows]
            if not sum(hits):
                continue
            bets = [
                special.beta(k + 0.5, n - k + 0.5) / special.beta(0.5, 0.5) for k, n in zip(hits, sizes, strict=True)
            ]
            q = sum(hits) / sum(sizes)
            total += math.prod(bets) / (q ** sum(hits) * (1 - q) ** (sum(sizes) - sum(hits)))
    return math.log(total / (math.prod(shape) * (shape[1] + BINS - 1)))


def test_the_evidence_is_that_of_the_formula() -> None:
    rng = np.random.default_rng(0)
    shape = (2, 3, 2)
    teams = []
    for n in (40, 25):
        columns = [rng.integers(0, size, n) for size in (*shape, 3)]
        rewards = rng.choice([0.0, 0.25, 0.2499, 0.99, 1.0], n)
        teams.append([(*map(int, row[:4]), float(row[4])) for row in zip(*columns, rewards, strict=True)])
    found = same_world(tally(teams[0], shape), tally(teams[1], shape))
    assert found.log_evidence == pytest.approx(naive(teams[0], teams[1], shape), abs=1e-9)


@pytest.mark.statistical
def test_one_world_is_hardly_ever_contradicted() -> None:
    """400 pairs, false alarm 1e-6."""
    level, pairs = 0.1, 400
    hits = 0
    for pair in range(pairs):
        first, second = draw(WORLD, 2 * pair, 50), draw(WORLD, 2 * pair + 1, 50)
        hits += same_world(first, second, level=level).contradicted
    assert keeps(hits, pairs, level, power=0.85)


@pytest.mark.statistical
def test_a_team_that_stops_when_it_likes_what_it_sees_is_not_believed_more() -> None:
    """One coin, one cell. The second team looks after every throw and stops when its share is far from a half.

    A test for a fixed number of throws is misled far more often than its level (the control). False alarm 1e-6.
    """
    level, pairs, most = 0.1, 400, 300
    ours = fixed = 0
    for pair in range(pairs):
        rng = np.random.default_rng([3, pair])
        first = int(rng.binomial(300, 0.5))
        throws = np.cumsum(rng.integers(0, 2, most))
        sizes = np.arange(1, most + 1)
        far = np.abs(throws - sizes / 2) / np.sqrt(sizes / 4)
        stop = int(np.argmax(far >= 2.2)) if (far[20:] >= 2.2).any() else most - 1
        stop = max(stop, 20)
        hits, n = int(throws[stop]), stop + 1
        counts = [_coin(first, 300), _coin(hits, n)]
        ours += same_world(counts[0], counts[1], level=level).contradicted
        pooled = (first + hits) / (300 + n)
        z = abs(first / 300 - hits / n) / math.sqrt(pooled * (1 - pooled) * (1 / 300 + 1 / n))
        fixed += z > 1.645
    assert keeps(ours, pairs, level, power=0.85)
    assert exceeds(fixed, pairs, level) < FALSE_ALARM


def _coin(hits: int, n: int) -> reprl.Counts:
    return tally([[0, 0, 0, i < hits, 0.0] for i in range(n)], (1, 2, 1))


@pytest.mark.statistical
def test_a_changed_cell_is_found() -> None:
    """Half of the law of one cell is moved: 2,000 samples of each cell are enough in every one of 20 pairs."""
    other = changed(0.5)
    for pair in range(20):
        found = same_world(draw(WORLD, 2 * pair, 2000), draw(other, 2 * pair + 1, 2000))
        assert found.contradicted
        assert found.p_value <= LEVEL
        best = found.contrasts[0]
        assert (best.state, best.action) == (1, 0)
        assert len({(item.step, item.state, item.action) for item in found.contrasts}) == len(found.contrasts)


def test_what_the_test_cannot_see_is_not_claimed() -> None:
    nothing = reprl.Counts.empty(WORLD.outcomes)
    found = same_world(draw(WORLD, 1, 100), nothing)
    assert not found.contradicted
    assert found.p_value == 1.0
    assert not same_world(draw(WORLD, 1, 10), draw(changed(0.01), 2, 10)).contradicted
    json.dumps(same_world(nothing, nothing).to_dict(), allow_nan=False)


@pytest.mark.parametrize("level", [0.0, 1.0, "a", None])
def test_levels_are_checked(level: Any) -> None:
    with pytest.raises(reprl.ReprlError, match="level must lie in"):
        same_world(COUNTS, COUNTS, level=level)


COUNTS = draw(WORLD, 1, 5)


def test_data_of_another_shape_are_refused() -> None:
    with pytest.raises(reprl.ReprlError, match=r"one shape \(H, S, A\), got \(3, 4, 2\) and \(2, 4, 2\)"):
        same_world(COUNTS, draw(reprl.make("random-mdp-v0", 2, n_states=4, n_actions=2), 1, 5))


# The whole way: a black box whose demand has changed.

BUSY = """
from tests.shop import Shop
class Busy(Shop):
    def customers(self):
        return int(self.np_random.binomial(3, {chance}))
"""


def test_a_changed_black_box_passes_its_digest_and_fails_the_test(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, chance in (("calm", 0.5), ("busy", 0.6)):
        (tmp_path / f"{name}.py").write_text(BUSY.format(chance=chance))
    run, counts = tmp_path / "run", tmp_path / "first.counts"
    low, high = map(str, Shop.REWARDS)
    common = ["--horizon", "2", "--workers", "1", "--max-samples", "20000"]
    first = ["learn", f"{tmp_path}/calm.py:Busy", *common, "--reward-range", low, high, "--shared-seed", "1"]
    assert main([*first, "--data-seed", "1", "--out", str(run), "--counts", str(counts)]) in (0, 1)
    recipe = json.loads((run / "recipe.json").read_text())
    assert recipe["environment"]["reward_range"] == list(Shop.REWARDS)
    codes = {}
    for name, seed in (("calm", "2"), ("busy", "3")):
        capsys.readouterr()
        words = ["replicate", str(run), "--env", f"{tmp_path}/{name}.py:Busy", "--data-seed", seed, "--workers", "1"]
        words += ["--max-samples", "20000"]
        codes[name] = main([*words, "--counts", str(counts), "--json"])
        found = json.loads(capsys.readouterr().out)  # the digest let both through, and the range came with the recipe
        assert found["same_world"]["contradicted"] is (name == "busy")
    assert codes["busy"] == 1
    capsys.readouterr()
    assert main([*words, "--counts", str(counts)]) == 1
    shown = capsys.readouterr().out
    assert "another environment: your transitions contradict the first team's counts" in shown
    draw(WORLD, 1, 3).save(counts)
    assert main([*words, "--counts", str(counts)]) == 2
    assert "--counts must have the recipe's shape" in capsys.readouterr().err
