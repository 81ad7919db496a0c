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

OutOption = Annotated[
    Path | None, o.option("New folder for the patterns alone, or, with --inference, for the new release.", o.WRITING)
]


SeedOption = Annotated[
    int | None,
    o.option(
        "Seed of the draws: the same patterns again, which is safe, for they come from what is private already.",
        o.HOW,
        min=0,
    ),
]
AgainOption = Annotated[o.Inference | None, o.option("Infer again from the saved private statistic first.", o.HOW)]


def sample(
    release: o.ReleaseArgument,
    patterns: o.PatternsOption = 1,
    fixed_n: o.FixedNOption = False,
    source: o.SourceOption = o.Source.RELEASED,
    inference: AgainOption = None,
    engine: o.EngineOption = None,
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
    if engine is not None and inference is not o.Inference.NUTS:
        msg = "engine: goes with --inference nuts; leave it out"
        raise InputError(msg)
    if inference is not None and out is None:
        msg = "--out: inference makes a new release; name a new folder for it"
        raise InputError(msg)
    if (format is not None or out_crs is not None or places) and (out is None or inference is not None):
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
    from dpppsynth.release.folder_writing import save
    from dpppsynth.spatial.pattern_sources import synthetic

    folder, failed = release_folder(release), None
    with progress() as say:
        say("opening the release")
        opened: Any = load_release(release, limit=not no_limit)
        _require_fit(opened, folder, fixed_n=fixed_n, again=inference is not None)
        if inference is not None:
            changes: dict[str, Any] = {"inference": str(inference)} | (
                {} if engine is None else {"engine": str(engine)}
            )
            opened = opened.infer(progress=say, **changes)
        say("drawing synthetic patterns")
        drawn = opened.sample(patterns, seed, source=str(source), fixed_n=fixed_n)
        if inference is not None and out is not None:
            save(opened, out, drawn, progress=say)
        elif out is not None:
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


def _require_fit(release: "Release | StratifiedRelease", folder: Path, *, fixed_n: bool, again: bool) -> None:
    from dpppsynth.contract import registry
    from dpppsynth.release import CoxRelease

    parts = list(release.parts.values())
    cox = [part for part in parts if isinstance(part, CoxRelease)]
    if not cox:
        msg = f"release: {folder} {registry.of(release).words.spent(parts[0].mechanism)}"
        raise InputError(msg)
    if fixed_n and not release.guarantee.relation.n_is_public:
        msg = "fixed_n: the number of points is secret in this release; leave --fixed-n out"
        raise InputError(msg)
    if again and not any(part.estimator.has_posterior for part in cox):
        msg = f"inference: a {cox[0].mechanism} release has no posterior; leave --inference out"
        raise InputError(msg)
    if not again and not all(part.inferred for part in cox):
        msg = (
            f"release: {folder} holds a private statistic from which nothing has been inferred yet; "
            f"dpppsynth sample {folder} --inference laplace --out NEW"
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
