"""Heat flow on networks and its guarantee: closed forms, the plane's bandwidths, nearest points, simulated losses.

False alarms. The generator is seeded; each statistical test would fail with probability below 1e-6 under another seed.
"""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import ive
from scipy.stats import beta, binom, chi2, norm, poisson

from dpppsynth.core.errors import InputError, PrivacyCheckError
from dpppsynth.core.tiled_matrix import TiledMatrix
from dpppsynth.linear_network import LinearNetwork
from dpppsynth.linear_network import heat_kernels as heat
from dpppsynth.linear_network.heat_kernels import (
    conductances,
    diffusion_density,
    diffusion_matrix,
    diffusion_rows,
    matrix_error,
    sample_children,
    segment_distances,
)
from dpppsynth.linear_network.mesh import network_mesh
from dpppsynth.mechanisms.kernel.bound import heat as bound
from dpppsynth.mechanisms.kernel.bound.heat import diffusion, joined, smallest_diffusion_bandwidth
from dpppsynth.mechanisms.kernel.bound.kernels import smallest_bandwidth, superposition
from dpppsynth.privacy import AddRemove, AlphaNeighbours, ReplaceOne
from dpppsynth.privacy.catalogue import Statement
from dpppsynth.privacy.losses import DiscreteLosses
from dpppsynth.release.verify import _agree
from dpppsynth.spatial.domains import Window

ALARM = 1e-6
WIDE = Window.rectangle(0, 0, 1e6, 1e6)


def street(length=100.0):
    return LinearNetwork([[0, 0], [length, 0]], [[0, 1]])


def star(branches=3, length=60.0):
    angle = 2 * np.pi * np.arange(branches) / branches
    ends = length * np.column_stack([np.cos(angle), np.sin(angle)])
    return LinearNetwork(np.vstack([[0, 0], ends]), [[0, k + 1] for k in range(branches)])


def with_short_edge(length):
    """A street of 400, a very short one, and another of 400."""
    return LinearNetwork([[0, 0], [400, 0], [400 + length, 0], [400 + length, 400]], [[0, 1], [1, 2], [2, 3]])


def town():
    """A jittered grid with dead ends, a parallel edge and edges of many lengths."""
    rng = np.random.default_rng(1)
    at = np.array([[i, j] for i in range(4) for j in range(4)]) * 100 + rng.uniform(-30, 30, (16, 2))
    across = [(4 * i + j, 4 * i + j + 1) for i in range(4) for j in range(3)]
    along = [(4 * i + j, 4 * i + j + 4) for i in range(3) for j in range(4)]
    edges = [edge for k, edge in enumerate(across + along) if k not in (3, 9, 15)]
    return LinearNetwork(at, [*edges, edges[0]])


@pytest.fixture(scope="module")
def town_mesh():
    return network_mesh(town(), 15.0)


def hops(distance, time):
    """Law of a continuous-time random walk on the integers: exact in the tails too."""
    return ive(np.abs(distance), time)


def images(count, time, sign=1):
    """Heat on a street of equal segments, closed at the far end, closed (+1) or held at zero (-1) at the near one."""
    i, j = np.indices((count, count))
    return sum(
        sign ** abs(m) * (hops(i - j + 2 * count * m, time) + sign * hops(i + j + 1 + 2 * count * m, time))
        for m in range(-12, 13)
    )


class TestHeat:
    @pytest.mark.parametrize("bandwidth", [0.5, 3.0, 20.0, 300.0])
    def test_a_street_by_images_in_the_tails_too(self, bandwidth):
        mesh = network_mesh(street(), 2.0)
        exact = images(50, (bandwidth / 2.0) ** 2)
        got = diffusion_matrix(mesh, bandwidth)
        seen = exact > 1e-30
        assert np.abs(got / exact - 1)[seen].max() < 1e-10 + matrix_error(mesh, bandwidth)
        assert got[~seen].max(initial=0) < 1e-29
        assert matrix_error(mesh, bandwidth) < 1e-6

    def test_a_circle(self):
        corners = 20 * np.array([[0, 0], [1, 0], [1, 1], [0, 1]])
        mesh = network_mesh(LinearNetwork(corners, [[0, 1], [1, 2], [2, 3], [3, 0]]), 2.0)
        i, j = np.indices((40, 40))
        exact = sum(hops(i - j + 40 * m, (6.0 / 2) ** 2) for m in range(-10, 11))
        assert np.allclose(diffusion_matrix(mesh, 6.0), exact, rtol=1e-9, atol=0)

    @pytest.mark.parametrize("branches", [3, 5])
    def test_a_star(self, branches):
        """The common part of all branches sees a closed end at the crossing; differences see zero there."""
        mesh = network_mesh(star(branches), 3.0)
        closed, open_ = (images(20, (10.0 / 3) ** 2, sign) for sign in (1, -1))
        block = np.kron(np.ones((branches, branches)), closed - open_) / branches
        exact = block + np.kron(np.eye(branches), open_)
        assert np.allclose(diffusion_matrix(mesh, 10.0), exact, rtol=1e-11, atol=1e-15)

    @pytest.mark.parametrize("bandwidth", [1.0, 40.0, 1000.0])
    def test_rows_and_detailed_balance(self, town_mesh, bandwidth):
        matrix, length = diffusion_matrix(town_mesh, bandwidth), town_mesh.element_measure
        assert (matrix >= 0).all()
        assert np.abs(matrix.sum(axis=1) - 1).max() < 1e-14
        flow = length[:, None] * matrix
        assert np.allclose(flow, flow.T, rtol=2 * matrix_error(town_mesh, bandwidth) + 1e-11, atol=1e-40)
        if bandwidth == 1000.0:
            assert np.allclose(matrix, length / length.sum(), rtol=0.1)

    def test_semigroup(self, town_mesh):
        """Variances add: wrong scales of the time would not."""
        assert np.allclose(
            diffusion_matrix(town_mesh, 30.0) @ diffusion_matrix(town_mesh, 40.0),
            diffusion_matrix(town_mesh, 50.0),
            rtol=1e-9,
        )

    def test_conductances_around_a_vertex(self):
        """Three segments of lengths 2, 4 and 8 meet: c = 1, 1/2, 1/4, a sum of 7/4."""
        network = LinearNetwork([[0, 0], [2, 0], [0, 4], [-8, 0]], [[0, 1], [0, 2], [0, 3]])
        got = conductances(network_mesh(network, 8.0)).toarray()
        assert np.allclose(got * 7 / 4, [[0, 1 / 2, 1 / 4], [1 / 2, 0, 1 / 8], [1 / 4, 1 / 8, 0]])

    def test_a_loop_of_two_segments(self):
        """They meet at both ends: half-lengths of 1 in series, twice."""
        import shapely

        ring = shapely.LineString([(0, 0), (1, 0), (1, 1), (0, 1), (0, 0)])
        network = LinearNetwork([[0, 0]], [[0, 0]], lines=[ring])
        assert np.allclose(conductances(network_mesh(network, 2.0)).toarray(), [[0, 1], [1, 0]])

    def test_a_long_street_is_gaussian(self):
        mesh = network_mesh(street(1000.0), 2.5)
        middle = (mesh.start + mesh.end) / 2
        i = len(middle) // 2
        cells = np.diff(norm.cdf(np.append(mesh.start, mesh.end[-1]), middle[i], 60.0))
        assert np.abs(diffusion_matrix(mesh, 60.0)[i] - cells).sum() / 2 < 1e-3

    @pytest.mark.parametrize("bandwidth", [0.0, -1.0, math.inf, math.nan, "wide", True])
    def test_bandwidths_that_are_none(self, bandwidth):
        with pytest.raises(InputError, match="bandwidth"):
            diffusion_matrix(network_mesh(street(), 50.0), bandwidth)

    def test_large_meshes_are_refused(self, monkeypatch):
        monkeypatch.setattr(heat, "MOST_SEGMENTS", 10)
        with pytest.raises(InputError, match="takes at most 10 segments"):
            diffusion_matrix(network_mesh(street(), 5.0), 1.0)

    @pytest.mark.parametrize("bandwidth", [30.0, 1e9, 1e200])
    def test_short_segments_and_wide_kernels_are_refused_by_name(self, bandwidth):
        network = with_short_edge(1e-9) if bandwidth == 30.0 else street()
        mesh = network_mesh(network, 20.0)
        with pytest.raises(InputError, match=r"too wide for segments as short as .*collapse_short"):
            diffusion(mesh, 20.0, bandwidth=bandwidth, delta=1e-6)
        assert 0.01 < matrix_error(mesh, bandwidth) < math.inf


class TestChildren:
    def test_numbers_segments_and_places(self, town_mesh):
        """One child per point on average, segments by the rows of the matrix, uniform inside."""
        matrix = diffusion_rows(town_mesh, 50.0)
        count, home = 40_000, [7, 100]
        point = np.column_stack([town_mesh.edge, (town_mesh.start + town_mesh.end) / 2])[home]
        for place, segment in zip(point, home, strict=True):
            children = sample_children(town_mesh, matrix, np.tile(place, (count, 1)), 5)
            assert poisson.sf(len(children), count) > ALARM
            assert poisson.cdf(len(children), count) > ALARM
            found = town_mesh.locate(children)
            expected = len(children) * matrix.row(segment)[1]
            often = expected > 10
            seen = np.bincount(found, minlength=len(matrix))
            assert chi2.sf(((seen - expected)[often] ** 2 / expected[often]).sum(), often.sum()) > ALARM
            share = (children[:, 1] - town_mesh.start[found]) / town_mesh.element_measure[found]
            tenths = np.bincount(np.clip((10 * share).astype(int), 0, 9), minlength=10)
            assert chi2.sf(((tenths - len(share) / 10) ** 2).sum() / (len(share) / 10), 9) > ALARM

    def test_order_grid_and_repetition(self, town_mesh):
        matrix = diffusion_rows(town_mesh, 0.01)
        parents = np.column_stack([town_mesh.edge, (town_mesh.start + town_mesh.end) / 2])[[50, 3, 120]]
        children = sample_children(town_mesh, matrix, np.repeat(parents, 50, axis=0), 8)
        home = town_mesh.locate(children)
        assert list(dict.fromkeys(home)) == [50, 3, 120]
        assert np.array_equal(children, town_mesh.domain.on_grid(children))
        assert np.array_equal(children, sample_children(town_mesh, matrix, np.repeat(parents, 50, axis=0), 8))
        assert sample_children(town_mesh, matrix, np.empty((0, 2)), 8).shape == (0, 2)

    def test_density(self, town_mesh):
        """Its integral is the number of points, and one point's is a row of the matrix."""
        matrix = diffusion_matrix(town_mesh, 30.0)
        middles = np.column_stack([town_mesh.edge, (town_mesh.start + town_mesh.end) / 2])
        value = diffusion_density(town_mesh, TiledMatrix.of(matrix), middles[[3, 3, 9]], middles)
        assert value @ town_mesh.element_measure == pytest.approx(3)
        assert np.allclose(value * town_mesh.element_measure, 2 * matrix[3] + matrix[9])


class TestOtherMachines:
    def certificates(self, monkeypatch, shake):
        """Guarantees with matrices as another machine finds them, but for a far larger difference."""
        plain = diffusion_rows
        rng = np.random.default_rng(12)

        def shaken(mesh, bandwidth):
            (matrix,) = plain(mesh, bandwidth).values
            return TiledMatrix.of(matrix * (1 + shake * rng.uniform(-1, 1, matrix.shape)))

        monkeypatch.setattr(bound, "diffusion_rows", shaken)
        meshes = [network_mesh(star(k, 50.0 + 7 * k), 11.0) for k in (3, 4, 5)] + [network_mesh(town(), 40.0)]
        return [
            diffusion(mesh, 20.0, bandwidth=float(bandwidth), delta=1e-6)
            for mesh in meshes
            for bandwidth in np.geomspace(10, 100, 5)
        ]

    @pytest.mark.slow
    def test_genuine_certificates_agree_and_forged_ones_do_not(self, monkeypatch):
        ours, theirs = (self.certificates(monkeypatch, shake) for shake in (0.0, 1e-8))
        both = [*zip(ours, theirs, strict=True), *zip(theirs, ours, strict=True)]
        assert all(_agree(a, b, b.profile.to_dict()) for a, b in both)
        # Without the tolerance some would have been called false.
        assert not all(b.profile.no_better_than(a.profile, 1e-9) for a, b in both)

        def forged(guarantee, row, share):
            rows = [list(each) for each in guarantee.profile.rows]
            rows[row][0] *= 1 + share
            return replace(guarantee, profile=DiscreteLosses(tuple(map(tuple, rows)), 1e-6))

        for guarantee in ours[::4]:
            for row in range(1, len(guarantee.profile.rows), 7):
                # Less privacy would be no false promise, but its numbers could be chosen to carry anything.
                for changed in (forged(guarantee, row, share) for share in (-3e-5, 3e-5)):
                    assert not _agree(guarantee, changed, changed.profile.to_dict())
            profile = guarantee.profile.to_dict()
            assert not _agree(guarantee, guarantee, profile | {"epsilon": 0.999 * profile["epsilon"]})
            curve = np.array(guarantee.by_distance)
            for column, share in ((1, -3e-5), (1, 3e-5), (1, np.inf), (0, 1e-6)):
                edited = curve.copy()
                edited[3, column] *= 1 + share
                claim = replace(guarantee, by_distance=tuple(map(tuple, edited)))
                assert not _agree(guarantee, claim, profile)
            assert not _agree(guarantee, replace(guarantee, by_distance=()), profile)

    def test_other_kinds_are_not_looser(self):
        near = superposition(WIDE, 20.0, bandwidth=60.0, delta=1e-6)
        far = superposition(WIDE, 20.0 * (1 + 1e-7), bandwidth=60.0, delta=1e-6)
        claim = replace(far, relation=near.relation, by_distance=near.by_distance)
        assert _agree(near, near, near.profile.to_dict())
        assert not _agree(near, claim, claim.profile.to_dict())
        table = diffusion(network_mesh(street(), 10.0), 20.0, bandwidth=60.0, delta=1e-6).profile
        assert not _agree(near, replace(near, profile=table), table.to_dict())


class TestPairs:
    def test_nearest_points_not_middles(self):
        mesh = network_mesh(street(40.0), 10.0)
        assert np.allclose(segment_distances(mesh)[0], [0, 0, 10, 20])
        assert len(joined(mesh, 10.0)[0]) == 5

    def test_every_move_within_reach_is_a_pair(self, town_mesh):
        """Random moves; distances between middles would miss some of them."""
        rng = np.random.default_rng(2)
        positions = np.column_stack([town_mesh.edge, town_mesh.start + rng.random(len(town_mesh.edge)) * 15.0])
        positions[:, 1] = np.minimum(positions[:, 1], town_mesh.end)
        network = town_mesh.domain
        paths = network.distance(network.coordinates(positions))
        segment = town_mesh.locate(network.positions(network.coordinates(positions)))
        known = {tuple(pair) for pair in joined(town_mesh, 25.0)[0]}
        near = [tuple(sorted((segment[i], segment[j]))) for i, j in np.argwhere(paths <= 25.0)]
        assert len(near) > 300
        assert all(pair in known or pair[0] == pair[1] for pair in near)
        middles = np.column_stack([town_mesh.edge, (town_mesh.start + town_mesh.end) / 2])
        between = network.distance(network.coordinates(middles))
        assert any(between[pair] > 25.0 for pair in near)

    def test_too_many_pairs_are_refused_and_curves_shortened(self, town_mesh, monkeypatch):
        monkeypatch.setattr(bound, "MOST_WORK", 1000 * len(town_mesh.elements))
        with pytest.raises(InputError, match="longer segments"):
            joined(town_mesh, 1e4)
        pairs, apart = joined(town_mesh, 1e4, 20.0)
        assert len(pairs) <= 1000
        assert (segment_distances(town_mesh) <= apart[-1]).sum() == 2 * len(pairs) + len(town_mesh.elements)


class TestGuarantee:
    @pytest.mark.exhaustive
    @pytest.mark.parametrize(("epsilon", "alpha"), [(1.0, 10.0), (3.0, 20.0), (10.0, 20.0)])
    def test_a_fine_street_needs_the_bandwidth_of_the_plane(self, epsilon, alpha):
        """Nearest points within alpha have middles within alpha plus a segment."""
        cell = 4.0
        mesh = network_mesh(street(1200.0), cell)
        got = smallest_diffusion_bandwidth(mesh, alpha, epsilon=epsilon, delta=1e-6)
        plane = smallest_bandwidth(WIDE, cell * (math.floor(alpha / cell) + 1), epsilon=epsilon, delta=1e-6)
        assert got == pytest.approx(plane, rel=0.02)
        assert got > 1.1 * smallest_bandwidth(WIDE, alpha - cell / 2, epsilon=epsilon, delta=1e-6)

    def test_the_smallest_bandwidth_passes_and_a_smaller_one_does_not(self, town_mesh):
        relation = AlphaNeighbours(20.0, max_points_per_person=2)
        budget = {"delta": 1e-6, "patterns": 2}
        smallest = smallest_diffusion_bandwidth(town_mesh, relation, epsilon=2.0, **budget)
        guarantee = diffusion(town_mesh, relation, bandwidth=smallest, **budget)
        guarantee.require(2.0, 1e-6)
        assert guarantee.epsilon() > 1.999
        assert diffusion(town_mesh, relation, bandwidth=0.999 * smallest, **budget).epsilon() > 2.0
        assert Statement("points-per-person", most=2) in guarantee.assumptions

    def test_wider_can_be_worse_and_a_narrower_one_is_found(self):
        """Rounding over a segment of 1e-3 spoils ten diameters, where the search begins, but not narrower kernels."""
        mesh, budget = network_mesh(with_short_edge(1e-3), 25.0), {"epsilon": 0.02, "delta": 1e-6}
        widest = bound.WIDEST * mesh.domain.diameter
        assert diffusion(mesh, 25.0, bandwidth=widest, delta=1e-6).epsilon() > 0.02
        smallest = smallest_diffusion_bandwidth(mesh, 25.0, **budget)
        assert 0.019 < diffusion(mesh, 25.0, bandwidth=smallest, delta=1e-6).epsilon() <= 0.02
        assert diffusion(mesh, 25.0, bandwidth=0.99 * smallest, delta=1e-6).epsilon() > 0.02

    def test_rounding_is_named_where_it_is_the_cause(self, town_mesh, monkeypatch):
        mesh = network_mesh(with_short_edge(1e-6), 25.0)
        with pytest.raises(PrivacyCheckError, match=r"as short as 1e-06 .*collapse_short"):
            smallest_diffusion_bandwidth(mesh, 25.0, epsilon=0.02, delta=1e-6)
        monkeypatch.setattr(bound, "WIDEST", 0.05)
        with pytest.raises(PrivacyCheckError, match="bandwidth: even"):
            smallest_diffusion_bandwidth(town_mesh, 25.0, epsilon=0.02, delta=1e-6)

    @pytest.mark.exhaustive
    @pytest.mark.parametrize("bandwidth", [1e-170, 1e-5, 1e-2])
    def test_narrow_kernels_have_large_losses_but_no_false_ones(self, bandwidth):
        """Neighbours are told apart by a child at home, losses of hundreds or more: no overflow, no small epsilon."""
        guarantee = diffusion(network_mesh(street(400.0), 15.0), 120.0, bandwidth=bandwidth, delta=1e-6)
        assert guarantee.epsilon() > 100
        assert guarantee.delta(10.0) == pytest.approx(-math.expm1(-1), abs=1e-5)

    @pytest.mark.slow
    def test_patterns_and_points_of_a_person_multiply(self, town_mesh):
        def losses(cap, patterns):
            relation = AlphaNeighbours(20.0, max_points_per_person=cap)
            return diffusion(town_mesh, relation, bandwidth=60.0, delta=1e-6, patterns=patterns).profile

        assert losses(6, 1) == losses(3, 2) == losses(1, 6)
        assert losses(1, 1).epsilon(1e-6) < losses(2, 1).epsilon(1e-6) < losses(6, 1).epsilon(1e-6)

    @pytest.mark.slow
    def test_relations_and_distances(self, town_mesh):
        near, far, anywhere = (
            diffusion(town_mesh, relation, bandwidth=80.0, delta=1e-6) for relation in (15.0, 60.0, ReplaceOne())
        )
        assert near.epsilon() < far.epsilon() < anywhere.epsilon()
        distance, epsilon = np.array(near.by_distance).T
        assert len(distance) == 12
        assert (np.diff(epsilon) >= 0).all()
        assert dict(near.by_distance)[distance[2]] == pytest.approx(near.epsilon(), rel=2e-3)
        assert distance[-1] <= 60.0 * (1 + 1e-9)
        assert anywhere.by_distance[-1][1] == pytest.approx(anywhere.epsilon(), rel=2e-3)
        assert isinstance(near.profile, DiscreteLosses)
        assert near.theorem == "kernel-superposition"
        assert any("segment" in sentence for sentence in near.assumption_texts)
        assert diffusion(town_mesh, 15.0, bandwidth=80.0, delta=1e-6) == near

    @pytest.mark.slow
    def test_simulated_losses(self):
        """Children from the sampler: P(A) - e^epsilon P'(A) for the likeliest set A, both laws sampled."""
        mesh = network_mesh(star(), 20.0)
        bandwidth, count = 25.0, 100_000
        matrix, pairs = diffusion_matrix(mesh, bandwidth), joined(mesh, 20.0)[0]
        guarantee = diffusion(mesh, 20.0, bandwidth=bandwidth, delta=1e-6)
        once = {}
        for i, j in pairs:
            losses = []
            for segment in (i, j):
                place = [[mesh.edge[segment], (mesh.start[segment] + mesh.end[segment]) / 2]]
                rng = np.random.default_rng([int(i), int(j), int(segment)])
                # One point, many clusters: the numbers of children are drawn with them.
                children = sample_children(mesh, TiledMatrix.of(matrix), np.repeat(place, count, axis=0), rng)
                loss = np.log(matrix[i] / matrix[j])[mesh.locate(children)]
                owner = rng.integers(0, count, len(children))
                losses.append(np.bincount(owner, loss, count))
            for epsilon in (0.2, 1.0, 2.0):
                hits, misses = ((values > epsilon).sum() for values in losses)
                low = beta.ppf(ALARM / 200, hits, count - hits + 1)
                high = beta.ppf(1 - ALARM / 200, misses + 1, count - misses)
                assert low - math.exp(epsilon) * high <= guarantee.delta(epsilon)
                once[epsilon] = max(once.get(epsilon, 0), low - math.exp(epsilon) * high)
        # The wrong promise of one child at most, weighted with e^-1, would be found out.
        for epsilon in (0.2, 1.0):
            single = max(np.maximum(matrix[i] - math.exp(epsilon) * matrix[j], 0).sum() for i, j in pairs)
            assert once[epsilon] > math.exp(-1) * single

    @pytest.mark.parametrize(("epsilon", "bandwidth"), [(1.0, 280.0), (6.0, 75.0)])
    def test_close_to_the_worst_pair_alone(self, epsilon, bandwidth):
        """Every ordered pair by itself, losses rounded down: never above what is stated, and the worst within 5 %."""
        mesh = network_mesh(town(), 40.0)
        guarantee = diffusion(mesh, 25.0, bandwidth=bandwidth, delta=1e-6)
        assert guarantee.epsilon() == pytest.approx(epsilon, rel=0.2)
        matrix, step, points = diffusion_matrix(mesh, bandwidth), guarantee.epsilon() / 1000, 2**15
        pairs = joined(mesh, 25.0)[0]
        first, second = np.concatenate([pairs, pairs[:, ::-1]]).T
        at = np.floor(np.log(matrix[first] / matrix[second]) / step).astype(int)
        held = np.abs(at) < points // 4
        worst = {0.95: 0.0, 1.0: 0.0}
        for p, lattice, inside in zip(matrix[first], at, held, strict=True):
            circle = np.bincount(lattice[inside] % points, p[inside], points)
            summed = np.fft.irfft(np.exp(np.fft.rfft(circle) - 1), points)[: points // 2]
            for share, largest in worst.items():
                gain = -np.expm1(np.minimum(0, share * guarantee.epsilon() - step * np.arange(points // 2)))
                worst[share] = max(largest, summed @ gain)
        assert worst[1.0] <= 1e-6 < worst[0.95]

    def test_the_smallest_meshes(self):
        """Two segments: rows (1 + r, 1 - r) / 2 with r = exp(-h^2 / a^2); one: nothing to tell apart."""
        two = network_mesh(street(2.0), 1.0)
        guarantee = diffusion(two, 0.5, bandwidth=1.0, delta=1e-6)
        assert guarantee.by_distance == ()
        share = (1 + math.exp(-1.0)) / 2
        assert np.allclose(diffusion_matrix(two, 1.0), [[share, 1 - share], [1 - share, share]])
        children, home = np.indices((40, 40))
        loss = (2 * home - children) * math.log(share / (1 - share))
        law = poisson.pmf(children, 1.0) * binom.pmf(home, children, share)
        exact = (law * -np.expm1(np.minimum(0, guarantee.epsilon() - loss))).sum()
        assert 0.95e-6 < exact <= 1e-6
        with pytest.raises(InputError, match="two segments"):
            diffusion(network_mesh(street(2.0), 2.0), 0.5, bandwidth=1.0, delta=1e-6)

    def test_what_cannot_be_promised_is_refused(self, town_mesh):
        with pytest.raises(InputError, match="add-remove"):
            diffusion(town_mesh, AddRemove(), bandwidth=50.0, delta=1e-6)
        with pytest.raises(InputError, match="add-remove"):
            smallest_diffusion_bandwidth(town_mesh, AddRemove(), epsilon=1.0, delta=1e-6)
        with pytest.raises(InputError, match="delta"):
            diffusion(town_mesh, 10.0, bandwidth=50.0, delta=1e-12)
        with pytest.raises(InputError, match="chance that a point leaves"):
            smallest_diffusion_bandwidth(town_mesh, 10.0, epsilon=1.0, delta=0.7)
        with pytest.raises(InputError, match="epsilon"):
            smallest_diffusion_bandwidth(town_mesh, 10.0, epsilon=0.0, delta=1e-6)
        with pytest.raises(PrivacyCheckError, match="bandwidth"):
            smallest_diffusion_bandwidth(town_mesh, 10.0, epsilon=1e-9, delta=1e-9)
