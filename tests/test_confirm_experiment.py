"""The experiment on confirmations: its parts run, and a search scans the same coins as a naive loop does."""

from __future__ import annotations

import json

import numpy as np

from experiments.confirm import measure, plan, present
from experiments.confirm.__main__ import EXPERIMENT
from experiments.runner import ROOT


def test_the_scan_of_a_search_is_the_naive_one():
    rng = np.random.default_rng(5)
    for k in range(25):
        theta = float(rng.uniform(0.3, 0.7))
        means = theta + rng.choice([-1.0, -1.0, 1.0], plan.ARMS) * rng.uniform(0.02, 0.2, plan.ARMS)
        for strength in plan.STRENGTHS.values():
            one, spent = measure.naive_scan(means, theta, strength, f"test/{k}")
            two, more = measure.search_scan(means, theta, strength, f"test/{k}")
            assert one == two
            assert 0 < spent <= more  # a search plays ahead


def test_every_kind_of_measurement_is_planned_and_shown():
    names = EXPERIMENT.jobs(True)
    found = measure.below(1.0, 0, 5)
    assert found["policies"] == 5
    assert {name.partition("/")[0] for name in names} == {"below", "scans", "episodes", "published"}
    data = json.loads((ROOT / "experiments" / "confirm" / "data.json").read_text("utf-8"))
    proven, halved = (present.total(data, f"below/{name}") for name in plan.STRENGTHS)
    assert proven["false"] <= plan.DELTA * proven["policies"] < halved["false"]
