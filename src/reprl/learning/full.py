"""The paper's rule as a learner: settings to sizes, and a result with what stands behind it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from reprl.canonical.gaps import value_spread
from reprl.errors import InputError, check_int, check_real
from reprl.execution.settings import Execution
from reprl.guarantee import Guarantee
from reprl.learning.result import PaperDetails, Run
from reprl.learning.settings import Settings
from reprl.mdp.criterion import criterion_of
from reprl.mdp.dynamics import empirical_dynamics
from reprl.paper.constants import Constants
from reprl.paper.full import run_full
from reprl.paper.rep_level_explore import ALONE
from reprl.paper.rep_rl_bandit import Induction
from reprl.randomness import SharedKey
from reprl.sources.access import WAYS
from reprl.sources.protocol import check_model, has_fixed_start
from reprl.sources.source import check_limit

PROVEN_LIMIT = 10**9
"""Samples of a proven run by episodes that need no max_samples: a minute or so of one core."""
PROVEN_SPEED = 1.5e7
"""Samples that one core plays in a second, about."""


def run_paper(
    model: Any,
    shared_key: SharedKey,
    settings: Settings,
    *,
    constants: Constants | None = None,
    max_samples: int | None = None,
    execution: Execution = ALONE,
) -> Run:
    """Run the paper's algorithm (``reprl.paper.full.run_full``) as the settings ask.

    constants is None for those of the settings; sizes that would pass max_samples (None: PROVEN_LIMIT where
    constants="proven"), and a checkpoint, are refused.

    Guarantee:
        "paper", parallel samples: proven where the figures that the induction computes meet what is asked, or boosted,
        Lemma 4.1's hypotheses. "paper", episodes: always refused, as no machine can play them. "scaled": none, and the
        reason says by how much sizes were reduced. "proven": proven (docs/proofs/whole.md §1 to §4); an environment
        that the proof does not cover is refused.

    Randomness:
        As ``run_full``.
    """
    if execution.checkpoint is not None:
        raise InputError(f"checkpoint must be None for rule='paper', got {execution.checkpoint.folder}")
    check_model(model, settings.access, f"access={settings.access!r}")
    criterion_of(model).check_epsilon(settings.asked.epsilon)
    sizes = (model.n_states, model.n_actions, model.horizon)
    unit = WAYS[settings.access].cost(model)
    if settings.constants == "proven":
        _check_covered(model, settings)
    try:
        planned = settings.paper.constants_for(*sizes, unit)
    except (OverflowError, ZeroDivisionError):
        raise InputError(
            f"these settings need more samples than a float can hold: relax epsilon={settings.asked.epsilon:g}, "
            f"rho={settings.rho:g} or delta={settings.delta:g}"
        ) from None
    if constants is None and settings.constants == "paper" and not planned.calls:
        raise InputError(
            f"constants='paper' by episodes ask for {planned.total:.3g} of them: use access='generative', or "
            "constants='scaled' or 'proven'"
        )
    constants = (planned if constants is None else constants).check()
    if max_samples is None and settings.constants == "proven":
        _check_cost(constants, constants.total * unit)
    check_limit(max_samples, constants.total * unit)
    found = run_full(model, shared_key, settings.paper.task(*sizes), constants, settings.paper.decision, execution)
    induction, tiers, data, explored = found.learned
    guarantee = _promise(settings, constants, planned, induction)
    if explored is not None:  # a partition that exploration has found is not proven to be one
        induction = induction._replace(guarantee=replace(induction.guarantee, status="heuristic"))
    return Run(
        policy=induction.policy,
        guarantee=guarantee,
        settings=settings,
        tiers=tiers,
        counts=data.counts,
        values=induction.values,
        spread=value_spread(empirical_dynamics(data)),
        details=PaperDetails(induction, explored, constants, found.ballots),
    )


def _check_covered(model: Any, settings: Settings) -> None:
    """Refuse an environment that docs/proofs/whole.md does not cover."""
    if model.arrays is None or not has_fixed_start(model):
        found = "a black box" if model.arrays is None else f"{np.count_nonzero(model.mdp.initial)} of them"
        raise InputError(
            f"environment must be an MDP in memory with one start state for constants='proven', got {found}"
        )
    check_int("n_actions", model.n_actions, 2)
    check_real("epsilon", settings.asked.epsilon, 0.0, float(model.horizon))


def _check_cost(constants: Constants, needed: int) -> None:
    """Refuse a proven run that needs more samples than max_samples allows, and name its cost."""
    if needed > PROVEN_LIMIT:
        runs, (length,) = constants.partition_runs, constants.episodes
        hours = needed / PROVEN_SPEED / 3600.0
        raise InputError(
            f"constants='proven' ask for {runs} runs of {length} episodes here, up to {needed:.3g} samples, about "
            f"{hours:.2g} hours of one core: allow that by max_samples={needed}, got None, which allows "
            f"{PROVEN_LIMIT:.0e}"
        )


def _promise(settings: Settings, constants: Constants, planned: Constants, induction: Induction) -> Guarantee:
    """What was asked for, with what stands behind it."""
    asked, found = settings.asked, induction.guarantee
    if settings.constants == "scaled":
        unit = "parallel calls" if constants.calls else "episodes"
        sizes = f"the paper's sizes with every slack to the power {constants.scale:g}, {constants.total:.3g} {unit}"
        return asked.promise("none", f"{sizes} at most, which no proof covers (docs/whole.md)")
    if constants != planned:
        return asked.promise("none", "constants were set by hand")
    if settings.constants == "proven":
        return asked.promise("proven", "docs/proofs/whole.md §1 to §4")
    if settings.boosted:
        met = max(found.rho, found.delta) <= 0.1 and found.epsilon <= asked.epsilon / 2.0
        source = "docs/proofs/decision.md §3 and §4"
    else:
        met = found.rho <= asked.rho and found.delta <= asked.delta and found.epsilon <= asked.epsilon
        source = found.source
    if met and found.status == "proven":
        return asked.promise("proven", source)
    return asked.promise("heuristic", "the paper's rate, whose computed figures miss what was asked for")
