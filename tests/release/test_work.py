"""Verification does bounded work for whatever a certificate asks: it is told from parameters, and refused before."""

import contextlib
import json
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dpppsynth.cli import app
from dpppsynth.contract import effort
from dpppsynth.core.errors import DpppsynthError, InformationWarning, TooLargeError
from dpppsynth.linear_network import LinearNetwork
from dpppsynth.linear_network.mesh import NetworkMesh
from dpppsynth.mechanisms.local import grid_statistic
from dpppsynth.models.recipes import domain_from_geojson
from dpppsynth.privacy import verify
from dpppsynth.release import certificate, load_release, work
from dpppsynth.release import verify as verification
from dpppsynth.spatial.domains import Window
from dpppsynth.spatial.patterns import PointPattern
from dpppsynth.spatial.planar_mesh import PlanarMesh
from dpppsynth.synthesizers import LaplaceSynthesizer, LGCPSynthesizer

STORED = Path(__file__).parents[1] / "data" / "releases"
NAMES = sorted(path.name for path in STORED.iterdir() if path.is_dir())
# Vertices that a mesh over the stored rectangle may have within the limit, and over the streets.
MOST_BUILT = work.MOST_WORK / min(effort.CELL, effort.SEGMENT) + 1000


def numbers(value, path=()):
    if isinstance(value, int | float) and not isinstance(value, bool):
        yield path, value
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in items:
        yield from numbers(child, (*path, key))


def rewritten(folder, *changes):
    """A certificate with other parameters, resealed."""
    cert = json.loads((folder / "certificate.json").read_text())
    for path, value in changes:
        spot = cert["parameters"]
        for key in path[:-1]:
            spot = spot[key]
        spot[path[-1]] = value
    cert["content_hash"] = certificate.content_hash(cert)
    (folder / "certificate.json").write_text(json.dumps(cert))
    return cert


def domain_of(name):
    return domain_from_geojson(json.loads((STORED / name / "domain.geojson").read_text()))


@pytest.fixture
def forbidden(monkeypatch):
    """Nothing may be derived."""

    def fail(*_):
        pytest.fail("it was derived all the same")

    monkeypatch.setattr(verification, "rederive", fail)


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("laplace-tents", [(("mesh", "shape"), [1600, 1600])]),
        ("laplace-cells", [(("mesh", "shape"), [10**9, 10**9])]),
        ("laplace-cells-streets", [(("mesh", "resolution"), 1e-9)]),
        ("laplace-tents-streets", [(("mesh", "shape"), [10**5, 10**5])]),
        ("lgcp-tents", [(("estimator", "mesh", "shape"), [3001, 3001])]),
        ("lgcp-field", [(("mesh", "shape"), [60, 60])]),
        ("lgcp-posterior-draw", [(("mesh", "shape"), [77, 77])]),
        ("lgcp-kim-lim-3.8", [(("mesh", "shape"), [77, 77])]),
        ("kernel-diffusion", [(("mesh", "resolution"), 0.5)]),
        ("uniform-grid", [(("columns",), 4096), (("rows",), 4096)]),
        ("heatmap", [(("mesh", "shape"), [2049, 2049])]),
        ("hybrid-area", [(("randomizer", "radius"), 4000)]),
        ("subset-exponential", [(("randomizer", "cells"), 128)]),
        ("strata", [(("strata", 1, "parameters", "mesh", "shape"), [3001, 3001])]),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_too_much_is_refused_before_it_is_done(name, changes, forbidden, tmp_path):
    folder = shutil.copytree(STORED / name, tmp_path / "public")
    rewritten(folder, *changes)
    outcome = verify(folder)
    assert not outcome.holds
    assert outcome.too_large
    with pytest.raises(TooLargeError, match="too large to verify; use --no-limit"):
        load_release(folder)
    shown = CliRunner().invoke(app, ["verify", str(folder)])
    assert shown.exit_code == 2
    assert "too large to verify; use --no-limit" in shown.output.replace("\n", " ")


@pytest.mark.slow
def test_the_grids_of_a_made_up_plan_are_not_made(tmp_path, monkeypatch):
    """An adaptive grid whose first level would have millions of cells, and a second level that is stated to fit."""
    folder, made = shutil.copytree(STORED / "adaptive-grid", tmp_path / "public"), []
    monkeypatch.setattr(grid_statistic, "even_cells", lambda first, sides: made.append(len(first)) or first)
    monkeypatch.setattr(grid_statistic, "adaptive_cells", lambda first, *_, **__: made.append(len(first)) or first)
    rewritten(
        folder,
        (("n",), 10**8),
        (("reports",), [2 * 10**7, 8 * 10**7]),
        (("cells",), 6_500_000),
        (("alpha",), [100.0, 1.0]),
    )
    assert not verify(folder).holds
    assert max(made, default=0) <= 1


@pytest.mark.parametrize("name", NAMES)
def test_stored_releases_are_far_below_the_limit(name, monkeypatch):
    cert = json.loads((STORED / name / "certificate.json").read_text())
    assert work.too_large(cert["mechanism"], cert["parameters"], domain_of(name)) is None
    monkeypatch.setattr(work, "MOST_WORK", work.MOST_WORK / 20)
    assert work.too_large(cert["mechanism"], cert["parameters"], domain_of(name)) is None


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", NAMES)
def test_no_number_makes_it_build_much(name, monkeypatch, tmp_path):
    """Every number among the parameters is made huge, or tiny, alone: what is built stays within the limit."""
    folder, built = shutil.copytree(STORED / name, tmp_path / "public"), []
    planar, network = PlanarMesh.__post_init__, NetworkMesh.__init__

    def count_planar(self, *args, **kwargs):
        built.append(len(self.vertices))
        planar(self, *args, **kwargs)

    def count_network(self, domain, count, *args, **kwargs):
        built.append(int(count.sum()))
        network(self, domain, count, *args, **kwargs)

    monkeypatch.setattr(PlanarMesh, "__post_init__", count_planar)
    monkeypatch.setattr(NetworkMesh, "__init__", count_network)
    original = (folder / "certificate.json").read_text()
    for path, value in numbers(json.loads(original)["parameters"]):
        for huge in (10**29, 10**6) if isinstance(value, int) else (1e29, 1e-29):
            rewritten(folder, (path, huge))
            with contextlib.suppress(DpppsynthError):
                assert not verify(folder).holds or path[-1] in DECLARED, path
            (folder / "certificate.json").write_text(original)
    assert max(built, default=0) <= MOST_BUILT


# Numbers that the custodian declares and no bound follows from.
DECLARED = {"n", "expected_n", "sigma", "epsilon", "length_scale", "max_iter", "tolerance", "margin", "bandwidth"}
DECLARED |= {"smoothing", "decay", "power", "start", "end", "time_range", *range(20)}


def test_a_domain_of_very_many_coordinates(tmp_path, monkeypatch):
    folder = shutil.copytree(STORED / "laplace-tents", tmp_path / "public")
    monkeypatch.setattr(work, "MOST_COORDINATES", 9)
    assert verify(folder).too_large
    assert verify(folder, limit=False).holds


def test_a_saved_release_says_what_others_must_ask_for(tmp_path, monkeypatch):
    window = Window.rectangle(0, 0, 1000, 1000, "EPSG:27700")
    release = LaplaceSynthesizer(1.0, alpha=25.0, spacing=250.0, postprocess="plain").release(
        PointPattern([[1.0, 2.0]] * 5, window)
    )
    monkeypatch.setattr(work, "MOST_WORK", 10.0)
    with pytest.warns(InformationWarning, match="too large to verify; use --no-limit"):
        folder = release.save(tmp_path / "public")
    assert verify(folder).too_large
    assert verify(folder, limit=False).holds
    assert CliRunner().invoke(app, ["verify", str(folder), "--no-limit"]).exit_code == 0


def test_levels_add_up(forbidden, tmp_path):
    folder, many = shutil.copytree(STORED / "strata-kernel", tmp_path / "public"), 60
    parts = json.loads((folder / "certificate.json").read_text())["parameters"]["strata"]
    rewritten(folder, (("strata",), parts[:1] * many), (("levels",), list(map(str, range(many)))))
    assert verify(folder).too_large


@pytest.mark.slow
def test_a_default_release_on_a_town_is_verified_unasked(tmp_path):
    """Work of 6000 edges, counted once for the stated estimator, and by the cells that edges do cross."""
    side = 56
    xy = [(100.0 * i, 100.0 * j) for i in range(side) for j in range(side)]
    along = [(side * i + j, side * i + j + 1) for i in range(side) for j in range(side - 1)]
    edges = along + [(side * i + j, side * (i + 1) + j) for i in range(side - 1) for j in range(side)]
    town = LinearNetwork(xy, edges)
    plan = LGCPSynthesizer(1.0, alpha=30.0, inference="laplace").plan(town, n=400)
    stated = plan.statistic.parameters() | {"estimator": plan.estimator.to_dict()}
    assert work.too_large(plan.mechanism, stated, town) is None
    # A network of long streets crosses as many cells as there are, which is counted.
    long = LinearNetwork([(0, 0), (5500, 5500), (0, 5500)], [(0, 1), (1, 2)])
    assert effort.mesh_work({"builder": "trace", "shape": [2000, 2000]}, long) > effort.mesh_work(
        {"builder": "trace", "shape": [20, 20]}, long
    )
