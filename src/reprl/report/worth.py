"""Worth: the exact value of a stored policy beside the best one, where the environment can be known."""

from __future__ import annotations

from typing import NamedTuple

from reprl.artifacts.folder import StoredRun
from reprl.errors import ReprlError
from reprl.mdp.catalogue import PREFIX
from reprl.mdp.policy import check_policy
from reprl.mdp.tabular import TabularMDP
from reprl.sources.gymnasium.model import GymnasiumModel


class Worth(NamedTuple):
    """What a policy is worth."""

    value: float
    """Expected return from the start."""
    best: float
    """Of the best policy there is."""
    epsilon: float
    """What the run was asked for."""

    @property
    def words(self) -> str:
        """The same beside the best, and what ε would have allowed."""
        return f"best {self.best:.4g}, so {self.best - self.value:.3g} is lost; ε = {self.epsilon:g}"


def worth_of(run: StoredRun, env: TabularMDP | GymnasiumModel | None = None) -> Worth | None:
    """Return what a run's policy is worth; None where the environment is a black box or not known.

    Args:
        run: the run.
        env: its environment. None opens one of the catalogue; no file decides what else is opened here.
    """
    id = run.recipe.environment.id
    if env is None and (id is None or id.startswith(PREFIX)):
        return None
    try:
        world = run.recipe.make(env)
    except ReprlError:
        if env is not None:
            raise
        return None
    if not isinstance(world, TabularMDP):
        return None
    policy = check_policy(run.policy, world)
    best = float(world.initial @ world.solve().values[0])
    return Worth(world.evaluate(policy), best, run.recipe.settings.epsilon)
