"""Constants of the full algorithm: every size of the paper as a named field of one value, `Constants`.

"paper" uses every constant that the paper pins, and sets to 1 those that it leaves as Θ(1) or "sufficiently large" and
that a formula needs: that of ζ ≪ ε/(H² log⁵(SAH/εδ)) (Theorem 4.5), of m, M and K (Lemmas 5.10–5.14), the
polylogarithms hidden in Õ (Theorems 4.13, 6.1, A.5). "scaled" is the same algorithm, line by line, at sizes that a
machine can play. "proven" has the sizes that docs/proofs/whole.md derives for runs by episodes.

A size of the paper is a *core* times a *slack*. The core says how the size grows with S, A, the number of draws of the
coupling and the tier (K also with H: an episode records one sample, and there are S·A·H cells). The slack pays for
certainty: logarithms, powers of H, 1/κ, 1/ε, 1/ρ. Slacks of one setting range from 10 to 10^15, so no single factor
suits them all. `scaled(f)` raises every slack to the power f instead: how sizes grow with S and A, and from tier to
tier, stays the paper's. f = 1 is the paper.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, get_args

from reprl.coupling.heavy_hitters import plan_heavy_hitters
from reprl.coupling.spec import count_draws
from reprl.errors import InputError, check_int, check_real
from reprl.paper.proven import Problem, proven_sizes
from reprl.paper.rep_explore import Stage
from reprl.paper.rep_rl_bandit import Accuracy
from reprl.paper.rep_var_bandit import paper_requirement, plan_best_arm
from reprl.paper.runs import RunSettings
from reprl.sources.access import WAYS

Preset = Literal["paper", "scaled", "proven"]
PRESETS = get_args(Preset)
DEFAULT_SCALE = 0.1
THRESHOLD = 0.6
"""ν of boosting's heavy hitters (Lemma 4.1)."""
TOLERANCE = 0.05
"""τ of boosting's heavy hitters."""
BASE_RHO = 0.01
"""ρ of each half of the learner that is boosted: exploration, and induction (Theorems 4.5 and 6.1)."""
BASE_DELTA = 0.1
"""δ of the learner by episodes that is boosted (Lemma 4.1), exploration and induction together; from parallel samples,
which need no exploration, it is 0.01 (Theorem 4.13)."""
LEAST_TIERS = 3
"""Tiers of a scaled run, at least: two that are decided, and what is ignored."""
MOST = 2**62
"""Samples of one cell that one word can count; what all learners draw together is an integer of any length."""


class Task(NamedTuple):
    """What constants are computed for."""

    n_states: int
    n_actions: int
    horizon: int
    epsilon: float
    rho: float
    delta: float
    """At most ρ, but for "proven", where it may be any."""
    access: str
    """"episodic" or "generative"."""
    coupling: str
    """"joint" or "product": of the actions of a step, and of a set of ignored states."""
    boosted: bool
    """Whether a learner of ρ = 0.01 is boosted (Lemma 4.1), or ρ is asked of the learner itself."""

    @property
    def parallel(self) -> bool:
        """Whether samples come by parallel calls, which cover every cell, or by episodes."""
        return not WAYS[self.access].plays

    def samples(self, units: int) -> int:
        """Return the samples of so many parallel calls, or episodes."""
        return units * self.horizon * (self.n_states * self.n_actions if self.parallel else 1)


@dataclass(frozen=True, kw_only=True)
class Constants:
    """Every constant of one run of the paper's algorithm."""

    scale: float
    """f: the share of its digits that every slack keeps; 1 is the paper, 0 for sizes that are not the paper's."""
    epsilon: float
    """Accuracy of one learner: ε, or ε/2 where learners are boosted."""
    delta: float
    """Failure probability of one induction; exploration has its own share."""
    zeta: float = 0.0
    """ζ: how nice the data shall be (Definition 4.4); 0 for parallel sampling and "proven"."""
    tiers: int = 1
    """L, the ignored tier among them; 1 for parallel sampling."""
    kappa: float = 0.0
    """κ of RepExplore; 0 for parallel sampling and "proven"."""
    calls: int = 0
    """Parallel calls of one learner; 0 for episodes."""
    partition_runs: int = 0
    """m: exploration runs that settle a tier's set."""
    data_runs: tuple[int, ...] = ()
    """M of tiers 1 … L−1: fresh runs that collect data."""
    episodes: tuple[int, ...] = ()
    """K of tiers 1 … L−1: episodes of one exploration run."""
    failure: float = 0.0
    """ι of one exploration run."""
    bonus: tuple[float, ...] = ()
    """c of tiers 1 … L−1, of the optimistic bonus c·√(H³ℓ/t), ℓ = log(S·2A·K·H/ι): 2 in the paper. Its slack is all of
    c·√(H³ℓ): a bonus far above H, for runs as short as scaled ones are, would lead nowhere but to the last step."""
    guide: float = 1.0
    """Bonus of real actions relative to that of phantoms."""
    quota: int = 0
    """Records of every action below which a state is under-explored: H."""
    keep_records: bool = False
    """Whether records of the m runs are data too; the paper collects them afresh."""
    by_tier: tuple[float, ...] = ()
    """ε_ℓ: accuracy of the best-arm problems of tiers 1 … L−1."""
    pessimism: float = 1.0
    """What is subtracted from every value, as a fraction of ε_ℓ."""
    seeds: int = 0
    """k of boosting; 0 where nothing is boosted."""
    threshold: float = THRESHOLD
    """ν of its heavy hitters."""
    tolerance: float = TOLERANCE
    """τ of its heavy hitters."""
    candidates: int = 0
    """Learners per seed that name its heavy hitters."""
    frequencies: int = 0
    """Fresh learners per seed that measure how often they come."""
    pulls: int = 0
    """Episodes of every candidate, by which the best one is found."""

    @classmethod
    def paper(cls, task: Task) -> Constants:
        """The paper's own, constants that it leaves open set to 1."""
        return cls._at(1.0, task)

    @classmethod
    def scaled(cls, scale: float, task: Task, *, least_tiers: int = LEAST_TIERS) -> Constants:
        """The paper's with every slack to the power `scale`, in (0, 1], and so many tiers at least (below 1)."""
        least = check_int("least_tiers", least_tiers, 2, 32)
        return cls._at(check_real("scale", scale, 0.0, 1.0, open_high=False), task, least)

    @classmethod
    def proven(cls, task: Task) -> Constants:
        """Those of docs/proofs/whole.md, one tier of which is decided."""
        problem = Problem(task.n_states, task.n_actions, task.horizon, task.epsilon, task.rho, task.delta)
        found = proven_sizes(problem)
        return cls(
            scale=0.0,
            epsilon=task.epsilon,
            delta=found.failures[0],
            tiers=2,
            partition_runs=found.runs,
            data_runs=(0,),
            episodes=(found.length,),
            failure=found.failure,
            bonus=(1.0,),
            quota=found.quota,
            keep_records=True,
            by_tier=(2.0 * found.window,),
            pessimism=(found.window + found.noise) / (2.0 * found.window),
        )

    @classmethod
    def _at(cls, scale: float, task: Task, least_tiers: int = LEAST_TIERS) -> Constants:
        base = BASE_RHO if task.parallel else BASE_DELTA  # the proofs of Theorems 4.13 and 6.1
        epsilon, delta = (task.epsilon / 2.0, base) if task.boosted else (task.epsilon, task.delta)
        explored = 0.0 if task.parallel else BASE_RHO if task.boosted else min(task.rho, task.delta) / 2.0
        part = cls(scale=scale, epsilon=epsilon, delta=delta - explored)
        part = _parallel(part, task) if task.parallel else _episodic(part, task, explored, least_tiers)
        part = replace(part, by_tier=_shares(part, task.horizon))
        return _boosting(part, task) if task.boosted else part

    @property
    def learners(self) -> int:
        """Learners that one run makes: k·(candidates + frequencies), or one."""
        return max(1, self.seeds * (self.candidates + self.frequencies))

    @property
    def each(self) -> int:
        """Episodes, or parallel calls, of one learner."""
        runs = zip(self.data_runs, self.episodes, strict=True)
        return self.calls + sum((self.partition_runs + more) * length for more, length in runs)

    @property
    def total(self) -> int:
        """Episodes, or parallel calls, of the whole run at most: fewer candidates than k need fewer pulls."""
        return self.learners * self.each + self.seeds * self.pulls

    @property
    def accuracy(self) -> Accuracy:
        """How ε is shared out over tiers."""
        return Accuracy(by_tier=self.by_tier, pessimism=self.pessimism)

    def stages(self) -> tuple[Stage, ...]:
        """RepLevelExplore's stages (Algorithm 6), one per tier that is decided; sizes beyond counting are refused."""
        self.check()
        return tuple(
            Stage(
                run=RunSettings(episodes=length, bonus=bonus, guide=self.guide, failure=self.failure),
                partition_runs=self.partition_runs,
                data_runs=more,
                quota=self.quota,
            )
            for length, more, bonus in zip(self.episodes, self.data_runs, self.bonus, strict=True)
        )

    @property
    def countable(self) -> bool:
        """Whether a machine could count what the constants ask for.

        Parallel samples are drawn as counts (up to 2⁵² of a cell in a time that does not depend on their number): only
        those of one learner, or one candidate's pulls, must fit into a word. Episodes are played one by one, and are
        counted all together.
        """
        if self.episodes:
            return self.total <= MOST and max((self.partition_runs, *self.data_runs)) < 2**31
        return max(self.calls, self.pulls) <= MOST

    def check(self) -> Constants:
        """Return the constants if they are countable."""
        if self.countable:
            return self
        whose = {0.0: "proven sizes", 1.0: "the paper's constants"}.get(
            self.scale, f"constants at scale={self.scale:g}"
        )
        asked = f"{max(self.calls, self.pulls):.3g} parallel calls of one learner or candidate"
        if self.episodes:
            first = (self.partition_runs + self.data_runs[0]) * self.episodes[0]
            asked = f"{first:.3g} episodes in tier 1 alone, {self.total:.3g} episodes in all"
        raise InputError(
            f"{whose} ask for {asked}; at most 2**62 can be counted: use constants='scaled' with samples or a smaller "
            "scale"
        )


def _shares(part: Constants, horizon: int) -> tuple[float, ...]:
    """ε_ℓ = 2^ℓ·(ε/H)·(8L)^−f: the paper's at f = 1 (Algorithm 2)."""
    unit = part.epsilon / horizon * (8.0 * part.tiers) ** -part.scale
    return tuple(2.0**tier * unit for tier in range(1, max(part.tiers, 2)))


def _parallel(part: Constants, task: Task) -> Constants:
    """Calls of one learner: draws·S is their core (Theorem 4.13)."""
    share = BASE_RHO if task.boosted else task.rho
    sizes = (task.n_states, task.n_actions, task.horizon)
    calls = paper_calls(*sizes, epsilon=part.epsilon, rho=share, delta=part.delta, coupling=task.coupling)
    core = task.n_states * count_draws(task.coupling, task.n_states)
    return replace(part, calls=_scaled(calls, core, part.scale))


def _episodic(part: Constants, task: Task, explored: float, least_tiers: int) -> Constants:
    """ζ, κ, ι and the sizes m, M, K of RepLevelExplore (Algorithms 5 and 6).

    κ and ζ are the paper's for a learner whose exploration fails with probability `explored` = 0.01, and in proportion
    where ρ is asked directly. ι is κ/Σ(m + M) over the tiers, an inverse polynomial: no run of any tier misses its
    accuracy but with probability κ (the proof of Lemma 5.14 asks mι ≪ κ and Mι ≪ κ). The number of draws multiplies m
    and M: by S·H for "product" (Lemma A.1).
    """
    s, a, h, f = task.n_states, task.n_actions, task.horizon, part.scale
    asked = explored / BASE_RHO
    zeta = asked * part.epsilon / (h**2 * math.log(s * a * h / (part.epsilon * part.delta)) ** 5)
    if zeta > 0.5:
        raise InputError(f"epsilon must be small enough for two tiers (ζ ≤ 1/2) at these sizes, got ζ = {zeta:.3g}")
    kappa = asked * BASE_RHO / math.log2(1.0 / zeta)
    log = math.log(max(3.0, s * h / kappa))
    cells = s * count_draws(task.coupling, s * h)
    iota = kappa / sum(map(sum, _runs(cells, h, log, kappa, zeta, 1.0)))
    nice = zeta if f == 1.0 else min(2.0**-least_tiers, zeta**f)
    found = _runs(cells, h, log, kappa, nice, f)
    tiers = len(found) + 1
    length = s * 2 * a * h * (h**4 * math.log(s * a * h / iota) / kappa**2) ** f
    episodes = tuple(math.ceil(length * 4.0**tier) for tier in range(1, tiers))
    bonuses = [math.sqrt(h**3 * math.log(2.0 * s * a * count * h / iota**f)) for count in episodes]
    return replace(
        part,
        zeta=nice,
        tiers=tiers,
        kappa=kappa**f,
        partition_runs=found[0][0],
        data_runs=tuple(more for _, more in found),
        episodes=episodes,
        failure=iota**f,
        bonus=tuple((2.0 * size) ** f / size for size in bonuses),
        quota=h,
    )


def _runs(cells: int, horizon: int, log: float, kappa: float, zeta: float, scale: float) -> list[tuple[int, int]]:
    """(m, M) of tiers 1 … L−1: m = cells·H·log/κ², M = log²·m + cells·H·log/(κ⁴·(2^ℓζ)²), slacks to the power scale."""
    tiers = max(2, math.ceil(math.log2(1.0 / zeta)))
    runs = math.ceil(cells * (horizon * log / kappa**2) ** scale)
    spread = cells * (horizon * log / kappa**4) ** scale / zeta**2
    again = log ** (2.0 * scale) * runs
    return [(runs, math.ceil(again + spread / 4.0**tier)) for tier in range(1, tiers)]


def _boosting(part: Constants, task: Task) -> Constants:
    """k, and the sizes of heavy hitters and best arm (Lemma 4.1); cores are 1/(ν − τ) learners and 1/ε² pulls."""
    rho, delta, f = task.rho, task.delta, part.scale
    seeds = boosting_seeds(delta)
    plan = plan_heavy_hitters(
        threshold=THRESHOLD, tolerance=TOLERANCE, rho=rho / (2 * seeds), delta=delta / (3 * seeds)
    )
    few = 1.0 / (THRESHOLD - TOLERANCE)
    accuracy = min(1.0, task.epsilon / (2.0 * task.horizon))
    pulls = plan_best_arm(seeds, epsilon=accuracy, rho=rho / 2.0, delta=delta / 3.0).pulls
    return replace(
        part,
        seeds=seeds,
        candidates=_scaled(plan.candidates, few, f),
        frequencies=_scaled(plan.frequencies, few, f),
        pulls=_scaled(pulls, accuracy**-2, f),
    )


def _scaled(size: int, core: float, scale: float) -> int:
    """Return a size of the paper with its slack, which is all but the core, to the power `scale`."""
    return math.ceil(core * (size / core) ** scale) if scale < 1.0 else size


def boosting_seeds(delta: float) -> int:
    """Return k = ⌈log(3/δ)/log 3⌉: one of so many seeds is good with probability at least 1 − δ/3."""
    return math.ceil(math.log(3.0 / delta) / math.log(3.0))


def paper_calls(
    n_states: int, n_actions: int, horizon: int, *, epsilon: float, rho: float, delta: float, coupling: str
) -> int:
    """Return the parallel calls m at which the paper's induction is ρ-replicable and ε-optimal with probability 1 − δ.

    Each of the H steps solves S best-arm problems with utilities in [0, H]: accuracy ε/(4H) (one tier), that is ε/(4H²)
    after scaling to [0, 1], replicability ρ/H, failure min(δ, ρ)/H; m is the smallest with S/m at most what
    Proposition 3.6 asks.
    """
    accuracy = Accuracy.paper(epsilon, horizon, 1).by_tier[0] / horizon
    share, failure = rho / horizon, min(delta, rho) / horizon
    bound = paper_requirement(n_states, n_actions, epsilon=accuracy, rho=share, delta=failure, coupling=coupling)
    return math.ceil(n_states / bound)


LEAST_SCALE = 1e-9
"""Where the search for a scale begins: sizes are hardly more than their cores there."""


def scale_within(units: int, task: Task) -> float:
    """Return the largest scale at which a run makes at most so many parallel calls, or episodes, by bisection."""
    if units < (least := least_units(task)):
        name = "parallel calls" if task.parallel else "episodes"
        raise InputError(f"samples must pay for at least {least} {name}, as the smallest scale asks, got {units}")
    low, high = LEAST_SCALE, 1.0
    if Constants.scaled(high, task).total <= units:
        return high
    while low < (middle := 0.5 * (low + high)) < high:  # sizes grow with the scale
        low, high = (middle, high) if Constants.scaled(middle, task).total <= units else (low, middle)
    return low


def least_units(task: Task) -> int:
    """Return the parallel calls, or episodes, of a run at the smallest scale."""
    return Constants.scaled(LEAST_SCALE, task).total
