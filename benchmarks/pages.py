"""Results in docs/results: tables in hand-written pages, between two comments that bear a name, or in files beside.

The comment before a table may choose from it, `<!-- NAME: COLUMN | COLUMN; COLUMN = CELL | CELL -->`: the columns, and
the cells of a column whose rows are shown. The whole table is then a file beside the page, which links to it.
"""

import argparse
import csv
import itertools
import re
from collections.abc import Iterable
from pathlib import Path

import numpy as np

# A cell in italics or as code.
MARKED = re.compile(r"^(?:\*([^*]+)\*|`([^`]+)`)$")


def table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> list[str]:
    """Lines of a Markdown table."""
    heads = list(heads)
    return [line(heads), "|" + "---|" * len(heads), *map(line, rows)]


def line(cells: Iterable[str]) -> str:
    """One row of a table."""
    return "| " + " | ".join(cells) + " |"


def spread_of(ratios: np.ndarray) -> str:
    """Geometric mean of ratios, with the smallest and the largest."""
    return f"{np.exp(np.log(ratios).mean()):.2f} ({ratios.min():.2f} to {ratios.max():.2f})"


def command_line(text: str, out: str = "page whose tables are filled; none is without it") -> argparse.ArgumentParser:
    """Parser of a benchmark's arguments, of which `--out` is the page or folder that it writes to."""
    parser = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help=out)
    return parser


def write_rows(path: Path, heads: Iterable[str], rows: Iterable[Iterable[object]]) -> None:
    """Write a CSV file."""
    with path.open("w", newline="", encoding="utf-8") as stream:
        csv.writer(stream, lineterminator="\n").writerows([heads, *rows])


def fill(page: Path | None, name: str, lines: list[str]) -> None:
    """Put a table where a page has a place for it, and in the file `<page>/<name>.csv` where the page links to that."""
    if page is None:
        return
    text = page.read_text(encoding="utf-8")
    file = page.with_suffix("") / f"{name.replace(' ', '-')}.csv"
    linked = f"({page.stem}/{file.name})" in text
    pattern = re.compile(rf"(<!-- {name}(?:: ([^\n]*))? -->\n).*?(<!-- /{name} -->)", re.DOTALL)
    place = pattern.search(text)
    if not linked and (place is None or place[2]):
        msg = f"{page} has no place for all of {name}, and no link to {page.stem}/{file.name}"
        raise SystemExit(msg)
    if linked:
        file.parent.mkdir(exist_ok=True)
        heads, *rows = cells_of(lines)
        write_rows(file, heads, rows)
    if place:
        shown = chosen(lines, place[2]) if place[2] else lines
        text = text[: place.end(1)] + "\n".join(["", *shown, "", ""]) + text[place.start(3) :]
        page.write_text(text, encoding="utf-8")


def chosen(lines: Iterable[str], choice: str) -> list[str]:
    """The columns of a table, and the rows, that a page chooses."""
    heads, *rows = ([cell.strip() for cell in each[1:-1].split(" | ")] for each in lines if not each.startswith("|---"))
    columns, *conditions = choice.split(";")
    for condition in conditions:
        column, _, cells = condition.partition("=")
        at, wanted = place_of(column, heads), [cell.strip() for cell in cells.split("|")]
        rows = [row for row in rows if row[at] in wanted]
    places = [place_of(column, heads) for column in columns.split("|")]
    return table((heads[at] for at in places), ([row[at] for at in places] for row in rows))


def place_of(column: str, heads: list[str]) -> int:
    """The number of the one column of a name."""
    if heads.count(column.strip()) != 1:
        msg = f"choose columns, and rows by columns, of {', '.join(heads)}, each there once: {column.strip()!r} is not"
        raise SystemExit(msg)
    return heads.index(column.strip())


def cells_of(lines: Iterable[str]) -> list[list[str]]:
    """Heads and rows of a Markdown table; of several with the same columns, each row after its table's first head."""
    rows = (each for each in lines if not each.startswith("|---"))
    groups = (each for is_row, each in itertools.groupby(rows, lambda each: each.startswith("| ")) if is_row)
    tables = [[[plain(cell) for cell in each[2:-2].split(" | ")] for each in group] for group in groups]
    (heads, *first), *others = tables
    if not others:
        return [heads, *first]
    return [["", "", *heads[1:]], *([name[0], *row] for name, *found in tables for row in found)]


def plain(cell: str) -> str:
    """A cell without the marks that make words bold, and all of it slanted or code."""
    return MARKED.sub(r"\1\2", cell.replace("**", ""))
