"""What a run came to: the exit code, and its part of a JSON document; words for people are in reprl.report.run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from reprl.cli.answer import FINE, UNDECIDED

if TYPE_CHECKING:
    from reprl.learning.result import LearnResult


def is_undecided(result: LearnResult) -> bool:
    """Whether simulated teams were asked, and not even the quality is known; without equality a run has not failed."""
    return result.verdict is not None and result.guarantee.quality.status == "none"


def exit_code(*results: LearnResult) -> int:
    """Return the code of runs that nobody compares."""
    return UNDECIDED if any(map(is_undecided, results)) else FINE


def needed_samples(result: LearnResult) -> float | None:
    """Return how many samples equality is forecast to need; None if it is there, or there is no forecast."""
    needed: float | None = getattr(result.details, "needed", None)
    return needed


def describe_outcome(result: LearnResult) -> dict[str, Any]:
    """Return the same as a JSON document; where nothing is promised, the guarantee has no figures."""
    document, worth, names = result.receipt.to_dict(), result.worth, result.environment
    verdict = None if document["verdict"] is None else dict(document["verdict"])
    apart = [] if verdict is None else verdict.pop("apart")
    return {
        "guarantee": document["guarantee"],
        "decided": result.guarantee.decided,
        "verdict": verdict,
        "teams_differ": [
            {"step": h, "state": s, "state_name": names.labels.state(s), "share": share} for h, s, share in apart
        ],
        "needed_samples": needed_samples(result),
        "value": result.value,
        "best_value": result.best_value,
        "baseline_value": result.baseline_value,
        "baseline": None if worth is None else worth.name,
        "share_of_gain": None if worth is None else worth.share,
        "note": None if worth is None or worth.note is None else worth.note.text,
        "epsilon": result.epsilon,
        "reward_range": None if names.reward_range is None else list(names.reward_range),
        "coverage": None if result.coverage is None else result.coverage._asdict(),
        "log": None if result.check is None else result.check.to_dict(),
        "decided_by": None if result.basis is None else result.basis.counts(),
        "spread": None if result.spread is None else result.spread * names.scale,
    }
