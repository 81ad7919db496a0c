"""Public roads, districts and places on maps, and titles with public terms."""

import geopandas
import numpy as np
import pytest
import shapely
from matplotlib.collections import LineCollection, PathCollection
from matplotlib.colors import to_hex
from support.command_line import run, spoken

from dpppsynth import AddRemove, InputError, LaplaceSynthesizer, PointPattern, Window
from dpppsynth.core.errors import InformationWarning
from dpppsynth.linear_network import LinearNetwork
from dpppsynth.plotting import Background, plot_comparison, plot_intensity, plot_pattern
from dpppsynth.plotting.terms import terms_of

AREA = Window.rectangle(530000, 180000, 531000, 181000, "EPSG:27700")
STREETS = LinearNetwork([(530000, 180000), (531000, 180000), (531000, 181000)], [(0, 1), (1, 2)], "EPSG:27700")
POINTS = PointPattern(np.random.default_rng(0).uniform((530000, 180000), (531000, 181000), (40, 2)), AREA)
ROAD = shapely.LineString([(529000, 180500), (532000, 180500)])
PARK = shapely.box(530100, 180100, 530300, 180300)
STATION = shapely.Point(530800, 180200)


def saved(path, *shapes, crs="EPSG:4326", **options):
    geopandas.GeoSeries(shapes, crs="EPSG:27700").to_crs(crs).to_file(path, **options)
    return path


def lines_of(ax):
    return [c for c in ax.collections if isinstance(c, LineCollection)]


def test_degrees_are_taken_to_the_map_and_cut_at_its_border(tmp_path):
    file = saved(tmp_path / "city.gpkg", ROAD, layer="roads")
    saved(file, PARK, layer="parks")
    found = Background.read(f"{file}:roads", AREA) + Background.read(f"{file}:parks", AREA)
    ax = plot_pattern(POINTS, background=found)
    courses = [path.vertices for path in lines_of(ax)[-1].get_paths()]
    (road,) = [each for each in courses if len(each) == 2]
    (park,) = [each for each in courses if len(each) == 5]
    assert road[:, 1] == pytest.approx(180500, abs=2)
    assert (road[:, 0].min(), road[:, 0].max()) == pytest.approx((529985, 531015), abs=0.01)
    assert (park.min(axis=0), park.max(axis=0)) == (
        pytest.approx((530100, 180100), abs=1),
        pytest.approx((530300, 180300), abs=1),
    )
    x0, x1 = ax.get_xlim()
    assert x0 >= 529980
    assert x1 <= 531020


def test_it_lies_over_colours_and_under_points_and_streets():
    background = Background.from_geodataframe(
        geopandas.GeoSeries([ROAD, STATION], crs="EPSG:27700").to_frame("geometry").set_geometry("geometry"), AREA
    )
    release = LaplaceSynthesizer(1.0, alpha=50.0).release(POINTS, rng=1)
    ax = plot_intensity(release.intensity, background=background)
    (image,) = ax.get_images()
    drawn = plot_pattern(POINTS, background=background)
    points = [c for c in drawn.collections if isinstance(c, PathCollection)]
    assert image.zorder < min(each.zorder for each in lines_of(ax)) < max(each.zorder for each in points)
    streets = plot_pattern(PointPattern.at([[0, 10.0]], STREETS), background=Background(background.geometries))
    low, *_ = sorted(each.zorder for each in lines_of(streets))
    assert low < 0.5
    left, right = plot_comparison(POINTS, POINTS, background=background, confidential=False)
    assert len(lines_of(left)) == len(lines_of(right)) == 2


@pytest.mark.parametrize(
    ("shape", "domain", "fault"),
    [
        (shapely.Point(0, 0), AREA, "nothing in"),
        (ROAD, Window.rectangle(0, 0, 1, 1), "the domain has no CRS"),
    ],
)
def test_refused(shape, domain, fault):
    frame = geopandas.GeoDataFrame(geometry=[shape], crs="EPSG:27700")
    with pytest.raises(InputError, match=f"background: .*{fault}"):
        Background.from_geodataframe(frame, domain)
    with pytest.raises(InputError, match="background: needs a Background"):
        plot_pattern(POINTS, background=frame)


def test_rows_without_a_place_are_told(tmp_path):
    frame = geopandas.GeoDataFrame(geometry=[ROAD, None], crs="EPSG:27700")
    with pytest.warns(InformationWarning, match="1 of 2 rows has no geometry"):
        Background.from_geodataframe(frame, AREA)


def test_titles_have_the_number_of_points_where_it_is_public():
    synthesizer = LaplaceSynthesizer(1.0, alpha=25.0)
    assert terms_of(synthesizer.release(POINTS)) == "n = 40, ε = 1, α = 25 m, EPSG:27700"  # noqa: RUF001 - alpha
    secret = LaplaceSynthesizer(1.0, relation=AddRemove()).plan(AREA, expected_n=7).release(POINTS)
    assert terms_of(secret) == "ε = 1, EPSG:27700"
    ax = plot_pattern(POINTS, title="Crimes\nSynthetic pattern\nn = 40")
    assert ax.get_title(loc="left") == "Crimes"
    assert "Synthetic pattern\nn = 40" in [each.get_text() for each in ax.texts]


def test_weekdays_stand_in_their_order():
    days = np.array(["Sunday", "Friday", "Monday", "Wednesday"])[np.arange(40) % 4]
    ax = plot_pattern(PointPattern(POINTS.xy, AREA, {"day": days}), by="day")
    assert [each.get_text() for each in ax.get_legend().get_texts()] == ["Monday", "Wednesday", "Friday", "Sunday"]
    # Each dot has the colour of its own day.
    handles = {h.get_label(): h.get_color() for h in ax.get_legend().legend_handles}
    (dots,) = [c for c in ax.collections if isinstance(c, PathCollection)]
    colours = {tuple(xy): to_hex(c) for xy, c in zip(dots.get_offsets().tolist(), dots.get_facecolors(), strict=True)}
    assert all(colours[tuple(xy)] == handles[day] for xy, day in zip(POINTS.xy.tolist(), days, strict=True))


def test_both_commands_draw_it_under_every_map(tmp_path, monkeypatch):
    LaplaceSynthesizer(1.0, alpha=50.0).release(POINTS).save(tmp_path / "public", patterns=1)
    files = [saved(tmp_path / f"{name}.geojson", shape) for name, shape in (("roads", ROAD), ("parks", PARK))]
    words = [word for file in files for word in ("--background", file)]
    drawn = []
    monkeypatch.setattr(Background, "draw", lambda self, domain, ax: drawn.append(len(self.geometries)))
    run("plot", tmp_path / "public", "--out", tmp_path / "pictures", "--title", "Crimes, 2023", *words)
    maps = {each.stem for each in (tmp_path / "pictures").iterdir()} - {"epsilon", "mesh"}
    assert maps == {"pattern", "intensity"}
    assert drawn == [2, 2]
    run("report", tmp_path / "public", *words)
    assert drawn == [2] * 4
    wrong = saved(tmp_path / "far.geojson", shapely.Point(0, 0))
    assert "--background: nothing in far.geojson" in spoken(
        run("plot", tmp_path / "public", "--out", tmp_path / "more", "--background", wrong, code=2)
    )
