"""Data of an experiment that were measured with the rule of release 0.2: shown, and never mixed with new ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from experiments.runner import Experiment
from reprl.errors import ReprlError


def former(experiment: Experiment, file: Path, data: dict[str, Any]) -> None:
    """Check that nothing but the rule stands between stored data and the plan, and that they are not added to."""
    assert data["stream_version"] == 2
    with pytest.raises(ReprlError, match="was measured with another stream_version: move it away"):
        experiment.load(file, quick=False)
