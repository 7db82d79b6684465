"""What results of all kinds of runs share: recipe, receipt and policy, seeds and cost, a folder to keep them in."""

from __future__ import annotations

import os
from importlib import import_module
from pathlib import Path
from typing import Any

from reprl.execution.terminal import Shown


class Papers(Shown):
    """A run that has a recipe, a receipt and a policy; shown with promise, policy and fingerprint."""

    __slots__ = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the three documents of this run."""
        return {name: getattr(self, name).to_dict() for name in ("recipe", "receipt", "policy")}


class RunResult(Papers):
    """A run that was made here."""

    @property
    def _made(self) -> Any:
        """What it was made with, and what it cost."""
        raise NotImplementedError

    @property
    def samples(self) -> int:
        """Observed (next state, reward) pairs, or steps of an environment without tables, every one counted."""
        return int(self._made.samples)

    @property
    def episodes(self) -> int:
        """Episodes that were played to their end; 0 for parallel sampling."""
        return int(self._made.episodes)

    @property
    def shared_seed(self) -> int:
        """ξ, to be published."""
        return int(self._made.shared_seed)

    @property
    def data_seed(self) -> int:
        """Private: publish the shared seed, not this one."""
        return int(self._made.data_seed)

    @property
    def seconds(self) -> float:
        """How long the run took: the one figure that the seeds do not fix."""
        return float(self._made.seconds)

    def save(self, directory: str | os.PathLike[str], *, force: bool = False) -> Path:
        """Write recipe, receipt and policy to a folder, whole or not at all; ``reprl.load_run`` reads them.

        The folder is made if need be; one that holds another recipe is refused, unless force says to overwrite it.
        """
        saved: Path = import_module("reprl.artifacts.folder").save_run(self, directory, force=force)
        return saved
