"""Settings: everything that two runs must share, checked once."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, TypedDict

from reprl.coupling.custom import Coupling, Mechanism, check_custom
from reprl.coupling.mechanisms import MECHANISMS
from reprl.coupling.spec import COUPLINGS, DEFAULT_BLOCK, CouplingSpec
from reprl.errors import InputError, check_choice, check_int, check_probability, check_real, hint, quote
from reprl.guarantee import Asked, Guarantee
from reprl.mdp.tiers import Tiers
from reprl.paper.constants import DEFAULT_SCALE, PRESETS, SHAPES, Constants, Task
from reprl.paper.rep_rl_bandit import Accuracy
from reprl.paper.rep_var_bandit import ROUNDINGS, Decision
from reprl.sources.protocol import is_stationary

ACCESSES = ("episodic", "generative")
RULES = ("canonical", "sampled")
SAMPLED_ONLY = ("coupling", "block", "mechanism", "rounding", "constants", "scale", "shape", "calls", "runs")
"""Fields that only the rule "sampled" has a use for."""


class LearnerOptions(TypedDict, total=False):
    """The fields of ``Settings`` that are a learner's own business, as keywords that type checkers and editors know."""

    epsilon: float
    epsilon_units: str
    delta: float
    rule: str
    preference: str | Sequence[int | str] | None
    stationary: bool | None
    coupling: str | Coupling
    block: int
    mechanism: str | Mechanism
    rounding: str
    constants: str
    scale: float
    shape: str
    calls: int | None
    runs: int | None


class LearnOptions(LearnerOptions, total=False):
    """Every field of ``Settings`` as a keyword; what each means, and its default, is written there."""

    rho: float
    access: str


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What a learner is asked for, and how it shall decide. The same in every run of a recipe."""

    epsilon: float = 0.3
    """Accuracy: the policy's value is within ε of the best, in units of value (0 < ε ≤ H)."""
    rho: float = 0.1
    """Allowed probability that two runs end in different policies."""
    delta: float = 0.1
    """Allowed probability that the accuracy is missed."""
    access: str = "episodic"
    """How the environment is sampled: "episodic" (reset and step) or "generative" (parallel sampling)."""
    rule: str = "canonical"
    """"canonical" (the world's own policy, found by comparisons) or "sampled" (the paper's, drawn from laws)."""
    preference: str | tuple[int | str, ...] | None = None
    """Which of two actions that are as good is taken, for "canonical": None by index, "shared" (random, from ξ), or all
    actions by index or name, best first."""
    stationary: bool | None = None
    """Whether a sample of (state, action) counts at every step, for "canonical": True if you say so, False, or None for
    what the environment shows."""
    coupling: str | Coupling = "auto"
    """"joint", "blocked", "product", "auto" (joint or blocked by the sizes (S, A, H) alone), or your own function."""
    block: int = DEFAULT_BLOCK
    """Coordinates per block for "blocked"."""
    mechanism: str | Mechanism = "compact"
    """"compact", "exponential", or a function of your own."""
    rounding: str = "none"
    """"none" (only the policy replicates), "vector" or "grid" (the values do too)."""
    constants: str = "practical"
    """"practical" (sizes by rehearsal), "paper" (proven, where its constants are known) or "scaled" (the paper's whole
    algorithm at sizes that can be played; nothing is promised)."""
    scale: float = DEFAULT_SCALE
    """For "scaled": the share of its digits that every slack of the paper's sizes keeps, in (0, 1]."""
    shape: str = "auto"
    """For "paper" and "scaled": "boosted" (learners of ρ = 0.01, boosted to ρ, as the paper does it), "direct" (ρ is
    asked of one learner), or "auto": direct for the paper's parallel samples, boosted otherwise."""
    calls: int | None = None
    """Parallel calls, for access "generative"; None for the preset's; by hand, nothing is rehearsed or promised."""
    runs: int | None = None
    """Exploration runs, for access "episodic"; None for the preset's; by hand, nothing is rehearsed or promised."""

    def __post_init__(self) -> None:
        """Check every field that does not depend on the environment."""
        check_real("epsilon", self.epsilon, 0.0, math.inf)
        check_probability("rho", self.rho)
        check_probability("delta", self.delta)
        check_choice("access", self.access, ACCESSES)
        check_choice("rule", self.rule, RULES)
        object.__setattr__(self, "preference", _checked_preference(self.preference, self.rule))
        if self.stationary is not None and not isinstance(self.stationary, bool):
            raise InputError(f"stationary must be True, False or None, got {quote(self.stationary)}")
        if self.stationary and self.rule != "canonical":
            raise InputError(f"stationary must be left out unless rule='canonical', got {self.stationary}")
        check_custom("coupling", self.coupling, COUPLINGS)
        check_int("block", self.block, 1)
        check_custom("mechanism", self.mechanism, MECHANISMS)
        check_choice("rounding", self.rounding, ROUNDINGS)
        check_choice("constants", self.constants, PRESETS)
        check_real("scale", self.scale, 0.0, 1.0, open_high=False)
        check_choice("shape", self.shape, SHAPES)
        for name, access, most in (("calls", "generative", 2**62), ("runs", "episodic", 2**31)):
            number = getattr(self, name)
            if number is not None and self.access != access:
                raise InputError(f"{name} must be left out unless access={access!r}, got {quote(number)}")
            if number is not None:
                check_int(name, number, 1, most)
        if self.rule == "canonical":
            for name in SAMPLED_ONLY:
                value, default = getattr(self, name), type(self).__dataclass_fields__[name].default
                if value != default:
                    raise InputError(f"{name} must be left out unless rule='sampled', got {quote(value)}")
        else:
            self._check_whole()

    def _check_whole(self) -> None:
        """Refuse what has no use for the preset, and sizes by hand where the paper's whole algorithm is run."""
        if self.constants != "scaled" and self.scale != DEFAULT_SCALE:
            raise InputError(f"scale must be left out unless constants='scaled', got {self.scale:g}")
        if self.constants == "practical" and self.shape != "auto":
            raise InputError(f"shape must be left out unless constants='paper' or 'scaled', got {self.shape!r}")
        if self.boosted and self.rho >= 0.5:
            raise InputError(f"rho must lie in (0, 0.5) for a boosted learner, got {self.rho:g}")
        for name in ("calls", "runs"):
            if self.whole and getattr(self, name) is not None:
                raise InputError(
                    f"{name} must be left out with constants={self.constants!r} and shape={self.shape!r}, whose sizes "
                    f"are the paper's, got {quote(getattr(self, name))}"
                )

    @property
    def asked(self) -> Asked:
        """What is asked for."""
        return Asked(self.epsilon, self.rho, self.delta)

    @property
    def boosted(self) -> bool:
        """Whether learners of ρ = 0.01 are boosted to ρ."""
        auto = self.constants == "scaled" or (self.constants == "paper" and self.access == "episodic")
        return self.shape == "boosted" or (self.shape == "auto" and auto)

    @property
    def whole(self) -> bool:
        """Whether the paper's algorithm is run as a whole, and not only its induction on parallel samples."""
        return self.constants == "scaled" or (self.constants == "paper" and (self.access == "episodic" or self.boosted))

    def task(self, n_states: int, n_actions: int, horizon: int) -> Task:
        """Return what the paper's constants are computed for."""
        return Task(
            n_states,
            n_actions,
            horizon,
            epsilon=self.epsilon,
            rho=self.rho,
            delta=self.failure,
            access=self.access,
            partition=self.coupling_spec(n_states * horizon, 2),
            arms=self.coupling_spec(n_states, n_actions),
            boosted=self.boosted,
        )

    def constants_for(self, n_states: int, n_actions: int, horizon: int) -> Constants:
        """Return every constant of a run of the paper's whole algorithm with these settings."""
        task = self.task(n_states, n_actions, horizon)
        return Constants.paper(task) if self.constants == "paper" else Constants.scaled(self.scale, task)

    def numbered(self, actions: Sequence[str], n_actions: int) -> Settings:
        """Return the settings with the preference, if it is a list, as action numbers.

        Args:
            actions: their names, as far as they have any.
            n_actions: A.
        """
        if self.preference is None or isinstance(self.preference, str):
            return self
        known = {name: number for number, name in reversed([*enumerate(actions)])}
        numbers = [_number(item, known, n_actions) for item in self.preference]
        given = Counter(numbers)
        for a in range(n_actions):  # ends at the first that is missing, however many a recipe claims
            if given[a] != 1:
                name = quote(actions[a]) if a < len(actions) else a
                times = f"it comes {given[a]} times" if given[a] else "it is missing"
                raise InputError(
                    f"preference must name every action once, got {quote(self.preference)}: {name}, {times}"
                )
        return replace(self, preference=tuple(numbers))

    def pooling(self, world: object, *, apart: bool = False) -> Settings:
        """Return the settings with `stationary` settled: what the user says, or what a world, or a model of it, shows.

        This is the one place that decides whether steps are pooled. `apart` for a run that is to be certified: a proof
        by steps needs samples of their own at every step, so nothing is pooled unless the user says so.
        """
        shown = self.rule == "canonical" and not apart and is_stationary(world)
        return replace(self, stationary=shown if self.stationary is None else self.stationary)

    def coupling_spec(self, n_coordinates: int, n_outcomes: int) -> CouplingSpec:
        """Return how coordinates are coupled, with "auto" resolved by the sizes."""
        return CouplingSpec.resolve(self.coupling, self.block, n_coordinates, n_outcomes)

    def decision(self, n_coordinates: int, n_outcomes: int) -> Decision:
        """Return the decision rule, with "auto" resolved by the sizes."""
        spec = self.coupling_spec(n_coordinates, n_outcomes)
        return Decision(mechanism=self.mechanism, coupling=spec.method, block=spec.block, rounding=self.rounding)

    @property
    def failure(self) -> float:
        """δ of the induction: at most ρ, since a failure may also part two runs."""
        return min(self.delta, self.rho)

    def accuracy(self, tiers: Tiers) -> Accuracy:
        """Return how the preset shares ε out over a partition."""
        share = Accuracy.paper if self.constants == "paper" else Accuracy.practical
        return share(self.epsilon, tiers.level.shape[0], tiers.count)

    def promise(self, status: str, source: str) -> Guarantee:
        """Return the asked figures with a status."""
        return self.asked.promise(status, source)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields by name, for recipes; functions of one's own as they are."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


def _checked_preference(value: object, rule: str) -> str | tuple[int | str, ...] | None:
    """Return a preference in its canonical type; which actions there are is not known yet."""
    if value is None:
        return None
    if rule != "canonical":
        raise InputError(f"preference must be left out unless rule='canonical', got {quote(value)}")
    if value == "shared":
        return "shared"
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise InputError(f"preference must be None, 'shared' or a list of all actions, best first, got {quote(value)}")
    return tuple(item if isinstance(item, str) else check_int("preference", item, 0) for item in value)


def _number(item: int | str, names: Mapping[str, int], n_actions: int) -> int:
    """The number of an action that is given by number or name."""
    if isinstance(item, str):
        if item not in names:
            known = ", ".join(map(quote, names)) or f"numbers from 0 to {n_actions - 1}, as the actions have no names"
            raise InputError(f"preference must name actions among {known}; got {quote(item)}{hint(item, names)}")
        return names[item]
    return check_int("preference", item, 0, n_actions - 1)
