"""What one round costs on each route to the posterior of an ICM, as t (rounds), n (tasks) and m (dictionary) grow.

    OMP_NUM_THREADS=1 python benchmarks/bench_icm.py [--quick] [--csv benchmarks/results/icm_cost.csv]

The routes of the paper are timed at a single point x, as the paper counts them; the carried ones bring all N candidates
up to date in the time that is given. Processor time, the least of some repeats. The notebook 06_icm draws the file.
"""

import argparse
import csv
import platform
import time
import warnings
from functools import partial
from pathlib import Path

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from mtbo_nb.icm import Decoupled, DecoupledCarrier
from mtbo_nb.kernels import ICM, SE, Matern, similar_tasks
from mtbo_nb.regression import Delayed, Features, Rows, Sites, pivoted_cholesky

ETA, N = 0.1, 1000
HEADER = "# seconds a round (processor time, least of the repeats) on 2 cores, one BLAS thread"


class Task:
    """A kernel, N candidates, and t rounds at distinct candidates, with everything that may be known before a round."""

    def __init__(self, kernel, t, m=50):
        rng = np.random.default_rng(0)
        self.kernel, self.X, self.t = kernel, rng.random((N, 2)), t
        self.told = rng.permutation(N)[: t + 8]
        self.Y = rng.standard_normal((t + 8, kernel.n_tasks))
        self.x = rng.random((1, 2))
        self.dictionary = self.X[self.told[:m]]
        self.K = kernel.k(self.X[self.told[:t]])
        self.xi, self.U = np.linalg.eigh(kernel.B)
        self.Z = self.Y[:t] @ self.U

    @property
    def rows(self):
        return self.X[self.told[: self.t]]

    @property
    def kx(self):
        return self.kernel.k(self.rows, self.x)[:, 0]


def least(action, seconds=0.4, repeats=(3, 200)):
    """The least processor time of an action that leaves no trace."""
    times = []
    while len(times) < repeats[0] or (sum(times) < seconds and len(times) < repeats[1]):
        start = time.process_time()
        action()
        times.append(time.process_time() - start)
    return min(times)


def dense(task):
    """Eq (1): factor the nt x nt matrix."""
    n, t, B = task.kernel.n_tasks, task.t, task.kernel.B
    Y, cross = task.Y[:t].ravel(), np.kron(task.kx[:, None], B)

    def one_round():
        factor = cho_factor(np.kron(task.K, B) + ETA * np.eye(n * t), lower=True, overwrite_a=True, check_finite=False)
        solved = cho_solve(factor, cross, check_finite=False)
        return solved.T @ Y, np.linalg.norm(B - cross.T @ solved, 2)

    return least(one_round)


def formula(task):
    """Eqs (5) and (6) as appendix A computes them: one eigen-decomposition of K_t, all eigenvalues of B share it."""
    kx, xi = task.kx, task.xi

    def one_round():
        task.Z[-1] = task.Y[task.t - 1] @ task.U
        alpha, W = np.linalg.eigh(task.K)
        a = W.T @ kx
        scaled = xi[:, None] / (xi[:, None] * alpha + ETA)
        mean = task.U @ np.einsum("ij,j,ji->i", scaled, a, W.T @ task.Z, optimize=True)
        return mean, np.max(xi * (1 - scaled @ a**2))

    return least(one_round)


def cholesky(task):
    """Eqs (5) and (6) with a fresh Cholesky factor for every eigenvalue of B."""
    kx, noise = task.kx, ETA * np.eye(task.t)

    def one_round():
        task.Z[-1] = task.Y[task.t - 1] @ task.U
        columns = np.column_stack([kx, task.Z])
        for i, xi in enumerate(task.xi):
            factor = cho_factor(xi * task.K + noise, lower=True, overwrite_a=True, check_finite=False)
            cho_solve(factor, columns[:, [0, i + 1]], check_finite=False)

    return least(one_round)


def growing(task):
    """The solver of the package: one row for each channel's factor, then the moments at x."""
    times = []
    for _ in range(3):
        solver = Decoupled(task.kernel, ETA)
        solver.extend(task.rows, task.Y[: task.t], np.ones_like(task.Y[: task.t]))
        for j, y in zip(task.told[task.t :], task.Y[task.t :], strict=True):
            start = time.process_time()
            solver.extend(task.X[[j]], y[None], np.ones((1, len(y))))
            solver.moments(task.x)
            times.append(time.process_time() - start)
    return min(times)


def carried(make, task):
    """The carried posterior with a given engine, read at all candidates: the mean of 64 rounds."""
    model = DecoupledCarrier(task.kernel, ETA, task.X)
    model.banks[0].engine = make(task, model.banks[0].ridges)
    for j, y in zip(task.told[: task.t], task.Y, strict=False):
        model.observe(j, y)
    times = []
    again = np.random.default_rng(1).permutation(task.told[: task.t])
    for _ in range(3):
        start = time.process_time()
        for j in np.resize(again, 64):
            model.observe(j, task.Y[0])
            model.mean(), model.norm()
        times.append((time.process_time() - start) / 64)
    return min(times)


def sites(task):
    return Sites(ICM(task.kernel.k, [[1.0]]), task.X)


def embedding(G, cross):
    """The Nystrom embedding as columns: the pseudo-inverse root of the dictionary's matrix, times its covariances."""
    values, W = np.linalg.eigh(G)
    kept = values > 1e-12 * values[-1]
    return (W[:, kept] / np.sqrt(values[kept])).T @ cross


def at_candidates(task):
    """The scalar embedding at all candidates, as columns."""
    return embedding(task.kernel.k(task.dictionary), task.kernel.k(task.dictionary, task.X))


def nystrom_dense(task):
    """Section 3.2: the nm x nm matrices, for a kernel of which nothing is known."""
    B, n, Y = task.kernel.B, task.kernel.n_tasks, task.Y[: task.t].ravel()
    G = task.kernel.gram(task.dictionary)
    cross = task.kernel.gram(task.dictionary, np.vstack([task.rows, task.x]))

    def one_round():
        both = embedding(G, cross)
        phi, phix = both[:, :-n], both[:, -n:]
        solved = np.linalg.solve(phi @ phi.T + ETA * np.eye(len(phi)), phix)
        return solved.T @ (phi @ Y), np.linalg.norm(B - phix.T @ phix + ETA * phix.T @ solved, 2)

    return least(one_round)


def nystrom(task):
    """Eqs (7) and (8) as appendix A computes them, from scratch every round."""
    xi, G = task.xi, task.kernel.k(task.dictionary)
    cross = task.kernel.k(task.dictionary, np.vstack([task.rows, task.x]))

    def one_round():
        task.Z[-1] = task.Y[task.t - 1] @ task.U
        both = embedding(G, cross)
        phi, phix = both[:, :-1], both[:, -1]
        a, W = np.linalg.eigh(phi @ phi.T)
        b, shrunk = W.T @ phix, 1 / (xi[:, None] * a + ETA)
        mean = task.U @ (xi * np.einsum("ij,j,ji->i", shrunk, b, W.T @ (phi @ task.Z), optimize=True))
        return mean, np.max(xi * (1 - np.sum(phix**2) + ETA * shrunk @ b**2))

    return least(one_round)


CARRIED = {
    "rows": lambda task, ridges: Rows(sites(task), ridges),
    "delayed": lambda task, ridges: Delayed(sites(task), ridges),
    "features": lambda task, ridges: Features(pivoted_cholesky(sites(task), 400)[0], ridges),
    "nystrom carried": lambda task, ridges: Features(at_candidates(task), ridges),
}
ROUTES = {
    "dense": dense,
    "formula": formula,
    "cholesky": cholesky,
    "growing": growing,
    "nystrom dense": nystrom_dense,
    "nystrom": nystrom,
    **{name: partial(carried, make) for name, make in CARRIED.items()},
}


LARGEST = 3200  # rows of the matrices of the dense routes


def make_kernel(k, p, n):
    """An ICM of n tasks whose B has n distinct eigenvalues, or (p = "2") two."""
    A = np.random.default_rng(0).standard_normal((n, n + 2))
    return ICM(k, A @ A.T / n) if p == "n" else similar_tasks(k, n, 0.4)


def plan(quick):
    """What to measure: sweep, scalar kernel, number of distinct eigenvalues, n, t, m."""
    last = 3 if quick else None
    for t in [50, 100, 200, 400, 800][:last]:
        yield "t", SE(0.3), "n", 4, t, 50
    for n in [1, 2, 4, 8, 16, 32][:last]:
        yield "n", SE(0.3), "n", n, 200, 50
    for n in [2, 4, 8, 16, 32, 64, 128][:last]:
        yield "n", SE(0.3), "2", n, 200, 50
    for m in [25, 50, 100, 200, 400][:last]:
        yield "m", Matern(2.5, 0.3), "n", 4, 800, m  # a dictionary of full rank


def wanted(sweep, p, n, t):
    """The routes that a line of the plan is about."""
    if sweep == "m":
        return [name for name in ROUTES if name.startswith("nystrom")]
    if p == "2":
        return ["growing", *CARRIED]
    return [name for name in ROUTES if name != "dense" or n * t <= LARGEST]


def measure(quick=False):
    for sweep, k, p, n, t, m in plan(quick):
        for route in wanted(sweep, p, n, t):
            yield sweep, p, route, n, t, m, f"{ROUTES[route](Task(make_kernel(k, p, n), t, m)):.3g}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="the three smallest sizes of each sweep")
    parser.add_argument("--csv", type=Path, help="write what was measured to this file")
    args = parser.parse_args()
    warnings.simplefilter("error")
    lines = [("sweep", "p", "route", "n", "t", "m", "seconds")]
    for line in measure(args.quick):
        lines.append(line)
        print("{:2} p={} {:16} n={:<3} t={:<4} m={:<4} {} s".format(*line), flush=True)
    if args.csv:
        with args.csv.open("w", newline="") as file:
            file.write(f"{HEADER}; Python {platform.python_version()}, numpy {np.__version__}; N = {N} candidates\n")
            csv.writer(file, lineterminator="\n").writerows(lines)


if __name__ == "__main__":
    main()
