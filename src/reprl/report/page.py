"""Page: the frame of a report and its small parts; every text from outside is escaped here."""

from __future__ import annotations

import base64
import hashlib
import html
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from reprl.report.theme import script, stylesheet

_SUPERSCRIPT = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")


def escape(value: object) -> str:
    """Return a value as text that is safe in HTML, attributes included."""
    return html.escape(str(value), quote=True)


def number(value: float) -> str:
    """Return a number for people: grouped digits, powers of ten when very large or small."""
    if float(value).is_integer() and abs(value) < 1e12:
        return f"{int(value):,}"
    if value != 0 and (abs(value) >= 1e6 or abs(value) < 1e-3):
        digits, exponent = f"{value:.2e}".split("e")
        return f"{float(digits):g} × {power(int(exponent))}"
    return f"{value:.3g}"


def power(exponent: int) -> str:
    """Return a power of ten."""
    return "10" + str(exponent).translate(_SUPERSCRIPT)


def percent(share: float) -> str:
    """Return a share in per cent."""
    return f"{100 * share:.3g}\u00a0%"


def counted(count: float, noun: str) -> tuple[str, str]:
    """Return a count as value and remark of a tile: rounded where its digits would not fit."""
    if count < 1e9:
        return number(count), noun
    digits, exponent = f"{count:.2e}".split("e")
    return f"{digits} × {power(int(exponent))}", f"{int(count):,} {noun}".strip()


def badge(text: str, tone: str) -> str:
    """Return a coloured word; tone is good, warn, bad or plain."""
    return f'<span class="badge {tone}">{escape(text)}</span>'


def tiles(items: Iterable[tuple[str, str, str]]) -> str:
    """Return key figures: (name, value, remark), the value as HTML."""
    cells = "".join(
        f'<div class="tile"><dt>{escape(name)}</dt><dd>{value}</dd><dd class="remark">{escape(remark)}</dd></div>'
        for name, value, remark in items
    )
    return f'<dl class="tiles">{cells}</dl>'


def facts(title: str, items: Mapping[str, Any]) -> str:
    """Return a two-column list of settings."""
    rows = "".join(
        f"<div><dt>{escape(name)}</dt><dd{_face(value)}>{escape(_shown(value))}</dd></div>"
        for name, value in items.items()
    )
    body = f'<dl class="facts">{rows}</dl>' if rows else '<p class="caption">none</p>'
    return f'<section class="card"><h2>{escape(title)}</h2>{body}</section>'


def _face(value: Any) -> str:
    """Digests are set in fixed width."""
    return ' class="digest"' if isinstance(value, str) and len(value) == 64 and " " not in value else ""


def _shown(value: Any) -> str:
    if value is None:
        return "—"
    if type(value) is int:
        return f"{value:,}"
    return value if isinstance(value, str) else json.dumps(value, default=str, ensure_ascii=False)


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table that turns into cards on a phone; cells are HTML."""
    top = "".join(f'<th scope="col">{escape(name)}</th>' for name in head)
    body = "".join(f"<tr>{''.join(map(_cell, head, row))}</tr>" for row in rows)
    return f'<table class="stack"><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>'


def _cell(name: str, cell: str) -> str:
    blank = ' class="blank"' if cell == "—" else ""
    return f'<td data-name="{escape(name)}"{blank}><span>{cell}</span></td>'


def fingerprint(title: str, digest: str, remark: str) -> str:
    """Return a fingerprint: short for people, whole to copy, and as a pattern that the eye can compare."""
    bars = "".join(f'<path class="l{int(digit, 16) * 23 // 15}" d="M{i} .5h1"/>' for i, digit in enumerate(digest))
    groups = " ".join(f"<span>{digest[i : i + 8]}</span>" for i in range(0, len(digest), 8))
    return (
        f'<div class="fingerprint" id="fingerprint"><h2>{escape(title)}</h2><p class="short">{digest[:12]}</p>'
        f'<svg class="barcode blue" viewBox="0 0 64 1" preserveAspectRatio="none" role="img" '
        f'aria-label="pattern of the fingerprint">{bars}</svg>'
        f'<p class="whole">{groups}</p><p class="caption">{escape(remark)}</p>'
        f'<button type="button" class="js-only" data-copy="{digest}">Copy fingerprint</button></div>'
    )


def figure(name: str, title: str, caption: str, body: str, wide: bool = False) -> str:
    """Return a card with a figure; title and caption are plain text."""
    return (
        f'<figure class="card{" wide" if wide else ""}" id="figure-{name}" data-figure="{name}">'
        f'<figcaption><h3>{escape(title)}</h3><p class="caption">{escape(caption)}</p></figcaption>'
        f"<div>{body}</div></figure>"
    )


def promises(kept: Sequence[str], not_kept: Sequence[str]) -> str:
    """Return what is and what is not promised."""
    columns = "".join(
        f'<div><h3>{title}</h3><ul class="{tone}">{"".join(f"<li>{escape(line)}</li>" for line in lines)}</ul></div>'
        for title, tone, lines in (("It says", "yes", kept), ("It does not say", "no", not_kept))
    )
    return (
        f'<section class="card" id="promises"><h2>How to read this page</h2><div class="two">{columns}</div></section>'
    )


def page(kind: str, title: str, lead: str, body: str, data: Mapping[str, Any] | None = None) -> bytes:
    """Return a whole HTML document that loads nothing.

    The content security policy forbids every request and every script but the page's own, by its hash.
    """
    code = script()
    sha = base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()
    policy = (
        f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{sha}'; base-uri 'none'; form-action 'none'"
    )
    # "<" never reaches the document, so no text inside can close the element.
    cells = json.dumps(data, separators=(",", ":"), ensure_ascii=True).replace("<", "\\u003c") if data else "null"
    document = f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="color-scheme" content="light dark">
<title>{escape(title)} · reprl {escape(kind)}</title>
<style>
{stylesheet()}</style>
</head>
<body data-kind="{escape(kind)}">
<main>
<header><p class="kind">reprl · {escape(kind)}</p><h1>{escape(title)}</h1><p class="lead">{escape(lead)}</p></header>
{body}
<footer>One file, no network: this page loads nothing. Made by reprl.</footer>
</main>
<div id="tip" role="status" hidden></div>
<script type="application/json" id="cells">{cells}</script>
<script>{code}</script>
</body>
</html>
"""
    return document.encode()
