"""Value and gain of a stored policy, computed again from a log that somebody gives."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from reprl.artifacts.receipt import commit_data_seed
from reprl.artifacts.recipe import Recipe
from reprl.artifacts.verify import Evidence
from reprl.errors import InputError
from reprl.learning.logged import STREAM, bind_log_rule, settle
from reprl.mdp.dynamics import Data
from reprl.mdp.labels import RewardMap
from reprl.mdp.policy import Policy, TablePolicy
from reprl.randomness import DataStream, SharedKey
from reprl.sources.logs.coverage import Coverage, find_coverage
from reprl.sources.logs.read import read_log
from reprl.sources.logs.source import seed_of
from reprl.sources.logs.spec import LogSpec
from reprl.sources.logs.tables import open_table
from reprl.storage.documents import naming


class Recomputed(NamedTuple):
    """What a log says of a stored policy, in the rewards' own units."""

    own: bool
    """Whether it is the very log of the run: its receipt's commitment is to this log."""
    value: tuple[float, float, float]
    """Estimate, and a 95 % interval."""
    practice: float
    gain: tuple[float, float]
    stated: tuple[float, float, float, float] | None
    """Value and gain over practice, both as intervals, as the receipt states them."""
    episodes: int

    @property
    def contradicted(self) -> bool:
        """Whether an interval of the receipt and the one of this log have nothing in common."""
        if self.stated is None:
            return False
        low, high, least, most = self.stated
        apart = self.value[2] < low or high < self.value[1]
        return apart or self.gain[1] < least or most < self.gain[0]

    def __str__(self) -> str:
        value, low, high = self.value
        log = "the log of this run" if self.own else f"another log, {self.episodes:,} episodes"
        words = (
            f"value {value:.4g} (95 % {low:.4g} to {high:.4g}), gain over practice {self.gain[0]:.4g} to "
            f"{self.gain[1]:.4g}, by {log}"
        )
        if self.stated is None:
            return words
        stated = "the receipt states value {:.4g} to {:.4g} and gain {:.4g} to {:.4g}".format(*self.stated)
        return f"{words}; {stated}: {'CONTRADICTED' if self.contradicted else 'no contradiction'}"

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON document."""
        return {**self._asdict(), "contradicted": self.contradicted}


def recompute(side: Evidence, log: Any, columns: Mapping[str, str | None] | None = None) -> Recomputed:
    """Estimate value and gain over practice of a stored policy by a log.

    Guarantee:
        The policy is held fixed: it is not chosen by this log. Of the run's own log the rule is applied anew to redrawn
        logs, as when it was learned, and the figures are the receipt's. Intervals are of whole episodes drawn anew, as
        in ``find_coverage``.

    Randomness:
        Data streams (a hash of the log, "recompute/…"), or ("off-policy/…") for the run's own log.
    """
    recipe, policy = side.recipe, side.policy
    if recipe is None or not recipe.of_log or not isinstance(policy, TablePolicy):
        raise InputError(f"--log must come with a run of a log and its recipe, got {side.path}")
    with naming("recipe environment: "):
        spec = LogSpec.of(recipe.environment)
    renamed = {role: name for role, name in recipe.environment.options["columns"].items() if role != name}
    table = open_table(log, {**renamed, **(columns or {})})
    read = read_log(table, spec, pooled=bool(recipe.settings.stationary))
    seed = seed_of(read.data)
    own = side.receipt is not None and side.receipt.data_commitment == commit_data_seed(recipe.digest, seed)
    found = find_coverage(
        read,
        policy,
        np.ones(policy.table.shape, dtype=np.bool_),
        _rule_of(recipe, spec) if own else lambda data: policy,
        unknown=0.0,
        stream=DataStream(seed, STREAM if own else "recompute"),
    )
    scale, told = spec.reward_map, None if side.receipt is None else side.receipt.coverage
    restore = partial(scale.restore, horizon=spec.criterion.effective_horizon)
    stated = None if told is None else (restore(told.value_low), restore(told.value_high), *gains(scale, told))
    return Recomputed(
        own=own,
        value=(restore(found.value), restore(found.value_low), restore(found.value_high)),
        practice=restore(found.practice),
        gain=gains(scale, found),
        stated=stated,
        episodes=read.episodes,
    )


def _rule_of(recipe: Recipe, spec: LogSpec) -> Callable[[Data], Policy]:
    """Return the rule of a run of a log, from data to a policy."""
    return bind_log_rule(spec, SharedKey(recipe.shared_seed), settle(recipe.settings, spec)).decide


def gains(scale: RewardMap, found: Coverage) -> tuple[float, float]:
    """Return the interval of a gain in the rewards' own units."""
    return ((scale.high - scale.low) * found.gain_low, (scale.high - scale.low) * found.gain_high)
