"""The rule on a log: practice is part of the model, and simulated second teams redraw whole episodes.

What practice hardly does is not decided; what it does decides ties. Both are rules about the environment and its
practice, not about the sample: thresholds come from ξ, shares from the log, and a team reads them from its own redraw.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from reprl.assurance.teams import Answers, Round, Told, answer, gather_answers, keys_of, make_team, make_told
from reprl.mdp.dynamics import Data
from reprl.mdp.evidence import REWARDS, Evidence, lay_out
from reprl.mdp.policy import Policy
from reprl.randomness import DataStream, SharedKey
from reprl.rule.bound import SoftRule
from reprl.rule.draws import Draws, draw
from reprl.rule.soft import Asked, make_room
from reprl.sources.logs.block_bootstrap import Blocks

LEAST_SHARE = 0.05
"""An action is allowed where practice takes it at least so often, up to a shared factor of 2 more."""


class LogRule(NamedTuple):
    """f(ξ, ·) of a log."""

    draws: Draws
    least: float
    """Share of practice from which on an action is allowed."""
    shift: NDArray[np.float64]
    """(S,): where octaves of shares begin, uniform in [0, 1)."""
    share: float
    epsilon: float
    mask: NDArray[np.bool_]
    """(H, S, A): what may be done at all."""
    ended: int
    """The state of episodes that are over."""
    baseline: NDArray[np.float64] | None = None
    """(H, S, A): laws of actions; None for practice."""
    order: NDArray[np.int64] | None = None
    """(S, A); None for the order by practice."""

    @classmethod
    def bind(
        cls,
        key: SharedKey,
        mask: NDArray[np.bool_],
        ended: int,
        *,
        stationary: bool,
        quality: float | None,
        epsilon: float | None,
        baseline: NDArray[np.float64] | None = None,
        order: NDArray[np.int64] | None = None,
    ) -> LogRule:
        """Bind the rule; as ``SoftRule.bind``.

        Randomness:
            Shared, as ``draw``, and at key.derive("practice", "share") and ("practice", "octave"), index state.
        """
        share = 0.0 if epsilon is not None or quality is None else 1.0 - quality
        least = LEAST_SHARE * (1.0 + float(key.derive("practice", "share").uniforms(1)[0]))
        shift = key.derive("practice", "octave").uniforms(mask.shape[1])
        draws = draw(key, mask.shape, stationary=stationary)
        return cls(draws, least, shift, share, epsilon or 0.0, mask, ended, baseline, order)

    def read(self, visits: NDArray[np.int64]) -> tuple[NDArray[np.bool_], Asked]:
        """Return what may be decided, (H, S, A), and what the rule measures by, from visits, (1 or H, S, A).

        An action is allowed where practice takes it often enough, the most usual one always; in a cell without visits
        practice is that of the state at all steps. Preferred is what practice does more often, by octaves of its share.
        """
        here, anywhere = visits.astype(np.float64), visits.sum(axis=0, dtype=np.float64)
        here = np.where(here.sum(axis=2, keepdims=True) > 0.0, here, anywhere)
        here[:, self.ended] = 0.0
        total = here.sum(axis=2, keepdims=True)
        play = np.divide(here, total, out=np.zeros_like(here), where=total > 0.0)
        play = np.broadcast_to(play, self.mask.shape)
        usual = np.where(self.mask, play, -1.0).argmax(axis=2)
        most = np.equal.outer(usual, np.arange(play.shape[2]))
        allowed = self.mask & ((play >= self.least) | most)
        practice = np.where(play.sum(axis=2, keepdims=True) > 0.0, play, most)
        asked = Asked(
            np.ascontiguousarray(practice) if self.baseline is None else self.baseline,
            self._order(anywhere) if self.order is None else self.order,
            self.share,
            self.epsilon,
        )
        return allowed, asked

    def _order(self, visits: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return the order by practice, (S, A): larger octaves of the share first, then by index."""
        total = np.maximum(visits.sum(axis=1, keepdims=True), 1.0)
        with np.errstate(divide="ignore"):
            octave = np.floor(np.log2(visits / total) + self.shift[:, None])
        return np.argsort(-octave, axis=1, kind="stable")

    def bound(self, one: Data, two: Data) -> tuple[SoftRule, Evidence]:
        """Return the rule and the evidence of two halves of a log."""
        gamma = one.criterion.discount or 0.0
        evidence = lay_out(one, two, exact=(self.ended,), gamma=gamma)
        shape = (1 if evidence.model.shift == 0 else len(self.mask), *self.mask.shape[1:])
        allowed, asked = self.read(evidence.samples.reshape(shape))
        return SoftRule(self.draws, asked), evidence.allow(allowed)

    def decide(self, data: Data) -> Policy:
        """Return f(ξ, ·) of data."""
        rule, evidence = self.bound(data, data)
        return Policy(data.criterion.actions(rule.choose(evidence.model)[0]))


def split(blocks: Blocks, data_seed: int) -> tuple[Data, Data]:
    """Return two halves of a log; whether a block of episodes belongs to the one or the other is drawn for each.

    Randomness:
        Data stream (data seed, "halves").
    """
    first = DataStream(data_seed, "halves").uniforms(blocks.number) < 0.5
    if first.all() or not first.any():
        first = np.arange(blocks.number) % 2 == 0
    one, two = (blocks.weigh(chosen.astype(np.int64)) for chosen in (first, ~first))
    return one, two


def ask_log_teams(
    now: Round,
    rule: LogRule,
    blocks: Blocks,
    name: str,
    data_seed: int,
    numbers: range,
    pool: ThreadPoolExecutor | None = None,
) -> Answers:
    """Return the answers of teams that redraw blocks of whole episodes; as ``ask_teams``."""
    return gather_answers(now, partial(_ask_block, now, rule, blocks, name, data_seed), numbers, pool)


def _ask_block(now: Round, rule: LogRule, blocks: Blocks, name: str, data_seed: int, teams: range) -> Told:
    told, team, room = make_told(now, len(teams)), make_team(now), make_room(now.draws, now.asked.order.shape[1])
    first = now.evidence.model.first
    real = np.ones(first[-1], dtype=np.bool_)
    real[(first[1:, None] - np.arange(1, len(REWARDS) + 1)).ravel()] = False
    shape = (1 if now.evidence.model.shift == 0 else len(rule.mask), *rule.mask.shape[1:])
    for k, key in enumerate(keys_of(name, data_seed, teams)):
        data = blocks.redraw(1, int(key), now.scale)
        team.drawn[:] = 0
        team.drawn[real] = data.counts.hits
        team.starts[:] = data.starts
        allowed, asked = rule.read(np.add.reduceat(team.drawn, first[:-1]).reshape(shape))
        answer(now, k, key, asked, allowed, team, room, told)
    return told
