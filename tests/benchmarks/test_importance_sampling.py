"""Variance of importance sampling, against quadrature."""

import math

import numpy as np
import pytest
from baselines.importance_sampling import relative_variance

from dpppsynth.core.errors import InputError


def test_relative_variance_is_that_of_importance_sampling():
    assert math.isclose(relative_variance(1.44, 10, 1), 0.632434, abs_tol=5e-7)
    assert relative_variance(1.0, 7, 100) == relative_variance(1, 7, 100, resampled=True) == 0.0
    for s2 in (0.51, 0.8, 0.999999, 1.2, 7.0, 1e9):
        # E[w^2] - 1 of one coordinate by quadrature: N(0, 1) against N(0, s2).
        wide = 12 / math.sqrt(2 - 1 / s2)
        x = np.linspace(-wide, wide, 4001)
        second = np.trapezoid(np.exp(-(x**2) * (1 - 1 / (2 * s2))), x) * math.sqrt(s2 / (2 * math.pi))
        assert math.isclose(relative_variance(s2, 2, 5), (second**2 - 1) / 5, rel_tol=1e-6, abs_tol=1e-9)
        assert math.isclose(
            relative_variance(s2, 3, 5, resampled=True), 3 * (second - 1) / 5, rel_tol=1e-6, abs_tol=1e-9
        )
        assert relative_variance(s2, 2, 5) > 0
    # The formula as once printed lacks a square and is negative.
    assert 2 / 100 * ((1.2 / 1.4) ** 1 - 1) < 0 < relative_variance(1.2, 2, 100)
    assert relative_variance(1e50, 10**9, 1) == math.inf
    for s2 in (0.5, 0.1, 0, -1, math.nan):
        with pytest.raises(InputError, match="s2"):
            relative_variance(s2, 1, 1)
