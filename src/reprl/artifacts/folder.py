"""A run folder: recipe.json, receipt.json and policy.json, always of one run; and its counts, if it has kept them.

A run is written beside the old files and takes their place by one rename, the commit; then its files move up, one by
one. A reader prefers a committed file, so whatever happens it sees the old run or the new one. The folder is locked
from before a run begins until it is written.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from reprl.artifacts.receipt import Receipt
from reprl.artifacts.recipe import Recipe
from reprl.documents import naming
from reprl.errors import ReprlError
from reprl.learning.learner import LearnResult
from reprl.mdp.environment import Environment
from reprl.mdp.policy import Policy, check_policy

RECIPE, RECEIPT, POLICY = "recipe.json", "receipt.json", "policy.json"
COUNTS = "counts.bin"
"""Data that a certificate is, or could be, made from; sealed, and absent for the rule "sampled"."""
_COMMITTED = ".committed"
_STAGING = ".staging-"
_ATTEMPTS = 5


class StoredRun(NamedTuple):
    """What a folder holds."""

    recipe: Recipe
    receipt: Receipt
    policy: Policy

    @property
    def environment(self) -> Environment:
        """The recipe's environment with the names that the receipt carries."""
        return self.recipe.environment._replace(labels=self.receipt.labels)

    def check(self) -> StoredRun:
        """Return the run if its three parts belong together."""
        recipe, receipt, policy = self
        if receipt.recipe != recipe.digest:
            raise ReprlError(f"receipt must belong to its recipe {recipe.digest}, got {receipt.recipe}")
        if receipt.fingerprint != policy.fingerprint:
            found = receipt.fingerprint
            raise ReprlError(f"receipt fingerprint must be its policy's {policy.fingerprint}, got {found}")
        names, n_actions = receipt.labels.actions, recipe.environment.n_actions
        if len(names) not in (0, n_actions):
            raise ReprlError(f"receipt labels.actions must be {n_actions} texts or none, got {len(names)}")
        check_policy(policy, recipe.environment)
        if receipt.rule != recipe.settings.rule:
            raise ReprlError(f"receipt rule must be its recipe's {recipe.settings.rule!r}, got {receipt.rule!r}")
        chosen = None if receipt.choice is None else receipt.choice.published
        if chosen != recipe.candidate:
            raise ReprlError(f"receipt choice must be the recipe's candidate ({recipe.candidate}), got {chosen}")
        if receipt.visits.shape != policy.actions.shape:
            raise ReprlError(f"receipt visits must have shape {policy.actions.shape}, got {receipt.visits.shape}")
        return self


def save_run(result: LearnResult, directory: str | os.PathLike[str], *, force: bool = False) -> Path:
    """Write recipe, receipt and policy of a run to a folder, whole or not at all.

    Args:
        result: the run.
        directory: made if need be; one that holds another recipe is refused.
        force: overwrite it all the same.
    """
    with open_folder(directory, result.recipe, force=force) as folder:
        folder.write(result)
    return Path(directory)


def load_run(directory: str | os.PathLike[str]) -> StoredRun:
    """Read a run folder and check that its three files belong together."""
    folder = Path(directory)
    if not folder.is_dir():
        raise ReprlError(f"a run folder must be a folder with {RECIPE}, {RECEIPT} and {POLICY}, got {folder}")
    for attempt in range(_ATTEMPTS):
        time.sleep(0.02 * attempt)  # another run may be moving in
        try:
            return _read_run(folder)
        except ReprlError as error:
            trouble = error
    raise trouble


def _read_run(folder: Path) -> StoredRun:
    run = StoredRun(
        Recipe.load(find_file(folder, RECIPE)),
        Receipt.load(find_file(folder, RECEIPT)),
        Policy.load(find_file(folder, POLICY)),
    )
    with naming(f"{folder} must hold the files of one run, got a mixture: "):
        return run.check()


def find_file(directory: str | os.PathLike[str], name: str) -> Path:
    """Return where a file of a run folder is: committed, or moved up."""
    committed = Path(directory) / _COMMITTED / name
    return committed if committed.is_file() else Path(directory) / name


class FolderWriter:
    """A folder that is locked for one run of one recipe."""

    def __init__(self, directory: Path, staging: Path) -> None:
        """Take a locked folder and an empty folder inside it."""
        self.directory = directory
        self._staging = staging

    def write(self, result: LearnResult) -> StoredRun:
        """Put a run in the folder, whole or not at all."""
        run = StoredRun(result.recipe, result.receipt, result.policy)
        with _refusing(self.directory):
            files = [
                (RECIPE, run.recipe.to_json().encode()),
                (RECEIPT, run.receipt.to_json().encode()),
                (POLICY, run.policy.to_json().encode()),
            ]
            if result.witness is not None:
                files.append((COUNTS, result.witness.data.sealed()))
            for name, content in files:
                with open(self._staging / name, "wb") as file:
                    file.write(content)
                    file.flush()
                    os.fsync(file.fileno())
            _sync(self._staging)
            os.rename(self._staging, self.directory / _COMMITTED)
            _sync(self.directory)
            _settle(self.directory)
        return run


@contextmanager
def open_folder(directory: str | os.PathLike[str], recipe: Recipe, *, force: bool = False) -> Iterator[FolderWriter]:
    """Lock a folder for a run of a recipe; make it if need be.

    A folder that holds another recipe is refused unless force says to overwrite it, and so is one that another run has
    locked. Nothing in it changes before ``write``; a folder that was made in vain is removed.
    """
    folder = Path(directory)
    made = not folder.exists()
    with _refusing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        lock = os.open(folder, os.O_RDONLY)
    try:
        _lock(lock, folder)
        with _refusing(folder):
            for stale in folder.glob(f"{_STAGING}*"):  # of a run that was killed
                shutil.rmtree(stale, ignore_errors=True)
            staging = Path(tempfile.mkdtemp(prefix=_STAGING, dir=folder))
            _settle(folder)
        try:
            if not force:
                _check_vacant(folder, recipe)
            yield FolderWriter(folder, staging)
        finally:
            shutil.rmtree(staging, ignore_errors=True)
            if made and not any(folder.iterdir()):
                folder.rmdir()
    finally:
        os.close(lock)


def _check_vacant(folder: Path, recipe: Recipe) -> None:
    path = folder / RECIPE
    if not path.exists():
        return
    try:
        held = Recipe.load(path).digest
    except ReprlError as error:
        raise ReprlError(f"{folder} must be empty or hold this recipe, got one that is refused: {error}") from None
    if held != recipe.digest:
        raise ReprlError(
            f"{folder} must be empty or hold this recipe ({recipe.digest[:12]}), got recipe {held[:12]}: take another "
            "folder, or force it (--force)"
        )


def _settle(folder: Path) -> None:
    """Move the files of a committed run up."""
    committed = folder / _COMMITTED
    if committed.is_dir():
        for name in (RECIPE, RECEIPT, POLICY, COUNTS):
            if (committed / name).exists():
                os.replace(committed / name, folder / name)
        committed.rmdir()
        _sync(folder)


def _lock(handle: int, folder: Path) -> None:
    try:
        import fcntl
    except ImportError:  # not on this platform: the commit still keeps runs whole
        return
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise ReprlError(f"{folder} must be free, got a folder that another run is about to write to") from None
    except OSError:  # a file system without locks
        return


def _sync(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def _refusing(folder: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError) as error:
        if isinstance(error, ReprlError):
            raise
        raise ReprlError(f"cannot write to {folder}: {getattr(error, 'strerror', None) or error}") from None
