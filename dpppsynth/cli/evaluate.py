"""`dpppsynth evaluate`: utility of synthetic patterns against the original, for the custodian alone."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument

from dpppsynth.cli import common_options as o
from dpppsynth.cli.console import note, progress, show_json, show_line
from dpppsynth.cli.input_options import (
    LayoutOptions,
    MarkOptions,
    OptionalDomainOptions,
    columns_of,
    require_own_columns,
    require_snap,
    said_of,
)
from dpppsynth.core.errors import InputError

if TYPE_CHECKING:
    from dpppsynth.contract.result import HeatMapped
    from dpppsynth.spatial.domains import Domain
    from dpppsynth.spatial.mark_space import Marks
    from dpppsynth.spatial.patterns import PointPattern

    Compared = tuple[Domain, list[PointPattern], HeatMapped | None, Marks | None, str | None]

SENTENCE = (
    "It compares with the sensitive points, so it is confidential and itself not private: keep it out of every release."
)

SyntheticArgument = Annotated[
    list[Path],
    Argument(
        help="Folder of a saved release; or files of synthetic points, with their domain. Columns of a CSV file are x "
        "and y; or, where it has no such, those that --x and --y name.",
        show_default=False,
    ),
]
OutOption = Annotated[
    Path | None, o.option("New or empty private folder for the report, outside every release.", o.WRITING)
]
SideOption = Annotated[
    float | None,
    o.option(
        "Side of the squares between which points are misplaced. Unless given: a tenth of the domain's extent.", o.HOW
    ),
]
SmoothingOption = Annotated[
    float | None,
    o.option(
        "Bandwidth of the kernel intensities, at least 1/150 of a window's extent. Unless given: a tenth of the "
        "domain's extent.",
        o.HOW,
        "--bandwidth",
    ),
]
ShowOption = Annotated[bool, o.option("Print the figures too, where nobody else can see them.", o.WRITING, "--show")]


def evaluate(
    points: o.PointsArgument,
    synthetic: SyntheticArgument,
    place: OptionalDomainOptions,
    kept: MarkOptions,
    layout: LayoutOptions,
    out: OutOption = None,
    count: o.CountOption = None,
    snap: o.SnapOption = None,
    side: SideOption = None,
    bandwidth: SmoothingOption = None,
    show: ShowOption = False,
    no_limit: o.NoLimitOption = False,
    json: o.JsonOption = False,
) -> None:
    """Score synthetic patterns against the original, and write a confidential report.

    The screen shows no figure unless --show is given. Of a heat map release, the heat map is scored too: the original
    must have the column that tells the persons. Of points with types and times these are compared as well: the
    original must have their columns, which a release names, and of files --types and --time. Of a release by levels
    each level is compared as well, where the original has the column of the levels.
    """
    from dpppsynth.evaluation.report_files import contents, require_private_folder, save

    folder = o.private_folder(out)
    require_private_folder(folder, "--out")

    from dpppsynth.evaluation.utility_report import evaluate as compare
    from dpppsynth.io import read_pattern, require_head

    with progress() as say:
        say("reading the synthetic patterns")
        domain, patterns, release, described, by = _patterns(
            synthetic, place, kept.described(), layout, limit=not no_limit
        )
        require_snap(domain, snap)
        say("reading the points")
        crs: dict[str, Any] = {"crs": place.crs, "to_crs": place.to_crs}
        if by is not None and by not in require_head(points, domain, **layout.reading, **crs):
            note(f"the original has no column {by!r}, so the levels of the release are not compared")
            by = None
        user = None if release is None else release.user
        with said_of(f"points: the release's certificate tells persons by {user!r}, so must the original", "user"):
            require_own_columns(points, layout.x, layout.y, count=count, user=user, by=by, **columns_of(described))
            marks = () if by is None else (by,)
            reading: dict[str, Any] = {"count": count, "user": user, "snap": snap, "described": described}
            reading["marks"] = marks
            original = read_pattern(points, domain, **layout.reading, **crs, **reading)
        more: dict[str, Any] = {"release": release, "described": described, "by": by, "progress": say}
        report = compare(original, patterns, side=side, bandwidth=bandwidth, **more)
        say("writing the report")
        save(report, folder, "--out")
    if json:
        files = sorted(path.name for path in folder.iterdir())
        show_json({"out": str(folder), "note": SENTENCE, "files": files} | (contents(report) if show else {}))
        return
    if show:
        show_line(f"{report}\n")
    show_line(f"Written to {folder}. {SENTENCE}")


def _patterns(
    synthetic: list[Path],
    place: OptionalDomainOptions,
    described: "Marks | None",
    layout: LayoutOptions,
    *,
    limit: bool,
) -> "Compared":
    """The public domain, the patterns of a release or of files; a release of heat maps; marks and levels."""
    from dpppsynth.release.certificate import FILENAME

    for path in synthetic:
        if not path.exists():
            msg = f"SYNTHETIC: there is no file or folder {str(path)!r}"
            raise InputError(msg)
    releases = [path for path in synthetic if path.is_dir() or path.name == FILENAME]
    if not releases:
        domain = place.settled().domain()
        return domain, [_pattern(path, domain, described, layout) for path in synthetic], None, described, None
    if len(synthetic) > 1:
        msg = "SYNTHETIC: give the folder of one release, or files of synthetic points"
        raise InputError(msg)
    if place.given:
        msg = f"{place.given[0]}: a release brings its own domain; leave it out"
        raise InputError(msg)
    if described is not None:
        msg = f"{'types' if described.types else 'time'}: a release brings its own types and times; leave it out"
        raise InputError(msg)
    return _released(releases[0], limit=limit)


def _pattern(path: Path, domain: "Domain", described: "Marks | None", layout: LayoutOptions) -> "PointPattern":
    """Synthetic points of a file: of the columns that we write, or else of those that hold the sensitive points."""
    from dpppsynth.io import read_pattern, read_synthetic
    from dpppsynth.spatial.patterns import PointPattern

    try:
        return read_synthetic(path, domain, described=described)
    except InputError as error:
        lacks_column = str(error).startswith(("x:", "y:"))
        columns = layout.reading | {"layer": None}
        if not lacks_column or not any(columns.values()):
            raise _said_of_file(error, path) from None
    try:
        found = read_pattern(path, domain, **columns, described=described)
    except InputError as error:
        raise _said_of_file(error, path) from None
    return PointPattern.at(found.positions, domain, found.marks, synthetic=True)


def _said_of_file(error: InputError, path: Path) -> InputError:
    """The error with the name of the file, where it is about a column that other files may have."""
    name, _, rest = str(error).partition(": ")
    bare = name in ("types", "time", "x", "y") and not rest.startswith(path.name)
    return InputError(f"{name}: {path.name}: {rest}") if bare else error


def _released(path: Path, *, limit: bool) -> "Compared":
    """Domain and synthetic patterns of a saved release; itself if it is of heat maps; marks and levels."""
    from dpppsynth.contract.result import HeatMapped, marks_of
    from dpppsynth.release.folder import open_release

    with open_release(path, limit=limit) as found:
        release = found.release
        described, by = marks_of(release), getattr(release, "by", None)
        marked = described is not None or by is not None
        patterns = [found.pattern(name, marked=marked) for name in found.patterns]
    domain = release.domain
    heat = release if isinstance(release, HeatMapped) else None
    if heat is not None:
        note("a pattern of this release has one point for each person, however many they have in the original")
    elif (cap := release.guarantee.relation.user_cap) is not None:
        few = "one point" if cap.most == 1 else f"at most {cap.most} points"
        note(f"this release is made of {few} of each person, drawn at random; all points of the original are compared")
    if not patterns:
        msg = f"SYNTHETIC: {path} holds no synthetic pattern; see dpppsynth sample"
        raise InputError(msg)
    return domain, patterns, heat, described, by
