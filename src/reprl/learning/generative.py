"""The learner from parallel samples: Theorem 4.13 of the paper."""

from __future__ import annotations

from typing import NamedTuple

from reprl.decide.induction import Induction, tiered_induction
from reprl.errors import ReprlError, check_int, quote
from reprl.guarantee import Guarantee
from reprl.learning.constants import paper_calls, practical_calls
from reprl.learning.settings import Settings
from reprl.mdp.access import GenerativeModel
from reprl.mdp.counts import Counts
from reprl.mdp.tabular import TabularMDP
from reprl.mdp.tiers import Tiers
from reprl.randomness import SharedKey, check_shared_key


class GenerativePlan(NamedTuple):
    """What a generative run will cost."""

    calls: int
    samples: int


class GenerativeRun(NamedTuple):
    """What a generative run produced."""

    induction: Induction
    tiers: Tiers
    counts: Counts
    guarantee: Guarantee


def plan_generative(mdp: TabularMDP, settings: Settings, max_samples: int | None = None) -> GenerativePlan:
    """Return the cost of a run, refusing one that would pass max_samples."""
    settings.check_horizon(mdp.horizon)
    try:
        calls = _calls(mdp, settings)
    except (OverflowError, ZeroDivisionError):
        raise ReprlError(
            f"these settings need more parallel calls than a float can hold: relax epsilon={settings.epsilon:g}, "
            f"rho={settings.rho:g} or delta={settings.delta:g}"
        ) from None
    if calls > 2**62:
        raise ReprlError(
            f"these settings need {calls:.3g} parallel calls; at most 2**62 can be drawn: relax epsilon or rho"
        )
    samples = calls * GenerativeModel(mdp, 0).samples_per_call
    if max_samples is not None and samples > check_int("max_samples", max_samples, 1):
        raise ReprlError(f"max_samples must be at least {samples} for these settings, got {max_samples}")
    return GenerativePlan(calls, samples)


def _calls(mdp: TabularMDP, settings: Settings) -> int:
    decision = settings.decision(mdp.n_states, mdp.n_actions)
    sizes = (mdp.n_states, mdp.n_actions, mdp.horizon)
    if settings.calls is not None:
        return settings.calls
    if settings.constants == "paper":
        return paper_calls(
            *sizes,
            epsilon=settings.epsilon,
            rho=settings.rho,
            delta=settings.delta,
            coupling=decision.coupling,
            block=decision.block,
        )
    return practical_calls(
        *sizes,
        epsilon=settings.epsilon,
        rho=settings.rho,
        coupling=decision.coupling,
        block=decision.block,
        mechanism=settings.mechanism,
    )


def run_generative(
    model: GenerativeModel, shared_key: SharedKey, settings: Settings, max_samples: int | None = None
) -> GenerativeRun:
    """Draw parallel samples and decide.

    Args:
        model: where samples come from.
        shared_key: ξ.
        settings: accuracy, replicability and how to decide.
        max_samples: raise rather than draw more.

    Guarantee:
        Proven if the figures that the induction computes from the sample sizes meet the asked ones, as they do with
        ``paper`` (for very long horizons or many actions with rounding="vector" or mechanism="exponential"). Otherwise
        heuristic: calibrated for ``practical``, unfounded for a smaller number of calls set by hand.

    Randomness:
        Shared, at shared_key.derive("decide"). Data: one batch of the model.
    """
    if not isinstance(model, GenerativeModel):
        raise ReprlError(f"model must be a reprl.GenerativeModel for access='generative', got {quote(model)}")
    mdp = model.mdp
    key = check_shared_key(shared_key)
    calls = plan_generative(mdp, settings, max_samples).calls
    counts = model.sample(calls)
    tiers = Tiers.single(mdp.horizon, mdp.n_states)
    induction = tiered_induction(
        key.derive("decide"),
        counts,
        tiers,
        accuracy=settings.accuracy(tiers),
        delta=settings.failure,
        decision=settings.decision(mdp.n_states, mdp.n_actions),
    )
    calibrated = settings.constants == "practical" and settings.calls is None
    source = "docs/calibration.md" if calibrated else "neither proven nor calibrated for this number of calls"
    return GenerativeRun(induction, tiers, counts, promise(settings, induction.guarantee, source))


def promise(settings: Settings, computed: Guarantee, unproven: str) -> Guarantee:
    """Return the asked figures: proven where the computed ones meet them all, heuristic where they do not."""
    proven = (
        computed.status == "proven"
        and computed.rho <= settings.rho
        and computed.delta <= settings.delta
        and computed.epsilon <= settings.epsilon
    )
    return settings.promise("proven", computed.source) if proven else settings.promise("heuristic", unproven)
