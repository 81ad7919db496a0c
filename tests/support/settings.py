"""Settings of field statistics, posterior draws and kernels, and the plans and patterns of their tests."""

import numpy as np
import shapely

from dpppsynth.mechanisms.lgcp.synthesizer import SPENDING_DELTA
from dpppsynth.models import regular_triangulation
from dpppsynth.spatial.domains import Window
from dpppsynth.spatial.patterns import PointPattern
from dpppsynth.synthesizers import KernelSynthesizer, LGCPSynthesizer

SQUARE = Window.rectangle(0, 0, 1000, 1000, "EPSG:27700")


RING = Window.polygon(shapely.Point(500, 500).buffer(400).difference(shapely.Point(500, 500).buffer(100)), "EPSG:27700")


N = 300


def points(window=SQUARE, seed=1, n=N, *, spot=False):
    rng = np.random.default_rng(seed)
    xy = rng.normal([700, 600], 40, (9 * n, 2)) if spot else rng.uniform(0, 1000, (9 * n, 2))
    return PointPattern(xy[window.contains(xy)][:n], window)


def lgcp(mechanism, window=SQUARE, **options):
    settings = {"delta": 1e-6} if mechanism in SPENDING_DELTA else {}
    settings |= {"mechanism": mechanism, "length_scale": 400.0, "mesh": regular_triangulation(window, shape=(5, 5))}
    settings |= {} if "relation" in options else {"alpha": 25.0}
    return LGCPSynthesizer(**{"epsilon": 1.0, "inference": "laplace"} | settings | options)


def kernel(window=SQUARE, **options):
    return KernelSynthesizer(
        **{"epsilon": 10.0, "delta": 1e-6} | ({} if "relation" in options else {"alpha": 25.0}) | options
    )


BUILD = {
    "field": lambda window, **options: lgcp("field", window, **options),
    "exact": lambda window, **options: lgcp("posterior-draw", window, sampler="exact", **options),
    "proximal": lambda window, **options: lgcp("posterior-draw", window, sampler="proximal", **options),
    "lipschitz": lambda window, **options: lgcp("lipschitz", window, sampler="exact", **options),
    "kim-lim": lambda window, **options: lgcp("kim-lim-3.8", window, **{"epsilon": 200.0, "delta": 1e-3} | options),
    "kernel": kernel,
    "kernel 3.6": lambda window, **options: kernel(window, bound="kim-lim-3.6", **options),
}


def plan(synthesizer, window=SQUARE, n=N, **options):
    size = {"n": n} if synthesizer.neighbouring().n_is_public else {"expected_n": float(n)}
    return synthesizer.plan(window, **size, **options)
