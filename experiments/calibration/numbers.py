"""Numbers of its pages, looked up in the stored data of experiments.calibration and in the code."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import numpy as np

import reprl
from experiments.stored import ROOT, LookUp, code, percent, phrases, short, span


@cache
def rivals() -> list[Any]:
    """Return the stored calibration of the rivals."""
    found: list[Any] = json.loads((ROOT / "experiments" / "calibration" / "data" / "peers.json").read_text("utf-8"))
    return found


def rival_needs(name: str, softness: float) -> tuple[list[Any], list[float]]:
    """Return the rows of a rival with a softness that met the goal, and their ratios of need to formula."""
    mine = [one for one in rivals() if (one["learner"], one["softness"]) == (name, softness)]
    met = [one for one in mine if one["log2 samples"] is not None]
    return met, [2 ** one["log2 samples"] / one["rounds"] / one["formula"] for one in met]


def rival_constants(name: str) -> tuple[float, float]:
    """Return the softness of a rival's preset and its constant of samples."""
    trial = calibration("TRIALS")[name]
    samples = getattr(trial.module, trial.samples_constant)
    if isinstance(samples, dict):
        samples = samples[trial.options["coupling"]]
    taken = 1.0 if name == "greedy" else getattr(trial.module, trial.constant)
    return taken, samples


def rival_line(name: str) -> str:
    """Return a rival's line of the table of constants."""
    softness = sorted({one["softness"] for one in rivals() if one["learner"] == name})
    taken, constant = rival_constants(name)
    parts = []
    for soft in softness:
        met, _ = rival_needs(name, soft)
        mean = f"{2 ** np.mean([one['log2 samples'] for one in met]):.2g}"
        missed = sum((one["learner"], one["softness"]) == (name, soft) for one in rivals()) - len(met)
        parts.append(f"{mean} ({missed})" if len(softness) == 1 else f"{soft:g}: {mean} ({missed})")
    _, found = rival_needs(name, taken)
    shown = "–" if len(softness) == 1 else f"{taken:g}"
    return f"{'; '.join(parts)} | {shown} | {np.median(found):.2g}, {max(found):.2g} | {constant:g}"


def preset_margins() -> list[str]:
    """Return how much larger the rivals' constants are than the largest ratio of need to formula."""
    taken = {name: rival_constants(name) for name in calibration("TRIALS")}
    return span((constant / max(rival_needs(name, soft)[1]) for name, (soft, constant) in taken.items()), 1)


def median_margins() -> list[str]:
    """Return how much smaller than its largest ratio of need to formula a rival's median one is."""
    found = [rival_needs(name, rival_constants(name)[0])[1] for name in calibration("TRIALS")]
    return span(max(one) / float(np.median(one)) for one in found)


def calibration(name: str) -> Any:
    """Return a constant of the calibration of the rivals."""
    return code(f"experiments.calibration.peers.{name}")


def rlberry(name: str) -> Any:
    """Return a constant of the comparison with rlberry."""
    return code(f"tests.test_baselines_rlberry.{name}")


def rmax_rounds() -> list[str]:
    """Return the rounds over N = HSA that replicable R-max took, by the share of its budget that it spent."""
    met, _ = rival_needs("replicable-rmax", rival_constants("replicable-rmax")[0])
    cells = [(one["rounds"] - 1) * 4 for one in met]
    used = [one["spent"] / 2 ** one["log2 samples"] * one["rounds"] / n for one, n in zip(met, cells, strict=True)]
    return span(used, 2)


NUMBERS: dict[str, dict[str, LookUp]] = {
    "docs/peers.md": {
        "takes-epsilon-samples": lambda: [
            f"{one.options[name]}"
            for one in reprl.learners()
            if one.name == "rpvi"
            for name in ("epsilon", "delta", "rho")
        ],
        "stopped-after-rounds": rmax_rounds,
        "same-data-average": lambda: [
            str(rlberry("EPISODES")),
            short(rlberry("CLOSE"), 0),
            str(rlberry("CALLS")),
            str(rlberry("TRAINED")),
            f"{rlberry('LOSS')}",
        ],
        "hard-instance-runs": lambda: phrases(
            [
                f"{calibration('EPSILON')[False]}",
                percent(calibration("RHO")),
                str(calibration("PAIRS")[True]),
                percent(calibration("DELTA")),
            ],
            "{}",
            "{} of {}",
            "{}",
        ),
        "constants": lambda: [rival_line(name) for name in calibration("TRIALS")],
        "which-noise-pairs": lambda: [str(calibration("PAIRS")[True])],
        "formula-times-so": lambda: phrases(preset_margins(), "{} to {}"),
        "median-ratio-times": lambda: phrases(median_margins(), "{} to {}"),
        "loses-more-runs": lambda: [
            percent(one["missed"])
            for one in rivals()
            if (one["learner"], one["softness"], one["world"]) == ("karbasi-gaussian, correlated", 4, "random-mdp-v0")
        ],
    },
}
