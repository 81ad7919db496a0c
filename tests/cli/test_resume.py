"""`dpppsynth resume`, and what `synthesize` leaves when it is stopped."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from typer.testing import CliRunner

from dpppsynth import cli
from dpppsynth.inference.lgcp_inference import LGCPInference
from dpppsynth.ledger import Ledger
from dpppsynth.ledger.comparison import standing
from dpppsynth.privacy import verify

PLACE = ["--window", "0,0,1000,1000", "--crs", "EPSG:27700"]
HOW = ["--mechanism", "lgcp-tents", "--epsilon", "1", "--alpha", "25", "--spacing", "250"]


def run(*arguments):
    return CliRunner().invoke(cli.app, list(map(str, arguments)))


@pytest.fixture
def points(tmp_path):
    path = tmp_path / "points.csv"
    rows = np.random.default_rng(1).uniform(0, 1000, (150, 2)).round(2)
    path.write_text("x,y\n" + "\n".join(f"{x},{y}" for x, y in rows) + "\n")
    return path


@pytest.fixture
def book(tmp_path):
    Ledger.create(tmp_path / "ledger.json", epsilon=5.0, delta=0.0, alpha=25.0)
    return tmp_path / "ledger.json"


def synthesize(points, book, out):
    return ["synthesize", points, *PLACE, *HOW, "--ledger", book, "--out", out, "--yes"]


@pytest.mark.parametrize(
    "error",
    [OSError(28, "No space left on device"), MemoryError(), np.linalg.LinAlgError(), KeyboardInterrupt()],
    ids=repr,
)
def test_what_was_paid_for_is_named_and_resumed(error, points, book, tmp_path, monkeypatch):
    def stop(*_, **__):
        raise error

    monkeypatch.setattr(LGCPInference, "fit", stop)
    out = tmp_path / "out"
    failed = run(*synthesize(points, book, out))
    assert failed.exit_code == 5
    assert f"dpppsynth resume {out}" in " ".join(failed.output.split())
    (entry,) = Ledger.open(book).releases
    assert standing(entry) == "measured"
    shown = json.loads(run("ledger", "show", book, "--json").stdout)["releases"][0]
    assert (shown["standing"], shown["kept"]) == ("measured", str(out))
    monkeypatch.undo()
    resumed = run("resume", out, "--patterns", 2)
    assert resumed.exit_code == 0, resumed.output
    assert {path.name for path in out.glob("synthetic_*")} == {"synthetic_000.geojson", "synthetic_001.geojson"}
    assert verify(out).holds
    assert standing(entry) == "released"
    again = run("resume", out)
    assert again.exit_code == 2
    assert "is complete" in again.output


def test_a_disk_without_room_costs_nothing(points, book, tmp_path, monkeypatch):
    import shutil

    usage = shutil.disk_usage(tmp_path)._replace(free=1000)
    monkeypatch.setattr("dpppsynth.core.output_folder.shutil.disk_usage", lambda _: usage)
    failed = run(*synthesize(points, book, tmp_path / "out"))
    assert failed.exit_code == 2
    assert "MB are free" in failed.output
    assert Ledger.open(book).releases == ()


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="signals")
@pytest.mark.parametrize("kind", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_killed_while_it_infers(kind, points, book, tmp_path):
    """From when the ledger says measured, the folder opens and resumes, whatever the signal."""
    out = tmp_path / "out"
    command = [sys.executable, "-m", "dpppsynth", *map(str, synthesize(points, book, out)), "--inference", "nuts"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        while process.poll() is None and b'"measured"' not in book.read_bytes():
            time.sleep(0.005)
        process.send_signal(kind)
    (entry,) = Ledger.open(book).releases
    assert standing(entry) in ("measured", "released")
    if standing(entry) == "measured":
        assert run("resume", out, "--inference", "laplace").exit_code == 0
    assert verify(out).holds
