"""The reference names of log-determinants, information and radii, said in the package's own."""

import numpy as np

from mtbo_nb.concentration import confidence_radius, information_gain
from mtbo_nb.kernels import ICM, LMC, SE, Diagonal, Matern, similar_tasks
from mtbo_nb.regression import posterior


def scalar(spec):
    """A scalar kernel from its description."""
    shapes = {"se": SE, "matern12": lambda s: Matern(0.5, s), "matern32": lambda s: Matern(1.5, s)}
    make = shapes.get(spec["type"], lambda s: Matern(2.5, s))
    return spec["variance"] * make(spec["lengthscale"])


def kernel(spec):
    """A multi-task kernel from its description."""
    match spec["type"]:
        case "icm":
            return ICM(scalar(spec["k"]), spec["B"])
        case "omega":
            return similar_tasks(scalar(spec["k"]), spec["n"], spec["omega"])
        case "diag":
            return Diagonal([scalar(k) for k in spec["ks"]])
        case _:
            return LMC([(scalar(k), B) for k, B in zip(spec["ks"], spec["Bs"], strict=True)])


def told(K, X, eta):
    """The posterior after the points X; the outputs do not matter here."""
    points = np.reshape(X, (len(X), -1)) if len(X) else np.zeros((0, 1))
    return posterior(K, eta).update(points, np.zeros((len(points), K.n_tasks)))


def rounds(K, X, eta):
    """Gamma_{s-1}(x_s, x_s) and Gamma_s(x_s, x_s) for every s."""
    post = posterior(K, eta)
    for x in np.reshape(X, (len(X), 1, -1)):
        before = post.cov(x)[0]
        yield before, post.update(x, np.zeros((1, K.n_tasks))).cov(x)[0]


def logdet_I_plus(G, eta):
    """One observation of a vector with the covariance G."""
    return told(ICM(SE(1.0), G), [[0.0]], eta).logdet


def logdet_direct(spec, X, eta):
    return told(kernel(spec), X, eta).logdet


def logdet_incremental(spec, X, eta):
    K = kernel(spec)
    return sum(np.linalg.slogdet(np.eye(K.n_tasks) + before / eta)[1] for before, _ in rounds(K, X, eta))


def trace_sum(spec, X, eta):
    return sum(np.trace(after) for _, after in rounds(kernel(spec), X, eta)) / eta


def norm_sum(spec, X, eta):
    return sum(np.linalg.norm(after, 2) for _, after in rounds(kernel(spec), X, eta))


def info_gain(spec, X, eta):
    return information_gain(kernel(spec), X, eta)


def beta_mtkb(spec, X, eta, b, sigma, delta):
    return confidence_radius(told(kernel(spec), X, eta).logdet, b, sigma, eta, delta)


ADAPTERS = {
    "logdet_I_plus": logdet_I_plus,
    "logdet_direct": logdet_direct,
    "logdet_incremental": logdet_incremental,
    "trace_sum": trace_sum,
    "norm_sum": norm_sum,
    "info_gain": info_gain,
    "beta_mtkb": beta_mtkb,
}
