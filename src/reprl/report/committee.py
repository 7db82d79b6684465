"""What those need who decide whether a policy that was learned from a log is put to use.

Gain over practice first, changed cells with what they are worth, assumptions, and what other settings would do; all in
the units of the log's own rewards.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from reprl.report.numbers import number, percent
from reprl.report.summary import Cell, Fact, Line, On, Section, Strong, Table, line
from reprl.sources.logs.practice import MOST_ODDS, Beside, Change

if TYPE_CHECKING:
    from reprl.report.run import Run
    from reprl.sources.logs.coverage import Coverage


def gain_interval(run: Run, found: Coverage) -> tuple[float, float]:
    """The 95 % interval of the gain over practice in the rewards' own units."""
    return run.environment.scale * found.gain_low, run.environment.scale * found.gain_high


def gain_lines(run: Run) -> list[Line]:
    """The headline: the gain over practice; a red line where it is not shown to be positive."""
    found = run.receipt.coverage
    if found is None:
        return []
    low, high = gain_interval(run, found)
    practice = run.environment.original_return(found.practice)
    between = Strong(f"{number(low)} to {number(high)}")
    earns = f" more per episode than practice, which earns {number(practice)} (95 % interval)."
    lines = [line("By this log the policy earns ", between, earns, on=On.HTML)]
    if high <= 0.0:
        words = "The policy earns less than practice by this log: do not put it to use."
        lines.append(Line((words,), On.HTML, "bad"))
    elif low <= 0.0:
        words = "The gain over practice is not shown to be positive: by this log the policy may be worse."
        lines.append(Line((words,), On.HTML, "bad"))
    return lines


def sections_for(run: Run) -> list[Section]:
    """Tables for a committee; none where samples were drawn."""
    if run.receipt.coverage is None:
        return []
    beside = run.receipt.beside
    blocks = [_assumptions(run, run.receipt.coverage, beside)]
    if beside is not None:
        blocks = [_changes(run, beside), *blocks, *_variants(run, beside), *_groups(run, beside)]
    return [Section(blocks, "Policy and practice")]


def _changes(run: Run, found: Beside) -> Table:
    names, scale = run.environment.labels, run.environment.scale

    def row(change: Change) -> list[str | Cell]:
        interval = f"{number(scale * change.low)} to {number(scale * change.high)}"
        tone = "good" if change.low > 0.0 else "bad" if change.high < 0.0 else "plain"
        return [
            names.state(change.state),
            str(change.step),
            names.action(change.usual),
            Cell(names.action(change.action), look="strong"),
            number(float(f"{change.visits:.3g}")),
            Cell(number(scale * change.gain), look=tone),
            interval,
        ]

    more = found.changed - len(found.changes)
    caption = (
        "Where the policy does something else than practice mostly does, worth most first. Gain: per episode, visits "
        "times what a visit earns more than practice, in the rewards' own units. Where practice mostly does what the "
        "policy says, but not always, the policy gains too: that is in the gain above, not in this table."
    )
    if not found.changed:
        caption = "The policy does everywhere what practice mostly does."
    elif more:
        caption += f" {more:,} further cells are worth less."
    head = ("State", "Step", "Practice mostly", "Policy", "Visits per episode", "Gain per episode", "95 % interval")
    return Table("changes", "What would change", head, [row(change) for change in found.changes], caption, On.PAGE)


def _assumptions(run: Run, found: Coverage, beside: Beside | None) -> Table:
    rows = [
        ["No hidden reasons for actions", _hidden(run, beside)],
        ["Ends", _ends(run, found)],
        ["States tell all that matters", "Assumed: what happens next depends on state, step and action alone."],
        ["Steps", _steps(run)],
        ["Support", _support(found)],
        ["Same world", _same(run)],
    ]
    return Table("assumptions", "What has to be true", ("Assumption", "By this log"), rows, on=On.PAGE)


def _hidden(run: Run, beside: Beside | None) -> str:
    start = "Assumed: nothing that is not in the log has moved both what was done and what followed. "
    if beside is None:
        return f"{start}How strong such a factor would have to be is not computed with a discount."
    if beside.odds is None:
        return f"{start}There is no gain that a hidden factor would have to explain."
    how = "drawn anew at every step; one that lasts a whole episode can do more" if run.environment.horizon > 1 else ""
    scope = f" (Marginal sensitivity model{', ' if how else ''}{how}.)"
    if beside.odds >= MOST_ODDS:
        much = f"multiplies the odds of each action by {MOST_ODDS:g}"
        return f"{start}Not even one that {much} could explain the gain away.{scope}"
    return (
        f"{start}A hidden factor that multiplies or divides the odds of each action by {beside.odds:.2f} could explain "
        f"the gain away; a weaker one could not.{scope}"
    )


LIMITS = {
    "unknown": "'done' in the last step's row may be an end or a time limit, so these rows were left out",
    "truncated": "'done' in the last step's row is taken for a time limit",
    "terminated": "'done' is taken for an end in every row",
}
"""What `done_at_limit` says, in words."""


def _ends(run: Run, found: Coverage) -> str:
    parts = []
    if found.cut:
        parts.append(f"{found.cut:,} episodes stop early without being done; what followed is taken as unrelated to it")
    if found.beyond:
        parts.append(f"{found.beyond:,} rows were left out: at or after the horizon, or not saying where they led")
    if word := run.environment.options.get("done_at_limit"):
        parts.append(LIMITS[str(word)])
    return f"{'; '.join(parts)}." if parts else "Every episode ends, or reaches the horizon."


def _steps(run: Run) -> str:
    if run.recipe.settings.stationary:
        bad = f" The log contradicts it: {run.drift}." if run.drift else " The log does not contradict it."
        if not run.drift and run.receipt.guarantee.same.status == "none":
            bad = ""  # a folder does not hold what contradicts it, but in the promise that it takes away
        return f"Assumed: what an action does is the same at every step.{bad}"
    return "Nothing is assumed: what an action does may differ from step to step."


def _same(run: Run) -> str:
    words = "Assumed: patients, machines or customers to come are like those in the log."
    bad = [each.what for each in run.receipt.findings or () if "contradict one world" in each.what]
    return f"{words} The log contradicts it: {bad[0]}." if bad else words


def _support(found: Coverage) -> str:
    alike = f"in {percent(found.alike)} practice did what the policy says"
    words = f"The policy rests on data in {percent(found.covered)} of the log's visits; {alike}."
    return f"{words} Actions count that practice takes often enough (docs/logs.md)."


def _variants(run: Run, found: Beside) -> list[Table]:
    scale = run.environment.scale
    rows: list[list[str | Cell]] = [
        [each.setting, f"{each.cells:,}", percent(each.share), number(float(f"{scale * each.gain:.4g}"))]
        for each in found.variants
    ]
    caption = (
        "The decision made again with one setting changed, on the same log. Quality: the share of the possible gain "
        "that is asked for. Ties: which action is taken among those that count as equal."
    )
    head = ("Setting", "Cells that change", "Share of visits", "Gain over practice")
    return [Table("variants", "Had it been asked otherwise", head, rows, caption, On.PAGE)] if rows else []


def _groups(run: Run, found: Beside) -> list[Table]:
    world = run.environment
    scale = world.scale
    rows: list[list[str | Cell]] = []
    for each in found.groups:
        tone = "good" if each.gain_low > 0.0 else "bad" if each.gain_high < 0.0 else "plain"
        gain = f"{number(scale * each.gain_low)} to {number(scale * each.gain_high)}"
        values = [number(float(f"{world.original_return(x):.4g}")) for x in (each.practice, each.value)]
        rows.append([each.name, f"{each.episodes:,}", *values, Cell(gain, look=tone)])
    head = ("Subgroup", "Episodes", "Practice earns", "Policy earns", "Gain, 95 % interval")
    caption = "By the episodes of each subgroup alone. The policy is one for all: it was not chosen for a subgroup."
    return [Table("groups", "Subgroups", head, rows, caption, On.PAGE)] if rows else []


def gain_fact(run: Run) -> list[Fact]:
    """The red line, on a terminal."""
    found = run.receipt.coverage
    if found is None or found.gain_low > 0.0:
        return []
    words = "the gain over practice is not shown to be positive: the policy may be worse"
    return [Fact("WARNING", words, on=On.TERMINAL, prose=True)]
