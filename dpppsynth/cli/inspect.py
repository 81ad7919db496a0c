"""`dpppsynth inspect`: rows of a file of points that the custodian must clean before use."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpppsynth.cli import common_options as o
from dpppsynth.cli.columns import require_told
from dpppsynth.cli.console import show_json, show_line, show_text
from dpppsynth.cli.input_options import (
    DomainOptions,
    LayoutOptions,
    columns_of,
    require_own_columns,
    require_snap,
)
from dpppsynth.cli.method import ReadMethod
from dpppsynth.cli.options import passing_over
from dpppsynth.cli.pattern_options import PatternOptions, require_fitting_number
from dpppsynth.cli.synthesize import synthesize
from dpppsynth.contract.mark_settings import DESCRIBED, PROTECTION, described_marks, require_unprotected
from dpppsynth.contract.settings import CAP
from dpppsynth.core.errors import InputError
from dpppsynth.core.wording import add_options, headed

if TYPE_CHECKING:
    from dpppsynth.io.inspection import Inspection
    from dpppsynth.spatial.domains import Domain
    from dpppsynth.spatial.mark_space import Marks


@passing_over(synthesize)
def inspect(
    points: o.PointsArgument,
    method: ReadMethod,
    place: DomainOptions,
    people: PatternOptions,
    layout: LayoutOptions,
    private: Annotated[
        Path | None, o.option("Private folder for the CONFIDENTIAL file of offending rows.", o.WRITING)
    ] = None,
    out: Annotated[
        Path | None, o.option("The same as --private, where no mechanism is named: then the release's.", o.WRITING)
    ] = None,
    count: o.CountOption = None,
    rows_are_persons: o.RowsArePersonsOption = False,
    snap: o.SnapOption = None,
    skip_outside: o.SkipOutsideOption = False,
    json: o.JsonOption = False,
    fixed_n: Annotated[bool, o.hidden("--fixed-n")] = False,
) -> None:
    """Name the rules that a file of points breaks, and write the offending rows to a CONFIDENTIAL file.

    Where all rows break one rule, a likely reason is named, such as exchanged axes or a CRS that was forgotten; so are
    persons and rows that are listed several times, and how many labels of a column that looks like persons' are.

    It takes the very command line of `synthesize`, with a folder for --private behind it: a file that passes is not
    refused there for its rows. A mechanism need not be named.

    It says how many rows were read and break a rule, and how many points count where that is another number, but not
    where the number of points is secret.

    Exit code 0: the file can be used; 2: it cannot.
    """
    from dpppsynth.io import inspect_points
    from dpppsynth.plotting import refuse_release_folder
    from dpppsynth.spatial.tables.formats import checked_path

    points, layout = layout.of(points)
    if method.named:
        known = method.settled().neighbours().n_is_public
        require_fitting_number(method.settled(), known=known, fixed=fixed_n, skipping=skip_outside)
    described, user = _marks(method)
    if method.named and private is None and out is not None:
        msg = (
            "private: name a private folder for offending rows; where a mechanism is named, --out is the folder of the "
            "release"
        )
        raise InputError(msg)
    folder = o.private_folder(private if method.named else private or out, "--private" if method.named else "--out")
    refuse_release_folder(folder, "--private" if private else "--out")
    require_own_columns(points, layout.x, layout.y, count=count, user=user, by=people.by, **columns_of(described))
    domain = place.domain()
    require_snap(domain, snap)
    checked_path(points)
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    crs: dict[str, Any] = {"crs": place.crs, "to_crs": place.to_crs}
    columns: dict[str, Any] = {"count": count, "user": user, "described": described, **layout.reading}
    untold = _untold(method, points, domain, crs, columns, people.by, rows_are_persons=rows_are_persons)
    columns |= {"rows_are_persons": rows_are_persons, "skip_outside": skip_outside}
    columns["max_points_per_person"] = _counted_each(method)
    secret = skip_outside or _is_secret(method)
    columns["secret"] = secret
    found = inspect_points(points, domain, report_to=folder, **columns, **crs, snap=snap, **people.stated_of_rows())
    ok = found.ok and untold is None
    said = _said(untold, found.remarks)
    if json:
        report = None if found.report is None else str(found.report)
        told = {"ok": ok, "rules": list(found.rules), "remarks": said, "report": report}
        show_json(told | ({} if secret else {"rows": found.rows, "offending": found.offending, "n": found.n}))
    else:
        _show(found, ok=ok, secret=secret)
        if not secret and people.by is None and found.n not in (None, found.rows):
            few = "" if user is None else f" (at most {_counted_each(method)} of each person)"
            show_line(f"Points that count, for --n: {found.n:,}{few}.")
        for remark in said:
            show_text(remark)
    if not ok:
        raise typer.Exit(2)


def _said(untold: str | None, remarks: Iterable[str]) -> list[str]:
    """The reason of a refusal, and remarks without a remedy that it names already."""
    if untold is None:
        return [*remarks]
    parts = [(remark, *remark.partition(": ")[::2]) for remark in remarks]
    others = [f"{what}." if remedy and remedy.rstrip(".") in untold else remark for remark, what, remedy in parts]
    return [f"The file is refused. {untold}", *others]


def _untold(
    method: ReadMethod,
    points: Path,
    domain: "Domain",
    crs: dict[str, Any],
    columns: dict[str, Any],
    by: str | None,
    *,
    rows_are_persons: bool,
) -> str | None:
    """Reason why `synthesize` would refuse the file by the names of its columns; None where it would not."""
    from dpppsynth.io import require_head

    read = {**columns, "marks": () if by is None else (by,)}
    head = require_head(points, domain, **read, **crs)
    try:
        asked = method.settled() if method.named else method
        require_told(asked, head, read, points.name, rows_are_persons=rows_are_persons)
    except InputError as error:
        return headed(str(error))
    return None


def _read(found: "Inspection") -> str:
    """Rows that were read: as many as lines and records say that the file has, or it would have been refused."""
    return f"{found.rows:,} of {found.rows:,} rows read"


def _show(found: "Inspection", *, ok: bool, secret: bool) -> None:
    """Print the rules that rows break, and how many rows do where their number is no secret."""
    if ok:
        show_line("Every row keeps the rules." if secret else f"{_read(found)}, and every one keeps the rules.")
        return
    if found.ok:
        show_line("Rows were read." if secret else f"{_read(found)}.")
        return
    show_line(f"Rules broken: {', '.join(found.rules)}")
    if not secret:
        show_line(f"{_read(found)}, of which {found.offending:,} break{'s' * (found.offending == 1)} a rule.")
    if found.report is not None:
        show_line(f"The offending rows, for the custodian's eyes only: {found.report}")


def _counted_each(method: ReadMethod) -> int:
    """Number of points of each person that count, where a column of persons is read."""
    if method.named:
        settled = method.settled()
        return settled.settings.counted_each(settled.options)
    return int(method.values.get(CAP.name) or 1)


def _is_secret(method: ReadMethod) -> bool:
    """Whether the number of points is secret under what is to be promised; a screen may be logged."""
    if method.named:
        return not method.settled().neighbours().n_is_public
    return str(method.values.get("relation") or "").startswith("add-remove")


def _marks(method: ReadMethod) -> "tuple[Marks | None, str | None]":
    """Types and times, and the column of persons, as the mechanism reads them, or as options alone say."""
    if method.named:
        settled = method.settled()
        return settled.settings.marks_from(settled.options), settled.settings.user_column(settled.options)
    values = dict.fromkeys(each.name for each in DESCRIBED) | dict(method.values)
    options = [(each, each.typed(values.get(each.parameter))) for each in (*DESCRIBED, *PROTECTION)]
    add_options({name: form for each, form in options for name in (each.argument, each.name) if name})
    if values.get("relation") == "add-remove":
        require_unprotected(values)
    return described_marks(values | {"hats": None}), values.get("user")
