"""K-functions in windows against closed forms, other software's numbers and the definition itself."""

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import shapely
from scipy.spatial.distance import cdist, pdist

from dpppsynth.core.errors import InputError
from dpppsynth.evaluation import kfunction, pairs
from dpppsynth.evaluation import translation_correction as translation
from dpppsynth.evaluation.kfunction import default_distances, k_function, pair_correlation
from dpppsynth.evaluation.smoothing import kernel_intensity
from dpppsynth.linear_network import LinearNetwork
from dpppsynth.linear_network import k_function as network_k
from dpppsynth.linear_network import pair_correlation as network_g
from dpppsynth.models.regular_meshes import regular_squares
from dpppsynth.spatial.domains import Window
from dpppsynth.spatial.intensity import PiecewiseConstant
from dpppsynth.spatial.patterns import PointPattern

DATA = Path(__file__).parents[1] / "data"
SQUARE = Window.rectangle(0, 0, 1, 1)
PAIRWISE = ["isotropic", "translation", "none"]
# Two parts and two holes, dents narrower than the distances looked at.
PARTS = Window.polygon(
    shapely.union_all(
        [
            shapely.Polygon(
                [(0, 0), (6, 0), (6, 4), (3, 4), (3, 2.5), (2, 2.5), (2, 4.5), (0, 4)],
                [[(1, 1), (1.5, 2), (2.5, 1.2)], [(4, 1), (4, 2), (5, 2), (5, 1)]],
            ),
            shapely.Polygon([(7, 0), (9, 1), (7.5, 3)]),
        ]
    )
)
L_SHAPE = Window.polygon(shapely.Polygon([(0, 0), (2, 0), (2, 1), (1, 1), (1, 2), (0, 2)]))
COMB = Window.polygon(
    shapely.union_all([shapely.box(0, 0, 4, 1)] + [shapely.box(0.4 * i, 1, 0.4 * i + 0.2, 3) for i in range(10)])
)
STREETS = Window.polygon(
    shapely.union_all(
        [shapely.box(0, i, 4.05, i + 0.05) for i in range(5)] + [shapely.box(i, 0, i + 0.05, 4.05) for i in range(5)]
    )
)
ISLES = Window.polygon(shapely.union_all([shapely.box(0, 0, 1, 1), shapely.box(2, 0, 3, 1)]))


def table(name):
    return np.loadtxt(DATA / f"soho_planar_{name}.csv", delimiter=",", skiprows=1)


def soho():
    return PointPattern(table("points"), Window.rectangle(528900, 180500, 530000, 181500))


def uniform(window, n, rng):
    x0, y0, x1, y1 = window.bounds
    xy = rng.uniform((x0, y0), (x1, y1), (20 * n, 2))
    return PointPattern(xy[window.contains(xy)][:n], window)


def share_inside(window, centre, radius):
    """Share of a circle in a window: arcs between crossings with the border, found by the quadratic formula."""
    rings = [ring for part in shapely.get_parts(window.geometry) for ring in (part.exterior, *part.interiors)]
    corners = [shapely.get_coordinates(ring) for ring in rings]
    start, end = np.concatenate([c[:-1] for c in corners]), np.concatenate([c[1:] for c in corners])
    a, v = start - centre, end - start
    square, half, rest = (v**2).sum(axis=1), (a * v).sum(axis=1), (a**2).sum(axis=1) - radius**2
    real = half**2 - square * rest > 0
    a, v, square, half, rest = (values[real] for values in (a, v, square, half, rest))
    angles = []
    for sign in (-1, 1):
        t = (-half + sign * np.sqrt(half**2 - square * rest)) / square
        x, y = (a + t[:, None] * v)[(t >= 0) & (t <= 1)].T
        angles.extend(np.arctan2(y, x))
    angles = np.sort(angles) if angles else np.zeros(1)
    angles = np.append(angles, angles[0] + 2 * np.pi)
    middle = (angles[1:] + angles[:-1]) / 2
    x, y = centre[:, None] + radius * np.array([np.cos(middle), np.sin(middle)])
    return np.diff(angles) @ shapely.intersects_xy(window.geometry, x, y) / (2 * np.pi)


def edge_weights(pattern, correction, farthest):
    """(n, n) weights of ordered pairs, one by one."""
    window, xy = pattern.domain, pattern.xy
    e, d = np.ones((len(xy), len(xy))), cdist(xy, xy)
    for i, j in zip(*np.nonzero((d > 0) & (d <= farthest)), strict=True):
        if correction == "isotropic":
            e[i, j] = min(1 / max(share_inside(window, xy[i], d[i, j]), 1e-9), 100)
        elif correction == "translation":
            moved = shapely.transform(window.geometry, lambda c, by=xy[j] - xy[i]: c + by)
            e[i, j] = min(window.area / max(window.geometry.intersection(moved).area, 1e-9), 100)
    return e


def by_definition(pattern, r, weight, correction, e):
    """(b,) double sums over ordered pairs."""
    away = shapely.distance(pattern.domain.geometry.boundary, shapely.points(pattern.xy))
    e = e * np.outer(weight, weight) * (1 - np.eye(len(weight)))
    d = cdist(pattern.xy, pattern.xy)
    if correction == "border":
        far = [away >= at for at in r]
        return np.array([(e * (d <= at))[ok].sum() / weight[ok].sum() for at, ok in zip(r, far, strict=True)])
    return np.array([(e * (d <= at)).sum() for at in r]) / pattern.domain.area


@pytest.mark.parametrize(("correction", "column"), [("none", 2), ("border", 3), ("translation", 4), ("isotropic", 5)])
def test_k_equals_an_independent_implementation(correction, column):
    reference = table("Kest")
    found = k_function(soho(), reference[:, 0], correction=correction)
    np.testing.assert_allclose(found.k, reference[:, column], rtol=1e-6)
    np.testing.assert_allclose(found.theory, reference[:, 1], rtol=1e-6)


@pytest.mark.parametrize(("correction", "column"), [("translation", 2), ("isotropic", 3)])
def test_inhomogeneous_k_equals_an_independent_implementation(correction, column):
    reference = table("Kinhom_loglinear")

    def intensity(xy):
        return np.exp(-8 + 0.0004 * (xy[:, 0] - 529400))

    found = k_function(soho(), reference[:, 0], intensity, correction)
    np.testing.assert_allclose(found.k, reference[:, column], rtol=1e-6)


@pytest.mark.exhaustive
@pytest.mark.parametrize("correction", [*PAIRWISE, "border"])
def test_k_equals_its_definition_in_a_window_of_parts_with_holes(correction):
    # Distances far beyond the holes; some circles lie nearly outside. Different weights at the two ends of a pair.
    rng = np.random.default_rng(1)
    pattern, intensity, n = uniform(PARTS, 20, rng), rng.uniform(0.5, 2, 20), 20
    r = np.linspace(0.05, 0.6 if correction == "border" else 5, 21)
    e = edge_weights(pattern, correction, 5)
    expected = by_definition(pattern, r, 1 / intensity, correction, e)
    np.testing.assert_allclose(k_function(pattern, r, intensity, correction, normalise=False).k, expected, rtol=1e-10)
    factor = pattern.domain.area / (n if correction == "border" else n * (n - 1) / pattern.domain.area)
    expected = by_definition(pattern, r, np.ones(n), correction, e) * factor
    np.testing.assert_allclose(k_function(pattern, r, correction=correction).k, expected, rtol=1e-10)


@pytest.mark.exhaustive
@pytest.mark.parametrize("correction", ["isotropic", "translation"])
def test_rectangles_and_polygons_agree_on_the_border(correction):
    # Points on sides and in corners, on a grid so that circles touch sides and pass through corners of the window.
    rng = np.random.default_rng(2)
    xy = np.vstack([rng.integers(0, 11, (60, 2)) / 10, rng.random((60, 2)), [[0, 0], [1, 1], [0, 1], [0, 0.5]]])
    side = np.linspace(0, 1, 76)[:-1]
    zero, one = np.zeros(75), np.ones(75)
    corners = np.hstack([[side, zero], [one, side], [1 - side, one], [zero, 1 - side]]).T
    unrecognised = type("Unrecognised", (Window,), {"is_rectangle": False})
    window, r = unrecognised.polygon(shapely.Polygon(corners)), np.linspace(0, 1.2, 61)
    expected = k_function(PointPattern(xy, SQUARE), r, correction=correction).k
    pattern = PointPattern(xy, window)
    np.testing.assert_allclose(k_function(pattern, r, correction=correction).k, expected, rtol=1e-10)


@pytest.mark.parametrize(
    ("xy", "isotropic", "translation"),
    [
        ([[0.5, 0.5], [0.5, 0.75]], 1 + 1, 2 / 0.75),
        ([[0.5, 0.5], [0.5, 0]], 1 + 2, 2 / 0.5),
        ([[0, 0], [0.5, 0]], 4 + 2, 2 / 0.5),
        # The circle around the middle passes through the corners alone: a pair counts a hundred times at most.
        ([[0, 0], [0.5, 0.5]], 4 + 100, 2 / 0.25),
        ([[0.25, 0.5], [0.75, 0.5]], 2 / (1 - 2 * np.arccos(0.5) / (2 * np.pi)), 2 / 0.5),
        ([[0, 0], [1, 1]], 200, 200),
    ],
)
def test_weights_of_two_points_in_a_square(xy, isotropic, translation):
    pattern, d = PointPattern(xy, SQUARE), np.hypot(*np.subtract(*xy))
    found = [k_function(pattern, [0.9 * d, d], correction=name).k for name in ("isotropic", "translation", "none")]
    np.testing.assert_allclose(found, np.outer([isotropic, translation, 2], [0, 1 / 2]), rtol=1e-7)


def test_overlaps_equal_those_of_polygon_overlay():
    rng = np.random.default_rng(3)
    for window in (PARTS, L_SHAPE, COMB):
        by = rng.uniform(-1, 1, (60, 2)) * (1, 3)
        by[:3] = [0, 0], [0, 0.2], [0.4, 0]  # along the pieces of the border
        moved = [shapely.transform(window.geometry, lambda c, step=step: c + step) for step in by]
        expected = shapely.area(shapely.intersection(window.geometry, moved))
        np.testing.assert_allclose(
            translation.overlaps(by, translation.window_outline(window)), expected, rtol=1e-12, atol=1e-12
        )


@pytest.mark.exhaustive
@pytest.mark.parametrize("window", [L_SHAPE, COMB, PARTS, STREETS])
def test_areas_by_a_lattice_are_as_good_as_it_says(window, monkeypatch):
    monkeypatch.setattr(translation, "MOST_TERMS", 1e6)
    rng, shape = np.random.default_rng(4), translation.window_outline(window)
    for reach in (1.0, window.diameter):
        by = reach * rng.uniform(-1, 1, (400, 2))
        by[:3] = [0, reach / 2], [-reach / 3, 0], [1e-9, 1e-9]
        by = by[np.hypot(*by.T) <= reach]
        known = translation.lattice(window, reach, 1e9)
        found, expected = (
            np.maximum(a, window.area / 100)
            for a in (translation.areas(by, shape, known), translation.overlaps(by, shape))
        )
        wrong = np.abs(found / expected - 1)
        assert wrong.max() < translation.TOLERANCE
        assert wrong.mean() < 1e-4
        # They are read off indeed, except that narrow teeth and streets leave hardly anything to interpolate.
        assert known.rough.mean() < 0.5 or reach > 1 or window in (COMB, STREETS)
        assert wrong.max() > 1e-9 or window is STREETS


def test_a_lattice_that_is_off_at_fixed_shifts_is_not_used(monkeypatch):
    monkeypatch.setattr(translation, "MOST_TERMS", 1e6)
    monkeypatch.setattr(translation, "_rough", lambda loss, *_: np.zeros(np.subtract(loss.shape, 1), dtype=bool))
    assert translation.lattice(STREETS, 1.0, 1e9).rough.tolist() == [[True]]
    assert translation.lattice(L_SHAPE, 0.5, 1e9).rough.size > 1


def test_a_lattice_is_used_where_exact_areas_take_longer(monkeypatch):
    pattern, r = uniform(PARTS, 400, np.random.default_rng(5)), np.linspace(0, 1.1, 12)
    exact = k_function(pattern, r, correction="translation").k
    terms = 400**2 / 2 * np.pi * 1.1**2 / PARTS.area * translation.terms(translation.window_outline(PARTS))
    monkeypatch.setattr(translation, "MOST_TERMS", 1.01 * terms)
    np.testing.assert_array_equal(k_function(pattern, r, correction="translation").k, exact)
    monkeypatch.setattr(translation, "MOST_TERMS", 0.99 * terms)
    coarse = k_function(pattern, r, correction="translation").k
    assert not np.array_equal(coarse, exact)
    np.testing.assert_allclose(coarse, exact, rtol=5e-4)
    # Nodes depend on the window alone.
    far = k_function(pattern, [*r, 3, 50], correction="translation").k
    np.testing.assert_allclose(far[:12], exact, rtol=5e-4)
    # Few pairs do not pay for a lattice, whatever the window.
    monkeypatch.setattr(translation, "MOST_TERMS", 0)
    assert translation.lattice(PARTS, 1.1, 1000).rough.tolist() == [[True]]


@pytest.mark.parametrize("window", [SQUARE, L_SHAPE])
@pytest.mark.parametrize("correction", [*PAIRWISE, "border"])
def test_distances_beyond_the_window_change_nothing(window, correction):
    pattern, r = uniform(window, 60, np.random.default_rng(12)), np.array([0.01, 0.1, 0.3])
    near = k_function(pattern, [*r, 3], correction=correction).k
    found = k_function(pattern, [*r, 3, 1e4, 1e160, 1e200, 1e300, 1e308], correction=correction)
    np.testing.assert_allclose(found.k, [*near, *[near[3]] * 5], rtol=1e-12)
    assert np.isnan(near[3]) == (correction == "border")
    assert found.theory[-1] == np.inf
    if correction != "border":
        g = pair_correlation(pattern, [*r, 1e308], bandwidth=0.1, correction=correction).g
        expected = pair_correlation(pattern, r, bandwidth=0.1, correction=correction).g
        np.testing.assert_allclose(g, [*expected, 0], rtol=1e-12)


def test_circles_that_only_touch_the_window_count_at_the_cap():
    # Around (0.5, 0.5) the circle touches the other island at (2, 0.5) alone; around that point it cuts this one.
    pattern = PointPattern([[0.5, 0.5], [2, 0.5]], ISLES)
    share = share_inside(ISLES, np.array([2, 0.5]), 1.5)
    assert 0.1 < share < 0.5
    assert k_function(pattern, 1.5).k * 2 / ISLES.area == pytest.approx(100 + 1 / share)


@pytest.mark.parametrize("bounds", [(0, 0, 1, 1), (4e5, 1e5, 4e5 + 3, 1e5 + 700), (-5, 2, 900, 2.001)])
@pytest.mark.parametrize("reach", [0.003, 0.3, 30, 3000])
def test_no_pair_is_lost_between_cells(bounds, reach):
    # Narrow windows, reaches from below the spacing of points to beyond the window; heaps and empty places.
    rng = np.random.default_rng(6)
    x0, y0, x1, y1 = bounds
    xy = np.array([x0, y0]) + rng.random((300, 2)) ** 3 * [x1 - x0, y1 - y0]
    pattern = PointPattern(np.vstack([xy, [[x0, y0], [x1, y1], [x1, y0]]]), Window.rectangle(*bounds))
    r, n = reach * np.array([0.1, 0.5, 1]), 303
    expected = [2 * (pdist(pattern.xy) <= at).sum() * pattern.domain.area / (n * (n - 1)) for at in r]
    np.testing.assert_allclose(k_function(pattern, r, correction="none").k, expected, rtol=1e-12)


def test_sums_do_not_depend_on_cells_and_shares(monkeypatch):
    pattern, r = uniform(SQUARE, 300, np.random.default_rng(7)), np.linspace(0, 0.3, 31)
    whole = [k_function(pattern, r, correction=name).k for name in ("isotropic", "border")]
    monkeypatch.setattr(pairs, "SHARE", 37)
    monkeypatch.setattr(pairs, "FINENESS", 1)
    for name, k in zip(("isotropic", "border"), whole, strict=True):
        np.testing.assert_allclose(k_function(pattern, r, correction=name).k, k, rtol=1e-12)


def test_no_pair_at_exactly_the_reach_is_lost_between_rows():
    # On a grid many pairs lie exactly at the reach, straight above each other and aslant.
    at = np.arange(24)
    for scale, corner in ((1, 0), (0.1, 0), (0.1, 529400), (1 / 3, -7.3)):
        xy = corner + scale * np.stack(np.meshgrid(at, at), axis=-1).reshape(-1, 2)
        pattern = PointPattern(xy, Window.rectangle(*xy.min(axis=0), *xy.max(axis=0)))
        squared = ((at[:, None] - at) ** 2)[:, :, None, None] + (at[:, None] - at) ** 2
        for reach in (1, 2, 5, 10, 13, 17):
            found = k_function(pattern, scale * reach, correction="none").k / pattern.domain.area * 576 * 575
            assert found == pytest.approx((squared <= reach**2).sum() - 576, rel=1e-9)


@pytest.mark.parametrize("correction", [*PAIRWISE, "border"])
def test_ties_are_no_wider_than_rounding_in_small_windows_far_away(correction):
    # Coordinates are multiples of 1.2e-10 there.
    window = Window.rectangle(530000, 180000, 530000 + 1e-6, 180000 + 1e-6)
    pattern = PointPattern([[530000 + 2e-7, 180000 + 5e-7], [530000 + 5e-7, 180000 + 5e-7]], window)
    d = np.ptp(pattern.xy[:, 0])
    found = k_function(pattern, [d - 3e-9, d - 1e-10, 3e-7], correction=correction).k
    assert found.astype(bool).tolist() == [False, True, True]


@pytest.mark.parametrize("correction", [*PAIRWISE, "border"])
def test_ties_at_exactly_r_count_as_inside(correction):
    # 0.1 + 0.2 exceeds 0.3 by rounding; the border is exactly 0.3 away as well.
    pattern = PointPattern([[0.3, 0.5], [0.3 + (0.1 + 0.2), 0.5]], SQUARE)
    assert np.hypot(*np.diff(pattern.xy, axis=0)[0]) > 0.3
    assert k_function(pattern, [0.29, 0.3], correction=correction).k.astype(bool).tolist() == [False, True]


def test_coincident_points_count_from_zero_on():
    pattern = PointPattern([[0.5, 0.5], [0.5, 0.5], [0, 0], [0, 0]], SQUARE)
    for correction in PAIRWISE:
        assert k_function(pattern, 0, correction=correction).k == pytest.approx(4 / 12)
        assert np.isfinite(pair_correlation(pattern, [0, 0.1], bandwidth=0.1, correction=correction).g).all()


def test_border_correction_is_unknown_where_no_point_is_far_enough():
    pattern = PointPattern([[0.5, 0.5], [0.6, 0.5], [0.2, 0.2]], SQUARE)
    found = k_function(pattern, [0.05, 0.1, 0.5, 0.6], correction="border").k
    np.testing.assert_allclose(found, [0, 1 / 3 * 2 / 3, 2 / 3, np.nan])


@pytest.mark.slow
def test_poisson_patterns_have_their_k_and_g_equal_to_one():
    # Expectations are exact, at zero too. 24 normal tests at 6 standard errors: false alarm below 1e-7.
    rng, r = np.random.default_rng(8), np.array([0.05, 0.2, 0.4, 0.7])
    k, g = [], []
    for _ in range(150):
        xy = uniform(L_SHAPE, rng.poisson(120), rng).xy
        # Thinned towards one side.
        sample = PointPattern(xy[rng.random(len(xy)) < (1 + xy[:, 0]) / 3], L_SHAPE)
        intensity = 40 * (1 + sample.xy[:, 0]) / 3
        both = ("isotropic", "translation")
        k.append([k_function(sample, r, intensity, how).k for how in both])
        g.append([pair_correlation(sample, [0, *r], bandwidth=0.1, intensity=intensity, correction=c).g for c in both])
    for found, expected in ((np.array(k), np.pi * r**2), (np.array(g), 1)):
        error = found.std(axis=0) / np.sqrt(len(found))
        assert (np.abs(found.mean(axis=0) - expected) < 6 * error).all()
        assert (error < 0.2 * found.mean(axis=0)).all()


@pytest.mark.parametrize("correction", PAIRWISE)
def test_pair_correlation_is_the_sum_of_reflected_kernels(correction):
    rng = np.random.default_rng(9)
    pattern, intensity = uniform(PARTS, 40, rng), rng.uniform(0.5, 2, 40)
    fine = np.linspace(0, 8, 80_001)
    steps = np.diff(k_function(pattern, fine, intensity, correction).k, prepend=0)
    bandwidth, r = 0.15, np.array([0, 0.1, 0.3, 1, 2.2])
    reach, middle, t = 5**0.5 * bandwidth, fine - 5e-5, np.linspace(-1, 4, 200_001)

    def kernel(x):
        return np.maximum(0.75 / reach * (1 - (x / reach) ** 2), 0)

    expected = [(steps * (kernel(at - middle) + kernel(at + middle))).sum() for at in r]
    mean = [np.trapezoid(np.abs(t) * kernel(at - t), t) for at in r]
    np.testing.assert_allclose(mean[3:], r[3:], rtol=1e-6)
    found = pair_correlation(pattern, r, bandwidth=bandwidth, intensity=intensity, correction=correction)
    np.testing.assert_allclose(found.g, np.divide(expected, mean) / (2 * np.pi), rtol=2e-3)


def test_constant_intensity_is_the_homogeneous_k_but_for_its_factor():
    window = Window.rectangle(0, 0, 2, 3)
    pattern, r = uniform(window, 30, np.random.default_rng(10)), np.linspace(0, 0.5, 11)
    for normalise in (True, False):
        for correction in PAIRWISE:
            k = k_function(pattern, r, correction=correction).k
            once, twice = (k_function(pattern, r, np.full(30, c * 30 / 6), correction, normalise).k for c in (1, 2))
            np.testing.assert_allclose(once, k * 29 / 30, rtol=1e-12)
            # Half of a wrong factor is made up for, or nothing.
            np.testing.assert_allclose(twice, once / (2 if normalise else 4), rtol=1e-12)


def test_networks_are_handed_on():
    street = LinearNetwork([[0, 0], [1, 0], [2, 0.5]], [[0, 1], [1, 2]])
    pattern, values = street.pattern([0, 0, 1], [0.1, 0.5, 0.5]), [1.0, 2.0, 3.0]
    r = default_distances(street)
    assert len(r) == 513
    assert r[-1] == street.extent / 4
    found = k_function(pattern, intensity=values)
    np.testing.assert_array_equal(found.k, network_k(pattern, r, values).k)
    np.testing.assert_array_equal(found.theory, r)
    np.testing.assert_array_equal(found.l, found.k)
    plain = k_function(pattern, r, values, "none", False)
    np.testing.assert_array_equal(plain.k, network_k(pattern, r, values, "none", False).k)
    assert plain.theory is None
    g = pair_correlation(pattern, bandwidth=0.1, intensity=values, normalise=False)
    np.testing.assert_array_equal(g.g, network_g(pattern, r, bandwidth=0.1, intensity=values, normalise=False).g)


def test_l_is_linear_for_a_poisson_process():
    found = k_function(uniform(SQUARE, 20, np.random.default_rng(11)))
    np.testing.assert_allclose(found.r, np.arange(513) / 2048)
    np.testing.assert_allclose(np.pi * found.l**2, found.k)
    np.testing.assert_allclose(np.sqrt(found.theory / np.pi), found.r)


def test_marks_do_not_matter_and_results_say_what_they_are():
    pattern = PointPattern([[0.3, 0.5], [0.7, 0.5]], SQUARE)
    marked = PointPattern(pattern.xy, SQUARE, {"age": [31, 32]})
    found = k_function(marked, [0.5, 1.0])
    np.testing.assert_array_equal(found.k, k_function(pattern, [0.5, 1.0]).k)
    assert repr(found) == "KFunction(homogeneous, correction 'isotropic', r from 0.5 to 1)"
    g = pair_correlation(marked, [0.5], bandwidth=0.1, intensity=[1.0, 2.0])
    assert repr(g) == "PairCorrelation(inhomogeneous, correction 'isotropic', r from 0.5 to 0.5, bandwidth 0.1)"
    for array in (found.r, found.k, g.g):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"r": [1, 1]}, "increasing"),
        ({"r": [-1, 1]}, "non-negative"),
        ({"r": [0, np.inf]}, "finite"),
        ({"intensity": [1.0]}, "one number per point"),
        ({"intensity": lambda xy: xy}, "one number per point"),
        ({"intensity": [1.0, 0.0, 1.0]}, "positive"),
        ({"r": True}, "r:"),
        ({"r": [1j]}, "r:"),
        ({"r": ["0.1"]}, "r:"),
        ({"r": [[0], [1, 2]]}, "r:"),
        ({"intensity": np.ones(3) * 1j}, "one number per point"),
        ({"intensity": lambda xy: ["a"] * len(xy)}, "one number per point"),
        ({"intensity": [1.0, np.nan, 1.0]}, "positive and finite"),
        ({"intensity": [1.0, 1e-310, 1.0]}, "between 1e-140 and 1e140"),
        ({"intensity": [1.0, 1e-200, 1.0]}, "between 1e-140 and 1e140"),
        ({"intensity": [1.0, 1e200, 1.0]}, "between 1e-140 and 1e140"),
        ({"intensity": PiecewiseConstant(regular_squares(L_SHAPE, shape=(3, 3)), np.ones(3))}, "another domain"),
        ({"intensity": kernel_intensity(PointPattern([[0, 0]], L_SHAPE), 1.0)}, "another domain"),
        ({"correction": "ang"}, "'isotropic', 'translation'"),
        ({"correction": ""}, "correction:"),
        ({"correction": ["isotropic"]}, "correction:"),
        ({"correction": np.array(["isotropic", "none"])}, "correction:"),
        ({"normalise": "no"}, "normalise:"),
        ({"pattern": PointPattern([[0.5, 0.5]], SQUARE)}, "at least two"),
        ({"pattern": [[0, 0.5], [0.1, 0.5]]}, "PointPattern"),
    ],
)
@pytest.mark.parametrize("function", [k_function, lambda *a, **b: pair_correlation(*a, bandwidth=1.0, **b)])
def test_bad_arguments_are_refused(function, change, match):
    arguments = {"pattern": PointPattern([[0.5, 0.5], [0.5, 0.6], [0.5, 0.7]], SQUARE), "r": [0, 1]} | change
    with pytest.raises(InputError, match=match) as caught:
        function(**arguments)
    assert "3" not in str(caught.value)


@pytest.mark.parametrize("bandwidth", [0, -1, np.nan, np.inf, 1e-16, 1001, 1e160, 1e300, True, "wide", [0.1]])
def test_bad_bandwidths_are_refused(bandwidth):
    with pytest.raises(InputError, match="bandwidth"):
        pair_correlation(PointPattern([[0.5, 0.5], [0.5, 0.6]], SQUARE), bandwidth=bandwidth)
    with pytest.raises(InputError, match="correction"):
        pair_correlation(PointPattern([[0.5, 0.5], [0.5, 0.6]], SQUARE), bandwidth=1, correction="border")


def test_numbers_of_any_kind_are_accepted():
    pattern = PointPattern([[0.5, 0.5], [0.5, 0.75]], SQUARE)
    expected = pair_correlation(pattern, [0.1, 0.25], bandwidth=0.5).g
    for bandwidth in (np.float32(0.5), np.float64(0.5), Fraction(1, 2)):
        np.testing.assert_array_equal(pair_correlation(pattern, [0.1, 0.25], bandwidth=bandwidth).g, expected)
    assert pair_correlation(pattern, [0.25], bandwidth=np.int64(1)).bandwidth == 1
    twin = Window.rectangle(0, 0, 1, 1)
    same = PiecewiseConstant(regular_squares(twin, shape=(2, 2)), np.full(1, 2.0))
    np.testing.assert_array_equal(k_function(pattern, 0.25, same).k, k_function(pattern, 0.25, [2, 2]).k)


def test_errors_of_an_intensity_function_are_its_own():
    def broken(xy):
        return len(3)

    with pytest.raises(TypeError, match="has no len"):
        k_function(PointPattern([[0.5, 0.5], [0.5, 0.75]], SQUARE), 0.5, broken)


@pytest.mark.parametrize(
    ("domain", "steps", "match"), [(3, 5, "domain:"), (SQUARE, 0, "steps:"), (SQUARE, 2.5, "steps:")]
)
def test_bad_arguments_of_default_distances(domain, steps, match):
    with pytest.raises(InputError, match=match):
        default_distances(domain, steps)


def test_the_average_distance_under_a_kernel_has_a_closed_form():
    t = np.linspace(-3, 6, 90_001)
    for r in (0.0, 0.3, 0.9, 1.0, 2.5):
        kernel = np.maximum(0.75 * (1 - (r - t) ** 2), 0)
        assert kfunction._mean_distance(np.array([r]), 1.0)[0] == pytest.approx(np.trapezoid(np.abs(t) * kernel, t))
