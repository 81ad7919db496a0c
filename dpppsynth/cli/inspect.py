"""`dpppsynth inspect`: rows of a file of points that the custodian must clean before use."""

from pathlib import Path
from typing import Annotated, Any

import typer

from dpppsynth.cli import common_options as o
from dpppsynth.cli.console import show_json, show_line, show_text
from dpppsynth.cli.input_options import (
    DomainOptions,
    LayoutOptions,
    MarkOptions,
    columns_of,
    require_own_columns,
    require_snap,
)
from dpppsynth.cli.pattern_options import PatternOptions

UserOption = Annotated[
    str | None, o.option("Column that says whose point a row is; no row may leave it out.", o.READING, metavar="COLUMN")
]


def inspect(
    points: o.PointsArgument,
    place: DomainOptions,
    people: PatternOptions,
    kept: MarkOptions,
    layout: LayoutOptions,
    out: Annotated[
        Path | None, o.option("Private folder for the CONFIDENTIAL file of offending rows.", o.WRITING)
    ] = None,
    count: o.CountOption = None,
    user: UserOption = None,
    rows_are_persons: o.RowsArePersonsOption = False,
    snap: o.SnapOption = None,
    skip_outside: o.SkipOutsideOption = False,
    json: o.JsonOption = False,
) -> None:
    """Name the rules that a file of points breaks, and write the offending rows to a CONFIDENTIAL file.

    Where all rows break one rule, a likely reason is named, such as exchanged axes or a CRS that was forgotten; so are
    persons and rows that are listed several times, and how many labels of a column that looks like persons' are.

    It takes the options of `synthesize` that say how rows are read, types, times, levels and numbers of points among
    them: a file that passes is not refused there for its rows.

    Exit code 0: the file can be used; 2: it cannot.
    """
    from dpppsynth.io import inspect_points
    from dpppsynth.plotting import refuse_release_folder
    from dpppsynth.spatial.tables.formats import checked_path

    points, layout = layout.of(points)
    described = kept.described()
    folder = o.private_folder(out)
    refuse_release_folder(folder, "--out")
    require_own_columns(points, layout.x, layout.y, count=count, user=user, by=people.by, **columns_of(described))
    domain = place.domain()
    require_snap(domain, snap)
    checked_path(points)
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    crs: dict[str, Any] = {"crs": place.crs, "to_crs": place.to_crs}
    columns: dict[str, Any] = {"count": count, "user": user, "described": described, **layout.reading}
    columns |= {"rows_are_persons": rows_are_persons, "skip_outside": skip_outside}
    found = inspect_points(points, domain, report_to=folder, **columns, **crs, snap=snap, **people.stated_of_rows())
    if json:
        report = None if found.report is None else str(found.report)
        show_json({"ok": found.ok, "rules": list(found.rules), "remarks": list(found.remarks), "report": report})
    elif found.ok:
        show_line("Every row keeps the rules.")
    else:
        show_line(f"Rules broken: {', '.join(found.rules)}")
        if found.report is not None:
            show_line(f"The offending rows, for the custodian's eyes only: {found.report}")
    if not json:
        for remark in found.remarks:
            show_text(remark)
    if not found.ok:
        raise typer.Exit(2)
