"""reprl report: one self-contained HTML page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from reprl.cli import arguments as args
from reprl.cli.answer import Answer


def report(
    source: Annotated[
        Path, typer.Argument(metavar="DIR", help="A run folder, an audit or a comparison.", show_default=False)
    ],
    out: Annotated[Path, args.option("--out", "-o", help="Where to write the page.", metavar="FILE.html")],
    json: args.Json = False,
) -> Answer:
    """Write a run, an audit or a comparison as one HTML page that needs no network.

    reprl report run -o run.html

    reprl report audit.json -o audit.html
    """
    from reprl.report import write_report

    written = write_report(source, out)
    document = {"source": str(source), "out": str(written), "bytes": written.stat().st_size}
    return Answer(document, lambda console: console.print(f"wrote {written}", soft_wrap=True))
