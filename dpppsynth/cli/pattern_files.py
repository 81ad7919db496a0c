"""Options of files of synthetic patterns beside a release, and their writing."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from dpppsynth.cli import common_options as o
from dpppsynth.cli.input_options import said_of
from dpppsynth.core.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from dpppsynth.core.progress import Progress
    from dpppsynth.spatial.domains import Domain
    from dpppsynth.spatial.patterns import PointPattern


class Format(StrEnum):
    """Formats of patterns alone."""

    GEOJSON = "geojson"
    CSV = "csv"
    GPKG = "gpkg"
    PARQUET = "parquet"


FormatOption = Annotated[
    Format | None,
    o.option(
        "Format of patterns written into --out alone; days since a date are dates there. Unless given: geojson.",
        o.WRITING,
    ),
]
OutCrsOption = Annotated[
    str | None,
    o.option(
        "Coordinate system of patterns written into --out alone, such as EPSG:4326 for longitude and latitude.",
        o.WRITING,
    ),
]
PlacesOption = Annotated[
    bool,
    o.option(
        "On a network, also write the number of each point's edge and its distance along it.", o.WRITING, "--places"
    ),
]


def require_crs(out_crs: str | None) -> None:
    """Refuse an unknown coordinate system before a folder is made, with an InputError."""
    if out_crs is not None:
        from dpppsynth.core.crs import known_crs

        with said_of("--out-crs", "crs", "to_crs"):
            known_crs(out_crs)


def write_patterns(
    names: "Sequence[str]",
    patterns: "Iterable[PointPattern]",
    folder: Path,
    release: Any,
    kind: Format | None,
    *,
    to_crs: str | None,
    places: bool = False,
    say: "Progress",
) -> list[str]:
    """Write patterns, one at a time, under their names in a release; returns the names of the files.

    Raises
    ------
    InputError
        Before a folder is made, where the release's domain has no edges, or no coordinate system to re-project from.
    """
    from dpppsynth.contract.result import marks_of
    from dpppsynth.core.progress import part_progress
    from dpppsynth.io import write_pattern
    from dpppsynth.release.folder_writing import WRITING

    _require_domain(release.domain, to_crs, places=places)
    folder.mkdir(parents=True, exist_ok=True)
    described, written = marks_of(release), []
    for k, (name, pattern) in enumerate(zip(names, patterns, strict=True)):
        path = (folder / name).with_suffix(f".{kind or Format.GEOJSON}")
        part = part_progress(say, WRITING, k, len(names))
        write_pattern(pattern, path, described=described, to_crs=to_crs, places=places, progress=part)
        written.append(path.name)
    return written


def _require_domain(domain: "Domain", to_crs: str | None, *, places: bool) -> None:
    from dpppsynth.linear_network import LinearNetwork

    if places and not isinstance(domain, LinearNetwork):
        msg = "--places: names edges of a network, and this release has a window; leave it out"
        raise InputError(msg)
    if to_crs is not None and domain.crs is None:
        msg = "--out-crs: the release names no coordinate system to re-project from; leave it out"
        raise InputError(msg)
