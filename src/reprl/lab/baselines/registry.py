"""The list of learners: every rival and reprl itself, by name, with their options."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple

from reprl.errors import InputError, check_choice, check_int, check_probability, check_real, hint, quote
from reprl.lab.baselines import generative, list_robust, optimistic, rmax
from reprl.learning.learner import ReprlLearner, make_settings
from reprl.learning.protocol import least_budget
from reprl.learning.settings import Settings
from reprl.mdp.policy import Policy
from reprl.randomness import SharedKey
from reprl.sources.protocol import check_model

OURS = ReprlLearner.name


class LearnerEntry(NamedTuple):
    """One learner: its name, a line about it, and what it takes."""

    name: str
    description: str
    access: tuple[str, ...]
    """The models that it can learn from: "generative", "episodic" or both."""
    replicable: bool
    """Whether it is built so that two runs with one shared key output one policy."""
    source: str
    options: Mapping[str, Any]
    """Name → default."""


class _Rival(NamedTuple):
    run: Callable[..., Policy]
    access: str
    replicable: bool
    source: str
    description: str


_EATON = "Eaton, Hussing, Kearns, Sorrell 2023"
_KARBASI = "Karbasi, Velegkas, Yang, Zhou 2023"

_RIVALS: dict[str, _Rival] = {
    "rpvi": _Rival(
        generative.rpvi,
        "generative",
        True,
        _EATON,
        "phased value iteration; every value is rounded on its own shifted grid",
    ),
    "karbasi-grid": _Rival(
        generative.karbasi_grid,
        "generative",
        True,
        _KARBASI,
        "an ordinary estimate of all values, rounded once on a shifted grid, then greedy",
    ),
    "karbasi-gaussian": _Rival(
        generative.karbasi_gaussian,
        "generative",
        True,
        _KARBASI,
        "an ordinary estimate plus Gaussian noise, then greedy; the noise shared or the policy drawn in common",
    ),
    "karbasi-softmax": _Rival(
        generative.karbasi_softmax,
        "generative",
        True,
        _KARBASI,
        "actions from a softmax of an ordinary estimate: approximately replicable, drawn with shared randomness",
    ),
    "list-robust": _Rival(
        list_robust.list_robust,
        "generative",
        True,
        "Zhang, Chen, Pavan, Vinodchandran, Yang, Wang 2025",
        "the first action within a random tolerance of the best, the tolerance drawn in common",
    ),
    "replicable-rmax": _Rival(
        rmax.replicable_rmax,
        "episodic",
        True,
        _EATON,
        "R-max in rounds: a shared threshold makes pairs known, shared grids freeze their model",
    ),
    "ucb-h": _Rival(
        optimistic.ucb_h,
        "episodic",
        False,
        "Jin, Allen-Zhu, Bubeck, Jordan 2018",
        "optimistic Q-learning with Hoeffding bonuses; greedy for the final table",
    ),
    "ucbvi": _Rival(
        optimistic.ucbvi,
        "episodic",
        False,
        "Azar, Osband, Munos 2017",
        "value iteration with upper confidence bounds, stage-dependent, Hoeffding bonus",
    ),
    "reward-free-ucbvi": _Rival(
        optimistic.reward_free_ucbvi,
        "episodic",
        False,
        "Kaufmann, Ménard, Domingues, Jonsson, Leurent, Valko 2021",
        "exploration that sees no reward, then backward induction in the empirical model",
    ),
    "greedy": _Rival(
        generative.greedy,
        "generative",
        False,
        "folklore",
        "equal samples per cell, empirical backward induction, lowest action on ties",
    ),
}


def learners() -> list[LearnerEntry]:
    """Return every learner, ours first, with its description, options and their defaults."""
    fields = Settings.__dataclass_fields__
    ours = LearnerEntry(
        OURS,
        "this package: the world's own policy by preference (rule=canonical), or one drawn in common (rule=sampled)",
        ("generative", "episodic"),
        True,
        "From Generative to Episodic: Sample-Efficient Replicable Reinforcement Learning",
        MappingProxyType({name: field.default for name, field in fields.items()} | {"samples": None}),
    )
    return [ours, *(_entry(name) for name in _RIVALS)]


def make_learner(name: str, **options: Any) -> ReprlLearner | Rival:
    """Return a learner by its name: a callable from (model, shared key) to a policy.

    Args:
        name: a name in `learners()`.
        options: the learner's own options; for a rival epsilon, rho and delta where they matter, constants
            ("practical" or "paper"), samples (a budget that is never passed; None for the preset's own number).

    Guarantee:
        The rivals' practical constants are heuristic, picked as docs/peers.md says; what "paper" promises is written
        with each rival.
    """
    if name == OURS:
        samples = options.pop("samples", None)
        return ReprlLearner(make_settings(options), samples)
    if not isinstance(name, str) or name not in _RIVALS:
        names = [OURS, *_RIVALS]
        raise InputError(f"learner must be one of {', '.join(names)}; got {quote(name)}{hint(name, names)}")
    allowed = list(_options(name))
    for option, value in options.items():
        if option not in allowed:
            raise InputError(
                f"option of {name} must be one of {', '.join(allowed)}; got {quote(option)}{hint(option, allowed)}"
            )
        _CHECKS[option](option, value)
    return Rival(name, MappingProxyType(options))


@dataclass(frozen=True)
class Rival:
    """A rival with its options bound."""

    name: str
    options: Mapping[str, Any]

    @property
    def access(self) -> str:
        """The models that it learns from, "generative" or "episodic"."""
        return _RIVALS[self.name].access

    @property
    def replicable(self) -> bool:
        """Whether it is built so that two runs with one shared key output one policy."""
        return _RIVALS[self.name].replicable

    def __call__(self, model: Any, shared_key: SharedKey) -> Policy:
        """Learn from fresh samples of the model."""
        return _RIVALS[self.name].run(model, shared_key, **self.options)

    def least(self, model: Any) -> int:
        """Return the smallest budget that is worth a try."""
        check_model(model, self.access, self.name)
        return least_budget(model, self.access)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle by name and options, for worker processes."""
        return _rebuild, (self.name, dict(self.options))


def _rebuild(name: str, options: dict[str, Any]) -> ReprlLearner | Rival:
    return make_learner(name, **options)


def _entry(name: str) -> LearnerEntry:
    rival = _RIVALS[name]
    return LearnerEntry(
        name, rival.description, (rival.access,), rival.replicable, rival.source, MappingProxyType(_options(name))
    )


def _options(name: str) -> dict[str, Any]:
    parameters = inspect.signature(_RIVALS[name].run).parameters.values()
    return {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY}


def _optional(check: Callable[[str, object], Any]) -> Callable[[str, object], Any]:
    return lambda name, value: None if value is None else check(name, value)


_CHECKS: dict[str, Callable[[str, Any], Any]] = {
    "epsilon": lambda name, value: check_real(name, value, 0.0, math.inf),
    "rho": check_probability,
    "delta": check_probability,
    "constants": lambda name, value: check_choice(name, value, ("practical", "paper")),
    "samples": _optional(lambda name, value: check_int(name, value, 1)),
    "coupling": lambda name, value: check_choice(name, value, ("shared", "correlated")),
    "rounds": _optional(lambda name, value: check_int(name, value, 1)),
    "bonus": _optional(lambda name, value: check_real(name, value, 0.0, math.inf)),
    "replan": lambda name, value: check_choice(name, value, ("doubling", "episode")),
    "output": lambda name, value: check_choice(name, value, ("empirical", "optimistic")),
}
