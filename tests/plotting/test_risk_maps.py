"""Maps of relative risk: colours around the average, and outlines of certain excess."""

import numpy as np
import pytest

from dpppsynth.core.errors import InputError
from dpppsynth.inference.risk import RelativeRisk
from dpppsynth.linear_network import LinearNetwork, network_mesh
from dpppsynth.linear_network.mesh import SegmentCells
from dpppsynth.models import regular_triangulation
from dpppsynth.plotting import plot_relative_risk, save_picture
from dpppsynth.spatial.domains import Window
from dpppsynth.spatial.offset import Offset

SQUARE = Window.rectangle(0, 0, 1000, 1000)
MESH = regular_triangulation(SQUARE, shape=(21, 21))
STREETS = LinearNetwork([[0, 0], [1000, 0], [1000, 400]], [[0, 1], [1, 2]])


def risk(mesh, slope=1.0, **more):
    """A slope along x and a little uncertainty: 200 draws."""
    noise = np.random.default_rng(1).normal(0, 0.02, (200, 1))
    return RelativeRisk(mesh, slope * (mesh.vertices[:, 0] - 500) / 500 + noise * mesh.vertices[:, 0] / 500, **more)


def bar(ax):
    """Axes of the colour bar."""
    return next(each for each in ax.figure.axes if each is not ax)


@pytest.mark.parametrize("mesh", [MESH, SegmentCells.of(network_mesh(STREETS, 10.0))], ids=["window", "streets"])
@pytest.mark.parametrize("slope", [0.3, 1.0, 2.0, 9.0])
def test_the_scale_reaches_the_top_in_round_numbers(mesh, slope):
    """From a tenth above average to thousands of times: no risk lies beyond the scale, and 1 is its middle."""
    drawn = risk(mesh, slope)
    ax = plot_relative_risk(drawn)
    shown = [*ax.get_images(), *ax.collections][0 if mesh is MESH else -1]
    low, high = shown.get_clim()
    assert high >= np.asarray(shown.get_array()).max()
    assert high <= max(1.5, drawn(mesh.vertices).max())
    assert low == pytest.approx(1 / high)
    side = bar(ax)
    texts = [each.get_text() for each in side.get_xticklabels()]
    ticks = side.get_xticks()
    assert "1" in texts
    assert len(ticks) >= 3
    assert all(low <= each <= high for each in ticks)
    assert [float(each.replace(",", "")) for each in texts] == pytest.approx(ticks)
    digits = [each.replace(",", "").replace(".", "").strip("0") for each in texts]
    assert max(map(len, digits)) <= (1 if high > 12 else 3)


def test_the_scale_says_what_one_is_and_the_title_what_was_paid():
    people = Offset.from_grid([[1.0]], SQUARE.bounds)
    ax = plot_relative_risk(risk(MESH, offset=people, terms="ε = 1, n = 1,500"))
    assert bar(ax).get_xlabel() == "relative risk (1 = average of the population)"
    assert ax.get_title(loc="left") + ax.get_title() == "Relative risk, ε = 1, n = 1,500"
    assert "average of the area" in bar(plot_relative_risk(risk(MESH))).get_xlabel()
    streets = SegmentCells.of(network_mesh(STREETS, 50.0))
    assert "average of the streets" in bar(plot_relative_risk(risk(streets))).get_xlabel()


def test_the_outline_is_where_the_risk_passes_the_threshold(tmp_path):
    ax = plot_relative_risk(risk(MESH), threshold=1.2, title="Risk")
    outline = np.concatenate([path.vertices for each in ax.collections for path in each.get_paths()])
    at = outline[:, 0].mean()
    assert outline[:, 0].std() < 5
    assert risk(MESH)(np.array([[at, 500.0]]))[0] == pytest.approx(1.2, abs=0.1)
    assert "P(risk > 1.2) ≥ 95 %" in [text.get_text() for text in ax.get_legend().get_texts()]
    (image,) = ax.get_images()
    low, high = image.get_clim()
    assert low * high == pytest.approx(1)
    save_picture(ax, tmp_path / "risk.png")
    assert (tmp_path / "risk.png").stat().st_size > 10_000


def test_without_excess_there_is_no_outline():
    ax = plot_relative_risk(risk(MESH, 0.1), threshold=3.0)
    assert not [path for each in ax.collections for path in each.get_paths() if len(path.vertices) > 100]


def test_along_streets_excess_is_thick():
    mesh = SegmentCells.of(network_mesh(STREETS, 50.0))
    ax = plot_relative_risk(risk(mesh), threshold=1.2)
    drawn = ax.collections[-1]
    middle = np.array([path.vertices.mean(axis=0)[0] for path in drawn.get_paths()])
    width = np.array(drawn.get_linewidths())
    assert width[middle < 500].max() < width[middle > 900].min()


@pytest.mark.parametrize("wrong", [{"threshold": 0}, {"certainty": 1.0}, {"certainty": "x"}])
def test_refused(wrong):
    with pytest.raises(InputError, match=next(iter(wrong))):
        plot_relative_risk(risk(MESH), **wrong)
    with pytest.raises(InputError, match=r"^risk:"):
        plot_relative_risk(MESH)
