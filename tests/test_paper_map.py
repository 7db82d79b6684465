"""The map from the paper to the code: every name and every test on it exists, and line numbers stand nowhere else."""

from __future__ import annotations

import ast
import pkgutil
import re
from math import log
from pathlib import Path
from typing import Any

import pytest

from reprl.paper import plan
from reprl.paper.constants import Constants, Task
from reprl.paper.rep_var_bandit import plan_best_arm

ROOT = Path(__file__).parent.parent
MAP = ROOT / "docs" / "paper-map.md"
HEAD = ["paper", "name", "paper.tex line", "code", "runs in", "proof", "test"]
NAME = re.compile(r"`(\w+(?:\.\w+)+)`")
TEST = re.compile(r"`(test_\w+\.py)::(test_\w+)`")
LAST = {"1": 6, "2": 14, "3": 6, "4": 13, "5": 14, "6": 1, "7": 2, "A": 5, "B": 9, "algorithms": 7}
"""The last number that the paper gives out in each section, and to algorithms."""


TOOLS = {"1.1", "1.2", "1.3", "1.6", "2.3", "2.5", "2.6", "2.7", "2.8", "2.9", "2.10"}
TOOLS |= {"3.1", "3.2", "3.4", "3.5", "4.12", "5.13"}
"""Statements without code of their own: informal versions, problems (their solvers have rows), distances of laws."""


def rows() -> list[dict[str, str]]:
    """The first table of the map."""
    lines = [line for line in MAP.read_text("utf-8").split("## ")[0].splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    assert cells[0] == HEAD
    return [dict(zip(HEAD, row, strict=True)) for row in cells[2:]]


def resolve(name: str) -> Any:
    """Import `package.module.Class.method`, named from reprl."""
    return pkgutil.resolve_name(f"reprl.{name}")


def functions_in(file: str) -> set[str]:
    tree = ast.parse((ROOT / "tests" / file).read_text("utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("row", rows(), ids=lambda row: row["paper"] + ": " + row["name"])
def test_a_row_has_a_line_and_names_code_and_tests_that_exist(row: dict[str, str]) -> None:
    assert (row["paper"] == "–") == (row["paper.tex line"] == "–")
    assert row["paper"] == "–" or re.fullmatch(r"\d{3,4}(, (proof )?\d{3,4})*", row["paper.tex line"])
    names, tests = NAME.findall(row["code"]), TEST.findall(row["test"])
    assert names or row["code"] == "exact checks in the test"
    for name in names:
        resolve(name)
    assert tests
    assert row["test"] == ", ".join(f"`{file}::{test}`" for file, test in tests)
    for file, test in tests:
        assert test in functions_in(file), f"{file} has no {test}"


def test_every_numbered_statement_of_the_paper_has_a_row() -> None:
    named: set[str] = set()
    for row in rows():
        for first, last in re.findall(r"(?<![\d.])([1-7AB]\.\d+)(?![\d.])(?:–[1-7AB]\.(\d+))?", row["paper"]):
            section, number = first.split(".")
            named |= {f"{section}.{n}" for n in range(int(number), int(last or number) + 1)}
    everything = {f"{section}.{n}" for section, last in LAST.items() for n in range(1, last + 1) if len(section) == 1}
    assert everything - named == TOOLS
    assert {n for row in rows() for n in re.findall(r"Algorithm (\d)", row["paper"])} == set("1234567")


def test_every_name_and_every_test_in_any_table_of_the_map_exists() -> None:
    """The tables after the first as well: what runs otherwise, what is ours, where the paper slips."""
    text = MAP.read_text("utf-8")
    assert len(NAME.findall(text)) >= len(NAME.findall(text.split("## ")[0])) + 10
    for name in NAME.findall(text):
        if not name.endswith((".py", ".md")) and not name.startswith("paper.tex"):
            resolve(name)
    for file, test in TEST.findall(text):
        assert test in functions_in(file), f"{file} has no {test}"


# Rates on the page of evidence.

SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789")
RATE = re.compile(r"[OÕΩ]̃?\((.+)\) ")


def rate(statement: str, **values: float) -> float:
    """What a statement's rate on the page of evidence comes to, constants 1."""
    lines = (ROOT / "docs" / "evidence.md").read_text("utf-8").splitlines()
    (claim,) = [line.split("|")[2] for line in lines if line.startswith(f"| {statement} |")]
    found = RATE.search(claim)
    assert found, claim
    text = re.sub(r"([⁰¹²³⁴-⁹]+)(\([^()]*\))?", lambda m: (m[2] or "") + "**" + m[1].translate(SUPERSCRIPTS), found[1])
    text = re.sub(r"(\d)(?=[A-Zρε])", r"\1*", text.replace("·", "*"))
    return float(eval(text, {"log": log}, values))


@pytest.mark.parametrize(
    ("statement", "row", "access"),
    [
        ("Theorem 4.13", "Hopkins et al., joint", "parallel"),
        ("Theorem 6.1", "Hopkins et al., joint", "episodic"),
        ("Theorem A.5", "Hopkins et al., efficient", "episodic"),
        ("Theorem 1.4", "lower bound", "parallel"),
        ("Theorem 1.5", "lower bound", "episodic"),
    ],
)
def test_rates_on_the_page_of_evidence_are_those_that_plan_prints(statement: str, row: str, access: str) -> None:
    table = plan(n_states=6, n_actions=3, horizon=4, epsilon=0.3, rho=0.1, delta=0.05)
    (samples,) = [one.samples for one in table if (one.algorithm, one.access) == (row, access)]
    assert rate(statement, S=6, A=3, H=4, ρ=0.1, ε=0.3, δ=0.05) == pytest.approx(samples)
    assert rate(statement, S=6, A=3, H=5, ρ=0.1, ε=0.3, δ=0.05) != pytest.approx(samples)


def test_the_rate_of_best_arm_on_the_page_of_evidence_is_that_of_its_sizes() -> None:
    """A·pulls over the rate of Theorem 3.3 has a constant between 50 and 250, whatever the number of arms."""
    for arms in (2, 30, 10**4, 10**7):
        for epsilon, rho, delta in ((0.5, 0.1, 0.01), (0.01, 0.02, 1e-6)):
            pulls = plan_best_arm(arms, epsilon=epsilon, rho=rho, delta=delta).pulls
            assert 50 <= arms * pulls / rate("Theorem 3.3", A=arms, ε=epsilon, ρ=rho, δ=delta) <= 250


def test_one_word_counts_the_calls_of_the_sizes_that_the_map_names() -> None:
    """ε = H/10: (100, 4, 10) directly and (16, 4, 4) boosted can be counted, and not much more."""
    text = " ".join(MAP.read_text("utf-8").split())
    assert "100 states, 4 actions and 10 steps" in text
    assert "16 states, 4 actions and 4 steps with boosting" in text
    for sizes, boosted in (((100, 4, 10), False), ((16, 4, 4), True)):
        for factor, countable in ((1, True), (4, False)):
            n_states, n_actions, horizon = sizes
            task = Task(factor * n_states, n_actions, horizon, horizon / 10, 0.1, 0.1, "generative", "joint", boosted)
            assert Constants.paper(task).countable == countable
