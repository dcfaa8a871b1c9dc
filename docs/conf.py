"""The site: Sphinx reads the notebooks of nbs/ as they are stored; nothing is executed, nothing is fetched."""

import importlib.util
import sys
from configparser import ConfigParser
from pathlib import Path

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
sys.path[:0] = [str(DOCS), str(ROOT / "tools")]

_parser = ConfigParser(delimiters=["="])
_parser.read(ROOT / "settings.ini", encoding="utf-8")
_settings = _parser["DEFAULT"]

project = _settings["lib_name"]
author = _settings["author"]
copyright = _settings["copyright"]
version = release = _settings["version"]

extensions = [
    "myst_nb",
    "nbdev_myst",  # nbdev notebooks -> MyST-NB pages
    "docstrings",  # NumPy docstrings -> parameter tables
    "sphinx.ext.mathjax",
    "sphinxcontrib.bibtex",
    "sphinx_copybutton",
]
root_doc = "index"
exclude_patterns = ["**/.ipynb_checkpoints", "**/_*", "**/.*", "jupyter_execute"]
nbdev_git_url = _settings["git_url"]
nbdev_branch = _settings["branch"]

# Notebooks and Markdown
nb_execution_mode = "off"
nb_merge_streams = True
nb_ipywidgets_js = {}  # a page without a kernel shows a widget's picture, and loads no script for it
nb_mime_priority_overrides = [("html", "application/vnd.jupyter.widget-view+json", None)]
myst_enable_extensions = ["amsmath", "attrs_inline", "colon_fence", "deflist", "dollarmath", "smartquotes"]
myst_dmath_double_inline = True
myst_heading_anchors = 4
myst_links_external_new_tab = True
numfig = True
bibtex_bibfiles = [str(DOCS / "references.bib")]
bibtex_default_style = "plain"
bibtex_reference_style = "author_year"

# API entries: the docstring has the types and shapes, the signature stays short
autodoc_typehints = "none"
autodoc_preserve_defaults = True
autodoc_member_order = "bysource"
add_module_names = False
default_role = "literal"  # a name in single backticks, in a docstring as in the text
python_maximum_signature_line_length = 88

# Every reference must resolve; only names outside this package are not ours to resolve.
nitpicky = True
nitpick_ignore_regex = [(r"py:.*", r"(?!mtbo_nb\b).*")]
suppress_warnings = ["mystnb.unknown_mime_type"]

# Look
pygments_dark_style = "a11y-high-contrast-dark"
html_theme = "furo"
html_title = project
html_favicon = "_static/logo.svg"
html_logo = "_static/logo.svg"
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False
_accents = ("color-brand-primary", "color-brand-content", "color-api-name", "color-api-pre-name")
html_theme_options = {
    "source_repository": _settings["git_url"],
    "source_branch": _settings["branch"],
    "source_directory": "nbs/",
    "top_of_page_buttons": ["view"],
    "light_css_variables": dict.fromkeys(_accents, "#0b5d8c"),
    "dark_css_variables": dict.fromkeys(_accents, "#7cc4ee"),
}
copybutton_exclude = ".linenos, .gp, .go"

# MathJax in one file, from a package of the same registry as everything else (MathJax 3.2.2, Apache-2.0).
_mathjax = Path(importlib.util.find_spec("sphinx-mathjax-offline").origin).parent / "static" / "mathjax"
html_static_path = ["_static", str(_mathjax / "tex-svg-full.js")]
mathjax_path = "tex-svg-full.js"
mathjax3_config = {
    "tex": {"tags": "none"},
    "options": {"enableMenu": False, "enableAssistiveMml": True},
    "svg": {"fontCache": "global"},
}
