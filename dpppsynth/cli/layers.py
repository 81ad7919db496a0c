"""Readers of public layers: offsets and landmarks."""

from pathlib import Path
from typing import TYPE_CHECKING

from dpppsynth.core.errors import InputError

if TYPE_CHECKING:
    from dpppsynth.spatial.domains import Domain
    from dpppsynth.spatial.offset import Offset
    from dpppsynth.spatial.patterns import PointPattern


def read_offset(path: Path, column: str, domain: "Domain") -> "Offset":
    """Read a public base intensity from a polygon layer, re-projected to the domain's CRS where the file names one.

    Raises
    ------
    InputError
        The file cannot be read, lacks the column, or holds values or polygons that an offset cannot have.
    """
    import numpy as np
    import shapely

    from dpppsynth.core.crs import reproject, same_crs
    from dpppsynth.spatial.offset import Offset
    from dpppsynth.spatial.tables.formats import read_table

    if path.suffix.lower() == ".csv":
        msg = "--offset-file: polygons are needed, which CSV does not hold; give a .geojson, .gpkg or .parquet file"
        raise InputError(msg)
    table = read_table(path)
    try:
        values = np.asarray(table.column(column, argument="--offset-column"), dtype=float)
    except (TypeError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        msg = f"--offset-column: {column!r} must hold numbers only"
        raise InputError(msg) from None
    shapes = shapely.force_2d(table.geometry)
    source, target = table.crs, domain.crs
    if source is not None and target is None:
        msg = "--offset-file: it names a coordinate system and the domain has none; give --crs"
        raise InputError(msg)
    if source is not None and target is not None and not same_crs(source, target):
        shapes = shapely.transform(shapes, lambda xy: reproject(xy, source, target))
    parts, row = shapely.get_parts(shapes, return_index=True)
    return Offset(parts, values[row])


def read_landmarks(path: Path, domain: "Domain") -> "PointPattern":
    """Read public places, in the domain or outside it; a file without a CRS is taken to be in the domain's."""
    from dpppsynth.core.crs import crs_member
    from dpppsynth.io import read_pattern
    from dpppsynth.models.recipes import domain_of_release
    from dpppsynth.spatial.domains import Window
    from dpppsynth.spatial.tables.formats import read_table

    # Beyond the domain no lengths are compared with true ones: none are measured among landmarks.
    plane = Window.rectangle(-1e9, -1e9, 1e9, 1e9).to_geojson()
    everywhere = domain_of_release(plane | {"crs": crs_member(domain.crs)}, None)
    named = read_table(path).crs is not None
    return read_pattern(path, everywhere, to_crs=domain.crs if named else None)
