"""reprl verify: are two runs the same, and if not, where and by how much."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from reprl.cli import arguments as args
from reprl.cli.answer import DIFFERENT, FINE, Answer
from reprl.errors import ReprlError, quote

if TYPE_CHECKING:
    from rich.console import Console

    from reprl.artifacts.receipt import Receipt
    from reprl.artifacts.verify import Evidence, Verification
    from reprl.mdp.gymnasium.model import GymnasiumModel
    from reprl.mdp.tabular import Labels, TabularMDP


SAME_DATA = "both runs used one data seed: equal policies show determinism, not replicability"
SAME_LOG = "both runs read one log: equal policies show determinism, not replicability"


def verify(
    a: Annotated[Path, typer.Argument(metavar="A", help="A run folder, a policy or a receipt.", show_default=False)],
    b: Annotated[Path, typer.Argument(metavar="B", help="The other one.", show_default=False)],
    env: Annotated[
        str | None,
        args.option("--env", help="The environment, for values where no recipe has its id.", metavar="ENV"),
    ] = None,
    env_option: args.EnvOptions = None,
    reward_range: args.RewardRange = None,
    json: args.Json = False,
) -> Answer:
    """Compare two runs: exit code 0 if they hold the same policy, 1 if not.

    Policies are compared cell by cell, receipts by the fingerprints in them. Receipts also hold the names of states
    and actions. Where a recipe with an id of the catalogue lies beside, or --env names the environment, the difference
    in value is computed. Nothing is imported on behalf of the files: no other environment is opened unless you name it.

    reprl verify run second

    reprl verify run/policy.json second/policy.json
    """
    from reprl.artifacts.verify import compare_policies, load_evidence

    sides = (load_evidence(a), load_evidence(b))
    shape = next((side.policy.actions.shape for side in sides if side.policy is not None), (None,))
    given = args.open_other(env, shape[0], env_option, reward_range)
    world, remarks = _find_world(sides) if given is None else (given, [])
    first, second = (side.policy or side.fingerprint for side in sides)
    comparison = compare_policies(first, second, world, _find_names(sides))
    remarks += _remarks(sides)
    document = {
        **comparison.as_dict(),
        "paths": [side.path for side in sides],
        "rehearsals": [_rehearsal(side) for side in sides],
        "certificates": [_certificate(side) for side in sides],
        "remarks": remarks,
    }
    code = FINE if comparison.same else DIFFERENT
    return Answer(document, lambda console: _show(console, sides, comparison, remarks), code)


def _rehearsal(side: Evidence) -> dict[str, Any] | None:
    """What simulated second teams did in a run, as far as its receipt is there and says it."""
    return None if side.receipt is None else side.receipt.as_dict()["rehearsal"]


def _certificate(side: Evidence) -> dict[str, Any] | None:
    """What a run's own data prove, as its receipt states it."""
    return None if side.receipt is None else side.receipt.as_dict().get("certificate")


def _find_world(sides: tuple[Evidence, Evidence]) -> tuple[TabularMDP | GymnasiumModel | None, list[str]]:
    """The environment of both sides, if it can be known."""
    from reprl.mdp.catalogue import PREFIX

    known = [side.recipe for side in sides if side.recipe is not None and side.recipe.environment.id is not None]
    if not known or known[0].of_log:
        return None, []
    id = str(known[0].environment.id)
    if id.startswith(PREFIX):  # a stranger's folder must not decide what is opened here
        return None, [f"values are missing: {quote(id)} is opened only where you name it (--env)"]
    try:
        return known[0].make(), []
    except ReprlError as error:
        return None, [f"values are missing: {error}"]


def _find_names(sides: tuple[Evidence, Evidence]) -> Labels | None:
    """The names in the receipts, unless these contradict each other."""
    found = {side.receipt.labels for side in sides if side.receipt is not None}
    return found.pop() if len(found) == 1 else None


def _remarks(sides: tuple[Evidence, Evidence]) -> list[str]:
    first, second = (side.receipt for side in sides)
    remarks = [
        f"{side.path} was undecided when its {'samples ran out' if side.receipt.coverage is None else 'log ended'}: "
        "nothing is promised of it"
        for side in sides
        if side.receipt is not None and side.receipt.guarantee.status == "none" and side.receipt.rehearsal is not None
    ]
    remarks += [
        f"{side.path} followed the candidate of its recipe; ρ speaks of choosing afresh"
        for side in sides
        if side.receipt is not None and side.receipt.choice is not None and side.receipt.choice.followed
    ]
    if first is None or second is None:
        return remarks
    remarks += _parted(first, second)
    if first.recipe != second.recipe:
        return [*remarks, "the two runs followed different recipes"]
    if first.data_commitment == second.data_commitment:
        return [*remarks, SAME_DATA if first.coverage is None else SAME_LOG]
    return remarks


def _parted(first: Receipt, second: Receipt) -> list[str]:
    """Say what it means if two certified runs of one shared seed differ."""
    proofs = [side.certified.certificate for side in (first, second) if side.certified is not None]
    if len(proofs) < 2 or not all(proof.proven for proof in proofs) or first.recipe != second.recipe:
        return []
    if first.fingerprint == second.fingerprint:
        return ["both policies are certified to be the world's own"]
    return [
        f"two certified runs differ: a certificate is false, of probability {sum(p.delta for p in proofs):g} at most"
    ]


def _show(console: Console, sides: tuple[Evidence, Evidence], comparison: Verification, remarks: list[str]) -> None:
    from reprl.cli.draw import facts, print_comparison

    rows: list[tuple[str, object]] = [(side.path, side.fingerprint) for side in sides]
    rows += [
        (f"{side.path}, rehearsal", side.receipt.rehearsal)
        for side in sides
        if side.receipt is not None and side.receipt.rehearsal is not None
    ]
    rows += [
        (f"{side.path}, certificate", side.receipt.certified.certificate)
        for side in sides
        if side.receipt is not None and side.receipt.certified is not None
    ]
    console.print(facts(rows))
    print_comparison(console, comparison)
    for remark in remarks:
        console.print(f"note: {remark}", soft_wrap=True)
