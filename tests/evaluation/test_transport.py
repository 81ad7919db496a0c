"""Wasserstein distances against closed forms, other solvers and the definition."""

import numpy as np
import ot
import pytest
import shapely
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist
from scipy.stats import wasserstein_distance
from support.networks import uniform, web

from dpppsynth.core.errors import DpppsynthError, InputError
from dpppsynth.evaluation import distances
from dpppsynth.evaluation.distances import grid_wasserstein, minimum_cost_flow, wasserstein
from dpppsynth.linear_network import LinearNetwork
from dpppsynth.spatial.domains import Window
from dpppsynth.spatial.patterns import PointPattern

BOX = Window.rectangle(0, 0, 10, 10)
CYCLE = LinearNetwork([[0, 0], [1, 0], [1, 1], [0, 1]], [[0, 1], [1, 2], [2, 3], [3, 0]])


@pytest.fixture
def rng():
    return np.random.default_rng(7)


def points(xy, window=BOX):
    return PointPattern(xy, window)


@pytest.mark.parametrize("method", ["auto", "exact", "sliced"])
def test_a_shifted_pattern_is_as_far_away_as_the_shift_or_two_over_pi_of_it(method, rng):
    xy = rng.random((60, 2)) * 5
    for shift in ([3.0, 0.0], [0.0, 3.0], [1.2, -0.5 + 1.0], [0.1, 4.0]):
        found = wasserstein(points(xy), points(xy + shift), method)
        share, close = (2 / np.pi, 2e-4) if method == "sliced" else (1.0, 1e-12)
        assert found == pytest.approx(share * np.hypot(*shift), rel=close)


def test_exact_is_the_best_assignment_of_equally_many_points(rng):
    a, b = rng.random((2, 50, 2)) * 10
    cost = cdist(a, b)
    assert wasserstein(points(a), points(b)) == pytest.approx(cost[linear_sum_assignment(cost)].mean(), rel=1e-10)


def test_different_numbers_of_points_and_repeated_ones(rng):
    """Each point has mass 1/n: matching points one to one, or leaving some out, would give something else."""
    x, y = rng.random(30) * 10, rng.random(47) * 10
    one, other = (points(np.column_stack([v, np.full(len(v), 5.0)])) for v in (x, y))
    assert wasserstein(one, other) == pytest.approx(wasserstein_distance(x, y), rel=1e-10)
    doubled = points(np.concatenate([one.xy, one.xy]))
    assert wasserstein(one, doubled) == pytest.approx(0, abs=1e-12)
    assert wasserstein(doubled, other) == pytest.approx(wasserstein(one, other), rel=1e-10)


def test_far_from_the_origin_nothing_cancels(rng):
    """Squared distances by |a|^2 - 2ab + |b|^2 lose all digits of a millimetre at 5 000 kilometres."""
    origin = np.array([5e6, 5e6])
    far = Window.rectangle(*origin, *(origin + 10))
    a, b = rng.random((20, 2)) * 9, rng.random((20, 2)) * 1e-3
    for method in ("exact", "sliced"):
        assert wasserstein(points(a + origin, far), points(a + b + origin, far), method) == pytest.approx(
            wasserstein(points(a), points(a + b), method), rel=1e-4
        )


def test_sliced_is_the_mean_over_directions_and_never_above_its_share_of_exact(rng):
    a, b = rng.random((80, 2)) * 10, rng.random((33, 2)) ** 2 * 10
    sliced = wasserstein(points(a), points(b), "sliced")
    angle = (np.arange(2000) + 0.3) * np.pi / 2000
    fine = np.mean([wasserstein_distance(a @ u, b @ u) for u in np.column_stack([np.cos(angle), np.sin(angle)])])
    assert sliced == pytest.approx(fine, rel=1e-3)
    assert sliced <= 2 / np.pi * wasserstein(points(a), points(b), "exact") * (1 + 1e-4)


def test_auto_turns_to_slices_beyond_the_stated_number_of_pairs(rng, monkeypatch):
    one, other = points(rng.random((9, 2)) * 10), points(rng.random((11, 2)) * 10)
    by = {method: wasserstein(one, other, method) for method in ("auto", "exact", "sliced")}
    assert by["auto"] == by["exact"] > by["sliced"] * 1.001
    monkeypatch.setattr(distances, "MOST_PAIRS", 98)
    assert wasserstein(one, other) == by["sliced"]
    assert wasserstein(one, other, "exact") == by["exact"]


def test_on_a_tree_the_flow_through_every_place_is_known(rng):
    """On a tree the mass beyond a place must pass it: the cost is the integral of |difference of masses beyond|."""
    star = LinearNetwork([[0, 0], [1, 0], [-2, 0], [0, 3]], [[0, 1], [2, 0], [0, 3]])
    one, other = uniform(star, 40, rng), uniform(star, 23, rng)
    total = 0.0
    for edge, length in enumerate(star.lengths):
        # The middle of the star is the second vertex of edge 1.
        outward = [
            np.where(edge == 1, length - p.positions[:, 1], p.positions[:, 1])[p.positions[:, 0] == edge]
            for p in (one, other)
        ]
        cuts = np.unique(np.concatenate([[0, length], *outward]))
        beyond = [
            np.array([(out > c).sum() for c in cuts[:-1]]) / len(p)
            for out, p in zip(outward, (one, other), strict=True)
        ]
        total += float(np.abs(beyond[0] - beyond[1]) @ np.diff(cuts))
    assert wasserstein(one, other) == pytest.approx(total, rel=1e-9)


def test_around_a_cycle_the_flow_takes_the_better_side(rng):
    """On a circle the distance is the integral of |F - G - median(F - G)| (Cabrelli and Molter 1995)."""
    one, other = uniform(CYCLE, 31, rng), uniform(CYCLE, 20, rng)
    at = [np.sort(p.positions @ [1, 1]) for p in (one, other)]
    cuts = np.unique(np.concatenate([[0, 4], *at]))
    width = np.diff(cuts)
    gap = np.searchsorted(at[0], cuts[:-1], "right") / 31 - np.searchsorted(at[1], cuts[:-1], "right") / 20
    order = np.argsort(gap)
    median = gap[order][np.searchsorted(np.cumsum(width[order]), 2)]
    assert wasserstein(one, other) == pytest.approx(np.abs(gap - median) @ width, rel=1e-9)


@pytest.mark.parametrize("sizes", [(60, 45), (1, 200)])
def test_along_streets_it_is_the_transport_between_all_pairs(sizes, rng):
    network = web()
    one, other = (uniform(network, n, rng) for n in sizes)
    full = ot.emd2(np.full(sizes[0], 1 / sizes[0]), np.full(sizes[1], 1 / sizes[1]), network.distance(one, other))
    assert wasserstein(one, other) == pytest.approx(full, rel=1e-9)
    assert wasserstein(other, one) == pytest.approx(full, rel=1e-9)
    straight = wasserstein(points(one.xy, hull := Window.rectangle(*network.bounds)), points(other.xy, hull))
    assert straight < 0.99 * full


def test_points_on_vertices_and_on_each_other():
    network = web()
    # Vertex 1 is the end of edge 0, the start of edge 1 and of edge 6; edges 0 and 8 share both ends.
    same = [
        network.pattern([0], [1.0]),
        network.pattern([1], [0.0]),
        network.pattern([6], [0.0]),
        network.pattern([8], [1.0]),
    ]
    for place in same[1:]:
        assert wasserstein(same[0], place) == pytest.approx(0, abs=1e-12)
    # Both ends of the loop are its vertex; halfway round is half its length away.
    loop = network.lengths[7]
    assert wasserstein(network.pattern([7, 7], [0.0, 1.0]), network.pattern([7], [0.5])) == pytest.approx(loop / 2)
    twice = network.pattern([5, 5, 5], [0.3, 0.3, 0.9])
    assert wasserstein(twice, network.pattern([5], [0.3])) == pytest.approx(0.6 * network.lengths[5] / 3)


def test_metres_and_millimetres_give_the_same_transport(rng):
    """The solver's tolerances are absolute: unscaled, small units or masses would end in its noise."""
    edge, along, other_edge, other_along = (
        *(rng.integers(0, 9, 40), rng.random(40)),
        *(rng.integers(0, 9, 30), rng.random(30)),
    )
    small, found = web(), []
    for scale in (1.0, 1e-5, 1e6):
        network = LinearNetwork(
            small.vertices * scale,
            small.edges,
            lines=[shapely.LineString(shapely.get_coordinates(line) * scale) for line in small.lines],
        )
        found.append(wasserstein(network.pattern(edge, along), network.pattern(other_edge, other_along)) / scale)
    assert found == pytest.approx([found[0]] * 3, rel=1e-7)


@pytest.mark.parametrize(("shape", "spacing"), [((6, 6), (1.0, 1.0)), ((4, 9), (2.0, 0.3)), ((9, 4), (50.0, 70.0))])
def test_grid_is_the_transport_between_all_cells(shape, spacing, rng):
    p, q = rng.gamma(0.4, size=(2, *shape))
    at = np.argwhere(np.ones(shape)) * spacing
    full = ot.emd2(p.ravel() / p.sum(), q.ravel() / q.sum(), cdist(at, at, "cityblock"), numItermax=10**6)
    assert grid_wasserstein(p, q, spacing) == pytest.approx(full, rel=1e-8)
    assert grid_wasserstein(1e9 * p, 1e-9 * q, spacing) == pytest.approx(full, rel=1e-8)


def test_grid_of_one_row_is_the_difference_of_distribution_functions(rng):
    p, q = rng.random((2, 40))
    cdf = np.abs(np.cumsum(p / p.sum() - q / q.sum()))[:-1].sum()
    assert grid_wasserstein([p], [q], (99.0, 2.5)) == pytest.approx(2.5 * cdf, rel=1e-9)
    assert grid_wasserstein(p[:, None], q[:, None], (2.5, 99.0)) == pytest.approx(2.5 * cdf, rel=1e-9)


def test_grid_products_and_shifts():
    """For masses that factorise the l1 distance is the sum over axes of the distances between marginals, in order."""
    p, q = np.zeros((2, 12, 12))
    p[1:4, 2:5], q[6:9, 4:7] = 1, 1
    assert grid_wasserstein(p, q, (1.0, 10.0)) == pytest.approx(5 * 1 + 2 * 10, rel=1e-9)
    assert grid_wasserstein(p, p) == 0
    assert grid_wasserstein([[3.0]], [[7.0]]) == 0


def test_a_flow_takes_the_cheaper_way_and_splits():
    # Two ways from 0 to 3: by node 1, 1 + 1 long, and by node 2, 2 + 3 long; node 2 also wants some.
    tail, head = np.array([0, 1, 0, 2]), np.array([1, 3, 2, 3])
    supply = np.array([1.0, 0.0, -0.25, -0.75])
    assert minimum_cost_flow(tail, head, np.array([1.0, 1.0, 2.0, 3.0]), supply) == pytest.approx(0.75 * 2 + 0.25 * 2)


def test_a_flow_that_cannot_be_is_an_error():
    with pytest.raises(DpppsynthError, match="minimum-cost flow"):
        minimum_cost_flow(np.array([0, 2]), np.array([1, 3]), np.ones(2), np.array([1.0, 0.0, 0.0, -1.0]))


def test_bad_patterns_and_methods():
    some, empty = points([[1.25, 2.5]]), PointPattern.synthetic([], BOX)
    with pytest.raises(InputError, match="empty pattern"):
        wasserstein(some, empty)
    with pytest.raises(InputError, match="empty pattern"):
        wasserstein(empty, some)
    with pytest.raises(InputError, match=r"^method:"):
        wasserstein(some, some, "sinkhorn")
    with pytest.raises(InputError, match=r"^other:"):
        wasserstein(some, points([[1.25, 2.5]], Window.rectangle(0, 0, 10, 11)))
    with pytest.raises(InputError, match=r"^method:"):
        wasserstein(CYCLE.pattern([0], [0.5]), CYCLE.pattern([1], [0.5]), "sliced")


@pytest.mark.parametrize(
    ("p", "q", "spacing", "message"),
    [
        ([[1, 1]], [[1], [1]], (1, 1), "q:"),
        ([[1, -1]], [[1, 1]], (1, 1), "p:"),
        ([[1, 1]], [[1, np.nan]], (1, 1), "q:"),
        ([1, 1], [1, 1], (1, 1), "p:"),
        ([[1, 1]], [[0, 0]], (1, 1), "q:"),
        ([[1, 1]], [[1, 1]], (0, 1), "spacing:"),
        ([[1, 1]], [[1, 1]], 1.0, "spacing:"),
        ([[1, 1]], [[1, 1]], "ab", "spacing:"),
        ([[1, 1]], [[1, 1]], (1j, 1), "spacing:"),
        ([["1", "2"]], [[1, 1]], (1, 1), "p:"),
        ([[1, 1j]], [[1, 1]], (1, 1), "p:"),
    ],
)
def test_bad_grids(p, q, spacing, message):
    with pytest.raises(InputError, match=message):
        grid_wasserstein(p, q, spacing)
