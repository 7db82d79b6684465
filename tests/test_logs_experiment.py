"""The stored experiment on halves of logs: it is the planned one, and its page shows its data."""

from __future__ import annotations

import json
from typing import Any

from experiments.logs import __main__ as experiment
from experiments.logs import plan, present

from experiments.runner import ROOT

PAGE = ROOT / "docs" / "logs.md"


def stored() -> dict[str, Any]:
    data = json.loads((ROOT / "experiments" / "logs" / "data.json").read_text("utf-8"))
    measured: dict[str, Any] = data["measured"]
    return measured


def test_the_page_shows_the_stored_data_of_the_planned_experiment() -> None:
    measured = stored()
    assert set(measured) == set(experiment.jobs(False))
    shown = PAGE.read_text("utf-8").partition(present.START)[2].partition(present.END)[0]
    assert shown.strip() == present.tables(measured).strip()


def test_halves_that_both_promise_something_do_not_differ() -> None:
    """At the default quality few do: most of these logs are too short, and say so."""
    assert len(plan.WORLDS) >= 3
    assert (min(plan.SIZES), max(plan.SIZES)) == (10**5, 10**7)
    both = [row for row in stored().values() if all(row["sure"])]
    assert both
    assert not any(row["reprl"]["apart"] for row in both)
