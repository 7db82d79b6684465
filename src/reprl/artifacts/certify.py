"""Certificates of runs on disk: made from what a folder keeps, or checked without trust in who made them."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from reprl.artifacts.choices import certificate_document
from reprl.artifacts.folder import COUNTS, StoredRun, find_file, load_run
from reprl.artifacts.receipt import Receipt
from reprl.assurance.certificate import Certificate, CertificateData, certificate_data_of
from reprl.errors import DocumentError, InputError
from reprl.learning.certification import certify_run, check_apart
from reprl.mdp.dynamics import Data
from reprl.sources.access import WAYS


def certify_folder(directory: str | os.PathLike[str], delta: float | None = None) -> Certificate:
    """Say what a stored run proves by its own data.

    δ, the probability of a false certificate, is None for the certificate's own, or the smaller of δ and ρ/2.
    """
    run = load_run(directory)
    settings = run.recipe.settings
    if settings.rule != "canonical":
        raise InputError(f"{directory} must hold a run of the rule 'canonical' to be certified, got {settings.rule!r}")
    if settings.agreement < 1.0:
        raise InputError(f"{directory} must hold a run of agreement 1 to be certified, got {settings.agreement:g}")
    if run.recipe.registration is not None:
        raise InputError(f"{directory} must hold a run without a registered candidate to be certified, got one with it")
    run.recipe.environment.criterion.require_horizon(f"{directory} must hold a run with a horizon to be certified")
    told = run.receipt.certified
    if told is None or told.certificate.source != "log":  # a log's rule for a certificate has no stationary candidates
        check_apart(settings, str(directory))
    certificate_data = _certificate_data(Path(directory), run)
    if delta is None and told is not None:
        delta = told.certificate.delta
    chosen = run.receipt.choice
    followed = (chosen.kind, chosen.candidate) if chosen is not None and chosen.followed else None
    given = settings, certificate_data, run.recipe.shared_seed, run.policy
    return certify_run(*given, delta, followed=followed, samples=run.receipt.samples)


def _certificate_data(folder: Path, run: StoredRun) -> CertificateData:
    """Return the data of a folder, if they are its run's."""
    path = find_file(folder, COUNTS)
    if not path.is_file():
        raise DocumentError(f"{folder} must hold its counts, {COUNTS}, to be certified; got a run without them")
    data = Data.load(path)
    told = run.receipt.certified
    if told is not None:
        if told.data != data.digest:
            raise DocumentError(
                f"{path} must be the receipt's data, with SHA-256 {told.data[:12]}…, got {data.digest[:12]}…"
            )
        found = told.certificate
        return CertificateData(data, found.source, found.round, found.fixed_start)
    visits = data.counts.visits.sum(axis=2)
    if visits.shape != run.receipt.visits.shape or not np.array_equal(visits, run.receipt.visits):
        raise DocumentError(f"{path} must be the counts of this run, with the visits in its receipt; got others")
    return certificate_data_of(data, WAYS[run.recipe.settings.access].evidence)


def check_certificate(
    receipt: str | os.PathLike[str], counts: str | os.PathLike[str]
) -> tuple[Certificate, Certificate, list[str]]:
    """Compute a receipt's certificate again from counts.

    Returns:
        What the receipt states, what the counts prove, and the names of the fields in which the two differ; a
        forecast of further samples is not compared.

    Guarantee:
        Nothing but the counts, the shared seed, ε, the preference and δ enter the result: no file of the learner's.
    """
    record = Receipt.load(receipt)
    if record.rule != "canonical":
        raise InputError(f"{receipt} must be of the rule 'canonical' to have a certificate, got {record.rule!r}")
    if record.certified is None:
        raise InputError(f"{receipt} must hold a certificate, got one without: learn with --certify")
    told = record.certified.certificate
    found = record.certified.check(Data.load(counts))
    stated, computed = certificate_document(told), certificate_document(found)
    differences = [name for name in stated if name != "more" and stated[name] != computed[name]]
    if told.proven and told.fingerprint != record.fingerprint:
        differences.append("fingerprint")
    return told, found, differences
