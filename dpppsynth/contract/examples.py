"""`Example` and `Refusal`: settings that the conformance tests run, and settings that must be refused.

The domains are made when asked for, so that a family is imported without them.
"""

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass
from functools import cache

from numpy.typing import ArrayLike

from dpppsynth.contract.settings import Settings
from dpppsynth.privacy.relations import AddRemove, AlphaNeighbours, CappedRelation, ReplaceOne
from dpppsynth.spatial.domains import Domain, Window

# Public number of points, and the public guess where it is secret.
N, EXPECTED = 1009, 400.0
# A mechanism under capped relations has an example or a refusal for each of these.
RELATIONS: tuple[CappedRelation, ...] = (
    AlphaNeighbours(25.0),
    AlphaNeighbours(25.0, max_points_per_person=3),
    ReplaceOne(),
    ReplaceOne(3),
    AddRemove(),
    AddRemove(3),
)


@dataclass(frozen=True, eq=False)
class Example:
    """Settings of a mechanism, and the patterns that they are run on.

    Attributes
    ----------
    label : str
        What is special about it.
    settings : callable
        Makes the synthesizer.
    domain : Window or LinearNetwork
    levels : bool
        Run by the levels of a mark, "year", instead of on all points at once.
    marks : callable, optional
        Marks of so many points, where the mechanism asks for some.
    numbers : (int, int), optional
        Points of the two patterns that are compared, where these are not what n counts.
    slow : bool
        It runs NUTS.
    """

    label: str
    settings: Callable[[], Settings]
    domain: Domain
    _: KW_ONLY
    levels: bool = False
    marks: Callable[[int], Mapping[str, ArrayLike]] | None = None
    numbers: tuple[int, int] | None = None
    slow: bool = False


@dataclass(frozen=True, eq=False)
class Refusal:
    """Settings that no theorem covers.

    Attributes
    ----------
    relation : CappedRelation
    settings : callable
        Makes the synthesizer.
    domain : Window or LinearNetwork
    rule : str
        Regular expression that the message begins with.
    """

    relation: CappedRelation
    settings: Callable[[], Settings]
    domain: Domain
    rule: str


@cache
def square() -> Window:
    """Window of one square kilometre."""
    return Window.rectangle(0, 0, 1000, 1000, "EPSG:27700")


@cache
def ring() -> Window:
    """Window that is a rectangle with a hole."""
    import shapely

    return Window.polygon(shapely.box(0, 0, 1000, 800).difference(shapely.box(300, 300, 500, 500)), "EPSG:27700")


@cache
def streets() -> Domain:
    """Network of rotated blocks, 200 m by 150 m, with two dead ends, no two corners sharing a coordinate."""
    import numpy as np

    from dpppsynth.linear_network import LinearNetwork

    grid = [[x, y] for y in (0, 150, 300, 450) for x in (0, 200, 400, 600)] + [[600, 520], [-70, 150]]
    turn = [[np.cos(0.3), np.sin(0.3)], [-np.sin(0.3), np.cos(0.3)]]
    across = [(4 * j + i, 4 * j + i + 1) for j in range(4) for i in range(3)]
    along = [(4 * j + i, 4 * j + i + 4) for j in range(3) for i in range(4) if (i, j) != (1, 1)]
    edges = np.array([*across, *along, (15, 16), (4, 17)])
    return LinearNetwork(np.array(grid) @ turn + [300, 200], edges, "EPSG:27700")


def in_threes(n: int) -> dict[str, list[int]]:
    """Marks of persons with three points each."""
    return {"user": [k // 3 for k in range(n)]}
