"""write_report: from a run, an audit or a comparison to one HTML file."""

from __future__ import annotations

import os
from pathlib import Path

from reprl.files import write_atomic
from reprl.report.audit_page import audit_page
from reprl.report.comparison_page import comparison_page
from reprl.report.records import Audit, Run
from reprl.report.run_page import run_page
from reprl.report.source import read_source


def write_report(source: object, out: str | os.PathLike[str]) -> Path:
    """Write one self-contained page, which loads nothing, and return its path.

    Args:
        source: a run folder (recipe.json, receipt.json, policy.json), the path of an audit or comparison, or the
            same in memory: an audit's or comparison's mapping, {"recipe": …, "receipt": …, "policy": …}, or an object
            that has these attributes or ``as_dict``.
        out: the HTML file, written whole or not at all.

    States and actions of a run have the names that ``reprl.make`` gives to the recipe's environment; where it cannot
    be built again, they have numbers and the page says why.
    """
    record = read_source(source)
    if isinstance(record, Run):
        data = run_page(record)
    elif isinstance(record, Audit):
        data = audit_page(record)
    else:
        data = comparison_page(record)
    return write_atomic(out, data)
