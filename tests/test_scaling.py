"""Extreme correlations, Lipschitz constants, grids and the discretisation term."""

import importlib.util
import itertools
import warnings

import numpy as np
import pytest

from mtbo_nb.correlation import (
    LMCPosterior,
    OneCorrelation,
    correlation_posterior,
    draws_needed,
    lkj_log_density_atanh,
    lkj_logpdf,
    lkj_logpdf_u2,
    lmc_family,
    lmc_gram,
    partial_to_correlation,
    sample_correlations,
    task_data,
)
from mtbo_nb.kernels import SE, Matern
from mtbo_nb.scaling import (
    CarriedPosterior,
    discretisation,
    grid_points,
    kernel_distance,
    lipschitz_constant,
    moduli,
    psi,
    robust_scaling,
    safe_beta,
    smallest_bound,
)

needs_emcee = pytest.mark.skipif(importlib.util.find_spec("emcee") is None, reason="emcee is not installed")
SMOOTH = [SE(0.3), Matern(2.5, 0.3), Matern(1.5, 0.3)]
ONE = np.ones((1, 1, 1))
ARD = SE([0.2, 0.5])


@pytest.mark.parametrize("u", [3, 4, 5, 6])
def test_extreme_partial_correlations(u):
    """All at +-1 in floating point, or mixed with moderate ones, where the rest of a row falls below zero."""
    rng, m = np.random.default_rng(u), u * (u - 1) // 2
    signs = np.tanh(20.0) * rng.choice([-1.0, 1.0], (5000, m))
    mixed = np.where(rng.random((5000, m)) < 0.5, signs, rng.uniform(-1, 1, (5000, m)))
    R = partial_to_correlation(np.concatenate([signs, mixed]), u)
    assert np.isfinite(R).all() and np.abs(R).max() <= 1 + 1e-12
    assert (np.einsum("sii->si", R) == 1).all()
    assert np.linalg.eigvalsh(R).min() > -1e-12


@needs_emcee
@pytest.mark.parametrize("truncation", [0.0, 0.01])
def test_chain_of_four_tasks(truncation):
    """Few data and a prior that pushes to the boundary: the chain goes there and comes back."""
    rng = np.random.default_rng(8)  # with the seed below, one of the chains that used to stop
    data = [(rng.random((2, 1)), rng.standard_normal(2)) for _ in range(4)]
    chain = sample_correlations(
        [SE(0.3)], data, 0.1, eta=0.1, truncation=truncation, steps=150, max_steps=150, draws=20, seed=8
    )
    assert np.isfinite(chain.Sigmas).all() and np.linalg.eigvalsh(chain.Sigmas[:, 0]).min() > -1e-12


@needs_emcee
def test_chain_with_a_known_feature_without_variance():
    """A feature that a task does not have must not divide by zero."""
    base = np.array([np.eye(2), np.diag([0.5, 0.0])])
    data = [([[0.1], [0.5]], [0.1, 0.3]), ([[0.2]], [0.2])]
    with np.errstate(all="raise", under="ignore"):
        chain = sample_correlations([SE(0.3), SE(0.1)], data, 0.1, base=base, steps=30, max_steps=30, draws=5, seed=0)
    assert np.isfinite(chain.Sigmas).all()


def test_densities_at_the_boundary():
    """eta = 1 is uniform up to and including the singular matrices; far out there is no overflow."""
    assert np.isclose(lkj_logpdf_u2(1.0, 1.0), np.log(0.5)) and np.isclose(
        lkj_logpdf(np.ones((2, 2)), 1.0), np.log(0.5)
    )
    with np.errstate(over="raise"):
        assert np.isclose(lkj_log_density_atanh(np.array([1e4]), 2, 1.0), -2 * (1e4 - np.log(2)))


def test_singular_systems_are_named():
    """A correlation of 1 without noise worth the name is an error, not -inf or NaN."""
    same = [([[0.0]], [1.0]), ([[0.0]], [1.0])]
    with pytest.raises(ValueError, match="noise_var=1e-17"):
        OneCorrelation([SE(1.0)], [[[[1, 0], [0, 1]]], [[[1, 1], [1, 1]]]], same, 1e-17)
    for truncation in (0.0, 1e-17, 1.0):
        with pytest.raises(ValueError, match="truncation"):
            correlation_posterior([SE(1.0)], same, 0.1, truncation=truncation)


@pytest.mark.parametrize("k", [SE([0.2, 0.7]), Matern(2.5, [0.7, 0.2]), 2.0 * Matern(1.5, 0.3)])
def test_lipschitz_from_a_norm(k):
    """Random members of the space, two tasks and two features, against all pairs of many points."""
    kernels, Sigma = [k, 0.3 * SE(0.5)], np.array([[[1.0, 0.7], [0.7, 2.0]], [[0.1, 0.0], [0.0, 0.4]]])
    rng = np.random.default_rng(0)
    post = LMCPosterior(kernels, Sigma, [(rng.random((6, 2)), rng.standard_normal(6)) for _ in range(2)], 1e-2)
    L = lipschitz_constant(kernels, Sigma, norm=np.sqrt(post.alpha @ post.gram @ post.alpha))
    X = rng.random((400, 2))
    Z = X + 0.01 * rng.standard_normal((400, 2))
    slopes = np.abs(post.mean(X) - post.mean(Z)) / np.linalg.norm(X - Z, axis=1)[:, None]
    assert L.shape == (2,) and (slopes.max(0) <= L).all()
    assert (
        kernel_distance(kernels, Sigma, 0.05, 2) <= lipschitz_constant(kernels, Sigma, norm=0.05) * (1 + 1e-9)
    ).all()


@pytest.mark.parametrize("k", SMOOTH)
def test_lipschitz_of_draws(k):
    """The bound fails at most as often as stated, and it is not vacuous."""
    x = np.linspace(0, 2, 601)[:, None]
    values, vectors = np.linalg.eigh(k(x))
    f = (vectors * np.sqrt(np.maximum(values, 0))) @ np.random.default_rng(0).standard_normal((601, 1000))
    slopes = np.abs(np.diff(f, axis=0)).max(0) * 300
    for delta in (0.5, 0.05):
        L = lipschitz_constant([k], ONE, bounds=[[0, 2]], delta=delta)[0]
        assert (slopes > L).mean() <= delta and L < 2.2 * np.quantile(slopes, 1 - delta)


def test_lipschitz_scales_as_it_should():
    """In y with the standard deviation, in x with the unit; it grows with the box and with 1 / delta."""
    box = np.array([[0.0, 1.0], [0.0, 2.0]])

    def L(k=ARD, Sigma=ONE, bounds=box, delta=0.1):
        return lipschitz_constant([k], Sigma, bounds=bounds, delta=delta)[0]

    assert np.isclose(L(4.0 * ARD), 2 * L()) and np.isclose(L(Sigma=4 * ONE), 2 * L())
    assert np.isclose(L(SE([20.0, 50.0]), bounds=100 * box), L() / 100)
    assert L(delta=0.01) > L() > L(delta=0.5) and L(bounds=10 * box) > L()
    halves = lipschitz_constant([0.5 * SE(0.2)] * 2, np.ones((2, 1, 1)), bounds=[[0, 1]], delta=0.1)
    assert np.isclose(halves[0], L(SE(0.2), bounds=[[0, 1]]))


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"norm": 1.0, "bounds": [[0, 1]], "delta": 0.1},
        {"bounds": [[0, 1]]},
        {"delta": 0.1},
        {"norm": -1.0},
        {"bounds": [[1, 0]], "delta": 0.1},
        {"bounds": [[0, 1]], "delta": 1.5},
    ],
)
def test_lipschitz_asks_for_one_route(arguments):
    """Neither, both or half of a route is an error that names the arguments."""
    with pytest.raises(ValueError, match=r"norm|bounds|delta"):
        lipschitz_constant([SE(0.2)], ONE, **arguments)


def test_rough_kernels_have_no_constant():
    """Matern 0.5, also scaled; and lengthscales that do not fit the box."""
    for k in (Matern(0.5, 1.0), 2.0 * Matern(0.5, 1.0)):
        with pytest.raises(ValueError, match="kernels"):
            lipschitz_constant([SE(1.0), k], np.ones((2, 1, 1)), norm=1.0)
    with pytest.raises(ValueError, match="lengthscales"):
        lipschitz_constant([SE([1.0, 2.0])], ONE, bounds=[[0, 1]] * 3, delta=0.1)


@pytest.mark.parametrize(("bounds", "tau"), [([[0, 1]], 0.03), ([[0, 1], [2, 2.5]], 0.11), ([[0, 1]] * 3, 0.2)])
def test_grid_covers_the_box(bounds, tau):
    """Every corner of every cell is within tau of its centre, so every point of the box is."""
    d = len(bounds)
    counts = [int(np.ceil((hi - lo) * np.sqrt(d) / (2 * tau))) for lo, hi in bounds]
    axes = [lo + (hi - lo) * (np.arange(m) + 0.5) / m for (lo, hi), m in zip(bounds, counts, strict=True)]
    centres = np.array(list(itertools.product(*axes)))
    X = np.random.default_rng(0).uniform(*np.transpose(bounds), (500, d))
    X = np.concatenate([X, list(itertools.product(*bounds))])
    assert len(centres) == grid_points(bounds, tau)
    assert np.linalg.norm(X[:, None] - centres, axis=2).min(1).max() <= tau


def test_grid_asks_for_a_distance():
    """tau must be positive, the box a box."""
    for tau in (0.0, -1.0, np.nan):
        with pytest.raises(ValueError, match="tau"):
            grid_points([[0, 1]], tau)
    with pytest.raises(ValueError, match="bounds"):
        grid_points([[1, 1]], 0.1)


def test_discretisation_is_psi_of_the_moduli():
    """The one call against its parts; the largest slope counts, no data are fine."""
    kernels, Sigma = [SE(0.3)], np.array([[[1.0, 0.5], [0.5, 2.0]]])
    data = [([[0.1], [0.6]], [0.3, -0.2]), ([[0.4]], [1.0])]
    post = LMCPosterior(kernels, Sigma, data, 0.01)
    parts = moduli(kernels, Sigma, np.sqrt(post.alpha @ post.gram @ post.alpha), 0.02)
    value = discretisation(kernels, Sigma, data, 0.01, lipschitz=[3.0, 7.0], tau=0.02, beta_bar=9.0)
    assert np.isclose(value, psi(7.0, 0.02, *parts, 9.0), rtol=1e-12)
    none = (np.empty((0, 1)), [])
    empty = discretisation(kernels, Sigma, [none, none], 0.01, lipschitz=7.0, tau=0.02, beta_bar=9.0)
    assert np.isclose(empty, psi(7.0, 0.02, 0.0, parts[1], 9.0))
    for wrong in ({"tau": 0.0}, {"lipschitz": -1.0}, {"beta_bar": np.nan}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            discretisation(kernels, Sigma, data, 0.01, **({"lipschitz": 1.0, "tau": 0.1, "beta_bar": 9.0} | wrong))


# ------------------------------------------------------------------------------------------------ at the door

KERNELS, REFERENCE = [SE(0.2)], np.array([[[1.0, 0.5], [0.5, 1.0]]])
DATA = [([[0.5]], [0.3]), ([[0.5], [0.1]], [0.2, 0.0])]
RAGGED = [[1.0], [1.0, 2.0]]
COMMON = {"kernels": KERNELS, "data": DATA, "noise_var": 0.01}
GOOD = {
    robust_scaling: COMMON | {"Sigmas": REFERENCE[None], "Sigma_ref": REFERENCE, "beta": 9.0},
    smallest_bound: COMMON | {"Sigmas": REFERENCE[None], "beta": 9.0},
    correlation_posterior: COMMON | {"cells": 20},
    sample_correlations: COMMON | {"steps": 6, "max_steps": 6, "draws": 3, "seed": 0},
    lmc_family: COMMON | {"Sigmas": REFERENCE[None]},
    LMCPosterior: COMMON | {"Sigma": REFERENCE},
    lmc_gram: {"kernels": KERNELS, "data": DATA, "Sigma": REFERENCE},
    discretisation: COMMON | {"Sigma_ref": REFERENCE, "lipschitz": 1.0, "tau": 0.1, "beta_bar": 9.0},
    lipschitz_constant: {"kernels": KERNELS, "Sigma": REFERENCE, "norm": 1.0},
    CarriedPosterior: {"kernels": KERNELS, "Sigma": REFERENCE, "points": [[0.0]], "noise_var": 0.01},
    safe_beta: {"n_points": 10, "delta": 0.1},
    grid_points: {"bounds": [[0, 1]], "tau": 0.1},
    task_data: {"data": DATA},
}
NUMBERS = ["a", -1.0, np.nan, np.inf, None]
BAD = {  # of every kind, whichever function reads it
    "kernels": [SE(0.2), None, "ab", 5, [], [3], ["a"]],
    "data": [None, 5, "ab", [], [1], [("a", "b")], [([[1j]], [1.0])], [([[0.5]], ["x"])]],
    "Sigmas": ["a", None, 1.0, RAGGED, REFERENCE, REFERENCE[None][:0], 1j * REFERENCE[None], np.nan * REFERENCE[None]]
    + [REFERENCE[None] + np.inf, np.ones((3, 0, 2, 2)), np.ones((3, 1, 1, 2)), np.ones((3, 2, 2, 2))],
    "Sigma_ref": ["a", None, RAGGED, REFERENCE[0], 1j * REFERENCE],
    "Sigma": ["a", None, RAGGED, REFERENCE[0], -REFERENCE],
    "base": ["a", 1.0, [[[1.0, 2.0], [2.0, 1.0]]]],
    "noise_var": [0.0, *NUMBERS],
    "beta": NUMBERS,
    "psi": NUMBERS[:-1],
    "norm": NUMBERS[:-1],
    "points": ["a", 3.0, [], np.empty((0, 1)), [[0.1, 0.2]]],
    "solver": ["magic", 1, [1]],
    "candidates": [0, 2.5, "a"],
    "cells": [0, -3, 2.5, "a", True, None],
    "feature": [5, 0.5, -1, "a", True, None],
    "unknown": [(), 0, 5, "a", (0, 0), (0.5,), (-1,), (7,), None],
    "eta": [0.0, *NUMBERS],
    "truncation": [1.0, *NUMBERS],
    "scale": [3.0, "ab", (1.0,), ((2.0,), 3.0), (1.0, -1.0), (1.0, 2.0, 3.0)],
    "steps": [0, 1, 5, 7, 2.5, "a"],
    "max_steps": [0, 3, "a"],
    "draws": [0, 1.5, "a"],
    "seed": ["a", -1, 1.5],
    "lipschitz": [[], *NUMBERS],
    "tau": [0.0, 1e-320, *NUMBERS],
    "beta_bar": NUMBERS,
    "bounds": [[0, 1], "a", None, [[1, 0]], [[0, np.nan]]],
    "tasks": [[5], [0.5], [-1]],
    "capacity": [0, "a"],
    "n_points": [0, *NUMBERS],
    "delta": [0.0, 2.0, *NUMBERS],
    "n_tasks": [0, 1.5, "a"],
    "n_rounds": [0, 1.5, "a"],
}
OPTIONAL = {
    robust_scaling: ["psi", "points", "solver"],
    smallest_bound: ["candidates"],
    correlation_posterior: ["base", "feature", "eta", "truncation", "scale"],
    sample_correlations: ["base", "unknown", "eta", "scale"],
    CarriedPosterior: ["tasks", "capacity"],
    safe_beta: ["n_tasks", "n_rounds"],
}
CASES = [
    pytest.param(f, name, bad, id=f"{f.__name__}-{name}-{i}")
    for f, given in GOOD.items()
    for name in [*given, *OPTIONAL.get(f, [])]
    for i, bad in enumerate(BAD[name])
    if not (f is discretisation and name == "tau" and bad == 1e-320)  # no distance at all is fine there
    and not (f is CarriedPosterior and name == "points" and i in (3, 4))  # they may be any, and none
]


@pytest.mark.parametrize(("f", "name", "bad"), CASES)
def test_bad_arguments_are_named(f, name, bad):
    """Whatever comes, a TypeError or a ValueError says which argument it was; no warning before."""
    words = "steps" if name == "max_steps" else name  # the two are read together
    with warnings.catch_warnings(), pytest.raises((TypeError, ValueError), match=words):
        warnings.simplefilter("error")
        f(**GOOD[f] | {name: bad})


@pytest.mark.parametrize("f", [f for f in GOOD if f is not sample_correlations])
def test_good_arguments_are_taken(f):
    assert f(**GOOD[f]) is not None


@needs_emcee
@pytest.mark.parametrize("steps", [6, 7])
def test_the_shortest_chains_have_diagnostics(steps):
    chain = sample_correlations(**GOOD[sample_correlations] | {"steps": steps, "max_steps": steps})
    assert np.isfinite(chain.rhat).all() and np.isfinite(chain.effective) and len(chain.Sigmas) == 3


@pytest.mark.parametrize("rho", [0, 1, 2, *NUMBERS])
def test_a_level_is_a_probability(rho):
    p = correlation_posterior(**GOOD[correlation_posterior])
    for read in (p.interval, p.likelihood_set, draws_needed):
        with pytest.raises((TypeError, ValueError), match="rho"):
            read(rho)


@pytest.mark.parametrize(
    "f", [robust_scaling, correlation_posterior, sample_correlations, LMCPosterior, discretisation]
)
def test_lengthscales_fit_the_data(f):
    """Also a kernel of one's own is asked, by its diagonal."""
    with pytest.raises(ValueError, match=r"kernels\[1\].*does not fit 1 input"):
        f(**GOOD[f] | {"kernels": [SE(0.2), ARD]})


@pytest.mark.parametrize(
    ("f", "tasks"), [(correlation_posterior, 1), (correlation_posterior, 3), (sample_correlations, 1)]
)
def test_a_correlation_takes_two_tasks(f, tasks):
    with pytest.raises(ValueError, match="data must hold two tasks"):
        f(**GOOD[f] | {"data": DATA[:1] * tasks})


def test_endless_grids_are_named():
    """A number of points beyond all floats comes from tau."""
    with pytest.raises(ValueError, match=r"tau=0.001 .* 200 inputs"):
        grid_points([[0, 1]] * 200, 1e-3)


def test_inputs_must_be_known_for_the_discretisation():
    with pytest.raises(ValueError, match=r"data must say the number of inputs"):
        discretisation(**GOOD[discretisation] | {"data": [(np.empty(0), [])] * 2})


def test_psi_is_kept():
    assert robust_scaling(**GOOD[robust_scaling], psi=0).psi == 0.0
    assert robust_scaling(**GOOD[robust_scaling]).psi is None
