"""What a run came to: the exit code, and its part of a JSON document; words for people are in reprl.report.run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from reprl.cli.answer import FINE, UNDECIDED
from reprl.guarantee import PROMISES

if TYPE_CHECKING:
    from reprl.guarantee import Guarantee
    from reprl.learning.result import LearnResult
    from reprl.sources.environment import Environment


def is_undecided(result: LearnResult) -> bool:
    """Whether a run was rehearsed and undecided when its samples ran out."""
    return result.guarantee.status == "none" and result.rehearsal is not None


def is_unproven(result: LearnResult) -> bool:
    """Whether a run was asked for a proof and has none."""
    return result.certificate is not None and not result.certificate.proven


def exit_code(*results: LearnResult) -> int:
    """Return the code of runs that nobody compares."""
    return UNDECIDED if any(is_undecided(result) or is_unproven(result) for result in results) else FINE


def describe_outcome(result: LearnResult, names: Environment) -> dict[str, Any]:
    """Return the same as a JSON document; where nothing is promised, the guarantee has no figures."""
    receipt = result.receipt
    document, worth = receipt.to_dict(), result.worth
    return {
        "guarantee": document["guarantee"],
        "decided": not is_undecided(result),
        "tolerance": result.tolerance,
        "tolerance_words": None if receipt.choice is None else receipt.choice.words(result.settings.preference),
        "followed": result.followed,
        "steps_kept_apart": result.apart or None,
        "promise": describe_promise(result.guarantee),
        "expected_agreement": result.expected_agreement,
        "rehearsal": document["rehearsal"],
        "certificate": document["certificate"],
        "undecided": [
            {"step": h, "state": s, "state_name": names.labels.state(s), "share": share}
            for h, s, share in document["undecided"]
        ],
        "value": result.value,
        "best_value": result.best_value,
        "baseline_value": result.baseline_value,
        "baseline": None if worth is None else worth.name,
        "share_of_gain": None if worth is None else worth.share,
        "note": None if worth is None or worth.note is None else worth.note.text,
        "quality": result.settings.quality,
        "epsilon": result.epsilon,
        "reward_range": None if names.reward_range is None else list(names.reward_range),
        "coverage": None if result.coverage is None else result.coverage._asdict(),
        "log": None if result.check is None else result.check.to_dict(),
        "decided_by": None if result.basis is None else result.basis.counts(),
        "spread": None if result.spread is None else result.spread * names.scale,
        "every_policy_is_within_epsilon": result.met_by_all,
    }


def describe_promise(guarantee: Guarantee) -> dict[str, Any] | None:
    """Return the kind of a promise and what it means; None where nothing is promised."""
    if guarantee.status == "none":
        return None
    return {"kind": guarantee.kind, "agreement": guarantee.agreement, "meaning": PROMISES[guarantee.kind]}
