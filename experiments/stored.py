"""Stored data of experiments and benchmarks, constants of the code, and how pages write numbers."""

from __future__ import annotations

import importlib
import inspect
import json
import math
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any

from experiments.__main__ import experiments

ROOT = Path(__file__).parent.parent


LookUp = Callable[[], list[str]]


WORDS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")


@cache
def stored(name: str, file: str = "data.json") -> Any:
    """Return the data of an experiment."""
    return json.loads((ROOT / "experiments" / name / file).read_text("utf-8"))


def measured(name: str, start: str = "", file: str = "data.json") -> dict[str, Any]:
    """Return the measurements of an experiment whose names begin so, by what follows."""
    found = stored(name, file)["measured"]
    return {key[len(start) :]: row for key, row in found.items() if key.startswith(start)}


def pairs_of(name: str, start: str) -> list[Any]:
    """Return the rows of all chunks of a measurement."""
    return [row for one in measured(name, start).values() for row in one["rows"]]


@cache
def kept(name: str) -> Any:
    """Return what a benchmark has stored."""
    return json.loads((ROOT / "benchmarks" / "data" / f"{name}.json").read_text("utf-8"))


@cache
def lines(name: str) -> list[str]:
    """Return what an experiment shows of its stored data."""
    (one,) = [one for one in experiments() if one.name == name]
    return one.tables(stored(name)).splitlines()


def table(name: str) -> list[list[str]]:
    """Return the rows of an experiment's tables."""
    found = [line for line in lines(name) if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in found]


def row(name: str, *starts: str) -> list[str]:
    """Return the only row of an experiment's tables whose first cells are these."""
    (found,) = [cells for cells in table(name) if tuple(cells[: len(starts)]) == starts]
    return found


def short(number: float, digits: int = 1) -> str:
    """1.5e6."""
    mantissa, _, exponent = f"{number:.{digits}e}".partition("e")
    return f"{mantissa}e{int(exponent)}"


def power(number: float, digits: int = 0) -> str:
    """2·10⁶, or 10⁶ by itself."""
    mantissa, _, exponent = f"{number:.{digits}e}".partition("e")
    ten = "10" + str(int(exponent)).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return ten if mantissa == "1" else f"{mantissa}·{ten}"


def tens(number: float, digits: int = 0) -> str:
    """10^6, as whole.md has it."""
    return f"10^{math.log10(number):.{digits}f}"


def percent(share: float, digits: int = 0) -> str:
    """22 %."""
    return f"{100 * share:.{digits}f} %"


def percents(shares: list[float]) -> list[str]:
    """12 to 13 %."""
    return [f"{100 * min(shares):.0f}", percent(max(shares))]


def span(found: Iterable[float], digits: int = 0) -> list[str]:
    """Return the least and the largest."""
    found = list(found)
    return [f"{min(found):.{digits}f}", f"{max(found):.{digits}f}"]


def fitted(fit: dict[str, Any]) -> str:
    """Return a slope with its interval."""
    return f"{fit['slope']:.2f} ({fit['low']:.2f} … {fit['high']:.2f})"


def code(path: str) -> Any:
    """Return a constant of the code by its dotted name."""
    module, _, name = path.rpartition(".")
    return getattr(importlib.import_module(module), name)


def constants(module: str, *names: str) -> list[str]:
    """Return constants of a module as they are written: 0.9, 24."""
    return [f"{code(f'reprl.{module}.{name}'):g}" for name in names]


def default(function: Callable[..., Any], name: str) -> Any:
    """Return the default of a parameter."""
    return inspect.signature(function).parameters[name].default


def phrases(values: list[str], *forms: str) -> list[str]:
    """Return values put into forms, one after another: 16 to 871."""
    left = iter(values)
    return [form.format(*(next(left) for _ in range(form.count("{}")))) for form in forms]
