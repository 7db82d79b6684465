"""python -m website [--out FOLDER]: put the sources together, then let Sphinx build them; every warning is an error."""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path

from website.pages import ROOT, assemble


def main(argv: list[str] | None = None) -> int:
    """Build the site; return Sphinx's exit code."""
    parser = argparse.ArgumentParser(prog="website", description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "out" / "site", help="folder for the site")
    options = parser.parse_args(argv)
    from sphinx.cmd.build import build_main

    source, built = options.out / "source", options.out / "html"
    for old in (source, built):
        shutil.rmtree(old, ignore_errors=True)
    assemble(source)
    config = str(Path(__file__).parent)
    status = build_main(
        ["-q", "-E", "-W", "--keep-going", "-c", config, "-d", f"{source}.cache", str(source), str(built)]
    )
    if status == 0:
        print(f"wrote {built / 'index.html'}")
    return status


if __name__ == "__main__":
    sys.exit(main())
