"""Dictionaries and MT-BKB under the names of the reference implementation."""

import numpy as np

from golden_adapters.core import icm, kernel, scalarization
from mtbo_nb.mtbkb import MTBKB, inclusion_probability, nystrom_posterior
from mtbo_nb.mtkb import Finite
from mtbo_nb.scalarization import cumulative_regret


def told(spec, D, X, eta, Y=None):
    """The posterior of a dictionary; its weights p change nothing, so they are not asked for."""
    K = kernel(spec)
    post = nystrom_posterior(K, eta, D)
    return post.update(X, np.zeros((len(X), K.n_tasks)) if Y is None else Y) if len(X) else post


class Replayed(MTBKB):
    """MT-BKB with the uniform numbers of every copy given: unif[t][i] for the i-th told copy in round t + 1."""

    unif: list

    def copies(self):
        """The numbers of this round, one for each told copy."""
        return np.array(self.unif[len(self._posterior.data) - 1])

    def _uniforms(self, counts):
        smallest = np.ones(len(counts))
        np.minimum.at(smallest, self._posterior.data.rows, self.copies())
        return smallest


def mtbkb_run(
    spec, domain, F, lams, noise, unif, eta, b, sigma, delta, eps, q, kind, z=None, scale_by_eta=False, **ignored
):
    options = {"scalarization": scalarization(kind, z), "noise_std": sigma, "norm_bound": b, "eta": eta}
    literal = {"width": "spectral", "radius": "paper", "resample": "every"}
    inclusion = "scaled" if scale_by_eta else "paper"
    opt = Replayed(kernel(spec), Finite(domain), **options, delta=delta, epsilon=eps, inclusion=inclusion, **literal)
    opt.rate.q, opt.unif = q, unif  # the reference also runs with q < 1, which the constructor refuses
    F, trace = np.array(F), {name: [] for name in ("idx", "beta", "m", "dict", "p")}
    for lam, eps_t in zip(lams, noise, strict=True):
        trace["beta"].append(opt.beta)
        x = opt.ask(weights=lam)
        trace["idx"].append(opt.domain.number(x))
        opt.tell(x, F[trace["idx"][-1]] + np.array(eps_t))
        p = opt.inclusion_probabilities[opt.posterior.data.rows]
        kept = np.flatnonzero(opt.copies() < p).tolist()
        for name, value in (("p", p.tolist()), ("dict", kept), ("m", len(kept))):
            trace[name].append(value)
    regret = cumulative_regret(opt.scalarization, lams, F, trace["idx"])[-1]
    return trace | {"regret": regret, "X": opt.history.X, "Y": opt.history.Y}


ADAPTERS = {
    "mu_tilde": lambda spec, D, p, X, Y, eta, x: told(spec, D, X, eta, Y).mean([x])[0],
    "Gamma_tilde": lambda spec, D, p, X, eta, x, x2: told(spec, D, X, eta).joint([x, x2])[0, 1],
    "inclusion_probability": lambda q, gam, eta=None: inclusion_probability(q, np.linalg.norm(gam, 2), eta),
    "icm_mu_tilde": lambda k, B, D, p, X, Y, eta, x: told(icm(k, B), D, X, eta, Y).mean([x])[0],
    "icm_norm_tilde": lambda k, B, D, p, X, eta, x: told(icm(k, B), D, X, eta).norm([x])[0],
    "mtbkb_run": mtbkb_run,
}
