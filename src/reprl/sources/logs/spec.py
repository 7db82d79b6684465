"""LogSpec: what two teams with logs of their own must share, and what a recipe keeps of it."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reprl.errors import InputError, check_choice, check_int, check_real, quote
from reprl.mdp.criterion import Criterion
from reprl.mdp.labels import Labels, RewardMap
from reprl.sources.environment import Environment
from reprl.sources.gymnasium.model import REWARD_STEP, check_range
from reprl.storage.documents import MAX_TEXT, digest

ID = "log"
"""The id of an environment that is known by its log alone."""
ENDED = "ended"
"""One more state, the last: where an episode is after it is done; there it pays 0 in original units."""
_PLAIN = ("discount", "length", "early_ends", "done_at_limit")
_OPTIONS = ("states", "actions", "reward_range", "reward_step", "support", "reach", "columns", "allowed", *_PLAIN)
_MOST_STEPS = 1 << 20
EARLY_ENDS = ("terminated", "censored")
LIMITS = ("unknown", "truncated", "terminated")
MISSING = frozenset(("", "NA", "N/A", "#N/A", "<NA>", "NaN", "nan", "NULL", "null", "None", "n/a"))
"""Texts that stand for nothing, unless a label is said to be called so."""
NUMERAL = re.compile(r"-?[0-9]{1,18}(\.[0-9]*)?")
_WHOLE = re.compile(r"(-?[0-9]+)\.0*")


@dataclass(frozen=True, kw_only=True)
class LogSpec:
    """The world as a log shows it, before any row of it: the same in every run of a recipe."""

    horizon: int
    """H; later rows of an episode are left out. 1 with a discount."""
    states: tuple[str, ...]
    """Labels of the states, as texts; their numbers are their places."""
    actions: tuple[str, ...]
    reward_range: tuple[float, float] = (0.0, 1.0)
    """(low, high) in original units, mapped to [0, 1]; it must contain 0, which an ended episode pays."""
    reward_step: float = REWARD_STEP
    """Rescaled rewards are rounded to multiples of this, so that the table of outcomes stays finite."""
    support: float = 0.2
    """Relative share of an action, to the most usual one of its cell, from which it counts as well supported."""
    reach: float = 0.005
    """Share of the episodes that must come to a state at a step for it to count as known."""
    allowed: tuple[tuple[int, ...], ...] | None = None
    """For each state the numbers of the actions that may be taken there, rising; None for all. Also given as a
    mapping from labels of states to labels of actions."""
    discount: float | None = None
    """γ of a world without an end, whose law does not depend on the step; None where there is a horizon."""
    length: int | None = None
    """With a discount, how many rows of an episode count; None for all of them."""
    early_ends: str | None = None
    """What episodes are that stop before the horizon without a flag: "terminated" if they were over, "censored" if they
    were no longer observed; None refuses them where no column says where they led."""
    done_at_limit: str | None = None
    """What `done` in the row of the last step says where rows tell about every step and no other column says it:
    "truncated" for a time limit, "terminated" for an end, "unknown" to leave these rows out. The last step is that of
    the horizon, or of the length with a discount, never that of the longest episode: logs of any size are read alike.
    None for "unknown", and for "terminated" where no last step is declared."""

    def __post_init__(self) -> None:
        """Check every field."""
        object.__setattr__(self, "discount", self.criterion.discount)
        check_int("horizon", self.horizon, 1, self.criterion.either(10**6, 1))
        if self.length is not None:
            self.criterion.require_discount(f"length must come with a discount, got {quote(self.length)}")
            check_int("length", self.length, 1, 2**62)
        elif self.criterion.stationary and self.done_at_limit == "truncated":
            told = "done_at_limit='truncated'"
            raise InputError(f"horizon must be given, the time limit in rows, with a discount and {told}, got none")
        for name, words in (("early_ends", EARLY_ENDS), ("done_at_limit", LIMITS)):
            if getattr(self, name) is not None:
                check_choice(name, getattr(self, name), words)
        for name in ("states", "actions"):
            labels = check_labels(name, getattr(self, name))
            object.__setattr__(self, name, labels)
        low, high = check_range(self.reward_range)
        object.__setattr__(self, "reward_range", (low, high))
        step = check_real("reward_step", self.reward_step, 0.0, 1.0, open_high=False)
        if abs(1.0 / step - round(1.0 / step)) > 1e-9 or step < 1.0 / _MOST_STEPS:
            raise InputError(f"reward_step must be 1 over a whole number up to {_MOST_STEPS}, got {self.reward_step:g}")
        check_real("support", self.support, 0.0, 1.0, open_high=False)
        check_real("reach", self.reach, 0.0, 1.0)
        if self.allowed is not None:
            object.__setattr__(self, "allowed", _check_allowed(self.allowed, self.states, self.actions))
        cells = self.horizon * self.n_states * self.n_actions
        if cells > 2**28 or cells * self.n_states * (self.reward_steps + 1) >= 2**62:
            sizes = f"{self.horizon} steps, {len(self.states)} states, {self.n_actions} actions"
            raise InputError(f"log must have at most 2**28 cells and 2**62 possible outcomes, got {sizes}")

    @cached_property
    def criterion(self) -> Criterion:
        """What policies are judged by."""
        return Criterion.of(self.horizon, self.discount)

    @property
    def n_states(self) -> int:
        """S: the labels, and "ended"."""
        return len(self.states) + 1

    @property
    def n_actions(self) -> int:
        """A."""
        return len(self.actions)

    @property
    def ended(self) -> int:
        """The number of the state "ended"."""
        return len(self.states)

    @property
    def kept(self) -> int:
        """How many rows of an episode count, from the first."""
        return self.criterion.either(self.horizon, self.length or 2**62)

    @property
    def piece(self) -> int:
        """Rows that are redrawn together: those of an episode; with a discount, what counts of so many that follow."""
        return self.criterion.episode_length

    @property
    def reward_map(self) -> RewardMap:
        """How rewards come to [0, 1]."""
        return RewardMap(*self.reward_range)

    @property
    def reward_steps(self) -> int:
        """Steps of the grid of rewards in [0, 1]."""
        return round(1.0 / self.reward_step)

    def round_reward(self, reward: Any) -> Any:
        """Return the number of the step that an original reward, or an array of them, is rounded to."""
        return np.rint(self.reward_map.forward(reward) * self.reward_steps)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of every field."""
        return digest({"format": "reprl-log 1", **self._document()})

    def _document(self) -> dict[str, Any]:
        return {
            "horizon": self.horizon,
            "states": list(self.states),
            "actions": list(self.actions),
            "reward_range": [float(bound) for bound in self.reward_range],
            "reward_step": float(self.reward_step),
            "support": float(self.support),
            "reach": float(self.reach),
            "allowed": None if self.allowed is None else [list(actions) for actions in self.allowed],
            **{name: getattr(self, name) for name in _PLAIN},
        }

    def mask(self) -> NDArray[np.bool_] | None:
        """Return what may be done, (H, S, A); None if everything may. An episode that is over may do anything."""
        if self.allowed is None:
            return None
        may = np.zeros((self.n_states, self.n_actions), dtype=np.bool_)
        for s, actions in enumerate(self.allowed):
            may[s, list(actions)] = True
        may[self.ended] = True
        return np.broadcast_to(may, (self.horizon, *may.shape))

    def environment(self, columns: Mapping[str, str]) -> Environment:
        """Return the record of it, with the columns that it was read from, which no digest of the world depends on."""
        options = {name: value for name, value in self._document().items() if name != "horizon"}
        labels = Labels(name=ID, states=(*self.states, ENDED), actions=self.actions, reward_map=self.reward_map)
        return Environment(
            id=ID,
            options={**options, "columns": dict(columns)},
            criterion=self.criterion,
            n_states=self.n_states,
            n_actions=self.n_actions,
            digest=self.digest,
            labels=labels,
            stationary=self.criterion.stationary,  # whoever gives a discount says so
        )

    @classmethod
    def of(cls, environment: Environment) -> LogSpec:
        """Return what a recipe says of a log."""
        options = dict(environment.options)
        if set(options) != set(_OPTIONS) or not isinstance(options["columns"], Mapping):
            raise InputError(f"options of a log must be {', '.join(_OPTIONS)}; got {quote(list(options))}")
        del options["columns"]
        spec = cls(horizon=environment.horizon, **options)
        found = (spec.n_states, spec.n_actions, spec.discount, spec.digest)
        stated = (environment.n_states, environment.n_actions, environment.discount, environment.digest)
        if found != stated:
            raise InputError(f"sizes, discount and digest of a log must be {found} for these labels, got {stated}")
        return spec


def _check_allowed(allowed: object, states: tuple[str, ...], actions: tuple[str, ...]) -> tuple[tuple[int, ...], ...]:
    """Return what may be done in each state as rising numbers, from such lists, (S, A) booleans or labels."""
    if isinstance(allowed, Mapping):
        allowed = _numbers(labels_allowed(allowed), states, actions)
    rows: list[Any] = list(allowed) if isinstance(allowed, Iterable) and not isinstance(allowed, str) else []
    if len(rows) != len(states):
        wanted = f"({len(states)}, {len(actions)}) booleans, or actions for each of the {len(states)} states"
        raise InputError(f"allowed must be {wanted}, got {quote(allowed)}")
    found = []
    for s, row in enumerate(rows):
        items = np.asarray(row)
        if items.dtype.kind == "b" and items.shape == (len(actions),):
            items = np.flatnonzero(items)
        if items.ndim != 1 or not items.size or items.dtype.kind not in "iu":
            raise InputError(f"allowed[{s}] must hold at least one action, by number or booleans, got {quote(row)}")
        numbers = sorted({check_int(f"allowed[{s}]", int(a), 0, len(actions) - 1) for a in items})
        found.append(tuple(numbers))
    return tuple(found)


def labels_allowed(allowed: Mapping[Any, Any]) -> dict[str, tuple[str, ...]]:
    """Return what may be done, by labels of states and actions, as texts."""
    found: dict[str, tuple[str, ...]] = {}
    for state, actions in allowed.items():
        name = text_of("allowed", state)
        if name in found:
            raise InputError(f"allowed must name every state once, got {quote(name)} twice")
        found[name] = check_labels(f"allowed[{quote(name)}]", actions)
    return found


def _numbers(
    allowed: Mapping[str, Sequence[str]], states: tuple[str, ...], actions: tuple[str, ...]
) -> list[list[int]]:
    """The numbers of the actions that may be taken in each state."""
    places = {text: a for a, text in enumerate(actions)}
    for name in allowed.keys() - set(states):
        raise InputError(f"allowed must name states among {_few(states)}; got {quote(name)}")
    rows = []
    for state in states:
        if state not in allowed:
            raise InputError(f"allowed must say what may be done in every state, got nothing for {quote(state)}")
        for action in allowed[state]:
            if action not in places:
                raise InputError(
                    f"allowed[{quote(state)}] must name actions among {_few(actions)}; got {quote(action)}"
                )
        rows.append([places[action] for action in allowed[state]])
    return rows


def _few(texts: Sequence[str]) -> str:
    return ", ".join(quote(text, 20) for text in texts[:5]) + (", …" if len(texts) > 5 else "")


def check_labels(name: str, labels: object) -> tuple[str, ...]:
    """Return labels as texts, each once."""
    if isinstance(labels, str) or not isinstance(labels, Iterable):
        raise InputError(f"{name} must be a list of labels, got {quote(labels)}")
    texts = tuple(text_of(name, label) for label in labels)
    if not texts:
        raise InputError(f"{name} must be a list of at least one label, got none")
    seen: set[str] = set()
    for text in texts:
        if text in seen:
            raise InputError(f"{name} must name every label once, got {quote(text)} twice")
        seen.add(text)
    return texts


def text_of(name: str, label: object) -> str:
    """Return a label as the text that it is known by in every file format: 3, 3.0 and "3" are "3"."""
    if isinstance(label, np.generic):
        label = label.item()
    if isinstance(label, float) and math.isfinite(label) and label == int(label):
        label = int(label)
    text = label.decode("utf-8", "replace") if isinstance(label, bytes) else str(label)
    if whole := _WHOLE.fullmatch(text):
        text = whole[1]
    if not text or len(text) > MAX_TEXT:
        raise InputError(f"{name} must have 1 to {MAX_TEXT} characters, got {quote(label)}")
    return text
