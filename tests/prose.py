"""What pages say in numbers, and where each number comes from: stored data, a constant of the code, or neither.

A new number in a page's prose: write a pattern with the number in a group, and a look-up that gives the same text.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np
from scipy.stats import binom

import reprl
from tests.stored import (
    AVERAGE,
    JOINT,
    LOOKS,
    PRODUCT,
    UNTUNED,
    WORDS,
    LookUp,
    agree,
    agreeing,
    apart,
    apart_whole,
    as_proven,
    asked_calls,
    boosted,
    boosted_row,
    bound_slope,
    by_episodes,
    by_luck,
    calibration,
    calls_constant,
    certificate,
    certified,
    code,
    computed_rho,
    constants,
    contrast,
    cost,
    decision,
    default,
    early_slope,
    eaton_cells,
    edges,
    effort,
    false_alone,
    fixed_test,
    front,
    grade_pairs,
    grade_slopes,
    heavy,
    icu,
    icu_loss,
    icu_runs,
    icu_values,
    inside,
    kept,
    lake_margins,
    largest_gap,
    late,
    learners_apart,
    least_rejected,
    lock_bound,
    logs,
    looking,
    mean_loss,
    measured,
    median_margins,
    most_apart,
    multiple_of_best_first,
    needed,
    nicer,
    none_apart,
    odds,
    one_world,
    own,
    paper_whole,
    part_by_luck,
    part_on_average,
    parted,
    passing,
    percent,
    percents,
    pessimism,
    points,
    pooled,
    power,
    preset_margins,
    proven_ratio,
    proven_signs,
    ratios,
    real_runs,
    rejected,
    requirement_constant,
    rival,
    rivals,
    rlberry,
    rmax_rounds,
    row,
    searched,
    seeds_cost,
    sequential,
    sequential_test,
    sharp,
    sharper,
    short,
    shown,
    slope_of,
    span,
    steps_apart,
    steps_limit,
    stored,
    surely_room,
    swept,
    table,
    tails,
    teams,
    tens,
    theorem_over_needed,
    tied,
    ties,
    traps,
    unseen_calls,
    untuned,
    upper,
    votes,
    whole,
    worlds_of,
)

FIT = r"(\S+ \([^)]*\))"
TEAMS = r"wenty teams came to (\d+) policy with reprl(?:,| and) to (\d+)"
REHEARSED = code("reprl.assurance.rehearsal.asked_for")(0.1), code("reprl.assurance.rehearsal.QUARTER")
FORMER = 20, 2
"""Teams, and this run's data over theirs: today at ρ = 0.1, and of an earlier rule."""
DISTANCES, NEAREST = (0.2, 0.3, 0.5, 0.8), 0.001

NUMBERS: dict[str, list[tuple[str, LookUp]]] = {
    "README.md": [
        (TEAMS, teams),
        (r"([\d,]+) and ([\d,]+) samples for these two runs", lambda: [f"{n:,}" for n in front("samples")[:2]]),
        (
            r"takes ([\d.e]+) to ([\d.e]+) parallel samples",
            lambda: [short(min(own("samples", "generative"))), short(max(own("samples", "generative")))],
        ),
        (
            r"need (\d+) to (\d+) times as many, in hindsight",
            lambda: span(
                ratios(
                    "generative",
                    only=lambda learner: rival(learner) and learner != "greedy",
                    worlds=lambda world: world != "combination-lock",
                )
            ),
        ),
        (
            r"about (\d+ %) of the pairs on (\d+) worlds that nothing was tuned on part, and ρ = 0.1 is rejected on "
            r"(\w+) of them; on one most runs are not sure after (\S+) samples",
            lambda: [*untuned(), short(float(np.median([one[1:3] for one in traps()])))],
        ),
    ],
    "website/index.md": [
        (TEAMS, teams),
        (r"The first two drew ([\d,]+) and ([\d,]+) samples", lambda: [f"{n:,}" for n in front("samples")[:2]]),
    ],
    "docs/head-to-head.md": [
        (
            r"none of its (\d+) pairs came apart",
            lambda: [str(sum(own("pairs")))] if not sum(own("disagreements")) else [],
        ),
        (
            r"best rival in hindsight needs (\d+) to (\d+) times as many parallel",
            lambda: span(ratios("generative", only=rival, worlds=tied)),
        ),
        (
            r"rPVI (\d+) to (\d+) times as many",
            lambda: span(ratios("generative", only=lambda learner: learner == "rpvi", worlds=tied)),
        ),
        (
            r"replicable R-max needs (\d+) times the steps",
            lambda: span(ratios("episodic", only=lambda learner: learner == "replicable-rmax", worlds=tied))[:1],
        ),
        (r"greedy in hindsight needs ([\d.]+) times", lambda: [one_world("river-swim", "greedy")]),
        (r"on random-mdp ([\d.]+) times", lambda: [one_world("random-mdp", "greedy")]),
        (
            r"At exact ties they are (.*?) and\s+(.*?):",
            lambda: [slope_of("states", f"reprl ({one})") for one in ("joint", "product")],
        ),
        (
            r"steep, they are (.*?) and (\S+ \(.*?\))\.",
            lambda: [slope_of("near", f"reprl ({one})") for one in ("joint", "product")],
        ),
        (
            r"slopes in S, ([\d.]+) and ([\d.]+) for a bound of 3",
            lambda: [slope_of(sweep, "list-robust", interval=False) for sweep in ("states", "near")],
        ),
        (
            r"softmax have ([\d.]+), ([\d.]+) and ([\d.]+), as",
            lambda: [slope_of("states", one, interval=False) for one in ("rpvi", "karbasi-grid", "karbasi-softmax")],
        ),
        (r"\(joint\) has ([\d.]+ \(.*?\)) for", lambda: [slope_of("actions", "reprl (joint)")]),
        (
            r"probability at most (\d+ %), or until (\d+) pairs \((\d+) by episodes\)",
            lambda: [
                percent(code("reprl.auditing.search.LEVEL")),
                effort("pairs", "generative"),
                effort("pairs", "episodic"),
            ],
        ),
        (
            r"(\d+) samples are enough for all others, the default learner takes (\d+), since",
            lambda: [
                *{
                    f"{needed(one):.0f}"
                    for one in measured("head_to_head", "table/generative/combination-lock/").values()
                },
                f"{measured('head_to_head')['own/generative/combination-lock']['samples']:.0f}",
            ],
        ),
        (
            r"it had not agreed with itself at (\S+) samples",
            lambda: [power(measured("head_to_head")["table/generative/gridworld 4×4/greedy"]["failed"])],
        ),
        (
            r"default learner is ([\d.]+) on gridworld, a quarter of ε: .*? everywhere else it is below ([\d.]+)\.",
            lambda: [f"{max(own('suboptimality')):.3f}", f"{math.ceil(100 * sorted(own('suboptimality'))[-3]) / 100}"],
        ),
        (
            r"on worlds with ties, by ([\d.]+) to ([\d.]+) times the samples",
            lambda: span((sharper(w) for w in measured("head_to_head", "own/generative/") if tied(w)), 1),
        ),
        (
            r"correlated noise needs ([\d.]+) times as many. By episodes it did not get there within (\S+) steps",
            lambda: [f"{sharper('random-mdp', 'karbasi-gaussian (correlated)'):.2f}", steps_limit()],
        ),
        (
            r"samples grow like S\^([\d.]+) jointly",
            lambda: [f"{float(slope_of('states', 'reprl (joint)', interval=False)):.1f}"],
        ),
        (
            r"In 1/ρ reprl has ([\d.]+) and ([\d.]+) for",
            lambda: [slope_of("rho", f"reprl ({one})", interval=False) for one in ("joint", "product")],
        ),
        (
            r"(\d+) pairs \((\d+) by episodes\) without one apart leave up to (\d+ %) \((\d+ %)\) possible. A row's "
            r"(\d+ %) errors are its own; among (\d+) searches",
            lambda: [
                effort("own_pairs", "generative"),
                effort("own_pairs", "episodic"),
                none_apart(int(effort("own_pairs", "generative"))),
                none_apart(int(effort("own_pairs", "episodic"))),
                percent(code("reprl.auditing.search.LEVEL")),
                str(len(measured("head_to_head", "table/"))),
            ],
        ),
        (r"Episodic budgets stop at (\S+) steps", lambda: [steps_limit()]),
    ],
    "docs/canonical.md": [
        (r"a tiny ε \(([\d.]+)\)", lambda: [f"{code('experiments.canonical.worlds.TINY')}"]),
        (
            r"gridworld in (\S+) parallel samples and in (\S+) steps, the hard instance in (\S+), river-swim\(5,2,6\) "
            r"in (\S+), random-mdp\(10,3,4\) in (\S+) to (\S+) steps by seed, and FrozenLake at ε = 0.02 in (\S+) "
            r"where (\S+) were asked",
            lambda: [
                cost("gridworld 4×4 H=6", "parallel", 1),
                cost("gridworld 4×4 H=6", "episodes"),
                cost("hard instance S=16 H=3 bias 0.08", "parallel", 1),
                cost("river-swim(5,2,6)", "episodes"),
                *seeds_cost(),
                cost("FrozenLake H=12 ε=0.02", "episodes"),
                power(float(row("canonical", "FrozenLake H=12 ε=0.02", "episodes")[5].partition(":")[0])),
            ],
        ),
        (
            r"the combination lock, ([\d.]+) times where 4",
            lambda: [row("canonical", "combination-lock-v0", "reprl (joint)")[4].strip("*")],
        ),
        (r"takes (\d+) samples of a cell, ([\d.]+) times", lambda: lock_bound()[3:]),
        (
            r"on (\w+) of the (\d+) held-out worlds, which stand in (\d+) rows, and on (\w+) of the (\d+) that "
            r"were made last, in (\d+) rows. About (\d+ %) of the held-out pairs part, and (\d+ %) of .*?; the most "
            r"in any row are (\d+) of (\d+) \((.*?)\)",
            lambda: [
                *(str(x) for group in UNTUNED for x in (rejected(group), *worlds_of(group))),
                *(percent(pooled(group)) for group in UNTUNED),
                *most_apart(),
            ],
        ),
        (
            r"with (\d+) pairs or more, and nothing was changed",
            lambda: [str(code("experiments.canonical.plan.FEWEST"))],
        ),
        (r"first pairs were apart have (\d+) pairs", lambda: [str(code("experiments.canonical.plan.MORE"))]),
        (
            r"most runs, (\d+) of (\d+), were not sure",
            lambda: [str(sum(2 - one[6] - one[7] for one in traps())), str(2 * len(traps()))],
        ),
        (
            r"a tolerance of about ([\d.]+) it prefers .*? by ([\d.]+) at most: .*? together it costs ([\d.]+) of",
            lambda: [
                f"{measured('canonical')['drawn']['tolerance']:.1f}",
                f"{largest_gap():.2f}",
                f"{measured('canonical')['drawn']['loss']:.3f}",
            ],
        ),
        (
            r"(\d+) pairs can reject ρ = 0.1 only when (\d+) or more are apart, (\d+) pairs when (\d+) or more.*?(\d+) "
            r"pairs can when (\d+) or more",
            lambda: [str(n) for pairs in (40, 20, 200) for n in (pairs, least_rejected(pairs))],
        ),
        (
            r"rare states\) have (\d+) pairs",
            lambda: sorted({str(n) for n in code("experiments.canonical.plan.PAIRS").values()}),
        ),
        (r"searched with (\d+) pairs at each", lambda: [str(stored("canonical")["effort"]["rival_pairs"])]),
        (r"(\d+) teams are asked even", lambda: [str(code("reprl.assurance.rehearsal.asked_for")(0.1) // 2)]),
    ],
    "docs/logs.md": [
        (
            r"⌈log (\S+)/log γ⌉ rows, after which what follows counts less than (\d+ %)",
            lambda: [f"{(least := code('reprl.mdp.criterion.LENGTH'))}", percent(least)],
        ),
        (r"each of up to (\d+) blocks", lambda: [str(code("reprl.sources.logs.block_bootstrap.BLOCKS"))]),
        (r"- \*\*support\*\* \(([\d.]+)\)", lambda: [f"{default(reprl.learn_log, 'support')}"]),
        (r"- \*\*reach\*\* \(([\d.]+)\)", lambda: [f"{default(reprl.learn_log, 'reach')}"]),
        (
            r"Up to (\d+) episodes each is drawn on its own, beyond, episodes are dealt to (\d+) blocks",
            lambda: [str(code("reprl.sources.logs.block_bootstrap.BLOCKS"))] * 2,
        ),
        (r"A log of fewer than (\d+) episodes", lambda: [str(code("reprl.sources.logs.source.LEAST"))]),
        (
            r"Where both runs were sure, (\d+) pairs, (none) were apart; of all (\d+) pairs (\d+) were, (\d+) of them",
            lambda: [
                str(len(both := [one for one in logs() if all(one["sure"])])),
                "some" if apart(both) else "none",
                str(len(logs())),
                str(apart(logs())),
                str(apart(logs()) - apart(logs(longer=True))),
            ],
        ),
        (
            r"Of (\d+) intervals (\d+) hold the true value, (\d+ %), and (\d+ of the \d+) on longer logs, (\d+ %)",
            lambda: [
                str(inside(logs())[1]),
                str(inside(logs())[0]),
                percent(inside(logs())[0] / inside(logs())[1]),
                "{} of the {}".format(*inside(logs(longer=True))),
                percent(inside(logs(longer=True))[0] / inside(logs(longer=True))[1]),
            ],
        ),
    ],
    "docs/tutorial.md": [
        (
            r"A run on this page takes some ([\d,]+) samples",
            lambda: [shown(r"samples +([\d,]+) in [\d,]+ episodes, … s +\1 in")],
        ),
        (
            r"Both runs are ([\d.]+) below the best value",
            lambda: [f"{float(shown(r'best ([0-9.]+)')) - float(shown(r'value +([0-9.]+)')):.4f}"],
        ),
        (r"of a learner that does keep ρ: at most ([\d.]+)\.", lambda: [f"{default(reprl.audit, 'level')}"]),
        (
            r"differs in (\d+ %) of pairs could show the same",
            lambda: [percent(code("reprl.auditing.evidence.exact_interval")(0, 10)[1] // 0.1 / 10)],
        ),
    ],
    "docs/icu-sepsis.md": [
        (
            r"of (\d+ \d+) pairs (\d+ \d+) are admissible, and (\d+ of the \d+) states leave no choice",
            lambda: [
                f"{icu().n_states * icu().n_actions:,}".replace(",", " "),
                f"{int(icu().allowed[0].sum()):,}".replace(",", " "),
                f"{int((icu().allowed[0].sum(axis=1) == 1).sum())} of the {icu().n_states}",
            ],
        ),
        (
            r"agrees with the ([\d.]+) that",
            lambda: sorted({f"{icu_values(500)[x]:.2f}" for x in ("clinicians", "random admissible")}),
        ),
        (
            r"all policies lie within ([\d.]+) of each other",
            lambda: [f"{icu_values()['best admissible'] - icu_values()['worst']:.2f}"],
        ),
        (r"a call costs (\d+ \d+) samples", lambda: [f"{int(icu().allowed[0].sum()):,}".replace(",", " ")]),
        (
            r"own for each team, (\d+ \d+) patients",
            lambda: sorted({f"{one['episodes']:,}".replace(",", " ") for one in icu_runs("log")}),
        ),
        (
            r"gives up ([\d.]+) of the ([\d.]+) between the best and the worst, and gains ([\d.]+) over",
            lambda: [
                f"{icu_loss():.3f}",
                f"{icu_values()['best admissible'] - icu_values()['worst']:.2f}",
                f"{icu_values()['best admissible'] - icu_loss() - icu_values()['clinicians']:.3f}",
            ],
        ),
        (
            r"By parallel samples (\d+ of 40) simulated teams agree with both",
            lambda: sorted({f"{number} of 40" for number in agreeing("simulated", "parallel")}),
        ),
        (
            r"of which (\d+ of 40) agree, while under their own seed (\d+) and (\d+ of 20) simulated",
            lambda: [
                *{f"{number} of 40" for number in agreeing("pairs", "episodes")},
                str(agreeing("simulated", "episodes")[0]),
                f"{agreeing('simulated', 'episodes')[1]} of 20",
            ],
        ),
        (
            r"Most of the (\d+) GB of those runs",
            lambda: sorted({f"{one['peak_mb'] / 1000:.0f}" for one in icu_runs("log")}),
        ),
    ],
    "docs/certificates.md": [
        (
            r"from the (seventh) round on, by parallel calls at (\d+), (\d+), (\d+), (\d+), … of them; each of the "
            r"first (sixteen) looks may spend δ/(\d+)",
            lambda: [
                {6: "seventh"}.get(certificate("SKIPPED"), ""),
                *(str(certificate("HALFWAY") * n // 2) for n in (2, 3, 4, 6)),
                {16: "sixteen"}.get(certificate("EVEN"), ""),
                f"{certificate('EVEN') / (1 - certificate('LATER')):.0f}",
            ],
        ),
        (
            r"one look at (\d+) or (\d+) calls; a certificate",
            lambda: [str(n) for n in code("experiments.certificates.plan.TINY_CALLS")],
        ),
        (r"ten shared seeds, up to (\S+) calls", lambda: [power(code("experiments.certificates.plan.MOST"), 1)]),
        (
            r"was seen in ([\d,]+) runs as proven",
            lambda: [f"{sum(as_proven()[0]):,}"] if not sum(as_proven()[1]) else [],
        ),
        (
            r"(\d+) false of ([\d,]+), where δ allows (\d+)\.",
            lambda: [
                str(false_alone()[0]),
                f"{false_alone()[1]:,}",
                f"{false_alone()[1] * code('experiments.certificates.plan.SMALL_DELTA'):.0f}",
            ],
        ),
        (
            r"Near ties are certified at (\d+) calls in the median, the queue at (\d+), random \(10,4,3\) at (\S+), "
            r"the gridworld and two goals at (\S+): (all) as asked for",
            lambda: [
                f"{certified('hard S=16 H=3 bias 0.08')[1]:.0f}",
                f"{certified('queue-admission-v0')[1]:.0f}",
                power(certified("random-mdp(10,4,3)")[1], 1),
                *{power(certified(world)[1], 1) for world in ("gridworld-v0", "two-goals-v0")},
                "all" if all(certified(world)[1] <= most for world, most in asked_calls().items()) else "not all",
            ],
        ),
        (r"whatever else is easy: (\S+) to (\S+) on the gridworld", unseen_calls),
        (r"even (\S+) calls do not exclude it", lambda: [power(code("experiments.certificates.plan.MOST"))]),
        (r"that alone is (\S+) to (\S+) calls on these two", unseen_calls),
        (
            r"river-swim-v0 and inventory-v0 were certified for (\d+ of \d+) runs within (\S+) calls",
            lambda: [
                *{certified(world)[0] for world in ("river-swim-v0", "inventory-v0")},
                power(code("experiments.certificates.plan.MOST"), 1),
            ],
        ),
    ],
    "CHANGELOG.md": [
        (r"scale` measures (\d+ \d+) tasks", lambda: [f"{code('benchmarks.scale.TASKS'):,}".replace(",", " ")]),
        (
            r"Gridworld and two goals: ([\d,]+) calls per cell",
            lambda: [*{f"{certified(world)[1]:,.0f}" for world in ("gridworld-v0", "two-goals-v0")}],
        ),
        (r"give up after (\S+) nodes", lambda: [power(code("reprl.coupling.correlated.DEFAULT_MAX_NODES"))]),
        (r"a share of ε in \((\S+), (\S+)\)", lambda: [f"{x}" for x in code("reprl.canonical.choice.ROOM")]),
        (r"A log of fewer than (\d+) episodes", lambda: [str(code("reprl.sources.logs.source.LEAST"))]),
        (
            r"logs of some (\S+) rows and more",
            lambda: [power(10 ** round(math.log10(code("reprl.sources.logs.block_bootstrap.MOST_PAIRS"))))],
        ),
    ],
    "CONTRIBUTING.md": [
        (r"its false-alarm rate, (\S+), and", lambda: [short(code("tests.statistics.FALSE_ALARM"), 0)]),
    ],
    "docs/evidence.md": [
        (r"false-alarm rate of (\S+) and", lambda: [short(code("tests.statistics.FALSE_ALARM"), 0)]),
        (r"chi-square at (\S+) ", lambda: [short(code("tests.statistics.FALSE_ALARM"), 0)]),
        (r"(\d+ of \d+) pairs of the default", lambda: [f"{sum(own('disagreements'))} of {sum(own('pairs'))}"]),
        (
            r"on (\d+) worlds that nothing was tuned on about (\d+ %), and ρ is rejected on (\w+) ",
            lambda: [untuned()[1], untuned()[0], untuned()[2]],
        ),
        (
            r"every exponent, from (\d+) states, (\d+) arms, ε ≤ ([\d.]+) and ρ ≤ ([\d.]+) on",
            lambda: [*(str(x) for x in late()[:2]), *(f"{1 / x:g}" for x in late()[2:])],
        ),
        (
            r"\| S²A parallel samples jointly .*? \| ([\d.]+ \(.*?\)) at exact ties, (.*?) at near ties",
            lambda: [slope_of(sweep, "reprl (joint)") for sweep in ("states", "near")],
        ),
        (r"tier are (\d+) to (\d+) times nicer", lambda: span(nicer())),
        (
            r"that part in (\d+) to (\d+ %) of the cases: (\d+ of \d+) boosted pairs apart \(at most ([\d.]+ %)\)",
            lambda: [
                *percents(learners_apart("hard")),
                *{"{} of {}".format(*x) for x in boosted("hard")},
                percent(max(upper(one) for key, one in whole("boosting").items() if key.startswith("hard")), 1),
            ],
        ),
        (
            r"part in (\d+) to (\d+ %), more than the lemma allows, are not helped: (\d+) to (\d+ %) of",
            lambda: [*percents(learners_apart("gridworld")), *percents([x / n for x, n in boosted("grid")])],
        ),
        (r"on a lock and (\S+) on a long chain", lambda: [f"{pessimism('long chain: river-swim(5,2,5)'):.4f}"]),
        (
            r"draws grows like S\^([\d.]+), no run of (\d+) failed",
            lambda: (
                [grade_slopes("joint")[0], str(2 * len(apart_whole()))]
                if not sum(one["failed"] for one in apart_whole())
                else []
            ),
        ),
        (r"is drawn grows like S\^([\d.]+);", lambda: [grade_slopes("product")[0]]),
        (r"sizes of the theorem are (\S+) to (\S+) times those needed", theorem_over_needed),
        (
            r"rejected with p below (\S+) when",
            lambda: (
                [short(code("tests.statistics.FALSE_ALARM"), 0)]
                if max(one["real"] for one in measured("evidence", "phantom/").values()) < 1e-6
                else []
            ),
        ),
        (
            r"more than (\S+) steps on (\w+) of (\w+) worlds",
            lambda: [
                power(stored("head_to_head")["effort"]["limit"]["episodic"]),
                *(WORDS[n] for n in (sum(not one["reached"] for one in by_episodes()), len(by_episodes()))),
            ],
        ),
        (r"rPVI ([\d.]+ \(.*?\)) for S³", lambda: [slope_of("states", "rpvi")]),
        (r"lie ([\d.]+) of the window below", lambda: [f"{stored('evidence')['near']}"]),
        (
            r"(\d+) pairs of data at each of (\w+) sizes around",
            lambda: [str(stored("evidence")["pairs"]), WORDS[len(code("experiments.lower_bounds.measure.STEPS"))]],
        ),
        (
            rf"From (\d+) states on, up to (\d+), jointly {FIT} for a bound of 2, and by states {FIT} for a bound of 3"
            rf"[^*]*?: {FIT} from (\d+) states on",
            lambda: [
                str(late()[0]),
                f"{max(swept('states'))}",
                *(decision("states", method, late()[0]) for method in ("joint", "product")),
                decision("states", "joint"),
                f"{min(swept('states'))}",
            ],
        ),
        (
            rf"From (\d+) arms on, up to (\d+), {FIT} and {FIT} for a bound of 1. [^*]*? {FIT} and {FIT} over all",
            lambda: [
                str(late()[1]),
                f"{max(swept('actions'))}",
                *(decision("actions", method, least) for least in (late()[1], 0) for method in ("joint", "product")),
            ],
        ),
        (
            rf"In 1/ε {FIT} and {FIT} for ε ≤ ([\d.]+), in 1/ρ {FIT} and {FIT} for ρ ≤ ([\d.]+), for",
            lambda: [
                text
                for sweep, least in (("epsilon", late()[2]), ("rho", late()[3]))
                for text in (*(decision(sweep, method, least) for method in ("joint", "product")), f"{1 / least:g}")
            ],
        ),
    ],
    "docs/lower-bounds.md": [
        (r"at most about (\d+)·n/", lambda: [f"{proven_signs('every'):.0f}"]),
        (r"and ([\d.]+)·n/\(ρ²ε²\) for large n", lambda: [f"{proven_signs('average'):.1f}"]),
        (
            r"lower bound: (\S+ \(.*?\)) and (\S+ \(.*?\)) against 2",
            lambda: [bound_slope(JOINT, "rho"), bound_slope(JOINT, "epsilon")],
        ),
        (
            r"joint solver has (\S+ \(.*?\)) over 4 … 256 and (\S+ \(.*?\)) from 32 on, against 1, and its ratio to "
            r"n/\(ρ²ε²\) levels off between (\d+) and (\d+)\.",
            lambda: [
                bound_slope(JOINT),
                bound_slope(f"{JOINT}, n ≥ 32"),
                *(str(edge) for edge in (lambda x: (math.floor(x), math.ceil(x)))(points(JOINT)[256]["ratio"])),
            ],
        ),
        (
            r"levels u tried at n = 64, ([\d.]+) needs most",
            lambda: [f"{max((one for one in edges() if one['n'] == 64), key=lambda one: one['ratio'])['u']}"],
        ),
        (
            r"all biases at ([\d.]+)·gap/2 the ratio levels off at (\d+); the proof allows (\d+). So in the worst case "
            r"that we found the solver is within a factor of (\d+) of n/\(ρ²ε²\), and the proof loses (\d+)",
            lambda: [
                f"{edges()[-1]['u']}",
                f"{edges()[-1]['ratio']:.0f}",
                f"{proven_ratio(256):.0f}",
                f"{edges()[-1]['ratio']:.0f}",
                f"{proven_ratio(256) / edges()[-1]['ratio']:.0f}",
            ],
        ),
        (r"with n, to ([\d.]+) at n = 256", lambda: [f"{points(AVERAGE)[256]['ratio']:.2f}"]),
        (r"still growing: (\S+ \(.*?\))\.", lambda: [bound_slope(AVERAGE)]),
        (
            r"a factor n, slope (\S+ \(.*?\)): (\d+) times the joint solver at n = 256",
            lambda: [
                bound_slope(PRODUCT),
                f"{points(PRODUCT)[256]['samples'] / points(JOINT)[256]['samples']:.0f}",
            ],
        ),
        (r"stays within (\d+) … (\d+) of n/", lambda: span(one["ratio"] for one in stored("lower_bounds")["learner"])),
        (r"Its slope is (\S+ \(.*?\)): each", lambda: [bound_slope("RL learner, H = 4")]),
        (r"over n = 4 … 32 the joint solver has ([\d.]+) too", lambda: [early_slope()]),
        (
            r"\((\d+) real pairs at each of (\w+) sizes",
            lambda: [
                str(stored("lower_bounds")["effort"]["learner_pairs"]),
                *{WORDS[len(one["curve"])] for one in stored("lower_bounds")["learner"]},
            ],
        ),
        (
            r"(\d+ of \d+) pairs differed \((\S+ %)\)",
            lambda: ["{} of {}".format(*real_runs()), percent(real_runs()[0] / real_runs()[1], 1)],
        ),
    ],
    "docs/whole.md": [
        (r"three steps ask for (\S+) episodes", lambda: [tens(paper_whole(4, 2, 3).total)]),
        (r"coupling, scale ([\d.]+):", lambda: [f"{stored('whole')['scale']}"]),
        (r"(\d+) pairs a world", lambda: [str(stored("whole")["effort"]["pairs"])]),
        (r"growing; (\d+) pairs", lambda: sorted({str(one["pairs"]) for one in whole("boosting").values()})),
        (
            r"scale ([\d.]+), (\d+) pairs a size",
            lambda: [f"{stored('whole')['slope_scale']}", str(stored("whole")["effort"]["slope_pairs"])],
        ),
        (
            r"(\w+) run of (\d+) failed, and none lost more than ([\d.]+) of the ([\d.]+) that",
            lambda: [
                WORDS[sum(one["failed"] for one in apart_whole())].capitalize(),
                str(2 * len(apart_whole())),
                f"{math.ceil(1000 * max(x for one in apart_whole() for x in one['losses'])) / 1000}",
                f"{stored('whole')['epsilon']}",
            ],
        ),
        (r"as far as (\d+) pairs", lambda: [str(stored("whole")["effort"]["pairs"])]),
        (
            r"random world parts in (\d+ of \d+) pairs, and the gridworld, .*?, in (\d+):",
            lambda: [
                "{} of {}".format(sum(one["apart"] for one in apart_whole("random")), len(apart_whole("random"))),
                str(sum(one["apart"] for one in apart_whole("gridworld"))),
            ],
        ),
        (
            r"another in (\d+ %) of the cases; the boosted ones part in (\d+ %)",
            lambda: [percent(float(cell)) for cell in boosted_row("gridworld(4,4,3)")[1:3]],
        ),
        (r"proof asks for (\S+), picks", lambda: [tens(paper_whole(4, 2, 3).pulls)]),
        (
            r"hard instance that part in (\d+) to (\d+ %) of the cases to (\d+ of \d+) pairs",
            lambda: [*percents(learners_apart("hard")), *{"{} of {}".format(*x) for x in boosted("hard")}],
        ),
        (r"learners part in (\d+) to (\d+ %), it does harm", lambda: percents(learners_apart("gridworld"))),
        (
            r"boosted part in (\d+), (\d+) and (\d+ %) of the pairs with (\d+), (\d+) and (\d+) learners",
            lambda: [
                *(" ".join(f"{100 * x / n:.0f}" for x, n in boosted("grid")) + " %").split(" ", 2),
                *(cells[4] for cells in table("whole") if len(cells) == 8 and cells[0].startswith("gridworld")),
            ],
        ),
        (
            r"at most (\S+), (\S+), (\S+) and (\S+) visits, with (\S+) down to (\S+) records",
            lambda: [
                *(f"{x:.2g}" for x in whole("tiers")["side-roads(6,2,5)"]["reach"][:4]),
                *(f"10^{int(math.log10(whole('tiers')['side-roads(6,2,5)']['samples'][i]))}" for i in (0, 3)),
            ],
        ),
        (r"Data are (\d+) to (\d+) times nicer", lambda: span(nicer())),
        (r"on the long chain (\S+) on average", lambda: [f"{pessimism('long chain: river-swim(5,2,5)'):.4f}"]),
        (
            r"grows like S\^(\S+) jointly and S\^(\S+) by products",
            lambda: [grade_slopes(grade)[0] for grade in ("joint", "product")],
        ),
        (
            r"stays below ([\d.]+) at every S",
            lambda: [f"{math.ceil(100 * max(upper(one) for one in whole('slope').values())) / 100}"],
        ),
        (r"needed, (\d+) pairs a grade", lambda: [str(n) for n in grade_pairs()]),
        (
            r"intervals are \[(\S+), (\S+)\] and \[(\S+), (\S+)\]",
            lambda: [f"{x:.1f}".replace("-", "−") for g in ("joint", "product") for x in grade_slopes(g)[1]],
        ),
        (r"\*\*Proven\*\* begins at (\S+) episodes for the smallest", lambda: [row("whole", "2, 2, 1", "0.5")[3]]),
    ],
    "docs/proofs/audit.md": [
        (r"The interval contains p with probability at least (\S+)\.", lambda: tails()[:1]),
        (r"the p at which Pr_p\[K ≥ k\] = ([\d.]+), .*? Pr_p\[K ≤ k\] = ([\d.]+) ", lambda: tails()[1:] * 2),
        (r"wrong side of p with probability at most (\S+)\.", lambda: tails()[1:]),
        (
            r"The price of looking, ρ = ([\d.]+), level ([\d.]+), p₁ = ([\d.]+), at most (\d+) pairs",
            lambda: [*(f"{x}" for x in sequential_test()), str(LOOKS)],
        ),
        *(
            (rf"\| ({p:g}) \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \|", partial(looking, p))
            for p in (0, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.5, 1)
        ),
        (
            r"fixed test with (\d+) pairs rejects from (\d+) on: with probability (\S+) at p = 0.1, (\S+) at 0.2 and "
            r"(\S+) at 0.3\.",
            lambda: fixed_test(0.1, 0.2, 0.3),
        ),
        (
            r"R_n\(p\) < (\d+)\}\. The true p is in C_n for all n together with probability at least (\S+)\.",
            lambda: [odds(1), tails()[0]],
        ),
        (r"A stake of at most (\S+), the", lambda: [power(code("reprl.auditing.facts.TIE"))]),
        (
            r"at least k/(\d+)\", k = 1 … (\d+): E = H·S·A·\(S \+ (\d+)\)",
            lambda: [str(bins := code("reprl.auditing.two_sample.BINS")), *[str(bins - 1)] * 2],
        ),
        (
            r"n ≈ (\d \d+) for 0.3 → 0.4, E = 10⁴ and level (\S+)\.",
            lambda: [contrast(0.3, 0.4, 10**4), f"{code('reprl.auditing.two_sample.LEVEL')}"],
        ),
        (r"n·kl\(X̄, m\) ≤ log (\d+) contains μ", lambda: [odds(2)]),
        (
            r"≤ 1/(\d+), and has probability at most (\S+ %);",
            lambda: [odds(2), percent(float(tails()[1]), 1)],
        ),
    ],
    "docs/proofs/coupling.md": [
        (
            r"random\): (\S+) for a million nodes, (\S+) for a thousand million",
            lambda: [power(n**2 / 2**65) for n in (10**6, 10**9)],
        ),
        (r"measured, (\S+) to (\S+) times the expansions .*?, up to (\d+) times under", multiple_of_best_first),
        (
            r"the median grew like ([\d.]+)ⁿ from n = 40 \((\S+) nodes\) to n = 60 \((\S+)\)",
            lambda: [
                f"{(searched('0.9', 60) / searched('0.9', 40)) ** (1 / 20):.2f}",
                *(power(searched("0.9", n), 1) for n in (40, 60)),
            ],
        ),
    ],
    "docs/proofs/decision.md": [
        (r"Σ 1/m_s ≤ ρ²ε²/\((\d+)·Λ³\)", lambda: [requirement_constant()]),
        (r"requirement is m = ⌈(\d+)·S·B", lambda: [calls_constant()]),
        (r"induction at ρ = (\S+) and boosts", lambda: [f"{code('reprl.paper.constants.BASE_RHO')}"]),
        (
            r"it gave (\S+) without and (\S+) with vector rounding at \(S, A, H\) = \(2, 4, 20\), (\S+) and (\S+) at "
            r"\(2, 4, 40\), and (\S+) and (\S+) at \(2, 400, 2\)",
            lambda: [*computed_rho(2, 4, 20), *computed_rho(2, 4, 40), *computed_rho(2, 400, 2)],
        ),
        (
            r"\(ν, τ, ρ', δ'\) = \((\S+), (\S+), ρ/2k, δ/3k\)",
            lambda: [f"{code(f'reprl.paper.constants.{name}')}" for name in ("THRESHOLD", "TOLERANCE")],
        ),
        (r"cannot both have probability above (\S+)\.", lambda: [f"{heavy(-1):.2f}"]),
        (r"c ≥ (\S+) and is ε/2-optimal", lambda: [f"{heavy(1):.2f}"]),
        (
            r"\(i\) c < (\S+): .*? < (\S+)² \+ (\S+)² = (\S+), so they differ with probability at least (\S+)\.",
            lambda: [
                *(f"{x:.2f}" for x in (heavy(1), heavy(1), 1 - heavy(1))),
                *(f"{x:.3f}" for x in (1 - parted(), parted())),
            ],
        ),
        (
            r"probability at most 0.1/(\S+) \+ 0.1 < (\S+) < 1/3",
            lambda: [f"{parted():.3f}", f"{math.ceil(100 * (0.1 / parted() + 0.1)) / 100}"],
        ),
    ],
    "docs/proofs/lower-bounds.md": [
        (r"κ = min\(1, (\S+) \+ √", lambda: [f"{code('reprl.lab.lower_bounds.solvers.MEAN_LOSS')}"]),
        (
            r"u·w\(u\) ≤ ([\d.]+)g \(the maximum is (\S+)…, at u ≈ (\S+)\)",
            lambda: [
                f"{code('reprl.lab.lower_bounds.solvers.MEAN_LOSS')}",
                f"{math.floor(1e5 * mean_loss()[0]) / 1e5}",
                f"{mean_loss()[1]:.2f}",
            ],
        ),
        (
            r"m → 8π²·([\d.]+)²·n/\(ρε\)² ≈ ([\d.]+)·n",
            lambda: [f"{code('reprl.lab.lower_bounds.solvers.MEAN_LOSS')}", f"{proven_signs('average'):.1f}"],
        ),
        (
            r"T ≥ log\(n/δ\)/KL\(½‖(\S+) \+ .*?/\|I₊\| < (\S+); .*? at most (\S+) \+ δ₀, .*?T·KL\(½‖(\S+) \+",
            lambda: [f"{code('reprl.lab.lower_bounds.reductions.WRONG_SHARE')}"] * 4,
        ),
        (r"For δ₀ = 0.01 this is T ≈ (\S+)·log", lambda: [votes()]),
    ],
    "docs/proofs/logs.md": [
        (
            r"about √\(2/B\), (\d+ %) for B = 1024",
            lambda: [percent(math.sqrt(2 / code("reprl.sources.logs.block_bootstrap.BLOCKS")))],
        ),
    ],
    "docs/proofs/whole.md": [
        (
            r"needs (\S+) episodes at ε = 0.5 and ρ = δ = 0.1; (\S+) at ε = 1, ρ = δ = 0.3; (\S+) at ε = 1.9, .*? So "
            r"10\^12 is missed by (\S+) at the usual",
            lambda: [
                tens(sharp(0.5, 0.1), 1),
                tens(sharp(1.0, 0.3), 1),
                tens(sharp(1.9, 0.4), 1),
                tens(sharp(0.5, 0.1) / 10**12),
            ],
        ),
        (
            r"needs (\d+) years for (\S+)\.",
            lambda: [f"{sharp(0.5, 0.1) / 10**7 / 3.156e7:.0e}".replace("5e+02", "500"), tens(sharp(0.5, 0.1))],
        ),
    ],
    "docs/eaton.md": [
        (r"would take about ([\d,]+) calls;", lambda: [f"{stored('eaton')['calls']:,}"]),
        (
            r"among (\d+) runs under one shared key, the mean of (\d+) keys",
            lambda: [
                str(stored("eaton")["runs"]),
                *{str(len(x["values"])) for x in measured("eaton", "rpvi/").values()},
            ],
        ),
        (
            r"At ([\d,]+) calls (no) two runs of rPVI share a value function; (\d+) times as many give (\d+) runs of "
            r"10 the commonest one at ρ_SQ = 0.2",
            lambda: [
                f"{stored('eaton')['calls']:,}",
                "no"
                if {min(measured("eaton")[f"rpvi/{x}/1"]["unique"]) for x in ("0.05", "0.2", "0.8")} == {20}
                else "",
                "1024",
                f"{10 * float(np.mean(measured('eaton')['rpvi/0.2/1024']['values'])):.0f}",
            ],
        ),
        (
            r"agree for (\d+ of \d+) pairs at ([\d,]+) calls and for (\d+ of \d+) at (\w+) times",
            lambda: [agree("1"), f"{stored('eaton')['calls']:,}", agree("4"), "four"],
        ),
        (r"ρ_SQ = ρ/(\d+) here", lambda: [str(eaton_cells())]),
    ],
    "docs/agents.md": [
        (r"count as one within (\d+ %) of its range", lambda: [percent(default(reprl.audit_agents, "closeness"))]),
        (
            r"cut into (\d+) cells .*? for (\d+) steps with at most ([\d,]+) samples",
            lambda: [
                str(math.prod(code("experiments.agents.plan.BINS"))),
                str(stored("agents")["table"]["horizon"]),
                f"{stored('agents')['table']['max_samples']:,}",
            ],
        ),
        (r"its returns are of (\d+) steps", lambda: [str(stored("agents")["table"]["horizon"])]),
    ],
    "docs/discounting.md": [
        (r"γ is at most (\S+)\.", lambda: [f"{code('reprl.mdp.criterion.MOST')}"]),
        (r"moves by more than (\S+);", lambda: [power(code("reprl.mdp.backup.STILL"))]),
        (r"counts less than (\d+ %) of all", lambda: [percent(code("reprl.mdp.criterion.LENGTH"))]),
    ],
    "docs/sampled.md": [
        (r"decision runs at least (\d+) times", lambda: [str(code("reprl.assurance.rehearsal.asked_for")(1.0))]),
        (
            r"length plays (\d+) episodes per",
            lambda: [str(code("reprl.learning.practical_episodic.EPISODES_PER_CELL"))],
        ),
    ],
    "docs/peers.md": [
        (
            r"Every rival takes `epsilon` \(([\d.]+)\), `delta` \(([\d.]+)\), .*? take `rho` \(([\d.]+)\)",
            lambda: [
                f"{default(code('reprl.lab.baselines.generative.rpvi'), name)}" for name in ("epsilon", "delta", "rho")
            ],
        ),
        (r"stopped after ([\d.]+)·N to ([\d.]+)·N rounds", rmax_rounds),
        (
            r"(\d+) episodes, S = 4, .*? values agree to (\S+), and those of MBQVI on the same (\d+) calls too. "
            r"Trained apart for (\d+) episodes, rlberry's UCBVI and ours lose less than (\S+) on average",
            lambda: [
                str(rlberry("EPISODES")),
                short(rlberry("CLOSE"), 0),
                str(rlberry("CALLS")),
                str(rlberry("TRAINED")),
                f"{rlberry('LOSS')}",
            ],
        ),
        (
            r"\(([\d.]+) for those that do not replicate\)\. [^|]*? at most (\d+ %) of (\d+) pairs apart [^|]*? at "
            r"most (\d+ %) of the runs",
            lambda: [
                f"{calibration('EPSILON')[False]}",
                percent(calibration("RHO")),
                str(calibration("PAIRS")[True]),
                percent(calibration("DELTA")),
            ],
        ),
        (r"the noise of (\d+) pairs", lambda: [str(calibration("PAIRS")[True])]),
        (r"need to formula, times (\S+) to (\S+)\.", preset_margins),
        (r"median ratio is (\d+) to (\d+) times smaller", median_margins),
        (
            r"share their noise: 2, as 4 loses more than ε in (\d+ %) of the runs",
            lambda: [
                percent(one["missed"])
                for one in rivals()
                if (one["learner"], one["softness"], one["world"])
                == ("karbasi-gaussian, correlated", 4, "random-mdp-v0")
            ],
        ),
    ],
    "docs/audit.md": [
        (
            r"passes ρ = 0.1 after (\d+) pairs, one that always does is rejected after (\d+)\.",
            lambda: [str(sequential(False)), str(sequential(True))],
        ),
    ],
    "docs/environments.md": [
        (r"default options (\d+ of the \d+) \(step, state\) pairs", lambda: [ties("gridworld-v0")]),
        (r"in `two-goals-v0`, (\d+ of the \d+)", lambda: [ties("two-goals-v0")]),
        (
            r"on the (\w+) \[held-out worlds\]\S+ that were learned both ways, .*? took (\d+) to (\d+) times as many",
            lambda: [WORDS[len(steps_apart())], *span(steps_apart())],
        ),
    ],
    "docs/rehearsal.md": [
        (r"of (\d+), from far below ε/H to H", lambda: [str(code("reprl.canonical.choice.TOLERANCES"))]),
        (
            r"share of ε, between ([\d.]+) and ([\d.]+), in",
            lambda: [f"{x}" for x in code("reprl.canonical.choice.ROOM")],
        ),
        (r"could be worth ([\d.]+)·ε", lambda: [f"{code('reprl.assurance.stopping.UNKNOWN')}"]),
        (
            r"twenty of them between (\d+) calls and (\S+)\. With (\d+) teams on half",
            lambda: [str(first := code("reprl.sources.source.FIRST")), power(first * 2**20), "20"],
        ),
    ],
    "docs/report.md": [
        (r"beyond (\d+) steps a slider", lambda: [str(code("reprl.report.maps._STRIP"))]),
        (
            r"draws the (\d+) states that matter most, by name, and a table lists all of them \(up to ([\d,]+)\)",
            lambda: [str(code("reprl.report.maps._LABELLED")), f"{code('reprl.report.listing._MOST'):,}"],
        ),
        (
            r"at most ([\d,]+) cells of a grid: of longer horizons (\d+) evenly",
            lambda: [f"{code('reprl.report.maps.MAX_CELLS'):,}", str(code("reprl.report.maps.MAX_STEPS"))],
        ),
    ],
    "docs/scale.md": [
        (
            r"(\S+) / H episodes a run for (\S+) runs, and (\S+) for other numbers",
            lambda: [
                f"{code('benchmarks.cuda.EPISODES'):,}",
                f"{kept('cuda')[0]['runs']:,}",
                f"{code('benchmarks.cuda.EPISODES'):,}",
            ],
        ),
        (r"larger than (\d+ kB), and each unpacks", lambda: [f"{code('reprl.execution.tasks._INLINE') >> 10} kB"]),
        (r"More than (\d+) runs for each multiprocessor", lambda: [str(code("reprl.paper.gpu._PER_CORE"))]),
    ],
    "docs/security.md": [
        (r"gives up after (\S+) nodes", lambda: [power(code("reprl.coupling.correlated.DEFAULT_MAX_NODES"))]),
        (
            r"at most (\d+) MiB of text and (\d+) GiB of values",
            lambda: [
                str(code("reprl.storage.documents.MAX_BYTES") >> 20),
                str(code("reprl.storage.documents._MAX_MEMORY") >> 30),
            ],
        ),
    ],
    "docs/randomness.md": [
        (r"a candidate may lose, in \((\S+), (\S+)\)", lambda: [f"{x}" for x in code("reprl.canonical.choice.ROOM")]),
        (r"must weigh more, in \((\S+), (\S+)\)", lambda: [f"{x}" for x in code("reprl.canonical.choice.HANDICAP")]),
        (
            r"a million runs of (\S+) draws each, some two of the (\S+) pairs overlap almost surely, each doing so "
            r"with probability about (\S+)/2⁶⁴ ≈ (\S+)\.\)",
            lambda: [power(10**9), power(math.comb(10**6, 2)), power(2 * 10**9), power(2 * 10**9 / 2**64)],
        ),
    ],
    "docs/proofs/canonical.md": [
        (r"τ = 2\^\{−U\}·ε/\((\d+)HS\), U", lambda: [f"{1 / code('reprl.canonical.choice.FLOOR'):g}"]),
        (
            r"share of ε in \[([\d.]+), ([\d.]+)\]\.",
            lambda: [f"{x}" for x in code("reprl.canonical.choice.ROOM")],
        ),
        (
            r"grid, \(2⁷H²/ε\)\^\{1/(\d+)\}\. So H·u ≤ \(2⁷H²/ε\)\^\{1/(\d+)\}·ε/128 and .*? plus ε·\(H\+1\)/(\d) "
            r"is: for H ≤ (\d) and ε ≥ 10⁻⁶ .*? \(room ≥ ([\d.]+)·ε\)",
            lambda: [
                *constants("rule.choice", "TOLERANCES", "TOLERANCES"),
                f"{2 / code('reprl.canonical.choice.FLOOR'):g}",
                str(surely_room(1e-6)),
                f"{code('reprl.canonical.choice.ROOM')[0]}",
            ],
        ),
        (r"at most CLEAR = (\S+)\)", lambda: [power(code("reprl.canonical.preferred.CLEAR"))]),
        (r"p = POOL = (\d),", lambda: constants("rule.choice", "POOL")),
        (
            r"uniform in \[([\d.]+), ([\d.]+)\]\. What laws draw \(§5\) has DRAWN = ([\d.]+) less",
            lambda: [*(f"{x}" for x in code("reprl.canonical.choice.HANDICAP")), *constants("rule.choice", "DRAWN")],
        ),
        (
            r"≈ (\d) for a single one\. TURN = ([\d.]+) is",
            lambda: [f"{math.pi / 4 / code('reprl.canonical.plateau.TURN'):.0f}", *constants("rule.sampled", "TURN")],
        ),
        (
            r"with probability ([\d.]+)\. With m/(\d) and (\d+) teams it is \(1 − Φ\(−z/2\)\)⁴⁰, on average ([\d.]+)\.",
            lambda: [
                f"{by_luck(*FORMER):.3f}",
                str(REHEARSED[1]),
                str(REHEARSED[0]),
                f"{by_luck(*REHEARSED):.4f}",
            ],
        ),
        (
            r"passes at z ≈ ([\d.]+) instead of ([\d.]+) \(where .*?\), ([\d.]+) times the data",
            lambda: [
                f"{passing(*REHEARSED):.1f}",
                f"{passing(*FORMER):.1f}",
                f"{(passing(*REHEARSED) / passing(*FORMER)) ** 2:.1f}",
            ],
        ),
        (
            r"max\((\d+), 4/ρ\) teams must all agree: .*? ≈ e\^\{−4\} \(([\d.]+) at ρ = 0.1\)\. max\((\d+), 4/ρ\) "
            r"pairs, at most (\d) apart: ≈ 5e\^\{−4\} \(([\d.]+) at ρ = 0.1\)",
            lambda: [
                str(code("reprl.assurance.rehearsal.asked_for")(1.0)),
                f"{binom.cdf(0, REHEARSED[0], 0.1):.3f}",
                str(code("reprl.assurance.rehearsal.asked_for")(1.0)),
                str(code("reprl.assurance.rehearsal.APART")),
                f"{binom.cdf(code('reprl.assurance.rehearsal.APART'), REHEARSED[0], 0.1):.2f}",
            ],
        ),
        (
            r"samples and (\d+) teams on a quarter of the data, two runs part with probability (.*?) when the boundary "
            r"is (.*?) standard deviations of the first look away, and (\S+) at (\S+)\. With (\d+) teams on half the "
            r"data it would be (.*?), and (\S+)\. Nearer",
            lambda: [
                str(REHEARSED[0]),
                ", ".join(f"{part_by_luck(one, *REHEARSED):.4f}" for one in DISTANCES),
                ", ".join(f"{one}" for one in DISTANCES),
                f"{part_by_luck(NEAREST, *REHEARSED):.3f}",
                f"{NEAREST}",
                str(FORMER[0]),
                ", ".join(f"{part_by_luck(one, *FORMER):.3f}" for one in DISTANCES),
                f"{part_by_luck(NEAREST, *FORMER):.2f}",
            ],
        ),
        (
            r"up to 1 of those it is (\S+) on average, against (\S+)\. A choice",
            lambda: [f"{part_on_average(*REHEARSED):.4f}", f"{part_on_average(*FORMER):.3f}"],
        ),
        (r"fewer than UNSURE = (\d+) samples", lambda: constants("explore.unknown", "UNSURE")),
        (r"at most UNKNOWN = ([\d.]+) of ε", lambda: constants("assurance.stopping", "UNKNOWN")),
        (
            r"lock \(H = (\d+), V\* = (\d), ε = 0.3, δ = 0.1\) .*? V\* \+ ε at q = ([\d.]+)\. .*? above δ for "
            r"n < (\d+)\. One parallel call has 10 tries: ([\d.]+) times the single",
            lock_bound,
        ),
        (
            r"τ ≤ ε\(1 − γ\)/\((\d)·S\), .*? at most ε/(\d)\.",
            lambda: [f"{1 / code('reprl.canonical.choice.FLOOR'):g}"] * 2,
        ),
        (
            r"by more than (\S+) the error is at most ([^γ]+)γ/\(1 − γ\), rounding apart, and at γ ≤ ([\d.]+) "
            r"below (\S+)\. ",
            lambda: [
                *[power(code("reprl.mdp.backup.STILL"))] * 2,
                f"{code('reprl.mdp.criterion.MOST')}",
                power(code("reprl.mdp.backup.STILL") / (1 - code("reprl.mdp.criterion.MOST"))),
            ],
        ),
        (
            r"margin goes from (\S+) to (\S+), in the median over (\d+) keys",
            lambda: [*lake_margins(20), "20"],
        ),
        (r"no noise of ([\d.]+) would", lambda: constants("rule.choice", "NOISE")),
    ],
    "docs/proofs/certificate.md": [
        (r"J = (\d+) tolerances", lambda: constants("rule.choice", "TOLERANCES")),
        (
            r"`ROUND` = (\S+) is kept .*? its TIE = (\S+), can do",
            lambda: [power(code("reprl.assurance.concentration.ROUND")), power(code("reprl.canonical.gaps.TIE"))],
        ),
        (
            r"from round (\d+) on, .*? as well \((\d+), (\d+), (\d+), (\d+), …\); .*? Look k = r − (\d+) spends "
            r"δ_k = δ/(\d+) for k ≤ `EVEN` = (\d+), then δ_k = \(δ/(\d+)\)/\(j\(j\+1\)\), j = k − (\d+): "
            r"Σ δ_k = (\d+)δ/(\d+) \+ δ/(\d+) = δ",
            lambda: [
                str(certificate("SKIPPED") + 1),
                *(str(certificate("HALFWAY") * n // 2) for n in (2, 3, 4, 6)),
                str(certificate("SKIPPED")),
                even := f"{certificate('EVEN') / (1 - certificate('LATER')):.0f}",
                str(certificate("EVEN")),
                later := f"{1 / certificate('LATER'):g}",
                str(certificate("EVEN")),
                str(certificate("EVEN")),
                even,
                later,
            ],
        ),
        (r"whose first (\w+) rounds are of", lambda: [WORDS[certificate("SKIPPED")]]),
        (r"K = `GRID` = (\d+) values", lambda: constants("certainty.radius", "GRID")),
        (
            r"with ρ = ([\d.]+)·2\^\{−k\}; used only if ρ·span ≤ ([\d.]+), span",
            lambda: constants("certainty.radius", "TOP", "TOP"),
        ),
        (r"way, ρ = ([\d.]+)·2\^\{−k\} and Σ", lambda: constants("certainty.radius", "STEEP")),
        (
            r"with λ = ([\d.]+)·2\^\{e−k\}·N/H, .*? if λ\(H − h'\)/n ≤ ([\d.]+), which",
            lambda: constants("certainty.radius", "TOP", "TOP"),
        ),
        (
            r"allowed: λ = (\d+)·([\d.]+)·2\^\{e−k\}·N/H\. Let a cell take part if λ·w·\(H − h'\) ≤ ([\d.]+)·n .*? if "
            r"λ·mass·\(H − h'\) ≤ ([\d.]+)·n it surely takes part, with x ≤ min\(λ·mass·span/n, ([\d.]+)\)",
            lambda: [*constants("certainty.start", "WIDER"), *constants("certainty.radius", *["TOP"] * 4)],
        ),
        (
            r"w = μ̂/n, λ = ([\d.]+)·2\^\{−k\}·N: .*? where λ/n > ([\d.]+); there",
            lambda: constants("certainty.radius", "STEEP", "STEEP"),
        ),
        (
            r"by \(c\) with λ = (\d+)·([\d.]+)·2\^\{−k\}·N, no",
            lambda: [*constants("certainty.reach", "FIRM"), *constants("certainty.radius", "STEEP")],
        ),
        (
            r"μ ≤ L/\(([\d.]+)·N\) plus .*? may have L/\(([\d.]+)·n\), and .*? L/\(([\d.]+)·N\) \+ way",
            lambda: constants("certainty.radius", *["STEEP"] * 3),
        ),
        (
            r"fail with \((\d+)/(\d+)\)·share·δ/events",
            lambda: [f"{code('reprl.assurance.concentration.LESS') + more:g}" for more in (0, 1)],
        ),
        (r"norm with p = (\d) that f pools by", lambda: constants("rule.choice", "POOL")),
        (
            r"as `SHARES` says: (.*?); together 1\.",
            lambda: [
                ", ".join(f"{kind} {share}" for kind, share in code("reprl.assurance.concentration.SHARES").items())
            ],
        ),
        (
            r"smallest λ is about ([\d.]+)·2(\S+)·N, so that beyond about (\S+)·L/v̂",
            lambda: [
                *constants("certainty.radius", "TOP"),
                power(10.0 ** (1 - code("reprl.assurance.concentration.GRID")))[2:],
                power(
                    2
                    / (
                        code("reprl.assurance.concentration.TOP")
                        / 2 ** (code("reprl.assurance.concentration.GRID") - 1)
                    )
                    ** 2
                ),
            ],
        ),
    ],
}
"""By page: what is written there, its numbers in groups, and the same numbers looked up. A blank is any white space."""

PLAIN: dict[str, dict[str, str]] = {
    "CHANGELOG.md": {
        "joblib 1.5 is needed": "a version",
        "where it was 65,536": "an earlier rule",
        "instead of 10⁹": "an earlier rule",
        "rich 13.8, pandas 2.2.2 (NumPy 2), matplotlib 3.11": "versions",
        "joblib before 1.5": "a version",
        "NumPy 2.0's": "a version",
    },
    "CONTRIBUTING.md": {"Python 3.11": "a version"},
    "docs/canonical.md": {
        "90 % quantile": "a quantile",
        "bold below 0.05": "a level",
        "The first showed that 20 teams": "an earlier rule",
        "a disagreement of 0.15": "an example",
        "at 0.15 they mostly do": "the example again; 0.68 by the binomial law",
    },
    "docs/certificates.md": {
        "0.0005 of one reward": "its worlds",
    },
    "docs/head-to-head.md": {
        "they differ so much (0.53)": "its world",
        "loses 0.4": "its world",
        "has seen a cell 20 times": "an example",
    },
    "docs/eaton.md": {"moves slip with probability 0.1": "its world"},
    "docs/environments.md": {
        "a reward counts 0.95 times": "an example",
        "worlds of 10⁵ states": "the benchmark's",
        "16 calls": "the benchmark's",
        "5000 depots": "the benchmark's",
        "0.5 more": "the benchmark's",
    },
    "docs/evidence.md": {"9216 log³": "the paper's", "0.1-replicable": "the paper's"},
    "docs/logs.md": {"3, 3.0 and": "labels", "on 10⁵ transitions": "a size"},
    "docs/overview.md": {"0.1-replicable": "the paper's"},
    "docs/paper-map.md": {"(ε, 0.1)-accurate | (ε, 0.01)": "the paper's"},
    "docs/peers.md": {"rlberry-scool 0.7.3 on rlberry 0.7.3": "versions"},
    "docs/proofs/audit.md": {
        "Pearson 1934": "a year",
        "at 0.2 and": "a disagreement",
        "at 0.3.": "a disagreement",
        "for 0.3 → 0.4, E = 10⁴": "an example",
    },
    "docs/proofs/coupling.md": {"Bernoulli(0.9)": "an example"},
    "docs/proofs/decision.md": {
        "0.1-replicable and (ε/2, 0.1)-accurate": "the paper's",
        "at most 0.1/": "the paper's",
        "+ 0.1 <": "the paper's",
    },
    "docs/proofs/lower-bounds.md": {
        "accuracy 0.02 stands where": "the paper's",
        "(ε, 0.1)-accurate, the theorem it rests on (Theorem B.6) needs (ε, 0.01)": "the paper's",
    },
    "docs/proofs/whole.md": {"So 10^12": "what was asked for", "plays 10^7 episodes": "a supposition"},
    "docs/scale.md": {
        "1 MB": "joblib's",
        "its 0.30.4 compiles nothing with NumPy 2.5": "versions",
        "takes Python 3.11": "a version",
        "with NumPy 2.5. What": "a version",
    },
    "docs/security.md": {
        "0600, 0640, 0664 or 0755 | mode 0644": "modes of files",
        "5·10⁻³²⁴ to 10³⁰⁸ samples": "a bad file",
        "visits of 10⁴⁰⁰": "a bad file",
        "10⁴⁰⁰ states": "a bad argument",
        "`hard-instance-v0` with 10⁹": "a bad argument",
        "each of 10⁶ steps": "a bad argument",
        "0.5 to 0.6": "its world",
    },
    "docs/tutorial.md": {
        "(With 0.8 for 0.9 in COMFORT": "an example",
        "with probability at most 0.1": "a setting",
        "within 0.3 of the best": "a setting",
    },
    "docs/whole.md": {"bias 0.15": "its world", "at most 10 %": "the paper's"},
}
"""By page, texts whose numbers are no measurements, and what they are."""
