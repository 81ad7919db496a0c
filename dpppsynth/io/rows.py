"""Rows of a file of points: coordinates in the CRS of the file, and the columns beside them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dpppsynth.core.crs import is_in_degrees, known_crs, reproject, same_crs
from dpppsynth.core.errors import InputError
from dpppsynth.core.rounding import nearest_multiples

if TYPE_CHECKING:
    from dpppsynth.core.crs import CRSLike
    from dpppsynth.spatial.patterns import PointPattern

# Columns of a network's points: number of the edge, and distance along it from its start.
PLACES = ("edge", "along")
# Spacing of re-projected coordinates in degrees: a tenth of a millimetre on the ground.
DEGREES = 1e-9


@dataclass(frozen=True, eq=False, repr=False)
class WrittenPoints:
    """Points as a file holds them.

    Attributes
    ----------
    xy : (n, 2) array
        Coordinates; of degrees longitude before latitude.
    columns : dict of str to (n,) array
        Marks and, where wanted, places on a network.
    crs : str or None
    """

    xy: NDArray[np.float64]
    columns: dict[str, NDArray[Any]]
    crs: str | None


def written_points(pattern: PointPattern, *, to_crs: CRSLike | None = None, places: bool = False) -> WrittenPoints:
    """Rows of a pattern.

    Parameters
    ----------
    pattern : PointPattern
    to_crs : str, int or pyproj.CRS, optional
        Re-project to this system, degrees among them; coordinates are rounded to a billionth of a degree, or to the
        public grid of the pattern's domain.
    places : bool
        Whether points on a network have the columns `PLACES`.

    Raises
    ------
    InputError
        The pattern has no CRS to re-project from, or no accurate way leads to the other; or a mark is named like a
        column of places.
    """
    from dpppsynth.linear_network import LinearNetwork

    columns = dict(pattern.marks or {})
    if places and isinstance(pattern.domain, LinearNetwork):
        clash = set(PLACES) & set(columns)
        if clash:
            msg = f"marks: the names {sorted(clash)} are taken by places on the network; rename these marks"
            raise InputError(msg)
        along = nearest_multiples(pattern.positions[:, 1], pattern.domain.resolution)
        columns |= {PLACES[0]: pattern.positions[:, 0].astype(np.int64), PLACES[1]: along}
    source = pattern.domain.crs
    if to_crs is None:
        return WrittenPoints(pattern.xy, columns, source)
    target = known_crs(to_crs)
    if source is None:
        msg = "to_crs: the pattern's domain has no CRS to re-project from; name it when the release is made"
        raise InputError(msg)
    if same_crs(source, target):
        return WrittenPoints(pattern.xy, columns, source)
    step = DEGREES if is_in_degrees(target) else pattern.domain.resolution
    moved = reproject(pattern.xy, source, target)
    if not np.isfinite(moved).all():
        msg = "to_crs: some places of the domain have no coordinates in this system; choose another"
        raise InputError(msg)
    return WrittenPoints(nearest_multiples(moved, step), columns, target)
