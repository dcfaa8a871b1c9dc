"""A Sphinx extension that shows NumPy-style docstrings, with parameters, results and errors as tables."""

import inspect
import re
from typing import Any

from sphinx.application import Sphinx
from sphinx.ext.napoleon import Config
from sphinx.ext.napoleon.docstring import NumpyDocstring

Field = tuple[str, str, list[str]]
_CONFIG = Config()
_QUOTED = re.compile(r"(``.*?``|(?::[\w:]+:)?`[^`]+`|\$[^$]+\$)")
_MARKUP = re.compile(r"(?<=\w)_\b|[*|]")


def escape(line: str) -> str:
    """Plain text for reStructuredText: stars, bars and final underscores mean themselves, $...$ is mathematics."""
    pieces = _QUOTED.split(line)
    for i, piece in enumerate(pieces):
        if piece.startswith("$") and len(piece) > 2:
            pieces[i] = f":math:`{piece[1:-1]}`"
        elif not _QUOTED.fullmatch(piece):
            pieces[i] = _MARKUP.sub(lambda m: "\\" + m[0], piece)
    return "".join(pieces)


def escape_text(lines: list[str]) -> list[str]:
    """Escape every line that is not an example."""
    escaped, example = [], False
    for i, line in enumerate(lines):
        if i + 1 < len(lines) and set(lines[i + 1].strip()) == {"-"}:
            example = line.strip() == "Examples"
        escaped.append(line if example or line.lstrip().startswith((">>>", "- ", "* ", "..")) else escape(line))
    return escaped


def heading(text: str) -> list[str]:
    """A small heading inside an entry."""
    return ["", f".. rubric:: {text}", "   :class: api-heading", ""]


def table(kind: str, fields: list[Field]) -> list[str]:
    """Fields as a table: name and type, then the description."""
    rows: list[str] = []
    for name, type_, description in fields:
        name = name.replace("\\", "")
        head = " : ".join(filter(None, [f"``{name}``" if name else "", type_]))
        first, *rest = description or [""]
        rows += [f"   * - {head}", f"     - {first}", *(f"       {line}" for line in rest)]
    return [*heading(kind), ".. list-table::", "   :class: api-table", "   :widths: 30 70", "", *rows, ""]


class TableDocstring(NumpyDocstring):
    """napoleon's parser, with tables for the sections that list things."""

    def _parse_parameters_section(self, section: str) -> list[str]:
        return table("Parameters", self._consume_fields(multiple=True))

    def _parse_other_parameters_section(self, section: str) -> list[str]:
        return table("Other parameters", self._consume_fields(multiple=True))

    def _parse_attributes_section(self, section: str) -> list[str]:
        return table("Attributes", self._consume_fields(multiple=True))

    def _parse_returns_section(self, section: str) -> list[str]:
        return table("Returns", self._consume_returns_section())

    def _parse_yields_section(self, section: str) -> list[str]:
        return table("Yields", self._consume_returns_section())

    def _parse_raises_section(self, section: str) -> list[str]:
        return table("Raises", self._consume_fields(parse_type=False))

    def _parse_references_section(self, section: str) -> list[str]:
        return [*heading("References"), *self._dedent(self._consume_to_next_section()), ""]

    def _parse_examples_section(self, section: str) -> list[str]:
        return [*heading("Examples"), *self._dedent(self._consume_to_next_section()), ""]


def bases(value: type) -> str:
    """A sentence that names the public classes of this package from which a class inherits, with links."""
    found = [b for b in value.__mro__[1:] if b.__module__.startswith("mtbo_nb") and not b.__name__.startswith("_")]
    links = ", ".join(f":py:class:`~{b.__module__}.{b.__qualname__}`" for b in found)
    return f"Inherits from {links}." if links else ""


def process(app: Sphinx, what: str, name: str, value: Any, options: Any, lines: list[str]) -> None:
    """Rewrite a docstring in place."""
    lines[:] = TableDocstring(escape_text(lines), _CONFIG, app, what, name, value, options).lines()
    if inspect.isclass(value) and (sentence := bases(value)):
        lines += ["", sentence, ""]


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    app.setup_extension("sphinx.ext.autodoc")
    app.connect("autodoc-process-docstring", process)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
