"""reprl warm-up: compile what learning needs, before it is needed."""

from __future__ import annotations

import time

from reprl.cli.answer import Answer


def warm_up() -> Answer:
    """Compile the kernels of the default learner into the cache, for container images or before a demonstration.

    Later runs start at once. A new version of reprl or Numba, or another processor, compiles them again.

    reprl warm-up
    """
    from reprl.kernels import tell_compiling
    from reprl.learning.learner import learn

    fresh: list[bool] = []
    tell_compiling(lambda: fresh.append(True))
    began = time.perf_counter()
    for access in ("episodic", "generative"):
        for stationary in (True, False):
            learn("river-swim-v0", horizon=3, access=access, stationary=stationary, data_seed=0, max_samples=20_000)
    seconds = time.perf_counter() - began
    line = f"compiled and kept, {seconds:.1f} s" if fresh else "nothing to compile: the cache has all of it"
    return Answer({"compiled": bool(fresh), "seconds": seconds}, lambda console: console.print(line))
