"""From the reference names of the safe part to the package's own."""

from collections.abc import Callable
from typing import Any

import numpy as np

from mtbo_nb.correlation import LMCPosterior, lkj_logpdf_u2, lmc_family, lmc_gram
from mtbo_nb.kernels import SE, Matern
from mtbo_nb.scaling import beta_bar, gen_eig_max, moduli, nu2_parts, points_scalar, psi

NU = {"matern12": 0.5, "matern32": 1.5, "matern52": 2.5}


def kernels(ks: list) -> list:
    """Scalar kernels from their specifications."""
    made = [SE(k["lengthscale"]) if k["type"] == "se" else Matern(NU[k["type"]], k["lengthscale"]) for k in ks]
    return [kernel if k["variance"] == 1 else k["variance"] * kernel for kernel, k in zip(made, ks, strict=True)]


def pairs(Xs: list, ys: list | None = None) -> list:
    """[(X_t, y_t)] with zeros for values that do not matter; the empty tasks of the cases have one input."""
    inputs = [np.asarray(X, dtype=float).reshape(len(X), -1 if len(X) else 1) for X in Xs]
    return list(zip(inputs, ys or [np.zeros(len(X)) for X in Xs], strict=True))


def gram(ks, Sig, Xs):
    return lmc_gram(kernels(ks), Sig, pairs(Xs))


def posterior(ks, Sig, Xs, ys, sn2, x, x2=None):
    post = LMCPosterior(kernels(ks), Sig, pairs(Xs, ys), sn2)
    return [post.mean([x])[0], post.cov([x], None if x2 is None else [x2])[0]]


def parts(ks, Sig, SigP, Xs, ys, sn2):
    return nu2_parts(kernels(ks), Sig, SigP, pairs(Xs, ys), sn2)


def nu2(ks, Sig_set, SigP, Xs, ys, sn2, which="obs"):
    each = [parts(ks, S, SigP, Xs, ys, sn2) for S in Sig_set]
    return max(p["rkhs"] + p[f"eval_{which}"] for p in each)


def moments(ks, Sig_set, SigP, Xs, ys, sn2, points):
    family = lmc_family(kernels(ks), np.array([SigP, *Sig_set]), pairs(Xs, ys), sn2)
    both = [family.moments(np.asarray(points), t) for t in range(len(Xs))]
    return np.stack([m for m, _ in both], -1), np.stack([v for _, v in both], -1)


def gamma2_points(ks, Sig_set, SigP, Xs, ys, sn2, points):
    _, var = moments(ks, Sig_set, SigP, Xs, ys, sn2, points)
    return (var[1:] / var[0]).max()


def betabar_points(ks, Sig_set, SigP, Xs, ys, sn2, beta, points):
    mean, var = moments(ks, Sig_set, SigP, Xs, ys, sn2, points)
    return points_scalar(mean, var, beta)


ADAPTERS: dict[str, Callable[..., Any]] = {
    "lmc_gram": gram,
    "lmc_posterior": posterior,
    "nu2_parts": parts,
    "nu2": nu2,
    "gen_eig_max": lambda S, Sp: gen_eig_max(S, Sp),
    "gamma2_points": gamma2_points,
    "betabar_points": betabar_points,
    "beta_bar": lambda nu_, gamma_, beta: beta_bar(nu_, gamma_, beta),
    "psi": psi,
    "lipschitz_moduli_se": lambda ks, Sig, mu_rkhs_norm, tau: moduli(kernels(ks), Sig, mu_rkhs_norm, tau),
    "lkj_logpdf_u2": lambda r, eta: lkj_logpdf_u2(r, eta),
}
