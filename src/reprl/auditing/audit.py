"""audit: pairs of runs over fresh shared keys and independent data, and what they prove."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from types import MethodType
from typing import Any, NamedTuple, Unpack

import numpy as np

from reprl.artifacts.recipe import Recipe
from reprl.auditing.agents import audit_agents, audits_agents
from reprl.auditing.evidence import SequentialTest, conclude
from reprl.auditing.exact_quantities import largest_reach, optimal_scores, reachable
from reprl.auditing.pairs import Subject, Trial, resolve_learner, run_keys, watch
from reprl.auditing.recipes import Plan, find_recipe, follow_recipe
from reprl.auditing.record import AuditReport, Earned
from reprl.auditing.search_audit import audit_search
from reprl.auditing.search_pairs import SEARCH
from reprl.auditing.totals import Totals, loss_of, spread_of
from reprl.errors import InputError, check_int, check_probability, quote, refuse
from reprl.execution.progress import progress_bar
from reprl.execution.settings import Progress, check_progress
from reprl.learning.accuracy import with_rescaled_epsilon
from reprl.learning.baseline import exact_baseline
from reprl.learning.learner import ReprlLearner, truncate_if_needed
from reprl.learning.search_opening import wants_search
from reprl.learning.settings import LearnerOptions, Settings
from reprl.learning.worth import baseline_name
from reprl.mdp.tabular import TabularMDP
from reprl.randomness import fresh_seed
from reprl.search.settings import SearchOptions
from reprl.sources.environment import describe, open_environment
from reprl.sources.gymnasium.model import GymnasiumModel
from reprl.sources.protocol import Access
from reprl.storage.checkpoints import open_checkpoint, recall
from reprl.storage.documents import plain

PAIRS, AGENT_PAIRS = 50, 10
"""Pairs of an audit, unless told."""


class AuditOptions(LearnerOptions, SearchOptions, total=False):
    """What an audited learner may be given: options of ``reprl.learn``, a sample limit, and those of baselines."""

    max_samples: float | None
    samples: int | None
    rounds: int | None
    bonus: float | None
    replan: str
    output: str


def audit(
    env: TabularMDP | GymnasiumModel | str | Any,
    learner: str | Callable[..., Any] | Recipe = "reprl",
    pairs: int | None = None,
    *,
    horizon: int | None = None,
    discount: float | None = None,
    reward_range: tuple[float, float] | None = None,
    rho: float | None = None,
    level: float = 0.05,
    runs_per_key: int = 2,
    access: Access | None = None,
    seed: int | None = None,
    sequential: bool = False,
    alternative: float | None = None,
    workers: int = 1,
    evaluation: int | None = None,
    gamma: float | None = None,
    closeness: float | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    progress: bool | Progress = False,
    **learn_options: Unpack[AuditOptions],
) -> AuditReport | Any:
    """Run a learner in pairs with one shared key and independent data, and count the pairs whose policies differ.

    Args:
        env: as in ``reprl.learn``. Or a recipe, or the path of its file (docs/audit.md, "A recipe"): runs follow it,
            and it says all but `samples` and `max_samples`.
        learner: a name in ``reprl.learners()``; any ``learner(model, shared_key, **learn_options)``, whose
            ``access`` attribute, if any, says which model it needs; or a ``train(env, **learn_options)`` of a
            gymnasium.Env. What either may return: ``reprl.learning.adapters.env_learner``. "search", and "reprl" where
            observations are a Box: searches are audited, and the report is a ``SearchAudit``. Or a recipe, which is
            then followed in env. A baseline that trains an agent, such as "ars", and a function ``train(env)`` in an
            environment whose spaces are not finite, or with `gamma`: agents are audited (``audit_agents``), and the
            report is an ``AgentReport``.
        pairs: shared keys to try; None for 50, or 10 of agents.
        horizon: as in ``reprl.learn``.
        discount: as in ``reprl.learn``; baselines need a horizon.
        reward_range: as in ``reprl.learn``.
        rho: the disagreement that is tested; learners with an option ρ get it too. None for 0.1, or the recipe's.
        level: probability of rejecting a learner whose disagreement is at most rho.
        runs_per_key: runs under each key. Test and interval use the first two; the estimate uses all.
        access: "episodic" or "generative"; None for what the learner needs, episodes for a callable that does not say.
        seed: determines shared keys and data seeds. None draws one, or takes the checkpoint's; the report holds it.
        sequential: test after every pair and stop at a verdict.
        alternative: a sequential "not rejected" rules out a disagreement of this or more; None for 2ρ.
        workers: number of processes; the report does not depend on it (docs/scale.md).
        evaluation: episodes with which each policy is valued in a black box, 0 for none, or those of each agent; None
            for 100, or 20 of agents.
        gamma: of agents: accepted share of states in which two act differently; None for 0.05.
        closeness: of agents: two actions of a Box count as equal within this share of its range; None for 0.05.
        checkpoint: a folder for finished pairs, with which a stopped or smaller audit continues.
        progress: True for a bar on standard error, or a function of ("audit", pairs done, pairs asked for).
        learn_options: the learner's own; for "reprl" those of ``reprl.learn``.

    Guarantee:
        If the disagreement is at most rho, it is rejected with probability at most level, and the interval covers the
        disagreement with probability at least 0.95 (docs/proofs/audit.md): of this learner, on this environment, for a
        random shared key. "Not rejected" is not a proof of replicability.

    Randomness:
        Data streams (seed, "audit/shared") and (seed, "audit/data") give the seeds of every run. A callable should
        draw its samples from the model and its shared randomness from the key; what else it draws counts as private.
    """
    found = find_recipe(env, learner)
    if found is None and audits_agents(env, learner, gamma):
        runs = None if runs_per_key == 2 else runs_per_key
        refuse("for an audit of agents", discount=discount, runs_per_key=runs, access=access)
        refuse("for an audit of agents", sequential=sequential or None, alternative=alternative)
        figures = {"rho": rho, "gamma": gamma, "episodes": evaluation, "closeness": closeness}
        how: dict[str, Any] = {name: value for name, value in figures.items() if value is not None}
        how |= {"seed": seed, "workers": workers, "checkpoint": checkpoint, "progress": progress, "level": level}
        how |= {"horizon": horizon, "reward_range": reward_range, **learn_options}
        return audit_agents(env, learner, AGENT_PAIRS if pairs is None else pairs, **how)
    refuse("unless agents are audited", closeness=closeness)
    pairs, evaluation = PAIRS if pairs is None else pairs, 100 if evaluation is None else evaluation
    flags = (sequential, alternative, progress)
    seed = recall(checkpoint, "seed") if seed is None else seed
    plan = None
    if found is not None:
        given: dict[str, Any] = {"horizon": horizon, "discount": discount, "reward_range": reward_range}
        given |= {"rho": rho, "access": access, **learn_options}
        plan = follow_recipe(*found, given)
        env, learner, rho, learn_options = plan.env, plan.learner, plan.learner.settings.rho, {}
    rho = Settings().rho if rho is None else rho
    asked = _check(rho, level, pairs, runs_per_key, workers, seed, flags, evaluation)
    if learner in ("reprl", SEARCH) and wants_search(env, SEARCH if learner == SEARCH else None, learn_options):
        runs = None if runs_per_key == 2 else runs_per_key
        refuse("for an audit of searches", runs_per_key=runs, discount=discount)
        return audit_search(env, asked, horizon, reward_range, dict(learn_options), checkpoint, progress)
    place = open_environment(env, horizon, reward_range, discount)
    options = with_rescaled_epsilon(learn_options, place)
    subject = resolve_learner(learner, place, asked.rho, access, options)
    return _measure(asked, _ended(place, subject), subject, checkpoint, progress, plan)


def _ended(place: TabularMDP | GymnasiumModel, subject: Subject) -> TabularMDP | GymnasiumModel:
    """Return the environment for reprl's own rule; other learners take it unchanged."""
    ours = _ours(subject)
    return place if ours is None else truncate_if_needed(place, ours.settings.rule, ours.settings.epsilon)


def _ours(subject: Subject) -> ReprlLearner | None:
    """The learner under audit, if it is reprl's own."""
    found = subject.call.__self__ if isinstance(subject.call, MethodType) else None
    return found if isinstance(found, ReprlLearner) else None


class _Asked(NamedTuple):
    """The figures of an audit, checked."""

    rho: float
    level: float
    pairs: int
    runs: int
    workers: int
    seed: int
    test: SequentialTest | None
    evaluation: int


def _check(
    rho: float,
    level: float,
    pairs: int,
    runs_per_key: int,
    workers: int,
    seed: int | None,
    flags: tuple[bool, float | None, bool | Progress],
    evaluation: int,
) -> _Asked:
    """Check what an audit is asked for, and draw its seed where none is given."""
    sequential, alternative, progress = flags
    rho, level = check_probability("rho", rho), check_probability("level", level)
    pairs = check_int("pairs", pairs, 1, 10**7)
    runs = check_int("runs_per_key", runs_per_key, 2, 10**4)
    workers = check_int("workers", workers, 1, 1024)
    if not isinstance(sequential, bool):
        raise InputError(f"sequential must be True or False, got {quote(sequential)}")
    check_progress(progress)
    if not sequential:
        refuse("unless sequential=True", alternative=alternative)
    test = SequentialTest.checked(rho, level, alternative) if sequential else None
    seed = fresh_seed() if seed is None else check_int("seed", seed, 0, 2**64 - 1)
    return _Asked(rho, level, pairs, runs, workers, seed, test, check_int("evaluation", evaluation, 0, 10**6))


def _measure(
    asked: _Asked,
    place: TabularMDP | GymnasiumModel,
    subject: Subject,
    checkpoint: str | os.PathLike[str] | None,
    progress: bool | Progress,
    plan: Plan | None,
) -> AuditReport:
    """Run the pairs, until a sequential test decides or they are used up."""
    pairs, runs, workers, seed, test, episodes = asked[2:8]
    mdp = place if isinstance(place, TabularMDP) else None
    known: dict[str, Any] = {"episodes": episodes}
    if mdp is not None:
        known = {"scores": optimal_scores(mdp), "reachable": reachable(mdp)}
    if plan is not None:
        known |= {"recipe": plan.recipe}
    trial = Trial(env=place, world=describe(place), subject=subject, seed=seed, runs=runs, **known)
    totals = Totals(trial)
    with open_checkpoint(checkpoint, _work(trial)) as kept, progress_bar(progress, "pairs") as shown:
        runs_of_keys = run_keys(trial, pairs, workers, may_stop=test is not None, checkpoint=kept)
        tell = None if shown is None else (lambda done: shown("audit", done, pairs))
        watch(runs_of_keys, totals.add, test, tell)
    return _report(asked, trial, totals)


def _work(trial: Trial) -> dict[str, Any]:
    """Everything on which the runs of a key depend, but for its number: how many keys there are is not of it."""
    world, subject = trial.world, trial.subject
    return {
        "kind": "audit",
        "environment": {"id": world.id, "digest": world.digest},
        "learner": subject.name,
        "access": subject.access,
        "options": plain(subject.options),
        "seed": trial.seed,
        "runs_per_key": trial.runs,
        **({"evaluation": trial.episodes} if trial.episodes else {}),
    }


def _report(asked: _Asked, trial: Trial, totals: Totals) -> AuditReport:
    """Judge what the pairs showed."""
    rho, level, pairs, runs, _, seed, test, *_ = asked
    subject, mdp = trial.subject, trial.env if isinstance(trial.env, TabularMDP) else None
    hits, keys = totals.hits, totals.keys
    weights = None if mdp is None else largest_reach(mdp, totals.apart > 0)
    by_cell, policies = totals.apart / keys, totals.policies.found(trial.world.horizon, trial.episodes)
    return AuditReport(
        environment=trial.world,
        learner=subject.name,
        access=subject.access,
        options=subject.options,
        seed=seed,
        rho=rho,
        level=level,
        pairs=keys,
        max_pairs=pairs,
        disagreements=hits,
        disagreement=totals.rate / keys,
        **conclude(test, hits, keys, rho, level),
        sequential=test is not None,
        runs_per_key=runs,
        distinct=tuple(totals.distinct),
        by_cell=by_cell,
        by_cell_weighted=None if weights is None else by_cell * weights,
        value_gap=None if mdp is None else spread_of(totals.gaps),
        suboptimality=None if mdp is None else loss_of(mdp, totals.values),
        earned=None if mdp is None else _earned(mdp, trial, totals.values),
        first_divergence=tuple(totals.divergences),
        samples=totals.samples / (keys * runs),
        cells=totals.cells(by_cell, weights, policies.reached),
        policies=policies,
        recipe=trial.recipe,
    )


def _earned(mdp: TabularMDP, trial: Trial, values: list[float]) -> Earned:
    """What the policies earn on average, beside the best one and the baseline of reprl's settings, or its default."""
    ours = _ours(trial.subject)
    asked = Settings() if ours is None or ours.settings.rule != "soft" else ours.settings
    baseline = trial.world.original_return(exact_baseline(mdp, asked))
    best = float(mdp.initial @ mdp.solve().values[0])
    value, most = (trial.world.original_return(x) for x in (float(np.mean(values)), best))
    return Earned(value, most, baseline, baseline_name(asked, trial.world))


class CurvePoint(NamedTuple):
    """Disagreement at one number of samples a run, with its interval."""

    samples: float
    disagreement: float
    low: float
    high: float


def curve(
    env: TabularMDP | GymnasiumModel | str | Any,
    learner: str | Callable[..., Any] | Recipe = "reprl",
    sizes: Sequence[int] = (),
    pairs: int | None = None,
    **options: Any,
) -> list[CurvePoint]:
    """Audit a learner at several budgets and return disagreement against samples a run.

    There is one audit for each of the sizes, which the learner's option `samples` is given. The rest is as in
    ``audit``; with a seed given, all sizes share their keys, so neighbouring points are dependent.

    Guarantee:
        Each point by itself has that of ``audit``; the intervals do not hold jointly.
    """
    if len(sizes) == 0:
        raise InputError("sizes must name at least one size, got none")
    points = []
    for size in sizes:
        report = audit(env, learner, pairs, **{**options, "samples": size})
        points.append(CurvePoint(report.samples, report.disagreement, *report.interval))
    return points
