"""What is known: a sample as kernels read it, and bounds on values."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from reprl.mdp.dynamics import Dynamics

Floats = NDArray[np.float64]


class Sample(NamedTuple):
    """What a run has seen, ready for kernels."""

    dynamics: Dynamics
    """Relative frequencies."""
    number: Floats
    """(H, S, A): samples of each cell."""
    starts: float
    """N: episodes or calls; the scale of all rates."""
    fixed_start: bool
    """Whether the start is known to be one state."""
    by_steps: bool
    """Whether numbers at a step do not depend on outcomes of that step or later ones; otherwise cells are added up."""


class Values(NamedTuple):
    """Bounds on values, and what later bounds need of them."""

    low: Floats
    """(H+1, S): V ≥ low."""
    high: Floats
    """(H+1, S): V ≤ high."""
    hat_low: Floats
    """(H+1, S): least value, in the empirical model, of a policy that takes plausible actions only."""
    hat_high: Floats
    """(H+1, S): and the largest."""
    plausible: NDArray[np.bool_]
    """(H, S, A): actions that may be the policy's."""
    base: NDArray[np.int64]
    """(H, S): one of them."""
    error: Floats
    """(H, S, A): bound on the error of the mean of reward plus next value."""
    square: Floats
    """(H, S, A): bound on the mean square of reward plus next value about its expectation."""
    rate: Floats
    """(K, H, S, A): what weight² is multiplied by in the exponent, for each λ; negative where errors are added up."""
    top: Floats
    """(K, H, S): the largest rate of a plausible action."""
    slack: Floats
    """(K, H, S): the largest error of a plausible action that is added up."""
    wide: Floats
    """(K, H, S): norm of how far another plausible action could divert later weights, square roots of exponents."""
    long: Floats
    """(K, H, S): the same, errors that are added up."""
    path: Floats
    """(K, H+1, S): the largest sum of rates along the way of plausible actions: another bound on an exponent."""
    path_long: Floats
    """(K, H+1, S): the same, errors that are added up."""
    gap_low: Floats
    """(H, S, A)."""
    gap_high: Floats
    """(H, S, A)."""
    own_low: Floats
    """(H, S, A): variance of reward plus next value, and HIDDEN."""
    own_high: Floats
    """(H, S, A)."""
    start: Floats
    """(2,): low and high of the value from the start."""
