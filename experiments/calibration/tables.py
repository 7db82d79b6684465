"""The tables of docs/calibration.md, written from stored measurements only."""

from __future__ import annotations

from experiments.calibration.generative import RHOS, by_setting, needed, preset_calls, ratios
from experiments.calibration.pairs import Record, load, setting
from experiments.calibration.sweep import HELD_OUT, TABLE_EPSILON, TABLE_LEARNERS, TABLE_RHO, TABLE_WORLDS


def print_tables() -> None:
    """Print all of them as Markdown."""
    for title, lines in (("Overshoot", overshoot()), ("Held out", held_out()), ("Thresholds", thresholds())):
        print(f"<!-- {title} -->", *lines, "", sep="\n")


def overshoot() -> list[str]:
    """For every calibration setting: calls needed at ρ = 0.1, calls that the preset draws, and their quotient."""
    records = load("generative-calibration")
    constants = ratios(records)
    lines = _head("world", "ε", "coupling", "needed at ρ = 0.1", "preset", "overshoot", f"constant, ρ = {RHOS}")
    for what, group in sorted(by_setting(records).items(), key=lambda item: -max(constants[item[0]].values())):
        calls, preset = needed(group)(0.1), preset_calls(what, 0.1)
        row = ", ".join(f"{value:.2g}" for value in constants[what].values())
        silent = "< " if sum(record.disagreements for record in group) == 0 else ""
        lines.append(
            _row(what.name, f"{what.epsilon:g}", what.decision.coupling, f"{silent}{calls:.1e}", f"{preset:.1e}",
                 f"{preset / calls:.2g}×", row)
        )  # fmt: skip
    return lines


def held_out() -> list[str]:
    """For every held-out setting: disagreement at the preset's calls, with its exact interval."""
    lines = _head("world", "ε", "ρ", "coupling", "calls", "disagreement (95 %)", "worst suboptimality")
    for record, (what, rho) in zip(load("generative-validation"), HELD_OUT, strict=True):
        assert record.setting == what, f"stored {record.setting}, swept {what}"
        lines.append(
            _row(what.name, f"{what.epsilon:g}", f"{rho:g}", what.decision.coupling, f"{record.calls:.1e}",
                 _rate(record), f"{record.worst_loss:.3f}")
        )  # fmt: skip
    return lines


def thresholds() -> list[str]:
    """The smallest power of two that meets ρ, per world and learner."""
    groups = by_setting(load("generative-table"))
    lines = _head("world", "learner", "smallest calls", "disagreement there", "at half of it", "worst suboptimality")
    for name, (world, options) in TABLE_WORLDS.items():
        for learner, how in TABLE_LEARNERS.items():
            group = groups[setting(world, options, TABLE_EPSILON, **how)]
            last = group[-1]
            reached = last.rate <= TABLE_RHO
            calls = _power(last.calls) if reached else f"not reached at {_power(last.calls)}"
            before = _rate(group[0]) if len(group) > 1 else "–"
            loss = max(record.worst_loss for record in group)
            lines.append(_row(name, learner, calls, _rate(last), before, f"{loss:.3f}"))
    return lines


def _power(calls: int) -> str:
    return f"2^{calls.bit_length() - 1} = {calls:.2g}"


def _rate(record: Record) -> str:
    low, high = record.interval
    return f"{record.rate:.3f} ({low:.3f}–{high:.3f})"


def _head(*names: str) -> list[str]:
    return [_row(*names), _row(*("---" for _ in names))]


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"
