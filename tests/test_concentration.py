"""Radii, information and regret: identities for any kernel, two routes to one number, and coverage."""

import doctest
import itertools
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mtbo_nb import concentration
from mtbo_nb.concentration import (
    DataRadius,
    NormBoundFalsified,
    as_probability,
    confidence_radius,
    data_radius,
    information_gain,
    max_information_gain,
    mixture_grid,
    norm_lower_bound,
    nystrom_confidence_radius,
    regret_bound,
    squared_deviation,
    tight_radius,
    worst_case_regret,
)
from mtbo_nb.kernels import ICM, LMC, SE, Diagonal, Matern, similar_tasks
from mtbo_nb.regression import carry, posterior

SETTINGS = {"noise_std": 0.1, "eta": 0.1, "delta": 0.1}
positive = st.floats(1e-3, 1e3)
seeds = st.integers(0, 10_000)


def random_kernel(rng, terms=2, n=3):
    """A sum of separable kernels, the last matrix of rank one."""
    shapes = [SE, lambda s: Matern(0.5, s), lambda s: Matern(2.5, s)]
    ks = [shapes[rng.integers(3)](10 ** rng.uniform(-1.5, 0.5)) for _ in range(terms)]
    A = rng.standard_normal((terms, n, n))
    return LMC(
        [(k, a @ a.T if j + 1 < terms else np.outer(a[0], a[0])) for j, (k, a) in enumerate(zip(ks, A, strict=True))]
    )


def random_function(K, rng, X, centres=12):
    """Values at X of a member of the space, and its norm."""
    Z, c = rng.random((centres, X.shape[1])), rng.uniform(-1, 1, centres * K.n_tasks)
    return (K.gram(X, Z) @ c).reshape(len(X), -1), float(np.sqrt(c @ K.gram(Z) @ c))


def steps(K, X, eta):
    """Gamma_{s-1}(x_s, x_s) and Gamma_s(x_s, x_s), stacked over s, from the definition."""

    def cov(t, x):
        if t == 0:
            return K.diag(x)[0]
        cross = K.gram(X[:t], x)
        return K.diag(x)[0] - cross.T @ np.linalg.solve(K.gram(X[:t]) + eta * np.eye(t * K.n_tasks), cross)

    pairs = [(cov(t, X[[t]]), cov(t + 1, X[[t]])) for t in range(len(X))]
    return np.array(pairs).transpose(1, 0, 2, 3)


def norms(blocks):
    return np.linalg.norm(blocks, 2, axis=(1, 2))


def test_the_examples_in_the_docstrings_are_true():
    assert doctest.testmod(concentration).failed == 0


# the radii


@given(st.floats(0, 1e4), st.floats(0, 1e3), st.floats(0, 10), positive, st.floats(1e-6, 1))
def test_tight_is_between_the_wide_one_and_its_root(logdet, b, sigma, eta, delta):
    wide, tight = (r(logdet, b, sigma, eta, delta) for r in (confidence_radius, tight_radius))
    assert wide / np.sqrt(2) * (1 - 1e-12) <= tight <= wide * (1 + 1e-12)
    assert max(b, wide - b) <= tight * (1 + 1e-12)


@pytest.mark.parametrize("radius", [confidence_radius, tight_radius])
@given(st.floats(0, 1e3), positive, positive, positive, st.floats(1e-4, 0.9))
def test_radii_grow_and_scale(radius, logdet, b, sigma, eta, delta):
    here = radius(logdet, b, sigma, eta, delta)
    assert radius(logdet + 1, b, sigma, eta, delta) > here
    assert radius(logdet, b + 1, sigma, eta, delta) > here
    assert radius(logdet, b, sigma, eta, delta / 2) > here
    assert np.isclose(radius(logdet, 7 * b, 7 * sigma, eta, delta), 7 * here)


@pytest.mark.parametrize("radius", [confidence_radius, tight_radius])
def test_no_noise_leaves_the_bias_and_certainty_costs_nothing(radius):
    assert radius(1e3, 2.5, 0.0, 1e-8, 0.01) == 2.5
    assert radius(0.0, 0.0, 1.0, 1.0, 1.0) == 0.0


def test_printed_value_of_theorem_one():
    assert np.isclose(confidence_radius(3.0, 1.0, 0.2, 0.25, 0.05), 1 + 0.4 * np.sqrt(2 * np.log(20) + 3))


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 0.9])
def test_nystrom_radius_is_theorem_three(epsilon):
    rho = (1 + epsilon) / (1 - epsilon)
    expected = 2 * (1 + 1 / np.sqrt(1 - epsilon)) + 0.1 / np.sqrt(0.1) * np.sqrt(2 * np.log(20) + rho * 5)
    assert np.isclose(nystrom_confidence_radius(5.0, 2.0, 0.1, 0.1, 0.1, epsilon), expected)


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"logdet": -1.0}, "logdet"),
        ({"logdet": np.nan}, "logdet"),
        ({"norm_bound": -1.0}, "norm_bound"),
        ({"norm_bound": np.inf}, "norm_bound"),
        ({"noise_std": -0.1}, "noise_std"),
        ({"eta": 0.0}, "eta"),
        ({"delta": 0.0}, "delta"),
        ({"delta": 1.1}, "delta"),
    ],
)
@pytest.mark.parametrize("radius", [confidence_radius, tight_radius])
def test_bad_arguments_are_named(radius, change, word):
    with pytest.raises(ValueError, match=word):
        radius(**({"logdet": 1.0, "norm_bound": 1.0} | SETTINGS | change))


def test_other_bad_arguments():
    with pytest.raises(ValueError, match="epsilon"):
        nystrom_confidence_radius(1.0, 1.0, 0.1, 0.1, 0.1, epsilon=1.0)
    with pytest.raises(TypeError, match="delta"):
        as_probability("delta", "small")
    for column in range(4):
        good = [[1.0, 1.0], [1.0, 1.0], [0.1, 0.2], [0.5, 0.5]]
        good[column] = [np.nan, 1.0]
        with pytest.raises(ValueError, match=("quads", "logdets", "ridges", "weights")[column]):
            squared_deviation(*good, 0.1, 0.1)
    with pytest.raises(ValueError, match="ridges must be > 0"):
        squared_deviation([1.0], [1.0], [0.0], [1.0], 0.1, 0.1)
    with pytest.raises(ValueError, match="sum to 1"):
        squared_deviation([1.0], [1.0], [1.0], [0.9], 0.1, 0.1)


GOOD = {
    confidence_radius: {"logdet": 1.0, "norm_bound": 1.0} | SETTINGS,
    tight_radius: {"logdet": 1.0, "norm_bound": 1.0} | SETTINGS,
    nystrom_confidence_radius: {"logdet_proxy": 1.0, "norm_bound": 1.0, "epsilon": 0.5} | SETTINGS,
    worst_case_regret: {"T": 5, "gain": 1.0, "norm_bound": 1.0, "kappa": 1.0, "lipschitz": 1.0} | SETTINGS,
    data_radius: {name: [v] for name, v in (("quads", 0.1), ("logdets", 0.1), ("ridges", 0.1), ("weights", 1.0))}
    | {"norm_bound": 1.0, "noise_std": 0.1, "delta": 0.1},
    max_information_gain: {"kernel": SE(0.2), "domain": [[0.0], [1.0]], "T": 2, "eta": 0.1},
    information_gain: {"kernel": SE(0.2), "X": [[0.0], [1.0]], "eta": 0.1},
    regret_bound: {"radii": [1.0], "variances": [1.0], "lipschitz": 1.0},
    mixture_grid: {"norm_bound": 1.0, "noise_std": 0.1, "eta": 0.1},
}


@pytest.mark.parametrize("f", GOOD, ids=lambda f: f.__name__)
@pytest.mark.parametrize("wrong", ["a", None, object(), [[1.0], [2.0, 3.0]]], ids=["text", "none", "object", "ragged"])
def test_what_is_no_number_is_named(f, wrong):
    f(**GOOD[f])
    for name in GOOD[f]:
        with pytest.raises((TypeError, ValueError), match=rf"^{name} must"):
            f(**GOOD[f] | {name: wrong})


def test_nothing_to_learn_from_and_whole_rounds():
    with pytest.raises(ValueError, match="domain must hold at least one point"):
        max_information_gain(SE(0.2), np.zeros((0, 1)), T=3, eta=0.1)
    for T in (0, 2.5, np.inf, -1):
        with pytest.raises(ValueError, match=r"^T must be a whole number"):
            worst_case_regret(**GOOD[worst_case_regret] | {"T": T})


@pytest.mark.parametrize("bound", [1e200, 1e-300, 1e60, 1e-60, 1e308])
def test_absurd_bounds_are_named_at_construction(bound):
    with pytest.raises(ValueError, match="norm_bound"):
        DataRadius(SE(0.2), norm_bound=bound, noise_std=0.1, eta=0.1, delta=0.1)
    with pytest.raises(ValueError, match="norm_bound"):
        mixture_grid(bound, 0.1, 0.1)


def test_absurd_outputs_are_named_and_change_nothing():
    radius = DataRadius(SE(0.2), norm_bound=1.0, noise_std=0.1, eta=0.1, delta=0.1)
    before = radius.value
    with pytest.raises(ValueError, match=r"^Y must"):
        radius.update([[0.5]], [[1e160]])
    assert radius.value == before
    with pytest.warns(NormBoundFalsified):
        assert np.isfinite(radius.update([[0.5]], [[1e90]]).value)


# lemmas 2 to 6, on random kernels with a rank-deficient matrix and repeated points


@given(seeds, st.sampled_from([1e-3, 0.1, 10.0]))
def test_lemmas_four_and_five(seed, eta):
    rng = np.random.default_rng(seed)
    K, X = random_kernel(rng), rng.random((8, 1)).round(1)
    before, after = steps(K, X, eta)
    grown = sum(np.linalg.slogdet(np.eye(3) + b / eta)[1] for b in before)
    assert np.isclose(2 * information_gain(K, X, eta), grown, rtol=1e-8)
    assert np.trace(after, axis1=1, axis2=2).sum() / eta <= grown * (1 + 1e-9)
    u, kappa = norms(before), K.kappa()
    assert u.sum() <= kappa / np.log1p(kappa / eta) * np.log1p(u / eta).sum() * (1 + 1e-9)
    assert u.sum() <= (1 + kappa / eta) * norms(after).sum() * (1 + 1e-9)


@given(seeds, st.sampled_from([0.1, 1.0, 10.0]), st.integers(1, 3))
def test_repaired_lemma_six(seed, eta, terms):
    rng = np.random.default_rng(seed)
    K, X = random_kernel(rng, terms), rng.random((8, 1)).round(1)
    assert information_gain(K, X, eta) <= sum(information_gain(ICM(k, B), X, eta) for k, B in K.terms) + 1e-9
    xi = [np.linalg.norm(B, 2) for _, B in K.terms]
    envelope = LMC([(k, [[x]]) for (k, _), x in zip(K.terms, xi, strict=True)])
    met, scalar = norms(steps(K, X, eta)[1]).sum(), 2 * eta * information_gain(envelope, X, eta)
    loose = 2 * eta * sum(max(x, 1) * information_gain(k, X, eta) for (k, _), x in zip(K.terms, xi, strict=True))
    assert met <= scalar + 1e-9 <= loose + 2e-9


@given(seeds)
def test_lemma_one_is_an_equality_for_every_design(seed):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((3, 2))
    B, X = A @ A.T, rng.random((10, 2))
    parts = [information_gain(Matern(1.5, 0.4), X, 0.1 / xi) for xi in np.linalg.eigvalsh(B)[1:]]
    assert np.isclose(information_gain(Matern(1.5, 0.4) * B, X, 0.1), sum(parts), rtol=1e-9)


def test_unrelated_tasks_take_turns():
    """The maximum over tasks in Lemma 6 is too small; the sum holds."""
    X = np.linspace(0, 1, 20)[:, None]
    parts = [0.1 * SE(1e-4), 0.286 * SE(1e4)]
    met, gains = norms(steps(Diagonal(parts), X, 1.0)[1]).sum(), [information_gain(k, X, 1.0) for k in parts]
    assert 2 * max(gains) < 1.907 < 2.19 < met <= 2 * sum(gains)


@given(seeds)
def test_ellipsoid_identity_and_direction_wise_band(seed):
    """D_t from norms, noise and quad is the least radius that covers all points and directions."""
    rng = np.random.default_rng(seed)
    K, X = random_kernel(rng), np.linspace(0, 1, 12)[:, None]
    F, b = random_function(K, rng, X)
    picks, noise = rng.integers(12, size=9), 0.1 * rng.standard_normal((9, 3))
    post = posterior(K, 0.1).update(X[picks], F[picks] + noise)
    least = np.sqrt(b**2 + np.sum(noise**2) / 0.1 - post.quad)
    W = rng.standard_normal((100, 3))
    error = np.abs((F - post.mean(X)) @ W.T)
    assert (error <= (1 + 1e-6) * least * np.sqrt(np.einsum("wi,sij,wj->sw", W, post.cov(X), W)) + 1e-9).all()


# the mixture


@given(seeds, positive, positive, st.floats(1e-3, 1))
def test_mixture_is_below_each_gambler_with_the_price_of_the_share(seed, b, sigma, delta):
    rng = np.random.default_rng(seed)
    ridges, weights = mixture_grid(b, sigma, 0.1)
    quads, logdets = rng.exponential(b**2, 7), rng.exponential(10, 7)
    R2 = squared_deviation(quads, logdets, ridges, weights, sigma, delta)
    alone = ridges * quads + sigma**2 * (logdets - 2 * np.log(delta))
    assert alone.min() * (1 - 1e-9) <= R2 <= (alone - 2 * sigma**2 * np.log(weights)).min() * (1 + 1e-9)
    assert np.isclose(squared_deviation(quads[:1], logdets[:1], ridges[:1], [1.0], sigma, delta), alone[0])


def test_grid():
    ridges, weights = mixture_grid(2.0, 0.1, 0.3)
    assert ridges[0] == 0.3 and weights[0] == 0.5 and np.isclose(weights.sum(), 1)
    assert np.allclose(0.01 / ridges[1:], 4 * np.array([0.003, 0.01, 0.03, 0.1, 0.3, 1]))
    for b, sigma in [(1.0, 0.0), (0.0, 0.1)]:
        assert [a.tolist() for a in mixture_grid(b, sigma, 0.3)] == [[0.3], [1.0]]


def test_one_gambler_gives_the_tight_radius():
    for quad in (0.0, 3.0):
        assert np.isclose(data_radius([quad], [2.0], [0.1], [1.0], 2.0, 0.1, 0.1), tight_radius(2.0, 2.0, **SETTINGS))


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e6])
def test_data_radius_scales_with_the_outputs(scale):
    rng = np.random.default_rng(0)
    K, X = similar_tasks(SE(0.2), 3, 0.5), rng.random((15, 1))
    F, b = random_function(K, rng, X)
    Y = F + 0.1 * rng.standard_normal(F.shape)
    here = DataRadius(K, b, 0.1, 0.1, 0.1).update(X, Y)
    there = DataRadius(K, scale * b, scale * 0.1, 0.1, 0.1).update(X, scale * Y)
    assert np.isclose(there.value, scale * here.value) and np.isclose(
        there.norm_lower_bound, scale * here.norm_lower_bound
    )
    assert here.norm_lower_bound <= b and here.value < tight_radius(here.evidence[1][0], b, **SETTINGS)


def test_incremental_is_fresh_and_missing_outputs_are_welcome():
    rng = np.random.default_rng(1)
    K, X = LMC([(SE(0.3), np.ones((2, 2))), (SE(0.1), np.eye(2))]), rng.random((12, 1)).round(1)
    F, b = random_function(K, rng, X)
    Y = np.where(rng.random((12, 2)) < 0.3, np.nan, F + 0.1 * rng.standard_normal((12, 2)))
    grown, fresh = DataRadius(K, b, 0.1, 0.1, 0.1), DataRadius(K, b, 0.1, 0.1, 0.1).update(X, Y)
    for x, y in zip(X, Y, strict=True):
        grown.update([x], [y])
    seen = ~np.isnan(Y.ravel())
    G, y = K.gram(X)[np.ix_(seen, seen)], Y.ravel()[seen]
    quads = [y @ np.linalg.solve(G + w * np.eye(len(y)), y) for w in fresh.ridges]
    logdets = [np.linalg.slogdet(np.eye(len(y)) + G / w)[1] for w in fresh.ridges]
    dense = data_radius(quads, logdets, fresh.ridges, fresh.weights, b, 0.1, 0.1)
    assert np.allclose([grown.value, fresh.value], dense)


def test_before_any_data():
    empty = DataRadius(SE(0.2), 1.5, 0.1, 0.1, 0.1)
    assert empty.norm_lower_bound == 0
    assert 1.5 <= empty.value <= tight_radius(0.0, 1.5, 0.1, 0.1, 0.05)


def test_without_noise_every_observation_uses_up_norm():
    rng = np.random.default_rng(2)
    K, X = Matern(1.5, 0.3) * np.array([[1.0, -0.8], [-0.8, 1.0]]), rng.random((10, 1))
    F, b = random_function(K, rng, X)
    run = DataRadius(K, b, 0.0, 0.1, 0.1)
    values = [run.update(X[[i]], F[[i]]).value for i in range(10)]
    assert (np.diff(values) <= 1e-12).all() and np.isclose(values[-1] ** 2, b**2 - run.evidence[0][0])
    assert run.norm_lower_bound <= b


def test_a_refuted_bound_warns_and_falls_back_to_what_was_known_before():
    rng = np.random.default_rng(3)
    K, X = SE(0.2) * np.eye(2), rng.random((20, 1))
    F, b = random_function(K, rng, X)
    run = DataRadius(K, b / 20, 0.1, 0.1, 0.1).update(X, F)
    with pytest.warns(NormBoundFalsified, match="at least"):
        value = run.value
    assert value == tight_radius(run.evidence[1][0], b / 20, 0.1, 0.1, 0.05)
    assert b / 20 < run.norm_lower_bound <= b


@given(seeds)
def test_never_refuted_below_the_cap(seed):
    """Whatever the numbers, the radius is at most the one with half of delta, and no square root of a negative."""
    rng = np.random.default_rng(seed)
    b = rng.exponential(1.0)
    ridges, weights = mixture_grid(b, 0.1, 0.1)
    quads, logdets = rng.exponential(1.0, 7), rng.exponential(5.0, 7)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NormBoundFalsified)
        radius = data_radius(quads, logdets, ridges, weights, b, 0.1, 0.1)
    assert 0 <= radius <= tight_radius(logdets[0], b, 0.1, 0.1, 0.05) * (1 + 1e-9)
    if norm_lower_bound(quads, logdets, ridges, weights, 0.1, 0.1) > 1.001 * b:
        assert np.isclose(radius, tight_radius(logdets[0], b, 0.1, 0.1, 0.05))


# information


@given(seeds, st.integers(1, 4))
def test_greedy_certificate(seed, T):
    rng = np.random.default_rng(seed)
    K, X = random_kernel(rng, n=2), rng.random((5, 1))
    result = max_information_gain(K, X, T, 0.1)
    designs = itertools.combinations_with_replacement(range(5), T)
    best = max(np.linalg.slogdet(np.eye(2 * T) + K.gram(X[list(d)]) / 0.1)[1] / 2 for d in designs)
    assert result.value <= best * (1 + 1e-9) and best <= result.upper * (1 + 1e-9)
    assert result.upper <= result.value / (1 - 1 / np.e) * (1 + 1e-9)
    assert np.isclose(result.value, information_gain(K, X[result.indices], 0.1)) and result.gains[-1] == result.value


def test_domains_of_many_kinds():
    class Candidates:
        X = np.array([[0.0], [0.5], [1.0]])

    several = max_information_gain(SE(0.2), Candidates(), 7, 0.1)
    assert several.value == float(several) == max_information_gain(SE(0.2), Candidates.X, 7, 0.1).value
    assert sorted(np.bincount(several.indices)) == [2, 2, 3]  # fair shares
    one = max_information_gain(SE(0.2), [[0.3]], 5, 0.1)
    assert np.isclose(one.value, np.log(51) / 2) and np.isclose(information_gain(SE(0.2), [[0.3]] * 5, 0.1), one.value)
    assert "rounds" in repr(one)


def test_information_of_nothing_and_of_bad_arguments():
    assert information_gain(SE(0.2), np.zeros((0, 1)), 0.1) == 0
    for T in (0, -1, 1.5):
        with pytest.raises(ValueError, match="T must"):
            max_information_gain(SE(0.2), [[0.0]], T, 0.1)
    with pytest.raises(ValueError, match="domain"):
        max_information_gain(SE(0.2), [0.0, 1.0], 1, 0.1)
    with pytest.raises(ValueError, match="eta"):
        information_gain(SE(0.2), [[0.0]], 0.0)
    with pytest.raises(TypeError, match="kernel"):
        information_gain("SE", [[0.0]], 0.1)


def test_identical_and_unrelated_tasks():
    X = np.random.default_rng(4).random((30, 1))
    alone = information_gain(SE(0.2), X, 0.1)
    assert np.isclose(information_gain(similar_tasks(SE(0.2), 5, 0.0), X, 0.1), alone)
    assert np.isclose(information_gain(similar_tasks(SE(0.2), 5, 1.0), X, 0.1), 5 * alone)


# regret


def test_regret_bound_is_cauchy_schwarz():
    rng = np.random.default_rng(5)
    beta, u = np.sort(rng.random(50)) + 1, rng.random(50)
    bound = regret_bound(beta, u, lipschitz=3.0)
    assert (bound >= 2 * 3.0 * np.cumsum(beta * np.sqrt(u)) * (1 - 1e-12)).all()
    assert np.isclose(bound[9], 6 * beta[9] * np.sqrt(10 * u[:10].sum())) and (np.diff(bound) >= 0).all()
    for bad in ([1.0], [[1.0, 2.0]], [np.nan, 1.0], [-1.0, 1.0]):
        with pytest.raises(ValueError, match="radii"):
            regret_bound(bad, [0.5, 0.5])


@given(seeds)
def test_bound_known_before_the_run_covers_every_run(seed):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((2, 2))
    K, X = SE(0.2) * (A @ A.T), rng.random((15, 1))
    T, b = 12, 2.0
    ahead = worst_case_regret(T, max_information_gain(K, X, T, 0.1).upper, b, 0.1, 0.1, 0.1, K.kappa())
    run, beta, u = carry(K, 0.1, X), [], []
    for j in rng.integers(15, size=T):
        beta.append(tight_radius(run.logdet, b, 0.1, 0.1, 0.1))
        u.append(run.norm[j])
        run.observe(int(j), np.zeros(2))
    assert regret_bound(beta, u)[-1] <= ahead


# coverage: the statement itself


def adaptive_run(K, X, b, F, noise, rng):
    """One optimistic run: the least sufficient radius, logdet, quads and logdets of the mixture after every round."""
    ridges, weights = mixture_grid(b, 0.1, 0.1)
    gamblers = [carry(K, ridge, X) for ridge in ridges]
    post, length, rows = gamblers[0], 0.0, []
    for e in noise:
        lam = rng.dirichlet(np.ones(K.n_tasks))
        width = np.sqrt(np.einsum("i,sij,j->s", lam, post.cov, lam).clip(0))
        j = int((post.mean @ lam + tight_radius(post.logdet, b, **SETTINGS) * width).argmax())
        for gambler in gamblers:
            gambler.observe(j, F[j] + e)
        length += e @ e
        least = np.sqrt(max(0.0, b**2 + length / 0.1 - post.quad))
        evidence = [g.quad for g in gamblers], [g.logdet for g in gamblers], ridges, weights
        lower = norm_lower_bound(*evidence, 0.1, 0.1)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NormBoundFalsified)
            rows.append([least, post.logdet, data_radius(*evidence, b, 0.1, 0.1), lower])
    return np.array(rows).T


def draw_noise(kind, shape, rng):
    """Noise vectors with the sub-Gaussian constant 0.1."""
    if kind == "gauss":
        return 0.1 * rng.standard_normal(shape)
    if kind == "signs":
        return 0.1 * rng.choice([-1.0, 1.0], shape)
    return 0.1 * rng.standard_normal((shape[0], 1)) * np.ones(shape[1]) / np.sqrt(shape[1])  # one common shock


@pytest.mark.slow
@pytest.mark.parametrize(("n", "kind"), [(2, "gauss"), (2, "signs"), (2, "common"), (20, "gauss")])
def test_coverage(n, kind):
    """The whole ellipsoid, all rounds: no more than delta of the runs may fail, and none of ours does."""
    X, runs, failures = np.linspace(0, 1, 41)[:, None], 200, np.zeros(4)
    for run in range(runs):
        rng = np.random.default_rng([run, n])
        A = rng.random((n, n))
        K = SE(0.2) * (A.T @ A)
        F, b = random_function(K, rng, X)
        least, logdet, data, lower = adaptive_run(K, X, b, F, draw_noise(kind, (40, n), rng), rng)
        wide, tight = ([r(v, b, **SETTINGS) for v in logdet] for r in (confidence_radius, tight_radius))
        failures += [(least > np.multiply(r, 1 + 1e-9)).any() for r in (wide, tight, data)] + [(lower > b).any()]
    assert (failures <= 0.1 * runs).all(), failures
    assert failures[0] == 0


@pytest.mark.slow
def test_printed_theorem_one_fails_and_the_corrected_one_does_not():
    """f = 0: the printed sigma/sqrt(n) in place of sigma/sqrt(eta), on the ball and the grid alone."""
    X, B, failures = np.linspace(0, 1, 41)[:, None], np.array([[1.0, 0.5], [0.5, 1.0]]), np.zeros(2)
    for seed in range(200):
        rng = np.random.default_rng(seed)
        post, printed, corrected = carry(SE(0.2) * B, 0.1, X), False, False
        for _ in range(60):
            lam = rng.dirichlet(np.ones(2))
            beta = confidence_radius(post.logdet, 0.0, **SETTINGS)
            j = int((post.mean @ lam + beta * np.sqrt(post.norm)).argmax())
            post.observe(j, 0.1 * rng.standard_normal(2))
            ratio = (np.linalg.norm(post.mean, axis=1) / np.sqrt(post.norm)).max()
            beta = confidence_radius(post.logdet, 0.0, **SETTINGS)
            printed |= ratio > beta * np.sqrt(0.1 / 2)
            corrected |= ratio > beta
        failures += [printed, corrected]
    assert failures[0] >= 180 and failures[1] <= 20, failures
