"""Sphinx's settings. Nothing here asks the network for anything: formulas are MathML, fonts are the reader's own."""

from __future__ import annotations

import os
import sys
from pathlib import Path

os.environ["NUMBA_DISABLE_JIT"] = "1"  # kernels as the functions they are written as, with their docstrings
ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

import reprl  # noqa: E402

project, author, version = "reprl", "The reprl authors", reprl.__version__
copyright = "The reprl authors, MIT licence"  # a name that Sphinx asks for
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "website.extension"]

myst_heading_anchors = 4
myst_fence_as_directive = ["math"]
suppress_warnings = [
    "misc.highlighting_failure",  # consoles show more than any lexer knows
    "ref.python",  # a type named in two modules is shown without a link
]

autodoc_typehints = "signature"
autodoc_member_order = "bysource"
autodoc_type_aliases = {"ArrayLike": "ArrayLike", "NDArray": "NDArray"}
autodoc_default_options = {"show-inheritance": False}
python_maximum_signature_line_length = 88
napoleon_google_docstring, napoleon_numpy_docstring = True, False
napoleon_custom_sections = ["Guarantee", "Randomness"]
napoleon_use_rtype = False
default_role = "code"
add_module_names = False

html_theme = "furo"
html_title = "reprl"
html_static_path = [str(Path(__file__).parent / "static")]
html_css_files = ["style.css"]
html_show_sphinx = html_show_sourcelink = html_copy_source = False
html_math_renderer = "mathml"
html_theme_options = {"navigation_with_keys": True}
pygments_style, pygments_dark_style = "friendly", "native"
exclude_patterns: list[str] = []
