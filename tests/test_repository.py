"""The tree is in order: what is made from the notebooks is what they give, and the package stands on its own."""

import ast
import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tools"))

import export
from notebook import body, module_name, notebooks, read, source, text

import mtbo_nb

NOTEBOOKS = notebooks()
MODULES = [name for path in NOTEBOOKS if (name := module_name(read(path)))]
LONGEST_CELL = 40
# What a user of the package need not have.
DEVELOPMENT = ["nbdev", "fastcore", "execnb", "ghapi", "nbformat", "nbclient", "jupyter_client", "ipykernel"]
# What is slow to import and needed for pictures only.
PICTURES = ["matplotlib", "ipywidgets", "IPython"]


def code_lines(code: str) -> int:
    """The lines of a cell, without blank ones and docstrings."""
    lines = len([line for line in code.splitlines() if line.strip()])
    try:
        tree = ast.parse(code)
    except SyntaxError:  # a magic
        return lines
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    documented = [node for node in ast.walk(tree) if isinstance(node, kinds) and ast.get_docstring(node)]
    strings = [text for node in documented for text in ast.get_source_segment(code, node.body[0]).splitlines()]
    return lines - len([line for line in strings if line.strip()])


def run_python(code: str) -> str:
    """Run code in a fresh interpreter; what it prints."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_what_is_made_from_the_notebooks_is_up_to_date():
    changed = [name.as_posix() for name in export.changes(ROOT)]
    assert not changed, f"run `make export`: {changed}"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_cells_are_short(path):
    cells = [cell for cell in read(path)["cells"] if cell["cell_type"] == "code"]
    long = {cell["id"]: n for cell in cells if (n := code_lines(body(cell))) > LONGEST_CELL}
    assert not long, f"cells over {LONGEST_CELL} lines: {long}"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_stored_outputs_hold_no_machine_path_and_no_error(path):
    outputs = [(cell["id"], out) for cell in read(path)["cells"] for out in cell.get("outputs", [])]
    failed = [name for name, out in outputs if out["output_type"] == "error"]
    assert not failed, f"cells that failed: {failed}"
    shown = [
        (name, text(out.get("text", "")) + text(out.get("data", {}).get("text/plain", ""))) for name, out in outputs
    ]
    paths = [name for name, words in shown if re.search(r"(/home/|/root/|/tmp/|/Users/|ipykernel_\d)", words)]
    assert not paths, f"cells whose output holds a path of this machine: {paths}"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_links_between_pages_lead_somewhere(path):
    prose = "\n".join(source(cell) for cell in read(path)["cells"] if cell["cell_type"] == "markdown")
    targets = re.findall(r"\]\(([^)\s#:]+\.(?:ipynb|md|png|svg))[#)]", prose)
    missing = [target for target in targets if not (path.parent / target).exists()]
    assert not missing, f"no such file: {missing}"


@pytest.mark.parametrize("name", MODULES)
def test_public_names_are_at_the_top_level(name):
    module = importlib.import_module(f"mtbo_nb.{name}")
    if name == "cli":
        return
    missing = [public for public in module.__all__ if getattr(mtbo_nb, public, None) != getattr(module, public)]
    assert not missing, f"not to be had from `mtbo_nb`: {missing}; see mtbo_nb/__init__.py"


@pytest.mark.parametrize("name", MODULES)
def test_public_names_are_documented_and_typed(name):
    module = importlib.import_module(f"mtbo_nb.{name}")
    functions = [f for key in module.__all__ if callable(f := getattr(module, key)) and hasattr(f, "__code__")]
    assert not [f.__name__ for f in functions if not f.__doc__]
    assert not [f.__name__ for f in functions if "return" not in f.__annotations__]


def test_the_package_needs_no_development_tool():
    block = f"import sys; sys.modules.update(dict.fromkeys({DEVELOPMENT}))"
    modules = "; ".join(f"import mtbo_nb.{name}" for name in MODULES)
    run_python(f"{block}; import mtbo_nb; {modules}")


def test_importing_the_package_loads_no_plotting():
    loaded = run_python("import sys, mtbo_nb; print(*{name.partition('.')[0] for name in sys.modules})").split()
    assert not set(PICTURES) & set(loaded)


def test_version_is_the_one_of_settings():
    line = next(line for line in (ROOT / "settings.ini").read_text().splitlines() if line.startswith("version"))
    assert line.partition("=")[2].strip() == mtbo_nb.__version__
    assert f"version: {mtbo_nb.__version__}" in (ROOT / "CITATION.cff").read_text()


def test_the_readme_prints_what_it_says():
    """Every python block is run; where a text block follows, it is the repr of the last expression."""
    text, scope = (ROOT / "README.md").read_text(), {}
    blocks = re.findall(r"```python\n(.*?)```(?:\s*```text\n(.*?)```)?", text, flags=re.DOTALL)
    assert len(blocks) > 4 and sum(bool(said) for _, said in blocks) > 3
    for code, said in blocks:
        *lines, last = ast.parse(code).body
        exec(compile(ast.Module(lines if said else [*lines, last], []), "README", "exec"), scope)
        if said:
            got = repr(eval(compile(ast.Expression(last.value), "README", "eval"), scope))
            assert re.sub(r"\s+", " ", got) == re.sub(r"\s+", " ", said.strip())
