"""A whole run of MT-KB against the direct formulas, processor time in one process; ratios are what counts.

    python benchmarks/bench_engines.py [--quick]

Three baselines, each computing the same picks:
  formula  eqs (5) and (6) of the paper, with a fresh eigen-decomposition of K_t every round
  merged   the same on the distinct points with their counts, the fair baseline
  dense    a fresh solve of the nt x nt system of eq (1)
"""

import argparse
import statistics
import time

import numpy as np

from mtbo_nb.kernels import ICM, LMC, SE, Matern
from mtbo_nb.mtkb import MTKB, Finite, first_best
from mtbo_nb.regression import carry, spectral_norm
from mtbo_nb.scalarization import Chebyshev


class Formula:
    """Eqs (5) and (6): one eigen-decomposition of the scalar Gram matrix a round."""

    def __init__(self, kernel, eta, X):
        self.K, self.eta = kernel.k(X), eta
        self.xi, self.U = np.linalg.eigh(kernel.B)
        self.told, self.Y = [], []

    def observe(self, j, y):
        self.told.append(j)
        self.Y.append(y)

    def data(self):
        return np.array(self.told), np.array(self.Y), np.ones(len(self.told))

    def moments(self):
        if not self.told:
            return np.zeros((len(self.K), len(self.xi))), np.full(len(self.K), self.xi[-1])
        at, Y, counts = self.data()
        root = np.sqrt(counts)
        alpha, W = np.linalg.eigh(root[:, None] * self.K[np.ix_(at, at)] * root)
        P = W.T @ (root[:, None] * self.K[at])
        Z = W.T @ (root[:, None] * (Y @ self.U))
        scaled = self.xi[:, None] / (self.xi[:, None] * alpha + self.eta)
        mean = np.stack([(s * z) @ P for s, z in zip(scaled, Z.T, strict=True)], axis=1) @ self.U.T
        norms = self.xi[:, None] * (1 - scaled @ P**2)
        return mean, norms.max(axis=0)


class Merged(Formula):
    """The same with repeated points merged."""

    def data(self):
        at, where, counts = np.unique(self.told, return_inverse=True, return_counts=True)
        sums = np.zeros((len(at), len(self.xi)))
        np.add.at(sums, where, np.array(self.Y))
        return at, sums / counts[:, None], counts


class Dense:
    """The nt x nt system, solved afresh each round."""

    def __init__(self, kernel, eta, X):
        self.kernel, self.eta, self.X = kernel, eta, X
        self.G = kernel.gram(X)
        self.told, self.Y = [], []

    def observe(self, j, y):
        self.told.append(j)
        self.Y.append(y)

    def moments(self):
        n, N = self.kernel.n_tasks, len(self.X)
        prior = self.kernel.diag(self.X)
        if not self.told:
            return np.zeros((N, n)), spectral_norm(prior)
        sites = (np.array(self.told)[:, None] * n + np.arange(n)).ravel()
        G = self.G[sites]
        solved = np.linalg.solve(G[:, sites] + self.eta * np.eye(len(sites)), G)
        mean = (solved.T @ np.concatenate(self.Y)).reshape(N, n)
        Gb, Sb = G.reshape(-1, N, n), solved.reshape(-1, N, n)
        return mean, spectral_norm(prior - np.einsum("rsi,rsj->sij", Gb, Sb))


class Ours:
    """The carried posterior."""

    def __init__(self, kernel, eta, X):
        self.model = carry(kernel, eta, X)
        self.observe = self.model._take  # rows that were checked, as the optimiser hands them on

    def moments(self):
        return self.model.mean, self.model.norm


def problem(kernel, N, T, seed):
    rng = np.random.default_rng(seed)
    X = rng.random((N, 2))
    at, c = X[rng.integers(0, N, 50)], rng.uniform(-1, 1, 50 * kernel.n_tasks)
    F = (kernel.gram(X, at) @ c).reshape(N, -1)
    weights = [Chebyshev().sample_weights(kernel.n_tasks, rng) for _ in range(T)]
    return X, F, float(np.sqrt(c @ kernel.gram(at) @ c)), weights, 0.1 * rng.standard_normal((T, kernel.n_tasks))


def run(make, kernel, eta, task, T):
    """Seconds, picks and final moments of T rounds with the paper's acquisition (a fixed radius: the same for all)."""
    X, F, b, weights, noise = task
    s, picks = Chebyshev(), []
    slopes = [s.lipschitz(w) for w in weights[:T]]
    start = time.process_time()
    model = make(kernel, eta, X)
    for w, lipschitz, eps in zip(weights[:T], slopes, noise, strict=False):
        mean, norm = model.moments()
        picks.append(first_best(s.score(mean, w) + lipschitz * b * np.sqrt(norm)))
        model.observe(picks[-1], F[picks[-1]] + eps)
    return time.process_time() - start, picks, model.moments()


def error(ours, theirs):
    return max(float(np.max(np.abs(a - b)) / np.max(np.abs(b))) for a, b in zip(ours, theirs, strict=True))


def ask_and_tell(kernel, eta, task, T):
    """Seconds of T rounds of ask and tell, and of the same by the carried posterior alone, read and maximised."""
    X, F, b, _, noise = task
    opt = MTKB(kernel, Finite(X), noise_std=0.1, norm_bound=b, eta=eta, seed=0)
    start = time.process_time()
    for eps in noise[:T]:
        x = opt.ask()
        opt.tell(x, F[opt.domain.number(x)] + eps)
    loop = time.process_time() - start
    model, s, rounds = (
        carry(kernel, eta, X),
        Chebyshev(),
        zip(opt.history.x, opt.history.y, opt.history.weights, strict=True),
    )
    told = [(opt.domain.number(x), y, w) for x, y, w in rounds]
    start = time.process_time()
    for j, y, w in told:
        s.score(model.mean + b * np.sqrt(model.diag), w).argmax()
        model.observe(j, y)
    return loop, time.process_time() - start


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a fifth of the rounds")
    N, scale = 1000, 5 if parser.parse_args().quick else 1
    rng = np.random.default_rng(0)
    A2, A20 = rng.random((2, 2)), rng.random((20, 20))
    icm2, icm20 = ICM(SE(0.2), A2.T @ A2), ICM(SE(0.2), A20.T @ A20)
    lmc = LMC([(SE(0.2), A2.T @ A2), (Matern(2.5, 0.3), np.eye(2))])
    cases = [
        ("ICM n=2", icm2, 1000, (Formula, Merged)),
        ("ICM n=20", icm20, 1000, (Formula, Merged)),
        ("LMC n=2", lmc, 500, (Dense,)),
    ]
    print(f"N = {N} candidates in 2-D; ours: median of 3 runs")
    print(
        f"{'case':10} {'T':>5} {'eta':>6} {'ours [s]':>9} {'baseline':>9} {'[s]':>8} {'ratio':>7}"
        f" {'same picks':>10} {'error':>8}"
    )
    for name, kernel, T, baselines in cases:
        for eta, rounds in ((0.1, T // scale), (1e-6, min(T, 200) // scale)):
            task = problem(kernel, N, rounds, seed=1)
            runs = [run(Ours, kernel, eta, task, rounds) for _ in range(3)]
            ours = statistics.median(r[0] for r in runs)
            for make in baselines:
                seconds, picks, moments = run(make, kernel, eta, task, rounds)
                same, gap = picks == runs[0][1], error(runs[0][2], moments)
                print(
                    f"{name:10} {rounds:5} {eta:6g} {ours:9.3f} {make.__name__.lower():>9} {seconds:8.2f}"
                    f" {seconds / ours:6.0f}x {same!s:>10} {gap:8.0e}"
                )
    for name, kernel in (("ICM n=2", icm2), ("ICM n=20", icm20)):
        task = problem(kernel, N, 1000 // scale, seed=1)
        ratio = statistics.median(np.divide(*ask_and_tell(kernel, 0.1, task, 1000 // scale)) for _ in range(3))
        print(f"{name:10} the loop of ask and tell over the engine alone: {ratio:.2f}x")


if __name__ == "__main__":
    main()
