"""Rival learners behind one protocol: a callable from (model, shared key) to a policy."""

from reprl.peers.planning import empirical_values as empirical_values
from reprl.peers.planning import greedy_policy as greedy_policy
from reprl.peers.registry import LearnerEntry as LearnerEntry
from reprl.peers.registry import Rival as Rival
from reprl.peers.registry import learners as learners
from reprl.peers.registry import make_learner as make_learner
