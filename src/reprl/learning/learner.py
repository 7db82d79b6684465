"""learn: one call from an environment to a policy with a guarantee."""

from __future__ import annotations

import inspect
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar, Unpack

from reprl.errors import InputError, check_count, check_int, check_real, hint, quote, refuse
from reprl.execution.progress import progress_bar
from reprl.execution.settings import Execution, Progress, check_progress
from reprl.learning.accuracy import with_rescaled_epsilon
from reprl.learning.baseline import resolve_baseline
from reprl.learning.full import run_paper
from reprl.learning.protocol import number_within
from reprl.learning.result import LearnResult, Run
from reprl.learning.search_opening import find_search, learn_by_search
from reprl.learning.settings import LearnOptions, Settings
from reprl.learning.soft import run_soft
from reprl.mdp.interface import Interface
from reprl.mdp.policy import Policy
from reprl.mdp.tabular import TabularMDP
from reprl.randomness import SharedKey, fresh_seed
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
        workers: number of threads, or of processes for a black box; the result does not depend on it.
        timeout: largest number of seconds for an episode of a black box, which then ends with an error; None for any.
        checkpoint: a folder for batches of episodes. The same call, or one with more samples, continues
            a run that was stopped or undecided. Its result is that of a run that was never stopped.
        progress: True for a bar on standard error, or a function of (phase, done, total). After each round of
            the default rule the phase is a line with `figures`: samples, teams that agree, values.
        learner: "search" for a search in any environment; None for a search if observations are a Box.
        options: fields of ``Settings``, such as quality=0.9, baseline, rho=0.1, delta=0.1, access, rule,
            preference; epsilon= instead of a quality, in reward units. For a search, fields of ``SearchSettings``, such
            as target=475.

    Guarantee:
        As in the result: docs/rehearsal.md and docs/proofs.

    Randomness:
        Shared, at SharedKey(shared_seed). Data: streams of data_seed only.
    """
    workers = _checked_workers(workers, progress)
    most = None if max_samples is None else check_count("max_samples", max_samples, 1)
    if hasattr(env, "learn") and hasattr(env, "shared_seed"):
        given: dict[str, Any] = {"horizon": horizon, "discount": discount, "reward_range": reward_range}
        given |= {"timeout": timeout, "learner": learner}
        given["shared_seed"] = None if shared_seed is UNSAID else shared_seed
        refuse("for a recipe, which says it", **given, **options)
        how: dict[str, Any] = {"data_seed": data_seed, "max_samples": most, "workers": workers}
        return env.learn(checkpoint=checkpoint, progress=progress, **how)
    search, opened = find_search(env, learner, options)
    if search:
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
    workers: int,
    timeout: float | None,
    checkpoint: str | os.PathLike[str] | None,
    progress: bool | Progress,
    own: bool = False,
) -> LearnResult:
    """Learn as ``learn`` does, in an environment that is open, with settings as recipes hold them."""
    began, workers = time.perf_counter(), _checked_workers(workers, progress)
    key = SharedKey(fresh_seed() if shared_seed is None else shared_seed)
    settings = settings.resolve_actions(world.labels.actions, world.n_actions)
    settings = resolve_baseline(settings, world)
    world = truncate_if_needed(world, settings.rule, settings.epsilon)
    settings = settings.resolve_stationarity(world)
    chosen = ReprlLearner(settings, None, max_samples)
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
        "shared_seed": shared_seed,
        "data_seed": data_seed,
    }


def limit_time(model: object, timeout: float | None) -> None:
    """Give a black box a limit on the seconds of an episode; None leaves it as it is."""
    if timeout is None:
        return
    if not isinstance(model, GymnasiumModel):
        raise InputError(f"timeout must be None for an environment whose dynamics are known, got {quote(timeout)}")
    model.timeout = check_real("timeout", timeout, 0.0, 1e9)


def _checked_workers(workers: int, progress: object) -> int:
    """Return the number of workers if it, and progress, can be used."""
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
    """A budget for the default rule; the paper's has one among its settings."""
    max_samples: int | None = None
    """Never draw more, as ``learn`` says."""
    name: ClassVar[str] = "reprl"
    replicable: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Refuse what the rule has no use for."""
        if self.settings.rule != "soft":
            refuse("unless rule='soft'", samples=self.samples)
        if self.max_samples is not None:
            object.__setattr__(self, "max_samples", check_count("max_samples", self.max_samples, 1))
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
        if self.settings.rule == "paper":
            return run_paper(model, shared_key, self.settings, max_samples=self.max_samples, execution=execution)
        settings, limit = resolve_baseline(self.settings, model), self.max_samples
        if self.samples is not None:
            check_model(model, self.access, self.name, masked=True)
            way, pooled = WAYS[settings.access], bool(settings.resolve_stationarity(model).stationary)
            number_within(self.samples, 2 * way.cost(model, pooled=pooled), f"two times {way.unit}")
            limit = self.samples
        return run_soft(model, shared_key, settings, execution, limit=limit)
