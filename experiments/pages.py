"""Numbers of pages that belong to no single experiment: constants of the code, proofs, benchmarks."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

import reprl
from experiments.price.numbers import summary
from experiments.stored import LookUp, code, default, kept, percent, phrases, power, short

LOOKS = 200
"""Pairs at most of the table in docs/proofs/audit.md."""


def looking(p: float) -> list[str]:
    """Return the row of a disagreement in the table of what looking costs, summed over all paths of the test."""
    from reprl.auditing.evidence import VERDICTS

    test, found, pairs, alive = sequential_test(), dict.fromkeys(VERDICTS, 0.0), 0.0, np.ones(1)
    for n in range(1, LOOKS + 1):
        pairs += alive.sum()
        alive = np.append(alive * (1 - p), 0.0) + np.append(0.0, alive * p)
        for k in np.flatnonzero(alive):
            verdict = test.decide(int(k), n)
            if verdict != "undecided":
                found[verdict] += alive[k]
                alive[k] = 0.0
    found["undecided"] = alive.sum()
    return [f"{p:g}", *(f"{x:.4f}".rstrip("0").rstrip(".") for x in found.values()), f"{pairs:.1f}"]


CHOSEN = ((3, 0.9, 0.4), (3, 0.5, 0.3), (4, 0.3, 0.1))
"""Actions, ε and ρ of the sizes that the page on fixed sizes names."""


def chosen_calls(n_actions: int, epsilon: float, rho: float) -> int:
    """Return the calls with which the choice among tolerances is proven."""
    asked = {"epsilon": epsilon, "ahead": 0.05, "rho": rho, "delta": 0.05}
    return int(code("reprl.assurance.fixed_sizes.fixed_choice")(n_actions, **asked).calls)


def fixed_test(*disagreements: float) -> list[str]:
    """Return the pairs of an audit, how many apart reject ρ = 0.1, and how probable that is."""
    from reprl.auditing import evidence

    pairs, level = code("reprl.auditing.audit.PAIRS"), default(reprl.audit, "level")
    least = evidence.fewest_to_reject(pairs, 0.1, level) or 0
    return [str(pairs), str(least), *(f"{evidence.p_value(least, pairs, p):.2g}" for p in disagreements)]


def tails() -> list[str]:
    """Return the confidence of every interval, and half of what is left."""
    confidence = code("reprl.auditing.evidence.CONFIDENCE")
    return [f"{confidence}", f"{(1 - confidence) / 2:.3f}"]


def odds(sides: int) -> str:
    """Return one over what a side of an interval may miss."""
    return f"{sides / (1 - code('reprl.auditing.evidence.CONFIDENCE')):.0f}"


def contrast(before: float, after: float, events: int) -> str:
    """Return the visits at which two teams' mean counts of an event contradict each other, to two digits."""
    from reprl.mdp.homogeneity import LEVEL, win

    n = np.arange(100.0, 10**4)
    won = win(np.array([before * n, after * n]), np.array([n, n]))
    least = float(n[np.argmax(won >= math.log(events / LEVEL))])
    return f"{float(f'{least:.1e}'):,.0f}".replace(",", " ")


def searched(family: str, n: int) -> int:
    """Return the median nodes of a joint search."""
    return int({size: nodes for size, nodes, _ in kept("joint_search")["growth"][family]}[n])


def multiple_of_best_first() -> list[str]:
    """Return the least and the largest median of the nodes over those of best-first search, and the worst of all."""
    found = kept("joint_search")["best first"]
    least, largest = (f"{x:.1f}".removesuffix(".0") for x in (f([one["ratio"] for one in found]) for f in (min, max)))
    return [least, largest, f"{max(one['worst'] for one in found):.0f}"]


def requirement_constant() -> str:
    """Return the constant of the paper's requirement on sizes."""
    from reprl.paper.rep_var_bandit import paper_requirement

    bound = paper_requirement(2, 2, epsilon=1.0, rho=1.0, delta=0.1, coupling="joint")
    return f"{math.log(120.0) ** -3 / bound:.0f}"


def calls_constant() -> str:
    """Return the constant of the paper's parallel calls, for (S, A, H) = (2, 2, 3)."""
    from reprl.paper.constants import paper_calls

    calls = paper_calls(2, 2, 3, epsilon=0.1, rho=0.1, delta=0.1, coupling="joint")
    return f"{calls / (2 * math.log(360.0) ** 3 * 360.0**2 * 30.0**2):.0f}"


def computed_rho(n_states: int, n_actions: int, horizon: int) -> list[str]:
    """Return the bound over ρ that a run computes at the paper's size, without rounding and with it."""
    world = reprl.make("random-mdp-v0", n_states=n_states, n_actions=n_actions, horizon=horizon)
    settings = code("reprl.learning.settings.Settings")(rule="paper", epsilon=horizon / 2)
    model = reprl.GenerativeModel(world, 2)
    sizes = (n_states, n_actions, horizon)
    task, constants = settings.paper.task(*sizes), settings.paper.constants_for(*sizes, model.samples_per_call)
    found = []
    for rounding in (False, True):
        decision = replace(settings.paper.decision, rounding=rounding)
        run = code("reprl.paper.full.run_full")(model, reprl.SharedKey(1), task, constants, decision)
        found.append(f"{run.learned.induction.guarantee.rho / 0.1:.2f}ρ")
    return found


def heavy(sign: int) -> float:
    """Return ν ± τ of boosting."""
    return float(code("reprl.paper.constants.THRESHOLD") + sign * code("reprl.paper.constants.TOLERANCE"))


def parted() -> float:
    """Return how often two runs part, at least, whose likeliest policy has less than ν + τ."""
    return 2 * heavy(1) * (1 - heavy(1))


def rlberry(name: str) -> Any:
    """Return a constant of the comparison with rlberry."""
    return code(f"tests.test_baselines_rlberry.{name}")


def ties(world: str) -> str:
    """Return how many cells that can be visited have more than one best action, of how many."""
    from tests.test_catalogue import n_best, reachable

    mdp = reprl.make(world)
    assert isinstance(mdp, reprl.TabularMDP)
    visited = reachable(mdp)
    return f"{int(((n_best(mdp) > 1) & visited).sum())} of the {int(visited.sum())}"


def sequential_test() -> Any:
    """Return the test of ρ = 0.1 after every pair."""
    return code("reprl.auditing.evidence.SequentialTest").checked(0.1, default(reprl.audit, "level"))


def sequential(hit: bool) -> int:
    """Return after how many pairs a learner is judged that always, or never, disagrees."""
    test = sequential_test()
    return next(n for n in range(1, 1000) if test.decide(n * hit, n) != "undecided")


NUMBERS: dict[str, dict[str, LookUp]] = {
    "README.md": {
        "price": lambda: summary("price", "targets/")[:1],
    },
    "docs/peers.md": {
        "takes-epsilon-samples": lambda: [
            f"{one.options[name]}"
            for one in reprl.learners()
            if one.name == "rpvi"
            for name in ("epsilon", "delta", "rho")
        ],
        "same-data-average": lambda: [
            str(rlberry("EPISODES")),
            short(rlberry("CLOSE"), 0),
            str(rlberry("CALLS")),
            str(rlberry("TRAINED")),
            f"{rlberry('LOSS')}",
        ],
    },
    "docs/tutorial.md": {
        "does-keep-exit": lambda: [f"{default(reprl.audit, 'level')}"],
        "learner-differs-pairs": lambda: [
            percent(code("reprl.auditing.evidence.exact_interval")(0, 10)[1] // 0.1 / 10)
        ],
    },
    "CONTRIBUTING.md": {
        "false-alarm-rate-tests": lambda: [short(code("tests.statistics.FALSE_ALARM"), 0)],
    },
    "docs/proofs/fixed-sizes.md": {
        "fixed-choice-calls": lambda: [f"{chosen_calls(*one):.1e}".replace("e+", "e") for one in CHOSEN],
    },
    "docs/proofs/audit.md": {
        "probability-least-argument": lambda: tails()[:1],
        "which-pr-clopper": lambda: tails()[1:] * 2,
        "side-probability-more": lambda: tails()[1:],
        "price-looking-pairs": lambda: [*(f"{x}" for x in sequential_test()), str(LOOKS)],
        "looking": lambda: [" | ".join(looking(p)) for p in (0, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.5, 1)],
        "fixed-test-interval": lambda: fixed_test(0.1, 0.2, 0.3),
        "argument": lambda: [odds(1), tails()[0]],
        "led-stake-rounding": lambda: [power(code("reprl.auditing.exact_quantities.TIE"))],
        "reward-least-events": lambda: [str(bins := code("reprl.auditing.two_sample.BINS")), *[str(bins - 1)] * 2],
        "log-level-steps": lambda: [contrast(0.3, 0.4, 10**4), f"{code('reprl.auditing.two_sample.LEVEL')}"],
        "kl-log-contains": lambda: [odds(2)],
        "exp-kl-so": lambda: [odds(2), percent(float(tails()[1]), 1)],
    },
    "docs/proofs/coupling.md": {
        "modelled-random-thousand": lambda: [power(n**2 / 2**65) for n in (10**6, 10**9)],
        "incumbent-measured-times": lambda: phrases(multiple_of_best_first(), "{} to {}", "{}"),
        "grew-like-instead": lambda: [
            f"{(searched('0.9', 60) / searched('0.9', 40)) ** (1 / 20):.2f}",
            *(power(searched("0.9", n), 1) for n in (40, 60)),
        ],
    },
    "docs/proofs/decision.md": {
        "log-sa-since": lambda: [requirement_constant()],
        "paper-requirement-log": lambda: [calls_constant()],
        "runs-induction-boosts": lambda: [f"{code('reprl.paper.constants.BASE_RHO')}"],
        "coupling-gave-run": lambda: phrases(
            [*computed_rho(2, 4, 20), *computed_rho(2, 4, 40), *computed_rho(2, 400, 2)],
            "{}",
            "{}",
            "{} and {}",
            "{} and {}",
        ),
        "heavy-hitters-best": lambda: phrases(
            [f"{code(f'reprl.paper.constants.{name}')}" for name in ("THRESHOLD", "TOLERANCE")], "{}, {}"
        ),
        "probability-above-accuracy": lambda: [f"{heavy(-1):.2f}"],
        "has-probability-optimal": lambda: [f"{heavy(1):.2f}"],
        "ways-bad-ii": lambda: [
            *(f"{x:.2f}" for x in (heavy(1), heavy(1), 1 - heavy(1))),
            *(f"{x:.3f}" for x in (1 - parted(), parted())),
        ],
        "bad-probability-all": lambda: [f"{parted():.3f}", f"{math.ceil(100 * (0.1 / parted() + 0.1)) / 100}"],
    },
    "docs/audit.md": {
        "passes-after-runs": lambda: [str(sequential(False)), str(sequential(True))],
    },
    "docs/environments.md": {
        "default-options-step": lambda: [ties("gridworld-v0")],
        "action-two-goals-v-without": lambda: [ties("two-goals-v0")],
    },
    "docs/report.md": {
        "arrows-beyond-steps": lambda: [str(code("reprl.report.maps._STRIP"))],
        "map-draws-field": lambda: [
            str(code("reprl.report.maps._LABELLED")),
            f"{code('reprl.report.maps._LISTED'):,}",
        ],
        "page-draws-evenly": lambda: [
            f"{code('reprl.report.maps.MAX_CELLS'):,}",
            str(code("reprl.report.maps.MAX_STEPS")),
        ],
    },
    "docs/scale.md": {
        "if-larger-each": lambda: [f"{code('reprl.execution.tasks._INLINE') >> 10} kB"],
    },
    "docs/security.md": {
        "up-after-nodes": lambda: [power(code("reprl.coupling.correlated.DEFAULT_MAX_NODES"))],
        "verify-gigabytes-gib": lambda: [
            str(code("reprl.storage.documents.MAX_BYTES") >> 20),
            str(code("reprl.storage.documents._MAX_MEMORY") >> 20),
        ],
    },
    "docs/randomness.md": {
        "may-lose-handicap": lambda: phrases([f"{x}" for x in code("reprl.canonical.choice.ROOM")], "{}, {}"),
        "weigh-more-where": lambda: phrases([f"{x}" for x in code("reprl.canonical.choice.HANDICAP")], "{}, {}"),
        "million-runs-streams": lambda: [
            power(10**9),
            power(math.comb(10**6, 2)),
            power(2 * 10**9),
            power(2 * 10**9 / 2**64),
        ],
    },
}
