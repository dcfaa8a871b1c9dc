"""The command: what it prints and writes, its exit statuses, and that it needs no display."""

import os
import subprocess
import sys

import numpy as np
import pytest

import mtbo_nb
from mtbo_nb.cli import DEMO, main, picture, promise
from mtbo_nb.experiments import Results, trials
from mtbo_nb.problems import PROBLEMS

QUICK = ["demo", "--trials", "1", "--rounds", "6", "--jobs", "1", "--no-progress"]


def test_demo_writes_what_it_says(tmp_path, capsys):
    out = tmp_path / "new" / "folder"
    assert main([*QUICK, "--out", str(out), "--problems", "weather", "sine"]) == 0
    shown = capsys.readouterr().out
    assert {path.name for path in out.iterdir()} == {
        "regret.png",
        "report.txt",
        *(f"{name}.{kind}" for name in ("weather", "sine") for kind in ("npz", "csv")),
    }
    assert str(out / "regret.png") in shown and "Equal weights on warm days" in shown
    assert all(f"{label} " in shown for label in DEMO)
    assert (out / "report.txt").read_text().splitlines()[0] in shown
    assert (out / "regret.png").read_bytes()[:4] == b"\x89PNG"
    stored = Results.load(out / "sine.npz")
    assert stored.methods == tuple(DEMO) and stored.regret.shape == (6, 1, 6)


def test_where_narrower_bounds_do_not_help_it_is_said(tmp_path, capsys):
    args = ["demo", "--trials", "2", "--rounds", "40", "--jobs", "1", "--no-progress", "--out", str(tmp_path)]
    assert main([*args, "--problems", "weather", "rkhs2"]) == 0
    weather, rkhs2 = capsys.readouterr().out.split("Problem 'rkhs2'")
    assert "The narrower bounds gain nothing here" in weather and "gain nothing" not in rkhs2
    assert "The narrower bounds gain nothing here" in (tmp_path / "report.txt").read_text()


def test_what_is_promised_is_said():
    sine, weather = PROBLEMS["sine"](0), PROBLEMS["weather"](0)
    for label, contender in DEMO.items():
        assert promise(contender, sine).startswith("none")
        assert promise(contender, weather).startswith("none") == label.endswith("paper's b")
        assert (contender.style["ls"] == "--") == label.endswith("paper's b")


def test_seeds_and_jobs(tmp_path):
    for jobs, seed in (("1", "3"), ("2", "3"), ("1", "4")):
        args = [*QUICK, "--out", str(tmp_path / (jobs + seed)), "--problems", "rkhs2", "--jobs", jobs, "--seed", seed]
        assert main(args) == 0
    one, two, other = (Results.load(tmp_path / name / "rkhs2.npz") for name in ("13", "23", "14"))
    np.testing.assert_array_equal(one.regret, two.regret)
    assert one.seeds == (3,) and not np.array_equal(one.regret, other.regret)


def test_a_picture_of_three(tmp_path):
    from mtbo_nb.cli import contest

    results = trials("sine", contest("sine"), 4, [0, 1], progress=False)
    picture([results] * 3, [PROBLEMS["sine"](0)] * 3, tmp_path / "three.png")
    assert (tmp_path / "three.png").stat().st_size > 10_000


@pytest.mark.parametrize(
    "line",
    [
        *("", "nothing", "demo --trials 0", "demo --rounds x", "demo --seed -1", "demo --problems nowhere"),
        *("demo --jobs 0", "safe safe2 --trials 21", "safe safe2 --trials 0", "safe nowhere"),
    ],
)
def test_wrong_arguments_are_usage_errors(line, capsys):
    with pytest.raises(SystemExit) as stop:
        main(line.split())
    assert stop.value.code == 2
    assert "mtbo" in capsys.readouterr().err


def test_a_folder_that_cannot_be_made_is_one_line(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    assert main([*QUICK, "--out", str(tmp_path / "file")]) == 1
    error = capsys.readouterr().err
    assert error.startswith("mtbo: error:") and error.count("\n") == 1


def test_interruption(monkeypatch, tmp_path, capsys):
    def stop(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr("mtbo_nb.cli.trials", stop)
    assert main([*QUICK, "--out", str(tmp_path)]) == 130
    assert "interrupted" in capsys.readouterr().err


def test_version_and_help(capsys):
    for option, word in (("--version", mtbo_nb.__version__), ("--help", "demo")):
        with pytest.raises(SystemExit) as stop:
            main([option])
        assert stop.value.code == 0 and word in capsys.readouterr().out


def test_no_display_and_no_picture_library_at_import(tmp_path):
    code = (
        "import sys; from mtbo_nb.cli import main; assert 'matplotlib' not in sys.modules;"
        f"sys.exit(main({[*QUICK, '--problems', 'rkhs2', '--out', str(tmp_path)]!r}))"
    )
    environment = {k: v for k, v in os.environ.items() if k not in ("DISPLAY", "MPLBACKEND", "WAYLAND_DISPLAY")}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "regret.png").exists()


def test_safe_plays_and_stores(tmp_path, capsys):
    out = tmp_path / "safe"
    rules = ["--rules", "risk, plant alone", "--trials", "1", "--rounds", "3"]
    assert main(["safe", "safe2", *rules, "--jobs", "1", "--no-progress", "--out", str(out)]) == 0
    assert sorted(p.name for p in out.iterdir()) == ["safe2.npz", "safe2.png"]
    assert "0 of 1" in capsys.readouterr().out
    assert main(["safe", "safe2", "--rules", "magic", "--no-progress", "--out", str(out)]) == 1
    assert "rules must be some of" in capsys.readouterr().err
