"""Planar Laplace noise within a bound: its law, its moments, and the exact probability that tells two points apart."""

import itertools
import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

from dpppsynth.core.errors import InputError
from dpppsynth.truncated import PlanarLaplace, planar_laplace_bound, planar_laplace_delta

# False alarms of a statistical test.
ALARM = 1e-7


def gamma_mass(x):
    """P(2, x) in the precision of mpmath, which is enough to lose the digits that cancel."""
    return 1 - (1 + x) * mpmath.exp(-x)


def rays(epsilon, bound, distance):
    """Exposed mass by rays from the point to where they leave the other disk, distance < bound, in high precision."""
    epsilon, b, d = mpmath.mpf(epsilon), mpmath.mpf(bound), mpmath.mpf(distance)
    # In units of the largest value, since the integrator stops at an absolute accuracy.
    unit = mpmath.exp(-epsilon * (b - d))

    def tail(angle):
        r = d * mpmath.cos(angle) + mpmath.sqrt(b * b - (d * mpmath.sin(angle)) ** 2)
        x, y = epsilon * r, epsilon * (b - r)
        return mpmath.exp(-x) / unit * (x * (1 - mpmath.exp(-y)) + gamma_mass(y))

    integral = mpmath.quad(tail, [mpmath.acos(d / (2 * b)), mpmath.pi / 2, mpmath.pi])
    return integral * unit / (mpmath.pi * gamma_mass(epsilon * b))


# --- The law ---------------------------------------------------------------------------------------------------------


def test_reference_values():
    law = PlanarLaplace(1.0, 5.0)
    np.testing.assert_allclose(law.radial_ppf([0.1, 0.5, 0.9]), [0.5187976, 1.6146428, 3.4953085], atol=1e-7)
    np.testing.assert_allclose(law.tail([1, 2, 3, 5]), [0.7246262, 0.3809803, 0.1654076, 0], atol=5e-8)
    np.testing.assert_allclose(
        PlanarLaplace(1.0).tail([1, 2, 3, 5]), [0.7357589, 0.4060058, 0.1991483, 0.0404277], atol=5e-8
    )
    squares = [PlanarLaplace(*pair).mean_square for pair in ((1, 10), (0.9, 10), (1, 1))]
    np.testing.assert_allclose(squares, [5.9409506, 7.2591327, 0.4311552], rtol=1e-7)
    assert PlanarLaplace(1, 10).mean_radius == pytest.approx(1.9954577, abs=5e-8)
    assert PlanarLaplace(0.1).mean_square == pytest.approx(600)
    assert PlanarLaplace(0.1).variance == pytest.approx(300)


@pytest.mark.parametrize(("epsilon", "bound"), [(1.0, 5.0), (0.01, 3.0), (2.0, 30.0), (3.0, math.inf)])
def test_densities_masses_and_moments_agree(epsilon, bound):
    law = PlanarLaplace(epsilon, bound)
    last = min(bound, 40 / epsilon)

    def integral(function, end=last):
        return integrate.quad(function, 0, end, epsabs=0, epsrel=1e-10)[0]

    # A density that keeps a factor 1 / (2 pi) integrates to 0.159.
    assert integral(law.radial_pdf) == pytest.approx(1, rel=1e-9)
    assert integral(law.radial_pdf, last / 3) == pytest.approx(float(law.radial_cdf(last / 3)), rel=1e-9)
    assert integral(lambda r: r * law.radial_pdf(r)) == pytest.approx(law.mean_radius, rel=1e-9)
    assert integral(lambda r: r * r * law.radial_pdf(r)) == pytest.approx(law.mean_square, rel=1e-9)
    r = np.linspace(0.01, 0.99, 7) * last
    points = np.column_stack([r * np.cos(r), r * np.sin(r)])
    np.testing.assert_allclose(2 * np.pi * r * law.pdf(points), law.radial_pdf(r), rtol=1e-12)
    np.testing.assert_allclose(np.log(law.pdf(points)), law.logpdf(points), rtol=1e-9)
    np.testing.assert_allclose(law.radial_cdf(r) + law.tail(r), 1, rtol=1e-12)
    u = np.linspace(0, 0.999, 9)
    np.testing.assert_allclose(law.radial_cdf(law.radial_ppf(u)), u, atol=1e-12)


def test_nothing_beyond_the_bound():
    law = PlanarLaplace(1.0, 2.0)
    assert law.pdf([[0.0, 2.01]])[0] == law.radial_pdf(2.01) == law.tail(2.01) == 0
    assert law.logpdf([[3.0, 0.0]])[0] == -np.inf
    assert law.radial_cdf(7.0) == 1
    assert law.radial_ppf(1.0) == 2.0
    assert PlanarLaplace(1.0).radial_ppf(1.0) == np.inf


@pytest.mark.parametrize("reach", [1e-100, 1e-30, 1e-9, 0.9e-8, 1.1e-8, 1e-6])
def test_small_budgets_give_the_uniform_disk(reach):
    law = PlanarLaplace(math.sqrt(reach), math.sqrt(reach))
    off = 10 * reach + 1e-12
    assert law.mean_radius / law.bound == pytest.approx(2 / 3 * (1 - reach / 12), rel=reach**2 + 1e-14)
    assert law.mean_square / law.bound**2 == pytest.approx(0.5 * (1 - 2 * reach / 15), rel=reach**2 + 1e-14)
    np.testing.assert_allclose(
        law.radial_ppf([0, 1e-30, 0.25, 0.5, 1]), np.sqrt([0, 1e-30, 0.25, 0.5, 1]) * law.bound, rtol=off
    )
    np.testing.assert_allclose(law.pdf([[0, 0]]), 1 / (np.pi * law.bound**2), rtol=off)
    np.testing.assert_allclose(law.tail([law.bound / 2]), 0.75, rtol=off)
    # Two equal disks half a radius apart.
    lens = 2 * math.acos(0.25) - 0.25 * math.sqrt(4 - 0.25)
    assert law.exposed(law.bound / 2) == pytest.approx(1 - lens / math.pi, rel=off + 1e-9)


@pytest.mark.parametrize(
    ("reach", "part"), [(1e-7, 0.5), (1, 1e-9), (1, 1 - 1e-9), (50, 1 - 1e-12), (600, 0.9), (600, 0.999)]
)
def test_tails_keep_their_digits(reach, part):
    with mpmath.workdps(400):
        r, b = mpmath.mpf(part * reach), mpmath.mpf(reach)
        true = (gamma_mass(b) - gamma_mass(r)) / gamma_mass(b)
        # The difference to the bound is itself rounded once.
        assert abs(PlanarLaplace(1.0, float(reach)).tail(part * reach) / true - 1) < 1e-12


def test_samples_follow_the_law():
    law = PlanarLaplace(0.5, 4.0)
    offsets = law.sample(40_000, rng=5)
    radii = np.hypot(*offsets.T)
    assert radii.max() <= 4.0 * (1 + 1e-15)
    classes = np.histogram(law.radial_cdf(radii), 20, (0, 1))[0]
    angles = np.histogram(np.arctan2(*offsets.T), 16, (-np.pi, np.pi))[0]
    assert stats.chisquare(classes).pvalue > ALARM
    assert stats.chisquare(angles).pvalue > ALARM
    assert (np.abs(offsets.mean(axis=0)) < 5.5 * math.sqrt(law.variance / 40_000)).all()
    assert law.sample(0).shape == (0, 2)
    assert (law.sample(3, rng=1) == law.sample(3, rng=1)).all()


# --- What the bound exposes ------------------------------------------------------------------------------------------

EXPOSED = [
    (1, 10, 1, 2.203420e-4), (1, 5, 1, 1.690594e-2), (0.1, 10, 1, 4.606071e-2), (0.1, 50, 1, 1.162564e-3),
    (0.5, 10, 1, 6.836358e-3), (1, 1, 1, 0.5991283), (1, 1, 1.5, 0.8771040), (0.1, 10, 10, 0.5991283),
    (1, 10, 10, 0.5319183),
]  # fmt: skip


@pytest.mark.parametrize(("epsilon", "bound", "distance", "value"), EXPOSED)
def test_exposed_reference_values(epsilon, bound, distance, value):
    assert planar_laplace_delta(epsilon, bound, distance) == pytest.approx(value, rel=3e-7)


@pytest.mark.parametrize(
    ("epsilon", "bound", "distance"),
    [(1, 5, 1), (1, 5, 4.5), (1, 1, 1e-6), (1e-3, 1, 0.01), (1, 460, 1), (1, 650, 3), (3, 40, 8)],
)
def test_exposed_by_rays(epsilon, bound, distance):
    """Another quadrature in 30 digits, also where the mass is 1e-279: never below the truth, and hardly above."""
    with mpmath.workdps(30):
        excess = planar_laplace_delta(epsilon, bound, distance) / rays(epsilon, bound, distance) - 1
    assert 0 <= excess < 2e-10


@pytest.mark.parametrize(("epsilon", "bound", "distance"), [(1, 5, 5.0), (1, 5, 5.5), (0.2, 3, 4.5), (1, 2, 3.9)])
def test_exposed_beyond_the_bound(epsilon, bound, distance):
    """Rays through a disk that does not hold the point, whose chords make the overlap."""
    law = PlanarLaplace(epsilon, bound)

    def chord(angle):
        half = math.sqrt(max(bound**2 - (distance * math.sin(angle)) ** 2, 0))
        near, far = (distance * math.cos(angle) + side * half for side in (-1, 1))
        return float(law.radial_cdf(min(far, bound)) - law.radial_cdf(max(min(near, bound), 0)))

    ends = [0, math.acos(distance / (2 * bound)), math.asin(min(bound / distance, 1))]
    overlap = sum(integrate.quad(chord, *pair, epsabs=1e-12)[0] for pair in itertools.pairwise(ends)) / math.pi
    assert law.exposed(distance) == pytest.approx(1 - overlap, abs=3e-9)


def test_exposed_is_the_hockey_stick_divergence():
    """On the overlap densities differ by at most `epsilon distance`, so only what the bound exposes counts."""
    law, distance, side = PlanarLaplace(1.0, 2.0), 0.5, 900
    middles = (np.arange(side) + 0.5) * (5.0 / side) - 2.25
    grid = np.stack(np.meshgrid(middles, middles), axis=-1).reshape(-1, 2)
    first, second = law.pdf(grid), law.pdf(grid - [distance, 0])
    both = (first > 0) & (second > 0)
    assert (first[both] <= math.exp(distance) * second[both] * (1 + 1e-12)).all()
    divergence = np.maximum(first - math.exp(distance) * second, 0).sum() * (5.0 / side) ** 2
    assert divergence == pytest.approx(law.exposed(distance), rel=2e-3)


def test_exposed_by_simulation():
    """A pure guarantee would forbid an event that one point reaches often and the other never."""
    law, n = PlanarLaplace(1.0, 3.0), 100_000
    offsets = law.sample(n, rng=8)
    for distance in (0.4, 2.0, 4.0):
        count = int((np.hypot(*(offsets - [distance, 0]).T) > 3.0).sum())
        p = law.exposed(distance)
        assert abs(count - n * p) < 5.5 * math.sqrt(n * p * (1 - p))


lengths = st.floats(-3, 2).map(lambda power: 10**power)
few = settings(max_examples=40)


@few
@given(lengths, lengths, st.floats(0.001, 1.999), st.floats(0.001, 1.999), st.floats(1.0, 3.0))
def test_exposed_grows_with_distance_and_falls_with_the_bound(epsilon, bound, one, other, wider):
    low, high = sorted((one * bound, other * bound))
    law = PlanarLaplace(epsilon, bound)
    assert law.exposed(low) <= law.exposed(high) * (1 + 1e-12)
    assert PlanarLaplace(epsilon, bound * wider).exposed(low) <= law.exposed(low) * (1 + 1e-12)
    if low < bound:
        assert law.exposed(low) <= law.tail(bound - low) * (1 + 2e-10)
    # Only products with epsilon matter.
    assert planar_laplace_delta(epsilon / 7, 7 * bound, 7 * low) == pytest.approx(law.exposed(low), rel=1e-11)


def test_exposed_at_its_ends():
    law = PlanarLaplace(1.0, 4.0)
    assert law.exposed(8.0) == law.exposed(1e9) == 1
    assert law.exposed(7.99) < 1
    for distance in (1e-4, 1e-9, 1e-30):
        assert law.exposed(distance) == pytest.approx(
            distance * float(law.radial_pdf(4.0)) / math.pi, rel=3 * distance + 1e-9
        )
    assert PlanarLaplace(1.0).exposed(1.0) == planar_laplace_delta(1.0, math.inf) == 0.0
    # Too small for a float, but not nothing.
    assert 0 < PlanarLaplace(1.0, 1e5).exposed(1.0) < 1e-300


# --- Bounds from a delta ---------------------------------------------------------------------------------------------


def test_bound_reference_values():
    assert planar_laplace_bound(1.0, 1e-5) == pytest.approx(13.38539, abs=5e-6)
    assert planar_laplace_bound(0.1, 1e-5) == pytest.approx(104.52320, abs=2e-5)


@pytest.mark.parametrize("epsilon", [1e-6, 0.1, 30.0])
@pytest.mark.parametrize("delta", [0.5, 0.0123, 1e-6, 1e-300])
@pytest.mark.parametrize("distance", [0.02, 400.0])
def test_bound_keeps_delta_and_is_the_smallest(epsilon, delta, distance):
    if epsilon == 1e-6 and delta == 1e-300:
        distance = 400.0
    bound = planar_laplace_bound(epsilon, delta, distance)
    assert planar_laplace_delta(epsilon, bound, distance) <= delta
    assert planar_laplace_delta(epsilon, bound * (1 - 1e-11), distance) > delta


def test_bounds_beyond_all_lengths_are_refused():
    with pytest.raises(InputError, match=r"^distance: no bound up to 1e\+60"):
        planar_laplace_bound(1.0, 0.5, 1e60)


# --- Bad input -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("delta", [0, 0.0, 1e-301, 0.51, 1, -1e-6, math.nan, None, True, "x"])
def test_impossible_deltas_are_refused(delta):
    with pytest.raises(InputError, match=r"delta: must lie between 1e-300 and 0.5"):
        planar_laplace_bound(1.0, delta)


def test_delta_of_zero_has_a_reason():
    with pytest.raises(InputError, match="cannot be 0: an error that never exceeds a bound excludes"):
        planar_laplace_bound(1.0, 0)
    with pytest.raises(InputError, match="above one half most answers") as caught:
        planar_laplace_bound(1.0, 0.51)
    assert "cannot be 0" not in str(caught.value)


@pytest.mark.parametrize("wrong", [0, -1.0, math.nan, True, None, "x", 10**400, 1e-70, 1e70, [1.0], np.ones(2)])
def test_wrong_numbers_are_refused(wrong):
    for name, call in {
        "epsilon": lambda: PlanarLaplace(wrong, 1.0),
        "bound": lambda: PlanarLaplace(1.0, wrong),
        "distance": lambda: PlanarLaplace(1.0, 2.0).exposed(wrong),
        "max_error": lambda: planar_laplace_delta(1.0, wrong),
    }.items():
        with pytest.raises(InputError, match=f"^{name}: "):
            call()
    with pytest.raises(InputError, match=r"^epsilon: "):
        PlanarLaplace(math.inf)


def test_wrong_arrays_are_refused():
    law = PlanarLaplace(1.0, 2.0)
    for wrong in (None, "x", [[1, 2], [3]], -1.0, math.nan, math.inf, [True], np.array([1j]), [1e70]):
        for name, method in (("r", law.radial_pdf), ("r", law.radial_cdf), ("u", law.radial_ppf), ("t", law.tail)):
            with pytest.raises(InputError, match=f"^{name}: "):
                method(wrong)
    assert law.radial_cdf(np.float16(2)) == 1
    with pytest.raises(InputError, match=r"^u: "):
        law.radial_ppf(1.01)
    for wrong in (None, "x", [1.0, 2.0], [[1, 2], [3]], np.zeros((2, 3)), [[np.nan, 0]], [[1e300, 0]], [["a", "b"]]):
        for method in (law.pdf, law.logpdf):
            with pytest.raises(InputError, match=r"^offsets: "):
                method(wrong)
    for wrong in (-1, 2.5, True, None, 10**400):
        with pytest.raises(InputError, match=r"^n: "):
            law.sample(wrong)
    with pytest.raises(InputError, match=r"^rng: "):
        law.sample(1, rng="x")
