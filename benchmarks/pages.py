"""Tables in the hand-written pages of docs/results: each stands between two comments that bear its name."""

import re
from collections.abc import Iterable
from pathlib import Path


def table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> list[str]:
    """Lines of a Markdown table."""
    heads = list(heads)
    return [line(heads), "|" + "---|" * len(heads), *map(line, rows)]


def line(cells: Iterable[str]) -> str:
    """One row of a table."""
    return "| " + " | ".join(cells) + " |"


def fill(page: Path, name: str, lines: list[str]) -> None:
    """Put lines between the two comments of a name."""
    text = page.read_text(encoding="utf-8")
    pattern = re.compile(rf"(<!-- {name} -->\n).*?(<!-- /{name} -->)", re.DOTALL)
    if not pattern.search(text):
        msg = f"{page} has no place for {name}"
        raise SystemExit(msg)
    filled = pattern.sub(lambda match: match[1] + "\n".join(["", *lines, "", ""]) + match[2], text)
    page.write_text(filled, encoding="utf-8")
