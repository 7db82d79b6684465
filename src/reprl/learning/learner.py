"""learn: one call from an environment to a policy with a guarantee."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from reprl.decide.induction import Induction
from reprl.errors import ReprlError, check_int, quote
from reprl.explore.rep_explore import Explored
from reprl.guarantee import Guarantee
from reprl.learning.episodic import run_episodic
from reprl.learning.generative import run_generative
from reprl.learning.settings import Settings
from reprl.mdp.access import EpisodicModel, GenerativeModel
from reprl.mdp.counts import Counts
from reprl.mdp.environment import Environment, describe, open_environment
from reprl.mdp.gymnasium.model import GymnasiumModel
from reprl.mdp.policy import Policy
from reprl.mdp.tabular import TabularMDP
from reprl.mdp.tiers import Tiers
from reprl.progress import progress_bar
from reprl.randomness import SharedKey, fresh_seed

if TYPE_CHECKING:
    from reprl.artifacts.receipt import Receipt
    from reprl.artifacts.recipe import Recipe


class LearnResult(NamedTuple):
    """What one run produced."""

    policy: Policy
    samples: int
    """Observed (next state, reward) pairs, every one counted."""
    episodes: int
    """Episodes, for access "episodic"; 0 for parallel sampling."""
    guarantee: Guarantee
    tiers: Tiers
    counts: Counts
    induction: Induction
    """Values, laws and scores behind the policy, for inspection."""
    explored: Explored | None
    """Fractional and drawn ignorable sets, for access "episodic"."""
    settings: Settings
    shared_seed: int
    data_seed: int
    """Private: publish the shared seed, not this one."""
    environment: Environment
    stretch: float
    """How much wider than ε/H the decision's windows were: measured by an episodic run, 1 for parallel sampling."""
    level: int
    """How often an episodic run began its exploration again, with longer runs, because its own data asked for it."""
    seconds: float
    """How long the run took: the one figure that the seeds do not fix."""

    @property
    def recipe(self) -> Recipe:
        """Everything a second team needs to repeat this run on fresh data."""
        from reprl.artifacts.recipe import Recipe

        return Recipe.of(self)

    @property
    def receipt(self) -> Receipt:
        """What this run produced, for the record."""
        from reprl.artifacts.receipt import Receipt

        return Receipt.of(self)


def learn(
    env: TabularMDP | GymnasiumModel | str | Any,
    *,
    horizon: int | None = None,
    reward_range: tuple[float, float] | None = None,
    shared_seed: int | None = None,
    data_seed: int | None = None,
    max_samples: int | None = None,
    workers: int = 1,
    progress: bool = False,
    **options: Any,
) -> LearnResult:
    """Learn a policy that a second run, on fresh data and the same shared seed, is likely to reproduce exactly.

    Args:
        env: a TabularMDP, a GymnasiumModel, an id for ``reprl.make``, or a gymnasium.Env or a factory of one. One that
            does not publish its dynamics is a black box, for access="episodic" alone.
        horizon: H, for an id or a gymnasium.Env, which needs it.
        reward_range: (low, high) in original units, for a gymnasium.Env or a "gym:" id.
        shared_seed: ξ, published and the same in every run; None draws one, to be read off the result.
        data_seed: seed of the samples, private and different in every run; None draws one.
        max_samples: never draw more; a run that needs more is refused.
        workers: threads, or processes for a black box; they cannot change the result.
        progress: show a bar on standard error: phase, episodes, time left in the phase.
        options: the fields of ``Settings``, all optional: epsilon=0.3, rho=0.1, delta=0.1, access="episodic" or
            "generative", coupling="auto", "joint", "blocked" or "product", block=32, mechanism="compact" or
            "exponential", rounding="none", "vector" or "grid", constants="practical" or "paper", calls=None,
            runs=None.

    Guarantee:
        As in the result, with its status: docs/proofs/decision.md for "proven", docs/calibration.md for "heuristic".

    Randomness:
        Shared, at SharedKey(shared_seed). Data: streams of data_seed only.
    """
    began = time.perf_counter()
    settings = make_settings(options)
    workers = check_int("workers", workers, 1, 1024)
    if not isinstance(progress, bool):
        raise ReprlError(f"progress must be True or False, got {quote(progress)}")
    world = open_environment(env, horizon, reward_range)
    key = SharedKey(fresh_seed() if shared_seed is None else shared_seed)
    seed = fresh_seed() if data_seed is None else data_seed
    model: GenerativeModel | EpisodicModel | GymnasiumModel
    if settings.access == "generative":
        if isinstance(world, GymnasiumModel):
            raise ReprlError(f"access must be 'episodic' for a black box, got 'generative' for {quote(world)}")
        model = GenerativeModel(world, seed)
        drawn = run_generative(model, key, settings, max_samples)
        induction, tiers, counts, explored = drawn.induction, drawn.tiers, drawn.counts, None
        guarantee, stretch, level = drawn.guarantee, 1.0, 0
    else:
        model = world.for_run(seed) if isinstance(world, GymnasiumModel) else EpisodicModel(world, seed)
        with progress_bar(progress, "episodes") as tell, _closing(model, None if world is env else world):
            played = run_episodic(model, key, settings, max_samples=max_samples, workers=workers, progress=tell)
        induction, explored, guarantee, stretch, level = played
        tiers, counts = explored.tiers, explored.counts
    return LearnResult(
        policy=induction.policy,
        samples=model.ledger.samples,
        episodes=model.ledger.episodes,
        guarantee=guarantee,
        tiers=tiers,
        counts=counts,
        induction=induction,
        explored=explored,
        settings=settings,
        shared_seed=key.seed,
        data_seed=model.data_seed,
        environment=describe(world),
        stretch=stretch,
        level=level,
        seconds=time.perf_counter() - began,
    )


@contextmanager
def _closing(*opened: object) -> Iterator[None]:
    """Close the environments that this run has opened; one that came open stays so."""
    try:
        yield
    finally:
        for model in opened:
            if isinstance(model, GymnasiumModel) and model.reopens:
                model.close()


def make_settings(options: dict[str, Any]) -> Settings:
    """Build Settings from keyword options, naming an unknown one."""
    known = Settings.__dataclass_fields__
    for name in options:
        if name not in known:
            raise ReprlError(f"option must be one of {', '.join(known)}; got {quote(name)}")
    return Settings(**options)


def learner(**options: Any) -> ReprlLearner:
    """Bind settings into a callable that maps (model, shared key) to a policy, for boosting and audits."""
    return ReprlLearner(make_settings(options))


@dataclass(frozen=True)
class ReprlLearner:
    """The reprl learner with its settings bound."""

    settings: Settings

    def __call__(self, model: GenerativeModel | EpisodicModel | GymnasiumModel, shared_key: SharedKey) -> Policy:
        """Learn from fresh samples of the model, whose kind must be the settings' access."""
        if self.settings.access == "generative":
            return run_generative(model, shared_key, self.settings).induction.policy  # type: ignore[arg-type]
        return run_episodic(model, shared_key, self.settings).induction.policy  # type: ignore[arg-type]
