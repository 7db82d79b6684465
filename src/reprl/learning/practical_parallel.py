"""The rule "sampled" from parallel samples: Theorem 4.13 of the paper, or as many as a rehearsal asks for."""

from __future__ import annotations

from reprl.errors import InputError
from reprl.execution.settings import Execution
from reprl.guarantee import Guarantee
from reprl.learning.loop import run_loop
from reprl.learning.practical import InductionRule, PracticalRehearsed, by_hand, decide, paper_run
from reprl.learning.result import PaperDetails, Run
from reprl.learning.settings import Settings
from reprl.mdp.criterion import criterion_of
from reprl.mdp.tiers import Tiers
from reprl.paper.constants import paper_calls
from reprl.paper.rep_level_explore import ALONE
from reprl.randomness import SharedKey, check_shared_key
from reprl.sources.parallel import ParallelCalls, call
from reprl.sources.protocol import Parallel, check_model
from reprl.sources.source import check_limit


def plan_calls(model: Parallel, settings: Settings, max_samples: int | None = None) -> int:
    """Return the parallel calls set by hand, or those of the paper, refusing a number that would pass max_samples."""
    criterion_of(model).check_epsilon(settings.asked.epsilon)
    try:
        calls = settings.calls or paper_calls(
            model.n_states,
            model.n_actions,
            model.horizon,
            epsilon=settings.asked.epsilon,
            rho=settings.rho,
            delta=settings.delta,
            coupling=settings.paper.coupling_spec(model.n_states, model.n_actions),
        )
    except (OverflowError, ZeroDivisionError):
        raise InputError(
            f"these settings need more parallel calls than a float can hold: relax epsilon={settings.asked.epsilon:g}, "
            f"rho={settings.rho:g} or delta={settings.delta:g}"
        ) from None
    if calls > 2**62:
        raise InputError(
            f"these settings need {calls:.3g} parallel calls; at most 2**62 can be drawn: relax epsilon or rho"
        )
    check_limit(max_samples, calls * model.samples_per_call)
    return calls


def run_generative(
    model: Parallel,
    shared_key: SharedKey,
    settings: Settings,
    max_samples: int | None = None,
    execution: Execution = ALONE,
) -> Run:
    """Draw parallel samples and decide; with ``practical``, again with twice the data while a rehearsal says so.

    A rehearsed run that is not sure after max_samples promises nothing; a number of calls that is fixed beforehand, by
    hand or by the paper, and passes it is refused.

    Guarantee:
        ``practical``: "rehearsed" if simulated second teams came to the same policy and its loss in the run's own data
        is at most ε; "none" otherwise. A fixed number of calls: proven if the figures that the induction computes from
        it meet the asked ones, as they do with ``paper`` (for very long horizons or many actions with rounding="vector"
        or mechanism="exponential"); otherwise nothing for one set by hand, and heuristic for the paper's.

    Randomness:
        Shared, at shared_key.derive("decide"). Data: batches of the model, and streams (data seed,
        "rehearsal/ROUND/…").
    """
    check_model(model, "generative", "access='generative'")
    key = check_shared_key(shared_key)
    tiers = Tiers.single(model.horizon, model.n_states)
    if settings.calls is not None or settings.constants == "paper":
        data = call(model, plan_calls(model, settings, max_samples))
        induction = decide(key, data.counts, tiers, settings)
        return paper_run(settings, promise(settings, induction.guarantee), data, tiers, PaperDetails(induction))
    criterion_of(model).check_epsilon(settings.asked.epsilon)
    rule, stop = InductionRule(key, tiers, settings), PracticalRehearsed(settings, execution)
    outcome = run_loop(ParallelCalls(model), rule, stop, max_samples)
    end, details = outcome.judgement, PaperDetails(outcome.judgement.found.induction)
    return paper_run(settings, end.guarantee, outcome.data, tiers, details, end.rehearsal)


def promise(settings: Settings, computed: Guarantee) -> Guarantee:
    """Return the asked figures, proven, where the computed ones meet them all; a weaker status where they do not."""
    proven = (
        computed.status == "proven"
        and computed.rho <= settings.rho
        and computed.delta <= settings.delta
        and computed.epsilon <= settings.asked.epsilon
    )
    if proven:
        return settings.asked.promise("proven", computed.source)
    if settings.calls is not None:
        return by_hand(settings, "parallel calls")
    if computed.status == "none":
        return settings.asked.promise("none", computed.source)
    return settings.asked.promise("heuristic", "the paper's rate, whose computed figures miss what was asked for")
