"""Private words do not occur in what people read: README, pages, help, messages. CONTRIBUTING.md says which and why."""

from __future__ import annotations

import ast
import html
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import reprl
from reprl.cli.app import app, main
from tests.report_samples import audit_document, run_documents

ROOT = Path(__file__).parent.parent
PAGES = sorted(
    {*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / ".github").rglob("*.*"), ROOT / "website/index.md"}
)
"""Everything that people read: a new page is looked at without an entry here."""
PRIVATE = {
    r"crews?|mates?": "worker pool, worker process",
    r"for ?ever|endless(ly)?": "discounted, infinite",
    r"steady": "stationary",
    r"fear(s|ed)?": "optimistic value",
    r"spends?": "uses; alpha spending is the field's word",
    r"witness(es)?": "certificate data",
    r"rivals?|contenders?|peers?": "baseline",
    r"parted|parting|parts? (from|ways)|(pairs|runs|learners|teams|policies) part|(run|learner|team) parts": "differ",
    r"apart": "differ, separate",
    r"(un)?sure": "decided, undecided",
    r"who(m)?ever": "a person or a program, by name",
    r"as a whole|(algorithm, whole|whole algorithm)": "full algorithm, in total",
    r"speaks? of|vouch(es)?": "is about; signs",
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
    "ρ speaks of fresh data",
)
"""Texts that stored documents hold: they stay as they are, so that equal seeds give equal bytes."""


ON_PAGES = {r"worlds?": "environment; MDP in proofs"}
"""The same, of pages alone: the package has a module of this name."""


def private_words(text: str, words: dict[str, str] = PRIVATE) -> list[str]:
    """Return the private words of a text, with what stands around them."""
    for allowed in ALLOWED:
        text = text.replace(allowed, " ")
    text = re.sub(r"<!--.*?-->|`[^`\n]*`|\]\([^)]*\)", " ", text)  # marks, code and addresses are no words
    pattern = re.compile(rf"\b({'|'.join(words)})\b", re.IGNORECASE)
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


def prose(page: str) -> str:
    """Return a page without what is code: of a block of code, its comments and what a command prints."""

    def said(block: re.Match[str]) -> str:
        comments = re.findall(r"(?:^|\s)# (.*)$", block[2], re.MULTILINE)
        printed = [line for line in block[2].splitlines() if not line.startswith("$")] if block[1] == "console" else []
        return "\n".join([*comments, *printed])

    return re.sub(r"^```(\w*).*?\n(.*?)^```", said, page, flags=re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_pages_have_no_private_words(path: Path) -> None:
    assert private_words(prose(path.read_text("utf-8")), PRIVATE | ON_PAGES) == []


@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*.py")), ids=lambda path: path.stem)
def test_examples_have_no_private_words(path: Path) -> None:
    text = path.read_text("utf-8")
    comments = re.findall(r"# (.*)$", text, re.MULTILINE)
    texts = [node.value for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Constant)]
    assert private_words("\n".join([*comments, *(one for one in texts if isinstance(one, str))])) == []


COMMANDS = sorted(str(command.name) for command in app.registered_commands)


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help_has_no_private_words(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    """As it is printed: some of it is put together from docstrings of other modules."""
    main([*filter(None, [command]), "--help"])
    shown = capsys.readouterr().out
    assert "Usage" in shown
    assert private_words(re.sub(r"\s*│\s*│?\s*|\s+", " ", shown)) == []


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


@pytest.mark.parametrize("name", sorted(reprl.__all__))
def test_docstrings_of_public_names_have_no_private_words(name: str) -> None:
    value = getattr(reprl, name)
    if not callable(value):
        return
    fields = (
        [inspect.getdoc(member) for key, member in vars(value).items() if not key.startswith("_")]
        if isinstance(value, type)
        else []
    )
    assert [word for text in [inspect.getdoc(value), *fields] if text for word in private_words(text)] == []


@pytest.mark.parametrize("kind", ["run", "undecided", "audit"])
def test_reports_have_no_private_words(kind: str, tmp_path: Path) -> None:
    """The page as it is read, made from documents that hold phrases of their own."""
    mdp = reprl.make("two-goals-v0", horizon=3, size=3)
    assert isinstance(mdp, reprl.TabularMDP)
    few: dict[str, Any] = {"max_samples": 2000} if kind == "undecided" else {}
    documents = {"audit": audit_document}.get(kind, run_documents)(mdp, **few)
    page = reprl.write_report(documents, tmp_path / "page.html").read_text("utf-8")
    body = re.sub(r"<(script|style)\b.*?</\1>", " ", page, flags=re.DOTALL)
    assert private_words(html.unescape(re.sub(r"<[^>]+>", " ", body))) == []


def test_the_table_of_words_is_tested() -> None:
    """Every word in CONTRIBUTING.md's table is found by some pattern here."""
    table = (ROOT / "CONTRIBUTING.md").read_text("utf-8").partition("| not | but |")[2].partition("\n\n")[0]
    words = [word for row in table.splitlines()[2:] for word in re.findall(r"`([^`]+)`", row.split("|")[1])]
    assert len(words) > 15
    found = [private_words(f"a {word}; there is one {word} here", PRIVATE | ON_PAGES) for word in words]
    assert [word for word, one in zip(words, found, strict=True) if not one] == []
