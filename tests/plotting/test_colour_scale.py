"""Colour scales, dots and colours of types: what is faint is seen, and legends say how."""

from dataclasses import replace

import numpy as np
import pytest

from dpppsynth import InputError, LinearNetwork, MarkedSynthesizer, PointPattern, Window
from dpppsynth.models import regular_squares
from dpppsynth.plotting import colour_scale, plot_comparison, plot_epsilon_curve, plot_intensity, plot_pattern, surfaces
from dpppsynth.plotting.canvas import OTHERS, PALETTE
from dpppsynth.plotting.surfaces import LINEAR, LOG, ROOT, ColourScale, Shades
from dpppsynth.privacy import AlphaNeighbours, Guarantee, PureDP
from dpppsynth.spatial.intensity import PiecewiseConstant
from dpppsynth.spatial.mark_space import Marks, Times

SQUARE = Window.rectangle(0, 0, 1000, 1000, "EPSG:27700")
MESH = regular_squares(SQUARE, shape=(11, 11))


def spotted(rest, top=1.0):
    """An intensity of `rest` per square metre, but for a hundredth of the window."""
    return PiecewiseConstant(MESH, np.append(np.full(99, rest), top))


@pytest.fixture(autouse=True)
def coarse(monkeypatch):
    monkeypatch.setattr(surfaces, "PIXELS", 60)


def bar(ax):
    (found,) = [each for each in ax.figure.axes if each.get_label() == "<colorbar>"]
    return found


@pytest.mark.parametrize(("rest", "kind"), [(0.2, LINEAR), (0.199, ROOT), (0.02, ROOT), (0.0199, LOG), (0.0, LOG)])
def test_the_rule_is_the_share_of_the_top_that_most_of_the_map_stays_below(rest, kind):
    scale = ColourScale.of([Shades(np.append(np.full(99, rest), 1.0), np.ones(100), 1.0)])
    assert (scale.kind, scale.top) == (kind, 1.0)
    assert (scale.low > 0) == (kind == LOG)


def test_places_count_by_their_extent_and_maps_together():
    """One wide bright place of two is no spot; and a bright level shares its top with a dark one."""
    assert ColourScale.of([Shades(np.array([0.01, 1.0]), np.array([94.0, 6.0]), 1.0)]).kind == LINEAR
    assert ColourScale.of([Shades(np.array([0.01, 1.0]), np.array([96.0, 4.0]), 1.0)]).kind == LOG
    both = colour_scale([spotted(0.5), spotted(0.5, 3.0)])
    assert (both.kind, both.top) == (ROOT, 3e6)


def test_values_are_by_square_kilometre_and_the_legend_states_the_scale():
    for rest, kind in (0.5, ""), (0.1, "square-root"), (0.001, "log"):
        ax = plot_intensity(spotted(rest), of="deaths")
        label = bar(ax).get_xlabel().replace("\n", " ")
        assert label.startswith("deaths per km²")
        assert (f"{kind} scale: 95 % of the area is below" in label) == bool(kind)
        assert ax.images[0].get_array().max() == pytest.approx(1e6)
        ticks = bar(ax).get_xticks()
        assert len(ticks) >= 3
        assert all(0 <= each <= 1e6 for each in ticks)


def test_one_scale_for_maps_that_are_compared():
    scale = colour_scale([spotted(0.5), spotted(0.1, 0.4)])
    bright, dark = (plot_intensity(each, scale=scale).images[0] for each in (spotted(0.5), spotted(0.1, 0.4)))
    assert bright.get_clim() == dark.get_clim() == (0.0, 1e6)


def test_the_stated_share_is_no_smaller_than_it_is():
    assert "below 13 % of the top" in ColourScale(100.0, 0.0, ROOT, 12.001).words("area")
    assert "below 0.2 % of the top" in ColourScale(100.0, 0.1, LOG, 0.11).words("streets")


def test_many_points_are_transparent_and_small():
    rng = np.random.default_rng(1)
    few, many, most = (PointPattern(rng.uniform(0, 1000, (n, 2)), SQUARE) for n in (2_000, 2_500, 8_000))
    drawn = [plot_pattern(each).collections[0] for each in (few, many, most)]
    opacity = [each.get_alpha() for each in drawn]
    area = [float(each.get_sizes()[0]) for each in drawn]
    assert opacity[0] > opacity[1] > opacity[2]
    assert area[0] > area[1] > area[2] == pytest.approx(area[0] / 2)
    # Side by side the same dot means the same.
    left, right = plot_comparison(few, most)
    assert left.collections[0].get_alpha() == right.collections[0].get_alpha()
    assert left.collections[0].get_sizes() == right.collections[0].get_sizes()


def test_types_have_colours_and_names_outside_the_map():
    xy = np.column_stack([np.linspace(0, 1000, 30), np.full(30, 500.0)])
    kinds = np.array(["theft", "fraud", "arson"])[np.arange(30) % 3]
    ax = plot_pattern(PointPattern(xy, SQUARE, {"kind": kinds}), by="kind")
    colours = {tuple(colour) for each in ax.collections for colour in each.get_facecolors()}
    assert len(colours) == 3
    legend = ax.get_legend()
    assert [text.get_text() for text in legend.get_texts()] == ["arson", "fraud", "theft"]
    ax.figure.canvas.draw()
    window = ax.transData.transform([(0, 0), (1000, 1000)])
    assert legend.get_window_extent().y1 <= window[0, 1]
    with pytest.raises(InputError, match=r"^by:"):
        plot_pattern(PointPattern(xy, SQUARE, {"kind": kinds}), by="type")


def test_further_types_share_a_colour():
    xy = np.column_stack([np.linspace(0, 1000, 30), np.full(30, 500.0)])
    ax = plot_pattern(PointPattern(xy, SQUARE, {"kind": np.arange(30) % 10}), by="kind")
    names = [text.get_text() for text in ax.get_legend().get_texts()]
    assert names == [*map(str, range(len(PALETTE))), OTHERS]


class TestDotOfTheCurve:
    def dot(self, guarantee):
        ax = plot_epsilon_curve(guarantee, unit="metre")
        curve, *others = ax.get_lines()
        (dot,) = [each for each in others if each.get_marker() == "o"]
        (x,), (y,) = dot.get_data()
        return ax, x, y, float(np.interp(x, *curve.get_data()))

    def test_marks_that_change_as_well_cost_more_than_the_curve_says(self):
        marks = Marks(times=Times.day("hour"))
        settings = MarkedSynthesizer(2.0, marks=marks, relation=AlphaNeighbours(25.0, time=1.0))
        guarantee = settings.check(SQUARE, n=400)
        ax, x, y, on_curve = self.dot(guarantee)
        assert (x, y) == (25.0, pytest.approx(on_curve))
        assert y < 0.9 * guarantee.epsilon()
        said = " ".join(text.get_text() for text in ax.texts)
        assert "marks kept" in said
        assert "claimed: up to 25 m, time changed: ε = 2" in said

    @pytest.mark.parametrize("user", [None, "who"])
    def test_a_person_with_several_points_has_a_line_of_their_own(self, user):
        several = AlphaNeighbours(25.0, max_points_per_person=2, user=user)
        ax = plot_epsilon_curve(Guarantee(several, PureDP(1.0), "t", ("a",)), unit="metre")
        one, person = (line.get_ydata() for line in ax.get_lines())
        assert (one.max(), person.min()) == (0.5, 1.0)
        assert ax.get_ylim()[1] > 1
        assert "ε of one point" in ax.get_ylabel()
        assert any("person" in text.get_text() and "ε = 1" in text.get_text() for text in ax.texts)

    def test_a_claim_between_two_steps_of_the_curve_is_on_it(self):
        """The curve is proved at steps; what is claimed within them is lower than the line from one to the next."""
        steps = ((20.0, 1.5), (40.0, 3.0))
        guarantee = replace(Guarantee(AlphaNeighbours(25.0), PureDP(1.2), "t", ("a",)), by_distance=steps)
        _, x, y, on_curve = self.dot(guarantee)
        assert (x, y) == (25.0, pytest.approx(1.2))
        assert on_curve == pytest.approx(1.2)

    def test_what_tells_nothing_any_more_is_cut_and_said(self):
        guarantee = Guarantee(AlphaNeighbours(10.0), PureDP(1.0), "t", ("a",))
        far = replace(guarantee, by_distance=((10.0, 1.0), (1000.0, 5437.2)))
        ax = plot_epsilon_curve(far, unit="metre")
        assert ax.get_xlim()[1] < 20
        assert "goes on to ε = 5,440 at 1,000 m" in [text.get_text() for text in ax.texts]


def test_streets_of_a_large_network_are_thinner():
    side = np.arange(60.0)
    ladder = [(2 * k, 2 * k + 2) for k in range(59)] + [(2 * k + 1, 2 * k + 3) for k in range(59)] + [(0, 1)]
    small = LinearNetwork([[x, y] for x in side for y in (0.0, 1.0)], ladder)
    x = np.arange(2_501.0)
    large = LinearNetwork(np.column_stack([x, np.zeros(len(x))]), [(k, k + 1) for k in range(2_500)])
    widths = [
        plot_pattern(PointPattern.at([[0, 0.5]], each)).collections[0].get_linewidths()[0] for each in (small, large)
    ]
    assert widths[1] < widths[0]
