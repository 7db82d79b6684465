"""reprl plan: what each algorithm would cost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from reprl.cli import arguments as args
from reprl.cli.answer import Answer

if TYPE_CHECKING:
    from rich.console import Console

    from reprl.bounds.planner import Plan


def plan(
    states: Annotated[int, args.option("--states", "-S", help="S.", kind=args.whole)],
    actions: Annotated[int, args.option("--actions", "-A", help="A.", kind=args.whole)],
    horizon: Annotated[int, args.option("--horizon", "-H", help="H.", kind=args.whole)],
    epsilon: args.Epsilon = None,
    rho: args.Rho = None,
    delta: args.Delta = None,
    json: args.Json = False,
) -> Answer:
    """Tabulate the samples that each algorithm needs, ours and its rivals', beside the lower bounds.

    Rows marked exact are what reprl draws; the others are orders of magnitude.

    reprl plan --states 16 --actions 4 --horizon 6 --epsilon 0.3 --rho 0.1
    """
    from reprl.bounds.planner import plan as tabulate
    from reprl.learning.settings import Settings

    asked = {name: value for name, value in (("epsilon", epsilon), ("rho", rho), ("delta", delta)) if value is not None}
    figures = {"epsilon": Settings.epsilon, "rho": Settings.rho, "delta": Settings.delta, **asked}
    table = tabulate(n_states=states, n_actions=actions, horizon=horizon, **figures)
    document = {
        "n_states": states,
        "n_actions": actions,
        "horizon": horizon,
        **figures,
        "rows": [row._asdict() for row in table],
    }
    return Answer(document, lambda console: _show(console, table))


def _show(console: Console, plan: Plan) -> None:
    from reprl.cli.draw import table_of

    table = table_of("algorithm", "access", "samples", "kind", "runtime", "source")
    for row in plan:
        kind = "exact" if row.exact else "order"
        table.add_row(row.algorithm, row.access, f"{row.samples:.3g}", kind, row.runtime, row.source)
    console.print(table)
