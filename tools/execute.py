"""Run notebooks from top to bottom with a real kernel, in place. A second run changes no byte.

Usage: execute.py [NOTEBOOK ...]      (all of them when none is named)
"""

import json
import os
import re
import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from notebook import ROOT, notebooks

_WIDGET_ID = re.compile(r"\b[0-9a-f]{32}\b")
TIMEOUT = 600  # seconds a cell


def renumber_widgets(nb: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """Replace the random ids of widgets by their number in order of appearance."""
    numbers: dict[str, str] = {}
    raw = json.dumps(nb)
    states = nb.metadata.get("widgets", {}).get("application/vnd.jupyter.widget-state+json", {}).get("state", {})
    for found in _WIDGET_ID.findall(raw):
        if found in states:
            numbers.setdefault(found, f"{len(numbers) + 1:032x}")
    return nbformat.from_dict(json.loads(_WIDGET_ID.sub(lambda m: numbers.get(m[0], m[0]), raw)))


def execute(path: Path) -> None:
    """Run one notebook in its own folder and store its outputs."""
    nb = nbformat.read(path, as_version=4)
    kernel = nb.metadata.get("kernelspec", {}).get("name", "python3")
    folder = {"metadata": {"path": str(path.parent)}}
    NotebookClient(nb, timeout=TIMEOUT, kernel_name=kernel, resources=folder, record_timing=False).execute()
    nbformat.write(renumber_widgets(nb), path)


if __name__ == "__main__":
    os.environ |= {"TQDM_DISABLE": "1", "PYTHONHASHSEED": "0", "OMP_NUM_THREADS": "1"}
    for notebook in [Path(name).resolve() for name in sys.argv[1:]] or notebooks():
        print(notebook.relative_to(ROOT), flush=True)
        execute(notebook)
