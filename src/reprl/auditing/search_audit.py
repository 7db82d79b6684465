"""audit_search: pairs of searches, and what they prove. ``reprl.audit`` calls it where the learner is a search."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import closing, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

from reprl.auditing.evidence import VERDICTS, Estimate, conclude, estimate, student
from reprl.auditing.pairs import watch
from reprl.auditing.search_pairs import SEARCH, SearchPair, SearchTrial, run_pairs
from reprl.execution.progress import progress_bar
from reprl.execution.settings import Progress
from reprl.execution.terminal import Shown, visible
from reprl.learning.search import open_returns, policy_name
from reprl.learning.search_opening import search_settings
from reprl.storage.checkpoints import open_checkpoint
from reprl.storage.documents import plain
from reprl.storage.fields import SEED, SHARE, Declared, Document, choice, declared, many, optional, whole
from reprl.storage.frames import frame

if TYPE_CHECKING:
    import pandas as pd

FORMAT = "reprl-search-audit"


@dataclass(frozen=True, kw_only=True)
class SearchAudit(Declared, Shown):
    """Result of ``audit`` for searches: how often two runs return different policies."""

    _indent = 1
    environment: str
    horizon: Annotated[int, whole(1)]
    settings: Mapping[str, Any]
    """Of the search, with the limit on samples."""
    seed: Annotated[int, SEED]
    """Of the audit; with it the audit can be repeated."""
    rho: Annotated[float, SHARE]
    level: Annotated[float, SHARE]
    max_pairs: Annotated[int, whole(1)]
    """Pairs that were asked for."""
    disagreements: Annotated[int, whole(0, lambda at: len(at.pairs))]
    interval: Annotated[tuple[float, float], many(SHARE, 2)]
    """95 %, of the probability that two runs differ; valid at all times where the audit was sequential."""
    verdict: Annotated[str, choice(VERDICTS)]
    p_value: Annotated[float | None, optional(SHARE)]
    """Of the exact test; None for a sequential audit."""
    alternative: Annotated[float | None, optional(SHARE)]
    """What a sequential "not rejected" rules out."""
    value: Annotated[Estimate | None, optional(estimate())]
    """Mean return; Student's interval, by pair."""
    pairs: tuple[SearchPair, ...]

    @property
    def disagreement(self) -> float:
        """Share of pairs whose policies differ."""
        return self.disagreements / len(self.pairs)

    @property
    def samples(self) -> float:
        """Mean of a run."""
        return float(np.mean([pair.samples for pair in self.pairs]))

    @property
    def certified(self) -> int:
        """Runs that are certified, of two for each pair."""
        return sum(status == "certified" for pair in self.pairs for status in pair.statuses)

    @property
    def false(self) -> int:
        """Pairs that differ although both runs are certified; at most a share ρ can be expected."""
        return sum(pair.differ and set(pair.statuses) == {"certified"} for pair in self.pairs)

    def to_pandas(self) -> pd.DataFrame:
        """Return a row for each run."""
        runs = [(number, pair, side) for number, pair in enumerate(self.pairs) for side in range(2)]
        return frame(
            {
                "pair": [number for number, _, _ in runs],
                "same": [pair.same for _, pair, _ in runs],
                "status": [pair.statuses[side] for _, pair, side in runs],
                "samples": [pair.samples[side] for _, pair, side in runs],
                "value": [pair.values[side] for _, pair, side in runs],
                "above": [pair.above[side] for _, pair, side in runs],
            }
        )

    def __repr__(self) -> str:
        count = f"{self.disagreements} of {len(self.pairs)} pairs differ"
        return f"SearchAudit({visible(self.environment)}: {count}, {self.certified} runs certified, {self.verdict})"


SearchAudit._document = Document("audit of a search", FORMAT, 1, SearchAudit, declared(SearchAudit))


def audit_search(
    env: Any,
    asked: Any,
    horizon: int | None,
    reward_range: Any,
    options: dict[str, Any],
    checkpoint: str | os.PathLike[str] | None,
    progress: bool | Progress,
) -> SearchAudit:
    """Do what a call of ``reprl.audit`` asks for, by pairs of searches."""
    limit = options.pop("max_samples", None)
    settings = search_settings({"rho": asked.rho, **options})
    model = open_returns(env, horizon, reward_range, settings.return_range, asked.seed)
    trial = SearchTrial(model, settings, asked.seed, limit)
    given = plain({**settings.to_dict(), "policy": policy_name(settings.policy), "max_samples": limit})
    work = {"kind": "audit", "environment": {"id": model.title, "digest": model.digest}, "learner": SEARCH}
    work |= {"options": given, "seed": asked.seed}
    found: list[SearchPair] = []

    def add(pair: SearchPair) -> int:
        found.append(pair)
        return sum(each.differ for each in found)

    with (
        closing(model) if model.reopens else nullcontext(),
        open_checkpoint(checkpoint, work) as kept,
        progress_bar(progress, "pairs") as shown,
    ):
        runs = run_pairs(trial, asked.pairs, asked.workers, may_stop=asked.test is not None, checkpoint=kept)
        tell = None if shown is None else (lambda done: shown("audit", done, asked.pairs))
        watch(runs, add, asked.test, tell)
    return _report(asked, model, given, found)


def _report(asked: Any, model: Any, given: Any, found: list[SearchPair]) -> SearchAudit:
    hits = sum(pair.differ for pair in found)
    earned = [float(np.mean(values)) for pair in found if (values := [x for x in pair.values if x is not None])]
    return SearchAudit(
        environment=model.title,
        horizon=model.horizon,
        settings=given,
        seed=asked.seed,
        rho=asked.rho,
        level=asked.level,
        max_pairs=asked.pairs,
        disagreements=hits,
        **conclude(asked.test, hits, len(found), asked.rho, asked.level),
        value=student(earned) if len(earned) > 1 else None,
        pairs=tuple(found),
    )
