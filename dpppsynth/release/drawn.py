"""Estimator of posterior draws: the draw is the log-intensity itself."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from dpppsynth.spatial.intensity import LogLinear
from dpppsynth.spatial.loglinear_integrals import integrate_exp
from dpppsynth.spatial.offset import Offset, weighted_pieces


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
        """Log-linear intensity with the drawn vertex values, and the total that the field was drawn for.

        The posterior takes the integral to be a sum over vertices; between them exp of a linear function lies below it.
        """
        mesh, pieces = draw.plan.mesh, weighted_pieces(draw.plan.mesh, self.offset)
        shape = draw.values - draw.values.max()
        lost = mesh.integrate(pieces) @ np.exp(shape) / integrate_exp(mesh, pieces, shape[None])[0]
        return LogLinear(mesh, draw.values + np.log(lost), self.offset)

    def to_dict(self) -> dict[str, Any]:
        """JSON form, as it stands on a certificate."""
        return {"kind": "drawn", "offset": None if self.offset is None else self.offset.fingerprint}
