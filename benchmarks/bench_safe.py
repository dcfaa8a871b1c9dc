"""Safe search: the robust scaling of many matrices, and the safe set of many points, against plain routes.

Ratios of medians within one run: `python benchmarks/bench_safe.py`. One BLAS thread is used.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve, eigh

from mtbo_nb.correlation import LMCPosterior, TaskData, lmc_gram, partial_to_correlation, task_data
from mtbo_nb.kernels import SE
from mtbo_nb.scaling import CarriedPosterior, gamma_features, robust_scaling

NOISE = 1e-2


def median_time(f: Callable[[], Any], repeats: int) -> tuple[float, Any]:
    """Median wall time of f, and its last result."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        result = f()
        times.append(time.perf_counter() - start)
    return float(np.median(times)), result


def problem(counts: list[int], ks: list, Sigma: np.ndarray, seed: int = 0) -> TaskData:
    """Data drawn from the model."""
    rng = np.random.default_rng(seed)
    data = task_data([(rng.random((c, 3)), np.zeros(c)) for c in counts])
    K = lmc_gram(ks, Sigma, data) + NOISE * np.eye(len(data))
    return TaskData(data.X, np.linalg.cholesky(K) @ rng.standard_normal(len(data)), data.task, data.n_tasks)


def plain_loop(ks: list, Sigmas: np.ndarray, ref: np.ndarray, data: TaskData) -> tuple[float, float]:
    """nu and gamma as one would write them down: a factorisation and the closed form for each matrix."""
    grams, pick = [k(data.X, data.X) for k in ks], np.ix_(data.task, data.task)

    def gram(Sigma: np.ndarray) -> np.ndarray:
        return sum(S[pick] * G for S, G in zip(Sigma, grams, strict=True))

    def solve(K: np.ndarray) -> np.ndarray:
        return cho_solve(cho_factor(K + NOISE * np.eye(len(K)), lower=True), data.y)

    K_ref = gram(ref)
    a_ref = solve(K_ref)
    nu2, gamma2 = 0.0, 1.0
    for S in Sigmas:
        K = gram(S)
        a = solve(K)
        middle = gram(S @ np.linalg.inv(ref) @ S)
        gap = K @ a - K_ref @ a_ref
        nu2 = max(nu2, a_ref @ K_ref @ a_ref - 2 * a_ref @ K @ a + a @ middle @ a + gap @ gap / NOISE)
        gamma2 = max(gamma2, max(eigh(A, B, eigvals_only=True)[-1] for A, B in zip(S, ref, strict=True)))
    return float(np.sqrt(nu2)), float(np.sqrt(gamma2))


def optimised_loop(ks: list, Sigmas: np.ndarray, ref: np.ndarray, data: TaskData) -> tuple[float, float]:
    """Kernel matrices once, blocks by slices, LAPACK in place, cheap products: a careful loop of one Cholesky each."""
    grams, u = [k(data.X, data.X) for k in ks], data.n_tasks
    rows = [data.rows(t) for t in range(u)]
    K, scratch = np.empty((len(data), len(data)), order="F"), np.empty((len(data), len(data)))

    def solve(Sigma: np.ndarray) -> np.ndarray:
        for a, ra in enumerate(rows):
            for b, rb in enumerate(rows[: a + 1]):  # the lower triangle is enough
                block = K[ra, rb]
                np.multiply(grams[0][ra, rb], Sigma[0, a, b], out=block)
                for S, G in zip(Sigma[1:], grams[1:], strict=True):
                    block += np.multiply(G[ra, rb], S[a, b], out=scratch[ra, rb])
        K.T.flat[:: len(K) + 1] += NOISE
        return cho_solve(cho_factor(K, lower=True, overwrite_a=True, check_finite=False), data.y, check_finite=False)

    def spread(alpha: np.ndarray) -> np.ndarray:
        columns = np.zeros((len(alpha), u))
        for t, r in enumerate(rows):
            columns[r, t] = alpha[r]
        return columns

    a_ref = solve(ref)
    A_ref, inverse = spread(a_ref), np.linalg.inv(ref)
    fixed = sum((B * (A_ref.T @ G @ A_ref)).sum() for B, G in zip(ref, grams, strict=True))
    nu2 = 0.0
    for S in Sigmas:
        alpha = solve(S)
        columns = spread(alpha)
        value = fixed + NOISE * ((alpha - a_ref) ** 2).sum()
        for G, M, inv in zip(grams, S, inverse, strict=True):
            image = G @ columns
            value += ((M @ inv @ M) * (columns.T @ image)).sum() - 2 * (M * (A_ref.T @ image)).sum()
        nu2 = max(nu2, value)
    return float(np.sqrt(nu2)), float(gamma_features(Sigmas, ref).max())


def report(name: str, slow: float, fast: float, target: float) -> None:
    """One line of the table."""
    verdict = "ok" if slow / fast >= target else "MISSED"
    print(f"{name:58s} {slow:8.3f} s {fast:8.4f} s   x {slow / fast:7.1f}   (target {target:g}) {verdict}")


def scaling_benchmarks(S: int = 1000) -> None:
    """nu and gamma of S matrices at 450 observations."""
    rng, ks = np.random.default_rng(1), [SE(0.5), SE(0.2)]
    r = rng.uniform(0.5, 0.95, S)
    one = np.stack([np.stack([np.array([[1, c], [c, 1]]), 0.1 * np.eye(2)]) for c in r])
    z = np.tanh(np.arctanh([0.8, -0.5, 0.1]) + 0.3 * rng.standard_normal((S, 3)))
    z2 = np.tanh(0.3 * rng.standard_normal((S, 3)))
    many = np.stack([partial_to_correlation(z, 3), 0.1 * partial_to_correlation(z2, 3)], axis=1)
    for name, Sigmas, counts, target_plain, target_optimised in [
        ("one unknown correlation (u = 2, H = 2)", one, [50, 400], 60, 1),
        ("general (u = 3, H = 2)", many, [50, 200, 200], 4, 4),
    ]:
        ref = Sigmas[np.argmin(((Sigmas - Sigmas.mean(0)) ** 2).sum((1, 2, 3)))]
        data = problem(counts, ks, ref)
        t_fast, fast = median_time(lambda: robust_scaling(ks, Sigmas, ref, data, NOISE, 12.0), 5)  # noqa: B023
        t_opt, opt = median_time(lambda: optimised_loop(ks, Sigmas, ref, data), 3)  # noqa: B023
        few = Sigmas[: S // 10]
        t_plain, plain = median_time(lambda: plain_loop(ks, few, ref, data), 3)  # noqa: B023
        check = robust_scaling(ks, few, ref, data, NOISE, 12.0)
        report(f"{name}: plain loop ({S // 10} timed, x 10)", 10 * t_plain, t_fast, target_plain)
        report(f"{name}: optimised loop", t_opt, t_fast, target_optimised)
        error = max(abs(fast.nu / opt[0] - 1), abs(fast.gamma / opt[1] - 1), abs(check.nu / plain[0] - 1))
        print(f"    solver {fast.solver}, nu {fast.nu:.3f}, gamma {fast.gamma:.3f}, relative difference {error:.1e}")


def safe_set_benchmark(n_points: int = 100_000, m: int = 450, new: int = 9) -> None:
    """The safe set after 9 more observations (1 main, 8 supplementary): updated against recomputed."""
    ks, Sigma = [SE(0.5)], np.array([[[1.0, 0.8], [0.8, 1.0]]])
    data = problem([m // 9, m - m // 9 + new], ks, Sigma)
    keep = np.r_[np.arange(m), []].astype(int)
    old = TaskData(data.X[keep], data.y[keep], data.task[keep], 2)
    points = np.random.default_rng(2).random((n_points, 3))
    carried = CarriedPosterior(ks, Sigma, points, NOISE, tasks=(0,), capacity=m + 5 * new)
    carried.append(old.X, old.y, old.task)
    late = (data.X[m:], data.y[m:], data.task[m:])

    def fresh() -> np.ndarray:
        post = LMCPosterior(ks, Sigma, data, NOISE)
        V = post.whiten(points, 0)
        return post.whitened_y @ V - 3 * np.sqrt(1 - (V * V).sum(0)) >= -1

    def update() -> np.ndarray:
        carried.append(*late)
        mean, var = carried.moments(0)
        safe = mean - 3 * np.sqrt(var) >= -1
        return safe

    t_fresh, want = median_time(fresh, 3)
    t_first, got = median_time(update, 1)
    assert (want != got).mean() < 1e-5
    t_more, _ = median_time(update, 4)  # the same rows again: the cost is that of any nine rows
    report(
        f"safe set of {n_points} points, {m} observations, {new} new", t_fresh, float(np.median([t_first, t_more])), 15
    )


if __name__ == "__main__":
    scaling_benchmarks()
    safe_set_benchmark()
