"""Bounds on networks: increments by brute force, divergences of posteriors by quadrature, Kim & Lim's sum by hand."""

import itertools
import math
from dataclasses import replace
from importlib.resources import files

import numpy as np
import pytest
import shapely
from scipy.sparse import csgraph

from dpppsynth.core.errors import InputError, PrivacyCheckError
from dpppsynth.linear_network import LinearNetwork, network_mesh
from dpppsynth.linear_network.shortest_paths import distances
from dpppsynth.mechanisms.lgcp.bound.fields import field_sensitivity
from dpppsynth.mechanisms.lgcp.bound.increments import element_pairs, farthest_corners, increments
from dpppsynth.mechanisms.lgcp.bound.kim_lim import RandomScale
from dpppsynth.mechanisms.lgcp.field_statistic import lattice_field
from dpppsynth.models.covariances import GeneralisedCauchy, Matern, PoweredExponential, square_root
from dpppsynth.models.kim_lim_model import KimLimModel
from dpppsynth.privacy import (
    AddRemove,
    AlphaNeighbours,
    GaussianDP,
    ReplaceOne,
    delta_gaussian,
    gaussian_mu,
    increment_sd,
    kim_lim_38,
    kim_lim_39,
    kim_lim_ratio,
    largest_sigma,
    lipschitz,
    point_sd,
    posterior_mu,
    theorem_a,
)

EPSILONS = (0.0, 0.05, 0.2, 0.5, 1.0, 2.0)


class Matrix:
    """A covariance given by its root."""

    def __init__(self, root):
        self.root = root

    def matrix(self, mesh):
        return self.root @ self.root.T


def random_network(seed):
    """A random tree with chords, a bent parallel of one edge, a loop, and a street far shorter than the others."""
    rng = np.random.default_rng(seed)
    size = 7
    vertices = rng.uniform(0, 3, (size, 2))
    vertices[-1] = vertices[0] + [0.01, 0.005]
    edges = [(int(rng.integers(i)), i) for i in range(1, size - 1)] + [(0, size - 1), (1, size - 1), (2, 4)]
    lines = [[vertices[a], vertices[b]] for a, b in edges]
    a, b = edges[0]
    corner = vertices[3] + [0.3, 0.1]
    edges += [(a, b), (3, 3)]
    lines += [
        [vertices[a], vertices.mean(axis=0), vertices[b]],
        [vertices[3], corner, corner + np.array([0, 0.3]), vertices[3]],
    ]
    return LinearNetwork(vertices, edges, lines=[shapely.LineString(line) for line in lines])


NETWORKS = {f"network {seed}": random_network(seed) for seed in range(4)}
every_network = pytest.mark.parametrize("name", NETWORKS)


def anywhere(mesh, points, seed):
    """The mesh's vertices, and positions all over the network, evenly by length."""
    rng = np.random.default_rng(seed)
    start = np.cumsum(mesh.domain.lengths) - mesh.domain.lengths
    at = np.sort(rng.uniform(0, mesh.domain.length, points))
    edge = np.searchsorted(start, at, side="right") - 1
    return np.vstack([mesh.positions, np.column_stack([edge, at - start[edge]])])


def spread(mesh, matrix, positions):
    """Lengths of the paths between all pairs of positions, and variances of the field's differences."""
    at = mesh.basis(positions)
    covariance = at @ matrix @ at.T.toarray()
    own = np.diag(covariance)
    return distances(mesh.domain, positions, positions), own[:, None] + own - 2 * covariance


def random_matrix(mesh, seed):
    """A covariance that depends on no distance, of rank 3: neighbours may differ more than far vertices."""
    root = np.random.default_rng(seed).normal(size=(len(mesh.vertices), 3))
    return root @ root.T


class TestIncrements:
    @pytest.mark.exhaustive
    @every_network
    @pytest.mark.parametrize("resolution", [0.25, 5.0])
    @pytest.mark.parametrize("model", ["exponential", "matern", "any"])
    def test_never_exceeded_and_reached(self, name, resolution, model):
        """Twelve hundred points and all pairs of them, four privacy radii, the smallest inside most segments."""
        mesh = network_mesh(NETWORKS[name], resolution)
        matrix = {
            "exponential": lambda: PoweredExponential(1.0, 1.0, 1.0).matrix(mesh),
            "matern": lambda: Matern(0.7, 0.5, 0.25).matrix(mesh),
            "any": lambda: random_matrix(mesh, 3),
        }[model]()
        path, variance = spread(mesh, matrix, anywhere(mesh, 1200, seed=1))
        table = increments(mesh, matrix)
        for reach in (0.15, 0.4, 1.1, 3.0):
            reached, bound = math.sqrt(variance[path <= reach].max()), table.within(reach)
            assert 0.95 * bound < reached <= bound
        assert reached > 0.995 * bound

    @every_network
    def test_attained_by_the_points_it_is_taken_at(self, name):
        """Points at exactly the reach from each vertex, where a path ends: the supremum to all digits."""
        mesh = network_mesh(NETWORKS[name], 0.4)
        matrix = PoweredExponential(1.0, 0.8, 1.0).matrix(mesh)
        for reach in (0.05, 0.3, 0.9):
            ends = [mesh.positions]
            path = mesh.path_lengths
            for side in (0, 1):
                left = reach * (1 - 1e-9) - path[:, mesh.elements[:, side]]
                at = np.where(side == 0, mesh.start + left, mesh.end - left)
                inside = (left > 0) & (left < mesh.end - mesh.start)
                ends.append(np.column_stack([np.broadcast_to(mesh.edge, at.shape)[inside], at[inside]]))
            to, variance = spread(mesh, matrix, np.vstack(ends))
            reached = math.sqrt(variance[to <= reach].max())
            assert (1 - 1e-7) * increment_sd(mesh, matrix, reach) < reached <= increment_sd(mesh, matrix, reach)

    @pytest.mark.exhaustive
    @every_network
    @pytest.mark.parametrize("fault", ["vertices alone", "one direction", "half slope"])
    def test_faults_show(self, name, fault):
        mesh = network_mesh(NETWORKS[name], 0.5)
        matrix = random_matrix(mesh, 3)
        right, half = increments(mesh, matrix), len(mesh.elements)
        wrong = {
            "vertices alone": lambda: replace(right, start=right.start[:0], end=right.end[:0], length=right.length[:0]),
            "one direction": lambda: replace(
                right, start=right.start[:half], end=right.end[:half], length=right.length[:half]
            ),
            "half slope": lambda: replace(right, length=2 * right.length),
        }[fault]()
        path, variance = spread(mesh, matrix, anywhere(mesh, 1500, seed=2))
        ratio = [math.sqrt(variance[path <= r].max()) / wrong.within(r) for r in np.linspace(0.05, 1.0, 20)]
        assert max(ratio) > 1.01

    def test_every_route_counts(self):
        """A field that rises all along a ring cut open: across the cut it jumps, which a spanning tree does not see."""
        ring = LinearNetwork([(0, 0), (1, 0), (1, 1), (0, 1)], [(0, 1), (1, 2), (2, 3), (3, 0)])
        mesh = network_mesh(ring, 0.2)
        graph = csgraph.csgraph_from_dense(mesh.path_lengths, null_value=0)
        tree = csgraph.dijkstra(csgraph.minimum_spanning_tree(graph), directed=False)
        rise = tree[np.argmax(tree.max(axis=1))]
        right = increments(mesh, np.outer(rise, rise))
        path, variance = spread(mesh, np.outer(rise, rise), anywhere(mesh, 1500, seed=2))
        reached = math.sqrt(variance[path <= 0.25].max())
        assert 0.99 * right.within(0.25) < reached <= right.within(0.25)
        assert reached > 5 * replace(right, path=tree).within(0.25)

    @every_network
    def test_short_moves_follow_the_steepest_segment(self, name):
        mesh = network_mesh(NETWORKS[name], 0.3)
        matrix = PoweredExponential(1.0, 1.0, 1.0).matrix(mesh)
        a, b = mesh.elements.T
        steepest = np.sqrt(matrix[a, a] + matrix[b, b] - 2 * matrix[a, b]) / (mesh.end - mesh.start)
        assert increment_sd(mesh, matrix, 1e-4) == pytest.approx(1e-4 * steepest.max(), rel=1e-6)

    @every_network
    def test_grows_to_all_pairs_of_vertices(self, name):
        mesh = network_mesh(NETWORKS[name], 0.3)
        matrix = Matern(1.0, 1.0, 0.3).matrix(mesh)
        table = increments(mesh, matrix)
        curve = [table.within(r) for r in (*np.linspace(0.01, mesh.domain.diameter, 30), math.inf)]
        assert np.all(np.diff(curve) >= 0)
        assert curve[-1] == curve[-2] == pytest.approx(math.sqrt(2 - 2 * matrix.min()), rel=1e-8)
        assert curve[7] == increment_sd(mesh, matrix, np.linspace(0.01, mesh.domain.diameter, 30)[7])

    def test_nearly_constant_fields_keep_a_margin(self):
        mesh = network_mesh(NETWORKS["network 0"], 0.5)
        exact = math.sqrt(2 * 0.1 / 1e15)
        assert exact < increment_sd(mesh, PoweredExponential(1.0, 1e15, 1.0).matrix(mesh), 0.1) < 1e-6

    def test_blocks_change_nothing(self, monkeypatch):
        mesh = network_mesh(NETWORKS["network 1"], 0.2)
        matrix = PoweredExponential(1.0, 1.0, 1.0).matrix(mesh)
        whole = increment_sd(mesh, matrix, 0.33)
        monkeypatch.setattr("dpppsynth.mechanisms.lgcp.bound.increments.BLOCK", 100)
        assert increment_sd(mesh, matrix, 0.33) == whole


def soho():
    data = files("dpppsynth.datasets") / "data"
    read = [np.loadtxt(str(data / f"soho_{name}.csv"), delimiter=",", skiprows=1) for name in ("vertices", "edges")]
    return LinearNetwork(read[0][:, 1:], read[1], "EPSG:27700")


class TestSoho:
    network = soho()

    @pytest.mark.parametrize("resolution", [50.0, 25.0, 10.0])
    def test_sigma_hardly_depends_on_the_mesh(self, resolution):
        """The shortest segment is a centimetre; the two bounds of the plane would fall far behind."""
        mesh, unit, mu = (
            network_mesh(self.network, resolution),
            PoweredExponential(1.0, 150.0, 1.0),
            gaussian_mu(1, 1e-6),
        )
        length = mesh.end - mesh.start
        assert length.min() < 0.011
        sigma = largest_sigma(mesh, unit, 25.0, mu)
        assert sigma == pytest.approx(0.43, abs=0.01)
        matrix = unit.matrix(mesh)
        slope = math.sqrt((2 - 2 * matrix[*mesh.elements.T]).max(initial=0, where=length < 0.011)) / length.min()
        elements = math.sqrt(farthest_corners(mesh.elements, matrix, *element_pairs(mesh, 25.0)).max())
        assert mu / (25 * slope) == pytest.approx(0.0082, rel=0.01)
        if resolution == 50:
            assert mu / elements == pytest.approx(0.241, abs=0.001)
        continuum = mu / math.sqrt(2 - 2 * math.exp(-25 / 150))
        assert continuum * 0.999 < sigma < 1.02 * continuum

    def test_guarantee(self):
        mesh = network_mesh(self.network, 50.0)
        sigma = largest_sigma(mesh, PoweredExponential(1.0, 150.0, 1.0), 25.0, gaussian_mu(1.0, 1e-6))
        guarantee = theorem_a(mesh, PoweredExponential(sigma, 150.0, 1.0), 25.0, delta=1e-6)
        assert 1 - 1e-9 < guarantee.epsilon() <= 1
        distance, epsilon = np.array(guarantee.by_distance).T
        assert len(distance) == 40
        assert distance[-1] == self.network.diameter
        assert np.all(np.diff(epsilon) >= 0)
        matrix = PoweredExponential(sigma, 150.0, 1.0).matrix(mesh)
        for d, e in guarantee.by_distance[::13]:
            assert e == GaussianDP(increment_sd(mesh, matrix, d), 1e-6).epsilon(1e-6)


class TestLipschitz:
    mesh = network_mesh(NETWORKS["network 2"], 0.5)

    def test_no_path_is_longer_than_the_diameter(self):
        diameter = self.mesh.domain.diameter
        for relation in (ReplaceOne(), AlphaNeighbours(1e6)):
            assert lipschitz(self.mesh, relation, slope=0.5).epsilon() == pytest.approx(diameter)
        assert lipschitz(
            self.mesh, AlphaNeighbours(0.1, max_points_per_person=3), slope=0.5
        ).epsilon() == pytest.approx(0.3)
        with pytest.raises(InputError, match=r"^relation: 'add-remove' has no guarantee from the slope"):
            lipschitz(self.mesh, AddRemove(), slope=0.5)


class TestFieldStatistic:
    @every_network
    @pytest.mark.parametrize(
        "covariance", [PoweredExponential(1.0, 1.0, 1.0), GeneralisedCauchy(0.6, 0.4, 0.8, 1.5)], ids=["exp", "cauchy"]
    )
    def test_moves_never_exceed_the_sensitivity(self, name, covariance):
        """Points at most alpha apart, on the lattice; the bound is reached up to its room for rounding."""
        mesh = network_mesh(NETWORKS[name], 0.5)
        root = square_root(covariance.matrix(mesh))
        positions = anywhere(mesh, 150, seed=4)
        lattice = np.array([lattice_field(mesh, root, p[None], 20) for p in positions], dtype=float)
        change = np.linalg.norm(lattice[:, None] - lattice, axis=2)
        path = distances(mesh.domain, positions, positions)
        for alpha in (0.1, 0.7, math.inf):
            relation = ReplaceOne() if math.isinf(alpha) else alpha
            assert change[path <= alpha].max() <= field_sensitivity(mesh, covariance, relation)
        assert change.max() > 0.99 * field_sensitivity(mesh, covariance, ReplaceOne())
        assert np.linalg.norm(lattice, axis=1).max() <= field_sensitivity(mesh, covariance, AddRemove())


TREE = network_mesh(LinearNetwork([(0, 0), (1, 0), (1, 0.6)], [(0, 1), (1, 2)]), 2.0)
# The third street is short, and the way over it the shortest between its ends.
CYCLE = network_mesh(LinearNetwork([(0, 0), (1, 0), (0.1, 0.2)], [(0, 1), (1, 2), (2, 0)]), 2.0)
both_networks = pytest.mark.parametrize("mesh", [TREE, CYCLE], ids=["tree", "cycle"])


class Pair:
    """The law of `t = Y(x) - Y(x')` under the posteriors of two neighbours, by quadrature over three coefficients.

    They differ by the factor exp(-t), so their divergences are attained on half-lines of t.
    """

    def __init__(self, mesh, root, masses, change, *, flat, level, points=801):
        direction = root.T @ change
        self.sd = np.linalg.norm(direction)
        turn = np.linalg.qr(np.column_stack([direction, np.eye(len(direction))]))[0]
        turn *= np.sign(turn[:, 0] @ direction)
        u, other = np.linspace(-8, 8, points), np.linspace(-6.5, 6.5, 33)
        z = np.stack(np.meshgrid(u, *[other] * (len(direction) - 1), indexing="ij"), axis=-1).reshape(
            -1, len(direction)
        )
        field = z @ (root @ turn).T + level
        size = np.exp(field) @ mesh.measure
        log = -(z**2).sum(axis=1) / 2 + field @ masses - (masses.sum() * np.log(size) if flat else size)
        weight = np.exp(log - log.max()).reshape(points, -1).sum(axis=1)
        tilted = weight * np.exp(-self.sd * (u - u[np.argmax(weight)]))
        self.p, self.q = weight / weight.sum(), tilted / tilted.sum()

    def divergence(self, epsilon):
        """Larger of the two hockey-stick divergences."""
        upper, lower = (np.cumsum(p[::-1]) for p in (self.p, self.q))
        below = np.cumsum(self.q) - math.exp(epsilon) * np.cumsum(self.p)
        return max(0.0, np.max(upper - math.exp(epsilon) * lower), np.max(below))

    def worst(self, mu):
        """Largest ratio of divergence to Gaussian profile; the sums are good to two parts in a thousand."""
        return max(self.divergence(e) / delta_gaussian(e, mu) for e in EPSILONS if delta_gaussian(e, mu) > 1e-13)


def at(mesh, positions):
    return mesh.basis(np.atleast_2d(positions)).toarray()


def inside(mesh, rng, n):
    edge = rng.integers(len(mesh.domain.edges), size=n)
    return np.column_stack([edge, rng.uniform(0, mesh.domain.lengths[edge])])


def move(mesh, rng, alpha):
    """Two points at most alpha apart along the network, from streets of their own where it can be."""
    while True:
        pair = inside(mesh, rng, 2)
        if distances(mesh.domain, pair[:1], pair[1:])[0, 0] <= alpha and (
            pair[0, 0] != pair[1, 0] or rng.random() < 0.2
        ):
            return pair


def farthest_move(mesh, matrix, alpha):
    """Move within alpha along which the field varies most: a vertex and a point of some street, or two vertices."""
    fine = network_mesh(mesh.domain, 0.002).positions
    change = at(mesh, fine)
    covariance = change @ matrix @ change.T
    own = np.diag(covariance)
    variance = own[:, None] + own - 2 * covariance
    variance[distances(mesh.domain, fine, fine) > alpha] = 0
    return fine[list(np.unravel_index(np.argmax(variance), variance.shape))]


class TestDivergence:
    @pytest.mark.exhaustive
    @both_networks
    @pytest.mark.parametrize("intercept", ["fixed", "flat"])
    @pytest.mark.parametrize("seed", range(8))
    def test_stays_below_the_profile_for_every_pattern(self, mesh, intercept, seed):
        """Singular priors, clusters, few and many points; pairs inside streets, on one and on two of them."""
        rng = np.random.default_rng([seed, mesh is TREE])
        root = rng.normal(size=(3, rng.integers(1, 4))) * rng.choice([0.2, 0.7, 1.5])
        alpha = rng.uniform(0.15, 0.6)
        start, stop = move(mesh, rng, alpha)
        pattern = (
            inside(mesh, rng, 1)[[0] * rng.integers(1, 15)] if seed % 2 else inside(mesh, rng, rng.integers(1, 15))
        )
        masses = (at(mesh, pattern).sum(axis=0) + at(mesh, start))[0]
        level = math.log(masses.sum() / mesh.measure.sum()) + rng.normal()
        pair = Pair(mesh, root, masses, (at(mesh, start) - at(mesh, stop))[0], flat=intercept == "flat", level=level)
        mu = posterior_mu(mesh, Matrix(root), alpha)
        assert pair.sd <= mu
        assert pair.worst(mu) < 1.002

    def worst_case(self, mesh, alpha, factor=1.0):
        """Few points, the move along which the field varies most: nearly the prior itself, tilted."""
        root = 0.3 * np.eye(3)
        start, stop = farthest_move(mesh, root @ root.T, alpha)
        change = (at(mesh, start) - at(mesh, stop))[0]
        return root, Pair(mesh, factor * root, at(mesh, start)[0], change, flat=False, level=-3.0)

    @both_networks
    @pytest.mark.parametrize("alpha", [0.15, 0.3, 0.7])
    def test_comes_close_to_it(self, mesh, alpha):
        root, pair = self.worst_case(mesh, alpha)
        profile = theorem_a(mesh, Matrix(root), alpha, delta=1e-6).profile
        for epsilon in (0.0, 0.2, 0.5):
            assert 0.9 * profile.delta(epsilon) < pair.divergence(epsilon) <= profile.delta(epsilon) * 1.002

    @both_networks
    def test_catches_a_field_twice_too_large(self, mesh):
        root, pair = self.worst_case(mesh, 0.3, factor=2.0)
        assert pair.worst(posterior_mu(mesh, Matrix(root), 0.3)) > 1.9

    @both_networks
    def test_catches_half_the_slope(self, mesh):
        """As when the segments were taken to be twice as long."""
        root, pair = self.worst_case(mesh, 0.15)
        right = increments(mesh, root @ root.T)
        assert pair.worst(right.within(0.15)) < 1.002
        assert pair.worst(replace(right, length=2 * right.length).within(0.15)) > 1.5

    def test_catches_paths_around_the_cycle_left_out(self):
        """The short street taken away from the paths: its two ends are then nearly two units apart."""
        root, pair = self.worst_case(CYCLE, 0.3)
        right = increments(CYCLE, root @ root.T)
        a, b, _ = CYCLE.domain.lengths
        line = np.array([[0, a, a + b], [a, 0, b], [a + b, b, 0]])
        assert pair.worst(right.within(0.3)) < 1.002
        assert pair.worst(replace(right, path=line).within(0.3)) > 1.5


def by_hand(mesh, matrix, alpha):
    """Theorem 3.8 term by term, epsilon = 1: segments at most alpha apart along the network."""
    path, total = mesh.path_lengths, 0.0
    for i, j in itertools.combinations(range(len(mesh.elements)), 2):
        pairs = list(itertools.product(mesh.elements[i], mesh.elements[j]))
        if min(path[a, b] for a, b in pairs) <= alpha:
            total += max(matrix[a, a] + matrix[b, b] - 2 * matrix[a, b] for a, b in pairs)
    return 4 * total


class TestKimLim:
    @every_network
    @pytest.mark.parametrize("alpha", [0.01, 0.3, 1.0, 99.0])
    def test_is_the_sum(self, name, alpha):
        mesh, covariance = network_mesh(NETWORKS[name], 0.7), PoweredExponential(1e-3, 2.0, 1.0)
        expected = by_hand(mesh, covariance.matrix(mesh), alpha)
        guarantee = kim_lim_38(mesh, covariance, alpha, epsilon=1.5)
        assert guarantee.profile.slack == pytest.approx(expected / 1.5**2, rel=1e-8)
        assert guarantee.theorem == "kim-lim-3.8"

    def test_segments_on_parallel_streets_are_far_apart(self):
        """In a straight line a hundredth, along the network a whole street: only pairs that touch count."""
        fork = network_mesh(LinearNetwork([(0, 0), (5, 0.0), (4.99, 0.01)], [(0, 1), (0, 2)]), 1.0)
        assert len(element_pairs(fork, 0.5)[0]) == 10 + 4 + 4 + 1

    @every_network
    def test_random_length_scale_is_covered(self, name):
        """Whatever l, sigma = R sqrt(l) stays below the bound for R alone, and comes close as l grows."""
        mesh, ratio = network_mesh(NETWORKS[name], 0.7), 1e-3
        bound = kim_lim_38(mesh, None, 0.5, epsilon=1.0, ratio=ratio).profile.slack
        model = RandomScale(ratio, 1.0)
        given = [kim_lim_38(mesh, model.at(s), 0.5, epsilon=1.0).profile.slack for s in (0.3, 2.0, 4e5)]
        assert model.at(4.0) == PoweredExponential(2e-3, 4.0, 1.0)
        assert given == sorted(given)
        assert 0.9999 * bound < given[-1] <= bound

    def test_ratio_spends_delta(self):
        mesh = network_mesh(NETWORKS["network 3"], 0.7)
        ratio = kim_lim_ratio(mesh, 0.5, epsilon=1.0, delta=0.01)
        assert 0.01 * (1 - 1e-9) < kim_lim_38(mesh, None, 0.5, epsilon=1.0, ratio=ratio).profile.slack <= 0.01
        with pytest.raises(PrivacyCheckError, match=r"promises nothing"):
            kim_lim_38(mesh, None, 0.5, epsilon=1.0, ratio=11 * ratio)

    def test_the_corollary_is_for_squares(self):
        mesh = network_mesh(NETWORKS["network 3"], 0.7)
        for covariance, ratio in ((PoweredExponential(1e-3, 2.0, 1.0), None), (None, 1e-3)):
            with pytest.raises(
                InputError, match=r"^mesh: Corollary 3\.9 needs .* and no linear network; use kim_lim_38"
            ):
                kim_lim_39(mesh, covariance, 0.5, epsilon=1.0, ratio=ratio)


class TestKimLimModel:
    mesh = network_mesh(NETWORKS["network 1"], 0.5)
    model = KimLimModel(mesh, 0.3, 1.2, 50)

    def root(self, z):
        """Factor of the field at a value z of the length scale's normal variable."""
        unit = np.eye(self.model.size)[1:]
        unit[:, 0] = z
        return self.model.fields(unit).T - math.log(50 / self.mesh.domain.length)

    @pytest.mark.parametrize("z", [-4.0, -1.23, 0.0, 0.61, 3.9])
    def test_fields_have_the_stated_covariance(self, z):
        """Up to what blending roots of neighbouring length scales loses."""
        length, root = 1.2 * math.exp(0.5 * z), self.root(z)
        expected = PoweredExponential(0.3 * math.sqrt(length), length, 1.0).matrix(self.mesh)
        np.testing.assert_allclose(root @ root.T, expected, rtol=0, atol=0.01 * expected.max())

    @pytest.mark.parametrize("z", [-60.0, -2.1, 0.3, 1.9, 60.0])
    def test_increments_stay_below_what_the_theorem_takes(self, z):
        root, bound = self.root(z), RandomScale(0.3, 1.0).matrix(self.mesh)
        own, most = (root**2).sum(axis=1), np.diag(bound)
        variance = own[:, None] + own - 2 * root @ root.T
        assert np.all(variance <= most[:, None] + most - 2 * bound + 1e-12)

    def test_weights_are_those_of_a_spline(self):
        """Smooth in the length scale, gradients included: NUTS follows them."""
        z = np.zeros((4001, self.model.size))
        z[:, 0], z[:, 1:] = np.linspace(-5, 5, 4001), np.random.default_rng(0).normal(size=self.model.size - 1)
        slope = np.diff(self.model.fields(z), axis=0)
        assert np.abs(np.diff(slope, axis=0))[400:-400].max() < 0.02 * np.abs(slope).max()
        assert np.all(slope[:300] == 0)

    def test_model_and_fields_agree(self):
        import pytensor
        import pytensor.tensor as pt

        z = np.random.default_rng(0).normal(size=(5, self.model.size))
        x = pt.vector("z", dtype="float64")
        in_pytensor = pytensor.function([x], self.model.fields(x, pt), mode="FAST_COMPILE")
        np.testing.assert_allclose([in_pytensor(each) for each in z], self.model.fields(z), rtol=1e-12)

    def test_large_meshes_are_refused(self):
        with pytest.raises(InputError, match=r"^mesh: Kim & Lim's scheme takes at most 1000 vertices on a network"):
            KimLimModel(network_mesh(NETWORKS["network 1"], 0.005), 0.3, 1.2, 50)


def test_add_remove_needs_the_largest_standard_deviation():
    mesh = network_mesh(NETWORKS["network 0"], 0.4)
    matrix = random_matrix(mesh, 1)
    assert point_sd(matrix) == pytest.approx(math.sqrt(np.diag(matrix).max()))
