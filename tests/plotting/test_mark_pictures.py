"""Pictures of types and times."""

import numpy as np
import pytest
from matplotlib.collections import LineCollection, PathCollection

from dpppsynth import InputError, LaplaceSynthesizer, MarkedSynthesizer, PointPattern, Window
from dpppsynth.linear_network import LinearNetwork
from dpppsynth.plotting import plot_by_time, plot_by_type, plot_epsilon_curve, plot_marginal, save_picture
from dpppsynth.privacy import AlphaNeighbours
from dpppsynth.spatial.mark_space import Marks, Times, Types
from dpppsynth.spatial.time_periods import instant_text

SQUARE = Window.rectangle(0, 0, 1000, 1000, "EPSG:27700")
STREETS = LinearNetwork([(0, 0), (1000, 0), (1000, 1000), (0, 1000)], [(0, 1), (1, 2), (2, 3), (3, 0)], "EPSG:27700")
OFFENCES = Types("offence", ["burglary", "theft"])
CLOCK = Marks(OFFENCES, Times.day("hour", hats=4))


def released(domain, marks, n=400):
    """A release of burglaries by night in the west, and twice as many thefts by day in the east."""
    rng = np.random.default_rng(3)
    kinds = np.array(["theft", "theft", "burglary"])[np.arange(n) % 3]
    xy = np.column_stack([np.where(kinds == "theft", 750, 250) + rng.uniform(-200, 200, n), rng.uniform(0, 1000, n)])
    columns = {"offence": kinds, "hour": np.where(kinds == "theft", 12.0, 0.0) + rng.uniform(0, 3, n)}
    columns = {name: columns[name] for name in marks.names}
    positions = xy if domain is SQUARE else domain.positions(domain.coordinates(domain.positions(xy)))
    says = {"time": 1.0 if marks.times else None, "types": "public" if marks.types else None}
    near = AlphaNeighbours(50.0, **says)
    pattern = PointPattern.at(positions, domain, columns)
    return MarkedSynthesizer(8.0, marks=marks, relation=near, spacing=500.0).release(pattern, rng=1)


@pytest.fixture(scope="module")
def square():
    return released(SQUARE, CLOCK)


@pytest.fixture(scope="module")
def streets():
    return released(STREETS, CLOCK)


def surface(ax):
    """The image or the streets of a panel."""
    return ax.images[0] if ax.images else next(c for c in ax.collections if c.get_array() is not None)


def dots(ax):
    """Places of the points above a map."""
    return np.vstack([c.get_offsets() for c in ax.collections if isinstance(c, PathCollection)])


@pytest.mark.exhaustive
@pytest.mark.parametrize("place", ["square", "streets"])
def test_panels_share_a_scale_that_holds_all_values(place, request):
    release = request.getfixturevalue(place)
    for axes in (plot_by_type(release), plot_by_time(release)):
        shown = [surface(ax) for ax in axes]
        assert len({each.get_clim() for each in shown}) == 1
        top = shown[0].get_clim()[1]
        if place == "square":
            assert top == max(each.get_array().max() for each in shown)
        # The scale is that of the largest panel, so others do not reach it.
        assert min(each.get_array().max() for each in shown) < 0.9 * top
        assert sum(bool(ax.get_label() == "<colorbar>") for ax in axes[0].figure.axes) == 1


def test_streets_of_equal_value_have_equal_width(streets):
    found = {}
    for ax in plot_by_type(streets):
        lines = surface(ax)
        assert isinstance(lines, LineCollection)
        found |= dict(zip(np.asarray(lines.get_array()), lines.get_linewidths(), strict=True))
    values = sorted(found)
    assert (np.diff([found[value] for value in values]) >= 0).all()


def test_maps_show_the_intensity_of_the_type(square):
    for ax, name in zip(plot_by_type(square), OFFENCES.values, strict=True):
        assert ax.get_title(loc="left") == name
        values = surface(ax).get_array()
        rows, columns = values.shape
        xy = [((130 + 0.5) * 1000 / columns, (70 + 0.5) * 1000 / rows)]
        assert values[70, 130] == pytest.approx(1e6 * square.intensity(xy, type=name)[0])


def test_maps_show_the_intensity_at_the_instant(square):
    axes = plot_by_time(square, [0.0, 13.5], type="theft")
    assert [ax.get_title(loc="left") for ax in axes] == ["00:00", "13:30"]
    for ax, time in zip(axes, (0.0, 13.5), strict=True):
        values = surface(ax).get_array()
        xy = [((130 + 0.5) * 1000 / values.shape[1], (70 + 0.5) * 1000 / values.shape[0])]
        assert values[70, 130] == pytest.approx(1e6 * square.intensity(xy, time=time, type="theft")[0])


def test_maps_unless_times_are_given_are_means_over_periods(square):
    """Headed as rows of a table are, with the points of the same hours; headed 00:00 they looked like an instant."""
    pattern = square.sample(1, rng=2)[0]
    axes = plot_by_time(square, pattern=pattern)
    assert [ax.get_title(loc="left") for ax in axes][:2] == ["00:00-03:00", "03:00-06:00"]
    np.testing.assert_array_equal(dots(axes[7]), pattern.xy[pattern.marks["hour"] >= 21])
    values = surface(axes[7]).get_array()
    xy = [((130 + 0.5) * 1000 / values.shape[1], (70 + 0.5) * 1000 / values.shape[0])]
    mean = square.intensity(xy, during=(21.0, 24.0))[0] / 3
    assert values[70, 130] == pytest.approx(1e6 * mean, rel=0.01)


def test_each_synthetic_point_is_drawn_once_where_it_belongs(square):
    pattern = square.sample(1, rng=2)[0]
    kinds, hours = pattern.marks["offence"], pattern.marks["hour"]
    by_type = [dots(ax) for ax in plot_by_type(square, pattern=pattern)]
    assert [len(each) for each in by_type] == [(kinds == name).sum() for name in OFFENCES.values]
    np.testing.assert_array_equal(by_type[0], pattern.xy[kinds == "burglary"])
    by_time = [dots(ax) for ax in plot_by_time(square, [0.0, 12.0], pattern=pattern)]
    midnight = np.minimum(hours, 24 - hours) <= np.abs(hours - 12)  # six o'clock is as near to both
    np.testing.assert_array_equal(by_time[0], pattern.xy[midnight])
    assert sum(map(len, by_time)) == len(pattern)


def test_a_clock_has_the_marginal_and_closes(square, tmp_path):
    ax = plot_marginal(square, "time")
    table = square.marginal("time")
    angle, rate = ax.lines[0].get_data()
    assert ax.name == "polar"
    assert (angle[0], angle[-1]) == (0, pytest.approx(2 * np.pi))
    assert rate[0] == rate[-1]
    np.testing.assert_allclose(rate[:-1:12], table["points"] / CLOCK.times.measure)
    assert ax.get_theta_direction() == -1
    assert save_picture(ax, tmp_path / "clock.png").stat().st_size > 5000


@pytest.mark.exhaustive
@pytest.mark.parametrize(("times", "polar"), [(Times.week("hour"), True), (Times("hour", 0, 24, 5), False)])
def test_weeks_are_clocks_and_ranges_are_curves(times, polar):
    release = released(SQUARE, Marks(times=times))
    ax = plot_marginal(release, "time")
    assert (ax.name == "polar") == polar
    assert {"Mon", "Sun"} <= {text.get_text() for text in ax.texts} or not polar
    panels = plot_by_time(release)
    assert len(panels) == (7 if polar else 8)
    with pytest.raises(InputError, match="have no types"):
        plot_by_type(release)


def test_bars_are_the_types(square):
    ax = plot_marginal(square, "types")
    assert [label.get_text() for label in ax.get_yticklabels()] == list(OFFENCES.values)
    np.testing.assert_allclose([bar.get_width() for bar in ax.patches], square.marginal("types")["points"])


def test_others_are_refused(square):
    plain = LaplaceSynthesizer(1.0, alpha=50.0).release(PointPattern([[1.0, 1.0]], SQUARE), rng=1)
    for draw in (plot_by_type, plot_by_time):
        with pytest.raises(InputError, match=r"^release:"):
            draw(plain)
    with pytest.raises(InputError, match=r"^types:"):
        plot_by_type(square, ["arson"])
    with pytest.raises(InputError, match=r"^pattern:"):
        plot_by_type(square, pattern=square.sample(1, rng=1)[0].unmarked())


def test_the_curve_by_distance_says_that_marks_are_kept(square):
    ax = plot_epsilon_curve(square.guarantee)
    assert "its marks kept" in ax.get_xlabel()
    assert any("time changed" in text.get_text() for text in ax.texts)


def test_years_of_a_calendar_have_a_panel_each():
    marks = Marks(times=Times.between("when", "2019-01-01", "2022-01-01", hats=7))
    rng = np.random.default_rng(3)
    pattern = PointPattern(rng.uniform(0, 1000, (200, 2)), SQUARE, {"when": rng.uniform(0, 365, 200)})
    near = AlphaNeighbours(50.0, time="protected")
    release = MarkedSynthesizer(20.0, marks=marks, relation=near).release(pattern, 1)
    drawn = release.sample(1, 1)[0]
    panels = plot_by_time(release, pattern=drawn)
    assert [ax.get_title(loc="left") for ax in panels] == ["2019", "2020", "2021"]
    dots = [len(ax.collections[-1].get_offsets()) for ax in panels]
    assert sum(dots) == len(drawn)
    assert dots[0] == (drawn.marks["when"] < 365).sum()
    assert dots[0] > dots[2]


@pytest.mark.parametrize(
    ("times", "time", "text"),
    [
        (Times.day("t"), 23.999, "00:00"),
        (Times.week("t"), 167.9999, "Mon 00:00"),
        (Times.week("t"), 30.25, "Tue 06:15"),
        (Times.between("t", "2020-01-01", "2020-01-11", hats=41), 1.5, "2020-01-02 12:00"),
        (Times.between("t", "2020-01-01", "2021-01-01"), 31.5, "2020-02-01"),
        (Times("t", 2000, 2020, 5, unit="years"), 2001.5, "2001.5 years"),
    ],
)
def test_instants_in_words(times, time, text):
    assert instant_text(times, time) == text


def test_panels_share_a_scale_bar_and_a_legend_that_is_not_rotated(streets):
    axes = plot_by_type(streets, title="Crimes\nby offence")
    assert [any("m" in text.get_text() for text in ax.texts) for ax in axes] == [True, False]
    (bar,) = [ax for ax in axes[0].figure.axes if ax not in axes and ax.axison]
    assert bar.get_xlabel().startswith("points per km of street")
    assert not bar.get_ylabel()
    low, high = bar.get_position().min, bar.get_position().max
    assert high[1] - low[1] < (high[0] - low[0]) / 5
    assert high[1] < min(ax.get_position().min[1] for ax in axes)
    assert axes[0].figure.get_suptitle() == "Crimes\nby offence"
    assert len({width for ax in axes for width in surface(ax).get_linewidths()}) == 1


def test_types_that_are_days_begin_with_monday():
    marks = Marks(Types("day", ["Sunday", "Friday", "Monday"]))
    rng = np.random.default_rng(0)
    pattern = PointPattern(
        rng.uniform(0, 1000, (90, 2)), SQUARE, {"day": np.array(marks.types.values)[np.arange(90) % 3]}
    )
    near = AlphaNeighbours(50.0, types="public")
    release = MarkedSynthesizer(8.0, marks=marks, relation=near, spacing=500.0).release(pattern, rng=1)
    assert [ax.get_title(loc="left") for ax in plot_by_type(release)] == ["Monday", "Friday", "Sunday"]
    shares = plot_marginal(release, "types")
    assert [each.get_text() for each in shares.get_yticklabels()] == ["Monday", "Friday", "Sunday"]
