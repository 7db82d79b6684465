"""The rooms of the house: imports go down the stairs only, and what is private stays in its room."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

SOURCE = Path(__file__).parent.parent / "src"

STOREYS = (
    ("errors", "kernels"),
    ("files", "frames", "guarantee", "progress", "randomness", "tasks", "terminal"),
    ("documents",),
    ("coupling", "checkpoints"),
    ("mdp",),
    ("explore",),
    ("rule", "decide"),
    ("certainty",),
    ("learning",),
    ("peers", "auditing", "artifacts", "bounds", "report"),
    ("cli",),
)
"""From the cellar up. A room may import every room of a lower storey; `rule` need not be there yet."""

SIDEWAYS = {("auditing", "peers"), ("report", "artifacts"), ("report", "auditing")}
"""(who, whom) on one storey."""

FRONT_DOOR = {
    "artifacts": {"__version__", "card"},
    "auditing": {"card"},
    "checkpoints": {"__version__"},
    "cli": {"__version__"},
    "learning": {"Receipt", "Recipe", "card", "save_run"},
    "mdp": {"card"},
}
"""What a room may take from `reprl` itself, whose names lead to every room: a result offers its own records, and what
a notebook shows of it, which it opens as a user would, when it is asked for them."""

FLOOR = {room: number for number, storey in enumerate(STOREYS) for room in storey}


class Import(NamedTuple):
    """One imported name, wherever in a file it is imported: at the top, in a function, for type checkers."""

    module: str
    target: str
    name: str
    line: int

    @property
    def edge(self) -> tuple[str, str]:
        return room_of(self.module), room_of(self.target)

    def __str__(self) -> str:
        return f"{self.module}, line {self.line}: {self.name} of {self.target}"


def room_of(module: str) -> str:
    """`mdp` for reprl.mdp.gymnasium.model; empty for reprl itself."""
    return [*module.split("."), ""][1]


def files() -> dict[str, Path]:
    """Module → file, for the whole package."""
    found = {}
    for path in sorted(SOURCE.rglob("*.py")):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imports_in(module: str, text: str, modules: set[str], *, package: bool = False) -> Iterator[Import]:
    """Every import of the package's own names, and every private attribute that is taken from an imported module."""
    bound = {}
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(module, alias.name, alias.name, node.lineno)
                bound[alias.asname or alias.name] = alias.name
        elif isinstance(node, ast.ImportFrom):
            here = module.split(".") if package else module.split(".")[:-1]
            above = here[: len(here) + 1 - node.level] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            for alias in node.names:
                whole = f"{base}.{alias.name}"
                yield Import(module, whole if whole in modules else base, alias.name, node.lineno)
                bound[alias.asname or alias.name] = whole
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and (owner := bound.get(ast.unparse(node.value))) in modules:
            yield Import(
                module, f"{owner}.{node.attr}" if f"{owner}.{node.attr}" in modules else owner, node.attr, node.lineno
            )


@cache
def imports() -> tuple[Import, ...]:
    """All imports from one part of the package to another, those within a room left out."""
    modules = files()
    found = (
        entry
        for module, path in modules.items()
        for entry in imports_in(module, path.read_text("utf-8"), set(modules), package=path.name == "__init__.py")
        if entry.target.split(".")[0] == "reprl"
    )
    return tuple(entry for entry in found if len(set(entry.edge)) == 2)


def allowed(entry: Import) -> bool:
    who, whom = entry.edge
    if who in ("", "__main__"):  # the front door opens on every room
        return True
    if not whom:
        return entry.name in FRONT_DOOR.get(who, ())
    return FLOOR[whom] < FLOOR[who] or (who, whom) in SIDEWAYS


def private(entry: Import) -> bool:
    names = [*entry.target.split("."), entry.name]
    return any(name.startswith("_") and not name.endswith("__") for name in names)


def test_every_room_has_a_storey() -> None:
    rooms = {room_of(module) for module in files()} - {"", "__main__"}
    assert rooms <= set(FLOOR), "say in STOREYS, and in CONTRIBUTING.md, where the new room is"
    assert set(FLOOR) - rooms <= {"rule"}


def test_the_map_in_contributing_has_every_room_and_names_files_that_exist() -> None:
    text = (SOURCE.parent / "CONTRIBUTING.md").read_text("utf-8").split("## The rooms")[1].split("\n## ")[0]
    named = re.findall(r"^\| `(\w+)`", text, re.MULTILINE)
    assert set(named) == {room_of(module) for module in files()} - {"", "__main__"}
    assert sorted(named, key=FLOOR.__getitem__, reverse=True) == named, "from the roof down"
    paths = re.findall(r"`((?:\w+/)+\w+\.\w+)`", text)
    assert len(paths) > 10
    missing = [path for path in paths if not any((home / path).exists() for home in (SOURCE / "reprl", SOURCE.parent))]
    assert not missing


def test_no_import_goes_up_the_stairs() -> None:
    assert len(imports()) > 300
    wrong = [entry for entry in imports() if not allowed(entry)]
    assert not wrong, "\n".join(map(str, wrong))


def test_the_front_door_opens_no_further_than_it_must() -> None:
    taken = {
        (who, entry.name)
        for entry in imports()
        for who, whom in [entry.edge]
        if who not in ("", "__main__") and not whom
    }
    assert taken == {(who, name) for who, names in FRONT_DOOR.items() for name in names}


def test_nothing_private_is_taken_from_another_room() -> None:
    wrong = [entry for entry in imports() if private(entry)]
    assert not wrong, "\n".join(map(str, wrong))


def test_sideways_imports_make_no_circle() -> None:
    assert all(FLOOR[who] == FLOOR[whom] for who, whom in SIDEWAYS)
    left = {room for edge in SIDEWAYS for room in edge}
    while left:
        free = {room for room in left if not any(who == room and whom in left for who, whom in SIDEWAYS)}
        assert free, f"circle among {left}"
        left -= free


@pytest.mark.parametrize(
    ("module", "text"),
    [
        ("reprl.mdp.counts", "from reprl.learning.learner import learn"),
        ("reprl.mdp.counts", "def f():\n    import reprl.cli.app"),
        ("reprl.mdp.counts", "if TYPE_CHECKING:\n    from ..cli import app"),
        ("reprl.mdp.counts", "from reprl import learning"),
        ("reprl.mdp.counts", "from reprl import learn"),
        ("reprl.coupling.rounding", "from reprl.mdp.counts import Counts"),
        ("reprl.peers.rmax", "from reprl.auditing.audit import audit"),
        ("reprl.errors", "from reprl.randomness import SharedKey"),
    ],
)
def test_edges_against_the_rule_are_found(module: str, text: str) -> None:
    assert [entry for entry in imports_in(module, text, set(files())) if not allowed(entry)]


@pytest.mark.parametrize(
    "text",
    [
        "from reprl.mdp.counts import _hidden",
        "from reprl.mdp import counts as c\nc._hidden",
        "import reprl.mdp.counts\nreprl.mdp.counts._hidden()",
    ],
)
def test_private_names_are_found(text: str) -> None:
    assert [entry for entry in imports_in("reprl.cli.app", text, set(files())) if private(entry)]
