"""What a run came to, in words: what is promised, why, how ties were broken, and what was left undecided."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from reprl.cli.answer import FINE, UNDECIDED
from reprl.cli.certify import certificate_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reprl.learning.result import LearnResult
    from reprl.sources.environment import Environment

NAMED = 5
"""Undecided cells that are named."""


def is_undecided(result: LearnResult) -> bool:
    """Whether a run was rehearsed and, when its samples ran out, not sure."""
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
    document = receipt.to_dict()
    return {
        "guarantee": document["guarantee"],
        "decided": not is_undecided(result),
        "tolerance": result.tolerance,
        "tolerance_words": None if receipt.choice is None else receipt.choice.words(result.settings.preference),
        "followed": result.followed,
        "rehearsal": document["rehearsal"],
        "certificate": document.get("certificate"),
        "undecided": [
            {"step": h, "state": s, "state_name": names.labels.state(s), "share": share}
            for h, s, share in document["undecided"]
        ],
        "epsilon": result.settings.epsilon,
        "epsilon_in_original_units": names.original(result.settings.epsilon),
        "epsilon_share_of_spread": _share(result),
        "reward_range": None if names.reward_range is None else list(names.reward_range),
        "coverage": None if result.coverage is None else result.coverage._asdict(),
        "spread": result.spread,
        "every_policy_is_within_epsilon": result.met_by_all,
    }


def _share(result: LearnResult) -> float | None:
    """What part of the way from the worst policy to the best one ε is; None where all are worth the same."""
    return result.settings.epsilon / result.spread if result.spread else None


def accuracy_words(result: LearnResult, names: Environment) -> str:
    """Say what ε is: in the units of values, in the rewards' own, and beside what there is to win at all."""
    epsilon = result.settings.epsilon
    words = f"ε = {epsilon:g} where values go from 0 to {names.criterion.effective_horizon:g}"
    original = names.original(epsilon)
    if original is not None:
        low, high = names.units
        words += f", that is {original:.4g} in the rewards' own units (each from {low:g} to {high:g})"
    share = _share(result)
    if share is not None:
        words += f"; {share:.0%} of what the best policy is worth more than the worst, {result.spread:.3g}"
    return words


def promise(result: LearnResult) -> str:
    """The guarantee in a line; what simulated teams did has a line of its own."""
    guarantee = result.guarantee
    if guarantee.status != "rehearsed":
        return str(guarantee)
    figures, _, _ = str(guarantee).partition(" [")
    if result.coverage is not None:
        return f"{figures}, among policies that do what the log supports [rehearsed: reprl docs logs]"
    return f"{figures} [rehearsed: reprl docs rehearsal]"


def outcome_rows(result: LearnResult, names: Environment) -> list[tuple[str, object]]:
    """Rows for people: promise, rehearsal, tolerance, and what to be careful about."""
    chosen = result.receipt.choice
    rows: list[tuple[str, object]] = [("promised", promise(result)), ("accuracy", accuracy_words(result, names))]
    if result.rehearsal is not None and not is_undecided(result):
        rows.append(("rehearsal", result.rehearsal))
    if result.certificate is not None:
        rows += certificate_rows(result.certificate)
    if chosen is not None:
        rows.append(("ties", chosen.words(result.settings.preference)))
    if result.followed and chosen is not None:
        rows.append(("followed", f"the recipe's candidate, {chosen.published}; ρ speaks of choosing --afresh"))
    if result.coverage is not None:
        rows += coverage_rows(result, names)
    if is_undecided(result):
        rows.append(("undecided", undecided_words(result, names) or "no cell in the rehearsal; see above"))
    if result.met_by_all:
        rows.append(("note", spread_words(result)))
    return rows


def coverage_rows(result: LearnResult, names: Environment) -> list[tuple[str, object]]:
    """What a log says of the policy; values in the units of its rewards."""
    found = result.coverage
    assert found is not None
    restore, low = names.labels.reward_map.restore, names.labels.reward_map.low
    value, floor, top, practice = (
        restore(x, names.criterion.effective_horizon)
        for x in (found.value, found.value_low, found.value_high, found.practice)
    )
    scale = restore(1.0, 1) - low
    rows: list[tuple[str, object]] = [
        ("covers", f"{found.covered:.1%} of the log's visits are in states where data decide"),
        ("alike", f"in {found.alike:.1%} of them the log did what the policy says"),
        ("value", f"{value:.4g} by the log, 95 % interval {floor:.4g} to {top:.4g}; practice earns {practice:.4g}"),
        ("gain", f"{scale * found.gain_low:.4g} to {scale * found.gain_high:.4g} over practice, 95 % interval"),
    ]
    if found.unknown > 0.0:
        worth = scale * found.unknown
        rows.append(("hardly reached", f"states that the log hardly reaches could be worth {worth:.3g} more"))
    left = [
        (found.beyond, "rows at the end of the horizon, or after it, were left out"),
        (found.cut, "episodes stop early, not done"),
    ]
    if any(number for number, _ in left):
        rows.append(("left out", "; ".join(f"{number:,} {what}" for number, what in left if number)))
    return rows


def ran_out(result: LearnResult) -> str:
    """What came to an end before a run was sure."""
    if result.drift:
        return f"{'its samples' if result.coverage is None else 'the log'} told steps apart"
    return "the samples ran out" if result.coverage is None else "the log ended"


def undecided_words(result: LearnResult, names: Environment) -> str:
    """Name the cells in which simulated teams part, the most disputed first."""
    cells = result.receipt.to_dict()["undecided"]
    shown = [f"{names.cell(h, s)} ({share:.0%} of teams differ)" for h, s, share in cells[:NAMED]]
    more = [f"and {len(cells) - NAMED} more cells"] if len(cells) > NAMED else []
    return "; ".join(shown + more)


def spread_words(result: LearnResult) -> str:
    """Say that every policy would do."""
    return (
        f"every policy is within ε here: best and worst differ by {result.spread:.3g} in this run's model, and ε is "
        f"{result.settings.epsilon:g}, so it says nothing of the policy: ask for less"
    )


def ties_rows(results: Sequence[LearnResult]) -> list[tuple[str, object]]:
    """How ties were broken in several runs: one row where they say the same."""
    words = []
    for result in results:
        chosen = result.receipt.choice
        words.append("" if chosen is None else chosen.words(result.settings.preference))
    if len(set(words)) == 1:
        return [("ties", words[0])] if words[0] else []
    return [(f"ties, run {number}", text) for number, text in enumerate(words, 1)]
