"""reprl verify --proof: what a finished run proves by its own data, and whether a certificate is true."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from reprl.cli.answer import DIFFERENT, FINE, Answer
from reprl.cli.options import group, option
from reprl.errors import InputError

if TYPE_CHECKING:
    from rich.console import Console

    from reprl.assurance.certificate import Certificate
    from reprl.mdp.labels import Labels


@group
class Proof:
    """What a run's own data prove."""

    proof: bool = option("Prove the policy of the run A by its own data.", default=False)
    counts: Path | None = option("The counts from which the certificate of the receipt A was made.", metavar="FILE")
    delta: float | None = option("Probability of a false certificate. Default: min(δ, ρ/2).")


def prove(path: Path, asked: Proof) -> Answer:
    """Prove the policy of a run folder by its counts, or compute the certificate of a receipt again from counts."""
    if asked.counts is not None:
        if asked.delta is not None:
            raise InputError(f"--delta must be left out with --counts, got {asked.delta}")
        return _check(path, asked.counts)
    if not path.is_dir():
        raise InputError(f"A must be a run folder, or a receipt with --counts FILE, got {path}")
    from reprl.artifacts.certify import certify_folder
    from reprl.artifacts.folder import load_run

    found, world = certify_folder(path, asked.delta), load_run(path).environment
    names = world.labels, world.scale
    document = {"run": str(path), **_document(found)}
    return Answer(document, lambda console: _show(console, found, [], *names), FINE if found.proven else DIFFERENT)


def _check(receipt: Path, counts: Path) -> Answer:
    from reprl.artifacts.certify import check_certificate
    from reprl.artifacts.receipt import Receipt

    told, found, differences = check_certificate(receipt, counts)
    true = not differences
    document = {
        "receipt": str(receipt),
        "counts": str(counts),
        "true": true,
        "differences": differences,
        "stated": _document(told),
        **_document(found),
    }
    remarks = ["the receipt states exactly this" if true else f"the receipt states another {', '.join(differences)}"]
    code = FINE if true and found.proven else DIFFERENT
    names = Receipt.load(receipt).labels
    return Answer(document, lambda console: _show(console, found, remarks, names, None), code)


def _document(certificate: Certificate) -> dict[str, Any]:
    from reprl.artifacts.choices import certificate_document

    return certificate_document(certificate)


def _show(console: Console, found: Certificate, remarks: list[str], names: Labels, scale: float | None) -> None:
    from reprl.execution.terminal import fact_rows
    from reprl.report.run import certificate_facts

    console.print(fact_rows([(fact.label, fact.text) for fact in certificate_facts(found, names, scale)]))
    for remark in remarks:
        console.print(remark, soft_wrap=True)
