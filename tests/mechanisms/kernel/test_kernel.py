"""The Gaussian kernel on a window: masses, children and their intensity against closed forms and a reference.

False alarms. `check_children` makes three comparisons, each wrong with probability at most 2e-7 for a sound sampler, so
one fails it with probability below 1e-6 (and never by chance from run to run: the seeds are fixed).
"""

import tracemalloc
from pathlib import Path

import numpy as np
import pytest
import scipy.stats
import shapely
from scipy.special import ndtr

from dpppsynth.core.errors import InputError
from dpppsynth.spatial import gaussian_kernel as kernel
from dpppsynth.spatial.domains import Window
from dpppsynth.spatial.gaussian_kernel import hull, kernel_density, mass, sample_children

RATE = 1e-7
SQUARE = Window.rectangle(0, 0, 1, 1)
L_SHAPE = Window.polygon(shapely.Polygon([(0, 0), (3, 0), (3, 1), (1, 1), (1, 3), (0, 3)]))
PENTAGON = Window.polygon(shapely.Polygon([(0, 0), (3, 0.5), (4, 2), (1, 4), (-0.5, 2)]))
STRIPS = Window.polygon(shapely.MultiPolygon([shapely.box(0, 0, 0.1, 1), shapely.box(2, 0, 5, 1)]))
WIDTHS = [0.02, 0.3, 2.0, 50.0]


def boxes(xy, h, *bounds):
    """Masses over axis-parallel boxes, added up: products of differences of normal distribution functions."""
    return sum(
        np.prod(ndtr((np.array([x1, y1]) - xy) / h) - ndtr((np.array([x0, y0]) - xy) / h), axis=1)
        for x0, y0, x1, y1 in bounds
    )


def places(window, count=300, seed=0):
    """Random places about the window, and its corners and the middles of its sides."""
    x0, y0, x1, y1 = window.bounds
    corners = shapely.get_coordinates(window.geometry)
    rng = np.random.default_rng(seed)
    around = rng.uniform([x0 - 1, y0 - 1], [x1 + 1, y1 + 1], (count, 2))
    return np.concatenate([around, corners, (corners[1:] + corners[:-1]) / 2])


class TestMass:
    @pytest.mark.parametrize("h", WIDTHS)
    @pytest.mark.parametrize(
        ("window", "parts"),
        [
            (Window.rectangle(-1, 2, 5, 3), [(-1, 2, 5, 3)]),
            (L_SHAPE, [(0, 0, 3, 1), (0, 1, 1, 3)]),
            (STRIPS, [(0, 0, 0.1, 1), (2, 0, 5, 1)]),
            (Window.polygon(shapely.box(0, 0, 3, 3) - shapely.box(1, 1, 2, 2.5)), [(0, 0, 3, 3), (1, 2.5, 2, 1)]),
        ],
        ids=["rectangle", "L", "two parts", "hole"],
    )
    def test_axis_parallel(self, window, parts, h):
        """Closed form; the hole is a box upside down. Corners and sides included, inside and out."""
        xy = places(window)
        np.testing.assert_allclose(mass(xy, window, h), boxes(xy, h, *parts), rtol=0, atol=3e-15)

    @pytest.mark.parametrize("h", WIDTHS)
    def test_turned(self, h):
        """The kernel is round: turning window and points together changes nothing."""
        xy, turn = places(L_SHAPE), np.array([[np.cos(0.3), np.sin(0.3)], [-np.sin(0.3), np.cos(0.3)]])
        turned = Window.polygon(shapely.transform(L_SHAPE.geometry, lambda c: c @ turn))
        expected = boxes(xy, h, (0, 0, 3, 1), (0, 1, 1, 3))
        np.testing.assert_allclose(mass(xy @ turn, turned, h), expected, rtol=0, atol=1e-13)

    @pytest.mark.parametrize("h", WIDTHS)
    def test_disc(self, h):
        """`1 - exp(-R^2 / (2 h^2))` from the centre; a polygon of 4000 corners has the area of a disc of radius R."""
        disc = Window.polygon(shapely.Point(2, 1).buffer(1.0, quad_segs=1000))
        expected = -np.expm1(-disc.area / (2 * np.pi * h**2))
        assert mass(np.array([[2.0, 1.0]]), disc, h)[0] == pytest.approx(expected, rel=1e-10)


def cells(window, across=4):
    """Parts of the window in the cells of a grid over its bounding box, as windows."""
    x0, y0, x1, y1 = window.bounds
    x, y = np.linspace(x0, x1, across + 1), np.linspace(y0, y1, across + 1)
    parts = [
        window.geometry & shapely.box(x[i], y[j], x[i + 1], y[j + 1]) for i in range(across) for j in range(across)
    ]
    return [Window.polygon(part) for part in parts if part.area > 1e-9]


def crowd(window, count=150, seed=1):
    """Points in two heaps near the border, the larger one in a corner."""
    rng = np.random.default_rng(seed)
    corner = shapely.get_coordinates(window.geometry)[:1] + rng.normal(0, 0.2, (40 * count, 2))
    spread = rng.uniform(*np.reshape(window.bounds, (2, 2)), (40 * count, 2))
    chosen = [xy[window.contains(xy)][:part] for xy, part in ((corner, 2 * count // 3), (spread, count // 3))]
    return np.concatenate(chosen)


class Violation(Exception):
    """The checker's verdict: the children do not follow the stated law."""


def check_children(window, h, sampler=sample_children, repeats=300, seed=2):
    """Draw patterns and compare the counts in cells with the kernels' masses there.

    Counts in disjoint cells are independent Poisson variables. Pooled over patterns, sum (O - E)^2 / E is chi-square
    with as many degrees of freedom as cells; sum (N - m)^2 / m over the totals N nearly chi-square with `repeats`, as m
    is large, and the standardised sum of products of deviations of two halves normal: both tested in both tails.
    """
    xy, rng, parts = crowd(window), np.random.default_rng(seed), cells(window)
    masses = np.array([(mass(xy, part, h) / mass(xy, hull(window), h)).sum() for part in parts])
    drawn = [sampler(xy, window, h, rng) for _ in range(repeats)]
    counts = np.array([[part.contains(children).sum() for part in parts] for children in drawn])
    expected = repeats * masses
    chi2 = ((counts.sum(axis=0) - expected) ** 2 / expected).sum()
    spread = ((counts.sum(axis=1) - masses.sum()) ** 2).sum() / masses.sum()
    half = np.argsort(masses)[::2]
    other = np.setdiff1d(np.arange(len(masses)), half)
    pair = [counts[:, part].sum(axis=1) - masses[part].sum() for part in (half, other)]
    z = (pair[0] * pair[1]).sum() / np.sqrt(repeats * masses[half].sum() * masses[other].sum())
    for name, fits in (
        ("place", all(window.contains(children).all() for children in drawn)),
        ("distribution over cells", chi2 < scipy.stats.chi2.isf(RATE, len(masses))),
        ("variance of counts", RATE < scipy.stats.chi2.cdf(spread, repeats) < 1 - RATE),
        ("independence of cells", abs(z) < scipy.stats.norm.isf(RATE)),
    ):
        if not fits:
            raise Violation(name)


def redraw(parents, window, h, rng):
    """Children of the planar kernel, drawn again until inside the window itself."""
    out, left = parents.copy(), np.arange(len(parents))
    while len(left):
        out[left] = parents[left] + rng.normal(0, h, (len(left), 2))
        left = left[~window.contains(out[left])]
    return out


def one_child_each(xy, window, h, rng):
    return redraw(xy, window, h, rng)


def same_number(xy, window, h, rng):
    """Parents share one random number of children."""
    return np.concatenate([sample_children(xy, window, h, rng) for _ in range(rng.poisson(1.0))] or [xy[:0]])


def uncorrected(xy, window, h, rng):
    """The planar kernel, dropped outside the window."""
    children = np.repeat(xy, rng.poisson(1.0, len(xy)), axis=0)
    children = children + rng.normal(0, h, children.shape)
    return children[window.contains(children)]


def until_inside(xy, window, h, rng):
    """Right on convex windows, wrong elsewhere, where only the hull may be the place to stop."""
    return redraw(np.repeat(xy, rng.poisson(1.0, len(xy)), axis=0), window, h, rng)


def cut_to_box(xy, window, h, rng):
    """The correction of the bounding box, then dropped outside the window."""
    children = sample_children(xy, Window.rectangle(*window.bounds), h, rng)
    return children[window.contains(children)]


def twice_as_wide(xy, window, h, rng):
    return sample_children(xy, window, 1.1 * h, rng)


class TestChildren:
    @pytest.mark.exhaustive
    @pytest.mark.parametrize("h", [0.3, 3.0])
    @pytest.mark.parametrize(
        "window", [SQUARE, PENTAGON, L_SHAPE, STRIPS], ids=["square", "pentagon", "L", "two parts"]
    )
    def test_law(self, window, h):
        check_children(window, h)

    @pytest.mark.exhaustive
    @pytest.mark.parametrize(
        ("window", "sampler"),
        [
            (SQUARE, one_child_each),
            (SQUARE, same_number),
            (SQUARE, uncorrected),
            (SQUARE, twice_as_wide),
            (PENTAGON, uncorrected),
            (PENTAGON, cut_to_box),
            (L_SHAPE, until_inside),
            (L_SHAPE, uncorrected),
            (STRIPS, until_inside),
        ],
    )
    def test_wrong_samplers_are_caught(self, window, sampler):
        with pytest.raises(Violation):
            check_children(window, 0.3, sampler)

    def test_the_correct_sampler_by_rejection_passes(self):
        """On convex windows drawing again is right, so the checker must not mind."""
        check_children(PENTAGON, 0.3, until_inside)

    def test_along_a_side(self):
        """One coordinate, one parent in a corner: Kolmogorov-Smirnov against the cut normal law, p above 1e-7."""
        children = sample_children(np.zeros((20_000, 2)), Window.rectangle(0, 0, 1, 3), 0.7, 5)
        for axis, side in ((0, 1.0), (1, 3.0)):
            law = scipy.stats.truncnorm(0, side / 0.7, scale=0.7)
            assert scipy.stats.kstest(children[:, axis], law.cdf).pvalue > RATE

    @pytest.mark.parametrize("window", [SQUARE, PENTAGON], ids=["square", "pentagon"])
    def test_huge_bandwidth_is_uniform(self, window):
        """No digits are lost where the window is a billionth of the bandwidth."""
        children = sample_children(np.repeat(window.geometry.centroid.coords, 20_000, axis=0), window, 1e9, 6)
        parts = cells(window)
        counts = np.array([part.contains(children).sum() for part in parts])
        expected = len(children) * np.array([part.area for part in parts]) / window.area
        assert ((counts - expected) ** 2 / expected).sum() < scipy.stats.chi2.isf(RATE, len(parts) - 1)
        assert len(np.unique(children, axis=0)) > 0.99 * len(children)

    @pytest.mark.parametrize("window", [Window.rectangle(0.05, 0.05, 1e6 / 3, 7e5 / 3), PENTAGON, L_SHAPE])
    def test_coordinates_are_on_the_public_grid(self, window):
        children = sample_children(crowd(window), window, window.diameter, 7)
        steps = children / window.resolution
        np.testing.assert_allclose(steps, np.round(steps), rtol=0, atol=1e-3)
        assert window.contains(children).all()

    def test_refusals(self):
        with pytest.raises(InputError, match=r"^xy: every point must lie in the window") as caught:
            sample_children(np.array([[0.123, 7.7]]), SQUARE, 0.1)
        assert "7.7" not in str(caught.value)
        for bandwidth in (0.0, -1.0, np.inf, np.nan, None):
            with pytest.raises(InputError, match=r"^bandwidth: must be positive"):
                sample_children(np.zeros((1, 2)), SQUARE, bandwidth)

    def test_no_points_leave_no_children(self):
        assert sample_children(np.empty((0, 2)), PENTAGON, 0.1).shape == (0, 2)


class TestDensity:
    def test_reference(self):
        """spatstat's intensity at the Soho addresses; without edge correction it would be up to 0.3 % less."""
        x, y, expected = np.loadtxt(
            Path(__file__).parents[2] / "data" / "soho_density.csv", delimiter=",", skiprows=3
        ).T
        xy, window = np.column_stack([x, y]), Window.rectangle(528900, 180500, 530000, 181500)
        np.testing.assert_allclose(kernel_density(xy, window, 80.0, xy), expected, rtol=1e-9)

    @pytest.mark.parametrize("window", [SQUARE, PENTAGON, L_SHAPE], ids=["square", "pentagon", "L"])
    def test_integral(self, window):
        """n on convex windows, the kernels' share of the hull elsewhere; midpoint rule on a fine grid."""
        xy, (x0, y0, x1, y1) = crowd(window), window.bounds
        step = 0.02
        at = np.stack(np.meshgrid(np.arange(x0, x1, step), np.arange(y0, y1, step)), axis=-1).reshape(-1, 2) + step / 2
        at = at[window.contains(at)]
        expected = (mass(xy, window, 0.3) / mass(xy, hull(window), 0.3)).sum()
        assert kernel_density(xy, window, 0.3, at).sum() * step**2 == pytest.approx(expected, rel=2e-3)
        assert (expected == pytest.approx(len(xy))) == window.is_convex

    def test_memory_is_bounded(self, monkeypatch):
        xy, at = np.random.default_rng(9).random((2, 1500, 2))
        whole = kernel_density(xy, SQUARE, 0.2, at)
        monkeypatch.setattr(kernel, "PAIRS", 15_000)
        tracemalloc.start()
        np.testing.assert_allclose(kernel_density(xy, SQUARE, 0.2, at), whole, rtol=1e-12)
        assert tracemalloc.get_traced_memory()[1] < 2e6
        tracemalloc.stop()
