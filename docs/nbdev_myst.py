"""A Sphinx extension that reads nbdev notebooks as MyST-NB pages.

Cells that carry machinery are dropped, directives become MyST-NB metadata, an API entry stands before the cell that
defines a public name, each notebook can be downloaded or opened elsewhere, `names` in backticks become links, and the
front page finds the chapters by itself.
"""

import ast
import fnmatch
import importlib
import inspect
import json
import posixpath
import re
import types
from typing import Any

import notebook
from docutils import nodes
from myst_parser.mdit_to_docutils.base import make_document
from myst_parser.mocking import MockRSTParser
from notebook import Cell, body, directives, is_exported, is_hidden
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

# Captions of the table of contents, and where their pages lie.
CONTENTS = {
    "Chapters": ["0[0-6]*", "07[a-z]*", "07_*", "0[89]*", "1*"],  # 07_safe_lmc builds on 07a and 07b
    "Tutorials": ["tutorials/*"],
    "Figures of the papers": ["figures/*"],
    "Look up": ["api", "symbols", "references"],
    "Project": ["changelog", "contributing"],
}
# nbdev's way to say what a reader sees, and MyST-NB's.
TAGS = {
    ("echo", "false"): "remove-input",
    ("output", "false"): "remove-output",
    ("hide_input", ""): "remove-input",
    ("hide_output", ""): "remove-output",
    ("code-fold", "true"): "hide-input",
}
# Files of the repository that have a page here.
PAGES = {"CHANGELOG.md": "changelog.md", "CONTRIBUTING.md": "contributing.md"}
_NAME = re.compile(r"^(?:mtbo_nb\.)?(?:\w+\.)?(\w+)(?:\(.*\))?$", re.DOTALL)


def text_cell(markdown: str) -> Cell:
    """A new text cell."""
    return {"cell_type": "markdown", "metadata": {}, "source": markdown}


def defined_names(code: str) -> list[str]:
    """The public functions and classes that a cell defines."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    found = [node.name for node in ast.parse(code).body if isinstance(node, kinds)]
    return [name for name in dict.fromkeys(found) if not name.startswith("_")]


class ApiEntry(SphinxDirective):
    """The documentation of a public name, from its docstring, which is reStructuredText.

    MyST's own `eval-rst` does the same, but pads the text with a line for every line of the notebook before it, ten
    thousand a cell.
    """

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Let autodoc write the entry."""
        module, _, name = self.arguments[0].rpartition(".")
        is_class = inspect.isclass(getattr(importlib.import_module(module), name))
        kind, options = ("class", "   :members:\n   :special-members: __call__\n") if is_class else ("function", "")
        page = make_document()
        page.settings, page.reporter = self.state.document.settings, self.state.document.reporter
        page["source"] = self.state.document["source"]
        MockRSTParser().parse(f".. auto{kind}:: {module}.{name}\n{options}", page)
        return page.children


def api_entry(module: str, name: str) -> Cell:
    """The text cell that documents a public name."""
    return text_cell(f"```{{api-entry}} {module}.{name}\n```")


def without_docstrings(code: str) -> str:
    """The code with each docstring cut to its first line: the API entry before the cell has the rest."""
    lines = code.splitlines()
    for node in reversed(list(ast.walk(ast.parse(code)))):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and ast.get_docstring(node):
            text = node.body[0]
            first, last = text.lineno - 1, text.end_lineno - 1
            if last > first:
                lines[first : last + 1] = [lines[first].rstrip() + lines[last].strip()[-3:]]
    return "\n".join(lines)


def convert_code(cell: Cell) -> Cell:
    """A code cell without its directives, which become tags, a caption and a label."""
    options = directives(cell)
    tags = [tag for (key, value), tag in TAGS.items() if options.get(key) == value]
    tags += ["export"] * is_exported(cell)
    figure = {"caption": options.get("fig-cap"), "name": options.get("label")}
    image = {"alt": options.get("fig-alt")}
    mystnb = {"figure": {k: v for k, v in figure.items() if v}, "image": {k: v for k, v in image.items() if v}}
    metadata = {**cell["metadata"], "tags": cell["metadata"].get("tags", []) + tags}
    metadata |= {"mystnb": {k: v for k, v in mystnb.items() if v}}
    return {**cell, "metadata": metadata, "source": without_docstrings(body(cell)) if is_exported(cell) else body(cell)}


def relink(markdown: str, docname: str, url: str, branch: str) -> str:
    """Links to files of the repository that are not part of the site lead to the code host."""
    folder = posixpath.join("nbs", posixpath.dirname(docname))

    def resolve(link: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join(folder, link[1]))
        if path.startswith("nbs/"):
            return link[0]
        page = f"nbs/{PAGES[path]}" if path in PAGES else None
        return f"]({posixpath.relpath(page, folder)})" if page else f"]({url}/blob/{branch}/{path})"

    return re.sub(r"\]\((\.\./[^)\s]+)\)", resolve, markdown)


def with_links(markdown: str, docname: str, url: str, branch: str) -> str:
    """The first text of a notebook, with ways to download or open it under its title."""
    path = f"nbs/{docname}.ipynb"
    repository = url.removeprefix("https://github.com/")
    links = [
        f"{{download}}`Download notebook </{docname}.ipynb>`",
        f"[Open in Colab](https://colab.research.google.com/github/{repository}/blob/{branch}/{path})",
        f"[Run on Binder](https://mybinder.org/v2/gh/{repository}/{branch}?labpath={path.replace('/', '%2F')})",
    ]
    block = ":::{container} notebook-links\n" + "\n".join(links) + "\n:::"
    return re.sub(r"^(# .*)$", lambda m: f"{m[1]}\n\n{block}\n", markdown, count=1, flags=re.MULTILINE)


def toctrees(pages: set[str]) -> Cell:
    """The table of contents over the pages that exist."""
    blocks = []
    for caption, patterns in CONTENTS.items():
        found = [page for pattern in patterns for page in sorted(fnmatch.filter(pages, pattern))]
        if found:
            listing = "\n".join(found)
            blocks.append(f"```{{toctree}}\n:hidden:\n:caption: {caption}\n\n{listing}\n```")
    return text_cell("\n\n".join(blocks))


def convert(nb: dict[str, Any], app: Sphinx, docname: str) -> dict[str, Any]:
    """The page of a notebook."""
    module = f"mtbo_nb.{name}" if (name := notebook.module_name(nb)) else None
    host = app.config.nbdev_git_url, app.config.nbdev_branch
    cells: list[Cell] = []
    documented: set[str] = set()
    for cell in nb["cells"]:
        if cell["cell_type"] != "code":
            cells.append({**cell, "source": relink(notebook.source(cell), docname, *host)})
        elif not is_hidden(cell):
            if module and is_exported(cell) and "exporti" not in directives(cell):
                names = [n for n in defined_names(body(cell)) if n not in documented]
                documented.update(names)
                cells += [api_entry(module, name) for name in names]
            cells.append(convert_code(cell))
    if docname == app.config.root_doc:
        cells.append(toctrees(app.env.found_docs))
    else:
        first = next(c for c in cells if c["cell_type"] == "markdown")
        first["source"] = with_links(first["source"], docname, *host)
    for number, cell in enumerate(cells):
        cell["id"] = f"cell-{number}"
    return {**nb, "cells": cells}


def public_objects() -> dict[str, Any]:
    """Every public function and class that a chapter documents, by full name, chapter by chapter."""
    found = {}
    for path in notebook.notebooks():
        if name := notebook.module_name(notebook.read(path)):
            module = importlib.import_module(f"mtbo_nb.{name}")
            found |= {f"{module.__name__}.{key}": getattr(module, key) for key in module.__all__}
    kinds = (type, types.FunctionType)
    return {k: v for k, v in found.items() if isinstance(inspect.unwrap(v), kinds) and k.startswith(v.__module__)}


def api_tables() -> str:
    """All public names with their first line, one table a module."""
    lines: list[str] = []
    module = ""
    for full, value in public_objects().items():
        if full.rpartition(".")[0] != module:
            module = full.rpartition(".")[0]
            lines += [f"\n## `{module}`\n", "| name | what it is |", "|---|---|"]
        summary = (inspect.getdoc(value) or "").partition("\n\n")[0].replace("\n", " ").replace("|", "\\|")
        lines.append(f"| {{py:obj}}`~{full}` | {summary} |")
    return "\n".join(lines)


def read_source(app: Sphinx, docname: str, content: list[str]) -> None:
    """Convert a notebook before it is parsed; fill the list of names."""
    if str(app.env.doc2path(docname)).endswith(".ipynb"):
        content[0] = json.dumps(convert(json.loads(content[0]), app, docname))
    elif docname == "api":
        content[0] += api_tables()


def pages_that_list(app: Sphinx, *_: Any) -> list[str]:
    """The pages to read again at every build, because they list other pages or names."""
    return [page for page in (app.config.root_doc, "api") if page in app.env.found_docs]


def link_names(app: Sphinx, doctree: nodes.document) -> None:
    """Turn the backticked name of a public function or class into a link to its entry."""
    targets = {full.rpartition(".")[2]: full for full in public_objects()}
    for literal in list(doctree.findall(nodes.literal)):
        match = _NAME.match(literal.astext())
        if not match or match[1] not in targets:
            continue
        parents = (nodes.reference, nodes.title, addnodes.pending_xref)
        ancestor = literal.parent
        while ancestor is not None and not isinstance(ancestor, parents):
            ancestor = ancestor.parent
        if ancestor is None:
            link = addnodes.pending_xref(
                "", refdomain="py", reftype="obj", reftarget=targets[match[1]], refexplicit=True, refdoc=app.env.docname
            )
            literal.replace_self(link)
            link += literal


def leave_mathematics_alone(app: Sphinx, doctree: nodes.document) -> None:
    r"""Hand unnumbered equations to MathJax as they stand: Sphinx adds a `split`, in which `\tag` is an error."""
    for block in doctree.findall(nodes.math_block):
        if not block.get("no-wrap") and not block.get("label"):
            block["no-wrap"] = True
            block[:] = [nodes.Text(rf"\[{block.astext()}\]")]


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    app.setup_extension("sphinx.ext.autodoc")
    app.add_directive("api-entry", ApiEntry)
    app.add_config_value("nbdev_git_url", "", "env")
    app.add_config_value("nbdev_branch", "main", "env")
    app.connect("env-get-outdated", pages_that_list)
    app.connect("source-read", read_source)
    app.connect("doctree-read", link_names)
    app.connect("doctree-read", leave_mathematics_alone)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
