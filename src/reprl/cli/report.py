"""reprl report: one self-contained HTML page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from reprl.cli import arguments as args
from reprl.cli.answer import Answer


def report(
    source: Annotated[
        Path,
        typer.Argument(metavar="SOURCE", help="A run folder, an audit or a comparison.", show_default=False),
    ],
    second: Annotated[
        Path | None, typer.Argument(metavar="[SECOND]", help="Another run, to be compared.", show_default=False)
    ] = None,
    *,
    out: Annotated[Path, args.option("--out", "-o", help="Where to write the page.", metavar="FILE.html")],
    env: Annotated[
        str | None,
        args.option("--env", help="The environment, for values where no recipe has its id.", metavar="ENV"),
    ] = None,
    env_option: args.EnvOptions = None,
    reward_range: args.RewardRange = None,
    json: args.Json = False,
) -> Answer:
    """Write a run, two runs, an audit or a comparison as one HTML page that needs no network.

    reprl report run -o run.html

    reprl report first second -o both.html

    reprl report audit.json -o audit.html
    """
    from reprl.artifacts.folder import load_run
    from reprl.report import write_report

    place = load_run(source).recipe.environment if env is not None else None
    written = write_report(source, out, second=second, env=args.open_other(env, place, env_option, reward_range))
    document = {
        "source": str(source),
        "second": None if second is None else str(second),
        "out": str(written),
        "bytes": written.stat().st_size,
    }
    return Answer(document, lambda console: console.print(f"wrote {written}", soft_wrap=True))
