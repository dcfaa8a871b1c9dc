"""The posterior by two routes: factor against linear system, carried against factor, engines against each other."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import data, kernels

from mtbo_nb.kernels import ICM, LMC, SE, Diagonal, Matern, similar_tasks
from mtbo_nb.regression import Delayed, Features, Rows, Sites, carry, make_engine, pivoted_cholesky, posterior

grid = np.random.default_rng(1).random((6, 3))


def dense(kernel, X, Y, eta, x):
    """Mean (s, n), joint covariance (s, s, n, n), log det and quadratic form, straight from the definitions."""
    n, seen = kernel.n_tasks, ~np.isnan(Y).ravel()
    G, C = kernel.gram(X)[np.ix_(seen, seen)], kernel.gram(X, x)[seen]
    A, y = G + eta * np.eye(seen.sum()), Y.ravel()[seen]
    cov = kernel.gram(x) - C.T @ np.linalg.solve(A, C)
    shape = len(x), n, len(x), n
    mean = (C.T @ np.linalg.solve(A, y)).reshape(len(x), n)
    logdet = np.linalg.slogdet(np.eye(len(A)) + G / eta)[1]
    return mean, cov.reshape(shape).transpose(0, 2, 1, 3), logdet, y @ np.linalg.solve(A, y)


@given(st.data(), st.sampled_from([1e-3, 0.1, 10.0]))
@settings(deadline=None, max_examples=80)
def test_factor_and_carried_against_the_linear_system(draw, eta):
    kernel = draw.draw(kernels())
    points, rounds, Y = draw.draw(data(kernel.n_tasks))
    post, carried = posterior(kernel, eta), carry(kernel, eta, points)
    for j, y in zip(rounds, Y, strict=True):
        post.update(points[[j]], y[None])
        if draw.draw(st.booleans()):
            post.logdet
        carried.observe(int(j), y)
    mean, joint, logdet, quad = dense(kernel, points[rounds], Y, eta, points)
    scale = max(1.0, kernel.kappa())
    np.testing.assert_allclose(post.mean(points), mean, atol=1e-8 * scale)
    np.testing.assert_allclose(post.joint(points), joint, atol=1e-8 * scale)
    np.testing.assert_allclose(carried.mean, mean, atol=1e-8 * scale)
    np.testing.assert_allclose(carried.cov, joint[range(len(points)), range(len(points))], atol=1e-8 * scale)
    np.testing.assert_allclose([post.logdet, carried.logdet], logdet, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose([post.quad, carried.quad], quad, rtol=1e-7, atol=1e-8)
    w = np.linspace(-1, 1, kernel.n_tasks)
    np.testing.assert_allclose(carried.along(w), (carried.cov @ w) @ w, atol=1e-8 * scale)
    np.testing.assert_allclose(carried.diag, np.einsum("sii->si", carried.cov), atol=1e-10 * scale)
    np.testing.assert_allclose(carried.norm, np.linalg.norm(carried.cov, 2, axis=(1, 2)), atol=1e-9 * scale)


@given(st.data())
@settings(deadline=None, max_examples=40)
def test_order_and_grouping_of_rounds_do_not_matter(draw):
    kernel = draw.draw(kernels())
    points, rounds, Y = draw.draw(data(kernel.n_tasks))
    one, other = posterior(kernel, 0.1), posterior(kernel, 0.1)
    one.update(points[rounds], Y)
    for j in np.random.default_rng(0).permutation(len(rounds)):
        other.update(points[[rounds[j]]], Y[[j]])
        other.quad
    np.testing.assert_allclose(one.mean(points), other.mean(points), atol=1e-9 * max(1, kernel.kappa()))
    np.testing.assert_allclose([one.logdet, one.quad], [other.logdet, other.quad], rtol=1e-8, atol=1e-9)


@given(st.data())
@settings(deadline=None, max_examples=30)
def test_gradients_against_differences(draw):
    kernel = draw.draw(kernels())
    if any("Matern(0.5" in repr(k) for k, _ in kernel.terms):
        return  # a cusp at every data point
    points, rounds, Y = draw.draw(data(kernel.n_tasks))
    post = posterior(kernel, 0.1).update(points[rounds], Y)
    x, h = np.full((1, points.shape[1]), 0.513), 1e-5
    _, _, dmean, dcov = post.gradients(x)
    for j, step in enumerate(h * np.eye(points.shape[1])):
        scale = 1e-4 * max(1, kernel.kappa())
        np.testing.assert_allclose(dmean[..., j], (post.mean(x + step) - post.mean(x - step)) / (2 * h), atol=scale)
        np.testing.assert_allclose(dcov[..., j], (post.cov(x + step) - post.cov(x - step)) / (2 * h), atol=scale)


@pytest.mark.parametrize("eta", [1e-8, 1e-6, 1e-3, 0.1])
@pytest.mark.parametrize("kernel", [SE(0.2) * np.eye(1), Matern(2.5, 0.3) * [[1, 0.9], [0.9, 1]]])
def test_engines_agree_for_small_ridges(kernel, eta):
    rng = np.random.default_rng(0)
    X = rng.random((300, 2))
    sites, told = Sites(kernel, X), rng.integers(0, 60, 200)
    F, _ = pivoted_cholesky(sites, len(sites), 1e-15)
    ridges = np.array([eta, 3 * eta])
    results = []
    for engine in (Rows(sites, ridges), Delayed(sites, ridges), Features(F, ridges)):
        var = np.tile(sites.variance(), (2, 1))
        for j in told:
            column = engine.column(j)
            d = column[:, j] + ridges
            row = column / np.sqrt(d)[:, None]
            engine.downdate(j, row, d)
            var -= row**2
        results.append(var)
    tolerance = max(1e-9, 1e-14 / eta)
    np.testing.assert_allclose(results[0], results[1], atol=tolerance * eta, rtol=1e-9 if eta > 1e-5 else 1e-4)
    np.testing.assert_allclose(results[2], results[1], atol=tolerance * eta + 1e-13, rtol=1e-9 if eta > 1e-5 else 1e-4)


def test_engine_is_chosen_by_size():
    line, plane = np.linspace(0, 1, 500)[:, None], np.random.default_rng(0).random((500, 2))
    one = np.array([0.1])
    assert isinstance(make_engine(Sites(SE(0.2) * np.eye(1), line), one), Features)
    assert isinstance(make_engine(Sites(Matern(0.5, 0.1) * np.eye(1), plane), one), Delayed)
    assert isinstance(make_engine(Sites(Matern(0.5, 0.1) * np.eye(1), plane), one, memory=2**20), Rows)


def test_twenty_thousand_candidates_stay_within_memory():
    X = np.random.default_rng(0).random((20_000, 4))
    carried = carry(Matern(2.5, 0.5) * [[1, 0.5], [0.5, 1]], 0.1, X)
    for j in range(50):
        carried.observe(j % 7, np.array([1.0, -1.0]))
    engine = carried._carrier.banks[0].engine
    held = sum(a.nbytes for a in vars(engine).values() if isinstance(a, np.ndarray))
    assert held < 2**30
    at = posterior(carried.kernel, 0.1).update(X[np.arange(50) % 7], np.tile([1.0, -1.0], (50, 1)))
    np.testing.assert_allclose(carried.mean[::997], at.mean(X[::997]), atol=1e-9)


def test_scales_from_a_thousandth_to_a_million():
    """Outputs in very different units: the answer is that of the same problem in good units, scaled back."""
    D = np.diag([1e-3, 1.0, 1e6])
    R = np.array([[1.0, 0.8, -0.5], [0.8, 1.0, -0.3], [-0.5, -0.3, 1.0]])
    rng = np.random.default_rng(0)
    X, Y = rng.random((6, 3)), rng.standard_normal((6, 3))
    kernel = SE(0.5) * (D @ R @ D)
    post = posterior(kernel, 1e-8).update(X, Y @ D)
    mean, joint, _, _ = dense(kernel, X, Y @ D, 1e-8, grid)
    for i, unit in enumerate(np.diag(D)):
        np.testing.assert_allclose(post.mean(grid)[:, i], mean[:, i], atol=1e-6 * unit, rtol=1e-6)
        np.testing.assert_allclose(post.cov(grid)[:, i, i], joint[range(6), range(6), i, i], atol=1e-6 * unit**2)


def test_a_ridge_below_rounding_is_reported_and_gives_no_nan():
    lmc = LMC([(SE(0.3), [[1e12, 0], [0, 1.0]]), (SE(0.1), [[1e12, 0], [0, 1.0]])])
    carried = carry(lmc, 1e-8, np.random.default_rng(0).random((30, 1)))
    with pytest.warns(UserWarning, match="below rounding"):
        for j in np.random.default_rng(1).integers(0, 5, 100):
            carried.observe(int(j), np.array([1e6, 1.0]))
    assert np.isfinite(carried.mean).all() and np.isfinite(carried.cov).all()
    np.testing.assert_allclose(carried.mean[:, 1].max(), 1.0, rtol=0.2)


def test_the_carried_posterior_has_a_door():
    X = np.zeros((2, 1)) + [[0.0], [1.0]]
    carried = carry(SE(0.2) * np.eye(2), 0.1, X)
    X[:] = 5
    for j, y in [(-1, [1, 2]), (2, [1, 2]), (0.0, [1, 2]), (0, [1]), (0, [np.inf, 1]), ("a", [1, 2])]:
        with pytest.raises(ValueError, match=r"j must|y must"):
            carried.observe(j, y)
    assert not carried.told and carried.logdet == 0
    with pytest.raises(ValueError, match="at least one candidate"):
        carry(SE(0.2), 0.1, np.zeros((0, 1)))
    carried.observe(1, [1.0, 1.0])
    np.testing.assert_allclose(carried.mean[0], 0, atol=1e-4)


def test_edges():
    kernel = similar_tasks(SE(0.2), 3, 0.0)  # rank one
    prior = posterior(kernel, 1e-8)
    assert prior.logdet == 0 and prior.quad == 0 and prior.n_obs == 0
    np.testing.assert_allclose(prior.cov(grid), kernel.diag(grid), rtol=1e-13)
    twice = posterior(kernel, 1e-8).update([[0.5], [0.5], [0.5]], np.ones((3, 3)))
    np.testing.assert_allclose(twice.mean([[0.5]]), 1.0, atol=1e-6)
    single = carry(kernel, 0.1, [[0.3]])  # N = 1
    single.observe(0, np.ones(3))
    assert single.mean.shape == (1, 3)
    nothing = posterior(kernel, 0.1).update([[0.5]], [[np.nan] * 3])
    assert nothing.n_obs == 1 and nothing.logdet == 0 and not nothing.mean(grid[:, :1]).any()


def test_no_covariance_between_outputs_is_no_channel():
    zero = ICM(SE(0.2), np.zeros((2, 2)))
    post = posterior(zero, 0.1).update([[0.1]], [[1.0, 2.0]])
    assert not post.mean([[0.1]]).any() and np.isclose(post.quad, 50.0)
    carried = carry(zero, 0.1, [[0.1], [0.2]])
    carried.observe(0, np.array([1.0, 2.0]))
    assert not carried.mean.any() and np.isclose(carried.quad, 50.0)


def test_jitter_is_reported_once():
    post = posterior(ICM(SE(5.0), np.ones((2, 2))), 1e-18)
    with pytest.warns(UserWarning, match="singular to rounding"):
        post.update(np.linspace(0, 1, 30)[:, None], np.zeros((30, 2))).logdet
    assert post.solver.jitter > 0


def test_samples_have_the_moments_of_the_posterior():
    kernel = LMC([(SE(0.3), [[1, 0.5], [0.5, 1]]), (SE(0.1), [[0.1, -0.1], [-0.1, 0.3]])])
    post = posterior(kernel, 0.1).update([[0.2], [0.7]], [[1.0, np.nan], [0.5, -1.0]])
    x = np.array([[0.1], [0.5]])
    draws = post.sample(x, 40_000, np.random.default_rng(0))
    np.testing.assert_allclose(draws.mean(0), post.mean(x), atol=0.02)
    cov = np.cov(draws.reshape(-1, 4).T).reshape(2, 2, 2, 2).transpose(0, 2, 1, 3)
    np.testing.assert_allclose(cov, post.joint(x), atol=0.03)


def test_a_failed_update_changes_nothing():
    post = posterior(Diagonal([SE(0.2), SE([0.1])]), 0.1).update([[0.1]], [[1.0, 2.0]])
    before = post.mean([[0.1]])
    for X, Y in [([[0.1, 0.2]], [[1, 2]]), ([[0.1]], [[1, 2, 3]]), ([[np.inf]], [[1, 2]]), ([[0.1]], [[np.inf, 1]])]:
        with pytest.raises(ValueError):
            post.update(X, Y)
    with pytest.raises(TypeError):
        post.update([[0.1]], [["a", "b"]])
    with pytest.raises(ValueError, match="lengthscale"):
        posterior(SE([0.1, 0.2]), 0.1).update([[0.1]], [[1.0]])
    assert post.n_obs == 1
    np.testing.assert_array_equal(before, post.mean([[0.1]]))


@pytest.mark.parametrize("eta", [0, -1, np.nan, np.inf])
def test_eta_must_be_positive(eta):
    with pytest.raises(ValueError, match="eta"):
        posterior(SE(0.2), eta)
