"""Settings: everything that two runs must share, checked once: what is asked, and the rule with its own options."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, NamedTuple, TypedDict, get_args

import numpy as np
from numpy.typing import NDArray

from reprl.coupling.mechanisms import MECHANISMS, MechanismName
from reprl.coupling.spec import COUPLINGS, Coupling
from reprl.errors import InputError, check_choice, check_int, check_probability, check_real, quote, refuse
from reprl.guarantee import Asked
from reprl.mdp.criterion import Criterion
from reprl.paper.constants import DEFAULT_SCALE, PRESETS, Constants, Preset, Task, scale_within
from reprl.paper.rep_var_bandit import Decision
from reprl.rule.preference import check_preference, resolve_preference
from reprl.search.settings import SearchOptions
from reprl.sources.access import WAYS
from reprl.sources.protocol import ACCESSES, Access

Rule = Literal["soft", "paper"]
RULES = get_args(Rule)
DEFAULT_QUALITY = 0.9
"""Quality of the default rule where neither it nor ε is given."""
PAPER_EPSILON = 0.3
"""ε of the paper's rule where none is given."""
PAPER_ONLY = ("coupling", "mechanism", "constants", "scale", "samples", "boosted")
"""Fields that only the rule "paper" has a use for."""
PROVEN = {"access": "episodic", "mechanism": "compact", "coupling": "joint", "boosted": False}
"""What the proof behind constants="proven" is about."""


class LearnerOptions(TypedDict, total=False):
    """The fields of ``Settings`` that are a learner's own business, as keywords that type checkers and editors know."""

    quality: float | None
    epsilon: float | None
    baseline: Any
    delta: float
    rule: Rule
    preference: str | Sequence[int | str] | None
    stationary: bool | None
    min_probability: float
    coupling: Coupling
    mechanism: MechanismName
    constants: Preset
    scale: float | None
    samples: int | None
    boosted: bool


class LearnOptions(LearnerOptions, SearchOptions, total=False):
    """Every field of ``Settings``, and of a search, as a keyword; what each means is written there."""

    rho: float
    access: Access


class Paper(NamedTuple):
    """What is asked of the paper's rule, its options, which ``Settings`` describes, and what follows from them."""

    asked: Asked
    access: Access
    coupling: Coupling
    mechanism: MechanismName
    constants: Preset
    scale: float | None
    samples: int | None
    boosted: bool

    def check(self) -> None:
        """Check every field, and refuse what has no use for the constants."""
        check_choice("coupling", self.coupling, COUPLINGS)
        check_choice("mechanism", self.mechanism, MECHANISMS)
        check_choice("constants", self.constants, PRESETS)
        if self.constants != "scaled":
            refuse("unless constants='scaled'", scale=self.scale, samples=self.samples)
        if self.scale is not None:
            check_real("scale", self.scale, 0.0, 1.0, open_high=False)
            refuse("where scale is given", samples=self.samples)
        if self.samples is not None:
            check_int("samples", self.samples, 1, 2**62)
        if self.constants == "proven":
            for name, wanted in PROVEN.items():
                if (value := getattr(self, name)) != wanted:
                    raise InputError(f"{name} must be {wanted!r} for constants='proven', got {quote(value)}")
        if self.boosted and self.asked.rho >= 0.5:
            raise InputError(f"rho must lie in (0, 0.5) for a boosted learner, got {self.asked.rho:g}")

    @property
    def explores(self) -> bool:
        """Whether its policies decide where samples go."""
        return WAYS[self.access].plays

    @property
    def decision(self) -> Decision:
        """The decision rule: Algorithm 1, with rounded values."""
        return Decision(mechanism=self.mechanism, coupling=self.coupling)

    def task(self, n_states: int, n_actions: int, horizon: int) -> Task:
        """Return what the paper's constants are computed for."""
        return Task(
            n_states,
            n_actions,
            horizon,
            epsilon=self.asked.epsilon,
            rho=self.asked.rho,
            delta=self.asked.delta if self.constants == "proven" else self.asked.failure,
            access=self.access,
            coupling=self.coupling,
            boosted=self.boosted,
        )

    def constants_for(self, n_states: int, n_actions: int, horizon: int, unit: int) -> Constants:
        """Return every constant of a run; unit is what a parallel call, or an episode, costs in samples."""
        task = self.task(n_states, n_actions, horizon)
        if self.constants == "scaled":
            scale = DEFAULT_SCALE if self.scale is None else self.scale
            return Constants.scaled(scale if self.samples is None else scale_within(self.samples // unit, task), task)
        return Constants.proven(task) if self.constants == "proven" else Constants.paper(task)


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What a learner is asked for, and the rule that it uses. The same in every run of a recipe."""

    epsilon: float | None = None
    """Accuracy, instead of a quality: the policy's return is within ε of the best, in units of the rewards. 0.3 of the
    width of the reward range for "paper" if it is left out."""
    rho: float = 0.1
    """Allowed probability that two runs learn different policies."""
    delta: float = 0.1
    """Allowed probability that the policy misses the quality or accuracy."""
    access: Access = None  # type: ignore[assignment]  # resolved when made
    """How the environment is sampled: "episodic" (reset and step) or "generative" (parallel sampling). "episodic" if it
    is left out, but for rule "paper" with constants "paper" or "scaled"."""
    rule: Rule = "soft"
    """"soft" (the default rule: docs/rule.md) or "paper" (the paper's algorithm)."""
    preference: str | tuple[int | str, ...] | None = None
    """For "soft": the order in which equally good actions are taken. None by index, "shared" (random, from ξ), or
    all actions by index or name, most preferred first."""
    stationary: bool | None = None
    """For "soft": whether a sample of (state, action) counts at every step. True, False, or None: as a table's arrays
    show; yes for a Gymnasium environment; no for a log. Samples that contradict it take away "same policy" alone."""
    min_probability: float = 0.0
    """For "soft", assumed: no outcome of a state and action that matters is rarer. 0 assumes nothing."""
    coupling: Coupling = "joint"
    """For "paper": "joint" (all states drawn together) or "product" (each by itself, in polynomial time)."""
    mechanism: MechanismName = "compact"
    """For "paper": "compact" or "exponential"."""
    constants: Preset = "paper"
    """For "paper": "paper" (the paper's sizes, with parallel samples), "scaled" (the same at sizes that can be run;
    nothing is promised) or "proven" (by episodes from one start; very small MDPs)."""
    scale: float | None = None
    """For "scaled": in (0, 1], the power to which the constants and logarithms of the paper's sizes are raised. 0.1 if
    neither it nor samples is given."""
    samples: int | None = None
    """For "scaled": a budget, instead of a scale; the largest scale within it is taken. Episodes are paid for in full
    beforehand; exploration ends many of them early, so less is spent."""
    boosted: bool = False
    """For "paper" and "scaled": many learners of ρ = 0.01, and a best arm among their common policies (Lemma 4.1)."""
    quality: float | None = None
    """For "soft": the policy earns at least this share of the gain of the best policy over the baseline.
    Default 0.9, unless ε is given."""
    baseline: Any = None
    """For "soft": the policy that a quality is measured from. A policy, its actions, (H, S) or (S,), a function of
    a state, or one action; None for always the first allowed action, or for a log its own practice."""

    def __post_init__(self) -> None:
        """Check every field that does not depend on the environment."""
        check_probability("rho", self.rho)
        check_probability("delta", self.delta)
        check_choice("rule", self.rule, RULES)
        if self.access is None:
            parallel = self.rule == "paper" and self.constants != "proven"
            object.__setattr__(self, "access", "generative" if parallel else "episodic")
        check_choice("access", self.access, ACCESSES)
        self._check_goal()
        check_real("min_probability", self.min_probability, 0.0, 1.0, open_low=False)
        if self.rule != "soft":
            refuse("unless rule='soft'", preference=self.preference, min_probability=self.min_probability or None)
        object.__setattr__(self, "preference", check_preference(self.preference))
        if self.stationary is not None and not isinstance(self.stationary, bool):
            raise InputError(f"stationary must be True, False or None, got {quote(self.stationary)}")
        if self.stationary and self.rule != "soft":
            raise InputError(f"stationary must be left out unless rule='soft', got {self.stationary}")
        if not isinstance(self.boosted, bool):
            raise InputError(f"boosted must be True or False, got {quote(self.boosted)}")
        if self.rule == "soft":
            for name in PAPER_ONLY:
                value, default = getattr(self, name), type(self).__dataclass_fields__[name].default
                if value != default:
                    raise InputError(f"{name} must be left out unless rule='paper', got {quote(value)}")
        else:
            self.paper.check()

    def _check_goal(self) -> None:
        """Check ε or the quality, and say what is asked for where neither is given."""
        if self.rule != "soft":
            refuse("unless rule='soft'", quality=self.quality, baseline=self.baseline)
        if self.quality is not None and self.epsilon is not None:
            raise InputError(
                f"quality must be left out where epsilon is given, got quality={quote(self.quality)} and "
                f"epsilon={quote(self.epsilon)}"
            )
        if self.quality is not None:
            check_real("quality", self.quality, 0.0, 1.0)
        elif self.epsilon is not None:
            check_real("epsilon", self.epsilon, 0.0, math.inf)
        elif self.rule == "soft":
            object.__setattr__(self, "quality", DEFAULT_QUALITY)
        else:
            object.__setattr__(self, "epsilon", PAPER_EPSILON)

    @property
    def asked(self) -> Asked:
        """What is asked for."""
        return Asked(self.epsilon or 0.0, self.rho, self.delta, self.quality)

    def check_accuracy(self, criterion: Criterion) -> None:
        """Refuse an ε that every policy has."""
        if self.epsilon is not None:
            criterion.check_epsilon(self.epsilon)

    def baseline_actions(self, shape: tuple[int, int, int]) -> NDArray[np.int64] | None:
        """Return the baseline, as ``resolve_baseline`` makes it, as (H, S) actions; None for the rule's own."""
        if self.baseline is None:
            return None
        return np.ascontiguousarray(np.broadcast_to(np.array(self.baseline, dtype=np.int64), shape[:2]))

    @property
    def paper(self) -> Paper:
        """The options of the paper's rule."""
        return Paper(self.asked, self.access, *(getattr(self, name) for name in PAPER_ONLY))

    def resolve_actions(self, actions: Sequence[str], n_actions: int) -> Settings:
        """Return the settings with the preference, if it is a list, as action numbers."""
        return replace(self, preference=resolve_preference(self.preference, actions, n_actions))

    def resolve_stationarity(self, world: object) -> Settings:
        """Return the settings with `stationary` resolved: as the user says, or as a table shows; yes for a black box.

        This is the one place that decides whether steps are pooled.
        """
        if self.stationary is not None or self.rule != "soft":
            return self
        shown = getattr(world, "stationary", None)  # None: a black box, which shows nothing
        return replace(self, stationary=True if shown is None else bool(shown))

    def to_dict(self) -> dict[str, Any]:
        """Return the fields by name, for recipes."""
        return {field.name: getattr(self, field.name) for field in fields(self)}
