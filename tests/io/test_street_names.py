"""Names of streets: every part of an edge has the name of the line that it was cut from, however lines were mended."""

import geopandas
import networkx
import numpy as np
import pandas as pd
import pytest
import shapely
from support.command_line import run

import dpppsynth as dps
from dpppsynth.core.errors import InputError
from dpppsynth.io import StreetNames, read_network

CRS = "EPSG:27700"
WEST, SOUTH = 530_000, 180_000
COURSES = {
    "High St": [(0, 0), (400, 0)],
    "=Mill Ln": [(100, -200), (100, 200)],
    # Joined to High St by a metre.
    "['Dock Rd', 'A3']": [(300, 1), (300, 200)],
    # Two lines that are merged into one edge.
    "Short Row": [(400, 0), (404, 0)],
    "2021.0": [(404, 0), (700, 0)],
}
# By edges' middles: where they lie, and the name.
NAMES = {(50, 0): "High St", (200, 0): "High St", (100, -100): "=Mill Ln", (300, 150): "Dock Rd; A3", (600, 0): "2021"}


@pytest.fixture(scope="module")
def lines():
    shapes = [shapely.LineString(np.add(xy, (WEST, SOUTH))) for xy in COURSES.values()]
    # The other direction of the first street, without a name, and before it.
    shapes, names = [shapes[0].reverse(), *shapes], [None, *COURSES]
    return geopandas.GeoDataFrame({"street": names}, geometry=shapes, crs=CRS)


@pytest.fixture(scope="module")
def file(lines, tmp_path_factory):
    path = tmp_path_factory.mktemp("streets") / "town.gpkg"
    lines.to_crs(4326).to_file(path, layer="edges")
    lines.iloc[:1].to_file(path, layer="other")
    return path


MENDING = {"node": True, "join": 2.0, "collapse_short": 10.0, "to_crs": CRS}


@pytest.fixture(scope="module")
def network(file):
    return read_network(f"{file}:edges", **MENDING)


@pytest.fixture(scope="module")
def public(network, tmp_path_factory):
    xy = np.random.default_rng(1).uniform(0, 300, (80, 2)) * (1, 0) + (WEST, SOUTH)
    release = dps.LaplaceSynthesizer(5.0, alpha=25.0).release(network.snap(xy, 1.0), rng=2)
    return release.save(tmp_path_factory.mktemp("releases") / "public", patterns=0)


@pytest.mark.parametrize("suffix", ["gpkg", "geojson", "parquet", "csv"])
def test_names_stand_beside_the_intensity_of_mended_streets(file, network, public, suffix, tmp_path):
    assert len(network.changes) >= 3
    told = ("export", public, "--intensity", suffix, "--spacing", 50, "--out", tmp_path / "out")
    run(*told, "--street-names", f"{file}:edges:street")
    path = tmp_path / "out" / f"intensity.{suffix}"
    if suffix == "csv":
        frame = pd.read_csv(path)
        middles, names = frame[["x", "y"]].to_numpy(), [str(each).removeprefix("'") for each in frame["name"]]
        assert "'=Mill Ln" in set(frame["name"])
    else:
        frame = geopandas.read_parquet(path) if suffix == "parquet" else geopandas.read_file(path, layer="intensity")
        middles = shapely.get_coordinates(frame.geometry.interpolate(0.5, normalized=True))
        names = list(frame["name"])
    found = shapely.STRtree(shapely.points(middles - (WEST, SOUTH)))
    for place, name in NAMES.items():
        assert names[found.nearest(shapely.Point(place))] == name


def test_another_file_or_column_is_refused(lines, file, network, tmp_path):
    with pytest.raises(InputError, match="not those of the release's streets"):
        StreetNames.read(f"{file}:other", "street", dps.datasets.soho_streets())
    with pytest.raises(InputError, match="no column 'name'"):
        StreetNames.read(f"{file}:edges", "name", network)
    # Nowhere near: coordinates without a system, taken to be in that of the network.
    bare = lines.set_crs(None, allow_override=True).set_geometry(lines.geometry.translate(5000, 0))
    bare.to_parquet(tmp_path / "bare.parquet")
    with pytest.raises(InputError, match="not those of the release's streets"):
        StreetNames.read(tmp_path / "bare.parquet", "street", network)


def test_names_of_a_window_are_refused(file, tmp_path):
    window = dps.Window.rectangle(0, 0, 100, 100)
    points = dps.PointPattern(np.random.default_rng(1).uniform(0, 100, (50, 2)), window)
    dps.LaplaceSynthesizer(1.0, alpha=25.0).release(points, rng=3).save(tmp_path / "public", patterns=0)
    told = ("export", tmp_path / "public", "--intensity", "csv", "--out", tmp_path / "out")
    done = run(*told, "--street-names", f"{file}:edges:street", code=2)
    assert not (tmp_path / "out").exists()
    assert "this release is on a window" in done.stderr


def test_names_of_a_graph(tmp_path):
    graph = networkx.MultiDiGraph(crs=CRS)
    for k, (x, y) in enumerate([(0, 0), (100, 0), (100, 100)]):
        graph.add_node(k, x=float(WEST + x), y=float(SOUTH + y))
    graph.add_edge(0, 1, name="A")
    graph.add_edge(1, 0)
    graph.add_edge(1, 2, geometry=f"LINESTRING ({WEST + 100} {SOUTH}, {WEST + 100} {SOUTH + 100})", name="['B', 'C']")
    networkx.write_graphml(graph, tmp_path / "g.graphml")
    network = read_network(tmp_path / "g.graphml", undirected=True)
    names = StreetNames.read(tmp_path / "g.graphml", "name", network)
    assert sorted(names.of(network.lines, network)) == ["A", "B; C"]
