"""Card: what a notebook shows of a policy, a run or an audit; colours fit a light and a dark page."""

from __future__ import annotations

from reprl.report.page import templates
from reprl.report.records import summarize


def card(thing: object) -> str:
    """Return the HTML that a notebook shows of an object."""
    return templates().get_template("card.html").render(it=summarize(thing, "card"))
