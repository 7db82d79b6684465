"""write_report: from a run or an audit to one HTML file."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, cast

from reprl.artifacts.confirm_quality import FORMAT as OF_QUALITY
from reprl.artifacts.confirm_quality import QualityConfirmation
from reprl.artifacts.confirmation import FORMAT as CONFIRMED
from reprl.artifacts.confirmation import Confirmation
from reprl.artifacts.folder import RECIPE, StoredRun, load_run
from reprl.artifacts.receipt import Receipt
from reprl.artifacts.recipe import Recipe
from reprl.artifacts.search import StoredSearch
from reprl.auditing.agent_record import FORMAT as AGENTS
from reprl.auditing.agent_record import AgentReport
from reprl.auditing.record import AuditReport
from reprl.auditing.search_audit import FORMAT as SEARCHES
from reprl.auditing.search_audit import SearchAudit
from reprl.errors import DocumentError, InputError, quote
from reprl.learning.search_result import SearchResult
from reprl.mdp.policy import Policy
from reprl.mdp.tabular import TabularMDP
from reprl.report.page import render_page
from reprl.report.pair import summarize_pair
from reprl.report.records import summarize
from reprl.report.run import Run, summarize_run
from reprl.report.search import Found, summarize_searches
from reprl.report.worth import worth_of
from reprl.sources.gymnasium.model import GymnasiumModel
from reprl.storage.documents import decode, load, plain, stated_format
from reprl.storage.files import open_output

Evidence = AuditReport | AgentReport | SearchAudit | Confirmation | QualityConfirmation
Source = StoredRun | StoredSearch | Evidence


def write_report(
    source: object,
    out: str | os.PathLike[str],
    *,
    second: object = None,
    env: TabularMDP | GymnasiumModel | None = None,
) -> Path:
    """Write one self-contained page, which loads nothing, and return its path.

    Args:
        source: a run folder (recipe.json, receipt.json, policy.json), the path of an audit, or the same in
            memory: a LearnResult or StoredRun, an AuditReport, an AgentReport, or their documents as mappings, a run's
            as {"recipe": …, "receipt": …, "policy": …}.
        out: the HTML file, written whole or not at all.
        second: another run, for a page that compares the two.
        env: where the policies act, for their values; needed only where a recipe has no id of the catalogue.

    States and actions have the names that the receipt or audit carries; where it has none, they have
    numbers and the page says so.
    """
    with open_output(out, parents=True) as write:
        record = _read(source)
        other = None if second is None else _read(second)
        if isinstance(record, StoredSearch) and isinstance(other, StoredSearch):
            return write(render_page(summarize_searches((Found.of(record), Found.of(other)))))
        if isinstance(record, StoredRun) and isinstance(other, StoredRun):
            one, two = (worth_of(run, env) for run in (record, other))
            worth = None if one is None or two is None else (one, two)
            return write(render_page(summarize_pair((Run.of(record), Run.of(other)), worth)))
        if other is not None:
            raise InputError(f"two sources must be two runs, got {quote(record)} and {quote(other)}")
        if isinstance(record, StoredRun):
            return write(render_page(summarize_run(Run.of(record), worth_of(record, env))))
        if env is not None:
            raise InputError(f"env must be left out unless the source is a run, got {quote(env)}")
        return write(render_page(summarize(record)))


def _read(source: object) -> Source:
    """Tell what a source is and read it."""
    if isinstance(source, Evidence):
        return source
    if isinstance(source, str | os.PathLike):
        path = _evidence(Path(source))
        return load_run(path) if path.is_dir() else load(path, _from_json)
    parts = source if isinstance(source, Mapping) else _attributes(source)
    if not set(StoredRun._fields) <= set(parts):
        return _from_json(_to_json(parts))
    if isinstance(source, SearchResult | StoredSearch):
        return StoredSearch(source.recipe, source.receipt, source.policy)
    kinds = zip((Recipe, Receipt, Policy), StoredRun._fields, strict=True)
    return StoredRun(*(_part(kind, parts[name]) for kind, name in kinds)).check()


EVIDENCE = ("audit.json", "confirmation.json")
"""What a folder of evidence holds beside its finished tasks."""


def _evidence(path: Path) -> Path:
    """The file in a folder of an audit or a confirmation; any other path as it is."""
    if not path.is_dir() or (path / RECIPE).exists():
        return path
    found = [path / name for name in EVIDENCE if (path / name).is_file()]
    if not found and (path / "tasks").is_dir():
        files = " or ".join(EVIDENCE)
        raise InputError(f"{path} must hold {files}, got unfinished work: the command that began it goes on")
    return found[0] if len(found) == 1 else path


def _attributes(source: object) -> dict[str, Any]:
    """The parts of a run that an object has, such as the result of ``learn``."""
    try:
        return {name: getattr(source, name) for name in StoredRun._fields}
    except AttributeError:
        allowed = "a run folder, a run, an audit or a path to one"
        raise InputError(f"report source must be {allowed}, got {quote(source)}") from None


def _part(kind: Any, value: Any) -> Any:
    return value if isinstance(value, kind) else kind.from_json(_to_json(value))


_KINDS: dict[Any, Any] = {
    "reprl-audit": AuditReport,
    AGENTS: AgentReport,
    SEARCHES: SearchAudit,
    CONFIRMED: Confirmation,
    OF_QUALITY: QualityConfirmation,
}


def _from_json(data: bytes | str) -> Evidence:
    format = stated_format(decode(data, "report source"))
    if isinstance(format, str) and format in _KINDS:
        return cast(Evidence, _KINDS[format].from_json(data))
    if format in [f"reprl-{name}" for name in StoredRun._fields]:
        raise DocumentError("report source is one file of a run: give the folder that holds recipe, receipt and policy")
    raise DocumentError(f"report source must say format {', '.join(map(repr, _KINDS))}, got {quote(format)}")


def _to_json(document: object) -> str:
    """Let documents in memory hold NumPy values."""
    try:
        return json.dumps(document, default=partial(plain, strict=True))
    except (ValueError, TypeError, RecursionError) as error:
        raise InputError(f"report source must hold JSON values only: {error}") from None
