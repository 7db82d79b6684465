"""Conformance: the paper's pseudo-code, line by line, against what one run of the whole algorithm did.

Every function that a line stands for is wrapped; the run's calls are recorded, kernels included (their plain Python),
and each line asks for its own. The words are the paper's, shortened; docs/paper-map.md lists what we do otherwise.
"""

from __future__ import annotations

import importlib
import inspect
import math
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pytest

import reprl
from reprl.learning.full import run_paper
from reprl.learning.settings import Settings
from reprl.mdp.counts import Counts

S, A, H = 3, 2, 2
RHO, DELTA, EPSILON = 0.1, 0.1, 0.5


class Event(NamedTuple):
    """One call: what was called, with what, and what came of it."""

    name: str
    args: dict[str, Any]
    result: Any
    extra: Any


def world() -> reprl.TabularMDP:
    reward = np.zeros((S, A))
    reward[:, 0], reward[:, 1] = 0.9, 0.1
    transition = np.array([[[0.0, 0.5, 0.5], [0.0, 1.0, 0.0]], np.eye(3)[[1, 2]], np.eye(3)[[2, 1]]])
    return reprl.TabularMDP(transition, reward, 0, H)


SETTINGS = Settings(
    rule="paper",
    access="episodic",
    boosted=True,
    constants="scaled",
    scale=0.05,
    epsilon=EPSILON,
    rho=RHO,
    delta=DELTA,
    mechanism="exponential",
)
CONSTANTS = replace(
    SETTINGS.paper.constants_for(S, A, H, H),
    partition_runs=2,
    data_runs=(3, 2),
    episodes=(50, 200),
    candidates=1,
    frequencies=2,
    pulls=7,
)
LOOKED_AT = 2000
"""Calls among which the agent's tables are kept, before and after."""
PLACES = {
    "paper.boosting": ("heavy_hitters", "best_arm"),
    "paper.full": ("ignore_starved", "tiered_induction"),
    "paper.rep_level_explore": ("find_partition", "collect_data", "explore", "draw_ignored", "stack_tiers"),
    "paper.q_explore": ("restart", "explore_episodes", "mark_short"),
    "paper.q_agent": ("update",),
    "paper.rep_rl_bandit": ("multi_best_arm",),
    "paper.rep_var_bandit": ("exponential", "draw", "round_vector"),
}


def tables(agent: Any) -> dict[str, Any]:
    return {name: getattr(agent, name).copy() for name in ("q", "visits", "choice", "value")}


@pytest.fixture(scope="module")
def run() -> Any:
    """One run, its calls in order."""
    events: list[Event] = []

    def wrap(name: str, function: Any) -> Callable[..., Any]:
        plain = getattr(function, "py_func", function)
        signature = inspect.signature(plain)
        called = function if name == "restart" or name == "mark_short" else plain

        def recorded(*args: Any, **options: Any) -> Any:
            bound = signature.bind(*args, **options).arguments
            at, look = len(events), name == "update" and len(events) < LOOKED_AT
            before = tables(bound["agent"]) if look else None
            events.append(Event(name, bound, None, None))
            result = called(*args, **options)
            extra = (before, tables(bound["agent"])) if look else None
            events[at] = Event(name, dict(bound), result, extra)
            return result

        return recorded

    with pytest.MonkeyPatch.context() as patch:
        for place, names in PLACES.items():
            module = importlib.import_module(f"reprl.{place}")
            for name in names:
                patch.setattr(module, name, wrap(name, getattr(module, name)))
        patch.setattr(Counts, "mean_return", wrap("mean_return", Counts.mean_return))
        model = reprl.EpisodicModel(world(), 5)
        found = run_paper(model, reprl.SharedKey(3), SETTINGS, constants=CONSTANTS)
    return events, found, model


def calls(run: Any, name: str) -> list[Event]:
    return [event for event in run[0] if event.name == name]


K, TIERS = CONSTANTS.seeds, CONSTANTS.tiers
LEARNERS = K * 3


# Lemma 4.1, its proof: boosting.


def seeds(run: Any) -> bool:
    """Sample k random strings ξ_i; run the learner under each."""
    keys = [event.args["key"] for event in calls(run, "find_partition")]
    return (
        math.ceil(math.log(3 / DELTA) / math.log(3)) == K
        and [keys.count(key) for key in dict.fromkeys(keys)] == [3] * K
    )


def heavy(run: Any) -> bool:
    """S_i ← RepHeavyHitters(p_i, 0.6, 0.05, ρ/2k, δ/3k)."""
    wanted = {"threshold": 0.6, "tolerance": 0.05, "rho": RHO / (2 * K), "delta": DELTA / (3 * K)}
    found = calls(run, "heavy_hitters")
    return len(found) == K and all(
        math.isclose(event.args[name], value) for event in found for name, value in wanted.items()
    )


def elect(run: Any) -> bool:
    """(ε/2, ρ/2, δ/3)-best arm over ∪S_i, one pull one episode, whose answer is printed."""
    (event,) = calls(run, "best_arm")
    arms = list(dict.fromkeys(policy for ballot in run[1].ballots for policy in ballot.heavy))
    asked = (event.args["epsilon"], event.args["rho"], event.args["delta"], event.args["n_arms"])
    return asked == (EPSILON / (2 * H), RHO / 2, DELTA / 3, len(arms)) and run[1].policy == arms[event.result]


# Algorithm 6, RepLevelExplore.


def levels(run: Any) -> bool:
    """1. RepExplore log(1/ζ) − 1 times, λ = 2^−ℓ, β = 2^ℓζ: K grows by λ^−2, M falls with β^−2."""
    paper = SETTINGS.paper.constants_for(S, A, H, H)
    stages = [event.args["stages"] for event in calls(run, "find_partition")]
    (one, two), (more, less) = paper.episodes, paper.data_runs
    return (
        len(stages) == LEARNERS
        and all(len(stage) == TIERS - 1 == math.ceil(math.log2(1 / CONSTANTS.zeta)) - 1 for stage in stages)
        and abs(two / one - 4) < 0.05
        and 2 < more / less <= 4
    )


def sets(run: Any) -> bool:
    """2. I^ℓ and D^ℓ are what RepExplore produced."""
    drawn = [event.result for event in calls(run, "draw_ignored")]
    found = [event.result.ignored for event in calls(run, "find_partition")]
    return all(np.array_equal(np.array(drawn[2 * i : 2 * i + 2]), one) for i, one in enumerate(found))


def partition(run: Any) -> bool:
    """3. S¹ = S∖I¹; S^ℓ = (S∖I^ℓ)∖∪S^ℓ'; S^L what is left."""
    return len(calls(run, "stack_tiers")) == LEARNERS and all(
        np.array_equal(
            event.result.level, np.where(~event.args["ignored"][0], 1, np.where(~event.args["ignored"][1], 2, 3))
        )
        for event in calls(run, "stack_tiers")
    )


def merged(run: Any) -> bool:
    """4. Merge the datasets of all tiers; 5. output both."""
    data = [event.result for event in calls(run, "explore") if event.args["purpose"].endswith("data")]
    found = [event.result.counts.visits for event in calls(run, "collect_data")]
    return all(
        np.array_equal(data[2 * i].counts.visits + data[2 * i + 1].counts.visits, visits)
        for i, visits in enumerate(found)
    )


# Algorithm 5, RepExplore.


def iota(run: Any) -> bool:
    """1. ι an inverse polynomial, the same for every run."""
    return {event.args["settings"].failure for event in calls(run, "explore")} == {CONSTANTS.failure}


def fractions(run: Any) -> bool:
    """2. QExplore m times; μ̂ the fraction of runs in which (s, h) was not fully explored."""
    made = [event for event in calls(run, "explore") if event.args["purpose"].endswith("partition")]
    drawn = calls(run, "draw_ignored")
    return len(made) == 2 * LEARNERS and all(
        event.args["runs"] == CONSTANTS.partition_runs
        and np.array_equal(event.result.short / event.args["runs"], draw.args["mu"])
        for event, draw in zip(made, drawn, strict=True)
    )


def correlated(run: Any) -> bool:
    """3. I ~ B(μ̂) by correlated sampling: certain where μ̂ is 0 or 1."""
    return all(
        event.result[event.args["mu"] == 1.0].all() and not event.result[event.args["mu"] == 0.0].any()
        for event in calls(run, "draw_ignored")
    )


def fresh(run: Any) -> bool:
    """4. QExplore M more times: an independent dataset; records of the m runs are thrown away."""
    made = [event for event in calls(run, "explore") if event.args["purpose"].endswith("data")]
    return [event.args["runs"] for event in made] == [*CONSTANTS.data_runs] * LEARNERS and not any(
        event.args["keep"] for event in calls(run, "collect_data")
    )


# Algorithm 4, QExplore.


def empty(run: Any) -> bool:
    """1. Empty datasets, a new agent: one restart for each exploration run."""
    per = 2 * CONSTANTS.partition_runs + sum(CONSTANTS.data_runs)
    return len(calls(run, "restart")) == LEARNERS * per


def episodes(run: Any) -> bool:
    """2. For episode k = 1 … K."""
    played = [event.args["episodes"] for event in calls(run, "explore_episodes")]
    each = [
        (CONSTANTS.partition_runs + more) * k for more, k in zip(CONSTANTS.data_runs, CONSTANTS.episodes, strict=True)
    ]
    return sum(played) == LEARNERS * sum(each) and {*played} == {*CONSTANTS.episodes}


def presented(run: Any) -> bool:
    """2(a)i. Present every action and its phantom."""
    return {event.args["width"] for event in calls(run, "update")} == {2 * A}


def real(run: Any) -> bool:
    """2(a)ii. A real action: the agent learns the next state, reward 0; never at the last step (ours)."""
    taken = [event for event in calls(run, "update") if is_real(event)]
    return all(event.args["cell"] // S < H - 1 for event in taken) and all(
        event.args["future"] in event.extra[0]["value"][(event.args["cell"] // S + 1) * S :][:S]
        for event in looked(run)
        if is_real(event)
    )


def phantom(run: Any) -> bool:
    """2(a)iii. A phantom: record (s', r), tell the agent that it is over, end the episode."""
    taken = [event for event in calls(run, "update") if not is_real(event)]
    records = sum(int(event.result.counts.visits.sum()) for event in calls(run, "explore"))
    return all(event.args["future"] == 0.0 for event in taken) and len(taken) == records == sum(
        event.args["episodes"] for event in calls(run, "explore_episodes")
    )


def short(run: Any) -> bool:
    """3. s ∈ I_h if some action has fewer than H records."""
    found = calls(run, "mark_short")
    return all(event.args["quota"] == H for event in found) and all(
        np.array_equal(
            event.args["missed"],
            event.args["visits"].reshape(H, S, 2 * A)[:, :, A:].min(axis=2) < H,
        )
        for event in found[:1]
    )


# Algorithm 3, QAgent.


def looked(run: Any) -> list[Event]:
    return [event for event in calls(run, "update") if event.extra is not None]


def is_real(event: Event) -> bool:
    return bool(event.args["action"] < A)


def start(run: Any) -> bool:
    """1, 2. Q = V = H, N = 0, V_{H+1} = 0."""
    before = looked(run)[0].extra[0]
    values = before["value"]
    return set(before["q"]) <= {float(H), -math.inf} and not before["visits"].any() and (values[H * S :] == 0).all()


def greedy(run: Any) -> bool:
    """3(b)i. a_h = argmax Q_h(x_h, ·), the lowest index on ties."""
    return all(
        event.args["action"]
        == int(np.argmax(event.extra[0]["q"][event.args["cell"] * 2 * A : (event.args["cell"] + 1) * 2 * A]))
        for event in looked(run)
    )


def learn(run: Any) -> bool:
    """3(b)ii–iii. t = ++N; b_t; α_t = (H+1)/(H+t); Q ← (1 − α_t)Q + α_t(V_{h+1} + b_t)."""
    for event in looked(run):
        before, after = event.extra
        at = event.args["cell"] * 2 * A + event.args["action"]
        t = before["visits"][at] + 1
        rate, bonus = (H + 1) / (H + t), event.args["schedule"].scale / math.sqrt(t)
        wanted = (1 - rate) * before["q"][at] + rate * (event.args["future"] + bonus)
        if after["visits"][at] != t or not math.isclose(after["q"][at], wanted):
            return False
    scale = CONSTANTS.bonus[0] * math.sqrt(H**3 * math.log(2 * S * A * CONSTANTS.episodes[0] * H / CONSTANTS.failure))
    return math.isclose(calls(run, "update")[0].args["schedule"].scale, scale)


def values(run: Any) -> bool:
    """3(b)iv. V_h(x_h) = min(H, max Q_h)."""
    return all(
        event.extra[1]["value"][event.args["cell"]]
        == min(H, event.extra[1]["q"][event.args["cell"] * 2 * A : (event.args["cell"] + 1) * 2 * A].max())
        for event in looked(run)
    )


# Algorithm 2, RepRLBandit.


def backwards(run: Any) -> bool:
    """1, 2, 2(d). For h = H … 1: utilities r + V̄(s'), V̄ = 0 after the last step."""
    steps = calls(run, "mean_return")[: H * LEARNERS]
    return [event.args["h"] for event in steps] == [*reversed(range(H))] * LEARNERS and not any(
        event.args[next(name for name in event.args if name not in ("self", "h"))].any() for event in steps[::H]
    )


def bandits(run: Any) -> bool:
    """2(a)i. RepVarBandit on every tier ℓ < L, accuracy ε_ℓ, failure δ/(HL)."""
    share = CONSTANTS.delta / (H * (TIERS - 1))
    found = calls(run, "multi_best_arm")
    cells = sum(
        len({int(x) for x in row} - {TIERS}) for event in calls(run, "ignore_starved") for row in event.result.level
    )
    return len(found) == cells and all(
        event.args["epsilon"] in CONSTANTS.by_tier and math.isclose(event.args["delta"], share) for event in found
    )


def pessimism(run: Any) -> bool:
    """2(a)ii. V̄ = r̂ − ε_ℓ (clipped to what can be: ours)."""
    induction = calls(run, "tiered_induction")[0]
    bandits = iter(calls(run, "multi_best_arm"))
    for h in reversed(range(H)):
        for tier in (1, 2):
            inside = induction.args["tiers"].level[h] == tier
            if inside.any():
                wanted = next(bandits).result.values - CONSTANTS.by_tier[tier - 1]
                if not np.allclose(induction.result.values[h, inside], np.clip(wanted, 0, H - h)):
                    return False
    return CONSTANTS.pessimism == 1.0


def ignored(run: Any) -> bool:
    """2(b). Tier L: the first action, V̄ = 0."""
    return all(
        not event.result.policy.actions[event.args["tiers"].level == TIERS].any()
        and not event.result.values[:-1][event.args["tiers"].level == TIERS].any()
        for event in calls(run, "tiered_induction")
    )


def printed(run: Any) -> bool:
    """2(c), 3. π̂_h(s) = a_s; return π̂."""
    policies = [event.result.policy for event in calls(run, "tiered_induction")]
    return Counter(policies) == sum((one.candidates + one.frequencies for one in run[1].ballots), Counter())


# Algorithm 1, RepVarBandit.


def exponential(run: Any) -> bool:
    """1–3. Product of exponential mechanisms, t = 2·log(3SA/δ)/ε."""
    laws = calls(run, "exponential")
    bandits = calls(run, "multi_best_arm")
    return all(
        event.args["epsilon"] == law.args["epsilon"] and event.args["delta"] == law.args["delta"]
        for event, law in zip(bandits, laws, strict=False)
    ) and all(
        np.allclose(
            law.result.probabilities[:, 0] / law.result.probabilities[:, 1],
            np.exp(
                np.diff(-np.asarray(law.args["scores"]), axis=1)[:, 0]
                * 2
                * math.log(3 * np.size(law.args["scores"]) / law.args["delta"])
                / law.args["epsilon"]
            ),
        )
        for law in laws[: len(bandits)]
    )


def sampled(run: Any) -> bool:
    """4. One correlated sample of the product, jointly over the states."""
    return len(calls(run, "draw")) == len(calls(run, "multi_best_arm"))


def rounded(run: Any) -> bool:
    """5–7. r̃_s = r̂_{s,a_s}, rounded at accuracy ε/2 by shared randomness."""
    found = calls(run, "round_vector")
    return len(found) == len(calls(run, "multi_best_arm")) and all(
        event.args["width"] == bandit.args["epsilon"] / 2
        for event, bandit in zip(found, calls(run, "multi_best_arm"), strict=True)
    )


LINES: dict[str, list[Callable[[Any], bool]]] = {
    "Lemma 4.1": [seeds, heavy, elect],
    "Algorithm 6": [levels, sets, partition, merged],
    "Algorithm 5": [iota, fractions, correlated, fresh],
    "Algorithm 4": [empty, episodes, presented, real, phantom, short],
    "Algorithm 3": [start, greedy, learn, values],
    "Algorithm 2": [backwards, bandits, pessimism, ignored, printed],
    "Algorithm 1": [exponential, sampled, rounded],
}


@pytest.mark.parametrize(
    ("algorithm", "line"),
    [(name, line) for name, lines in LINES.items() for line in lines],
    ids=[f"{name}: {line.__doc__}" for name, lines in LINES.items() for line in lines],
)
def test_a_line_of_the_paper_ran(run: Any, algorithm: str, line: Callable[[Any], bool]) -> None:
    assert line(run), f"{algorithm}: {line.__doc__}"


@pytest.mark.parametrize("name", sorted({name for names in PLACES.values() for name in names} | {"mean_return"}))
def test_every_recorded_function_ran(run: Any, name: str) -> None:
    assert calls(run, name)


def test_a_line_that_did_not_run_is_noticed(run: Any) -> None:
    """The control: the same checks on a run whose calls, or arguments, are not the paper's."""
    events, found, model = run
    broken = [event for event in events if event.name not in ("round_vector", "best_arm")]
    with pytest.raises(ValueError, match="not enough values"):
        elect((broken, found, model))
    assert not rounded((broken, found, model))
    kept = [
        event._replace(args={**event.args, "keep": True}) if event.name == "collect_data" else event for event in events
    ]
    assert not fresh((kept, found, model))
    lazy = [
        event._replace(args={**event.args, "action": 2 * A - 1}) if event.name == "update" else event
        for event in events
    ]
    assert not greedy((lazy, found, model))


def test_the_ledger_is_what_the_constants_say(run: Any) -> None:
    _, found, model = run
    assert found.constants == CONSTANTS
    heavies = len(dict.fromkeys(policy for ballot in found.ballots for policy in ballot.heavy))
    assert model.ledger.episodes == LEARNERS * CONSTANTS.each + heavies * CONSTANTS.pulls <= CONSTANTS.total
