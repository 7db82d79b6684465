"""The learner from parallel samples: Theorem 4.13 of the paper."""

from __future__ import annotations

from reprl.decide.induction import tiered_induction
from reprl.errors import ReprlError, check_int
from reprl.guarantee import Guarantee
from reprl.learning.constants import paper_calls, practical_calls
from reprl.learning.protocol import Run
from reprl.learning.settings import Settings
from reprl.mdp.access import Parallel, check_model
from reprl.mdp.tiers import Tiers
from reprl.randomness import SharedKey, check_shared_key


def plan_calls(model: Parallel, settings: Settings, max_samples: int | None = None) -> int:
    """Return the parallel calls of a run, refusing one that would pass max_samples."""
    settings.check_horizon(model.horizon)
    try:
        calls = _calls(model, settings)
    except (OverflowError, ZeroDivisionError):
        raise ReprlError(
            f"these settings need more parallel calls than a float can hold: relax epsilon={settings.epsilon:g}, "
            f"rho={settings.rho:g} or delta={settings.delta:g}"
        ) from None
    if calls > 2**62:
        raise ReprlError(
            f"these settings need {calls:.3g} parallel calls; at most 2**62 can be drawn: relax epsilon or rho"
        )
    samples = calls * model.samples_per_call
    if max_samples is not None and samples > check_int("max_samples", max_samples, 1):
        raise ReprlError(f"max_samples must be at least {samples} for these settings, got {max_samples}")
    return calls


def _calls(model: Parallel, settings: Settings) -> int:
    if settings.calls is not None:
        return settings.calls
    grade = settings.grade(model.n_states, model.n_actions)
    sizes = (model.n_states, model.n_actions, model.horizon)
    epsilon, rho = settings.epsilon, settings.rho
    if settings.constants == "paper":
        return paper_calls(*sizes, epsilon=epsilon, rho=rho, delta=settings.delta, grade=grade)
    return practical_calls(*sizes, epsilon=epsilon, rho=rho, grade=grade, mechanism=settings.mechanism)


def run_generative(model: Parallel, shared_key: SharedKey, settings: Settings, max_samples: int | None = None) -> Run:
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
    check_model(model, "generative", "access='generative'")
    key = check_shared_key(shared_key)
    counts = model.sample(plan_calls(model, settings, max_samples))
    tiers = Tiers.single(model.horizon, model.n_states)
    induction = tiered_induction(
        key.derive("decide"),
        counts,
        tiers,
        accuracy=settings.accuracy(tiers),
        delta=settings.failure,
        decision=settings.decision(model.n_states, model.n_actions),
    )
    calibrated = settings.constants == "practical" and settings.calls is None
    source = "docs/calibration.md" if calibrated else "neither proven nor calibrated for this number of calls"
    guarantee = promise(settings, induction.guarantee, source)
    return Run(
        policy=induction.policy,
        guarantee=guarantee,
        settings=settings,
        tiers=tiers,
        counts=counts,
        values=induction.values,
        induction=induction,
    )


def promise(settings: Settings, computed: Guarantee, unproven: str) -> Guarantee:
    """Return the asked figures: proven where the computed ones meet them all, heuristic where they do not."""
    proven = (
        computed.status == "proven"
        and computed.rho <= settings.rho
        and computed.delta <= settings.delta
        and computed.epsilon <= settings.epsilon
    )
    return settings.promise("proven", computed.source) if proven else settings.promise("heuristic", unproven)
