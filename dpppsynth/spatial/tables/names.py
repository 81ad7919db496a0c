"""Names of columns and layers that error messages may quote."""

import re
from collections.abc import Iterable

# One word that a person, an address, a coordinate, a date or a number hardly ever is.
IDENTIFIER = re.compile(r"(?!.*\d{3})(?!.*\d[.-]\d)(?!(nan|inf|infinity)$)[^\W\d][\w.-]{0,23}", re.IGNORECASE)


def speaking(names: Iterable[str]) -> bool:
    """Whether all names are identifiers; others, such as a first row of data or free text, are not shown."""
    return all(IDENTIFIER.fullmatch(name) for name in names)
