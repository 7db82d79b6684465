"""reprl certify: what a finished run proves by its own data, and whether a certificate is true."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from reprl.cli.answer import DIFFERENT, FINE, Answer
from reprl.cli.options import argument, option
from reprl.errors import InputError

if TYPE_CHECKING:
    from rich.console import Console

    from reprl.assurance.certificate import Certificate
    from reprl.mdp.labels import Labels


def certify(
    run: Path | None = argument("[DIR]", "A run folder.", None),
    *,
    check: Path | None = option("A receipt whose certificate is computed again.", metavar="RECEIPT"),
    counts: Path | None = option("The counts that it was made from.", metavar="FILE"),
    delta: float | None = option("Probability of a false certificate. Default: min(δ, ρ/2)."),
) -> Answer:
    """Prove a run's policy by its own data, or check a certificate: exit code 0 if it is proven, 1 if not.

    Says what the counts in a run folder prove and, if that is not enough, about how many more samples a proof would
    take. With --check the certificate in a receipt is computed again from the counts, without the learner.

    reprl certify run

    reprl certify --check run/receipt.json --counts run/counts.bin
    """
    if check is not None:
        if run is not None or counts is None or delta is not None:
            raise InputError("--check must come with --counts FILE, and without a folder or --delta")
        return _check(check, counts)
    if run is None or counts is not None:
        raise InputError("certify must get a run folder, or --check RECEIPT with --counts FILE")
    from reprl.artifacts.certify import certify_folder
    from reprl.artifacts.folder import load_run

    found, world = certify_folder(run, delta), load_run(run).environment
    names = world.labels, world.scale
    document = {"run": str(run), **_document(found)}
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
