"""People within the privacy radius, against counting them one by one."""

import warnings

import geopandas
import numpy as np
import pytest
import scipy
import shapely

from dpppsynth.core.errors import InformationWarning, InputError
from dpppsynth.linear_network import LinearNetwork
from dpppsynth.privacy.nearby_population import people_within
from dpppsynth.privacy.relations import ReplaceOne
from dpppsynth.spatial.domains import Window
from dpppsynth.spatial.offset import Offset
from dpppsynth.spatial.raster_layers import RasterLayer
from dpppsynth.synthesizers import LGCPSynthesizer

SIDE = 2000.0
SQUARE = Window.rectangle(0, 0, SIDE, SIDE, "EPSG:27700")
DISK = Window.polygon(shapely.Point(1000, 1000).buffer(900), "EPSG:27700")


def counted(values, window, radius):
    """Crowds around the centres of inhabited cells, each cell's people in its centre."""
    rows, columns = values.shape
    step = SIDE / columns
    x, y = np.meshgrid((np.arange(columns) + 0.5) * step, SIDE - (np.arange(rows) + 0.5) * step)
    xy, people = np.column_stack([x.ravel(), y.ravel()]), values.ravel()
    held = (people > 0) & window.contains(xy)
    xy, people = xy[held], people[held]
    near = np.array([people[np.hypot(*(xy - each).T) <= radius].sum() for each in xy])
    order = np.argsort(near)
    return near[order][np.searchsorted(people[order].cumsum(), people.sum() / 2)], near.min(), people.sum()


@pytest.mark.exhaustive
@pytest.mark.parametrize("window", [SQUARE, DISK], ids=["square", "disk"])
def test_a_fine_raster_is_counted(window):
    values = np.random.default_rng(1).poisson(0.4, (200, 200)).astype(float)
    values[:90, :90] = 0
    values[30, 60] = 5
    crowd = people_within(Offset.of(RasterLayer(values, (0, 0, SIDE, SIDE)), "counts"), window, 150.0)
    typical, fewest, total = counted(values, window, 150.0)
    assert crowd.inhabitants == pytest.approx(total, rel=2e-3)
    assert crowd.typical == pytest.approx(typical, rel=0.03)
    assert crowd.fewest == pytest.approx(fewest, abs=1.5)


@pytest.mark.parametrize("raster", [True, False])
def test_within_coarse_cells_people_are_spread(raster):
    """An even population: a circle's area, and a quarter of it in the corner."""
    people = Offset.from_grid(np.full((4, 4), 1000.0), (0, 0, SIDE, SIDE), "counts")
    people = Offset.of(RasterLayer(np.full((4, 4), 1000.0), (0, 0, SIDE, SIDE)), "counts") if raster else people
    crowd = people_within(people, SQUARE, 100.0)
    density = 16_000 / SIDE**2
    assert crowd.typical == pytest.approx(density * np.pi * 100**2, rel=0.01)
    assert crowd.fewest == pytest.approx(density * np.pi * 100**2 / 4, rel=0.02)


SHAPES = {
    "rectangle": shapely.box(0, 0, 1030, 790),
    "triangle": shapely.Polygon([(0, 0), (1000, 100), (300, 900)]),
    "notched": shapely.box(0, 0, 1000, 800).difference(shapely.box(430, 350, 1000, 460)),
}


@pytest.mark.exhaustive
@pytest.mark.parametrize("radius", [70.0, 130.0])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("raster", [True, False])
def test_the_most_isolated_are_not_overstated(shape, radius, raster):
    """One person for every 4 m square: points counted around points, those on the window's border among them."""
    window = Window.polygon(SHAPES[shape])
    x, y = np.meshgrid(np.arange(2, 1040, 4.0), np.arange(2, 920, 4.0))
    people = np.column_stack([x.ravel(), y.ravel()])
    people = people[window.contains(people)]
    border = shapely.get_coordinates(shapely.segmentize(window.geometry.boundary, 5.0))
    tree = scipy.spatial.cKDTree(people)
    fewest = tree.query_ball_point(np.concatenate([border, people[::7]]), radius, return_length=True).min()
    box = (0, 0, 1040, 920)
    layer = RasterLayer(np.full((23, 26), 100.0), box) if raster else None
    population = Offset.of(layer, "counts") if layer else Offset.from_grid(np.full((23, 26), 100.0), box, "counts")
    crowd = people_within(population, window, radius)
    assert 0.75 * fewest < crowd.fewest <= 1.05 * fewest


@pytest.mark.parametrize("radius", [30.0, 60.0, 90.0, 150.0, 200.0])
def test_people_of_one_wide_cell_are_all_counted(radius):
    """Whatever the radius is beside the cell's side: with every person inside it, or only those of its circle."""
    window, values = Window.rectangle(0, 0, 1000, 800), np.zeros((8, 10))
    values[3, 4] = 1001.0
    crowd = people_within(Offset.of(RasterLayer(values, (0, 0, 1000, 800)), "counts"), window, radius)
    assert crowd.inhabitants == pytest.approx(1001.0)
    if radius >= 150:
        assert crowd.typical == pytest.approx(1001.0, rel=1e-6)
    else:
        assert crowd.typical <= min(1001.0, 0.1001 * np.pi * radius**2 * 1.02) + 1e-6


@pytest.mark.parametrize("radius", [5.0, 20.0, 50.0, 200.0])
def test_windows_with_holes_and_strips_keep_their_people(radius):
    """Cells at the border count by what lies inside, however wide they are."""
    people = Offset.of(RasterLayer(np.full((2, 2), 100.0), (0, 0, 100, 100)), "counts")
    holed = shapely.box(0, 0, 100, 100).difference(shapely.box(30, 30, 70, 70))
    assert people_within(people, Window.polygon(holed), radius).inhabitants == pytest.approx(336.0, rel=1e-3)
    strip = Window.polygon(shapely.Polygon([(0, 0), (100, 0), (0, 1)]))
    assert people_within(people, strip, radius).inhabitants == pytest.approx(2.0, rel=0.02)


def test_a_typical_inhabitant_lives_where_most_do():
    """Nine tenths in a town on one of a hundred cells, the others spread evenly."""
    values = np.full((10, 10), 10.0)
    values[5, 5] = 9000.0
    crowd = people_within(Offset.of(RasterLayer(values, (0, 0, SIDE, SIDE)), "counts"), SQUARE, 50.0)
    assert crowd.typical > 0.9 * 9000 / 200**2 * np.pi * 50**2 / 4
    assert crowd.fewest < 10 / 200**2 * np.pi * 50**2


@pytest.mark.slow
def test_a_radius_below_the_grid_keeps_the_density():
    people = Offset.from_grid(np.full((4, 4), 1e6), (0, 0, SIDE, SIDE), "counts")
    crowd = people_within(people, Window.rectangle(0, 0, SIDE, 100, "EPSG:27700"), 0.5)
    assert crowd.typical == pytest.approx(16e6 / SIDE**2 * np.pi * 0.25, rel=0.05)


def test_along_streets():
    """Two parallel streets 50 m apart, joined at one end: near in the plane and far along them."""
    network = LinearNetwork([[1, 20], [1001, 20], [1001, 70], [1, 70]], [[0, 1], [1, 2], [2, 3]], "EPSG:27700")
    people = Offset.from_grid([[1050.0]], (0, 0, 1002, 100), "counts")
    crowd = people_within(people, network, 80.0)
    assert crowd.along_streets
    assert crowd.inhabitants == pytest.approx(1050 * 2050 / 2050, rel=0.01)
    per_metre = 1050 / 2050
    assert crowd.typical == pytest.approx(160 * per_metre, rel=0.05)
    assert crowd.fewest == pytest.approx(80 * per_metre, rel=0.02)


def test_words():
    crowd = people_within(Offset.from_grid(np.full((4, 4), 1000.0), (0, 0, SIDE, SIDE), "counts"), SQUARE, 100.0)
    said = crowd.words(LGCPSynthesizer(1.0, alpha=100.0).check(SQUARE, n=50))
    assert "Within 100 metres of a typical inhabitant live about 130 people" in said
    assert "by a factor of at most 2.72" in said
    alone = people_within(Offset.from_grid(np.full((4, 4), 0.5), (0, 0, SIDE, SIDE), "counts"), SQUARE, 100.0)
    said = alone.words(LGCPSynthesizer(1.0, alpha=100.0).check(SQUARE, n=50))
    assert "of a typical inhabitant lives nobody else" in said


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"mechanism": "field", "delta": 1e-6}, "have no bound that always holds, as the guarantee allows exceptions"),
        ({"mechanism": "kim-lim-3.8", "delta": 1e-6}, "holds on average over a model only, and bounds nobody's odds"),
    ],
)
def test_no_factor_is_stated_where_none_is_proved(settings, sentence):
    crowd = people_within(Offset.from_grid(np.full((4, 4), 1000.0), (0, 0, SIDE, SIDE), "counts"), SQUARE, 100.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InformationWarning)
        said = crowd.words(LGCPSynthesizer(1.0, alpha=100.0, length_scale=400.0, **settings).check(SQUARE, n=50))
    assert sentence in said
    assert "factor of at most" not in said


def test_large_factors_are_powers():
    crowd = people_within(Offset.from_grid(np.full((4, 4), 1000.0), (0, 0, SIDE, SIDE), "counts"), SQUARE, 100.0)
    assert "at most e^800." in crowd.words(LGCPSynthesizer(800.0, alpha=100.0, mechanism="tents").check(SQUARE, n=50))


def test_of_a_synthesizer():
    people = Offset.from_grid(np.full((4, 4), 1000.0), (0, 0, SIDE, SIDE), "counts")
    assert LGCPSynthesizer(1.0, alpha=100.0).crowd(SQUARE, people) == people_within(people, SQUARE, 100.0)
    with pytest.raises(InputError, match=r"^population: a crowd is that within a privacy radius"):
        LGCPSynthesizer(1.0, relation=ReplaceOne()).crowd(SQUARE, people)


def test_refused():
    density = Offset.from_grid(np.full((4, 4), 1000.0), (0, 0, SIDE, SIDE))
    with pytest.raises(InputError, match=r"^population: needs numbers of people, not densities"):
        people_within(density, SQUARE, 100.0)
    part = geopandas.GeoDataFrame({"n": [5.0]}, geometry=[shapely.box(0, 0, 1000, 2000)], crs="EPSG:27700")
    with pytest.raises(InputError, match=r"50 % of the window has no value"):
        people_within(Offset.from_geodataframe(part, "n", "counts"), SQUARE, 100.0)
    people = Offset.from_geodataframe(part, "n", "counts", fill=0)
    assert people_within(people, SQUARE, 100.0).inhabitants == pytest.approx(5)
    with pytest.raises(InputError, match=r"^radius: "):
        people_within(people, SQUARE, 0.0)
    with pytest.raises(InputError, match=r"^population: "):
        people_within(3, SQUARE, 100.0)
