"""Records: which summary belongs to what."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from reprl.artifacts.confirm_quality import QualityConfirmation
from reprl.artifacts.confirmation import Confirmation
from reprl.artifacts.folder import StoredRun
from reprl.artifacts.search import StoredSearch
from reprl.artifacts.verify import Verification
from reprl.auditing.agent_record import AgentReport
from reprl.auditing.record import AuditReport
from reprl.auditing.search_audit import SearchAudit
from reprl.errors import InputError, quote
from reprl.learning.result import LearnResult
from reprl.learning.search_result import SearchResult
from reprl.mdp.policy import Policy, TablePolicy
from reprl.report.agents import summarize_agents
from reprl.report.audit import summarize_audit
from reprl.report.confirmation import summarize_confirmation, summarize_quality
from reprl.report.pair import summarize_verification
from reprl.report.run import Run, summarize_run
from reprl.report.search import Found, summarize_search
from reprl.report.search_audit import summarize_search_audit
from reprl.report.sketch import Sketch
from reprl.report.summary import Mark, Summary


def summarize(record: Any, noun: str = "summary") -> Summary:
    """Return what there is to say of a record; `noun` is what was asked for, for the refusal of anything else."""
    if isinstance(record, LearnResult | StoredRun):
        return summarize_run(Run.of(record))
    if isinstance(record, SearchResult | StoredSearch):
        return summarize_search(Found.of(record))
    for kind, make in _SUMMARIES.items():
        if isinstance(record, kind):
            return make(record)
    raise InputError(f"{noun} must be of a policy, a run or an audit, got {quote(record)}")


def _policy(policy: Policy) -> Summary:
    if not isinstance(policy, TablePolicy):  # no cells to draw
        return Summary("policy", repr(policy), mark=Mark("", policy.fingerprint, ""))
    sketch = Sketch(policy)
    mark = Mark("", policy.fingerprint, "")
    return Summary("policy", f"Policy for {sketch.title}", mark=mark, sketches=[sketch])


_SUMMARIES: dict[type, Callable[[Any], Summary]] = {
    Policy: _policy,
    AuditReport: summarize_audit,
    AgentReport: summarize_agents,
    SearchAudit: summarize_search_audit,
    Confirmation: summarize_confirmation,
    QualityConfirmation: summarize_quality,
    Verification: summarize_verification,
}
