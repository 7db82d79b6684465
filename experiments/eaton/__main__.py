"""python -m experiments.eaton [--quick]: run rPVI at multiples of 13,000 calls, and the default learner beside it.

Takes some minutes of one core, and rewrites experiments/eaton/data.json, docs/figures/eaton.svg and the table in
docs/head-to-head.md.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from functools import partial
from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt

import reprl
from experiments.runner import Experiment, Job
from reprl.lab.baselines import greedy_policy
from reprl.lab.baselines.generative import phased_values
from reprl.randomness import DataStream

EPSILON, DELTA, RHO = 0.02, 0.001, 0.2
CALLS = 13_000
"""What phased Q-learning without replicability asks for, as the paper gives it."""
MULTIPLES = (1, 4, 16, 64, 256, 1024, 4096, 16384)
OWN_MULTIPLES = (1, 4, 16)
"""Of the default learner, which stops by itself below the third."""
QUERY_RHOS = (0.05, 0.2, 0.8)
"""ρ_SQ, which the paper treats as a free number: what one query may differ by. Theory asks for ρ/N."""
KEYS, RUNS, OWN_PAIRS, SEED = 5, 20, 20, 20261116
START, END = "<!-- tables: python -m experiments.eaton -->\n", "<!-- end of eaton -->\n"
Data = dict[str, Any]


def world() -> reprl.TabularMDP:
    """Two equal treasures and many ways to them, as the paper describes its own; moves slip."""
    return reprl.make("two-goals-v0", size=5, horizon=6, slip=0.1)


def rpvi(multiple: int, query_rho: float, keys: int) -> Data:
    """RUNS runs under each of some keys: shares of the commonest value function and policy, and how many there are."""
    mdp = world()
    width = 2.0 * EPSILON / (query_rho + 1.0 - 2.0 * DELTA)
    values: list[float] = []
    policies: list[float] = []
    unique: list[int] = []
    for shared in range(keys):
        seen: list[tuple[Hashable, Hashable]] = []
        for run in range(RUNS):
            seed = int(DataStream(SEED, f"{multiple}/{query_rho}/{shared}/{run}").integers(1)[0])
            counts = reprl.GenerativeModel(mdp, seed).sample(multiple * CALLS)
            scores = phased_values(reprl.SharedKey(shared).derive("rpvi"), counts, width)
            seen.append((scores.max(axis=2).tobytes(), greedy_policy(scores).fingerprint))
        values.append(_commonest([value for value, _ in seen]))
        policies.append(_commonest([policy for _, policy in seen]))
        unique.append(len({value for value, _ in seen}))
    return {"values": values, "policies": policies, "unique": unique}


def _commonest(found: list[Hashable]) -> float:
    return Counter(found).most_common(1)[0][1] / len(found)


def ours(multiple: int, pairs: int) -> Data:
    """The default learner with at most as many samples: pairs with one policy, and what was drawn."""
    mdp = world()
    limit = multiple * CALLS * reprl.GenerativeModel(mdp, 0).samples_per_call
    report = reprl.audit(
        mdp, "reprl", pairs, access="generative", epsilon=EPSILON, rho=RHO, max_samples=limit, seed=SEED + multiple
    )
    assert report.suboptimality is not None
    return {
        "pairs": pairs,
        "apart": report.disagreements,
        "samples": report.samples,
        "limit": limit,
        "loss": report.suboptimality.mean,
    }


def jobs(quick: bool) -> dict[str, Job]:
    """Return every measurement."""
    multiples = MULTIPLES[:2] if quick else MULTIPLES
    own = {f"reprl/{m}": partial(ours, m, 2 if quick else OWN_PAIRS) for m in multiples if m in OWN_MULTIPLES}
    rivals = {f"rpvi/{q:g}/{m}": partial(rpvi, m, q, 1 if quick else KEYS) for q in QUERY_RHOS for m in multiples}
    return {**rivals, **own}


def head(quick: bool) -> Data:
    """Return what the data are measured with."""
    return {"epsilon": EPSILON, "delta": DELTA, "rho": RHO, "calls": CALLS, "runs": RUNS, "seed": SEED}


def _mean(row: list[float]) -> float:
    return sum(row) / len(row)


def draw(data: Data, folder: Path) -> None:
    """Draw shares of identical outputs against calls."""
    mpl.rcParams.update({"svg.hashsalt": "reprl", "svg.fonttype": "none", "font.family": "sans-serif", "font.size": 9})
    folder.mkdir(parents=True, exist_ok=True)
    figure, axis = plt.subplots(figsize=(7, 3.8), layout="constrained")
    for query, colour in zip(QUERY_RHOS, ("#e8a07a", "#c1440e", "#6b1f00"), strict=True):
        rows = _rows(data, f"rpvi/{query:g}/")
        x = [m * CALLS for m, _ in rows]
        axis.plot(
            x, [_mean(row["values"]) for _, row in rows], "^-", color=colour, label=f"rPVI, values, ρ_SQ = {query:g}"
        )
        axis.plot(x, [_mean(row["policies"]) for _, row in rows], "^:", color=colour, markersize=3, linewidth=0.8)
    rows = _rows(data, "reprl/")
    share = [1.0 - row["apart"] / row["pairs"] for _, row in rows]
    axis.plot([m * CALLS for m, _ in rows], share, "p-", color="#117733", label="reprl, policies of pairs")
    axis.axhline(1.0 - RHO, color="0.6", linewidth=0.8)
    axis.set(xscale="log", xlabel="calls", ylabel="identical outputs", ylim=(0, 1.03))
    axis.grid(alpha=0.25, linewidth=0.4)
    axis.legend(frameon=False, title="dotted: rPVI's policies", fontsize=8, title_fontsize=8)
    figure.savefig(folder / "eaton.svg", metadata={"Date": None})
    plt.close(figure)


def _rows(data: Data, start: str) -> list[tuple[int, Data]]:
    found = {name: row for name, row in data["measured"].items() if name.startswith(start)}
    return [(int(name.rpartition("/")[2]), row) for name, row in found.items()]


def _share(row: Data) -> str:
    return f"{row['samples']:.1e} of {row['limit']:.1e}"


def tables(data: Data) -> str:
    """Return the table of the page."""
    heads = [f"rPVI, ρ_SQ = {query:g}: values, policies (unique values)" for query in QUERY_RHOS]
    lines = [f"| calls | {' | '.join(heads)} | reprl: pairs that agree | its samples of the limit |", "|---" * 6 + "|"]
    for m, _ in _rows(data, f"rpvi/{QUERY_RHOS[0]:g}/"):
        cells = []
        for query in QUERY_RHOS:
            one = data["measured"][f"rpvi/{query:g}/{m}"]
            cells.append(f"{_mean(one['values']):.2f}, {_mean(one['policies']):.2f} ({_mean(one['unique']):.1f})")
        row = data["measured"].get(f"reprl/{m}")
        cells += ["–", "–"] if row is None else [f"{row['pairs'] - row['apart']}/{row['pairs']}", _share(row)]
        lines.append(f"| {m * CALLS:,} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


EXPERIMENT = Experiment(
    name="eaton", page="head-to-head.md", jobs=jobs, head=head, draw=draw, tables=tables, marks=(START, END)
)


if __name__ == "__main__":
    EXPERIMENT.main(None, __doc__)
