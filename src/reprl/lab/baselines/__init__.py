"""Baselines that reprl is compared with: callables from (model, shared key) to a policy."""

from reprl.lab.baselines.boxes import box_learner as box_learner
from reprl.lab.baselines.boxes import box_learners as box_learners
from reprl.lab.baselines.registry import Baseline as Baseline
from reprl.lab.baselines.registry import LearnerEntry as LearnerEntry
from reprl.lab.baselines.registry import learners as learners
from reprl.lab.baselines.registry import make_learner as make_learner
from reprl.mdp.planning import empirical_values as empirical_values
from reprl.mdp.planning import greedy_policy as greedy_policy
