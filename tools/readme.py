"""README.md from nbs/index.ipynb: text as it stands, code fenced, outputs below, pictures as files under nbs/images."""

import base64
import posixpath
import re
from pathlib import Path

from notebook import ROOT, Cell, body, directives, is_hidden, read, source, text

HEADER = "<!-- Made from nbs/index.ipynb by `make export`: edit that. -->\n\n"
PICTURES = "images/readme-{}.png"

_LINK = re.compile(r"""(\]\(|\b(?:src|href)=")(?![a-z][a-z+.-]*:|\#|/)([^)\s"]+)""")


def relink(markdown: str) -> str:
    """Links that are relative to nbs/, made relative to the root."""
    return _LINK.sub(lambda m: m[1] + posixpath.normpath(posixpath.join("nbs", m[2])), markdown)


def render_output(output: dict, pictures: list[bytes], alt: str = "") -> str:
    """One output as Markdown; a picture is put aside and linked."""
    data = output.get("data", {})
    if output["output_type"] == "stream":
        return f"```text\n{text(output['text']).rstrip()}\n```" if output["name"] == "stdout" else ""
    if "image/png" in data:
        pictures.append(base64.b64decode(text(data["image/png"])))
        return f"![{alt}](nbs/{PICTURES.format(len(pictures))})"
    if "text/markdown" in data:
        return relink(text(data["text/markdown"]))
    plain = text(data.get("text/plain", "")).rstrip()
    return f"```text\n{plain}\n```" if plain else ""


def render_cell(cell: Cell, pictures: list[bytes]) -> list[str]:
    """A cell as blocks of Markdown."""
    if cell["cell_type"] != "code":
        return [relink(source(cell))]
    if is_hidden(cell):
        return []
    options = directives(cell)
    code = [] if options.get("echo") == "false" else [f"```python\n{body(cell)}\n```"]
    outputs = [] if options.get("output") == "false" else cell["outputs"]
    alt = options.get("fig-alt", options.get("fig-cap", ""))
    return code + [block for output in outputs if (block := render_output(output, pictures, alt))]


def write_readme(root: Path = ROOT) -> None:
    """Write README.md and its pictures, and remove pictures that it no longer shows."""
    pictures: list[bytes] = []
    cells = read(root / "nbs" / "index.ipynb")["cells"]
    blocks = [block.strip() for cell in cells for block in render_cell(cell, pictures)]
    (root / "README.md").write_text(HEADER + "\n\n".join(filter(None, blocks)) + "\n", encoding="utf-8")
    for old in (root / "nbs").glob(PICTURES.format("*")):
        old.unlink()
    for number, picture in enumerate(pictures, start=1):
        path = root / "nbs" / PICTURES.format(number)
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(picture)


if __name__ == "__main__":
    write_readme()
