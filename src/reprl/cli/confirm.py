"""reprl confirm: is a published policy worth what it claims, on my own data?"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reprl.cli.answer import BAD_INPUT, DIFFERENT, FINE, Answer, progress_wanted
from reprl.cli.options import (
    ALLOW,
    DATA_SEED,
    ENV_OPTION,
    HORIZON,
    REWARD_RANGE,
    SETTING,
    LogFile,
    Work,
    argument,
    count_workers,
    given,
    open_out,
    option,
    read_pairs,
    refuse,
)
from reprl.errors import InputError, quote

if TYPE_CHECKING:
    from reprl.artifacts.confirm_quality import QualityConfirmation
    from reprl.artifacts.confirmation import Confirmation

CONFIRMATION, PAGE, TASKS = "confirmation.json", "confirmation.html", "tasks"


def confirm(
    policy: str = argument("POLICY", "A run folder, recipe.json, policy.json, or file.py:name of something that acts."),
    *,
    target: float | None = option("The return L to exceed, in reward units: certified.", "-L", metavar="L"),
    quality: float | None = option(
        "Instead of a target: the share of the gain over the baseline that the policy earns at least: rehearsed."
    ),
    min_probability: float | None = SETTING,
    delta: float | None = option(
        "Probability that the answer is wrong. Default 0.05 with a target, 0.1 with a quality."
    ),
    env: str | None = option("Your environment: an id, gym:ID or file.py:name. Default: the recipe's.", metavar="ENV"),
    horizon: int | None = HORIZON,
    reward_range: tuple[float, float] | None = REWARD_RANGE,
    return_range: tuple[float, float] | None = option("Bounds of the return of an episode.", metavar="LOW HIGH"),
    env_option: list[str] | None = ENV_OPTION,
    allow: list[str] | None = ALLOW,
    data_seed: int | None = DATA_SEED,
    work: Work,
    logged: LogFile,
    out: Path | None = option(
        "Write the answer and a page here. The same command continues a test of a target.", metavar="DIR"
    ),
) -> Answer:
    """Judge a published policy by your own data: does it earn more than L, or does it have a quality?

    Exit code 0: confirmed. 1: refuted, or undecided when --max-samples (10,000,000 steps unless given) ran out. The
    policy must be fixed before these data.

    --target L: a test plays the policy until it is certain, but for probability δ, whether its expected return is above
    L. The policy may be a table, a network of Stable-Baselines3 or code. Returns must have bounds: those of the rewards
    and the horizon, or --return-range.

    --quality Q: data sets that are simulated from yours say whether the policy loses more than the rest of the gain of
    the best policy over the baseline. For environments and logs with a list of states.

    reprl confirm run --quality 0.9

    reprl confirm run --target 0.4

    reprl confirm ppo.py:agent --env gym:CartPole-v1 --target 475 --out second

    reprl confirm north --log south.csv --target 3.5
    """
    from reprl.artifacts.confirm import confirm as run
    from reprl.cli.environment import built

    if (target is None) == (quality is None):
        raise InputError(f"--target or --quality must be given, one of them, got {quote(target)} and {quote(quality)}")
    if quality is None:
        refuse("come with --quality", min_probability=min_probability)
    asked: dict[str, Any] = {"target": target, "quality": quality, "delta": delta}
    asked |= {} if min_probability is None else {"min_probability": min_probability}
    if logged.log is not None:
        refuse("be left out with --log", work, env=env, horizon=horizon, reward_range=reward_range, allow=allow)
        refuse("be left out with --log", return_range=return_range, data_seed=data_seed, env_option=env_option)
        return _answer(out, lambda: run(_named("POLICY", policy), log=logged.log, columns=logged.columns(), **asked))
    refuse("come with --log", column=logged.column)
    asked |= {"horizon": horizon, "reward_range": reward_range, "return_range": return_range, "allow": allow or ()}
    asked |= {"data_seed": data_seed, "workers": count_workers(work.workers), "progress": progress_wanted()}
    asked |= {name: value for name, value in given(work).items() if name != "workers"}
    asked["checkpoint"] = None if out is None or quality is not None else out / TASKS
    place = None if env is None else _named("ENV", env)
    options = read_pairs("--env-option", env_option)
    if place is not None and not isinstance(place, str):
        place, options = built(place, horizon, options), {}
        asked["horizon"] = None if horizon == getattr(place, "horizon", None) else horizon
    return _answer(out, lambda: run(_named("POLICY", policy), place, **asked, **options))


def _named(what: str, name: str) -> Any:
    """The object that file.py:name names, or the name itself: a path or an id."""
    from reprl.cli.environment import names_object, read_object
    from reprl.mdp.catalogue import PREFIX

    return read_object(what, name) if not name.startswith(PREFIX) and names_object(name) else name


def _answer(out: Path | None, run: Callable[[], Confirmation | QualityConfirmation]) -> Answer:
    from reprl.report.page import render_page
    from reprl.report.records import summarize
    from reprl.storage.checkpoints import discard

    places = (None, None) if out is None else (out / CONFIRMATION, out / PAGE)
    with open_out(places[0]) as save, open_out(places[1]) as save_page:
        found = run()
        unsaved = save(found.to_json()) or save_page(render_page(summarize(found)))
    if out is not None and not unsaved and found.verdict != "undecided":
        discard(out / TASKS)
    code = BAD_INPUT if unsaved else FINE if found.verdict == "confirmed" else DIFFERENT
    return Answer(found.to_dict(), lambda console: console.print(found), code, unsaved)
