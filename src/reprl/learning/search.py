"""learn_search: reprl.learn where observations are not finite, or where a search is asked for."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from functools import partial
from typing import Any, cast

import numpy as np

from reprl.errors import InputError, check_count, quote
from reprl.execution.pool import WorkerPool
from reprl.execution.progress import progress_bar
from reprl.execution.settings import Progress
from reprl.guarantee import Guarantee
from reprl.learning.search_result import Estimate, RungRecord, SearchDetails, SearchRecord, SearchResult
from reprl.mdp.tabular import TabularMDP
from reprl.randomness import SharedKey
from reprl.search.betting import MeanTest, mean_interval, rung_risk, scan_levels
from reprl.search.families import Family, Named, Networks, Own, head_for, tables_for
from reprl.search.ladder import Aim, Climb, Step, climb
from reprl.search.networks import first_inputs, make_network
from reprl.search.scan import Judge
from reprl.search.settings import SearchSettings
from reprl.sources.access import episode_steps
from reprl.sources.environment import make
from reprl.sources.gymnasium.model import GymnasiumModel, to_gymnasium
from reprl.sources.returns import Play, Range, ReturnModel, Returns
from reprl.storage.checkpoints import open_checkpoint

PROOF = "docs/proofs/search.md"
STEPS = 64
"""The smallest step of a ladder is this fraction of the way to its highest level; without a target, that level is this
fraction of the range below the bound of returns."""
FAILURES = 3
"""Without a target a ladder ends after so many rungs in a row without a winner."""
SHRINK = 0.75
"""Without a target the first rungs, as long as there is no winner, come down from the bound by this factor."""
UNKNOWN_BOUNDS = (
    "return_range or reward_range must be given for a search where returns have no known bound, got None: returns "
    "beyond return_range are clipped, and the promise is about clipped returns (--return-range LOW HIGH)"
)
ROOM = 256
"""At the target a threshold is at most this fraction of the range above it: good candidates grow rare quickly."""
BASELINE = 16
"""Episodes of the policy that everything is compared with."""


def open_returns(
    env: Any,
    horizon: int | None,
    reward_range: Any,
    return_range: Any,
    data_seed: int | None,
    options: Mapping[str, Any] | None = None,
    opened: Any = None,
) -> ReturnModel:
    """Return an environment as a source of returns; opened is the same where it is open already."""
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
    return ReturnModel(env, horizon, **ranges, data_seed=data_seed, opened=opened, **(options or {}))


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
        `certified`: with probability at least 1 − ρ two runs print the same policy, and with probability at least
        1 − min(δ, ρ/2) its mean return is above the threshold of its rung (docs/proofs/search.md).

    Randomness:
        Shared, at ("search", …) of SharedKey(shared_seed). Data: streams "search/…" of the model's data seed only.
    """
    began, key = time.perf_counter(), SharedKey(shared_seed)
    model.timeout = timeout
    limit = None if max_samples is None else check_count("max_samples", max_samples, 1)
    bounds, aim = check_target(settings, model)
    with (
        open_checkpoint(checkpoint, _work(model, settings, shared_seed, limit)) as kept,
        WorkerPool(model, workers, kept) as pool,
        progress_bar(progress, "candidates") as tell,
    ):
        family = _family(model, settings)
        returns = Returns(model, pool, family.acting, limit)
        baseline = _baseline(returns, family, bounds)
        candidates, near = settings.proposals
        say = None if tell is None else (lambda rung, j: tell(f"rung {rung}", j, candidates))
        climbed = climb(
            key, returns, family, aim, partial(_judge, bounds, settings.risk),
            candidates=candidates, near=near, rungs=settings.rungs, tell=say,
        )  # fmt: skip
    details = SearchDetails(
        ladder=tuple(_rung(step, bounds) for step in climbed.steps),
        reached=climbed.reached,
        undecided=climbed.undecided,
        baseline=baseline,
        clipped=model.clipped,
    )
    weights = climbed.weights if climbed.weights is not None else _start(family)
    record = SearchRecord(
        model.title, model.origin, model.horizon, model.reward_range, model.return_range, model.digest,
        key.seed, model.data_seed, model.ledger.samples, model.ledger.episodes, time.perf_counter() - began,
    )  # fmt: skip
    return SearchResult(
        policy=family.policy(weights),
        guarantee=_promise(settings, bounds, details, climbed),
        settings=settings,
        details=details,
        record=record,
    )


def check_target(settings: SearchSettings, model: ReturnModel) -> tuple[Range, Aim]:
    """Return the bounds of returns and where the ladder leads, or refuse what they leave open."""
    bounds, target = model.return_range, settings.target
    if bounds is None:
        raise InputError(UNKNOWN_BOUNDS)
    if target is not None and not bounds.low <= target < bounds.high:
        raise InputError(f"target must lie in [{bounds.low:g}, {bounds.high:g}), the range of returns, got {target:g}")
    return bounds, aim_of(target, bounds)


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


def _family(model: ReturnModel, settings: SearchSettings) -> Family:
    """Return what is proposed."""
    from gymnasium import spaces

    policy = settings.policy
    box = isinstance(model.observation_space, spaces.Box)
    if policy is None:
        policy = "linear" if box else "table"
    if not isinstance(policy, str):
        return cast(Family, Own.of(policy, model.action_space))
    if policy == "table":
        if box:
            raise InputError(
                "policy must not be 'table' for observations that are a Box: "
                "gymnasium.wrappers.DiscretizeObservation cuts them into cells"
            )
        return tables_for(model.observation_space, model.action_space)
    if not box:
        raise InputError(f"policy must be 'table' for observations that are no Box, got {policy!r}")
    inputs = first_inputs(model.observation_space, settings.observation_range)
    return Networks(make_network(policy, settings.hidden), inputs, head_for(model.action_space))


def _start(family: Family) -> Any:
    """What is printed where nothing has passed: the family's own centre, or always the first action."""
    return np.zeros(family.size) if family.centre is None else family.centre


def _baseline(returns: Returns, family: Family, bounds: Range) -> Estimate | None:
    """What the policy earns that is there before the search."""
    afford = returns.affordable()
    if afford is not None and afford < BASELINE:
        return None
    (found,) = returns.play([Play(_start(family), "search/baseline", 0, BASELINE)])
    return _estimate(found, bounds)


def _estimate(found: Any, bounds: Range) -> Estimate:
    """The mean of returns, with a 95 % interval that holds at whatever time they were stopped."""
    return Estimate(float(found.mean()), *mean_interval(found, *bounds, 0.05), int(found.size))


def aim_of(target: float | None, bounds: Range) -> Aim:
    """Return where a ladder leads: to the target, or else as near the bound of returns as it gets."""
    span = bounds.high - bounds.low
    level = bounds.high - span / STEPS if target is None else target
    room = min(span / ROOM, 0.5 * (bounds.high - level))
    aim = Aim(bounds, level, max((level - bounds.low) / STEPS, span / STEPS**2), 0.5, room)
    return aim if target is not None else aim._replace(shrink=SHRINK, failures=FAILURES)


def _judge(bounds: Range, risk: float, rung: int, threshold: float) -> Judge:
    """Return the tests of the candidates of a rung, by bets; risk is that of one team, over all rungs."""
    each = rung_risk(2.0 * risk, rung, None)
    return lambda j: MeanTest.checked(*bounds, threshold, scan_levels(each, j))


def _rung(step: Step, bounds: Range) -> RungRecord:
    found = step.found
    earned = None if found.winner is None else _estimate(found.returns, bounds)
    return RungRecord(
        step.rung, step.level, step.threshold, found.winner, found.tried, step.episodes, step.samples, earned
    )


def _promise(settings: SearchSettings, bounds: Range, details: SearchDetails, climbed: Climb) -> Guarantee:
    lost = bounds.high - (bounds.low if details.winner is None else climbed.floor)
    figures: dict[str, Any] = {"rho": settings.rho, "delta": settings.delta, "epsilon": lost}
    if details.undecided is not None:
        cut = details.undecided
        source = (
            f"candidate {cut.candidate} of rung {len(climbed.steps) - 1} is undecided after {cut.episodes:,} episodes"
        )
        return Guarantee.of(**figures, status="none", source=source)
    return Guarantee.of(**figures, status="certified", source=PROOF)
