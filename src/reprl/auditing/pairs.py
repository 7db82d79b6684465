"""Runs under one shared key on independent data: how a learner is called, what is kept of it, and who does the work."""

from __future__ import annotations

import os
import threading
import time
import traceback
import warnings
from collections.abc import Generator, Iterator, Mapping
from concurrent.futures import BrokenExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from reprl.auditing.divergence import Divergence, first_divergence, policy_divergence
from reprl.errors import ReprlError, check_choice, quote
from reprl.learning.learner import ReprlLearner, make_settings
from reprl.learning.protocol import Learner, Run, access_of, name_of, policy_of
from reprl.learning.settings import ACCESSES
from reprl.mdp.environment import Environment, check_access, describe, fresh_model
from reprl.mdp.gymnasium.model import GymnasiumModel
from reprl.mdp.policy import Policy
from reprl.mdp.tabular import TabularMDP
from reprl.randomness import DataStream, SharedKey

_ATTEMPTS = 3
"""Processes that may be killed over one key."""


@dataclass(frozen=True, kw_only=True)
class Subject:
    """The learner under audit."""

    name: str
    access: str
    options: Mapping[str, Any]
    call: Learner
    """From (model, shared key) to a policy, or to a Run, whose stages are then compared."""
    theirs: bool = False
    """Whether a user wrote it, whose errors are then told apart from ours."""


def resolve_learner(
    learner: object, env: TabularMDP | GymnasiumModel, rho: float, access: str | None, options: dict[str, Any]
) -> Subject:
    """Return the learner that a user means: a name, reprl's own with settings bound, or any callable."""
    if access is not None:
        check_choice("access", access, ACCESSES)
    if isinstance(learner, ReprlLearner):
        if options:
            raise ReprlError(f"options must be left out for a learner with its settings bound, got {quote(options)}")
        settings = learner.settings if access is None else replace(learner.settings, access=access)
        settings = settings.numbered(describe(env).labels.actions, env.n_actions)
        sizes = {"samples": learner.samples, "max_samples": learner.max_samples}
        given = {name: number for name, number in sizes.items() if number is not None}
        return _ours(replace(learner, settings=settings), given)
    if isinstance(learner, str) and learner == ReprlLearner.name:
        if options.get("samples") is None:
            return _named(env, rho, access, {name: value for name, value in options.items() if name != "samples"})
        options = {**options, **({} if access is None else {"access": access})}
    if isinstance(learner, str):
        return _rival(learner, env, rho, access, options)
    if not callable(learner):
        raise ReprlError(f"learner must be a name or a callable learner(model, shared_key), got {quote(learner)}")
    access, name = access_of(learner, access), name_of(learner)
    check_access(env, access, name)
    return Subject(name=name, access=access, options=options, call=cast(Learner, learner), theirs=True)


def _ours(learner: ReprlLearner, sizes: Mapping[str, Any]) -> Subject:
    options = {**learner.settings.as_dict(), **sizes}
    return Subject(name=learner.name, access=learner.access, options=options, call=learner.run)


def _named(env: TabularMDP | GymnasiumModel, rho: float, access: str | None, options: dict[str, Any]) -> Subject:
    access = access or ("episodic" if isinstance(env, GymnasiumModel) else None)
    limit = {name: options[name] for name in ("max_samples",) if name in options}
    given = {name: value for name, value in options.items() if name not in limit}
    settings = make_settings({"rho": rho, **given, **({} if access is None else {"access": access})})
    settings = settings.numbered(describe(env).labels.actions, env.n_actions)
    return _ours(ReprlLearner(settings, **limit), limit)


def _rival(
    name: str, env: TabularMDP | GymnasiumModel, rho: float, access: str | None, options: dict[str, Any]
) -> Subject:
    from reprl.peers import learners, make_learner

    known = {entry.name: entry.options for entry in learners()}
    bound = {**({"rho": rho} if "rho" in known.get(name, ()) else {}), **options}
    call = make_learner(name, **bound)
    access = access_of(call, access)
    check_access(env, access, name)
    return Subject(name=name, access=access, options=bound, call=call)


@dataclass(frozen=True, kw_only=True)
class Trial:
    """Everything that a key's runs depend on, so that any worker can make them."""

    env: TabularMDP | GymnasiumModel
    world: Environment
    subject: Subject
    seed: int
    runs: int
    """Runs under each shared key."""
    scores: NDArray[np.float64] | None
    """Q*, where the dynamics are known."""


class KeyRuns(NamedTuple):
    """What the runs under one shared key showed."""

    actions: NDArray[np.int32]
    """(runs, H, S)."""
    samples: tuple[int, ...]
    values: tuple[float, ...] | None
    """Each policy's exact value, where the dynamics are known."""
    divergence: Divergence | None
    """Of the first two runs, if they disagree."""


def run_key(trial: Trial, number: int) -> KeyRuns:
    """Make all runs of the key with a number.

    Randomness:
        Shared seed: word `number` of data stream (seed, "audit/shared"). Data seeds: words of (seed, "audit/data",
        number). So no order or split of the work can change a run.
    """
    shared = int(DataStream(trial.seed, "audit/shared").integers(1, number)[0]) >> 1
    seeds = [int(word) >> 1 for word in DataStream(trial.seed, "audit/data", number).integers(trial.runs)]
    policies: list[Policy] = []
    samples: list[int] = []
    outputs: list[object] = []
    for run, seed in enumerate(seeds):
        output, policy, spent = _call(trial, SharedKey(shared), seed, f"pair {number}, run {run}")
        policies.append(policy)
        samples.append(spent)
        outputs = [*outputs, output][:2]
    one, two = outputs
    if isinstance(one, Run) and isinstance(two, Run):
        divergence = first_divergence(number, one, two, trial.world)
    else:
        divergence = policy_divergence(number, policies[0], policies[1], trial.world, trial.scores)
    values = None
    if isinstance(trial.env, TabularMDP):
        worth = {policy: trial.env.evaluate(policy) for policy in set(policies)}
        values = tuple(worth[policy] for policy in policies)
    actions = np.stack([policy.actions.astype(np.int32) for policy in policies])
    return KeyRuns(actions, tuple(samples), values, divergence)


def _call(trial: Trial, key: SharedKey, data_seed: int, where: str) -> tuple[object, Policy, int]:
    """Run a learner once on a fresh model; errors of a user's own say in which pair and run they came."""
    subject = trial.subject
    with fresh_model(trial.env, subject.access, data_seed) as model:
        try:
            output = subject.call(model, key, **subject.options) if subject.theirs else subject.call(model, key)
        except (Exception, SystemExit) as error:
            if not subject.theirs:
                raise
            raise ReprlError(f"learner {subject.name} failed in {where}: {_reason(error)}") from error
    try:
        return output, policy_of(output, model), model.ledger.samples
    except ReprlError as error:
        raise ReprlError(f"learner {subject.name} in {where}: {error}") from None


def _reason(error: BaseException) -> str:
    """The error on one line, with the deepest place in the learner's own file."""
    frames = traceback.extract_tb(error.__traceback__)[1:]
    own = [frame for frame in frames if frame.filename == frames[0].filename]
    place = f" ({Path(own[-1].filename).name}, line {own[-1].lineno})" if own else ""
    return f"{type(error).__name__}: {' '.join(str(error).split())}{place}"


def run_keys(trial: Trial, numbers: range, workers: int, batch: int) -> Iterator[KeyRuns]:
    """Make the runs of many keys, in order, in `workers` processes; at most `batch` keys are begun ahead of need.

    The error of a key is raised when its turn comes, so that a reader who stops before never sees it.
    """
    if workers == 1:
        yield from (run_key(trial, number) for number in numbers)
        return
    for low in range(0, len(numbers), batch):
        for item in _try_keys(trial, numbers[low : low + batch], workers, whole=batch >= len(numbers)):
            if isinstance(item, ReprlError):
                raise item
            yield item


def _try_keys(trial: Trial, numbers: range, workers: int, *, whole: bool) -> Iterator[KeyRuns | ReprlError]:
    """Make the runs of keys in processes, in order; a key is a function of its number, so a killed one is made again.

    Args:
        trial: what to run.
        numbers: of the keys.
        workers: processes.
        whole: whether all are wanted; otherwise none are handed on before all are made, so that who stops leaves no
            work behind.
    """
    from joblib import Parallel, delayed

    done = deaths = 0
    while done < len(numbers):
        jobs = (delayed(_try_key)(trial, number, os.getpid()) for number in numbers[done:])
        found = Parallel(n_jobs=workers, return_as="generator")(jobs)
        try:
            with _closing(found):
                for item in found if whole else list(found):
                    done, deaths = done + 1, 0
                    yield item
        except BrokenExecutor:  # a process was killed
            deaths += 1
            if deaths == _ATTEMPTS:
                raise ReprlError(
                    f"processes that make runs must live, got {deaths} times in a row one that was killed; if memory "
                    "is short, take fewer workers"
                ) from None


@contextmanager
def _closing(jobs: Generator[Any, None, None]) -> Iterator[None]:
    """Leave no work behind, without joblib's warning that some of it was in vain."""
    try:
        yield
    finally:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            jobs.close()


def _try_key(trial: Trial, number: int, parent: int) -> KeyRuns | ReprlError:
    _end_with(parent)
    try:
        return run_key(trial, number)
    except ReprlError as error:
        return error


@cache
def _end_with(parent: int) -> None:
    """Have a process that another one has started end when that one does, whatever it is computing then."""
    if os.getppid() == parent:  # a thread, or a process on another machine, ends by itself
        threading.Thread(target=_watch, args=(parent,), daemon=True).start()


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(1.0)
    os._exit(1)
