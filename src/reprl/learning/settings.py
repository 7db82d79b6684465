"""Settings: everything that two runs must share, checked once: what is asked, and the rule with its own options."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, NamedTuple, TypedDict, get_args

import numpy as np
from numpy.typing import NDArray

from reprl.canonical.goal import DEFAULT_QUALITY, Goal
from reprl.canonical.preference import check_preference, resolve_preference
from reprl.coupling.custom import Coupling, Mechanism, check_custom
from reprl.coupling.mechanisms import MECHANISMS, MechanismName
from reprl.coupling.spec import COUPLINGS, DEFAULT_BLOCK, CouplingName, CouplingSpec
from reprl.errors import InputError, check_choice, check_int, check_probability, check_real, quote, refuse
from reprl.guarantee import Asked, check_agreement
from reprl.learning.accuracy import EpsilonUnits
from reprl.mdp.criterion import Criterion
from reprl.mdp.tiers import Tiers
from reprl.paper.constants import DEFAULT_SCALE, PRESETS, SHAPES, Constants, Preset, Shape, Task
from reprl.paper.rep_rl_bandit import Accuracy
from reprl.paper.rep_var_bandit import ROUNDINGS, Decision, Rounding
from reprl.search.settings import SearchOptions
from reprl.sources.access import WAYS
from reprl.sources.protocol import ACCESSES, Access

Rule = Literal["canonical", "sampled"]
RULES = get_args(Rule)
PAPER_EPSILON = 0.3
"""ε of the paper's rule where none is given."""
SAMPLED_ONLY = ("coupling", "block", "mechanism", "rounding", "constants", "scale", "shape", "calls", "runs")
"""Fields that only the rule "sampled" has a use for."""
SHARP = {"access": "episodic", "mechanism": "compact", "coupling": "joint", "rounding": "vector"}
"""What the proof behind constants="sharp" is about."""


class LearnerOptions(TypedDict, total=False):
    """The fields of ``Settings`` that are a learner's own business, as keywords that type checkers and editors know."""

    quality: float | None
    epsilon: float | None
    epsilon_units: EpsilonUnits
    baseline: Any
    delta: float
    rule: Rule
    preference: str | Sequence[int | str] | None
    stationary: bool | None
    coupling: CouplingName | Coupling
    block: int
    mechanism: MechanismName | Mechanism
    rounding: Rounding
    constants: Preset
    scale: float
    shape: Shape
    calls: int | None
    runs: int | None


SIZES: dict[str, tuple[str, int]] = {"generative": ("calls", 2**62), "episodic": ("runs", 2**31)}
"""Access → the field that sets a size by hand, and the most that it may be."""


class LearnOptions(LearnerOptions, SearchOptions, total=False):
    """Every field of ``Settings``, and of a search, as a keyword; what each means is written there."""

    rho: float
    agreement: float
    access: Access


class Paper(NamedTuple):
    """What is asked of the paper's rule, its options, which ``Settings`` describes, and what follows from them."""

    asked: Asked
    access: Access
    coupling: CouplingName | Coupling
    block: int
    mechanism: MechanismName | Mechanism
    rounding: Rounding
    constants: Preset
    scale: float
    shape: Shape
    calls: int | None
    runs: int | None

    def check(self) -> None:
        """Check every field."""
        check_custom("coupling", self.coupling, COUPLINGS)
        check_int("block", self.block, 1)
        check_custom("mechanism", self.mechanism, MECHANISMS)
        check_choice("rounding", self.rounding, ROUNDINGS)
        check_choice("constants", self.constants, PRESETS)
        check_real("scale", self.scale, 0.0, 1.0, open_high=False)
        check_choice("shape", self.shape, SHAPES)
        others = dict(SIZES)
        name, most = others.pop(self.access)
        for access, (other, _) in others.items():
            refuse(f"unless access={access!r}", **{other: getattr(self, other)})
        if (number := getattr(self, name)) is not None:
            check_int(name, number, 1, most)

    def check_preset(self) -> None:
        """Refuse what has no use for the preset, and sizes by hand where the paper's full algorithm is run."""
        if self.constants != "scaled" and self.scale != DEFAULT_SCALE:
            raise InputError(f"scale must be left out unless constants='scaled', got {self.scale:g}")
        if self.constants in ("practical", "sharp") and self.shape != "auto":
            raise InputError(f"shape must be left out unless constants='paper' or 'scaled', got {self.shape!r}")
        if self.constants == "sharp":
            for name, wanted in SHARP.items():
                if (value := getattr(self, name)) != wanted:
                    raise InputError(f"{name} must be {wanted!r} for constants='sharp', got {quote(value)}")
        if self.boosted and self.asked.rho >= 0.5:
            raise InputError(f"rho must lie in (0, 0.5) for a boosted learner, got {self.asked.rho:g}")
        for name, _ in SIZES.values():
            if self.full and (number := getattr(self, name)) is not None:
                raise InputError(
                    f"{name} must be left out with constants={self.constants!r} and shape={self.shape!r}, which fix "
                    f"all sizes, got {quote(number)}"
                )

    @property
    def explores(self) -> bool:
        """Whether its policies decide where samples go."""
        return WAYS[self.access].plays

    @property
    def boosted(self) -> bool:
        """Whether learners of ρ = 0.01 are boosted to ρ."""
        auto = self.constants == "scaled" or (self.constants == "paper" and self.explores)
        return self.shape == "boosted" or (self.shape == "auto" and auto)

    @property
    def full(self) -> bool:
        """Whether the paper's full algorithm is run, and not only its induction on parallel samples."""
        proven = self.constants == "paper" and (self.explores or self.boosted)
        return proven or self.constants in ("scaled", "sharp")

    def coupling_spec(self, n_coordinates: int, n_outcomes: int) -> CouplingSpec:
        """Return how coordinates are coupled, with "auto" resolved by the sizes."""
        return CouplingSpec.resolve(self.coupling, self.block, n_coordinates, n_outcomes)

    def decision(self, n_coordinates: int, n_outcomes: int) -> Decision:
        """Return the decision rule, with "auto" resolved by the sizes."""
        spec = self.coupling_spec(n_coordinates, n_outcomes)
        return Decision(mechanism=self.mechanism, coupling=spec.method, block=spec.block, rounding=self.rounding)

    def accuracy(self, tiers: Tiers) -> Accuracy:
        """Return how the preset shares ε out over a partition."""
        share = Accuracy.paper if self.constants == "paper" else Accuracy.practical
        return share(self.asked.epsilon, tiers.level.shape[0], tiers.count)

    def task(self, n_states: int, n_actions: int, horizon: int) -> Task:
        """Return what the paper's constants are computed for."""
        return Task(
            n_states,
            n_actions,
            horizon,
            epsilon=self.asked.epsilon,
            rho=self.asked.rho,
            delta=self.asked.delta if self.constants == "sharp" else self.asked.failure,
            access=self.access,
            partition=self.coupling_spec(n_states * horizon, 2),
            arms=self.coupling_spec(n_states, n_actions),
            boosted=self.boosted,
        )

    def constants_for(self, n_states: int, n_actions: int, horizon: int) -> Constants:
        """Return every constant of a run of the paper's full algorithm."""
        task = self.task(n_states, n_actions, horizon)
        if self.constants == "scaled":
            return Constants.scaled(self.scale, task)
        return Constants.sharp(task) if self.constants == "sharp" else Constants.paper(task)


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What a learner is asked for, and the rule that it uses. The same in every run of a recipe."""

    epsilon: float | None = None
    """Accuracy, instead of a quality: the policy's value is within ε of the best, in units of value (0 < ε ≤ H).
    0.3 for "sampled" if it is left out."""
    rho: float = 0.1
    """Allowed probability that two runs learn different policies; with agreement, that they agree at too few steps."""
    delta: float = 0.1
    """Allowed probability that the policy misses the quality or accuracy."""
    access: Access = "episodic"
    """How the environment is sampled: "episodic" (reset and step) or "generative" (parallel sampling)."""
    rule: Rule = "canonical"
    """"canonical" (the default rule: docs/canonical.md) or "sampled" (the paper's algorithm; "paper" means the
    same)."""
    preference: str | tuple[int | str, ...] | None = None
    """For "canonical": the order in which equally good actions are taken. None by index, "shared" (random, from ξ), or
    all actions by index or name, most preferred first."""
    stationary: bool | None = None
    """For "canonical": whether a sample of (state, action) counts at every step. True, False, or None: if the
    environment shows that its dynamics do not depend on the step; for a black box, until its samples contradict it."""
    coupling: CouplingName | Coupling = "auto"
    """"joint", "blocked", "product", "auto" (joint or blocked by the sizes (S, A, H) alone), or your own function."""
    block: int = DEFAULT_BLOCK
    """Coordinates per block for "blocked"."""
    mechanism: MechanismName | Mechanism = "compact"
    """"compact", "exponential", or a function of your own."""
    rounding: Rounding = "none"
    """"none" (only the policy replicates), "vector" or "grid" (the values do too)."""
    constants: Preset = "practical"
    """"practical" (sizes by rehearsal), "paper" (proven, with parallel samples), "scaled" (the paper's full algorithm
    at sizes that can be run; nothing is promised) or "sharp" (proven with episodes, from one start; coupling "auto" is
    then "joint", and rounding "none" is "vector")."""
    scale: float = DEFAULT_SCALE
    """For "scaled": in (0, 1], the power to which the constants and logarithms of the paper's sizes are raised."""
    shape: Shape = "auto"
    """For "paper" and "scaled": "boosted" (learners of ρ = 0.01, boosted to ρ, as in the paper), "direct" (one learner
    of ρ), or "auto": direct for "paper" with parallel samples, boosted otherwise."""
    calls: int | None = None
    """Parallel calls, for access "generative"; None for the preset's. A number set by hand is not rehearsed and
    promises nothing."""
    runs: int | None = None
    """Exploration runs, for access "episodic"; None for the preset's. A number set by hand is not rehearsed and
    promises nothing."""
    quality: float | None = None
    """For "canonical": the policy earns at least this share of the gain of the best policy over the baseline.
    Default 0.9, unless ε is given."""
    baseline: Any = None
    """For "canonical": the policy that a quality is measured from. A policy, its actions, (H, S) or (S,), a function of
    a state, or one action; None for always the most preferred action, or for a log its own practice."""
    agreement: float = 1.0
    """For "canonical": the share of an episode's steps at which two runs take the same action, with probability at
    least 1 − ρ; 1 for exactly the same policy."""

    def __post_init__(self) -> None:
        """Check every field that does not depend on the environment."""
        check_probability("rho", self.rho)
        check_probability("delta", self.delta)
        check_choice("access", self.access, ACCESSES)
        if str(self.rule) == "paper":
            object.__setattr__(self, "rule", "sampled")  # the word that recipes have
        check_choice("rule", self.rule, RULES)
        self._check_goal()
        check_agreement("agreement", self.agreement)
        if self.agreement < 1.0 and self.rule != "canonical":
            raise InputError(f"agreement must be 1 unless rule='canonical', got {self.agreement:g}")
        if self.rule != "canonical":
            refuse("unless rule='canonical'", preference=self.preference)
        object.__setattr__(self, "preference", check_preference(self.preference))
        if self.stationary is not None and not isinstance(self.stationary, bool):
            raise InputError(f"stationary must be True, False or None, got {quote(self.stationary)}")
        if self.stationary and self.rule != "canonical":
            raise InputError(f"stationary must be left out unless rule='canonical', got {self.stationary}")
        if self.rule == "sampled" and self.constants == "sharp":
            for name, usual in (("coupling", "auto"), ("rounding", "none")):
                if getattr(self, name) == usual:
                    object.__setattr__(self, name, SHARP[name])  # as the proof has it, and the recipe says
        self.paper.check()
        if self.rule == "canonical":
            for name in SAMPLED_ONLY:
                value, default = getattr(self, name), type(self).__dataclass_fields__[name].default
                if value != default:
                    raise InputError(f"{name} must be left out unless rule='sampled', got {quote(value)}")
        else:
            self.paper.check_preset()

    def _check_goal(self) -> None:
        """Check ε or the quality, and say what is asked for where neither is given."""
        if self.rule != "canonical":
            refuse("unless rule='canonical'", quality=self.quality, baseline=self.baseline)
        if self.quality is not None and self.epsilon is not None:
            raise InputError(
                f"quality must be left out where epsilon is given, got quality={quote(self.quality)} and "
                f"epsilon={quote(self.epsilon)}"
            )
        if self.quality is not None:
            check_real("quality", self.quality, 0.0, 1.0)
        elif self.epsilon is not None:
            check_real("epsilon", self.epsilon, 0.0, math.inf)
        elif self.rule == "canonical":
            object.__setattr__(self, "quality", DEFAULT_QUALITY)
        else:
            object.__setattr__(self, "epsilon", PAPER_EPSILON)

    @property
    def asked(self) -> Asked:
        """What is asked for."""
        return Asked(self.epsilon or 0.0, self.rho, self.delta, self.quality, self.agreement)

    @property
    def goal(self) -> Goal:
        """How much a policy of the canonical rule may lose."""
        return Goal(self.epsilon, self.quality)

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
        return Paper(self.asked, self.access, *(getattr(self, name) for name in SAMPLED_ONLY))

    def resolve_actions(self, actions: Sequence[str], n_actions: int) -> Settings:
        """Return the settings with the preference, if it is a list, as action numbers."""
        return replace(self, preference=resolve_preference(self.preference, actions, n_actions))

    def resolve_stationarity(self, world: object, *, certify: bool = False) -> Settings:
        """Return the settings with `stationary` resolved: as the user says, or as the environment shows.

        This is the one place that decides whether steps are pooled. A certificate by steps needs samples of their own
        at every step, so for one nothing is pooled unless the user says so. None is left for a black box.
        """
        if self.stationary is not None:
            return self
        shown = getattr(world, "stationary", False) if self.rule == "canonical" and not certify else False
        return replace(self, stationary=shown)

    @property
    def pooled(self) -> bool:
        """Whether samples count at every step, at least until they contradict it; of settled settings."""
        return self.stationary is not False

    def to_dict(self) -> dict[str, Any]:
        """Return the fields by name, for recipes; functions of one's own as they are."""
        return {field.name: getattr(self, field.name) for field in fields(self)}
