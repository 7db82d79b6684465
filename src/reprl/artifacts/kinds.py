"""How receipts hold what the default rule chose, what simulated teams said of it, and what is promised."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reprl.assurance.verdict import Verdict
from reprl.errors import DocumentError, quote
from reprl.guarantee import STATUSES, Guarantee, Promise
from reprl.randomness import STREAM_VERSION
from reprl.rule.soft import Choice
from reprl.storage import fields as f
from reprl.storage.documents import naming
from reprl.storage.fields import Fields, Kind, read_fields, write_fields

MOST = 2**16
"""Levels, tries and teams in a document, at most."""
STREAM = {"stream_version": f.constant(STREAM_VERSION, f"{STREAM_VERSION} for this release of reprl")}
"""Of the streams and the rule, in every recipe and receipt."""
CHOICE = f.record(
    Choice,
    {
        **dict.fromkeys(("best", "value", "baseline"), f.real(-math.inf)),
        "allowed": f.real(),
        "level": f.whole(0, 2),
        "attempt": f.whole(-1, MOST),
        "softened": f.whole(0, MOST),
    },
)


def shape_of(at: Fields) -> tuple[int, int]:
    """Return (H, S) of the tables in a receipt."""
    shape: tuple[int, int] = at.tiers.level.shape
    return shape


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


def _write_undecided(apart: NDArray[np.float64]) -> list[list[float]]:
    """The most disputed first."""
    cells = [[int(h), int(s), float(apart[h, s])] for h, s in np.argwhere(apart > 0.0)]
    return sorted(cells, key=lambda cell: -cell[2])


def _read_verdict(where: str, value: Any, at: Fields) -> Verdict:
    found = Verdict(**read_fields(where, value, _VERDICT, at))
    if max(found.agree, found.content) > found.teams:
        raise DocumentError(f"{where} must have at most {found.teams} teams, got {found.agree} and {found.content}")
    return found


_VERDICT = {
    "good": f.FLAG,
    "same": f.FLAG,
    "held_out": f.real(-math.inf),
    "crossed": f.FLAG,
    **dict.fromkeys(("teams", "agree", "content"), f.whole(0, MOST)),
    "apart": Kind(_read_undecided, _write_undecided),
}
VERDICT = Kind(_read_verdict, lambda found: write_fields(found, _VERDICT))
_PROMISE = {"status": f.choice(STATUSES), "risk": f.optional(f.real(0.0, 1.0)), "source": f.printable()}
_GUARANTEE = {
    "quality": f.ANYTHING,
    "same": f.ANYTHING,
    "epsilon": f.real(),
    "share": f.optional(f.real(0.0, 1.0)),
    "assumed": f.printable(empty=True),
}


def _write_promise(promise: Promise) -> dict[str, Any]:
    risk = None if promise.status == "none" else float(promise.risk)
    return {"status": promise.status, "risk": risk, "source": promise.source}


def _read_promise(where: str, value: Any) -> Promise:
    found = read_fields(where, value, _PROMISE)
    if (found["risk"] is None) != (found["status"] == "none"):
        allowed = "null exactly where nothing is promised"
        raise DocumentError(f"{where}.risk must be {allowed}, got {quote(found['risk'])}")
    return Promise(**{**found, "risk": 1.0 if found["risk"] is None else found["risk"]})


def write_guarantee(guarantee: Guarantee) -> dict[str, Any]:
    """Return both promises in JSON's types; where nothing is promised, there is no figure."""
    return {
        "quality": _write_promise(guarantee.quality),
        "same": _write_promise(guarantee.same),
        "epsilon": float(guarantee.epsilon),
        "share": None if guarantee.share is None else float(guarantee.share),
        "assumed": guarantee.assumed,
    }


def read_guarantee(where: str, value: Any) -> Guarantee:
    """Read what ``write_guarantee`` wrote."""
    found = read_fields(where, value, _GUARANTEE)
    for name in ("quality", "same"):
        found[name] = _read_promise(f"{where}.{name}", found[name])
    with naming("receipt "):
        return Guarantee(**found)


GUARANTEE = Kind(lambda where, value, at: read_guarantee(where, value), write_guarantee)
