"""forecast: what a run will cost, before it is made, as a range that says what it is based on.

How many samples the default learner needs depends on how close the world's closest calls are, which nobody knows
beforehand. Two things are known: what it needed elsewhere (``reprl.learning.expected``),
and what a pilot shows, the learner's own first rounds on the environment in question, timed on this machine.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from typing import Any, NamedTuple, Unpack

from reprl.canonical.registered import Published
from reprl.errors import check_real
from reprl.learning.baseline import resolve_baseline
from reprl.learning.expected import STORED_QUALITY, WORLDS, count_words, stored_range, time_words
from reprl.learning.learner import ReprlLearner, check_options, learn, make_settings, truncate_if_needed
from reprl.learning.settings import LearnOptions, Settings
from reprl.mdp.tabular import TabularMDP
from reprl.randomness import SharedKey, fresh_seed
from reprl.sources.access import WAYS
from reprl.sources.environment import fresh_model, open_environment
from reprl.sources.gymnasium.model import GymnasiumModel

APART = 4.0
"""93 % of the stored pairs of runs on one world used numbers of samples within this factor of each other."""
TABLE_SIZES = (2**19, 2**22)
"""Samples by which the time of one is measured where a kernel plays: fewer say nothing of it."""
PILOT = 2.0
"""Seconds that a pilot takes, about."""


class Forecast(NamedTuple):
    """A range for one run."""

    access: str
    samples: tuple[float, float, float]
    """Low, typical, high; the last is infinite where nothing bounds it."""
    seconds: tuple[float, float, float] | None
    """The same for the time on this machine; None where nothing was timed."""
    basis: str
    """What the range rests on."""

    def times(self, runs: float) -> Forecast:
        """Return the range for several runs, one after the other."""
        seconds = None if self.seconds is None else tuple(runs * x for x in self.seconds)
        return self._replace(samples=tuple(runs * x for x in self.samples), seconds=seconds)  # type: ignore[arg-type]

    def __str__(self) -> str:
        low, typical, high = self.samples
        words = (
            f"{count_words(typical)} samples" if low == high else f"{count_words(low)} to {count_words(high)} samples"
        )
        if low != high:
            words += f", {count_words(typical)} typically"
        if self.seconds is not None:
            words += f"; {time_words(self.seconds[0])} to {time_words(self.seconds[2])} on this machine"
        return f"{words} ({self.basis})"

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON document; what nothing bounds is null."""
        return {
            "access": self.access,
            "samples": [_finite(x) for x in self.samples],
            "seconds": None if self.seconds is None else [_finite(x) for x in self.seconds],
            "basis": self.basis,
        }


def forecast(
    env: TabularMDP | GymnasiumModel | str | Any,
    *,
    horizon: int | None = None,
    discount: float | None = None,
    reward_range: tuple[float, float] | None = None,
    max_samples: int | None = None,
    candidate: tuple[str, int] | Published | None = None,
    workers: int = 1,
    seconds: float = PILOT,
    **options: Unpack[LearnOptions],
) -> Forecast:
    """Forecast the samples and the time of ``learn`` with these arguments, from a short pilot.

    The environment and its options are those of ``learn``; max_samples bounds the range. The pilot draws samples of
    its own for at most `seconds`; 0 for no pilot. The range names the promise that it is about: strict, approximate or
    registered.

    Guarantee:
        None. About eight of ten runs like the stored ones lie within the range. A number that the settings fix is
        exact.

    Randomness:
        A fresh shared seed and fresh data seeds, which no run reads again.
    """
    check_options(options)
    world = open_environment(env, horizon, reward_range, discount)
    settings = resolve_baseline(make_settings(options, world), world)
    world = truncate_if_needed(world, settings.rule, settings.epsilon)
    WAYS[settings.access].check(world, "a forecast")
    seconds = check_real("seconds", seconds, 0.0, 3600.0, open_low=False, open_high=False)
    fixed = _fixed(world, settings)
    if fixed is not None:
        return Forecast(settings.access, (fixed, fixed, fixed), None, "the settings fix it")
    # An environment that came open is one of a kind: a pilot would play with what the run shall have.
    reopens = isinstance(world, TabularMDP) or world.reopens
    timed = _pilot(world, settings, workers, seconds, max_samples, candidate) if seconds and reopens else None
    samples, basis = _range(world, settings, timed, _promise(settings, candidate is not None))
    if max_samples is not None:
        samples = tuple(min(x, float(max_samples)) for x in samples)  # type: ignore[assignment]
    times = None if timed is None else tuple(timed.at(x) for x in samples)
    return Forecast(settings.access, samples, times, basis)  # type: ignore[arg-type]


def _promise(settings: Settings, followed: bool) -> str:
    """Return which of ``reprl.guarantee.PROMISES`` a run would make."""
    return settings.asked.promise("none", "", registered=followed).kind


class _Pilot(NamedTuple):
    """Rounds of the learner that were timed: samples of all rounds so far, seconds of them."""

    samples: list[int]
    seconds: list[float]
    sure: bool
    """Whether the last of them was enough."""
    each: float
    """Seconds of a sample, without the analysis of the data."""

    def at(self, samples: float) -> float:
        """Extrapolate: a round costs an analysis, whose time does not grow with the data, and its samples."""
        if math.isinf(samples):
            return math.inf
        analyses = max(0.0, self.seconds[-1] - self.each * self.samples[-1])
        rounds = [1.0 + math.log2(max(1.0, size / self.samples[0])) for size in (self.samples[-1], samples)]
        return analyses * rounds[1] / rounds[0] + self.each * samples


def _pilot(
    world: TabularMDP | GymnasiumModel,
    settings: Settings,
    workers: int,
    seconds: float,
    most: int | None,
    candidate: tuple[str, int] | Published | None,
) -> _Pilot:
    """Make the learner's first rounds, one more each time, until it is sure or the time is over."""
    options: Any = {**settings.to_dict(), "candidate": candidate}
    done: list[int] = []
    spent: list[float] = []
    began = time.perf_counter()
    for number, size in enumerate(_sizes(world, settings, most)):
        if number == 0:  # the first call also loads and compiles what two rounds need
            learn(world, max_samples=2 * size, workers=workers, **options)
            began = time.perf_counter()
        start = time.perf_counter()
        found = learn(world, max_samples=size, workers=workers, **options)
        done.append(max(1, found.samples))
        spent.append(time.perf_counter() - start)
        sure = found.guarantee.status != "none"
        if sure or time.perf_counter() - began + 2.0 * spent[-1] > seconds:
            break
    each = 0.0 if sure else _sampling(world, settings, workers, done[-1], seconds)
    return _Pilot(done, spent, sure, each)


def _sampling(
    world: TabularMDP | GymnasiumModel, settings: Settings, workers: int, samples: int, seconds: float
) -> float:
    """Time samples alone, by runs of two sizes that ask no simulated teams; parallel ones come as counts, at once."""
    if not WAYS[settings.access].plays or settings.rule != "canonical":
        return 0.0
    spent = []
    for size in TABLE_SIZES if isinstance(world, TabularMDP) else (samples, 8 * samples):
        start = time.perf_counter()
        with fresh_model(world, settings.access, fresh_seed()) as model:
            ReprlLearner(settings, size).run(model, SharedKey(fresh_seed()), workers=workers)
            drawn = model.ledger.samples
        spent.append((drawn, time.perf_counter() - start))
        if not isinstance(world, TabularMDP) and 8.0 * spent[0][1] > seconds:
            return spent[0][1] / drawn  # slow enough for one size to tell
    (few, fast), (many, slow) = spent
    return max(0.0, slow - fast) / max(1, many - few)


def _sizes(world: TabularMDP | GymnasiumModel, settings: Settings, most: int | None) -> Iterator[int]:
    """Limits on samples under which the learner makes one, two, three … rounds."""
    size = WAYS[settings.access].first_round(world)
    while most is None or size < most:
        yield size
        size *= 2
    yield most


def _range(
    world: TabularMDP | GymnasiumModel, settings: Settings, pilot: _Pilot | None, promise: str
) -> tuple[tuple[float, float, float], str]:
    """Return the range of samples and what it rests on."""
    pooled = settings.resolve_stationarity(world).pooled
    cells = (1 if pooled else world.horizon) * world.n_states * world.n_actions
    if pilot is not None and pilot.sure:
        found = float(pilot.samples[-1])
        words = f"a pilot run finished after {count_words(found)} samples; {promise} promise"
        return (found / APART, found, found * APART), words
    spent = 0.0 if pilot is None else float(pilot.samples[-1])
    tried = f"a pilot run was undecided after {count_words(spent)} samples" if pilot is not None else "no pilot"
    if settings.rule != "canonical":
        return (max(1.0, spent), max(1.0, 2.0 * spent), math.inf), f"{tried}; nothing is stored of this rule"
    asked = f" that asked for quality {STORED_QUALITY:g}" if settings.quality is None else ""
    more = "" if pilot is None else " that needed more"
    way = "" if promise == "strict" else ", all by parallel samples"
    worlds = WORLDS[settings.access if promise == "strict" else promise]
    stored = f"80 % of the stored runs on {worlds} MDPs{asked}{way}{more}"
    return stored_range(settings, cells, spent, promise), f"{tried}; {stored}; {promise} promise"


def _fixed(world: TabularMDP | GymnasiumModel, settings: Settings) -> float | None:
    """Return the samples that the settings themselves fix, if they do."""
    if settings.rule == "canonical":
        return None
    sizes = world.n_states, world.n_actions, world.horizon
    task = settings.paper.task(*sizes)
    return float(task.samples(settings.paper.constants_for(*sizes, task.samples(1)).total))


def _finite(number: float) -> float | None:
    return None if math.isinf(number) else number
