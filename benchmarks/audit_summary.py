"""The one table of docs/results/audit.md: how many promises and faults were audited, and how many were found out."""

import csv
from collections import Counter
from pathlib import Path

from pages import fill, table

# Files of rows beside the page: what they hold, and the column with the verdict.
FILES = {
    "mechanisms": ("promises of releases", "rejected"),
    "local": ("promises of local reports", "rejected"),
    "bounded": ("promises of bounded errors and moved points", "rejected"),
    "faults": ("faults planted in releases", "rejected"),
    "local-faults": ("faults planted in local reports", "rejected"),
    "bounded-faults": ("faults planted in bounded errors and moved points", "rejected"),
    "audited-faults": ("faults planted in noise and bounds, audited alone", "found"),
    "mutants": ("faults planted in all code that privacy rests on, tested", "found by"),
}
HEADS = "audited or tested", "rows", "rejected or found", "refused before it began", "rows in"


def summarise(page: Path | None) -> None:
    """Count the rows of the files beside the page."""
    if page is not None:
        fill(page, "summary", table(HEADS, rows(page)))


def rows(page: Path) -> list[list[str]]:
    """Cells of the summary."""
    found = []
    for name, (what, column) in FILES.items():
        with (page.with_suffix("") / f"{name}.csv").open(encoding="utf-8") as stream:
            said = Counter(verdict(row[column]) for row in csv.DictReader(stream))
        link = f"[{name}.csv]({page.stem}/{name}.csv)"
        found.append([what, f"{said.total()}", f"{said['found']}", f"{said['refused'] or ''}", link])
    return found


def verdict(cell: str) -> str:
    """Whether a promise was rejected or a fault found; of mutants the cell names the test that found it."""
    if cell.startswith("refused"):
        return "refused"
    return "missed" if cell == "no" or cell.startswith(("SURVIVED", "BAD")) else "found"
