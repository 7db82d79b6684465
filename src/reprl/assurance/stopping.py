"""StopRule: when a run may stop gathering, and what it may then promise.

Rehearsed: simulated second teams agree. Certified: the run's own data prove the policy. Budget: the samples are spent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from reprl.assurance.certificate import SKIPPED, Certificate, CertificateData, certificate_data_of, make_certificate
from reprl.assurance.rehearsal import OWN, Answer, Likeness, Rehearsal, kept_rehearsal, rehearse
from reprl.assurance.unseen import add_phantoms, hidden_loss
from reprl.canonical.bound import UNKNOWN, BoundRule, Found, WholeLog
from reprl.canonical.choice import start_value
from reprl.canonical.gaps import Ties
from reprl.execution.settings import Execution
from reprl.guarantee import Asked, Guarantee
from reprl.mdp.dynamics import Data, Dynamics, empirical_dynamics
from reprl.mdp.policy import Policy
from reprl.randomness import DataStream, SharedKey
from reprl.sources.source import CertificateSource, DataSource


class Chosen(Protocol):
    """What a rule makes of data."""

    @property
    def policy(self) -> Policy | None:
        """The policy; None if the rule would need other data to say."""

    @property
    def best(self) -> float:
        """V* from the start, in the data."""


class Chooser(Protocol):
    """A rule, as a rehearsal needs it."""

    @property
    def followed(self) -> bool:
        """Whether it follows a published candidate, of which fresh keys say nothing."""

    def choose(self, data: Any, /) -> Chosen:
        """Return f(ξ, ·) of data."""

    def under(self, key: SharedKey, /) -> Chooser:
        """Return the same rule under another key."""


class Round(NamedTuple):
    """What a run knows after a round."""

    source: DataSource[Any]
    known: Any
    """The source's samples."""
    rule: Any
    data: Data
    """What the rule has read."""
    found: Any
    """What the rule made of it."""
    last: bool
    """Whether nothing more can be gathered."""


class Judgement(NamedTuple):
    """What a stop rule says of a round."""

    enough: bool
    """Whether the run may stop."""
    found: Any
    """What it prints."""
    guarantee: Guarantee
    drift: str = ""
    """Evidence against stationary dynamics where steps were pooled."""
    rehearsal: Rehearsal | None = None
    certificate: Certificate | None = None


class StopRule(Protocol):
    """Says when a run may stop, and what it may then promise."""

    def judge(self, now: Round) -> Judgement:
        """Judge a round."""


class Doubts(NamedTuple):
    """What could be wrong with a policy, in units of value."""

    loss: float
    """V* − V^π in the model."""
    unknown: float
    """Optimistic value of under-sampled cells."""
    hidden: float
    """What events that no sample has shown could cost."""


def find_doubts(now: Round, delta: float) -> Doubts:
    """Return what could be wrong with what a bound rule has found; `delta` is the probability that it is more."""
    rule, found = now.rule, now.found
    values, start = rule.values(found), not now.source.fixed_start
    untried = rule.reader.untried(now.data, found.dynamics)
    hidden = hidden_loss(now.data, found.dynamics, values, found.policy.table, delta, start=start, untried=untried)
    return Doubts(found.choice.loss, rule.reader.unknown(now.data), hidden)


class Second(NamedTuple):
    """How second teams differ from plain copies of this run."""

    haunt: Callable[[Any, int], Any] = lambda data, key: data
    """Adds, to a team's data, what no sample of this run has shown; by a private key."""
    toss: Callable[[Any, Any, int], Policy] | None = None
    """Applies a rule to a team's data beside a tie, on a side that a private key tosses; None where nothing ties."""
    measure: Callable[[Any], float] = lambda found: float(found.best)
    """Reads, off what a team has found, what must be known to ε."""
    model: Dynamics | None = None
    """In which decisions are compared; None for the frequencies of this run's data."""
    over: tuple[int, ...] = ()
    """States in which an episode is over."""
    chooses: bool = False
    """Whether the rule chooses among policies, so that a small error of the model may change it under most keys."""


COPIES = Second()


def ask_teams(now: Round, policy: Policy, asked: Asked, execution: Execution, second: Second = COPIES) -> Rehearsal:
    """Rehearse a round: second teams follow the rule on data redrawn from this run's.

    Randomness:
        Data streams (data seed, "rehearsal/ROUND/…").
    """
    rule: Chooser = now.rule

    def drawn(key: SharedKey | None, share: int, draw: int) -> tuple[Any, Any]:
        return rule if key is None else rule.under(key), second.haunt(now.known.redraw(share, draw), draw)

    def team(key: SharedKey | None, share: int, draw: int) -> Answer:
        mine, data = drawn(key, share, draw)
        found = mine.choose(data)
        return Answer(found.policy, second.measure(found))

    def beside(key: SharedKey | None, share: int, draw: int) -> Answer:
        assert second.toss is not None
        return Answer(second.toss(*drawn(key, share, draw), draw), 0.0)

    def under(keys: Sequence[SharedKey], draw: int | None) -> Iterator[Policy | None]:
        data = now.data if draw is None else second.haunt(now.known.redraw(OWN, draw), draw)
        return (rule.under(key).choose(data).policy for key in keys)

    stream = DataStream(now.source.data_seed, f"rehearsal/{now.known.name}")
    model = empirical_dynamics(now.data) if second.model is None else second.model
    likeness = Likeness(model.occupancy, second.over, asked.agreement)
    make = partial(rehearse, team, policy, likeness=likeness, rho=asked.rho, epsilon=asked.epsilon, stream=stream)
    make = partial(make, pairs=not rule.followed, workers=execution.workers)
    make = partial(make, beside=None if second.toss is None else beside)
    make = partial(make, under=under if second.chooses else None)
    if execution.checkpoint is None:
        return make()
    # A limit may have cut this round: another run of the same work, with a larger one, has more data in it.
    return kept_rehearsal(execution.checkpoint, f"{stream.purpose}/{now.known.data.digest}", make)


@dataclass(frozen=True)
class Rehearsed:
    """Stop when simulated second teams come to the same policy.

    No sample contradicts what the user says of the steps, the rehearsal passed, with teams that meet events which no
    sample of this run has shown, under-sampled cells could be worth at most UNKNOWN·ε, and the policy loses less than ε
    in the model, with what such events could cost added. Under the weaker promises no choice among candidates hangs on
    under-sampled cells: what they could be worth is added to the loss instead.

    Guarantee:
        Status "rehearsed" if all of this holds (docs/rehearsal.md), otherwise "none".
    """

    asked: Asked
    execution: Execution
    scale: float = 1.0
    """What rescaled rewards are times in the words of a refusal: the width of the rewards' own range."""

    def judge(self, now: Round) -> Judgement:
        """Rehearse the round."""
        rule, found = now.rule, now.found
        asked = self.asked._replace(epsilon=found.choice.epsilon)
        values, start = rule.values(found), not now.source.fixed_start
        second = Second(
            lambda data, key: add_phantoms(data, values, key, start=start),
            _toss(rule.ties(now.data, found)),
            lambda other: other.loss_of(found.policy),
            found.dynamics,
            rule.reader.over,
            chooses=not rule.selection.cellwise,
        )
        rehearsal = ask_teams(now, found.policy, asked, self.execution, second)
        drift = now.source.drift(now.known)
        doubts, cellwise, scale = find_doubts(now, asked.delta), rule.selection.cellwise, self.scale
        missing = now.source.shortage(now.known)
        missing = missing or _missing(asked.epsilon, rehearsal, doubts, cellwise=cellwise, scale=scale)
        if drift:
            guarantee = contradicted(asked, now.source.claim, drift)
        elif missing:
            hint = now.source.hint(now.known) if now.last else ""
            guarantee = asked.promise("none", f"{now.source.ran_out}: {missing}{hint and '; '}{hint}")
        else:
            source = f"{rehearsal}{rule.reader.scope}"
            guarantee = asked.promise("rehearsed", source)
            guarantee = replace(guarantee, epsilon=asked.epsilon + rule.reader.slack(found.model))
        guarantee = replace(guarantee, registered=rule.followed)
        return Judgement(bool(drift) or not missing, found, guarantee, drift, rehearsal)


def _toss(near: NDArray[np.bool_] | None) -> Callable[[BoundRule, Data, int], Policy] | None:
    """Return a simulated team's decision at a tie, with a random choice among actions that the data cannot distinguish.

    At a tie of best actions f jumps if their variances differ, and whether a run falls on one side or the other does
    not become surer with more data. Teams drawn around this run's estimate would mostly fall on its side.
    """
    if near is None:
        return None

    def toss(rule: BoundRule, data: Data, key: int) -> Policy:
        rank = DataStream(key, "ties").uniforms(near[0].size).reshape(near[0].shape)
        return rule.choose(data, Ties(near, rank)).policy

    return toss


def _missing(epsilon: float, rehearsal: Rehearsal, doubts: Doubts, *, cellwise: bool, scale: float = 1.0) -> str:
    """Say why a run may not stop, in the rewards' own units; empty if it may."""
    unknown, most = (doubts.unknown, max(0.0, epsilon - doubts.loss)) if cellwise else (0.0, UNKNOWN * epsilon)
    if doubts.unknown > most:
        return f"the optimistic value of under-sampled cells is {scale * doubts.unknown:.3g}"
    if doubts.loss >= epsilon:
        lost, most = scale * doubts.loss, scale * epsilon
        return (
            f"the policy loses {lost:.3g} by its own data, more than the {most:.3g} that it may: a lower quality or a "
            "weaker promise may help, more samples alone may not"
        )
    if doubts.loss + unknown + doubts.hidden >= epsilon:
        return f"events that no sample has shown yet could cost it {scale * doubts.hidden:.3g}"
    if doubts.loss + unknown + doubts.hidden + rehearsal.error >= epsilon:
        return f"what the policy loses is only known to a standard deviation of {scale * rehearsal.error:.3g}"
    return not_passed(rehearsal, epsilon, scale)


def not_passed(rehearsal: Rehearsal, epsilon: float, scale: float = 1.0) -> str:
    """Say why a rehearsal did not pass, in the rewards' own units; empty if it did."""
    if rehearsal.passed:
        return ""
    if rehearsal.error >= epsilon:
        return f"the best value is only known to a standard deviation of {scale * rehearsal.error:.3g}"
    return f"only {rehearsal}"


@dataclass(frozen=True)
class Budget:
    """Spend what there is, and ask no second teams; nothing is promised."""

    asked: Asked

    def judge(self, now: Round) -> Judgement:
        """Continue to the end, unless the data contradict stationary dynamics."""
        drift = now.source.drift(now.known)
        if drift:
            return Judgement(True, now.found, contradicted(self.asked, now.source.claim, drift), drift)
        nothing = self.asked.promise("none", "the size was set by hand and nobody rehearsed it")
        return Judgement(False, now.found, nothing)


@dataclass(frozen=True)
class Certified:
    """Stop when the run's own data prove the policy, and not before.

    Guarantee:
        Status "certified" if they do (docs/proofs/certificate.md), otherwise what `otherwise` promises of the last
        round.
    """

    asked: Asked
    shared_seed: int
    otherwise: StopRule

    def judge(self, now: Round) -> Judgement:
        """Try to prove the policy; early rounds are too small, and an interim analysis of them would spend δ."""
        certificate = policy = None
        if now.last or now.known.round > SKIPPED:
            certificate, policy = self._prove(now)
        contradicted = now.last and now.source.drift(now.known)
        if certificate is not None and certificate.proven and not contradicted:
            rule = now.rule.for_proof()
            guarantee = Guarantee(
                rho=2.0 * certificate.delta,
                delta=certificate.delta,
                epsilon=certificate.loss,
                status="certified",
                source="docs/proofs/certificate.md, for any two certified runs of this shared seed"
                + (rule.reader.scope if isinstance(rule.reader, WholeLog) else ""),
                quality=certificate.share,
                registered=now.rule.followed,
            )
            shown = now.found if rule.reader is now.rule.reader else rule.choose(now.data)
            found = _proven(rule, shown, certificate, policy)
            return Judgement(True, found, guarantee, certificate=certificate)
        if now.last:
            return self.otherwise.judge(now)._replace(certificate=certificate)
        return Judgement(False, now.found, self.asked.promise("none", "not proven yet"))

    def _prove(self, now: Round) -> tuple[Certificate, Policy | None]:
        """Make a certificate; in the last round it also says how many more samples a proof would take."""
        certificate_data = certificate_data_from(now.known.certificate_source())
        assert certificate_data is not None  # environments that no certificate covers are refused beforehand
        samples = now.source.ledger.samples if now.last else None
        return make_certificate(
            now.rule.for_proof().rule, certificate_data, self.shared_seed, self.asked.certified_delta, samples=samples
        )


def certificate_data_from(given: CertificateSource | None) -> CertificateData | None:
    """Return certificate data of a source; parallel calls are of the round that their number says."""
    if given is None:
        return None
    if given.kind == "calls":
        return certificate_data_of(given.data, given.kind, fixed_start=given.fixed_start)
    return CertificateData(*given)


def contradicted(asked: Asked, claim: str, drift: str) -> Guarantee:
    """Promise nothing, as data contradict what a run was told of its steps."""
    return asked.promise("none", f"the steps are not alike, though {claim} says so: {drift}")


def _proven(rule: BoundRule, found: Found, certificate: Certificate, policy: Policy | None) -> Found:
    """Return the proven policy as the choice, should the data of all rounds together have chosen another."""
    if policy is None or policy == found.policy:
        return found
    value = rule.values(found)
    loss = found.dynamics.policy_loss(value[0], policy.table)
    choice = found.choice._replace(
        policy=policy,
        kind="preferred",
        candidate=certificate.candidate,
        tolerance=certificate.tolerance,
        margin=certificate.margin,
        lead=certificate.lead,
        loss=loss,
        value=start_value(found.dynamics, value[0]) - loss,
        tightest=certificate.tightest,
    )
    return found._replace(choice=choice)
