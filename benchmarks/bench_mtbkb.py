"""MT-BKB with a carried dictionary against Algorithm 2 taken literally, and against the same with repeats merged.

    python benchmarks/bench_mtbkb.py           all, in full: several minutes
    python benchmarks/bench_mtbkb.py --quick   fewer rounds: about a minute

All contenders play the same problem with the same kernel, q, acquisition and radius; they differ in the linear algebra
and in when the dictionary is drawn. "Eqs (7), (8)" is Algorithm 2 with the paper's closed forms for this kernel, "as
printed" the algorithm's own text with blocks of size n; "merged" draws every distinct point once. Ratios are within one
run, of processor time. The exact algorithm (MT-KB) is shown beside them, and 20000 candidates in four dimensions.
"""

import argparse
import resource
import time

import numpy as np

from mtbo_nb.kernels import SE
from mtbo_nb.mtbkb import MTBKB, certificate_radius, inclusion_probability, smallest_uniforms
from mtbo_nb.mtkb import MTKB, Finite
from mtbo_nb.regression import posterior
from mtbo_nb.scalarization import Chebyshev, cumulative_regret

ETA = NOISE = DELTA = 0.1
Q, EPSILON = 10.0, 0.5
RHO = (1 + EPSILON) / (1 - EPSILON)


def problem(N, d, lengthscale, seed=0):
    """Candidates, kernel, values of a function of its space, and its norm."""
    rng, kernel = np.random.default_rng(seed), SE(lengthscale) * [[1.0, 0.5], [0.5, 1.0]]
    side = round(N ** (1 / d))
    X = np.stack(np.meshgrid(*[np.linspace(0, 1, side)] * d), -1).reshape(-1, d) if side**d == N else rng.random((N, d))
    at, c = X[rng.integers(0, N, 40)], rng.uniform(-1, 1, 80)
    return X, kernel, (kernel.gram(X, at) @ c).reshape(N, 2), float(np.sqrt(c @ kernel.gram(at) @ c))


class Literal:
    """Algorithm 2 with eqs (7) and (8), everything from scratch in every round; optionally with copies merged."""

    def __init__(self, kernel, X, norm, seed, merged):
        self.k, self.X, self.norm, self.merged = kernel.k, X, norm, merged
        self.xi, self.U = np.linalg.eigh(kernel.B)
        self.rng, self.score = np.random.default_rng(seed), Chebyshev()
        self.picks, self.Y, self.weights, self.betas = [], [], [], []
        self.mean, self.var = np.zeros((len(X), 2)), np.ones((2, len(X)))  # of the outputs, and of each channel
        self.beta = norm * 1.0 + np.sqrt(2 * NOISE**2 / ETA * np.log(1 / DELTA))

    def ask(self):
        """The number of the next candidate."""
        w = self.score.sample_weights(2, self.rng)
        sd = np.sqrt((self.U**2 @ (self.xi[:, None] * self.var.clip(0))).T)
        self.weights.append(w)
        self.betas.append(self.beta)
        values = self.score(self.mean + self.beta * sd, w)
        return int(np.argmax(values >= values.max() - 1e-9))

    def tell(self, j, y):
        """Draw the dictionary from the variances of the last round, and compute everything with it."""
        self.picks.append(j)
        self.Y.append(y)
        told, Y = np.array(self.picks), np.array(self.Y)
        p = inclusion_probability(Q, np.max(self.xi[:, None] * self.var[:, told].clip(0), axis=0), ETA)
        if self.merged:
            at, first, counts = np.unique(told, return_index=True, return_counts=True)
            D, weights = at[smallest_uniforms(counts, self.rng) < p[first]], None
        else:
            kept = self.rng.random(len(told)) < p
            D, weights, at, counts = told[kept], 1 / np.sqrt(p[kept]), told, np.ones(len(told))
        self.last = D, weights, told, at, counts, Y
        self.compute(*self.last)

    def compute(self, D, weights, told, at, counts, Y):
        """Eqs (7) and (8) at all candidates."""
        scale = np.ones(len(D)) if weights is None else weights
        K = scale[:, None] * self.k(self.X[D]) * scale
        values, Q_ = np.linalg.eigh(K)
        root = (Q_ * np.where(values > 1e-12 * values[-1], np.abs(values), np.inf) ** -0.5) @ Q_.T
        phi = root @ (scale[:, None] * self.k(self.X[D], self.X))
        v, sums = (phi[:, at] * counts) @ phi[:, at].T, phi[:, told] @ (Y @ self.U)
        rest, self.mean, logdet = 1 - np.sum(phi**2, axis=0), 0.0, 0.0
        for i, xi in enumerate(self.xi):
            inverse = np.linalg.inv(xi * v + ETA * np.eye(len(v)))
            self.mean = self.mean + np.outer(xi * phi.T @ (inverse @ sums[:, i]), self.U[:, i])
            self.var[i] = rest + ETA * np.sum(phi * (inverse @ phi), axis=0)
            logdet += np.linalg.slogdet(np.eye(len(v)) + xi * v / ETA)[1]
        lost, gap = (weight * rest[told].clip(0).sum() for weight in (self.xi.sum(), self.xi.max()))
        self.beta = certificate_radius(logdet, lost, gap, self.norm, NOISE, ETA, DELTA)


def as_printed(kernel, X, D, weights, told, counts, Y):
    """One round of Algorithm 2 as it is printed, with blocks of size n: mean (N, n) and covariance (N, n, n)."""
    n, scale = kernel.n_tasks, np.repeat(weights, kernel.n_tasks)
    values, Q_ = np.linalg.eigh(scale[:, None] * kernel.gram(D) * scale)
    root = (Q_ * np.where(values > 1e-12 * values[-1], np.abs(values), np.inf) ** -0.5) @ Q_.T
    seen, phi = (root @ (scale[:, None] * kernel.gram(D, points)) for points in (told, X))
    inverse = np.linalg.inv((seen * np.repeat(counts, n)) @ seen.T + ETA * np.eye(len(scale)))
    mean = (phi.T @ (inverse @ (seen @ (Y * counts[:, None]).ravel()))).reshape(len(X), n)
    left, right = phi.reshape(-1, len(X), n), (ETA * inverse @ phi - phi).reshape(-1, len(X), n)
    return mean, kernel.diag(X) + np.einsum("rsi,rsj->sij", left, right)


def play_literal(merged, X, kernel, F, norm, T, seed, sample):
    """Processor time, regret a round and mean radius; and the time as printed, from every `sample`-th round."""
    opt, rng, seconds, printed = Literal(kernel, X, norm, seed, merged), np.random.default_rng(seed), 0.0, 0.0
    for t in range(1, T + 1):
        start = time.process_time()
        j = opt.ask()
        opt.tell(j, F[j] + NOISE * rng.standard_normal(2))
        seconds += time.process_time() - start
        if sample and t % sample == 0:
            D, weights, told, at, counts, Y = opt.last
            means = np.array([Y[told == a].mean(axis=0) for a in at]) if merged else Y
            start = time.process_time()
            mean, _ = as_printed(kernel, X, X[D], np.ones(len(D)) if merged else weights, X[at], counts, means)
            printed += sample * (time.process_time() - start)
            assert np.allclose(mean, opt.mean, atol=1e-4)  # both are what the paper says
    regret = cumulative_regret(opt.score, np.array(opt.weights), F, opt.picks)[-1] / T
    return seconds, regret, np.mean(opt.betas), printed


def play(make, X, kernel, F, norm, T, seed, check=0):
    """The same for an optimiser of the package; with `check` also the range of Gamma~/Gamma every so many rounds."""
    options = {"noise_std": NOISE, "norm_bound": norm, "eta": ETA, "delta": DELTA, "seed": seed}
    rng, seconds, ratios = np.random.default_rng(seed), 0.0, []
    start = time.process_time()
    opt = make(kernel, Finite(X), **options)
    seconds += time.process_time() - start
    for t in range(1, T + 1):
        start = time.process_time()
        x = opt.ask()
        opt.tell(x, F[opt.domain.number(x)] + NOISE * rng.standard_normal(2))
        seconds += time.process_time() - start
        if check and t % check == 0:
            exact = posterior(kernel, ETA).update(opt.history.X, opt.history.Y)
            ratio = opt._states[0].model.norm / exact.norm(X)
            ratios += [ratio.min(), ratio.max()]
    picks = [opt.domain.number(x) for x in opt.history.X]
    regret = cumulative_regret(opt.scalarization, np.array(opt.history.weights), F, picks)[-1] / T
    return opt, seconds, regret, np.mean(opt.history.beta), ratios


def compare(T, trials):
    """The race on 2500 candidates."""
    setting, seeds = problem(2500, 2, 0.3), range(trials)
    ours = [play(MTBKB, *setting, T, seed, check=T // 40) for seed in seeds]
    exact = [play(lambda *a, **o: MTKB(*a, radius="paper", **o), *setting, T, seed) for seed in seeds]
    merged, copies = (
        [play_literal(m, *setting, T, seed, 0 if seed else T // 40) for seed in seeds[:2]] for m in (True, False)
    )
    seconds = np.median([run[1] for run in ours])
    print(f"T = {T} rounds on 2500 candidates in 2-D, n = 2, q = {Q:g}, processor time,")
    print(f"medians of {trials} trials (2 for the closed forms)")
    rows = [("MT-BKB of this package", [run[1:4] for run in ours]), ("exact MT-KB", [run[1:4] for run in exact])]
    rows += [("eqs (7), (8), merged", [run[:3] for run in merged]), ("eqs (7), (8)", [run[:3] for run in copies])]
    for name, runs in rows:
        s, regrets, betas = np.transpose(runs)
        told = f"regret {regrets.mean():.4f} +- {regrets.std():.4f}   radius {betas.mean():.2f}"
        print(f"  {name:24} {np.median(s):8.2f} s  {np.median(s) / seconds:6.1f} x   {told}")
    for name, s in (("as printed, merged", merged[0][3]), ("as printed", copies[0][3])):
        print(f"  {name:24} {s:8.2f} s  {s / seconds:6.1f} x   (timed in 40 of the rounds, times {T // 40})")
    reach, first = np.concatenate([run[4] for run in ours]), ours[0][0]
    print(f"  Gamma~/Gamma in [{reach.min():.3f}, {reach.max():.3f}], wanted [{1 / RHO:.3f}, {RHO:.3f}]")
    remembered = f"{len(first.dictionary)} of {first.posterior.data.n_distinct} distinct points remembered"
    print(f"  {first.redraws} redraws, {remembered}")
    assert 1 / RHO <= reach.min() and reach.max() <= RHO


def many(T):
    """20000 candidates in four dimensions: what an N x N matrix (3.2 GB a channel) would not allow."""
    setting = problem(20_000, 4, 0.5)
    opt, seconds, regret, beta, _ = play(MTBKB, *setting, T, 0)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    directions = len(opt._states[0].model._carrier.banks[0].F)
    print(f"T = {T} rounds on 20000 candidates in 4-D: {seconds:.1f} s, {opt.redraws} redraws")
    print(f"  {len(opt.dictionary)} of {opt.posterior.data.n_distinct} points remembered, {directions} directions")
    print(f"  regret {regret:.4f}, radius {beta:.2f}, peak memory {peak:.2f} GB")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer rounds")
    quick = parser.parse_args().quick
    compare(200 if quick else 2000, 2 if quick else 3)
    many(100 if quick else 500)
