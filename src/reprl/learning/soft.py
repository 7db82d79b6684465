"""The default rule as a learner: settings to a bound rule, rounds to a verdict, and a result with both promises."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reprl.assurance.quality_certificate import QualityCertificate, certify_quality
from reprl.assurance.teams import Answers, ask_teams
from reprl.assurance.teams import Round as TeamRound
from reprl.assurance.verdict import (
    HELD_OUT,
    Ask,
    Verdict,
    enough_samples,
    find_haunted,
    forecast,
    judge,
    judge_policy,
    make_round,
)
from reprl.errors import InputError
from reprl.execution.pool import WorkerPool
from reprl.execution.settings import Execution
from reprl.guarantee import Guarantee, Promise
from reprl.learning.loop import Round, run_loop
from reprl.learning.result import Details, Run, SoftDetails
from reprl.learning.rounds import RoundTeller
from reprl.learning.settings import Settings
from reprl.mdp.counts import Counts
from reprl.mdp.criterion import Criterion, criterion_of
from reprl.mdp.dynamics import full_mask
from reprl.mdp.model import Model, from_start, occupancy, one_hot, solve
from reprl.mdp.policy import Policy
from reprl.mdp.tabular import TabularMDP
from reprl.mdp.tiers import Tiers
from reprl.randomness import DataStream, SharedKey, check_shared_key
from reprl.rule.bound import SoftRule
from reprl.rule.preference import preference_order
from reprl.rule.soft import LEAST_GAIN, Choice
from reprl.sources.access import WAYS
from reprl.sources.protocol import check_model, is_stationary, mask_of

MOST_TIMES = 2**12
"""A forecast goes no further than so many times the samples of a run."""


def run_soft(
    model: Any, shared_key: SharedKey, settings: Settings, execution: Execution, *, limit: int | None = None
) -> Run:
    """Gather data, in rounds that double, until simulated teams agree on quality and policy.

    Guarantee:
        As the verdict says; the policy is f(ξ, ·) of the run's own frequencies (docs/proofs/rule.md).

    Randomness:
        Shared, at shared_key.derive("rule"), as ``draw`` says. Data: the model's samples, and streams
        (data seed, "teams/ROUND/TEAM").
    """
    check_model(model, settings.access, f"access={settings.access!r}", masked=True)
    settings, criterion = settings.resolve_stationarity(model), criterion_of(model)
    settings.check_accuracy(criterion)
    if criterion.stationary and not settings.stationary:
        raise InputError("stationary must be True, or left out, for a discounted environment, got False")
    allowed = full_mask(mask_of(model), (criterion.rows, model.n_states, model.n_actions))
    rule = bind_rule(check_shared_key(shared_key), settings, allowed, criterion)
    told = execution.progress
    teller = None if told is None else RoundTeller(told, model)
    threads = ThreadPoolExecutor(execution.workers) if execution.workers > 1 else nullcontext()
    with WorkerPool(model, execution.workers, execution.checkpoint) as pool, threads as teams:
        source = WAYS[settings.access].source(
            model,
            pool,
            pooled=bool(settings.stationary),
            enough=enough_for(model, settings),
            progress=None if teller is None else teller.progress,
        )
        ask = partial(_ask, data_seed=model.data_seed, pool=teams)

        def judged(now: Round) -> Verdict:
            if now.drift and now.samples.steps is not None:
                return judge_by_step(now, settings, ask, model.data_seed, criterion)
            return judge_round(rule, settings, ask, now)

        outcome = run_loop(source, rule, judged, limit, None if teller is None else teller.end)
        (now, verdict), times = outcome, None
        if verdict.good and not verdict.same and not now.drift:
            haunted = find_haunted(now.evidence, settings.delta, settings.min_probability)
            asked = make_round(now.evidence, rule.asked, rule.draws, now.policy, now.choice, haunted)
            times = forecast(asked, f"{now.number}/forecast", MOST_TIMES, ask)
        proof = None
        if not criterion.stationary and not now.drift:
            proof = certify_quality(now.evidence, now.policy, rule.asked.baseline, settings.delta)
    stated = bool(settings.stationary) and not is_stationary(model) and criterion.discount is None
    guarantee = promise(settings, now.choice, verdict, now.drift, stated=stated)
    if proof is not None:
        guarantee = certified(guarantee, settings, proof, length=float(criterion.rows))
    needed = None if times is None else float(times) * model.ledger.samples
    return make_run(settings, rule, now, guarantee, SoftDetails(now.choice, verdict, now.drift, needed))


def enough_for(model: Any, settings: Settings) -> float:
    """Return how many samples of a row of a model are enough, under resolved settings; see ``enough_samples``."""
    rows = (model.n_states - len(getattr(model, "known", ()))) * model.n_actions
    steps = 1 if settings.stationary else criterion_of(model).rows
    return enough_samples(rows * steps, settings.delta, settings.min_probability)


def _ask(now: TeamRound, name: str, numbers: range, *, data_seed: int, pool: ThreadPoolExecutor | None) -> Answers:
    return ask_teams(now, name, data_seed, numbers, pool)


def bind_rule(shared_key: SharedKey, settings: Settings, allowed: NDArray[np.bool_], criterion: Criterion) -> SoftRule:
    """Return f(ξ, ·) under resolved settings; allowed is (H, S, A)."""
    key, baseline = shared_key.derive("rule"), settings.baseline_actions(allowed.shape)
    return SoftRule.bind(
        key,
        allowed,
        stationary=bool(settings.stationary) and not criterion.stationary,
        quality=settings.quality,
        epsilon=settings.epsilon,
        baseline=None if baseline is None else one_hot(baseline, allowed.shape[2]),
        order=preference_order(key, allowed.shape[1:], settings.preference),
    )


def judge_round(rule: SoftRule, settings: Settings, ask: Ask, now: Round) -> Verdict:
    """Judge a round of a run."""
    return judge(
        now.evidence,
        rule.asked,
        rule.draws,
        now.policy,
        now.choice,
        rho=settings.rho,
        delta=settings.delta,
        min_probability=settings.min_probability,
        looks=now.number,
        last=now.last,
        ask=ask,
    )


def judge_by_step(now: Round, settings: Settings, ask: Ask, data_seed: int, criterion: Criterion) -> Verdict:
    """Judge the policy of a run whose samples contradict that steps are alike: its quality alone, by step."""
    evidence = now.samples.by_step()
    rule = bind_rule(SharedKey(0), settings, evidence.model.allowed, criterion)
    words, content, teams = judge_policy(
        evidence,
        rule.asked,
        rule.draws,
        now.policy,
        delta=settings.delta,
        min_probability=settings.min_probability,
        looks=now.number,
        stream=partial(DataStream, data_seed),
        ask=lambda given, name, numbers: ask(given, f"by step/{name}", numbers),
    )
    good, apart = words == "confirmed", np.zeros(now.policy.shape)
    return Verdict(good, False, 0.0, False, teams, teams, content, apart)


def promise(settings: Settings, choice: Choice, verdict: Verdict, drift: str, *, stated: bool) -> Guarantee:
    """Return what a verdict promises; stated says that somebody has stated that all steps are alike."""
    of = f"{verdict.content} of {verdict.teams} simulated data sets"
    if verdict.good:
        quality = Promise("rehearsed", settings.delta, f"in {of}")
    elif verdict.held_out > HELD_OUT:
        lost = f"what half of the data choose loses {verdict.held_out:.2g} times what may be lost, by the other half"
        quality = Promise("none", 1.0, lost)
    else:
        quality = Promise("none", 1.0, f"only {of} say that the policy is good enough")
    agree = f"{verdict.agree} of {verdict.teams} simulated teams"
    if drift:
        same = Promise("none", 1.0, f"the samples contradict that all steps are alike ({drift}): stationary=False")
    elif verdict.same:
        same = Promise("rehearsed", settings.rho, agree)
    elif not verdict.crossed:
        same = Promise("none", 1.0, f"the two halves of the data choose another policy; {agree} print this one")
    else:
        same = Promise("none", 1.0, f"only {agree} print this policy")
    assumed = [f"all steps are alike (stationary={settings.stationary})"] if stated and not drift else []
    if settings.min_probability > 0.0:
        rare = f"no outcome that matters is rarer than 1 in {1.0 / settings.min_probability:.3g}"
        assumed.append(f"{rare} (min_probability={settings.min_probability:g})")
    return Guarantee(
        quality=quality, same=same, epsilon=choice.allowed, share=settings.quality, assumed="; ".join(assumed)
    )


def certified(guarantee: Guarantee, settings: Settings, proof: QualityCertificate, *, length: float) -> Guarantee:
    """Return a guarantee whose quality is certified, if the run's data prove it; it then assumes nothing rare."""
    least = (1.0 - settings.quality) * LEAST_GAIN * length if settings.quality is not None else settings.epsilon or 0.0
    if proof.loss > least and (settings.quality is None or proof.quality < settings.quality):
        return guarantee
    source = "proven from this run's own data: docs/proofs/certificate-quality.md"
    return replace(guarantee, quality=Promise("certified", settings.delta, source))


def make_run(settings: Settings, rule: SoftRule, now: Round, guarantee: Guarantee, details: Details) -> Run:
    """Put the result together."""
    model = now.evidence.model
    values, gaps = np.empty((len(now.policy) + 1, model.initial.size)), np.empty(model.allowed.shape)
    visits = np.empty(now.policy.shape)
    solve(model, values, gaps)
    occupancy(model, one_hot(now.policy, model.allowed.shape[2]), visits, np.empty((2, model.initial.size)))
    visits[:, list(now.samples.exact)] = 0.0
    level = np.where(visits > 0.0, 1, 2)
    return Run(
        policy=Policy(now.samples.criterion.actions(now.policy)),
        guarantee=guarantee,
        settings=settings,
        tiers=Tiers.single(*level.shape) if (level == 1).all() else Tiers.from_levels(level, 2),
        counts=_counts(now),
        values=values,
        spread=spread_of(model),
        occupancy=visits,
        details=details,
    )


def _counts(now: Round) -> Counts:
    return now.samples.data.under(now.samples.criterion).counts


def spread_of(model: Model) -> float:
    """Return how much the best policy is worth more than the worst, from the start: every policy meets such an ε."""
    values, gaps = np.empty((len(model.allowed) + 1, model.initial.size)), np.empty(model.allowed.shape)
    solve(model, values, gaps)
    best = from_start(model, values)
    solve(model._replace(reward=-model.reward), values, gaps)
    return best + from_start(model, values)


def choose(
    mdp: TabularMDP,
    *,
    shared_seed: int = 0,
    quality: float | None = None,
    epsilon: float | None = None,
    baseline: Any = None,
    preference: Any = None,
) -> Policy:
    """Return the rule's policy of an MDP that is known: the policy that runs on samples of it arrive at.

    Ties are no matter of rounding: actions that cost less than a shared tolerance are taken in the order of preference,
    so that teams who solve the same table by other means, or a table with small errors, print the same policy.

    Args:
        mdp: the MDP.
        shared_seed: ξ.
        quality: the share of the gain over the baseline that the policy earns at least; 0.9 if no epsilon is given.
        epsilon: the loss that is allowed instead, in the rewards' own units.
        baseline: as for ``reprl.learn``.
        preference: as for ``reprl.learn``.

    Guarantee:
        It loses at most .7 of what is allowed (docs/proofs/rule.md).

    Randomness:
        Shared, at SharedKey(shared_seed).derive("rule").
    """
    from reprl.learning.baseline import resolve_baseline
    from reprl.learning.learner import make_settings
    from reprl.mdp.interface import Interface
    from reprl.mdp.model import true_model

    if not isinstance(mdp, TabularMDP):
        raise InputError(f"mdp must be a TabularMDP, got {mdp!r}")
    options = {"quality": quality, "epsilon": epsilon, "baseline": baseline, "preference": preference}
    settings = make_settings({name: value for name, value in options.items() if value is not None}, mdp)
    settings = resolve_baseline(settings.resolve_actions(mdp.labels.actions, mdp.n_actions), mdp)
    settings, model = settings.resolve_stationarity(mdp), true_model(mdp)
    rule = bind_rule(SharedKey(shared_seed), settings, model.allowed, mdp.criterion)
    return Policy(mdp.criterion.actions(rule.choose(model)[0]), Interface.of(mdp))
