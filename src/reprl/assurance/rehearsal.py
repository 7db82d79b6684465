"""Rehearsal: would a second team, with data like ours, come to the same policy?

Second teams are simulated: their data are drawn from this run's own frequencies and go through the whole rule, of
either kind. Those under this run's shared key have half of its data, against lucky looks: every round is another chance
for one. If they do not all come to its policy, the key may be an unlucky one; the promise is an average over keys, so
pairs of teams with fresh keys, and as much data as this run each, are asked as well (docs/rehearsal.md).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import closing
from typing import Annotated, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from reprl.execution.tasks import count_workers, run_tasks
from reprl.mdp.policy import Policy
from reprl.randomness import DataStream, SharedKey
from reprl.storage.checkpoints import Checkpoint, Content, Kept
from reprl.storage.fields import declared, many, read_fields, whole

APART = 1
"""Pairs under fresh keys that may differ."""
LARGE = 4096
"""Steps times states from which on teams are asked by several threads, or on a cluster."""
OWN, FRESH = 2, 1
"""This run's data over those of a simulated team: under its own key, and of a pair under a fresh one."""


def asked_for(rho: float) -> int:
    """Return how many are asked, teams under this run's key as well as pairs under fresh ones: 4/ρ, and 20 at least.

    All teams must agree, and all pairs but APART.
    """
    return max(20, math.ceil(4.0 / rho))


class Answer(NamedTuple):
    """What a simulated second team comes to."""

    policy: Policy | None
    """None if it would have gone another way before it decided."""
    measured: float
    """What must be known to ε: what this run's policy loses by the team's data, or V* from the start."""


class Team(Protocol):
    """A rule, as simulated second teams follow it."""

    def __call__(self, key: SharedKey | None, share: int, draw: int, /) -> Answer:
        """Decide under a shared key, None for this run's, on one `share`-th of its data, redrawn by a private key."""


class Rehearsal(NamedTuple):
    """What the simulated second teams did."""

    agree: Annotated[int, whole(0, lambda at: at.of)]
    """Teams under this run's shared key that came to its policy."""
    of: Annotated[int, whole(1, 2**16)]
    """Teams that were asked: half of those planned where these had differed already."""
    pairs_agree: Annotated[int, whole(0, lambda at: at.pairs)]
    """Pairs of teams, under a fresh shared key each, that came to one policy."""
    pairs: Annotated[int, whole(0, 2**16)]
    """Pairs that were asked: 0 where the teams had said enough, fewer than planned where too many differed."""
    passed: bool
    """Whether the run may stop."""
    apart: NDArray[np.float64]
    """(H, S): share of the teams that would do something else there."""
    error: float
    """Standard deviation, over the teams, of what the policy loses, or, of the paper's rule, of V* from the start; for
    the size of this run's data."""

    def __str__(self) -> str:
        """One line for people."""
        line = f"{self.agree} of {self.of} simulated second teams arrive at this policy"
        if self.pairs:
            line += f"; under fresh shared seeds {self.pairs_agree} of {self.pairs} pairs agree"
        return line


def kept_rehearsal(checkpoint: Checkpoint | None, stream: DataStream, make: Callable[[], Rehearsal]) -> Rehearsal:
    """Rehearse, and keep what came of it; or return what is kept of this stream."""
    return make() if checkpoint is None else Kept(checkpoint, "", _write, _read).once(stream.purpose, make)


def _write(found: Rehearsal) -> Content:
    fields = {**found._asdict(), "apart": list(found.apart.shape)}
    return Content(fields, found.apart.astype("<f8").tobytes())


def _read(content: Content) -> Rehearsal:
    fields = read_fields("task", content.fields, {**declared(Rehearsal), "apart": many(whole(), 2)}, joint=" ")
    apart = np.frombuffer(content.data, "<f8").reshape(fields["apart"]).astype(np.float64)
    return Rehearsal(**{**fields, "apart": apart})


def rehearse(
    team: Team,
    policy: Policy,
    *,
    rho: float,
    epsilon: float,
    stream: DataStream,
    pairs: bool = True,
    workers: int = 1,
) -> Rehearsal:
    """Simulate second teams.

    Args:
        team: the rule, on data redrawn from this run's.
        policy: what the rule makes of this run's data.
        rho: the disagreement that may be promised; it sets how many are asked.
        epsilon: accuracy.
        stream: private; every team reads streams of its own.
        pairs: whether pairs under fresh keys may let a run stop whose own teams differ.
        workers: threads, or a cluster that joblib is told of; for worlds that are worth it.

    Guarantee:
        None by proof: it is a simulation from one run's data, see docs/rehearsal.md for what it misses. No run may stop
        while what the teams measure has a standard deviation of ε or more.

    Randomness:
        Data streams (data seed, the stream's purpose + "/team/NUMBER", "/pair/NUMBER" and "/key/NUMBER"). Shared: what
        the team reads under this run's key and, for pairs, under keys that this run makes up. No shared draw of any
        other run depends on these.
    """
    most = asked_for(rho)
    hands = workers if policy.table.size >= LARGE else None
    apart = np.zeros(policy.table.shape)
    values = []
    agree = 0
    for numbers in (range(most // 2), range(most // 2, most)):
        if agree < numbers.start:
            break
        questions = [(None, OWN, _key(stream, "team", number)) for number in numbers]
        for found in run_tasks(_ask, team, questions, workers=hands, threads=True):
            apart += 1.0 if found.policy is None else found.policy.differs(policy)
            agree += found.policy == policy
            values.append(found.measured)
    error = float(np.std(values, ddof=1)) / math.sqrt(OWN)
    known = error < epsilon
    passed = known and agree == most
    same = asked = 0
    if pairs and known and not passed:
        same, asked = _ask_pairs(team, most, stream, hands)
        passed = asked - same <= APART
    return Rehearsal(agree, len(values), same, asked, passed, apart / len(values), error)


def _ask_pairs(team: Team, most: int, stream: DataStream, workers: int | None) -> tuple[int, int]:
    """Return how many of how many pairs agree; no more are asked once too many differ."""
    agree = 0
    asked = [
        (SharedKey(_key(stream, "key", member // 2)), FRESH, _key(stream, "pair", member)) for member in range(2 * most)
    ]
    window = 2 * count_workers(workers)
    with closing(run_tasks(_ask, team, asked, workers=workers, threads=True, window=window)) as answers:
        for pair, (first, second) in enumerate(zip(answers, answers, strict=True)):
            agree += first.policy is not None and first.policy == second.policy
            if pair + 1 - agree > APART:
                return agree, pair + 1
    return agree, most


def _ask(team: Team, asked: tuple[SharedKey | None, int, int]) -> Answer:
    return team(*asked)


def _key(stream: DataStream, purpose: str, number: int) -> int:
    return DataStream(stream.data_seed, f"{stream.purpose}/{purpose}/{number}").key
