"""The soft learner on a log: nothing can be sampled, so it is read whole, and the rule is rehearsed on it."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Unpack

import numpy as np

from reprl.assurance.log_teams import LogRule, ask_log_teams, split
from reprl.assurance.teams import Answers
from reprl.assurance.teams import Round as TeamRound
from reprl.errors import InputError, LogWarning, check_int
from reprl.execution.settings import Progress
from reprl.guarantee import Promise
from reprl.learning.baseline import resolve_baseline
from reprl.learning.learner import check_options, make_settings
from reprl.learning.loop import Round
from reprl.learning.result import LearnResult, LogDetails, SoftDetails
from reprl.learning.settings import LearnOptions, Settings
from reprl.learning.soft import judge_round, make_run, promise
from reprl.mdp.basis import DATA, DEFAULT, PREFERENCE
from reprl.mdp.criterion import check_discount
from reprl.mdp.dynamics import Data, full_mask
from reprl.mdp.interface import Interface
from reprl.mdp.labels import printable_labels
from reprl.mdp.model import one_hot
from reprl.mdp.policy import Policy
from reprl.randomness import DataStream, SharedKey, fresh_seed
from reprl.rule.preference import preference_order
from reprl.sources.gymnasium.model import REWARD_STEP
from reprl.sources.logs.coverage import find_basis, find_coverage
from reprl.sources.logs.ends import says_done_alone
from reprl.sources.logs.groups import open_groups
from reprl.sources.logs.label_encoding import read_allowed
from reprl.sources.logs.practice import set_beside, value_group, vary
from reprl.sources.logs.read import read_log
from reprl.sources.logs.scan import find_labels
from reprl.sources.logs.source import LogSource
from reprl.sources.logs.spec import LIMITS, LogSpec, check_labels, labels_allowed
from reprl.sources.logs.tables import GROUP, Table, watched_table
from reprl.sources.source import Samples

STREAM = "off-policy"
"""Of what a policy is worth by its log."""


def learn_log(
    log: Any,
    *,
    horizon: int | None = None,
    discount: float | None = None,
    columns: Mapping[str, str | None] | None = None,
    states: Sequence[Any] | None = None,
    actions: Sequence[Any] | None = None,
    reward_range: tuple[float, float] = (0.0, 1.0),
    reward_step: float = REWARD_STEP,
    allowed: Any = None,
    early_ends: str | None = None,
    done_at_limit: str | None = None,
    shared_seed: int | None = 0,
    progress: bool | Progress = False,
    **options: Unpack[LearnOptions],
) -> LearnResult:
    """Learn a policy from a log, so that a second team with a log of its own reproduces it with probability 1 − ρ.

    Args:
        log: a path to CSV (also .csv.gz) or Parquet, a pandas DataFrame, a PyArrow table, a mapping of names to arrays,
            a structured array, or a Minari dataset with finite spaces. One row for each step; the rows of an episode
            stand together, in order.
        horizon: H; later rows are left out. With a discount, how many rows of an episode count; None for all.
        discount: γ, for a stationary policy; it declares that the dynamics do not depend on the step.
        columns: role → column where their names differ; "group" names a column of subgroups, such as a ward, which the
            result values separately; other roles are episode, step, state, action, reward, next_state,
            done, terminated and truncated, of which all but episode, state, action and reward may be missing. None for
            a column that is not to be used.
        states: all labels, in an order that both teams share; None for those in the log.
        actions: the same for actions.
        reward_range: (low, high) in original units, which are mapped to [0, 1]; it must contain 0.
        reward_step: rescaled rewards are rounded to multiples of this.
        allowed: a mapping from every state to the actions that may be taken there, by labels; a path to CSV or Parquet
            with a row for each such pair; or (S, A) booleans, or a list of action numbers for each state, in the order
            of states and actions, which must then be given. None for all. A row with another action is an error.
        early_ends: how to read episodes that stop before the horizon without a flag: "terminated" if they were over,
            "censored" if they were no longer observed. None refuses them if no column says where they led.
        done_at_limit: how to read `done` in the last row of the horizon, if rows count for every step and `done` is
            the only flag: "truncated" for a time limit, "terminated" for an end, "unknown", as None,
            to leave these rows out.
        shared_seed: ξ, the same for every team: choose it before the data; None draws one; the result holds it.
        progress: True for a bar on standard error while the log is read, or a function of (phase, done, total).
        options: the fields of ``Settings`` for the default rule.

    Guarantee:
        As in the result, among policies of actions that practice takes often enough (docs/logs.md).

    Randomness:
        Shared, at SharedKey(shared_seed). Data: the log, and streams of a hash of it.
    """
    check_options(options)
    end = end_of(horizon, discount)
    world = {"reward_range": reward_range, "reward_step": reward_step}
    ends = {"early_ends": early_ends, "done_at_limit": done_at_limit}
    tells_all = bool(discount or options.get("stationary"))
    with watched_table(log, columns, progress) as table:
        spec = specify(table, states, actions, allowed=allowed, tells_all=tells_all, **end, **world, **ends)
        settings = make_settings(options, spec.environment({}))
        seed = fresh_seed() if shared_seed is None else shared_seed
        return learn_spec(table, spec, settings, shared_seed=seed)


def end_of(horizon: int | None, discount: float | None) -> dict[str, Any]:
    """Return the fields of a LogSpec for its criterion: H steps, or a discount."""
    if discount is None:
        if horizon is None:
            raise InputError("horizon must be given for a log, or a discount, got neither")
        return {"horizon": horizon}
    length = None if horizon is None else check_int("horizon", horizon, 1, 2**62)
    return {"horizon": 1, "discount": check_discount(discount), "length": length}


def specify(
    table: Table,
    states: Sequence[Any] | None,
    actions: Sequence[Any] | None,
    *,
    allowed: Any = None,
    tells_all: bool = False,
    **world: Any,
) -> LogSpec:
    """Return what a log is a log of: labels as they are given, or those that it, or the mask, holds; the rest as is.

    Where rows tell about every step, labels that stand only where a time limit stopped an episode count too, and what
    `done` at the last step is taken for is written down where nobody has said it: the recipe then says it.
    """
    found: dict[str, Any] = {}
    if isinstance(allowed, str | os.PathLike):
        allowed = read_allowed(allowed, table.columns)
    named: Any = labels_allowed(allowed) if isinstance(allowed, Mapping) else None
    if allowed is not None and named is None and (states is None or actions is None):
        raise InputError("states and actions must be given with allowed, whose order is theirs, got none")
    labels = {
        name: check_labels(name, given)
        for name, given in (("states", states), ("actions", actions))
        if given is not None
    }
    if len(labels) < 2:
        known = [text for some in labels.values() for text in some]
        found.update(find_labels(table, named, known, stopped=tells_all))
    found |= labels
    declared = world["horizon"] > 1 or world.get("length")
    if tells_all and declared and world.get("done_at_limit") is None and says_done_alone(table):
        world["done_at_limit"] = LIMITS[0]
    return LogSpec(**found, **world, allowed=allowed if named is None else named)


def learn_spec(
    log: Any,
    spec: LogSpec,
    settings: Settings,
    *,
    shared_seed: int,
    columns: Mapping[str, str | None] | None = None,
    published: Mapping[str, str] | None = None,
    progress: bool | Progress = False,
) -> LearnResult:
    """Learn from a log whose environment is specified beforehand, as in a recipe; otherwise as ``learn_log``.

    columns are where they are in this log; published, where they were in the first team's, which is what the recipe
    says.
    """
    began = time.perf_counter()
    settings, key = settle(settings, spec), SharedKey(shared_seed)
    with watched_table(log, columns, progress) as table:
        source = LogSource(table, spec, pooled=bool(settings.stationary))
    if source.check.biased:
        warnings.warn(str(source.check.worst), LogWarning, stacklevel=3)
    run = _learn_source(source, spec, key, settings)
    if GROUP in table.columns:
        run = _with_groups(run, open_groups(table), spec, settings, source.data_seed)
    used = {role: name for role, name in table.columns.items() if role != GROUP}
    world = spec.environment(used if published is None else published)
    interface, seeds = Interface(printable_labels(world.labels)), (key.seed, source.data_seed)
    return run.recorded(world, interface, seeds, source.ledger, began)


def _with_groups(
    run: LearnResult, tables: Mapping[str, Table], spec: LogSpec, settings: Settings, data_seed: int
) -> LearnResult:
    """Add what the policy is worth to each subgroup; not with a discount, where nothing is set beside practice."""
    details = run.details
    if not isinstance(details, LogDetails) or details.beside is None:
        return run
    groups = [
        value_group(
            name,
            read_log(table, spec, pooled=bool(settings.stationary)),
            run.policy,
            DataStream(data_seed, f"group/{name}"),
        )
        for name, table in tables.items()
    ]
    return replace(run, details=details._replace(beside=details.beside._replace(groups=tuple(groups))))


def settle(settings: Settings, spec: LogSpec) -> Settings:
    """Return settings with actions, stationarity and baseline resolved for a log; what it has no use for is refused."""
    _check_settings(settings)
    place = spec.environment({})
    settings = settings.resolve_actions(spec.actions, spec.n_actions).resolve_stationarity(place)
    settings = resolve_baseline(settings, place, spec.mask())
    _check_endless(spec, settings)
    return settings


def bind_log_rule(spec: LogSpec, shared_key: SharedKey, settings: Settings) -> LogRule:
    """Return f(ξ, ·) of a log."""
    settings.check_accuracy(spec.criterion)
    key, shape = shared_key.derive("rule"), (spec.criterion.rows, spec.n_states, spec.n_actions)
    baseline = settings.baseline_actions(shape)
    return LogRule.bind(
        key,
        full_mask(spec.mask(), shape),
        spec.ended,
        stationary=bool(settings.stationary) and not spec.criterion.stationary,
        quality=settings.quality,
        epsilon=settings.epsilon,
        baseline=None if baseline is None else one_hot(baseline, spec.n_actions),
        order=None if settings.preference is None else preference_order(key, shape[1:], settings.preference),
    )


def _check_settings(settings: Settings) -> None:
    for name, needed in (("rule", "soft"), ("access", "episodic")):
        if getattr(settings, name) != needed:
            raise InputError(f"{name} must be {needed!r} for a log, got {getattr(settings, name)!r}")


def _check_endless(spec: LogSpec, settings: Settings) -> None:
    """Refuse a law that depends on the step where there is no last one."""
    if spec.criterion.stationary and not settings.stationary:
        raise InputError("stationary must be True, or left out, for a log with a discount, got False")


def _other_rules(spec: LogSpec, key: SharedKey, settings: Settings) -> dict[str, Callable[[Data], Policy]]:
    """The rule with one setting changed, by the name of the change."""
    found: dict[str, Settings] = {}
    if settings.quality is not None:
        for quality in (round(1.0 - 2.0 * (1.0 - settings.quality), 6), round(1.0 - 0.5 * (1.0 - settings.quality), 6)):
            if 0.0 < quality < 1.0:
                found[f"quality {quality:g}"] = replace(settings, quality=quality)
    elif settings.epsilon is not None:
        scale = spec.reward_map.high - spec.reward_map.low
        for epsilon in (2.0 * settings.epsilon, 0.5 * settings.epsilon):
            if epsilon <= spec.criterion.effective_horizon:
                found[f"epsilon {scale * epsilon:.4g}"] = replace(settings, epsilon=epsilon)
    order = tuple(range(spec.n_actions))
    found["ties by index"] = replace(settings, preference=order)
    return {name: bind_log_rule(spec, key, changed).decide for name, changed in found.items()}


def _contradiction(drift: str, spec: LogSpec) -> str:
    """Say that the log contradicts what it was read as, and what else it may be read as; empty if it does not."""
    instead = "a horizon instead of a discount" if spec.criterion.stationary else "stationary=False"
    return drift and f"the log contradicts that all steps are alike ({drift}): {instead}"


def _learn_source(source: LogSource, spec: LogSpec, shared_key: SharedKey, settings: Settings) -> LearnResult:
    """Choose, and ask simulated teams whose logs are redrawn by whole episodes.

    Guarantee:
        As the verdict says (docs/rehearsal.md, docs/logs.md); nothing where steps were pooled and the log contradicts
        it: there are no counts by step to judge by. Among policies of actions that practice takes often enough.

    Randomness:
        Shared, at shared_key.derive("rule"), as ``LogRule.bind`` says. Data: streams (data seed, "halves"),
        ("teams/0/TEAM") and ("off-policy/…").
    """
    rule, log, seed = bind_log_rule(spec, shared_key, settings), source.log, source.data_seed
    one, two = split(log.blocks, seed)
    bound, evidence = rule.bound(one, two)
    policy, choice = bound.choose(evidence.model)
    known = Samples(one, two, spec.criterion, exact=(spec.ended,))
    now = Round(0, known, evidence, policy, choice, last=True)

    def ask(given: TeamRound, name: str, numbers: range) -> Answers:
        return ask_log_teams(given, rule, log.blocks, name, seed, numbers)

    verdict, drift = judge_round(bound, settings, ask, now), source.drift()
    guarantee = promise(settings, choice, verdict, drift, stated=bool(settings.stationary))
    why = source.shortage() or _contradiction(drift, spec)
    if why:
        none = Promise("none", 1.0, why)
        guarantee = replace(guarantee, quality=none, same=none)
    run = make_run(settings, bound, now, guarantee, SoftDetails(choice, verdict, drift))
    decided = (run.tiers.level == 1) if run.tiers.count > 1 else np.ones(policy.shape, dtype=np.bool_)
    coverage = find_coverage(log, run.policy, decided, rule.decide, unknown=0.0, stream=DataStream(seed, STREAM))
    deciders = np.where(decided, np.where(bound.count_equal(evidence.model, choice) > 1, PREFERENCE, DATA), DEFAULT)
    beside = set_beside(log, run.policy, coverage, DataStream(seed, "beside"))
    if beside is not None:
        beside = beside._replace(
            variants=vary(log.data, run.policy, coverage.practice, _other_rules(spec, shared_key, settings))
        )
    basis = find_basis(log.data, run.policy, deciders, spec.ended)
    details = LogDetails(choice, verdict, coverage, drift, basis, beside, source.check)
    return replace(run, details=details)
