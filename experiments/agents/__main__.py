"""python -m experiments.agents [--quick] [--only TEXT]: audit agents; write figure and table of docs/agents.md.

Seven audits, some ten minutes each on one core. Needs the extra `agents`; a measurement that is stored needs nothing.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from experiments.agents import measure, plan, present
from experiments.runner import Experiment, Job


def jobs(quick: bool) -> dict[str, Job]:
    """Every audit by the name it is stored under."""
    pairs, episodes, steps = (2, 3, 1024) if quick else (plan.PAIRS, plan.EPISODES, plan.STEPS)
    return {
        "PPO, shared randomness": partial(measure.agents, measure.shared_ppo, pairs, episodes, steps),
        "PPO, seeds of its own": partial(measure.agents, measure.private_ppo, pairs, episodes, steps),
        "reprl's table": partial(measure.tables, pairs, episodes),
        **{
            name: partial(
                measure.baseline, learner, min(pairs, plan.BASELINE_PAIRS), episodes, 4_000 if quick else most
            )
            for name, (learner, most) in plan.BASELINES.items()
        },
    }


def head(quick: bool) -> dict[str, Any]:
    """What the stored data were measured with."""
    return {"quick": quick, "ppo": plan.PPO, "steps": plan.STEPS, "table": plan.TABLE, "seed": plan.SEED}


EXPERIMENT = Experiment(
    name="agents",
    page="agents.md",
    jobs=jobs,
    head=head,
    draw=present.draw,
    tables=present.tables,
    marks=("<!-- figures: python -m experiments.agents -->", "<!-- end of figures -->"),
    extra="agents",
    needs=("torch", "stable_baselines3"),
)

if __name__ == "__main__":
    EXPERIMENT.main(None, __doc__)
