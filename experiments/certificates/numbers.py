"""Numbers of its pages, looked up in the stored data of experiments.certificates and in the code."""

from __future__ import annotations

from typing import Any

import numpy as np

from experiments.stored import WORDS, LookUp, code, constants, measured, phrases, power, row, table


def certified(world: str) -> tuple[str, float]:
    """Return how many runs on a world were certified, and the median calls of those."""
    calls = np.array([one[1:3] for one in measured("certificates")[f"cost/{world}"]["rows"]])
    return f"{(calls > 0).sum()} of {calls.size}", float(np.median(calls[calls > 0]))


def all_costs() -> list[tuple[str, float, int, int]]:
    """Return of every environment: its name, the median calls, runs that were certified, and all runs."""
    found = [(world, certified(world)) for world in measured("certificates", "cost/")]
    return [(world, calls, *(int(number) for number in of.split(" of "))) for world, (of, calls) in found]  # type: ignore[misc]


def as_proven() -> tuple[list[int], list[int]]:
    """Return the runs with radii as proven, and the false certificates among them."""
    found = [cells for cells in table("certificates") if cells[1] == "as proven"]
    return [int(cells[3].replace(",", "")) for cells in found], [int(cells[5]) for cells in found]


def false_alone() -> tuple[int, int]:
    """Return (false certificates, runs) of halved radii beside the boundary of one candidate."""
    cells = row("certificates", "one candidate", "about × 0.5")
    return int(cells[5]), int(cells[3].replace(",", ""))


def certificate(name: str) -> Any:
    """Return a constant of certificates."""
    return code(f"reprl.assurance.certificate.{name}")


NUMBERS: dict[str, dict[str, LookUp]] = {
    "docs/certificates.md": {
        "certificate-looked-later": lambda: phrases(
            [
                {6: "seventh"}.get(certificate("SKIPPED"), ""),
                *(str(certificate("HALFWAY") * n // 2) for n in (2, 3, 4, 6)),
                {16: "sixteen"}.get(certificate("EVEN"), ""),
                f"{certificate('EVEN') / (1 - certificate('LATER')):.0f}",
            ],
            "{}",
            "{}, {}, {}, {}",
            "{}",
            "{}",
        ),
        "one-look-calls": lambda: [str(n) for n in code("experiments.certificates.plan.TINY_CALLS")],
        "seeds-up-calls": lambda: [power(code("experiments.certificates.plan.MOST"), 1)],
        "certificate-seen-runs": lambda: [f"{sum(as_proven()[0]):,}"] if not sum(as_proven()[1]) else [],
        "radii-rejected-no": lambda: [
            str(false_alone()[0]),
            f"{false_alone()[1]:,}",
            f"{false_alone()[1] * code('experiments.certificates.plan.SMALL_DELTA'):.0f}",
        ],
        "were-certified-calls": lambda: [
            str(sum(world[2] == world[3] for world in all_costs())),
            str(len(all_costs())),
            *(f"{certified(world)[0]}" for world in ("gridworld-v0", "random-mdp-v0")),
            power(code("experiments.certificates.plan.MOST"), 1),
        ],
    },
    "docs/proofs/certificate.md": {
        "fixed-unknown-tolerances": lambda: [
            str(code("reprl.canonical.choice.OCTAVES") * code("reprl.canonical.choice.STEPS"))
        ],
        "computes-round-can": lambda: [
            power(code("reprl.assurance.concentration.ROUND")),
            power(code("reprl.canonical.gaps.TIE")),
        ],
        "data-round-number": lambda: phrases(
            [
                str(certificate("SKIPPED") + 1),
                *(str(certificate("HALFWAY") * n // 2) for n in (2, 3, 4, 6)),
                str(certificate("SKIPPED")),
                even := f"{certificate('EVEN') / (1 - certificate('LATER')):.0f}",
                str(certificate("EVEN")),
                later := f"{1 / certificate('LATER'):g}",
                str(certificate("EVEN")),
                str(certificate("EVEN")),
                even,
                later,
            ],
            "{}",
            "{}, {}, {}, {}",
            "{}",
            "{}",
            "{}",
            "{}",
            "{}",
            "{}",
            "{}",
            "{}",
        ),
        "whose-first-rounds": lambda: [WORDS[certificate("SKIPPED")]],
        "made-grid-values": lambda: constants("assurance.concentration", "GRID"),
        "mean-radius-span": lambda: constants("assurance.concentration", "TOP", "TOP"),
        "same-way-mean": lambda: constants("assurance.concentration", "STEEP"),
        "applies-once-which": lambda: constants("assurance.concentration", "TOP", "TOP"),
        "larger-allowed-otherwise": lambda: [
            *constants("assurance.start", "WIDER"),
            *constants("assurance.concentration", *["TOP"] * 4),
        ],
        "reward-above-there": lambda: constants("assurance.concentration", "STEEP", "STEEP"),
        "policy-below-no": lambda: [
            *constants("assurance.occupancy_bounds", "FIRM"),
            *constants("assurance.concentration", "STEEP"),
        ],
        "ever-seen-way": lambda: constants("assurance.concentration", *["STEEP"] * 3),
        "variance-adds-hidden": lambda: constants("canonical.gaps", "HIDDEN"),
        "distances-gap-rises": lambda: [f"{code('reprl.assurance.tolerances.WIDEST'):.3g}"],
        "margin-used-room": lambda: constants("canonical.choice", "CARE"),
        "interval-cut-pieces": lambda: constants("assurance.margin_ratios", "PIECES"),
        "being-norm-pools": lambda: constants("canonical.choice", "POOL"),
        "shares-says-together": lambda: [
            ", ".join(f"{kind} {share}" for kind, share in code("reprl.assurance.concentration.SHARES").items())
        ],
        "ever-smallest-samples": lambda: [
            *constants("assurance.concentration", "TOP"),
            power(10.0 ** (1 - code("reprl.assurance.concentration.GRID")))[2:],
            power(
                2
                / (code("reprl.assurance.concentration.TOP") / 2 ** (code("reprl.assurance.concentration.GRID") - 1))
                ** 2
            ),
        ],
    },
}
