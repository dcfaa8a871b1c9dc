"""The safe benchmark: functions of known norm, campaigns, results; and the safe baselines."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mtbo_nb.baselines import PublishedBand, PublishedSet, SafeBO, SafeICM, SafePublished, SafeUCB
from mtbo_nb.kernels import SE, Matern
from mtbo_nb.mtkb import Box, Finite
from mtbo_nb.safe import SafeMTBO
from mtbo_nb.safe_benchmark import (
    FIGURE_2,
    FIGURE_3,
    SAFE_FIGURES,
    Feature,
    SafeResults,
    SafeTrial,
    gather_trials,
    random_bumps,
    reproduce_safe,
    safe_problem,
    safe_trial,
    shared_correlation,
)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 1000), st.floats(0.5, 40.0), st.integers(1, 4))
def test_bumps_have_the_norm_that_is_asked_for(seed, norm, d):
    bounds = np.array([[-1.0, 1.0]] * d)
    g = random_bumps(Matern(2.5, 0.3), norm, bounds, np.random.default_rng(seed), size=32)
    K = g.kernel(g.centres)
    assert np.isclose(g.weights @ K @ g.weights, norm**2)
    np.testing.assert_allclose(g(g.centres), K @ g.weights)
    assert np.abs(g.centres).max() <= 1


def test_a_problem_starts_where_the_paper_says_and_knows_its_best_value():
    problem, again = safe_problem(FIGURE_2, 5), safe_problem(FIGURE_2, 5)
    assert -0.55 <= problem(problem.start[None])[0, 0] <= 0 and problem.side.shape == (17, 4)
    assert np.array_equal(problem.side[-1], problem.start) and problem.best == again.best
    X = np.random.default_rng(0).uniform(-1, 1, (4000, 4))
    assert problem(X)[:, 0].max() <= problem.best


def test_two_features_of_one_kernel_are_one_feature():
    """The sample correlation of both tasks, over points and problems, against the formula."""
    X = np.random.default_rng(0).uniform(-1, 1, (3000, 4))
    for features in (FIGURE_2, FIGURE_3):
        r = [np.corrcoef(safe_problem(features, s)(X).T)[0, 1] for s in range(6)]
        assert abs(np.mean(r) - shared_correlation(features)) < 0.05


@pytest.mark.parametrize("rule", ["published, ICM", "theorem, LMC", "sharp, LMC", "risk, ICM", "theorem, plant alone"])
def test_rules_play_and_travel(rule):
    rules = SAFE_FIGURES["safe2"][1]
    problem, made = safe_problem(FIGURE_2, 1), pickle.loads(pickle.dumps(rules[rule]))
    trial = safe_trial(problem, made, rounds=3)
    assert trial.regret.shape == (4,) and (np.diff(trial.regret) <= 0).all() and trial.regret[-1] >= 0
    assert trial.unsafe.shape == trial.risk.shape == trial.certified.shape == (3,)
    by_risk = rule.startswith("risk")  # a band charges nothing; the rule of risk does, within its budget
    assert (trial.risk > 0).all() == by_risk and (trial.risk.sum() <= 0.05) and (trial.risk == 0).all() != by_risk


def fake(regret, unsafe):
    """A trial with these numbers."""
    n = len(unsafe)
    return SafeTrial(np.array(regret, dtype=float), np.array(unsafe, dtype=bool), np.full(n, 0.01), np.ones(n), 0.5)


def test_results_count_and_come_back(tmp_path):
    trials = [fake([3, 2], [0]), fake([3, 1], [1]), fake([4, 4], [0]), fake([4, 0.5], [0])]
    results = gather_trials("safe2", ["risk, ICM", "risk, LMC"], [7, 8], trials)
    assert results.median("risk, ICM") == 1.5 and results.broken("risk, ICM") == 1 and results.broken("risk, LMC") == 0
    assert results.wins("risk, ICM", "risk, LMC") == (1, 1)
    results.save(tmp_path / "r.npz")
    back = SafeResults.load(tmp_path / "r.npz")
    assert back.rules == results.rules and back.seeds == (7, 8) and (back.unsafe == results.unsafe).all()
    np.testing.assert_allclose(back.regret, results.regret)
    assert "2.250" in repr(results.summary(at=[1]))  # the median of 4 and 0.5
    with pytest.raises(ValueError, match="rule must be one of"):
        results.median("magic")


def test_bad_figures():
    for options, words in [({"name": "x"}, "name"), ({"rules": ["x"]}, "rules"), ({"seeds": []}, "seeds")]:
        with pytest.raises(ValueError, match=words):
            reproduce_safe(**{"name": "safe2", "progress": False} | options)


@pytest.mark.parametrize(
    ("name", "bad"),
    [
        *[("features", bad) for bad in ([], [3], "ab", None, FIGURE_2[0])],
        *[("seed", bad) for bad in (-1, 0.5, "a", True, None)],
        *[("limit", bad) for bad in (np.nan, np.inf, "a", None, [0.0], 5.0)],  # the last is above the start
        *[("bounds", bad) for bad in ([0, 1], [[1, 0]], "a", None, [], [[0, np.nan]])],
    ],
)
def test_bad_problems(name, bad):
    good = {"features": [Feature(SE(0.5), 2.0, 0.9)], "seed": 0, "bounds": [[0, 1]]}
    assert safe_problem(**good).limit == -1.0
    with pytest.raises((TypeError, ValueError), match=name):
        safe_problem(**good | {name: bad})


@pytest.mark.parametrize(
    ("name", "bad"),
    [
        *[("kernel", bad) for bad in (None, 0.2, "SE", [SE(0.2)])],
        *[("norm", bad) for bad in (0.0, -1.0, np.nan, "a")],
        *[("correlation", bad) for bad in (2, 1.0, -1, np.nan, "a", None)],
    ],
)
def test_bad_features(name, bad):
    with pytest.raises((TypeError, ValueError), match=name):
        Feature(**{"kernel": SE(0.2), "norm": 1.0, "correlation": 0.5} | {name: bad})


@pytest.mark.parametrize(
    ("name", "bad"),
    [
        *[("name", bad) for bad in (None, ["safe2"], 2)],
        *[("rules", bad) for bad in ("risk, ICM", 3, [], [3], [["risk, ICM"]])],
        *[("seeds", bad) for bad in (3, "ab", None, [0.5], [-1], np.array([0.5]), np.array([]))],
        *[("rounds", bad) for bad in (0, 2.5, "a", None)],
    ],
)
def test_bad_campaigns(name, bad):
    """The words come before the first campaign is played."""
    with pytest.raises((TypeError, ValueError), match=name):
        reproduce_safe(**{"name": "safe2", "progress": False} | {name: bad})


def test_seeds_may_be_an_array():
    results = reproduce_safe("safe2", rules=["risk, plant alone"], rounds=1, seeds=np.array([3]), progress=False)
    assert results.seeds == (3,) and type(results.seeds[0]) is int


@pytest.mark.parametrize("at", [99, 2, -3, 0.5, "a", None, True])
def test_runs_that_were_not_made(at):
    results = gather_trials("safe2", ["risk, ICM"], [7], [fake([3, 2], [0])])
    for read in (results.median, lambda rule, at: results.wins(rule, rule, at)):
        with pytest.raises(ValueError, match="at must be a number of runs from 0 to 1"):
            read("risk, ICM", at)
    assert [results.median("risk, ICM", n) for n in (0, 1, -1, -2)] == [3, 2, 2, 3]
    with pytest.raises(ValueError, match="trials must be 1 x 2"):
        gather_trials("safe2", ["risk, ICM"], [7, 8], [fake([3, 2], [0])])


# ------------------------------------------------------------------------------------------- the safe baselines

GRID = Finite(np.linspace(0, 1, 31)[:, None])
COMMON = {"thresholds": -1.0, "noise_std": 0.05}
PLANT, SIDE = ([[0.5]], [0.3]), ([[0.5], [0.1]], [0.2, 0.0])


def test_the_plant_alone_is_the_same_framework_with_one_task():
    alone = SafeBO([SE(0.2)], GRID, data=[PLANT], seed=0, **COMMON)
    same = SafeMTBO([SE(0.2)], GRID, n_tasks=1, data=[PLANT], seed=0, **COMMON)
    assert alone.ask().task == 0 and np.array_equal(alone.ask().x, same.ask().x) and alone.stated == same.stated


def test_outputs_of_a_plant_are_learnt_independently():
    limits = {1: (None, 0.5)}
    opt = SafeBO([SE(0.2)], GRID, n_tasks=2, thresholds=limits, noise_std=0.05, data=[PLANT, ([[0.5]], [-1.0])])
    before = opt.predict([[0.6]], 0)
    opt.tell([0.5], [0.3, -5.0])
    assert np.isclose(before[0], opt.predict([[0.6]], 0)[0], atol=0.05) and opt.side_tasks == []
    with pytest.raises(ValueError, match="limit every task"):
        SafeBO([SE(0.2)], GRID, n_tasks=2, data=[PLANT, SIDE], **COMMON)


def test_what_is_not_proved_states_nothing():
    for opt in (
        SafeUCB([SE(0.2)], GRID, data=[PLANT], **COMMON),
        SafePublished([SE(0.2)], GRID, data=[PLANT, SIDE], supplementary=0, **COMMON),
        SafeMTBO([SE(0.2)], GRID, data=[PLANT, SIDE], certificate="sharp", beta=4.0, supplementary=0, **COMMON),
    ):
        assert opt.stated is None and "nothing stated" in opt.ask().certificate
    assert SafeUCB([SE(0.2)], GRID, data=[PLANT], sqrt_beta=3.0, **COMMON).beta == 9.0
    with pytest.raises(ValueError, match="sqrt_beta"):
        SafeUCB([SE(0.2)], GRID, data=[PLANT], sqrt_beta=-1.0, **COMMON)


def test_published_simplification_drops_gamma_the_union_and_negative_correlations():
    X = GRID.X[::3]
    opposed = [(X[::3], np.sin(6 * X[::3, 0])), (X, -np.sin(6 * X[:, 0]))]  # the simulation is upside down
    opt = SafePublished([SE(0.2)], GRID, data=opposed, supplementary=0, **{**COMMON, "thresholds": -2.0})
    assert np.isclose(opt.beta, 2 * np.log(31 / 0.05))
    opt.ask()
    lo, hi = opt.rule.correlations.interval(opt.belief.parts[0].correlation, opt)
    assert lo == hi == 0.0  # the credible interval is negative: nothing is left but independence
    assert PublishedBand().multiplier(opt.scaling) == opt.scaling.nu + np.sqrt(opt.scaling.beta)


def test_no_draw_is_left_to_the_published_rule():
    """Three tasks with negative correlations: the error says why, whatever the number of draws."""
    negative = np.array([[[1.0, -0.5, 0.1], [-0.5, 1.0, 0.1], [0.1, 0.1, 1.0]]])
    stack = np.stack([negative, np.abs(negative)])
    assert np.array_equal(PublishedSet().keep(stack), stack[1:])
    with pytest.raises(RuntimeError, match=r"drops every draw with a negative correlation.*SafeMTBO"):
        PublishedSet().keep(stack[:1])


@pytest.mark.parametrize(
    ("make", "name", "value"),
    [
        (SafeBO, "correlation", "lkj"),
        (SafeUCB, "correlation", "lkj"),
        (SafeUCB, "beta", 4.0),
        (SafeUCB, "certificate", "risk"),
        (SafePublished, "certificate", "theorem"),
        (SafePublished, "beta", None),
    ],
)
def test_options_that_a_class_fixes(make, name, value):
    with pytest.raises(TypeError, match=f"^{name} is fixed by {make.__name__} .*; leave it out or use SafeMTBO"):
        make([SE(0.2)], GRID, **COMMON | {name: value})


def test_one_kernel_is_fixed():
    with pytest.raises(TypeError, match="kernels is fixed by SafeICM"):
        SafeICM(SE(0.2), GRID, kernels=[SE(0.2)], **COMMON)


@pytest.mark.parametrize(
    ("make", "name", "bad"),
    [
        *[(make, "kernels", bad) for make in (SafeBO, SafeUCB) for bad in (SE(0.2), [], [3], "ab", None)],
        *[(SafeBO, "n_tasks", bad) for bad in ("2", 1.0, -1, 0, True)],
        *[(SafeUCB, "sqrt_beta", bad) for bad in ("a", None, 0.0, np.nan)],
        *[(SafePublished, "delta", bad) for bad in ("a", 0, 2, None)],
        *[(SafePublished, "domain", bad) for bad in (None, "a", [[0.1]], GRID.X)],
        *[(SafeICM, "kernel", bad) for bad in (None, [SE(0.2)], 0.2)],
    ],
)
def test_bad_safe_baselines(make, name, bad):
    first = {"kernel": SE(0.2)} if make is SafeICM else {"kernels": [SE(0.2)]}
    with pytest.raises((TypeError, ValueError), match=name):
        make(**first | {"domain": GRID} | COMMON | {name: bad})


@pytest.mark.parametrize("tau", ["a", 0.0, -1.0, None])
def test_bad_mesh_of_a_box(tau):
    with pytest.raises((TypeError, ValueError), match="tau"):
        SafePublished([SE(0.2)], Box([[0, 1]]), tau=tau, **COMMON)


def test_one_kernel_for_all_tasks():
    icm = SafeICM(SE(0.2), Box([[0, 1]]), data=[PLANT, SIDE], **COMMON)
    assert len(icm.models[0].kernels) == 1 and icm.models[0].unknown == [0]


def test_the_optimiser_does_not_share_the_stream_that_drew_the_problem():
    problem, seen = safe_problem(FIGURE_2, 73), []

    def make(*args, **options):
        seen.append(SafeMTBO([SE(0.2)], *args, **options))
        return seen[0]

    safe_trial(problem, make, rounds=1, seed=73)
    centres = np.concatenate([g.centres for _, functions in problem.parts for g in functions])
    gaps = np.abs(seen[0].data.X[:, None] - centres).max(-1)
    assert gaps.min() > 1e-6
