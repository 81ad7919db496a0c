"""The rule for fully synthetic data, against its formula and by coverage."""

import numpy as np
import pytest
from scipy import stats

import dpppsynth as dps
from dpppsynth.core.errors import InputError


def draws(m):
    return [f"public/synthetic_draw_{k:03d}.geojson" for k in range(m)]


def test_the_formula():
    q, u = np.array([0.30, 0.36, 0.33, 0.27]), np.array([1e-4, 2e-4, 1e-4, 2e-4])
    found = dps.combine(draws(len(q)), q, u)
    b = ((q - q.mean()) ** 2).sum() / 3
    total = 1.25 * b - u.mean()
    degrees = 3 * (1 - u.mean() / (1.25 * b)) ** 2
    assert found.estimate == pytest.approx(q.mean())
    assert found.standard_error == pytest.approx(np.sqrt(total))
    assert found.degrees_of_freedom == pytest.approx(degrees)
    lower, upper = found.interval(0.95)
    half = stats.t.ppf(0.975, degrees) * np.sqrt(total)
    assert (lower[0], upper[0]) == pytest.approx((q.mean() - half, q.mean() + half))


def test_several_quantities_are_combined_one_by_one():
    rng = np.random.default_rng(1)
    q, u = rng.normal(size=(20, 3)), np.full((20, 3), 0.1)
    found = dps.combine(draws(len(q)), q, u)
    alone = [dps.combine(draws(20), q[:, k], u[:, k]) for k in range(3)]
    assert found.standard_error == pytest.approx([each.standard_error[0] for each in alone])
    assert "3" not in str(found.patterns)
    assert len(str(found).splitlines()) == 4


def test_a_variance_that_is_not_positive_is_said():
    found = dps.combine(draws(3), [1.0, 1.0, 1.0], [0.5, 0.5, 0.5])
    assert found.too_few.all()
    assert found.standard_error == pytest.approx(np.sqrt(0.5))
    assert "More patterns are needed" in str(found)


def test_intervals_hold_the_truth_as_often_as_they_say():
    """A normal mean: the truth given the data has variance .3, a new estimate .2 more; rules for other data miss."""
    rng, held, runs = np.random.default_rng(2), 0, 2000
    for _ in range(runs):
        centre = rng.normal(0.0, np.sqrt(0.3))  # posterior centre about the truth 0
        means = centre + np.sqrt(0.3) * rng.standard_normal(50)
        estimates = means + np.sqrt(0.2) * rng.standard_normal(50)
        lower, upper = dps.combine(draws(50), estimates, np.full(50, 0.2)).interval(0.9)
        held += lower[0] <= 0 <= upper[0]
    # Six standard errors of a share of .9, and a percent for the approximate degrees of freedom.
    assert abs(held / runs - 0.9) < 6 * np.sqrt(0.09 / runs) + 0.01


@pytest.mark.parametrize(
    ("estimates", "variances", "said"),
    [
        ([1.0], [1.0], "estimates"),
        ([1.0, 2.0], [1.0], "variances"),
        ([1.0, 2.0], [1.0, -1.0], "variances"),
        ([1.0, np.nan], [1.0, 1.0], "estimates"),
        ("ab", [1.0, 1.0], "estimates"),
        ([[1.0, 2.0], [1.0, 2.0]], [1.0, 1.0], "variances"),
    ],
)
def test_refusals(estimates, variances, said):
    with pytest.raises(InputError, match=said):
        dps.combine(draws(len(estimates)), estimates, variances)


@pytest.mark.parametrize("name", ["synthetic_000.csv", "synthetic_mean_000.geojson", "mine.csv"])
def test_patterns_of_one_intensity_or_of_no_known_source_are_refused(name):
    with pytest.raises(InputError, match=r'^patterns: .*release.sample\(m, source="draws"\)'):
        dps.combine([*draws(2), name], [1.0, 2.0, 3.0], [1.0, 1.0, 1.0])
    with pytest.raises(InputError, match=r"^patterns: needs one for each"):
        dps.combine(draws(2), [1.0, 2.0, 3.0], [1.0, 1.0, 1.0])
