"""Scores, Pareto sets, hypervolume and regret: properties, and every number by a second route."""

import itertools
import pickle

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from mtbo_nb.scalarization import (
    Chebyshev,
    Hypervolume,
    Linear,
    LineOfSight,
    Scalarization,
    as_weights,
    bayes_regret,
    chebyshev_weights,
    cumulative_regret,
    hypervolume,
    hypervolume_constant,
    hypervolume_regret,
    linear_weights,
    pareto_mask,
    sphere_weights,
    time_average,
)

sizes = st.integers(1, 5)
values = st.floats(-3, 3, allow_subnormal=False)
weight = st.one_of(st.just(0.0), st.floats(1e-3, 1.0))


def scores(n):
    """One of each kind, for n outputs."""
    z = np.linspace(-0.5, 0.5, n)
    return [
        Linear(),
        Chebyshev(),
        Chebyshev(z),
        LineOfSight(z, 1.5, 0.7),
        Hypervolume(z, 1.5, 0.7),
        Hypervolume(z, 2.0),
    ]


@st.composite
def pairs(draw):
    """Two output vectors and weights, some of which may be zero."""
    n = draw(sizes)
    w = draw(arrays(float, n, elements=weight))
    assume((w > 0).any())
    return draw(arrays(float, n, elements=values)), draw(arrays(float, n, elements=values)), w


@st.composite
def tables(draw, elements=values, most=25):
    """A table of outputs; coarse elements make ties likely."""
    return draw(arrays(float, (draw(st.integers(1, most)), draw(sizes)), elements=elements))


coarse = st.sampled_from([-np.inf, -1.0, -0.0, 0.0, 1.0, 1.0 + 1e-15, 1e300, np.inf, np.nan])


# scores


@given(pairs())
def test_a_score_never_falls_when_outputs_rise(case):
    u, v, w = case
    for s in scores(len(w)):
        assert s(np.maximum(u, v), w) >= s(u, w)
        assert (s.gradient(u, w) >= 0).all()


@given(pairs())
def test_every_coordinate_larger_is_a_larger_score(case):
    u, _, w = case
    for s in scores(len(w))[:3]:
        assert s(u + 1e-3, w) > s(u, w)


@given(pairs())
def test_lipschitz(case):
    u, v, w = case
    for s in scores(len(w)):
        change = abs(s(u, w) - s(v, w))
        assert change <= s.lipschitz(w) * np.linalg.norm(u - v) + 1e-12 * max(1, abs(s(u, w)), abs(s(v, w)))


@given(pairs())
def test_the_gradient_is_a_supergradient_of_concave_scores(case):
    u, v, w = case
    for s in scores(len(w))[:3]:
        assert s(v, w) <= s(u, w) + s.gradient(u, w) @ (v - u) + 1e-12


@given(pairs())
def test_the_gradient_is_the_central_difference(case):
    u, _, w = case
    step = 1e-6
    for s in scores(len(w)):
        near = [s.gradient(u + d, w) for d in step * np.concatenate([np.eye(len(w)), -np.eye(len(w))])]
        scale = max(1.0, np.abs(s.gradient(u, w)).max())
        if max(np.abs(g - s.gradient(u, w)).max() for g in near) < 1e-3 * scale:  # not on a kink
            numeric = [(s(u + d, w) - s(u - d, w)) / (2 * step) for d in step * np.eye(len(w))]
            np.testing.assert_allclose(s.gradient(u, w), numeric, atol=1e-4 * scale)


@given(pairs(), st.floats(0.1, 10), st.floats(-5, 5))
def test_scaling_and_shifting(case, factor, offset):
    u, v, w = case
    assert np.isclose(Linear()(u, factor * w), factor * Linear()(u, w))
    assert np.isclose(Chebyshev(v)(u, factor * w), factor * Chebyshev(v)(u, w))
    assert np.isclose(Chebyshev(v + offset)(u + offset, w), Chebyshev(v)(u, w))
    units = np.linspace(0.5, 2, len(w))  # other units for the outputs, weights in one over them
    assert np.isclose(Chebyshev(v * units)(u * units, w / units), Chebyshev(v)(u, w))
    assert np.isclose(
        Hypervolume(v, 1.0, 0.5)(u, w / factor), factor ** len(w) * Hypervolume(v, 1.0, 0.5)(u, w), rtol=1e-9
    )


@given(pairs())
def test_outputs_may_be_reordered(case):
    u, z, w = case
    order = np.random.default_rng(0).permutation(len(w))
    for s, t in [
        (Linear(), Linear()),
        (Chebyshev(z), Chebyshev(z[order])),
        (Hypervolume(z, 1.0), Hypervolume(z[order], 1.0)),
    ]:
        assert np.isclose(s(u, w), t(u[order], w[order]))
        assert np.isclose(s.lipschitz(w), t.lipschitz(w[order]))


def test_broadcasting():
    rng = np.random.default_rng(1)
    Y, W = rng.random((4, 5, 3)), rng.random((4, 1, 3))
    for s in scores(3):
        assert s(Y, W).shape == (4, 5) and s.gradient(Y, W).shape == (4, 5, 3)
        assert np.isclose(s(Y, W)[2, 3], s(Y[2, 3], W[2, 0]))
        np.testing.assert_allclose(s.gradient(Y, W)[2, 3], s.gradient(Y[2, 3], W[2, 0]))
        assert s(Y[0, 0], rng.random((7, 3))).shape == (7,)
        assert s(np.empty((0, 3)), [1, 1, 1]).shape == (0,)


@pytest.mark.parametrize("n", [1, 2, 3, 5, 8])
def test_lipschitz_of_all_unit_vectors(n):
    rng = np.random.default_rng(n)
    s = Hypervolume(np.zeros(n), 1.0, 0.4)
    constants = [s.lipschitz(w) for w in sphere_weights(rng.normal(size=(500, n)))]
    worst = np.array([0.4] + [1.4] * (n - 1))
    assert max(constants) <= s.uniform_lipschitz() * (1 + 1e-12)
    assert np.isclose(s.lipschitz(worst / np.linalg.norm(worst)), s.uniform_lipschitz())
    simple = n ** (n / 2 + 1) * 1.4**n / 0.4
    assert s.uniform_lipschitz() <= simple


def test_the_default_shift_minimises_the_simple_bound():
    n, span = 4, 2.0
    simple = lambda b: n ** (n / 2 + 1) * (span + b) ** n / b  # noqa: E731
    b = Hypervolume(np.zeros(n), span).shift
    assert b == span / (n - 1)
    assert simple(b) < min(simple(0.99 * b), simple(1.01 * b))
    assert simple(b) <= np.e * n ** (n / 2 + 2) * span ** (n - 1)


def test_a_zero_weight_leaves_its_output_out():
    rng = np.random.default_rng(2)
    Y = rng.random((50, 3))
    assert np.array_equal(Chebyshev()(Y, [0.4, 0, 0.6]), Chebyshev()(Y[:, [0, 2]], [0.4, 0.6]))
    assert np.unique(Chebyshev()(Y, [0.4, 0, 0.6])).size == 50
    assert np.array_equal(Chebyshev()([1.0, np.nan], [1.0, 0.0]), 1.0)
    with np.errstate(all="raise"):
        s = Hypervolume(np.zeros(3), 1.0)
        assert np.allclose(s(Y, [0.4, 0, 0.6]), s(Y, [0.4, 1e-9, 0.6]))
        assert (s.gradient(Y, [0.4, 0, 0.6])[:, 1] == 0).all()
        assert np.isclose(s.lipschitz([0.6, 0, 0.8]), s.lipschitz([0.6, 1e-12, 0.8]))


def test_many_outputs_do_not_overflow():
    w = sphere_weights(np.r_[1e-18, np.ones(29)])
    s = Hypervolume(np.zeros(30), 1.0)
    with np.errstate(all="raise"):
        assert np.isfinite(s(np.full(30, 0.5), w)) and np.isfinite(s.gradient(np.full(30, 0.5), w)).all()


@pytest.mark.parametrize("s", scores(2), ids=repr)
@pytest.mark.parametrize("bad", [[0, 0], [-1, 2], [np.nan, 1], [np.inf, 1], [1, 2, 3], 1.0, [], "ab", None])
def test_bad_weights_are_named(s, bad):
    for call in (s, s.gradient):
        with pytest.raises((ValueError, TypeError), match="weights"):
            call(np.ones((4, 2)), bad)


def test_bad_outputs_and_references_are_named():
    with pytest.raises(ValueError, match="Y"):
        Linear()(3.0, [1.0])
    for s in (Chebyshev([0, 0]), Hypervolume([0, 0], 1.0)):
        with pytest.raises(ValueError, match="reference"):
            s(np.ones(3), np.ones(3))
    for bad in ([np.nan, 0], 0.0, [[0, 0]], []):
        with pytest.raises(ValueError, match="reference"):
            Chebyshev(bad)
    for name in ("span", "shift"):
        with pytest.raises(ValueError, match=name):
            Hypervolume([0, 0], **{"span": 1.0, name: 0.0})
    with pytest.raises(ValueError, match="do not fit"):
        Linear()(np.ones((4, 2)), np.ones((3, 2)))


# laws of weights


@pytest.mark.parametrize("n", [1, 2, 5])
def test_laws(n):
    for s, norm in ((Linear(), 1), (Chebyshev(), 1), (Hypervolume(np.zeros(n), 1.0), 2)):
        draws = np.array([s.sample_weights(n, np.random.default_rng(i)) for i in range(300)])
        assert (draws > 0).all() and np.allclose(np.linalg.norm(draws, norm, axis=1), 1)
        assert np.array_equal(draws[7], s.sample_weights(n, np.random.default_rng(7)))
        assert n == 1 or np.unique(draws, axis=0).shape[0] == 300


def test_the_maps_from_uniform_numbers():
    u = np.array([0.2, 0.7, 0.9])
    alpha = u.sum() / u
    np.testing.assert_allclose(chebyshev_weights(u), alpha / alpha.sum())
    np.testing.assert_allclose(linear_weights(u), u / u.sum())
    with np.errstate(all="raise"):
        assert np.isfinite(chebyshev_weights([1e-300, 1.0])).all()
    with pytest.raises(ValueError, match="u must be > 0"):
        chebyshev_weights([0.0, 1.0])


def test_fixed_and_drawn_weights():
    mine = np.array([0.3, 0.7])
    s = Chebyshev(weights=mine)
    mine[:] = 9
    got = s.sample_weights(2, np.random.default_rng(0))
    got[:] = 9
    assert s.sample_weights(2, np.random.default_rng(0)).tolist() == [0.3, 0.7]
    with pytest.raises(ValueError, match="weights"):
        s.sample_weights(3, np.random.default_rng(0))
    with pytest.raises(ValueError, match="weights"):
        Linear(weights=[0, 0])
    law = Linear(weights=lambda n, rng: -np.ones(n))
    with pytest.raises(ValueError, match="weights"):
        law.sample_weights(2, np.random.default_rng(0))


def test_scores_survive_pickling_and_print_themselves():
    s = pickle.loads(pickle.dumps(Hypervolume([0, 1], 2.0, weights=[0.6, 0.8])))
    assert repr(s) == "Hypervolume(weights=[0.6, 0.8], reference=[0.0, 1.0], span=2.0, shift=2.0)"
    assert repr(Linear()) == "Linear()" and isinstance(s, Scalarization)


def test_the_global_random_state_is_left_alone():
    before = np.random.get_state()[1].copy()
    Chebyshev().sample_weights(3, np.random.default_rng(0))
    assert np.array_equal(before, np.random.get_state()[1])


# Pareto


def brute_front(Y):
    known = [not np.isnan(u).any() for u in Y]
    beats = lambda v, u: (v >= u).all() and (v > u).any()  # noqa: E731
    return np.array([k and not any(beats(v, u) for v, kv in zip(Y, known) if kv) for u, k in zip(Y, known)], bool)  # noqa: B905


@given(tables(elements=coarse))
def test_pareto_mask_is_the_definition(Y):
    copy = Y.copy()
    assert np.array_equal(pareto_mask(Y), brute_front(Y))
    assert np.array_equal(Y, copy, equal_nan=True)


@given(tables(), st.randoms(use_true_random=False))
def test_pareto_mask_ignores_order_units_and_copies(Y, random):
    order = np.array(random.sample(range(len(Y)), len(Y)))
    mask = pareto_mask(Y)
    assert np.array_equal(pareto_mask(Y[order]), mask[order])
    assert np.array_equal(pareto_mask(4.0 * Y), mask)
    assert np.array_equal(pareto_mask(np.vstack([Y, Y])), np.r_[mask, mask])
    assert mask.any() and pareto_mask(Y[mask]).all()


def test_pareto_mask_of_little_and_of_much():
    assert pareto_mask(np.empty((0, 3))).shape == (0,)
    assert pareto_mask([[np.nan, 1.0]]).tolist() == [False]
    rng = np.random.default_rng(0)
    for n in (2, 3, 5):
        Y = rng.normal(size=(10_000, n))
        mask = pareto_mask(Y)
        front = Y[mask]
        some = rng.choice(np.flatnonzero(~mask), 50)
        assert all(((front >= Y[i]).all(1) & (front > Y[i]).any(1)).any() for i in some)
    with pytest.raises(ValueError, match="Y"):
        pareto_mask([1.0, 2.0])


@given(tables(elements=st.integers(-2, 2).map(float)), st.integers(0, 2**32 - 1))
def test_what_scores_pick(Y, seed):
    rng, n = np.random.default_rng(seed), Y.shape[1]
    strictly_beaten = np.array([(Y > u).all(1).any() for u in Y])
    w = linear_weights(rng.random(n) + 0.01)
    assert pareto_mask(Y)[Linear()(Y, w).argmax()] or np.isclose(np.ptp(np.sort(Linear()(Y, w))[-2:]), 0)
    for s in (Linear(), Chebyshev(), Chebyshev(np.full(n, 3.0))):
        best = s(Y, w)
        assert not strictly_beaten[best.argmax()]
        assert pareto_mask(Y)[np.lexsort((Y.sum(1), best))[-1]]


@given(tables(elements=st.floats(0.1, 3)))
def test_chebyshev_reaches_every_point_of_the_front(Y):
    for i in np.flatnonzero(pareto_mask(Y)):
        best = Chebyshev()(Y, chebyshev_weights(Y[i]))
        assert best[i] >= best.max() * (1 - 1e-12)


# hypervolume


def inclusion_exclusion(H):
    """Volume of the union of the boxes [0, h]."""
    subsets = itertools.chain.from_iterable(itertools.combinations(H, k) for k in range(1, len(H) + 1))
    return sum((-1) ** (len(part) + 1) * np.prod(np.min(part, axis=0)) for part in subsets)


@given(tables(elements=st.floats(0.1, 3), most=7), st.floats(-2, 2))
def test_hypervolume_is_inclusion_exclusion(H, offset):
    z = np.full(H.shape[1], offset)
    expected = inclusion_exclusion(H)
    assert np.isclose(hypervolume(H + offset, z), expected, rtol=1e-9)


@given(tables(elements=st.sampled_from([-2.0, -0.5, 0.0, 0.5, 1.0, 1.0, 2.0, np.nan, -np.inf]), most=9))
def test_hypervolume_counts_what_is_above(Y):
    z = np.zeros(Y.shape[1])
    above = Y[(Y > 0).all(1)]
    volume = hypervolume(Y, z)
    assert np.isclose(volume, inclusion_exclusion(above) if len(above) else 0.0)
    assert np.isclose(volume, hypervolume(above, z))
    assert np.isclose(volume, hypervolume(Y[pareto_mask(Y)], z) if len(above) else 0.0)
    assert np.isclose(volume, hypervolume(np.vstack([Y, Y])[::-1], z))
    assert volume <= hypervolume(np.vstack([Y, np.full_like(z, 0.7)]), z) + 1e-12


@given(tables(elements=st.floats(0.1, 3), most=10), st.floats(1e-3, 1e6))
def test_hypervolume_has_units(Y, unit):
    z = np.zeros(Y.shape[1])
    scale = np.r_[unit, np.ones(Y.shape[1] - 1)]
    assert np.isclose(hypervolume(Y * scale, z), unit * hypervolume(Y, z), rtol=1e-9)


@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_hypervolume_is_the_average_of_best_scores(n):
    rng = np.random.default_rng(n)
    Y = rng.uniform(-0.5, 1, size=(8, n))
    s = Hypervolume(np.zeros(n), 1.0, 0.5)
    lam = sphere_weights(rng.normal(size=(20_000, n)))
    best = hypervolume_constant(n) * np.max([s(y, lam) for y in Y], axis=0)
    exact = hypervolume(Y.clip(0), np.full(n, -0.5))
    assert abs(best.mean() - exact) <= 4.5 * best.std() / np.sqrt(len(lam)) + 1e-9


def test_hypervolume_at_the_door():
    assert hypervolume(np.empty((0, 3)), np.zeros(3)) == 0.0
    assert hypervolume([[1.0, 1.0, 0.0]], np.zeros(3)) == 0.0
    assert hypervolume([[-1.0, -2.0, -3.0]], [-4.0, -4.0, -4.0]) == 6.0
    for Y, z, name in [
        ([[1.0, np.inf]], [0, 0], "Y"),
        ([[1.0, 2.0]], [0, 0, 0], "reference"),
        ([[1.0, 2.0]], 0.0, "reference"),
        ([[1.0, 2.0]], [0, np.nan], "reference"),
        ([1.0, 2.0], [0, 0], "Y"),
    ]:
        with pytest.raises(ValueError, match=name):
            hypervolume(Y, z)


# regret


@given(tables(), st.integers(0, 2**32 - 1), st.integers(0, 12))
def test_regret_is_its_definition(F, seed, rounds):
    rng, n = np.random.default_rng(seed), F.shape[1]
    W, picks = rng.random((rounds, n)) + 0.01, rng.integers(0, len(F), rounds)
    for s in scores(n):
        paid = cumulative_regret(s, W, F, picks)
        by_hand = np.cumsum([s(F, w).max() - s(F[i], w) for w, i in zip(W, picks, strict=True)])
        np.testing.assert_allclose(paid, by_hand, atol=1e-9 * max(1, np.abs(by_hand).max(initial=0)))
        assert (np.diff(paid, prepend=0) >= -1e-9 * max(1, np.abs(by_hand).max(initial=0))).all()
        mc = rng.random((5, n)) + 0.01
        left = bayes_regret(s, mc, F, picks)
        by_hand = [np.mean([s(F, w).max() - s(F[picks[: t + 1]], w).max() for w in mc]) for t in range(rounds)]
        np.testing.assert_allclose(left, by_hand, atol=1e-9 * max(1, np.abs(by_hand).max(initial=0)))
        assert (np.diff(left) <= 1e-9 * max(1, np.abs(left).max(initial=0))).all()


@given(tables(most=12), st.integers(0, 2**32 - 1))
def test_hypervolume_regret_is_its_definition(F, seed):
    picks = np.random.default_rng(seed).integers(0, len(F), 10)
    z = np.zeros(F.shape[1])
    by_hand = [hypervolume(F, z) - hypervolume(F[picks[: t + 1]], z) for t in range(10)]
    np.testing.assert_allclose(hypervolume_regret(z, F, picks), by_hand, atol=1e-9)


def test_all_candidates_leave_no_regret():
    F = np.random.default_rng(0).normal(size=(30, 3))
    W = np.random.default_rng(1).random((40, 3))
    for s in scores(3):
        assert bayes_regret(s, W, F, np.arange(30))[-1] == 0
    assert hypervolume_regret(np.zeros(3), F, np.arange(30))[-1] == 0


def test_pieces_do_not_show():
    rng = np.random.default_rng(0)
    angle = np.linspace(0, np.pi / 2, 2000)
    F = np.column_stack([np.cos(angle), np.sin(angle)])  # every point on the front: many pieces
    W, picks = linear_weights(rng.random((1500, 2))), rng.integers(0, 2000, 1500)
    paid, left = cumulative_regret(Linear(), W, F, picks), bayes_regret(Linear(), W, F, picks)
    assert np.isclose(paid[-1], sum((F @ w).max() - F[i] @ w for w, i in zip(W, picks, strict=True)))
    assert np.isclose(left[9], np.mean((F @ W.T).max(0) - (F[picks[:10]] @ W.T).max(0)))


def test_fixed_weights_and_time_average():
    F, picks = [[1.0, 1.0], [3.0, 1.0]], [0, 1, 0]
    paid = cumulative_regret(Linear(), [0.5, 0.5], F, picks)
    assert paid.tolist() == [1, 1, 2]
    assert time_average(paid).tolist() == [1, 0.5, 2 / 3]
    assert time_average(np.ones((2, 4))).tolist() == [[1, 1 / 2, 1 / 3, 1 / 4]] * 2


@pytest.mark.parametrize("picks", [[0, 2], [-1], [0.5], [[0]], "a", [True]])
def test_bad_picks_are_named(picks):
    for f in (cumulative_regret, bayes_regret):
        with pytest.raises(ValueError, match="picks"):
            f(Linear(), [[0.5, 0.5]], [[1.0, 1.0], [3.0, 1.0]], picks)


def test_bad_regret_arguments_are_named():
    F = [[1.0, 1.0], [3.0, 1.0]]
    for bad in ([[1, 1]] * 3, [1, 1, 1], [[0, 0]]):
        with pytest.raises(ValueError, match="weights"):
            cumulative_regret(Linear(), bad, F, [0, 1])
        if bad != [[1, 1]] * 3:
            with pytest.raises(ValueError, match="weights"):
                bayes_regret(Linear(), bad, F, [0, 1])
    with pytest.raises(ValueError, match="F must be finite"):
        cumulative_regret(Linear(), [1, 1], [[np.nan, 1]], [0])


def test_as_weights_copies():
    mine = np.ones(2)
    assert as_weights(mine) is not mine
