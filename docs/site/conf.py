"""Sphinx's settings of the documentation, which `python docs/site` builds."""

import re
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from lexer import ContinuousSparqlLexer
from sphinx.application import Sphinx

import streamgauge

HERE = Path(__file__).parent

project = "Streamgauge"
version = release = streamgauge.__version__
language = "en"
extensions = ["myst_parser"]
root_doc = "index"
exclude_patterns = ["files"]
nitpicky = True
smartquotes = False
myst_heading_anchors = 4
highlight_language = "none"
pygments_style = "a11y-high-contrast-light"
pygments_dark_style = "a11y-high-contrast-dark"

html_theme = "furo"
html_title = f"Streamgauge {version}"
html_favicon = str(HERE / "static" / "icon.svg")
html_static_path = [str(HERE / "static")]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False
html_show_copyright = False
html_use_index = False
html_domain_indices = False
html_theme_options = {"navigation_with_keys": True}

PICTURE = re.compile(r'<p>(<img alt="[^"]*" src="[^"]*\.svg" />)</p>')


def reachable(_app: Sphinx, _page: str, _template: str, context: dict[str, Any], _doctree: object) -> None:
    """Regions that scroll are reached by the keyboard, and headings of the navigation say their level."""
    body = PICTURE.sub(r'<div class="picture" tabindex="0">\1</div>', context.get("body", ""))
    body = body.replace("<pre>", '<pre tabindex="0">')
    context["body"] = body.replace('<div class="table-wrapper', '<div tabindex="0" class="table-wrapper')
    tree = context.get("furo_navigation_tree", "")
    context["furo_navigation_tree"] = tree.replace('role="heading"', 'role="heading" aria-level="2"')


def setup(app: Sphinx) -> None:
    """Continuous queries have the words of their dialects coloured; pages are changed after the theme has made them."""
    app.add_lexer("sparql", ContinuousSparqlLexer)
    app.connect("html-page-context", reachable, priority=900)
