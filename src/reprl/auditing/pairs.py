"""Runs under one shared key on independent data: how a learner is called, what is kept of it, and who does the work."""

from __future__ import annotations

import math
import traceback
from collections.abc import Callable, Generator, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from reprl.auditing.divergence import Divergence, first_divergence, policy_divergence
from reprl.auditing.evidence import SequentialTest
from reprl.auditing.recipes import Audited
from reprl.errors import InputError, ReprlError, check_choice, check_count, quote
from reprl.execution.tasks import count_workers, run_tasks
from reprl.learning.adapters import as_learner, lasting, policy_of
from reprl.learning.baseline import resolve_baseline
from reprl.learning.learner import ReprlLearner, make_settings
from reprl.learning.protocol import Learner, Run, access_of, name_of
from reprl.learning.settings import Settings
from reprl.mdp.policy import Policy
from reprl.mdp.tabular import TabularMDP
from reprl.randomness import DataStream, SharedKey
from reprl.sources.access import WAYS
from reprl.sources.environment import Environment, describe, fresh_model
from reprl.sources.gymnasium.model import GymnasiumModel
from reprl.sources.protocol import ACCESSES, Access
from reprl.storage.checkpoints import Checkpoint, Content, Kept
from reprl.storage.fields import SHARE, Kind, many, optional, read_fields, real, record, whole, wholes, write_fields

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Subject:
    """The learner under audit."""

    name: str
    access: str
    options: Mapping[str, Any]
    call: Learner
    """From (model, shared key) to a policy, or to a Run, whose stages are then compared."""
    theirs: bool = False
    """Whether a user wrote it; its errors are then marked as the user's."""


def resolve_learner(
    learner: object,
    env: TabularMDP | GymnasiumModel,
    rho: float,
    access: Access | None,
    options: dict[str, Any],
    agreement: float = 1.0,
) -> Subject:
    """Return the learner that a user means: a name, reprl's own with settings bound, or any callable."""
    if access is not None:
        check_choice("access", access, ACCESSES)
    if isinstance(learner, ReprlLearner):
        if options:
            raise InputError(f"options must be left out for a learner with its settings bound, got {quote(options)}")
        settings = learner.settings if access is None else replace(learner.settings, access=access)
        settings = _resolved(settings, env)
        sizes = {"samples": learner.samples, "max_samples": learner.max_samples}
        given = {name: number for name, number in sizes.items() if number is not None}
        return _ours(replace(learner, settings=settings), given)
    if isinstance(learner, str) and learner == ReprlLearner.name:
        if options.get("samples") is None or options.get("rule") == "paper":
            kept = {name: value for name, value in options.items() if value is not None or name != "samples"}
            return _named(env, rho, access, kept if agreement == 1.0 else {**kept, "agreement": agreement})
        options = {**options, **({} if access is None else {"access": access})}
    if isinstance(learner, str):
        return _rival(learner, env, rho, access, options)
    if not callable(learner):
        allowed = "a name, a callable learner(model, shared_key) or a function train(env)"
        raise InputError(f"learner must be {allowed}, got {quote(learner)}")
    learner = as_learner(learner)
    way, name = access_of(learner, access), name_of(learner)
    WAYS[way].check(env, name)
    return Subject(name=name, access=way, options=options, call=cast(Learner, learner), theirs=True)


def _ours(learner: ReprlLearner, sizes: Mapping[str, Any]) -> Subject:
    options = {**learner.settings.to_dict(), **sizes}
    return Subject(name=learner.name, access=learner.access, options=options, call=learner.run)


def _named(env: TabularMDP | GymnasiumModel, rho: float, access: Access | None, options: dict[str, Any]) -> Subject:
    access = access or ("episodic" if isinstance(env, GymnasiumModel) else None)
    limit = {name: options[name] for name in ("max_samples",) if name in options}
    if limit.get("max_samples") is not None:
        limit["max_samples"] = check_count("max_samples", limit["max_samples"], 1)
    given = {name: value for name, value in options.items() if name not in limit}
    settings = make_settings({"rho": rho, **given, **({} if access is None else {"access": access})})
    return _ours(ReprlLearner(_resolved(settings, env), **limit), limit)


def _resolved(settings: Settings, env: TabularMDP | GymnasiumModel) -> Settings:
    """The settings with the actions of preference and baseline by their numbers."""
    return resolve_baseline(settings.resolve_actions(describe(env).labels.actions, env.n_actions), env)


def _rival(
    name: str, env: TabularMDP | GymnasiumModel, rho: float, access: Access | None, options: dict[str, Any]
) -> Subject:
    from reprl.lab.baselines import learners, make_learner

    known = {entry.name: entry.options for entry in learners()}
    bound = {**({"rho": rho} if "rho" in known.get(name, ()) else {}), **options}
    call = make_learner(name, **bound)
    way = access_of(call, access)
    WAYS[way].check(env, name)
    return Subject(name=name, access=way, options=bound, call=call)


@dataclass(frozen=True, kw_only=True)
class Trial:
    """Everything that a key's runs depend on, so that any worker can make them."""

    env: TabularMDP | GymnasiumModel
    world: Environment
    subject: Subject
    seed: int
    runs: int
    """Runs under each shared key."""
    scores: NDArray[np.float64] | None = None
    """Q*, where the dynamics are known."""
    reachable: NDArray[np.bool_] | None = None
    """(H, S): the cells that some policy reaches, where the dynamics are known."""
    episodes: int = 0
    """Episodes with which each policy is valued in a black box; 0 for none."""
    recipe: Audited | None = None
    """Whose runs these are; None where no recipe was given."""
    pilot: int | None = None
    """Data seed that no run may use; None if there is none."""


class KeyRuns(NamedTuple):
    """What the runs under one shared key showed."""

    actions: NDArray[np.int32]
    """(runs, H, S)."""
    samples: tuple[int, ...]
    values: tuple[float, ...] | None
    """Each policy's exact value where the dynamics are known, its mean return over episodes in a black box."""
    divergence: Divergence | None
    """Of the first two runs, if they disagree."""
    visits: NDArray[np.int64] | None = None
    """(H, S): how often those episodes, of all runs together, came to each cell."""
    alike: tuple[float, ...] | None = None
    """Share of decisions that two runs take alike, in episodes of the one or the other, whichever is less: of the first
    two runs, then of all other pairs; None where nobody knows how often they come where."""

    @property
    def differ(self) -> bool:
        """Whether the first two policies differ."""
        return bool((self.actions[0] != self.actions[1]).any())


def pair_seeds(seed: int, number: int, runs: int = 2) -> tuple[SharedKey, list[int]]:
    """Return the shared key and the data seeds of the runs with a number, which no order or split of the work changes.

    Randomness:
        Shared seed: word `number` of data stream (seed, "audit/shared"). Data seeds: words of (seed, "audit/data",
        number).
    """
    shared = int(DataStream(seed, "audit/shared").integers(1, number)[0]) >> 1
    return SharedKey(shared), [int(word) >> 1 for word in DataStream(seed, "audit/data", number).integers(runs)]


def evaluation_seed(seed: int, number: int = 0) -> int:
    """Return the seed of the episodes with which policies are valued: word 0 of (seed, "audit/evaluation", number)."""
    return int(DataStream(seed, "audit/evaluation", number).integers(1)[0]) >> 1


def run_key(trial: Trial, number: int) -> KeyRuns:
    """Make all runs of the key with a number.

    Randomness:
        As ``pair_seeds`` says; a recipe may fix the shared seed. Policies in a black box are valued on the same
        episodes, those of ``evaluation_seed``.
    """
    shared, seeds = pair_seeds(trial.seed, number, trial.runs)
    if trial.recipe is not None and trial.recipe.shared_seed is not None:
        shared = SharedKey(trial.recipe.shared_seed)
    seeds = [seed ^ (seed == trial.pilot) for seed in seeds]  # the pilot's gets another lowest bit
    policies: list[Policy] = []
    samples: list[int] = []
    outputs: list[object] = []
    for run, seed in enumerate(seeds):
        output, policy, spent = _call(trial, shared, seed, f"pair {number}, run {run}")
        policies.append(policy)
        samples.append(spent)
        outputs = [*outputs, output][:2]
    values, visits, places = _value(trial, number, policies)
    reached = trial.reachable if visits is None else visits > 0
    one, two = outputs
    if isinstance(one, Run) and isinstance(two, Run):
        divergence = first_divergence(number, one, two, trial.world)
    else:
        divergence = policy_divergence(number, policies[0], policies[1], trial.world, trial.scores, reached)
    actions = np.stack([policy.table.astype(np.int32) for policy in policies])
    alike = None
    if places is not None:
        pairs = combinations(range(len(policies)), 2)
        alike = tuple(_alike(policies[i], policies[j], places[i], places[j]) for i, j in pairs)
    return KeyRuns(actions, tuple(samples), values, divergence, visits, alike)


def _alike(one: Policy, two: Policy, *visits: NDArray[Any]) -> float:
    return 1.0 if one == two else 1.0 - one.disagreement(two, tuple(visits))


def _value(
    trial: Trial, number: int, policies: list[Policy]
) -> tuple[tuple[float, ...] | None, NDArray[np.int64] | None, list[NDArray[Any]] | None]:
    """What the policies of a key are worth; in a black box, where they went together; and where each of them goes."""
    env = trial.env
    if isinstance(env, TabularMDP):
        exact = {policy: (env.evaluate(policy), lasting(env, policy)) for policy in set(policies)}
        return tuple(exact[policy][0] for policy in policies), None, [exact[policy][1] for policy in policies]
    if not trial.episodes:
        return None, None, None
    seed = evaluation_seed(trial.seed, number)
    played: dict[Policy, tuple[float, NDArray[np.int64]]] = {}
    for policy in policies:
        if policy not in played:
            with fresh_model(env, "episodic", seed) as model:
                assert isinstance(model, GymnasiumModel)
                found = model.play(policy, trial.episodes)
            played[policy] = float(found.returns.mean()), found.visits
    places = [played[policy][1] for policy in policies]
    return tuple(played[policy][0] for policy in policies), np.sum(places, axis=0), places


def _call(trial: Trial, key: SharedKey, data_seed: int, where: str) -> tuple[object, Policy, int]:
    """Run a learner once on a fresh model; errors of a user's own say in which pair and run they came."""
    subject = trial.subject
    with fresh_model(trial.env, subject.access, data_seed) as model:
        try:
            output = subject.call(model, key, **subject.options) if subject.theirs else subject.call(model, key)
        except (Exception, SystemExit) as error:
            if not subject.theirs:
                raise
            raise InputError(f"learner {subject.name} failed in {where}: {_reason(error)}") from error
    try:
        return output, policy_of(output, model), model.ledger.samples
    except ReprlError as error:
        raise type(error)(f"learner {subject.name} in {where}: {error}") from None


def _reason(error: BaseException) -> str:
    """The error on one line, with the deepest place in the learner's own file."""
    here = str(Path(__file__).parents[1])
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith(here)]
    own = [frame for frame in frames if frame.filename == frames[0].filename]
    place = f" ({Path(own[-1].filename).name}, line {own[-1].lineno})" if own else ""
    return f"{type(error).__name__}: {' '.join(str(error).split())}{place}"


def run_keys(
    trial: Trial, pairs: int, workers: int, *, may_stop: bool, checkpoint: Checkpoint | None = None
) -> Generator[KeyRuns, None, None]:
    """Make the runs of keys 0, 1, …, as ``run_numbered`` does."""
    store = None
    if checkpoint is not None:
        store = Kept(checkpoint, "pair ", partial(_write_runs, trial), partial(_read_runs, trial))
    return run_numbered(run_key, trial, pairs, workers, store, may_stop=may_stop)


def run_numbered(
    task: Callable[[Any, int], T], trial: Any, pairs: int, workers: int, store: Kept[T] | None, *, may_stop: bool
) -> Generator[T, None, None]:
    """Make pairs 0, 1, …, in order, in `workers` processes or on the cluster that joblib is told of.

    may_stop says that the reader may stop before the last pair: few are then begun ahead of need.
    """
    window = 2 * count_workers(workers) if may_stop else None
    return run_tasks(task, trial, range(pairs), workers=workers, window=window, store=store)


def watch(
    runs: Generator[T, None, None],
    add: Callable[[T], int],
    test: SequentialTest | None,
    tell: Callable[[int], None] | None,
) -> None:
    """Add pairs up until a sequential test decides or they are used up; add returns the pairs so far that differ."""
    with closing(runs):
        for number, found in enumerate(runs, 1):
            hits = add(found)
            if tell is not None:
                tell(number)
            if test is not None and test.decide(hits, number) != "undecided":
                break


def _task(trial: Trial) -> dict[str, Kind]:
    """The fields of a finished key."""
    table = {
        "samples": many(whole(), trial.runs),
        "values": optional(many(real(-math.inf), trial.runs)),
        "divergence": optional(record(Divergence)),
        "alike": optional(many(SHARE)),
    }
    return {**table, "visits": wholes((trial.world.horizon, trial.world.n_states))} if trial.episodes else table


def _write_runs(trial: Trial, found: KeyRuns) -> Content:
    return Content(write_fields(found, _task(trial)), found.actions.astype(_kind(trial.world)).tobytes())


def _read_runs(trial: Trial, content: Content) -> KeyRuns:
    world = trial.world
    fields = read_fields("task", content.fields, _task(trial), SimpleNamespace(environment=world), " ")
    actions = np.frombuffer(content.data, _kind(world)).reshape(trial.runs, world.horizon, world.n_states)
    return KeyRuns(actions.astype(np.int32), **fields)


def _kind(world: Environment) -> str:
    """The smallest type that holds every action."""
    return "<u1" if world.n_actions <= 2**8 else "<i4"
