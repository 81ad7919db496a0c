"""Diffusion along streets: laws of displacements. False alarms of statistical tests are below 1e-6."""

import numpy as np
import pytest
from scipy import stats

from dpppsynth.linear_network import LinearNetwork
from dpppsynth.linear_network.street_walks import StreetWalks

STAR = LinearNetwork([[0, 0], [100, 0], [-100, 0], [0, 100]], [[0, 1], [2, 0], [0, 3]])
LINE = LinearNetwork([[0, 0], [1000, 0]], [[0, 1]])
COUNT = 40_000


def displaced(network, edge, along, spread, seed=1):
    start = np.tile([float(edge), float(along)], (COUNT, 1))
    return StreetWalks(network).displaced(start, spread, np.random.default_rng(seed))


def test_a_long_street_has_normal_displacements():
    end = displaced(LINE, 0, 500, 20.0)
    assert stats.kstest((end[:, 1] - 500) / 20, "norm").pvalue > 1e-7


def test_dead_ends_send_back():
    end = displaced(LINE, 0, 10, 20.0)
    # Reflected at 0: the distribution function of |10 + 20 Z|.
    assert stats.kstest(end[:, 1], lambda x: stats.norm.cdf(x, 10, 20) - stats.norm.cdf(-x, 10, 20)).pvalue > 1e-7


@pytest.mark.parametrize(("edge", "along", "away"), [(0, 10.0, 10.0), (1, 90.0, 10.0), (2, 0.0, 0.0)])
def test_a_crossing_shares_out_as_the_heat_kernel_does(edge, along, away):
    """On a star of three legs a walker at distance a is on another leg with probability 2/3 P(a + s Z < 0)."""
    end = displaced(STAR, edge, along, 20.0)
    chance = 2 * 2 / 3 * stats.norm.cdf(-away / 20)
    assert stats.binomtest(int((end[:, 0] != edge).sum()), COUNT, chance).pvalue > 1e-7
    legs = np.bincount(end[:, 0].astype(int), minlength=3)[[k for k in range(3) if k != edge]]
    assert stats.binomtest(int(legs[0]), int(legs.sum()), 0.5).pvalue > 1e-7


def test_an_even_spread_stays_even():
    """Steps there and back are alike, so a uniform pattern stays one, whatever the lengths and directions of edges."""
    net = LinearNetwork([[0, 0], [3, 0], [50, 0], [50, 40], [0, 41]], [[0, 1], [2, 1], [2, 3], [3, 4], [4, 0], [1, 4]])
    rng = np.random.default_rng(2)
    edge = rng.choice(len(net.edges), COUNT, p=net.lengths / net.length)
    start = np.column_stack([edge, rng.random(COUNT) * net.lengths[edge]])
    end = StreetWalks(net).displaced(start, 30.0, rng)
    assert net.holds(end).all()
    counts = np.bincount(end[:, 0].astype(int), minlength=len(net.edges))
    assert stats.chisquare(counts, COUNT * net.lengths / net.length).pvalue > 1e-7
    share = end[:, 1] / net.lengths[end[:, 0].astype(int)]
    assert stats.kstest(share, "uniform").pvalue > 1e-7


def test_loops_and_several_edges_between_two_crossings_are_streets_of_their_own():
    lines = ["LINESTRING (0 0, 10 0)", "LINESTRING (0 0, 5 5, 10 0)", "LINESTRING (10 0, 20 5, 20 -5, 10 0)"]
    import shapely

    net = LinearNetwork([[0, 0], [10, 0]], [[0, 1], [0, 1], [1, 1]], lines=shapely.from_wkt(lines))
    rng = np.random.default_rng(3)
    edge = rng.choice(3, COUNT, p=net.lengths / net.length)
    end = StreetWalks(net).displaced(np.column_stack([edge, rng.random(COUNT) * net.lengths[edge]]), 15.0, rng)
    counts = np.bincount(end[:, 0].astype(int), minlength=3)
    assert stats.chisquare(counts, COUNT * net.lengths / net.length).pvalue > 1e-7
