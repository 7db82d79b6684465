"""learn: one call from an environment to a policy with a guarantee."""

from __future__ import annotations

import inspect
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar, Unpack

from reprl.assurance.certificate import Certificate
from reprl.assurance.stopping import Budget, Certified, Rehearsed, StopRule
from reprl.canonical.registered import Published
from reprl.errors import InputError, check_count, check_int, check_real, hint, quote, refuse
from reprl.execution.progress import progress_bar
from reprl.execution.settings import Execution, Progress, check_progress
from reprl.learning.accuracy import with_rescaled_epsilon
from reprl.learning.baseline import resolve_baseline
from reprl.learning.canonical import PROOF, gather_canonical
from reprl.learning.certification import certify_run, check_apart
from reprl.learning.full import run_paper
from reprl.learning.protocol import number_within
from reprl.learning.result import LearnResult, Run
from reprl.learning.search_opening import find_search, learn_by_search
from reprl.learning.settings import LearnOptions, Settings
from reprl.mdp.interface import Interface
from reprl.mdp.labels import RewardMap
from reprl.mdp.policy import Policy
from reprl.mdp.tabular import TabularMDP
from reprl.randomness import SharedKey, check_shared_key, fresh_seed
from reprl.sources.access import WAYS
from reprl.sources.environment import Environment, describe, fresh_model, open_environment, truncate
from reprl.sources.gymnasium.model import GymnasiumModel
from reprl.sources.protocol import Access, check_model
from reprl.storage.checkpoints import Checkpoint, open_checkpoint, recall


class _Unsaid(int):
    """A default that can be told from the same number, where somebody has said it."""


UNSAID = _Unsaid(0)
"""The shared seed where none is given: a recipe has its own."""


def learn(
    env: TabularMDP | GymnasiumModel | str | Any,
    *,
    horizon: int | None = None,
    discount: float | None = None,
    reward_range: tuple[float, float] | None = None,
    shared_seed: int | None = UNSAID,
    data_seed: int | None = None,
    max_samples: float | None = None,
    candidate: tuple[str, int] | Published | None = None,
    certify: bool = False,
    workers: int = 1,
    timeout: float | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    progress: bool | Progress = False,
    learner: str | None = None,
    **options: Unpack[LearnOptions],
) -> LearnResult | Any:
    """Learn a policy that a second run with the same shared seed and fresh data reproduces with probability 1 − ρ.

    Args:
        env: a TabularMDP, a GymnasiumModel, an id for ``reprl.make``, or a gymnasium.Env or a factory of one: a black
            box, for access="episodic" alone, unless it publishes its dynamics. Where observations are a Box, the policy
            is found by a search (docs/search.md), and the result is a ``SearchResult``. Or a recipe, which is followed
            on fresh data (``Recipe.learn``).
        horizon: H, for an id or a gymnasium.Env, which needs it; with a discount, the length of episodes.
        discount: γ, for a stationary policy in an MDP without a horizon (docs/discounting.md).
        reward_range: (low, high) in original units, for a gymnasium.Env or a "gym:" id.
        shared_seed: ξ, published and the same in every run: choose it before the data; None draws one.
        data_seed: seed of the samples, private and fresh in every run; None draws one, or takes the checkpoint's.
        max_samples: the largest number of samples. A run that is undecided then promises nothing; a number of samples
            that is fixed beforehand may not exceed it.
        candidate: (kind, number) that a recipe has published or registered, to follow; ρ is then about runs that follow
            it on data that were not used to choose it.
        certify: continue until the data prove the policy, for rule="canonical". If they never do, it is rehearsed.
        workers: number of threads, or of processes for a black box; the result does not depend on it.
        timeout: largest number of seconds for an episode of a black box, which then ends with an error; None for any.
        checkpoint: a folder for batches of episodes and rehearsals. The same call, or one with more samples, continues
            a run that was stopped or undecided. Its result is that of a run that was never stopped.
        progress: True for a bar on standard error, or a function of (phase, done, total). After each round of
            rule="canonical" the phase is a line with `figures`: samples, teams that agree, values, a forecast.
        learner: "search" for a search in any environment; None for a search if observations are a Box.
        options: fields of ``Settings``, such as quality=0.9, baseline, rho=0.1, delta=0.1, agreement=1, access, rule,
            preference; epsilon= instead of a quality, in reward units. For a search, fields of ``SearchSettings``, such
            as target=475.

    Guarantee:
        As in the result: docs/rehearsal.md, docs/certificates.md and docs/proofs.

    Randomness:
        Shared, at SharedKey(shared_seed). Data: streams of data_seed only.
    """
    workers = _checked_workers(workers, certify, progress)
    most = None if max_samples is None else check_count("max_samples", max_samples, 1)
    if hasattr(env, "learn") and hasattr(env, "shared_seed"):
        given: dict[str, Any] = {"horizon": horizon, "discount": discount, "reward_range": reward_range}
        given |= {"candidate": candidate, "timeout": timeout, "learner": learner}
        given["shared_seed"] = None if shared_seed is UNSAID else shared_seed
        refuse("for a recipe, which says it", **given, **options)
        how: dict[str, Any] = {"data_seed": data_seed, "max_samples": most, "workers": workers}
        return env.learn(checkpoint=checkpoint, progress=progress, certify=certify, **how)
    search, opened = find_search(env, learner, options)
    if search:
        refuse("for a search", candidate=candidate)
        return learn_by_search(
            env,
            horizon=horizon,
            discount=discount,
            reward_range=reward_range,
            shared_seed=fresh_seed() if shared_seed is None else shared_seed,
            data_seed=_private_seed(data_seed, checkpoint),
            options=options,
            opened=opened,
            max_samples=most,
            workers=workers,
            timeout=timeout,
            checkpoint=checkpoint,
            progress=progress,
        )
    check_options(options)
    world = open_environment(env, horizon, reward_range, discount, opened)
    with _closing(None if world is env else world):
        return learn_as(
            world,
            make_settings(options, world),
            shared_seed=shared_seed,
            data_seed=data_seed,
            max_samples=most,
            candidate=candidate,
            certify=certify,
            workers=workers,
            timeout=timeout,
            checkpoint=checkpoint,
            progress=progress,
            own=world is not env,
        )


def learn_as(
    world: TabularMDP | GymnasiumModel,
    settings: Settings,
    *,
    shared_seed: int | None,
    data_seed: int | None,
    max_samples: int | None,
    candidate: tuple[str, int] | Published | None,
    certify: bool,
    workers: int,
    timeout: float | None,
    checkpoint: str | os.PathLike[str] | None,
    progress: bool | Progress,
    own: bool = False,
) -> LearnResult:
    """Learn as ``learn`` does, in an environment that is open, with settings as recipes hold them."""
    began, workers = time.perf_counter(), _checked_workers(workers, certify, progress)
    key = SharedKey(fresh_seed() if shared_seed is None else shared_seed)
    settings = settings.resolve_actions(world.labels.actions, world.n_actions)
    settings = resolve_baseline(settings, world)
    world = truncate_if_needed(world, settings.rule, settings.epsilon)
    settings = settings.resolve_stationarity(world, certify=certify)
    chosen = ReprlLearner(settings, None, max_samples, candidate, certify)
    with (
        fresh_model(world, settings.access, _private_seed(data_seed, checkpoint), own=own) as model,
        open_checkpoint(checkpoint, _work(world, chosen, key.seed, model.data_seed)) as kept,
        progress_bar(progress, "episodes") as tell,
    ):
        limit_time(model, timeout)
        run = chosen.run(model, key, workers=workers, checkpoint=kept, progress=tell)
    seeds = (key.seed, model.data_seed)
    return run.recorded(describe(world), Interface.of(world), seeds, model.ledger, began)


def truncate_if_needed(
    world: TabularMDP | GymnasiumModel, rule: str, epsilon: float | None
) -> TabularMDP | GymnasiumModel:
    """Return the MDP that a rule learns in: "paper" needs a horizon, so a discounted one is cut off at ε."""
    steps = world.criterion.reduced_horizon(epsilon) if rule == "paper" and epsilon is not None else None
    return world if steps is None else truncate(world, steps)


def _private_seed(data_seed: int | None, checkpoint: str | os.PathLike[str] | None) -> int:
    """The data seed that is given, that of the run in a checkpoint, or a fresh one."""
    found = recall(checkpoint, "data_seed") if data_seed is None else data_seed
    return fresh_seed() if found is None else found


def _work(world: TabularMDP | GymnasiumModel, chosen: ReprlLearner, shared_seed: int, data_seed: int) -> dict[str, Any]:
    """Everything on which the tasks of a run depend; its limit is not of it: a run may go on with a larger one."""
    return {
        "kind": "learn",
        "environment": describe(world).stated,
        "settings": chosen.settings.to_dict(),
        "candidate": _named(chosen.candidate),
        "certify": chosen.certify,
        "shared_seed": shared_seed,
        "data_seed": data_seed,
    }


def _named(candidate: tuple[str, int] | Published | None) -> Any:
    """A candidate as a checkpoint tells it from others."""
    if not isinstance(candidate, Published):
        return candidate
    cells = candidate.cells
    return [list(cells.starts), list(cells.order), [[str(u) for u in row] for row in cells.tolerances]]


def limit_time(model: object, timeout: float | None) -> None:
    """Give a black box a limit on the seconds of an episode; None leaves it as it is."""
    if timeout is None:
        return
    if not isinstance(model, GymnasiumModel):
        raise InputError(f"timeout must be None for an environment whose dynamics are known, got {quote(timeout)}")
    model.timeout = check_real("timeout", timeout, 0.0, 1e9)


def certify(result: LearnResult, delta: float | None = None) -> Certificate:
    """Return what the data of a finished run prove.

    Args:
        result: of ``reprl.learn`` with the rule "canonical".
        delta: probability of a false certificate; None for the smaller of the run's δ and ρ/2.

    Guarantee:
        Pr[`proven` and the policy is not f(ξ, M)] ≤ δ over the data, for a shared seed that was fixed before them. Two
        runs of one shared seed and these settings are both certified and different with probability at most 2δ
        (docs/proofs/certificate.md). A run by episodes without certify=True gathered its data adaptively: errors of
        cells are then added up, which takes more data.
    """
    if not isinstance(result, LearnResult) or result.record is None:
        raise InputError(f"result must be what reprl.learn returns, got {quote(result)}")
    settings = result.settings
    if settings.rule != "canonical":
        raise InputError(f"result must be of the rule 'canonical' to be certified, got {settings.rule!r}")
    if settings.agreement < 1.0:
        raise InputError(f"result must be of agreement 1 to be certified, got {settings.agreement:g}")
    result.environment.criterion.require_horizon("result must have a horizon to be certified")
    if result.published is not None:
        raise InputError("result must be of a run that did not follow a registered candidate, got one that did")
    if result.certificate_data is None:
        hint = "" if result.coverage is None else ": learn with certify=True"
        raise InputError(f"result must hold its counts to be certified, got a run without them{hint}")
    if result.certificate_data.source != "log":
        check_apart(settings, "result")
    followed = (result.choice.kind, result.choice.candidate) if result.followed and result.choice else None
    given = settings, result.certificate_data, result.shared_seed, result.policy
    return certify_run(*given, delta, followed=followed, samples=int(result.samples))


def _checked_workers(workers: int, certify: object, progress: object) -> int:
    """Return the number of workers if it, and both flags, can be used."""
    if not isinstance(certify, bool):
        raise InputError(f"certify must be True or False, got {quote(certify)}")
    check_progress(progress)
    return check_int("workers", workers, 1, 1024)


@contextmanager
def _closing(opened: TabularMDP | GymnasiumModel | None) -> Iterator[None]:
    """Close the environment that this call has opened; one that came open stays so."""
    try:
        yield
    finally:
        if isinstance(opened, GymnasiumModel) and opened.reopens:
            opened.close()


def check_options(options: Mapping[str, Any]) -> None:
    """Refuse wrong options before an environment is opened or a log is read, if possible."""
    make_settings(options)


def make_settings(
    options: Mapping[str, Any], world: TabularMDP | GymnasiumModel | Environment | None = None
) -> Settings:
    """Build Settings from keyword options, naming an unknown one; with a world, ε is in the units of its rewards."""
    if world is not None:
        options = with_rescaled_epsilon(options, world)
    known = Settings.__dataclass_fields__
    for name in options:
        if name not in known:
            near = ", an argument of its own" if name in keywords() else hint(name, keywords())
            raise InputError(f"option must be one of {', '.join(known)}; got {quote(name)}{near}")
    return Settings(**options)


def keywords() -> set[str]:
    """Return all that ``learn`` takes by name."""
    return {*inspect.signature(learn).parameters, *LearnOptions.__annotations__} - {"env", "options"}


def learner(**options: Unpack[LearnOptions]) -> ReprlLearner:
    """Return reprl's learner as a function from (model, shared key) to a policy; ε is of rewards in [0, 1]."""
    return ReprlLearner(make_settings(options))


@dataclass(frozen=True)
class ReprlLearner:
    """The reprl learner with its settings bound."""

    settings: Settings
    samples: int | None = None
    """A budget for the canonical rule, which then promises nothing; the paper's has one among its settings."""
    max_samples: int | None = None
    """Never draw more, as ``learn`` says."""
    candidate: tuple[str, int] | Published | None = None
    """What a recipe has published, to follow."""
    certify: bool = False
    """Whether to go on until the data prove the policy."""
    name: ClassVar[str] = "reprl"
    replicable: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Refuse what the rule has no use for."""
        if self.settings.rule != "canonical":
            refuse("unless rule='canonical'", candidate=self.candidate, samples=self.samples)
        if self.certify and isinstance(self.candidate, Published):
            raise InputError("certify must be False for a registered candidate, got True")
        if self.certify and self.settings.rule != "canonical":
            raise InputError(f"certify must be False unless rule='canonical', got True for {self.settings.rule!r}")
        if self.max_samples is not None:
            object.__setattr__(self, "max_samples", check_count("max_samples", self.max_samples, 1))
        if self.settings.agreement < 1.0:
            refuse("for an agreement below 1", candidate=self.candidate, certify=self.certify or None)
        if self.samples is not None:
            check_int("samples", self.samples, 1)

    @property
    def access(self) -> Access:
        """The models that it learns from, "generative" or "episodic"."""
        return self.settings.access

    def __call__(self, model: Any, shared_key: SharedKey) -> Policy:
        """Learn from fresh samples of the model, whose kind must be the settings' access."""
        return self.run(model, shared_key).policy

    def run(
        self,
        model: Any,
        shared_key: SharedKey,
        *,
        workers: int = 1,
        checkpoint: Checkpoint | None = None,
        progress: Progress | None = None,
    ) -> Run:
        """Learn as by a call, and show the way to the policy; workers and progress are for episodes."""
        execution = Execution(workers=workers, checkpoint=checkpoint, progress=progress)
        if self.settings.rule == "canonical":
            return self._run_canonical(model, shared_key, execution)
        return run_paper(model, shared_key, self.settings, max_samples=self.max_samples, execution=execution)

    def _run_canonical(self, model: Any, shared_key: SharedKey, execution: Execution) -> Run:
        settings, asked = resolve_baseline(self.settings, model), self.settings.asked
        stop: StopRule = Rehearsed(asked, execution, _width(model))
        if self.samples is not None:
            check_model(model, self.access, self.name, masked=True)
            pooled = settings.resolve_stationarity(model).pooled
            way = WAYS[settings.access]
            number_within(self.samples, way.cost(model, pooled=pooled), way.unit)
            stop = Budget(asked)
        if self.certify:
            stop = Certified(asked, check_shared_key(shared_key).seed, stop)
        limit, proof = self.max_samples if self.samples is None else self.samples, PROOF if self.certify else None
        how: dict[str, Any] = {"candidate": self.candidate, "limit": limit, "proof": proof}
        return gather_canonical(model, shared_key, settings, stop, execution, **how).run


def _width(model: Any) -> float:
    """Return what rescaled rewards are times in the units of a model's own rewards, as far as it says these."""
    world = getattr(model, "mdp", model)
    labels = getattr(world, "labels", None)
    found: RewardMap = getattr(world, "reward_map", RewardMap() if labels is None else labels.reward_map)
    return found.width
