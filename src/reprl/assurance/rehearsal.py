"""Rehearsal: would a second team, with data like ours, come to the same policy?

Second teams are simulated: their data are drawn from this run's own frequencies and go through the whole rule, of
either kind. Those under this run's shared key have half of its data, against lucky looks: every round is another chance
for one. If they do not all come to its policy, the key may be an unlucky one. The promise is an average over keys, so
pairs of teams with fresh keys, and as much data as this run each, are asked as well; and whether data of half of the
size would change the policy under most fresh keys at once (docs/rehearsal.md). Where runs need to agree only at a share
of the steps, a team agrees if its policy and this run's take the same action at that share; every rehearsal says which
share it is on average.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from typing import Annotated, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from reprl.execution.tasks import count_workers, run_tasks
from reprl.guarantee import meets
from reprl.mdp.policy import Policy
from reprl.randomness import DataStream, SharedKey
from reprl.storage.checkpoints import Checkpoint, Content, Kept
from reprl.storage.fields import SHARE, declared, many, read_fields, whole

SPARE = 1
"""Teams, and at least so many pairs, that may disagree where only a share of the steps must agree."""
LARGE = 4096
"""Steps times states from which on teams are asked by several threads, or on a cluster."""
OWN, FRESH = 2, 1
"""This run's data over those of a simulated team, and of each team of a pair."""
KEYS = 4
"""Fresh keys under which a simulated data set may not change the policy of most at once."""


def asked_for(rho: float) -> int:
    """Return how many are asked, teams under this run's key as well as pairs under fresh ones: 4/ρ, and 20 at least.

    All of them must agree; where a share of the steps is enough, ``Likeness.spare`` says how many may differ.
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


class Under(Protocol):
    """What a rule makes of one data set under several keys, one after the other."""

    def __call__(self, keys: Sequence[SharedKey], draw: int | None, /) -> Iterator[Policy | None]:
        """Decide from half of this run's data, redrawn by a private key, or from this run's data where it is None."""


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
    alike: Annotated[float | None, SHARE] = None
    """Share of an episode's decisions that a team takes as this run does, on average over the teams; None in records
    that do not say."""
    agreement: Annotated[float | None, SHARE] = None
    """The share at which a team counts as agreeing; None for exactly the same policy."""
    moved: Annotated[float | None, SHARE] = None
    """Share of simulated data sets that change the policy under most fresh keys at once; None where there are none, or
    it was not asked."""

    def __str__(self) -> str:
        line = f"{self.agree} of {self.of} simulated second teams learn this policy"
        if self.agreement is not None:
            share = f"{100 * self.agreement:g} % of the steps"
            line = f"{self.agree} of {self.of} simulated second teams do the same at {share} or more"
        if self.pairs:
            line += f"; under fresh shared seeds {self.pairs_agree} of {self.pairs} pairs agree"
        if self.moved:
            line += f", but {100 * self.moved:.2g} % of simulated data sets change the policy under most seeds"
        return line


def kept_rehearsal(checkpoint: Checkpoint, name: str, make: Callable[[], Rehearsal]) -> Rehearsal:
    """Rehearse and store the result under a name, or return the stored result."""
    return Kept(checkpoint, "", _write, _read).once(name, make)


def _write(found: Rehearsal) -> Content:
    fields = {**found._asdict(), "apart": list(found.apart.shape)}
    return Content(fields, found.apart.astype("<f8").tobytes())


def _read(content: Content) -> Rehearsal:
    fields = read_fields("task", content.fields, {**declared(Rehearsal), "apart": many(whole(), 2)}, joint=" ")
    apart = np.frombuffer(content.data, "<f8").reshape(fields["apart"]).astype(np.float64)
    return Rehearsal(**{**fields, "apart": apart})


class Likeness:
    """Share of an episode's steps at which two policies take the same action, in a model.

    occupancy says how often a policy comes to each cell, (H, S); steps in the states `over`, where an episode has
    ended, do not count; two policies agree from the share `needed` on, 1 for equal ones.
    """

    def __init__(
        self,
        occupancy: Callable[[NDArray[np.int64]], NDArray[np.float64]],
        over: tuple[int, ...] = (),
        needed: float = 1.0,
    ) -> None:
        self.occupancy, self.over, self.needed = occupancy, list(over), needed
        self._visits: dict[bytes, NDArray[np.float64]] = {}

    def share(self, one: Policy | None, two: Policy | None) -> float:
        """Return the share of equal actions in episodes of either policy, the smaller of the two."""
        if one is None or two is None:
            return 0.0
        return 1.0 if one == two else 1.0 - one.disagreement(two, (self.visits(one), self.visits(two)))

    def visits(self, policy: Policy) -> NDArray[np.float64]:
        """Return how often a policy comes to each cell, (H, S), as long as its episodes last."""
        name = policy.table.tobytes()
        if name not in self._visits:
            visits = self.occupancy(policy.table).copy()
            visits[:, self.over] = 0.0
            self._visits[name] = visits
        return self._visits[name]

    def spare(self, rho: float) -> tuple[int, int]:
        """Return how many teams, and how many pairs, may disagree: none, but (SPARE, half of ρ) for a share."""
        return (0, 0) if self.needed >= 1.0 else (SPARE, max(SPARE, int(rho * asked_for(rho) / 2.0)))

    def agree(self, one: Policy | None, two: Policy | None) -> bool:
        """Return whether two policies agree: they are equal, or equal at the needed share of steps."""
        return (one is not None and one == two) if self.needed >= 1.0 else meets(self.share(one, two), self.needed)


def rehearse(
    team: Team,
    policy: Policy,
    *,
    likeness: Likeness,
    rho: float,
    epsilon: float,
    stream: DataStream,
    beside: Team | None = None,
    pairs: bool = True,
    under: Under | None = None,
    workers: int = 1,
) -> Rehearsal:
    """Simulate second teams.

    ρ sets how many are asked. beside: the same teams on the same data, which break ties of best actions at random; None
    where nothing ties. pairs: whether pairs under fresh keys may let a run stop whose own teams differ. under: what the
    rule makes of one data set under several keys; None for a rule without a choice that could change under most keys at
    once. workers are for large tables.

    Guarantee:
        None by proof: it is a simulation from one run's data, see docs/rehearsal.md for what it misses. No run may stop
        while what the teams measure has a standard deviation of ε or more, nor by teams or pairs that agree only as
        long as ties are not broken at random, nor by its pairs while some data set of half of the size changes the
        policy under most keys at once. The last two are asked only where all else is passed.

    Randomness:
        Data streams (data seed, the stream's purpose + "/team/NUMBER", "/pair/NUMBER", "/key/NUMBER", "/common/NUMBER"
        and "/world/NUMBER"). Shared: what the team reads under this run's key and, for pairs, under keys that this run
        makes up. No shared draw of any other run depends on these.
    """
    most, (spare, spare_pairs) = asked_for(rho), likeness.spare(rho)
    hands = workers if policy.table.size >= LARGE else None

    def asks(who: Team, numbers: range) -> list[Answer]:
        questions = [(None, OWN, _key(stream, "team", number)) for number in numbers]
        return list(run_tasks(_ask, who, questions, workers=hands, threads=True))

    answers = asks(team, range(most // 2))
    if sum(not likeness.agree(policy, answer.policy) for answer in answers) <= spare:
        answers += asks(team, range(most // 2, most))
    found = [answer.policy for answer in answers]
    error = float(np.std([answer.measured for answer in answers], ddof=1)) / math.sqrt(OWN)
    known = error < epsilon

    def passes() -> bool:
        return known and len(found) == most and sum(not likeness.agree(policy, other) for other in found) <= spare

    if beside is not None and passes():
        tossed = asks(beside, range(most))
        found = [other.policy if mine == policy else mine for mine, other in zip(found, tossed, strict=True)]
    passed, moved = passes(), 0.0
    alike: list[bool] = []
    if pairs and known and not passed:
        alike = _ask_pairs(team, likeness, most, spare_pairs, stream, hands)
        if beside is not None and alike.count(False) <= spare_pairs:
            alike = _ask_pairs(beside, likeness, most, spare_pairs, stream, hands, alike)
        passed = alike.count(False) <= spare_pairs
        if passed and under is not None:
            moved = _ask_keys(under, likeness, most, stream, hands)
            passed = not moved
    apart = np.zeros(policy.table.shape)
    for other in found:
        apart += 1.0 if other is None else other.differs(policy)
    share = float(np.mean([likeness.share(policy, other) for other in found]))
    needed = likeness.needed if likeness.needed < 1.0 else None
    figures = sum(likeness.agree(policy, other) for other in found), len(found), sum(alike), len(alike), passed
    return Rehearsal(*figures, apart / len(found), error, share, needed, moved or None)


def _ask_pairs(
    team: Team,
    likeness: Likeness,
    most: int,
    spare: int,
    stream: DataStream,
    workers: int | None,
    before: Sequence[bool] = (),
) -> list[bool]:
    """Return which pairs agree, those alone that did so before; no more are asked once too many differ."""
    alike: list[bool] = []
    asked = [
        (SharedKey(_key(stream, "key", member // 2)), FRESH, _key(stream, "pair", member)) for member in range(2 * most)
    ]
    window = 2 * count_workers(workers)
    with closing(run_tasks(_ask, team, asked, workers=workers, threads=True, window=window)) as answers:
        for pair, (first, second) in enumerate(zip(answers, answers, strict=True)):
            alike.append(likeness.agree(first.policy, second.policy) and (not before or before[pair]))
            if alike.count(False) > spare:
                break
    return alike


def _ask_keys(under: Under, likeness: Likeness, most: int, stream: DataStream, workers: int | None) -> float:
    """Return the share of simulated data sets that change the policy under most fresh keys at once.

    Where the same small error of the model changes the policy under most keys, pairs say little: all of them are drawn
    around this run's estimate, and agree where it is far from the boundary by luck.
    """
    keys = [SharedKey(_key(stream, "common", number)) for number in range(KEYS)]
    ours = list(under(keys, None))

    def changes(_: None, draw: int) -> bool:
        differ = 0
        for number, policy in enumerate(under(keys, draw)):
            differ += not likeness.agree(ours[number], policy)
            if differ + KEYS - 1 - number <= KEYS // 2:  # those that are left do not make it most
                return False
        return True

    draws = [_key(stream, "world", number) for number in range(most)]
    return float(np.mean(list(run_tasks(changes, None, draws, workers=workers, threads=True))))


def _ask(team: Team, asked: tuple[SharedKey | None, int, int]) -> Answer:
    return team(*asked)


def _key(stream: DataStream, purpose: str, number: int) -> int:
    return DataStream(stream.data_seed, f"{stream.purpose}/{purpose}/{number}").key
