"""Dictionaries: identities for any kernel, certificates for any dictionary, and runs beside the exact algorithm."""

import logging

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mtbo_nb.concentration import nystrom_confidence_radius
from mtbo_nb.kernels import ICM, LMC, SE, Diagonal, Matern, similar_tasks
from mtbo_nb.mtbkb import (
    MTBKB,
    CoupledNystrom,
    DecoupledNystrom,
    Embedding,
    NystromCarried,
    NystromPosterior,
    certificate_radius,
    doubled_horizon,
    inclusion_probability,
    nystrom_posterior,
    paper_q,
    sandwich_factor,
    smallest_uniforms,
    theory_q,
)
from mtbo_nb.mtkb import MTKB, Box, Finite
from mtbo_nb.regression import posterior
from mtbo_nb.scalarization import Linear, cumulative_regret

GRID = np.linspace(0, 1, 61)[:, None]
PAIR = SE(0.15) * [[1.0, 0.5], [0.5, 1.0]]
SETTINGS = {"noise_std": 0.1, "norm_bound": 3.0, "eta": 0.1}
seeds = st.integers(0, 10_000)


def some_kernel(rng):
    """A kernel with three outputs: coupled, decoupled, of low rank, diagonal."""
    A, a = rng.standard_normal((3, 3)), rng.standard_normal(3)
    k, other = SE(10 ** rng.uniform(-1.2, 0.2)), Matern(2.5, 10 ** rng.uniform(-1.2, 0.2))
    zoo = [ICM(k, A @ A.T), ICM(other, np.outer(a, a)), similar_tasks(k, 3, 0.3), Diagonal([k, 3.0 * other, k])]
    return [*zoo, LMC([(k, A @ A.T), (other, np.outer(a, a))])][rng.integers(5)]


def some_function(kernel, X, rng):
    """Values (N, n) of a member of the space at X, and its norm."""
    at, c = X[rng.integers(0, len(X), 15)], rng.uniform(-1, 1, 15 * kernel.n_tasks)
    return (kernel.gram(X, at) @ c).reshape(len(X), -1), float(np.sqrt(c @ kernel.gram(at) @ c))


def play(opt, F, T, seed=0):
    """Play T rounds and yield after each of them."""
    rng = np.random.default_rng(seed)
    for t in range(T):
        x = opt.ask()
        opt.tell(x, F[opt.domain.number(x)] + opt.noise_std * rng.standard_normal(F.shape[1]))
        yield t


def extremes(tilde, exact):
    """The range of generalized eigenvalues of two stacks of covariances."""
    root = np.linalg.inv(np.linalg.cholesky(exact))
    values = np.linalg.eigvalsh(root @ tilde @ root.transpose(0, 2, 1))
    return values.min(), values.max()


def dense(kernel, D, X, Y, eta, x):
    """mu~, Gamma~ by Lemma 8, and G - G^, all with a pseudo-inverse; Y without missing entries."""
    inverse = np.linalg.pinv(kernel.gram(D), rcond=1e-13, hermitian=True)
    told, new = kernel.gram(X, D), kernel.gram(x, D)
    projected, cross = told @ inverse @ told.T, told @ inverse @ new.T
    ridge = projected + eta * np.eye(len(projected))
    mean = (cross.T @ np.linalg.solve(ridge, Y.ravel())).reshape(len(x), -1)
    return mean, kernel.gram(x) - cross.T @ np.linalg.solve(ridge, cross), kernel.gram(X) - projected


# ---- the estimate


@given(seeds)
def test_posterior_is_the_projected_one(seed):
    rng = np.random.default_rng(seed)
    kernel, eta = some_kernel(rng), 10 ** rng.uniform(-2, 1)
    X = rng.random((14, 2))[rng.integers(0, 14, 20)]
    D, x, Y = X[rng.choice(20, rng.integers(1, 8))], rng.random((5, 2)), rng.standard_normal((20, 3))
    post = nystrom_posterior(kernel, eta, D).update(X[:9], Y[:9])
    post.logdet  # the rest comes row by row
    post.update(X[9:], Y[9:])
    mean, cov, left = dense(kernel, D, X, Y, eta, x)
    scale = kernel.kappa()
    np.testing.assert_allclose(post.mean(x), mean, atol=1e-6 * max(1, np.abs(mean).max()))
    np.testing.assert_allclose(post.joint(x).transpose(0, 2, 1, 3).reshape(15, 15), cov, atol=1e-7 * scale)
    np.testing.assert_allclose(post.lost, np.trace(left), atol=1e-7 * scale * 20)
    assert np.linalg.norm(left, 2) <= post.gap * (1 + 1e-9) + 1e-7 * scale * 20


@given(seeds)
def test_full_dictionary_is_exact(seed):
    rng = np.random.default_rng(seed)
    kernel, X = some_kernel(rng), rng.random((12, 1))
    Y = np.where(rng.random((12, 3)) < 0.2, np.nan, rng.standard_normal((12, 3)))
    exact, post = posterior(kernel, 0.1).update(X, Y), nystrom_posterior(kernel, 0.1, X).update(X, Y)
    np.testing.assert_allclose(post.cov(GRID), exact.cov(GRID), atol=1e-7 * kernel.kappa())
    np.testing.assert_allclose(post.mean(GRID), exact.mean(GRID), atol=1e-6)
    np.testing.assert_allclose([post.logdet, post.quad], [exact.logdet, exact.quad], rtol=1e-6)


def test_empty_dictionary_learns_nothing():
    post = nystrom_posterior(PAIR, 0.1, []).update(GRID[:4], np.ones((4, 2)))
    np.testing.assert_array_equal(post.mean(GRID), 0)
    np.testing.assert_allclose(post.cov(GRID), PAIR.diag(GRID))
    assert post.logdet == 0 and np.isclose(post.lost, 8) and np.isclose(post.quad, 8 / 0.1)
    assert all(np.isfinite(a).all() for a in post.gradients(GRID))


@given(seeds)
def test_only_the_span_matters(seed):
    rng = np.random.default_rng(seed)
    kernel, X, Y = some_kernel(rng), rng.random((10, 1)), rng.standard_normal((10, 3))
    D = X[:4]
    again = np.vstack([D[::-1], D[[0, 0, 2]]])
    a, b = (nystrom_posterior(kernel, 0.1, points).update(X, Y) for points in (D, again))
    np.testing.assert_allclose(a.cov(GRID), b.cov(GRID), atol=1e-6 * kernel.kappa())
    np.testing.assert_allclose(a.mean(GRID), b.mean(GRID), atol=1e-5)


def test_gradients_against_differences():
    rng = np.random.default_rng(0)
    for kernel in (SE(0.3) * np.eye(3), LMC([(SE(0.3), np.eye(3)), (Matern(2.5, 0.4), np.ones((3, 3)))])):
        X, h = rng.random((9, 2)), 1e-6
        post = nystrom_posterior(kernel, 0.1, X[:4]).update(X, rng.standard_normal((9, 3)))
        at = rng.random((4, 2))
        *_, dmean, dcov = post.gradients(at)
        for j, step in enumerate(h * np.eye(2)):
            up, down = post.moments(at + step), post.moments(at - step)
            np.testing.assert_allclose(dmean[..., j], (up[0] - down[0]) / (2 * h), atol=1e-6)
            np.testing.assert_allclose(dcov[..., j], (up[1] - down[1]) / (2 * h), atol=1e-6)


@given(seeds)
def test_carried_agrees_with_solved(seed):
    rng = np.random.default_rng(seed)
    kernel, X = some_kernel(rng), rng.random((15, 1))
    carried = NystromCarried(NystromPosterior(kernel, 0.1, X[:0]), X)
    for t in range(20):
        if t % 7 == 5:
            carried.redraw(X[rng.choice(15, 5)])
        y = rng.standard_normal(3)
        y[0] = np.nan if t == 15 else y[0]
        carried.observe(int(rng.integers(15)), y)
    post = nystrom_posterior(kernel, 0.1, carried.post.dictionary).update(*carried.post.data.since(0))
    np.testing.assert_allclose(carried.cov, post.cov(X), atol=1e-7 * kernel.kappa())
    np.testing.assert_allclose(carried.mean, post.mean(X), atol=1e-6)
    pairs = [(getattr(carried, name), getattr(post, name)) for name in ("logdet", "quad", "lost", "gap")]
    np.testing.assert_allclose(*zip(*pairs, strict=True), rtol=1e-6, atol=1e-8)


def test_missing_outputs_change_the_solver_only():
    post = nystrom_posterior(PAIR, 0.1, GRID[::10]).update(GRID[:3], np.ones((3, 2)))
    assert isinstance(post.solver, DecoupledNystrom)
    assert isinstance(post.update(GRID[:1], [[np.nan, 1.0]]).solver, CoupledNystrom)


def test_dependent_directions_are_left_out():
    assert len(Embedding(SE(0.2) * np.ones((2, 2)), GRID[[0, 0, 30]])) == 2
    assert len(Embedding(PAIR, GRID, tolerance=1e-3)) < len(Embedding(PAIR, GRID)) < 122


def test_many_rows_stay_accurate():
    rng, kernel = np.random.default_rng(0), SE(0.2) * [[1.0, 0.9], [0.9, 1.0]]
    carried = NystromCarried(NystromPosterior(kernel, 1e-4, GRID[::3]), GRID)
    for _ in range(2000):
        carried.observe(int(rng.integers(61)), rng.standard_normal(2))
    fresh = nystrom_posterior(kernel, 1e-4, GRID[::3]).update(*carried.post.data.since(0))
    np.testing.assert_allclose(carried.norm, fresh.norm(GRID), rtol=1e-6)
    assert carried.clipped == 0


# ---- certificates


@given(seeds)
def test_sandwich_holds_for_any_dictionary(seed):
    rng = np.random.default_rng(seed)
    kernel, eta = PAIR if seed % 2 else LMC([(SE(0.3), np.eye(2)), (Matern(1.5, 0.2), 0.5 * np.ones((2, 2)))]), 0.1
    X, zeros = GRID[rng.integers(0, 61, 25)], np.zeros((25, 2))
    post = nystrom_posterior(kernel, eta, X[rng.choice(25, rng.integers(1, 15))]).update(X, zeros)
    low, high = extremes(post.cov(GRID), posterior(kernel, eta).update(X, zeros).cov(GRID))
    s = sandwich_factor(post.gap, eta)
    assert 1 / s <= low * (1 + 1e-6) and high <= s * (1 + 1e-6)


@given(seeds)
def test_certificate_without_noise_is_deterministic(seed):
    """With sigma = 0 the band must hold with certainty, however bad the dictionary."""
    rng = np.random.default_rng(seed)
    F, norm = some_function(PAIR, GRID, rng)
    at = rng.integers(0, 61, 25)
    post = nystrom_posterior(PAIR, 0.1, GRID[rng.choice(at, rng.integers(1, 6))]).update(GRID[at], F[at])
    beta = certificate_radius(post.logdet, post.lost, post.gap, norm, 0.0, 0.1, 0.1)
    off, cov = F - post.mean(GRID), post.cov(GRID) + 1e-9 * np.eye(2)
    scaled = np.einsum("si,si->s", off, np.linalg.solve(cov, off[:, :, None])[..., 0])
    assert np.sqrt(scaled.max()) <= beta * (1 + 1e-6)


def test_certificate_is_the_exact_radius_without_loss():
    from mtbo_nb.concentration import confidence_radius

    assert certificate_radius(3.0, 0.0, 0.0, 2.0, 0.1, 0.1, 0.1) == confidence_radius(3.0, 2.0, 0.1, 0.1, 0.1)
    radii = [certificate_radius(3.0, loss, loss, 2.0, 0.1, 0.1, 0.1) for loss in (0.0, 0.1, 1.0)]
    assert radii == sorted(radii) and sandwich_factor(0.0, 0.1) == 1


@pytest.mark.parametrize("resample", ["certified", "adaptive", "every"])
def test_no_violation_with_far_too_small_dictionaries(resample):
    for seed in range(4):
        F, norm = some_function(PAIR, GRID, np.random.default_rng(seed))
        opt = MTBKB(PAIR, Finite(GRID), noise_std=0.1, norm_bound=norm, eta=0.1, q=1, resample=resample, seed=seed)
        for _ in play(opt, F, 60, seed):
            model = opt._states[0].model
            assert (np.abs(F - model.mean) <= opt.beta * np.sqrt(model.diag) * (1 + 1e-9)).all()


@pytest.mark.parametrize("options", [{"q": 2}, {"q": "theory", "radius": "paper"}])
def test_coverage(options):
    """Runs in which the band fails anywhere, at any time: at most delta of them."""
    failed = 0
    for seed in range(40):
        F, norm = some_function(PAIR, GRID, np.random.default_rng(seed))
        opt = MTBKB(PAIR, Finite(GRID), noise_std=0.1, norm_bound=norm, eta=0.1, seed=seed, **options)
        off = False
        for _ in play(opt, F, 25, seed):
            model = opt._states[0].model
            off |= bool((np.linalg.norm(F - model.mean, axis=1) > opt.beta * np.sqrt(model.norm) + 1e-9).any())
        failed += off
    assert failed <= 0.1 * 40


@pytest.mark.parametrize("q", [1, 10, "theory"])
def test_certified_runs_stay_in_the_sandwich(q):
    F, norm = some_function(PAIR, GRID, np.random.default_rng(5))
    opt, exact = MTBKB(PAIR, Finite(GRID), **SETTINGS | {"norm_bound": norm}, q=q, seed=0), posterior(PAIR, 0.1)
    for t in play(opt, F, 80):
        exact.update(opt.history.X[t:], opt.history.Y[t:])
        low, high = extremes(opt._states[0].model.cov, exact.cov(GRID))
        assert 1 / 1.05 <= 1 / opt.sandwich <= low * (1 + 1e-6) and high <= opt.sandwich * (1 + 1e-6)
    assert opt.redraws < 40


def test_theory_keeps_algorithm_2_accurate():
    for seed in range(3):
        F, norm = some_function(PAIR, GRID, np.random.default_rng(seed))
        opt = MTBKB(PAIR, Finite(GRID), **SETTINGS | {"norm_bound": norm}, q="theory", resample="every", seed=seed)
        for _ in play(opt, F, 40, seed):
            exact = posterior(PAIR, 0.1).update(opt.history.X, opt.history.Y)
            low, high = extremes(opt._states[0].model.cov, exact.cov(GRID))
            assert 1 / 3 <= low and high <= 3


# ---- probabilities and q


def test_inclusion_is_scale_free():
    norms = np.array([0.3, 0.01, 0.0])
    np.testing.assert_allclose(inclusion_probability(5, norms, 0.1), inclusion_probability(5, 49 * norms, 4.9))
    np.testing.assert_array_equal(inclusion_probability(5, norms), [1.0, 0.05, 0.0])


def test_smallest_uniform_has_its_law():
    drawn = smallest_uniforms(np.repeat([1, 4, 50], 20_000), np.random.default_rng(0)).reshape(3, -1)
    for counts, values in zip((1, 4, 50), drawn, strict=True):
        for p in (0.01, 0.2, 0.7):
            want = 1 - (1 - p) ** counts
            assert abs(np.mean(values < p) - want) < 4 * np.sqrt(want * (1 - want) / 20_000) + 1e-9


def test_q_of_the_papers_and_ours():
    assert np.isclose(paper_q(100, 0.1, 0.5), 6 * 3 * np.log(4000) / 0.25)
    assert theory_q(200, 50, 0.1, 0.5) < paper_q(200, 0.1, 0.5)


@given(st.integers(1, 10**6), st.one_of(st.none(), st.integers(1, 1000)))
def test_doubling_covers_every_round(t, horizon):
    T, share = doubled_horizon(t, horizon)
    first = horizon or 64
    assert t <= T and (T == first or T < 2 * t) and 0 < share <= (1 if horizon else 0.5)


def test_a_horizon_that_is_passed_is_said_and_doubled(caplog):
    F, norm = some_function(PAIR, GRID, np.random.default_rng(0))
    options = SETTINGS | {"norm_bound": norm, "q": "paper", "horizon": 5, "resample": "every"}
    opt = MTBKB(PAIR, Finite(GRID), **options, seed=0)
    with caplog.at_level(logging.INFO, logger="mtbo_nb.mtbkb"):
        list(play(opt, F, 12))
    assert [record.args[1:] for record in caplog.records] == [(5, 10), (10, 20)]
    assert len(opt.history) == 12


# ---- the optimiser


def test_paper_radius_is_that_of_theorem_3():
    F, norm = some_function(PAIR, GRID, np.random.default_rng(1))
    opt, proxy = MTBKB(PAIR, Finite(GRID), **SETTINGS | {"norm_bound": norm}, radius="paper", q=3, seed=0), 0.0
    assert opt.resample == "every"
    rng = np.random.default_rng(0)
    for t in range(15):
        assert np.isclose(opt.beta, nystrom_confidence_radius(proxy, norm, 0.1, 0.1, 0.1, 0.5))
        x = opt.ask()
        proxy += np.linalg.slogdet(np.eye(2) + opt.posterior.cov([x])[0] / 0.1)[1]
        opt.tell(x, F[opt.domain.number(x)] + 0.1 * rng.standard_normal(2))
        assert opt.redraws == t + 1


def test_regret_is_that_of_the_exact_algorithm():
    regrets = {"exact": [], "budget": []}
    for seed in range(6):
        F, norm = some_function(PAIR, GRID, np.random.default_rng(seed))
        options = SETTINGS | {"norm_bound": norm, "seed": seed}
        for name, opt in (
            ("exact", MTKB(PAIR, Finite(GRID), radius="paper", **options)),
            ("budget", MTBKB(PAIR, Finite(GRID), **options)),
        ):
            list(play(opt, F, 100, seed))
            picks = [opt.domain.number(x) for x in opt.history.X]
            weights = np.array(opt.history.weights)
            regrets[name].append(cumulative_regret(opt.scalarization, weights, F, picks)[-1] / 100)
    gap = np.mean(regrets["budget"]) - np.mean(regrets["exact"])
    assert abs(gap) < np.std(regrets["exact"])


def test_same_seed_same_run_and_no_global_state():
    F, _ = some_function(PAIR, GRID, np.random.default_rng(1))
    state, runs = np.random.get_state()[1].copy(), []
    for _ in range(2):
        opt = MTBKB(PAIR, Finite(GRID), **SETTINGS, seed=7)
        list(play(opt, F, 25))
        runs.append((opt.history.X, opt.dictionary))
    np.testing.assert_array_equal(runs[0][0], runs[1][0])
    np.testing.assert_array_equal(runs[0][1], runs[1][1])
    np.testing.assert_array_equal(state, np.random.get_state()[1])


@pytest.mark.parametrize("resample", ["certified", "adaptive"])
@pytest.mark.parametrize("kernel", [PAIR, LMC([(SE(0.3), np.eye(2)), (Matern(2.5, 0.2), 0.3 * np.ones((2, 2)))])])
def test_box_with_missing_outputs_and_batches(kernel, resample):
    rng = np.random.default_rng(0)
    opt = MTBKB(kernel, Box([[0.0, 1.0]]), **SETTINGS, resample=resample, scalarization=Linear(), seed=0)
    for t in range(4):
        X = opt.ask(2)
        assert X.shape == (2, 1) and len(opt.pending) == 2
        Y = rng.standard_normal((2, 2))
        Y[0, 0] = np.nan if t == 2 else Y[0, 0]
        opt.tell(X[::-1], Y)
    assert len(opt.history) == 8 and not opt.pending and 1 <= len(opt.dictionary) <= 8
    exact = posterior(kernel, 0.1).update(opt.history.X, opt.history.Y)
    low, high = extremes(opt.posterior.cov(GRID), exact.cov(GRID))
    assert 1 / opt.sandwich <= low * (1 + 1e-6) and high <= opt.sandwich * (1 + 1e-6)


def test_pending_points_do_not_touch_the_memory():
    F, _ = some_function(PAIR, GRID, np.random.default_rng(1))
    opt = MTBKB(PAIR, Finite(GRID), **SETTINGS, seed=0)
    list(play(opt, F, 10))
    before = opt._states[0].model.cov.copy(), opt.beta, opt.posterior.n_obs
    assert len(np.unique(opt.ask(4))) == 4
    np.testing.assert_array_equal(opt._states[0].model.cov, before[0])
    assert (opt.beta, opt.posterior.n_obs) == before[1:]


def test_a_row_without_any_output_teaches_nothing():
    opt = MTBKB(PAIR, Finite(GRID), **SETTINGS, seed=0)
    opt.tell([0.5], [np.nan, np.nan])
    np.testing.assert_allclose(opt.posterior.cov(GRID), PAIR.diag(GRID))
    opt.tell([0.5], [1.0, 2.0])
    assert len(opt.dictionary) == 1 and opt.posterior.mean([[0.5]])[0, 0] > 0.5


def test_memory_is_linear_in_the_candidates():
    X = np.random.default_rng(0).random((20_000, 4))
    opt = MTBKB(SE(0.5) * np.eye(2), Finite(X), noise_std=0.1, norm_bound=2.0, eta=0.1, seed=0)
    for _ in range(10):
        x = opt.ask()
        opt.tell(x, [x[0], -x[1]])
    assert opt._states[0].model._carrier.banks[0].F.shape <= (10, 20_000)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"q": 0.5}, "q must be at least 1"),
        ({"q": "large"}, "q must be a number"),
        ({"q": -1}, "q must be"),
        ({"epsilon": 0}, "epsilon"),
        ({"epsilon": 1}, "epsilon must lie in"),
        ({"horizon": 2.5}, "horizon"),
        ({"horizon": "a"}, "horizon must be a whole number"),
        ({"horizon": np.nan}, "horizon must be a whole number"),
        ({"resample": "every", "threshold": 2.0}, "threshold must be None"),
        ({"radius": "paper", "threshold": 2.0}, "threshold must be None"),
        ({"threshold": 0.5}, "threshold"),
        ({"resample": "never"}, "resample"),
        ({"inclusion": "scale"}, "inclusion"),
        ({"radius": "tight"}, "radius"),
        ({"radius": "paper", "resample": "certified"}, "needs resample"),
        ({"delta": 2}, "delta"),
        ({"eta": 0}, "eta"),
        ({"width": "narrow"}, "width"),
        ({"norm_bound": 0}, "norm_bound"),
    ],
)
def test_bad_options_name_the_argument(options, words):
    with pytest.raises(ValueError, match=words):
        MTBKB(PAIR, Finite(GRID), **{"noise_std": 0.1, "norm_bound": 1.0} | options)


@pytest.mark.parametrize(
    ("attempt", "words"),
    [
        (lambda: paper_q(100, 0.1, epsilon=2), "epsilon must lie in"),
        (lambda: paper_q(0.5, 0.1, 0.5), "horizon"),
        (lambda: paper_q(100, 2.0, 0.5), "delta"),
        (lambda: theory_q("a", 3.0, 0.1, 0.5), "count"),
        (lambda: theory_q(2, -1.0, 0.1, 0.5), "dimension"),
        (lambda: theory_q(2, 3.0, 0.1, 1.0), "epsilon must lie in"),
        (lambda: inclusion_probability(-1, [0.1], 0.1), "q must"),
        (lambda: inclusion_probability(1, [-0.1], 0.1), "norm must"),
        (lambda: inclusion_probability(1, "a", 0.1), "norm must"),
        (lambda: inclusion_probability(1, [0.1], 0.0), "eta must"),
        (lambda: certificate_radius(-1.0, 1.0, 0.1, 1.0, 0.1, 0.1, 0.1), "logdet must"),
        (lambda: certificate_radius("a", 1.0, 0.1, 1.0, 0.1, 0.1, 0.1), "logdet must"),
        (lambda: doubled_horizon(0, None), "t must"),
        (lambda: doubled_horizon(1, 0), "horizon must"),
        (lambda: NystromPosterior(PAIR, 0.1, "a"), "dictionary must"),
    ],
)
def test_helpers_name_the_argument(attempt, words):
    with pytest.raises((TypeError, ValueError), match=words):
        attempt()


@pytest.mark.parametrize("carried", [False, True])
def test_a_dictionary_that_does_not_fit_changes_nothing(carried):
    X = np.random.default_rng(0).random((6, 2))
    post = nystrom_posterior(PAIR, 0.1, X[:3]).update(X, np.ones((6, 2)))
    where = NystromCarried(post, X) if carried else post
    before = post.mean(X)
    for bad in ("a", [[0.1]], [0.1, 0.2], [[np.nan, 0.1]]):
        with pytest.raises((TypeError, ValueError), match="dictionary must"):
            where.redraw(bad)
    np.testing.assert_array_equal(post.mean(X), before)
    where.redraw(X.tolist())
    np.testing.assert_allclose(post.mean(X), posterior(PAIR, 0.1).update(X, np.ones((6, 2))).mean(X), atol=1e-6)
    where.redraw([])
    np.testing.assert_array_equal(post.mean(X), 0)


@pytest.mark.parametrize("radius", ["certificate", "paper"])
@pytest.mark.parametrize("domain", [Finite(GRID), Box([[0, 1]])], ids=["list", "box"])
def test_batches_spread(radius, domain):
    rng = np.random.default_rng(0)
    opt = MTBKB(PAIR, domain, **SETTINGS, radius=radius, seed=0)
    for _ in range(3):
        opt.tell(opt.ask(), rng.standard_normal(2))
    assert len(np.unique(opt.ask(4).round(6), axis=0)) == 4
    assert len(opt.dictionary) <= 3  # only for the time being


@given(seeds)
def test_a_larger_dictionary_leaves_less_and_pending_points_cost_their_variance(seed):
    rng = np.random.default_rng(seed)
    F, norm = some_function(PAIR, GRID, rng)
    opt = MTBKB(PAIR, Finite(GRID), noise_std=0.1, norm_bound=norm, eta=0.1, radius="paper", seed=seed)
    list(play(opt, F, 8, seed))
    points = [GRID[j] for j in rng.integers(0, 61, 3)]
    joined = opt._joined(points)
    assert joined.model.gap <= opt._states[0].model.gap + 1e-6 and joined.model.lost <= opt.posterior.lost + 1e-6
    state, beta = opt._imagine(points)
    inflation = 1 + sum(joined.norm(x) for x in points) / opt.eta
    assert np.isclose(beta, np.sqrt(inflation) * opt.beta)
    assert all(state.norm(x) <= opt.eta + 1e-9 for x in points)  # each has lowered its own variance
    np.testing.assert_allclose(state.model.mean, joined.model.mean, atol=1e-6)
    told = joined.model
    deviation = (F - told.mean) / np.sqrt(state.model.diag)
    assert np.abs(deviation).max() <= beta  # the band holds with the imagined variances


def test_a_failed_tell_changes_nothing():
    F, _ = some_function(PAIR, GRID, np.random.default_rng(1))
    opt = MTBKB(PAIR, Finite(GRID), **SETTINGS, seed=0)
    list(play(opt, F, 5))
    beta, state = opt.beta, opt.rng.bit_generator.state
    for x, y in (([0.123], [1, 2]), ([0.5], [1, 2, 3]), ([0.5], [np.inf, 1]), ([np.nan], [1, 2])):
        with pytest.raises(ValueError):
            opt.tell(x, y)
    assert (opt.beta, len(opt.history), opt.posterior.n_obs) == (beta, 5, 5) and opt.rng.bit_generator.state == state
