"""Points of a file that is read some rows at a time, for releases that are sums over points."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpppsynth.io.reading import require_head
from dpppsynth.spatial.domains import Domain
from dpppsynth.spatial.mark_space import Marks
from dpppsynth.spatial.patterns import PointPattern
from dpppsynth.spatial.tables.formats import as_path
from dpppsynth.spatial.tables.rows import require_snap

if TYPE_CHECKING:
    from dpppsynth.core.crs import CRSLike


@dataclass(frozen=True, eq=False, repr=False)
class PointBatches:
    """Patterns of consecutive rows of a file, read anew whenever they are iterated over.

    The names of columns and the CRS of the file are checked when it is made, rows when they are read. It can be sent to
    other processes that see the file.

    Attributes
    ----------
    path : Path
    domain : Window or LinearNetwork
    layout, rules, snap : dict, dict, float or None
        Arguments of `read_batches`.
    """

    path: Path
    domain: Domain
    layout: Mapping[str, Any]
    rules: Mapping[str, Any]
    snap: float | None

    def __post_init__(self) -> None:
        require_head(self.path, self.domain, **self.layout, **self.rules)
        require_snap(self.domain, self.snap)

    def __repr__(self) -> str:
        return f"PointBatches({self.path.name!r}, {self.domain!r})"

    def __iter__(self) -> Iterator[PointPattern]:
        return PointPattern.batches(self.path, self.domain, layout=self.layout, snap=self.snap, **self.rules)

    def count(self) -> int:
        """Number of points, for a public n: all rows are read and checked, and nothing is kept of them.

        Raises
        ------
        InputError
        """
        return sum(len(batch) for batch in self)


def read_batches(
    path: str | Path,
    domain: Domain,
    *,
    x: str | None = None,
    y: str | None = None,
    separator: str | None = None,
    decimal: str | None = None,
    layer: str | None = None,
    crs: CRSLike | None = None,
    to_crs: CRSLike | None = None,
    count: str | None = None,
    described: Marks | None = None,
    snap: float | None = None,
) -> PointBatches:
    """Read a sensitive pattern that may be larger than memory, some rows at a time.

    Rows of CSV files, compressed or not, of GeoParquet files, and of GeoPackage layers of plain points are in memory
    some 100 000 at a time; other files are read as a whole. `ReleasePlan.partial` adds the batches up.

    Parameters
    ----------
    path, domain, x, y, separator, decimal, layer, crs, to_crs, count, described, snap
        As for `read_pattern`.

    Returns
    -------
    PointBatches

    Raises
    ------
    InputError
        The file is missing, lacks a column or has another CRS than the domain. That a row breaks a rule is said at the
        end of the file, with all rules that are broken, as `read_pattern` says it.
    """
    layout = {"x": x, "y": y, "separator": separator, "decimal": decimal, "layer": layer}
    rules = {"crs": crs, "to_crs": to_crs, "count": count, "described": described}
    return PointBatches(as_path(path), domain, layout, rules, snap)
