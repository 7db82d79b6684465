"""Forgeries: documents with other values, names or shapes, sealed anew where a forger would; and damaged bytes."""

from __future__ import annotations

import copy
import json
import random
from typing import Any

from reprl.storage.documents import digest

_RAW = "@raw@"
"""Begins a text that is put into the file without its quotation marks."""
NUMBERS: tuple[Any, ...] = (
    *(0, 1, -1, 2, 7, 2**31, 2**53, 2**63 - 1, 2**63, 2**64, 2**100, 10**400, -(2**70), True, False),
    *(0.5, 1.0, -0.5, 5e-324, 1e-300, 1e300, 1.7e308, -1e308, -0.0, 0.1 + 0.2),
    *(f"{_RAW}{text}" for text in ("1e999", "-1e999", "NaN", "Infinity", "1e-400", "9" * 30, "1E+2", "-0")),
)
TEXTS: tuple[Any, ...] = (
    *(
        "",
        "a",
        "0",
        "none",
        "proven",
        "\x00",
        "\x1b[31mred",
        "\u202e",
        "é",
        "\U0001f600",
        "x" * 3000,
        "0" * 64,
        "f" * 64,
    ),
    *("soft", "paper", "<script>alert(1)</script>", "../../etc/passwd", "gym:no_such_module:Foo-v0", "\n\n"),
    *(f"{_RAW}{text}" for text in (r'"\ud800"', r'"\udc00\ud800"', r'"a\u0000"', '"', "'a'", "nul", "[", "}", ",")),
)
NESTS: tuple[Any, ...] = ([], {}, [[]], [None], [[1]], {"a": 1}, [1, 2, 3], [[0.5] * 3] * 3, [[]] * 50, None)
DEEP = f"{_RAW}{'[' * 3000}{']' * 3000}"


def forge(rng: random.Random, document: dict[str, Any]) -> dict[str, Any]:
    """Return a copy in which some values, names or shapes are others."""
    forged = copy.deepcopy(document)
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        parent, name = _place(rng, forged)
        if parent is None:
            continue
        action = rng.random()
        if action < 0.1:
            del parent[name]
        elif action < 0.2 and isinstance(parent, dict):
            parent[rng.choice(("x", "format", "", "__class__", str(name) + " "))] = parent[name]
        elif action < 0.25 and isinstance(parent, list):
            parent.insert(rng.randrange(len(parent) + 1), copy.deepcopy(parent[name]))
        else:
            parent[name] = _other(rng, parent[name])
    return forged


def _place(rng: random.Random, node: Any) -> tuple[Any, Any]:
    """A random place in a document, any depth as likely as another."""
    parent, name = None, None
    while isinstance(node, dict | list) and node:
        parent, name = node, rng.choice(list(node) if isinstance(node, dict) else range(len(node)))
        node = parent[name]
        if rng.random() < 0.3:
            break
    return parent, name


def _other(rng: random.Random, value: Any) -> Any:
    """Another value: often of the same kind, so that it passes the first checks."""
    pick = rng.random()
    if pick < 0.02:
        return DEEP
    if isinstance(value, bool | int | float) and pick < 0.75:
        if pick < 0.4 and not isinstance(value, bool) and abs(value) < 1e100:
            return rng.choice((value + 1, value - 1, value * 2, -value, value * 10**9, float(value), value / 3))
        return rng.choice(NUMBERS)
    if isinstance(value, str) and pick < 0.7:
        return rng.choice(TEXTS) if pick < 0.5 else value[: rng.randrange(len(value) + 1)]
    if isinstance(value, list) and pick < 0.6:
        return value[: rng.randrange(len(value) + 1)] if pick < 0.3 else value + value[-1:] * rng.choice((1, 1, 40))
    return copy.deepcopy(rng.choice((*NUMBERS, *TEXTS, *NESTS)))


def to_bytes(document: dict[str, Any]) -> bytes:
    """Write a forged document, raw texts without their quotation marks."""
    text = json.dumps(document)
    while (start := text.find(f'"{_RAW}')) >= 0:
        inner, end = json.decoder.scanstring(text, start + 1)  # type: ignore[attr-defined]
        text = text[:start] + inner.removeprefix(_RAW) + text[end:]
    return text.encode("utf-8", "surrogatepass")


def damage(rng: random.Random, data: bytes) -> bytes:
    """Return a file with flipped bits, a stretch cut out, doubled or written over, or its end missing."""
    bytes_ = bytearray(data)
    low, high = sorted(rng.randrange(len(data) + 1) for _ in range(2))
    high = min(high, low + rng.choice((1, 4, 64, len(data))))
    way = rng.randrange(5)
    if way == 0:
        for _ in range(rng.choice((1, 1, 2, 8))):
            bytes_[rng.randrange(len(bytes_))] ^= 1 << rng.randrange(8)
    elif way == 1:
        del bytes_[low:high]
    elif way == 2:
        bytes_[high:high] = bytes_[low:high]
    elif way == 3:
        bytes_[low:high] = rng.randbytes(rng.choice((1, 2, 16)))
    else:
        del bytes_[low:]
    return bytes(bytes_)


def reseal(document: dict[str, Any]) -> None:
    """Give a receipt the digest of what it says now."""
    body = {name: value for name, value in document.items() if name not in ("digest", "timings")}
    try:
        plain = json.loads(to_bytes(body), parse_constant=lambda name: 1 // 0)
        document["digest"] = digest(plain)
    except (ValueError, RecursionError, ZeroDivisionError, OverflowError):
        return
