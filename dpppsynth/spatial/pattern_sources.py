"""Sources of synthetic patterns: the intensities that they were drawn from, and the names of files that state them."""

import re

# Intensities that patterns are drawn from; the first is the released one, a single one for all patterns.
SOURCES = ("released", "mean", "draws")
# Beginnings of the numbers of patterns that are not drawn from the released intensity, by source.
OTHER_SOURCES = {"draws": "draw_", "mean": "mean_"}
NAME = re.compile(r"synthetic_(?P<source>draw_|mean_)?\d+[.]\w+")


def synthetic(k: int, source: str | None = None) -> str:
    """Name of the file of the k-th synthetic pattern, with its source unless that is the released intensity."""
    return f"synthetic_{OTHER_SOURCES.get(source or '', '')}{k:03d}.geojson"


def source_of(name: str) -> str | None:
    """Source that the name of a file states, in any format; None of files with names of their own.

    Examples
    --------
    >>> source_of("synthetic_000.csv"), source_of("synthetic_draw_012.geojson"), source_of("deaths.csv")
    ('released', 'draws', None)
    """
    found = NAME.fullmatch(name)
    if found is None:
        return None
    return next((source for source, start in OTHER_SOURCES.items() if start == found["source"]), SOURCES[0])
