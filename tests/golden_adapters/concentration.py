"""The reference names of log-determinants, information and radii, said in the package's own."""

import numpy as np

from golden_adapters.core import kernel, told
from mtbo_nb.concentration import confidence_radius, information_gain
from mtbo_nb.kernels import ICM, SE
from mtbo_nb.regression import posterior, spectral_norm


def rounds(spec, X, eta):
    """Gamma_{s-1}(x_s, x_s) and Gamma_s(x_s, x_s) for every s."""
    post, nothing = posterior(kernel(spec), eta), np.zeros((1, kernel(spec).n_tasks))
    for x in X:
        before = post.cov([x])[0]
        yield before, post.update([x], nothing).cov([x])[0]


def logdet_I_plus(G, eta):
    """One observation of a vector with the covariance G."""
    return posterior(ICM(SE(1.0), G), eta).update([[0.0]], np.zeros((1, len(G)))).logdet


def logdet_direct(spec, X, eta):
    return told(spec, X, eta).logdet


def logdet_incremental(spec, X, eta):
    return sum(np.linalg.slogdet(np.eye(len(before)) + before / eta)[1] for before, _ in rounds(spec, X, eta))


def trace_sum(spec, X, eta):
    return sum(np.trace(after) for _, after in rounds(spec, X, eta)) / eta


def norm_sum(spec, X, eta):
    return sum(np.linalg.norm(after, 2) for _, after in rounds(spec, X, eta))


def info_gain(spec, X, eta):
    return information_gain(kernel(spec), X, eta)


def beta_mtkb(spec, X, eta, b, sigma, delta):
    return confidence_radius(told(spec, X, eta).logdet, b, sigma, eta, delta)


def largest_singular_value(A):
    return np.sqrt(spectral_norm(np.transpose(A) @ np.array(A)))


ADAPTERS = {
    "spectral_norm": largest_singular_value,
    "logdet_I_plus": logdet_I_plus,
    "logdet_direct": logdet_direct,
    "logdet_incremental": logdet_incremental,
    "trace_sum": trace_sum,
    "norm_sum": norm_sum,
    "info_gain": info_gain,
    "beta_mtkb": beta_mtkb,
}
