"""reprl audit-agents: how often two trainings lead to different actions, for agents without tables."""

from __future__ import annotations

from typing import Any

from reprl.cli.answer import Answer, evidence_answer, progress_wanted
from reprl.cli.options import ENV, HORIZON, OPTION, REWARD_RANGE, SETTING, Evidence, option, read_pairs


def audit_agents(
    env: str = ENV,
    *,
    learner: str = option("file.py:name of a function train(env), or a learner.", default=..., metavar="FILE.py:NAME"),
    pairs: int = option("Pairs of trainings. Default 10.", "-n", default=10),
    horizon: int | None = HORIZON,
    reward_range: tuple[float, float] | None = REWARD_RANGE,
    rho: float | None = SETTING,
    gamma: float | None = option("Accepted share of states with different actions. Default 0.05."),
    level: float | None = option("Probability of rejecting a learner for which (ρ, γ) holds. Default 0.05."),
    episodes: int | None = option("Evaluation episodes of each agent. Default 20."),
    evidence: Evidence,
    workers: int = option("Number of processes; results do not depend on it. Default 1.", default=1),
    option: list[str] | None = OPTION,
) -> Answer:
    """Train agents in pairs with one shared seed and independent data, and measure how often the two act differently.

    This measures approximate replicability (arXiv:2510.20200), not equality of policies as 'reprl audit' does. Exit
    code 1: it is rejected that at most a share ρ of pairs differ in more than a share γ of the states they visit.

    reprl audit-agents gym:CartPole-v1 --learner ppo.py:train --pairs 10 --out agents

    If --out names a folder, every finished pair is kept there, and the same command continues.
    """
    from reprl.auditing.agents import audit_agents as run_audit
    from reprl.cli.environment import named_learner, names_object, read_object
    from reprl.mdp.catalogue import PREFIX

    asked: dict[str, Any] = {"rho": rho, "gamma": gamma, "level": level, "episodes": episodes, "seed": evidence.seed}
    asked |= {"horizon": horizon, "reward_range": reward_range}
    options = {name: value for name, value in asked.items() if value is not None} | read_pairs("--option", option)
    with evidence.open("agents.json") as (save, kept):
        own = not env.startswith(PREFIX) and names_object(env)
        subject, place = named_learner(learner), read_object("ENV", env) if own else env
        how: dict[str, Any] = {"workers": workers, "checkpoint": kept, "progress": progress_wanted()}
        found = run_audit(place, subject, pairs, **how, **options)
        unsaved = save(found.to_json())
    return evidence_answer(found, unsaved)
