"""Leftovers of killed runs hold nothing unnoised, and the next run names them."""

import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from support.traces import traces
from typer.testing import CliRunner

from dpppsynth.cli.program import app
from dpppsynth.core.errors import InformationWarning
from dpppsynth.evaluation import evaluate
from dpppsynth.io import inspect_points, write_pattern
from dpppsynth.local import DiskAreaMechanism
from dpppsynth.mechanisms.local.report_files import write_reports
from dpppsynth.release import append_patterns, load_release
from dpppsynth.spatial.domains import Window
from dpppsynth.spatial.patterns import PointPattern
from dpppsynth.synthesizers import LaplaceSynthesizer

WINDOW = Window.rectangle(0, 0, 1000, 1000, "EPSG:27700")
N = 173
PATTERN = PointPattern(np.random.default_rng(3).uniform(0, 1000, (N, 2)), WINDOW)
TENTS = LaplaceSynthesizer(1.0, alpha=25.0, basis="tents", spacing=250.0, postprocess="plain")
# Where the process is killed: in these functions of release.folder_writing, at their first, second ... call.
PLACES = [("put", 2), ("_write_pattern", 2), ("_rename", 1)]
KILL = """
import os, signal, sys
from test_leftovers import *
from dpppsynth.release import folder_writing as folder
name, call, target = sys.argv[1], int(sys.argv[2]), sys.argv[3]
work, calls = getattr(folder, name), []
def killed(*arguments, **options):
    calls.append(name)
    if len(calls) == call:
        os.kill(os.getpid(), signal.SIGKILL)
    return work(*arguments, **options)
setattr(folder, name, killed)
if sys.argv[4] == "save":
    TENTS.release(PATTERN).save(target, patterns=3)
else:
    release = load_release(target)
    append_patterns(folder.Path(target), release, release.sample(3))
"""

# The folders of tests from which other processes import.
IMPORTABLE = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}


def kill(name, call, target, way="save"):
    done = subprocess.run(
        [sys.executable, "-c", KILL, name, str(call), str(target), way],
        cwd=Path(__file__).parent, env=IMPORTABLE, check=False, capture_output=True,
    )  # fmt: skip
    assert done.returncode == -signal.SIGKILL, done.stderr


def told(left, flat):
    """Traces of the points in all files of a folder, whatever deep."""
    flat.mkdir()
    for k, path in enumerate(path for path in left.rglob("*") if path.is_file()):
        shutil.copy(path, flat / f"{k}{path.suffix}")
    return traces(flat, PATTERN, n=False)


@pytest.mark.exhaustive
@pytest.mark.parametrize(("name", "call"), PLACES)
def test_of_a_release(name, call, tmp_path):
    target = tmp_path / "public"
    kill(name, call, target)
    (left,) = tmp_path.iterdir()
    assert not target.exists()
    assert told(left, tmp_path / "flat") == set()
    with pytest.warns(InformationWarning, match=f"leftovers: {re.escape(str(left))} .*no more than a release"):
        TENTS.release(PATTERN).save(target)
    assert load_release(target).mechanism == "laplace-tents"
    assert left.exists()


def test_of_further_patterns(tmp_path):
    target = TENTS.release(PATTERN).save(tmp_path / "public")
    kill("_write_pattern", 2, target, "append")
    (left,) = set(tmp_path.iterdir()) - {target}
    assert told(left, tmp_path / "flat") == set()
    release = load_release(target)
    with pytest.warns(InformationWarning, match=f"leftovers: {re.escape(str(left))}"):
        append_patterns(target, release, release.sample(1))


def test_of_an_inspection(tmp_path):
    left, points = tmp_path / ".CONFIDENTIAL_a1.csv", tmp_path / "points.csv"
    left.write_text("row,rule\n")
    points.write_text("x,y\n1,1\n")
    with pytest.warns(InformationWarning, match=f"leftovers: {re.escape(str(left))} .*sensitive rows"):
        assert inspect_points(points, WINDOW, report_to=tmp_path).ok


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_of_reports_and_patterns(ending, tmp_path):
    left = tmp_path / ".writing_a1"
    left.mkdir()
    named = f"leftovers: {re.escape(str(left))} of an earlier run"
    with pytest.warns(InformationWarning, match=named):
        write_reports(DiskAreaMechanism(epsilon=1.0, cells=3).clients([0, 4]), tmp_path / f"reports.{ending}")
    with pytest.warns(InformationWarning, match=named):
        write_pattern(PATTERN, tmp_path / f"points.{ending}")
    assert left.exists()


def test_of_an_evaluation(tmp_path):
    left = tmp_path / ".private.report-a1"
    left.mkdir()
    report = evaluate(PATTERN, TENTS.release(PATTERN).sample(1), side=250.0, bandwidth=250.0)
    with pytest.warns(InformationWarning, match=f"leftovers: {re.escape(str(left))} .*compare with the original"):
        report.save(tmp_path / "private")
    assert left.exists()


def test_of_an_export(tmp_path):
    public = TENTS.release(PATTERN).save(tmp_path / "public")
    left = tmp_path / "out" / ".writing_a1"
    left.mkdir(parents=True)
    done = CliRunner().invoke(app, ["export", str(public), "--out", str(tmp_path / "out"), "--intensity", "csv"])
    assert done.exit_code == 2
    assert left.name in done.output
    left.rmdir()
    done = CliRunner().invoke(app, ["export", str(public), "--out", str(tmp_path / "out"), "--intensity", "csv"])
    assert done.exit_code == 0
