"""confirm: play a published policy on one's own environment until it is certain that it earns what is claimed, or not.

One policy that was fixed beforehand is a scan of length one (docs/proofs/search.md §5). A second team needs nothing
but the policy and its own environment; of a run it may also take the recipe's.
"""

from __future__ import annotations

import hashlib
import inspect
import math
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, overload

import numpy as np

from reprl.artifacts.confirm_quality import QualityConfirmation, confirm_quality, confirm_quality_by_log
from reprl.artifacts.confirmation import Confirmation
from reprl.artifacts.folder import RECIPE, StoredRun, load_run
from reprl.artifacts.recipe import Recipe, package_version
from reprl.artifacts.search import SearchRecipe, StoredSearch
from reprl.artifacts.trial import Trial, World, open_trial
from reprl.artifacts.verify import load_evidence
from reprl.errors import InputError, check_count, check_int, check_real, quote, refuse
from reprl.execution.progress import progress_bar
from reprl.execution.settings import Execution, Progress, check_progress
from reprl.execution.tasks import pack
from reprl.learning.adapters import acts, policy_of
from reprl.learning.protocol import name_of
from reprl.learning.result import LearnResult
from reprl.learning.search_result import SearchResult
from reprl.mdp.catalogue import PREFIX
from reprl.mdp.policy import Policy, TablePolicy, check_policy
from reprl.mdp.tabular import TabularMDP
from reprl.randomness import DataStream, fresh_seed
from reprl.search.betting import Bets, Levels, MeanTest, mean_interval
from reprl.sources.environment import is_registered, make, open_environment
from reprl.sources.gymnasium.model import GymnasiumModel
from reprl.sources.logs.coverage import find_coverage
from reprl.sources.logs.source import LogSource
from reprl.sources.logs.spec import LogSpec
from reprl.sources.logs.tables import open_table
from reprl.sources.returns import Range, ReturnModel
from reprl.storage.checkpoints import recall

Floats = np.ndarray[Any, np.dtype[np.float64]]
FIRST = 16
"""Episodes of the first batch."""
MOST = 10**7
"""Samples after which a confirmation is undecided, unless more are asked for."""


@overload
def confirm(policy: Any, env: Any = None, *, target: float, **options: Any) -> Confirmation: ...
@overload
def confirm(policy: Any, env: Any = None, *, quality: float, **options: Any) -> QualityConfirmation: ...
@overload
def confirm(policy: Any, env: Any = None, **options: Any) -> Confirmation | QualityConfirmation: ...
def confirm(
    policy: Any,
    env: Any = None,
    *,
    target: float | None = None,
    quality: float | None = None,
    min_probability: float = 0.0,
    delta: float | None = None,
    log: Any = None,
    columns: Mapping[str, str | None] | None = None,
    horizon: int | None = None,
    reward_range: Sequence[float] | None = None,
    return_range: Sequence[float] | None = None,
    data_seed: int | None = None,
    max_samples: int = MOST,
    workers: int = 1,
    timeout: float | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    progress: bool | Progress = False,
    allow: Sequence[str] = (),
    **env_options: Any,
) -> Confirmation | QualityConfirmation:
    """Check a published policy on data of one's own: that its return is above a target, or that it has a quality.

    With a target, a sequential test decides: certified. With a quality, simulated data sets say whether the policy
    loses more than is allowed: rehearsed, for environments and logs with a list of states.

    Args:
        policy: what was published before these data: a Policy, a result or run of ``learn``, the path of a run folder,
            recipe or policy, a model with ``predict``, or a function of an observation (and a step).
        env: an id, a factory, a gymnasium.Env, a TabularMDP or a GymnasiumModel; None for the run's recipe's.
        target: L, in the rewards' own units; this or a quality.
        quality: share of the gain over the baseline, the run's own, that the policy has to earn.
        min_probability: as for ``reprl.learn``, with a quality.
        delta: largest probability of a wrong answer; less than 0.5. None for 0.05 with a target, 0.1 with a quality.
        log: logged episodes in place of an environment, as for ``learn_log``, for a run that was learned from a log.
        columns: of the log, where its names differ.
        horizon: steps of an episode, at most; None for the environment's or the policy's.
        reward_range: (low, high) of a reward, where the environment does not publish it.
        return_range: (low, high) of a return; None for what horizon and rewards allow. A tighter range needs fewer
            episodes. A return outside is an error.
        data_seed: private; None draws one, or takes the checkpoint's.
        max_samples: the largest number of samples; the answer may then be "undecided".
        workers: number of processes that play a black box; the result does not depend on it.
        timeout: largest number of seconds for an episode of a black box.
        checkpoint: a folder for finished batches, with which a stopped confirmation continues.
        progress: True for a bar on standard error, or a function of (phase, episodes, expected episodes).
        allow: modules that a recipe's environment may import.
        env_options: of the environment, with an id.

    Guarantee:
        See ``Confirmation``. Verdict, returns and counts are the same for any workers.

    Randomness:
        Data: word k of stream (data_seed, "confirm") seeds episode k; episodes of a TabularMDP as in ``EpisodicModel``.
    """
    began = time.perf_counter()
    if (target is None) == (quality is None):
        raise InputError(f"target or quality must be given, one of them, got {quote(target)} and {quote(quality)}")
    usual = 0.05 if quality is None else 0.1
    delta = check_real("delta", usual if delta is None else delta, 0.0, 0.5)
    check_progress(progress)
    subject = _subject(policy)
    if quality is not None:
        refuse("with a quality", return_range=return_range, timeout=timeout)
        asked: dict[str, Any] = {"quality": check_real("quality", quality, 0.0, 1.0), "delta": delta}
        asked["min_probability"] = check_real("min_probability", min_probability, 0.0, 1.0, open_low=False)
        if log is not None:
            return _quality_by_log(subject, log, columns, asked)
        execution = Execution(workers=workers)
        how: dict[str, Any] = {"max_samples": check_count("max_samples", max_samples, 1), "execution": execution}
        place = _finite_world(subject, env, horizon, reward_range, allow, env_options)
        private = fresh_seed() if data_seed is None else data_seed
        return _quality(subject, place, {**asked, **how, "data_seed": private, "progress": progress})
    refuse("with a target", min_probability=min_probability or None)
    target = check_real("target", target, -1e300, 1e300)
    if log is not None:
        given = {"env": env, "horizon": horizon, "reward_range": reward_range, "return_range": return_range}
        refuse("with a log, whose run has it", **given)
        return _by_log(subject, log, columns, target, delta, began)
    seed = recall(checkpoint, "data_seed") if data_seed is None else data_seed
    seed = check_int("data_seed", fresh_seed() if seed is None else seed, 0, 2**64 - 1)
    world = _world(subject, env, horizon, reward_range, allow, env_options)
    bounds = None if return_range is None else _range(return_range)
    execution = Execution(workers=workers, timeout=timeout)
    limit = check_count("max_samples", max_samples, 1)
    whose = None if checkpoint is None else _identity(subject)
    work = {"policy": whose, "target": target, "delta": delta, "bounds": bounds}
    with open_trial(subject.source, world, seed, bounds, execution, checkpoint, work) as trial:
        test = _test(trial.bounds, target, delta)
        with progress_bar(progress, "episodes") as tell:
            bets, returns = _play(trial, test, limit, tell)
    return _record(subject, trial, test, bets, returns, seed, began)


def _identity(subject: _Subject) -> str:
    """Return what tells a policy from all others: episodes of two must never be put together."""
    if subject.fingerprint is not None:
        return subject.fingerprint
    try:
        source = inspect.getsource(subject.source)  # a function of a module is pickled by its name alone
    except (TypeError, OSError):
        source = ""
    packed = pack(subject.source, "checkpoint must be None for a policy that cannot be pickled")
    return hashlib.sha256(f"{packed.token}\n{source}".encode()).hexdigest()


def _range(bounds: Sequence[float]) -> Range:
    try:
        low, high = (float(end) for end in bounds)
    except (TypeError, ValueError):
        low = high = math.nan
    if not (math.isfinite(high - low) and low < high):
        raise InputError(f"return_range must be (low, high) with low < high, got {quote(bounds)}")
    return Range(low, high)


def _test(bounds: tuple[float, float], target: float, delta: float) -> MeanTest:
    low, high = bounds
    if not low < target < high:
        raise InputError(f"target must lie between the bounds of a return, ({low:g}, {high:g}), got {target:g}")
    return MeanTest.checked(low, high, target, Levels(delta, delta))


def _play(trial: Trial, test: MeanTest, limit: int, tell: Progress | None) -> tuple[Bets, Floats]:
    """Play batch after batch until there is a verdict or no sample is left; return the bets and all returns."""
    bets, parts, played = test.begin(), [np.empty(0)], 0
    while bets.verdict == "undecided":
        near = test.progress(bets)
        missing = math.ceil(played * (1.0 / near - 1.0)) if near > 0.0 else played
        wanted = max(FIRST, played // 8, min(missing, played))
        count = min(wanted, (limit - trial.ledger.samples) // trial.samples_per_episode)
        if count <= 0:
            break
        parts.append(trial.returns(played, count))
        played += count
        bets = test.bet(bets, parts[-1])
        if tell is not None:
            tell("confirm", played, max(played, math.ceil(played / max(test.progress(bets), 0.01))))
    return bets, np.concatenate(parts)


_WORDS = {"above": "confirmed", "below": "refuted", "undecided": "undecided"}


def _record(
    subject: _Subject, trial: Trial, test: MeanTest, bets: Bets, returns: Floats, seed: int, began: float
) -> Confirmation:
    values, counts = np.unique(returns, return_counts=True)
    low, high = mean_interval(values, *trial.bounds, 2.0 * test.levels.above, counts)
    decided = zip(*np.unique(returns[: bets.samples], return_counts=True), strict=True)
    return Confirmation(
        environment=trial.title,
        environment_digest=trial.digest,
        policy=subject.name,
        fingerprint=subject.fingerprint,
        horizon=trial.horizon,
        return_range=(float(trial.bounds[0]), float(trial.bounds[1])),
        target=test.threshold,
        delta=test.levels.above,
        verdict=_WORDS[bets.verdict],
        status="none" if bets.verdict == "undecided" else "certified",
        mean=float(returns.mean()) if returns.size else float(low),
        interval=(float(low), float(high)),
        returns=tuple((float(value), int(count)) for value, count in decided),
        episodes=bets.samples,
        played=trial.ledger.episodes,
        samples=trial.ledger.samples,
        unseen=None,
        data_commitment=_commit(subject, trial.digest, seed),
        package_version=package_version(),
        seconds=time.perf_counter() - began,
    )


def _commit(subject: _Subject, place: str, seed: int) -> str:
    parts = ("reprl-confirm 1", subject.fingerprint or subject.name, place, str(seed))
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


# What is confirmed.


class _Subject(NamedTuple):
    """A policy, and the recipe that it came with."""

    source: Any
    name: str
    fingerprint: str | None
    recipe: Recipe | SearchRecipe | None


def _subject(policy: Any) -> _Subject:
    if isinstance(policy, str | os.PathLike):
        path = Path(policy).parent if Path(policy).name == RECIPE else Path(policy)
        if path.is_dir():
            return _subject(load_run(path))
        found = load_evidence(path)
        if found.policy is None:
            raise InputError(f"policy must lie beside {path}, got none: a recipe or receipt alone does not act")
        return _Subject(found.policy, _kind(found.policy), found.fingerprint, found.recipe)
    if isinstance(policy, LearnResult | SearchResult | StoredRun | StoredSearch):
        return _Subject(policy.policy, _kind(policy.policy), policy.policy.fingerprint, policy.recipe)
    if isinstance(policy, Policy):
        return _Subject(policy, _kind(policy), policy.fingerprint, None)
    if not acts(policy):
        allowed = "a policy, a run, a path to one, a model with predict or a function of an observation"
        raise InputError(f"policy must be {allowed}, got {quote(policy)}")
    module = type(policy).__module__.partition(".")[0]
    name = name_of(policy) if hasattr(policy, "__name__") else f"{module}.{type(policy).__name__}"
    return _Subject(policy, name, None, None)


def _kind(policy: Policy) -> str:
    return type(policy).__name__


def _world(
    subject: _Subject,
    env: Any,
    horizon: int | None,
    reward_range: Sequence[float] | None,
    allow: Sequence[str],
    options: dict[str, Any],
) -> World:
    """Return the environment that is meant: a table, or a black box."""
    if env is None:
        if subject.recipe is None:
            raise InputError("env must be given for a policy that comes without a recipe, got None (--env)")
        env = subject.recipe.make(allow=allow)
    if isinstance(env, TabularMDP | GymnasiumModel | ReturnModel):
        given = {"horizon": horizon, "reward_range": reward_range, "environment options": options or None}
        refuse("for an environment that has it", **given)
        return env
    table = isinstance(env, str) and not env.startswith(PREFIX) and not is_registered(env)
    if table and reward_range is not None:
        raise InputError(f"reward_range must be left out for {quote(env)}, whose rewards are known")
    if horizon is None and isinstance(subject.source, TablePolicy) and not subject.source.stationary:
        horizon = subject.source.horizon
    if reward_range is None and isinstance(subject.recipe, Recipe):
        reward_range = subject.recipe.environment.reward_range
    if table:
        return make(str(env), horizon, **options)
    source = env.removeprefix(PREFIX) if isinstance(env, str) else env
    return ReturnModel(source, horizon, reward_range=reward_range, **options)


# A quality.


def _quality(subject: _Subject, place: TabularMDP | GymnasiumModel, asked: dict[str, Any]) -> QualityConfirmation:
    settings = subject.recipe.settings if isinstance(subject.recipe, Recipe) else None
    try:
        return confirm_quality(_table(subject, place), place, settings=settings, **asked)
    finally:
        if isinstance(place, GymnasiumModel) and place.reopens:
            place.close()


def _quality_by_log(
    subject: _Subject, log: Any, columns: Mapping[str, str | None] | None, asked: dict[str, Any]
) -> QualityConfirmation:
    recipe = subject.recipe
    if not isinstance(recipe, Recipe) or not recipe.of_log:
        raise InputError(f"policy must be a run of a log, to be confirmed by a log, got {subject.name}")
    renamed = {role: name for role, name in recipe.environment.options["columns"].items() if role != name}
    policy, spec = check_policy(subject.source, recipe.environment), LogSpec.of(recipe.environment)
    return confirm_quality_by_log(policy, spec, log, {**renamed, **(columns or {})}, settings=recipe.settings, **asked)


def _finite_world(
    subject: _Subject,
    env: Any,
    horizon: int | None,
    reward_range: Sequence[float] | None,
    allow: Sequence[str],
    options: dict[str, Any],
) -> TabularMDP | GymnasiumModel:
    """Return the environment that is meant, which must have a list of states."""
    if env is None:
        if subject.recipe is None:
            raise InputError("env must be given for a policy that comes without a recipe, got None (--env)")
        found = subject.recipe.make(allow=allow)
    else:
        if horizon is None and isinstance(subject.source, TablePolicy) and not subject.source.stationary:
            horizon = subject.source.horizon
        opened = isinstance(env, TabularMDP | GymnasiumModel)
        source = make(env, horizon, **options) if isinstance(env, str) and options else env
        found = source if opened else open_environment(source, horizon, reward_range)  # type: ignore[arg-type]
    if not isinstance(found, TabularMDP | GymnasiumModel):
        raise InputError("quality must be left out for a search: its policy is confirmed by a target")
    return found


def _table(subject: _Subject, place: TabularMDP | GymnasiumModel) -> Policy:
    return policy_of(subject.source, place)  # type: ignore[arg-type]


# By a log.


def _by_log(
    subject: _Subject, log: Any, columns: Mapping[str, str | None] | None, target: float, delta: float, began: float
) -> Confirmation:
    """Judge by the off-policy interval of docs/logs.md, with the policy held fixed: it was published before."""
    recipe = subject.recipe
    if not isinstance(recipe, Recipe) or not recipe.of_log:
        raise InputError(
            f"policy must be a run that was learned from a log, to be confirmed by a log, got {subject.name}"
        )
    spec = LogSpec.of(recipe.environment)
    renamed = {role: name for role, name in recipe.environment.options["columns"].items() if role != name}
    source = LogSource(open_table(log, {**renamed, **(columns or {})}), spec, pooled=bool(recipe.settings.stationary))
    log_read, policy = source.log, check_policy(subject.source, recipe.environment)
    steps, scale = spec.criterion.effective_horizon, spec.reward_map
    low, high = (scale.restore(end, steps) for end in (0.0, steps))
    _test((low, high), target, delta)
    everywhere = np.ones(policy.table.shape, dtype=np.bool_)
    stream = DataStream(source.data_seed, "off-policy/confirm")
    found = find_coverage(
        log_read, policy, everywhere, lambda _: policy, unknown=0.0, stream=stream, level=1.0 - 2.0 * delta
    )
    ends = (found.value_low, found.value_high + found.unseen)
    interval = tuple(scale.restore(min(max(end, 0.0), steps), steps) for end in ends)
    weak = source.shortage() or source.drift()
    verdict = (
        "undecided"
        if weak
        else "confirmed"
        if interval[0] > target
        else "refuted"
        if interval[1] < target
        else "undecided"
    )
    digest = log_read.data.digest
    return Confirmation(
        environment=f"log of {recipe.environment.title}",
        environment_digest=digest,
        policy=subject.name,
        fingerprint=subject.fingerprint,
        horizon=policy.horizon,
        return_range=(low, high),
        target=target,
        delta=delta,
        verdict=verdict,
        status="none" if verdict == "undecided" else "rehearsed",
        mean=scale.restore(found.value, steps),
        interval=(interval[0], interval[1]),
        returns=(),
        episodes=source.ledger.episodes,
        played=source.ledger.episodes,
        samples=source.ledger.samples,
        unseen=found.unseen * (scale.high - scale.low),
        data_commitment=_commit(subject, digest, source.data_seed),
        package_version=package_version(),
        seconds=time.perf_counter() - began,
    )
