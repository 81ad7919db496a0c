"""`dpppsynth export`: what a release holds, in the formats of other programs."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from dpppsynth.cli import common_options as o
from dpppsynth.cli.console import progress, show_json, show_line
from dpppsynth.cli.input_options import said_of
from dpppsynth.cli.pattern_files import (
    Format,
    FormatOption,
    OutCrsOption,
    PlacesOption,
    require_crs,
    write_patterns,
)
from dpppsynth.core.arguments import positive, probability
from dpppsynth.core.atomic_files import DRAFT, name_leftovers
from dpppsynth.core.errors import InputError
from dpppsynth.core.output_folder import require_new_folder
from dpppsynth.core.progress import each_of
from dpppsynth.spatial.marks import listed

if TYPE_CHECKING:
    from dpppsynth.io import StreetNames
    from dpppsynth.release import Release, StratifiedRelease


class Surface(StrEnum):
    """Formats of an intensity."""

    TIF = "tif"
    CSV = "csv"
    GPKG = "gpkg"
    GEOJSON = "geojson"
    PARQUET = "parquet"


OutOption = Annotated[Path, o.option("New folder, outside the release.", o.WRITING)]
IntensityOption = Annotated[
    Surface | None,
    o.option(
        "Write the intensity: tif, a GeoTIFF raster; csv, a row for each cell, or for each part of a street; gpkg, "
        "geojson or parquet, these cells or parts as shapes, which QGIS opens coloured of gpkg.",
        o.WRITING,
        show_default=False,
    ),
]
SpacingOption = Annotated[
    float | None,
    o.option(
        "Side of the cells, or longest part of a street, in the domain's unit. Unless given: a round length, with "
        "at most 256 cells along the longer side.",
        o.WRITING,
    ),
]
ByOption = Annotated[
    str | None,
    o.option(
        "Of points with marks: types, time or types,time. An intensity for each type and period, as layers of gpkg, "
        "bands of tif, rows of others.",
        o.WRITING,
        show_default=False,
    ),
]
StreetNamesOption = Annotated[
    str | None,
    o.option(
        "Name of each street beside its intensity: the public file that --network was, and the column of names. --crs "
        "is that of a file that does not name one.",
        o.WRITING,
        "--street-names",
        metavar="FILE:COLUMN",
        show_default=False,
    ),
]
LevelOption = Annotated[float, o.option("Probability of the credible interval beside the intensity.", o.WRITING)]


def export(
    release: o.ReleaseArgument,
    out: OutOption,
    format: FormatOption = None,  # noqa: A002
    out_crs: OutCrsOption = None,
    places: PlacesOption = False,
    intensity: IntensityOption = None,
    spacing: SpacingOption = None,
    level: LevelOption = 0.9,
    by: ByOption = None,
    street_names: StreetNamesOption = None,
    crs: o.CrsOption = None,
    no_limit: o.NoLimitOption = False,
    json: o.JsonOption = False,
) -> None:
    """Write the patterns and the intensity of a release in the formats of other programs; free, as they are published.

    Without --format no pattern is written, without --intensity no intensity. A release by the levels of a mark has an
    intensity for each level.
    """
    _require_fit(format, out_crs, intensity, spacing, by, level, street_names, places=places)
    marks = [] if by is None else listed("by", by)
    settings: dict[str, Any] = {"spacing": spacing, "level": level, "by": marks}
    name_leftovers(out, DRAFT, "it holds a part of an export.")
    require_new_folder(out, "out")

    from dpppsynth.plotting import refuse_release_folder
    from dpppsynth.release.folder import open_release
    from dpppsynth.release.intensity_files import require_surface, slices_of

    refuse_release_folder(out, "--out")
    written: list[str] = []
    with progress() as say:
        say("opening the release")
        with open_release(release, limit=not no_limit) as found:
            if intensity is not None:
                for part in found.release.parts.values():
                    with said_of("--intensity", "path", "release"):
                        require_surface(part, f".{intensity}")
                    slices_of(part, marks)
                settings["names"] = _names(street_names, crs, found.release.domain)
            if format is not None:
                if not found.patterns:
                    msg = f"--format: {release} holds no synthetic pattern; dpppsynth sample draws some"
                    raise InputError(msg)
                files: dict[str, Any] = {"to_crs": out_crs, "places": places, "say": say}
                written += write_patterns(
                    found.patterns, map(found.pattern, found.patterns), out, found.release, format, **files
                )
            if intensity is not None:
                written += _write_intensities(found.release, out, intensity, say, **settings)
    if json:
        show_json({"out": str(out), "files": written})
    else:
        show_line("\n".join(str(out / name) for name in written))


def _require_fit(
    format: Format | None,  # noqa: A002
    out_crs: str | None,
    intensity: Surface | None,
    spacing: float | None,
    by: str | None,
    level: float,
    street_names: str | None,
    *,
    places: bool,
) -> None:
    """Refuse options without the one that they go with, before anything is opened."""
    if format is None and intensity is None:
        msg = "--format: give it, for the synthetic patterns, or --intensity, or both"
        raise InputError(msg)
    if format is None and (out_crs is not None or places):
        msg = "--out-crs and --places: go with --format, for the synthetic patterns"
        raise InputError(msg)
    for name, given in (("--spacing", spacing), ("--by", by), ("--street-names", street_names)):
        if intensity is None and given is not None:
            msg = f"{name}: goes with --intensity"
            raise InputError(msg)
    if spacing is not None:
        positive("spacing", spacing)
    probability("level", level)
    require_crs(out_crs)


def _names(given: str | None, crs: str | None, domain: Any) -> "StreetNames | None":
    """Names of streets from a file and its column."""
    if given is None:
        if crs is not None:
            msg = "crs: is that of the file of --street-names; leave --crs out"
            raise InputError(msg)
        return None
    from dpppsynth.io import StreetNames

    file, _, column = given.rpartition(":")
    if not file or not column:
        msg = f"--street-names: needs FILE:COLUMN, such as streets.gpkg:name; got {given!r}"
        raise InputError(msg)
    with said_of("--street-names", "names", "path"):
        return StreetNames.read(file, column, domain, crs=crs)


def _write_intensities(
    release: "Release | StratifiedRelease", out: Path, kind: Surface, say: Any, **settings: Any
) -> list[str]:
    from dpppsynth.release import write_intensity

    out.mkdir(parents=True, exist_ok=True)
    parts: list[tuple[str, Any]] = list(zip(release.prefixes, release.parts.values(), strict=True))
    for start, part in each_of(say, "writing the intensity", parts):
        write_intensity(part, out / f"{start}intensity.{kind}", **settings)
    return [f"{start}intensity.{kind}" for start, _ in parts]
