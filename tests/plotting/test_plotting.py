import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
import shapely
from matplotlib.figure import Figure
from support.pictures import pixel_at, pixels, texts

from dpppsynth import AddRemove, InputError, LaplaceSynthesizer, LGCPSynthesizer, PointPattern, ReplaceOne, Window
from dpppsynth.evaluation import kernel_intensity
from dpppsynth.linear_network import LinearNetwork
from dpppsynth.models import regular_squares, regular_triangulation
from dpppsynth.plotting import (
    plot_comparison,
    plot_epsilon_curve,
    plot_intensity,
    plot_mesh,
    plot_pattern,
    save_picture,
)
from dpppsynth.privacy import GaussianDP, Guarantee, PureDP
from dpppsynth.spatial.intensity import LogLinear, PiecewiseConstant

SQUARE = Window.rectangle(0, 0, 1000, 1000, "EPSG:27700")
HOLE = shapely.box(400, 400, 600, 600)
ISLAND = shapely.box(1100, 0, 1300, 200)
ISLANDS = Window.polygon(shapely.MultiPolygon([SQUARE.geometry.difference(HOLE), ISLAND]))
WINDOWS = [SQUARE, ISLANDS]
NAMES = ["square", "hole and island"]
XY = np.array([[100.0, 100.0], [100.0, 100.0], [300.0, 700.0], [900.0, 50.0]])


def covers(ax, window):
    x0, y0, x1, y1 = window.bounds
    (left, right), (low, high) = ax.get_xlim(), ax.get_ylim()
    return left <= x0 < x1 <= right and low <= y0 < y1 <= high


@pytest.mark.parametrize("window", WINDOWS, ids=NAMES)
class TestMaps:
    def check(self, ax, window):
        assert covers(ax, window)
        assert ax.get_aspect() == 1.0
        assert not ax.yaxis_inverted()
        assert pixels(ax).std() > 5

    def test_pattern(self, window):
        self.check(plot_pattern(PointPattern(XY, window)), window)

    def test_empty_pattern(self, window):
        ax = plot_pattern(PointPattern.synthetic(np.empty((0, 2)), window))
        assert covers(ax, window)

    def test_mesh(self, window):
        mesh = regular_triangulation(window, shape=(8, 8))
        ax = plot_mesh(mesh)
        self.check(ax, window)
        drawn = {text.get_text() for text in ax.get_legend().get_texts()}
        assert drawn == {"mesh", "vertices", "dual cells"}

    def test_intensity(self, window):
        mesh = regular_triangulation(window, shape=(8, 8))
        ax = plot_intensity(LogLinear(mesh, mesh.vertices[:, 0] / 500))
        self.check(ax, window)
        assert ("points per km²" if window.crs else "points per unit²") in texts(ax.figure)

    def test_scale_bar_is_true(self, window):
        ax = plot_pattern(PointPattern(XY, window))
        bar = ax.get_lines()[0].get_xdata()
        label = next(text for text in texts(ax.figure) if text.endswith(("m", "units")))
        assert label.split()[0] == f"{bar.max() - bar.min():g}"


def test_points_are_drawn_where_they_are_and_coincident_ones_larger():
    ax = plot_pattern(PointPattern(XY, SQUARE))
    size = {tuple(xy): float(dots.get_sizes()[0]) for dots in ax.collections for xy in dots.get_offsets()}
    assert set(size) == {tuple(xy) for xy in XY}
    assert size[100.0, 100.0] == 2 * size[300.0, 700.0]
    red, _, blue = pixel_at(ax, 300, 700)
    assert blue > red + 50


@pytest.mark.slow
def test_nothing_is_drawn_in_a_hole():
    mesh = regular_squares(ISLANDS, shape=(14, 11))
    ax = plot_intensity(PiecewiseConstant(mesh, np.ones(len(mesh.elements))))
    assert tuple(pixel_at(ax, 500, 500)) == (255, 255, 255)
    assert tuple(pixel_at(ax, 200, 500)) == (253, 231, 36)  # the upper end of viridis
    assert tuple(pixel_at(ax, 1050, 500)) == (255, 255, 255)


def test_intensity_has_north_up_and_starts_at_zero():
    mesh = regular_triangulation(SQUARE, shape=(4, 4))
    ax = plot_intensity(LogLinear(mesh, mesh.vertices[:, 1] / 200))
    image = ax.images[0]
    assert image.get_clim()[0] == 0
    assert pixel_at(ax, 500, 950).sum() > pixel_at(ax, 500, 50).sum() + 100


def test_landmarks_outside_the_window_are_left_out():
    places = PointPattern([[500.0, 500.0], [5000.0, 0.0]], Window.rectangle(0, 0, 9000, 9000, "EPSG:27700"))
    ax = plot_pattern(PointPattern(XY, SQUARE), landmarks=places, landmark_label="pump")
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["pump"]
    assert covers(ax, SQUARE)
    assert len(ax.get_lines()[-1].get_xdata()) == 1


def test_pictures_go_into_given_axes():
    figure = Figure()
    first, second = figure.subplots(1, 2)
    assert plot_pattern(PointPattern(XY, SQUARE), first) is first
    assert plot_mesh(regular_squares(SQUARE, shape=(3, 3)), second) is second


def test_no_picture_states_the_number_of_points():
    rng = np.random.default_rng(5)
    pattern = PointPattern(rng.uniform(0, 1000, (777, 2)), SQUARE)
    release = LGCPSynthesizer(1.0, alpha=50.0, inference="laplace").release(pattern, rng=1)
    axes = [plot_pattern(pattern), plot_intensity(release.intensity), plot_epsilon_curve(release.guarantee)]
    assert not any("777" in text for ax in axes for text in texts(ax.figure))


class TestComparison:
    def axes(self):
        return plot_comparison(PointPattern(XY, SQUARE), PointPattern(XY[::-1] / 2, SQUARE))

    def test_is_marked(self):
        left, right = self.axes()
        said = texts(left.figure)
        assert left.figure is right.figure
        assert sum("CONFIDENTIAL" in text for text in said) == 2
        image = pixels(left)
        reddish = (image[..., 0] > image[..., 2] + 10).mean()
        assert reddish > 0.02  # the watermark itself

    def test_windows_must_agree(self):
        with pytest.raises(InputError, match="another window"):
            plot_comparison(PointPattern(XY, SQUARE), PointPattern(XY, ISLANDS))

    @pytest.mark.parametrize("place", [".", "below", "below/deeper"])
    def test_is_never_saved_into_a_release(self, tmp_path, place):
        public = tmp_path / "public"
        public.mkdir()
        (public / "certificate.json").write_text("{}")
        with pytest.raises(InputError, match="outside"):
            save_picture(self.axes(), public / place / "picture.png")
        assert [path.name for path in public.iterdir()] == ["certificate.json"]

    def test_a_link_into_a_release_does_not_help(self, tmp_path):
        public = tmp_path / "public"
        public.mkdir()
        (public / "certificate.json").write_text("{}")
        (tmp_path / "elsewhere").symlink_to(public)
        with pytest.raises(InputError, match="outside"):
            save_picture(self.axes(), tmp_path / "elsewhere" / "picture.png")

    def test_only_the_owner_can_read_it(self, tmp_path):
        path = save_picture(self.axes(), tmp_path / "private" / "picture.png")
        assert path.read_bytes().startswith(b"\x89PNG")
        assert path.stat().st_mode & 0o077 == 0
        assert path.parent.stat().st_mode & 0o077 == 0


class TestCurve:
    def test_passes_through_the_promise(self):
        guarantee = LGCPSynthesizer(1.0, alpha=25.0).check(SQUARE, n=400)
        ax = plot_epsilon_curve(guarantee, unit=SQUARE.unit)
        distance, epsilon = ax.get_lines()[0].get_data()
        assert np.interp(25.0, distance, epsilon) == pytest.approx(1.0, rel=1e-3)
        assert np.all(np.diff(epsilon) >= 0)
        assert any("25 m" in text for text in texts(ax.figure))
        assert pixels(ax).std() > 5

    @pytest.mark.parametrize(
        ("synthesizer", "size", "label"),
        [
            (LaplaceSynthesizer(1.0, alpha=25.0, postprocess="plain"), {"n": 400}, "distance"),
            (LaplaceSynthesizer(1.0, postprocess="plain"), {"n": 400}, "however far"),
            (
                LaplaceSynthesizer(1.0, relation=AddRemove(3), basis="tents", postprocess="plain"),
                {"expected_n": 400},
                "added or removed",
            ),
        ],
        ids=["alpha", "replace-one", "add-remove"],
    )
    def test_is_level_where_distance_does_not_matter(self, synthesizer, size, label):
        guarantee = synthesizer.check(SQUARE, **size)
        ax = plot_epsilon_curve(guarantee)
        line = ax.get_lines()[0].get_ydata()
        assert line == pytest.approx(guarantee.epsilon() / guarantee.relation.max_points_per_person)
        assert label in ax.get_xlabel()

    def test_only_pure_bounds_are_shared_out_among_the_points_of_a_person(self):
        pure = Guarantee(ReplaceOne(3), PureDP(1.2), "a-theorem", ("it-holds",))
        gaussian = replace(pure, profile=GaussianDP(0.3, 1e-6))
        for guarantee, expected in ((pure, 0.4), (gaussian, gaussian.epsilon())):
            assert plot_epsilon_curve(guarantee).get_lines()[0].get_ydata() == pytest.approx(expected)


@pytest.mark.slow
def test_no_global_figure_is_made():
    code = "import sys, dpppsynth.plotting as p; from dpppsynth import LaplaceSynthesizer as L, Window as W\n"
    code += "p.plot_epsilon_curve(L(1.0).check(W.rectangle(0, 0, 1, 1), n=9))\n"
    code += "sys.exit('matplotlib.pyplot' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("streets", [False, True])
def test_kernel_estimates_are_drawn_with_their_values(streets):
    """Colours are those of the estimate where it is, in a window and along streets."""
    if streets:
        domain = LinearNetwork([[0, 0], [100, 0], [100, 100]], [[0, 1], [1, 2]])
        pattern = PointPattern.at(np.array([[0, 10.0], [0, 12.0], [1, 90.0]]), domain)
    else:
        pattern = PointPattern(np.array([[10.0, 10.0], [12.0, 10.0], [90.0, 90.0]]), Window.rectangle(0, 0, 100, 100))
    intensity = kernel_intensity(pattern, 5.0)
    axes = plot_intensity(intensity)
    shown = next(each for each in (*axes.images, *axes.collections) if each.get_array() is not None)
    along = np.linspace(0.0, 100.0, 2001)
    top = intensity(np.column_stack([along, np.full(2001, 0.0 if streets else 10.0)])).max()
    assert np.max(shown.get_array()) == pytest.approx(top, rel=0.02)
