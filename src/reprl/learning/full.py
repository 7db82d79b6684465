"""The paper's full algorithm as a learner: settings to sizes, and a result with what stands behind it."""

from __future__ import annotations

from typing import Any

import numpy as np

from reprl.errors import InputError, check_int, check_real
from reprl.execution.settings import Execution
from reprl.guarantee import Guarantee
from reprl.learning.practical import paper_run
from reprl.learning.result import PaperDetails, Run
from reprl.learning.settings import Settings
from reprl.mdp.criterion import criterion_of
from reprl.paper.constants import Constants
from reprl.paper.full import run_full
from reprl.paper.rep_level_explore import ALONE
from reprl.paper.rep_rl_bandit import Induction
from reprl.randomness import SharedKey
from reprl.sources.protocol import check_model, has_fixed_start
from reprl.sources.source import check_limit

SHARP_LIMIT = 10**9
"""Samples of a proven run by episodes that need no max_samples: a minute or so of one core."""
SHARP_SPEED = 1.5e7
"""Samples that one core plays in a second, about."""


def run_full_algorithm(
    model: Any,
    shared_key: SharedKey,
    settings: Settings,
    *,
    constants: Constants | None = None,
    max_samples: int | None = None,
    execution: Execution = ALONE,
) -> Run:
    """Run the paper's full algorithm (``reprl.paper.full.run_full``) as the settings ask.

    constants is None for those of the settings' preset; sizes that would pass max_samples (None: SHARP_LIMIT where
    constants="sharp"), and a checkpoint, are refused.

    Guarantee:
        "scaled": none, and the reason says by how much sizes were reduced. "paper", parallel samples: proven where the
        figures that the induction computes meet Lemma 4.1's hypotheses. "paper", episodes: heuristic, as the paper
        leaves constants of its exploration open; no machine can count them. "sharp": proven (docs/proofs/whole.md §1 to
        §4); an environment that the proof does not cover is refused.

    Randomness:
        As ``run_full``.
    """
    if execution.checkpoint is not None:
        raise InputError(f"checkpoint must be None for the full algorithm, got {execution.checkpoint.folder}")
    check_model(model, settings.access, f"access={settings.access!r}")
    criterion_of(model).check_epsilon(settings.asked.epsilon)
    sizes = (model.n_states, model.n_actions, model.horizon)
    if settings.constants == "sharp":
        _check_covered(model, settings)
    planned = settings.paper.constants_for(*sizes)
    constants = (planned if constants is None else constants).check()
    unit = model.samples_per_call if constants.calls else model.samples_per_episode
    if max_samples is None and settings.constants == "sharp":
        _check_cost(constants, constants.total * unit)
    check_limit(max_samples, constants.total * unit)
    decision = settings.paper.decision(model.n_states, model.n_actions)
    found = run_full(model, shared_key, settings.paper.task(*sizes), constants, decision, execution)
    induction, tiers, data, explored = found.learned
    guarantee = _promise(settings, constants, planned, induction)
    return paper_run(settings, guarantee, data, tiers, PaperDetails(induction, explored, constants, found.ballots))


def _check_covered(model: Any, settings: Settings) -> None:
    """Refuse an environment that docs/proofs/whole.md does not cover."""
    if model.arrays is None or not has_fixed_start(model):
        found = "a black box" if model.arrays is None else f"{np.count_nonzero(model.mdp.initial)} of them"
        raise InputError(
            f"environment must be an MDP in memory with one start state for constants='sharp', got {found}"
        )
    check_int("n_actions", model.n_actions, 2)
    check_real("epsilon", settings.asked.epsilon, 0.0, float(model.horizon))


def _check_cost(constants: Constants, needed: int) -> None:
    """Refuse a proven run that needs more samples than max_samples allows, and name its cost."""
    if needed > SHARP_LIMIT:
        runs, (length,) = constants.partition_runs, constants.episodes
        hours = needed / SHARP_SPEED / 3600.0
        raise InputError(
            f"constants='sharp' ask for {runs} runs of {length} episodes here, up to {needed:.3g} samples, about "
            f"{hours:.2g} hours of one core: allow that by max_samples={needed}, got None, which allows "
            f"{SHARP_LIMIT:.0e}"
        )


def _promise(settings: Settings, constants: Constants, planned: Constants, induction: Induction) -> Guarantee:
    """What was asked for, with what stands behind it."""
    unit, base = "parallel calls" if constants.calls else "episodes", induction.guarantee
    if settings.constants == "scaled":
        sizes = f"the paper's sizes with every slack to the power {constants.scale:g}, {constants.total:.3g} {unit}"
        return settings.asked.promise("none", f"{sizes} at most, which no proof covers (docs/whole.md)")
    if constants != planned:
        return settings.asked.promise("none", "constants were set by hand")
    if settings.constants == "sharp":
        return settings.asked.promise("proven", "docs/proofs/whole.md §1 to §4")
    if not constants.calls:
        return settings.asked.promise("heuristic", "constants that the paper leaves open")
    known = (
        max(base.rho, base.delta) <= 0.1 and base.epsilon <= settings.asked.epsilon / 2.0 and base.status == "proven"
    )
    if known:
        return settings.asked.promise("proven", "docs/proofs/decision.md §3 and §4")
    return settings.asked.promise("heuristic", "the paper's rate, whose computed figures miss what boosting asks for")
