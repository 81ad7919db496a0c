"""Estimator of posterior draws: the draw is the log-intensity itself."""

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from dpppsynth.contract.additive_noise import LatticeStatistic, PrivateStatistic
from dpppsynth.contract.estimator import Beside, Estimator
from dpppsynth.contract.statistic import require
from dpppsynth.core.types import JsonObject, JsonRead
from dpppsynth.core.wording import Rows
from dpppsynth.release.certificate import OFFSETS
from dpppsynth.release.estimators import offset_of, offset_rows
from dpppsynth.spatial.intensity import LogLinear
from dpppsynth.spatial.loglinear_integrals import integrate_exp
from dpppsynth.spatial.offset import Offset, weighted_pieces


@dataclass(frozen=True)
class Drawn(Estimator[LatticeStatistic]):
    """The intensity of a drawn field: exp of its values, linear between the vertices.

    Attributes
    ----------
    offset : Offset, optional
        Public base intensity that multiplies it.
    """

    offset: Offset | None = None
    kind: ClassVar[str] = "drawn"

    def intensity(self, draw: PrivateStatistic[LatticeStatistic]) -> LogLinear:
        """Log-linear intensity with the drawn vertex values, and the total that the field was drawn for.

        The posterior takes the integral to be a sum over vertices; between them exp of a linear function lies below it.
        """
        mesh, pieces = draw.plan.mesh, weighted_pieces(draw.plan.mesh, self.offset)
        shape = draw.values - draw.values.max()
        lost = mesh.integrate(pieces) @ np.exp(shape) / integrate_exp(mesh, pieces, shape[None])[0]
        return LogLinear(mesh, draw.values + np.log(lost), self.offset)

    def table_rows(self) -> Rows:
        """The offset, where there is one."""
        return offset_rows(self.offset)

    def to_dict(self) -> JsonObject:
        """JSON form, as it stands on a certificate."""
        return {"kind": self.kind, "offset": None if self.offset is None else self.offset.fingerprint}

    @classmethod
    def beside(cls, stated: JsonRead, plan: LatticeStatistic) -> Beside:
        """The offset, where there is one."""
        require(stated.keys() == {"kind", "offset"}, "a drawn field has an offset and no other setting")
        offset = offset_of(stated)
        return Beside(frozenset() if offset is None else OFFSETS, offset)

    @classmethod
    def from_dict(cls, stated: JsonRead, plan: LatticeStatistic, offset: Offset | None) -> Self:
        """The estimator with the offset of the release."""
        return cls(offset)
