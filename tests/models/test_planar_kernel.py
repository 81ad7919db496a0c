"""Kernel of planar Laplace noise on a lattice: against closed forms and adaptive quadrature."""

import numpy as np
import pytest
from scipy import integrate, special

from dpppsynth.models.planar_kernel import beyond, lattice_kernel, quadrant


def density(x, y, rate):
    return rate**2 / (2 * np.pi) * np.exp(-rate * np.hypot(x, y))


def spline(u):
    """Density of the sum of a hat and a cell of width 1: the quadratic spline."""
    u = np.abs(u)
    return np.where(u < 0.5, 0.75 - u**2, np.where(u < 1.5, (1.5 - u) ** 2 / 2, 0.0))


def test_quadrants():
    """The whole plane has four; a long thin strip holds what the law along an axis says; signs are those of places."""
    places = np.array([0.0, 1e-3, 0.7, 3.0, 400.0])
    found = quadrant(1.3, places, np.array([0.2, 2.0, 400.0]))
    assert found[-1, -1] == pytest.approx(0.25, abs=1e-12)
    assert (found[0] == 0).all()
    for i, x in ((2, 0.7), (3, 3.0)):
        for j, y in ((0, 0.2), (1, 2.0)):
            exact = integrate.dblquad(lambda v, u: density(u, v, 1.3), 0, x, 0, y, epsabs=1e-12)[0]
            assert found[i, j] == pytest.approx(exact, abs=1e-11)
    # x alone has the density of a Bessel function.
    strip = integrate.quad(lambda u: 1.3**2 * u * special.k1(1.3 * u) / np.pi, 1e-300, 3.0, epsabs=1e-13)[0]
    assert found[3, 2] == pytest.approx(strip / 2, abs=1e-11)
    np.testing.assert_allclose(quadrant(1.3, -places, np.array([0.2, 2.0, 400.0])), -found)
    assert beyond(16.7) == pytest.approx(9.9e-7, rel=0.01)


@pytest.mark.parametrize(("rate", "spacing"), [(0.4, (1.0, 1.0)), (2.0, (1.5, 0.8))])
def test_entries_by_quadrature(rate, spacing):
    """Hat and cell together are a spline, over which the density is integrated, from the origin outwards."""
    kernel = lattice_kernel(rate, spacing, (3, 2))
    for i, j in ((0, 0), (1, 0), (0, 1), (-3, 2), (2, -1)):
        x, y = i * spacing[0], j * spacing[1]
        nodes, weights = np.polynomial.legendre.leggauss(60)
        lines = []
        for at, side in zip((x, y), spacing, strict=True):
            ends = at + np.array([-1.5, -0.5, 0.5, 1.5]) * side
            inside = np.sort(np.append(ends, np.zeros(int(ends[0] < 0 < ends[-1]))))
            half, middle = np.diff(inside) / 2, (inside[1:] + inside[:-1]) / 2
            place = (middle[:, None] + half[:, None] * nodes).ravel()
            lines.append((place, (half[:, None] * weights).ravel() * spline((place - at) / side) / side))
        (u, p), (v, q) = lines
        # The density has a cusp at the origin alone, which is a knot.
        exact = p @ density(u[:, None], v, rate) @ q * spacing[0] * spacing[1]
        assert kernel[3 + i, 2 + j] == pytest.approx(exact, rel=1e-4)


@pytest.mark.parametrize(("rate", "spacing"), [(0.5, (1.0, 1.0)), (3.0, (1.0, 0.6)), (30.0, (1.0, 1.0))])
def test_whole_kernels(rate, spacing):
    """They sum to 1; columns sum to the law along an axis; variances are those of noise, hat and cell."""
    radius = tuple(int(np.ceil(25 / rate / side)) + 2 for side in spacing)
    kernel = lattice_kernel(rate, spacing, radius)
    assert kernel.sum() == pytest.approx(1.0, abs=1e-8)
    assert kernel.min() >= 0
    np.testing.assert_array_equal(kernel, kernel[::-1, ::-1])
    for axis, side in enumerate(spacing):
        offsets, column = np.arange(-radius[axis], radius[axis] + 1) * side, kernel.sum(axis=1 - axis)
        # 3 / rate^2 of the noise along an axis, h^2 / 6 of the hat, and h^2 / 12 of the cell that is rounded to.
        assert offsets**2 @ column == pytest.approx(3 / rate**2 + side**2 / 4, rel=1e-4)


def test_without_noise_a_hat_is_left():
    """Three quarters of a hat lie in its own cell, an eighth in either neighbour."""
    kernel = lattice_kernel(4000.0, (2.0, 1.0), (1, 1))
    np.testing.assert_allclose(kernel, np.outer([1, 6, 1], [1, 6, 1]) / 64, atol=2e-4)
