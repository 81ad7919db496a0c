"""Propensity scores and integrated errors against the formulas written out by hand."""

from dataclasses import dataclass

import numpy as np
import pytest

from dpppsynth.core.errors import InputError
from dpppsynth.evaluation.metrics import mean_integrated_squared_error, propensity_mse
from dpppsynth.linear_network import LinearNetwork
from dpppsynth.spatial.domains import Window
from dpppsynth.spatial.patterns import PointPattern
from dpppsynth.spatial.second_order import KFunction

WINDOW = Window.rectangle(0, 0, 2, 1)
STREET = LinearNetwork([[0, 0], [1, 0], [1, 3]], [[0, 1], [1, 2]])


@pytest.fixture
def rng():
    return np.random.default_rng(11)


def uniform(n, rng):
    return PointPattern(rng.random((n, 2)) * (2, 1), WINDOW)


def flat(xy):
    return np.full(len(xy), 3.0)


def slope(xy):
    return xy[:, 0]


@dataclass
class Known:
    """Intensity that says what its integral is, which no quadrature would find."""

    total: float

    def __call__(self, xy):
        return np.ones(len(xy))


@pytest.mark.parametrize("balanced", [False, True])
def test_pmse_is_the_printed_formula(balanced, rng):
    ours, theirs = uniform(30, rng), uniform(70, rng)
    # Divided by their integrals: 1/2, and x/2.
    total = 0.0
    for x, _ in [*ours.xy, *theirs.xy]:
        f, g = (30 * 0.5, 70 * x / 2) if balanced else (0.5, x / 2)
        total += (g / (f + g) - 0.7) ** 2 / 100
    assert propensity_mse(ours, theirs, flat, slope, balanced=balanced) == pytest.approx(total, rel=1e-9)
    swapped = propensity_mse(theirs, ours, slope, flat, balanced=balanced)
    assert swapped == pytest.approx(total, rel=1e-9)


@pytest.mark.parametrize("m", [1, 50, 4000])
def test_a_perfect_synthesizer_scores_zero_when_balanced_only(m, rng):
    ours, theirs = uniform(50, rng), uniform(m, rng)
    assert propensity_mse(ours, theirs, slope, lambda xy: 9 * slope(xy), balanced=True) == pytest.approx(0, abs=1e-20)
    printed = propensity_mse(ours, theirs, slope, lambda xy: 9 * slope(xy))
    assert printed == pytest.approx((0.5 - m / (50 + m)) ** 2, abs=1e-12)


def test_an_intensity_is_divided_by_its_own_total(rng):
    ours, theirs = uniform(20, rng), uniform(20, rng)
    found = propensity_mse(ours, theirs, Known(1.0), Known(4.0))
    assert found == pytest.approx((0.25 / 1.25 - 0.5) ** 2)


def test_on_a_network_integrals_run_along_the_streets():
    """Normalised: 1/4, and y / 4.5."""
    ours, theirs = STREET.pattern([0, 1], [0.5, 0.5]), STREET.pattern([1], [1.0])
    height = np.array([0, 1.5, 3]) / 4.5
    expected = np.mean((height / (height + 0.25) - 1 / 3) ** 2)
    assert propensity_mse(ours, theirs, flat, lambda xy: xy[:, 1]) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("balanced", [False, True])
def test_where_both_vanish_they_agree(balanced):
    ours = PointPattern([[0.1, 0.5], [1.5, 0.5]], WINDOW)
    theirs = PointPattern([[0.2, 0.5], [1.5, 0.5], [1.6, 0.5], [1.7, 0.5]], WINDOW)

    def right(xy):
        return (xy[:, 0] > 1).astype(float)

    expected = 0 if balanced else (0.5 - 4 / 6) ** 2
    assert propensity_mse(ours, theirs, right, right, balanced=balanced) == pytest.approx(expected, abs=1e-15)


def test_bad_arguments_of_pmse(rng):
    some, empty = uniform(5, rng), PointPattern.synthetic([], WINDOW)
    with pytest.raises(InputError, match="leave empty patterns out"):
        propensity_mse(some, empty, flat, flat)
    with pytest.raises(InputError, match=r"^balanced:"):
        propensity_mse(some, some, flat, flat, balanced="no")
    with pytest.raises(InputError, match=r"^synthetic:"):
        propensity_mse(some, PointPattern([[0, 0]], Window.rectangle(0, 0, 1, 1)), flat, flat)
    with pytest.raises(InputError, match=r"^synthetic_intensity:"):
        propensity_mse(some, some, flat, Known(0.0))
    with pytest.raises(InputError, match=r"^original_intensity:"):
        propensity_mse(some, some, None, flat)
    with pytest.raises(InputError, match=r"^synthetic_intensity:"):
        propensity_mse(some, some, flat, lambda xy: -slope(xy))


def k(values, r=None, correction="isotropic"):
    values = np.asarray(values, dtype=float)
    return KFunction(
        np.arange(len(values), dtype=float) if r is None else np.asarray(r), values, correction, False, True, True
    )


def test_mise_of_powers_of_r():
    """(r^3 / r^2 - 1)^2 integrates to 1/3 over [0, 1] and to (R - 1)^3 / 3 + 1/3 over [0, R]."""
    r = np.linspace(0, 2.5, 2001)
    assert mean_integrated_squared_error(k(r**2, r), k(r**3, r)) == pytest.approx((1.5**3 + 1) / 3, abs=2e-3)
    uneven = np.concatenate([np.linspace(0, 1, 1500), np.linspace(1.01, 2.5, 300)])
    found = mean_integrated_squared_error(k(uneven**2, uneven), k(uneven**3, uneven))
    assert found == pytest.approx((1.5**3 + 1) / 3, abs=2e-3)


def test_mise_divides_by_the_original_where_that_is_positive():
    ours, theirs = k([0, 0, 1, 2]), k([0, 5, 3, 6])
    assert mean_integrated_squared_error(ours, theirs) == pytest.approx(4)
    # The other way round nothing at r = 0, (1/5 ...) from r = 1 on.
    back = [(0 / 5 - 1) ** 2, (1 / 3 - 1) ** 2, (2 / 6 - 1) ** 2]
    assert mean_integrated_squared_error(theirs, ours) == pytest.approx(
        (back[0] + back[1]) / 2 + (back[1] + back[2]) / 2
    )


def test_mise_is_the_mean_over_all_pairs(rng):
    ours, theirs = ([k(np.cumsum(rng.random(6))) for _ in range(n)] for n in (3, 4))
    pairs = [mean_integrated_squared_error(one, other) for one in ours for other in theirs]
    assert mean_integrated_squared_error(ours, theirs) == pytest.approx(np.mean(pairs), rel=1e-12)


def test_bad_arguments_of_mise():
    some = k([0, 1, 2])
    refused = [
        (some, k([0, 1, 2], [0.0, 1.0, 2.5]), "different distances r"),
        (some, k([0, 1, 2, 3]), "different distances r"),
        (some, k([0, 1, 2], correction="border"), "curves of one kind"),
        (some, k([0, 1, np.nan]), "not finite"),
        (some, [], "synthetics:"),
        ([], some, "originals:"),
        ([some, 3], some, "originals:"),
        (None, some, "originals:"),
        (k([0, 0, 1]), some, "originals:"),
    ]
    for ours, theirs, message in refused:
        with pytest.raises(InputError, match=message):
            mean_integrated_squared_error(ours, theirs)
