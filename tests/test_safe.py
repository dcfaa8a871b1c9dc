"""Safe multi-task search: correlation, scaling and the optimiser."""

import copy
import importlib.util
import pickle
import sys
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from mtbo_nb.correlation import (
    LMCPosterior,
    OneCorrelationMoments,
    PlainFamily,
    TaskData,
    correlation_posterior,
    lkj_draws,
    lkj_logpdf,
    lkj_logpdf_u2,
    sample_correlations,
    task_data,
    with_correlation,
)
from mtbo_nb.kernels import LMC, SE, Matern, ScalarKernel
from mtbo_nb.mtkb import Box, Finite
from mtbo_nb.regression import posterior
from mtbo_nb.safe import (
    Belief,
    Certificate,
    CorrelationSet,
    LengthscaleWatch,
    Model,
    OrSingleTask,
    Prior,
    RiskCertificate,
    Run,
    SafeHistory,
    SafeMTBO,
    SafetyWarning,
    SharpCertificate,
    SingleTaskCertificate,
    TheoremCertificate,
    Verdict,
    mixture,
    robust_scaling,
    search_box,
    sharp_band,
    spread_values,
    unsafe_probability,
)
from mtbo_nb.scaling import (
    CarriedPosterior,
    discretisation,
    gamma_features,
    grid_points,
    nu2_parts,
    points_scalar,
    reference_correlation,
    safe_beta,
)

needs_emcee = pytest.mark.skipif(importlib.util.find_spec("emcee") is None, reason="emcee is not installed")
GRID = np.linspace(-0.2, 1.2, 50)[:, None]


def random_instance(seed, H, u, isotopic):
    """Kernels, two stacks of matrices, data and a noise variance."""
    rng = np.random.default_rng(seed)
    ks = [SE(ell) if rng.random() < 0.5 else Matern(2.5, ell) for ell in rng.uniform(0.1, 0.8, H)]

    def covariance():
        A = rng.standard_normal((u, u + 2))
        return A @ A.T / (u + 2) + 0.05 * np.eye(u)

    S, R = (np.stack([covariance() for _ in range(H)]) for _ in range(2))
    shared = rng.random((5, 1))
    X = [shared if isotopic else rng.random((rng.integers(1, 8), 1)) for _ in range(u)]
    return ks, S, R, task_data([(x, rng.standard_normal(len(x))) for x in X]), 10.0 ** rng.uniform(-3, -1)


INSTANCES = given(st.integers(0, 10_000), st.integers(1, 3), st.integers(2, 3), st.booleans())


@settings(max_examples=60, deadline=None)
@INSTANCES
def test_nu_bounds_the_means_and_gamma_the_deviations(seed, H, u, isotopic):
    ks, S, R, data, noise = random_instance(seed, H, u, isotopic)
    scaling = robust_scaling(ks, [S], R, data, noise, 9.0, points=GRID)
    post, ref = LMCPosterior(ks, S, data, noise), LMCPosterior(ks, R, data, noise)
    assert (np.abs(post.mean(GRID) - ref.mean(GRID)) <= scaling.nu * ref.sd(GRID) + 1e-6).all()
    assert (post.sd(GRID) <= scaling.gamma * ref.sd(GRID) + 1e-6).all()
    assert 1 <= scaling.gamma <= scaling.gamma_printed * (1 + 1e-9)
    assert scaling.sqrt_beta_bar_points <= scaling.sqrt_beta_bar + 1e-6


@settings(max_examples=25, deadline=None)
@INSTANCES
def test_engines_agree(seed, H, u, isotopic):
    ks, S, R, data, noise = random_instance(seed, H, u, isotopic)
    stack = np.stack([S, 0.7 * S + 0.3 * R, R])
    nus = [robust_scaling(ks, stack, R, data, noise, 9.0, solver=s).nu_each for s in ("cholesky", "cg")]
    slow = [nu2_parts(ks, M, R, data, noise) for M in stack]
    want = np.sqrt([p["rkhs"] + p["eval_obs"] for p in slow])
    for nu in nus:
        np.testing.assert_allclose(nu, want, rtol=1e-5, atol=1e-4)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 3))
def test_one_decomposition_serves_every_correlation(seed, H):
    ks, _, _, data, noise = random_instance(seed, H, 2, False)
    base = np.stack([np.diag(v) for v in np.random.default_rng(seed).uniform(0.2, 2.0, (H, 2))])
    Sigmas = with_correlation(base, [-0.99, -0.4, 0.0, 0.5, 0.98], feature=H - 1)
    fast, plain = OneCorrelationMoments(ks, Sigmas, data, noise), PlainFamily(ks, Sigmas, data, noise)
    np.testing.assert_allclose(fast.logdet, plain.logdet, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(fast.quad, plain.quad, rtol=1e-7)
    for task in (0, 1):
        for got, want in zip(fast.moments(GRID, task), plain.moments(GRID, task), strict=True):
            np.testing.assert_allclose(got, want, atol=1e-6)


def test_svd_solver_agrees_to_1e_6():
    rng = np.random.default_rng(3)
    data = task_data([(rng.random((30, 2)), rng.standard_normal(30)), (rng.random((60, 2)), rng.standard_normal(60))])
    Sigmas = with_correlation(np.stack([np.eye(2), 0.1 * np.eye(2)]), np.linspace(-0.9, 0.95, 30))
    for ref in (Sigmas[10], with_correlation(np.stack([np.eye(2), 0.1 * np.eye(2)]), [0.3])[0]):
        each = [
            robust_scaling([SE(0.5), SE(0.2)], Sigmas, ref, data, 1e-2, 9.0, solver=s).nu_each
            for s in ("svd", "cg", "cholesky")
        ]
        assert np.abs(each[0] - each[2]).max() <= 1e-6 * each[2].max()
        assert np.abs(each[1] - each[2]).max() <= 1e-6 * each[2].max()


def test_posterior_agrees_with_the_regression_module():
    ks, S, _, data, noise = random_instance(5, 2, 2, False)
    Y = np.full((len(data), 2), np.nan)
    Y[np.arange(len(data)), data.task] = data.y
    other = posterior(LMC(list(zip(ks, S, strict=True))), noise)
    other.update(data.X, Y)
    post = LMCPosterior(ks, S, data, noise)
    np.testing.assert_allclose(post.mean(GRID), other.mean(GRID), atol=1e-8)
    np.testing.assert_allclose(post.cov(GRID), other.cov(GRID), atol=1e-8)


def test_carried_posterior_equals_a_fresh_one():
    ks, S, _, data, noise = random_instance(8, 2, 3, False)
    carried = CarriedPosterior(ks, S, GRID, noise, tasks=(0, 2), capacity=1)
    for rows in np.array_split(np.random.default_rng(0).permutation(len(data)), 4):
        carried.append(data.X[rows], data.y[rows], data.task[rows])
    post = LMCPosterior(ks, S, data, noise)
    for t in (0, 2):
        np.testing.assert_allclose(carried.moments(t)[0], post.mean(GRID)[:, t], atol=1e-8)
        np.testing.assert_allclose(np.sqrt(carried.moments(t)[1]), post.sd(GRID)[:, t], atol=1e-7)


def test_lkj():
    rng = np.random.default_rng(0)
    for u, eta in [(2, 0.1), (2, 1.0), (3, 0.5), (5, 2.0)]:
        R = lkj_draws(u, eta, 500, rng, truncation=1e-3)
        assert R.shape == (500, u, u)
        assert np.allclose(np.einsum("sii->si", R), 1) and np.allclose(R, np.swapaxes(R, 1, 2))
        assert np.linalg.eigvalsh(R).min() >= 1e-3 * (1 - 1e-9)
    r = lkj_draws(2, 1.0, 20_000, rng)[:, 0, 1]
    assert np.abs(np.histogram(r, 10, range=(-1, 1))[0] / 20_000 - 0.1).max() < 0.01
    assert np.isclose(lkj_logpdf_u2(0.3, 1.0), np.log(0.5)) and np.isclose(lkj_logpdf(np.eye(2), 1.0), np.log(0.5))


def test_reference_correlation_is_the_best():
    lo, hi = -0.3, 0.8
    r, gamma2 = reference_correlation(lo, hi)
    ends = with_correlation(np.eye(2)[None], [lo, hi])
    assert np.isclose(gamma_features(ends, with_correlation(np.eye(2)[None], [r])[0]).max() ** 2, gamma2)
    for other in np.linspace(-0.6, 0.9, 50):
        assert gamma_features(ends, with_correlation(np.eye(2)[None], [other])[0]).max() ** 2 >= gamma2 - 1e-12


@needs_emcee
def test_chain_agrees_with_quadrature_and_leaves_the_global_state_alone():
    rng = np.random.default_rng(2)
    f = rng.standard_normal((8, 2)) @ np.linalg.cholesky([[1, -0.6], [-0.6, 1]]).T
    X = np.linspace(0, 3, 8)[:, None]
    data = [(X, f[:, 0]), (X, f[:, 1])]
    exact = correlation_posterior([SE(0.2)], data, 1e-2, scale=(2.0, 2.0))
    before = np.random.get_state()[1].copy()
    chain = sample_correlations([SE(0.2)], data, 1e-2, scale=(2.0, 2.0), draws=3000, seed=0)
    assert (np.random.get_state()[1] == before).all()
    r = chain.Sigmas[:, 0, 0, 1]
    assert chain.converged and abs(r.mean() - exact.mean) < 0.04
    again = sample_correlations([SE(0.2)], data, 1e-2, scale=(2.0, 2.0), draws=3000, seed=0)
    assert np.array_equal(chain.Sigmas, again.Sigmas)


# ---------------------------------------------------------------------------------------------- the optimiser

X = np.linspace(0, 1, 200)[:, None]
ROOT = np.linalg.cholesky(SE(0.1)(X) + 1e-8 * np.eye(200))
NOISE = 0.03


def world(seed):
    """A plant and a simulation from the prior of the model: correlation uniform, scale inverse gamma."""
    rng = np.random.default_rng(seed)
    r, v = rng.uniform(-0.99, 0.99), 2.0 / rng.gamma(2.0)
    f = np.sqrt(v) * ROOT @ rng.standard_normal((200, 2)) @ np.linalg.cholesky([[1, r], [r, 1]]).T
    return f, NOISE * np.sqrt(v), rng


def safe_run(seed, multiple=1.0, limit=-0.5, rounds=15, **options):
    """(was any run unsafe, the optimiser), or None if the random seed point is not safe."""
    f, noise, rng = world(seed)
    s = rng.integers(200)
    y0 = f[s] + noise * rng.standard_normal(2)
    if y0[0] < limit + 0.3:
        return None
    opt = SafeMTBO(
        [SE(0.1 * multiple)],
        Finite(X),
        thresholds=limit,
        noise_std=NOISE,
        horizon=rounds,
        seed=seed,
        data=[(X[[s]], y0[:1]), (X[[s]], y0[1:])],
        **{"supplementary": 4, "delta": 0.2} | options,
    )
    unsafe = False
    while opt.round < rounds:
        x, task = opt.ask()
        j = int(np.argmin(np.abs(X[:, 0] - x[0])))
        unsafe |= bool(task == 0 and f[j, 0] < limit)
        opt.tell(x, f[j, task] + noise * rng.standard_normal(), task)
    return unsafe, opt


def several(n, **options):
    """The first n worlds with a safe seed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SafetyWarning)
        runs, seed = [], 0
        while len(runs) < n:
            run = safe_run(seed, **options)
            runs += [run] if run else []
            seed += 1
    return runs


def test_a_run_spends_no_more_than_its_budget_and_is_the_same_again():
    (_, first), *_ = several(1, rounds=5)
    (_, again), *_ = several(1, rounds=5)
    assert first.spent <= first.delta
    assert np.array_equal(first.data.X, again.data.X) and repr(first.ask()) == repr(again.ask())
    assert first.ask() is first.ask()


@pytest.mark.slow
def test_100_safe_runs_keep_the_stated_probability():
    """Runs with any violation stay within the risk that they spent, which stays within delta, up to chance."""
    runs = several(100, rounds=10, supplementary=3)
    unsafe, spent = sum(u for u, _ in runs), np.mean([opt.spent for _, opt in runs])
    assert spent <= 0.2
    assert unsafe <= binom.ppf(0.999, 100, spent)
    assert all(opt.e_value < 100 for _, opt in runs)


@pytest.mark.slow
def test_a_lengthscale_three_times_too_long_raises_the_alarm():
    runs = several(30, multiple=3.0, rounds=6)
    assert np.mean([opt.e_value >= 100 for _, opt in runs]) >= 0.95


@pytest.mark.slow
@pytest.mark.parametrize("certificate", ["theorem", "sharp", "envelope"])
def test_band_certificates_run_without_a_violation(certificate):
    runs = several(8, certificate=certificate, rounds=8, limit=-1.0)
    assert sum(u for u, _ in runs) <= 1


@pytest.mark.slow
def test_empirical_coverage_of_the_robust_band():
    """300 problems: the band fails somewhere at most as often as 1 - (1 - delta)(1 - rho)."""
    delta = rho = 0.1
    points = np.linspace(0, 1, 40)[:, None]
    root = np.linalg.cholesky(SE(0.15)(points) + 1e-9 * np.eye(40))
    fails = {"theorem": 0, "sharp": 0}
    for seed in range(300):
        rng = np.random.default_rng(seed)
        r = rng.uniform(-0.99, 0.99)
        f = root @ rng.standard_normal((40, 2)) @ np.linalg.cholesky([[1, r], [r, 1]]).T
        a, b = rng.choice(40, 6, replace=False), rng.choice(40, 15, replace=False)
        y = f + 0.05 * rng.standard_normal((40, 2))
        data = task_data([(points[a], y[a, 0]), (points[b], y[b, 1])])
        lo, hi = correlation_posterior([SE(0.15)], data, 0.05**2).interval(rho)
        Sigmas = with_correlation(np.eye(2)[None], np.r_[reference_correlation(lo, hi)[0], np.linspace(lo, hi, 21)])
        beta = safe_beta(40, delta, n_tasks=2)
        scaling = robust_scaling([SE(0.15)], Sigmas[1:], Sigmas[0], data, 0.05**2, beta, points=points)
        post = LMCPosterior([SE(0.15)], Sigmas[0], data, 0.05**2)
        gap = (np.abs(f - post.mean(points)) / post.sd(points)).max()
        fails["theorem"] += gap > scaling.sqrt_beta_bar
        fails["sharp"] += gap > scaling.sqrt_beta_bar_points
    allowed = 300 * (1 - (1 - delta) * (1 - rho))
    assert fails["theorem"] <= fails["sharp"] <= allowed


def start(**changes):
    """A small campaign with changes."""
    options = {"thresholds": -1.0, "noise_std": 0.05, "data": [([[0.5]], [0.3]), ([[0.5], [0.1]], [0.2, 0.0])]}
    grid = Finite(np.linspace(0, 1, 21)[:, None])
    return SafeMTBO([SE(0.2)], grid, **options | changes)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"data": [([[0.5], [0.7]], [0.3, -2.0]), ([], [])]}, r"seeds must be safe.*-2\.0"),
        ({"thresholds": (1.0, 0.0)}, "no value"),
        ({"thresholds": {3: 0.0}}, "task must be"),
        ({"delta": 0.0}, "delta"),
        ({"certificate": "magic"}, "certificate"),
        ({"correlation": [[[1.0, 2.0], [2.0, 1.0]]]}, "semi-definite"),
        ({"main_task": 2}, "main_task"),
        ({"noise_std": 0.0}, "noise_std"),
        ({"data": [([[0.5]], [0.3])]}, "2 tasks"),
    ],
)
def test_bad_settings(changes, words):
    with pytest.raises(ValueError, match=words):
        start(**changes)


def test_bad_observations_change_nothing():
    opt = start()
    for x, y, task in [
        ([0.52], 0.0, 0),
        ([0.5], np.inf, 0),
        ([0.5, 0.5], 0.0, 0),
        ([0.5], 0.0, 7),
        ([0.5], [np.nan, np.nan], None),
        ([0.55], -3.0, 0),
    ]:
        with pytest.raises(ValueError, match=r"x |y |task|seeds"):
            opt.tell(x, y, task)
    assert len(opt.data) == 3 and opt.round == 0 and not opt.history


def test_no_seed_is_refused_and_a_singular_matrix_is_explained():
    with pytest.raises(RuntimeError, match="safe point"):
        start(data=None).ask()
    with pytest.raises(ValueError, match="singular"):
        start(correlation=np.ones((1, 2, 2)), certificate="theorem", supplementary=0)
    assert start(correlation=np.ones((1, 2, 2)), supplementary=0).ask().value <= 0.05  # the risk rule can use it


def test_messages_when_nothing_is_certified():
    opt = start(thresholds=0.25, delta=1e-6, supplementary=0, data=[([[0.5]], [0.3]), ([], [])])
    proposal = opt.ask()
    assert "repeated" in proposal.messages[-1] and proposal.value == 0.0 and proposal.x == [0.5]


def test_a_repeated_point_costs_nothing_and_an_own_point_its_risk():
    opt = start(supplementary=0)
    opt.ask()
    opt.tell([0.5], 0.31, 0)
    assert opt.spent == 0.0 and opt.round == 1
    p = unsafe_probability(opt.belief, np.array([[0.65]]), opt.limits)[0]
    opt.tell([0.65], 0.2, 0)
    assert np.isclose(opt.spent, p) and opt.history[-1].note == "own point"


def test_constraint_tasks_supplementary_tasks_and_a_box():
    opt = SafeMTBO(
        [SE(0.3)],
        Box([[0, 1], [0, 1]]),
        thresholds={1: (None, 0.5)},
        n_tasks=3,
        noise_std=0.05,
        seed=0,
        supplementary=2,
        correlation=np.array([[[1, 0.3, 0.8], [0.3, 1, 0.2], [0.8, 0.2, 1]]]),
        data=[([[0.5, 0.5]], [0.0]), ([[0.5, 0.5]], [-1.0]), ([[0.1, 0.1]], [0.0])],
    )
    assert opt.plant_tasks == [0, 1] and opt.side_tasks == [2]
    tasks = []
    for _ in range(6):
        x, task = opt.ask()
        assert ((x >= 0) & (x <= 1)).all()
        tasks.append(task)
        opt.tell(x, [0.1, -0.5, np.nan] if task == 0 else [np.nan, np.nan, 0.1])
    assert tasks == [2, 2, 0, 2, 2, 0] and opt.round == 2
    with pytest.raises(ValueError, match="every constrained task"):
        opt.tell([0.5, 0.5], 0.1, 0)


@pytest.mark.filterwarnings("ignore::mtbo_nb.safe.SafetyWarning")
def test_blocks_carried_on_a_list_of_candidates_equal_fresh_ones():
    opt = start(seed=3)
    for _ in range(12):
        x, task = opt.ask()
        opt.tell(x, 0.3 * np.cos(6 * x[0]), task)
    carried = unsafe_probability(opt.belief, opt.domain.X, opt.limits)
    fresh = unsafe_probability(opt.belief, opt.domain.X.copy(), opt.limits)
    np.testing.assert_allclose(carried, fresh, atol=1e-9)


def test_displays():
    opt = start(certificate="theorem", supplementary=0)
    opt.tell(opt.ask().x, 0.3)
    assert "neglected" in opt.scaling._repr_html_() and "assumes" in opt.scaling._repr_html_()
    assert "<table>" in opt.history._repr_html_() and "RobustScaling(nu" in repr(opt.scaling)


# ------------------------------------------------------------------------------------- certificates as objects


def run_on_grid(opt, rounds=3):
    """A campaign on the small grid; the optimiser."""
    while opt.round < rounds:
        x, task = opt.ask()
        opt.tell(x, 0.3 * np.cos(6 * x[0]), task)
    return opt


@pytest.mark.filterwarnings("ignore::mtbo_nb.safe.SafetyWarning")
def test_an_object_is_the_same_as_its_name_and_serves_many_campaigns():
    rule = OrSingleTask(TheoremCertificate(CorrelationSet("credible")))
    named = run_on_grid(start(certificate="theorem", seed=1))
    for _ in range(2):
        given = run_on_grid(start(certificate=rule, seed=1))
        assert np.array_equal(given.data.X, named.data.X) and given.messages == named.messages
        assert repr(given.scaling) == repr(named.scaling) and rule.multi.scaling is None
    assert given.certificate == named.certificate == "theorem" and given.stated == named.stated


class Dropped(CorrelationSet):
    """No negative correlations."""

    def interval(self, p, record):
        lo, hi = super().interval(p, record)
        return max(lo, 0.0), max(hi, 0.0)


@pytest.mark.filterwarnings("ignore::mtbo_nb.safe.SafetyWarning")
def test_a_certificate_with_its_own_set_multiplier_and_acquisition():
    seen = []
    rule = TheoremCertificate(
        Dropped("credible"),
        multiplier=lambda s: s.nu + np.sqrt(s.beta),
        acquisition=lambda s: seen.append(s) or 2.0,
        name="published",
        proved=False,
    )
    opt = start(certificate=rule, supplementary=0)
    proposal = opt.ask()
    mean, var = opt.rule.reference.carried.moments(0)
    reach = (opt.scaling.nu + np.sqrt(opt.beta)) * np.sqrt(var)
    ok = mean - reach >= -1.0
    best = np.argmax(np.where(ok, mean + 2.0 * np.sqrt(var), -np.inf))
    assert np.isclose(opt.rule.correlations.kept, reference_correlation(0.0, 0.99)[0], atol=0.02)
    assert seen and proposal.x == opt.domain.X[best] and opt.stated is None
    assert proposal.certificate.startswith("published: margin") and "nothing stated" in proposal.certificate


class LeftHalf(Certificate):
    """Certifies the left half, at a price."""

    name = "left half"
    charges_risk = True

    def judge(self, now):
        now.note("only the left half")
        return lambda X: Verdict(X[:, 0] < 0.5, np.full(len(X), 0.01), X[:, 0])


def test_a_certificate_of_ones_own_needs_only_judge():
    opt = start(certificate=LeftHalf(), supplementary=0, horizon=2)
    proposal = opt.ask()
    assert proposal.x == [0.45] and proposal.messages == ("only the left half",)
    opt.tell(proposal.x, 0.3)
    opt.tell([0.7], 0.3, 0)
    assert np.isclose(opt.spent, 0.02) and opt.history[-1].note == "own point" and "left half" in repr(opt)


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        ({"certificate": 3.0}, TypeError, "certificate"),
        ({"certificate": LeftHalf}, TypeError, "certificate"),
        ({"certificate": LeftHalf(), "correlation_set": "credible"}, ValueError, "correlation_set"),
        ({"correlation_set": "magic"}, ValueError, "correlation_set"),
        ({"certificate": "sharp", "psi": 0.1, "lipschitz": 2.0}, ValueError, "psi.*lipschitz"),
        ({"certificate": "sharp", "lipschitz": 2.0}, ValueError, "list"),
        *(({name: 2.0}, ValueError, f"{name}.*goes with a band") for name in ("beta", "psi", "lipschitz")),
        ({"correlation_set": "credible"}, ValueError, "correlation_set.*goes with a band"),
    ],
)
def test_bad_certificates(changes, error, words):
    with pytest.raises(error, match=words):
        start(**changes)


@pytest.mark.filterwarnings("ignore::mtbo_nb.safe.SafetyWarning")
def test_the_carried_reference_equals_a_fresh_posterior():
    opt = run_on_grid(start(certificate=TheoremCertificate(), n_tasks=2, correlation=[[[1, 0.9], [0.9, 1]]], seed=2), 5)
    opt.supplementary = 0
    opt.ask()
    post = LMCPosterior([SE(0.2)], opt.rule.reference.Sigma, opt.data, opt.prior.noise_var)
    np.testing.assert_allclose(opt.rule.reference.carried.moments(0)[0], post.mean(opt.domain.X)[:, 0], atol=1e-8)


def in_a_box(**options):
    """A campaign on a box without free runs."""
    options = {"thresholds": -1.0, "noise_std": 0.05, "supplementary": 0, "seed": 0} | options
    data = [([[0.5], [0.6]], [0.3, 0.35]), ([[0.5], [0.1]], [0.2, 0.0])]
    return SafeMTBO([SE(0.2)], Box([[0, 1]]), data=data, **options)


def test_the_sharper_scalar_is_that_of_the_candidates_whoever_is_judged_with_them():
    opt = in_a_box(certificate=SharpCertificate())
    now = opt._now()
    judge = opt.rule.judge(now)
    everyone = judge(now.candidates)
    for i in (0, 7, 300, 1100):
        alone = judge(now.candidates[i : i + 1])
        np.testing.assert_allclose(alone.value, everyone.value[i : i + 1], atol=1e-9)
        np.testing.assert_allclose(alone.score, everyone.score[i : i + 1], atol=1e-9)


def test_a_point_that_needs_more_than_the_sharper_scalar_gets_it():
    """The scalar of a candidate where the data are is too small far from them; the band there still holds them all."""
    ks, _, _, data, noise = random_instance(3, 1, 2, False)
    stack = with_correlation(np.eye(2)[None], [0.5, -0.9, 0.0, 0.9])
    family, near, far = PlainFamily(ks, stack, data, noise), data.X[data.rows(0)][:1], np.array([[1.4], [0.5], [-0.5]])
    low, high = sharp_band(family.moments, 9.0, near)(far, 0)
    mean, var = family.moments(far, 0)
    assert (low <= mean - 3 * np.sqrt(var) + 1e-9).all() and (high >= mean + 3 * np.sqrt(var) - 1e-9).all()
    alone = points_scalar(*family.moments(near, 0), 9.0) * np.sqrt(var[0])
    assert ((high - low) / 2 > alone * 1.01).any() and ((high - low) / 2 >= alone - 1e-9).all()


@pytest.mark.filterwarnings("ignore::mtbo_nb.safe.SafetyWarning")
def test_an_own_point_is_judged_as_ask_would_judge_it():
    opt = in_a_box(certificate=SharpCertificate())
    judge = opt.rule.judge(opt._now())
    X = np.linspace(0, 1, 201)[:, None]
    doubtful = X[np.argmax(np.where(judge(X).value < -0.05, judge(X).value, -np.inf))]
    opt.ask()
    opt.tell(doubtful, 0.0, 0)
    assert "not certified" in opt.history[-1].note


def test_the_best_certified_candidate_is_never_lost_by_the_search():
    """The one certified candidate is an island that no cloud hits: it is returned, with its own verdict."""
    island, box = np.array([0.25, 0.25]), np.array([[0.0, 1.0]] * 2)

    def judge(X):
        return Verdict((X == island).all(1), np.full(len(X), 0.5), X.sum(1))

    X = np.vstack([np.random.default_rng(0).random((50, 2)), island])
    x, verdict = search_box(judge, X, judge(X), box, np.random.default_rng(0))
    assert np.array_equal(x, island) and verdict.ok.tolist() == [True] and verdict.value[0] == 0.5
    with pytest.raises(ValueError, match="none of 50 candidates is certified"):
        search_box(judge, X[:50], judge(X[:50]), box, np.random.default_rng(0))


@pytest.mark.parametrize("unit", [1e-3, 1.0, 1e3])
def test_known_to_within_the_noise_in_any_unit(unit):
    """The noise scales with the outputs, and with it what counts as known."""
    X = np.linspace(0, 1, 11)[:, None]
    data = [(X[:3], unit * np.cos(3 * X[:3, 0])), (X, unit * np.cos(3 * X[:, 0]))]
    options = {"thresholds": -unit, "noise_std": 0.02, "scale": (1.01, 1e-9), "supplementary": 0, "seed": 0}
    opt = SafeMTBO([SE(0.3)], Finite(np.linspace(0, 1, 101)[:, None]), data=data, **options)
    assert 0.005 * unit < opt.belief.noise_std < 0.1 * unit
    assert not any("cannot grow" in note for note in opt.ask().messages)


def test_the_certified_part_is_noted_at_runs_of_the_plant_that_were_asked_for():
    opt = start(supplementary=0)
    opt.ask()
    opt.tell([0.35], 0.1, 0)  # an own point instead of the one asked for
    assert opt.history[-1].fraction is None
    opt = start(supplementary=1)
    opt.tell([0.2], 0.4, 0)  # a seed
    while opt.round < 2:
        x, task = opt.ask()
        opt.tell(x, 0.1, task)
    opt.tell([0.3], 0.1, 0)  # an own point, before the free run
    for run in opt.history:
        assert (run.fraction is not None) == (run.task == 0 and run.note not in ("seed", "own point"))


class Counting(SharpCertificate):
    """A certificate with a setting of its own, made after the fact."""

    limit = None


@pytest.mark.filterwarnings("ignore::mtbo_nb.safe.SafetyWarning")
def test_a_fresh_copy_keeps_settings_and_forgets_rounds():
    rule = OrSingleTask(Counting())
    rule.multi.limit, rule.multi.correlations.kept, rule.multi.correlations.last = 7, 0.4, (0.3, 0.5)
    fresh = rule.fresh().multi
    assert fresh is not rule.multi and fresh.limit == 7
    assert fresh.correlations.kept is None and fresh.correlations.last == (-1.0, 1.0)
    assert rule.multi.correlations.kept == 0.4


@pytest.mark.filterwarnings("ignore::mtbo_nb.safe.SafetyWarning")
def test_a_rule_that_was_used_brings_nothing_to_the_next_campaign():
    used = run_on_grid(start(certificate="theorem", supplementary=0, seed=1), 3)
    assert used.scaling is not None and used.rule.multi.reference.carried is not None
    again = start(certificate=used.rule)
    assert again.scaling is None and again.rule.multi.reference.carried is None
    alone = TheoremCertificate()
    alone.scaling, alone.reference.seen = used.scaling, 5
    assert alone.fresh().scaling is None and alone.fresh().reference.seen == 0


class Remembering(SingleTaskCertificate):
    """A band of one's own with a memory."""

    rounds = 0

    def forget(self):
        self.rounds = 0


def test_both_sides_of_a_pair_forget():
    pair = OrSingleTask(SharpCertificate(), Remembering())
    pair.single.rounds = 3
    assert pair.fresh().single.rounds == 0 and pair.single.rounds == 3


@pytest.mark.parametrize("copies", [copy.deepcopy, lambda opt: pickle.loads(pickle.dumps(opt))])
@pytest.mark.parametrize("certificate", ["risk", "theorem", "sharp", "envelope"])
@pytest.mark.filterwarnings("ignore::mtbo_nb.safe.SafetyWarning")
def test_a_copy_of_a_campaign_goes_on_and_its_proposal_cannot_be_moved(copies, certificate):
    for make in (in_a_box, start):
        opt = run_on_grid(make(certificate=certificate, supplementary=1, seed=3), 2)
        opt.supplementary = 0
        opt.ask()
        twin = copies(opt)
        x, _ = twin.ask()
        for point in (x, twin.history[-1].x):
            with pytest.raises(ValueError, match="read-only"):
                point[:] = 1.0
        for o in (opt, twin):
            o.tell(o.ask().x, 0.1, 0)
        assert np.array_equal(opt.ask().x, twin.ask().x) and opt.ask().value == twin.ask().value


def test_moments_are_those_of_the_points_as_they_are_now():
    belief = start().belief
    X = np.array([[0.1], [0.6]])
    before = [part.copy() for part in mixture(belief, X, 0)]
    X[:] = [[0.9], [0.3]]
    assert not np.allclose(before[0], mixture(belief, X, 0)[0])
    np.testing.assert_array_equal(mixture(belief, X, 0), mixture(start().belief, X, 0))
    with pytest.raises(ValueError, match="read-only"):
        belief.moments(X, 0)[0][:] = 0.0


def test_a_file_does_not_hold_the_moments_of_many_points():
    opt = in_a_box()
    size = len(pickle.dumps(opt))
    opt.predict(np.linspace(0, 1, 20_000)[:, None])
    assert len(pickle.dumps(opt)) < size + 20_000


def test_rho_is_for_correlations_that_are_unknown():
    known = [[[1.0, 0.5], [0.5, 1.0]]]
    assert start(certificate="sharp").stated == pytest.approx(0.9)
    assert start(certificate="sharp", correlation=known).stated == pytest.approx(0.95)
    assert start(certificate="theorem", n_tasks=1, data=[([[0.5]], [0.3])]).stated == pytest.approx(0.95)
    assert "probability 0.95" in start(certificate="sharp", correlation=known, supplementary=0).ask().certificate


@pytest.mark.parametrize("rule", [RiskCertificate(), LeftHalf()])
def test_a_rule_without_a_band_takes_nothing_of_one(rule):
    for name in ("beta", "psi"):
        with pytest.raises(ValueError, match=f"{name}=2.0 goes with a band, and '{rule.name}' has none"):
            start(certificate=rule, **{name: 2.0})


def test_task_data_are_copied_and_sorted():
    X, y = np.array([[0.5], [0.1], [0.2]]), np.array([0.3, 0.0, 0.2])
    data = TaskData(X, y, np.array([0, 1, 0]), 2)
    opt = start(data=data)
    y[0] = 50.0
    assert opt.of(0)[1].tolist() == [0.3, 0.2] and opt.of(1)[0].tolist() == [[0.1]]
    with pytest.raises(ValueError, match="data must hold 2 tasks, got 5"):
        start(data=TaskData(np.empty((0, 7)), np.empty(0), np.empty(0, int), 5))


def test_a_scale_without_a_mean_is_refused():
    with pytest.raises(ValueError, match=r"scale\[0\] must be > 1"):
        start(scale=(0.5, 0.5))


def test_a_point_that_broke_a_limit_is_not_repeated_within_rounding():
    opt = in_a_box(kappa=0.0, delta=1e-12)
    opt.ask()
    with pytest.warns(SafetyWarning):
        opt.tell([0.6 + 1e-12], -2.0, 0)
    proposal = opt.ask()
    assert "best safe point is repeated" in " ".join(proposal.messages) and np.isclose(proposal.x, 0.5)


@pytest.mark.parametrize("certificate", ["theorem", "sharp", "envelope"])
def test_psi_is_computed_every_round(certificate):
    opt = in_a_box(certificate=certificate, lipschitz=2.0, tau=0.01)
    assert opt.n_points == grid_points([[0, 1]], 0.01) and opt.psi is None
    assert (
        "psi neglected" not in opt.ask().messages
        and "psi neglected" in in_a_box(certificate=certificate).ask().messages
    )
    wide = in_a_box(certificate=certificate, lipschitz=200.0, tau=0.01)
    assert "no point is certified" in wide.ask().messages[-1]
    if certificate == "theorem":
        ref, beta_bar = opt.rule.multi.reference, opt.scaling.sqrt_beta_bar**2
        r = opt.rule.multi.correlations.kept
        Sigma = with_correlation(np.eye(2)[None], [r])[0]
        psi = discretisation([SE(0.2)], Sigma, opt.data, 0.05**2, lipschitz=2.0, tau=0.01, beta_bar=beta_bar)
        assert ref.carried is None and np.isclose(opt.scaling.psi, psi)


@pytest.mark.parametrize(("ell", "words"), [(0.6, "too bold, not to be trusted"), (0.03, "mostly over-cautious")])
def test_the_alarm_says_in_which_direction_the_model_is_wrong(ell, words):
    rng = np.random.default_rng(0)
    f = ROOT @ rng.standard_normal((200, 2))
    data, prior = task_data([(X[::8], f[::8, 0]), (X[::8], f[::8, 1])]), Prior(1e-3)
    belief = Belief([Model([SE(ell)], np.eye(2)[None], [0])], data, prior, rng)
    with pytest.warns(SafetyWarning, match=words):
        notes = LengthscaleWatch().look(belief, data, prior, rng)
    assert len(notes) == 1 and words in notes[0]


# ------------------------------------------------------------------------- what was found by trying to break it


def test_the_proposal_and_the_history_cannot_be_written_to():
    opt = start(supplementary=0, seed=0)
    proposal = opt.ask()
    with pytest.raises(ValueError, match="read-only"):
        proposal.x[:] = 1.0
    with pytest.raises(ValueError, match="WRITEABLE"):
        proposal.x.setflags(write=True)
    x = proposal.x.copy()
    opt.tell(x, 0.2)
    x[:] = 0.0
    assert opt.history[-1].x == proposal.x and opt.history[-1].risk == proposal.value


@pytest.mark.parametrize("unit", [1e-13, 1.0, 1e9])
@pytest.mark.parametrize("box", [False, True])
def test_a_repetition_does_not_depend_on_the_unit(unit, box):
    domain = Box([[0.0, unit]]) if box else Finite(unit * np.linspace(0, 1, 21)[:, None])
    data = [([[0.5 * unit]], [0.3]), ([[0.5 * unit], [0.1 * unit]], [0.2, 0.0])]
    options = {"thresholds": -1.0, "noise_std": 0.05, "supplementary": 0, "seed": 0, "data": data}
    opt = SafeMTBO([SE(0.2 * unit)], domain, **options)
    opt.ask()
    opt.tell([0.9 * unit], 0.2, 0)
    assert opt.spent > 1e-3 and opt.history[-1].note == "own point"
    opt.tell([0.5 * unit], 0.3, 0)
    assert opt.history[-1].note == "repeated"


def test_the_risk_rule_states_what_is_left_after_own_points():
    opt = start(supplementary=0, thresholds=0.0, seed=0)
    assert opt.stated == 0.95
    opt.ask()
    opt.tell([1.0], 0.3, 0)
    assert opt.spent > 0.05 and opt.stated == 1 - opt.spent


@pytest.mark.filterwarnings("ignore::mtbo_nb.safe.SafetyWarning")
def test_a_band_states_nothing_after_a_lapse_and_says_why():
    opt = start(certificate="envelope", supplementary=0, seed=0, horizon=2)
    stated = opt.stated
    assert np.isclose(stated, 0.9) and f"probability {stated:.4g}" in opt.ask().certificate
    opt.tell([1.0], 0.3, 0)
    assert opt.history[-1].note == "own point, not certified" and opt.stated is None
    assert "nothing stated (a run was not certified)" in opt.ask().certificate
    other = start(certificate="envelope", supplementary=0, seed=0, horizon=1)
    other.tell(other.ask().x, 0.3)
    assert other.stated is not None
    proposal = other.ask()
    assert "nothing stated (this run is beyond the horizon)" in proposal.certificate
    other.tell([0.55], 0.3, 0)
    assert other.stated is None and "beyond the horizon" in other.lapses[-1]


def test_what_is_stated_on_a_box_names_its_condition():
    assert "probability 0.9 on the grid, psi neglected" in in_a_box(certificate="sharp").ask().certificate
    assert "if psi holds" in in_a_box(certificate="sharp", psi=1e-3).ask().certificate
    slope = in_a_box(certificate="sharp", lipschitz=2.0, tau=1e-6)
    assert "if the Lipschitz constant holds" in slope.ask().certificate


THREE = {"n_tasks": 3, "data": [([[0.5]], [0.3]), ([[0.5], [0.1]], [0.2, 0.0]), ([[0.5], [0.9]], [0.2, 0.1])]}


@needs_emcee
@pytest.mark.filterwarnings("ignore::mtbo_nb.safe.SafetyWarning")
def test_a_band_from_draws_states_nothing_and_a_risk_says_how_many_there_are():
    options = THREE | {"supplementary": 0, "seed": 0}
    band = start(certificate="sharp", **options)
    assert band.stated is None and "Markov chain" in band.lapses[0]
    assert start(certificate=SingleTaskCertificate(), **options).stated == 0.95
    risk = start(**options)
    assert any("Monte Carlo" in note and "effective draws" in note for note in risk.ask().messages)
    assert risk.stated == 0.95


def test_nothing_is_stated_by_a_rule_that_is_not_proved():
    assert RiskCertificate().unproved().stated(0.05, 0.05) is None
    both = OrSingleTask(TheoremCertificate())
    assert both.proved and np.isclose(both.stated(0.05, 0.05), 0.9)
    assert OrSingleTask(TheoremCertificate(), SingleTaskCertificate().unproved()).stated(0.05, 0.05) is None
    unproved = OrSingleTask(TheoremCertificate(proved=False))
    assert not unproved.proved and unproved.stated(0.05, 0.05) is None
    assert not both.unproved().proved and both.stated(0.05, 0.05) is None
    for wrong in ({"multi": RiskCertificate()}, {"multi": 3.0}):
        with pytest.raises(TypeError, match="multi must be a certificate with a band"):
            OrSingleTask(**wrong)


def test_a_number_at_another_point_needs_its_task():
    opt = start(supplementary=2, seed=0)
    assert opt.ask().task == 1
    with pytest.raises(ValueError, match="task must be given"):
        opt.tell([0.9], -5.0)
    assert not opt.history
    opt.tell(opt.ask().x.tolist(), 0.1)
    assert opt.history[-1].task == 1
    single = start(n_tasks=1, data=[([[0.5]], [0.3])], seed=0)
    single.ask()
    single.tell([0.55], 0.3)
    assert single.round == 1


def test_a_violated_point_is_never_repeated():
    opt = start(thresholds=0.25, delta=1e-6, supplementary=0, data=[([[0.5]], [0.3]), ([], [])])
    assert opt.ask().certificate == "risk: repeated, nothing charged"
    with pytest.warns(SafetyWarning, match="broken"):
        opt.tell([0.5], 0.1)
    assert opt.spent == 0.0
    with pytest.raises(RuntimeError, match="no known safe point is left"):
        opt.ask()


def test_violations_are_runs():
    runs = [Run(np.array([0.5]), 0, -1.0, unsafe=True), Run(np.array([0.5]), 1, 9.0, unsafe=True, first=False)]
    assert SafeHistory(runs).violations == 1 and SafeHistory(runs + runs).violations == 2
    opt = start(thresholds={0: -1.0, 1: (None, 1.0)}, data=[([[0.5]], [0.3]), ([[0.5]], [0.2])], seed=0)
    opt.ask()
    with pytest.warns(SafetyWarning, match="broken"):
        opt.tell([0.9], [-3.0, 3.0])
    assert opt.history.violations == 1 and "2 observations, 1 runs" in repr(opt.history) and opt.round == 1


class Says(Certificate):
    """Says what it was told to say."""

    name = "says"

    def __init__(self, charges_risk=False, **parts):
        self.charges_risk, self.parts = charges_risk, parts

    def judge(self, now):
        def judge(X):
            n = len(X)
            verdict = {"ok": np.ones(n, bool), "value": np.zeros(n), "score": X[:, 0]}
            return Verdict(**verdict | {key: make(n) for key, make in self.parts.items()})

        return judge


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ({"score": lambda n: np.full(n, -np.inf)}, "score must be finite"),
        ({"value": lambda n: np.full(n, np.nan)}, "value must be finite"),
        ({"ok": lambda n: np.ones(n)}, "array of bool"),
        ({"value": lambda n: [0.0] * n}, "three arrays"),
        ({"score": lambda n: np.zeros(n + 1)}, "three arrays of shape"),
        ({"charges_risk": True, "value": lambda n: np.full(n, -0.1)}, "probability"),
        ({"charges_risk": True, "value": lambda n: np.full(n, 0.5)}, "above the allowed"),
    ],
)
def test_the_verdict_of_a_certificate_is_checked(parts, words):
    with pytest.raises((ValueError, TypeError), match=f"certificate 'says'.*{words}"):
        start(certificate=Says(**parts), supplementary=0).ask()


def test_tiny_noise_is_named():
    many = np.linspace(0, 1, 21)[:, None]
    opt = start(noise_std=1e-8, data=[(many, 0 * many[:, 0]), ([], [])], supplementary=0)
    with pytest.raises(ValueError, match="noise_std=1e-08 is too small"):
        opt.ask()


class Brownian(ScalarKernel):
    """1 + min(x, x'): no lengthscale to be tested."""

    def _key(self):
        return ()

    def _cross(self, X, Z):
        return 1 + np.minimum(X, Z[:, 0])

    def _diag(self, X):
        return 1 + X[:, 0]


def test_a_kernel_of_ones_own_is_not_watched_and_that_is_said():
    opt = SafeMTBO(
        [Brownian()],
        Finite(np.linspace(0, 1, 21)[:, None]),
        thresholds=-1.0,
        noise_std=0.05,
        supplementary=0,
        data=[([[0.5]], [0.3]), ([[0.5]], [0.2])],
        seed=0,
    )
    assert any("not tested" in note for note in opt.ask().messages) and opt.e_value == 0.0


def test_what_can_be_known_before_is_refused_before():
    for changes, words in [
        (THREE | {"alternatives": [[SE(0.1)]]}, "alternatives need an evidence"),
        ({"certificate": "sharp", "alternatives": [[SE(0.1)]]}, "risk certificate only"),
        ({"data": [([[0.512]], [0.3]), ([], [])]}, r"data\[0\]\[0\]: the plant cannot be run there"),
        ({"data": [([[0.5]], [1e160]), ([], [])]}, "data: values must be finite and below"),
    ]:
        with pytest.raises(ValueError, match=words):
            start(**changes)
    assert start(data=[([], []), ([], [])]).data.X.shape == (0, 1)


class NothingKept(CorrelationSet):
    """Keeps no draw."""

    def keep(self, Sigmas):
        return Sigmas[:0]


@needs_emcee
def test_a_set_of_correlations_without_a_draw_says_so():
    opt = start(certificate=TheoremCertificate(NothingKept()), supplementary=0, seed=0, **THREE)
    with pytest.raises(ValueError, match="no correlation is left: NothingKept keeps none of 64 draws"):
        opt.ask()


def test_warnings_as_errors_lose_nothing():
    opt = start(thresholds=0.0, supplementary=0, seed=0)
    opt.ask()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(SafetyWarning, match="broken"):
            opt.tell([0.6], -0.1, 0)
    assert opt.round == 1 and opt.history.violations == 1 and "broken" in opt.messages[-1]
    zigzag = np.linspace(0, 1, 21)[:, None]
    data = [(zigzag, np.cos(30 * zigzag[:, 0])), ([], [])]
    wrong = start(data=data, thresholds=-2.0, supplementary=0, seed=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(SafetyWarning, match="too bold"):
            wrong.ask()
        assert any("too bold" in note for note in wrong.ask().messages)


@pytest.mark.filterwarnings("ignore::mtbo_nb.safe.SafetyWarning")
def test_a_late_or_rounded_proposal_is_judged_again():
    opt = start(certificate="envelope", supplementary=0, thresholds=-2.0, seed=0)
    x = opt.ask().x
    opt.tell([0.3], 0.1, 1)
    opt.tell(x, 0.3, 0)
    assert opt.history[-1].note == "own point, certified" and opt.stated is not None
    box = in_a_box(certificate="envelope", thresholds=-2.0, psi=0.0)
    x = box.ask().x
    box.tell(x + 1e-4 * np.sign(0.5 - x), 0.3, 0)  # a setpoint is rounded, here to the inner side
    assert box.history[-1].note == "own point, certified" and box.stated is not None


def test_small_units_are_shown():
    opt = start(supplementary=0, seed=0)
    assert "x=[1.235e-06]" in repr(opt.ask().__class__(np.array([1.23456e-6]), 0, "", None))


@pytest.mark.parametrize(
    ("told", "words"),
    [
        (([0.5], 0.1, 0.5), "task"),
        (([0.5], 0.1, True), "task"),
        (([0.5], 0.1, "0"), "task"),
        (([0.5], 0.1, [0]), "task"),
        (([0.5], [0.3, 0.2], 0), "task=0 goes with one number"),
        (([0.5], np.ma.masked, 0), "y "),
        (([0.5], 1 + 2j, 0), "y "),
        (([0.5], "a", 0), "y "),
        (("a", 0.1, 0), "x "),
        (([0.5], 1e160, 0), "y must be finite and below"),
    ],
)
def test_bad_observations_name_the_argument(told, words):
    opt = start(seed=0)
    with pytest.raises((ValueError, TypeError), match=words):
        opt.tell(*told)
    assert not opt.history and len(opt.data) == 3


BAD_SETTINGS = {
    "correlation": [["magic"], 0.9, None, [0.9]],
    "horizon": [0.5, 2.7, True],
    "n_tasks": [2.7, "2", 0],
    "supplementary": [-1, 2.7, "a", np.nan, np.inf, None],
    "thresholds": [{True: 0.0}, "a", (1, 2, 3), 1j, [[-1, 2]], True, {0: "a"}],
    "noise_std": [True, "a", None, 1e-200, 1e200],
    "psi": [-1, np.nan, "a"],
    "tau": [-1, 0, np.nan, "a", None],
    "beta": ["a", -1, np.nan],
    "kappa": ["a", -1, True],
    "main_task": [True, 0.0, np.array([0]), 2],
    "eta": [0, -1, "a"],
    "truncation": [-1, 1, "a"],
    "scale": [(2,), 3, (0, 1), "ab", (1, np.nan)],
    "variances": [[[1, np.inf]], [["a", "b"]], [[1]]],
    "alternatives": [SE(0.1), None, [[]], [[3]], "a"],
    "data": [5, "ab", [("a", "b"), ("a", "b")], [([[0.5]], [1j]), ([], [])], [([[0.5, 0.5]], [0.3]), ([], [])]],
    "seed": ["a", -1],
    "delta": [0, 1, "a", None],
    "certificate": [3.0, RiskCertificate],
    "correlation_set": ["magic", np.array([1, 2])],
}


@pytest.mark.parametrize("name", BAD_SETTINGS)
def test_bad_settings_name_the_argument(name):
    for value in BAD_SETTINGS[name]:
        with pytest.raises((ValueError, TypeError), match=rf"\b{name}"):
            start(**{name: value})


def test_a_bad_domain_or_kernel_is_named():
    given = {"thresholds": -1.0, "noise_std": 0.05}
    for domain in ([[0, 1]], np.eye(2), None, "box"):
        with pytest.raises(TypeError, match="domain must be"):
            SafeMTBO([SE(0.2)], domain, **given)
    for kernels in (SE(0.2), [], ["a"], None):
        with pytest.raises((TypeError, ValueError), match=r"kernels(\[0\])? must"):
            SafeMTBO(kernels, Box([[0, 1]]), **given)
    with pytest.raises(ValueError, match=r"kernels\[0\].*lengthscale"):
        SafeMTBO([SE([0.2, 0.2])], Box([[0, 1]]), **given)
    for task in (7, -1, 0.5, True):
        with pytest.raises(ValueError, match="task"):
            start().predict([[0.5]], task)


@pytest.mark.parametrize(("lo", "hi"), [(0.4, 0.9), (-0.5, 0.95), (-0.99, 0.99), (0.3, 0.3)])
def test_the_values_of_a_correlation_stand_for_its_interval(lo, hi):
    """The union of their bands misses little of the interval's, short or long."""
    r = spread_values(lo, hi)
    assert r[0] == lo and r[-1] == hi and (np.diff(r) > 0).all() and (np.diff(r) <= (hi - lo) / 40 + 1e-12).all()
    data = task_data([([[0.0], [0.3]], [0.5, -0.4]), (np.linspace(0, 1, 9)[:, None], np.sin(9 * np.linspace(0, 1, 9)))])
    unions = []
    for values in (r, np.linspace(lo, hi, 2001)):
        mean, var = PlainFamily([SE(0.2)], with_correlation(np.eye(2)[None], values), data, 1e-3).moments(GRID, 0)
        unions.append(((mean - 4 * np.sqrt(var)).min(0), (mean + 4 * np.sqrt(var)).max(0)))
    (low, _), (least, most) = unions
    assert ((low - least) / (most - least)).max() < 2e-3


@pytest.mark.filterwarnings("ignore::mtbo_nb.safe.SafetyWarning")
def test_the_best_run_is_the_best_that_never_broke_a_limit():
    opt = start(supplementary=0, thresholds=(-1.0, 2.0))
    assert opt.best[0] == [0.5] and opt.best[1] == 0.3
    opt.ask()
    opt.tell([0.25], 0.7, 0)
    opt.tell([0.75], 5.0, 0)
    assert opt.best[0] == [0.25] and opt.best[1] == 0.7
    with pytest.raises(RuntimeError, match="task 0 has no data"):
        _ = start(data=None).best


def test_a_missing_sampler_is_named_before_a_campaign(monkeypatch):
    monkeypatch.setitem(sys.modules, "emcee", None)
    with pytest.raises(ImportError, match=r"sampler emcee: .*\[sampling\]"):
        start(n_tasks=3, data=None)
    start(n_tasks=3, data=None, correlation=[np.eye(3)])


def test_the_risk_rule_has_no_condition_of_a_band():
    assert in_a_box().condition == "" and "psi neglected" in in_a_box(certificate="sharp").condition
