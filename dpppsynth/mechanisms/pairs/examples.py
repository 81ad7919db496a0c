"""Examples of pair sums."""

from collections.abc import Iterator
from functools import partial

import numpy as np

from dpppsynth.contract.examples import RELATIONS, Example, ring, square, streets
from dpppsynth.mechanisms.pairs.synthesizer import PairSums
from dpppsynth.spatial.mesh import Ints


def points() -> Iterator[Example]:
    """Examples of all relations, of a window with a hole and of streets."""
    build = partial(PairSums, 1.0, radii=[30.0, 80.0], cap=[10, 20])
    for relation in RELATIONS:
        yield Example(str(relation), partial(build, relation=relation), square())
    yield Example("polygon with a hole", partial(build, alpha=25.0, shares=[0.25, 0.75], steps=8), ring())
    yield Example("streets", partial(build, alpha=25.0), streets())


def persons() -> Iterator[Example]:
    """Examples of persons with three points each, on a window and on streets."""
    build = partial(PairSums, 1.0, radii=[30.0], cap=10, user="user")
    yield Example("persons", build, square(), marks=in_threes)
    yield Example("persons on streets", build, streets(), marks=in_threes)


def in_threes(n: int) -> dict[str, Ints]:
    """Marks of persons with three points each."""
    return {"user": np.arange(n) // 3}
