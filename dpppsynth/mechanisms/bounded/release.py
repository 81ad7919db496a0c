"""`BoundedErrorRelease`: counts with bounded errors; `BoundedErrorSeries`: a series of them over levels."""

from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from dpppsynth.contract.result import CountTable
from dpppsynth.core.errors import InputError
from dpppsynth.core.published_files import plain_text
from dpppsynth.core.randomness import RngLike
from dpppsynth.inference.filters.series import Filtered
from dpppsynth.inference.filters.smoother import by_method
from dpppsynth.mechanisms.bounded.statistic import BoundedCounts, counted_cells
from dpppsynth.release import folder_writing
from dpppsynth.release.certificate import COUNTS
from dpppsynth.release.cox import CoxRelease
from dpppsynth.release.stratified_release import StratifiedRelease
from dpppsynth.spatial.mesh import Floats, Ints, Mesh

# Names of the columns with a cell's place.
CORNERS = ("x0", "y0", "x1", "y1")

if TYPE_CHECKING:
    from geopandas import GeoDataFrame


def corners(mesh: Mesh) -> list[list[float]]:
    """Opposite corners of cells, or the two ends of segments."""
    vertices = mesh.vertices[mesh.elements]
    if vertices.shape[1] == 2:
        return vertices.reshape(-1, 4).tolist()
    low, high = vertices.min(axis=1), vertices.max(axis=1)
    return [[*a, *b] for a, b in zip(low.tolist(), high.tolist(), strict=True)]


class BoundedErrorRelease(CoxRelease[BoundedCounts]):
    """Result of counting points in cells with bounded error: everything in it is public."""

    series: ClassVar[type["BoundedErrorSeries"]]

    @property
    def max_error(self) -> int:
        """Bound on the error of every count, in `raw` and in `counts`."""
        return self.statistic.definition.max_error

    @property
    def raw(self) -> Ints:
        """(T,) noised counts of the elements of the statistic's mesh; some may be negative."""
        return self.statistic.lattice

    @cached_property
    def counts(self) -> Ints:
        """(T,) `raw` with zeros for negative counts, which brings no count further from the truth."""
        counts = np.maximum(self.raw, 0)
        counts.flags.writeable = False
        return counts

    def count_table(self, *, filtered: bool = False) -> CountTable:
        """A row for each cell: corners and count; there are no levels over which counts could be smoothed."""
        if filtered:
            msg = (
                "filtered: counts are smoothed over the levels of a mark, which this release has none of; leave it out"
            )
            raise InputError(msg)
        rows = zip(corners(self.mesh), self.counts.tolist(), strict=True)
        figures = {"max_error": self.max_error}
        return CountTable([*CORNERS, "count"], ([*place, count] for place, count in rows), figures)

    def write(self, folder: Path, start: str = "") -> None:
        super().write(folder, start)
        folder_writing.put(plain_text(self.to_geojson()), folder / (start + COUNTS))

    def to_geojson(self) -> dict[str, Any]:
        """Cells with their counts, as the file of a saved release holds them, in the CRS of the domain.

        A cell is the part of an element inside the window, or a segment of a street; `count` is never further than
        `max_error` from the truth.
        """
        return counted_cells(self.statistic.definition.mesh, self.counts)

    def to_geodataframe(self) -> "GeoDataFrame":
        """Cells with their counts, and the counts as they were drawn, as a GeoDataFrame in the CRS of the domain."""
        import geopandas

        columns = {"count": self.counts, "raw": self.raw}
        cells = self.statistic.definition.mesh.element_parts
        return geopandas.GeoDataFrame(columns, geometry=cells, crs=self.domain.crs)


class BoundedErrorSeries(StratifiedRelease):
    """Counts with bounded error for each level of a mark, such as months, in the order of the levels."""

    @staticmethod
    def fits(releases: Mapping[str, Any]) -> bool:
        """Whether all levels have the same cells, so that their counts form a series."""
        meshes = [release.statistic.definition.mesh.recipe for release in releases.values()]
        return all(mesh == meshes[0] for mesh in meshes)

    @property
    def max_error(self) -> int:
        """Bound on the error of every count, in `raw` and in `counts`."""
        return max(part.max_error for part in self._parts)

    @property
    def raw(self) -> Ints:
        """(levels, T) noised counts; some may be negative."""
        return np.array([part.raw for part in self._parts])

    @property
    def counts(self) -> Ints:
        """(levels, T) `raw` with zeros for negative counts."""
        return np.maximum(self.raw, 0)

    @cached_property
    def filtered(self) -> Floats:
        """(levels, T) counts made smoother over the levels by `filter` with its own settings; as private as `raw`."""
        return self.filter(rng=0).estimate

    def count_table(self, *, filtered: bool = False) -> CountTable:
        """A row for each cell of each level: level, corners, count, and counts as drawn and smoothed if `filtered`."""
        header, most = [self.by, *CORNERS, "count"], {"max_error": self.max_error}
        if not filtered:
            return CountTable(header, self._rows(), most)
        most |= {"max_error_filtered": 2 * self.max_error}
        return CountTable([*header, "raw", "filtered"], self._rows(filtered=True), most, self.by)

    def _rows(self, *, filtered: bool = False) -> Iterator[list[Any]]:
        # Smoothed counts are not negative either, which brings none further from the truth.
        more = [self.raw, self.filtered.clip(0).round(3)] if filtered else []
        lists = [each.tolist() for each in [self.counts, *more]]
        for (level, part), *lines in zip(zip(self.levels, self._parts, strict=True), *lists, strict=True):
            for place, *values in zip(corners(part.statistic.definition.mesh), *lines, strict=True):
                yield [level, *place, *values]

    def to_geodataframe(self) -> "GeoDataFrame":
        """Rows of all levels, one below the other, with the level in the column of the mark."""
        import pandas

        tables = [
            part.to_geodataframe().assign(**{self.by: level})
            for level, part in zip(self.levels, self._parts, strict=True)
        ]
        table: GeoDataFrame = pandas.concat(tables, ignore_index=True)
        return table

    def filter(
        self,
        *,
        method: str = "particles",
        step: Any = "likely",
        particles: int = 1000,
        proposal: str = "bootstrap",
        resample: bool = True,
        rng: RngLike = None,
    ) -> Filtered:
        """Series of every cell, estimated from the raw counts by a filter or smoother; free, as it uses nothing else.

        It helps where counts change little from level to level, beside the noise; the particle filter lags behind where
        one jumps. The error of a filtered count may be twice `max_error`.

        Parameters
        ----------
        method : {"particles", "smoother"}
            A particle filter, which sees the levels up to each; or `filters.pooled_smoother`, which also sees later
            ones, knows jumps and learns from all cells how much counts change: the more accurate of the two.
        step : {"likely", "differences"}, float or (T,) array
            By how much a count changes from one level to the next, for every cell its own where it is estimated; as in
            `filters.particle_filter`, like the others.
        particles, proposal, resample, rng
            As in `filters.particle_filter`.
        """
        plan = self._parts[0].statistic.definition
        law: dict[str, Any] = {"scale": plan.scale, "bound": plan.max_error, "step": step}
        return by_method(
            method, self.raw, law, {"particles": particles, "proposal": proposal, "resample": resample, "rng": rng}
        )

    @property
    def _parts(self) -> list[Any]:
        return list(self.releases.values())


# The result of a release by levels.
BoundedErrorRelease.series = BoundedErrorSeries
