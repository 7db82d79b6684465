"""Experiments that are one file each: what is stored is what is planned, pages show it, and a quick run works."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import matplotlib as mpl
import pytest

from experiments import __main__ as everything
from experiments.discounted import __main__ as discounted
from experiments.lower_bounds import __main__ as laboratory
from experiments.runner import ROOT, Experiment
from experiments.search import __main__ as search


def stored(experiment: Experiment) -> dict[str, Any]:
    data: dict[str, Any] = json.loads((ROOT / "experiments" / experiment.name / "data.json").read_text("utf-8"))
    return data


def test_the_page_shows_the_stored_data() -> None:
    experiment = discounted.EXPERIMENT
    data = stored(experiment)
    assert set(data["measured"]) <= set(experiment.jobs(False))
    start, end = experiment.marks
    page = (ROOT / "docs" / experiment.page).read_text("utf-8")
    assert page.partition(start)[2].partition(end)[0].strip() == experiment.tables(data).strip()


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


def test_what_cannot_be_measured_here_says_what_it_needs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = replace(discounted.EXPERIMENT, extra="agents", needs=("json", "no_such_module"))
    words = "discounted needs no_such_module: pip install 'reprl[agents]'"
    assert (alone.lacks, replace(alone, needs=("json",)).lacks, discounted.EXPERIMENT.lacks) == (words, None, None)
    with pytest.raises(SystemExit) as ended:
        alone.main(["--quick", "--out", str(tmp_path)], None)
    assert ended.value.code == 2
    assert capsys.readouterr().err == words + "\n"
    # All together: the others are measured, and this is said.
    monkeypatch.setattr(everything, "experiments", lambda: [alone])
    monkeypatch.setattr(laboratory, "main", lambda flags: None)
    monkeypatch.setattr("sys.argv", ["experiments", "--quick"])
    everything.main()
    assert capsys.readouterr().out == f"not measured: {words}\n"


def test_a_figure_does_not_depend_on_what_was_drawn_before(tmp_path: Path) -> None:
    (tmp_path / "data.json").write_bytes((ROOT / "experiments" / "search" / "data.json").read_bytes())
    with mpl.rc_context({"font.size": 40, "svg.fonttype": "none"}):
        search.EXPERIMENT.main(["--draw-only", "--out", str(tmp_path)], None)
    assert (tmp_path / "search.svg").read_bytes() == (ROOT / "docs" / "figures" / "search.svg").read_bytes()
