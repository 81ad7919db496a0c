"""`dpppsynth counts`: counts of a release with bounded error as a table."""

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from dpppsynth.cli import common_options as o
from dpppsynth.cli.console import progress, show_json, show_line, show_text
from dpppsynth.core.errors import InputError

if TYPE_CHECKING:
    from dpppsynth.spatial.mesh import Mesh

OutOption = Annotated[
    Path, Option(help="New .csv file for the table, outside the folder of a release.", rich_help_panel=o.WRITING)
]
FilteredOption = Annotated[
    bool,
    Option(
        "--filtered",
        help="With the counts before negative ones were set to 0, and smoothed over the levels of a mark, in their "
        "order; smoothed ones may be off by twice as much.",
        rich_help_panel=o.WRITING,
    ),
]
CORNERS = ("x0", "y0", "x1", "y1")


def counts(
    release: o.ReleaseArgument,
    out: OutOption,
    filtered: FilteredOption = False,
    no_limit: o.NoLimitOption = False,
    json: o.JsonOption = False,
) -> None:
    """Write the counts of a bounded-error release: a row for each cell, and for each level of a mark.

    A row gives two opposite corners of its cell, parts of which may lie outside the window, or the two ends of a
    network's segment. No budget is spent: the counts are private already. A level that a spreadsheet would run as a
    formula is written with a leading apostrophe.
    """
    _require_new_table(out)
    from dpppsynth.mechanisms.bounded.release import BoundedErrorRelease, BoundedErrorSeries
    from dpppsynth.mechanisms.bounded.words import errors, measured
    from dpppsynth.release import load_release
    from dpppsynth.spatial.tables.spreadsheets import guarded

    with progress() as say:
        say("opening the release")
        opened: Any = load_release(release, limit=not no_limit)
        if not isinstance(opened, BoundedErrorRelease | BoundedErrorSeries):
            msg = f"release: {release} is a {opened.mechanism} release; only --method bounded-error has such counts"
            raise InputError(msg)
        if filtered and not isinstance(opened, BoundedErrorSeries):
            msg = (
                "filtered: counts are smoothed over the levels of a mark, which this release has none of; leave it out"
            )
            raise InputError(msg)
        say("smoothing over the levels" if filtered else "writing")
        header, rows = _table(opened, filtered=filtered)
        with out.open("w", newline="", encoding="utf-8") as stream:
            writer = csv.writer(stream)
            writer.writerow(guarded(header))
            writer.writerows(map(guarded, rows))
    most = {"max_error": opened.max_error} | ({"max_error_filtered": 2 * opened.max_error} if filtered else {})
    if json:
        show_json({"out": str(out), "columns": header, **most})
        return
    show_line(f"Written to {out}.")
    by = opened.by if filtered and isinstance(opened, BoundedErrorSeries) else None
    show_text(" ".join(errors(measured(opened), by)))


def _require_new_table(path: Path) -> None:
    """Refuse files that exist, other formats, and the folders of releases."""
    from dpppsynth.plotting import refuse_release_folder

    if path.suffix.lower() != ".csv" or path.exists():
        msg = f"--out: {path} must be a new file, ending in .csv"
        raise InputError(msg)
    if not path.parent.is_dir():
        msg = f"--out: there is no folder {str(path.parent)!r}"
        raise InputError(msg)
    refuse_release_folder(path.parent, "--out")


def _table(release: Any, *, filtered: bool) -> tuple[list[str], Iterator[list[Any]]]:
    """Header and rows."""
    from dpppsynth.mechanisms.bounded.release import BoundedErrorSeries

    if not isinstance(release, BoundedErrorSeries):
        mesh = release.statistic.plan.mesh
        return [*CORNERS, "count"], (
            [*place, count] for place, count in zip(_corners(mesh), release.counts.tolist(), strict=True)
        )
    header = [release.by, *CORNERS, "count", *(["raw", "filtered"] if filtered else [])]
    return header, _of_levels(release, filtered=filtered)


def _of_levels(release: Any, *, filtered: bool) -> Iterator[list[Any]]:
    numbers: list[Any] = [release.counts.tolist()]
    if filtered:
        numbers.append(release.raw.tolist())
        # As counts are, not negative: which brings none further from the truth.
        numbers.append(release.filtered.clip(0).round(3).tolist())
    for (level, part), *lines in zip(release.releases.items(), *numbers, strict=True):
        for place, *values in zip(_corners(part.statistic.plan.mesh), *lines, strict=True):
            yield [level, *place, *values]


def _corners(mesh: "Mesh") -> list[list[float]]:
    """Opposite corners of cells, or the two ends of segments."""
    vertices = mesh.vertices[mesh.elements]
    if vertices.shape[1] == 2:
        return vertices.reshape(-1, 4).tolist()
    low, high = vertices.min(axis=1), vertices.max(axis=1)
    return [[*a, *b] for a, b in zip(low.tolist(), high.tolist(), strict=True)]
