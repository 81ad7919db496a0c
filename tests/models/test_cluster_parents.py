"""Variance of numbers of clusters. False alarms of statistical tests are below 1e-6."""

from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp

from dpppsynth import Window
from dpppsynth.datasets import soho_streets
from dpppsynth.linear_network import network_mesh
from dpppsynth.models import regular_squares
from dpppsynth.models.cluster_process import LEAST, ClusterLaw, ParentRule, SharedTents, clustered_pattern, first_places
from dpppsynth.spatial.intensity import PiecewiseConstant

SQUARE = Window.rectangle(0, 0, 1000, 1000)
CELLS = regular_squares(SQUARE, shape=(6, 6))
STEEP = PiecewiseConstant(CELLS, np.linspace(1, 9, 25))


def in_cells(positions, mesh=CELLS):
    """(k, T) shares of points in cells."""
    element = mesh.locate(positions)
    return sp.csr_array((np.ones(len(element)), (np.arange(len(element)), element)), (len(element), len(mesh.elements)))


def counts(positions):
    return np.bincount(CELLS.locate(positions), minlength=25)


class TestFirstPlaces:
    @pytest.mark.exhaustive
    @pytest.mark.parametrize("variance", [1.0, 0.7, 0.25, LEAST])
    def test_they_have_the_density_of_the_intensity(self, variance):
        """Mean counts of 25 squares, within six standard errors."""
        rng = np.random.default_rng(1)
        found = np.array([counts(first_places(STEEP, 60, variance, rng)) for _ in range(800)])
        expected = 60 * STEEP.values / STEEP.values.sum()
        assert (np.abs(found.mean(axis=0) - expected) < 6 * found.std(axis=0) / np.sqrt(800)).all()
        assert (found.sum(axis=1) == 60).all()

    @pytest.mark.parametrize("variance", [1.0, 0.5, 0.25])
    def test_numbers_in_a_region_have_the_variance(self, variance):
        """In a quarter of the square that holds a whole part of the curve; its ends add less than one half."""
        rng = np.random.default_rng(2)
        even = PiecewiseConstant(CELLS, np.ones(25))
        inside = [(first_places(even, 400, variance, rng) < 500).all(axis=1).sum() for _ in range(400)]
        expected = variance * 400 * 0.25 * 0.75
        # The variance of 400 numbers has a relative standard error of .07.
        assert expected * 0.6 < np.var(inside) < expected * 1.4 + 0.5

    def test_on_streets_they_lie_on_streets(self):
        mesh = network_mesh(soho_streets(), 100.0)
        streets = PiecewiseConstant(mesh, np.ones(len(mesh.elements)))
        rng = np.random.default_rng(3)
        found = [np.bincount(mesh.locate(first_places(streets, 50, 0.2, rng)), minlength=len(mesh.elements))]
        found += [np.bincount(mesh.locate(first_places(streets, 50, 0.2, rng)), minlength=found[0].size) for _ in "123"]
        assert [each.sum() for each in found] == [50] * 4

    def test_the_last_cluster_may_be_anywhere(self):
        """It is cut short, so the places must not come in the order of the curve."""
        rng = np.random.default_rng(4)
        last = np.array([first_places(STEEP, 20, 0.3, rng)[-1] for _ in range(400)])
        assert (np.ptp(last, axis=0) > 800).all()


class TestSharedTents:
    def test_it_is_the_chance_that_both_points_are_in_one_cell(self):
        even = PiecewiseConstant(CELLS, np.ones(25))
        tents = SharedTents.of(even, in_cells, [1.0, 40.0, 3000.0])
        assert tents.alone == 1
        # Two normal points of a cluster 40 sqrt(2) apart along each axis, in one cell of 200 m, by the tent of areas.
        apart = np.abs(np.random.default_rng(5).normal(0, 40 * 2**0.5, (10**6, 2)))
        expected = np.maximum(1 - apart / 200, 0).prod(axis=1).mean()
        assert tents.together[0] > 0.97
        # Borders keep clusters in: their cells have fewer neighbours.
        assert expected - 0.04 < tents.together[1] < expected + 0.12
        assert abs(tents.together[2] - 1 / 25) < 0.02

    def test_others_of_a_cluster_are_as_many_as_the_law_has(self):
        tents = SharedTents(0.5, np.array([10.0, 1000.0]), np.array([0.4, 0.2]))
        assert tents.within(ClusterLaw(6, 100.0)) == pytest.approx(6 * 0.3)
        assert tents.within(ClusterLaw(6, 10.0, 0.25)) == pytest.approx((6 * 0.4 + 0.5 * 0.5) / 0.75)
        assert tents.within(ClusterLaw(0, 1.0, 0.5)) == pytest.approx(2 * 0.5)


def rule(masses, expected, noise=0.0, fixed=False):
    tents = SharedTents.of(STEEP, in_cells, [5.0, 50.0])
    return ParentRule.of(tents, np.asarray(masses), noise, np.asarray(expected), fixed=fixed)


class TestRule:
    LAW = ClusterLaw(10, 10.0)

    def of_patterns(self, expected, patterns, noise):
        """Mean variance for noised counts of patterns."""
        rng = np.random.default_rng(6)
        noised = [counts(p.positions) + rng.laplace(0, np.sqrt(noise / 2), 25) for p in patterns]
        return np.mean([rule(each, expected, noise).variance(self.LAW) for each in noised])

    def test_clusters_that_the_intensity_does_not_show_are_independent(self):
        rng = np.random.default_rng(7)
        patterns = [clustered_pattern(STEEP, self.LAW, 2000, rng) for _ in range(12)]
        even = 2000 * STEEP.values / STEEP.values.sum()
        assert self.of_patterns(even, patterns, 0.5) > 0.65
        assert self.of_patterns(even, patterns, 50.0) > 0.55

    @pytest.mark.parametrize("noise", [0.5, 50.0])
    def test_clusters_that_it_shows_are_not_put_anew(self, noise):
        """The intensity expects just the points that each cell has."""
        rng = np.random.default_rng(8)
        found = []
        for _ in range(12):
            pattern = clustered_pattern(STEEP, self.LAW, 2000, rng)
            found.append(self.of_patterns(counts(pattern.positions), [pattern], noise))
        assert np.mean(found) < 0.35

    def test_noise_makes_no_pairs(self):
        """On average noised masses leave as many pairs as those without noise, within six standard errors."""
        rng, even, variance, draws = np.random.default_rng(10), np.full(25, 80.0), 50.0, 4000
        made = partial(ParentRule.of, SharedTents.of(STEEP, in_cells, [5.0, 50.0]), fixed=True)
        noised = [made(even + rng.laplace(0, np.sqrt(variance / 2), 25), variance, even) for _ in range(draws)]
        left = np.mean([each.left for each in noised]) - made(even, 1e-9, even).left
        assert abs(left) < 6 * noised[0].sd / np.sqrt(draws)
        assert variance * 25 > 12 * noised[0].sd / np.sqrt(draws)

    def test_noise_that_drowns_the_masses_leaves_it_open(self):
        """Half of the pairs are missing then."""
        found = rule(np.full(25, 80.0), np.full(25, 80.0), 1e9).variance(self.LAW)
        assert found == pytest.approx(1 - 0.5 * -np.expm1(-10), abs=0.01)

    def test_it_stays_within_its_bounds(self):
        for masses in (np.zeros(25), np.full(25, 1e4)):
            for law in (self.LAW, ClusterLaw(0.5, 10.0), ClusterLaw(0, 1.0, 0.8), ClusterLaw(20, 10.0, 0.8)):
                assert LEAST <= rule(masses, np.full(25, 80.0), 1.0).variance(law) <= 1

    @pytest.mark.exhaustive
    @pytest.mark.parametrize("law", [ClusterLaw(0.5, 10.0), ClusterLaw(6, 10.0), ClusterLaw(2, 10.0, 0.3)])
    def test_where_no_pairs_are_missing_points_vary_like_poisson_ones(self, law):
        """Numbers of points in a half, by moments of the number of points in a cluster, found by simulation."""
        rng = np.random.default_rng(9)
        places = rng.poisson(law.size, 200_000)
        size = rng.negative_binomial(places[places > 0], 1 - law.coincident) + places[places > 0]
        excess, mean = (size**2).mean() / size.mean() - 1, size.mean()
        # As if the masses were the intensity's, and their squares those of a Poisson process.
        even, expected = PiecewiseConstant(CELLS, np.ones(25)), np.full(25, 160.0)
        masses = expected + np.sqrt(160 * 25 / 24) * np.array([1, -1] * 12 + [0])
        found = ParentRule.of(SharedTents.of(even, in_cells, [5.0, 50.0]), masses, 1e-3, expected, fixed=False)
        variance = found.variance(law)
        assert variance == pytest.approx(max(LEAST, 1 - excess / mean), abs=0.02)
        for each in (1.0, variance):
            patterns = [clustered_pattern(even, law, 1000, rng, variance=each).positions for _ in range(200)]
            halves = np.var([(xy[:, 0] < 500).sum() for xy in patterns]) / 250
            # A relative standard error of .1.
            assert halves == pytest.approx(1 + excess - (1 - each) * mean, rel=0.55)
