"""learn_search: reprl.learn where observations are not finite, or where a search is asked for."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple, cast

import numpy as np

from reprl.assurance.student import StudentTest, student_interval
from reprl.errors import InputError, check_count, quote
from reprl.execution.pool import WorkerPool
from reprl.execution.progress import progress_bar
from reprl.execution.settings import Progress
from reprl.guarantee import Guarantee
from reprl.learning.search_result import Estimate, RungRecord, SearchDetails, SearchRecord, SearchResult
from reprl.mdp.tabular import TabularMDP
from reprl.randomness import SharedKey
from reprl.search.betting import Levels, MeanTest, mean_interval, rung_risk, scan_levels
from reprl.search.families import Family, Named, Networks, Own, head_for, tables_for
from reprl.search.ladder import Aim, Climb, Step, climb
from reprl.search.networks import make_network
from reprl.search.scales import Scaled, find_scales, first_inputs
from reprl.search.scan import Judge, Test
from reprl.search.settings import SearchSettings
from reprl.search.tournament import Interval, improve
from reprl.sources.access import episode_steps
from reprl.sources.environment import make
from reprl.sources.gymnasium.model import GymnasiumModel, to_gymnasium
from reprl.sources.returns import Play, Range, ReturnModel, Returns
from reprl.storage.checkpoints import open_checkpoint

PROOF = "docs/proofs/search.md"
SCALES = 0.1
"""The part of the risk that is for finding scales of observations, where that is needed."""
STEPS = 64
"""The smallest step of a ladder is this fraction of the way to its target."""
TOLERANCE = 16
"""The tolerance of a tournament is at least this fraction of the range of returns."""
ROOM = 256
"""At the target a threshold is at most this fraction of the range above it: good candidates grow rare quickly."""
_NO_BOUND = 1e300
"""What a policy may lose, in reward units, where returns have no bound; else no policy earns more than the bound."""
BASELINE = 16
"""Episodes of the policy that everything is compared with."""


def open_returns(
    env: Any,
    horizon: int | None,
    reward_range: Any,
    return_range: Any,
    data_seed: int | None,
    options: Mapping[str, Any] | None = None,
) -> ReturnModel:
    """Return an environment as a source of returns."""
    if isinstance(env, ReturnModel):
        return env if data_seed is None else env.for_run(data_seed)
    if isinstance(env, GymnasiumModel):
        raise InputError(f"env must be a Gymnasium id, a factory or a gymnasium.Env for a search, got {quote(env)}")
    if isinstance(env, str) and not env.startswith("gym:"):
        made = make(env, horizon)
        assert isinstance(made, TabularMDP)
        env = made
    if isinstance(env, TabularMDP):
        horizon, reward_range = horizon or episode_steps(env), reward_range or (0.0, 1.0)
        env = partial(to_gymnasium, env)
    if isinstance(env, str):
        env = env.removeprefix("gym:")
    ranges = {"reward_range": reward_range, "return_range": return_range}
    return ReturnModel(env, horizon, **ranges, data_seed=data_seed, **(options or {}))


def learn_search(
    model: ReturnModel,
    settings: SearchSettings,
    shared_seed: int,
    *,
    max_samples: int | None = None,
    workers: int = 1,
    timeout: float | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    progress: bool | Progress = False,
) -> SearchResult:
    """Search for a policy by scans that climb (docs/search.md); the arguments are those of ``reprl.learn``.

    Guarantee:
        `certified` where returns are bounded: with probability at least 1 − ρ two runs print the same policy, and with
        probability at least 1 − min(δ, ρ/2) its mean return is above the threshold of its rung (docs/proofs/search.md).

    Randomness:
        Shared, at ("search", …) of SharedKey(shared_seed). Data: streams "search/…" of the model's data seed only.
    """
    began, key = time.perf_counter(), SharedKey(shared_seed)
    model.timeout = timeout
    limit = None if max_samples is None else check_count("max_samples", max_samples, 1)
    check_target(settings, model)
    with (
        open_checkpoint(checkpoint, _work(model, settings, shared_seed, limit)) as kept,
        WorkerPool(model, workers, kept) as pool,
        progress_bar(progress, "candidates") as tell,
    ):
        returns = Returns(model, pool, None, limit)
        family, scaled = _family(key, returns, settings)
        returns = Returns(model, pool, family.acting, limit)
        baseline = _baseline(returns, family)
        if scaled is not None and scaled.undecided is not None:
            climbed = Climb((), None, math.nan, False, None)
        else:
            say = None if tell is None else (lambda rung, j: tell(f"rung {rung}", j, settings.candidates))
            climbed = _climb(key, returns, family, settings, say)
    details = _details(model, settings, climbed, scaled, baseline)
    weights = climbed.weights if climbed.weights is not None else _start(family)
    record = SearchRecord(
        model.title, model.origin, model.horizon, model.reward_range, model.return_range, model.digest,
        key.seed, model.data_seed, model.ledger.samples, model.ledger.episodes, time.perf_counter() - began,
    )  # fmt: skip
    return SearchResult(
        policy=family.policy(weights),
        guarantee=_promise(settings, model, details, climbed, scaled),
        settings=settings,
        details=details,
        record=record,
    )


def check_target(settings: SearchSettings, model: ReturnModel) -> None:
    """Refuse a target, or none, that returns cannot be compared with."""
    bounds, target = model.return_range, settings.target
    if bounds is None and target is None and settings.tolerance is None:
        raise InputError(
            "target or tolerance must be given where returns have no bound (reward_range or return_range would give "
            "one), got None"
        )
    if bounds is not None and target is not None and not bounds.low <= target < bounds.high:
        raise InputError(f"target must lie in [{bounds.low:g}, {bounds.high:g}), the range of returns, got {target:g}")


def _work(model: ReturnModel, settings: SearchSettings, shared_seed: int, limit: int | None) -> dict[str, Any]:
    """Everything on which the tasks of a run depend; its limit is not of it: a run that was cut may go on."""
    given = {**settings.to_dict(), "policy": policy_name(settings.policy)}
    return {
        "kind": "search",
        "environment": {"id": model.title, "digest": model.digest},
        "settings": {name: list(x) if isinstance(x, tuple) else x for name, x in given.items()},
        "shared_seed": shared_seed,
        "data_seed": model.data_seed,
    }


def policy_name(policy: Any) -> str | None:
    """Return what recipes call a family."""
    if isinstance(policy, Named):
        return policy.name
    return policy if policy is None or isinstance(policy, str) else Own.of(policy).name


def _family(key: SharedKey, returns: Returns, settings: SearchSettings) -> tuple[Family, Scaled | None]:
    """Return what is proposed, with scales of observations found out where they are needed."""
    from gymnasium import spaces

    model, policy = returns.model, settings.policy
    box = isinstance(model.observation_space, spaces.Box)
    if policy is None:
        policy = "linear" if box else "table"
    if not isinstance(policy, str):
        return cast(Family, Own.of(policy, model.action_space)), None
    if policy == "table":
        if box:
            raise InputError("policy must not be 'table' for observations that are a Box: reprl.discretize cuts them")
        return tables_for(model.observation_space, model.action_space), None
    if not box:
        raise InputError(f"policy must be 'table' for observations that are no Box, got {policy!r}")
    head = head_for(model.action_space)
    inputs = first_inputs(model.observation_space, settings.observation_range)
    scaled = find_scales(key, returns, inputs, head, _unit_test, settings.risk * SCALES)
    ready = scaled.inputs._replace(scale=tuple(s or 1.0 for s in scaled.inputs.scale))
    return Networks(make_network(policy, settings.hidden), ready, head), scaled


def _unit_test(theta: float, level: float) -> Test:
    """A test of the mean of samples that are 0 or 1."""
    return MeanTest.checked(0.0, 1.0, theta, Levels(level, level))


def _start(family: Family) -> Any:
    """What is printed where nothing has passed: the family's own centre, or always the first action."""
    return np.zeros(family.size) if family.centre is None else family.centre


def _baseline(returns: Returns, family: Family) -> Estimate | None:
    """What the policy earns that is there before the search."""
    afford = returns.affordable()
    if afford is not None and afford < BASELINE:
        return None
    (found,) = returns.play([Play(_start(family), "search/baseline", 0, BASELINE)])
    return _estimate(found, returns.model.return_range)


def _estimate(found: Any, bounds: Range | None) -> Estimate:
    """The mean of returns, with a 95 % interval that holds at whatever time they were stopped."""
    mean = float(found.mean())
    if bounds is None:
        half = 1.96 * float(found.std(ddof=1)) / math.sqrt(found.size) if found.size > 1 else math.inf
        return Estimate(mean, mean - half, mean + half, int(found.size))
    return Estimate(mean, *mean_interval(found, *bounds, 0.05), int(found.size))


def aim_of(target: float, bounds: Range) -> Aim:
    """Return where a ladder leads: to the target."""
    span = bounds.high - bounds.low
    room = min(span / ROOM, 0.5 * (bounds.high - target))
    return Aim(bounds, target, max((target - bounds.low) / STEPS, span / STEPS**2), 0.5, room)


class _Certified(NamedTuple):
    """Decisions by bets on bounded returns."""

    bounds: Range
    risk: float
    """Of one team, over all rungs."""

    def judge(self, rung: int, threshold: float) -> Judge:
        """Return the tests of the candidates of a rung."""
        each = rung_risk(2.0 * self.risk, rung, None)
        return lambda j: MeanTest.checked(*self.bounds, threshold, scan_levels(each, j))

    def interval(self, rung: int, candidates: int) -> Interval:
        """Return the intervals of the candidates of a tournament, which hold all together."""
        level = rung_risk(2.0 * self.risk, rung, None) / candidates
        return lambda returns: mean_interval(returns, *self.bounds, level, steps=24)


class _Rehearsed(NamedTuple):
    """Decisions by Student's statistic, of which nothing is proven."""

    width: float
    risk: float

    def judge(self, rung: int, threshold: float) -> Judge:
        """Return the tests of the candidates of a rung."""
        each = rung_risk(2.0 * self.risk, rung, None)
        return lambda j: StudentTest(threshold, min(each, scan_levels(each, j).above * 4.0), self.width)

    def interval(self, rung: int, candidates: int) -> Interval:
        """Return the intervals of the candidates of a tournament."""
        level = rung_risk(2.0 * self.risk, rung, None) / candidates
        return lambda returns: student_interval(returns, level, self.width)


def _climb(
    key: SharedKey, returns: Returns, family: Family, settings: SearchSettings, tell: Callable[[int, int], None] | None
) -> Climb:
    """Climb to the target or, where none is named, hold tournaments; by bets unless returns have no bound."""
    bounds, target = returns.model.return_range, settings.target
    risk, width = settings.risk * (1.0 - SCALES), _width(settings, bounds)
    way: _Certified | _Rehearsed = _Rehearsed(width, risk)
    if bounds is not None and settings.assurance == "certified":
        way = _Certified(bounds, risk)
    how: dict[str, Any] = {"near": settings.near, "rungs": settings.rungs, "tell": tell}
    if target is None:
        return improve(key, returns, family, width, way.interval, entrants=settings.entrants, **how)
    aim = Aim(Range(target - width, math.inf), target, width, 0.0, width)
    if bounds is not None:
        aim = aim_of(target, bounds)
    else:
        how["rungs"] = 1  # there is no level from which to climb
    return climb(key, returns, family, aim, way.judge, candidates=settings.candidates, **how)


def _width(settings: SearchSettings, bounds: Range | None) -> float:
    """Differences of mean returns that matter: the least tolerance of a tournament, or a share of what is asked for."""
    if settings.target is None and settings.tolerance is not None:
        return settings.tolerance
    if bounds is not None:
        return (bounds.high - bounds.low) / (TOLERANCE if settings.target is None else STEPS)
    assert settings.target is not None
    return max(abs(settings.target), 1.0) / 16.0


def _details(
    model: ReturnModel, settings: SearchSettings, climbed: Climb, scaled: Scaled | None, baseline: Estimate | None
) -> SearchDetails:
    ladder = tuple(_rung(step, model.return_range) for step in climbed.steps)
    return SearchDetails(
        ladder=ladder,
        reached=climbed.reached,
        undecided=climbed.undecided,
        scales=() if scaled is None else scaled.inputs.scale,
        estimated=() if scaled is None else scaled.estimated,
        unscaled=None if scaled is None else scaled.undecided,
        baseline=baseline,
        clipped=model.clipped,
    )


def _rung(step: Step, bounds: Range | None) -> RungRecord:
    found = step.found
    earned = None if found.winner is None else _estimate(found.returns, bounds)
    level, threshold = (x if math.isfinite(x) else None for x in (step.level, step.threshold))
    return RungRecord(
        step.rung, level, threshold, found.winner, found.tried, step.episodes, step.samples, earned, step.tolerance
    )


def _promise(
    settings: SearchSettings, model: ReturnModel, details: SearchDetails, climbed: Climb, scaled: Scaled | None
) -> Guarantee:
    bounds = model.return_range
    lost = _NO_BOUND if bounds is None else bounds.high - (bounds.low if details.winner is None else climbed.floor)
    figures: dict[str, Any] = {"rho": settings.rho, "delta": settings.delta, "epsilon": lost}
    if scaled is not None and scaled.undecided is not None:
        source = f"samples ran out on the scale of number {scaled.undecided} of an observation"
        return Guarantee.of(**figures, status="none", source=source)
    if details.undecided is not None:
        cut = details.undecided
        source = (
            f"candidate {cut.candidate} of rung {len(climbed.steps) - 1} is undecided after {cut.episodes:,} episodes"
        )
        return Guarantee.of(**figures, status="none", source=source)
    if bounds is None or settings.assurance == "rehearsed":
        return Guarantee.of(**figures, status="rehearsed", source="docs/search.md")
    return Guarantee.of(**figures, status="certified", source=PROOF)
