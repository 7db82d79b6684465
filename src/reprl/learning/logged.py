"""The canonical learner on a log: nothing can be sampled, so it is read whole, and the rule is rehearsed on it."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from typing import Any, Unpack

from reprl.assurance.coverage import find_coverage
from reprl.assurance.stopping import Rehearsed
from reprl.canonical.bound import LogReader
from reprl.errors import InputError, check_int
from reprl.execution.settings import Execution
from reprl.learning.baseline import resolve_baseline
from reprl.learning.canonical import bind_rule, canonical_run
from reprl.learning.learner import check_options, make_settings
from reprl.learning.loop import run_loop
from reprl.learning.result import LearnResult, LogDetails
from reprl.learning.settings import LearnOptions, Settings
from reprl.mdp.criterion import check_discount
from reprl.mdp.interface import Interface
from reprl.mdp.labels import printable_labels
from reprl.randomness import DataStream, SharedKey, fresh_seed
from reprl.sources.gymnasium.model import REWARD_STEP
from reprl.sources.logs.label_encoding import find_labels, read_allowed
from reprl.sources.logs.source import LogSource
from reprl.sources.logs.spec import LogSpec, check_labels, labels_allowed
from reprl.sources.logs.tables import Table, open_table


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
    support: float = LogSpec.support,
    reach: float = LogSpec.reach,
    allowed: Any = None,
    shared_seed: int | None = 0,
    candidate: tuple[str, int] | None = None,
    **options: Unpack[LearnOptions],
) -> LearnResult:
    """Learn from a log a policy that a second team, with a log of its own, is likely to reproduce exactly.

    Args:
        log: a path to CSV (also .csv.gz) or Parquet, a pandas DataFrame, a PyArrow table, a mapping of names to arrays,
            a structured array, or a Minari dataset with finite spaces. One row for each step; the rows of an episode
            stand together, in order.
        horizon: H; later rows are left out. With a discount, how many rows of an episode count; None for all.
        discount: γ of a world without an end, for a stationary policy; it says that the law is alike at all steps.
        columns: role → column where their names differ; roles are episode, step, state, action, reward, next_state and
            done, of which step, next_state and done may be missing. None for a column that is not to be used.
        states: all labels, in an order that both teams share; None for those in the log.
        actions: the same for actions.
        reward_range: (low, high) in original units, which are mapped to [0, 1]; it must contain 0.
        reward_step: rescaled rewards are rounded to multiples of this.
        support: an action counts where it is taken at least so often, relative to the most usual one; up to a shared
            factor of 2 less.
        reach: a state counts at a step that at least this share of the episodes comes to; the same.
        allowed: a mapping from every state to the actions that may be taken there, by labels; a path to CSV or Parquet
            with a row for each such pair; or (S, A) booleans, or a list of action numbers for each state, in the order
            of states and actions, which must then be given. None for all. A row that does something else is an error.
        shared_seed: ξ, the same for every team: choose it before the data; None draws one, to be read off the result.
        candidate: (kind, number) that a recipe has published, to follow.
        options: the fields of ``Settings`` that the rule "canonical" has a use for; epsilon_units too.

    Guarantee:
        As in the result, against policies that keep to supported actions; what hardly known states could be worth is
        added to ε (docs/logs.md).

    Randomness:
        Shared, at SharedKey(shared_seed). Data: the log, and streams of a hash of it.
    """
    check_options(options)
    end = end_of(horizon, discount)
    world = {"reward_range": reward_range, "reward_step": reward_step, "support": support, "reach": reach}
    spec = specify(open_table(log, columns), states, actions, allowed=allowed, **end, **world)
    settings = make_settings(options, spec.environment({}))
    seed = fresh_seed() if shared_seed is None else shared_seed
    return learn_spec(log, spec, settings, shared_seed=seed, columns=columns, candidate=candidate)


def end_of(horizon: int | None, discount: float | None) -> dict[str, Any]:
    """Return the fields of a LogSpec that say how long it goes on: H steps, or for ever."""
    if discount is None:
        if horizon is None:
            raise InputError("horizon must be given for a log, or a discount, got neither")
        return {"horizon": horizon}
    length = None if horizon is None else check_int("horizon", horizon, 1, 2**62)
    return {"horizon": 1, "discount": check_discount(discount), "length": length}


def specify(
    table: Table, states: Sequence[Any] | None, actions: Sequence[Any] | None, *, allowed: Any = None, **world: Any
) -> LogSpec:
    """Return what a log is a log of: labels as they are given, or those that it, or the mask, holds; the rest as is."""
    found: dict[str, Any] = {}
    if isinstance(allowed, str | os.PathLike):
        allowed = read_allowed(allowed, table.columns)
    named: Any = labels_allowed(allowed) if isinstance(allowed, Mapping) else None
    if allowed is not None and named is None and (states is None or actions is None):
        raise InputError("states and actions must be given with allowed, whose order is theirs, got none")
    if states is None or actions is None:
        found.update(find_labels(table, named))
    for name, given in (("states", states), ("actions", actions)):
        if given is not None:
            found[name] = check_labels(name, given)
    return LogSpec(**found, **world, allowed=allowed if named is None else named)


def learn_spec(
    log: Any,
    spec: LogSpec,
    settings: Settings,
    *,
    shared_seed: int,
    columns: Mapping[str, str | None] | None = None,
    published: Mapping[str, str] | None = None,
    candidate: tuple[str, int] | None = None,
) -> LearnResult:
    """Learn from the log of a world that is specified beforehand, as a recipe does; the rest is as in ``learn_log``.

    Args:
        log: as there.
        spec: labels, horizon, rewards and thresholds.
        settings: accuracy, replicability and preference.
        shared_seed: ξ.
        columns: where they are in this log.
        published: where they were in the first team's, which is what the recipe says; None for this log's.
        candidate: to follow.
    """
    began = time.perf_counter()
    _check_settings(settings)
    key = SharedKey(shared_seed)
    place = spec.environment({})
    settings = settings.resolve_actions(spec.actions, spec.n_actions).resolve_stationarity(place)
    settings = resolve_baseline(settings, place, spec.mask())
    _check_endless(spec, settings)
    table = open_table(log, columns)
    source = LogSource(table, spec, pooled=settings.pooled)
    run = _learn_source(source, spec, key, settings, candidate)
    world = spec.environment(table.columns if published is None else published)
    interface, seeds = Interface(printable_labels(world.labels)), (key.seed, source.data_seed)
    return run.recorded(world, interface, seeds, source.ledger, began)


def _check_settings(settings: Settings) -> None:
    for name, needed in (("rule", "canonical"), ("access", "episodic")):
        if getattr(settings, name) != needed:
            raise InputError(f"{name} must be {needed!r} for a log, got {getattr(settings, name)!r}")


def _check_endless(spec: LogSpec, settings: Settings) -> None:
    """Refuse a law that depends on the step where there is no last one."""
    if spec.criterion.stationary and not settings.stationary:
        raise InputError("stationary must be True, or left out, for a log with a discount, got False")


def _learn_source(
    source: LogSource, spec: LogSpec, shared_key: SharedKey, settings: Settings, candidate: tuple[str, int] | None
) -> LearnResult:
    """Choose, and rehearse the choice on logs redrawn by whole episodes.

    Guarantee:
        Status "rehearsed" if the rehearsal passed and the policy loses less than ε in the model, with what hardly known
        states could be worth added to ε; otherwise "none", as also if steps were pooled and the log contradicts it.
        ε speaks of policies that keep to supported actions.

    Randomness:
        Shared, at shared_key.derive("rule"), as ``choose`` and ``draw_thresholds`` say. Data: streams (data seed,
        "rehearsal/log/…") and ("off-policy/…").
    """
    settings.check_accuracy(spec.criterion)
    sizes, reader = (spec.n_states, spec.n_actions), LogReader(spec.support, spec.reach, (spec.ended,))
    rule = bind_rule(shared_key, spec.criterion, sizes, settings, reader, candidate)
    outcome = run_loop(source, rule, Rehearsed(settings.asked, Execution()))
    found = outcome.judgement.found
    coverage = find_coverage(
        outcome.known.log,
        found.policy,
        rule.decided(found),
        lambda data: rule.choose(data).policy,
        unknown=rule.reader.slack(found.model),
        stream=DataStream(source.data_seed, "off-policy"),
    )
    details = LogDetails(found.choice, coverage, rule.followed, outcome.judgement.drift)
    return canonical_run(settings, rule, outcome, details)
