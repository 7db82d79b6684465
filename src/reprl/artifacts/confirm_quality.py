"""confirm --quality: does a published policy lose no more than is allowed, by one's own data?

The second team needs no shared seed and no equality: it gathers data of its own, and simulated teams say whether the
policy loses too much (docs/confirm.md).
"""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from reprl.artifacts.recipe import package_version
from reprl.assurance.log_teams import ask_log_teams, split
from reprl.assurance.teams import ask_teams
from reprl.assurance.verdict import judge_policy
from reprl.errors import InputError, quote
from reprl.execution.pool import WorkerPool
from reprl.execution.progress import progress_bar
from reprl.execution.settings import Execution, Progress
from reprl.execution.terminal import Shown, visible
from reprl.learning.baseline import resolve_baseline
from reprl.learning.logged import bind_log_rule, settle
from reprl.learning.settings import Settings
from reprl.learning.soft import bind_rule, enough_for
from reprl.mdp.criterion import criterion_of
from reprl.mdp.dynamics import full_mask
from reprl.mdp.evidence import Evidence
from reprl.mdp.model import evaluate, from_start, one_hot, solve
from reprl.mdp.policy import Policy, check_policy
from reprl.mdp.tabular import TabularMDP
from reprl.randomness import DataStream, SharedKey
from reprl.rule.bound import SoftRule
from reprl.rule.soft import Asked
from reprl.sources.access import WAYS
from reprl.sources.environment import describe, fresh_model
from reprl.sources.gymnasium.model import GymnasiumModel
from reprl.sources.logs.source import LogSource
from reprl.sources.logs.spec import LogSpec
from reprl.sources.logs.tables import open_table
from reprl.sources.protocol import Ledger, mask_of
from reprl.storage import fields as f
from reprl.storage.fields import Document, Sealed, with_fields

FORMAT = "reprl-quality-confirmation"
VERDICTS = ("confirmed", "refuted", "undecided")


@dataclass(frozen=True, kw_only=True)
class QualityConfirmation(Sealed, Shown):
    """The answer to a claim about a policy's quality, from a team's own data.

    Guarantee:
        Rehearsed (docs/confirm.md): "confirmed" if no simulated data set says that the policy loses more than is
        allowed; "refuted" only if, on both halves of the data, another policy beats it by more.
    """

    environment: Annotated[str, f.printable()]
    environment_digest: Annotated[str, f.SHA256]
    """Of its dynamics, or of what a black box declares; for a log, of the log."""
    fingerprint: Annotated[str, f.SHA256]
    """Of the policy."""
    quality: Annotated[float, f.real(0.0, 1.0)]
    """Share of the gain over the baseline that the policy has to earn."""
    delta: Annotated[float, f.real(0.0, 1.0, open_low=True)]
    min_probability: Annotated[float, f.real(0.0, 1.0)]
    """Assumed: no outcome that matters is rarer; 0 if nothing is assumed."""
    verdict: Annotated[str, f.choice(VERDICTS)]
    teams: int
    """Simulated data sets that were asked."""
    content: int
    """Those that do not say that the policy loses too much."""
    value: Annotated[float, f.real(-math.inf)]
    """Of the policy by these data, in the rewards' own units; an estimate."""
    best: Annotated[float, f.real(-math.inf)]
    """Of the best policy, likewise."""
    baseline: Annotated[float, f.real(-math.inf)]
    episodes: int
    samples: int
    data_commitment: Annotated[str, f.SHA256]
    """Hash of what is confirmed and the data seed, or the log; never the seed itself."""
    package_version: Annotated[str, f.printable()]
    seconds: float
    """Not part of the digest."""

    @property
    def status(self) -> str:
        """What supports the verdict."""
        return "none" if self.verdict == "undecided" else "rehearsed"

    def __repr__(self) -> str:
        claim = f"policy {self.fingerprint[:12]} earns at least {100 * self.quality:g} % of the gain"
        of = f"{self.content} of {self.teams} simulated data sets"
        return f"Confirmation({claim} on {visible(self.environment)}: {self.verdict} [{self.status}: {of}])"


_TABLE = with_fields(QualityConfirmation, package_version={"digest": f.SHA256})
QualityConfirmation._document = Document("confirmation", FORMAT, 1, QualityConfirmation, _TABLE)


def confirm_quality(
    policy: Policy,
    world: TabularMDP | GymnasiumModel,
    *,
    quality: float,
    delta: float,
    settings: Settings | None,
    min_probability: float,
    data_seed: int,
    max_samples: int,
    execution: Execution,
    progress: bool | Progress,
) -> QualityConfirmation:
    """Gather episodes until a verdict, or until there are no more samples.

    Even batches play the rule's soft policy and the published one in turn; odd ones look into what hardly was tried.

    Args:
        policy: what was published before these data.
        world: where it acts.
        quality: the share of the gain that it has to earn.
        delta: largest probability of a wrong answer.
        settings: of the run that it came from, for its baseline; None for the first allowed action.
        min_probability: as in ``Settings``.
        data_seed: private.
        max_samples: the largest number of samples.
        execution: who plays.
        progress: whether, or whom, to tell.

    Randomness:
        Data: as a run by episodes, and streams (data seed, "teams/confirm/…") and (data seed, "refute/…").
    """
    began = time.perf_counter()
    baseline = None if settings is None else settings.baseline
    stationary = None if settings is None else settings.stationary
    asked = Settings(quality=quality, delta=delta, min_probability=min_probability, baseline=baseline)
    asked = Settings(**{**asked.to_dict(), "stationary": stationary}).resolve_stationarity(world)
    asked = resolve_baseline(asked, world)
    criterion = criterion_of(world)
    allowed = full_mask(mask_of(world), (criterion.rows, world.n_states, world.n_actions))
    rule, table = bind_rule(SharedKey(0), asked, allowed, criterion), _rows(policy, world, criterion.rows)
    published, turns = one_hot(table, world.n_actions), [0]

    def play(evidence: Evidence) -> NDArray[np.float64]:
        turns[0] += 1
        return rule.play(evidence.model) if turns[0] % 4 < 2 else published

    with (
        fresh_model(world, "episodic", data_seed) as model,
        progress_bar(progress, "episodes") as tell,
        WorkerPool(model, execution.workers, execution.checkpoint) as pool,
    ):
        way, enough = WAYS["episodic"], enough_for(model, asked)
        source = way.source(model, pool, pooled=bool(asked.stationary), enough=enough, progress=tell)
        sizes, known = source.sizes(max_samples), source.empty()
        for look, size in enumerate(sizes):
            known = source.gather(known, size, play)
            evidence = known.evidence()
            verdict, content, teams = _judge(rule, asked, evidence, table, look, data_seed, execution.workers)
            if verdict != "undecided" or source.exhausted(known):
                break
    place = describe(world)
    told = {"verdict": verdict, "teams": teams, "content": content}
    asked_for = {"quality": quality, "delta": delta, "min_probability": min_probability}
    figures = [place.original_return(x) for x in worth_of(evidence, rule.asked, table)]
    assert place.digest is not None  # documents alone may lack it
    found = (place.title, place.digest, policy, data_seed)
    return _record(*found, model.ledger, figures, {**told, **asked_for}, began)


def confirm_quality_by_log(
    policy: Policy,
    spec: LogSpec,
    log: Any,
    columns: Mapping[str, str | None],
    *,
    quality: float,
    delta: float,
    settings: Settings,
    min_probability: float,
) -> QualityConfirmation:
    """Judge by a log: practice is the baseline, and teams redraw whole episodes; as ``confirm_quality``."""
    began = time.perf_counter()
    fields = {**settings.to_dict(), "quality": quality, "epsilon": None, "delta": delta}
    asked = settle(Settings(**{**fields, "min_probability": min_probability}), spec)
    source = LogSource(open_table(log, columns), spec, pooled=bool(asked.stationary))
    rule, seed, blocks = bind_log_rule(spec, SharedKey(0), asked), source.data_seed, source.log.blocks
    bound, evidence = rule.bound(*split(blocks, seed))
    table = _rows(check_policy(policy, spec.environment({})), None, spec.criterion.rows)
    missing = ~np.take_along_axis(evidence.model.allowed, table[:, :, None], axis=2)[:, :, 0]
    if missing.any():  # what practice hardly does is not judged by the menu of the log, but by its rows
        allowed = evidence.model.allowed | one_hot(table, spec.n_actions).astype(np.bool_)
        evidence = evidence.allow(allowed)
    verdict, content, teams = judge_policy(
        evidence,
        bound.asked,
        bound.draws,
        table,
        delta=delta,
        min_probability=min_probability,
        looks=0,
        stream=partial(DataStream, seed),
        ask=lambda now, name, numbers: ask_log_teams(now, rule, blocks, name, seed, numbers),
    )
    if source.shortage() or source.drift():
        verdict = "undecided"
    place = spec.environment({})
    told = {"verdict": verdict, "teams": teams, "content": content}
    asked_for = {"quality": quality, "delta": delta, "min_probability": min_probability}
    figures = [place.original_return(x) for x in worth_of(evidence, bound.asked, table)]
    found = ("log", source.log.data.digest, policy, seed)
    return _record(*found, source.ledger, figures, {**told, **asked_for}, began)


def _record(
    title: str,
    digest: str,
    policy: Policy,
    data_seed: int,
    ledger: Ledger,
    figures: list[float],
    others: dict[str, Any],
    began: float,
) -> QualityConfirmation:
    """Put the answer together; figures are the values of the policy, the best one and the baseline."""
    return QualityConfirmation(
        environment=title,
        environment_digest=digest,
        fingerprint=policy.fingerprint,
        value=figures[0],
        best=figures[1],
        baseline=figures[2],
        episodes=ledger.episodes,
        samples=ledger.samples,
        data_commitment=_commit(policy, digest, data_seed),
        package_version=package_version(),
        seconds=time.perf_counter() - began,
        **others,
    )


def _judge(
    rule: SoftRule, asked: Settings, evidence: Evidence, table: NDArray[np.int64], look: int, seed: int, workers: int
) -> tuple[str, int, int]:
    with ThreadPoolExecutor(workers) as threads:
        return judge_policy(
            evidence,
            rule.asked,
            rule.draws,
            table,
            delta=asked.delta,
            min_probability=asked.min_probability,
            looks=look,
            stream=partial(DataStream, seed),
            ask=lambda now, name, numbers: ask_teams(now, name, seed, numbers, threads if workers > 1 else None),
        )


def worth_of(evidence: Evidence, asked: Asked, table: NDArray[np.int64]) -> tuple[float, float, float]:
    """Return what a policy, the best one and the baseline earn by the evidence."""
    model = evidence.model
    values, gaps = np.empty((len(table) + 1, model.initial.size)), np.empty(model.allowed.shape)
    found = []
    for play in (one_hot(table, model.allowed.shape[2]), None, asked.baseline):
        if play is None:
            solve(model, values, gaps)
        else:
            evaluate(model, play, values)
        found.append(from_start(model, values))
    return found[0], found[1], found[2]


def _rows(policy: Policy, world: TabularMDP | GymnasiumModel | None, rows: int) -> NDArray[np.int64]:
    """Return a policy's actions, (H, S)."""
    table = (policy if world is None else check_policy(policy, world)).table
    if len(table) not in (1, rows):
        raise InputError(f"policy must have {rows} steps here, got {quote(policy)}")
    return np.ascontiguousarray(np.broadcast_to(table, (rows, table.shape[1])))


def _commit(policy: Policy, place: str, seed: int) -> str:
    parts = ("reprl-confirm-quality 1", policy.fingerprint, place, str(seed))
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()
