"""python -m experiments.enemies --out FILE: can a rehearsed promise be broken by worlds made against it?

Pairs of runs with one shared seed and independent data, as in experiments.quiet: on ties of best actions that differ in
noise, at which f itself jumps, and on worlds in which rare events or near-equal losses decide. --only takes a part of
the plan; a run that was stopped goes on where it was.
"""

from __future__ import annotations

from experiments.enemies import plan
from experiments.pairs import chunks, measure_jobs, read_options
from experiments.quiet.__main__ import table
from experiments.runner import Job


def main() -> None:
    """Measure, store, print."""
    options = read_options("enemies", __doc__, pairs=60, chunk=5, more=lambda parser: None)
    jobs: dict[str, Job] = {}
    for case in plan.cases():
        jobs |= chunks(case, options.pairs, options.chunk)
    data = measure_jobs(options, {"experiment": "enemies"}, jobs, lambda name: 2.0 * options.chunk)
    print(table(data["measured"]))


if __name__ == "__main__":
    main()
