"""What the site is made of: pages as they lie in docs/, and pages made from examples and modules.

Pages keep their places, so that links between them are true on a code host, in an installed package and here.
"""

from __future__ import annotations

import ast
import pkgutil
import shutil
from pathlib import Path

import reprl

ROOT = Path(__file__).parent.parent
SECTIONS: dict[str, dict[str, str]] = {
    "Tutorials": {"tutorial": "Ten minutes", "examples": ""},
    "How-to": {
        "environments": "My Gymnasium environment",
        "logs": "My CSV",
        "own": "My own learner",
        "agents": "An SB3 agent",
        "committee": "Defend a policy before a committee",
        "scale": "A cluster",
        "confirm": "Check a published policy",
        "report": "",
        "discounting": "",
    },
    "Explanation": {
        "overview": "",
        "rule": "The rule",
        "rehearsal": "Rehearsal",
        "search": "Search",
        "randomness": "",
        "whole": "",
        "lower-bounds": "",
        "security": "",
        "head-to-head": "",
        "evidence": "",
        "exponents": "",
    },
    "Reference": {"glossary": "", "audit": "", "peers": "", "paper-map": ""},
}
"""Caption → pages of docs/, in order, with a title where it is another than the page's own. Pages that nobody names
here come last in the reference, before the proofs."""
ABOUT = ("CHANGELOG", "CONTRIBUTING")


def assemble(folder: Path) -> None:
    """Write the sources of the whole site into a folder."""
    folder.mkdir(parents=True)
    shutil.copytree(ROOT / "docs", folder / "docs")
    for name in ABOUT:
        shutil.copy(ROOT / f"{name}.md", folder)
    examples = sorted((ROOT / "examples").glob("*.py"))
    for path in examples:
        _write(folder / "examples" / f"{path.stem}.md", example_page(path.read_text("utf-8"), path.name))
    with (folder / "docs" / "examples.md").open("a", encoding="utf-8") as page:
        page.write("\n" + _toctree("The scripts", [f"../examples/{path.stem}" for path in examples], hidden=False))
    modules = public_modules()
    for package in dict.fromkeys(name.split(".")[1] for name in modules):
        inside = [name for name in modules if name.split(".")[1] == package]
        _write(folder / "api" / f"{package}.md", api_page(package, inside))
    _write(folder / "api" / "index.md", api_index(modules))
    start = (Path(__file__).parent / "index.md").read_text("utf-8")
    _write(folder / "index.md", start.replace("<!-- contents -->", contents(folder)))


def contents(folder: Path) -> str:
    """Return the tables of contents, by kind: tutorials, how-to, explanation, reference."""
    there = [path.stem for path in sorted((folder / "docs").glob("*.md"))]
    named = {page for pages in SECTIONS.values() for page in pages}
    sections = {caption: [_entry(*each) for each in pages.items()] for caption, pages in SECTIONS.items()}
    proofs = [f"docs/proofs/{path.stem}" for path in sorted((folder / "docs" / "proofs").glob("*.md"))]
    others = [f"docs/{page}" for page in there if page not in named]
    sections["Reference"] = ["api/index", *sections["Reference"], *others, *proofs, *ABOUT]
    return "\n".join(_toctree(caption, pages) for caption, pages in sections.items())


def _entry(page: str, title: str) -> str:
    return f"{title} <docs/{page}>" if title else f"docs/{page}"


def example_page(source: str, name: str) -> str:
    """Return an example as a page: its docstring, then its code."""
    tree = ast.parse(source)
    title, _, about = (ast.get_docstring(tree) or name).partition("\n")
    code = "\n".join(source.splitlines()[tree.body[0].end_lineno or 0 :]).strip()
    return f"# {title.rstrip('.')}\n{about}\n\nRun it: `python examples/{name}`\n\n```python\n{code}\n```\n"


def public_modules() -> list[str]:
    """Return every module of the package that people may read about: all but the command line's."""
    found = [module.name for module in pkgutil.walk_packages(reprl.__path__, "reprl.")]
    hidden = ("reprl.cli", "reprl.__main__")
    return [name for name in found if not name.startswith(hidden) and not any(p[0] == "_" for p in name.split("."))]


def api_page(package: str, modules: list[str]) -> str:
    """Return the reference of one package, module by module."""
    parts = [f"# {package}\n"]
    for name in modules:
        if len(modules) > 1 and name == f"reprl.{package}":
            parts.append(_directive(f"automodule:: {name}", "no-index"))
            continue
        if len(modules) > 1:
            parts.append(f"## {name.removeprefix('reprl.')}\n")
        parts.append(_directive(f"automodule:: {name}", "members", "member-order: bysource"))
    return "\n".join(parts)


def api_index(modules: list[str]) -> str:
    """Return the front door: every public name with its line, then the packages."""
    lines = [
        "# Reference\n",
        "Names that `import reprl` offers, and where they live.\n",
        "| name | what it is |",
        "|---|---|",
    ]
    for name in sorted(reprl.__all__, key=str.lower):
        value = getattr(reprl, name)
        home = getattr(value, "__module__", "") or ""
        line = (value.__doc__ or "").strip().partition("\n")[0] if callable(value) else "a number"
        target = f"{home}.{name}" if home.startswith("reprl.") else f"reprl.randomness.{name}"
        lines.append(f"| [`reprl.{name}`](#{target}) | {line.replace('|', chr(92) + '|')} |")
    packages = dict.fromkeys(name.split(".")[1] for name in modules)
    return "\n".join(lines) + "\n\n" + _toctree("Packages", [*packages], hidden=False)


def _directive(head: str, *options: str) -> str:
    body = "".join(f"   :{option if ':' in option else option + ':'}\n" for option in options)
    return f"```{{eval-rst}}\n.. {head}\n{body}```\n"


def _toctree(caption: str, pages: list[str], *, hidden: bool = True) -> str:
    flag = ":hidden:\n" if hidden else ""
    return f"```{{toctree}}\n:caption: {caption}\n{flag}:maxdepth: 1\n\n" + "\n".join(pages) + "\n```\n"


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
