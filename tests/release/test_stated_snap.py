"""The tolerance within which points were moved onto the domain stands on the certificate, as the custodian chose it."""

import json

import numpy as np
import pytest
from support.command_line import run

import dpppsynth as dps
from dpppsynth.release.verify import verify
from dpppsynth.reporting.certificate_tables import guarantee_rows
from dpppsynth.reporting.subject import open_subject

WINDOW = dps.Window.rectangle(0, 0, 100, 100, crs="EPSG:27700")
STREETS = dps.LinearNetwork([[0, 0], [100, 0], [100, 100]], [[0, 1], [1, 2]], crs="EPSG:27700")
LAPLACE = dps.LaplaceSynthesizer(1.0, alpha=25.0)


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    """Points of two years, one of them beside the border."""
    xy = np.random.default_rng(1).uniform(1, 99, (40, 2))
    xy[0] = (50, 100.5)
    rows = "\n".join(f"{x},{y},{2021 + k % 2}" for k, (x, y) in enumerate(xy.tolist()))
    path = tmp_path_factory.mktemp("points") / "points.csv"
    path.write_text(f"x,y,year\n{rows}\n")
    return path


def stated(folder):
    return json.loads((folder / "certificate.json").read_text()).get("snap")


@pytest.mark.parametrize("by", [(), ("--by", "year", "--levels", "2021,2022")])
def test_of_a_file(file, by, tmp_path):
    words = ("--window", "0,0,100,100", "--crs", "EPSG:27700", "--mechanism", "laplace-cells", "--alpha", 25)
    out = tmp_path / "public"
    run("synthesize", file, *words, "--epsilon", 1, *by, "--snap", 0.75, "--yes", "--out", out)
    assert stated(out) == 0.75
    said = " ".join(run("verify", out).output.split())
    assert "Points within 0.75 metres of the window were moved onto its border, by a public choice." in said
    assert json.loads(run("verify", out, "--json").output)["snap"] == 0.75
    # A release that is opened and added to states it still.
    run("sample", out, "--patterns", 1)
    assert stated(out) == 0.75
    assert verify(out).holds
    rows = {row.name: row.value for row in guarantee_rows(open_subject(out))}
    assert "Points within 0.75 metres" in rows["Places"]


def test_of_batches_and_streets():
    plan = LAPLACE.plan(STREETS, n=4)
    batches = [STREETS.snap([[10, 1], [20, 2]], 5.0), STREETS.snap([[99, 50], [99, 60]], 12.5)]
    assert plan.finish(map(plan.partial, batches), rng=1).certificate_dict()["snap"] == 12.5
    # What is looked at in parts was moved as the whole was.
    assert batches[0].unmarked().part(np.array([True, False])).snap == 5.0


def test_none_where_nothing_was_moved():
    pattern = dps.PointPattern([[1, 2], [3, 4]], WINDOW)
    assert "snap" not in LAPLACE.release(pattern, rng=1).certificate_dict()
