"""ICU-Sepsis: the treatment of sepsis as a benchmark of 716 states and 25 actions (Choudhary, Gupta, Thomas 2024).

The numbers come with the package icu-sepsis, the extra ``icu``; its files are read as they are, and its code, which
needs the old gym, is never imported.
"""

from __future__ import annotations

from importlib import util
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from reprl.errors import DependencyError, DocumentError, InputError, quote
from reprl.mdp.labels import Labels
from reprl.mdp.tabular import TabularMDP

LEVELS = 5
"""Levels of each of the two drugs."""
ENDS = ("death", "survival", "ended")
"""The last three states: each leads to the last, and an episode is over there."""


class Numbers(NamedTuple):
    """What the package holds."""

    transition: NDArray[np.float64]
    """(S, A, S): rows of inadmissible actions are means of the admissible ones."""
    reward: NDArray[np.float64]
    """(S, A, S): 1 for survival."""
    initial: NDArray[np.float64]
    """(S,)."""
    expert: NDArray[np.float64]
    """(S, A): how often clinicians did what, as the benchmark estimates it; zeros after the end."""
    admissible: NDArray[np.bool_]
    """(S, A): actions that were taken often enough for their effect to be estimated."""


def read_numbers() -> Numbers:
    """Read the package's files; one that is missing or says something else is named."""
    spec = util.find_spec("icu_sepsis")
    if spec is None or not spec.submodule_search_locations:
        raise DependencyError("icu-sepsis-v0 must have the package icu-sepsis, got none: pip install 'reprl[icu]'")
    folder = Path(next(iter(spec.submodule_search_locations))) / "envs" / "assets"
    try:
        with np.load(folder / "dynamics.npz", allow_pickle=False) as stored:
            law, reward, start, expert = (
                np.asarray(stored[name], dtype=np.float64) for name in ("tx_mat", "r_mat", "d_0", "expert_policy")
            )
        lines = (folder / "admissible_actions.txt").read_text(encoding="ascii").splitlines()[1:]
        lists = [[int(item) for item in line.split()] for line in lines]
    except (OSError, KeyError, ValueError) as error:
        raise DocumentError(
            f"icu-sepsis must hold its dynamics and admissible actions, got {quote(str(error))}"
        ) from None
    n_states, n_actions = law.shape[:2]
    if n_actions != LEVELS**2 or len(lists) != n_states:
        raise DocumentError(
            f"icu-sepsis must have {LEVELS**2} actions and a line for each state, got {n_actions} actions"
        )
    admissible = np.zeros((n_states, n_actions), dtype=np.bool_)
    for s, actions in enumerate(lists):
        admissible[s, actions] = True
    admissible[~admissible.any(axis=1)] = True
    return Numbers(law, reward, start, expert, admissible)


def icu_sepsis(horizon: int = 20, *, admissible: bool = True) -> TabularMDP:
    """Give fluids and vasopressors at five levels each; a patient who survives within the horizon pays 1.

    Args:
        horizon: H, in steps of four hours.
        admissible: whether only actions may be taken that the records hold often enough; otherwise the rest does what
            the admissible ones do on average, as in the benchmark itself.
    """
    if not isinstance(admissible, bool):
        raise InputError(f"admissible must be True or False, got {quote(admissible)}")
    from scipy.sparse import csr_matrix  # here, because it is slow to import

    numbers = read_numbers()
    read = numbers.admissible if admissible else np.ones_like(numbers.admissible)
    row, following = np.nonzero(np.where(read[..., None], numbers.transition, 0.0).reshape(read.size, -1))
    shape = (read.size, len(read))
    law, reward = (
        csr_matrix((table.reshape(shape)[row, following], (row, following)), shape=shape)
        for table in (numbers.transition, numbers.reward)
    )
    living = numbers.transition.shape[0] - len(ENDS)
    actions = tuple(f"fluids {a // LEVELS}, vasopressors {a % LEVELS}" for a in range(LEVELS**2))
    return TabularMDP(
        law,
        reward,
        numbers.initial,
        horizon,
        "deterministic",
        labels=Labels(states=(*(f"patient {s}" for s in range(living)), *ENDS), actions=actions),
        allowed=numbers.admissible if admissible else None,
    )
