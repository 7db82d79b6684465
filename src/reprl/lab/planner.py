"""plan: how many samples each algorithm needs, ours, the baselines, and the lower bounds."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

from reprl.canonical.goal import DEFAULT_QUALITY
from reprl.coupling.spec import JOINT, PRODUCT
from reprl.errors import InputError, ReprlError, check_int, check_probability, check_real, quote
from reprl.learning.expected import WORLDS, stored_range
from reprl.learning.settings import Settings
from reprl.paper.constants import Constants, Task, paper_calls
from reprl.sources.protocol import Access


class PlanRow(NamedTuple):
    """One algorithm: what it needs for the asked (ε, ρ, δ)."""

    algorithm: str
    access: str
    samples: float
    """Samples; exact where `exact` says so, otherwise the rate with every unstated constant and polylogarithm at 1."""
    exact: bool
    """True: the learner draws exactly this many. False: order of magnitude only."""
    runtime: str
    source: str
    low: float | None = None
    """Where `samples` is typical of a range that runs had elsewhere: its lower end;"""
    high: float | None = None
    """and its upper end."""

    @property
    def kind(self) -> str:
        """What the number of samples is, in a word."""
        return "exact" if self.exact else "order" if self.low is None else "range"

    @property
    def shown(self) -> str:
        """The number of samples for people."""
        return f"{self.samples:.3g}" if self.low is None else f"{self.samples:.2g} [{self.low:.2g}, {self.high:.2g}]"


@dataclass(frozen=True)
class Plan:
    """The table of reprl.plan; iterate over `rows`, or print it."""

    rows: tuple[PlanRow, ...]

    def __iter__(self) -> Iterator[PlanRow]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __str__(self) -> str:
        head = ("algorithm", "access", "samples", "kind", "runtime", "source")
        body = [(r.algorithm, r.access, r.shown, r.kind, r.runtime, r.source) for r in self.rows]
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
    quality: float = DEFAULT_QUALITY,
) -> Plan:
    """Tabulate the samples that each algorithm needs (Theorems 4.13, 6.1, A.5; comparison of Section 1).

    ε is an accuracy in (0, H], ρ the allowed disagreement, δ the allowed failure. The default learner is asked for a
    quality instead of ε.

    Guarantee:
        Rows marked exact equal what reprl's learner draws from an environment with a fixed start; a boosted one that
        finds fewer candidates than seeds plays fewer episodes to compare them. Rows marked range are
        what eight of ten stored runs of the default learner needed, for so many cells, under the strict promise and,
        by parallel samples, under the two weaker ones (docs/register.md); ``reprl.forecast`` narrows that for an
        environment at hand. For constants="sharp" the range is certain: its episodes are a fixed number, of 1 to H
        samples each. Other rows are rates with unstated constants and polylogarithms set to 1: orders of
        magnitude only.
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
        ours = _stored(s * a * h, Settings(quality=quality, rho=rho, delta=delta))
        return Plan((*ours, *_exact(s, a, h, epsilon, rho, delta), *_rates(s, a, h, epsilon, rho, delta)))
    except (OverflowError, ZeroDivisionError):
        raise InputError(
            f"these settings need more samples than a float can hold (n_states={quote(s)}, n_actions={quote(a)}, "
            f"horizon={quote(h)}, epsilon={epsilon:g}, rho={rho:g}, delta={delta:g})"
        ) from None


def _stored(cells: int, settings: Settings) -> list[PlanRow]:
    """What the default learner needed elsewhere."""
    ways: dict[Access, str] = {"generative": "parallel", "episodic": "episodic"}
    rows = []
    for access, name in ways.items():
        low, typical, high = stored_range(replace(settings, access=access), cells)
        source = f"stored runs on {WORLDS[access]} MDPs"
        label = f"reprl canonical, quality {settings.quality:g}"
        rows.append(PlanRow(label, name, typical, False, "poly", source, low, high))
    for promise, words in (("approximate", "agreement 0.95"), ("registered", "registered")):
        low, typical, high = stored_range(replace(settings, access="generative"), cells, promise=promise)
        source = f"stored runs on {WORLDS[promise]} MDPs"
        rows.append(PlanRow(f"reprl canonical, {words}", "parallel", typical, False, "poly", source, low, high))
    return rows


def _exact(s: int, a: int, h: int, epsilon: float, rho: float, delta: float) -> list[PlanRow]:
    """What reprl's own learner draws with the paper's constants; otherwise it finds its size by rehearsal.

    Both shapes: ρ asked of one learner, and learners of ρ = 0.01 boosted. By episodes no constant of exploration is
    pinned by a proof, so that row is an order of magnitude; nobody can draw it.
    """
    exact = []
    for spec, runtime in ((JOINT, "exp(S log A) worst case"), (PRODUCT, "poly")):
        calls = paper_calls(s, a, h, epsilon=epsilon, rho=rho, delta=delta, coupling=spec)
        direct = PlanRow(f"reprl {spec.method}, paper", "parallel", s * a * h * calls, True, runtime, "Theorem 4.13")
        exact.append(direct)
        if rho < 0.5:  # else there is nothing to boost
            asked = Task(s, a, h, epsilon, rho, min(rho, delta), "generative", spec, spec, boosted=True)
            exact += _boosted(asked, runtime, "Theorem 6.1" if spec == JOINT else "Theorem A.5")
    return exact + _sharp(Task(s, a, h, epsilon, rho, delta, "episodic", JOINT, JOINT, boosted=False))


def _sharp(asked: Task) -> list[PlanRow]:
    """What runs by episodes draw at the sizes of docs/proofs/whole.md, where these are numbers at all."""
    try:
        episodes = float(Constants.sharp(asked).total)
    except (ReprlError, OverflowError, ZeroDivisionError):  # one action, ε = H, or more than can be held
        return []
    most = asked.samples(int(episodes))
    ends = (None, None) if asked.horizon == 1 else (episodes, most)
    return [PlanRow("reprl sharp", "episodic", most, asked.horizon == 1, "exp(SH)", "docs/proofs/whole.md", *ends)]


def _boosted(asked: Task, runtime: str, source: str) -> list[PlanRow]:
    """The paper's own shape, from parallel samples and by episodes, as far as its sizes are numbers at all."""
    name, rows = f"reprl {asked.arms.method}, paper, boosted", []
    for access, shown, theorem in (("generative", "parallel", "Theorem 4.13"), ("episodic", "episodic", source)):
        task = asked._replace(access=access)
        try:
            constants = Constants.paper(task)
            drawn = task.samples(constants.total)
        except (ReprlError, OverflowError, ZeroDivisionError):  # no tier to decide at this ε, or more than can be held
            continue
        rows.append(PlanRow(name, shown, drawn, task.parallel and constants.countable, runtime, theorem))
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
    return [PlanRow(name, access, float(n), False, time, source) for name, access, n, time, source in rows]
