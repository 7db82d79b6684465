"""reprl: reinforcement learning whose policies replicate on fresh data."""

from reprl.coupling.correlated import correlated_sample as correlated_sample
from reprl.coupling.heavy_hitters import heavy_hitters as heavy_hitters
from reprl.coupling.rounding import round_vector as round_vector
from reprl.coupling.statistical_query import statistical_query as statistical_query
from reprl.errors import ReprlError as ReprlError
from reprl.guarantee import Guarantee as Guarantee
from reprl.mdp.access import EpisodicModel as EpisodicModel
from reprl.mdp.access import GenerativeModel as GenerativeModel
from reprl.mdp.counts import Counts as Counts
from reprl.mdp.policy import Policy as Policy
from reprl.mdp.tabular import Solution as Solution
from reprl.mdp.tabular import TabularMDP as TabularMDP
from reprl.randomness import STREAM_VERSION as STREAM_VERSION
from reprl.randomness import DataStream as DataStream
from reprl.randomness import SharedKey as SharedKey

__version__ = "0.1.0"
