"""The independent-task baselines under the names of the reference implementation."""

import numpy as np

from golden_adapters.core import kernel, scalarization
from golden_adapters.mtbkb import Replayed
from mtbo_nb.baselines import ITBKB, ITKB
from mtbo_nb.mtkb import Finite
from mtbo_nb.scalarization import cumulative_regret


class Parts(ITBKB):
    """IT-BKB whose tasks all read the given uniform numbers."""

    make_part = Replayed


def play(opt, F, lams, noise, look=lambda opt: None):
    """A run with given weights and noise; `look` reads something off after every round."""
    F, idx, radii, seen = np.array(F), [], [], []
    for lam, eps in zip(lams, noise, strict=True):
        radii.append(opt.beta)
        x = opt.ask(weights=lam)
        idx.append(opt.domain.number(x))
        opt.tell(x, F[idx[-1]] + np.array(eps))
        seen.append(look(opt))
    regret = cumulative_regret(opt.scalarization, lams, F, idx)[-1]
    return {"idx": idx, "beta": radii, "X": opt.history.X, "Y": opt.history.Y, "regret": regret, "m": seen}


def itkb_run(ks, domain, F, lams, noise, eta, b, sigma, delta, kind, z=None):
    options = {"scalarization": scalarization(kind, z), "noise_std": sigma, "norm_bound": b, "eta": eta}
    opt = ITKB(kernel({"type": "diag", "ks": ks}), Finite(domain), delta=delta, **options)
    return play(opt, F, lams, noise)


def kept(opt):
    """How many told copies are in the dictionary of each task."""
    probabilities = [part.inclusion_probabilities[part.posterior.data.rows] for part in opt.parts]
    return [int((part.copies() < p).sum()) for part, p in zip(opt.parts, probabilities, strict=True)]


def itbkb_run(
    ks, domain, F, lams, noise, unif, eta, b, sigma, delta, eps, q, kind, z=None, scale_by_eta=False, **ignored
):
    options = {"scalarization": scalarization(kind, z), "noise_std": sigma, "norm_bound": b, "eta": eta}
    literal = {"radius": "paper", "resample": "every", "inclusion": "scaled" if scale_by_eta else "paper"}
    opt = Parts(kernel({"type": "diag", "ks": ks}), Finite(domain), delta=delta, epsilon=eps, **options, **literal)
    for part in opt.parts:
        part.rate.q, part.unif = q, unif  # the reference also runs with q < 1, which the constructor refuses
    return play(opt, F, lams, noise, kept)


ADAPTERS = {"itkb_run": itkb_run, "itbkb_run": itbkb_run}
