"""Page: a summary as one HTML document that loads nothing. Templates escape every text; here is what they are given."""

from __future__ import annotations

import base64
import hashlib
import json
from functools import cache
from typing import TYPE_CHECKING, Any

from reprl.report.numbers import number
from reprl.report.shades import LEVELS
from reprl.report.summary import Figure, On, Strong, Summary, Table

HUES = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#b8860b", "#3a9bd9", "#6a4fb3", "#7a7a7a")
"""Colours of actions, lines and bars, for light pages; theme.css has those for dark ones."""

if TYPE_CHECKING:
    from jinja2 import Environment


@cache
def templates() -> Environment:
    """Return the templates, opened when something is first written."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    found = Environment(
        loader=PackageLoader("reprl.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.policies["json.dumps_kwargs"] = {"separators": (",", ":")}
    found.globals |= {"On": On, "hues": HUES, "levels": LEVELS}
    found.filters |= {
        "number": number,
        "setting": _setting,
        "at": lambda value, axis: f"{axis.place(value):.2f}",
        "down": lambda value, axis: f"{100.0 - axis.place(value):.2f}",
    }
    found.tests |= {
        "strong": lambda value: isinstance(value, Strong),
        "figure": lambda value: isinstance(value, Figure),
        "table": lambda value: isinstance(value, Table),
        "shown": lambda on, where: where in on,
    }
    return found


def _setting(value: Any) -> str:
    """Return a setting for people."""
    if value is None:
        return "—"
    if type(value) is int:
        return f"{value:,}"
    return value if isinstance(value, str) else json.dumps(value, default=str, ensure_ascii=False)


def render_page(summary: Summary) -> bytes:
    """Return the document. Its content security policy forbids every request and every script but its own, by hash."""
    source = templates().get_template
    code = source("report.js").render()
    sha = base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()
    return source("page.html").render(it=summary, sha=sha).encode()
