"""The list of learners: every baseline and reprl itself, by name, with their options."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple

from reprl.errors import InputError, check_choice, check_int, check_option, check_probability, check_real, hint, quote
from reprl.lab.baselines import generative, optimistic, rmax
from reprl.lab.baselines.task import BaselineTask
from reprl.learning.learner import ReprlLearner, make_settings
from reprl.learning.settings import Settings
from reprl.mdp.policy import Policy
from reprl.randomness import SharedKey, check_shared_key
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


class _Method(NamedTuple):
    """How a baseline is run: a function of a task and of options of its own."""

    run: Callable[..., Policy]
    access: str
    replicable: bool
    source: str
    description: str

    @property
    def options(self) -> dict[str, Any]:
        """Name → default of everything that it takes."""
        own = [p for p in inspect.signature(self.run).parameters.values() if p.kind is p.KEYWORD_ONLY]
        asked: dict[str, Any] = {"epsilon": 0.3, "rho": 0.1, "delta": 0.1, "constants": "practical"}
        if not self.replicable:
            del asked["rho"]
        return asked | {p.name: p.default for p in own} | {"samples": None}


_EATON = "Eaton, Hussing, Kearns, Sorrell 2023"
_KARBASI = "Karbasi, Velegkas, Yang, Zhou 2023"

_METHODS: dict[str, _Method] = {
    "rpvi": _Method(
        generative.rpvi,
        "generative",
        True,
        _EATON,
        "phased value iteration; every value is rounded on its own shifted grid",
    ),
    "karbasi-grid": _Method(
        generative.karbasi_grid,
        "generative",
        True,
        _KARBASI,
        "an ordinary estimate of all values, rounded once on a shifted grid, then greedy",
    ),
    "karbasi-gaussian": _Method(
        generative.karbasi_gaussian,
        "generative",
        True,
        _KARBASI,
        "an ordinary estimate plus Gaussian noise, then greedy; the noise shared or the policy drawn in common",
    ),
    "karbasi-softmax": _Method(
        generative.karbasi_softmax,
        "generative",
        True,
        _KARBASI,
        "actions from a softmax of an ordinary estimate: approximately replicable, drawn with shared randomness",
    ),
    "list-robust": _Method(
        generative.list_robust,
        "generative",
        True,
        "Zhang, Chen, Pavan, Vinodchandran, Yang, Wang 2025",
        "the first action within a random tolerance of the best, the tolerance drawn in common",
    ),
    "replicable-rmax": _Method(
        rmax.replicable_rmax,
        "episodic",
        True,
        _EATON,
        "R-max in rounds: a shared threshold makes pairs known, shared grids freeze their model",
    ),
    "ucb-h": _Method(
        optimistic.ucb_h,
        "episodic",
        False,
        "Jin, Allen-Zhu, Bubeck, Jordan 2018",
        "optimistic Q-learning with Hoeffding bonuses; greedy for the final table",
    ),
    "ucbvi": _Method(
        optimistic.ucbvi,
        "episodic",
        False,
        "Azar, Osband, Munos 2017",
        "value iteration with upper confidence bounds, stage-dependent, Hoeffding bonus",
    ),
    "reward-free-ucbvi": _Method(
        optimistic.reward_free_ucbvi,
        "episodic",
        False,
        "Kaufmann, Ménard, Domingues, Jonsson, Leurent, Valko 2021",
        "exploration that sees no reward, then backward induction in the empirical model",
    ),
    "greedy": _Method(
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
        "this package: the default rule (rule=canonical), or the paper's learner (rule=paper)",
        ("generative", "episodic"),
        True,
        "From Generative to Episodic: Sample-Efficient Replicable Reinforcement Learning",
        MappingProxyType({name: field.default for name, field in fields.items()}),
    )
    others = [
        LearnerEntry(name, m.description, (m.access,), m.replicable, m.source, MappingProxyType(m.options))
        for name, m in _METHODS.items()
    ]
    return [ours, *others]


def make_learner(name: str, **options: Any) -> ReprlLearner | Baseline:
    """Return a learner by its name: a callable from (model, shared key) to a policy.

    A baseline takes epsilon, rho and delta where they matter, constants ("practical" or "paper"), samples (a budget
    that is never passed; None for the preset's own number), and options of its own.

    Guarantee:
        The baselines' practical constants are heuristic, picked as docs/peers.md says; what "paper" promises is written
        with each baseline.
    """
    if name == OURS:
        samples = None if options.get("rule") == "paper" else options.pop("samples", None)
        return ReprlLearner(make_settings(options), samples)
    if not isinstance(name, str) or name not in _METHODS:
        names = [OURS, *_METHODS]
        raise InputError(f"learner must be one of {', '.join(names)}; got {quote(name)}{hint(name, names)}")
    allowed = list(_METHODS[name].options)
    for option, value in options.items():
        check_option(name, option, allowed)
        _CHECKS[option](option, value)
    return Baseline(name, MappingProxyType(options))


@dataclass(frozen=True)
class Baseline:
    """A baseline with its options bound."""

    name: str
    options: Mapping[str, Any]

    @property
    def access(self) -> str:
        """The models that it learns from, "generative" or "episodic"."""
        return _METHODS[self.name].access

    @property
    def replicable(self) -> bool:
        """Whether it is built so that two runs with one shared key output one policy."""
        return _METHODS[self.name].replicable

    def __call__(self, model: Any, shared_key: SharedKey) -> Policy:
        """Learn from fresh samples of the model."""
        key = check_shared_key(shared_key).derive(self.name)
        own = {"rho": 0.1, **_METHODS[self.name].options, **self.options}
        epsilon, rho, delta, constants, samples = (own.pop(option) for option in _COMMON)
        check_model(model, self.access, self.name)
        check_real("epsilon", epsilon, 0.0, float(model.horizon), open_high=False)
        task = BaselineTask(model, key, epsilon, rho, delta, constants == "paper", samples)
        return _METHODS[self.name].run(task, **own)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle by name and options, for worker processes."""
        return _rebuild, (self.name, dict(self.options))


def _rebuild(name: str, options: dict[str, Any]) -> ReprlLearner | Baseline:
    return make_learner(name, **options)


def _optional(check: Callable[[str, object], Any]) -> Callable[[str, object], Any]:
    return lambda name, value: None if value is None else check(name, value)


_COMMON = ("epsilon", "rho", "delta", "constants", "samples")
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
