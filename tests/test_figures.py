"""The figures: every definition plays, by function and by command; what is stored loads and says what the pages say."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from mtbo_nb.baselines import ITBKB, ITKB, MOBO, RandomSearch
from mtbo_nb.cli import main
from mtbo_nb.experiments import as_problem
from mtbo_nb.figures import (
    FIGURES,
    METHODS,
    Thinned,
    draw_figure,
    figure_names,
    promise,
    reproduce,
    similar_function,
    thin,
)
from mtbo_nb.mtbkb import MTBKB, paper_q
from mtbo_nb.problems import rkhs_norm
from mtbo_nb.scalarization import Chebyshev, Linear

STORED = Path(__file__).parent.parent / "nbs" / "figures" / "data"
PLAYED = [name for name, figure in FIGURES.items() if not figure.runs]
ON_PROBLEMS = [name for name in PLAYED if name != "fig1a"]


def stored(name):
    return Thinned.load(STORED / f"{name}.npz")


@pytest.mark.parametrize("name", FIGURES)
def test_every_definition_plays_from_the_command(name, tmp_path, capsys):
    out = tmp_path / "out"
    line = ["reproduce", name, "--trials", "2", "--rounds", "4", "--jobs", "1", "--no-progress", "--out", str(out)]
    assert main(line) == 0
    shown = capsys.readouterr().out
    assert {path.name for path in out.iterdir()} == {
        f"{each}.{kind}" for each in figure_names(name) for kind in ("npz", "png")
    }
    curves = Thinned.load(out / f"{name}.npz")
    assert curves.methods == tuple(FIGURES[name].contenders) and curves.seeds == (0, 1)
    assert curves.rounds.tolist() == [1, 2, 3, 4] and np.isfinite(curves.average).all()
    assert all(label in shown for label in curves.methods) and "Problem" in shown
    assert (out / f"{name}.png").read_bytes()[:4] == b"\x89PNG"


def test_the_same_runs_are_played_once(tmp_path, monkeypatch):
    played = []

    def spy(name, *args, **options):
        played.append(name)
        return reproduce(name, *args, **options)

    monkeypatch.setattr("mtbo_nb.cli.reproduce", spy)
    options = ["--trials", "1", "--rounds", "2", "--jobs", "1", "--no-progress", "--out", str(tmp_path)]
    assert main(["reproduce", "fig1b", "fig3a", "fig1b", *options]) == 0
    assert played == ["fig1b"]
    a, b = (Thinned.load(tmp_path / f"{name}.npz") for name in ("fig1b", "fig3a"))
    np.testing.assert_array_equal(a.average, b.average)


def test_the_intel_lab_is_used_where_it_is_given(tmp_path, capsys):
    rng, data, locs = np.random.default_rng(0), tmp_path / "data.txt", tmp_path / "mote_locs.txt"
    locs.write_text("".join(f"{m} {2.0 * m} {m % 3}\n" for m in range(1, 8)))
    values = rng.normal([20, 40, 100], [1, 2, 10], size=(7, 12, 3)) + 3 * rng.normal(size=(7, 1, 3))
    rows = [(m, e, *values[m - 1, e].round(3)) for m in range(1, 8) for e in range(12)]
    data.write_text("".join(f"2004-02-28 00:00:{e:02} {e} {m} {t} {h} {light} 2.7\n" for m, e, t, h, light in rows))
    options = ["--trials", "2", "--rounds", "3", "--jobs", "1", "--no-progress", "--out", str(tmp_path / "out")]
    assert main(["reproduce", "fig1f", "--intel", str(data), str(locs), *options]) == 0
    assert "Problem 'intel': 7 points" in capsys.readouterr().out
    assert Thinned.load(tmp_path / "out" / "fig1f.npz").problem == "intel"
    assert main(["reproduce", "fig1f", *options]) == 0
    assert "Problem 'weather': 53 points" in capsys.readouterr().out


@pytest.mark.parametrize(
    "line", ["reproduce", "reproduce fig9", "reproduce fig1b --trials 0", "reproduce fig1f --intel one.txt"]
)
def test_wrong_arguments_are_usage_errors(line, capsys):
    with pytest.raises(SystemExit) as stop:
        main(line.split())
    assert stop.value.code == 2 and "usage: mtbo" in capsys.readouterr().err


def test_a_missing_file_is_one_line(tmp_path, capsys):
    assert main(["reproduce", "fig1f", "--intel", "no.txt", "no.txt", "--jobs", "1", "--out", str(tmp_path)]) == 1
    error = capsys.readouterr().err
    assert error.startswith("mtbo: error:") and "no.txt" in error


def test_settings_are_the_papers():
    problem = as_problem("rkhs2", 0)
    for label, contender in METHODS.items():
        opt = contender.recipe(T=50)(problem, 0)
        assert opt.eta == 0.1 and isinstance(opt.scalarization, Chebyshev)
        assert promise(contender, problem) == (
            "probability 0.9" if contender.norm == "true" else promise(contender, problem)
        )
        if not isinstance(opt, MOBO):
            assert (opt.parts[0] if isinstance(opt, ITBKB) else opt).delta == 0.1
        assert label.startswith({MOBO: "MOBO", ITKB: "IT-KB", ITBKB: "IT-BKB"}.get(type(opt), "MT-"))
    budget = METHODS["MT-BKB, paper's b"].recipe(T=50)(problem, 0)
    assert isinstance(budget, MTBKB) and (budget.resample, budget.epsilon, budget.band) == ("every", 0.5, "paper")
    assert budget.rate(1, 1, 1.0) == paper_q(50, 0.1, 0.5)
    assert METHODS["MT-BKB, paper's b"].recipe(T=50, resample="adaptive")(problem, 0).resample == "adaptive"


def test_scores_of_the_figures():
    assert isinstance(FIGURES["fig2b"].options["scalarization"], Linear)
    worst = METHODS["MT-KB, norm bound"].recipe(**FIGURES["fig1f_worst"].options)(as_problem("weather", 0), 0)
    np.testing.assert_array_equal(worst.scalarization.reference, as_problem("weather", 0).reference)


@pytest.mark.parametrize("omega", [0.0, 0.3, 1.0])
def test_similar_functions_have_their_norm(omega):
    problem = similar_function(omega, seed=5, n_tasks=3)
    if omega:
        assert np.isclose(rkhs_norm(problem.kernel, problem.X, problem.F, ridge=1e-10), problem.norm_bound, rtol=1e-3)
    else:
        np.testing.assert_allclose(problem.F, problem.F[:, :1] * np.ones(3), atol=1e-12)


def test_reproduce_uses_any_executor_and_problem():
    here = reproduce("fig1b", trials=2, T=5, progress=False)
    with ThreadPoolExecutor(2) as pool:
        there = reproduce("fig1b", pool, trials=2, T=5, progress=False)
    np.testing.assert_array_equal(here.regret, there.regret)
    other = reproduce("fig1b", trials=1, T=3, problem="sine", progress=False)
    assert other.problem == "sine"


def test_names():
    assert figure_names("fig2") == ["fig2a", "fig2b"] and figure_names("all") == list(FIGURES)
    for wrong in ("", "fig0"):
        with pytest.raises(ValueError, match="name must be"):
            figure_names(wrong)
    with pytest.raises(ValueError, match="name must be"):
        reproduce("fig2")


def test_thinning_keeps_what_it_keeps(tmp_path):
    results = reproduce("fig1b", trials=2, T=60, progress=False)
    kept = thin(results, points=12)
    assert {1, 2, 5, 10, 15, 20, 30, 50, 60} <= set(kept.rounds.tolist()) and len(kept.rounds) < 25
    np.testing.assert_array_equal(kept.average, results.average[..., kept.rounds - 1])
    assert repr(kept.summary(at=[10, 60])) == repr(results.summary(at=[10, 60]))
    kept.save(tmp_path / "kept.npz")
    back = Thinned.load(tmp_path / "kept.npz")
    np.testing.assert_allclose(back.bayes, kept.bayes, rtol=1e-6)
    label, rival = "MOBO", "MT-KB, paper's b"
    gap = results.average[results.methods.index(rival), :, 9] - results.average[results.methods.index(label), :, 9]
    assert np.isclose(kept.lead(label, rival, at=10), gap.mean() / gap.std(ddof=1))
    assert kept.only([rival]).means(at=10)[rival] == kept.means(at=10)[rival]
    with pytest.raises(ValueError, match="at must be one of the rounds"):
        kept.means(at=59)


@pytest.mark.parametrize(
    ("attempt", "message"),
    [
        (lambda curves: curves.lead("MOBO", "MTKB"), "rival must be one of"),
        (lambda curves: curves.lead("MTKB", "MOBO"), "method must be one of"),
        (lambda curves: curves.lead("MOBO", "MT-KB, paper's b", what="hypervolume"), "what must be"),
        (lambda curves: curves.only(["MOBO", "MTKB"]), "methods must be one of"),
    ],
)
def test_a_name_that_does_not_exist_is_named(attempt, message):
    with pytest.raises(ValueError, match=message):
        attempt(stored("fig1b"))


def test_panels_and_drawing():
    assert list(FIGURES["fig1b"].panels()) == ["the paper's b: no guarantee", "norm bound that holds"]
    assert "norm of a neighbour: a guess" in FIGURES["fig3b"].panels()
    assert len(FIGURES["fig1a"].panels()) == 3
    drawn = draw_figure("fig3a", stored("fig1b"))
    assert [len(ax.lines) for ax in drawn.axes] == [5, 4] and drawn.axes[0].get_yscale() == "log"
    assert drawn.axes[0].get_ylabel() == "Bayes regret" and drawn.axes[0].get_xlim()[0] == 1


@pytest.mark.parametrize("name", PLAYED)
def test_what_is_stored_is_small_and_complete(name):
    assert (STORED / f"{name}.npz").stat().st_size < 100_000
    curves, figure = stored(name), FIGURES[name]
    assert curves.methods == tuple(figure.contenders) and len(curves.seeds) == figure.trials == 10
    assert curves.rounds[0] == 1 and curves.rounds[-1] == figure.T == 1000
    assert (curves.average >= 0).all() and (np.diff(curves.bayes, axis=2) <= 1e-7).all()


@pytest.mark.parametrize("name", PLAYED)
def test_what_is_stored_is_what_would_be_played(name):
    """The first twenty rounds of one trial, for methods without a horizon: a short run begins like a long one."""
    figure, kept = FIGURES[name], stored(name)
    short = thin(reproduce(name, trials=1, T=20, progress=False))
    same = [label for label, c in figure.contenders.items() if c.method not in (MTBKB, ITBKB)]
    a, b = short.only(same), kept.only(same)
    for t in (1, 5, 10, 20):
        first, again = (curves.average[:, 0, list(curves.rounds).index(t)] for curves in (b, a))
        np.testing.assert_allclose(first, again, rtol=1e-5)


@pytest.mark.parametrize("name", ON_PROBLEMS)
def test_together_beats_alone(name):
    curves = stored(name)
    for pair in ("{}-KB, paper's b", "{}-BKB, paper's b", "{}-KB, norm bound"):
        together, alone = pair.format("MT"), pair.format("IT")
        margin = 0.5 if name == "fig1f_worst" else 1.0  # few differences between rough stations
        assert curves.lead(together, alone) > margin, (name, pair)
        assert curves.wins(together, alone) >= 8


@pytest.mark.parametrize("name", [name for name in ON_PROBLEMS if not name.startswith("fig1f")])
def test_narrower_bands_beat_the_published_one(name):
    curves = stored(name)
    for radius in ("tight", "data"):
        assert curves.lead(f"MT-KB, directional, {radius}", "MT-KB, norm bound") > 1
    assert curves.lead("MT-KB, directional, data", "MT-KB, directional, tight") > 1


def test_where_they_do_not():
    """On the stations with the reference zero the narrow width is worse, and from the worst value much less so."""
    zero, worst = stored("fig1f"), stored("fig1f_worst")
    pair = "MT-KB, norm bound", "MT-KB, directional, data"
    assert zero.lead(*pair) > 1
    ratios = [curves.means()[pair[1]] / curves.means()[pair[0]] for curves in (zero, worst)]
    assert ratios[0] > 1.5 > 1.4 > ratios[1]


def test_similarity():
    curves, end = stored("fig1a"), stored("fig1a").means()
    for way in ("as published", "directional, tight", "blind choice"):
        row = [end[f"omega = {omega:g}; {way}"] for omega in (0, 0.1, 0.3, 0.6, 1)]
        assert sorted(row) == row
    assert curves.lead("omega = 0; directional, tight", "omega = 1; directional, tight") > 2


def test_blind_choice_is_random_search():
    assert FIGURES["fig1a"].contenders["omega = 1; blind choice"].method is RandomSearch
