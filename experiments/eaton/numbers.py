"""Numbers of its pages, looked up in the stored data of experiments.eaton and in the code."""

from __future__ import annotations

import numpy as np

from experiments.stored import LookUp, code, measured, stored


def eaton_cells() -> int:
    """Return N of the world of experiments.eaton."""
    mdp = code("experiments.eaton.__main__.world")()
    return int(mdp.horizon * mdp.n_states * mdp.n_actions)


def agree(multiple: str) -> str:
    """Return how many pairs of the default learner agreed."""
    one = measured("eaton")[f"reprl/{multiple}"]
    return f"{one['pairs'] - one['apart']} of {one['pairs']}"


NUMBERS: dict[str, dict[str, LookUp]] = {
    "docs/head-to-head.md": {
        "would-take-calls": lambda: [f"{stored('eaton')['calls']:,}"],
        "function-among-keys": lambda: [
            str(stored("eaton")["runs"]),
            *{str(len(x["values"])) for x in measured("eaton", "rpvi/").values()},
        ],
        "sq-here-runs": lambda: [
            f"{stored('eaton')['calls']:,}",
            "no" if {min(measured("eaton")[f"rpvi/{x}/1"]["unique"]) for x in ("0.05", "0.2", "0.8")} == {20} else "",
            "1024",
            f"{10 * float(np.mean(measured('eaton')['rpvi/0.2/1024']['values'])):.0f}",
        ],
        "policies-agree-times": lambda: [
            agree("1"),
            f"{stored('eaton')['calls']:,}",
            agree("16"),
            f"{16 * stored('eaton')['calls']:,}",
        ],
        "take-sq-here": lambda: [str(eaton_cells())],
    },
}
