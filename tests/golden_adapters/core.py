"""Kernels, posteriors and MT-KB under the names of the reference implementation."""

import numpy as np

from mtbo_nb.kernels import ICM, LMC, SE, Diagonal, Matern, similar_tasks
from mtbo_nb.mtkb import MTKB, Finite
from mtbo_nb.regression import posterior
from mtbo_nb.scalarization import Chebyshev, Linear, cumulative_regret


def scalar(spec):
    name, ell = spec["type"], spec["lengthscale"]
    nu = {"matern12": 0.5, "matern32": 1.5, "matern52": 2.5}
    return spec.get("variance", 1.0) * (SE(ell) if name == "se" else Matern(nu[name], ell))


def kernel(spec):
    if spec["type"] == "icm":
        return ICM(scalar(spec["k"]), spec["B"])
    if spec["type"] == "omega":
        return similar_tasks(scalar(spec["k"]), spec["n"], spec["omega"])
    if spec["type"] == "diag":
        return Diagonal([scalar(k) for k in spec["ks"]])
    return LMC([(scalar(k), B) for k, B in zip(spec["ks"], spec["Bs"], strict=True)])


def told(spec, X, eta, Y=None):
    """The posterior of the data; without outputs, of zeros, for what does not depend on them."""
    K, post = kernel(spec), posterior(kernel(spec), eta)
    return post.update(X, np.zeros((len(X), K.n_tasks)) if Y is None else Y) if len(X) else post


def Gamma_t(spec, X, eta, x, x2):
    return told(spec, X, eta).joint([x, x2])[0, 1]


def icm(k, B):
    return {"type": "icm", "k": k, "B": B}


def scalarization(kind, z):
    return Linear() if kind == "linear" else Chebyshev(z)


def mtkb_select(spec, X, Y, eta, domain, lam, kind, b, sigma, delta, z=None):
    opt = paper_mtkb(spec, domain, eta, b, sigma, delta, kind, z)
    for x, y in zip(X, Y, strict=True):
        opt.tell(x, y)
    model, s = opt._states[0].model, opt.scalarization
    values = s(model.mean, lam) + s.lipschitz(lam) * opt.beta * np.sqrt(model.norm)
    return [opt.domain.number(opt.ask(weights=lam)), values.tolist(), opt.beta]


def paper_mtkb(spec, domain, eta, b, sigma, delta, kind, z):
    options = {"scalarization": scalarization(kind, z), "noise_std": sigma, "norm_bound": b, "eta": eta, "delta": delta}
    return MTKB(kernel(spec), Finite(domain), width="spectral", radius="paper", **options)


def mtkb_run(spec, domain, F, lams, noise, eta, b, sigma, delta, kind, z=None):
    opt = paper_mtkb(spec, domain, eta, b, sigma, delta, kind, z)
    F, trace = np.array(F), {"idx": [], "beta": [], "norm_before": []}
    for lam, eps in zip(lams, noise, strict=True):
        trace["beta"].append(opt.beta)
        x = opt.ask(weights=lam)
        j = opt.domain.number(x)
        trace["idx"].append(j)
        trace["norm_before"].append(opt.posterior.norm([x])[0])
        opt.tell(x, F[j] + np.array(eps))
    regret = cumulative_regret(opt.scalarization, lams, F, trace["idx"])[-1]
    return trace | {"regret": regret, "X": opt.history.X, "Y": opt.history.Y}


ADAPTERS = {
    "k_eval": lambda spec, x, x2: scalar(spec)([x], [x2])[0, 0],
    "Gamma": lambda spec, x, x2: kernel(spec)([x], [x2])[0, 0],
    "G_matrix": lambda spec, X: kernel(spec).gram(X),
    "mu": lambda spec, X, Y, eta, x: told(spec, X, eta, Y).mean([x])[0],
    "Gamma_t": Gamma_t,
    "icm_mu": lambda k, B, X, Y, eta, x: told(icm(k, B), X, eta, Y).mean([x])[0],
    "icm_norm": lambda k, B, X, eta, x: told(icm(k, B), X, eta).norm([x])[0],
    "mtkb_select": mtkb_select,
    "mtkb_run": mtkb_run,
}
