"""What a canonical run chose, how it was rehearsed and what is proven of it, as recipes and receipts keep it."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from reprl.assurance.certificate import SOURCES, Certificate, CertificateData, make_certificate
from reprl.assurance.rehearsal import Rehearsal
from reprl.canonical.cellwise import AGREED, NARROW
from reprl.canonical.choice import KINDS, candidates_of, make_rule
from reprl.canonical.preferred import PHASED, STATIONARY
from reprl.canonical.registered import REGISTERED, Cells
from reprl.errors import DocumentError, quote
from reprl.learning.certification import rule_of
from reprl.learning.protocol import Run
from reprl.learning.settings import Settings
from reprl.mdp.criterion import Criterion
from reprl.mdp.dynamics import Data
from reprl.randomness import STREAM_VERSION, SharedKey
from reprl.storage import fields as f
from reprl.storage.fields import Fields, Kind, declared, read_fields, write_fields

MOST = 2**16
"""Candidates of a kind, and teams of a rehearsal, in a document, at most."""


def shape_of(at: Fields) -> tuple[int, int]:
    """Return (H, S) of the tables in a receipt."""
    shape: tuple[int, int] = at.tiers.level.shape
    return shape


STREAM = {"stream_version": f.constant(STREAM_VERSION, f"{STREAM_VERSION} for this release of reprl")}
"""Of the streams and the rule, in every recipe and receipt."""
_KIND = f.choice((*KINDS, REGISTERED))


def _read_cells(where: str, value: Any, at: Fields) -> Cells:
    numbers = f.many(f.whole(0, MOST))
    rows = f.many(f.many(f.optional(f.real(open_low=True))))
    found = read_fields(where, value, {"starts": numbers, "order": numbers, "tolerances": rows}, at)
    widths = {len(row) for row in found["tolerances"]}
    if len(widths) != 1:
        raise DocumentError(f"{where}.tolerances must be rows of one length, got lengths {sorted(widths)}")
    table = np.array([[math.inf if u is None else u for u in row] for row in found["tolerances"]])
    return Cells(found["starts"], found["order"], table)


def _write_cells(cells: Cells) -> dict[str, Any]:
    """The candidate in JSON's types; an infinite tolerance is null."""
    rows = [[None if math.isinf(u) else u for u in row] for row in cells.tolerances.tolist()]
    return {"starts": list(cells.starts), "order": list(cells.order), "tolerances": rows}


class Candidate(NamedTuple):
    """One candidate of the rule, which a second team may follow."""

    kind: Annotated[str, _KIND]
    number: Annotated[int, f.whole(0, MOST)]
    tolerance: Annotated[float, f.real(open_low=True)]
    """u; of a registered one, the smallest tolerance of a cell."""
    cells: Annotated[Cells | None, Kind(_read_cells, _write_cells)] = None
    """Blocks of steps, order and tolerances of a registered one."""

    @property
    def bare(self) -> Candidate:
        """The candidate without its cells, as a receipt names it."""
        return self._replace(cells=None)

    def __str__(self) -> str:
        return self.words()

    def words(self, scale: float = 1.0) -> str:
        """Name it; scale is what rescaled rewards are times in their own units."""
        if self.kind == REGISTERED and self.cells is not None:
            decided = int(np.isfinite(self.cells.tolerances).sum())
            blocks = len(self.cells.starts)
            tolerances = f"{decided} tolerance{'' if decided == 1 else 's'}"
            return f"registered: {tolerances} in {blocks} block{'' if blocks == 1 else 's'} of steps"
        if self.kind == REGISTERED:
            return f"registered, smallest tolerance {scale * self.tolerance:.3g}"
        kind = "stationary" if self.kind == STATIONARY else self.kind
        return f"{kind} {self.number}, tolerance {scale * self.tolerance:.3g}"

    def check(
        self, shape: tuple[int, int, int], settings: Settings, shared_seed: int, criterion: Criterion
    ) -> Candidate:
        """Return the candidate if the rule of these settings has it; criterion as in ``make_rule``."""
        if settings.rule != "canonical":
            raise DocumentError(f"candidate must be null unless rule='canonical', got {quote(tuple(self))}")
        if (self.kind == REGISTERED) != (self.cells is not None):
            raise DocumentError(f"candidate.cells must be given exactly for the kind {REGISTERED!r}, got {self.kind!r}")
        if self.cells is not None:
            self.cells.check(*shape)
            return self
        # Candidates do not depend on the actions, of which a recipe from a stranger may claim any number.
        key, sizes = SharedKey(shared_seed).derive("rule"), (*shape[:2], 1)
        rule = make_rule(key, sizes, goal=settings.goal, stationary=settings.pooled, criterion=criterion)
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


_CHOSEN = f.choice((*KINDS, AGREED, REGISTERED))


class Chosen(NamedTuple):
    """What a run chose among the candidates, and how firmly, in the fields of ``reprl.canonical.choice.Choice``."""

    kind: Annotated[str, _CHOSEN]
    candidate: Annotated[int, f.whole(0, MOST)]
    tolerance: Annotated[float, f.real(open_low=True)]
    margin: float
    lead: float | None
    """None if there was no other policy."""
    loss: Annotated[float, f.real(-math.inf)]
    value: Annotated[float, f.real(-math.inf)]
    tightest: Annotated[
        tuple[int, int, int] | None,
        f.also(
            f.many(f.whole(), 3),
            lambda cell, at: cell[0] < shape_of(at)[0] and cell[1] < shape_of(at)[1],
            lambda at: f"a cell of the {shape_of(at)} table",
        ),
    ]
    followed: bool
    """Whether it took the candidate that its recipe had published, instead of choosing afresh."""
    baseline: Annotated[float, f.real(-math.inf)]
    epsilon: Annotated[float, f.real(-math.inf)]

    @staticmethod
    def of(run: Run) -> Chosen | None:
        """Return what a run chose; None for the rule "paper"."""
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
            baseline=float(found.baseline),
            epsilon=float(found.epsilon),
        )

    @property
    def best(self) -> float:
        """V* from the start, in the run's own model."""
        return self.value + self.loss

    @property
    def published(self) -> Candidate | None:
        """What a recipe says of it; None where there is nothing to choose, hence nothing to follow."""
        return None if self.kind == AGREED else Candidate(self.kind, self.candidate, self.tolerance)

    def words(self, preference: str | tuple[int | str, ...] | None, scale: float = 1.0) -> str:
        """Say what the rule did, in a sentence that a person can repeat; scale is what rescaled rewards are times."""
        width = scale * self.tolerance
        order = "your order"
        if preference is None or preference == "shared":
            order = "the environment's order" if preference is None else "an order from the shared seed"
        if self.kind == AGREED:
            return (
                f"in every state, actions within {NARROW * width:.3g} to {width:.3g} of the best there, by the shared "
                f"seed, count as equal; the first in {order} is taken"
            )
        if self.kind == REGISTERED:
            return (
                "in every state, actions whose loss is at most the registered tolerance count as equal; of these the "
                "first in the registered order is taken"
            )
        on, when = {
            STATIONARY: (" on average over the steps", " at every step"),
            PHASED: (" on average over the steps of a phase", " at every step of the phase"),
        }.get(self.kind, ("", ""))
        equal = f"actions count as equal if their loss{on}, weighted by visits, is at most {width:.3g}"
        return f"{equal}; of these the first in {order} is taken{when}"


def _read_undecided(where: str, value: Any, at: Fields) -> NDArray[np.float64]:
    """Read [h, s, share of the teams that would do something else there], as a table (H, S)."""
    shape = shape_of(at)
    apart = np.zeros(shape)
    cells = f.many(f.row("[step, state, share]", f.ANYTHING, f.ANYTHING, f.ANYTHING)).read(where, value, at)
    for i, (h, s, share) in enumerate(cells):
        fits = all(type(x) is int and 0 <= x < size for x, size in zip((h, s), shape, strict=True))
        if not fits or type(share) not in (int, float) or not 0.0 < share <= 1.0 or apart[h, s]:
            allowed = f"a cell of the {shape} table, once, and a share in (0, 1]"
            raise DocumentError(f"{where}[{i}] must be {allowed}, got {quote(value[i])}")
        apart[h, s] = share
    return apart


def _write_undecided(apart: NDArray[np.float64] | None) -> list[list[float]]:
    """The most disputed first."""
    if apart is None:
        return []
    cells = [[int(h), int(s), float(apart[h, s])] for h, s in np.argwhere(apart > 0.0)]
    return sorted(cells, key=lambda cell: -cell[2])


UNDECIDED = Kind(_read_undecided, _write_undecided)
"""Which cells simulated teams disagree in: a list of its own beside the figures of a rehearsal."""
_FIGURES = {name: kind for name, kind in declared(Rehearsal).items() if name != "apart"}
REHEARSAL = Kind(
    lambda where, value, at: Rehearsal(**read_fields(where, value, _FIGURES, at), apart=at.undecided),
    lambda found: write_fields(found, _FIGURES),
)


class Certified(NamedTuple):
    """A certificate, tied to the data that it was made from."""

    certificate: Certificate
    data: str
    """SHA-256 of the data."""
    tried: tuple[str, ...] = ()
    """Digests of other recipes for which a proof was sought from these data: with this one, k of them cost k·δ."""

    @staticmethod
    def of(run: Run) -> Certified | None:
        """Return that of a run; None if no proof was asked for."""
        if run.certificate is None or run.certificate_data is None:
            return None
        return Certified(run.certificate, run.certificate_data.data.digest, run.tried)

    def check(self, data: Data) -> Certificate:
        """Compute the certificate again from data and return it; refuse data that it was not made from."""
        if data.digest != self.data:
            raise DocumentError(
                f"counts must be those of the receipt, with SHA-256 {self.data[:12]}…, got {data.digest[:12]}…"
            )
        told = self.certificate
        asked = Settings(epsilon=told.epsilon, quality=told.quality, baseline=told.baseline, preference=told.preference)
        rule = rule_of(data.counts.outcomes.shape, told.shared_seed, asked, told.followed)
        certificate_data = CertificateData(data, told.source, told.round, told.fixed_start)
        return make_certificate(rule, certificate_data, told.shared_seed, told.delta)[0]


def _or_infinite(sign: Callable[[Any], float]) -> Kind:
    """A number, or null where it is infinite."""
    number = f.real(-math.inf)
    return Kind(
        lambda where, value, at: sign(at) * math.inf if value is None else number.read(where, value, at),
        lambda value: value if math.isfinite(value) else None,
    )


_BASELINE = f.also(
    f.many(f.many(f.whole(0, MOST))),
    lambda rows, at: len(rows) in (1, shape_of(at)[0]) and all(len(row) == shape_of(at)[1] for row in rows),
    lambda at: f"one row of actions, or {shape_of(at)[0]}, by {shape_of(at)[1]} states",
)
_CERTIFICATE = {
    **declared(Certificate),
    "delta": f.real(0.0, 1.0, open_low=True),
    "spent": f.SHARE,
    "source": f.choice(tuple(SOURCES)),
    "round": f.whole(1, MOST),
    "shared_seed": f.SEED,
    "epsilon": f.optional(f.real(open_low=True)),
    "preference": Kind(lambda where, value, at: tuple(value) if isinstance(value, list) else value),
    "followed": f.optional(f.row("null or [kind, number]", _KIND, f.whole())),
    "fingerprint": f.optional(f.SHA256),
    "loss": _or_infinite(lambda at: 1.0),
    "lead": _or_infinite(lambda at: 1.0 if at.proven else -1.0),
    "candidate": f.whole(-1, MOST),
    "tightest": f.optional(f.many(f.whole(), 3)),
    "undecided": f.many(f.many(f.whole(0, MOST - 1), 2)),
    "quality": f.optional(f.real(0.0, 1.0, open_low=True)),
    "baseline": f.optional(_BASELINE),
    "share": f.optional(f.real(-math.inf, 1.0)),
    "gain": f.optional(f.many(f.real(), 2)),
}


def _read_certified(where: str, value: Any, at: Fields) -> Certified:
    fields = read_fields(where, value, {**_CERTIFICATE, "data": f.SHA256, "tried": f.many(f.SHA256)}, at)
    data, tried = fields.pop("data"), fields.pop("tried")
    return Certified(Certificate(**fields), data, tried)


def certificate_document(certificate: Certificate) -> dict[str, Any]:
    """Return a certificate in JSON's types; what is infinite is null."""
    return write_fields(certificate, _CERTIFICATE)


def _write_certified(found: Certified) -> dict[str, Any]:
    return {**certificate_document(found.certificate), "data": found.data, "tried": list(found.tried)}


CERTIFIED = Kind(_read_certified, _write_certified)
