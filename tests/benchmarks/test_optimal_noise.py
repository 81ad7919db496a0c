"""The smallest delta within a bound: linear program, closed forms and the laws that attain it."""

import math

import numpy as np
import pytest
from baselines.optimal_noise import TruncatedStaircase, _program, optimal_delta, smallest_delta
from oracles import hockey_stick_of_densities

from dpppsynth.core.errors import InputError
from dpppsynth.truncated import TruncatedGeometric, truncated_geometric_delta, truncated_laplace_delta


@pytest.mark.parametrize(
    ("ratio", "delta"),
    [(0.5, 1.0), (0.75, 0.559266), (1, 0.5), (1.5, 0.211942), (2, 0.134471), (2.5, 0.067451)],
)
def test_values(ratio, delta):
    assert optimal_delta(1.0, ratio) == pytest.approx(delta, abs=1e-6)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0, 10.0])
@pytest.mark.parametrize("ratio", [0.5, 1, 1.5, 2, 2.5, 4])
def test_program_meets_closed_forms(epsilon, ratio):
    found, closed = optimal_delta(epsilon, ratio, cells=2), smallest_delta(epsilon, ratio)
    assert found == pytest.approx(closed, abs=1e-10 if epsilon <= 3 else 1e-6)
    # Also without its lower bound, which is that closed form.
    assert _program(epsilon, int(4 * ratio), 2) == pytest.approx(closed, abs=1e-10 if epsilon <= 3 else 1e-6)
    laplace = truncated_laplace_delta(epsilon, ratio, allow_large_delta=True)
    if ratio == int(ratio):
        assert closed == laplace
    elif ratio > 1:
        # On whole numbers the geometric law is the staircase; the continuous one is worse.
        assert closed == truncated_geometric_delta(epsilon, int(ratio))
        assert found < laplace - 1e-12


@pytest.mark.parametrize("cells", [2, 4, 8, 12])
def test_cells_make_no_difference(cells):
    assert optimal_delta(1.0, 1.5, cells=cells) == pytest.approx(0.2119415576, abs=1e-9)


@pytest.mark.parametrize(
    ("epsilon", "ratio", "larger"), [(1.0, 40, 40), (1.0, 100, 100), (3.0, 20, 20), (10.0, 8.25, 8.5), (5.0, 9.75, 10)]
)
def test_no_delta_is_zero_or_below_that_of_a_larger_bound(epsilon, ratio, larger):
    # The program alone finds 0, or only the tolerance of its solver.
    least = smallest_delta(epsilon, larger)
    assert 0 < least < 1e-16
    assert least <= optimal_delta(epsilon, ratio, cells=2) < 1e-11


def test_odd_numbers_of_cells_and_no_epsilon():
    assert optimal_delta(1.0, 1.5, cells=1) == pytest.approx(0.2119415576, abs=1e-9)
    assert optimal_delta(1.0, 0.75, cells=2) == pytest.approx(0.559266, abs=1e-6)
    assert optimal_delta(0.0, 3.0) == pytest.approx(1 / 6, abs=1e-9)


@pytest.mark.parametrize(("epsilon", "steps", "sensitivity"), [(1.0, 2, 1.0), (0.3, 3, 2.0)])
def test_staircase_attains_the_optimum(epsilon, steps, sensitivity):
    law = TruncatedStaircase(epsilon, steps, sensitivity)
    best = smallest_delta(epsilon, steps + 0.5)
    assert law.bound == (steps + 0.5) * sensitivity
    assert law.exposed(sensitivity) == pytest.approx(best, rel=1e-11, abs=0)
    for part in (0.1, 0.5, 0.9, 1.0):
        shift = part * sensitivity
        ends = {"low": -law.bound - shift, "high": law.bound, "width": 0.002}
        brute = hockey_stick_of_densities(lambda z, t=shift: law.pdf(z + t), law.pdf, epsilon, **ends)
        assert brute <= best + 1e-9
        assert brute == pytest.approx(law.exposed(shift), abs=1e-9)
    middles = np.arange(-law.bound + 0.0005, law.bound, 0.001)
    density = law.pdf(middles)
    assert density.sum() * 0.001 == pytest.approx(1, abs=1e-9)
    assert (density * middles**2).sum() * 0.001 == pytest.approx(law.variance, rel=1e-5)
    assert law.pdf([-law.bound, law.bound * 1.001]).tolist() == [law.pdf(law.bound), 0]
    assert law.exposed(0) == 0
    assert law.exposed(2 * law.bound) == law.exposed(1e300) == 1


def test_staircase_samples():
    law, n = TruncatedStaircase(0.5, 3, 2.0), 100_000
    draws = law.sample(n, 5)
    assert np.abs(draws).max() <= law.bound
    blocks = np.bincount(np.floor(draws / 2 + 0.5).astype(int) + 3, minlength=7) / n
    expected = TruncatedGeometric(2.0, 3).pmf(np.arange(-3, 4))
    # Six standard errors: false alarms below 7 * 2e-9 over any seed.
    assert (np.abs(blocks - expected) < 6 * np.sqrt(expected / n)).all()
    inner = np.sort(draws / 2 - np.floor(draws / 2 + 0.5) + 0.5)
    # DKW: below 2 exp(-32).
    assert np.abs(inner - np.arange(n) / n).max() < 4 / math.sqrt(n)


@pytest.mark.parametrize("value", [None, True, math.nan, -1, "x", object(), [1.0], 1j, math.inf, 10**400])
def test_arguments(value):
    for call in (
        lambda: optimal_delta(value, 1.5),
        lambda: optimal_delta(1.0, value),
        lambda: optimal_delta(1.0, 1.5, cells=value),
        lambda: smallest_delta(value, 1.5),
        lambda: smallest_delta(1.0, value),
        lambda: TruncatedStaircase(value, 2),
        lambda: TruncatedStaircase(1.0, value),
        lambda: TruncatedStaircase(1.0, 2, value),
        lambda: TruncatedStaircase(1.0, 2).exposed(value),
        lambda: TruncatedStaircase(1.0, 2).pdf(
            value if value not in (-1, math.inf, 10**400) and value != [1.0] else "x"
        ),
        lambda: TruncatedStaircase(1.0, 2).sample(value),
    ):
        with pytest.raises(InputError):
            call()


def test_what_no_closed_form_or_program_covers():
    with pytest.raises(InputError, match="multiple of one half"):
        smallest_delta(1.0, 1.25)
    for wrong in ((1.0, 0.4), (1.0, 1.1), (11.0, 1.5), (1.0, 1e6), (1.0, 2**60)):
        with pytest.raises(InputError, match="ratio"):
            optimal_delta(*wrong)
    assert smallest_delta(1.0, 0.5) == 1
