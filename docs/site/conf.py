"""Sphinx's settings of the documentation, which `python docs/site` builds."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from lexer import ContinuousSparqlLexer

import streamgauge

HERE = Path(__file__).parent
INK = {"light": ("#15191e", "#596270"), "dark": ("#e8ebef", "#a1abb8")}

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
pygments_style = "default"
pygments_dark_style = "github-dark"

html_theme = "furo"
html_title = f"Streamgauge {version}"
html_static_path = [str(HERE / "static")]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False
html_show_copyright = False
html_use_index = False
html_domain_indices = False
html_theme_options = {"navigation_with_keys": True}


def setup(app):
    """Continuous queries have the words of their dialects coloured."""
    app.add_lexer("sparql", ContinuousSparqlLexer)
