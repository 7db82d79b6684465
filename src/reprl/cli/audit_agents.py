"""reprl audit-agents: how far apart two trainings act, for agents that are no tables."""

from __future__ import annotations

from typing import Annotated, Any

from reprl.cli import arguments as args
from reprl.cli.answer import BAD_INPUT, DIFFERENT, FINE, Answer, progress_wanted
from reprl.cli.audit import Results, Seed


def audit_agents(
    env: args.Env,
    learner: Annotated[
        str,
        args.option("--learner", help="file.py:name of a function train(env), or a learner.", metavar="FILE.py:NAME"),
    ],
    pairs: Annotated[int, args.option("--pairs", "-n", help="Pairs of trainings. Default 10.", kind=args.whole)] = 10,
    horizon: args.Horizon = None,
    reward_range: args.RewardRange = None,
    rho: args.Rho = None,
    gamma: Annotated[
        float | None,
        args.option("--gamma", help="Accepted share of states acted in differently. Default 0.05.", kind=args.real),
    ] = None,
    level: Annotated[
        float | None,
        args.option("--level", help="Chance of rejecting a learner that keeps (ρ, γ). Default 0.05.", kind=args.real),
    ] = None,
    episodes: Annotated[
        int | None,
        args.option("--episodes", help="Evaluation episodes of each agent. Default 20.", kind=args.whole),
    ] = None,
    seed: Seed = None,
    out: Results = None,
    option: args.Options = None,
    json: args.Json = False,
) -> Answer:
    """Train agents in pairs, one shared seed each and independent data, and measure how often the two act differently.

    This is approximate replicability (arXiv:2510.20200): not equality of policies, which 'reprl audit' measures. Exit
    code 1 if the evidence rejects that at most a share ρ of pairs differ in more than γ of the states they meet.

    reprl audit-agents gym:CartPole-v1 --learner ppo.py:train --pairs 10 --out agents.json
    """
    from reprl.auditing.agents import audit_agents as run_audit
    from reprl.cli.environment import names_object, read_object
    from reprl.mdp.catalogue import PREFIX

    asked = {"rho": rho, "gamma": gamma, "level": level, "episodes": episodes, "seed": seed, "horizon": horizon}
    given: dict[str, Any] = {name: value for name, value in asked.items() if value is not None}
    given |= {"reward_range": reward_range, "progress": progress_wanted(), **args.read_pairs("--option", option)}
    with args.open_results(out, "agents.json") as (save, _):
        subject = read_object("--learner", learner) if names_object(learner) else learner
        own = not env.startswith(PREFIX) and names_object(env)
        found = run_audit(read_object("ENV", env) if own else env, subject, pairs, **given)
        unsaved = save(found.to_json())
    code = BAD_INPUT if unsaved else DIFFERENT if found.verdict == "rejected" else FINE
    return Answer(found.to_dict(), lambda console: console.print(found), code, unsaved)
