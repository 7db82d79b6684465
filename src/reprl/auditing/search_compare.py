"""compare_searches: the smallest budget at which a search, or a baseline, replicates in an environment without tables.

``reprl.compare`` calls it where observations are a Box.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Sequence
from contextlib import closing, nullcontext
from typing import Any

from reprl.auditing.comparison import Comparison, Row
from reprl.auditing.evidence import student
from reprl.auditing.search import Tried, search_budgets
from reprl.auditing.search_pairs import SEARCH, SearchPair, SearchTrial, run_pairs
from reprl.errors import InputError, check_int, quote
from reprl.execution.progress import progress_bar
from reprl.execution.settings import Progress
from reprl.lab.baselines.boxes import box_learners, is_box_learner
from reprl.learning.search import check_target, open_returns
from reprl.mdp.criterion import Criterion
from reprl.mdp.labels import Labels
from reprl.randomness import DataStream
from reprl.search.settings import SearchSettings
from reprl.sources.environment import Environment
from reprl.sources.returns import ReturnModel
from reprl.storage.checkpoints import Checkpoint, open_checkpoint

LEAST = 64
"""Episodes that the first budget pays for."""
LIMIT = 2**22
"""The largest budget, unless told."""
_LABEL = "reprl (search)"


def compare_searches(
    env: Any,
    learners: Sequence[Any] | None,
    *,
    horizon: int | None,
    reward_range: Any,
    target: float | None,
    rho: float,
    pairs: int,
    limit: int | None,
    seed: int,
    workers: int,
    checkpoint: str | os.PathLike[str] | None,
    progress: bool | Progress,
) -> Comparison:
    """Do what a call of ``reprl.compare`` asks for where observations are a Box.

    Guarantee:
        That of ``smallest_budget``, for each row by itself; a budget passes if its pairs agree and policies earn more
        than the target on average, where one is given.
    """
    model = open_returns(env, horizon, reward_range, None, seed)
    settings = SearchSettings(rho=rho, target=target)
    check_target(settings, model)
    names = _names(learners)
    place = Environment(
        id=model.title if model.origin is not None else None,
        options={},
        criterion=Criterion.of(model.horizon, None),
        n_states=0,
        n_actions=0,
        digest=model.digest,
        labels=Labels(name=model.title),
    )
    most = LIMIT if limit is None else check_int("limit", limit, 1, 2**62)
    work: dict[str, Any] = {"kind": "compare", "environment": {"id": place.id, "digest": place.digest}}
    work |= {"target": target, "rho": rho, "seed": seed}
    rows = []
    with (
        closing(model) if model.reopens else nullcontext(),
        open_checkpoint(checkpoint, work) as kept,
        progress_bar(progress, "samples") as tell,
    ):
        for name in names:
            trial = SearchTrial(model, name, settings, {}, seed)
            rows.append(_row(trial, pairs, most, workers, kept, tell))
    return Comparison(environment=place, epsilon=0.0, rho=rho, pairs=pairs, seed=seed, rows=tuple(rows), target=target)


def _names(learners: Sequence[Any] | None) -> list[str]:
    known = [SEARCH, *(entry.name for entry in box_learners() if entry.name != "ppo")]
    names = list(known if learners is None else learners)
    for name in names:
        if name not in ("reprl", SEARCH) and not (is_box_learner(name) and name in known):
            allowed = ", ".join(known)
            raise InputError(f"learners must be among {allowed} where observations are a Box; got {quote(name)}")
    return [SEARCH if name == "reprl" else name for name in names]


def _row(
    trial: SearchTrial, pairs: int, limit: int, workers: int, kept: Checkpoint | None, tell: Progress | None
) -> Row:
    model: ReturnModel = trial.model
    label = _LABEL if trial.learner == SEARCH else trial.learner
    assert trial.settings is not None
    target, rho = trial.settings.target, trial.settings.rho
    own = int(DataStream(trial.seed, f"compare/box/{label}").integers(1)[0])
    low = LEAST * model.horizon
    most = max(low, limit)

    def run(budget: int) -> Generator[SearchPair, None, None]:
        each = int(DataStream(own, f"compare/{budget}").integers(1)[0])
        there = trial._replace(seed=each, budget=budget)
        return run_pairs(there, pairs, workers, may_stop=True, checkpoint=kept, name=f"{label}/{budget}/")

    def rate(point: Tried, earned: list[float]) -> tuple[Tried, bool]:
        floor = model.return_range.low if model.return_range is not None else 0.0
        value = student(earned or [floor], *((floor, floor) if len(earned) < 2 else ()))
        return point._replace(value=value), bool(earned) and (target is None or value.mean > target)

    say = None if tell is None else (lambda point: tell(label, point.budget, most))
    found = search_budgets(run, rate, rho=rho, low=low, limit=most, tell=say)
    return Row.of(found, rho, most, learner=label, access="episodic", options={})
