"""One family of errors: its kinds, who may catch them as what, and what stands behind them."""

from __future__ import annotations

import ast
import pickle
from pathlib import Path

import pytest

import reprl
from reprl.errors import (
    DependencyError,
    DocumentError,
    InputError,
    OutputError,
    ReprlError,
    WorkerError,
    blame,
    find_foreign,
)

KINDS = {
    InputError: ValueError,
    DocumentError: ValueError,
    WorkerError: RuntimeError,
    OutputError: Exception,
    DependencyError: ImportError,
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_is_of_the_family_and_travels_between_processes(kind: type[ReprlError]) -> None:
    error = pickle.loads(pickle.dumps(kind("rho must lie in (0, 1), got 1.5")))
    assert type(error) is kind
    assert isinstance(error, ReprlError)
    assert isinstance(error, KINDS[kind])
    assert str(error) == "rho must lie in (0, 1), got 1.5"
    assert isinstance(error, ValueError) == issubclass(kind, InputError)  # a killed worker is no bad value


def test_every_error_that_is_raised_says_its_kind() -> None:
    folder = Path(reprl.__file__).parent
    for path in sorted(folder.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
                assert getattr(node.exc.func, "id", "") != "ReprlError", f"{path}:{node.lineno}"


def test_bad_input_and_bad_files_are_told_apart(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="rho") as caught:
        reprl.learn("gridworld-v0", rho=1.5)
    assert not isinstance(caught.value, DocumentError)
    (tmp_path / "policy.json").write_text('{"format": "reprl-policy"', encoding="utf-8")
    with pytest.raises(DocumentError, match=r"policy\.json: policy must be a JSON document"):
        reprl.Policy.load(tmp_path / "policy.json")
    with pytest.raises(InputError, match="no such file"):
        reprl.Policy.load(tmp_path / "absent.json")


@pytest.mark.parametrize("link", ["__cause__", "__context__"])
def test_a_circle_of_errors_is_followed_once(link: str) -> None:
    first, second = ValueError("first"), ValueError("second")
    setattr(first, link, second)
    setattr(second, link, first)
    assert find_foreign(first) is None
    with pytest.raises(ValueError, match="second"):
        blame(second, "in a test")
    found = find_foreign(first)
    assert found is not None
    assert found.error is second
