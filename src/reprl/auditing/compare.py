"""compare: the smallest budget at which each learner both replicates and is good, all measured with one ruler."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from reprl.auditing.comparison import Comparison, Row
from reprl.auditing.search import smallest_budget
from reprl.auditing.search_compare import compare_searches
from reprl.errors import InputError, check_choice, check_int, check_probability, check_real, quote, refuse
from reprl.execution.progress import progress_bar
from reprl.execution.settings import Progress, check_progress
from reprl.learning.accuracy import rescale_epsilon
from reprl.learning.adapters import EnvLearner, as_learner, takes
from reprl.learning.baseline import exact_loss, resolve_baseline
from reprl.learning.protocol import Learner, access_of, name_of
from reprl.learning.search_opening import wants_search
from reprl.learning.settings import PAPER_EPSILON, Settings
from reprl.mdp.tabular import TabularMDP
from reprl.randomness import DataStream, fresh_seed
from reprl.sources.access import WAYS
from reprl.sources.environment import describe, fresh_model, open_environment
from reprl.sources.gymnasium.model import GymnasiumModel
from reprl.sources.protocol import ACCESSES, Access
from reprl.storage.checkpoints import Checkpoint, open_checkpoint, recall

LIMITS = {"generative": 2**34, "episodic": 2**22}
"""Largest budgets of `compare`: parallel samples cost no time, episodes do."""
VARIANTS: Mapping[tuple[str, str], Mapping[str, Mapping[str, Any]]] = {
    ("reprl", "generative"): {
        "reprl (canonical)": {"rule": "canonical"},
        "reprl (joint)": {"rule": "paper", "constants": "scaled", "coupling": "joint"},
        "reprl (product)": {"rule": "paper", "constants": "scaled", "coupling": "product"},
    },
    ("reprl", "episodic"): {
        "reprl (canonical)": {"rule": "canonical"},
        "reprl (joint)": {"rule": "paper", "constants": "scaled", "coupling": "joint"},
        "reprl (product)": {"rule": "paper", "constants": "scaled", "coupling": "product"},
    },
    ("karbasi-gaussian", "generative"): {
        "karbasi-gaussian (shared)": {"coupling": "shared"},
        "karbasi-gaussian (correlated)": {"coupling": "correlated"},
    },
}
"""Learners that enter a comparison more than once: (name, access) → label → options."""


class Contender(NamedTuple):
    """A learner that enters a comparison."""

    label: str
    name: str
    """In ``reprl.lab.baselines.learners()``."""
    access: str
    options: Mapping[str, Any]
    own: Learner | None = None
    """A learner that is in no list."""

    def make(self, budget: int | None = None) -> Learner:
        """Return the learner that spends at most a budget."""
        from reprl.lab.baselines import make_learner

        if self.own is not None:
            return partial(self.own, samples=budget)
        extra = {"access": self.access} if self.name == "reprl" else {}
        return make_learner(self.name, samples=budget, **extra, **self.options)

    def minimum_budget(self, mdp: TabularMDP | GymnasiumModel) -> int:
        """Return the first budget of a search, as the learner says; one that does not say begins where rivals do."""
        with fresh_model(mdp, self.access, 0) as model:
            says = getattr(self.own or self.make(), "minimum_budget", None)
            return int(says(model)) if callable(says) else WAYS[self.access].minimum_budget(model)


def contenders(
    learners: Sequence[str | Callable[..., Any]] | None = None,
    *,
    access: Access | None = None,
    epsilon: float | None = None,
    rho: float = 0.1,
) -> list[Contender]:
    """Return who takes part: the named learners and one's own, under every access they have (or the one asked for).

    They are asked for ε, or, if that is None, for what they aim at by default.
    """
    from reprl.lab.baselines import learners as list_learners

    known = {entry.name: entry for entry in list_learners()}
    if learners is not None and (isinstance(learners, str) or not isinstance(learners, Sequence) or not learners):
        raise InputError(f"learners must be a list of names or of learners, got {quote(learners)}")
    if access is not None:
        check_choice("access", access, ACCESSES)
    out = []
    for way in ("generative", "episodic") if access is None else (access,):
        for name in learners or known:
            if callable(name):
                out += _own(as_learner(name), way)
                continue
            if not isinstance(name, str) or name not in known:
                raise InputError(f"learners must be among {', '.join(known)}; got {quote(name)}")
            entry = known[name]
            if way not in entry.access:
                continue
            asked = {"rho": rho} if epsilon is None else {"epsilon": epsilon, "rho": rho}
            aims = {key: value for key, value in asked.items() if key in entry.options}
            for label, options in VARIANTS.get((name, way), {name: {}}).items():
                out.append(Contender(label, name, way, {**aims, **options}))
    if not out:
        names = ", ".join(name if isinstance(name, str) else name_of(name) for name in learners or known)
        raise InputError(f"learners must have access {access!r}, got {names}")
    return out


def _own(learner: Learner, way: str) -> list[Contender]:
    """One's own learner, if this is the access that it needs; a comparison sets its option `samples`."""
    if access_of(learner) != way:
        return []
    if not isinstance(learner, EnvLearner) and not takes(learner, "samples"):
        raise InputError(f"learner {name_of(learner)} must take samples=, the budget that a comparison sets")
    return [Contender(name_of(learner), name_of(learner), way, {}, learner)]


def compare(
    env: TabularMDP | str | Any,
    learners: Sequence[str | Callable[..., Any]] | None = None,
    *,
    horizon: int | None = None,
    reward_range: tuple[float, float] | None = None,
    quality: float | None = None,
    baseline: Any = None,
    epsilon: float | None = None,
    rho: float = 0.1,
    target: float | None = None,
    access: Access | None = None,
    pairs: int = 40,
    limit: int | None = None,
    seed: int | None = None,
    workers: int = 1,
    checkpoint: str | os.PathLike[str] | None = None,
    progress: bool | Progress = False,
) -> Comparison:
    """Find the smallest number of samples at which each learner replicates and is near-optimal.

    Args:
        env: whatever ``reprl.learn`` takes. In a black box disagreement alone is asked for, beside what policies earn.
        learners: names in ``reprl.learners()``, or your own, which are given `samples`; None for all with a name.
        horizon: as in ``reprl.learn``.
        reward_range: as in ``reprl.learn``.
        quality: accepted mean share of the gain, as for ``reprl.learn``; None for 0.9. It fixes an ε where the dynamics
            are known, which is also what the learners are asked for; in a black box it must be left out, and learners
            are asked for what they aim at by default.
        baseline: what the gain is measured from, as for ``reprl.learn``.
        epsilon: accepted mean suboptimality, and what the learners are asked for, instead of a quality.
        rho: accepted disagreement; also what the learners are asked for.
        target: a mean return that policies must exceed, where observations are a Box; the learners are then "search"
            and baselines of ``reprl.lab.baselines.box_learners()``.
        access: "generative", "episodic", or None for both.
        pairs: at most so many pairs of runs at each budget.
        limit: the largest budget; None for 2³⁴ parallel samples and 2²² steps.
        seed: as in ``reprl.audit``.
        workers: processes; neither they nor a cluster can change the comparison (docs/scale.md).
        checkpoint: a folder for finished pairs; a comparison that was stopped goes on with it.
        progress: True for a bar on standard error, or a function told (label, budget, largest budget) after every
            budget.

    Guarantee:
        That of ``smallest_budget``, for each row by itself. The learners' own constants are their practical presets.

    Randomness:
        Data stream (seed, "compare/ACCESS/LABEL") gives the seed of each row.
    """
    named = isinstance(learners, Sequence) and all(isinstance(name, str) for name in learners)
    if (learners is None or named) and wants_search(env, None, {} if target is None else {"target": target}):
        given = {"quality": quality, "baseline": baseline, "epsilon": epsilon, "access": access}
        refuse("where observations are a Box", **given)
        return compare_searches(
            env,
            learners,
            horizon=horizon,
            reward_range=reward_range,
            target=target,
            rho=check_probability("rho", rho),
            pairs=check_int("pairs", pairs, 1, 10**6),
            limit=limit,
            seed=_seed(seed, checkpoint),
            workers=check_int("workers", workers, 1, 1024),
            checkpoint=checkpoint,
            progress=progress,
        )
    world = open_environment(env, horizon, reward_range)
    if isinstance(world, GymnasiumModel):
        WAYS[access := access or "episodic"].check(world, quote(env))
    seed = _seed(seed, checkpoint)
    workers, pairs = check_int("workers", workers, 1, 1024), check_int("pairs", pairs, 1, 10**6)
    rho = check_probability("rho", rho)
    accuracy = _accuracy(world, quality, baseline, epsilon)
    check_progress(progress)
    limits = LIMITS if limit is None else dict.fromkeys(ACCESSES, check_int("limit", limit, 1, 2**62))
    place, aims = describe(world), {"epsilon": accuracy, "rho": rho}
    goal = None if isinstance(world, GymnasiumModel) and epsilon is None else accuracy
    work = {"kind": "compare", "environment": {"id": place.id, "digest": place.digest}, **aims, "seed": seed}
    rows = []
    with open_checkpoint(checkpoint, work) as kept, progress_bar(progress, "samples") as tell:
        for one in contenders(learners, access=access, epsilon=goal, rho=rho):
            how: dict[str, Any] = {"workers": workers, "checkpoint": kept, "progress": tell, **aims}
            rows.append(run_row(world, one, pairs=pairs, limit=limits[one.access], seed=seed, **how))
    return Comparison(environment=place, pairs=pairs, seed=seed, rows=tuple(rows), **aims)


def _seed(seed: int | None, checkpoint: str | os.PathLike[str] | None) -> int:
    """The seed that is given, that of a comparison in a checkpoint, or a fresh one."""
    found = recall(checkpoint, "seed") if seed is None else seed
    return fresh_seed() if found is None else check_int("seed", found, 0, 2**64 - 1)


def _accuracy(world: TabularMDP | GymnasiumModel, quality: float | None, baseline: Any, epsilon: float | None) -> float:
    """Return ε as it was given, or what a quality comes to."""
    if epsilon is not None:
        Settings(quality=quality, epsilon=epsilon, baseline=baseline)
        return check_real("epsilon", rescale_epsilon(epsilon, world), 0.0, math.inf)
    if isinstance(world, TabularMDP):
        return exact_loss(world, resolve_baseline(Settings(quality=quality, baseline=baseline), world))
    refuse("of a comparison in a black box", quality=quality, baseline=baseline)
    return PAPER_EPSILON


def run_row(
    mdp: TabularMDP | GymnasiumModel,
    contender: Contender,
    *,
    epsilon: float,
    rho: float,
    pairs: int,
    limit: int,
    seed: int,
    workers: int = 1,
    checkpoint: Checkpoint | None = None,
    progress: Progress | None = None,
) -> Row:
    """Search the smallest budget of one contender; a limit below its first budget is raised to it."""
    least = contender.minimum_budget(mdp)
    most = max(least, limit)
    own = int(DataStream(seed, f"compare/{contender.access}/{contender.label}").integers(1)[0])
    search = smallest_budget(
        mdp,
        contender.make,
        access=contender.access,
        epsilon=epsilon,
        rho=rho,
        low=least,
        limit=most,
        pairs=pairs,
        seed=own,
        workers=workers,
        checkpoint=None if checkpoint is None else (checkpoint, f"{contender.access}/{contender.label}/"),
        tell=None if progress is None else lambda point: progress(contender.label, point.budget, most),
    )
    named = {"learner": contender.label, "access": contender.access, "options": contender.options}
    return Row.of(search, rho, most, **named)
