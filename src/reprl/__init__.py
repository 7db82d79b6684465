"""reprl: reinforcement learning whose policies replicate on fresh data."""

from reprl.artifacts.receipt import Receipt as Receipt
from reprl.artifacts.recipe import Recipe as Recipe
from reprl.auditing.audit import audit as audit
from reprl.auditing.record import AuditReport as AuditReport
from reprl.bounds.planner import Plan as Plan
from reprl.bounds.planner import plan as plan
from reprl.coupling.correlated import correlated_sample as correlated_sample
from reprl.coupling.heavy_hitters import heavy_hitters as heavy_hitters
from reprl.coupling.rounding import round_vector as round_vector
from reprl.coupling.statistical_query import statistical_query as statistical_query
from reprl.decide.best_arm import Decision as Decision
from reprl.decide.best_arm import best_arm as best_arm
from reprl.decide.best_arm import multi_best_arm as multi_best_arm
from reprl.errors import ReprlError as ReprlError
from reprl.guarantee import Guarantee as Guarantee
from reprl.learning.boosting import boost as boost
from reprl.learning.check import check_learner as check_learner
from reprl.learning.learner import LearnResult as LearnResult
from reprl.learning.learner import learn as learn
from reprl.learning.learner import learner as learner
from reprl.mdp.access import EpisodicModel as EpisodicModel
from reprl.mdp.access import GenerativeModel as GenerativeModel
from reprl.mdp.catalogue import catalogue as catalogue
from reprl.mdp.catalogue import hard_instance as hard_instance
from reprl.mdp.catalogue import make as make
from reprl.mdp.counts import Counts as Counts
from reprl.mdp.gymnasium.model import GymnasiumModel as GymnasiumModel
from reprl.mdp.gymnasium.model import from_gymnasium as from_gymnasium
from reprl.mdp.gymnasium.model import to_gymnasium as to_gymnasium
from reprl.mdp.policy import Policy as Policy
from reprl.mdp.tabular import Labels as Labels
from reprl.mdp.tabular import Solution as Solution
from reprl.mdp.tabular import TabularMDP as TabularMDP
from reprl.mdp.tiers import Tiers as Tiers
from reprl.mdp.tiers import check_niceness as check_niceness
from reprl.randomness import STREAM_VERSION as STREAM_VERSION
from reprl.randomness import DataStream as DataStream
from reprl.randomness import SharedKey as SharedKey

__version__ = "0.1.0"
