"""A run folder: recipe.json, receipt.json and policy.json, always of one run; and its counts, if it has kept them.

A run is written beside the old files and takes their place by one rename, the commit; then its files move up, one by
one. A reader prefers a committed file, so whatever happens it sees the old run or the new one. The folder is locked
from before a run begins until it is written. What a killed run leaves is cleared away by the next one: folders with our
name for them that hold nothing but files of a run. A link in the place of any of this is refused.
"""

from __future__ import annotations

import os
import re
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from reprl.artifacts.receipt import Receipt, commit_data_seed
from reprl.artifacts.recipe import Recipe
from reprl.errors import DocumentError, InputError, ReprlError
from reprl.execution.terminal import open_card, visible
from reprl.learning.result import LearnResult
from reprl.mdp.policy import Policy, check_fits
from reprl.sources.environment import Environment
from reprl.storage.documents import naming, read_document, stated_format
from reprl.storage.files import check_replaceable, fill, made_folder, refusing, sync_folder, try_lock

if TYPE_CHECKING:
    import pandas as pd

    from reprl.artifacts.search import SearchRecipe
    from reprl.learning.search_result import SearchResult

RECIPE, RECEIPT, POLICY = "recipe.json", "receipt.json", "policy.json"
TASKS = "tasks"
"""A folder inside it while a run is unfinished: its checkpoint."""
COUNTS = "counts.bin"
"""Data that a certificate is, or could be, made from; sealed, and absent for the rule "paper"."""
_FILES = (RECIPE, RECEIPT, POLICY, COUNTS)
SEARCH = "reprl-search-recipe"
"""Format of the recipe of a search, whose parts are of a kind of their own."""
_COMMITTED = ".committed"
_STAGING = ".reprl-staging-"
_OURS = re.compile(re.escape(_STAGING) + r"[a-z0-9_]{8}")
"""What tempfile makes of it."""
_ATTEMPTS = 5


class StoredRun(NamedTuple):
    """What a folder holds."""

    recipe: Recipe
    receipt: Receipt
    policy: Policy

    @property
    def environment(self) -> Environment:
        """The recipe's environment with the names that the receipt carries, and a log's own units."""
        return named_environment(self.recipe, self.receipt)

    def __repr__(self) -> str:
        words = f"{self.receipt.guarantee.status}, {self.receipt.samples:,} samples"
        return f"StoredRun({visible(self.environment.title)}: {words}, policy {self.policy.short_fingerprint})"

    def _repr_html_(self) -> str:
        """Show promise, rehearsal, fingerprint and a map of the policy in a notebook."""
        return open_card(self)

    def to_dict(self) -> dict[str, Any]:
        """Return the three documents of this run."""
        return {"recipe": self.recipe.to_dict(), "receipt": self.receipt.to_dict(), "policy": self.policy.to_dict()}

    def to_pandas(self) -> pd.DataFrame:
        """Return a row for each step and state: action, samples, value, the share of simulated teams that differ."""
        return self.receipt.to_pandas(self.policy, self.environment)

    def check(self) -> StoredRun:
        """Return the run if its three parts belong together."""
        recipe, receipt, policy = self
        if receipt.recipe != recipe.digest:
            raise DocumentError(f"receipt must belong to its recipe {recipe.digest}, got {receipt.recipe}")
        if receipt.fingerprint != policy.fingerprint:
            found = receipt.fingerprint
            raise DocumentError(f"receipt fingerprint must be its policy's {policy.fingerprint}, got {found}")
        apart = policy.labels.difference(receipt.labels)
        if apart:
            raise DocumentError(f"policy must have the receipt's names of states and actions, got others: {apart}")
        if (None if policy.basis is None else policy.basis.digest) != receipt.basis:
            found = "none" if policy.basis is None else "another"
            raise DocumentError(f"policy basis must be the one that the receipt seals, got {found}")
        names, n_actions = receipt.labels.actions, recipe.environment.n_actions
        if len(names) not in (0, n_actions):
            raise DocumentError(f"receipt labels.actions must be {n_actions} texts or none, got {len(names)}")
        check_fits(policy, recipe.environment)
        shape = recipe.environment.criterion.policy_shape(recipe.environment.n_states)
        if policy.actions.shape != shape:
            raise DocumentError(f"policy must have its recipe's shape {shape}, got {policy.actions.shape}")
        if receipt.rule != recipe.settings.rule:
            raise DocumentError(f"receipt rule must be its recipe's {recipe.settings.rule!r}, got {receipt.rule!r}")
        chosen = None if receipt.choice is None else receipt.choice.published
        if chosen != (recipe.candidate and recipe.candidate.bare):
            raise DocumentError(f"receipt choice must be the recipe's candidate ({recipe.candidate}), got {chosen}")
        if receipt.visits.shape != policy.table.shape:
            raise DocumentError(f"receipt visits must have shape {policy.table.shape}, got {receipt.visits.shape}")
        return self


def save_run(result: LearnResult | SearchResult, directory: str | os.PathLike[str], *, force: bool = False) -> Path:
    """Write recipe, receipt and policy of a run to a folder, whole or not at all.

    The folder is made if need be; one that holds another recipe is refused, unless force says to overwrite it.
    """
    with open_folder(directory, result.recipe, force=force) as folder:
        folder.write(folder.counted(result))
    return Path(directory)


def load_run(directory: str | os.PathLike[str]) -> StoredRun | Any:
    """Read a run folder, check that its files belong together, and return a ``StoredRun`` or ``StoredSearch``."""
    folder = Path(directory)
    if not folder.is_dir():
        raise InputError(f"a run folder must be a folder with {RECIPE}, {RECEIPT} and {POLICY}, got {folder}")
    for attempt in range(_ATTEMPTS):
        if attempt:
            time.sleep(0.02 * attempt)
        before = _state(folder)
        try:
            return _read_run(folder)
        except ReprlError as error:
            if _state(folder) == before:  # else another run is moving in
                raise
            trouble = error
    raise trouble


def _state(folder: Path) -> tuple[tuple[int, int] | None, ...]:
    """Which files lie in a run folder: another one under the same name has another number or another time."""
    places = (folder / _COMMITTED, *(folder / name for name in _FILES), *(folder / _COMMITTED / n for n in _FILES))
    return tuple(map(_stamp, places))


def _stamp(path: Path) -> tuple[int, int] | None:
    try:
        found = os.lstat(path)
    except (OSError, ValueError):
        return None
    return found.st_ino, found.st_ctime_ns


def find_finished(
    directory: str | os.PathLike[str], recipe: Recipe, data_seed: int | None, *, certify: bool = False
) -> StoredRun | None:
    """Return the run that a folder holds if there is nothing to do: one of this recipe that promises what it should.

    data_seed is None for any data; certify says whether it must be proven.
    """
    folder = Path(directory)
    if not find_file(folder, RECIPE).is_file() or (folder / TASKS).exists():  # nothing, or unfinished
        return None
    try:
        run = load_run(folder)
    except ReprlError:  # which is for the writer to refuse
        return None
    receipt, proof = run.receipt, run.receipt.certified
    other = data_seed is not None and receipt.data_commitment != commit_data_seed(recipe.digest, data_seed)
    if run.recipe.digest != recipe.digest or other or receipt.guarantee.status == "none":
        return None
    return None if certify and (proof is None or not proof.certificate.proven) else run


def named_environment(recipe: Recipe, receipt: Receipt) -> Environment:
    """Return a recipe's environment with the names that the receipt carries, and a log's own units."""
    found = recipe.environment._replace(labels=receipt.labels)
    if recipe.of_log and found.reward_range is None:
        low, high = found.options["reward_range"]
        found = found._replace(reward_range=(float(low), float(high)))
    return found


def load_recipe(path: str | os.PathLike[str]) -> Recipe | Any:
    """Read a recipe; of a search, a ``SearchRecipe``."""
    if stated_format(read_document(Path(path))) != SEARCH:
        return Recipe.load(path)
    from reprl.artifacts.search import SearchRecipe

    return SearchRecipe.load(path)


def _read_run(folder: Path) -> Any:
    recipe, policy = load_recipe(find_file(folder, RECIPE)), Policy.load(find_file(folder, POLICY))
    run: Any
    if isinstance(recipe, Recipe):
        run = StoredRun(recipe, Receipt.load(find_file(folder, RECEIPT)), policy)
    else:
        from reprl.artifacts.search import SearchReceipt, StoredSearch

        run = StoredSearch(recipe, SearchReceipt.load(find_file(folder, RECEIPT)), policy)
    with naming(f"{folder} must hold the files of one run, got a mixture: "):
        return run.check()


def find_file(directory: str | os.PathLike[str], name: str) -> Path:
    """Return where a file of a run folder is: committed, or moved up."""
    folder = Path(directory)
    committed = _committed(folder) / name
    return committed if committed.is_file() else folder / name


def _committed(folder: Path) -> Path:
    """Where a run lies that is not moved up yet: a folder, or nothing; a stranger's link could lead anywhere."""
    committed = folder / _COMMITTED
    try:
        kind = os.lstat(committed).st_mode
    except (OSError, ValueError):
        return committed
    if not stat.S_ISDIR(kind):
        raise DocumentError(f"{committed} must be a folder that reprl made, got a link or a file: remove it")
    return committed


class FolderWriter:
    """A folder that is locked for one run of one recipe."""

    def __init__(self, directory: Path, staging: Path) -> None:
        self.directory = directory
        self._staging = staging

    def counted(self, result: Any) -> Any:
        """Return a run with the other recipes for which this folder's last run sought a proof from the same data."""
        if not isinstance(result, LearnResult) or result.certificate is None or result.certificate_data is None:
            return result
        try:
            before = Receipt.load(find_file(self.directory, RECEIPT))
        except ReprlError:
            return result
        proof = before.certified
        if proof is None or proof.data != result.certificate_data.data.digest:
            return result
        return result.also_tried((before.recipe, *proof.tried))

    def write(self, result: LearnResult | SearchResult) -> None:
        """Put a run in the folder, whole or not at all."""
        texts = (result.recipe.to_json(), result.receipt.to_json(), result.policy.to_json())
        contents = dict(zip(_FILES, (text.encode() for text in texts), strict=False))
        if isinstance(result, LearnResult) and result.certificate_data is not None:
            contents[COUNTS] = result.certificate_data.data.sealed()
        with refusing(f"to {self.directory}"):
            for name, content in contents.items():
                like = check_replaceable(self.directory / name)
                handle = os.open(self._staging / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600 if like else 0o666)
                try:
                    fill(handle, content, like)
                finally:
                    os.close(handle)
            sync_folder(self._staging)
            os.chmod(self._staging, stat.S_IMODE(os.stat(self.directory).st_mode))  # readable until it is moved up
            os.rename(self._staging, self.directory / _COMMITTED)
        with suppress(OSError):  # the run is there; the next one moves it up if this one cannot
            sync_folder(self.directory)
            _settle(self.directory)


@contextmanager
def open_folder(
    directory: str | os.PathLike[str], recipe: Recipe | SearchRecipe, *, force: bool = False
) -> Iterator[FolderWriter]:
    """Lock a folder for a run of a recipe; make it if need be.

    A folder that holds another recipe is refused unless force says to overwrite it, and so is one that another run has
    locked. Nothing in it changes before ``write``; a folder that was made in vain is removed.
    """
    folder = Path(directory)
    with made_folder(folder, f"to {folder}"):
        with refusing(f"to {folder}"):
            lock = os.open(folder, os.O_RDONLY)
        try:
            if try_lock(lock) is False:
                raise InputError(f"{folder} must be free, got a folder that another run is about to write to")
            with _staged(folder) as staging:
                if not force:
                    _check_vacant(folder, recipe)
                yield FolderWriter(folder, staging)
        finally:
            os.close(lock)


@contextmanager
def _staged(folder: Path) -> Iterator[Path]:
    """Make a place for files that are not committed yet, in a folder that is locked: whatever is left there is ours."""
    try:
        with refusing(f"to {folder}"):
            _settle(folder)
            _clear_all(folder)  # of a run that was killed
            for name in _FILES:
                check_replaceable(folder / name)
            staging = Path(tempfile.mkdtemp(prefix=_STAGING, dir=folder))
        yield staging
    finally:
        _clear_all(folder)


def _clear_all(folder: Path) -> None:
    for staging in folder.glob(f"{_STAGING}*"):
        _clear(staging)


def _clear(staging: Path) -> None:
    """Remove a folder of ours that was not committed, and nothing that a run does not write."""
    if _OURS.fullmatch(staging.name) and staging.is_dir() and not staging.is_symlink():
        with suppress(OSError):
            if set(os.listdir(staging)) <= set(_FILES):
                for name in _FILES:
                    (staging / name).unlink(missing_ok=True)
                staging.rmdir()


def _check_vacant(folder: Path, recipe: Recipe | SearchRecipe) -> None:
    path = folder / RECIPE
    if not path.exists():
        return
    try:
        held = load_recipe(path).digest
    except ReprlError as error:
        raise InputError(f"{folder} must be empty or hold this recipe, got one that is refused: {error}") from None
    if held != recipe.digest:
        raise InputError(
            f"{folder} must be empty or hold this recipe ({recipe.digest[:12]}), got recipe {held[:12]}: take another "
            "folder, or force it (--force)"
        )


def _settle(folder: Path) -> None:
    """Move the files of a committed run up."""
    committed = _committed(folder)
    if committed.is_dir():
        for name in _FILES:
            if (committed / name).exists():
                check_replaceable(folder / name)
                os.replace(committed / name, folder / name)
        committed.rmdir()
        sync_folder(folder)
