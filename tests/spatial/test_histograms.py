"""Distances of histograms against full linear programmes, closed forms and other solvers."""

import itertools
import math

import numpy as np
import ot
import pytest
from baselines.area_theory import ContinuousDiskArea
from baselines.entropic_transport import sinkhorn2
from scipy.optimize import linprog

from dpppsynth.core.errors import DpppsynthError, InputError
from dpppsynth.evaluation import wasserstein
from dpppsynth.spatial.domains import Window
from dpppsynth.spatial.patterns import PointPattern
from dpppsynth.spatial.transport import sliced_wasserstein_points, wasserstein2

DISTANCES = (wasserstein2, sinkhorn2)


@pytest.fixture
def rng():
    return np.random.default_rng(11)


def masses(rng, shape, *, full=1.0):
    """Random masses, a share of them zero."""
    drawn = rng.dirichlet(np.full(math.prod(shape), 0.7)).reshape(shape) * (rng.random(shape) < full)
    return drawn if drawn.any() else masses(rng, shape, full=full)


def point(shape, cell):
    array = np.zeros(shape)
    array[cell] = 1
    return array


def square_costs(shape, sides=(1.0, 1.0)):
    """(n, n) squared distances of all pairs of cells, from their coordinates."""
    at = [(x * sides[0], y * sides[1]) for x, y in itertools.product(*map(range, shape))]
    return np.array([[(a[0] - b[0]) ** 2 + (a[1] - b[1]) ** 2 for b in at] for a in at])


def full_programme(p, q, cost):
    """Root of the least cost over all transport plans, by the definition."""
    n = p.size
    plans = np.vstack([np.kron(np.eye(n), np.ones(n)), np.kron(np.ones(n), np.eye(n))])[:-1]
    ends = np.concatenate([p.ravel() / p.sum(), q.ravel() / q.sum()])[:-1]
    return math.sqrt(max(0.0, linprog(cost.ravel(), A_eq=plans, b_eq=ends, method="highs").fun))


@pytest.mark.parametrize("shape", [(2, 2), (3, 3), (4, 4), (2, 6), (5, 1), (1, 6), (5, 5)])
def test_three_layers_cost_what_all_pairs_of_cells_cost(shape, rng):
    for full, sides in ((1.0, (1.0, 1.0)), (0.5, (1.0, 1.0)), (0.5, (0.3, 2.0))):
        p, q = masses(rng, shape, full=full), masses(rng, shape, full=full)
        expected = full_programme(p, q, square_costs(shape, sides))
        assert wasserstein2(p, q, unit=sides) == pytest.approx(expected, abs=1e-7)


# A solver that gives up, a cost that its prices do not prove, and one that they prove although they break a rule.
FAULTS = (
    lambda given, log: {"warning": "gave up"},
    lambda given, log: {"cost": log["cost"] + 0.01},
    lambda given, log: {"cost": log["cost"] + given.sum(), "u": log["u"] + 1},
    lambda given, log: {"cost": log["cost"] + 1e-8 * given.sum(), "u": log["u"] + 1e-8},
)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_simplex_that_proves_nothing_is_refused(fault, rng, monkeypatch):
    p, q = masses(rng, (4, 5)), masses(rng, (4, 5), full=0.5)
    solver = ot.emd

    def spoilt(given, *args, **settings):
        flow, log = solver(given, *args, **settings)
        return flow, log | fault(given, log)

    monkeypatch.setattr(ot, "emd", spoilt)
    with pytest.raises(DpppsynthError, match="proof"):
        wasserstein2(p, q)


def test_a_point_is_as_far_from_another_as_the_line_is_long():
    shape = (3, 4)
    assert wasserstein2(point(shape, (0, 0)), point(shape, (2, 1))) == pytest.approx(math.sqrt(5), rel=1e-12)
    assert wasserstein2(point(shape, (0, 0)), point(shape, (2, 1)), unit=0.25) == pytest.approx(math.sqrt(5) / 4)
    assert wasserstein2(point(shape, (0, 3)), point(shape, (2, 3)), unit=(7, 1)) == pytest.approx(14, rel=1e-12)
    # One long way costs more than two short ones: an arc must not be walked twice.
    assert wasserstein2([[1, 0, 0, 1]], [[0, 1, 1, 0]]) == pytest.approx(1, rel=1e-12)
    assert wasserstein2([[1], [0], [0]], [[0], [0], [1]]) == pytest.approx(2, rel=1e-12)


def test_a_shifted_histogram_is_as_far_away_as_the_shift(rng):
    p = np.zeros((20, 20))
    p[2:14, 3:12] = rng.random((12, 9))
    for shift in ((0, 5), (4, 0), (5, 7), (-2, -3)):
        assert wasserstein2(p, np.roll(p, shift, (0, 1))) == pytest.approx(math.hypot(*shift), rel=1e-10)


def test_the_distance_is_a_metric_and_scales_with_the_unit(rng):
    p, q, r = (masses(rng, (6, 5), full=0.6) for _ in range(3))
    assert wasserstein2(p, p) == wasserstein2(p, 8 * p) == 0
    assert 0 < wasserstein2(p, p + 1e-9 * q) < 1e-3
    assert wasserstein2(p, q) == pytest.approx(wasserstein2(q, p), rel=1e-12)
    assert wasserstein2(p, q) == pytest.approx(wasserstein2(p.T, q.T), rel=1e-12)
    assert wasserstein2(p, q) <= wasserstein2(p, r) + wasserstein2(r, q)
    assert wasserstein2(p, q, unit=1e-9) == pytest.approx(1e-9 * wasserstein2(p, q), rel=1e-12)
    assert wasserstein2(p, q, unit=(3.0, 2.0)) == pytest.approx(wasserstein2(p.T, q.T, unit=(2.0, 3.0)), rel=1e-9)
    assert wasserstein2([[3.0]], [[0.1]]) == 0


def test_squares_of_products_add_up_over_the_axes(rng):
    """On a line the plan that keeps the order is the best: quantiles meet quantiles."""

    def on_a_line(p, q):
        steps = np.unique(np.concatenate([np.cumsum(p), np.cumsum(q)]).clip(0, 1))
        middle = np.concatenate([[0], steps])[:-1] / 2 + steps / 2
        far = np.searchsorted(np.cumsum(p), middle) - np.searchsorted(np.cumsum(q), middle)
        return float(np.diff(steps, prepend=0) @ far**2)

    for nx, ny in ((30, 20), (1, 40)):
        (a, b), (c, d) = (rng.dirichlet(np.ones(n), size=2) for n in (nx, ny))
        expected = math.sqrt(on_a_line(a, b) + on_a_line(c, d))
        assert wasserstein2(np.outer(a, c), np.outer(b, d)) == pytest.approx(expected, rel=1e-9)


def test_masses_of_any_size_keep_their_digits(rng):
    p, q = masses(rng, (5, 5)), masses(rng, (5, 5))
    expected = wasserstein2(p, q)
    for scale in (1e-300, 1e300):
        assert wasserstein2(scale * p, q) == pytest.approx(expected, rel=1e-9)
    # Masses that hardly count hardly change anything, and confuse no solver.
    tiny = p + 1e-17 * rng.random((5, 5))
    assert wasserstein2(tiny, q) == pytest.approx(expected, rel=1e-7)
    assert wasserstein2(p, tiny) < 1e-5


def test_sinkhorn_is_the_plan_of_the_dense_kernel_and_never_below_the_exact_distance(rng):
    shape = (3, 4)
    cost = square_costs(shape)
    for full in (1.0, 0.5):
        p, q = masses(rng, shape, full=full), masses(rng, shape, full=full)
        p, q = p / p.sum(), q / q.sum()
        for strength in (0.3, 5.0):
            kernel = np.exp(-strength * cost)
            u, v = np.ones(12), np.ones(12)
            for _ in range(1000):
                u = p.ravel() / (kernel @ v)
                v = q.ravel() / (kernel.T @ u)
            expected = math.sqrt(u @ (kernel * cost) @ v)
            found = sinkhorn2(p, q, regularisation=strength, tolerance=1e-10)
            assert found == pytest.approx(expected, rel=1e-6)
            assert found >= wasserstein2(p, q) - 1e-9
        assert sinkhorn2(p, q, regularisation=30) == pytest.approx(wasserstein2(p, q), rel=2e-2)


def test_sinkhorn_comes_down_to_the_exact_distance_as_the_regularisation_grows(rng):
    p, q = masses(rng, (6, 6)), masses(rng, (6, 6))
    excess = [sinkhorn2(p, q, regularisation=each, tolerance=1e-5) - wasserstein2(p, q) for each in (0.5, 2.0, 8.0)]
    assert excess[0] > excess[1] > excess[2] > -1e-5
    assert excess[2] < 0.02


def test_sinkhorn_crosses_a_grid_on_which_plain_kernels_underflow():
    shape = (20, 20)
    far = sinkhorn2(point(shape, (0, 0)), point(shape, (19, 19)), unit=2.0)
    assert far == pytest.approx(2 * 19 * math.sqrt(2), rel=1e-9)
    assert np.exp(-5.0 * 2 * 19**2) == 0
    one, two = point(shape, (0, 0)) + point(shape, (0, 19)), point(shape, (19, 0)) + 3 * point(shape, (19, 19))
    # A quarter of the mass crosses the other axis as well.
    assert sinkhorn2(one, two) == pytest.approx(19 * math.sqrt(1.25), rel=1e-6)
    assert sinkhorn2([[2.0]], [[3.0]]) == 0


def test_sinkhorn_takes_empty_cells_and_strong_regularisation(rng):
    p, q = masses(rng, (5, 4), full=0.2), masses(rng, (5, 4), full=0.2)
    # Masses of 1e-9 must arrive as well: they are all that moves.
    q[0, 0] += 1e-9
    for strength in (1e2, 1e4):
        found = sinkhorn2(p, q, regularisation=strength, unit=(1.0, 3.0), tolerance=1e-4)
        assert found == pytest.approx(wasserstein2(p, q, unit=(1.0, 3.0)), rel=5e-3)
    far = 1e-7 * point((1, 9), (0, 8)) + point((1, 9), (0, 0))
    expected = math.sqrt(64 * 1e-7 / (1 + 1e-7))
    assert sinkhorn2(far, point((1, 9), (0, 0)), tolerance=1e-12) == pytest.approx(expected, rel=1e-6)


def test_sinkhorn_says_so_when_its_steps_are_not_enough(rng):
    p, q = masses(rng, (5, 5)), masses(rng, (5, 5))
    with pytest.raises(DpppsynthError, match=r"marginals are off .* max_iter"):
        sinkhorn2(p, q, regularisation=50, tolerance=1e-12, max_iter=8)


def test_sliced_distance_of_a_unit_shift_is_two_over_pi(rng):
    """The mean of |cos| over all directions, in sets of points and patterns alike."""
    xy, window = rng.random((9, 2)), Window.rectangle(0, 0, 3, 3)
    assert sliced_wasserstein_points(xy, xy + np.array([1, 0])) == pytest.approx(2 / math.pi, rel=1e-4)
    one, other = (PointPattern(at, window) for at in (xy, 2 * rng.random((14, 2))))
    assert wasserstein(one, other, "sliced") == sliced_wasserstein_points(one.xy, other.xy)


def test_sliced_distances_of_two_points_are_in_proportion_to_their_distance(rng):
    expected = 2 / math.pi * math.hypot(3, 4)
    assert sliced_wasserstein_points([[1, 1]], [[4, 5]]) == pytest.approx(expected, rel=1e-4)
    assert sliced_wasserstein_points([[1, 1]], [[4, 5]], directions=1) != pytest.approx(expected, rel=0.1)
    xy = rng.normal(size=(50, 2))
    assert sliced_wasserstein_points(xy, xy + np.array([3, 4])) == pytest.approx(expected, rel=1e-4)


def test_reports_of_the_continuous_disk_are_as_far_apart_as_its_design_says():
    """2 |v2 - v1| (1 - A q) / pi: the share of reports that depends on the value, moved with it."""
    one, other, n, share = (0.2, 0.3), (0.7, 0.6), 60_000, 0.2628146
    mechanism = ContinuousDiskArea(epsilon=1.0, radius=0.5, side=1.0)
    drawn = [mechanism.draw(np.tile(each, (n, 1)), np.random.default_rng(k)) for k, each in enumerate((one, other))]
    assert 2 / math.pi * math.dist(one, other) * share == pytest.approx(0.0975594, abs=1e-7)
    # Nearly 2 / pi times the difference of the means, whose coordinates deviate by at most 0.6 sqrt(2 / n): six of
    # those, and 0.0016 for eight directions and for what noise adds where both laws agree.
    noise = 6 * 2 / math.pi * 0.6 * math.sqrt(2 / n) + 0.0016
    assert sliced_wasserstein_points(*drawn, directions=8) == pytest.approx(0.0975594, abs=noise)


WRONG = (
    None, "grid", True, 1.0, [], [1, 2], [[]], [[-1, 2]], [[0, 0]], [[np.nan, 1]], [[np.inf, 1]], [[[1]]],
    [[1, "a"]], [[1], [1, 2]], object(), [[10**400, 1]], [[None, 1]], [[1j, 1]],
)  # fmt: skip


@pytest.mark.parametrize("distance", DISTANCES)
def test_histograms_that_are_none_are_refused(distance):
    for wrong in WRONG:
        for pair in ((wrong, [[1.0, 2.0]]), ([[1.0, 2.0]], wrong)):
            with pytest.raises(InputError, match=r"[pq]: "):
                distance(*pair)
    with pytest.raises(InputError, match="shape"):
        distance([[1.0, 2.0]], [[1.0], [2.0]])
    for wrong in (None, 0, -1, np.nan, np.inf, "1", (1, 2, 3), (1, 0), (1, 1e9), 10**400, True, [[1, 1]], 1e-300):
        with pytest.raises(InputError, match="unit: "):
            distance([[1.0, 2.0]], [[2.0, 1.0]], unit=wrong)


def test_settings_that_break_their_rule_are_refused():
    p, q = [[1.0, 2.0]], [[2.0, 1.0]]
    for name in ("regularisation", "tolerance", "max_iter"):
        for wrong in (None, 0, -1, np.nan, np.inf, "1", True, [1], 10**400):
            with pytest.raises(InputError, match=f"{name}: "):
                sinkhorn2(p, q, **{name: wrong})
    for wrong in (None, 0, -1, 1.5, np.nan, "1", True, 10**9):
        with pytest.raises(InputError, match="directions: "):
            sliced_wasserstein_points(p, q, directions=wrong)
    for wrong in (None, "xy", [], [1, 2], [[1, 2, 3]], np.zeros((0, 2)), [[np.nan, 1]], [[1e200, 1]], [["a", "b"]]):
        with pytest.raises(InputError, match="other: "):
            sliced_wasserstein_points([[0, 0]], wrong)
    with pytest.raises(InputError, match="too many"):
        wasserstein2(np.ones((200, 200)), np.ones((200, 200)))
