"""The public names of reprl: this list is what runs, what type checkers see and what editors complete."""

from .artifacts.confirm import confirm as confirm
from .artifacts.folder import load_run as load_run
from .artifacts.receipt import Receipt as Receipt
from .artifacts.recipe import Recipe as Recipe
from .artifacts.search import SearchReceipt as SearchReceipt
from .artifacts.search import SearchRecipe as SearchRecipe
from .artifacts.verify import verify as verify
from .auditing.audit import audit as audit
from .auditing.record import AuditReport as AuditReport
from .coupling.correlated import correlated_sample as correlated_sample
from .coupling.rounding import round_vector as round_vector
from .errors import ReprlError as ReprlError
from .guarantee import Guarantee as Guarantee
from .lab.baselines.registry import learners as learners
from .learning.check import check_learner as check_learner
from .learning.learner import learn as learn
from .learning.logged import learn_log as learn_log
from .learning.result import LearnResult as LearnResult
from .learning.search_result import SearchResult as SearchResult
from .learning.soft import choose as choose
from .mdp.catalogue import catalogue as catalogue
from .mdp.counts import Counts as Counts
from .mdp.labels import Labels as Labels
from .mdp.policy import Policy as Policy
from .mdp.tabular import TabularMDP as TabularMDP
from .randomness import SharedKey as SharedKey
from .report.write import write_report as write_report
from .sources.environment import make as make
from .sources.episodes import EpisodicModel as EpisodicModel
from .sources.gymnasium.model import GymnasiumModel as GymnasiumModel
from .sources.gymnasium.model import from_gymnasium as from_gymnasium
from .sources.gymnasium.model import to_gymnasium as to_gymnasium
from .sources.logs.check import check_log as check_log
from .sources.parallel import GenerativeModel as GenerativeModel

__version__: str
__all__: list[str]
