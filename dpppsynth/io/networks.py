"""Readers of linear networks."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from dpppsynth.linear_network.network import LinearNetwork
from dpppsynth.linear_network.network_formats import skeleton_of_table
from dpppsynth.spatial.tables.formats import read_layer

if TYPE_CHECKING:
    from dpppsynth.core.crs import CRSLike


def read_network(
    path: str | Path,
    *,
    crs: CRSLike | None = None,
    to_crs: CRSLike | None = None,
    node: bool = False,
    join: float | None = None,
    largest_component: bool = False,
) -> LinearNetwork:
    """Read a public network: the lines of a GeoJSON, GeoPackage or GeoParquet file.

    Columns ``from`` and ``to`` that number the vertices from 0, each in one place, are kept unless lines are cut or
    joined: a network that `LinearNetwork.to_geojson` or `to_geodataframe` wrote comes back as it was.

    Parameters
    ----------
    path : str or Path
        File ending in .geojson, .json, .gpkg or .parquet.
    crs : str, int or pyproj.CRS, optional
        The CRS of a file that does not name one. GeoJSON without a ``crs`` member is in degrees.
    to_crs : str, int or pyproj.CRS, optional
        Re-project the coordinates of the lines to this CRS.
    node, join, largest_component
        As for `LinearNetwork.from_geodataframe`.

    Raises
    ------
    InputError
        The file is missing or unreadable, holds anything but lines, is in degrees, or is not a connected network.
    """
    table = read_layer(path, "a network is made of lines")
    parts = skeleton_of_table(table, crs, node, join, to_crs=to_crs, largest_component=largest_component)
    return LinearNetwork.from_skeleton(*parts)
