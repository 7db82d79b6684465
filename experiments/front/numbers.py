"""Numbers of its pages, looked up in the stored data of experiments.front and in the code."""

from __future__ import annotations

from experiments.price.numbers import summary
from experiments.search.present import rows_of
from experiments.stored import LookUp, measured, phrases, stored, tens
from experiments.whole.numbers import paper_whole


def different() -> list[str]:
    """Return how many policies the teams of experiments.front came to, with reprl and planning greedily."""
    found = measured("front").values()
    return [str(len({team[name] for team in found})) for name in ("fingerprint", "greedy_fingerprint")]


SHOWN: dict[str, LookUp] = {
    "teams": lambda: [str(len(measured("front")))],
    "cartpole-pairs": lambda: [str(len(rows_of(stored("search"), "CartPole-v1")))],
    "agent-pairs": lambda: [str(max(len(found["pairs"]) for found in measured("agents").values()))],
}
"""What the caption of the first picture says."""
NUMBERS: dict[str, dict[str, LookUp]] = {
    "README.md": {
        **SHOWN,
        "papers-episodes": lambda: [tens(paper_whole(2, 2, 1).total, 1)],
        "price": lambda: summary("price", "targets/")[:1],
    },
    "website/index.md": SHOWN,
    "docs/gallery.md": {
        "policies": different,
        "two-runs": lambda: phrases([f"{team['samples']:,}" for team in measured("front").values()][:2], "{} and {}"),
    },
}
