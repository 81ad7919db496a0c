"""Distances of distributions and heat maps, and the filter between them: closed forms, other solvers, inequalities."""

import math

import numpy as np
import ot
import pytest
from baselines.heatmap_error_bounds import pyramid_norm
from baselines.infinite_heatmaps import emd_norm, infinite_heatmap
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import linprog
from scipy.spatial.distance import cdist

from dpppsynth.core.errors import DpppsynthError, InputError
from dpppsynth.evaluation.distances import grid_wasserstein
from dpppsynth.spatial import minimum_cost_flow as flow
from dpppsynth.spatial.grid_smoothing import gaussian_heatmap
from dpppsynth.spatial.map_distances import coarse, emd, kl, pearson, similarity

# A published worked example of the four metrics.
H, G = np.array([[0.5, 0.5], [0.0, 0.0]]), np.array([[0.4, 0.3], [0.2, 0.1]])
METRICS = (emd, similarity, pearson, kl)


@pytest.fixture
def rng():
    return np.random.default_rng(11)


def point(shape, *at):
    p = np.zeros(shape)
    for cell in at:
        p[cell] += 1
    return p


def pairs(rng, shape, count):
    """Pairs of distributions from nearly flat to nearly all zero."""
    for k in range(count):
        p, q = rng.gamma((3.0, 0.5, 0.1)[k % 3], size=(2, *shape)) + 1e-12
        yield p / p.sum(), q / q.sum()


def all_pairs(p, q):
    """Transport between all pairs of cells, at (i / a, j / b)."""
    at = np.argwhere(np.ones(p.shape)) / p.shape
    return ot.emd2(p.ravel() / p.sum(), q.ravel() / q.sum(), cdist(at, at, "cityblock"), numItermax=10**6)


def norm_by_definition(z):
    """min EMD(p, q) + 2 |r|: a linear programme in the coupling of all pairs and both parts of r."""
    at = np.argwhere(np.ones(z.shape)) / z.shape
    n = z.size
    cost = np.concatenate([cdist(at, at, "cityblock").ravel(), np.full(2 * n, 2.0)])
    eye = np.eye(n)
    # p - q + r: what leaves a cell, less what arrives, plus r+ and minus r-.
    balance = np.hstack([np.kron(eye, np.ones(n)) - np.kron(np.ones(n), eye), eye, -eye])
    return linprog(cost, A_eq=balance, b_eq=z.ravel(), method="highs").fun


# -- Metrics -----------------------------------------------------------------------------------------------------------


def test_worked_example_of_all_metrics():
    assert similarity(H, G) == pytest.approx(0.7, abs=1e-12)
    assert pearson(H, G) == pytest.approx(2 / math.sqrt(5), abs=1e-12)
    assert kl(H, G) == pytest.approx(0.5 * math.log(1.25) + 0.5 * math.log(5 / 3), abs=1e-9)
    assert emd(H, G) == pytest.approx(0.2, abs=1e-12)
    assert similarity(H, G, benchmark=True) == pytest.approx(5 / 6, abs=1e-12)


@pytest.mark.parametrize("metric", METRICS)
def test_masses_are_divided_by_their_sums(metric):
    """A metric that forgets one of the two would change."""
    assert metric(7 * H, 1e-300 * G) == pytest.approx(metric(H, G), abs=1e-12)
    assert metric(H, (3 * G).tolist()) == pytest.approx(metric(H, G), abs=1e-12)


def test_the_guard_of_kl_and_its_direction():
    e = 2.220446e-16
    at, elsewhere = point((2, 2), (0, 0)), point((2, 2), (1, 1))
    assert kl(at, elsewhere) == pytest.approx(math.log(e + 1 / e), rel=1e-14)
    assert 36 < kl(at, elsewhere) < 36.1
    # Mass that the estimate puts where there is none costs only what is missing elsewhere.
    assert kl(at, at + elsewhere) == pytest.approx(math.log(2), abs=1e-12)
    assert kl(at + elsewhere, at) == pytest.approx(0.5 * math.log(0.5) + 0.5 * math.log(0.5 / e), rel=1e-12)


def test_constant_maps():
    flat = np.full((3, 3), 0.1)
    slope = np.arange(9.0).reshape(3, 3)
    for one, other in ((flat, slope), (slope, flat), (flat, flat)):
        assert pearson(one, other) == 0
        assert math.isnan(pearson(one, other, benchmark=True))
        assert math.isnan(similarity(one, other, benchmark=True))
    assert pearson(slope, slope, benchmark=True) == pytest.approx(1, abs=1e-15)
    assert pearson(slope, 8 - slope) == pytest.approx(-1, abs=1e-15)
    assert similarity(flat, flat) == pytest.approx(1)


def test_pearson_is_the_correlation_coefficient(rng):
    for p, q in pairs(rng, (5, 7), 6):
        assert pearson(p, q) == pytest.approx(np.corrcoef(p.ravel(), q.ravel())[0, 1], abs=1e-12)


# -- Earth mover's distance --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(6, 6), (8, 5), (1, 7), (5, 1)])
def test_emd_is_the_transport_between_all_cells(shape, rng):
    """The long axis has the short steps; exchanged spacings, pixels or straight lines would give something else."""
    for p, q in pairs(rng, shape, 6):
        assert emd(p, q) == pytest.approx(all_pairs(p, q), abs=1e-12)


def test_emd_of_opposite_corners_is_the_diameter():
    for shape in ((2, 2), (8, 8), (4, 32), (3, 5)):
        p, q = point(shape, (0, 0)), point(shape, (-1, -1))
        assert emd(p, q) == pytest.approx(2 - 1 / shape[0] - 1 / shape[1], abs=1e-12)


def test_emd_of_a_fine_grid_has_all_digits(rng):
    """Blocks that move by (3, 5) cells, and one far cell that moves back; 1e-13 is out of a tolerance's reach."""
    p, q = np.zeros((2, 64, 64))
    p[2:22, 3:23], q[5:25, 8:28] = 1, 1
    assert emd(p, q) == pytest.approx((3 + 5) / 64, abs=1e-13)
    p, q = p + rng.random((64, 64)), q + rng.random((64, 64))
    assert emd_norm(p / p.sum() - q / q.sum()) == pytest.approx(emd(p, q), abs=1e-13)


def test_emd_is_a_metric(rng):
    for p, q in pairs(rng, (5, 5), 6):
        r = rng.dirichlet(np.full(25, 0.3)).reshape(5, 5)
        assert emd(p, q) == pytest.approx(emd(q, p), abs=1e-12)
        assert emd(p, p) == 0
        assert emd(p, q) > 1e-6
        assert emd(p, q) <= emd(p, r) + emd(r, q) + 1e-12


@given(arrays(np.int64, (2, 4, 4), elements=st.integers(0, 9)))
@settings(max_examples=25)
def test_emd_lies_between_multiples_of_total_variation(counts):
    p, q = counts + point((4, 4), (1, 2))
    variation = 1 - similarity(p, q)
    assert variation / 4 - 1e-12 <= emd(p, q) <= 2 * (1 - 1 / 4) * variation + 1e-12


def test_coarse_emd_stays_within_its_bound(rng):
    for p, q in pairs(rng, (16, 16), 6):
        for side in (1, 2, 4, 8):
            assert abs(emd(p, q, side=side) - emd(p, q)) <= 2 * (1 / side - 1 / 16) + 1e-12
        for side in (3, 5, 11):
            assert abs(emd(p, q, side=side) - emd(p, q)) < 2 / side
        assert emd(p, q, side=16) == emd(p, q, side=1000) == emd(p, q)
    # The bound is reached: the far ends of one block and the next.
    p, q = point((16, 16), (0, 0)), point((16, 16), (7, 7))
    assert emd(p, q, side=2) == 0
    assert emd(p, q) == pytest.approx(2 * (1 / 2 - 1 / 16))


def test_blocks_hold_the_cells_that_lie_in_them(rng):
    p = rng.random((8, 6))
    assert coarse(p, 2) == pytest.approx(p.reshape(2, 4, 2, 3).sum((1, 3)), abs=1e-12)
    # Cells at 0, 1/5, ..., 4/5 in the halves that begin at 0 and 1/2.
    assert coarse(np.arange(1.0, 6)[None], 2).tolist() == [[1 + 2 + 3, 4 + 5]]
    assert coarse(p, 7).sum() == pytest.approx(p.sum())


# -- The norm ----------------------------------------------------------------------------------------------------------


def test_norm_of_a_difference_is_the_distance_and_of_masses_twice_their_sum(rng):
    for p, q in pairs(rng, (6, 4), 6):
        assert emd_norm(p - q) == pytest.approx(emd(p, q), abs=1e-12)
        assert emd_norm(5 * p) == pytest.approx(10, abs=1e-12)
    assert emd_norm(np.zeros((3, 3))) == 0


def test_norm_is_its_definition(rng):
    for shape in ((4, 4), (2, 5)):
        for z in rng.normal(rng.normal(size=(4, 1, 1)), 1, size=(4, *shape)):
            assert emd_norm(z) == pytest.approx(norm_by_definition(z), abs=1e-10)


def test_norm_is_a_norm_above_twice_the_absolute_sum(rng):
    for y, z in rng.normal(size=(5, 2, 4, 4)):
        assert emd_norm(y + z) <= emd_norm(y) + emd_norm(z) + 1e-12
        assert emd_norm(-3 * z) == pytest.approx(3 * emd_norm(z), rel=1e-12)
        assert emd_norm(z) >= 2 * abs(z.sum()) - 1e-12


def test_the_pyramid_dominates_the_norm(rng):
    """With the total over the side added; without it a point mass would break the bound."""
    for side in (1, 2, 4, 8):
        for k in range(4):
            z = rng.normal(rng.normal(), 1, size=(side, side)) * (rng.random((side, side)) < (1, 0.2)[k % 2])
            assert emd_norm(z) <= pyramid_norm(z) + abs(z.sum()) / side + 1e-10
            balanced = z - z.mean()
            assert emd_norm(balanced) <= pyramid_norm(balanced) + 1e-10
        lone = point((side, side), (0, 0))
        assert emd_norm(lone) == pytest.approx(2, abs=1e-12)
        assert pyramid_norm(lone) + 1 / side == pytest.approx(2, abs=1e-12)


@pytest.mark.parametrize("depth", [1, 2, 3, 4])
def test_where_the_pyramid_is_tight_and_where_loose(depth):
    side = 2**depth
    corner = point((side, side), (0, 0))
    corners = corner - point((side, side), (-1, -1))
    assert emd_norm(corners) == pytest.approx(2 * (1 - 1 / side), abs=1e-12)
    assert pyramid_norm(corners) == pytest.approx(2 * (1 - 1 / side), abs=1e-12)
    centre = point((side, side), (side // 2 - 1, 0)) - point((side, side), (side // 2, 0))
    assert emd_norm(centre) == pytest.approx(1 / side, abs=1e-12)
    assert pyramid_norm(centre) == pytest.approx(2 * (1 - 1 / side), abs=1e-12)


# -- The flow ----------------------------------------------------------------------------------------------------------


def test_supplies_that_cannot_reach_are_refused():
    with pytest.raises(DpppsynthError, match="minimum-cost flow"):
        flow.minimum_cost_flow(np.array([0]), np.array([1]), np.ones(1), np.array([1.0, 0.0, -1.0]))


@pytest.mark.parametrize(
    "spoil",
    [{"cost": 1.001}, {"u": 1.0001}, {"u": 0.9999}, {"u": 0.0}, {"u": 1.001, "cost": 1.001}, {"warning": "stopped"}],
)
def test_a_flow_without_proof_is_not_taken(spoil, monkeypatch):
    """Costs above the prices' bound, prices that no arc allows, an early stop: None of them is the least cost."""
    honest = ot.emd

    def spoilt(*args, **options):
        plan, log = honest(*args, **options)
        for key, factor in spoil.items():
            log[key] = factor if isinstance(factor, str) else log[key] * factor
        return plan, log

    problem = flow.both_ways(*flow.grid_arcs((2, 2), (1.0, 1.0)), (H - G).ravel())
    assert problem.least_cost() == pytest.approx(0.4)
    monkeypatch.setattr(ot, "emd", spoilt)
    with pytest.raises(DpppsynthError, match="proof"):
        problem.least_cost()


def test_distances_of_what_differs_by_rounding_alone(rng):
    """Supplies of 1e-15 add up to zero only as far as rounding lets them."""
    p = rng.random((9, 9))
    assert emd(p, 3 * p) < 1e-15
    tiny = p + 1e-13 * rng.random((9, 9))
    assert emd(p, tiny) == pytest.approx(all_pairs(p, tiny), rel=0.05, abs=1e-15)


# -- Heat maps ---------------------------------------------------------------------------------------------------------


def test_worked_example_of_the_filter():
    near, far = 1 / (1 + math.exp(-0.5)), 1 / (1 + math.exp(0.5))
    assert near == pytest.approx(0.622459, abs=1e-6)
    expected = np.outer([near, far], [near, far])
    assert gaussian_heatmap([[1, 0], [0, 0]], 0.5) == pytest.approx(expected, abs=1e-12)
    assert expected == pytest.approx(np.array([[0.387456, 0.235004], [0.235004, 0.142537]]), abs=1e-6)


@pytest.mark.parametrize("shape", [(1, 1), (4, 4), (5, 9)])
@pytest.mark.parametrize("sigma", [1e-320, 1e-9, 0.02, 0.3, 3.0, 1e300, (0.05, 0.4)])
def test_the_filter_is_its_definition_and_keeps_mass(shape, sigma, rng):
    """Every source cell shares its own mass out; dividing by the sum over sources would lose mass at borders."""
    p, inside = rng.random(shape), rng.random(shape) < 0.7
    inside[0, 0] = True
    at = np.argwhere(np.ones(shape)) / shape
    with np.errstate(over="ignore"):
        kernel = np.exp(-0.5 * (((at[:, None] - at) / sigma) ** 2).sum(-1))
    for mask in (np.full(shape, True), inside):
        rows = kernel * mask.ravel()[:, None]
        masses = p * mask
        found = gaussian_heatmap(masses, sigma, inside=mask)
        expected = (rows / np.where(mask.ravel(), rows.sum(0), 1)) @ masses.ravel()
        assert found.ravel() == pytest.approx(expected, abs=1e-12)
        assert found.sum() == pytest.approx(masses.sum(), rel=1e-12)
        assert not found[~mask].any()
    assert gaussian_heatmap(p, sigma) == pytest.approx(gaussian_heatmap(p, sigma, inside=np.full(shape, True)))
    if isinstance(sigma, float) and sigma < 1e-3:
        assert (gaussian_heatmap(p, sigma) == p).all()
        assert gaussian_heatmap(masses, sigma, inside=inside) == pytest.approx(masses, abs=0)


def test_the_filter_has_the_stated_default_and_is_linear(rng):
    p, q = rng.random((2, 32, 32))
    assert (gaussian_heatmap(p) == gaussian_heatmap(p, 0.02)).all()
    assert gaussian_heatmap(2 * p + q) == pytest.approx(2 * gaussian_heatmap(p) + gaussian_heatmap(q), abs=1e-12)
    assert not gaussian_heatmap(np.zeros((3, 3))).any()


def test_the_infinite_map_is_the_grid_of_a_gaussian(rng):
    """One constant for all cells, `sum of exp(-d^2 / (2 sigma^2))` over the infinite grid, by its Fourier series."""
    sigma, shape = 0.15, (6, 4)
    p = rng.random(shape)
    found = infinite_heatmap(p, sigma)
    m, n = found.offset
    assert found.values.shape == (6 + 2 * m, 4 + 2 * n)
    assert found.values.sum() == pytest.approx(p.sum(), rel=1e-14)
    total = 1.0
    for side in shape:
        width = sigma * side
        waves = 1 + 2 * sum(math.exp(-2 * (math.pi * k * width) ** 2) for k in range(1, 6))
        total *= width * math.sqrt(2 * math.pi) * waves
    x, y = (np.arange(-m, 6 + m) / 6)[:, None, None, None], (np.arange(-n, 4 + n) / 4)[:, None, None]
    square = (x - (np.arange(6) / 6)[:, None]) ** 2 + (y - np.arange(4) / 4) ** 2
    expected = (np.exp(-square / (2 * sigma**2)) * p).sum((2, 3)) / total
    assert found.values == pytest.approx(expected, abs=1e-14)
    narrow = infinite_heatmap(p, 1e-9)
    assert (narrow.values[1:-1, 1:-1] == p).all()


@pytest.mark.parametrize("sigma", [0.05, 0.3])
def test_the_distance_bounds_what_smoothing_leaves(sigma, rng):
    side = 4
    points = [[point((side, side), tuple(rng.integers(0, side, 2))) for _ in range(2)] for _ in range(3)]
    for p, q in [*pairs(rng, (side, side), 3), *points]:
        one, other = (infinite_heatmap(each, sigma).values for each in (p, q))
        distance = emd(p, q)
        if sigma < 0.1:
            assert grid_wasserstein(one, other, (1 / side, 1 / side)) <= distance + 1e-12
        assert similarity(one, other) >= 1 - math.sqrt(distance) / (2 * sigma) - 1e-12
        assert kl(one, other) <= distance / (2 * sigma**2) + 1e-12


def test_kl_of_shifted_points_is_the_squared_shift():
    sigma = 0.4
    for shift in ((1, 0), (0, 2), (3, 1)):
        one, other = (
            infinite_heatmap(point((8, 8), at), sigma).values for at in ((2, 3), (2 + shift[0], 3 + shift[1]))
        )
        exact = (one * np.log(one / other)).sum()
        assert exact == pytest.approx((shift[0] ** 2 + shift[1] ** 2) / 64 / (2 * sigma**2), rel=1e-10)
        assert kl(one, other) == pytest.approx(exact, rel=1e-9)


# -- Bad input ---------------------------------------------------------------------------------------------------------

MASSES = "must be a two-dimensional array of finite, non-negative masses"


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ([[1, -1], [1, 1]], MASSES),
        ([[1, np.nan], [1, 1]], MASSES),
        ([[1, np.inf], [1, 1]], MASSES),
        ([1, 1], MASSES),
        ([[]], MASSES),
        ([["1", "2"]], MASSES),
        ([[1, 2], [3]], MASSES),
        (np.zeros((2, 2)), "all is zero"),
        ([[1e308, 1e308], [1e308, 1e308]], "no floating-point number"),
    ],
)
def test_bad_masses_of_metrics(metric, bad, message):
    first, second = ("p", "q") if metric is emd else ("h", "g")
    with pytest.raises(InputError, match=f"{first}: .*{message}"):
        metric(bad, G)
    with pytest.raises(InputError, match=f"{second}: .*{message}"):
        metric(G, bad)


@pytest.mark.parametrize("metric", METRICS)
def test_maps_of_different_shapes(metric):
    with pytest.raises(ValueError, match=r"must have the shape of ., \(2, 2\); got \(1, 2\)"):
        metric(G, [[1, 1]])


@pytest.mark.parametrize("side", [0, -1, 2.5, True, "2", np.nan])
def test_bad_sides(side):
    with pytest.raises(InputError, match="side: needs a whole number of at least 1"):
        emd(H, G, side=side)


@pytest.mark.parametrize("z", [[[np.nan]], [[np.inf, 1]], [[1e308, 1e308]], [1, 2], [[]], "ab", [[1j]]])
def test_bad_differences(z):
    with pytest.raises(InputError, match="z: must be a two-dimensional array of finite numbers"):
        emd_norm(z)


def test_bad_modes():
    for metric in (similarity, pearson):
        with pytest.raises(InputError, match="benchmark: must be True or False"):
            metric(H, G, benchmark="yes")


@pytest.mark.parametrize("sigma", [0, -0.1, np.nan, np.inf, "wide", None, True, (0.1, 0), (0.1, 0.1, 0.1)])
def test_bad_widths(sigma):
    with pytest.raises(InputError, match="sigma: must be a positive finite number"):
        gaussian_heatmap(G, sigma)


def test_bad_maps():
    for bad in ([[1, -1]], [[np.nan]], [[np.inf]], [1, 2], [[]], "ab"):
        for render in (gaussian_heatmap, infinite_heatmap):
            with pytest.raises(InputError, match=f"p: {MASSES}"):
                render(bad, 0.1)
    with pytest.raises(InputError, match="p: the sum of its masses is no floating-point number"):
        gaussian_heatmap([[1e308, 1e308]], 0.1)
    with pytest.raises(InputError, match="sigma: reaches so far that the map would have more than 67108864 cells"):
        infinite_heatmap(G, 1e6)


@pytest.mark.parametrize("inside", [[[True, False]], [[1, 1], [1, 1]], True, [[True, True], [True]]])
def test_bad_masks(inside):
    with pytest.raises(InputError, match=r"inside: must be an array of True and False of the shape of p, \(2, 2\)"):
        gaussian_heatmap(G, 0.1, inside=inside)


def test_mass_outside_the_mask_is_an_error_and_not_lost():
    with pytest.raises(InputError, match="p: has mass in cells that are not inside"):
        gaussian_heatmap(G, 0.1, inside=G > 0.15)
    assert gaussian_heatmap(G * (G > 0.15), 0.1, inside=G > 0.15).sum() == pytest.approx(0.9)
