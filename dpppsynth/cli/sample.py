"""`dpppsynth sample`: further patterns from a saved release, at no privacy cost."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from dpppsynth.cli import common_options as o
from dpppsynth.cli.console import note, progress, show_json, show_line
from dpppsynth.cli.pattern_files import (
    Format,
    FormatOption,
    OutCrsOption,
    PlacesOption,
    require_crs,
    write_patterns,
)
from dpppsynth.core.errors import DpppsynthError, InputError
from dpppsynth.core.output_folder import require_new_folder

if TYPE_CHECKING:
    from collections.abc import Callable

    from dpppsynth.release import Release, StratifiedRelease

OutOption = Annotated[Path | None, o.option("New folder for the patterns alone.", o.WRITING)]


SeedOption = Annotated[
    int | None,
    o.option(
        "Seed of the draws: the same patterns again, which is safe, for they come from what is private already.",
        o.HOW,
        min=0,
    ),
]


def sample(
    release: o.ReleaseArgument,
    patterns: o.PatternsOption = 1,
    fixed_n: o.FixedNOption = False,
    source: o.SourceOption = o.Source.RELEASED,
    seed: SeedOption = None,
    out: OutOption = None,
    format: FormatOption = None,  # noqa: A002
    out_crs: OutCrsOption = None,
    places: PlacesOption = False,
    no_limit: o.NoLimitOption = False,
    json: o.JsonOption = False,
) -> None:
    """Draw more synthetic patterns from a saved release; free, because it is already private.

    They are added to the release and its certificate, or written into --out alone. A report in the folder is made anew.
    """
    if (format is not None or out_crs is not None or places) and out is None:
        msg = (
            "format: goes with --out, as --out-crs and --places do, for patterns alone; the patterns of a release are "
            "GeoJSON"
        )
        raise InputError(msg)
    require_crs(out_crs)
    if out is not None:
        require_new_folder(out, "out")

    from dpppsynth.release import append_patterns, load_release
    from dpppsynth.release.folder import release_folder
    from dpppsynth.spatial.pattern_sources import synthetic

    folder, failed = release_folder(release), None
    with progress() as say:
        say("opening the release")
        opened: Any = load_release(release, limit=not no_limit)
        require_intensities(opened, folder, fixed_n=fixed_n)
        _require_inferred(opened, folder)
        say("drawing synthetic patterns")
        drawn = opened.sample(patterns, seed, source=str(source), fixed_n=fixed_n)
        if out is not None:
            names = [synthetic(k, each.source) for k, each in enumerate(drawn)]
            write_patterns(names, drawn, out, opened, format, to_crs=out_crs, places=places, say=say)
        else:
            append_patterns(folder, opened, drawn, progress=say)
            failed = _renew_report(folder, say, limit=not no_limit)
    if failed is not None:
        note(f"the report in {folder} is out of date, and could not be made anew: {failed}")
    where = out or folder
    if json:
        kind = format or Format.GEOJSON
        show_json({"out": str(where), "patterns": sorted(path.name for path in where.glob(f"synthetic_*.{kind}"))})
    else:
        use = "to combine for inference" if drawn[0].source == "draws" else "of one intensity: for maps, not to combine"
        show_line(f"Written to {where}: {patterns} synthetic pattern{'s' if patterns > 1 else ''}, {use}")


def require_intensities(release: "Release | StratifiedRelease", folder: Path, *, fixed_n: bool) -> None:
    """Refuse releases without an intensity to draw from, and --fixed-n where n is secret."""
    from dpppsynth.contract import registry
    from dpppsynth.release import CoxRelease

    parts = list(release.parts.values())
    if not any(isinstance(part, CoxRelease) for part in parts):
        msg = f"release: {folder} {registry.of(release).words.spent(parts[0].mechanism)}"
        raise InputError(msg)
    if fixed_n and not release.guarantee.relation.n_is_public:
        msg = "fixed_n: the number of points is secret in this release; leave --fixed-n out"
        raise InputError(msg)


def _require_inferred(release: "Release | StratifiedRelease", folder: Path) -> None:
    if not all(getattr(part, "inferred", True) for part in release.parts.values()):
        msg = (
            f"release: {folder} holds a private statistic from which nothing has been inferred yet; "
            f"dpppsynth infer {folder} --inference laplace --out NEW"
        )
        raise InputError(msg)


def _renew_report(folder: Path, say: "Callable[[str], object]", *, limit: bool) -> DpppsynthError | None:
    """Make the report in the folder anew, if there is one; returns what prevented it."""
    from dpppsynth.release.certificate import REPORT

    # Asked here, since the report's own modules take more than a second to load.
    if not (folder / REPORT).is_file():
        return None
    from dpppsynth.reporting import is_report, write_report

    try:
        if is_report(folder / REPORT):
            write_report(folder, progress=say, limit=limit)
    except DpppsynthError as error:
        return error
    return None
