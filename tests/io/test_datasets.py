"""Example data: the published numbers, and the files behind them."""

import subprocess
import sys

import numpy as np
import pytest
import shapely

from dpppsynth import datasets
from dpppsynth.core.errors import InputError
from dpppsynth.io import read_pattern

PATTERNS = {
    "soho_addresses": datasets.soho_deaths,
    "soho_pumps": datasets.soho_pumps,
    "geodanet_crimes": datasets.geodanet_crimes,
}


@pytest.mark.parametrize(
    ("load", "points", "places", "crs", "unit", "bounds"),
    [
        (datasets.soho_deaths, 392, 133, "EPSG:27700", "metre", (529100, 180680, 529770, 181350)),
        (datasets.soho_pumps, 13, 13, "EPSG:27700", "metre", (528900, 180500, 530000, 181500)),
        (datasets.geodanet_crimes, 287, 194, "EPSG:2223", "foot", (723000, 875000, 729000, 882000)),
    ],
    ids=["deaths", "pumps", "crimes"],
)
def test_published_numbers(load, points, places, crs, unit, bounds):
    pattern = load()
    assert len(pattern) == points
    assert len(np.unique(pattern.xy, axis=0)) == places
    assert (pattern.domain.crs, pattern.domain.unit, pattern.domain.bounds) == (crs, unit, bounds)
    assert pattern.marks is None


def test_largest_soho_address_counts_all_its_deaths():
    _, deaths = np.unique(datasets.soho_deaths().xy, axis=0, return_counts=True)
    assert deaths.max() == 18


def test_soho_is_in_true_metres():
    # The Broad Street pump (now Broadwick Street) stands at about 51.51334 N, 0.13667 W.
    pump = shapely.points(529396.5, 181025.1)
    pumps = shapely.points(datasets.soho_pumps().xy)
    assert shapely.distance(pumps, pump).min() < 25


@pytest.mark.parametrize("name", PATTERNS)
def test_files_give_the_same_pattern_through_the_reader(name):
    pattern = PATTERNS[name]()
    count = "deaths" if name == "soho_addresses" else None
    read = read_pattern(datasets.path(name), pattern.domain, count=count)
    np.testing.assert_array_equal(read.xy, pattern.xy)


@pytest.mark.parametrize(
    ("town", "vertices", "edges", "length"), [("soho", 229, 282, 13725.06), ("geodanet", 230, 303, 104414.14)]
)
def test_street_files_are_whole(town, vertices, edges, length):
    xy = np.loadtxt(datasets.path(f"{town}_vertices"), delimiter=",", skiprows=1)
    ends = np.loadtxt(datasets.path(f"{town}_edges"), delimiter=",", skiprows=1, dtype=int)
    np.testing.assert_array_equal(xy[:, 0], np.arange(vertices))
    assert ends.shape == (edges, 2)
    assert set(ends.ravel()) == set(range(vertices))
    assert np.hypot(*(xy[ends[:, 0], 1:] - xy[ends[:, 1], 1:]).T).sum() == pytest.approx(length, abs=0.01)


@pytest.mark.parametrize(
    ("load", "streets", "points", "places", "tolerance"),
    [
        (datasets.soho_deaths, datasets.soho_streets, 392, 133, 30.0),
        (datasets.geodanet_crimes, datasets.geodanet_streets, 287, 194, 350.0),
    ],
    ids=["deaths", "crimes"],
)
def test_patterns_on_streets(load, streets, points, places, tolerance):
    plain, moved, network = load(), load(on="streets"), streets()
    assert (moved.domain.fingerprint(), moved.domain.crs) == (network.fingerprint(), plain.domain.crs)
    assert len(moved) == points
    assert len(np.unique(moved.positions, axis=0)) == places
    assert network.contains(moved.xy).all()
    # Nobody moves farther than to the nearest street, and the stated tolerance is the next round number.
    away = np.hypot(*(moved.xy - plain.xy).T)
    np.testing.assert_allclose(away, shapely.distance(shapely.points(plain.xy), network.geometry), atol=1e-6)
    assert tolerance / 2 < away.max() <= tolerance
    _, count = np.unique(moved.xy, axis=0, return_counts=True)
    assert sorted(count) == sorted(np.unique(plain.xy, axis=0, return_counts=True)[1])


@pytest.mark.parametrize(
    ("streets", "vertices", "edges", "length", "unit"),
    [
        (datasets.soho_streets, 229, 282, 13725.06, "metre"),
        (datasets.geodanet_streets, 230, 303, 104414.14, "foot"),
    ],
    ids=["soho", "geodanet"],
)
def test_street_networks(streets, vertices, edges, length, unit):
    network = streets()
    assert (len(network.vertices), len(network.edges), network.unit) == (vertices, edges, unit)
    assert network.length == pytest.approx(length, abs=0.01)
    assert network.changes == ()
    assert len(network.dropped) == 0


@pytest.mark.parametrize("load", [datasets.soho_deaths, datasets.geodanet_crimes])
def test_unknown_ground(load):
    with pytest.raises(InputError, match="on: must be 'window' or 'streets'; got 'street'"):
        load(on="street")


def test_windows_hold_the_streets_they_are_named_after():
    for town, window in (("soho", datasets.soho_pumps().domain), ("geodanet", datasets.geodanet_crimes().domain)):
        xy = np.loadtxt(datasets.path(f"{town}_vertices"), delimiter=",", skiprows=1)[:, 1:]
        assert window.contains(xy).all()


def test_every_named_file_exists_and_no_other_is_shipped():
    folder = datasets.path("soho_pumps").parent
    assert sorted(file.stem for file in folder.iterdir()) == sorted(datasets.FILES)


@pytest.mark.parametrize("name", ["soho", "../__init__", "soho_pumps.csv", ""])
def test_unknown_name(name):
    with pytest.raises(InputError, match=r"must be one of geodanet_crimes, .*soho_vertices; got"):
        datasets.path(name)


def test_loading_needs_no_table_library():
    code = (
        "import sys; from dpppsynth import datasets; datasets.soho_deaths(on='streets');"
        "print(sorted({'pandas', 'geopandas', 'pyogrio', 'pyarrow'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
