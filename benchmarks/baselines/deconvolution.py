"""Deconvolution of points moved by planar Laplace noise, as a custodian would do it without a model of the field."""

import math
from collections.abc import Iterator

import numpy as np
from scipy import fft

from dpppsynth.core.types import Floats

# Kernels end at so many scales, beyond which lies a share of .003.
REACH = 8.0
# Points along each side of a pixel over which the kernel is averaged.
WITHIN = 9


def richardson_lucy(counts: Floats, inside: Floats, kernel: Floats, steps: int) -> Iterator[Floats]:
    """Shares (nx, ny) of pixels after each step of expectation maximisation.

    Richardson (1972), Journal of the Optical Society of America 62(1); Lucy (1974), Astronomical Journal 79(6).

    Parameters
    ----------
    counts : (nx + 2 a, ny + 2 b) array
        Moved points, also in the pixels around.
    inside : (nx, ny) array
        Shares at the start.
    kernel : (2 a + 1, 2 b + 1) array
        Probabilities of moves, symmetric.
    steps : int
    """
    a, b = (size // 2 for size in kernel.shape)
    shape = counts.shape
    law = fft.rfft2(
        np.roll(np.pad(kernel, [(0, m - k) for m, k in zip(shape, kernel.shape, strict=True)]), (-a, -b), (0, 1))
    )

    def spread(masses: Floats) -> Floats:
        return np.maximum(fft.irfft2(fft.rfft2(masses) * law, shape), 0.0)

    shares = inside / inside.sum()
    for _ in range(steps):
        expected = spread(np.pad(shares, ((a, a), (b, b))))
        ratio = np.divide(counts, expected, out=np.zeros(shape), where=expected > 1e-12)
        shares = shares * spread(ratio)[a : shape[0] - a, b : shape[1] - b]
        shares = shares / shares.sum()
        yield shares


def planar_laplace_kernel(scale: float, sides: Floats, most: tuple[int, int]) -> Floats:
    """Probabilities (2 a + 1, 2 b + 1) of moves between pixels with these sides, a and b at most these numbers."""
    a, b = (min(limit, math.ceil(REACH * scale / side)) for limit, side in zip(most, sides, strict=True))
    part = (np.arange(WITHIN) + 0.5) / WITHIN - 0.5
    x = (np.arange(-a, a + 1)[:, None] + part) * sides[0]
    y = (np.arange(-b, b + 1)[:, None] + part) * sides[1]
    law = np.stack([np.exp(-np.hypot(row[:, None, None], y) / scale).mean(axis=(0, 2)) for row in x])
    return law / law.sum()
