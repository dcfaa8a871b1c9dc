"""The reference names of scores, weights and regret, said in the package's own."""

from mtbo_nb import scalarization as sc


def score(kind, z=None):
    """The score that the reference calls `kind`."""
    return sc.Linear() if kind == "linear" else sc.Chebyshev(reference=z)


def lipschitz(kind, lam):
    return score(kind).lipschitz(lam)


def weights_linear(u):
    return sc.linear_weights(u)


def cumulative_regret(kind, lams, F, idxs, z=None):
    """The reference gives the last of the running sums."""
    running = sc.cumulative_regret(score(kind, z), lams, F, idxs)
    return running[-1] if len(running) else 0.0


def bayes_regret(kind, lam_mc, F, idxs, z=None):
    return sc.bayes_regret(score(kind, z), lam_mc, F, idxs)[-1]


ADAPTERS = {
    "lipschitz": lipschitz,
    "weights_linear": weights_linear,
    "cumulative_regret": cumulative_regret,
    "bayes_regret": bayes_regret,
}
