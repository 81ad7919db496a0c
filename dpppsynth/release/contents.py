"""Form of the files of synthetic patterns, which no bound follows from: what `save` writes, and nothing else."""

import json
import re
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from dpppsynth.contract.statistic import require
from dpppsynth.core.crs import crs_member
from dpppsynth.spatial.domains import Domain

# Seventeen digits, behind up to three zeros of a number not yet written with an exponent.
NUMBER = rb"(-?\d{1,17}(?:\.\d{1,20})?(?:e[+-]\d{1,3})?)"
POINT = re.compile(
    rb'\{"type": "Feature", "properties": (\{.*?\}), "geometry": \{"type": "Point", "coordinates": \[%s, %s\]\}\}'
    % (NUMBER, NUMBER)
)
# Tolerance for coordinates outside the bounding box: a share of the diameter, for rounding.
NEAR = 1e-6
# Bytes of lines that are looked at together.
BLOCK = 2**20


def require_pattern(content: bytes, domain: Domain, written: Callable[[bytes], bool]) -> None:
    """Refuse bytes that are not, line by line, those of a pattern in the domain, each with properties so `written`."""
    crs, foot = json.dumps(crs_member(domain.crs)), "\n]}\n"
    head = f'{{"type": "FeatureCollection",\n"crs": {crs},\n"features": [\n'
    whole = content.startswith(head.encode()) and content.endswith(foot.encode()) and len(content) >= len(head + foot)
    require(whole, "a pattern is a collection of features with the domain's CRS")
    (x0, y0, x1, y1), room = domain.bounds, NEAR * domain.diameter
    for lines in _lines(content, len(head.encode()), len(content) - len(foot)):
        xy = _coordinates(lines, written)
        near = (xy >= [x0 - room, y0 - room]) & (xy <= [x1 + room, y1 + room])
        require(bool(near.all()), "points lie in the domain")


def _lines(content: bytes, start: int, end: int) -> Iterator[list[bytes]]:
    """Lines between two places, some thousand at a time, without the commas and line ends between them."""
    while start < end:
        cut = content.find(b",\n", min(start + BLOCK, end), end)
        yield content[start : cut if cut >= 0 else end].split(b",\n")
        if cut == end - 2:
            # Nothing stands behind the last comma, which is no feature.
            yield [b""]
        start = cut + 2 if cut >= 0 else end


def _coordinates(lines: list[bytes], written: Callable[[bytes], bool]) -> NDArray[np.float64]:
    """(n, 2) coordinates of features, each a line, with properties so `written`."""
    points = [point.groups() for point in map(POINT.fullmatch, lines) if point is not None]
    marked = len(points) == len(lines) and all(map(written, {point[0] for point in points}))
    require(marked, "a feature is a point, with the marks that the release keeps and no other property")
    numbers = [number for point in points for number in point[1:]]
    values = [*map(float, numbers)]
    # A coordinate has one way to be written, so digits behind it have no room.
    shortest = ",".join(map(repr, values)).encode() == b",".join(numbers)
    require(shortest, "coordinates are in their shortest form")
    return np.array(values, dtype=np.float64).reshape(-1, 2)
