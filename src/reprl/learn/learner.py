"""learn: one call from an environment to a policy with a guarantee."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

from reprl.decide.induction import Induction
from reprl.decide.tiers import Tiers
from reprl.errors import ReprlError, check_int, quote
from reprl.explore.rep_explore import Explored
from reprl.guarantee import Guarantee
from reprl.learn.episodic import run_episodic
from reprl.learn.generative import run_generative
from reprl.learn.settings import Settings
from reprl.mdp.access import EpisodicModel, GenerativeModel
from reprl.mdp.catalogue import make
from reprl.mdp.counts import Counts
from reprl.mdp.policy import Policy
from reprl.mdp.tabular import TabularMDP
from reprl.randomness import SharedKey, fresh_seed


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


def learn(
    env: TabularMDP | str,
    *,
    horizon: int | None = None,
    shared_seed: int | None = None,
    data_seed: int | None = None,
    max_samples: int | None = None,
    workers: int = 1,
    progress: bool = False,
    **options: Any,
) -> LearnResult:
    """Learn a policy that a second run, on fresh data and the same shared seed, is likely to reproduce exactly.

    Args:
        env: a TabularMDP, or an id for ``reprl.make``.
        horizon: H, for an id; Gymnasium environments need it.
        shared_seed: ξ, published and the same in every run; None draws one, to be read off the result.
        data_seed: seed of the samples, private and different in every run; None draws one.
        max_samples: never draw more; a run that needs more is refused.
        workers: threads; they cannot change the result.
        progress: show a bar on standard error.
        options: the fields of ``Settings``, all optional: epsilon=0.3, rho=0.1, delta=0.1, access="generative" or
            "episodic", coupling="auto", "joint", "blocked" or "product", block=32, mechanism="compact" or
            "exponential", rounding="none", "vector" or "grid", constants="practical" or "paper", calls=None.

    Guarantee:
        As in the result, with its status: docs/proofs/decision.md for "proven", docs/calibration.md for "heuristic".

    Randomness:
        Shared, at SharedKey(shared_seed). Data: streams of data_seed only.
    """
    settings = make_settings(options)
    workers = check_int("workers", workers, 1, 1024)
    if not isinstance(progress, bool):
        raise ReprlError(f"progress must be True or False, got {quote(progress)}")
    if isinstance(env, str):
        mdp = make(env, horizon)
    elif horizon is not None:
        raise ReprlError(f"horizon must be left out for an environment that has one, got {quote(horizon)}")
    else:
        mdp = env
    if not isinstance(mdp, TabularMDP):
        raise ReprlError(f"env must be a TabularMDP or the id of one for access={settings.access!r}, got {quote(env)}")
    key = SharedKey(fresh_seed() if shared_seed is None else shared_seed)
    seed = fresh_seed() if data_seed is None else data_seed
    model: GenerativeModel | EpisodicModel
    if settings.access == "generative":
        model = GenerativeModel(mdp, seed)
        drawn = run_generative(model, key, settings, max_samples)
        induction, tiers, counts, explored = drawn.induction, drawn.tiers, drawn.counts, None
        guarantee = drawn.guarantee
    else:
        model = EpisodicModel(mdp, seed)
        with _bar(progress) as tell:
            played = run_episodic(model, key, settings, max_samples=max_samples, workers=workers, progress=tell)
        induction, explored, guarantee = played.induction, played.explored, played.guarantee
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
    )


@contextmanager
def _bar(show: bool) -> Iterator[Callable[[str, int], None] | None]:
    """A progress bar on standard error: phase, samples and time so far."""
    if not show:
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}"), TextColumn("{task.completed:,.0f} samples"))
    with Progress(*columns, TimeElapsedColumn(), console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("exploring", total=None)
        yield lambda phase, samples: bar.update(task, advance=samples, description=phase)


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

    def __call__(self, model: GenerativeModel | EpisodicModel, shared_key: SharedKey) -> Policy:
        """Learn from fresh samples of the model, whose kind must be the settings' access."""
        if self.settings.access == "generative":
            return run_generative(model, shared_key, self.settings).induction.policy  # type: ignore[arg-type]
        return run_episodic(model, shared_key, self.settings).induction.policy  # type: ignore[arg-type]
