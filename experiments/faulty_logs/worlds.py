"""Logs of known worlds, with the faults that real ones have, and what the policies that are learned are truly worth."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import reprl
from reprl.errors import LogWarning, ReprlError
from reprl.mdp.policy import Policy

STATES, ACTIONS, HORIZON = 5, 3, 6
FAULTS = (
    "none",
    "dropout",
    "flagged dropout",
    "time limit",
    "early limit",
    "copies",
    "block",
    "doubled",
    "near-duplicates",
    "ends",
    "dropout, told",
    "flagged dropout, told",
    "early limit, told",
)
"""Kinds of faults: see ``make_faulty``."""
SOUND = ("none", "time limit", "ends", "early limit, told")
"""Those that are no faults: nothing may be complained of."""


class World(NamedTuple):
    """A world in which episodes end by chance."""

    transition: NDArray[np.float64]
    """(S, A, S + 1): the last is the end."""
    reward: NDArray[np.float64]
    """(S, A): chance of 1."""
    start: NDArray[np.float64]
    habit: NDArray[np.float64]
    """(S, A)."""

    def value(self, policy: Policy, horizon: int) -> float:
        """What a policy is worth; its last state is "ended"."""
        value = np.zeros(STATES + 1)
        for h in range(horizon - 1, -1, -1):
            row = policy.table[h if policy.horizon > 1 else 0, :STATES]
            s = np.arange(STATES)
            value[:STATES] = self.reward[s, row] + self.transition[s, row] @ value
            value[STATES] = 0.0
        return float(self.start @ value[:STATES])

    def practice(self, horizon: int) -> float:
        """What those who make the logs earn."""
        value = np.zeros(STATES + 1)
        for _ in range(horizon):
            value[:STATES] = (self.habit * (self.reward + self.transition @ value)).sum(axis=1)
        return float(self.start @ value[:STATES])


def make_world(seed: int | Sequence[int], ends: float) -> World:
    """Draw a world whose episodes end with about this chance at every step."""
    rng = np.random.default_rng(seed)
    law = rng.dirichlet(np.full(STATES, 0.5), (STATES, ACTIONS))
    over = rng.random((STATES, ACTIONS, 1)) * 2.0 * ends
    habit = rng.dirichlet(np.full(ACTIONS, 2.0), STATES) * 0.7 + 0.1
    return World(
        np.concatenate([law * (1.0 - over), over], axis=2),
        rng.random((STATES, ACTIONS)),
        rng.dirichlet(np.ones(STATES)),
        habit / habit.sum(axis=1, keepdims=True),
    )


def make_rows(world: World, episodes: int, seed: int | Sequence[int], horizon: int) -> dict[str, NDArray[Any]]:
    """Rows in order; next_state is −1 where the episode ended."""
    rng = np.random.default_rng(seed)
    state = rng.choice(STATES, episodes, p=world.start)
    there, rows = np.arange(episodes), []
    for h in range(horizon):
        s = state[there]
        a = (rng.random((s.size, 1)) > np.cumsum(world.habit[s], axis=1)[:, :-1]).sum(axis=1)
        law = np.cumsum(world.transition[s, a], axis=1)[:, :-1]
        following = (rng.random((s.size, 1)) > law).sum(axis=1)
        paid = (rng.random(s.size) < world.reward[s, a]).astype(float)
        over = following == STATES
        rows.append((there, np.full(s.size, h), s, a, paid, np.where(over, -1, following), over))
        there = there[~over]
        state[there] = following[~over]
    columns = [np.concatenate(column) for column in zip(*rows, strict=True)]
    order = np.lexsort((columns[1], columns[0]))
    names = ("episode", "step", "state", "action", "reward", "next_state", "terminated")
    return {name: column[order] for name, column in zip(names, columns, strict=True)}


def drop_out(log: dict[str, NDArray[Any]], chance: float, rng: np.random.Generator) -> dict[str, NDArray[Any]]:
    """Lose episodes: after each row that does not end one, with this chance, nothing more is seen."""
    lost = (rng.random(log["step"].size) < chance) & ~log["terminated"].astype(bool)
    first = np.full(int(log["episode"].max()) + 1, 10**9)
    np.minimum.at(first, log["episode"][lost], log["step"][lost])
    keep = log["step"] <= first[log["episode"]]
    return {name: column[keep] for name, column in log.items()}


def _named(log: dict[str, NDArray[Any]], prefix: str = "s") -> dict[str, NDArray[Any]]:
    out: dict[str, Any] = dict(log)
    for name in ("state", "next_state"):
        if name in log:
            out[name] = np.array([f"{prefix}{s}" if s >= 0 else None for s in log[name].tolist()], dtype=object)
    out["action"] = np.array([f"a{a}" for a in log["action"].tolist()], dtype=object)
    return out


class Case(NamedTuple):
    """A log with a fault, and how a user who has not noticed it would learn from it."""

    log: dict[str, NDArray[Any]]
    world: World
    options: dict[str, Any]


def make_faulty(fault: str, seed: int, episodes: int = 600) -> Case:
    """Draw a world and a log of it with a fault of a kind; "told": the user has said what was asked for.

    Every kind has worlds, logs and shared seeds of its own.
    """
    kind = FAULTS.index(fault)
    fault, _, told = fault.partition(", ")
    rng = np.random.default_rng((kind, seed, 7))
    world = make_world((kind, seed), 0.0 if fault in ("none", "dropout", "time limit", "early limit") else 0.05)
    log = make_rows(world, episodes, (kind, seed, 1), HORIZON)
    options: dict[str, Any] = {"horizon": HORIZON, "actions": [f"a{a}" for a in range(ACTIONS)]}
    options["shared_seed"] = len(FAULTS) * seed + kind
    drop: tuple[str, ...] = ()
    if fault == "dropout":  # nobody flags anything
        log, drop = drop_out(log, 0.1, rng), ("terminated", *(("next_state",) if seed % 2 else ()))
    elif fault == "flagged dropout":
        log, drop = drop_out(log, 0.1, rng), ("next_state",) if seed % 2 else ()
    elif fault == "time limit":
        log["done"] = log["step"] == HORIZON - 1
        drop = ("terminated", *(("next_state",) if seed % 2 else ()))
        options["stationary"] = True
    elif fault == "early limit":  # the log stops at step 4, done, and the user asks for 6
        log = {name: column[log["step"] < 4] for name, column in log.items()}
        log["done"], drop = log["step"] == 3, ("terminated",)
    elif fault in ("copies", "block", "doubled"):
        fewer = episodes // 10 if fault == "copies" else episodes
        kept = {name: column[log["episode"] < fewer] for name, column in log.items()}
        times = 10 if fault == "copies" else 2
        share = fewer if fault == "copies" else fewer // 2
        parts = [kept]
        for again in range(1, times):
            part = {name: column[kept["episode"] < share] for name, column in kept.items()}
            parts.append(part | {"episode": part["episode"] + again * fewer})
        log = {name: np.concatenate([part[name] for part in parts]) for name in log}
        if fault == "doubled":  # by a join: each beside its copy
            order = np.lexsort((log["step"], log["episode"] >= fewer, log["episode"] % fewer))
            log = {name: column[order] for name, column in log.items()}
    if told and fault == "early limit":
        options["horizon"] = 4
    elif told:
        options["early_ends"] = "censored"
        drop = ("terminated", "next_state") if fault == "dropout" else ()
    log = _named({name: column for name, column in log.items() if name not in drop})
    if fault == "near-duplicates":
        odd = rng.random(log["state"].size) < 0.3
        log["state"] = np.array(
            [f"{s} ".upper() if x else s for s, x in zip(log["state"], odd, strict=True)], dtype=object
        )
        last = np.append(log["episode"][1:] != log["episode"][:-1], True)
        log["next_state"][:-1][~last[:-1]] = log["state"][1:][~last[:-1]]
    return Case(log, world, options)


class Verdict(NamedTuple):
    """What came of learning from a log with a fault."""

    said: str
    """"refused", the severity of the worst finding, or "" if nothing was said."""
    words: str
    value: tuple[float, float, float] | None = None
    """Least and largest value by the log, and the true one of the policy; None if nothing was learned, or it cannot be
    told."""
    gain: tuple[float, float, float] | None = None
    """The same for the gain over practice."""

    @property
    def holds(self) -> bool | None:
        """Whether the interval held the true value; None where there is none."""
        return None if self.value is None else self.value[0] <= self.value[2] <= self.value[1]


def judge(case: Case) -> Verdict:
    """Learn as a user would who has not looked at the log, and compare with the truth."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", LogWarning)
            result = reprl.learn_log(case.log, **case.options)
    except ReprlError as error:
        return Verdict("refused", str(error))
    found, names = result.coverage, result.policy.labels.states
    assert found is not None
    assert result.check is not None
    worst = result.check.worst
    said = ("", "") if worst is None else (worst.severity, worst.what)
    if names[:STATES] != tuple(f"s{s}" for s in range(STATES)):  # more states than there are
        return Verdict(*said)
    horizon = case.options["horizon"]
    truth = case.world.value(result.policy, horizon)
    gain = truth - case.world.practice(horizon)
    return Verdict(*said, (found.value_low, found.value_high, truth), (found.gain_low, found.gain_high, gain))
