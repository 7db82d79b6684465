"""python -m experiments.price.episodes --out FILE: do the weaker promises hold where samples come by episodes?

Generated and quiet worlds of seeds that nothing was tuned on, and the exact MDPs of three black boxes, which have
strict pairs too; pairs as in experiments.price. A candidate is not registered for quiet worlds, on some of which a
pilot that saw no rare event refuses to choose.
"""

from __future__ import annotations

from experiments.defaults.worlds import WORLDS
from experiments.pairs import by_case, chunks, count, measure_jobs, read_options
from experiments.price.boxes import two_queues
from experiments.price.measure import GROUPS, Case
from experiments.price.worlds import generated
from experiments.quiet.worlds import NAMED, drawn
from experiments.runner import Job

FIRST, EACH = 9000, 4
"""Seeds of the generated worlds of each kind."""
QUIET = 9100, 16
"""The first seed of random quiet worlds, and how many there are."""
LIMIT = 2**23
NO_CANDIDATE = ("queue 9000", "queue 9002", "queue 9003")
"""Worlds on which many pilots refuse to choose."""
BOXES = {"two queues H=15": two_queues, **{name: WORLDS[name].build for name in ("shop H=10", "inventory 30×10 H=20")}}
MORE = 2**28
"""Limit of a run on the MDP of a box."""


def cases() -> list[Case]:
    worlds = {f"generated/{name}": build for name, build in generated(FIRST, EACH).items()}
    quiet = {f"quiet/{name}": build for name, build in NAMED.items()}
    quiet |= {f"quiet/{name}": build for name, build in drawn(*QUIET).items()}
    found = [("agreement", name, build) for name, build in (worlds | quiet).items()]
    found += [("registered", name, build) for name, build in worlds.items() if not name.endswith(NO_CANDIDATE)]
    cases = [Case(group, name, build, limit=LIMIT, access="episodic") for group, name, build in found]
    boxes = [(group, name, build) for group in GROUPS for name, build in BOXES.items()]
    return cases + [Case(group, f"box/{name}", build, limit=MORE, access="episodic") for group, name, build in boxes]


def main() -> None:
    """Measure, store, print."""
    options = read_options("price", __doc__, pairs=10, chunk=5, more=lambda parser: None)
    jobs: dict[str, Job] = {}
    for case in cases():
        jobs |= chunks(case, options.pairs, options.chunk)
    data = measure_jobs(options, {"experiment": "promises by episodes"}, jobs, lambda name: 2.0 * options.chunk)
    for group in GROUPS:
        found = {name: one for name, one in by_case(data["measured"]).items() if name.startswith(group)}
        seen = [count(one) for one in found.values()]
        apart, missed = sum(one.apart.failures for one in seen), sum(one.missed.failures for one in seen)
        print(f"{group}: {len(seen)} worlds, {apart} of {sum(one.apart.trials for one in seen)} pairs broken, ", end="")
        print(f"{missed} of {sum(one.missed.trials for one in seen)} runs lost more, ", end="")
        print(f"{sum(one.rejected for one in seen)} rejected")


if __name__ == "__main__":
    main()
