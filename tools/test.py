"""Run everything that is tested, one step after the other, and say at the end what passed and how long it took.

Usage: test.py [STEP ...]      (all of them when none is named)
"""

import os
import subprocess
import sys
import time
from pathlib import Path

from notebook import ROOT

STEPS = {
    "format": "ruff format --check .",
    "lint": "ruff check .",
    "spelling": "codespell .",
    "sync": "python tools/export.py --check",
    "types": "mypy",
    "notebooks": "nbdev_test --n_workers 2",
    "docs": "python tools/docs.py",
    "pytest": "python -m pytest -n 2",
}


def run(name: str, environment: dict[str, str]) -> tuple[bool, float]:
    """Run one step; did it pass, and how many seconds did it take?"""
    print(f"\n== {name}: {STEPS[name]}", flush=True)
    start = time.perf_counter()
    status = subprocess.run(STEPS[name].split(), cwd=ROOT, env=environment).returncode
    return status == 0, time.perf_counter() - start


def main(names: list[str]) -> int:
    """Run the named steps, print the summary, return the exit status."""
    unknown = set(names) - STEPS.keys()
    if unknown:
        sys.exit(f"no step {', '.join(sorted(unknown))}; there are: {', '.join(STEPS)}")
    scripts = Path(sys.executable).parent
    environment = os.environ | {"PATH": f"{scripts}{os.pathsep}{os.environ['PATH']}", "OMP_NUM_THREADS": "1"}
    results = {name: run(name, environment) for name in names or STEPS}
    print("\n== summary")
    for name, (passed, seconds) in results.items():
        print(f"  {name:<10} {'passed' if passed else 'FAILED'} {seconds:7.1f} s")
    return 0 if all(passed for passed, _ in results.values()) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
