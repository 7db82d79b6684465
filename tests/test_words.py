"""Private words do not occur in what people read: README, pages, help, messages. CONTRIBUTING.md says which and why."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = [
    *(ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "website/index.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
]
PRIVATE = {
    r"crews?|mates?": "worker pool, worker process",
    r"for ?ever|endless(ly)?": "discounted, infinite",
    r"steady": "stationary",
    r"fear(s|ed)?": "optimistic value",
    r"spends?": "uses; alpha spending is the field's word",
    r"witness(es)?": "certificate data",
    r"rivals?|contenders?|peers": "baseline",
    r"parted|parting|parts? (from|ways)|(pairs|runs|learners|teams|policies) part|(run|learner|team) parts": "differ",
    r"apart": "differ, separate",
    r"(un)?sure": "decided, undecided",
    r"who(m)?ever": "a person or a program, by name",
    r"as a whole|algorithm, whole": "full algorithm, in total",
    r"(a|one|each|every|lucky|another) look(?!-)": "interim analysis",
    r"houses?|rooms": "package",
}
"""Word → what the field says. The table of words in CONTRIBUTING.md is this one."""
ALLOWED = (
    "peers.md",  # the name of a page
    "`apart`",  # a field of a document
    "small sure reward",  # a reward that is certain
    "alpha spending",
    "make sure",
    "UNSURE =",  # a constant
)
STORED = (
    "before it was sure",
    "too short to be sure",
    "tells its steps apart",
    "tells steps apart",
    "without a rival",
    "steady",
    "part at rung",
)
"""Texts that stored documents hold: they stay as they are, so that equal seeds give equal bytes."""


def private_words(text: str) -> list[str]:
    """Return the private words of a text, with what stands around them."""
    for allowed in ALLOWED:
        text = text.replace(allowed, " ")
    text = re.sub(r"<!--.*?-->|`[^`\n]*`|\]\([^)]*\)", " ", text)  # marks, code and addresses are no words
    pattern = re.compile(rf"\b({'|'.join(PRIVATE)})\b", re.IGNORECASE)
    return [text[max(0, found.start() - 40) : found.end() + 20].strip() for found in pattern.finditer(text)]


def messages(path: Path) -> Iterator[str]:
    """Return what a module prints, raises or shows as help: its texts, and docstrings where these are help."""
    tree = ast.parse(path.read_text("utf-8"))
    helps = path.parent.name == "cli" or path.name == "settings.py"
    silent = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr) and not helps}
    for node in ast.walk(tree):
        text = node.value if isinstance(node, ast.Constant) and id(node) not in silent else None
        if isinstance(text, str) and " " in text.strip() and not any(stored in text for stored in STORED):
            yield text


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_pages_have_no_private_words(path: Path) -> None:
    assert private_words(re.sub(r"^```.*?^```", "", path.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)) == []


def test_messages_have_no_private_words() -> None:
    found = {
        f"{path.relative_to(ROOT)}: {word}"
        for path in sorted((ROOT / "src" / "reprl").rglob("*.py"))
        for text in messages(path)
        for word in private_words(text)
    }
    assert sorted(found) == []


def test_templates_have_no_private_words() -> None:
    pages = sorted((ROOT / "src" / "reprl" / "report" / "templates").glob("*.html"))
    assert [word for path in pages for word in private_words(path.read_text("utf-8"))] == []


@pytest.mark.parametrize("text", ["the pairs part often", "two runs are apart", "it was not sure", "three rivals"])
def test_a_private_word_is_found(text: str) -> None:
    assert private_words(text)
