"""What Sphinx is taught for this site: formulas as MathML, links from docstrings to proofs, and from pages to code."""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from docutils.parsers.rst import roles
from myst_parser.mdit_to_docutils.base import default_slugify
from sphinx.application import Sphinx
from sphinx.util.logging import getLogger

import reprl

LOG = getLogger(__name__)
PUBLIC = [name for name in reprl.__all__ if hasattr(getattr(reprl, name), "__module__")]

SIGNS = {
    "≤": r"\le ", "≥": r"\ge ", "≠": r"\ne ", "·": r"\cdot ", "−": "-", "∈": r"\in ", "∞": r"\infty ", "…": r"\dots ",
    "→": r"\to ", "×": r"\times ", "≈": r"\approx ", "π": r"\pi ", "∎": r"\quad\blacksquare",
}  # fmt: skip
"""Signs that stand in formulas as themselves, so that they can be read in a terminal; TeX's names for them."""
PAGE = re.compile(r"(?:``)?\bdocs/([\w/-]+)\.md(?:``)?(?: §(\d+))?")
"""A page that a docstring names, perhaps with a section."""

CODE = re.compile(r"(`+[^`]*`+)")
SPECIAL = re.compile(r"\||\*\*(?=\w+[,);]?(?:\s|$))|(?<=[(\s])\*(?=\w+[),])")


def mathml(latex: str, display: str) -> str:
    """Return a formula as MathML, which every current browser shows without a script."""
    from latex2mathml.converter import convert

    for sign, name in SIGNS.items():
        latex = latex.replace(sign, name)
    return str(convert(latex.strip(), display=display))


def _visit_inline(self: Any, node: nodes.math) -> None:
    self.body.append(mathml(node.astext(), "inline"))
    raise nodes.SkipNode


def _visit_block(self: Any, node: nodes.math_block) -> None:
    self.body.append(f'<div class="math formula">{mathml(node.astext(), "block")}</div>\n')
    raise nodes.SkipNode


class PageLink(nodes.Inline, nodes.TextElement):
    """A page of docs/ that a docstring names; it becomes a link once it is known where the docstring stands."""


def page_role(
    name: str, raw: str, text: str, line: int, inliner: Any, options: Any = None, content: Any = None
) -> tuple[list[nodes.Node], list[nodes.Node]]:
    """Read :page:`proofs/audit §2`."""
    page, _, number = text.partition(" §")
    return [PageLink(text, text, page=f"docs/{page}", number=number)], []


def link_pages(app: Sphinx, what: str, name: str, obj: object, options: object, lines: list[str]) -> None:
    """Mark the pages that a docstring names; bars and stars in its prose are bars and stars."""
    text = PAGE.sub(lambda found: f":page:`{found[1]}{f' §{found[2]}' if found[2] else ''}`", "\n".join(lines))
    parts = CODE.split(text)
    parts[::2] = [SPECIAL.sub(r"\\\g<0>", part) for part in parts[::2]]
    lines[:] = "".join(parts).split("\n")
    app.env.temp_data["reprl_docstring"] = lines[:]


def restore(app: Sphinx, what: str, name: str, obj: object, options: object, lines: list[str]) -> None:
    """Undo what napoleon made of an attribute's line: it takes "shares: …" for a type."""
    if what in ("attribute", "data"):
        lines[:] = app.env.temp_data["reprl_docstring"]


def resolve(app: Sphinx, tree: nodes.document, page: str) -> None:
    """Turn marked pages, and names of code in the prose of docs/, into links."""
    for mark in list(tree.findall(PageLink)):
        anchor = _anchor(app, mark["page"], mark["number"])
        if anchor is None:
            LOG.warning("%s: a docstring names %s, which is not there", page, mark.astext())
            continue
        address = app.builder.get_relative_uri(page, mark["page"]) + anchor
        mark.replace_self(nodes.reference("", mark.astext(), refuri=address, internal=True))
    if not page.startswith("api/"):
        objects = _objects(app)
        for code in list(tree.findall(nodes.literal)):
            entry = objects.get(code.astext().partition("(")[0])
            if entry is not None and not isinstance(code.parent, nodes.reference):
                address = f"{app.builder.get_relative_uri(page, entry.docname)}#{entry.node_id}"
                code.replace_self(nodes.reference("", "", code.deepcopy(), refuri=address, internal=True))


def _anchor(app: Sphinx, page: str, number: str) -> str | None:
    """Return where a page has its section of this number: "#2-title", "" for the page itself, None if not there."""
    if page not in app.env.all_docs:
        return None
    if not number:
        return ""
    headings = re.findall(r"^## (\d+)\. (.*)$", (app.srcdir / f"{page}.md").read_text("utf-8"), re.MULTILINE)
    slugs = {found: default_slugify(f"{found}. {_plain(title)}") for found, title in headings}
    return f"#{slugs[number]}" if number in slugs else None


def _plain(title: str) -> str:
    return title.replace("`", "").replace("*", "")


def _objects(app: Sphinx) -> dict[str, Any]:
    """Name in prose → what the reference says of it: `reprl.learn`, `coupling.correlated.correlated_sample`."""
    found = app.env.domains.python_domain.objects
    public = {f"reprl.{name}": f"{getattr(reprl, name).__module__}.{name}" for name in PUBLIC}
    names = {**{name: name for name in found}, **{name.removeprefix("reprl."): name for name in found}, **public}
    return {short: found[whole] for short, whole in names.items() if "." in short and whole in found}


def setup(app: Sphinx) -> dict[str, bool]:
    """Tell Sphinx."""
    app.add_html_math_renderer("mathml", (_visit_inline, None), (_visit_block, None))
    app.add_node(PageLink)
    roles.register_local_role("page", page_role)
    app.connect("autodoc-process-docstring", link_pages, priority=100)
    app.connect("autodoc-process-docstring", restore, priority=900)
    app.connect("doctree-resolved", resolve)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
