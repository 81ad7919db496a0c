"""`Heading`: what a custodian says of a release at the top of its report, kept where the report is written anew."""

import re
from dataclasses import asdict, dataclass, fields, replace
from html import escape, unescape
from pathlib import Path
from typing import Self

from dpppsynth.core.arguments import instance, writable
from dpppsynth.core.errors import InputError

# Characters of each line, and bytes at the start of a report that hold them.
LONGEST, START = 300, 20_000
KEPT = '<meta name="dpppsynth-{}" content="{}">'


@dataclass(frozen=True)
class Heading:
    """Lines at the top of a report, in the custodian's words; each may be empty.

    Attributes
    ----------
    title : str
        Whose points, of which area, from when, such as "Burglaries in Camden, 2023".
    custodian : str
        Who publishes them.
    purpose : str
        For whom and what.
    """

    title: str = ""
    custodian: str = ""
    purpose: str = ""

    def __post_init__(self) -> None:
        for each in fields(self):
            line = instance(each.name, getattr(self, each.name), str)
            if len(line) > LONGEST or not writable(line):
                msg = f"{each.name}: must be one line that can be written, of at most {LONGEST} characters."
                raise InputError(msg)

    @property
    def kept(self) -> str:
        """Lines of the page's head that keep it."""
        return "\n".join(KEPT.format(name, escape(line)) for name, line in asdict(self).items() if line)

    def over(self, earlier: Self) -> Self:
        """The heading with lines of an earlier one where it has none."""
        return replace(earlier, **{name: line for name, line in asdict(self).items() if line})

    @classmethod
    def of(cls, report: Path) -> Self:
        """The heading that a report keeps; an empty one where there is no report."""
        try:
            with report.open("rb") as file:
                start = file.read(START).decode("utf-8", "replace")
        except (OSError, ValueError):
            return cls()
        lines = {each.name: re.search(KEPT.format(each.name, '([^"]*)'), start) for each in fields(cls)}
        return cls(**{name: unescape(found[1])[:LONGEST] for name, found in lines.items() if found})
