"""Numbers for people."""

from __future__ import annotations

from collections.abc import Sequence

_SUPERSCRIPT = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")


def number(value: float) -> str:
    """Return a number for people: grouped digits, powers of ten when very large or small."""
    if float(value).is_integer() and abs(value) < 1e12:
        return f"{int(value):,}"
    if value != 0 and (abs(value) >= 1e6 or abs(value) < 1e-3):
        digits, exponent = f"{value:.2e}".split("e")
        return f"{float(digits):g} × {power(int(exponent))}"
    return f"{value:,.0f}" if abs(value) >= 1e3 else f"{value:.3g}"


def power(exponent: int) -> str:
    """Return a power of ten."""
    return "10" + str(exponent).translate(_SUPERSCRIPT)


def percent(share: float) -> str:
    """Return a share in per cent."""
    return f"{100 * share:.3g} %"


def span(low: float, high: float, digits: int = 3) -> str:
    """Return an interval."""
    return f"[{low:.{digits}g}, {high:.{digits}g}]"


def counted(count: float, noun: str) -> tuple[str, str]:
    """Return a count as the value and the note of a fact: rounded where its digits would not fit."""
    if count < 1e9:
        return number(count), noun
    digits, exponent = f"{count:.2e}".split("e")
    return f"{digits} × {power(int(exponent))}", f"{int(count):,} {noun}".strip()


def chosen(shares: Sequence[tuple[str, float]]) -> str:
    """Return how often each of a few actions was chosen."""
    return ", ".join(f"{name} {_share(share)}" for name, share in shares[:4])


def _share(share: float) -> str:
    """A share, with the digits that one below 1 % needs."""
    return f"{share:.0%}" if share == 0.0 or share >= 0.01 else f"{100 * share:.2g}%"
