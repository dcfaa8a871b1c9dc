"""MT-KB by ask and tell: valid bounds, the same run from the same seed, pending points, boxes, and the door."""

import copy

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from strategies import kernels

from mtbo_nb.concentration import NormBoundFalsified
from mtbo_nb.kernels import ICM, LMC, SE, Matern, similar_tasks
from mtbo_nb.mtkb import (
    MTKB,
    WIDTHS,
    Box,
    Finite,
    Moments,
    _value_and_slope,
    climb,
    divide,
    ellipsoid_weights,
    ellipsoid_weights_pair,
    first_best,
)
from mtbo_nb.regression import posterior
from mtbo_nb.scalarization import Chebyshev, Hypervolume, Linear

GRID = np.linspace(0, 1, 31)[:, None]
KERNEL = SE(0.2) * [[1.0, 0.5], [0.5, 1.0]]
LMC2 = LMC([(SE(0.3), [[1, 0.5], [0.5, 1]]), (Matern(2.5, 0.2), [[0.2, -0.1], [-0.1, 0.3]])])


def function(kernel, X, seed):
    """A function of the kernel's space: its values at X, and its norm."""
    rng = np.random.default_rng(seed)
    at, c = X[rng.integers(0, len(X), 10)], rng.uniform(-1, 1, 10 * kernel.n_tasks)
    return (kernel.gram(X, at) @ c).reshape(len(X), -1), max(1e-3, float(np.sqrt(max(0.0, c @ kernel.gram(at) @ c))))


def play(opt, F, T, seed=0, missing=0.0):
    rng = np.random.default_rng(seed)
    for _ in range(T):
        x = opt.ask()
        y = F[opt.domain.number(x)] + opt.noise_std * rng.standard_normal(F.shape[1])
        opt.tell(x, np.where(rng.random(F.shape[1]) < missing, np.nan, y))
    return opt


@given(st.data())
@settings(deadline=None, max_examples=60)
def test_bounds_are_ordered_and_hold_on_the_ellipsoid(draw):
    n, rng = draw.draw(st.integers(1, 5)), np.random.default_rng(draw.draw(st.integers(0, 10**6)))
    A = rng.standard_normal((20, n, n)) * rng.random((20, n, 1))
    m, beta = Moments(rng.standard_normal((20, n)), A @ A.transpose(0, 2, 1)), 3 * rng.random()
    v = rng.standard_normal((300, 20, n))
    inside = m.mean + beta * np.einsum("sij,rsj->rsi", A, v / np.linalg.norm(v, axis=-1, keepdims=True))
    for s in (Linear(), Chebyshev(reference=rng.standard_normal(n)), Hypervolume(np.full(n, -3.0), span=6.0)):
        w = s.sample_weights(n, rng)
        spectral, directional = (WIDTHS[name].value(s, w, beta, m) for name in ("spectral", "directional"))
        assert (directional <= spectral + 1e-9).all()
        tightest = directional
        if not isinstance(s, Hypervolume):
            tightest = np.array(
                [WIDTHS["ellipsoid"].value(s, w, beta, Moments(m.mean[[j]], m.cov[[j]]))[0] for j in range(20)]
            )
            assert (tightest <= directional + 1e-9).all()
        assert (s(inside, w).max(0) <= tightest + 1e-8 * (1 + np.abs(tightest))).all()


@pytest.mark.parametrize("n", [2, 3, 6])
def test_ellipsoid_weights_are_optimal(n):
    rng = np.random.default_rng(n)
    for _ in range(20):
        A = rng.standard_normal((n, n))
        a, M, beta = rng.standard_normal(n), A @ A.T, 2 * rng.random()

        def level(w, a=a, M=M, beta=beta):
            return w @ a + beta * np.sqrt(max(w @ M @ w, 0.0))

        def softmax(z):
            e = np.exp(z - z.max())
            return e / e.sum()

        ours = level(ellipsoid_weights(a, M, beta))
        starts = [minimize(lambda z: level(softmax(z)), rng.standard_normal(n)).fun for _ in range(3)]
        assert ours <= min(starts) + 1e-7
        if n == 2:
            assert np.isclose(level(ellipsoid_weights_pair(a[None], M[None], beta)[0]), ours, atol=1e-9)


@pytest.mark.parametrize("width", ["spectral", "directional", "ellipsoid"])
@pytest.mark.parametrize("radius", ["paper", "tight", "data"])
@pytest.mark.parametrize(
    "kernel", [KERNEL, similar_tasks(Matern(2.5, 0.3), 3, 0.4), LMC2], ids=["icm", "similar", "lmc"]
)
def test_a_run_keeps_its_promises(width, radius, kernel):
    """The promised bound is above the score that any candidate has, in every round."""
    F, norm = function(kernel, GRID, 3)
    opt = MTKB(kernel, Finite(GRID), noise_std=0.1, norm_bound=norm, width=width, radius=radius, seed=1)
    play(opt, F, 15, missing=0.2)
    for w, value in zip(opt.history.weights, opt.history.value, strict=True):
        assert opt.scalarization(F, w).max() <= value + 1e-9
    mean, cov = opt.posterior.mean(GRID), opt.posterior.cov(GRID)
    off = F - mean
    assert (
        np.einsum("si,si->s", off, np.linalg.solve(cov + 1e-10 * np.eye(F.shape[1]), off[..., None])[..., 0])
        <= opt.beta**2
    ).all()
    np.testing.assert_allclose(opt._states[0].model.mean, mean, atol=1e-8)
    np.testing.assert_allclose(opt._states[0].model.cov, cov, atol=1e-8)


def test_same_seed_same_run_and_global_state_untouched():
    _, norm = function(KERNEL, GRID, 0)
    state = np.random.get_state()[1].copy()
    for domain in (Finite(GRID), Box([[0, 1]])):
        runs = []
        for _ in range(2):
            opt = MTKB(KERNEL, domain, noise_std=0.1, norm_bound=norm, seed=5)
            for _ in range(4):
                x = opt.ask()
                opt.tell(x, np.r_[np.sin(5 * x), np.cos(5 * x)])
            runs.append(opt.history)
        np.testing.assert_array_equal(runs[0].X, runs[1].X)
        np.testing.assert_array_equal(runs[0].weights, runs[1].weights)
    np.testing.assert_array_equal(state, np.random.get_state()[1])


def test_a_generator_can_be_the_seed():
    rng = np.random.default_rng(0)
    assert MTKB(KERNEL, Finite(GRID), noise_std=0.1, norm_bound=1.0, seed=rng).rng is rng


@given(kernels(max_tasks=3), st.integers(0, 1000))
@settings(deadline=None, max_examples=25)
def test_pending_points_are_paid_for(kernel, seed):
    """C Gamma_{t-1} - Gamma_a is positive semi-definite, the mean is the old one, and the promise holds."""
    F, norm = function(kernel, GRID, seed)
    opt = MTKB(kernel, Finite(GRID), noise_std=0.1, norm_bound=norm, eta=0.1, seed=seed)
    play(opt, F, 5)
    xs = opt.ask(4)
    assert xs.shape == (4, 1) and len(opt.pending) == 4
    (state, C), now = opt._imagine_pending(), opt._states[0].model
    np.testing.assert_allclose(state.model.mean, now.mean, atol=1e-9 * max(1, norm))
    gap = C * state.model.cov - now.cov
    assert np.linalg.eigvalsh(gap).min() > -1e-9 * max(1, kernel.kappa())
    for x in xs[[2, 0, 3, 1]]:  # results come in any order
        opt.tell(x, F[opt.domain.number(x)])
    assert not opt.pending and not np.isnan(opt.history.beta).any()
    for w, value in zip(opt.history.weights, opt.history.value, strict=True):
        assert opt.scalarization(F, w).max() <= value + 1e-7 * max(1, norm)


def test_pending_on_a_box_and_forgotten_points():
    opt = MTKB(LMC2, Box([[0, 1], [-5, 5]]), noise_std=0.1, norm_bound=2.0, seed=0)
    xs = opt.ask(3)
    assert np.abs(xs[:, None] - xs[None]).max(-1)[np.triu_indices(3, 1)].min() > 0.05
    opt.forget(xs[1])
    opt.tell(xs[[0, 2]], [[1.0, 2.0], [np.nan, 1.0]])
    assert not opt.pending and len(opt.history) == 2 and opt.posterior.n_obs == 2


def test_nobody_can_change_what_was_told():
    """What the caller does with his arrays afterwards is his affair."""
    X, B, y, bounds, z = (
        GRID.copy(),
        np.array([[1.0, 0.5], [0.5, 1.0]]),
        np.zeros(2),
        np.array([[0.0, 1.0]]),
        np.zeros(2),
    )
    opt = MTKB(SE(0.2) * B, Finite(X), scalarization=Chebyshev(z), noise_std=0.1, norm_bound=1.0, seed=0)
    for value in (1.0, 2.0):
        y[:] = value
        opt.tell(opt.ask(), y)
    X[:], B[:], y[:], z[:] = 7, 0, 9, 5
    opt.tell([0.5], [np.nan, 1.0])  # replays what was told
    opt.history.x[0][:] = 99
    np.testing.assert_array_equal(opt.history.Y[:2], [[1, 1], [2, 2]])
    np.testing.assert_allclose(opt._states[0].model.mean, opt.posterior.mean(GRID), atol=1e-9)
    box = Box(bounds)
    bounds[:] = 5
    np.testing.assert_array_equal(box.bounds, [[0, 1]])


def test_a_rounded_recipe_is_the_result_of_the_pending_one():
    opt = MTKB(KERNEL, Box([[0, 100]]), noise_std=0.1, norm_bound=1.0, seed=0)
    for _ in range(3):
        opt.tell(opt.ask().round(0), [0.1, 0.2])
    assert not opt.pending and not np.isnan(opt.history.weights).any()
    opt.ask()
    with pytest.raises(ValueError, match="pending"):
        opt.forget([50.123])
    opt.forget(opt.pending[0])
    assert not opt.pending


def test_a_failed_ask_leaves_nothing_behind():
    draws = iter([[0.5, 0.5], [0.5, 0.5], [-1.0, 1.0]])
    score = Chebyshev(weights=lambda n, rng: next(draws))
    opt = MTKB(KERNEL, Finite(GRID), noise_std=0.1, norm_bound=1.0, seed=0)
    opt.scalarization = score
    with pytest.raises(ValueError, match="weights"):
        opt.ask(3)
    assert not opt.pending
    for q in ("a", np.nan, [2], True, 0, 1.5):
        with pytest.raises(ValueError, match="q must"):
            opt.ask(q)


def test_the_posterior_of_an_optimiser_is_read_only():
    with pytest.raises(RuntimeError, match="tell the optimiser"):
        MTKB(KERNEL, Finite(GRID), noise_std=0.1, norm_bound=1.0).posterior.update([[0.1]], [[1, 2]])


def test_the_ellipsoid_is_maximised_on_a_box_with_many_outputs():
    kernel, box = similar_tasks(SE(0.3), 4, 0.4), Box([[0, 1], [0, 1]])
    opt = MTKB(kernel, box, width="ellipsoid", noise_std=0.1, norm_bound=2.0, seed=0)
    opt.tell(box.sobol(8, np.random.default_rng(1)), np.random.default_rng(2).standard_normal((8, 4)))
    w = np.array([0.4, 0.3, 0.2, 0.1])
    _, beta, value = opt._propose(w)
    side = np.linspace(0, 1, 41)
    mesh = np.stack(np.meshgrid(side, side), -1).reshape(-1, 2)
    m = Moments(opt.posterior.mean(mesh), opt.posterior.cov(mesh))
    assert value >= WIDTHS["ellipsoid"].ranking(opt.scalarization, w, beta, m).max() - 1e-6


def test_told_without_being_asked():
    opt = MTKB(KERNEL, Finite(GRID), noise_std=0.1, norm_bound=1.0, seed=0)
    opt.tell(GRID[3:6], np.ones((3, 2)))
    assert len(opt.history) == 3 and np.isnan(opt.history.beta).all()
    assert "3 rounds" in repr(opt) and "<table>" in opt.history._repr_html_()


def test_weights_of_the_caller():
    opt = MTKB(KERNEL, Finite(GRID), noise_std=0.1, norm_bound=1.0, seed=0)
    x = opt.ask(weights=[0.0, 1.0])
    opt.tell(x, [1.0, 1.0])
    np.testing.assert_array_equal(opt.history.weights[0], [0.0, 1.0])


def test_box_finds_the_maximum_of_its_acquisition():
    for d, kernel in [(1, KERNEL), (3, LMC2), (2, similar_tasks(Matern(1.5, 0.4), 3, 0.3))]:
        box = Box([[-1, 3]] * d)
        opt = MTKB(kernel, box, noise_std=0.1, norm_bound=2.0, seed=0)
        X = box.sobol(16, np.random.default_rng(1))
        opt.tell(X, np.random.default_rng(2).standard_normal((16, kernel.n_tasks)))
        w = np.full(kernel.n_tasks, 1 / kernel.n_tasks)
        x, beta, value = opt._propose(w)
        many = box.sobol(2**15, np.random.default_rng(3))
        m = Moments(opt.posterior.mean(many), opt.posterior.cov(many))
        assert value >= WIDTHS["directional"].value(opt.scalarization, w, beta, m).max() - 1e-6
        np.testing.assert_array_equal(box.snap(x), x)


def test_direct_on_a_box():
    opt = MTKB(KERNEL, Box([[0, 1]], maximiser="direct"), noise_std=0.1, norm_bound=1.0, seed=0)
    opt.tell(opt.ask(), [1.0, 2.0])
    assert 0 <= opt.ask()[0] <= 1


def test_a_falsified_norm_bound_is_said_once_and_shown():
    F, norm = function(KERNEL, GRID, 0)
    opt = MTKB(KERNEL, Finite(GRID), noise_std=0.01, norm_bound=norm / 20, radius="data", seed=0)
    with pytest.warns(NormBoundFalsified) as caught:
        play(opt, F, 10)
    assert len(caught) == 1 and opt.guarantee.startswith("none")
    good = play(MTKB(KERNEL, Finite(GRID), noise_std=0.01, norm_bound=norm, radius="data", seed=0), F, 10)
    assert good.guarantee.startswith("with probability 0.9")
    assert 0 < good.norm_lower_bound <= norm
    tight = play(MTKB(KERNEL, Finite(GRID), noise_std=0.01, norm_bound=norm / 20, seed=0), F, 10)
    assert tight.refuted and tight.guarantee.startswith("none")  # whatever the radius
    assert MTKB(KERNEL, Finite(GRID), noise_std=0.01, norm_bound=1.0).norm_lower_bound == 0


def test_edges():
    alone = MTKB(SE(0.2), Finite([[0.5]]), noise_std=0.0, norm_bound=1.0, seed=0)  # one task, one candidate, no noise
    for _ in range(3):
        alone.tell(alone.ask(), 0.7)
    np.testing.assert_allclose(alone.posterior.mean([[0.5]]), 0.7, atol=1e-6)
    twice = MTKB(KERNEL, Finite([[0.1], [0.1], [0.2]]), noise_std=0.1, norm_bound=1.0, seed=0)
    assert twice.domain.number(np.array([0.1])) == 0
    rank_one = MTKB(SE(0.2) * np.ones((3, 3)), Finite(GRID), noise_std=0.1, norm_bound=1.0, eta=1e-8, seed=0)
    for _ in range(5):
        rank_one.tell(rank_one.ask(), np.zeros(3))
    assert np.isfinite(rank_one.posterior.cov(GRID)).all()
    assert MTKB(KERNEL, Finite([[-0.0]]), noise_std=0.1, norm_bound=1.0).domain.number(np.array([0.0])) == 0


@pytest.mark.parametrize("scale", [1e-3, 1e6])
def test_units_do_not_matter(scale):
    F, norm = function(KERNEL, GRID, 0)
    runs = [
        play(MTKB(ICM(SE(0.2), c**2 * KERNEL.B), Finite(GRID), noise_std=0.1 * c, norm_bound=norm, seed=0), c * F, 25)
        for c in (1.0, scale)
    ]
    np.testing.assert_array_equal(runs[0].history.X, runs[1].history.X)


def test_the_optimiser_can_be_copied():
    F, norm = function(KERNEL, GRID, 0)
    opt = play(MTKB(KERNEL, Finite(GRID), noise_std=0.1, norm_bound=norm, seed=0), F, 70)
    other = copy.deepcopy(opt)
    np.testing.assert_array_equal(play(opt, F, 5).history.X, play(other, F, 5).history.X)


def test_ties_take_the_lowest_number():
    assert first_best(np.zeros(5)) == 0
    assert first_best(np.array([0.0, 1.0 - 1e-12, 1.0])) == 1


BAD = {
    "seed": "abc",
    "noise_std": -1,
    "norm_bound": 0,
    "eta": 0.0,
    "delta": 0.0,
    "width": "x",
    "radius": "x",
    "scalarization": "x",
}


@pytest.mark.parametrize("name", BAD)
def test_bad_options_name_the_argument(name):
    options = {"noise_std": 0.1, "norm_bound": 1.0} | {name: BAD[name]}
    with pytest.raises((ValueError, TypeError), match=name):
        MTKB(KERNEL, Finite(GRID), **options)


@pytest.mark.parametrize(
    ("x", "y", "words"),
    [
        ([0.123], [1, 2], "x must be one of the candidates.*nearest"),
        ([0.0, 1.0], [1, 2], r"x must have shape \(points, 1\)"),
        ([np.nan], [1, 2], "x must be finite"),
        ([0.0], [1, 2, 3], r"y must have shape \(1, 2\)"),
        ([0.0], [1, np.inf], "y must be finite"),
        ([0.0], [1, 1e200], "y must be finite"),
        ([[0.0], [0.1, 0.2]], [1, 2], "x must be an array"),
        ([0.0], [1, 2j], "y must be an array of real"),
        (None, [1, 2], "x must be"),
        ([[0.0], [1.0]], [[1, 2]], r"y must have shape \(2, 2\)"),
        ([[0.0], [0.55]], [[1, 2], [1, 2]], "one of the candidates"),
    ],
)
def test_a_failed_tell_changes_nothing(x, y, words):
    opt = MTKB(KERNEL, Finite(GRID), noise_std=0.1, norm_bound=1.0, seed=0)
    opt.tell(opt.ask(), [1.0, 2.0])
    waiting, beta = opt.ask(), opt.beta
    with pytest.raises((ValueError, TypeError), match=words):
        opt.tell(x, y)
    assert len(opt.history) == 1 and opt.beta == beta and len(opt.pending) == 1
    opt.tell(waiting, [1.0, 2.0])


def test_a_norm_bound_that_would_overflow_is_refused_at_once():
    for bound in (1e200, 1e-300):
        with pytest.raises(ValueError, match="norm_bound"):
            MTKB(KERNEL, Finite(GRID), noise_std=0.1, norm_bound=bound)


def test_domains_refuse_nonsense():
    for call in (
        lambda: Box([[1, 0]]),
        lambda: Box([[0, np.inf]]),
        lambda: Finite(np.zeros((0, 2))),
        lambda: Finite([1.0]),
    ):
        with pytest.raises(ValueError):
            call()
    with pytest.raises(ValueError, match="box"):
        MTKB(KERNEL, Box([[0, 1]]), noise_std=0.1, norm_bound=1.0).tell([1.5], [0, 0])
    for score, name in ((Chebyshev(reference=[0, 0, 0]), "reference"), (Linear(weights=[1, 1, 1]), "weights")):
        with pytest.raises(ValueError, match=name):
            MTKB(KERNEL, Finite(GRID), scalarization=score, noise_std=0.1, norm_bound=1.0)
    with pytest.raises(TypeError, match="domain"):
        MTKB(KERNEL, GRID, noise_std=0.1, norm_bound=1.0)
    with pytest.raises(ValueError, match="weights"):
        MTKB(KERNEL, Finite(GRID), noise_std=0.1, norm_bound=1.0).ask(weights=[1.0, np.nan])
    with pytest.raises(ValueError, match="lengthscale"):
        MTKB(SE([0.1, 0.2]), Finite(GRID), noise_std=0.1, norm_bound=1.0)
    with pytest.raises(ValueError, match="lengthscale"):
        MTKB(SE([0.1, 0.2]), Box([[0, 1]]), noise_std=0.1, norm_bound=1.0)


def test_posterior_of_the_optimiser_is_the_posterior_of_the_data():
    F, norm = function(LMC2, GRID, 0)
    opt = play(MTKB(LMC2, Finite(GRID), noise_std=0.1, norm_bound=norm, eta=0.05, seed=0), F, 12, missing=0.3)
    fresh = posterior(LMC2, 0.05).update(opt.history.X, opt.history.Y)
    np.testing.assert_allclose(opt.posterior.joint(GRID[::5]), fresh.joint(GRID[::5]), atol=1e-9)
    np.testing.assert_allclose(opt._states[0].model.logdet, fresh.logdet)


@pytest.mark.parametrize("score, gap", [(Linear(), 1e-5), (Chebyshev(), 0.02)], ids=["smooth", "kinks"])
def test_climbing_is_not_far_below_direct(score, gap):
    """A smooth acquisition is climbed to the top; at the kinks of the Chebyshev score the climb may stop early."""
    kernel, box, width = similar_tasks(SE(0.15), 3, 0.4), Box([[0, 1], [0, 1]]), WIDTHS["directional"]
    for seed in range(3):
        rng = np.random.default_rng(seed)
        fit = posterior(kernel, 0.01).update(rng.random((15, 2)), rng.standard_normal((15, 3)))
        w = score.sample_weights(3, rng)

        def value(X, fit=fit, w=w):
            return width.value(score, w, 2.0, Moments(*fit.moments(X)))

        def slope(X, fit=fit, w=w):
            return _value_and_slope(width, score, w, 2.0, fit.gradients(X))

        ends = climb(value, slope, box, rng, np.zeros((0, 2))), divide(value, box, 2000)
        climbed, divided = value(np.array(ends))
        assert climbed >= divided - gap
