"""Types of JSON: of a document that is read, of one that is written, and of a value in either.

A value is of any kind until it is checked: whoever reads a document checks what is in it, or passes it to what does.
"""

from collections.abc import Mapping
from typing import Any

Json = Any
JsonRead = Mapping[str, Json]
JsonObject = dict[str, Json]
