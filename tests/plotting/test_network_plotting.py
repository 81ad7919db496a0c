"""Pictures on networks: what is drawn lies on the streets, where it should, in the right colours."""

import numpy as np
import pytest
import shapely
from matplotlib.text import Text
from support.pictures import pixel_at, pixels, texts

from dpppsynth import InputError, PointPattern, Window
from dpppsynth.linear_network import LinearNetwork, network_mesh
from dpppsynth.models import trace_mesh
from dpppsynth.plotting import plot_comparison, plot_intensity, plot_mesh, plot_pattern, save_picture
from dpppsynth.plotting.surfaces import street_values
from dpppsynth.spatial.intensity import LogLinear, LogLinearMean, PiecewiseConstant, PiecewiseLinear

# A straight street of 100, one of 50 at right angles to it, and a bow of 130 in between.
BOW = shapely.LineString([(100, 50), (60, 80), (0, 80), (0, 0)])
BLOCK = LinearNetwork(
    [[0, 0], [100, 0], [100, 50]],
    [[0, 1], [1, 2], [2, 0]],
    "EPSG:27700",
    lines=[shapely.LineString([(0, 0), (100, 0)]), shapely.LineString([(100, 0), (100, 50)]), BOW],
)
FLAT = LinearNetwork([[0, 0], [300, 0]], [[0, 1]])
UPRIGHT = LinearNetwork([[0, 0], [0, 300]], [[0, 1]])
NETWORKS = [BLOCK, FLAT, UPRIGHT]
NAMES = ["block", "flat", "upright"]
MESHES = [network_mesh(BLOCK, 7.0), trace_mesh(BLOCK, spacing=30.0)]
KINDS = ["segments", "triangles"]


def covers(ax, domain):
    x0, y0, x1, y1 = domain.bounds
    (left, right), (low, high) = ax.get_xlim(), ax.get_ylim()
    return left < x0 <= x1 < right and low < y0 <= y1 < high


def scattered(network, n=60, seed=2):
    rng = np.random.default_rng(seed)
    return network.pattern(rng.integers(len(network.edges), size=n), rng.uniform(size=n))


@pytest.mark.parametrize("network", NETWORKS, ids=NAMES)
def test_every_picture_shows_the_whole_network(network):
    mesh = network_mesh(network, 20.0)
    pattern = scattered(network)
    pictures = [
        plot_pattern(pattern),
        plot_pattern(PointPattern.at(np.empty((0, 2)), network, synthetic=True)),
        plot_intensity(LogLinear(mesh, mesh.vertices[:, 0] / 100)),
        plot_mesh(mesh),
        *plot_comparison(pattern, scattered(network, seed=3)),
    ]
    for ax in pictures:
        assert covers(ax, network)
        assert ax.get_aspect() == 1.0
        assert not ax.yaxis_inverted()
        bar = ax.get_lines()[0].get_xdata()
        label = next(text for text in texts(ax.figure) if text.endswith((" m", " units")))
        assert label.split()[0] == f"{bar.max() - bar.min():g}"


def test_streets_are_the_ground_and_points_lie_on_them():
    pattern = BLOCK.pattern([2, 2, 0], [0.5, 0.5, 0.25])
    ax = plot_pattern(pattern)
    streets, *dots = ax.collections
    drawn = shapely.union_all(shapely.linestrings([list(path.vertices) for path in streets.get_paths()][2]))
    assert drawn.equals(BOW)
    one, two = dots
    assert {tuple(xy) for each in dots for xy in each.get_offsets()} == {tuple(xy) for xy in pattern.xy}
    assert two.get_sizes() == pytest.approx(2 * one.get_sizes())
    red, _, blue = pixel_at(ax, *pattern.xy[0])
    assert blue > red + 50
    assert tuple(pixel_at(ax, 50, 40)) == (255, 255, 255)  # inside the block


@pytest.mark.parametrize("mesh", MESHES, ids=KINDS)
class TestAlongStreets:
    def intensities(self, mesh):
        rng = np.random.default_rng(4)
        field, value = rng.normal(size=(3, len(mesh.vertices))), rng.uniform(size=len(mesh.vertices))
        steps = rng.uniform(size=len(mesh.elements))
        return [
            LogLinear(mesh, field[0]),
            LogLinearMean(mesh, field),
            PiecewiseLinear(mesh, value),
            PiecewiseConstant(mesh, steps),
        ]

    def test_stretches_tile_the_streets(self, mesh):
        for intensity in self.intensities(mesh):
            lines, _ = street_values(intensity)
            whole = shapely.union_all(shapely.linestrings(lines))
            # Where the bow bends inside a stretch, its chord is shorter by a hair: by less than one stretch.
            assert whole.length == pytest.approx(BLOCK.length, abs=0.2)
            assert shapely.hausdorff_distance(whole, BLOCK.geometry, densify=0.01) < 1
            assert np.hypot(*(lines[:, 0] - lines[:, 1]).T).max() <= 100 / 240 * (1 + 1e-9)

    def test_values_are_those_of_the_places_drawn(self, mesh):
        for intensity in self.intensities(mesh):
            lines, values = street_values(intensity)
            # Away from bends and ends of elements the middle of a line is the middle of its stretch.
            middle = lines.mean(axis=1)
            steps = ((-1e-6, 0), (1e-6, 0), (0, 1e-6), (0, -1e-6))
            near = np.column_stack([intensity(middle + step) for step in steps])
            smooth = (np.ptp(near, axis=1) < 1e-4 * near.max(axis=1)) & (BLOCK.away(middle) < 1e-9)
            np.testing.assert_allclose(values[smooth], intensity(middle)[smooth], rtol=1e-6)
            assert smooth.mean() > 0.9

    def test_total_is_what_is_drawn(self, mesh):
        for intensity in self.intensities(mesh):
            lines, values = street_values(intensity)
            length = np.hypot(*(lines[:, 0] - lines[:, 1]).T)
            assert values @ length == pytest.approx(intensity.total, rel=5e-3)


def test_many_edges_keep_their_values():
    # Edge numbers that a mean or an interpolation rounds wrongly would move stretches to a neighbouring edge.
    star = [[0.0, 0.0], *(([100 * np.cos(a), 100 * np.sin(a)]) for a in np.linspace(0, 6, 97))]
    network = LinearNetwork(star, [[0, k] for k in range(1, 98)])
    mesh = network_mesh(network, 40.0)
    lines, values = street_values(PiecewiseConstant(mesh, mesh.edge.astype(float)))
    middle = lines.mean(axis=1)
    far = np.hypot(*middle.T) > 10
    np.testing.assert_array_equal(network.positions(middle[far])[:, 0], values[far])


def test_intensity_has_colour_and_unit():
    mesh = network_mesh(BLOCK, 5.0)
    low_and_high = np.where(mesh.edge == 1, 0.9, 0.1)
    ax = plot_intensity(PiecewiseConstant(mesh, low_and_high))
    drawn = ax.collections[-1]
    # Lines are of one width, and the legend stands as it is read.
    assert len(set(drawn.get_linewidths())) == 1
    assert drawn.get_clim() == pytest.approx((0.0, 900.0))
    (label,) = [each for each in ax.figure.findobj(Text) if each.get_text() == "points per km of street"]
    assert label.get_rotation() == 0
    # Dark is high.
    assert pixel_at(ax, 100, 25).sum() < pixel_at(ax, 50, 0).sum() - 200
    assert pixel_at(ax, 50, 0).sum() < 700


def test_an_edge_too_short_to_be_seen_sets_no_scale():
    # A noisy point on a centimetre of street is an intensity of a hundred points per metre.
    network = LinearNetwork([[0, 0], [100, 0], [100.01, 0], [100.01, 50]], [[0, 1], [1, 2], [2, 3]], "EPSG:27700")
    mesh = network_mesh(network, 20.0)
    ax = plot_intensity(PiecewiseConstant(mesh, np.array([0.2, 100.0, 0.4])[mesh.edge]))
    drawn = ax.collections[-1]
    assert drawn.get_clim() == pytest.approx((0.0, 400.0))
    assert drawn.get_array().max() == pytest.approx(100_000.0)
    assert ax.figure.axes[-1]._colorbar.extend == "max"
    # Three metres of it are seen.
    longer = LinearNetwork([[0, 0], [100, 0], [103, 0], [103, 50]], [[0, 1], [1, 2], [2, 3]], "EPSG:27700")
    mesh = network_mesh(longer, 20.0)
    ax = plot_intensity(PiecewiseConstant(mesh, np.array([0.2, 100.0, 0.4])[mesh.edge]))
    assert ax.collections[-1].get_clim()[1] == pytest.approx(100_000.0)
    assert ax.figure.axes[-1]._colorbar.extend == "neither"


def test_intensity_of_nothing_is_drawn():
    mesh = network_mesh(FLAT, 50.0)
    ax = plot_intensity(PiecewiseConstant(mesh, np.zeros(len(mesh.elements))))
    assert covers(ax, FLAT)
    assert pixels(ax).std() > 1


@pytest.mark.parametrize("mesh", MESHES, ids=KINDS)
def test_mesh_and_streets_are_both_shown(mesh):
    ax = plot_mesh(mesh)
    drawn = {text.get_text() for text in ax.get_legend().get_texts()}
    assert drawn == {"mesh", "vertices"}
    lines = {collection.get_label(): collection for collection in ax.collections}
    assert len(lines["mesh"].get_paths()) == (3 if mesh.kind == "segment" else len(mesh.elements))
    (left, right), (low, high) = ax.get_xlim(), ax.get_ylim()
    x, y = mesh.vertices.T
    assert left < x.min() <= x.max() < right
    assert low < y.min() <= y.max() < high
    shown = np.column_stack(ax.get_lines()[-1].get_data())
    np.testing.assert_array_equal(shown, mesh.vertices)


def test_landmarks_away_from_the_streets_are_left_out():
    places = PointPattern([[50.0, 30.0], [500.0, 0.0]], Window.rectangle(0, 0, 900, 900, "EPSG:27700"))
    ax = plot_pattern(scattered(BLOCK), landmarks=places, landmark_label="pump")
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["pump"]
    np.testing.assert_array_equal(np.ravel(ax.get_lines()[-1].get_data()), [50.0, 30.0])
    assert covers(ax, BLOCK)


class TestComparison:
    def test_is_marked_and_kept_out_of_a_release(self, tmp_path):
        (tmp_path / "certificate.json").write_text("{}")
        axes = plot_comparison(scattered(BLOCK), scattered(BLOCK, seed=3))
        assert sum("CONFIDENTIAL" in text for text in texts(axes[0].figure)) == 2
        with pytest.raises(InputError, match="outside"):
            save_picture(axes, tmp_path / "picture.png")

    @pytest.mark.parametrize(
        "other", [scattered(FLAT), PointPattern([[1.0, 2.0]], Window.rectangle(0, 0, 100, 80, "EPSG:27700"))]
    )
    def test_domains_must_agree(self, other):
        with pytest.raises(InputError, match="another window or network"):
            plot_comparison(scattered(BLOCK), other)


def test_no_picture_states_the_number_of_points():
    pattern = scattered(BLOCK, n=777)
    mesh = network_mesh(BLOCK, 20.0)
    intensity = LogLinear(mesh, np.full(len(mesh.vertices), np.log(777 / BLOCK.length)))
    axes = [plot_pattern(pattern), plot_intensity(intensity), plot_comparison(pattern, pattern)[0]]
    assert not any("777" in text for ax in axes for text in texts(ax.figure))
