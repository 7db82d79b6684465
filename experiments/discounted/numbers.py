"""Numbers of its pages, looked up in the stored data of experiments.discounted and in the code."""

from __future__ import annotations

from experiments.stored import LookUp, code, pairs_of, percent, power

NUMBERS: dict[str, dict[str, LookUp]] = {
    "docs/discounting.md": {
        "stationary-true-what": lambda: [f"{code('reprl.mdp.criterion.MOST')}"],
        "moves-more-no": lambda: [power(code("reprl.mdp.backup.STILL"))],
        "grid-differ": lambda: [
            str(sum(not row["same"] for row in pairs_of("discounted", "gridworld"))),
            str(len(pairs_of("discounted", "gridworld"))),
        ],
        "counts-less-all": lambda: [percent(code("reprl.mdp.criterion.LENGTH"))],
    },
}
