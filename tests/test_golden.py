"""Reference values of a slow, dense, independent implementation, reached through the package's own names."""

import importlib
import json
import pkgutil
from pathlib import Path

import golden_adapters
import numpy as np
import pytest

CASES = json.loads((Path(__file__).parent / "golden.json").read_text())["cases"]
ADAPTERS = {
    name: function
    for module in pkgutil.iter_modules(golden_adapters.__path__)
    for name, function in importlib.import_module(f"golden_adapters.{module.name}").ADAPTERS.items()
}


def agree(got, expected, tol: float) -> None:
    """Compare nested results: numbers within tol * max(1, max|expected|), integers exactly."""
    if isinstance(expected, dict):
        for key in expected:
            agree(got[key], expected[key], tol)
    elif isinstance(expected, list) and any(isinstance(e, (list, dict)) for e in expected) and _ragged(expected):
        assert len(got) == len(expected)
        for g, e in zip(got, expected, strict=True):
            agree(g, e, tol)
    else:
        want = np.asarray(expected)
        have = np.asarray(got)
        assert have.shape == want.shape
        if want.dtype.kind == "i":
            np.testing.assert_array_equal(have, want)
        else:
            scale = max(1.0, float(np.max(np.abs(want), initial=0.0)))
            np.testing.assert_allclose(have, want, rtol=0, atol=tol * scale)


def _ragged(nested: list) -> bool:
    try:
        np.asarray(nested, dtype=float)
    except (ValueError, TypeError):
        return True
    return False


@pytest.mark.parametrize("case", CASES, ids=[f"{c['id']}-{c['fn']}" for c in CASES])
def test_golden(case):
    if case["fn"] not in ADAPTERS:
        pytest.skip(f"{case['fn']}: its module is not written yet")
    agree(ADAPTERS[case["fn"]](**case["in"]), case["out"], case["tol"])
