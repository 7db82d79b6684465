"""What an access means: parallel calls or episodes. All that differs between the two is a member of these objects.

``WAYS[access]`` is asked for it; nobody else compares the names. A new source is opened here.
"""

from __future__ import annotations

from typing import Any, ClassVar, Protocol

from reprl.errors import InputError, quote
from reprl.execution.pool import WorkerPool
from reprl.execution.settings import Progress
from reprl.mdp.tabular import TabularMDP
from reprl.sources import exploration
from reprl.sources.episodes import EpisodicModel
from reprl.sources.gymnasium.model import GymnasiumModel
from reprl.sources.parallel import GenerativeModel, ParallelCalls
from reprl.sources.source import FIRST, DataSource


class Way(Protocol):
    """How an environment is sampled."""

    unit: ClassVar[str]
    """The smallest piece of data, for messages."""
    plays: ClassVar[bool]
    """Whether a policy decides which cells are sampled."""

    def check(self, env: TabularMDP | GymnasiumModel, whom: str) -> None:
        """Refuse an environment that cannot be sampled so."""

    def model(self, mdp: TabularMDP, data_seed: int) -> GenerativeModel | EpisodicModel:
        """Return a table as something to be sampled."""

    def source(
        self, model: Any, pool: WorkerPool, *, pooled: bool, enough: float, progress: Progress | None
    ) -> DataSource:
        """Return a model as a DataSource.

        pooled says that a sample counts at every step; enough, from how many on nothing unseen can matter in a row.
        """

    def cost(self, model: Any, *, pooled: bool = False) -> int:
        """Return the samples of the smallest piece of data."""

    def first_round(self, env: TabularMDP | GymnasiumModel) -> int:
        """Return about how many samples the first round of a run takes."""


class Calls:
    """Parallel calls: each samples every cell."""

    unit: ClassVar[str] = "one parallel call"
    plays: ClassVar[bool] = False

    def check(self, env: TabularMDP | GymnasiumModel, whom: str) -> None:
        """Refuse a black box."""
        if isinstance(env, GymnasiumModel):
            raise InputError(f"access must be 'episodic' for a black box, got 'generative' for {whom}")

    def model(self, mdp: TabularMDP, data_seed: int) -> GenerativeModel:
        """Return a model to be called."""
        return GenerativeModel(mdp, data_seed)

    def source(
        self, model: Any, pool: WorkerPool, *, pooled: bool, enough: float, progress: Progress | None
    ) -> ParallelCalls:
        """Return calls of the model."""
        return ParallelCalls(self._sampled(model, pooled))

    def cost(self, model: Any, *, pooled: bool = False) -> int:
        """Return the samples of a call."""
        return int(self._sampled(model, pooled).samples_per_call)

    def first_round(self, env: TabularMDP | GymnasiumModel) -> int:
        """Return the samples of FIRST calls, and their starts."""
        return FIRST * (env.n_states * env.n_actions * env.horizon + 1)

    @staticmethod
    def _sampled(model: Any, pooled: bool) -> Any:
        """Return what is called: the model, or, where calls are pooled, the one that draws once for all steps."""
        if pooled and getattr(model, "pooled", None) is None:
            raise InputError(
                f"stationary must be left out for a model that has no `pooled` sampling, got True for {quote(model)}"
            )
        return model.pooled if pooled else model


class Episodes:
    """Episodes: each samples the cells that its policy meets."""

    unit: ClassVar[str] = "one episode"
    plays: ClassVar[bool] = True

    def check(self, env: TabularMDP | GymnasiumModel, whom: str) -> None:
        """Every environment has episodes."""

    def model(self, mdp: TabularMDP, data_seed: int) -> EpisodicModel:
        """Return a model to be played."""
        return EpisodicModel(mdp, data_seed)

    def source(
        self, model: Any, pool: WorkerPool, *, pooled: bool, enough: float, progress: Progress | None
    ) -> exploration.Episodes:
        """Return episodes whose policies follow what is known."""
        return exploration.Episodes(model, pool, pooled=pooled, enough=enough, progress=progress)

    def cost(self, model: Any, *, pooled: bool = False) -> int:
        """Return the most samples that an episode takes."""
        return int(model.samples_per_episode)

    def first_round(self, env: TabularMDP | GymnasiumModel) -> int:
        """Return the samples of FIRST episodes for each state and action."""
        starts = 0 if isinstance(env, TabularMDP) and env.fixed_start else 1
        return FIRST * env.n_states * env.n_actions * (episode_steps(env) + starts)


def episode_steps(env: TabularMDP | GymnasiumModel) -> int:
    """Return how many steps an episode of an environment has."""
    return env.episodes.horizon if isinstance(env, TabularMDP) else env.horizon


WAYS: dict[str, Way] = {"generative": Calls(), "episodic": Episodes()}
"""Access → what it means."""
