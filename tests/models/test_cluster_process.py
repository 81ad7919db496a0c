"""Clustered patterns over an intensity. False alarms of statistical tests are below 1e-6."""

import numpy as np
import pytest
from scipy import integrate, stats
from scipy.spatial import cKDTree

from dpppsynth import Window
from dpppsynth.datasets import soho_streets
from dpppsynth.linear_network import network_mesh
from dpppsynth.models import regular_squares
from dpppsynth.models.cluster_posterior import ClusterPrior
from dpppsynth.models.cluster_process import NO_CLUSTERS, ClusterLaw, _positive_poisson, clustered_pattern
from dpppsynth.spatial.intensity import PiecewiseConstant

SQUARE = Window.rectangle(0, 0, 1000, 1000)
HOLED = Window.polygon(SQUARE.geometry.difference(SQUARE.geometry.centroid.buffer(300, 16)))


def even(domain=SQUARE, value=lambda xy: np.ones(len(xy))):
    mesh = regular_squares(domain, shape=(11, 11))
    return PiecewiseConstant(mesh, value(mesh.vertices[mesh.elements].mean(axis=1)))


def drawn(intensity, law, n, times=40, seed=1):
    rng = np.random.default_rng(seed)
    return [clustered_pattern(intensity, law, n, rng) for _ in range(times)]


class TestNumbers:
    @pytest.mark.parametrize("law", [NO_CLUSTERS, ClusterLaw(8, 20), ClusterLaw(0, 1, 0.5), ClusterLaw(0.5, 20, 0.7)])
    @pytest.mark.parametrize("n", [0, 1, 2, 357])
    def test_there_are_exactly_n_points_in_the_domain(self, law, n):
        for intensity in (even(), even(HOLED)):
            pattern = clustered_pattern(intensity, law, n, np.random.default_rng(n))
            assert len(pattern) == n
            assert intensity.mesh.domain.contains(pattern.xy).all()

    def test_sizes_are_poisson_given_one(self):
        found = np.bincount(_positive_poisson(1.7, 20_000, np.random.default_rng(4)), minlength=12)
        law = stats.poisson.pmf(np.arange(12), 1.7)
        law[0], law[-1] = 0, law[-1] + stats.poisson.sf(11, 1.7)
        expected = 20_000 * law / law.sum()
        few = expected < 10
        found, expected = ([*each[~few], each[few].sum()] for each in (found[:12], expected))
        assert stats.chisquare(found, expected).pvalue > 1e-7

    def test_coincident_points_have_their_share(self):
        points = np.concatenate([p.xy + 1e4 * k for k, p in enumerate(drawn(even(), ClusterLaw(3, 20, 0.4), 500))])
        share = 1 - len(np.unique(points, axis=0)) / len(points)
        assert abs(share - 0.4) < 0.02


class TestPlaces:
    @pytest.mark.exhaustive
    @pytest.mark.parametrize("law", [ClusterLaw(8, 15), ClusterLaw(4, 40, 0.3)])
    def test_the_intensity_is_kept(self, law):
        """Also at borders, where parents lie outside: counts of 25 squares, by their variance between patterns."""
        intensity = even(value=lambda xy: 1 + xy[:, 0] / 500)
        patterns = drawn(intensity, law, 1000, times=150)
        edges = np.linspace(0, 1000, 6)
        counts = np.array([np.histogram2d(*p.xy.T, bins=(edges, edges))[0].ravel() for p in patterns])
        middle = (edges[1:] + edges[:-1]) / 2
        expected = np.repeat(1 + middle / 500, 5)
        expected *= 1000 / expected.sum()
        error = counts.std(axis=0) / np.sqrt(len(patterns))
        # Six standard errors over 25 squares, and half a percent for candidates that are few.
        assert (np.abs(counts.mean(axis=0) - expected) < 6 * error + 0.005 * expected).all()

    def test_narrow_hills_keep_their_points(self):
        """A strip 20 m wide with a hundred times the intensity around it: two thirds of all points."""
        mesh = regular_squares(SQUARE, shape=(51, 51))
        hot = np.abs(mesh.vertices[mesh.elements].mean(axis=1)[:, 0] - 510) < 10
        intensity = PiecewiseConstant(mesh, np.where(hot, 100.0, 1.0))
        found = [((p.xy[:, 0] > 500) & (p.xy[:, 0] < 520)).mean() for p in drawn(intensity, ClusterLaw(8, 30), 1000)]
        assert abs(np.mean(found) - 2 / 2.98) < 0.04 + 6 * np.std(found) / np.sqrt(len(found))

    @pytest.mark.slow
    def test_distances_within_clusters_are_those_of_the_law(self):
        """The sum of `1 - d / r` over pairs is n/2 times that of strangers and of the law's formula."""
        radii = (30.0, 60.0)
        prior = ClusterPrior(radii, streets=False, shared=True)
        k = int(np.argmin(np.abs(prior.table[:, :3] - [6, 15, 0.2]).sum(axis=1)))
        law, n = prior.law(k), 400
        found = np.array([sums(p.xy, radii) for p in drawn(even(), law, n, times=300)])
        strangers = np.pi * np.square(radii) / 3 * n / 1e6
        expected = n / 2 * (strangers + prior.neighbours[k])
        error = found.std(axis=0) / np.sqrt(len(found))
        # Borders take a little from strangers, and the last cluster is cut short.
        assert (np.abs(found.mean(axis=0) - expected) < 5 * error + 0.04 * expected).all()

    def test_clusters_on_streets_lie_along_them(self):
        streets = soho_streets()
        mesh = network_mesh(streets, 100.0)
        intensity = PiecewiseConstant(mesh, np.ones(len(mesh.elements)))
        pattern = clustered_pattern(intensity, ClusterLaw(20, 10), 400, np.random.default_rng(5))
        assert streets.contains(pattern.xy).all()
        apart = streets.distance(pattern)[np.triu_indices(400, 1)]
        alone = streets.distance(clustered_pattern(intensity, NO_CLUSTERS, 400, np.random.default_rng(6)))
        assert (apart < 20).sum() > 3 * (alone[np.triu_indices(400, 1)] < 20).sum()


def sums(xy, radii):
    pairs = cKDTree(xy).query_pairs(max(radii), output_type="ndarray")
    apart = np.hypot(*(xy[pairs[:, 0]] - xy[pairs[:, 1]]).T)
    return [np.maximum(1 - apart / r, 0).sum() for r in radii]


class TestPrior:
    @pytest.mark.parametrize("streets", [False, True])
    def test_neighbours_are_integrals_over_the_law_of_distances(self, streets):
        radii = (10.0, 40.0)
        prior = ClusterPrior(radii, streets, shared=True)
        for k in (0, 5, 200, 777, 1500):
            size, spread, share, _ = prior.table[k]
            law = stats.halfnorm(scale=2**0.5 * spread) if streets else stats.rayleigh(scale=2**0.5 * spread)
            near = [integrate.quad(lambda d, r=r, law=law: (1 - d / r) * law.pdf(d), 0, r)[0] for r in radii]
            expected = size / (1 - share) * np.array(near) + 2 * share / (1 - share)
            np.testing.assert_allclose(prior.neighbours[k], expected, rtol=1e-9)

    def test_it_is_a_probability_over_laws_of_public_radii(self):
        table = ClusterPrior((10.0, 40.0), streets=False, shared=True).table
        assert table[:, 3].sum() == pytest.approx(1)
        assert table[0].tolist() == [0.0, 1.0, 0.0, 0.8]
        assert len(np.unique(table[:, :3], axis=0)) == len(table)
        spread = table[table[:, 0] > 0, 1]
        assert (spread.min(), spread.max()) == (2.5, 40.0)
