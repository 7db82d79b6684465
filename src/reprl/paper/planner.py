"""plan: how many samples each algorithm needs by its theorem, the paper's, the baselines', and the lower bounds."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from reprl.coupling.spec import COUPLINGS
from reprl.errors import InputError, ReprlError, check_int, check_probability, check_real, quote
from reprl.paper.constants import Constants, Task, paper_calls


class PlanRow(NamedTuple):
    """One algorithm: what it needs for the asked (ε, ρ, δ)."""

    algorithm: str
    access: str
    samples: float
    kind: str
    """"exact": the learner draws this many; "at most": no more; "order": the rate, every unstated constant and
    polylogarithm at 1."""
    runtime: str
    source: str


@dataclass(frozen=True)
class Plan:
    """The table of ``plan``; iterate over `rows`, or print it."""

    rows: tuple[PlanRow, ...]

    def __iter__(self) -> Iterator[PlanRow]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __str__(self) -> str:
        head = ("algorithm", "access", "samples", "kind", "runtime", "source")
        body = [(r.algorithm, r.access, f"{r.samples:.3g}", r.kind, r.runtime, r.source) for r in self.rows]
        widths = [max(len(line[i]) for line in (head, *body)) for i in range(len(head))]
        lines = [
            "  ".join(cell.ljust(w) for cell, w in zip(line, widths, strict=True)).rstrip() for line in (head, *body)
        ]
        return "\n".join(lines)


def plan(
    *,
    n_states: int,
    n_actions: int,
    horizon: int,
    epsilon: float,
    rho: float = 0.1,
    delta: float = 0.1,
) -> Plan:
    """Tabulate the samples that each algorithm needs (Theorems 4.13, 6.1, A.5; comparison of Section 1).

    ε is an accuracy in (0, H], of rewards in [0, 1]; ρ the allowed disagreement, δ the allowed failure.

    Guarantee:
        Rows marked exact equal what ``learn(rule="paper")`` draws from an environment with a fixed start; a boosted one
        that finds fewer candidates than seeds plays fewer episodes to compare them. Of constants="proven" the episodes
        are a fixed number, of at most H samples each. Other rows are orders of magnitude.
    """
    s = check_int("n_states", n_states, 1)
    a = check_int("n_actions", n_actions, 1)
    h = check_int("horizon", horizon, 1)
    epsilon = check_real("epsilon", epsilon, 0.0, math.inf)
    if epsilon > h:
        raise InputError(f"epsilon must lie in (0, {h}], as values lie in [0, H], got {epsilon:g}")
    rho = check_probability("rho", rho)
    delta = check_probability("delta", delta)
    try:
        return Plan((*_exact(s, a, h, epsilon, rho, delta), *_rates(s, a, h, epsilon, rho, delta)))
    except (OverflowError, ZeroDivisionError):
        raise InputError(
            f"these settings need more samples than a float can hold (n_states={quote(s)}, n_actions={quote(a)}, "
            f"horizon={quote(h)}, epsilon={epsilon:g}, rho={rho:g}, delta={delta:g})"
        ) from None


def _exact(s: int, a: int, h: int, epsilon: float, rho: float, delta: float) -> list[PlanRow]:
    """What the paper's learner draws: ρ asked of one learner, and learners of ρ = 0.01 boosted.

    By episodes no constant of exploration is pinned by a proof, so that row is an order of magnitude; nobody can draw
    it.
    """
    exact = []
    for coupling in COUPLINGS:
        runtime, theorem = ("exp(S log A) worst case", "6.1") if coupling == "joint" else ("poly", "A.5")
        calls = paper_calls(s, a, h, epsilon=epsilon, rho=rho, delta=delta, coupling=coupling)
        exact.append(PlanRow(f"paper, {coupling}", "parallel", s * a * h * calls, "exact", runtime, "Theorem 4.13"))
        if rho < 0.5:  # else there is nothing to boost
            asked = Task(s, a, h, epsilon, rho, min(rho, delta), "generative", coupling, boosted=True)
            exact += _boosted(asked, runtime, f"Theorem {theorem}")
    return exact + _proven(Task(s, a, h, epsilon, rho, delta, "episodic", "joint", boosted=False))


def _proven(asked: Task) -> list[PlanRow]:
    """What runs by episodes draw at the sizes of docs/proofs/whole.md, where these are numbers at all."""
    try:
        most = asked.samples(Constants.proven(asked).total)
    except (ReprlError, OverflowError, ZeroDivisionError):  # one action, ε = H, or more than can be held
        return []
    kind = "exact" if asked.horizon == 1 else "at most"
    return [PlanRow("proven, joint", "episodic", most, kind, "exp(SH)", "docs/proofs/whole.md")]


def _boosted(asked: Task, runtime: str, source: str) -> list[PlanRow]:
    """The paper's own shape, from parallel samples and by episodes, as far as its sizes are numbers at all."""
    name, rows = f"paper, {asked.coupling}, boosted", []
    for access, shown, theorem in (("generative", "parallel", "Theorem 4.13"), ("episodic", "episodic", source)):
        task = asked._replace(access=access)
        try:
            constants = Constants.paper(task)
            drawn = float(task.samples(constants.total))
        except (ReprlError, OverflowError, ZeroDivisionError):  # no tier to decide at this ε, or more than can be held
            continue
        kind = "exact" if task.parallel and constants.countable else "order"
        rows.append(PlanRow(name, shown, drawn, kind, runtime, theorem))
    return rows


def _rates(s: int, a: int, h: int, epsilon: float, rho: float, delta: float) -> list[PlanRow]:
    """The rates as the papers state them, constants 1."""
    log = math.log(1.0 / delta) ** 4
    tail = (epsilon * rho) ** -2
    rows = [
        ("Hopkins et al., joint", "parallel", s**2 * a * h**7 * log * tail, "exp(S log A)", "Theorem 4.13"),
        ("Hopkins et al., joint", "episodic", s**2 * a * h**11 * log * tail, "exp(SH)", "Theorem 6.1"),
        ("Hopkins et al., efficient", "episodic", s**3 * a * h**11 * log * tail, "poly", "Theorem A.5"),
        ("Eaton et al., rPVI", "parallel", s**3 * a**3 * tail, "poly", "constant γ"),
        ("Eaton et al., R-max", "episodic", float(s**7 * a**7), "poly", "S, A only"),
        ("Karbasi et al., joint", "parallel", s**2 * a**2 * tail, "exp(SA)", "constant γ"),
        ("Karbasi et al., grid", "parallel", s**3 * a**3 * tail, "poly", "constant γ"),
        # Theorems 1.4 and 1.5 state S²A·H²/(ρε)² for accuracy ε·H; here ε is in units of value, so theirs is ε/H.
        ("lower bound", "parallel", s**2 * a * h**4 * tail, "", "Theorem 1.4"),
        ("lower bound", "episodic", s**2 * h**4 * tail, "", "Theorem 1.5"),
        ("no replicability", "episodic", s * a * h**3 / epsilon**2, "poly", "Azar et al. 2017"),
    ]
    return [PlanRow(name, access, float(n), "order", time, source) for name, access, n, time, source in rows]
