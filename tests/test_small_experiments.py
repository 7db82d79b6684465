"""Experiments that are one file each: what is stored is what is planned, pages show it, and a quick run works."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import matplotlib as mpl

from experiments.discounted import __main__ as discounted
from experiments.runner import ROOT, Experiment
from experiments.search import __main__ as search


def stored(experiment: Experiment) -> dict[str, Any]:
    data: dict[str, Any] = json.loads((ROOT / "experiments" / experiment.name / "data.json").read_text("utf-8"))
    return data


def test_discounted_pairs_are_all_there_and_seldom_apart() -> None:
    """Were a pair apart with probability 0.1, 40 or more of 160 would be with probability 4e-8."""
    rows = [row for one in stored(discounted.EXPERIMENT)["measured"].values() for row in one["rows"]]
    assert len(rows) == discounted.PAIRS * len(discounted.WORLDS) * len(discounted.ACCESSES)
    assert sum(not row["same"] for row in rows) < 40
    shares = [share for row in rows for share in row["share"]]
    assert min(shares) > 0.9
    assert max(shares) < 1.0 + 1e-9  # no policy beats QuantEcon's best


def test_a_quick_pair_of_discounted_runs() -> None:
    (row,) = discounted.pairs("river swim, γ = 0.95", "generative", range(1))["rows"]
    assert row["same"]
    assert all(row["sure"])


def test_a_figure_does_not_depend_on_what_was_drawn_before(tmp_path: Path) -> None:
    (tmp_path / "data.json").write_bytes((ROOT / "experiments" / "search" / "data.json").read_bytes())
    with mpl.rc_context({"font.size": 40, "svg.fonttype": "none"}):
        search.EXPERIMENT.main(["--draw-only", "--out", str(tmp_path)], None)
    assert (tmp_path / "search.svg").read_bytes() == (ROOT / "docs" / "figures" / "search.svg").read_bytes()
