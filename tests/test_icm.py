"""Kernels that decouple: the eigen-system of B, and the fast solver and carrier against the general ones."""

import warnings
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from strategies import covariance, scalar_kernels

from mtbo_nb.icm import Decoupled, DecoupledCarrier, carried_bytes, channels, decouples, eigen_system
from mtbo_nb.kernels import ICM, LMC, SE, Diagonal, Matern, similar_tasks
from mtbo_nb.regression import Coupled, CoupledCarrier, Delayed, Rows, carry, posterior

ETAS = [1e-8, 1e-3, 0.1, 10.0]
seeds = st.integers(0, 2**32 - 1)
grid = np.random.default_rng(1).random((5, 2))


@st.composite
def decoupling(draw, max_tasks=5):
    """A kernel that decouples, and the unit of each output."""
    n, rng = draw(st.integers(1, max_tasks)), np.random.default_rng(draw(seeds))
    kind, k = (
        draw(st.sampled_from(["full", "deficient", "similar", "blocks", "graded", "graded", "diagonal"])),
        draw(scalar_kernels()),
    )
    units = np.ones(n)
    if kind == "full":
        B = covariance(rng, n, n)
    elif kind == "deficient":
        B = covariance(rng, n, draw(st.integers(1, max(1, n - 1))))
    elif kind == "similar":
        B = similar_tasks(k, n, draw(st.sampled_from([0.0, 0.3, 1.0]))).B
    elif kind == "blocks":  # repeated eigenvalues, and a task of variance zero
        B = np.diag(rng.integers(0, 3, n).astype(float))
        B[0, 0] = 1.0
    elif kind == "graded":
        units = 10.0 ** rng.integers(-3, 7, n)
        B = units[:, None] * (0.9 * np.ones((n, n)) + 0.1 * np.eye(n)) * units
    else:
        shared = [draw(scalar_kernels()) for _ in range(2)]
        pool = [*shared, 2.0 * shared[0]]  # the same unit kernel twice, with two variances
        return Diagonal([pool[i] for i in rng.integers(0, 3, n)]), units
    return ICM(k, B), units


def close(a, b, unit, rtol):
    """Equal up to rtol of the units."""
    np.testing.assert_array_less(np.abs(a - b) / unit, rtol * np.ones(np.broadcast(a, unit).shape))


def tolerance(kernel, eta, X=None):
    """What two stable routes may differ by: rounding times the condition of the problem in good units.

    It is the variance over the ridge; with distinct points X and B of full rank, that of the Gram matrix if smaller.
    """
    condition = kernel.kappa() / eta
    B = kernel.terms[0][1]
    if X is not None and isinstance(kernel, ICM) and np.diag(B).min() > 0:
        units = np.sqrt(np.diag(B))
        correlations = np.linalg.cond(B / np.outer(units, units))
        condition = min(condition, np.linalg.cond(kernel.k(X)) * correlations)
    return 1e-10 + 1e-14 * max(1.0, condition)


# The eigen-system


def elementary(values):
    """Elementary symmetric polynomials e_1, ..., e_r of the eigenvalues, exactly."""
    e = [Fraction(1)] + [Fraction(0)] * len(values)
    for v in map(Fraction, values):
        for i in range(len(values), 0, -1):
            e[i] += v * e[i - 1]
    return e[1:]


def determinant(A):
    """Exact determinant of a matrix of fractions."""
    A, det = [row[:] for row in A], Fraction(1)
    for i in range(len(A)):
        pivot = next((r for r in range(i, len(A)) if A[r][i] != 0), None)
        if pivot is None:
            return Fraction(0)
        if pivot != i:
            A[i], A[pivot], det = A[pivot], A[i], -det
        det *= A[i][i]
        for r in range(i + 1, len(A)):
            factor = A[r][i] / A[i][i]
            A[r] = [a - factor * b for a, b in zip(A[r], A[i], strict=True)]
    return det


def principal_minors(B):
    """The sums of the principal minors of size 1, ..., n: what the elementary symmetric polynomials must be."""
    rows = [[Fraction(v) for v in row] for row in B]
    minor = {
        s: determinant([[rows[i][j] for j in s] for i in s])
        for r in range(len(B))
        for s in combinations(range(len(B)), r + 1)
    }
    return [sum(v for s, v in minor.items() if len(s) == r + 1) for r in range(len(B))]


@given(st.integers(1, 5), seeds, st.integers(0, 25))
def test_every_eigenvalue_of_a_graded_matrix_is_accurate(n, seed, grade):
    """Integers times powers of two are exact; the e_r are sums of positive terms, and on a graded matrix one rules."""
    rng = np.random.default_rng(seed)
    A = rng.integers(-5, 6, (n, n)).astype(float)
    D = 2.0 ** rng.integers(-grade, grade + 1, n)
    R = A @ A.T + np.eye(n)
    B, sd = D[:, None] * R * D, np.sqrt(np.diag(R))
    condition = np.linalg.cond(R / np.outer(sd, sd))
    xi, U, null = eigen_system(B)
    assert len(xi) == n and null.shape == (n, 0) and (np.diff(xi) <= 0).all()
    for ours, exact in zip(elementary(xi), principal_minors(B), strict=True):
        assert abs(float(ours / exact - 1)) < 1e-14 * n * condition
    np.testing.assert_allclose(U.T @ U, np.eye(n), atol=1e-13)
    root = U * np.sqrt(xi)
    np.testing.assert_allclose((root @ root.T) / np.outer(D, D), R, atol=1e-13 * R.max() * n)


def test_a_plain_eigen_solver_would_lose_the_small_ones():
    D = np.array([2.0**-10, 1.0, 2.0**20])
    B = D[:, None] * np.array([[2.0, 1.0, 1.0], [1.0, 2.0, 1.0], [1.0, 1.0, 2.0]]) * D
    exact = principal_minors(B)
    plain, ours = np.linalg.eigvalsh(B), eigen_system(B)[0]
    assert abs(np.prod(plain) / float(exact[-1]) - 1) > 1e-7 > 1e-13 > abs(np.prod(ours) / float(exact[-1]) - 1)


@given(st.integers(1, 6), seeds, st.data())
def test_null_space_is_found_in_any_units(n, seed, data):
    rank = data.draw(st.integers(0, n))
    rng = np.random.default_rng(seed)
    A = rng.integers(-3, 4, (n, rank)).astype(float) if rank else np.zeros((n, 1))
    D = 2.0 ** rng.integers(-10, 20, n)
    xi, U, null = eigen_system((D[:, None] * A) @ (D[:, None] * A).T)
    assert len(xi) == np.linalg.matrix_rank(A) and null.shape == (n, n - len(xi))
    basis = np.hstack([U, null])
    np.testing.assert_allclose(basis.T @ basis, np.eye(n), atol=1e-12)
    np.testing.assert_allclose(null.T @ (D[:, None] * A), 0, atol=1e-12 * max(1.0, np.abs(D[:, None] * A).max()))


@given(decoupling())
def test_channels_give_the_kernel_back(pair):
    kernel, units = pair
    found, null = channels(kernel)
    x = np.array([[0.1, 0.2]])
    blocks = sum(
        (c.k(x, grid)[..., None, None] * (c.basis @ c.basis.T) for c in found),
        np.zeros((1, 5, *(2 * [kernel.n_tasks]))),
    )
    close(blocks, kernel(x, grid), np.outer(units, units), 1e-11)
    assert sum(c.basis.shape[1] for c in found) + null.shape[1] == kernel.n_tasks


# Two routes


@given(decoupling(), st.sampled_from(ETAS), seeds)
def test_decoupled_against_coupled(pair, eta, seed):
    kernel, units = pair
    assume(decouples(kernel))
    rng, n = np.random.default_rng(seed), kernel.n_tasks
    X, Y = rng.random((9, 2)), rng.standard_normal((9, n)) * units
    counts = np.repeat(rng.integers(1, 4, 9)[:, None], n, axis=1).astype(float)
    fast, slow = Decoupled(kernel, eta), Coupled(kernel, eta)
    rtol = tolerance(kernel, eta, X)
    assume(rtol < 1e-3)  # beyond, the ridge is below rounding
    for solver in (fast, slow):
        solver.extend(X[:4], Y[:4], counts[:4], scatter=0.3)
        solver.extend(X[4:], Y[4:], counts[4:])
    means, covs = zip(*[solver.moments(grid) for solver in (fast, slow)], strict=True)
    square = np.outer(units, units)
    size = 1 + np.abs(Y / units).max() * np.sqrt(kernel.kappa() / eta)
    close(means[0], means[1], units, rtol * size)
    close(covs[0], covs[1], square, rtol * max(1.0, kernel.kappa() if units.max() == 1 else 1.0))
    close(fast.joint(grid), slow.joint(grid), square, rtol * max(1.0, kernel.kappa() if units.max() == 1 else 1.0))
    np.testing.assert_allclose([fast.logdet, fast.quad], [slow.logdet, slow.quad], rtol=max(1e-9, rtol), atol=1e-9)


@given(decoupling(), st.sampled_from(ETAS), seeds)
def test_logdet_and_quad_are_those_of_the_chain_rule(pair, eta, seed):
    """Sums over the rounds of log det(I + Gamma/eta) and of the squared surprises, as for a Gaussian density."""
    kernel, units = pair
    rng, solver, logdet, quad = np.random.default_rng(seed), Decoupled(kernel, eta), 0.0, 0.0
    X = rng.random((6, 2))
    assume(decouples(kernel) and tolerance(kernel, eta, X) < 1e-6)
    for x, y in zip(X[:, None], rng.standard_normal((6, kernel.n_tasks)) * units, strict=True):
        mean, cov = solver.moments(x)
        S = (cov[0] + eta * np.eye(len(y))) / np.outer(units, units)
        logdet += np.linalg.slogdet(S)[1] + np.sum(np.log(units**2 / eta))
        quad += (y - mean[0]) / units @ np.linalg.solve(S, (y - mean[0]) / units)
        solver.extend(x, y[None], np.ones((1, len(y))))
    np.testing.assert_allclose([solver.logdet, solver.quad], [logdet, quad], rtol=1e-5, atol=1e-9)


@pytest.mark.filterwarnings("ignore:eta is below rounding")
@given(decoupling(), st.sampled_from(ETAS), seeds, st.booleans())
def test_carried_decoupled_against_coupled(pair, eta, seed, repeats):
    kernel, units = pair
    rng, n = np.random.default_rng(seed), kernel.n_tasks
    X = rng.random((12, 2))
    rtol = tolerance(kernel, eta, None if repeats else X)
    assume(decouples(kernel) and rtol < 1e-3)
    truth = posterior(kernel, 0.1 * kernel.kappa()).update(X[:3], rng.standard_normal((3, n)) * units).mean(X)
    fast, slow = DecoupledCarrier(kernel, eta, X), CoupledCarrier(kernel, eta, X)
    for j in rng.integers(0, 12, 30) if repeats else rng.permutation(12):
        y = truth[j] + np.sqrt(eta) * rng.standard_normal(n)
        fast.observe(int(j), y)
        slow.observe(int(j), y)
    square, scale = np.outer(units, units), max(1.0, kernel.kappa() if units.max() == 1 else 1.0)
    close(fast.mean(), slow.mean(), units, 100 * rtol * scale)
    close(fast.cov(), slow.cov(), square, rtol * scale)
    close(fast.diag(), slow.diag(), units**2, rtol * scale)
    w = rng.standard_normal(n) / units
    close(fast.along(w), slow.along(w), 1.0, n * n * rtol * scale)
    np.testing.assert_allclose(fast.norm(), slow.norm(), atol=n * rtol * max(1.0, kernel.kappa()))
    np.testing.assert_allclose(fast.logdet, slow.logdet, rtol=max(1e-8, 10 * rtol), atol=1e-8)
    np.testing.assert_allclose(fast.quad, slow.quad, rtol=max(1e-6, 100 * rtol), atol=1e-6)


@given(decoupling(), seeds)
def test_an_output_goes_missing_midway(pair, seed):
    kernel, units = pair
    assume(tolerance(kernel, 0.1) < 1e-3)
    rng, n = np.random.default_rng(seed), kernel.n_tasks
    X, rounds = rng.random((6, 2)), rng.integers(0, 6, 12)
    Y = rng.standard_normal((12, n)) * units
    Y[7, rng.integers(n)] = np.nan
    on_list, off_list, direct = carry(kernel, 0.1, X), posterior(kernel, 0.1), CoupledCarrier(kernel, 0.1, X)
    for j, y in zip(rounds, Y, strict=True):
        on_list.observe(int(j), y)
        off_list.update(X[[j]], y[None])
        off_list.logdet
        direct.observe(int(j), y)
    rtol = 100 * tolerance(kernel, 0.1) * max(1.0, kernel.kappa() if units.max() == 1 else 1.0)
    assert isinstance(on_list._carrier, CoupledCarrier) and isinstance(off_list.solver, Coupled)
    close(on_list.mean, direct.mean(), units, 1e-12)
    close(off_list.mean(X), direct.mean(), units, rtol)
    close(off_list.cov(X), direct.cov(), np.outer(units, units), rtol)
    np.testing.assert_allclose(
        [off_list.logdet, off_list.quad], [direct.logdet, direct.quad], rtol=max(1e-7, rtol), atol=1e-7
    )


UNITS = np.array([1e-3, 1.0, 1e6])
CORRELATIONS = np.array([[1.0, 0.9, 0.5], [0.9, 1.0, 0.6], [0.5, 0.6, 1.0]])


@pytest.mark.filterwarnings("ignore:eta is below rounding")
@pytest.mark.parametrize("eta", [1e-8, 1e-2, 1e4])
def test_outputs_in_units_from_a_thousandth_to_a_million(eta):
    """All routes, each output judged in its own unit, on points where only the units make trouble."""
    kernel = Matern(0.5, 0.2) * (UNITS[:, None] * CORRELATIONS * UNITS)
    rng = np.random.default_rng(0)
    X, Y = np.linspace(0, 1, 9)[:, None], rng.standard_normal((9, 3)) * UNITS
    solvers, carriers = [make(kernel, eta) for make in (Decoupled, Coupled)], []
    for solver in solvers:
        solver.extend(X, Y, np.ones(Y.shape))
    for make in (DecoupledCarrier, CoupledCarrier):
        carriers.append(make(kernel, eta, X))
        for j, y in enumerate(Y):
            carriers[-1].observe(j, y)
    mean, cov = solvers[1].moments(X)
    square = np.outer(UNITS, UNITS)
    for other_mean, other_cov in [solvers[0].moments(X), *[(c.mean(), c.cov()) for c in carriers]]:
        close(other_mean, mean, UNITS, 1e-8)
        close(other_cov, cov, square, 1e-8)
    others = [solvers[0], *carriers]
    np.testing.assert_allclose([s.logdet for s in others], solvers[1].logdet, rtol=1e-8)
    np.testing.assert_allclose([s.quad for s in others], solvers[1].quad, rtol=1e-8)


# What surrounds them


def test_the_route_is_chosen_by_what_is_told():
    kernel = SE(0.2) * np.eye(2)
    complete = posterior(kernel, 0.1).update([[0.1]], [[1.0, 2.0]])
    assert isinstance(complete.solver, Decoupled)
    assert isinstance(complete.update([[0.2]], [[1.0, np.nan]]).solver, Coupled)
    assert isinstance(posterior(LMC([(SE(0.2), np.eye(2))]), 0.1).solver, Coupled)


def test_a_slightly_negative_eigenvalue_is_left_to_the_general_solver():
    printed = np.array([[1.0, 1.0000001], [1.0000001, 1.0]])
    assert not decouples(ICM(SE(0.2), printed))
    assert isinstance(posterior(ICM(SE(0.2), printed), 0.1).solver, Coupled)


@pytest.mark.parametrize("make", [Delayed, Rows])
def test_a_ridge_below_rounding_is_reported_and_does_no_harm(make, monkeypatch):
    monkeypatch.setattr("mtbo_nb.icm.make_engine", lambda sites, ridges, memory: make(sites, ridges))
    X = np.random.default_rng(0).random((50, 2))
    f = 1e6 * np.sin(3 * X[:, 0] + X[:, 1])
    with pytest.warns(UserWarning, match="eta is below rounding"):
        carried = carry(SE(0.3) * [[1e12]], 1e-8, X)
    for j in np.random.default_rng(1).integers(0, 10, 200).tolist():
        carried.observe(j, f[[j]])
    np.testing.assert_allclose(carried.mean[:10, 0], f[:10], rtol=1e-6, atol=1.0)
    assert np.isfinite([carried.logdet, carried.quad]).all() and (carried.norm >= 0).all()


def test_nothing_is_reported_where_nothing_was_added():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        carried = carry(SE(0.3) * np.diag([1e-6, 1.0, 1e4]), 1e-8, [[0.1], [0.2]])
        carried.observe(0, np.ones(3))


def test_memory_is_known_and_shared_between_banks():
    X = np.random.default_rng(0).random((300, 2))
    kernel = Diagonal([Matern(0.5, 0.1), Matern(0.5, 0.2), Matern(0.5, 0.1), 2.0 * Matern(0.5, 0.2)])
    carrier = DecoupledCarrier(kernel, 0.1, X)
    engines = [bank.engine for bank in carrier.banks]
    assert [type(e) for e in engines] == [Delayed, Delayed] and [len(b.xi) for b in carrier.banks] == [1, 2]
    assert sum(e.C.nbytes + e.V.nbytes for e in engines) == carried_bytes(kernel, 300)["delayed"]
    coupled = CoupledCarrier(kernel, 0.1, X[:30]).engine
    assert coupled.C.nbytes + coupled.V.nbytes == carried_bytes(kernel, 30, complete=False)["delayed"]


def test_banks_share_the_memory_that_is_allowed(monkeypatch):
    X = np.random.default_rng(0).random((300, 2))
    kernel = Diagonal([Matern(0.5, ell) for ell in (0.1, 0.2, 0.3, 0.4)])
    monkeypatch.setattr("mtbo_nb.icm.MEMORY", 3 * 2 * 8 * 300**2)  # three matrices and their copies, not four
    assert {type(bank.engine) for bank in DecoupledCarrier(kernel, 0.1, X).banks} == {Rows}
