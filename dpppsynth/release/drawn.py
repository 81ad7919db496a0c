"""A posterior draw is a log-intensity already: nothing is left to estimate."""

from dataclasses import dataclass
from typing import Any

from dpppsynth.intensity import LogLinear
from dpppsynth.offset import Offset


@dataclass(frozen=True)
class Drawn:
    """The intensity of a drawn field: exp of its values, linear between the vertices.

    Attributes
    ----------
    offset : Offset, optional
        Public base intensity that multiplies it.
    """

    offset: Offset | None = None

    def intensity(self, draw: Any) -> LogLinear:
        """Log-linear intensity with the drawn vertex values."""
        return LogLinear(draw.plan.mesh, draw.values, self.offset)

    def to_dict(self) -> dict[str, Any]:
        """JSON form, as it stands on a certificate."""
        return {"kind": "drawn", "offset": None if self.offset is None else self.offset.fingerprint}
