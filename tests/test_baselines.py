"""The baselines: IT-KB against scalar posteriors, Thompson draws against the joint posterior, the door."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import data, kernels

from mtbo_nb.baselines import ITBKB, ITKB, MOBO, Beside, Componentwise, Draws, RandomSearch, SobolSearch, independent
from mtbo_nb.concentration import DataRadius, confidence_radius
from mtbo_nb.kernels import ICM, LMC, SE, Diagonal, Matern, similar_tasks
from mtbo_nb.mtkb import MTKB, Box, Finite, Moments
from mtbo_nb.regression import posterior
from mtbo_nb.scalarization import Chebyshev, Linear

GRID = np.linspace(0, 1, 21)[:, None]
K = SE(0.2) * [[1.0, 0.7], [0.7, 2.0]]
MAKERS = {
    "itkb": lambda domain, **o: ITKB(K, domain, noise_std=0.1, norm_bound=2.0, **o),
    "itbkb": lambda domain, **o: ITBKB(K, domain, noise_std=0.1, norm_bound=2.0, **o),
    "ucb": lambda domain, **o: MOBO(K, domain, noise_std=0.1, **o),
    "thompson": lambda domain, **o: MOBO(K, domain, acquisition="thompson", noise_std=0.1, **o),
    "random": lambda domain, **o: RandomSearch(K, domain, noise_std=0.1, **o),
    "sobol": lambda domain, **o: SobolSearch(K, domain, noise_std=0.1, **o),
}


def truth(x):
    return np.array([np.sin(5 * x[0]), np.cos(4 * x[0])])


def play(opt, T, missing=False):
    rng = np.random.default_rng(0)
    for t in range(T):
        x = opt.ask()
        y = truth(x) + 0.1 * rng.standard_normal(2)
        opt.tell(x, [y[0], np.nan] if missing and t % 3 == 1 else y)
    return opt


@given(kernel=kernels())
def test_independent_keeps_the_diagonal_and_nothing_else(kernel):
    X = np.linspace(0, 1, 4)[:, None]
    alone = independent(kernel)
    np.testing.assert_allclose(alone(X), kernel(X) * np.eye(kernel.n_tasks), atol=1e-12)
    np.testing.assert_allclose(independent(alone)(X), alone(X), atol=1e-12)


def test_independent_gives_the_fast_kind_where_it_can():
    assert isinstance(independent(K), Diagonal)
    assert isinstance(independent(similar_tasks(SE(0.1), 3, 0.0)), Diagonal)
    assert independent(Diagonal([SE(0.1), Matern(1.5, 0.3)])).kernels[1] == Matern(1.5, 0.3)
    assert independent(SE(0.3)).n_tasks == 1
    assert isinstance(independent(ICM(SE(0.3), [[1.0, 0.0], [0.0, 0.0]])), LMC)


@pytest.mark.parametrize("domain", [Finite(GRID), Box([[0, 1]])], ids=["list", "box"])
@pytest.mark.parametrize("missing", [False, True])
def test_itkb_is_scalar_posteriors_with_the_largest_radius(domain, missing):
    opt = play(ITKB(K, domain, noise_std=0.1, norm_bound=2.0, eta=0.05, seed=1), 12, missing)
    X, Y = opt.history.X, opt.history.Y
    radii, mean, sd = [], [], []
    for j, k in enumerate((SE(0.2), 2.0 * SE(0.2))):
        seen = ~np.isnan(Y[:, j])
        post = posterior(k, 0.05).update(X[seen], Y[seen][:, [j]])
        radii.append(confidence_radius(post.logdet, 2.0, 0.1, 0.05, 0.1))
        mean.append(post.mean(GRID)[:, 0])
        sd.append(np.sqrt(post.norm(GRID)))
    assert opt.beta == pytest.approx(np.sqrt(2) * max(radii), rel=1e-9)
    w = np.array([0.4, 0.6])
    by_hand = Chebyshev()(np.transpose(mean), w) + 0.6 * opt.beta * np.max(sd, axis=0)
    if isinstance(domain, Finite):
        assert opt.domain.number(opt.ask(weights=w)) == by_hand.argmax()
    else:
        opt.tell(opt.ask(weights=w), [0.0, 0.0])
        assert opt.history.value[-1] >= by_hand.max() - 1e-6


@given(kernel=kernels(), drawn=st.data())
@settings(max_examples=25)
def test_the_blown_up_radius_is_above_that_of_all_tasks_together(kernel, drawn):
    X, rounds, Y = drawn.draw(data(kernel.n_tasks))
    options = {"noise_std": 0.3, "eta": 0.1}
    single = ITKB(kernel, Finite(X), norm_bound=1.0, **options)
    joint = MTKB(independent(kernel), Finite(X), norm_bound=np.sqrt(kernel.n_tasks), radius="paper", **options)
    for opt in (single, joint):
        opt.tell(X[rounds], Y)
    assert single.beta >= joint.beta - 1e-9


def test_itkb_with_one_task_is_mtkb():
    options = {"noise_std": 0.1, "norm_bound": 2.0, "eta": 0.1, "seed": 3}
    one, other = (
        ITKB(SE(0.2), Finite(GRID), **options),
        MTKB(SE(0.2), Finite(GRID), width="spectral", radius="paper", **options),
    )
    for opt in (one, other):
        for _ in range(10):
            x = opt.ask()
            opt.tell(x, truth(x)[:1])
    np.testing.assert_array_equal(one.history.X, other.history.X)
    np.testing.assert_allclose(one.history.beta, other.history.beta, rtol=1e-10)


def test_itbkb_with_a_full_dictionary_is_itkb():
    options = {"noise_std": 0.1, "norm_bound": 2.0, "eta": 0.1}
    full = ITBKB(K, Finite(GRID), q=1e9, resample="every", **options)
    for opt in (full, plain := ITKB(K, Finite(GRID), **options)):
        play(opt, 1)
        opt.tell(GRID[::4], [truth(x) for x in GRID[::4]])
    a, b = full._states[0].model, plain._states[0].model
    assert isinstance(a, Beside)
    np.testing.assert_allclose(a.mean, b.mean, atol=1e-5)
    np.testing.assert_allclose(a.norm, b.norm, atol=1e-5)


def test_itbkb_slopes_on_a_box():
    opt = play(ITBKB(K, Box([[0, 1]]), noise_std=0.1, norm_bound=2.0, eta=0.1, seed=0), 8)
    state, h, X = opt._states[0], 1e-6, np.array([[0.31], [0.77]])
    mean, cov, dmean, dcov = state.gradients(X)
    (up, up_cov), (down, down_cov) = state.moments(X + h), state.moments(X - h)
    np.testing.assert_allclose(dmean[..., 0], (up - down) / (2 * h), atol=1e-5)
    np.testing.assert_allclose(dcov[..., 0], (up_cov - down_cov) / (2 * h), atol=1e-5)
    np.testing.assert_allclose(cov * (1 - np.eye(2)), 0)
    np.testing.assert_allclose(mean, state.moments(X)[0])


@given(kernel=kernels(max_tasks=3), drawn=st.data())
@settings(max_examples=15)
def test_thompson_draws_have_the_moments_of_the_posterior(kernel, drawn):
    X, rounds, Y = drawn.draw(data(kernel.n_tasks))
    draws, exact = Draws(kernel, 0.2, X), posterior(kernel, 0.2).update(X[rounds], Y)
    for j, y in zip(rounds, Y, strict=True):
        draws.observe(X[j], y)
    mean = (draws.F.T @ np.linalg.solve(draws.A, draws.c)).reshape(len(X), -1)
    cov = draws.F.T @ np.linalg.solve(draws.A, draws.F)
    s, n = mean.shape
    np.testing.assert_allclose(mean, exact.mean(X), atol=1e-4)
    np.testing.assert_allclose(
        cov, exact.joint(X).transpose(0, 2, 1, 3).reshape(s * n, s * n), atol=1e-4 * kernel.kappa()
    )
    assert draws.sample(np.random.default_rng(0)).shape == mean.shape


@pytest.mark.parametrize("score", [Linear(), Chebyshev()])
def test_componentwise_slopes(score):
    rng, w, h = np.random.default_rng(0), np.array([0.3, 0.7]), 1e-6
    mean, root = rng.normal(size=(5, 2)), rng.normal(size=(5, 2, 2))
    cov = root @ root.transpose(0, 2, 1)
    g, G = Componentwise().slopes(score, w, 1.5, Moments(mean, cov))
    step, bump = rng.normal(size=mean.shape), np.eye(2) * rng.random((5, 1, 1))
    change = [
        Componentwise().value(score, w, 1.5, Moments(mean + sign * h * step, cov + sign * h * bump)) for sign in (1, -1)
    ]
    slope = np.einsum("sn,sn->s", g, step) + np.einsum("sij,sij->s", G, bump)
    np.testing.assert_allclose((change[0] - change[1]) / (2 * h), slope, rtol=1e-4)


def test_mobo_radius_is_the_rule_of_thumb():
    opt = play(MOBO(K, Finite(GRID), noise_std=0.1, seed=0), 5)
    np.testing.assert_allclose(opt.history.beta, [np.sqrt(0.2 * np.log(2 * t + 1)) for t in range(1, 6)])


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("domain", [Finite(GRID), Box([[0, 1]])], ids=["list", "box"])
def test_the_same_seed_gives_the_same_run_and_the_verbs_are_the_same(name, domain):
    state = np.random.get_state()[1].copy()
    one, two = (play(MAKERS[name](domain, seed=5), 6, missing=True) for _ in range(2))
    np.testing.assert_array_equal(one.history.X, two.history.X)
    np.testing.assert_array_equal(np.random.get_state()[1], state)
    xs = one.ask(3)
    assert xs.shape == (3, 1) and len(one.pending) == 3
    one.tell(xs, [truth(x) for x in xs])
    assert len(one.history) == 9 and not one.pending and one.posterior.n_obs == 9
    assert isinstance(one.beta, float) and isinstance(one.guarantee, str)


@pytest.mark.parametrize("name", MAKERS)
def test_a_wrong_tell_changes_nothing(name):
    opt = play(MAKERS[name](Finite(GRID), seed=0), 3)
    beta = opt.beta
    for x, y in (([0.123], [0.0, 0.0]), ([0.5], [0.0]), ([0.5], [np.inf, 0.0]), ([0.5, 0.5], [0.0, 0.0])):
        with pytest.raises(ValueError, match=r"x|Y|y"):
            opt.tell(x, y)
    assert len(opt.history) == 3 and opt.posterior.n_obs == 3
    np.testing.assert_equal(opt.beta, beta)


def test_sobol_visits_every_candidate_once_before_any_twice():
    X = np.random.default_rng(0).random((17, 2)) * [1.0, 1000.0]
    opt = SobolSearch(K, Finite(X), noise_std=0.1, seed=2)
    asked = opt.ask(34)
    for half in (asked[:17], asked[17:]):
        assert len(np.unique(half, axis=0)) == 17


@pytest.mark.parametrize("domain", [Finite([[0.5]]), Finite([[0.5, 1.0], [0.5, 2.0]])])
@pytest.mark.parametrize("name", MAKERS)
def test_small_and_flat_domains(name, domain):
    opt = MAKERS[name](domain, seed=0)
    for _ in range(3):
        opt.tell(opt.ask(), [0.1, 0.2])
    assert len(opt.history) == 3


NINE = SE(0.3) * np.eye(9)
EVERY = {"itkb": ITKB, "itbkb": ITBKB}


@pytest.mark.parametrize("cls", EVERY.values(), ids=EVERY)
def test_a_bound_on_each_output_is_not_refuted_by_many_outputs(cls):
    """Nine outputs k(., 1/2), each of norm 1: their joint norm 3 is no witness against 1.05, and 0.5 is refuted."""
    told = np.repeat(SE(0.3)(GRID, [[0.5]]), 9, axis=1)
    opt, small = (cls(NINE, Finite(GRID), norm_bound=b, noise_std=0.01) for b in (1.05, 0.5))
    assert opt.norm_lower_bound == 0 and not opt.refuted
    opt.tell(GRID, told)
    assert 0.8 < opt.norm_lower_bound <= 1 and not opt.refuted and "none" not in opt.guarantee
    told[:, 1:] = np.nan  # one output is enough for a refutation, wherever it stands
    small.tell(GRID, told[:, ::-1])
    assert small.refuted and small.guarantee == "none: the data refute norm_bound=0.5"


@given(kernel=kernels(max_tasks=3), drawn=st.data())
@settings(max_examples=25)
def test_the_lower_bound_is_that_of_the_single_tasks(kernel, drawn):
    X, rounds, Y = drawn.draw(data(kernel.n_tasks))
    opt = ITKB(kernel, Finite(X), noise_std=0.3, norm_bound=1.0, eta=0.1, delta=0.2)
    opt.tell(X[rounds], Y)
    found = [0.0]
    for j in range(kernel.n_tasks):
        alone = LMC([(k, [[B[j, j]]]) for k, B in kernel.terms])
        evidence = DataRadius(alone, 1.0, 0.3, 0.1, 0.2 / kernel.n_tasks)
        found.append(evidence.update(X[rounds], Y[:, [j]]).norm_lower_bound)
    assert opt.norm_lower_bound == pytest.approx(max(found), rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("cls", EVERY.values(), ids=EVERY)
def test_the_public_face_is_complete(cls):
    opt = play(cls(K, Finite(GRID), noise_std=0.1, norm_bound=2.0, delta=0.05, seed=0), 3)
    assert (opt.norm_bound, opt.delta, opt.noise_std, opt.width) == (2.0, 0.05, 0.1, "spectral")
    assert opt.eta == pytest.approx(0.01) and opt.norm_lower_bound >= 0 and opt.refuted in (True, False)
    for option in ({"width": "directional"}, {"sketch": 3}):
        with pytest.raises(TypeError, match=f"unexpected keyword argument '{min(option)}'"):
            cls(K, Finite(GRID), noise_std=0.1, norm_bound=2.0, **option)


@pytest.mark.parametrize("radius", ["certificate", "paper"])
@pytest.mark.parametrize("domain", [Finite(GRID), Box([[0, 1]])], ids=["list", "box"])
def test_batches_of_dictionaries_spread(radius, domain):
    opt = play(ITBKB(K, domain, noise_std=0.1, norm_bound=2.0, radius=radius, seed=0), 3)
    assert len(np.unique(opt.ask(4).round(6), axis=0)) == 4
    assert opt.history.beta[-1] < [plan for plans in opt._plans._waiting.values() for plan in plans][-1][1]


def test_wrong_arguments_are_named():
    for name, value in (("norm_bound", -1.0), ("delta", 2.0), ("eta", 0.0)):
        with pytest.raises(ValueError, match=rf"^{name} must"):
            ITBKB(K, Finite(GRID), **{"noise_std": 0.1, "norm_bound": 1.0, name: value})
    with pytest.raises(ValueError, match="acquisition"):
        MOBO(K, Finite(GRID), acquisition="ei", noise_std=0.1)
    with pytest.raises(ValueError, match="norm_bound"):
        ITKB(K, Finite(GRID), noise_std=0.1, norm_bound=0.0)
    with pytest.raises(ValueError, match="eta"):
        MOBO(K, Finite(GRID), noise_std=0.1, eta=0.0)
    with pytest.raises(ValueError, match="noise_std"):
        ITBKB(K, Finite(GRID), noise_std=-0.1, norm_bound=1.0)
    with pytest.raises(TypeError, match="domain"):
        SobolSearch(K, GRID, noise_std=0.1)
    with pytest.raises(TypeError, match="scalarization"):
        RandomSearch(K, Finite(GRID), scalarization="linear", noise_std=0.1)
