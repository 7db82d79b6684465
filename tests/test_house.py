"""The house keeps its own rules: short functions, and options that are listed alike wherever they are listed."""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import get_type_hints

import reprl
from reprl.auditing.audit import AuditOptions
from reprl.learning.settings import LearnOptions, Settings

SOURCE = Path(reprl.__file__).parent
LONGEST = 60


def lengths(source: str) -> list[tuple[str, int]]:
    """Lines of every function, from its name to its end, docstring included."""
    nodes = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    return [(node.name, (node.end_lineno or 0) - node.lineno + 1) for node in nodes]


def test_no_function_is_longer_than_sixty_lines():
    found = [
        (str(path.relative_to(SOURCE)), name, number)
        for path in sorted(SOURCE.rglob("*.py"))
        for name, number in lengths(path.read_text(encoding="utf-8"))
        if number > LONGEST
    ]
    assert found == []
    # The control: one that is too long is seen.
    assert lengths("def f():\n" + "    pass\n" * LONGEST) == [("f", LONGEST + 1)]


def test_keyword_options_are_the_fields_of_settings():
    fields = {field.name for field in dataclasses.fields(Settings)}
    hints = get_type_hints(Settings)
    taken = {"preference": str | Sequence[int | str] | None}  # any sequence is taken, and kept as a tuple
    units = {"epsilon_units": str}  # no setting: ε is kept rescaled
    assert get_type_hints(LearnOptions) == {name: hints[name] for name in fields} | taken | units
    assert hints["preference"] == str | tuple[int | str, ...] | None
    assert LearnOptions.__required_keys__ == frozenset()


def test_audit_knows_the_options_of_every_learner():
    known = {name for entry in reprl.learners() for name in entry.options}
    own = {"rho", "access"}  # parameters of the audit itself
    assert set(get_type_hints(AuditOptions)) == known - own | {"max_samples", "epsilon_units"}
