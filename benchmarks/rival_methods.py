"""Candidates of each rival for benchmarks/rivals.py: masses of pixels for all that hindsight may choose from."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from baselines.deconvolution import planar_laplace_kernel, richardson_lucy
from baselines.histogram_marginals import spanning_tree
from baselines.histogram_partitions import ahp, dawa
from baselines.histogram_trees import measure_tree, privtree, quadtree
from baselines.histograms import Cells, adaptive_grid, fourier, laplace_histogram, privelet, uniform_grid
from held_out import BANDWIDTHS, Raster, jittered

import dpppsynth as dps

PIXELS = 512
# Where a paper has no rule for a number, or one that may be bettered: what it is called, and what hindsight tries.
SIDES, FEWER = {"side": (8, 16, 32, 64, 128, 256)}, {"side": (8, 16, 32, 64, 128)}
WAVES, DEPTHS = {"side": (2, 3, 4, 6, 8, 12, 16, 24, 32)}, {"depth": (None, 4, 6, 8, 10, 12, 14)}
RULE: dict[str, tuple[int, ...]] = {}
HISTOGRAMS: dict[str, tuple[Callable[..., Cells], dict[str, tuple[Any, ...]]]] = {
    "Laplace": (laplace_histogram, SIDES),
    "UG": (uniform_grid, RULE),
    "AG": (adaptive_grid, RULE),
    "PrivTree": (privtree, RULE),
    "quadtree": (quadtree, SIDES),
    "DAWA": (dawa, FEWER),
    "AHP": (ahp, FEWER),
    "PMM": (measure_tree, DEPTHS),
    "MST": (spanning_tree, FEWER),
    "Fourier": (fourier, WAVES),
    "Privelet": (privelet, SIDES),
}
# Pixels along each side for deconvolution, shares of the box of the longest moves for which the finest are tried, and
# most steps, of which those that are powers of two are candidates.
COARSEST, COARSE, FINE, SHORT, STEPS = 64, 128, 256, 0.012, 128
RESOLUTIONS = (COARSEST, COARSE, FINE, PIXELS)
Rasters = Mapping[int, Raster]
Candidates = Iterator[tuple[Raster, np.ndarray]]


def histograms(name: str, known: dps.PointPattern, rasters: Rasters, epsilon: float, sensitivity: float) -> Candidates:
    """Densities of a histogram: all choices, with negative masses set to zero or all masses shifted."""
    raster, (method, choices) = rasters[PIXELS], HISTOGRAMS[name]
    counts = raster.counts(known.xy)
    for chosen in [{what: number} for what, numbers in choices.items() for number in numbers] or [{}]:
        cells = method(counts, epsilon, sensitivity, np.random.default_rng(1), **chosen)
        for clipped in (True, False):
            yield raster, cells.density(raster.inside, len(known), clipped=clipped)


def kernels(xy: np.ndarray, rasters: Rasters) -> Candidates:
    """Gaussian kernels of all bandwidths."""
    raster = rasters[PIXELS]
    counts = raster.counts(xy)
    yield from ((raster, raster.smoothed(counts, width)) for width in BANDWIDTHS * raster.window.extent)


def jitter_kernels(known: dps.PointPattern, rasters: Rasters, alpha: float, epsilon: float) -> Candidates:
    """Kernels on moved points, those outside the window's box put back to its border."""
    return kernels(jittered(known, alpha, epsilon), rasters)


def deconvolved(known: dps.PointPattern, rasters: Rasters, alpha: float, epsilon: float) -> Candidates:
    """Moved points deconvolved on several grids, after 1, 2, 4, ... steps."""
    moved, scale = jittered(known, alpha, epsilon), alpha * known.domain.extent / epsilon
    for pixels in (COARSEST, COARSE, FINE) if alpha / epsilon < SHORT else (COARSEST, COARSE):
        raster = rasters[pixels]
        kernel = planar_laplace_kernel(scale, raster.sides, raster.shape)
        counts = raster.counts(moved, margin=(kernel.shape[0] // 2, kernel.shape[1] // 2))
        for step, shares in enumerate(richardson_lucy(counts, raster.inside, kernel, STEPS), 1):
            if step & (step - 1) == 0:
                yield raster, shares
