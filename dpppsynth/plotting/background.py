"""`Background`: public roads, districts and landmarks on a map, for orientation."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import shapely
from numpy.typing import NDArray

from dpppsynth.core.crs import crs_label
from dpppsynth.core.errors import InputError
from dpppsynth.core.wording import mention
from dpppsynth.linear_network import LinearNetwork
from dpppsynth.spatial.domains import Domain
from dpppsynth.spatial.polygons import in_system
from dpppsynth.spatial.tables.formats import read_layer, tell_placeless
from dpppsynth.spatial.tables.frames import from_geodataframe
from dpppsynth.spatial.tables.table import Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from dpppsynth.core.crs import CRSLike

LINE, HALO, PLACE = "#4d4842", "white", "#2b2b2b"


@dataclass(frozen=True, eq=False, repr=False)
class Background:
    """Public lines, areas and places, drawn on a map for orientation: over its colours, and under its points.

    Areas are shown by their borders. `one + other` holds both.

    Attributes
    ----------
    geometries : (n,) array of shapely geometries
        In the coordinate system of the map.
    """

    geometries: NDArray[Any]

    @classmethod
    def read(cls, path: str | Path, domain: Domain, *, crs: CRSLike | None = None) -> Self:
        """Read a file of any geometries, and re-project it to the coordinate system of a domain.

        Parameters
        ----------
        path : str or Path
            A .geojson, .gpkg, .parquet or .shp file; one of several layers of a GeoPackage stands behind its name, as
            in ``"city.gpkg:roads"``.
        domain : Window or LinearNetwork
            That of the map.
        crs : str, int or pyproj.CRS, optional
            Coordinate system of a file that does not name one; the domain's unless given.

        Raises
        ------
        InputError
            The file cannot be read, names a coordinate system that cannot be taken to the domain's, or nothing in it
            lies on the map.
        """
        return cls._of(read_layer(path, "a background is made of geometries", crs=crs), domain, Path(path).name)

    @classmethod
    def from_geodataframe(cls, gdf: Any, domain: Domain) -> Self:
        """Take the geometries of a GeoDataFrame; errors as for `read`.

        Examples
        --------
        >>> import geopandas, shapely
        >>> from dpppsynth import Window
        >>> roads = geopandas.GeoDataFrame(geometry=[shapely.LineString([(0, 0), (9, 9)])])
        >>> Background.from_geodataframe(roads, Window.rectangle(0, 0, 10, 10))
        Background(1 geometry)
        """
        return cls._of(from_geodataframe(gdf), domain, "gdf")

    @classmethod
    def _of(cls, table: Table, domain: Domain, name: str) -> Self:
        shapes = table.geometry
        tell_placeless(shapes, name)
        shapes = shapely.force_2d(shapes[~(shapely.is_missing(shapes) | shapely.is_empty(shapes))])
        source, target = table.crs, domain.crs
        if source is not None and target is None:
            msg = f"background: {name} is in {crs_label(source)} and the domain has no CRS; take a file that names none"
            raise InputError(msg)
        found = cls(np.asarray(in_system(shapes, source, target), dtype=object).reshape(-1))
        if not len(_within(found.geometries, view(domain))):
            msg = (
                f"background: nothing in {name} lies on the map; check the place, and the coordinate system "
                f"({mention('crs')} of a file that names none)"
            )
            raise InputError(msg)
        return found

    def __add__(self, other: Background) -> Background:
        return Background(np.concatenate([self.geometries, other.geometries]))

    def __repr__(self) -> str:
        count = len(self.geometries)
        return f"Background({count} geometr{'y' if count == 1 else 'ies'})"

    def draw(self, domain: Domain, ax: Axes) -> None:
        """Draw what lies on the map of a domain."""
        from matplotlib.collections import LineCollection

        shapes = _within(self.geometries, view(domain))
        kind = shapely.get_dimensions(shapes)
        lines = [
            *(shapely.get_coordinates(each) for each in shapes[kind == 1]),
            *(shapely.get_coordinates(ring) for ring in shapely.get_rings(shapes[kind == 2])),
        ]
        # Over the colours of a window, and under those of streets.
        level = 0.3 if isinstance(domain, LinearNetwork) else 1.5
        for k, (colour, width, opacity) in enumerate([(HALO, 1.5, 0.45), (LINE, 0.6, 0.6)]):
            style: dict[str, Any] = {"colors": colour, "linewidths": width, "alpha": opacity, "zorder": level + k / 100}
            ax.add_collection(LineCollection(lines, **style), autolim=False)
        if (kind == 0).any():
            at = shapely.get_coordinates(shapes[kind == 0])
            # A square: dots are points of a pattern.
            ax.scatter(at[:, 0], at[:, 1], marker="s", s=16, color=PLACE, edgecolors=HALO, linewidths=0.6, zorder=2.7)


def view(domain: Domain) -> tuple[float, float, float, float]:
    """Box (x0, y0, x1, y1) of a map: that of the domain with a thin margin."""
    x0, y0, x1, y1 = frame(domain)
    margin = MARGIN * max(x1 - x0, y1 - y0)
    return x0 - margin, y0 - margin, x1 + margin, y1 + margin


def frame(domain: Domain) -> tuple[float, float, float, float]:
    """Bounding box (x0, y0, x1, y1) of the domain, widened where a network is flat: a picture needs two dimensions."""
    x0, y0, x1, y1 = domain.bounds
    least = max(x1 - x0, y1 - y0) / 20
    dx, dy = max(0.0, least - (x1 - x0)) / 2, max(0.0, least - (y1 - y0)) / 2
    return x0 - dx, y0 - dy, x1 + dx, y1 + dy


# Share of the longer side that a map shows beyond its domain.
MARGIN = 0.015


def _within(shapes: NDArray[Any], box: tuple[float, float, float, float]) -> NDArray[Any]:
    """Parts of the geometries in a box."""
    finite = np.array([np.isfinite(shapely.get_coordinates(each)).all() for each in shapes], dtype=bool)
    kept = shapely.clip_by_rect(shapes[finite], *box)
    parts = shapely.get_parts(kept)
    # Parts of collections may be such themselves.
    parts = shapely.get_parts(parts)
    return np.asarray(parts[~shapely.is_empty(parts)], dtype=object)
