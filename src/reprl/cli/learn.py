"""reprl learn: one run."""

from __future__ import annotations

import shlex
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from reprl.cli import arguments as args
from reprl.cli.answer import Answer, progress_wanted
from reprl.cli.outcome import describe_outcome, exit_code, is_undecided, outcome_rows

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray
    from rich.console import Console

    from reprl.artifacts.recipe import Recipe
    from reprl.learning.learner import LearnResult
    from reprl.mdp.gymnasium.model import GymnasiumModel
    from reprl.mdp.tabular import TabularMDP


def learn(
    env: args.Env,
    horizon: args.Horizon = None,
    reward_range: args.RewardRange = None,
    epsilon: args.Epsilon = None,
    rho: args.Rho = None,
    delta: args.Delta = None,
    access: args.Access = None,
    rule: args.Rule = None,
    preference: args.Preference = None,
    constants: args.Constants = None,
    shared_seed: args.SharedSeed = None,
    data_seed: args.DataSeed = None,
    out: args.Out = None,
    force: args.Force = False,
    option: args.Options = None,
    env_option: args.EnvOptions = None,
    max_samples: args.MaxSamples = None,
    certify: args.Certify = False,
    workers: args.Workers = None,
    json: args.Json = False,
) -> Answer:
    """Learn a policy once, and say what to publish.

    The [bold]shared seed[/bold] is public: every run that uses it, on its own data, is likely to end in the same
    policy. The [bold]data seed[/bold] is private and fresh in every run; it only serves to repeat this very run.

    Exit code 1 and "undecided" if the samples ran out before the run was sure; then nothing is promised. With
    --certify it goes on until its own data prove the policy; without a proof at the end, exit code 1 as well.

    reprl learn gridworld-v0 --horizon 6 --shared-seed 7 --out run

    reprl learn maintenance-v0 --preference "run,service" --access generative

    reprl learn gridworld-v0 --rule sampled -o coupling=joint
    """
    given = {"epsilon": epsilon, "rho": rho, "delta": delta, "access": access}
    given |= {"rule": rule, "preference": preference, "constants": constants}
    options = args.learn_options(given, option)
    world, recipe = args.plan_recipe(env, horizon, env_option, reward_range, options, shared_seed)
    result = run_recipe(
        recipe, world, out, force, data_seed=data_seed, max_samples=max_samples, workers=workers, certify=certify
    )
    again = f" --env {shlex.quote(env)}" + "".join(f" --env-option {shlex.quote(pair)}" for pair in env_option or ())
    if reward_range is not None:
        again += f" --reward-range {reward_range[0]} {reward_range[1]}"
    own = "" if recipe.environment.id else again
    document = describe_run(result, out)
    return Answer(document, lambda console: _show(console, result, world, out, own), exit_code(result))


def run_recipe(
    recipe: Recipe,
    world: TabularMDP | GymnasiumModel,
    out: Path | None,
    force: bool,
    *,
    data_seed: int | None,
    max_samples: int | None,
    workers: int | None,
    afresh: bool = False,
    certify: bool = False,
) -> LearnResult:
    """Run a recipe, and write the run to a folder that was reserved before the work began."""
    from reprl.artifacts.folder import open_folder

    with ExitStack() as stack:
        folder = None if out is None else stack.enter_context(open_folder(out, recipe, force=force))
        result = recipe.learn(
            env=world,
            data_seed=data_seed,
            max_samples=max_samples,
            workers=args.count_workers(workers),
            progress=progress_wanted(),
            afresh=afresh,
            certify=certify,
        )
        if folder is not None:
            folder.write(result)
    return result


def describe_run(result: LearnResult, out: Path | None) -> dict[str, Any]:
    """Return a run as a JSON document."""
    receipt = result.receipt.as_dict()
    return {
        "fingerprint": result.policy.fingerprint,
        "samples": result.samples,
        "episodes": result.episodes,
        **describe_outcome(result, result.environment),
        "shared_seed": result.shared_seed,
        "data_seed": result.data_seed,
        "out": None if out is None else str(out),
        "recipe": result.recipe.as_dict(),
        "recipe_digest": result.recipe.digest,
        "receipt": receipt,
        "actions": result.policy.actions.tolist(),
    }


def idle_cells(result: LearnResult, world: TabularMDP | GymnasiumModel) -> NDArray[np.bool_]:
    """(H, S): where a run decided nothing, because a state is ignored or the episode is over."""
    from reprl.mdp.gymnasium.model import GymnasiumModel

    idle = result.tiers.ignorable.copy()
    if isinstance(world, GymnasiumModel):
        idle[:, world.ended] = True
    return idle


def effort(result: LearnResult) -> str:
    """Samples, episodes and time of a run."""
    episodes = f" in {result.episodes:,} episodes" if result.episodes else ""
    return f"{result.samples:,}{episodes}, {result.seconds:.1f} s"


def _show(
    console: Console, result: LearnResult, world: TabularMDP | GymnasiumModel, out: Path | None, own: str
) -> None:
    from reprl.cli.draw import facts, print_policies
    from reprl.mdp.environment import describe

    names = describe(world)
    print_policies(console, [result.policy], names, [names.labels.name], idle_cells(result, world))
    recipe = f"{out}/recipe.json" if out is not None else "its recipe (--out DIR writes it)"
    rows: list[tuple[str, object]] = [
        ("fingerprint", result.policy.fingerprint),
        ("samples", effort(result)),
        *outcome_rows(result, names),
        ("publish", f"{recipe}, with it the shared seed {result.shared_seed}"),
        ("keep private", f"the data seed {result.data_seed}: a second team draws its own"),
    ]
    if out is not None:
        rows.append(("second team", f"reprl replicate {out}/recipe.json{own}"))
    console.print(facts(rows))
    if is_undecided(result):
        console.print("undecided: the samples ran out before this run was sure", style="yellow")
