"""Mean and range of the K-functions of a report's synthetic patterns."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from dpppsynth.core.randomness import generator
from dpppsynth.evaluation import default_distances, k_function
from dpppsynth.linear_network import LinearNetwork
from dpppsynth.spatial.domains import Domain
from dpppsynth.spatial.mesh import Floats
from dpppsynth.spatial.patterns import PointPattern

STEPS = 128
# Points that the K-function of one pattern is made of at most, in windows and along streets.
IN_PLANE, ON_NETWORK = 5_000, 1_000
FEWEST = 2


@dataclass(frozen=True, eq=False)
class KSummary:
    """`L(r) - r` in a window, `K(r) - r` on a network, of several synthetic patterns; zero for a Poisson process.

    Curves (b,) are in the domain's unit; `thinned` tells whether some pattern was too large to use all of its points.
    """

    r: Floats
    mean: Floats
    lowest: Floats
    highest: Floats
    patterns: int
    thinned: bool
    correction: str


def gathering(patterns: Iterable[PointPattern]) -> KSummary | None:
    """Summarise the K-functions of patterns on one domain; None where none has two points.

    A large pattern is thinned by a fixed rule, which leaves K as it is on average.
    """
    usable = [each for each in patterns if len(each) >= FEWEST]
    if not usable:
        return None
    domain = usable[0].domain
    r = default_distances(domain, STEPS)
    curves = [k_function(_thinned(each), r) for each in usable]
    excess = np.array([curve.l - r for curve in curves])
    large = any(len(each) > _most(domain) for each in usable)
    spread = excess.mean(axis=0), excess.min(axis=0), excess.max(axis=0)
    return KSummary(r, *spread, len(usable), large, curves[0].correction)


def _thinned(pattern: PointPattern) -> PointPattern:
    most = _most(pattern.domain)
    if len(pattern) <= most:
        return pattern
    chosen = np.zeros(len(pattern), dtype=bool)
    chosen[generator(0).choice(len(pattern), most, replace=False)] = True
    return pattern.part(chosen, synthetic=True)


def _most(domain: Domain) -> int:
    return ON_NETWORK if isinstance(domain, LinearNetwork) else IN_PLANE
