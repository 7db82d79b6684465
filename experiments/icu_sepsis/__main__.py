"""python -m experiments.icu_sepsis [--quick] [--only TEXT]: measure what is missing, then draw the figure and tables.

Two teams with one shared seed at the default quality, by parallel samples under two promises, by episodes, and from
logs that clinicians, as the benchmark estimates them, would have made; each judged by the known model, with the
benchmark's own policies beside them. Every measurement is stored as it is done. Run each kind in a process of its own
(--only) where its memory shall be told.
"""

from __future__ import annotations

import resource
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.logs.measure import simulate
from experiments.runner import Experiment, Job
from reprl.learning.learner import learn
from reprl.learning.logged import learn_log
from reprl.learning.result import LearnResult
from reprl.mdp.icu import ENDS, LEVELS, Numbers, read_numbers
from reprl.mdp.policy import Policy
from reprl.mdp.tabular import TabularMDP
from reprl.sources.environment import make
from reprl.sources.protocol import Access

SEED, HORIZON, QUALITY, RHO = 2024, 20, 0.9, 0.1
LIMITS = {"parallel, exact": 4 * 10**9, "parallel": 4 * 10**9, "episodes": 10**8}
"""The most samples of a run, by where they come from; all but the first promise a share of the decisions."""
AGREEMENT = 0.95
EPISODES = 250_000
"""Of a team's log."""
START, END = "<!-- experiments.icu_sepsis: tables -->", "<!-- end of tables -->"


def baselines(horizon: int) -> dict[str, Any]:
    """Returns of the benchmark's own policies and of the extremes, by dynamic programming on its arrays alone."""
    numbers = read_numbers()
    cells = np.einsum("ijk,ijk->ij", numbers.transition, numbers.reward)
    first = np.eye(numbers.admissible.shape[1])[numbers.admissible.argmax(axis=1)]
    laws = {"clinicians": clinicians(numbers), "random admissible": 1.0 * numbers.admissible, "first admissible": first}
    found = {}
    for name, law in laws.items():
        law = law / law.sum(axis=1, keepdims=True)
        move, pay = np.einsum("ij,ijk->ik", law, numbers.transition), (law * cells).sum(axis=1)
        value = np.zeros(len(law))
        for _ in range(horizon):
            value = pay + move @ value
        found[name] = float(numbers.initial @ value)
    best, worst = np.zeros(len(cells)), np.zeros(len(cells))
    for _ in range(horizon):
        best = np.where(numbers.admissible, cells + numbers.transition @ best, -np.inf).max(axis=1)
        worst = np.where(numbers.admissible, cells + numbers.transition @ worst, np.inf).min(axis=1)
    return {**found, "best admissible": float(numbers.initial @ best), "worst": float(numbers.initial @ worst)}


def clinicians(numbers: Numbers) -> NDArray[np.float64]:
    """Return what clinicians do, (S, A), as far as it is admissible; anything admissible where nothing is known."""
    law = np.where(numbers.admissible, numbers.expert, 0.0)
    law = np.where(law.sum(axis=1, keepdims=True) > 0.0, law, 1.0 * numbers.admissible)
    shares: NDArray[np.float64] = law / law.sum(axis=1, keepdims=True)
    return shares


def pair(kind: str, limit: int, episodes: int) -> dict[str, Any]:
    """Two runs, and how they agree."""
    mdp = make("icu-sepsis-v0", HORIZON)
    assert isinstance(mdp, TabularMDP)
    rows, policies = [], []
    for team in (1, 2):
        began = time.process_time()
        result = run(mdp, kind, team, limit, episodes)
        policies.append(result.policy.actions[:, : mdp.n_states])
        rows.append(_row(mdp, result, policies[-1], time.process_time() - began))
    one, two = map(Policy, policies)
    return {"alike": round(1.0 - one.disagreement(two, mdp), 4), "teams": rows}


def run(mdp: TabularMDP, kind: str, team: int, limit: int, episodes: int) -> LearnResult:
    """Return what a team learns."""
    options: dict[str, Any] = {"quality": QUALITY, "rho": RHO, "shared_seed": SEED}
    if kind == "log":
        return _from_log(mdp, team, episodes, options)
    access: Access = "episodic" if kind == "episodes" else "generative"
    agreement = 1.0 if kind == "parallel, exact" else AGREEMENT
    return learn(mdp, access=access, data_seed=team, max_samples=limit, agreement=agreement, **options)


def _row(mdp: TabularMDP, result: LearnResult, actions: NDArray[np.int64], seconds: float) -> dict[str, Any]:
    """Return what a run says of itself beside what the true model says of it."""
    assert mdp.allowed is not None
    kept = np.take_along_axis(mdp.allowed, actions[..., None], axis=2)
    return {
        "samples": result.samples,
        "episodes": result.episodes,
        "status": result.guarantee.status,
        "source": result.guarantee.source,
        "fingerprint": result.policy.fingerprint,
        "value": mdp.evaluate(actions),
        "inadmissible": int((~kept).sum()),
        "cpu_seconds": round(seconds, 1),
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        "doses": _doses(mdp, actions).tolist(),
    }


def _from_log(mdp: TabularMDP, team: int, episodes: int, options: dict[str, Any]) -> LearnResult:
    """Learn from a team's own log of what clinicians do."""
    numbers = read_numbers()
    behaviour = np.broadcast_to(clinicians(numbers), (mdp.horizon, mdp.n_states, mdp.n_actions))
    log = simulate(mdp, behaviour, episodes, np.random.default_rng([SEED, team]))
    names, allowed = range(mdp.n_states), numbers.admissible
    given: dict[str, Any] = {"states": names, "actions": range(mdp.n_actions), "allowed": allowed, "stationary": True}
    return learn_log(log, horizon=mdp.horizon, **given, **options)


def _doses(mdp: TabularMDP, actions: NDArray[np.int64]) -> NDArray[np.float64]:
    """(2, 25): shares of doses that clinicians and the policy give, in the states where the policy comes."""
    visits = mdp.occupancy(actions)[:, : -len(ENDS)]
    ours = np.zeros(LEVELS**2)
    np.add.at(ours, actions[:, : visits.shape[1]], visits)
    theirs = visits.sum(axis=0) @ clinicians(read_numbers())[: visits.shape[1]]
    both = np.stack([theirs, ours])
    shares: NDArray[np.float64] = both / both.sum(axis=1, keepdims=True)
    return shares.round(4)


def jobs(quick: bool) -> dict[str, Job]:
    """Return every measurement by the name it is stored under."""
    out: dict[str, Job] = {f"baselines/{horizon}": partial(baselines, horizon) for horizon in (HORIZON, 500)}
    for kind in (*LIMITS, "log"):
        limit = 10**5 if quick else LIMITS.get(kind, 0)
        out[kind] = partial(pair, kind, limit, 500 if quick else EPISODES)
    return out


def head(quick: bool) -> dict[str, Any]:
    """Return what the data are measured with."""
    return {"quality": QUALITY, "rho": RHO, "seed": SEED, "horizon": HORIZON, "quick": quick}


def tables(data: dict[str, Any]) -> str:
    """Return a row for each run, and the baselines."""
    measured = data["measured"]
    lines = ["| policy | H = 20 steps | H = 500, the benchmark's limit |", "|---|---|---|"]
    short, long = (measured.get(f"baselines/{horizon}", {}) for horizon in (HORIZON, 500))
    lines += [f"| {name} | {short[name]:.3f} | {long[name]:.3f} |" for name in short if name in long]
    lines += [
        "",
        "| data | promise | team | samples | status | policy | survival | like steps | CPU s | peak MB |",
        "|---" * 10 + "|",
    ]
    for name, found in measured.items():
        if name.startswith("baselines"):
            continue
        source, _, exact = name.partition(", ")
        promise = "strict" if exact or source == "log" else f"agreement {AGREEMENT:g}"
        for team, row in enumerate(found["teams"], start=1):
            figures = (f"{row['samples']:.2g}", row["status"], row["fingerprint"][:8], f"{row['value']:.4f}")
            rest = (f"{found['alike']:.1%}", f"{row['cpu_seconds']:.0f}", row["peak_mb"])
            lines.append(f"| {' | '.join(map(str, (source, promise, team, *figures, *rest)))} |")
    return "\n".join(lines)


def draw(data: dict[str, Any], folder: Path) -> None:
    """Doses, weighed by how often they are given: the clinicians' and the policy's."""
    import matplotlib as mpl

    mpl.use("Agg")
    mpl.rcParams["svg.hashsalt"] = "reprl"
    from matplotlib import pyplot

    if "parallel" not in data["measured"]:
        return
    shown = data["measured"]["parallel"]["teams"][0]
    figure, axes = pyplot.subplots(1, 2, figsize=(8, 3.6), layout="constrained")
    titles = ("clinicians, in the same states", "the policy")
    for axis, title, shares in zip(axes, titles, np.array(shown["doses"]), strict=True):
        _square(axis, title, shares)
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / "icu-sepsis.svg", metadata={"Date": None})
    pyplot.close(figure)


def _square(axis: Any, title: str, shares: NDArray[np.float64]) -> None:
    table = shares.reshape(LEVELS, LEVELS)
    axis.imshow(table, cmap="Blues", vmin=0.0, vmax=0.6, origin="lower")
    for fluids, vasopressors in np.ndindex(LEVELS, LEVELS):
        share = table[fluids, vasopressors]
        axis.text(vasopressors, fluids, f"{share:.0%}", ha="center", va="center", color="w" if share > 0.3 else "k")
    axis.set(title=title, xlabel="vasopressors", ylabel="fluids")


EXPERIMENT = Experiment(
    name="icu_sepsis",
    page="icu-sepsis.md",
    jobs=jobs,
    head=head,
    draw=draw,
    tables=tables,
    marks=(START, END),
)


if __name__ == "__main__":
    EXPERIMENT.main(None, __doc__)
