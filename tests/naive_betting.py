"""Betting on a mean, the slow and obvious way: exact fractions, one sample after the other."""

from __future__ import annotations

from fractions import Fraction

SHARES = [Fraction(99, 100) / 2**k for k in range(12)]
WEIGHTS = [Fraction(1, k + 1) / sum(Fraction(1, i + 1) for i in range(12)) for k in range(12)]


def wealth(samples: list[Fraction], mean: Fraction, *, above: bool) -> list[Fraction]:
    """Wealth after each sample in [0, 1] of bets against a mean of at most (above) or at least this."""
    found = []
    own = [Fraction(1)] * 12
    for x in samples:
        gain = x / mean if above else (1 - x) / (1 - mean)
        own = [mine * (1 - share + share * gain) for mine, share in zip(own, SHARES, strict=True)]
        found.append(sum((weight * mine for weight, mine in zip(WEIGHTS, own, strict=True)), Fraction(0)))
    return found


def decide(samples: list[Fraction], mean: Fraction, above: Fraction, below: Fraction) -> tuple[str, int]:
    """The first verdict and the samples that it took."""
    up, down = wealth(samples, mean, above=True), wealth(samples, mean, above=False)
    for n, (one, other) in enumerate(zip(up, down, strict=True), start=1):
        if one * above >= 1:
            return "above", n
        if other * below >= 1:
            return "below", n
    return "undecided", len(samples)
