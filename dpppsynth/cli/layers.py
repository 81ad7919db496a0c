"""Reader of public landmarks."""

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dpppsynth.spatial.domains import Domain
    from dpppsynth.spatial.patterns import PointPattern


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
