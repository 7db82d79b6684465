"""reprl sign: sign a receipt with a private key."""

from __future__ import annotations

from pathlib import Path

from reprl.cli.answer import Answer
from reprl.cli.options import argument, option
from reprl.errors import InputError


def sign(
    run: Path | None = argument("[DIR]", "A run folder.", None),
    *,
    key: Path | None = option("Your private key: ed25519, PEM.", metavar="FILE"),
    new_key: Path | None = option("Make a private key instead, and print its public key.", metavar="FILE"),
) -> Answer:
    """Sign the receipt of a run, so that edits are noticed.

    The digest of a receipt detects accidental changes only. A signature (signature.json) can be made with your private
    key only, and 'reprl verify' checks it. Publish the public key.

    reprl sign --new-key me.pem

    reprl sign run --key me.pem
    """
    from reprl.artifacts import signature

    if new_key is not None:
        if run is not None or key is not None:
            raise InputError("--new-key must be left alone: sign with --key FILE afterwards")
        public = signature.new_key(new_key)
        lines = [f"private key: {new_key} (keep it)", f"public key:  {public} (publish it)"]
        return Answer({"key": str(new_key), "public_key": public}, lambda console: _show(console, lines))
    if run is None or key is None:
        raise InputError("sign must get a run folder and --key FILE, or --new-key FILE")
    made = signature.sign_run(run, key)
    lines = [f"signed {run}/receipt.json, digest {made.receipt}", f"by the key {made.public_key}"]
    return Answer({"run": str(run), **made._asdict()}, lambda console: _show(console, lines))


def _show(console: object, lines: list[str]) -> None:
    for line in lines:
        console.print(line, soft_wrap=True)  # type: ignore[attr-defined]
