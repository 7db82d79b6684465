"""Frames: what a run or an audit found, as a pandas DataFrame; pandas is imported when one is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from reprl.errors import DependencyError

if TYPE_CHECKING:
    import pandas as pd


def frame(columns: Mapping[str, Any]) -> pd.DataFrame:
    """Return columns of one length as a DataFrame."""
    try:
        import pandas as pd
    except ImportError:
        raise DependencyError("to_pandas needs pandas: pip install '.[pandas]'") from None
    return pd.DataFrame(dict(columns))


def cell_columns(shape: tuple[int, int], states: tuple[str, ...]) -> dict[str, NDArray[Any]]:
    """Return step, state and, where there are names, the state's name of every cell, in order."""
    steps, numbers = (index.ravel() for index in np.indices(shape))
    names = {"state_name": np.array(states, dtype=object)[numbers]} if len(states) == shape[1] else {}
    return {"step": steps, "state": numbers, **names}
