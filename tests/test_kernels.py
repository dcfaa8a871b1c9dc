"""Kernels: identities, positive semi-definiteness, gradients, and the door."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import kernels, scalar_kernels

from mtbo_nb.kernels import ICM, LMC, SE, Diagonal, Matern, as_points, as_psd, similar_tasks

X = np.random.default_rng(0).random((9, 2))


@given(scalar_kernels())
def test_scalar_kernels_are_symmetric_and_positive(k):
    K = k(X)
    np.testing.assert_allclose(K, K.T, atol=1e-15)
    np.testing.assert_allclose(np.diag(K), k.diag(X))
    assert np.linalg.eigvalsh(K)[0] > -1e-12
    assert (np.abs(K) <= k.variance * (1 + 1e-12)).all()


@given(scalar_kernels(), st.integers(0, 1000))
def test_gradients_against_differences(k, seed):
    x, z = np.random.default_rng(seed).random((2, 1, 2))
    h = 1e-6
    numeric = [(k(x + h * e, z) - k(x - h * e, z))[0, 0] / (2 * h) for e in np.eye(2)]
    np.testing.assert_allclose(k.grad(x, z)[0, 0], numeric, atol=2e-4 if np.abs(x - z).max() < 1e-3 else 1e-6)


def test_gradient_at_distance_zero_is_zero():
    for k in (SE(0.2), Matern(0.5, 0.2), Matern(1.5, 0.2), Matern(2.5, 0.2)):
        assert not k.grad(X, X)[range(9), range(9)].any()


@given(kernels())
@settings(deadline=None)
def test_multi_task_kernels(K):
    n, blocks = K.n_tasks, K(X)
    G = K.gram(X)
    assert blocks.shape == (9, 9, n, n) and G.shape == (9 * n, 9 * n)
    np.testing.assert_allclose(blocks, blocks.transpose(1, 0, 3, 2), atol=1e-12)  # Gamma(x, x')' = Gamma(x', x)
    np.testing.assert_allclose(K.diag(X), blocks[range(9), range(9)], atol=1e-12)
    assert np.linalg.eigvalsh(G)[0] > -1e-10 * max(1.0, K.kappa())
    np.testing.assert_allclose(np.linalg.norm(K.diag(X), 2, axis=(1, 2)).max(), K.kappa(), rtol=1e-10)


@given(kernels(max_tasks=3), kernels(max_tasks=3))
@settings(deadline=None)
def test_sums(K, L):
    if K.n_tasks == L.n_tasks:
        np.testing.assert_allclose((K + L)(X), K(X) + L(X))
        assert isinstance(K + L, LMC)
    else:
        with pytest.raises(ValueError, match="one size"):
            K + L


def test_equality_and_hash():
    B = np.array([[1.0, 0.5], [0.5, 2.0]])
    assert SE(0.2) * B == ICM(SE(0.2), B) == B * SE(0.2)
    assert ICM(SE(0.2), B) + ICM(SE(0.3), B) == LMC([(SE(0.2), B), (SE(0.3), B)])
    assert SE(0.2) != SE(0.3) and SE(0.2) != Matern(2.5, 0.2) and SE(0.2) != 2.0 * SE(0.2)
    assert 2.0 * (3.0 * SE(0.2)) == 6.0 * SE(0.2)
    assert hash(SE([0.1, 0.2])) == hash(SE([0.1, 0.2]))


def test_similar_tasks_spectrum():
    np.testing.assert_allclose(np.linalg.eigvalsh(similar_tasks(SE(0.2), 5, 0.3).B), [0.3] * 4 + [1.0])


def test_a_matrix_printed_with_six_digits_is_accepted():
    a = np.array([1.0, -0.570722, -0.591553])
    B = np.round(np.outer(a, a), 6)
    assert np.linalg.eigvalsh(B)[0] < 0
    assert as_psd("B", B).shape == (3, 3)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: SE(0.0), "lengthscale must be > 0"),
        (lambda: SE([]), "lengthscale must be > 0"),
        (lambda: SE([[0.1]]), "lengthscale"),
        (lambda: Matern(1.0, 0.1), "nu must be 0.5, 1.5 or 2.5, got 1.0"),
        (lambda: SE([0.1, 0.2, 0.3])(X), "lengthscale has 3 entries, the points have 2"),
        (lambda: SE(0.1)([1.0, 2.0]), r"X must have shape \(points, d >= 1\), got \(2,\)"),
        (lambda: SE(0.1)(X, [[1.0]]), r"Z must have shape \(points, 2\), got \(1, 1\)"),
        (lambda: SE(0.1)([[np.nan]]), "X must be finite"),
        (lambda: ICM(SE(0.1), [[1, 2], [2, 1]]), "B must be positive semi-definite, got the eigenvalue -1"),
        (lambda: ICM(SE(0.1), [[1, 2], [0, 1]]), "B must be symmetric"),
        (lambda: ICM(SE(0.1), [[1, 2]]), "B must be square"),
        (lambda: LMC([]), "at least one term"),
        (lambda: similar_tasks(SE(0.1), 3, -0.1), "omega must be"),
        (lambda: similar_tasks(SE(0.1), 0, 0.1), "n must be"),
        (lambda: similar_tasks(SE(0.1), 2.0, 0.1), "n must be"),
        (lambda: -1.0 * SE(0.1), "variance must be"),
    ],
)
def test_bad_input_names_the_argument(call, words):
    with pytest.raises(ValueError, match=words):
        call()


def test_wrong_types():
    for call in (
        lambda: ICM("SE", np.eye(2)),
        lambda: Diagonal([SE(0.1), 3]),
        lambda: Diagonal(SE(0.1)),
        lambda: LMC(5),
        lambda: LMC([1]),
        lambda: SE("a"),
        lambda: SE(1j),
        lambda: as_points("X", object()),
    ):
        with pytest.raises(TypeError):
            call()
