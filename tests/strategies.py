"""Random kernels and data for the property-based tests."""

import numpy as np
from hypothesis import strategies as st

from mtbo_nb.kernels import ICM, LMC, SE, Diagonal, Matern, similar_tasks

SCALARS = {
    "se": lambda ell: SE(ell),
    "matern12": lambda ell: Matern(0.5, ell),
    "matern32": lambda ell: Matern(1.5, ell),
    "matern52": lambda ell: Matern(2.5, ell),
    "scaled": lambda ell: 0.3 * SE(ell),
}


def scalar_kernels():
    """A scalar kernel of any kind."""
    return st.builds(lambda name, ell: SCALARS[name](ell), st.sampled_from(sorted(SCALARS)), st.floats(0.05, 3.0))


def covariance(rng, n, rank):
    """A random positive semi-definite (n, n) matrix of the given rank."""
    A = rng.standard_normal((n, rank))
    return A @ A.T


@st.composite
def kernels(draw, max_tasks=4):
    """A multi-task kernel of any kind; B may be rank-deficient."""
    n, rng = draw(st.integers(1, max_tasks)), np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    kind, k = draw(st.sampled_from(["icm", "similar", "diagonal", "lmc"])), draw(scalar_kernels())
    if kind == "icm":
        return ICM(k, covariance(rng, n, draw(st.integers(1, n))))
    if kind == "similar":
        return similar_tasks(k, n, draw(st.floats(0.0, 1.0)))
    if kind == "diagonal":
        return Diagonal([draw(scalar_kernels()) for _ in range(n)])
    return LMC([(k, covariance(rng, n, 1)), (draw(scalar_kernels()), covariance(rng, n, n))])


@st.composite
def data(draw, n, max_points=8, max_rounds=20, missing=True):
    """Points (m, d), rounds (t,) of point numbers, and outputs (t, n) with NaN if `missing`."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    m, t, d = draw(st.integers(1, max_points)), draw(st.integers(1, max_rounds)), draw(st.integers(1, 3))
    Y = rng.standard_normal((t, n))
    if missing and draw(st.booleans()):
        Y[rng.random((t, n)) < 0.3] = np.nan
    return rng.random((m, d)), rng.integers(0, m, t), Y
