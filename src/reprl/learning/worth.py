"""Worth: what a policy earns beside the best one and the baseline, in words that every screen uses.

A goal that is met too easily says nothing of the policy: the words then say so, and name one that is not.
"""

from __future__ import annotations

import math
from typing import NamedTuple, Protocol

import numpy as np

from reprl.canonical.choice import preference_order
from reprl.canonical.gaps import TIE
from reprl.canonical.goal import DEFAULT_QUALITY, LEAST_GAIN
from reprl.learning.settings import Settings
from reprl.mdp.environment import Environment
from reprl.mdp.policy import Policy
from reprl.randomness import SharedKey
from reprl.sources.logs.spec import ID

_EASY = 0.1
"""The share of what there is to win that an ε may be which is not met too easily."""


class Found(Protocol):
    """What a run found in its own model, in units of value."""

    @property
    def value(self) -> float:
        """Of the policy."""

    @property
    def best(self) -> float:
        """Of the best policy."""

    @property
    def baseline(self) -> float | None:
        """Of the baseline; None in receipts that do not say."""

    @property
    def epsilon(self) -> float | None:
        """What the policy may lose; the same."""


class Note(NamedTuple):
    """What makes a goal say nothing of the policy."""

    short: str
    text: str


class Worth(NamedTuple):
    """Expected returns from the start, in the environment's own reward units."""

    value: float
    """Of the policy."""
    best: float
    """Of the best policy."""
    baseline: float | None
    """Of the baseline; None if it is not known."""
    name: str
    """What the baseline is called."""
    note: Note | None = None

    @property
    def share(self) -> float | None:
        """The share of the gain, of the best over the baseline, that the policy earns; None where there is no gain."""
        if self.baseline is None or self.best - self.baseline <= TIE * max(1.0, abs(self.best)):
            return None
        return (self.value - self.baseline) / (self.best - self.baseline)

    @property
    def words(self) -> str:
        """All three in a line."""
        return f"{self._figure(self.value)}; {self.others}"

    @property
    def others(self) -> str:
        """What the best policy and the baseline earn, and the share of the gain."""
        found = f"the best policy {self._figure(self.best)}"
        if self.baseline is not None:
            found += f", the baseline ({self.name}) {self._figure(self.baseline)}"
        return found if self.share is None else f"{found}: {_percent(self.share)} of the gain"

    @property
    def brief(self) -> str:
        """The same in a few words."""
        found = [f"best {self._figure(self.best)}"]
        if self.baseline is not None:
            found.append(f"baseline {self._figure(self.baseline)}")
        note = "" if self.note is None else f": {self.note.short}"
        return f"earns {self._figure(self.value)} ({', '.join(found)}{note})"

    def _figure(self, value: float) -> str:
        """A value in four digits; what is 0 but for rounded rewards, beside the others, is 0."""
        scale = max(abs(self.value), abs(self.best), abs(self.baseline or 0.0))
        return "0" if abs(value) < 1e-5 * scale else f"{value:.4g}"


def _percent(share: float) -> str:
    """A share in per cent, rounded down, so that nothing but the best is 100 %."""
    return f"{math.floor(1000.0 * share + 1e-9) / 10.0:g} %"


def find_worth(
    found: Found | None, settings: Settings, place: Environment, policy: Policy, shared_seed: int, spread: float | None
) -> Worth | None:
    """Return what a run says that its policy is worth; None for the paper's rule, which does not say."""
    if found is None:
        return None
    name = baseline_name(settings, place)
    baseline = None if found.baseline is None else place.original_return(found.baseline)
    note = _note(found, settings, place, policy, shared_seed, spread)
    return Worth(place.original_return(found.value), place.original_return(found.best), baseline, name, note)


def baseline_name(settings: Settings, place: Environment) -> str:
    """Say what the baseline is."""
    if settings.baseline is not None:
        actions = {a for row in settings.baseline for a in row}
        return f"always {_action(place, actions.pop())}" if len(actions) == 1 else "the given policy"
    if place.id == ID:
        return "current practice"
    if settings.preference == "shared":
        return "always the most preferred action"
    return f"always {_action(place, 0 if settings.preference is None else int(settings.preference[0]))}"


def _action(place: Environment, a: int) -> str:
    return place.labels.actions[a] if a < len(place.labels.actions) else f"action {a}"


def _is_baseline(settings: Settings, place: Environment, policy: Policy, shared_seed: int) -> bool:
    """Whether a policy is the baseline in every cell; that of a mask is not known here, nor is practice a policy."""
    if settings.baseline is not None:
        return bool((policy.table == np.array(settings.baseline)).all())
    order = preference_order(SharedKey(shared_seed).derive("rule"), place.n_actions, settings.preference)
    return place.id != ID and bool((policy.table == order[0]).all())


def _note(
    found: Found, settings: Settings, place: Environment, policy: Policy, shared_seed: int, spread: float | None
) -> Note | None:
    name, units = baseline_name(settings, place), place.scale
    gain = 0.0 if found.baseline is None else found.best - found.baseline
    if gain < -TIE:
        among = " that the log supports" if place.id == ID else ""
        text = f"{name} earns more than any policy{among}: there is nothing to gain"
        return Note("the baseline earns more than any policy", text)
    if spread is not None and spread <= TIE:
        return Note("all policies earn the same", "all policies earn the same here: there is nothing to choose")
    if found.baseline is None or found.epsilon is None:  # an older receipt
        return every_policy(spread, settings.epsilon, None, units)
    least = LEAST_GAIN * place.criterion.effective_horizon
    useful = DEFAULT_QUALITY if settings.quality is None and gain > least else None
    every = every_policy(spread, found.epsilon, useful, units)
    if every is not None:
        return every
    if gain <= TIE:
        text = f"{name} earns as much as any policy: there is nothing to gain"
        return Note("the baseline earns as much as any policy", text)
    ask = _ask(gain, useful)
    same = _is_baseline(settings, place, policy, shared_seed)
    if same or found.value <= found.baseline + TIE:
        what = f"the policy is the baseline, {name}" if same else f"the policy earns no more than {name}"
        why = f"the best policy earns {units * gain:.3g} more, and {units * found.epsilon:.3g} may be lost"
        return Note("it is the baseline" if same else "no more than the baseline", f"{what}: {why}; ask for {ask}")
    if settings.quality is not None and gain < least:
        why = f"a quality counts at least {units * least:.3g} as the gain"
        return Note(
            "hardly any gain",
            f"the best policy earns only {units * gain:.3g} more than {name}, and {why}; ask for {ask}",
        )
    return None


def every_policy(spread: float | None, epsilon: float | None, quality: float | None, units: float) -> Note | None:
    """Say that every policy would do, where that is so."""
    if spread is None or epsilon is None or spread > epsilon:
        return None
    why = f"the best and the worst differ by {units * spread:.3g}, and {units * epsilon:.3g} may be lost"
    return Note("every policy would do", f"every policy would do: {why}; ask for {_ask(units * spread, quality)}")


def _ask(range: float, quality: float | None) -> str:
    """Name a goal that is not met so easily: a quality, or an ε in reward units."""
    return f"epsilon={_EASY * range:.2g}" if quality is None else f"quality={quality:g}"
