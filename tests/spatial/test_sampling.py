"""Exact sampling: counts and locations against closed forms, and a checker that catches wrong samplers.

False alarms. `check_poisson` makes four comparisons, each wrong with probability at most 2e-7 for an exact sampler, so
a sound sampler fails it with probability below 1e-6 (and never by chance from run to run: the seeds are fixed).
"""

import math
import tracemalloc

import numpy as np
import pytest
import scipy.stats
import shapely
from shapely.geometry import Polygon

from dpppsynth import datasets
from dpppsynth.core.errors import InputError
from dpppsynth.core.randomness import generator
from dpppsynth.models import regular_squares, regular_triangulation
from dpppsynth.spatial.domains import Window
from dpppsynth.spatial.intensity import LogLinear, LogLinearMean, PiecewiseConstant, PiecewiseLinear
from dpppsynth.spatial.mesh import Mesh
from dpppsynth.spatial.offset import Offset
from dpppsynth.spatial.sampling import binomial_pattern, poisson_pattern

RATE = 1e-7


class Violation(Exception):
    """The checker's verdict: the patterns do not come from the Poisson process with the stated masses."""


def refuse(name, bad):
    if bad:
        msg = f"{name} does not fit"
        raise Violation(msg)


def check_poisson(intensity, regions, masses, sampler=poisson_pattern, repeats=300, seed=0):
    """Draw patterns and compare counts by region with their masses.

    regions : xy (n, 2) -> region numbers in range(len(masses)), -1 for a point where none may be.

    Under a Poisson process the counts of disjoint regions are independent Poisson variables with the masses as means.
    Pooled counts (each of mean over 300): sum (O - E)^2 / E is chi-square with as many degrees of freedom as regions.
    Totals: sum (N - m)^2 / m is nearly chi-square with `repeats` degrees of freedom (m is over 100), in both tails.
    Neighbouring halves: the standardised sum of products of deviations is normal, tested in both tails.
    """
    rng = np.random.default_rng(seed)
    where = [regions(sampler(intensity, rng).xy) for _ in range(repeats)]
    refuse("a place", any(np.any(w < 0) for w in where))
    counts = np.stack([np.bincount(w, minlength=len(masses)) for w in where])
    expected = repeats * masses
    chi2 = ((counts.sum(axis=0) - expected) ** 2 / expected).sum()
    refuse("the distribution over regions", chi2 > scipy.stats.chi2.isf(RATE, len(masses)))
    deviation = counts.sum(axis=1) - masses.sum()
    spread = (deviation**2).sum() / masses.sum()
    refuse("the variance of counts", not RATE < scipy.stats.chi2.cdf(spread, repeats) < 1 - RATE)
    half = len(masses) // 2
    pair = [counts[:, part].sum(axis=1) - masses[part].sum() for part in (slice(half), slice(half, None))]
    z = (pair[0] * pair[1]).sum() / np.sqrt(repeats * masses[:half].sum() * masses[half:].sum())
    refuse("the independence of regions", abs(z) > scipy.stats.norm.isf(RATE))


# --- exp(P1) on one triangle, cut into 16 similar ones ---------------------------------------------------------------

CORNERS = np.array([(2.0, 1.0), (7.0, 2.0), (3.0, 6.0)])
LOG = np.log(12) + np.array([0.0, 1.9, -1.3])


def one_triangle():
    return Mesh.from_arrays(CORNERS, [[0, 1, 2]], Window.polygon(Polygon(CORNERS)))


def quarter(xy):
    """Number of the small triangle: row, column and whether it points down, by barycentric coordinates."""
    b = 4 * np.linalg.solve((CORNERS[1:] - CORNERS[0]).T, (xy - CORNERS[0]).T)
    # A point rounded to the public grid may lie on the border, or beyond it by a rounding error.
    i, j = np.clip(np.floor(b + 1e-12).astype(int), 0, 3)
    down = (b[0] - i + b[1] - j > 1) & (i + j < 3)
    return np.searchsorted(CODES, 8 * i + 2 * j + down)


def small_triangles():
    """Codes of `quarter` and the barycentric corners (in quarters) of the small triangles."""
    cells = []
    for i in range(4):
        for j in range(4 - i):
            cells.append((8 * i + 2 * j, [(i, j), (i + 1, j), (i, j + 1)]))
            if i + j < 3:
                cells.append((8 * i + 2 * j + 1, [(i + 1, j), (i + 1, j + 1), (i, j + 1)]))
    return sorted(cells)


CODES = np.array([code for code, _ in small_triangles()])


def triangle_masses():
    """Integral of exp of a linear function over a triangle of area A: 2 A exp[f0, f1, f2], by the textbook formula."""
    area = abs(np.linalg.det(CORNERS[1:] - CORNERS[0])) / 2 / 16
    out = []
    for _, corners in small_triangles():
        a, b, c = LOG[0] + np.array(corners) / 4 @ (LOG[1:] - LOG[0])
        e = np.exp
        out.append(e(a) / ((a - b) * (a - c)) + e(b) / ((b - a) * (b - c)) + e(c) / ((c - a) * (c - b)))
    return 2 * area * np.array(out)


class MeanBound(LogLinear):
    """Faulty: the average of the vertex values does not bound exp(P1)."""

    @property
    def element_bound(self):
        return np.exp(self.log_values[self.mesh.elements]).mean(axis=1)


class HalfBound(LogLinear):
    """Faulty near one corner of an element only: half the largest value."""

    @property
    def element_bound(self):
        return 0.5 * super().element_bound


class LooseBound(LogLinear):
    """Wasteful but valid."""

    @property
    def element_bound(self):
        return 1.7 * super().element_bound


class TestOneTriangle:
    def test_masses_add_up(self):
        assert triangle_masses().sum() == pytest.approx(LogLinear(one_triangle(), LOG).total, rel=1e-9)
        assert len(triangle_masses()) == 16

    @pytest.mark.parametrize("kind", [LogLinear, LooseBound])
    def test_counts_and_places(self, kind):
        check_poisson(kind(one_triangle(), LOG), quarter, triangle_masses(), repeats=1000)

    @pytest.mark.parametrize("kind", [MeanBound, HalfBound])
    def test_a_bound_that_is_too_low_is_caught(self, kind):
        with pytest.raises(Violation, match="distribution over regions"):
            check_poisson(kind(one_triangle(), LOG), quarter, triangle_masses(), repeats=1000)

    def test_a_fixed_number_of_points_is_caught(self):
        def fixed(intensity, rng):
            return binomial_pattern(intensity, round(intensity.total), rng)

        with pytest.raises(Violation, match="variance of counts"):
            check_poisson(LogLinear(one_triangle(), LOG), quarter, triangle_masses(), fixed)

    def test_uniform_places_are_caught(self):
        def uniform(intensity, rng):
            even = PiecewiseConstant(intensity.mesh, np.ones(1))
            return binomial_pattern(even, rng.poisson(intensity.total), rng)

        with pytest.raises(Violation, match="distribution over regions"):
            check_poisson(LogLinear(one_triangle(), LOG), quarter, triangle_masses(), uniform)


class TestOneParallelogram:
    def test_counts_and_places(self):
        # exp(bilinear) has no closed form: masses of 16 small parallelograms by a 20 x 20 Gauss rule.
        origin, sides = np.array([1.0, 2.0]), np.array([[3.0, 0.5], [-0.5, 2.0]])
        corners = origin + np.array([(0, 0), (1, 0), (1, 1), (0, 1)]) @ sides
        mesh = Mesh.from_arrays(corners, [[0, 1, 2, 3]], Window.polygon(Polygon(corners)))
        f = np.log(20) + np.array([0.0, 1.5, -1.0, 1.2])
        x, w = np.polynomial.legendre.leggauss(20)
        s = ((np.arange(4)[:, None] + (x + 1) / 2) / 4).ravel()
        u, v = np.meshgrid(s, s, indexing="ij")
        value = np.exp(f[0] * (1 - u) * (1 - v) + f[1] * u * (1 - v) + f[2] * u * v + f[3] * (1 - u) * v)
        area = abs(np.linalg.det(sides))
        masses = area / 64 * np.einsum("iajb,a,b->ij", value.reshape(4, 20, 4, 20), w, w).ravel()

        def sixteenth(xy):
            i, j = np.clip(np.floor(4 * np.linalg.solve(sides.T, (xy - origin).T)).astype(int), 0, 3)
            return 4 * i + j

        check_poisson(LogLinear(mesh, f), sixteenth, masses)
        with pytest.raises(Violation):
            check_poisson(MeanBound(mesh, f), sixteenth, masses)


# --- a polygon with a hole, cut into unit boxes ----------------------------------------------------------------------

HOLE = (0.7, 1.1, 2.9, 2.3)
HOLED = Window.polygon(shapely.box(0, 0, 4, 3).difference(shapely.box(*HOLE)))
BUILDERS = {"triangles": regular_triangulation, "squares": regular_squares}
BY_BOX = np.array([1.0, 0.4, 2.0, 1.5, 0.0, 1.2, 0.7, 1.1, 1.6, 1.9, 0.5, 1.3])
RASTER = Offset.from_grid(BY_BOX.reshape(3, 4)[::-1], (0, 0, 4, 3))


def unit_box(xy):
    column, row = np.minimum(np.floor(xy).astype(int), (3, 2)).T
    return 4 * row + column


def minus_hole(integral):
    """Masses of the 12 unit boxes less the hole, from the integral over a box (x0, y0, x1, y1)."""
    masses = []
    for row in range(3):
        for column in range(4):
            box = (column, row, column + 1, row + 1)
            low, high = np.maximum(box[:2], HOLE[:2]), np.minimum(box[2:], HOLE[2:])
            masses.append(integral(*box) - (integral(*low, *high) if np.all(low < high) else 0))
    return np.array(masses)


def exponential(a, b, c):
    def integral(x0, y0, x1, y1):
        return np.exp(c) * (np.exp(a * x1) - np.exp(a * x0)) / a * (np.exp(b * y1) - np.exp(b * y0)) / b

    return minus_hole(integral)


def linear(a, b, c):
    return minus_hole(lambda x0, y0, x1, y1: (x1 - x0) * (y1 - y0) * (a * (x0 + x1) / 2 + b * (y0 + y1) / 2 + c))


def flat(level):
    mesh = regular_squares(HOLED, shape=(9, 7))
    return PiecewiseConstant(mesh, np.full(len(mesh.elements), float(level)))


FIRST, SECOND = (0.6, -0.8, 2.6), (-0.9, 0.5, 3.1)


def hole_cases(build):
    """Intensities on a mesh not aligned with the boxes, and their masses by box. P1 reproduces linear functions."""
    mesh = build(HOLED, shape=(6, 6))
    f, g = (mesh.vertices @ (a, b) + c for a, b, c in (FIRST, SECOND))
    return {
        "log-linear": (LogLinear(mesh, f), exponential(*FIRST)),
        "log-linear, offset": (LogLinear(mesh, f, RASTER), exponential(*FIRST) * BY_BOX),
        "mean": (LogLinearMean(mesh, np.stack([f, g])), (exponential(*FIRST) + exponential(*SECOND)) / 2),
        "linear": (PiecewiseLinear(mesh, mesh.vertices @ (3, 7) + 2), linear(3, 7, 2)),
    }


class TestPolygonWithHole:
    @pytest.mark.parametrize("build", BUILDERS.values(), ids=BUILDERS)
    @pytest.mark.parametrize("kind", ["log-linear", "mean", "linear"])
    def test_counts_and_places(self, build, kind):
        intensity, masses = hole_cases(build)[kind]
        assert intensity.total == pytest.approx(masses.sum(), rel=1e-9)
        check_poisson(intensity, unit_box, masses)

    @pytest.mark.parametrize("build", BUILDERS.values(), ids=BUILDERS)
    def test_offset(self, build):
        intensity, masses = hole_cases(build)["log-linear, offset"]
        some = np.flatnonzero(masses)
        number = np.full(12, -1)
        number[some] = np.arange(len(some))
        # The box where the offset is zero is no region: not one point may fall there.
        check_poisson(intensity, lambda xy: number[unit_box(xy)], masses[some])

    def test_piecewise_constant(self):
        # The elements are the unit boxes; the zero value is left out of the regions.
        mesh = regular_squares(HOLED, shape=(5, 4))
        masses = BY_BOX * 20 * minus_hole(lambda x0, y0, x1, y1: (x1 - x0) * (y1 - y0))
        some = np.flatnonzero(masses)
        number = np.full(12, -1)
        number[some] = np.arange(len(some))
        check_poisson(PiecewiseConstant(mesh, 20 * BY_BOX), lambda xy: number[unit_box(xy)], masses[some])

    def test_a_bound_that_is_too_low_is_caught(self):
        mesh = regular_triangulation(HOLED, shape=(3, 3))
        field = mesh.vertices @ FIRST[:2] + FIRST[2]
        check_poisson(LogLinear(mesh, field), unit_box, exponential(*FIRST))
        for kind in (MeanBound, HalfBound):
            with pytest.raises(Violation, match="distribution over regions"):
                check_poisson(kind(mesh, field), unit_box, exponential(*FIRST))

    @pytest.mark.parametrize("build", BUILDERS.values(), ids=BUILDERS)
    def test_points_kept_in_the_hole_are_caught(self, build):
        intensity, masses = hole_cases(build)["log-linear"]
        filled = build(Window.rectangle(0, 0, 4, 3), shape=(6, 6))
        everywhere = LogLinear(filled, filled.vertices @ FIRST[:2] + FIRST[2])
        with pytest.raises(Violation, match="distribution over regions"):
            check_poisson(intensity, unit_box, masses, lambda _, rng: poisson_pattern(everywhere, rng))

    def test_one_posterior_draw_per_pattern_is_no_poisson_process_and_caught(self):
        intensity, masses = hole_cases(regular_triangulation)["mean"]

        def cox(mean, rng):
            return poisson_pattern(mean.draw(rng.integers(2)), rng)

        with pytest.raises(Violation):
            check_poisson(intensity, unit_box, masses, cox)


class TestBinomial:
    @pytest.mark.parametrize("build", BUILDERS.values(), ids=BUILDERS)
    @pytest.mark.parametrize("kind", ["log-linear", "log-linear, offset", "mean", "linear"])
    def test_places(self, build, kind):
        # n is fixed: chi-square with one degree of freedom less; false alarms at rate 1e-7.
        intensity, masses = hole_cases(build)[kind]
        n, some = 20_000, masses > 0
        counts = np.bincount(unit_box(binomial_pattern(intensity, n, 5).xy), minlength=12)
        expected = n * masses[some] / masses.sum()
        assert counts[~some].sum() == 0
        assert ((counts[some] - expected) ** 2 / expected).sum() < scipy.stats.chi2.isf(RATE, some.sum() - 1)

    @pytest.mark.parametrize("n", [0, 1, 2, 17, 1000, np.int64(5), 3.0])
    def test_exactly_n(self, n):
        for intensity, _ in hole_cases(regular_triangulation).values():
            pattern = binomial_pattern(intensity, n, 1)
            assert len(pattern) == n
            assert pattern.domain is HOLED

    @pytest.mark.parametrize("n", [-1, 2.5])
    def test_n_refused(self, n):
        with pytest.raises(InputError, match="n: needs a whole number of points, got"):
            binomial_pattern(hole_cases(regular_squares)["linear"][0], n)

    def test_order_says_nothing_about_draws(self):
        # Two draws of equal mass, one left, one right: the first half of the rows must hold both alike.
        mesh = regular_triangulation(Window.rectangle(0, 0, 2, 1), shape=(21, 3))
        ramp = 60 * (mesh.vertices[:, 0] - 1)
        xy = binomial_pattern(LogLinearMean(mesh, np.stack([ramp, -ramp])), 4000, 3).xy
        left = (xy[:2000, 0] < 1).sum()
        total = (xy[:, 0] < 1).sum()
        law = scipy.stats.hypergeom(4000, total, 2000)
        assert law.ppf(RATE) < left < law.isf(RATE)

    def test_order_says_nothing_about_places(self):
        # Number of rows whose neighbour in the list lies in the same box; sorted output would score nearly all.
        for sample in (lambda i: binomial_pattern(i, 3000, 4), lambda i: poisson_pattern(i, 4)):
            box = unit_box(sample(flat(400)).xy)
            share = np.bincount(box) / len(box)
            assert (box[1:] == box[:-1]).mean() < (share**2).sum() + 0.05


class TestMillion:
    def test_points_in_the_window(self):
        intensity, _ = hole_cases(regular_triangulation)["log-linear"]
        pattern = binomial_pattern(intensity, 1_000_000, 7)
        assert len(pattern) == 1_000_000
        assert HOLED.contains(pattern.xy).all()

    def test_poisson(self):
        pattern = poisson_pattern(flat(1e5), 7)
        # Six standard deviations: false alarms at rate 2e-9.
        assert abs(len(pattern) - 1e5 * HOLED.area) < 6 * np.sqrt(1e5 * HOLED.area)


class TestStreams:
    @pytest.mark.parametrize("kind", ["log-linear", "log-linear, offset", "mean", "linear"])
    def test_a_seed_repeats_and_no_seed_does_not(self, kind):
        intensity, _ = hole_cases(regular_triangulation)[kind]
        for sample in (poisson_pattern, lambda i, rng=None: binomial_pattern(i, 50, rng)):
            np.testing.assert_array_equal(sample(intensity, 3).xy, sample(intensity, np.random.default_rng(3)).xy)
            different = [sample(intensity, 4).xy, sample(intensity).xy, sample(intensity).xy, sample(intensity, 3).xy]
            firsts = {tuple(xy[0]) for xy in different}
            assert len(firsts) == 4

    def test_a_generator_goes_on(self):
        intensity, _ = hole_cases(regular_triangulation)["linear"]
        rng = np.random.default_rng(1)
        first, second = (poisson_pattern(intensity, rng).xy for _ in range(2))
        assert not np.array_equal(first[:5], second[:5])
        assert generator(rng) is rng

    def test_fresh_keys(self):
        draws = {int(generator().integers(2**62)) for _ in range(50)}
        assert len(draws) == 50
        assert generator(5).integers(2**62) == np.random.default_rng(5).integers(2**62)


class TestPublicGrid:
    WINDOWS = (
        Window.rectangle(0, 0, 1 / 3, np.pi / 10),
        Window.polygon(shapely.Point(0.1, 7.3).buffer(1e-3)),
        HOLED,
        datasets.soho_deaths().domain,
    )

    @pytest.mark.parametrize("window", WINDOWS, ids=["thirds", "tiny disc", "hole", "soho"])
    @pytest.mark.parametrize("build", BUILDERS.values(), ids=BUILDERS)
    def test_coordinates_lie_on_it_and_in_the_window(self, window, build):
        mesh, grid = build(window, shape=(4, 4)), window.resolution
        xy = binomial_pattern(PiecewiseLinear(mesh, np.ones(len(mesh.vertices))), 20_000, 1).xy
        # Decimals without binary tails: the float nearest to a number of so many digits.
        np.testing.assert_array_equal(xy, np.round(xy, max(0, -round(math.log10(grid)))))
        assert window.contains(xy).all()
        # All digits down to the grid are used, so it is not coarser than it says.
        assert len(np.unique(np.round(xy[:, 0] / grid) % 10)) == 10


class TestEmptiness:
    MESH = regular_triangulation(HOLED, shape=(4, 4))

    def test_patterns_may_be_empty(self):
        intensity = LogLinear(self.MESH, np.full(len(self.MESH.vertices), np.log(0.2 / HOLED.area)))
        sizes = [len(poisson_pattern(intensity, seed)) for seed in range(60)]
        assert min(sizes) == 0 < max(sizes)
        assert poisson_pattern(intensity, int(np.argmin(sizes))).xy.shape == (0, 2)

    def test_a_zero_intensity_has_no_points(self):
        zero = PiecewiseLinear(self.MESH, np.zeros(len(self.MESH.vertices)))
        assert len(poisson_pattern(zero, 1)) == 0
        with pytest.raises(InputError, match="intensity: zero everywhere"):
            binomial_pattern(zero, 5, 1)

    def test_a_mean_of_vanishing_draws_is_refused_by_name(self):
        with pytest.raises(InputError, match="intensity: zero everywhere"):
            binomial_pattern(LogLinearMean(self.MESH, np.full((2, len(self.MESH.vertices)), -1000.0)), 5, 1)

    def test_draws_that_vanish_are_not_drawn_from(self):
        fields = np.full((2, len(self.MESH.vertices)), -1000.0)
        fields[1] = 2
        assert len(binomial_pattern(LogLinearMean(self.MESH, fields), 100, 1)) == 100

    def test_zero_elements_hold_no_points(self):
        values = np.zeros(len(self.MESH.elements))
        values[3] = 50.0
        xy = poisson_pattern(PiecewiseConstant(self.MESH, values), 2).xy
        assert shapely.distance(self.MESH.element_polygons[3], shapely.points(xy)).max() < 1e-6


class TestCornersOfTents:
    def test_a_point_in_a_small_corner_of_a_tent_needs_little_memory(self):
        # A corner of side d pokes into the far cell: the tent at (2, 2) holds d^3 / 3 of the window, so that five
        # points there mean an intensity that is enormous over the rest of the element, outside the window.
        d = 0.03
        arms = [shapely.box(0, 0, 1, 4), shapely.box(0, 0, 4, 1), shapely.box(0, 0, 1 + d, 1 + d)]
        mesh = regular_triangulation(Window.polygon(shapely.union_all(arms)), shape=(5, 5))
        masses = np.zeros(len(mesh.vertices))
        far = np.argmin(np.abs(mesh.vertices - 2).sum(axis=1))
        masses[far] = 5.0
        assert mesh.measure[far] == pytest.approx(d**3 / 3)
        tracemalloc.start()
        poisson_pattern(PiecewiseLinear(mesh, masses / mesh.measure), 1)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 5e6
