"""reprl: reinforcement learning whose policies replicate on fresh data.

Public names are loaded when they are first used, so that ``import reprl`` and ``reprl --help`` cost next to nothing.
"""

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOMES = {
    "artifacts.folder": ("load_run", "save_run"),
    "artifacts.receipt": ("Receipt",),
    "artifacts.recipe": ("Recipe",),
    "auditing.agent_record": ("AgentReport",),
    "auditing.agents": ("audit_agents",),
    "auditing.audit": ("audit",),
    "auditing.compare": ("compare",),
    "auditing.comparison": ("Comparison",),
    "auditing.record": ("AuditReport",),
    "auditing.two_sample": ("same_world",),
    "lab.forecast": ("forecast",),
    "lab.planner": ("Plan", "plan"),
    "coupling.correlated": ("correlated_sample",),
    "coupling.heavy_hitters": ("heavy_hitters",),
    "coupling.rounding": ("round_vector",),
    "coupling.statistical_query": ("statistical_query",),
    "paper.rep_var_bandit": ("Decision", "best_arm", "multi_best_arm"),
    "errors": ("ReprlError",),
    "guarantee": ("Guarantee",),
    "learning.adapters": ("env_learner",),
    "learning.boost": ("boost",),
    "learning.check": ("check_learner",),
    "assurance.certificate": ("Certificate",),
    "learning.learner": ("LearnResult", "certify", "learn", "learner"),
    "learning.logged": ("learn_log",),
    "learning.settings": ("Settings",),
    "sources.episodes": ("EpisodicModel",),
    "sources.parallel": ("GenerativeModel",),
    "mdp.catalogue": ("catalogue", "hard_instance", "make"),
    "mdp.counts": ("Counts",),
    "sources.gymnasium.model": ("GymnasiumModel", "from_gymnasium", "to_gymnasium"),
    "mdp.policy": ("Policy",),
    "mdp.tabular": ("Labels", "Solution", "TabularMDP"),
    "mdp.tiers": ("Tiers", "check_niceness"),
    "lab.baselines.registry": ("learners",),
    "randomness": ("STREAM_VERSION", "DataStream", "SharedKey"),
    "report.card": ("card",),
    "report.write": ("write_report",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}
_ROOMS = (
    "artifacts",
    "assurance",
    "auditing",
    "canonical",
    "coupling",
    "execution",
    "lab",
    "learning",
    "mdp",
    "paper",
    "report",
    "sources",
    "storage",
)

__all__ = sorted(_HOME_OF)

if TYPE_CHECKING:  # the same names, for type checkers and editors
    from reprl import artifacts as artifacts
    from reprl import assurance as assurance
    from reprl import auditing as auditing
    from reprl import canonical as canonical
    from reprl import coupling as coupling
    from reprl import execution as execution
    from reprl import lab as lab
    from reprl import learning as learning
    from reprl import mdp as mdp
    from reprl import paper as paper
    from reprl import report as report
    from reprl import sources as sources
    from reprl import storage as storage
    from reprl.artifacts.folder import load_run as load_run
    from reprl.artifacts.folder import save_run as save_run
    from reprl.artifacts.receipt import Receipt as Receipt
    from reprl.artifacts.recipe import Recipe as Recipe
    from reprl.assurance.certificate import Certificate as Certificate
    from reprl.auditing.agent_record import AgentReport as AgentReport
    from reprl.auditing.agents import audit_agents as audit_agents
    from reprl.auditing.audit import audit as audit
    from reprl.auditing.compare import compare as compare
    from reprl.auditing.comparison import Comparison as Comparison
    from reprl.auditing.record import AuditReport as AuditReport
    from reprl.auditing.two_sample import same_world as same_world
    from reprl.coupling.correlated import correlated_sample as correlated_sample
    from reprl.coupling.heavy_hitters import heavy_hitters as heavy_hitters
    from reprl.coupling.rounding import round_vector as round_vector
    from reprl.coupling.statistical_query import statistical_query as statistical_query
    from reprl.errors import ReprlError as ReprlError
    from reprl.guarantee import Guarantee as Guarantee
    from reprl.lab.baselines.registry import learners as learners
    from reprl.lab.forecast import forecast as forecast
    from reprl.lab.planner import Plan as Plan
    from reprl.lab.planner import plan as plan
    from reprl.learning.adapters import env_learner as env_learner
    from reprl.learning.boost import boost as boost
    from reprl.learning.check import check_learner as check_learner
    from reprl.learning.learner import LearnResult as LearnResult
    from reprl.learning.learner import certify as certify
    from reprl.learning.learner import learn as learn
    from reprl.learning.learner import learner as learner
    from reprl.learning.logged import learn_log as learn_log
    from reprl.learning.settings import Settings as Settings
    from reprl.mdp.catalogue import catalogue as catalogue
    from reprl.mdp.catalogue import hard_instance as hard_instance
    from reprl.mdp.catalogue import make as make
    from reprl.mdp.counts import Counts as Counts
    from reprl.mdp.policy import Policy as Policy
    from reprl.mdp.tabular import Labels as Labels
    from reprl.mdp.tabular import Solution as Solution
    from reprl.mdp.tabular import TabularMDP as TabularMDP
    from reprl.mdp.tiers import Tiers as Tiers
    from reprl.mdp.tiers import check_niceness as check_niceness
    from reprl.paper.rep_var_bandit import Decision as Decision
    from reprl.paper.rep_var_bandit import best_arm as best_arm
    from reprl.paper.rep_var_bandit import multi_best_arm as multi_best_arm
    from reprl.randomness import STREAM_VERSION as STREAM_VERSION
    from reprl.randomness import DataStream as DataStream
    from reprl.randomness import SharedKey as SharedKey
    from reprl.report.card import card as card
    from reprl.report.write import write_report as write_report
    from reprl.sources.episodes import EpisodicModel as EpisodicModel
    from reprl.sources.gymnasium.model import GymnasiumModel as GymnasiumModel
    from reprl.sources.gymnasium.model import from_gymnasium as from_gymnasium
    from reprl.sources.gymnasium.model import to_gymnasium as to_gymnasium
    from reprl.sources.parallel import GenerativeModel as GenerativeModel
else:  # hidden from type checkers, which would take every name for one of ours

    def __getattr__(name: str) -> Any:
        """Load a public name, or a room, when it is first asked for."""
        if name in _ROOMS:
            return importlib.import_module(f"reprl.{name}")
        if name not in _HOME_OF:
            raise AttributeError(f"module 'reprl' has no attribute {name!r}")
        value = getattr(importlib.import_module(f"reprl.{_HOME_OF[name]}"), name)
        globals()[name] = value
        return value

    def __dir__() -> list[str]:
        """Every public name and room, loaded or not."""
        return sorted({*globals(), *_HOME_OF, *_ROOMS})
