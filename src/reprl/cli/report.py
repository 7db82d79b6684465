"""reprl report: one self-contained HTML page."""

from __future__ import annotations

from pathlib import Path

from reprl.cli.answer import Answer
from reprl.cli.options import OtherWorld, argument, option


def report(
    source: Path = argument("SOURCE", "A run folder, or the file or folder of an audit."),
    second: Path | None = argument("[SECOND]", "Another run, to be compared.", None),
    *,
    out: Path = option("The file to write.", "-o", default=..., metavar="FILE.html"),
    other: OtherWorld,
) -> Answer:
    """Write a run, two runs or an audit as one HTML page that needs no network.

    reprl report run -o run.html

    reprl report first second -o both.html

    reprl report audit.json -o audit.html
    """
    from reprl.artifacts.folder import load_run
    from reprl.report import write_report

    place = load_run(source).recipe.environment if other.env is not None else None
    written = write_report(source, out, second=second, env=other.open(place))
    document = {
        "source": str(source),
        "second": None if second is None else str(second),
        "out": str(written),
        "bytes": written.stat().st_size,
    }
    return Answer(document, lambda console: console.print(f"wrote {written}", soft_wrap=True))
