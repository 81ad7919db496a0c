"""`dpppsynth counts`: counts of a release with bounded error as a table."""

import csv
from pathlib import Path
from typing import Annotated

from dpppsynth.cli import common_options as o
from dpppsynth.cli.console import progress, show_json, show_line, show_text
from dpppsynth.core.errors import InputError

OutOption = Annotated[Path, o.option("New .csv file for the table, outside the folder of a release.", o.WRITING)]
FilteredOption = Annotated[
    bool,
    o.option(
        "With the counts before negative ones were set to 0, and smoothed over the levels of a mark, in their "
        "order; smoothed ones may be off by twice as much.",
        o.WRITING,
        "--filtered",
    ),
]


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
    from dpppsynth.cli.console import error_bound
    from dpppsynth.contract.result import Counted
    from dpppsynth.release import load_release
    from dpppsynth.spatial.tables.table import guarded

    with progress() as say:
        say("opening the release")
        opened = load_release(release, limit=not no_limit)
        counted: object = opened
        if not isinstance(counted, Counted):
            msg = f"release: {release} is a {opened.mechanism} release; only --method bounded-error has such counts"
            raise InputError(msg)
        table = counted.count_table(filtered=filtered)
        say("smoothing over the levels" if filtered else "writing")
        with out.open("w", newline="", encoding="utf-8") as stream:
            writer = csv.writer(stream)
            writer.writerow(guarded(table.header))
            writer.writerows(map(guarded, table.rows))
    if json:
        show_json({"out": str(out), "columns": table.header, **table.figures})
        return
    show_line(f"Written to {out}.")
    show_text(error_bound(opened, table.by) or "")


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
