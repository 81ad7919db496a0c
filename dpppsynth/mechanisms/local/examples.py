"""Examples of the local mechanisms."""

from collections.abc import Iterator
from functools import partial

import numpy as np

from dpppsynth.contract.examples import Example, N, ring, square
from dpppsynth.mechanisms.local.cell_synthesizers import (
    DiskAreaMechanism,
    HybridUniformExponential,
    MultidimensionalSquareWave,
    RangeHierarchy,
    SEMGeoI,
)
from dpppsynth.mechanisms.local.displacements import LineTrace
from dpppsynth.mechanisms.local.grid_synthesizer import AdvancedAdaptiveGrid, PrivAG, UniformGrid
from dpppsynth.mechanisms.local.trajectory_synthesizer import LDPTrace
from dpppsynth.spatial.mesh import Ints


def disk_area() -> Iterator[Example]:
    """Examples on windows with and without a hole, and of persons with several points."""
    yield Example("square", partial(DiskAreaMechanism, 1.0, cells=6), square())
    persons = partial(DiskAreaMechanism, 1.0, cells=6, user="user")
    yield Example("persons", persons, square(), marks=in_threes, numbers=(3 * N, 3 * N))
    yield Example("polygon with a hole", partial(DiskAreaMechanism, 1.0, cells=9), ring())


def hybrid_area() -> Iterator[Example]:
    """Example with a given radius."""
    yield Example("square", partial(HybridUniformExponential, 1.0, cells=5, radius=2), square())


def square_wave() -> Iterator[Example]:
    """Example on a square."""
    yield Example("square", partial(MultidimensionalSquareWave, 1.0, cells=6), square())


def subset_exponential() -> Iterator[Example]:
    """Example on a square."""
    yield Example("square", partial(SEMGeoI, 1.0, cells=6), square())


def uniform_grid() -> Iterator[Example]:
    """Examples of either oracle."""
    for domain, oracle in ((square(), "local-hashing"), (ring(), "auto")):
        yield Example(oracle, partial(UniformGrid, domain, epsilon=1.0, cells=(9, 4), oracle=oracle), domain)


def adaptive_grid() -> Iterator[Example]:
    """Examples of even and of adaptive cuts."""
    even = partial(PrivAG, square(), epsilon=3.0, alpha=0.1, consistent=False, oracle="optimized-unary")
    yield Example("even", even, square())
    uneven = partial(AdvancedAdaptiveGrid, ring(), epsilon=3.0, alpha2=1.0)
    yield Example("adaptive, polygon with a hole", uneven, ring())


def range_hierarchy() -> Iterator[Example]:
    """Examples on windows with and without a hole, of several levels and of one."""
    yield Example("square", partial(RangeHierarchy, 1.0, cells=16), square())
    yield Example("polygon with a hole", partial(RangeHierarchy, 2.0, cells=8, estimator="norm-sub"), ring())
    yield Example("one level", partial(RangeHierarchy, 1.0, cells=2), square())


def trajectories() -> Iterator[Example]:
    """Examples of N trajectories, some or all with more than one point; how many points they have is secret."""
    for label, domain in (("square", square()), ("polygon with a hole", ring())):
        settings = partial(LDPTrace, 3.0, cells=5, max_length=6)
        yield Example(label, settings, domain, marks=in_turn, numbers=(N + 300, 3 * N))


def displacements() -> Iterator[Example]:
    """Examples of N trajectories, as of `trajectories`."""
    for label, domain in (("square", square()), ("polygon with a hole", ring())):
        yield Example(label, partial(LineTrace, 3.0, cells=5), domain, marks=in_turn, numbers=(N + 300, 3 * N))


def in_threes(n: int) -> dict[str, Ints]:
    """Marks of N persons, who have points in turn."""
    return {"user": np.arange(n) % N}


def in_turn(n: int) -> dict[str, Ints]:
    """Marks of N trajectories, which have points in turn."""
    return {"trajectory": np.arange(n) % N}
