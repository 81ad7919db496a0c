"""Types for annotations, of arrays and of JSON, and the mark of confidential objects.

A value is of any kind until it is checked: whoever reads a document checks what is in it, or passes it to what does.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


Json = Any
JsonRead = Mapping[str, Json]
JsonObject = dict[str, Json]


class Confidential:
    """Base of classes whose objects depend on sensitive points: no released object refers to one."""
