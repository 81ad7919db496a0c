"""K-functions on networks against closed forms, an independent implementation and the definition itself."""

from pathlib import Path

import numpy as np
import pytest
from support.networks import uniform, web

from dpppsynth import datasets
from dpppsynth.core.errors import InputError
from dpppsynth.evaluation.smoothing import kernel_intensity
from dpppsynth.linear_network import LinearNetwork, k_function, pair_correlation
from dpppsynth.linear_network import network_kfunction as module
from dpppsynth.linear_network.perimeter import perimeter
from dpppsynth.linear_network.shortest_paths import distances, from_positions
from dpppsynth.spatial.domains import Window
from dpppsynth.spatial.patterns import PointPattern
from dpppsynth.spatial.second_order import rounding

DATA = Path(__file__).parents[1] / "data"
CENTRE = {"soho": 529385, "geodanet": 726013}
CITIES = sorted(CENTRE)

STAR = LinearNetwork([[0, 0], [1, 0], [-1, 0], [0, 1]], [[0, 1], [0, 2], [0, 3]])
SQUARE = LinearNetwork([[0, 0], [1, 0], [1, 1], [0, 1]], [[0, 1], [1, 2], [2, 3], [3, 0]])
GRID = LinearNetwork(
    [[x, y] for y in range(4) for x in range(4)],
    [[4 * y + x, 4 * y + x + 1] for y in range(4) for x in range(3)]
    + [[4 * y + x, 4 * y + x + 4] for y in range(3) for x in range(4)],
)


def reference(city, name):
    return np.loadtxt(DATA / f"network_{city}_{name}.csv", delimiter=",", skiprows=1)


def streets(city):
    vertices = np.loadtxt(datasets.path(f"{city}_vertices"), delimiter=",", skiprows=1)[:, 1:]
    edges = np.loadtxt(datasets.path(f"{city}_edges"), delimiter=",", skiprows=1).astype(int)
    return LinearNetwork(vertices, edges)


def points(city):
    _, _, edge, t = reference(city, "points").T
    return streets(city).pattern(edge, t)


def counted(network, u, r):
    """m(u, r) by walking a fine ladder of places: changes of sign of d(u, .) - r along every edge."""
    steps, total = 4001, 0
    for e, length in enumerate(network.lengths):
        # Irrational shares, so that no place lies exactly at distance r.
        along = np.linspace(0, 1, steps) ** 1.0137 * length
        d = distances(network, u[None], np.column_stack([np.full(steps, e), along]))[0]
        total += int((np.diff(np.sign(d - r)) != 0).sum())
    return total


@pytest.mark.parametrize("city", CITIES)
@pytest.mark.parametrize("column", ["ang", "none", "inhom", "inhom_normalised"])
def test_k_equals_an_independent_implementation(city, column):
    r, ang, none, inhom, normalised = reference(city, "K").T

    def intensity(xy):
        return np.exp(-6 + 0.001 * (xy[:, 0] - CENTRE[city]))

    expected, options = {
        "ang": (ang, {}),
        "none": (none, {"correction": "none"}),
        "inhom": (inhom, {"intensity": intensity, "normalise": False}),
        "inhom_normalised": (normalised, {"intensity": intensity}),
    }[column]
    np.testing.assert_allclose(k_function(points(city), r, **options).k, expected, rtol=1e-6)


def count_at(network, positions, r):
    """(n, b) numbers of points of the network exactly at distances r (b,) from positions (n, 2)."""
    at, r = np.reshape(np.asarray(positions, dtype=float), (-1, 2)), np.asarray(r, dtype=float)
    slack, degree = rounding(network), network.ends[2]
    limit = float(r[-1] + slack)
    rows = []
    for part, to_vertices in from_positions(network, at, limit):
        for i, to_vertex in zip(part, to_vertices, strict=True):
            edge, along = int(at[i, 0]), float(at[i, 1])
            public = network.edges, network.lengths, degree, limit, slack
            steps, count = perimeter(edge, along, to_vertex, *public)
            rows.append((i, count[np.searchsorted(steps, r)]))
    return np.array([count for _, count in sorted(rows, key=lambda row: row[0])])


@pytest.mark.parametrize("city", CITIES)
def test_counts_equal_an_independent_implementation(city):
    with (DATA / f"network_{city}_countends_first12.csv").open() as file:
        r = [float(name[1:]) for name in file.readline().strip().split(",")]
    pattern = points(city)
    found = count_at(pattern.domain, pattern.positions[:12], r)
    np.testing.assert_array_equal(found, reference(city, "countends_first12"))


def test_counts_on_a_star_at_its_corners():
    # Half way out on one arm: itself, both ways, the centre (passed once), two arms, then at 1.5 their two tips.
    found = count_at(STAR, [[0, 0.5]], [0, 0.25, 0.5, 1, 1.5, 1.6])
    # At 0.5 the tip of the own arm and the centre.
    np.testing.assert_array_equal(found, [[1, 2, 2, 2, 2, 0]])
    # From the centre, given as the start of any arm, three ways lead to three tips; from a tip, one.
    for arm in range(3):
        np.testing.assert_array_equal(count_at(STAR, [[arm, 0]], [0, 0.5, 1, 1.1]), [[1, 3, 3, 0]])
        np.testing.assert_array_equal(count_at(STAR, [[arm, 1]], [0, 0.5, 1, 1.1, 2, 2.1]), [[1, 1, 1, 2, 2, 0]])


def test_ways_that_meet_count_once_where_they_meet():
    np.testing.assert_array_equal(
        count_at(SQUARE, [[0, 0], [0, 0.5], [0, 0.3]], [1.0, 1.5, 1.9, 2.0, 2.1]), [[2, 2, 2, 1, 0]] * 3
    )
    # On a grid of streets many ways arrive at a crossing together: (0, 0) sees four crossings at distance 3.
    np.testing.assert_array_equal(
        count_at(GRID, [[0, 0]], [1, 1.5, 2, 3, 3.5, 4, 5, 5.5, 6]), [[2, 4, 3, 4, 6, 3, 2, 2, 1]]
    )


def test_rounding_does_not_split_ties():
    third = LinearNetwork(SQUARE.vertices * 0.1 + 4e5, SQUARE.edges)
    u = np.array([[0, third.lengths[0] / 3]])
    np.testing.assert_array_equal(count_at(third, u, [third.lengths[0] * 2]), [[1]])


def test_counts_equal_crossings_found_by_walking():
    network, rng = web(), np.random.default_rng(5)
    pattern = uniform(network, 12, rng)
    r = np.sort(rng.uniform(0, network.diameter, 6))
    expected = [[counted(network, u, at) for at in r] for u in pattern.positions]
    np.testing.assert_array_equal(count_at(network, pattern.positions, r), expected)


@pytest.mark.parametrize("correction", ["ang", "none"])
def test_k_equals_its_definition(correction):
    rng = np.random.default_rng(6)
    pattern = uniform(web(), 40, rng)
    network, n = pattern.domain, len(pattern)
    intensity = rng.uniform(0.5, 2, n)
    r = np.linspace(0.3, network.diameter / 2, 9)
    d = distances(network, pattern.positions, pattern.positions)
    k = np.zeros(len(r))
    for i in range(n):
        order = np.argsort(d[i])
        m = np.empty(n)
        m[order] = count_at(network, pattern.positions[[i]], np.unique(d[i]))[0]
        for j in set(range(n)) - {i}:
            k += (d[i, j] <= r) / (intensity[i] * intensity[j] * (m[j] if correction == "ang" else 1))
    found = k_function(pattern, r, intensity, correction)
    np.testing.assert_allclose(found.k, k / (1 / intensity).sum(), rtol=1e-10)


def test_ties_at_exactly_r_count_as_inside():
    # 0.1 + 0.2 exceeds 0.3 by rounding.
    road = LinearNetwork([[0, 0], [0.1, 0], [1, 0]], [[0, 1], [1, 2]])
    pattern = PointPattern.at([[0, 0], [1, 0.2]], road)
    assert distances(road, pattern.positions, pattern.positions)[0, 1] > 0.3
    assert k_function(pattern, [0.29, 0.3], correction="none").k.tolist() == [0, 1]


def test_distances_beyond_the_network_change_nothing():
    pattern = STAR.pattern([0, 0, 1, 2], [0.25, 0.75, 0.5, 1.0])
    for correction in ("ang", "none"):
        near = k_function(pattern, [0.5, 1.0, 2.0], correction=correction).k
        far = k_function(pattern, [0.5, 1.0, 2.0, 1e160, 1e308], correction=correction).k
        np.testing.assert_array_equal(far, [*near, near[2], near[2]])
        g = pair_correlation(pattern, [0.5, 1e308], bandwidth=0.1, correction=correction).g
        assert g.tolist() == [*pair_correlation(pattern, [0.5], bandwidth=0.1, correction=correction).g, 0]


def test_coincident_points_and_points_on_a_crossing():
    pattern = STAR.pattern([0, 1, 2], [0, 0, 1])
    # Two at the centre are at distance zero, where m = 1; the third sees them at 1, where m = 1; they see it, m = 3.
    np.testing.assert_allclose(k_function(pattern, [0, 0.5, 1]).k, np.array([2, 2, 2 + 2 + 2 / 3]) * 3 / 6)
    assert k_function(STAR.pattern([0, 0], [0.3, 0.3]), [0]).k == pytest.approx(2 * 3 / 2)


def test_edges_may_be_turned_cut_and_numbered_anew():
    rng = np.random.default_rng(7)
    edges, share = rng.integers(0, 24, 50), rng.random(50)
    r = np.linspace(0, 6, 25)
    expected = k_function(GRID.pattern(edges, share), r).k
    turned = LinearNetwork(GRID.vertices, GRID.edges[::-1, ::-1])
    np.testing.assert_allclose(k_function(turned.pattern(23 - edges, 1 - share), r).k, expected, rtol=1e-12)
    middle = GRID.vertices[GRID.edges].mean(axis=1)
    halves = np.column_stack([GRID.edges[:, 0], 16 + np.arange(24), 16 + np.arange(24), GRID.edges[:, 1]]).reshape(
        -1, 2
    )
    cut = LinearNetwork(np.concatenate([GRID.vertices, middle]), halves)
    moved = cut.pattern(2 * edges + (share > 0.5), 2 * share - (share > 0.5))
    np.testing.assert_allclose(k_function(moved, r).k, expected, rtol=1e-12)


def test_constant_intensity_is_the_homogeneous_k_but_for_its_factor():
    pattern, r = uniform(GRID, 30, np.random.default_rng(8)), np.linspace(0, 5, 11)
    k = k_function(pattern, r).k
    n, length = 30, GRID.length
    for normalise in (True, False):
        found = k_function(pattern, r, np.full(n, n / length), normalise=normalise)
        np.testing.assert_allclose(found.k, k * (n - 1) / n, rtol=1e-12)
    # Twice the intensity: half of it made up for, or nothing.
    twice = [k_function(pattern, r, np.full(n, 2 * n / length), normalise=how).k for how in (True, False)]
    np.testing.assert_allclose(twice, [k * (n - 1) / n / 2, k * (n - 1) / n / 4], rtol=1e-12)


def test_sums_do_not_depend_on_blocks(monkeypatch):
    pattern, r = uniform(GRID, 30, np.random.default_rng(9)), np.linspace(0, 5, 11)
    whole = k_function(pattern, r).k
    monkeypatch.setattr(module, "SHARE", 7)
    monkeypatch.setattr("dpppsynth.linear_network.shortest_paths.BLOCK", 100)
    np.testing.assert_allclose(k_function(pattern, r).k, whole, rtol=1e-13)


@pytest.mark.slow
def test_poisson_patterns_have_k_equal_to_r_and_g_equal_to_one():
    rng, length = np.random.default_rng(10), GRID.length
    r = np.array([0.5, 1.0, 2.0, 3.0])  # a corner sees as far as 6, the middle as far as 4
    k, g = [], []
    for _ in range(300):
        pattern = uniform(GRID, 40, rng)
        # Thinned towards one side; the intensity is known but for a factor, which normalising takes out.
        kept = rng.random(40) < (1 + pattern.xy[:, 0]) / 4
        sample = PointPattern.at(pattern.positions[kept], GRID)
        intensity = 40 / length * (1 + sample.xy[:, 0]) / 4
        k.append(k_function(sample, r, intensity, normalise=False).k)
        g.append(pair_correlation(sample, [0, *r], bandwidth=0.2, intensity=intensity, normalise=False).g)
    # A binomial pattern has (n - 1) / n as many pairs as a Poisson pattern.
    for found, expected in ((np.array(k), r * 39 / 40), (np.array(g), 39 / 40)):
        error = found.std(axis=0) / np.sqrt(len(found))
        assert (np.abs(found.mean(axis=0) - expected) < 5.5 * error).all()
        assert (error < 0.05 * np.maximum(found.mean(axis=0), 1)).all()


@pytest.mark.parametrize("correction", ["ang", "none"])
def test_pair_correlation_is_the_sum_of_reflected_kernels(correction):
    pattern = uniform(GRID, 25, np.random.default_rng(11))
    fine = np.linspace(0, 8, 80_001)
    steps = np.diff(k_function(pattern, fine, correction=correction).k, prepend=0)
    bandwidth, r = 0.15, np.array([0, 0.1, 0.3, 1, 2.2, 5])
    reach = np.sqrt(5) * bandwidth

    def kernel(x):
        return np.maximum(0.75 / reach * (1 - (x / reach) ** 2), 0)

    middle = fine - 5e-5
    expected = [(steps * (kernel(at - middle) + kernel(at + middle))).sum() for at in r]
    found = pair_correlation(pattern, r, bandwidth=bandwidth, correction=correction)
    np.testing.assert_allclose(found.g, expected, rtol=1e-3, atol=1e-3)


def test_integral_of_the_pair_correlation_is_k():
    pattern = uniform(GRID, 25, np.random.default_rng(12))
    r = np.linspace(0, 7, 7001)
    g = pair_correlation(pattern, r, bandwidth=0.1).g
    assert np.trapezoid(g, r) == pytest.approx(k_function(pattern, [7]).k[0], rel=1e-4)


def test_pair_correlation_far_out_keeps_its_digits():
    # Distances are large against the bandwidth, which squares of them would not survive.
    road = LinearNetwork([[0, 0], [1e6, 0]], [[0, 1]])
    near = PointPattern.at([[0, 0], [0, 9e5]], road)
    g = pair_correlation(near, [9e5 - 1e-3, 9e5], bandwidth=1e-2).g
    reach = np.sqrt(5) * 1e-2
    # One end sees one way, and so does the other point at the distance of the end.
    expected = 1e6 / 2 * 2 * 0.75 / reach * (1 - (np.array([1e-3, 0]) / reach) ** 2)
    np.testing.assert_allclose(g, expected, rtol=1e-6)


def test_results_cannot_be_written_to_and_say_what_they_are():
    pattern = STAR.pattern([0, 2], [0.5, 0.25])
    found = k_function(pattern, [0.5, 1.0])
    assert repr(found) == "KFunction(homogeneous, correction 'ang', r from 0.5 to 1)"
    assert "bandwidth 0.1" in repr(pair_correlation(pattern, [0.5], bandwidth=0.1))
    for array in (found.r, found.k):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"r": []}, "r: must be"),
        ({"r": [1, 1]}, "increasing"),
        ({"r": [-1, 1]}, "non-negative"),
        ({"r": [0, np.nan]}, "finite"),
        ({"r": "far"}, "r: must be"),
        ({"r": [[0, 1]]}, "r: must be"),
        ({"intensity": [1.0]}, "one number per point"),
        ({"intensity": lambda xy: xy}, "one number per point"),
        ({"intensity": [1.0, 0.0, 1.0]}, "positive"),
        ({"intensity": [1.0, np.nan, 1.0]}, "positive"),
        ({"intensity": "many"}, "one number per point"),
        ({"correction": "iso"}, "correction: expected one of 'ang', 'none' on a network"),
        ({"correction": ["ang"]}, "correction: expected one of"),
        ({"normalise": "no"}, "normalise: must be True or False"),
        ({"intensity": kernel_intensity(PointPattern([[0.5, 0.5]], Window.rectangle(0, 0, 1, 1)), 1.0)}, "domain"),
        ({"pattern": STAR.pattern([0], [0.5])}, "at least two"),
        ({"pattern": PointPattern.at(np.empty((0, 2)), STAR, synthetic=True)}, "at least two"),
        ({"pattern": PointPattern([[0.5, 0.5]], Window.rectangle(0, 0, 1, 1))}, "LinearNetwork"),
        ({"pattern": [[0, 0.5]]}, "LinearNetwork"),
    ],
)
@pytest.mark.parametrize("function", [k_function, lambda *a, **b: pair_correlation(*a, bandwidth=1.0, **b)])
def test_bad_arguments_are_refused(function, change, match):
    arguments = {"pattern": STAR.pattern([0, 1, 2], [0.5, 0.5, 0.25]), "r": [0, 1]} | change
    with pytest.raises(InputError, match=match) as caught:
        function(**arguments)
    assert "3" not in str(caught.value)


@pytest.mark.parametrize("bandwidth", [0, -1, np.nan, np.inf, 1e300, True, "wide"])
def test_bad_bandwidths_are_refused(bandwidth):
    with pytest.raises(InputError, match="bandwidth"):
        pair_correlation(STAR.pattern([0, 1], [0.5, 0.5]), [0, 1], bandwidth=bandwidth)


def test_edges_to_rounding_are_whole():
    """Averages of positions on one edge; cut off, they would be far along the edge before, or none at all."""
    rng = np.random.default_rng(5)
    edge = rng.integers(0, 4, 60)
    whole = np.column_stack([edge, rng.random(60)])
    below = np.column_stack([edge - 1e-12, whole[:, 1]])
    r = np.array([0.2, 0.5])
    one, other = (k_function(PointPattern.at(each, SQUARE), r).k for each in (whole, below))
    np.testing.assert_allclose(other, one, rtol=1e-9)
