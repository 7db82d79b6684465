"""Figures of experiments: they depend on what is stored alone."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl

from experiments.runner import ROOT
from experiments.search import __main__ as search


def test_a_figure_does_not_depend_on_what_was_drawn_before(tmp_path: Path) -> None:
    (tmp_path / "data.json").write_bytes((ROOT / "experiments" / "search" / "data.json").read_bytes())
    with mpl.rc_context({"font.size": 40, "svg.fonttype": "none"}):
        search.EXPERIMENT.main(["--draw-only", "--out", str(tmp_path)], None)
    assert (tmp_path / "search.svg").read_bytes() == (ROOT / "docs" / "figures" / "search.svg").read_bytes()
