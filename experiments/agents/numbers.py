"""Numbers of its pages, looked up in the stored data of experiments.agents and in the code."""

from __future__ import annotations

import math

from experiments.stored import LookUp, code, default, percent, stored
from reprl.auditing.agents import audit_agents

NUMBERS: dict[str, dict[str, LookUp]] = {
    "docs/agents.md": {
        "one-within-range": lambda: [percent(default(audit_agents, "closeness"))],
        "cut-into-samples": lambda: [
            str(math.prod(code("experiments.agents.plan.BINS"))),
            str(stored("agents")["table"]["horizon"]),
            f"{stored('agents')['table']['max_samples']:,}",
        ],
        "ruler-returns-steps": lambda: [str(stored("agents")["table"]["horizon"])],
    },
}
