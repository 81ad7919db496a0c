"""Patterns of kernels from settings to folder: bandwidths, prices, and what is drawn."""

import re

import numpy as np
import pytest
from scipy.stats import poisson
from support.settings import SQUARE, N, kernel, plan, points

from dpppsynth.contract import rules
from dpppsynth.core.errors import InputError, PrivacyCheckError
from dpppsynth.release import load_release
from dpppsynth.spatial.patterns import PointPattern

# Two-sided bounds that a variable of each law leaves with probability 1e-8.
LOW, HIGH = 5e-9, 1 - 5e-9


class TestKernel:
    def test_bandwidth_rule_or_the_smallest_admissible(self):
        rule = rules.planar_rules.bandwidth(SQUARE, N)
        assert plan(kernel(epsilon=100.0)).statistic.bandwidth == rule
        tight = plan(kernel(epsilon=1.0)).statistic.bandwidth
        assert tight > rule
        assert plan(kernel(epsilon=1.0)).guarantee.epsilon() == pytest.approx(1.0, rel=1e-6)

    @pytest.mark.parametrize("bound", ["superposition", "kim-lim-3.6"])
    def test_a_bandwidth_below_the_smallest(self, bound):
        with pytest.raises(
            PrivacyCheckError, match=r"^bandwidth: 1 metre does not satisfy .* for 3 patterns; the smallest"
        ) as e:
            plan(kernel(bandwidth=1.0, bound=bound), patterns=3)
        smallest = float(re.search(r"admissible is ([\d.]+\d)", str(e.value)).group(1))
        assert plan(kernel(bandwidth=smallest * 1.001, bound=bound), patterns=3).statistic.bandwidth == smallest * 1.001
        with pytest.raises(PrivacyCheckError):
            plan(kernel(bandwidth=smallest * 0.999, bound=bound), patterns=3)

    def test_more_patterns_cost_more(self):
        one, five = (plan(kernel(epsilon=1.0), patterns=m).statistic.bandwidth for m in (1, 5))
        assert five > 1.2 * one
        assert kernel(epsilon=1.0).check(SQUARE, n=N, patterns=5).epsilon() == pytest.approx(1.0, rel=1e-6)

    @pytest.mark.parametrize("patterns", [0, -1, 1.0, True, "two"])
    def test_number_of_patterns(self, patterns):
        with pytest.raises(InputError, match=rf"^patterns: needs a whole number of at least 1, got {patterns!r}\."):
            plan(kernel(), patterns=patterns)

    def test_patterns_are_what_was_paid_for_and_nothing_else(self, tmp_path):
        release = kernel().release(points(), patterns=3)
        assert len(release.patterns) == 3
        assert len({len(pattern) for pattern in release.patterns} | {tuple(p.xy[0]) for p in release.patterns}) > 3
        for name in ("intensity", "posterior", "estimator"):
            assert not hasattr(release, name)
        release.patterns.clear()
        assert len(release.patterns) == 3
        folder = release.save(tmp_path / "out")
        names = {"certificate.json", "domain.geojson", *(f"synthetic_00{k}.geojson" for k in range(3))}
        assert {path.name for path in folder.iterdir()} == names
        assert len(load_release(folder).patterns) == 3

    def test_counts_are_poisson_with_the_number_of_points(self):
        low, high = poisson(N).ppf([LOW, HIGH])
        release = kernel().release(points(), 1, patterns=40)
        counts = np.array([len(pattern) for pattern in release.patterns])
        assert low <= counts.min() < N < counts.max() <= high  # forty on one side: 0.53^40 is 1e-11
        low, high = poisson(40 * N).ppf([LOW, HIGH])
        assert low <= counts.sum() <= high

    def test_children_lie_around_the_points_in_random_order(self):
        pair = PointPattern(np.repeat([[200.0, 200.0], [800.0, 800.0]], N // 2, axis=0), SQUARE)
        xy = kernel(epsilon=1000.0).release(pair, 1).patterns[0].xy
        left = xy[:, 0] < 500
        assert np.abs(xy - np.where(left[:, None], 200, 800)).max() < 7 * rules.planar_rules.bandwidth(SQUARE, N)
        # Sorted by parent there is one change of side; in random order about 150, standard deviation 9.
        assert np.count_nonzero(np.diff(left)) > 90

    def test_refused_settings(self):
        for arguments, message in (
            ({"bandwidth": 0}, r"^bandwidth: must be a positive finite number, got 0\."),
            ({"bound": "tight"}, r"^bound: expected one of 'superposition', 'kim-lim-3\.6', got 'tight'\."),
            ({"epsilon": -1}, r"^epsilon: must be a positive finite number, got -1\."),
            ({"delta": 2}, r"^delta: must lie in \[0, 1\), got 2"),
            ({"relation": "any"}, r"^relation: expected a relation"),
        ):
            with pytest.raises(InputError, match=message):
                kernel(**arguments)
        for n in (None, 0, 1.5):
            with pytest.raises(InputError, match=r"^n: the public number of points is needed"):
                kernel().plan(SQUARE, n=n)
