"""The paper, one module for each algorithm, named as printed (docs/paper-map.md)."""

from reprl.paper.planner import Plan as Plan
from reprl.paper.planner import plan as plan
