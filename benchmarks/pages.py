"""Results in docs/results: files of rows, and tables in hand-written pages, between two comments that bear a name."""

import argparse
import csv
import re
from collections.abc import Iterable
from pathlib import Path

import numpy as np


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
    """Put lines between the two comments of a name, where a page is named."""
    if page is None:
        return
    text = page.read_text(encoding="utf-8")
    pattern = re.compile(rf"(<!-- {name} -->\n).*?(<!-- /{name} -->)", re.DOTALL)
    if not pattern.search(text):
        msg = f"{page} has no place for {name}"
        raise SystemExit(msg)
    filled = pattern.sub(lambda match: match[1] + "\n".join(["", *lines, "", ""]) + match[2], text)
    page.write_text(filled, encoding="utf-8")
