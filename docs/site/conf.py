"""The site: `make docs` builds the pages of docs/ into build/docs, without a network."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import pages

import sketchdnn

project = "SketchDNN"
author = "The SketchDNN developers"
copyright = author  # noqa: A001  the name that Sphinx reads
version = release = sketchdnn.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_copybutton"]
exclude_patterns = ["site/**"]
root_doc = "index"

# Markdown: headings are targets of links, as on GitHub.
myst_heading_anchors = 4
myst_enable_extensions = ["attrs_block"]
# Options begin with two dashes.
smartquotes = False
highlight_language = "none"

# Docstrings: Google style, names between single backticks.
default_role = "code"
autodoc_typehints = "signature"
autodoc_member_order = "bysource"
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 88
napoleon_google_docstring = True
napoleon_numpy_docstring = False

html_theme = "furo"
html_title = "SketchDNN"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#1f5fbf", "color-brand-content": "#1f5fbf"},
    "dark_css_variables": {"color-brand-primary": "#7fb2ff", "color-brand-content": "#7fb2ff"},
}
copybutton_exclude = ".linenos, .gp, .go"


def setup(app: object) -> None:
    """Connect the pages that are made from the repository and from the code."""
    pages.setup(app)
