"""What every tool here needs to know about an nbdev notebook: where it lies, how to read it, what its cells say."""

import json
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
Cell = dict[str, Any]
Notebook = dict[str, Any]

_DIRECTIVE = re.compile(r"^#\|\s*([\w-]+):?[ \t]*(.*)$")


def notebooks(root: Path = ROOT) -> list[Path]:
    """All notebooks of the project, in reading order."""
    found = (root / "nbs").rglob("*.ipynb")
    return sorted(p for p in found if not any(part.startswith((".", "_")) for part in p.relative_to(root).parts))


def read(path: Path) -> Notebook:
    """The notebook as plain dictionaries."""
    return json.loads(path.read_text(encoding="utf-8"))


def text(lines: str | list[str]) -> str:
    """A notebook's text, which the format stores as one string or as a list of lines."""
    return lines if isinstance(lines, str) else "".join(lines)


def source(cell: Cell) -> str:
    """The text of a cell."""
    return text(cell["source"])


def directives(cell: Cell) -> dict[str, str]:
    """The `#| name: value` lines at the top of a code cell."""
    if cell["cell_type"] != "code":
        return {}
    found = {}
    for line in source(cell).splitlines():
        match = _DIRECTIVE.match(line)
        if match:
            found[match[1]] = match[2].strip()
        elif line.strip():
            break
    return found


def body(cell: Cell) -> str:
    """The code of a cell without its directives."""
    lines = source(cell).splitlines()
    while lines and (_DIRECTIVE.match(lines[0]) or not lines[0].strip()):
        lines.pop(0)
    return "\n".join(lines)


def is_exported(cell: Cell) -> bool:
    """Does this cell go into the module?"""
    return bool({"export", "exports", "exporti"} & directives(cell).keys())


def is_hidden(cell: Cell) -> bool:
    """Is this cell machinery that no reader wants to see?"""
    return bool({"hide", "default_exp"} & directives(cell).keys()) or body(cell).startswith("show_doc(")


def module_name(notebook: Notebook) -> str | None:
    """The module that the notebook makes, if it makes one."""
    return next((d["default_exp"] for d in map(directives, notebook["cells"]) if "default_exp" in d), None)
