"""Every Python block of the pages runs as it is printed, page by page, in a folder of its own.

A page that supposes the reader's own files or classes gets small ones here; a block that needs an extra which is not
installed is only compiled. The tutorial has a test of its own, which also compares what is printed.
"""

from __future__ import annotations

import ast
import csv
import importlib.util
import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import reprl
from reprl.learning.learner import keywords
from tests.shop import Shop

ROOT = Path(__file__).parent.parent
BLOCK = re.compile(r"^```python[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
EXTRAS = {"agents.md": "stable_baselines3"}
"""Pages whose blocks need a package that is not always there, and its module."""
LONG = {"README.md", "index.md", "audit.md", "environments.md", "own.md", "search.md", "whole.md"}
"""Pages whose blocks take more than a few seconds."""


def blocks(path: Path) -> list[str]:
    return BLOCK.findall(path.read_text("utf-8"))


PAGES = {
    path.name: path
    for path in (ROOT / "README.md", ROOT / "website" / "index.md", *sorted((ROOT / "docs").rglob("*.md")))
    if blocks(path) and path.name != "tutorial.md"
}


def write_log(name: str, head: list[str], states: list[str], steps: int) -> None:
    """A log of random actions: the first of two moves to the first state, which pays, more often."""
    rng = np.random.default_rng(3)
    with Path(name).open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(head)
        for episode in range(300):
            state = int(rng.integers(len(states)))
            for step in range(steps):
                action = int(rng.integers(2))
                after = 0 if rng.random() < (0.9, 0.1)[action] else int(rng.integers(len(states)))
                row = [episode, step, states[state], ("wait", "treat")[action], int(state == 0), states[after]]
                rows.writerow(row)
                state = after


def logs(names: dict[str, Any]) -> None:
    write_log("clinic.csv", ["patient", "step", "health", "action", "reward", "next_state"], ["well", "ill"], 5)
    write_log("plant.csv", ["episode", "step", "state", "action", "reward", "next_state"], ["new", "worn"], 5)


def report(names: dict[str, Any]) -> None:
    for name in ("runs/first", "first", "second"):
        reprl.learn("river-swim-v0", horizon=3, epsilon=0.5, access="generative", shared_seed=7).save(name)
    reprl.learn("gym:FrozenLake-v1", horizon=8, epsilon=0.3, access="generative", shared_seed=1).save("run")
    found = reprl.audit("river-swim-v0", horizon=3, epsilon=0.5, access="generative", pairs=2)
    found.save("audit.json")


class Paid(Shop):
    """A shop whose takings lie in [0, 1]."""

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        """Trade, and rescale."""
        state, reward, terminated, truncated, about = super().step(action)
        low, high = self.REWARDS
        return state, (reward - low) / (high - low), terminated, truncated, about


def environments(names: dict[str, Any]) -> None:
    names["MyEnv"] = Paid


SUPPOSED: dict[str, Callable[[dict[str, Any]], None]] = {
    "environments.md": environments,
    "logs.md": logs,
    "report.md": report,
}


@pytest.mark.slow
@pytest.mark.parametrize(
    "page", [pytest.param(name, marks=pytest.mark.long) if name in LONG else name for name in PAGES]
)
@pytest.mark.filterwarnings("ignore")
def test_blocks_run_as_they_are_printed(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"__name__": "page"}
    if page in SUPPOSED:
        SUPPOSED[page](names)
    missing = page in EXTRAS and importlib.util.find_spec(EXTRAS[page]) is None
    for number, text in enumerate(blocks(PAGES[page])):
        block = compile(text, f"{page}, block {number}", "exec")
        if not missing:
            exec(block, names)
    if missing:
        pytest.skip(f"{page} needs {EXTRAS[page]}; its blocks were only compiled")


def unknown_names(text: str) -> list[str]:
    """Names of reprl in a block, and keywords of its functions, that do not exist."""
    wrong = []
    for node in ast.walk(ast.parse(text)):
        call = node if isinstance(node, ast.Call) else None
        named = node if call is None else call.func
        if not (isinstance(named, ast.Attribute) and isinstance(named.value, ast.Name) and named.value.id == "reprl"):
            continue
        found = getattr(reprl, named.attr, None)
        if found is None:
            wrong.append(named.attr)
        elif call is not None and inspect.isfunction(found):
            known = inspect.signature(found).parameters
            if not any(one.kind is one.VAR_KEYWORD for one in known.values()):
                wrong += [word.arg for word in call.keywords if word.arg is not None and word.arg not in known]
            elif found is reprl.learn:
                wrong += [word.arg for word in call.keywords if word.arg is not None and word.arg not in keywords()]
    return wrong


@pytest.mark.parametrize("page", sorted(LONG))
def test_blocks_that_take_long_compile_and_name_what_exists(page: str) -> None:
    """What the normal suite checks of pages that only `make test-long` runs."""
    assert [name for text in blocks(PAGES[page]) for name in unknown_names(text)] == []
    assert unknown_names("reprl.no_such_name; reprl.learn(1, epsilom=2); reprl.make('x', size=2)") == [
        "no_such_name",
        "epsilom",
    ]


def test_every_page_with_blocks_is_found_and_a_wrong_block_is_noticed(tmp_path: Path) -> None:
    assert {"lower-bounds.md", "whole.md", "README.md"} <= set(PAGES)
    assert set(SUPPOSED) | set(EXTRAS) | LONG <= set(PAGES)
    page = tmp_path / "page.md"
    page.write_text("```python\nimport reprl\nreprl.no_such_name\n```\n", encoding="utf-8")
    with pytest.raises(AttributeError, match="no_such_name"):
        exec(compile(blocks(page)[0], "page.md", "exec"), {})
