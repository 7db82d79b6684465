"""register: choose a candidate on pilot data and publish it in a recipe, before the data that ρ is about."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Unpack

from reprl.artifacts.recipe import Recipe
from reprl.assurance.rehearsal import Answer, Likeness, rehearse
from reprl.assurance.stopping import Budget
from reprl.assurance.unseen import add_phantoms
from reprl.canonical.bound import UNKNOWN, BoundRule
from reprl.canonical.registered import Firmest, Published, Registration, find_firmest, log_digest
from reprl.errors import InputError, PilotWarning, check_int, quote
from reprl.execution.progress import progress_bar
from reprl.execution.settings import Execution, Progress
from reprl.learning.baseline import resolve_baseline
from reprl.learning.canonical import gather_canonical
from reprl.learning.learner import check_options, limit_time, make_settings
from reprl.learning.logged import bind_log_rule, end_of, settle, specify
from reprl.learning.loop import Outcome, run_loop
from reprl.learning.search_opening import wants_search
from reprl.learning.settings import LearnOptions, Settings
from reprl.mdp.environment import Environment
from reprl.mdp.tabular import TabularMDP
from reprl.randomness import DataStream, SharedKey, fresh_seed
from reprl.sources.access import WAYS
from reprl.sources.environment import describe, fresh_model, open_environment
from reprl.sources.gymnasium.model import REWARD_STEP, GymnasiumModel
from reprl.sources.logs.source import LogSource
from reprl.sources.logs.spec import LogSpec
from reprl.sources.logs.tables import open_table

NOT_SAID = "not said"
"""Default for who chose a candidate."""
SURE = 1.0
"""Standard deviations that the candidate's loss on the pilot data must be below ε."""


def register(
    env: TabularMDP | GymnasiumModel | str | Any,
    *,
    pilot: int,
    by: str | None = None,
    horizon: int | None = None,
    discount: float | None = None,
    reward_range: tuple[float, float] | None = None,
    shared_seed: int | None = 0,
    data_seed: int | None = None,
    workers: int = 1,
    timeout: float | None = None,
    progress: bool | Progress = False,
    **options: Unpack[LearnOptions],
) -> Recipe:
    """Choose a candidate on pilot data, and return the recipe that publishes it.

    Every team then runs the recipe on fresh data, the first team too: ``reprl.learn(recipe)``, ``reprl replicate``.

    `pilot` is a number of samples, and `by` a name for the record. The data seed of the pilot is published, and no run
    of the recipe may use it. Other arguments are those of ``reprl.learn``; agreement must be 1, and a search is
    refused.

    Warns:
        PilotWarning: if simulated runs on half of the pilot's data would not all learn the candidate's policy, or would
            not know that its loss is small enough. Runs of such a recipe may need many more samples than the pilot had,
            or promise nothing.

    Guarantee:
        None: a pilot chooses and promises nothing. ρ of a run of the recipe is about any two runs that
        follow it on data of their own (docs/register.md, docs/proofs/agreement.md §4).

    Randomness:
        Data: streams of data_seed only. No shared draw enters the choice, but for those of logs and preferences.
    """
    if wants_search(env, None, options):
        raise InputError(f"env must have tables for a candidate to be registered, got {quote(env)}")
    check_options(options)
    world = open_environment(env, horizon, reward_range, discount)
    settings = _checked(make_settings(options, world).resolve_actions(world.labels.actions, world.n_actions))
    settings, key = resolve_baseline(settings, world), SharedKey(fresh_seed() if shared_seed is None else shared_seed)
    settings = settings.resolve_stationarity(world)
    seed = fresh_seed() if data_seed is None else check_int("data_seed", data_seed, 0, 2**64 - 1)
    with (
        fresh_model(world, settings.access, seed) as model,
        progress_bar(progress, "episodes") as tell,
    ):
        limit_time(model, timeout)
        way = WAYS[settings.access]
        unit = way.cost(model, pooled=settings.pooled)
        if check_int("pilot", pilot, 1) < unit:
            raise InputError(f"pilot must be at least {unit}, the samples of {way.unit}, got {pilot}")
        how = Execution(workers=check_int("workers", workers, 1, 1024), checkpoint=None, progress=tell)
        found = gather_canonical(model, key, settings, Budget(settings.asked), how, limit=pilot)
    settled = replace(found.settings, stationary=found.settings.pooled and not found.apart)
    place = describe(world)
    firmest = _choose(found.rule, found.outcome, settled, place, by_visits=way.plays)
    ledger = model.ledger
    made = Published(firmest.cells, _sign(firmest, by, ledger.samples, ledger.episodes)._replace(data_seed=seed))
    _doubt(found.rule, made, found.outcome, settled, place, seed)
    return Recipe.plan(place, settled, key.seed).register(made)


def register_log(
    log: Any,
    *,
    by: str | None = None,
    horizon: int | None = None,
    discount: float | None = None,
    columns: Mapping[str, str | None] | None = None,
    states: Sequence[Any] | None = None,
    actions: Sequence[Any] | None = None,
    reward_range: tuple[float, float] = (0.0, 1.0),
    reward_step: float = REWARD_STEP,
    support: float = LogSpec.support,
    reach: float = LogSpec.reach,
    allowed: Any = None,
    early_ends: str | None = None,
    done_at_limit: str | None = None,
    shared_seed: int | None = 0,
    **options: Unpack[LearnOptions],
) -> Recipe:
    """Choose a candidate on a pilot log, and return the recipe; no run of the recipe may read the same log.

    The arguments are those of ``reprl.learn_log``. Give all labels of states and actions: a label that the pilot
    lacks would be an error in another team's log.
    """
    check_options(options)
    end, table = end_of(horizon, discount), open_table(log, columns)
    world: dict[str, Any] = {"reward_range": reward_range, "reward_step": reward_step, "support": support}
    world |= {"early_ends": early_ends, "done_at_limit": done_at_limit, "reach": reach}
    tells_all = bool(discount or options.get("stationary"))
    spec = specify(table, states, actions, allowed=allowed, tells_all=tells_all, **end, **world)
    place = spec.environment(table.columns)
    settings = settle(_checked(make_settings(options, place)), spec)
    key = SharedKey(fresh_seed() if shared_seed is None else shared_seed)
    source = LogSource(table, spec, pooled=settings.pooled)
    rule = bind_log_rule(spec, key, settings)
    outcome = run_loop(source, rule, Budget(settings.asked))
    short = source.shortage(outcome.known)
    if short:
        raise InputError(f"log must be large enough for a pilot, got one that is too small: {short}")
    firmest = _choose(rule, outcome, settings, place, by_visits=True, noun="log")
    made = _sign(firmest, by, source.ledger.samples, source.ledger.episodes)
    published = Published(firmest.cells, made._replace(log=log_digest(source.data_seed)))
    _doubt(rule, published, outcome, settings, place, source.data_seed, noun="log")
    return Recipe.plan(place, settings, key.seed).register(published)


def _checked(settings: Settings) -> Settings:
    if settings.rule != "canonical":
        raise InputError(f"rule must be 'canonical' for a candidate to be registered, got {settings.rule!r}")
    if settings.agreement < 1.0:
        raise InputError(f"agreement must be 1 for a candidate to be registered, got {settings.agreement:g}")
    return settings


def _choose(
    rule: BoundRule, outcome: Outcome, settings: Settings, place: Environment, *, by_visits: bool, noun: str = "pilot"
) -> Firmest:
    """Return the candidate with the largest margin, or say why the pilot is too small to choose one."""
    model, choice = outcome.judgement.found.model, outcome.judgement.found.choice
    unknown, allowed = rule.reader.unknown(outcome.data), f"a loss of {place.scale * choice.epsilon:.3g} is allowed"
    if unknown > UNKNOWN * choice.epsilon:
        worth = f"could add {place.scale * unknown:.3g} to the value, and {allowed}"
        raise InputError(
            f"{noun} must be larger to choose a candidate, got one after which under-sampled cells {worth}"
        )
    if outcome.judgement.drift:
        raise InputError(
            f"{noun} must not contradict stationary dynamics, got one that does: {outcome.judgement.drift}"
        )
    practice = model.practice if rule.rule.baseline is None else None
    found = find_firmest(rule.rule, model.dynamics, practice, pooled=settings.pooled, by_visits=by_visits)
    if found is None:
        why = f"every candidate loses too much by its data, and {allowed}"
        raise InputError(f"{noun} must be larger to choose a candidate, got one after which {why}")
    return found


def _doubt(
    rule: BoundRule,
    published: Published,
    outcome: Outcome,
    settings: Settings,
    place: Environment,
    seed: int,
    noun: str = "pilot",
) -> None:
    """Warn if the pilot data do not decide the candidate's policy, or whether it loses too much.

    Randomness:
        Data streams (data seed, "rehearsal/pilot/…").
    """
    bound = BoundRule.bind(rule.rule, rule.reader, published)
    ours = bound.choose(outcome.data)
    values = bound.values(ours)

    def team(_: SharedKey | None, share: int, draw: int) -> Answer:
        found = bound.choose(add_phantoms(outcome.known.redraw(share, draw), values, draw, start=False))
        return Answer(found.policy, found.loss_of(ours.policy))

    likeness, stream = Likeness(ours.dynamics.occupancy, rule.reader.over), DataStream(seed, "rehearsal/pilot")
    asked = {"rho": settings.rho, "epsilon": math.inf, "stream": stream, "pairs": False}
    found, choice = rehearse(team, ours.policy, likeness=likeness, **asked), ours.choice  # type: ignore[arg-type]
    if not found.passed:
        why = f"only {found.agree} of {found.of} simulated runs on half of its data learn the candidate's policy"
    elif choice.loss + SURE * found.error >= choice.epsilon:
        lost, error, most = (place.scale * x for x in (choice.loss, found.error, choice.epsilon))
        why = f"the candidate loses {lost:.3g} ± {error:.3g} by its data, and a loss of {most:.3g} is allowed"
    else:
        return
    words = "runs may need many more samples than it had, or promise nothing; with a larger one they need fewer"
    warnings.warn(f"the {noun} is small for this environment: {why}; {words}", PilotWarning, stacklevel=3)


def _sign(found: Firmest, by: str | None, samples: int, episodes: int) -> Registration:
    if by is not None and (not isinstance(by, str) or not by.strip() or not by.isprintable()):
        raise InputError(f"by must be a printable name, got {quote(by)}")
    at = time.strftime("%Y-%m-%d", time.gmtime())
    margin = float(f"{found.margin:.6g}")
    return Registration(by or NOT_SAID, at, int(samples), int(episodes), None, None, found.considered, margin)
