"""What a canonical run chose, how it was rehearsed and what is proven of it, as recipes and receipts keep it."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from reprl.assurance.certificate import SOURCES, Certificate, Witness, make_certificate, rule_of
from reprl.assurance.rehearsal import Rehearsal
from reprl.canonical.choice import KINDS, candidates_of, make_rule
from reprl.errors import DocumentError, quote
from reprl.learning.protocol import Run
from reprl.learning.settings import Settings
from reprl.mdp.criterion import Criterion
from reprl.mdp.dynamics import Data
from reprl.randomness import SharedKey
from reprl.storage.documents import Reader, plain

MOST = 2**16
"""Candidates of a kind, and teams of a rehearsal, that a document may speak of."""
_REHEARSAL = ("agree", "of", "pairs_agree", "pairs", "passed", "error")


class Candidate(NamedTuple):
    """One candidate of the rule, which a second team may follow."""

    kind: str
    """One of ``reprl.canonical.choice.KINDS``."""
    number: int
    tolerance: float
    """u, or the width of the laws."""

    def __str__(self) -> str:
        """For people."""
        return f"{self.kind} {self.number}, {'width' if self.kind == 'sampled' else 'tolerance'} {self.tolerance:.3g}"

    @staticmethod
    def read(given: Reader) -> Candidate:
        """Read one, strictly."""
        kind, number = given.choice("kind", KINDS), given.whole("number", 0, MOST)
        return Candidate(kind, number, given.real("tolerance", open_low=True))

    def check(
        self, shape: tuple[int, int, int], settings: Settings, shared_seed: int, criterion: Criterion
    ) -> Candidate:
        """Return the candidate if the rule of these settings has it; criterion as in ``make_rule``."""
        if settings.rule != "canonical":
            raise DocumentError(f"candidate must be null unless rule='canonical', got {quote(tuple(self))}")
        # Candidates do not depend on the actions, of which a recipe from a stranger may claim any number.
        key, sizes = SharedKey(shared_seed).derive("rule"), (*shape[:2], 1)
        steady = bool(settings.stationary)
        rule = make_rule(key, sizes, epsilon=settings.epsilon, steady=steady, criterion=criterion)
        known = candidates_of(rule, self.kind)
        if self.number >= known.size:
            raise DocumentError(
                f"candidate.number must be a whole number from 0 to {known.size - 1}, got {self.number}"
            )
        if not math.isclose(self.tolerance, known[self.number], rel_tol=1e-9):
            raise DocumentError(
                f"candidate.tolerance must be {known[self.number]:.6g} for number {self.number}, got {self.tolerance:g}"
            )
        return self


class Chosen(NamedTuple):
    """What a run chose among the candidates, and how firmly, in the fields of ``reprl.canonical.choice.Choice``."""

    kind: str
    candidate: int
    tolerance: float
    margin: float
    lead: float | None
    """None if there was no other policy."""
    loss: float
    value: float
    tightest: tuple[int, int, int] | None
    followed: bool
    """Whether it took the candidate that its recipe had published, instead of choosing afresh."""

    @staticmethod
    def of(run: Run) -> Chosen | None:
        """Return what a run chose; None for the rule "sampled"."""
        if run.choice is None:
            return None
        found = run.choice
        return Chosen(
            kind=found.kind,
            candidate=int(found.candidate),
            tolerance=float(found.tolerance),
            margin=float(found.margin),
            lead=float(found.lead) if math.isfinite(found.lead) else None,
            loss=float(found.loss),
            value=float(found.value),
            tightest=found.tightest,
            followed=run.followed,
        )

    @property
    def published(self) -> Candidate:
        """What a recipe says of it."""
        return Candidate(self.kind, self.candidate, self.tolerance)

    def words(self, preference: str | tuple[int | str, ...] | None) -> str:
        """Say what the rule did, in a sentence that a person can repeat."""
        if self.kind == "sampled":
            near, far = f"{self.tolerance / 2:.3g}", f"{self.tolerance:.3g}"
            return f"actions within {near} of the best count as equal, less so up to {far}; the shared seed draws one"
        order = "your order"
        if preference is None or preference == "shared":
            order = "the environment's order" if preference is None else "an order from the shared seed"
        on, when = (", on average over the steps", " at every step") if self.kind == "steady" else ("", "")
        equal = f"actions within {self.tolerance:.3g} of the best count as equal{on}"
        return f"{equal}; of those the first in {order} is taken{when}"

    def document(self) -> dict[str, Any]:
        """Return the JSON document."""
        return {**self._asdict(), "tightest": None if self.tightest is None else list(self.tightest)}

    @staticmethod
    def read(given: Reader, shape: tuple[int, int]) -> Chosen:
        """Read one, strictly; shape is (H, S)."""
        tightest = given.optional("tightest", lambda field: given.wholes(field, (3,)).tolist())
        if tightest is not None and not (tightest[0] < shape[0] and tightest[1] < shape[1]):
            raise DocumentError(f"{given.where('tightest')} must be a cell of the {shape} table, got {quote(tightest)}")
        return Chosen(
            kind=given.choice("kind", KINDS),
            candidate=given.whole("candidate", 0, MOST),
            tolerance=given.real("tolerance", open_low=True),
            margin=given.real("margin"),
            lead=given.optional("lead", given.real),
            loss=given.real("loss", -math.inf),
            value=given.real("value", -math.inf),
            tightest=None if tightest is None else (tightest[0], tightest[1], tightest[2]),
            followed=given.flag("followed"),
        )


def rehearsal_document(rehearsal: Rehearsal | None) -> dict[str, Any] | None:
    """Return the figures of a rehearsal; which cells were undecided is a list of its own."""
    return None if rehearsal is None else {name: getattr(rehearsal, name) for name in _REHEARSAL}


def undecided_document(rehearsal: Rehearsal | None) -> list[list[float]]:
    """Return [h, s, share of the teams that would do something else there], the most disputed first."""
    if rehearsal is None:
        return []
    cells = [[int(h), int(s), float(rehearsal.apart[h, s])] for h, s in np.argwhere(rehearsal.apart > 0.0)]
    return sorted(cells, key=lambda cell: -cell[2])


def read_rehearsal(document: Reader, shape: tuple[int, int]) -> Rehearsal | None:
    """Read both documents, strictly; shape is (H, S)."""
    apart = _read_undecided(document, shape)
    if document["rehearsal"] is None:
        if apart.any():
            raise DocumentError(
                f"receipt undecided must be empty where rehearsal is null, got {int((apart > 0).sum())} cells"
            )
        return None
    given = document.part("rehearsal", _REHEARSAL)
    of, pairs = given.whole("of", 1, MOST), given.whole("pairs", 0, MOST)
    return Rehearsal(
        agree=given.whole("agree", 0, of),
        of=of,
        pairs_agree=given.whole("pairs_agree", 0, pairs),
        pairs=pairs,
        passed=given.flag("passed"),
        apart=apart,
        error=given.real("error"),
    )


def _read_undecided(document: Reader, shape: tuple[int, int]) -> NDArray[np.float64]:
    apart = np.zeros(shape)
    for i, cell in enumerate(document.items("undecided")):
        where = f"{document.where('undecided')}[{i}]"
        if not isinstance(cell, list) or len(cell) != 3:
            raise DocumentError(f"{where} must be [step, state, share], got {quote(cell)}")
        h, s, share = cell
        fits = all(type(x) is int and 0 <= x < size for x, size in zip((h, s), shape, strict=True))
        if not fits or type(share) not in (int, float) or not 0.0 < share <= 1.0 or apart[h, s]:
            raise DocumentError(
                f"{where} must be a cell of the {shape} table, once, and a share in (0, 1], got {quote(cell)}"
            )
        apart[h, s] = share
    return apart


class Certified(NamedTuple):
    """A certificate, tied to the data that it was made from."""

    certificate: Certificate
    data: str
    """SHA-256 of the data."""

    @staticmethod
    def of(run: Run) -> Certified | None:
        """Return that of a run; None where nobody asked for a proof."""
        if run.certificate is None or run.witness is None:
            return None
        return Certified(run.certificate, run.witness.data.digest)

    def document(self) -> dict[str, Any]:
        """Return the JSON document."""
        return {**certificate_document(self.certificate), "data": self.data}

    @staticmethod
    def read(given: Reader) -> Certified:
        """Read one, strictly."""
        pairs = [
            tuple(int(i) for i in _read_cell(given, "undecided", n, 2)) for n in range(len(given.items("undecided")))
        ]
        tightest = given.optional("tightest", lambda field: tuple(given.wholes(field, (3,)).tolist()))
        followed = given["followed"]
        if followed is not None and not (
            isinstance(followed, list) and len(followed) == 2 and followed[0] in KINDS and type(followed[1]) is int
        ):
            raise DocumentError(f"{given.where('followed')} must be null or [kind, number], got {quote(followed)}")
        preference = given["preference"]
        certificate = Certificate(
            proven=given.flag("proven"),
            delta=given.real("delta", 0.0, 1.0, open_low=True),
            spent=given.real("spent", 0.0, 1.0),
            source=given.choice("source", tuple(SOURCES)),
            round=given.whole("round", 1, MOST),
            fixed_start=given.flag("fixed_start"),
            shared_seed=given.whole("shared_seed", 0, 2**64 - 1),
            epsilon=given.real("epsilon", open_low=True),
            preference=tuple(preference) if isinstance(preference, list) else preference,
            followed=None if followed is None else (followed[0], followed[1]),
            fingerprint=given.optional("fingerprint", given.digest),
            loss=_infinite(given.optional("loss", lambda field: given.real(field, -math.inf)), math.inf),
            lead=_infinite(given.optional("lead", lambda field: given.real(field, -math.inf)), -math.inf),
            candidate=given.whole("candidate", -1, MOST),
            tolerance=given.real("tolerance"),
            margin=given.real("margin"),
            tightest=tightest,
            reason=given.text("reason"),
            undecided=tuple((pair[0], pair[1]) for pair in pairs),
            more=given.optional("more", given.whole),
        )
        if certificate.proven and math.isinf(certificate.lead):
            certificate = certificate._replace(lead=math.inf)
        return Certified(certificate, given.digest("data"))

    def check(self, data: Data) -> Certificate:
        """Compute the certificate again from data and return it; refuse data that it was not made from."""
        if data.digest != self.data:
            raise DocumentError(
                f"counts must be those of the receipt, with SHA-256 {self.data[:12]}…, got {data.digest[:12]}…"
            )
        told = self.certificate
        rule = rule_of(data.counts.outcomes.shape, told.shared_seed, told.epsilon, told.preference, told.followed)
        witness = Witness(data, told.source, told.round, told.fixed_start)
        return make_certificate(rule, witness, told.shared_seed, told.delta)[0]


CERTIFIED = (*Certificate._fields, "data")
"""Fields of the document."""


def certificate_document(certificate: Certificate) -> dict[str, Any]:
    """Return a certificate in JSON's types; what is infinite is null."""
    found = {name: _finite(value) for name, value in certificate._asdict().items()}
    document: dict[str, Any] = plain(found)
    return document


def _read_cell(given: Reader, field: str, number: int, size: int) -> list[int]:
    """Return a list of whole numbers inside a list."""
    cell = given.items(field)[number]
    if not isinstance(cell, list) or len(cell) != size or not all(type(i) is int and 0 <= i < MOST for i in cell):
        raise DocumentError(f"{given.where(field)}[{number}] must be {size} whole numbers, got {quote(cell)}")
    return cell


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _infinite(value: float | None, otherwise: float) -> float:
    return otherwise if value is None else value
