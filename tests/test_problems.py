"""The problems: norms by two routes, their invariances, the data that is bundled, and files that need washing."""

import gzip
import logging
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mtbo_nb.kernels import ICM, LMC, SE, Diagonal, Matern, similar_tasks
from mtbo_nb.problems import (
    PROBLEMS,
    Nugget,
    Problem,
    Readings,
    branin,
    fit_icm,
    intel_lab,
    intel_readings,
    neighbour_norm,
    paper_norm,
    perturbed_sine,
    rkhs_function,
    rkhs_norm,
    sensor_problem,
    shifted_branin,
    split_readings,
    task_matrix,
    weather,
    weather_readings,
    with_paper_norm,
)

X = np.linspace(0, 1, 6)[:, None]


def dense_norm(kernel, X, F):
    return np.sqrt(F.ravel() @ np.linalg.solve(kernel.gram(X), F.ravel()))


# norms


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 4))
def test_rkhs_norm_equals_the_dense_formula(seed, n):
    rng = np.random.default_rng(seed)
    A, F = rng.normal(size=(n + 1, n)), rng.normal(size=(6, n))
    kernel = Matern(1.5, 0.3) * (A.T @ A + 0.1 * np.eye(n))
    assert np.isclose(rkhs_norm(kernel, X, F), dense_norm(kernel, X, F), rtol=1e-7)
    halves = LMC([(Matern(1.5, 0.3), kernel.B / 2), (Matern(1.5, 0.3), kernel.B / 2)])
    assert np.isclose(rkhs_norm(halves, X, F), rkhs_norm(kernel, X, F), rtol=1e-7)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000), st.floats(0.01, 100))
def test_rkhs_norm_is_a_norm_and_scales_with_the_kernel(seed, c):
    F, G = np.random.default_rng(seed).normal(size=(2, 6, 2))
    kernel = ICM(Matern(0.5, 0.2), [[1, 0.3], [0.3, 2]])
    norm = rkhs_norm(kernel, X, F)
    assert np.isclose(rkhs_norm(kernel, X, c * F), c * norm)
    assert np.isclose(rkhs_norm(ICM(kernel.k, c**2 * kernel.B), X, F), norm / c)
    assert rkhs_norm(kernel, X, F + G) <= norm + rkhs_norm(kernel, X, G) + 1e-9
    assert np.linalg.norm(F, axis=1).max() <= np.sqrt(kernel.kappa()) * norm + 1e-9
    assert rkhs_norm(kernel, X, F, 1.0) <= rkhs_norm(kernel, X, F, 0.1) <= norm


def test_unrelated_tasks_add_their_squares():
    F = np.random.default_rng(0).normal(size=(6, 2))
    kernels = [SE(0.1), Matern(0.5, 0.2)]
    parts = [rkhs_norm(k * np.eye(1), X, F[:, [j]]) for j, k in enumerate(kernels)]
    assert np.isclose(rkhs_norm(Diagonal(kernels), X, F), np.hypot(*parts))


def test_a_singular_gram_matrix_is_refused_without_a_ridge():
    net = np.linspace(0, 1, 101)[:, None]
    with pytest.raises(ValueError, match="ridge"):
        rkhs_norm(SE(0.2) * np.eye(1), net, np.sin(net))
    with pytest.raises(ValueError, match="ridge"):
        rkhs_norm(SE(0.2) * np.ones((2, 2)), X, np.ones((6, 2)))
    assert rkhs_norm(SE(0.2) * np.eye(1), net, np.sin(net), 1e-6) > 0
    with pytest.raises(ValueError, match="ridge"):
        rkhs_norm(SE(0.2) * np.eye(1), X, X, -1.0)


def test_neighbour_is_within_its_tolerance():
    sine = perturbed_sine(tolerance=0.05)
    norm, ridge = neighbour_norm(sine.kernel, sine.X, sine.F, 0.05)
    G = sine.kernel.gram(sine.X)
    c = np.linalg.solve(G + ridge * np.eye(len(G)), sine.F.ravel())
    assert np.linalg.norm((G @ c).reshape(sine.F.shape) - sine.F, axis=1).max() <= 0.05 * (1 + 1e-6)
    assert np.isclose(np.sqrt(c @ G @ c), norm) and norm == sine.norm_bound
    assert perturbed_sine(tolerance=0.2).norm_bound < norm
    with pytest.raises(ValueError, match="tolerance must be at least"):
        neighbour_norm(sine.kernel, sine.X, sine.F, 1e-9)


# the functions


@pytest.mark.parametrize("n", [1, 2, 20])
def test_rkhs_function_knows_its_norm(n):
    for seed in range(5):
        problem = rkhs_function(n, seed)
        assert np.isclose(rkhs_norm(problem.kernel, problem.X, problem.F, 1e-10), problem.norm_bound, rtol=1e-4)
        assert np.linalg.norm(problem.F, axis=1).max() <= problem.norm_bound * np.sqrt(problem.kernel.kappa()) + 1e-9
        assert np.allclose(problem.value(problem.X[17]), problem.F[17])


def test_the_paper_bound_is_an_option_and_heuristic():
    problem = rkhs_function(20, 1, norm="paper")
    assert problem.norm_bound == np.linalg.norm(problem.F, axis=1).max() / problem.kernel.kappa() == paper_norm(problem)
    assert not problem.norm_bound_is_exact and problem.norm_bound < rkhs_function(20, 1).norm_bound
    with pytest.raises(ValueError, match="norm must be 'true' or 'paper'"):
        rkhs_function(norm="neighbour")


def test_sine_is_what_the_paper_says():
    sine = perturbed_sine()
    assert sine.F.shape == (101, 4) and sine.kernel == similar_tasks(SE(0.2), 4, 0.4) and sine.noise_std == 0.1
    unperturbed = perturbed_sine(weights=np.zeros((4, 3)))
    assert np.allclose(unperturbed.F, np.sin(2 * np.pi * sine.X))
    with pytest.raises(ValueError, match="weights"):
        perturbed_sine(weights=[[1.0, 2.0]])


def test_branin_is_shifted_and_standardised():
    problem = shifted_branin(side=21)
    assert problem.F.shape == (441, 9) and abs(problem.F.mean()) < 1e-12 and np.isclose(problem.F.std(), 1)
    point = np.array([0.4, 0.6])
    for i in range(9):
        assert np.isclose(-problem.natural(problem.value(point))[i], branin([point - (i + 1) / 100])[0])
    with pytest.raises(ValueError, match="side"):
        shifted_branin(side=1)


@pytest.mark.parametrize("name", list(PROBLEMS))
def test_every_problem_is_sound(name):
    problem = PROBLEMS[name](0)
    again = PROBLEMS[name](0)
    assert np.array_equal(problem.F, again.F) and problem.kernel == again.kernel
    assert problem.name == name and name in repr(problem)
    assert problem.norm_bound * np.sqrt(problem.kernel.kappa()) >= np.linalg.norm(problem.F, axis=1).max() * 0.9
    rng = np.random.default_rng(0)
    y = problem.observe(3, rng)
    assert y.shape == problem.F[3].shape == problem.observe_at(problem.X[3], rng).shape
    assert (problem.reference <= problem.F).all() and (problem.bounds[:, 0] < problem.bounds[:, 1]).all()
    assert with_paper_norm(problem).norm_bound_is_exact is False


def test_the_global_random_state_is_left_alone():
    before = np.random.get_state()[1].copy()
    rkhs_function(3, 0).observe(0, np.random.default_rng(0))
    weather(0)
    assert np.array_equal(before, np.random.get_state()[1])


# the door


def tiny(**changes):
    fields = {"name": "tiny", "X": [[0.0], [1.0]], "F": [[0, 1], [1, 0]], "inputs": ("x",), "outputs": ("a", "b")}
    told = {"kernel": similar_tasks(SE(0.3), 2, 0.5), "noise_std": 0.0, "norm_bound": 1.0, "norm_bound_is_exact": False}
    return Problem(**{**fields, **told, **changes})


@pytest.mark.parametrize(
    "changes, word",
    [
        ({"X": [[0.0, 1.0], [1.0, 1.0]]}, "X must have shape"),
        ({"F": [[0, 1]]}, "F must have one entry a point"),
        ({"F": [[0, np.nan], [1, 0]]}, "F must be finite"),
        ({"labels": ("one",)}, "labels must have one entry a point"),
        ({"noise_std": -1.0}, "noise_std"),
        ({"norm_bound": 0.0}, "norm_bound"),
        ({"kernel": SE(0.3) * np.eye(3)}, "kernel must have 2 tasks"),
        ({"kernel": SE(0.3)}, "kernel must be a multi-task kernel"),
        ({"X": np.zeros((0, 1)), "F": np.zeros((0, 2))}, "X must hold at least one point"),
        ({"offset": [1.0, 2.0, 3.0]}, "offset must be"),
        ({"scale": np.inf}, "scale must be"),
        ({"scale": "a"}, "scale must be"),
    ],
)
def test_wrong_problems_are_refused(changes, word):
    with pytest.raises((TypeError, ValueError), match=word):
        tiny(**changes)


def test_experiments_and_units_are_checked():
    problem, rng = tiny(offset=[10.0, 0.0]), np.random.default_rng(0)
    for j in (-1, 2, 1000, None, 0.5, "a", True, [0]):
        with pytest.raises(ValueError, match=r"^j must be a whole number in 0, ..., 1"):
            problem.observe(j, rng)
    assert problem.observe(np.int64(1), rng).tolist() == [1, 0]
    for wrong in ([[1, 2, 3]], 1.0, [1.0], [], "a"):
        with pytest.raises((TypeError, ValueError), match=r"^Y must"):
            problem.natural(wrong)
    assert problem.natural(np.zeros((3, 4, 2))).shape == (3, 4, 2) and problem.natural([0, 1]).tolist() == [10, 1]


@pytest.mark.parametrize(
    ("attempt", "word"),
    [
        (lambda: rkhs_norm(SE(0.2) * np.eye(2), X, np.zeros((5, 2))), "F must have one row a point"),
        (lambda: rkhs_norm(SE(0.2) * np.eye(2), X, np.zeros((6, 3))), "F must have shape"),
        (lambda: rkhs_norm("k", X, np.zeros((6, 1))), "kernel must be"),
        (lambda: neighbour_norm(SE(0.2) * np.eye(2), X, np.zeros((5, 2)), 0.1), "F must have one row a point"),
        (lambda: neighbour_norm(SE(0.2) * np.eye(2), X[:0], np.zeros((0, 2)), 0.1), "X at least one"),
        (lambda: task_matrix(SE(0.2), X, np.zeros((5, 2))), "R must have one row a location"),
        (lambda: Nugget("k", 0.1), "k must be a scalar kernel"),
        (lambda: Nugget(SE(0.2) * np.eye(2), 0.1), "k must be a scalar kernel"),
        (lambda: shifted_branin(n_tasks=0), "n_tasks must be a whole number"),
        (lambda: shifted_branin(side=2.5), "side must be a whole number"),
        (lambda: rkhs_function(0), "n_tasks must be a whole number"),
        (lambda: rkhs_function(2, centres="a"), "centres must be a whole number"),
        (lambda: Readings([[0.0]], [0.5], [[1.0]], ("x",), ("y",), ("a",)), "station must hold whole numbers"),
        (lambda: Readings([[0.0]], [-1], [[1.0]], ("x",), ("y",), ("a",)), "station must lie in 0, ..., 0, got -1"),
    ],
)
def test_what_does_not_fit_is_named(attempt, word):
    with pytest.raises((TypeError, ValueError), match=word):
        attempt()


def test_a_scalar_kernel_is_one_task():
    F = np.random.default_rng(0).normal(size=(6, 1))
    assert np.isclose(rkhs_norm(SE(0.2), X, F), dense_norm(SE(0.2) * np.eye(1), X, F))


def test_branin_is_the_formula_on_the_whole_plane():
    a, c = 15 * -0.1 - 5, 15 * 1.2
    by_hand = (c - 5.1 / (4 * np.pi**2) * a**2 + 5 / np.pi * a - 6) ** 2 + 10 * (1 - 1 / (8 * np.pi)) * np.cos(a) + 10
    assert np.isclose(branin([[-0.1, 1.2]])[0], by_hand)


def test_without_a_function_only_candidates_have_a_value():
    problem = tiny(offset=[10.0, 0.0], scale=[2.0, -1.0])
    assert problem.observe_at([1.0], np.random.default_rng(0)).tolist() == [1, 0] and problem.index_of([0.0]) == 0
    assert problem.natural(problem.F).tolist() == [[10, -1], [12, 0]]
    with pytest.raises(ValueError, match="one of the 2 candidates"):
        problem.observe_at([0.5], np.random.default_rng(0))
    with pytest.raises(ValueError, match="x must have shape"):
        problem.value([0.0, 1.0])


# sensors


def some_readings(seed=0, S=15, each=7):
    rng = np.random.default_rng(seed)
    places, station = rng.uniform(size=(S, 2)), np.repeat(np.arange(S), each)
    values = np.sin(6 * places[station] @ [[1, 0.9], [0, 0.2]]) + 0.1 * rng.normal(size=(S * each, 2))
    return Readings(places, station, values, ("x", "y"), ("a", "b"), tuple(f"s{i}" for i in range(S)))


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(2, 9), min_size=1, max_size=8), st.integers(0, 1000))
def test_halves_share_out_every_reading_once(counts, seed):
    station = np.random.default_rng(seed).permutation(np.repeat(np.arange(len(counts)), counts))
    number = np.arange(len(station), dtype=float)[:, None]
    readings = Readings(np.arange(len(counts))[:, None], station, number, ("x",), ("y",), ("s",) * len(counts))
    first, second = split_readings(readings, np.random.default_rng(seed))
    assert first.counts().tolist() == [c // 2 for c in counts]
    assert np.array_equal(np.sort(np.concatenate([first.values, second.values]).ravel()), number.ravel())
    for half in (first, second):
        assert np.array_equal(station[half.values.ravel().astype(int)], half.station)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 1000), st.floats(0.05, 2), st.floats(0, 0.9))
def test_the_fitted_function_has_norm_sqrt_mn(seed, lengthscale, share):
    R = np.random.default_rng(seed).normal(size=(6, 2))
    k = Nugget(Matern(1.5, lengthscale), share)
    assert np.isclose(rkhs_norm(k * task_matrix(k, X, R), X, R), np.sqrt(12), rtol=1e-5)


def test_fit_beats_other_kernels():
    readings = some_readings()
    R = readings.means() - readings.means().mean(0)

    def loss(k):
        K = k(readings.locations)
        return np.linalg.slogdet(K)[1] + len(K) / 2 * np.linalg.slogdet(task_matrix(k, readings.locations, R))[1]

    for nugget in (False, True):
        best = loss(fit_icm(readings.locations, R, nugget=nugget).k)
        others = [SE([a, b]) for a in (0.1, 0.3, 1.0) for b in (0.1, 0.3, 1.0)]
        assert best <= min(loss(Nugget(k, 0.05) if nugget else k) for k in others) + 1e-6


def test_nugget_is_a_kernel():
    k = Nugget(0.5 * SE(0.2), 0.3)
    assert np.linalg.eigvalsh(k(np.linspace(0, 1, 50)[:, None]))[0] >= 0.15 - 1e-12
    assert np.allclose(np.diag(k(X)), k.diag(X)) and k.variance == 0.5
    assert np.allclose(k(X, X + 0.05), 0.7 * (0.5 * SE(0.2))(X, X + 0.05))
    assert k == Nugget(0.5 * SE(0.2), 0.3) != Nugget(0.5 * SE(0.2), 0.4)
    with pytest.raises(ValueError, match="share"):
        Nugget(SE(0.2), 1.0)


def test_sensor_problem_follows_the_recipe():
    readings = some_readings()
    problem = sensor_problem("net", readings, seed=4)
    first, second = split_readings(readings, np.random.default_rng(4))
    assert np.allclose(problem.natural(problem.F), first.means())
    R = (second.means() - problem.offset) / problem.scale
    assert np.allclose(R.mean(0), 0) and np.allclose(R.std(0), 1)
    assert np.allclose(problem.kernel.B, task_matrix(problem.kernel.k, problem.X, R))
    assert np.isclose(problem.noise_std**2, (second.variance() / problem.scale**2).max())
    assert problem.norm_bound_is_exact and np.isclose(
        problem.norm_bound, dense_norm(problem.kernel, problem.X, problem.F)
    )
    assert np.isclose(sensor_problem("net", readings, seed=4, repeats=4).noise_std, problem.noise_std / 2)


def test_sensor_problem_does_not_depend_on_the_units():
    readings = some_readings()
    kelvin = replace(readings, values=readings.values * [1e6, 1e-3] + [273.0, -5.0])
    one, two = sensor_problem("c", readings), sensor_problem("k", kelvin)
    assert np.allclose(one.F, two.F) and np.isclose(one.norm_bound, two.norm_bound, rtol=1e-4)
    assert np.allclose(two.natural(two.F), one.natural(one.F) * [1e6, 1e-3] + [273.0, -5.0])


def test_wrong_readings_are_refused():
    readings = some_readings()
    with pytest.raises(ValueError, match="two or more a station"):
        sensor_problem("net", replace(readings, station=readings.station[:99], values=readings.values[:99]))
    with pytest.raises(ValueError, match="must differ between stations, got one value of b"):
        sensor_problem("net", replace(readings, values=readings.values * [1, 0]))
    with pytest.raises(ValueError, match="distinct locations"):
        sensor_problem("net", replace(readings, locations=readings.locations[[0, *range(14)]]))
    with pytest.raises(ValueError, match="station must lie in"):
        replace(readings, station=readings.station + 1)
    with pytest.raises(ValueError, match="repeats"):
        sensor_problem("net", readings, repeats=0)


def test_weather_is_bundled_and_plausible():
    readings = weather_readings()
    assert len(readings.locations) == 53 and readings.counts().min() >= 25 and readings.counts().max() <= 30
    low, high = readings.values.min(0), readings.values.max(0)
    assert (low > [0, -15, 50]).all() and (high < [25, 10, 1500]).all()
    assert (readings.values[:, 0] > readings.values[:, 1]).all()
    problem = weather(0)
    assert problem.labels == readings.labels and problem.norm_bound_is_exact
    assert not np.array_equal(problem.F, weather(1).F)
    assert np.isclose(weather(0, repeats=1).noise_std, problem.noise_std * np.sqrt(10))


# the raw files of the lab


def write_lab(folder, days=("2004-02-28", "2004-02-29", "2004-03-01", "2004-03-10"), zipped=False):
    """Six motes, 20 readings a day; mote 3 dies on the third day."""
    rng = np.random.default_rng(0)
    lines = []
    for day in days:
        for e in range(20):
            for mote in range(1, 7):
                t, h, light, v = 18 + mote + rng.normal(), 40 - mote + rng.normal(), 100 + 30 * mote, 2.65
                if mote == 3 and day >= "2004-03-01":
                    t, h, v = 122.153, -4.0, 2.01
                lines.append(f"{day} 10:{e:02}:00.123456 {e} {mote} {t:.4f} {h:.4f} {light:.2f} {v:.5f}")
    text = "\n".join(lines) + "\n"
    data, locs = folder / ("data.txt.gz" if zipped else "data.txt"), folder / "mote_locs.txt"
    data.write_bytes(gzip.compress(text.encode()) if zipped else text.encode())
    locs.write_text("".join(f"{m} {4.0 * m} {m % 2 * 3.0}\n" for m in range(1, 8)))
    return data, locs


DIRT = {
    "short line": "2004-02-28 01:03:16.33 11 1 19.3024",
    "not a number": "2004-02-28 01:03:16.33 11 1 19.3 x 45.08 2.69",
    "unknown mote": "2004-02-28 01:03:16.33 11 33117 19.3 37.0 45.08 2.69",
    "impossible temperature": "2004-02-28 01:03:16.33 11 1 122.153 37.0 45.08 2.69",
    "impossible humidity": "2004-02-28 01:03:16.33 11 1 19.3 -4.01 45.08 2.69",
    "impossible light": "2004-02-28 01:03:16.33 11 1 19.3 37.0 -1.0 2.69",
    "impossible voltage": "2004-02-28 01:03:16.33 11 1 19.3 37.0 45.08 1.9",
}


@pytest.mark.parametrize("reason", list(DIRT))
def test_each_kind_of_dirt_is_dropped_and_logged(tmp_path, caplog, reason):
    data, locs = write_lab(tmp_path)
    clean = intel_readings(data, locs, days=2)
    data.write_text(DIRT[reason] + "\n\n" + data.read_text())
    with caplog.at_level(logging.INFO, logger="mtbo_nb.problems"):
        washed = intel_readings(data, locs, days=2)
    assert np.array_equal(washed.values, clean.values) and reason in caplog.text


def test_nan_is_dirt(tmp_path):
    data, locs = write_lab(tmp_path)
    data.write_text("2004-02-28 01:03:16.33 11 1 nan 37.0 45.08 2.69\n" + data.read_text())
    assert np.isfinite(intel_readings(data, locs).values).all()


def test_days_motes_and_variables(tmp_path):
    data, locs = write_lab(tmp_path, zipped=True)
    readings = intel_readings(data, locs)
    assert readings.labels == tuple(f"mote {m}" for m in range(1, 7))  # mote 7 has no reading
    assert readings.counts().tolist() == [60, 60, 40, 60, 60, 60]  # five days: the tenth of March is out
    assert readings.outputs == ("temperature", "light", "humidity") and readings.values[:, 1].min() == 130
    everything = intel_readings(data, locs, start=None, days=None, variables=("voltage", "humidity"))
    assert len(everything.values) == 4 * 120 - 40 and np.allclose(everything.values[:, 0], 2.65)
    assert readings.locations[1].tolist() == [8.0, 0.0]


def test_intel_lab_is_a_sensor_problem(tmp_path):
    problem = intel_lab(*write_lab(tmp_path), variables=("temperature", "humidity"))
    assert problem.name == "intel" and problem.F.shape == (6, 2) and problem.norm_bound_is_exact
    assert problem.labels[problem.F[:, 0].argmax()] == "mote 6" and problem.labels[problem.F[:, 1].argmax()] == "mote 1"


def test_a_lab_without_clean_readings_is_refused(tmp_path):
    data, locs = write_lab(tmp_path)
    with pytest.raises(ValueError, match="two clean readings"):
        intel_readings(data, locs, start="1999-01-01")
    with pytest.raises(ValueError, match="variables must be among"):
        intel_readings(data, locs, variables=("pressure",))
