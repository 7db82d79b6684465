"""open_source: the DataSource that an access asks for. Whoever holds a source need not know which one it is."""

from __future__ import annotations

from typing import Any, NamedTuple

from reprl.errors import InputError
from reprl.execution.pool import WorkerPool
from reprl.execution.settings import Progress
from reprl.sources.exploration import AdaptiveEpisodes, PlannedEpisodes
from reprl.sources.parallel import ParallelCalls
from reprl.sources.source import DataSource, TableSamples


class Proof(NamedTuple):
    """How data are gathered for a certificate."""

    skipped: int
    """Rounds without an interim analysis."""
    halfway: int
    """Parallel calls from which on there is also one half way between two doublings."""


def open_source(
    model: Any,
    access: str,
    pool: WorkerPool,
    *,
    pooled: bool,
    progress: Progress | None = None,
    proof: Proof | None = None,
) -> DataSource[TableSamples]:
    """Return a model as a DataSource.

    access is "generative" for parallel calls, "episodic" for episodes; pooled says that a sample counts at every step,
    proof how a certificate wants data.
    """
    if access == "generative":
        return ParallelCalls(sampled_model(model, access, pooled=pooled), None if proof is None else proof.halfway)
    adaptive = AdaptiveEpisodes(model, pool, pooled=pooled, progress=progress)
    return adaptive if proof is None else PlannedEpisodes(adaptive, proof.skipped)


def sampled_model(model: Any, access: str, *, pooled: bool) -> Any:
    """Return what is sampled: the model, or, where calls are pooled, the one that draws once for all steps."""
    if access == "episodic" or not pooled:
        return model
    if getattr(model, "pooled", None) is None:
        raise InputError(f"stationary must be left out for a model that has no `pooled` sampling, got True for {model}")
    return model.pooled


def unit_of(model: Any, access: str, *, pooled: bool = False) -> tuple[int, str]:
    """Return what the smallest piece of data costs, in samples, and its name."""
    if access == "generative":
        return int(sampled_model(model, access, pooled=pooled).samples_per_call), "one parallel call"
    return int(model.samples_per_episode), "one episode"
