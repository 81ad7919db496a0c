"""`dpppsynth evaluate`: utility of synthetic patterns against the original, for the custodian alone."""

from dataclasses import dataclass
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
    from dpppsynth.privacy.relations import KeptCap
    from dpppsynth.spatial.domains import Domain
    from dpppsynth.spatial.mark_space import Marks
    from dpppsynth.spatial.patterns import PointPattern

SENTENCE = (
    "It compares with the sensitive points, so it is confidential and itself not private: keep it out of every release."
)

SyntheticArgument = Annotated[
    list[Path],
    Argument(
        help="Folder of a saved release, or patterns in it; or other files of synthetic points, with their domain. "
        "Columns of a CSV file are x and y; or, where it has no such, those that --x and --y name.",
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
UserOption = Annotated[
    str | None,
    o.option(
        "Column of the original that tells persons, where a release counts a few points of each: so many are compared, "
        "drawn at random. Unless given: the column that the release names, if the original has it.",
        o.READING,
        metavar="COLUMN",
    ),
]
ShowOption = Annotated[bool, o.option("Print the figures too, where nobody else can see them.", o.WRITING, "--show")]


@dataclass(frozen=True, kw_only=True)
class Compared:
    """Things to compare: a domain, synthetic patterns in it, and what a release says of their points.

    Attributes
    ----------
    domain : Window or LinearNetwork
    patterns : list of PointPattern
    heat : HeatMapped or None
        The release, where it is of heat maps.
    described : Marks or None
    by : str or None
        Mark of the levels.
    cap : KeptCap or None
        Points of each person that the release is made of.
    """

    domain: "Domain"
    patterns: "list[PointPattern]"
    heat: "HeatMapped | None" = None
    described: "Marks | None" = None
    by: str | None = None
    cap: "KeptCap | None" = None


def evaluate(
    points: o.PointsArgument,
    synthetic: SyntheticArgument,
    place: OptionalDomainOptions,
    kept: MarkOptions,
    layout: LayoutOptions,
    out: OutOption = None,
    count: o.CountOption = None,
    user: UserOption = None,
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
    each level is compared as well, where the original has the column of the levels. A release brings its own domain;
    points in another coordinate system are re-projected to it.
    """
    from dpppsynth.evaluation.report_files import contents, require_private_folder, save

    points, layout = layout.of(points)
    folder = o.private_folder(out)
    require_private_folder(folder, "--out")

    from dpppsynth.evaluation.utility_report import evaluate as compare
    from dpppsynth.io import read_pattern, require_head

    with progress() as say:
        say("reading the synthetic patterns")
        found = _patterns(synthetic, place, kept.described(), layout, limit=not no_limit)
        domain, described, by = found.domain, found.described, found.by
        require_snap(domain, snap)
        say("reading the points")
        crs: dict[str, Any] = {"crs": place.crs, "to_crs": place.to_crs or _own_crs(points, domain, place, layout)}
        head = require_head(points, domain, **layout.reading, **crs)
        if by is not None and by not in head:
            note(f"the original has no column {by!r}, so the levels of the release are not compared")
            by = None
        column = _person_column(found, user, head)
        with said_of(f"points: the release's certificate tells persons by {column!r}, so must the original", "user"):
            require_own_columns(points, layout.x, layout.y, count=count, user=column, by=by, **columns_of(described))
            marks = () if by is None else (by,)
            reading: dict[str, Any] = {"count": count, "user": column, "snap": snap, "described": described}
            reading["marks"] = marks
            original = read_pattern(points, domain, **layout.reading, **crs, **reading)
        more: dict[str, Any] = {"release": found.heat, "described": described, "by": by, "progress": say}
        report = compare(_of_few(original, found, column), found.patterns, side=side, bandwidth=bandwidth, **more)
        say("writing the report")
        save(report, folder, "--out")
    if json:
        files = sorted(path.name for path in folder.iterdir())
        show_json({"out": str(folder), "note": SENTENCE, "files": files} | (contents(report) if show else {}))
        return
    if show:
        show_line(f"{report}\n")
    show_line(f"Written to {folder}. {SENTENCE}")


def _own_crs(points: Path, domain: "Domain", place: OptionalDomainOptions, layout: LayoutOptions) -> str | None:
    """The domain's coordinate system, to which points in another known one are re-projected."""
    from dpppsynth.core.crs import same_crs
    from dpppsynth.spatial.tables.formats import read_head

    stated = read_head(points, crs=place.crs, **layout.reading).crs
    return domain.crs if stated is not None and domain.crs is not None and not same_crs(stated, domain.crs) else None


def _person_column(found: Compared, user: str | None, head: tuple[str, ...]) -> str | None:
    """Column of the original that tells persons; None where none is needed."""
    if found.heat is not None:
        return user or found.heat.user
    if found.cap is None:
        if user is not None:
            msg = "user: these patterns are of points, whosever they are; leave --user out"
            raise InputError(msg)
        return None
    few = "one point" if found.cap.most == 1 else f"at most {found.cap.most} points"
    column = user or (found.cap.user if found.cap.user in head else None)
    drawn = "all points of the original are compared" if column is None else "so is what it is compared with"
    note(f"this release is made of {few} of each person, drawn at random; {drawn}")
    return column


def _of_few(original: "PointPattern", found: Compared, column: str | None) -> "PointPattern":
    """The original as the release reads it: the persons under its own name, or so many points of each."""
    from dpppsynth.spatial.patterns import PointPattern
    from dpppsynth.spatial.person_points import few_points_each

    if column is None:
        return original
    if found.cap is not None:
        return few_points_each(original, column, found.cap.most)
    own = None if found.heat is None else found.heat.user
    if own in (None, column):
        return original
    marks = {str(own) if name == column else name: values for name, values in (original.marks or {}).items()}
    return PointPattern.at(original.positions, original.domain, marks)


def _patterns(
    synthetic: list[Path],
    place: OptionalDomainOptions,
    described: "Marks | None",
    layout: LayoutOptions,
    *,
    limit: bool,
) -> Compared:
    """The public domain, the patterns of a release or of files; a release of heat maps; marks and levels."""
    from dpppsynth.release.certificate import FILENAME, SYNTHETIC

    for path in synthetic:
        if not path.exists():
            msg = f"SYNTHETIC: there is no file or folder {str(path)!r}"
            raise InputError(msg)
    releases = [path for path in synthetic if path.is_dir() or path.name == FILENAME]
    own = all(SYNTHETIC.fullmatch(path.name) and (path.parent / FILENAME).is_file() for path in synthetic)
    only: list[str] = []
    if own and not place.given and len({path.parent for path in synthetic}) == 1:
        releases, only = [synthetic[0].parent], [path.name for path in synthetic]
    if not releases:
        domain = place.settled().domain()
        read = [_pattern(path, domain, described, layout) for path in synthetic]
        return Compared(domain=domain, patterns=read, described=described)
    if len(synthetic) > 1 and not only:
        msg = "SYNTHETIC: give the folder of one release, or files of synthetic points"
        raise InputError(msg)
    if place.given:
        msg = f"{place.given[0]}: a release brings its own domain; leave it out"
        raise InputError(msg)
    if described is not None:
        msg = f"{'types' if described.types else 'time'}: a release brings its own types and times; leave it out"
        raise InputError(msg)
    return _released(releases[0], only, limit=limit)


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


def _released(path: Path, only: list[str], *, limit: bool) -> Compared:
    """Domain and synthetic patterns of a saved release, all or `only` some; itself if it is of heat maps."""
    from dpppsynth.contract.result import HeatMapped, marks_of
    from dpppsynth.release.folder import open_release

    with open_release(path, limit=limit) as found:
        release = found.release
        described, by = marks_of(release), getattr(release, "by", None)
        marked = described is not None or by is not None
        patterns = [found.pattern(name, marked=marked) for name in only or found.patterns]
    heat = release if isinstance(release, HeatMapped) else None
    if heat is not None:
        note("a pattern of this release has one point for each person, however many they have in the original")
    if not patterns:
        msg = f"SYNTHETIC: {path} holds no synthetic pattern; see dpppsynth sample"
        raise InputError(msg)
    told: dict[str, Any] = {"heat": heat, "described": described, "by": by}
    cap = None if heat is not None else release.guarantee.relation.user_cap
    return Compared(domain=release.domain, patterns=patterns, cap=cap, **told)
