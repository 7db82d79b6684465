"""audit_agents: how often two trainings lead to different actions, in any Gymnasium environment.

A grade of its own, *approximate replicability* (Hopkins, Impagliazzo, Ye 2025, arXiv:2510.20200): two runs under one
shared seed may differ, but in most of what they meet they must do the same.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import closing, nullcontext
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from reprl.auditing.agent_record import AgentPair, AgentReport, Disagreement
from reprl.auditing.evidence import Estimate, bounded_interval, conclude, exact_interval, student
from reprl.auditing.pairs import evaluation_seed, pair_seeds, resolve_learner
from reprl.errors import InputError, check_int, check_probability, check_real, quote, refuse
from reprl.execution.progress import progress_bar
from reprl.execution.settings import Progress, check_progress
from reprl.execution.tasks import run_tasks
from reprl.lab.baselines.boxes import box_learner, is_box_learner
from reprl.learning.adapters import Agent, EnvLearner, acts, as_learner, policy_of
from reprl.learning.protocol import name_of
from reprl.mdp.interface import Interface
from reprl.mdp.policy import Policy
from reprl.mdp.tabular import TabularMDP
from reprl.randomness import SharedKey, fresh_seed
from reprl.sources.environment import fresh_model, is_registered, open_environment
from reprl.sources.gymnasium.model import GymnasiumModel
from reprl.storage.checkpoints import Content, Kept, open_checkpoint, recall
from reprl.storage.documents import plain
from reprl.storage.fields import TEXT, many, read_fields, real, record, whole, write_fields

if TYPE_CHECKING:
    from reprl.sources.gymnasium.learner_env import EnvironmentFactory

_PROBES, _SHOWN, _TEXT = 200, 12, 120
"""States in which a pair differs that are kept, states that a report lists, and characters of each."""


def audit_agents(
    env: Any,
    learner: Any,
    pairs: int = 10,
    *,
    horizon: int | None = None,
    reward_range: tuple[float, float] | None = None,
    rho: float = 0.1,
    gamma: float = 0.05,
    level: float = 0.05,
    episodes: int = 20,
    closeness: float = 0.05,
    samples: int | None = None,
    seed: int | None = None,
    workers: int = 1,
    checkpoint: str | os.PathLike[str] | None = None,
    progress: bool | Progress = False,
    **options: Any,
) -> AgentReport:
    """Train agents in pairs with one shared key and independent data, and measure how often the two act differently.

    Args:
        env: a Gymnasium id, a factory, a gymnasium.Env, a TabularMDP or a GymnasiumModel; observations of any kind.
        learner: a function train(env, **options) (``env_learner``) that returns a model with ``predict`` or a
            function of an observation; the name of a baseline in ``reprl.lab.baselines.box_learners()``; in an
            environment of finite spaces also any learner of ``reprl.audit``.
        pairs: shared keys, two trainings each.
        horizon: steps of an episode, at most; None for the environment's own time limit.
        reward_range: (low, high), for a learner of ``reprl.audit`` in an environment that does not publish it.
        rho: accepted probability that two agents differ in more than gamma of the states.
        gamma: accepted share of states in which their actions differ.
        level: probability of rejecting a learner that keeps (rho, gamma).
        episodes: evaluation episodes of each agent; those of a pair have the same seeds.
        closeness: two actions of a Box count as equal within this share of its range.
        samples: budget of a training, if any.
        seed: shared keys and data seeds follow from it; None draws one, or takes the checkpoint's.
        workers: number of processes; the result does not depend on it.
        checkpoint: a folder for finished pairs, with which a stopped audit continues, with fewer or more pairs.
        progress: True for a bar on standard error, or a function of ("audit", pairs done, pairs asked for).
        options: for the learner.

    Guarantee:
        The distance of two agents: the mean over episodes, half of them played by each, of the share of states in
        which the two act differently. A pair differs if it is more than gamma on the episodes played. If this
        probability is at most rho, the learner is rejected with probability at most level (docs/agents.md,
        proofs/audit.md §6). States that neither agent visits are not judged, and equality is not: see ``reprl.audit``.

    Randomness:
        As in ``audit``: data streams (seed, "audit/shared"), (seed, "audit/data") and (seed, "audit/evaluation").
    """
    claim = _Claim(*(check_probability(*one) for one in (("rho", rho), ("gamma", gamma), ("level", level))))
    pairs, episodes = check_int("pairs", pairs, 1, 10**4), check_int("episodes", episodes, 1, 10**5)
    closeness = check_real("closeness", closeness, 0.0, 1.0, open_low=False)
    seed = recall(checkpoint, "seed") if seed is None else seed
    seed = fresh_seed() if seed is None else check_int("seed", seed, 0, 2**64 - 1)
    workers = check_int("workers", workers, 1, 1024)
    given = options if samples is None else {**options, "samples": check_int("samples", samples, 1)}
    check_progress(progress)
    bench = _bench(env, learner, horizon, reward_range, given)
    spaces = bench.spaces
    if workers > 1 and not bench.factory.reopens:
        raise InputError(f"workers must be 1 for an environment that cannot be opened again, got {workers}")
    trial = _Trial(bench, seed, episodes, _sameness(spaces[1], closeness))
    work = {
        "kind": "agents",
        "environment": [bench.factory.title, *map(str, spaces), bench.factory.horizon],
        "learner": bench.name,
        "options": plain(given),
        "seed": seed,
        "episodes": episodes,
        "closeness": closeness,
    }
    found: list[_Met] = []
    with open_checkpoint(checkpoint, work) as kept, progress_bar(progress, "pairs") as shown:
        store = None if kept is None else Kept(kept, "pair ", _write, partial(_read, episodes))
        for met in run_tasks(_meet, trial, range(pairs), workers=workers, store=store):
            found.append(met)
            if shown is not None:
                shown("audit", len(found), pairs)
    how = {"options": given, "seed": seed, "closeness": closeness, "episodes": episodes, "places": _places(found)}
    return _report(bench, spaces, claim, found, how)


def audits_agents(env: Any, learner: Any, gamma: float | None) -> bool:
    """Whether ``reprl.audit`` is to audit agents.

    So it is with gamma, with a baseline that trains agents, and with a function of an environment whose observations or
    actions cannot be counted.
    """
    if gamma is not None or is_box_learner(learner):
        return True
    if not isinstance(as_learner(learner), EnvLearner) or isinstance(env, TabularMDP | GymnasiumModel):
        return False
    if isinstance(env, str) and not env.startswith("gym:") and not is_registered(env):
        return False
    from reprl.mdp.spaces import Codec
    from reprl.sources.gymnasium.model import open_env

    opened = open_env((lambda: open_env(env.removeprefix("gym:"), {})) if isinstance(env, str) else env, {})
    try:
        Codec(opened.observation_space, "observation")
        Codec(opened.action_space, "action")
    except InputError:
        return True
    finally:
        if opened is not env:
            opened.close()
    return False


class _Claim(NamedTuple):
    """What is tested."""

    rho: float
    gamma: float
    level: float


def _report(
    bench: _Bench, spaces: tuple[Any, Any], claim: _Claim, found: list[_Met], how: dict[str, Any]
) -> AgentReport:
    """Judge what the pairs showed."""
    rows = tuple(met.row for met in found)
    pairs = len(rows)
    hits = sum(row.distance > claim.gamma for row in rows)
    judged = conclude(None, hits, pairs, claim.rho, claim.level)
    del judged["alternative"]
    mean = float(np.mean([row.distance for row in rows]))
    return AgentReport(
        environment=bench.factory.title,
        spaces=(str(spaces[0]), str(spaces[1])),
        horizon=bench.factory.horizon,
        learner=bench.name,
        **claim._asdict(),
        **how,
        **judged,
        disagreements=hits,
        distance=Estimate(mean, *bounded_interval(mean, pairs)),
        value=student([float(np.mean(row.returns)) for row in rows]) if pairs > 1 else None,
        gap=student([abs(row.returns[0] - row.returns[1]) for row in rows], 0.0) if pairs > 1 else None,
        samples=float(np.mean([met.samples for met in found])),
        pairs=rows,
    )


class _Bench(NamedTuple):
    """Where agents are made and tried."""

    factory: EnvironmentFactory
    name: str
    train: Callable[[SharedKey, int], tuple[Agent, int]]
    """From a shared key and a data seed to an agent, and the samples that it took."""

    @property
    def spaces(self) -> tuple[Any, Any]:
        """Of observations and of actions."""
        opened = self.factory.open()
        found = opened.observation_space, opened.action_space
        if self.factory.reopens:
            opened.close()
        return found


def _bench(
    env: Any, learner: Any, horizon: int | None, bounds: tuple[float, float] | None, options: dict[str, Any]
) -> _Bench:
    from reprl.sources.gymnasium.learner_env import EnvironmentFactory, LearnerEnv

    trainer = box_learner(learner, **options) if is_box_learner(learner) else as_learner(learner)
    if isinstance(trainer, EnvLearner):
        refuse("for a function of an environment", reward_range=bounds)
        known = isinstance(env, str) and not env.startswith("gym:") and not is_registered(env)
        factory = EnvironmentFactory.of(open_environment(env, horizon) if known else env, None if known else horizon)
        budget = options.get("samples", trainer.samples)

        def train(key: SharedKey, data_seed: int) -> tuple[Agent, int]:
            opened = factory.open()
            with closing(opened) if factory.reopens else nullcontext():
                place = LearnerEnv(opened, data_seed, factory.horizon, samples=budget)
                output = trainer.on(place, key, data_seed, **options)
            if not acts(output) and not isinstance(output, Policy):
                allowed = "a model with predict or a function of an observation"
                raise InputError(f"learner {name_of(trainer)} must return {allowed}, got {quote(output)}")
            return Agent(output), place.ledger.samples

        return _Bench(factory, trainer.name, train)
    world = open_environment(env, horizon, bounds)
    subject = resolve_learner(learner, world, 0.1, "episodic", dict(options))

    def learn(key: SharedKey, data_seed: int) -> tuple[Agent, int]:
        with fresh_model(world, subject.access, data_seed) as model:
            output = subject.call(model, key, **subject.options) if subject.theirs else subject.call(model, key)
            return Agent(Policy(policy_of(output, model), Interface.of(world))), model.ledger.samples

    return _Bench(EnvironmentFactory.of(world), subject.name, learn)


class _Episode(NamedTuple):
    """What one agent met, and what both would do there."""

    seen: list[Any]
    apart: list[bool]
    total: float


class _Trial(NamedTuple):
    """Everything that a pair depends on, so that any worker can train it."""

    bench: _Bench
    seed: int
    episodes: int
    same: Callable[[Any, Any], bool]


class _Parted(NamedTuple):
    """A state in which the two agents of a pair act differently."""

    observation: str
    step: int
    actions: tuple[str, str]


class _Met(NamedTuple):
    """What a pair of agents did on the same seeds."""

    row: AgentPair
    samples: float
    parted: tuple[_Parted, ...]
    """Some of the states, each once."""


def _meet(trial: _Trial, number: int) -> _Met:
    """Train two agents under one key and let each play while the other is asked."""
    from reprl.sources.gymnasium.learner_env import LearnerEnv

    bench, seed = trial.bench, trial.seed
    shared, seeds = pair_seeds(seed, number)
    (first, spent), (second, more) = (bench.train(shared, each) for each in seeds)
    evaluation = evaluation_seed(seed, number)
    played = []
    for player, other in ((first, second), (second, first)):
        opened = bench.factory.open()
        with closing(opened) if bench.factory.reopens else nullcontext():
            env = LearnerEnv(opened, evaluation, bench.factory.horizon)
            played.append([_play(env, player, other, trial.same) for _ in range(trial.episodes)])
    return _Met(_row(played), (spent + more) / 2.0, _parted(played, (first, second)))


def _parted(played: list[list[_Episode]], agents: tuple[Agent, Agent]) -> tuple[_Parted, ...]:
    """States in which two agents differ: evenly spaced ones of all that they met, each once."""
    apart = [(e.seen[h], h) for episodes in played for e in episodes for h in np.flatnonzero(e.apart).tolist()]
    chosen = dict.fromkeys((_text(seen), h) for seen, h in apart)
    step = max(1, len(chosen) // _PROBES)
    wanted = set([*chosen][::step][:_PROBES])
    found = {}
    for seen, h in apart:
        place = _text(seen), h
        if place in wanted and place not in found:
            found[place] = _Parted(*place, (_text(agents[0].act(seen, h)), _text(agents[1].act(seen, h))))
    return tuple(found.values())


_TASK = {
    "row": record(AgentPair),
    "samples": real(0.0),
    "parted": many(record(_Parted, {"observation": TEXT, "step": whole(), "actions": many(TEXT, 2)})),
}


def _write(met: _Met) -> Content:
    return Content(write_fields(met, _TASK))


def _read(episodes: int, content: Content) -> _Met:
    return _Met(**read_fields("task", content.fields, _TASK, SimpleNamespace(episodes=episodes), " "))


def _play(env: Any, player: Agent, other: Agent, same: Callable[[Any, Any], bool]) -> _Episode:
    seen: list[Any] = []
    done: list[Any] = []
    total = 0.0
    observation, _ = env.reset()
    over = False
    while not over:
        action = player.act(observation, len(seen))
        seen.append(np.copy(observation) if isinstance(observation, np.ndarray) else observation)
        done.append(action)
        observation, paid, ended, truncated, _ = env.step(action)
        total += float(paid)
        over = ended or truncated
    asked = other.act_all(seen)
    return _Episode(seen, [not same(one, two) for one, two in zip(done, asked, strict=True)], total)


def _sameness(space: Any, closeness: float) -> Callable[[Any, Any], bool]:
    """When two actions of a space are one."""
    from gymnasium.spaces import Box

    if not isinstance(space, Box):
        return lambda one, two: bool(np.array_equal(one, two))
    width = np.where(np.isfinite(space.high - space.low), space.high - space.low, 1.0)
    return lambda one, two: bool((np.abs(np.subtract(one, two)) <= closeness * width).all())


def _row(played: list[list[_Episode]]) -> AgentPair:
    shares = np.array([[float(np.mean(episode.apart)) for episode in episodes] for episodes in played])
    units = shares.mean(axis=0)  # one for each seed, on which either agent played: independent, given the agents
    totals = np.array([[episode.total for episode in episodes] for episodes in played])
    clean, n = int((units == 0.0).sum()), units.size
    return AgentPair(
        distance=float(units.mean()),
        interval=bounded_interval(float(min(1.0, units.mean())), n),
        alike=clean,
        alike_interval=exact_interval(clean, n),
        returns=(float(totals[0].mean()), float(totals[1].mean())),
        difference=student(totals[0] - totals[1]) if n > 1 else None,
        states=sum(len(episode.seen) for episodes in played for episode in episodes),
    )


def _places(found: Sequence[_Met]) -> tuple[Disagreement, ...]:
    """The states in which most pairs were seen to differ, and what their agents do there."""
    at: dict[tuple[str, int], list[_Parted]] = {}
    for met in found:
        for parted in met.parted:
            at.setdefault((parted.observation, parted.step), []).append(parted)
    places = []
    for (observation, h), pairs in at.items():
        texts = [text for parted in pairs for text in parted.actions]
        chosen = sorted({text: texts.count(text) / len(texts) for text in texts}.items(), key=lambda item: -item[1])
        places.append(Disagreement(observation, h, len(pairs) / len(found), tuple(chosen[:4])))
    return tuple(sorted(places, key=lambda place: -place.apart)[:_SHOWN])


def _text(value: Any) -> str:
    """A member of a space in one short line."""
    if isinstance(value, np.ndarray) and value.dtype.kind == "f":
        text = "[" + " ".join(f"{x:.3g}" for x in value.ravel()[:12]) + (" …]" if value.size > 12 else "]")
    else:
        text = " ".join(str(value).split())
    return text[:_TEXT]
