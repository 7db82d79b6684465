"""Numbers of its pages, looked up in the stored data of experiments.confirm and in the code."""

from __future__ import annotations

from experiments.stored import LookUp, code, power

NUMBERS: dict[str, dict[str, LookUp]] = {
    "docs/confirm.md": {
        "most-samples": lambda: [power(code("reprl.artifacts.confirm.MOST"))],
        "mean-below": lambda: [f"{code('experiments.confirm.plan.BELOW'):g}"],
        "scans-rho": lambda: [f"{code('experiments.confirm.plan.RHO'):g}"],
    },
    "docs/proofs/search.md": {
        "shares-grid": lambda: [str(code("reprl.search.betting.GRID"))],
        "largest-share": lambda: [f"{code('reprl.search.betting.TOP'):g}"],
    },
}
