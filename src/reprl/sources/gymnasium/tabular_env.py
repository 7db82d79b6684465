"""TabularEnv: a tabular MDP as a Gymnasium environment. Importing this module imports Gymnasium."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import gymnasium
import numpy as np
from gymnasium.envs.registration import EnvSpec
from gymnasium.spaces import Discrete
from numpy.typing import NDArray

from reprl.errors import check_choice, check_int
from reprl.mdp.tabular import TabularMDP
from reprl.sources.episodes import EpisodicModel


class TabularEnv(gymnasium.Env[np.int64, np.int64]):
    """Episodes of a TabularMDP: the observation is the state, and step H returns truncated.

    The step number is not observed, so the end at the horizon is a time limit in Gymnasium's sense: ``truncated``,
    never ``terminated``. A learner that should see the step can wrap this with Gymnasium's ``TimeAwareObservation``.
    A time-homogeneous MDP also publishes its dynamics as ``P`` and ``initial_state_distrib``. Where not all actions may
    be taken, ``info["action_mask"]`` says which may; others are errors. Rewards are those of the MDP, in [0, 1].
    Rendered as text, it is its grid with an @ where the agent is, or the state's name.

    Randomness:
        Samples come from an EpisodicModel. Its data seed is the argument until ``reset`` gets a seed; after that, and
        without an argument, it is one raw word of ``np_random``, which is read for nothing else.
    """

    metadata = {"render_modes": ["ansi"], "render_fps": 4}  # noqa: RUF012 - Gymnasium declares it so

    def __init__(self, mdp: TabularMDP, data_seed: int | None = None, render_mode: str | None = None) -> None:
        self.mdp = mdp
        self.observation_space = Discrete(mdp.n_states)
        self.action_space = Discrete(mdp.n_actions)
        self.model: EpisodicModel | None = None
        self.render_mode = None if render_mode is None else check_choice("render_mode", render_mode, ("ansi",))
        self._state = -1
        options = {"mdp": mdp, "data_seed": data_seed}
        self.spec = EnvSpec("reprl/tabular-v0", "reprl.sources.gymnasium.tabular_env:TabularEnv", kwargs=options)
        self._data_seed = None if data_seed is None else check_int("data seed", data_seed, 0, 2**64 - 1)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.int64, dict[str, Any]]:
        """Begin an episode; a seed begins the data stream anew."""
        super().reset(seed=seed)
        if seed is not None or self.model is None:
            given = self._data_seed if seed is None else None
            self.model = EpisodicModel(self.mdp, self._raw_word() if given is None else given)
        self._state = self.model.reset()
        return np.int64(self._state), self._info()

    def step(self, action: np.int64) -> tuple[np.int64, float, bool, bool, dict[str, Any]]:
        """Take an action; the last step of the horizon is truncated."""
        if self.model is None:
            raise gymnasium.error.ResetNeeded("step needs an episode in progress: call reset first")
        seen = self.model.step(int(action))
        self._state = seen.state
        return np.int64(seen.state), seen.reward, False, seen.done, self._info()

    def _info(self) -> dict[str, Any]:
        """What may be done now, where not everything may: (A,) of 0 and 1, as Gymnasium's spaces sample by it."""
        assert self.model is not None
        may = self.model.may_take
        return {} if may is None else {"action_mask": may.astype(np.int8)}

    def render(self) -> str | None:
        """Return the picture of where the agent is; None without a render mode."""
        if self.render_mode is None or self._state < 0:
            return None
        labels = self.mdp.labels
        rows, columns = labels.grid or (0, 0)
        if self._state >= rows * columns or min(rows, columns) < 2:
            return labels.state(self._state)
        signs = ["." if s != self._state else "@" for s in range(rows * columns)]
        return "\n".join(" ".join(signs[r * columns : (r + 1) * columns]) for r in range(rows))

    @property
    def initial_state_distrib(self) -> NDArray[np.float64]:
        """The start distribution, (S,)."""
        return self.mdp.initial

    @cached_property
    def P(self) -> dict[int, dict[int, list[tuple[float, int, float, bool]]]]:  # noqa: N802 - Gymnasium's name
        """State → action → [(probability, next state, reward, ended)]; absent if the step or a mask matters."""
        table = self.mdp.outcomes
        if table.row_shift or self.mdp.allowed is not None:
            raise AttributeError("P is published for time-homogeneous MDPs in which all actions may be taken")
        listing: dict[int, dict[int, list[tuple[float, int, float, bool]]]] = {}
        for s in range(self.mdp.n_states):
            listing[s] = {}
            for a in range(self.mdp.n_actions):
                row, _ = table.slots(0, s, a)
                columns = (self.mdp.probability[row], table.next_state[row], table.reward[row])
                listing[s][a] = [(float(p), int(t), float(r), False) for p, t, r in zip(*columns, strict=True)]
        return listing

    def _raw_word(self) -> int:
        return int(self.np_random.bit_generator.random_raw())
