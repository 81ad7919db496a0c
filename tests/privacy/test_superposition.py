"""Theorem B and Kim & Lim's Theorem 3.6: simulated privacy losses, published bandwidths, the counter-example.

False alarms. Estimated deltas are means of N = 200 000 variables in [0, 1]: by Hoeffding's inequality one is further
than `MARGIN` from its mean with probability below 2 exp(-2 N MARGIN^2) = 1e-8, and there are under 100 of them.
"""

import json
import math

import numpy as np
import pytest
import scipy.optimize
import scipy.stats
import shapely
from scipy.integrate import quad

from dpppsynth.core.errors import InputError, PrivacyCheckError
from dpppsynth.mechanisms.kernel.bound.kernels import (
    kim_lim_36,
    smallest_bandwidth,
    smallest_bandwidth_36,
    superposition,
)
from dpppsynth.privacy import AddRemove, AlphaNeighbours, ReplaceOne, delta_gaussian, guarantee_from_dict
from dpppsynth.privacy.catalogue import Statement
from dpppsynth.spatial.domains import Window
from dpppsynth.spatial.gaussian_kernel import hull, mass, sample_children

N = 200_000
MARGIN = math.sqrt(math.log(2e8) / (2 * N))
SQUARE = Window.rectangle(0, 0, 10, 10)
TRIANGLE = Window.polygon(shapely.Polygon([(0, 0), (10, 0), (0, 10)]))
L_SHAPE = Window.polygon(shapely.Polygon([(0, 0), (10, 0), (10, 4), (4, 4), (4, 10), (0, 10)]))
EPSILONS = [0.0, 0.3, 1.0, 2.0]
ALPHA = 10 / (10 * math.sqrt(2))


def by_group(values, size):
    """Sums of consecutive groups of the given sizes."""
    return np.bincount(np.repeat(np.arange(len(size)), size), weights=values, minlength=len(size))


def estimate(loss, epsilon):
    """Hockey-stick divergence from losses log(P / P') drawn under P."""
    return np.mean(np.maximum(0.0, -np.expm1(np.minimum(0.0, epsilon - loss))))


class TestSimulatedLoss:
    @pytest.mark.parametrize(("ratio", "patterns", "cap"), [(1.0, 1, 1), (0.7, 1, 3), (0.8, 2, 2), (3.0, 1, 1)])
    def test_the_profile_is_that_of_the_clusters(self, ratio, patterns, cap):
        """Planar kernels: a person's points move side by side, and the number of children is seen."""
        rng = np.random.default_rng(int(10 * ratio) + cap)
        size = rng.poisson(1.0, (N, patterns * cap)).sum(axis=1)
        children = rng.normal(0, 2.0, size.sum())
        move = 2.0 * ratio
        loss = by_group(scipy.stats.norm.logpdf(children, 0, 2.0) - scipy.stats.norm.logpdf(children, move, 2.0), size)
        relation = AlphaNeighbours(move, max_points_per_person=cap)
        guarantee = superposition(SQUARE, relation, bandwidth=2.0, patterns=patterns, delta=1e-6)
        for epsilon in EPSILONS:
            assert abs(estimate(loss, epsilon) - guarantee.delta(epsilon)) < MARGIN

    def test_wrong_laws_of_the_number_would_be_seen(self):
        """One child for certain, children that do not add up, one pattern for two: all too far off."""
        rate, ratio, epsilon = 2, 1.0, 0.3
        right = superposition(SQUARE, 2.0, bandwidth=2.0, patterns=rate, delta=1e-6).delta(epsilon)
        k = np.arange(1, 60)
        weight = scipy.stats.poisson.pmf(k, rate)
        wrong = [
            delta_gaussian(epsilon, ratio),
            delta_gaussian(epsilon, math.sqrt(rate) * ratio),
            weight.sum() * delta_gaussian(epsilon, ratio),
            weight @ [delta_gaussian(epsilon, j * ratio) for j in k],
            superposition(SQUARE, 2.0, bandwidth=2.0, delta=1e-6).delta(epsilon),
        ]
        assert weight @ [delta_gaussian(epsilon, math.sqrt(j) * ratio) for j in k] == pytest.approx(right, rel=1e-9)
        assert min(abs(np.array(wrong) - right)) > 3 * MARGIN

    @pytest.mark.exhaustive
    @pytest.mark.parametrize("window", [SQUARE, TRIANGLE, L_SHAPE], ids=["square", "triangle", "L"])
    @pytest.mark.parametrize("h", [1.0, 6.0])
    def test_the_sampler_keeps_the_promise(self, window, h):
        """Clusters of a point in the corner, and of one that moved by `h` along the diagonal, cut and dropped."""
        places = np.array([[0.0, 0.0], [h / math.sqrt(2), h / math.sqrt(2)]])
        places = places if window.contains(places).all() else places * 5 / h
        bound = superposition(window, float(np.hypot(*places[1])), bandwidth=h, delta=1e-6)
        seen = mass(places, window, h) / mass(places, hull(window), h)
        for here, there in ((0, 1), (1, 0)):
            rng = np.random.default_rng(10 + here)
            size = rng.poisson(seen[here], N)
            # The children of equal points are independent draws from one law, to be shared out in any order.
            children = sample_children(np.repeat(places[[here]], int(1.1 * N), axis=0), window, h, rng)[: size.sum()]
            log_density = [
                -((children - place) ** 2).sum(axis=1) / (2 * h**2) - math.log(cut)
                for place, cut in zip(places, mass(places, hull(window), h), strict=True)
            ]
            loss = by_group(log_density[here] - log_density[there], size) - (seen[here] - seen[there])
            for epsilon in EPSILONS:
                assert estimate(loss, epsilon) < bound.delta(epsilon) + MARGIN

    def test_far_from_the_border_the_bound_is_attained(self):
        """Otherwise the test above might pass because its losses are computed too small."""
        window, h = Window.rectangle(-50, -50, 50, 50), 1.0
        rng = np.random.default_rng(3)
        size = rng.poisson(1.0, N)
        children = sample_children(np.zeros((int(1.1 * N), 2)), window, h, rng)[: size.sum()]
        loss = by_group(0.5 * ((children - [0.6, 0.8]) ** 2 - children**2).sum(axis=1), size)
        bound = superposition(window, 1.0, bandwidth=h, delta=1e-6)
        for epsilon in EPSILONS:
            assert abs(estimate(loss, epsilon) - bound.delta(epsilon)) < MARGIN


class TestCounterExample:
    """On a line: [0, .1] and [2, 5], bandwidth 1, a move from 0 to .1."""

    PARTS = ((0.0, 0.1), (2.0, 5.0))

    def divergence(self, cut_to):
        """Total variation between one child of 0 and one of .1, cut to some parts, then dropped outside PARTS."""
        law = scipy.stats.norm

        def kernel(place):
            total = sum(law.cdf(b - place) - law.cdf(a - place) for a, b in cut_to)
            return lambda u: law.pdf(u - place) / total

        f, g = kernel(0.0), kernel(0.1)
        more = sum(quad(lambda u: max(0.0, f(u) - g(u)), a, b)[0] for a, b in self.PARTS)
        dropped = [1 - sum(quad(kernel, a, b)[0] for a, b in self.PARTS) for kernel in (f, g)]
        return more + max(0.0, dropped[0] - dropped[1])

    def test_drawing_again_breaks_the_bound(self):
        assert self.divergence(self.PARTS) == pytest.approx(0.0554, abs=5e-5)
        assert delta_gaussian(0.0, 0.1) == pytest.approx(0.0399, abs=5e-5)

    def test_the_hull_keeps_it(self):
        assert 0.005 < self.divergence([(0.0, 5.0)]) < 0.0399

    def test_the_sampler_drops(self):
        """A strip with that cross-section: of a corner's children the hull keeps all, the window a known share."""
        strips = Window.polygon(shapely.MultiPolygon([shapely.box(0, 0, 0.1, 1), shapely.box(2, 0, 5, 1)]))
        children = sample_children(np.zeros((N, 2)), strips, 1.0, 4)
        law = scipy.stats.norm
        share = sum(law.cdf(b) - law.cdf(a) for a, b in self.PARTS) / (law.cdf(5) - 0.5)
        # Poisson counts, normal to better than the 1 in 10 million that six standard deviations stand for.
        assert abs(len(children) - N * share) < 6 * math.sqrt(N * share)
        assert share < 0.13


class TestBandwidths:
    """n = 128 on a square of side 10, alpha = .707."""

    @pytest.mark.parametrize(
        ("epsilon", "paper", "generous", "usual"),
        [(0.1, 126, 7.78, 40.2), (1.0, 40.0, 1.71, 5.02), (10.0, 12.6, 0.372, 0.720)],
    )
    def test_table(self, epsilon, paper, generous, usual):
        got = (
            smallest_bandwidth_36(SQUARE, ALPHA, n=128, epsilon=epsilon, delta=1 / 128),
            smallest_bandwidth(SQUARE, ALPHA, epsilon=epsilon, delta=1 / 128),
            smallest_bandwidth(SQUARE, ALPHA, epsilon=epsilon, delta=1e-6),
        )
        assert [float(f"{h:.3g}") for h in got] == [paper, generous, usual]

    @pytest.mark.exhaustive
    @pytest.mark.parametrize("relation", [0.7, 1e-5, ReplaceOne(), AlphaNeighbours(0.7, max_points_per_person=4)])
    @pytest.mark.parametrize(("epsilon", "delta", "patterns"), [(0.1, 1e-6, 1), (5.0, 1e-12, 30), (1e-3, 0.3, 1)])
    def test_spends_delta_and_no_more(self, relation, epsilon, delta, patterns):
        h = smallest_bandwidth(SQUARE, relation, epsilon=epsilon, delta=delta, patterns=patterns)
        spent = [
            superposition(SQUARE, relation, bandwidth=b, delta=delta, patterns=patterns).delta(epsilon)
            for b in (h, h * (1 - 1e-9))
        ]
        assert spent[0] <= delta < spent[1]

    def test_neither_n_nor_the_window_matters(self):
        budget = {"epsilon": 1.0, "delta": 1e-6}
        wide = Window.rectangle(0, 0, 1e4, 1e4)
        assert smallest_bandwidth(SQUARE, 0.7, **budget) == smallest_bandwidth(wide, 0.7, **budget)

    def test_replace_one_reaches_across(self):
        budget = {"epsilon": 1.0, "delta": 1e-6}
        expected = smallest_bandwidth(SQUARE, SQUARE.diameter, **budget)
        for relation in (ReplaceOne(), AlphaNeighbours(1e9)):
            assert smallest_bandwidth(SQUARE, relation, **budget) == expected

    def test_delta_that_any_bandwidth_satisfies(self):
        """A point leaves no child with probability 1/e, or e^-2 in two patterns."""
        smallest_bandwidth(SQUARE, 0.7, epsilon=1.0, delta=0.63)
        with pytest.raises(InputError, match=r"^delta: must be below 0\.6321, .*; 1e-6"):
            smallest_bandwidth(SQUARE, 0.7, epsilon=1.0, delta=0.633)
        smallest_bandwidth(SQUARE, 0.7, epsilon=1.0, delta=0.633, patterns=2)


class TestGuarantee:
    def test_words_and_curve(self):
        relation = AlphaNeighbours(2.0, max_points_per_person=3)
        guarantee = superposition(SQUARE, relation, bandwidth=2.0, patterns=5, delta=1e-6)
        assert guarantee.theorem == "kernel-superposition"
        assert (guarantee.profile.ratio, guarantee.profile.rate) == (1.0, 15)
        capped = Statement("points-per-person", most=3)
        assert {"public-bandwidth", capped, "secret-randomness", "one-release"} <= {*guarantee.assumptions}
        d, epsilon = guarantee.by_distance[10]
        one_point = superposition(SQUARE, d, bandwidth=2.0, patterns=5, delta=1e-6)
        assert epsilon == one_point.epsilon()
        assert guarantee.by_distance[-1][0] == SQUARE.diameter
        assert list(np.sort(guarantee.by_distance, axis=0)[:, 1]) == [e for _, e in guarantee.by_distance]
        assert guarantee_from_dict(json.loads(json.dumps(guarantee.to_dict()))) == guarantee

    def test_refusals(self):
        budget = {"epsilon": 1.0, "delta": 1e-6}
        for bound in (
            lambda: superposition(SQUARE, AddRemove(), bandwidth=1.0, delta=1e-6),
            lambda: smallest_bandwidth(SQUARE, AddRemove(), **budget),
            lambda: smallest_bandwidth_36(SQUARE, AddRemove(), n=9, **budget),
            lambda: kim_lim_36(SQUARE, AddRemove(), n=9, bandwidth=1e3, **budget),
        ):
            with pytest.raises(InputError, match=r"^relation: 'add-remove' has no guarantee .*; use private counts"):
                bound()
        with pytest.raises(InputError, match=r"^bandwidth: must be positive"):
            superposition(SQUARE, 1.0, bandwidth=0.0, delta=1e-6)
        for epsilon in (0.0, math.inf, math.nan, None):
            with pytest.raises(InputError, match=r"^epsilon: must be positive"):
                smallest_bandwidth(SQUARE, 1.0, epsilon=epsilon, delta=1e-6)
        for delta in (0.0, 1.0):
            with pytest.raises(InputError, match=r"^delta: must lie strictly between"):
                smallest_bandwidth_36(SQUARE, 1.0, n=9, epsilon=1.0, delta=delta)
        with pytest.raises(InputError, match=r"^n, patterns: must be at least 1"):
            smallest_bandwidth_36(SQUARE, 1.0, n=9, patterns=-1, **budget)


class TestTheorem36:
    @pytest.mark.parametrize("h", [0.7, 4.0, 40.0])
    @pytest.mark.parametrize("window", [SQUARE, TRIANGLE, L_SHAPE], ids=["square", "triangle", "L"])
    @pytest.mark.parametrize("alpha", [0.5, 5.0])
    def test_no_child_tells_more_than_its_share(self, window, h, alpha):
        """log(f_x(u) / f_x'(u)), edge correction included, over many x, x', u: in (epsilon / 3k, epsilon / k]."""
        rng = np.random.default_rng(20)
        x0, y0, x1, y1 = window.bounds
        corners = shapely.get_coordinates(window.geometry)
        x = np.concatenate([corners, rng.uniform([x0, y0], [x1, y1], (400, 2))])
        step = alpha * np.exp(1j * rng.uniform(0, 2 * np.pi, (40, len(x), 1)))
        moved = (x + np.concatenate([step.real, step.imag], axis=2)).reshape(-1, 2)
        x = np.tile(x, (40, 1))
        both = window.contains(x) & window.contains(moved)
        x, moved = x[both], moved[both]
        correction = np.log(mass(moved, hull(window), h) / mass(x, hull(window), h))
        u = corners[:, None]
        loss = (((u - moved) ** 2).sum(axis=2) - ((u - x) ** 2).sum(axis=2)) / (2 * h**2) + correction
        # epsilon = 3 and n so small that k = 1: the bandwidth is then the one that allows a child a loss of 3.
        per_child = 3 * (smallest_bandwidth_36(window, alpha, n=1, epsilon=3.0, delta=0.3) / h) ** 2
        assert per_child / 3 < loss.max() <= per_child

    @pytest.mark.parametrize(
        ("n", "patterns", "delta"), [(128, 1, 1 / 128), (50, 3, 1e-9), (3, 1, 0.9), (10**6, 1, 1e-6)]
    )
    def test_most_points(self, n, patterns, delta):
        h = smallest_bandwidth_36(SQUARE, 1.0, n=n, patterns=patterns, epsilon=2.0, delta=delta)
        k = 2 * h**2 * 2.0 / (2 * SQUARE.diameter + 1)
        assert k == pytest.approx(round(k), rel=1e-9)
        assert (
            scipy.stats.poisson.sf(round(k), n * patterns) <= delta < scipy.stats.poisson.sf(round(k) - 1, n * patterns)
        )

    def test_bandwidth_of_the_condition_as_printed(self):
        """With the term for edges, found over moves in many directions from a corner, where it is largest: 33.1."""
        alpha, n, side = 1 / math.sqrt(2), 57, 10.0
        ours = smallest_bandwidth_36(SQUARE, alpha, n=n, epsilon=1.0, delta=1 / n)
        most = scipy.stats.poisson.ppf(1 - 1 / n, n)
        angle = np.linspace(0, np.pi / 2, 2001)

        def edges(h):
            kept = scipy.stats.norm.cdf((side - alpha * np.stack([np.cos(angle), np.sin(angle)])) / h)
            kept -= scipy.stats.norm.cdf(-alpha * np.stack([np.cos(angle), np.sin(angle)]) / h)
            corner = scipy.stats.norm.cdf(side / h) - 0.5
            return np.abs(np.log(kept / corner).sum(axis=0)).max()

        reach = 2 * alpha * SQUARE.diameter + alpha**2
        printed = scipy.optimize.brentq(lambda h: reach / (2 * h**2) + edges(h) - 1 / most, 1.0, 1000.0)
        assert (round(ours, 1), round(printed, 1)) == (27.4, 33.1)

    def test_guarantee(self):
        relation, budget = AlphaNeighbours(0.7, max_points_per_person=9), {"n": 128, "epsilon": 1.0, "delta": 1e-4}
        h = smallest_bandwidth_36(SQUARE, relation, **budget)
        assert h == smallest_bandwidth_36(SQUARE, 0.7, **budget)
        guarantee = kim_lim_36(SQUARE, relation, bandwidth=h, **budget)
        assert (guarantee.theorem, guarantee.epsilon(), guarantee.delta(1.0)) == ("kim-lim-3.6", 1.0, 1e-4)
        assert guarantee_from_dict(json.loads(json.dumps(guarantee.to_dict()))) == guarantee
        with pytest.raises(PrivacyCheckError, match=rf"^bandwidth: Theorem 3\.6 needs at least {h:.6g} unit"):
            kim_lim_36(SQUARE, relation, bandwidth=0.999 * h, **budget)
