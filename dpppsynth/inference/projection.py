"""Intensities from noised masses without a model: clipping at zero, or projection onto the public total."""

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from dpppsynth.contract.additive_noise import AdditiveStatistic, PrivateStatistic, require_few_made_up
from dpppsynth.contract.estimator import Estimator
from dpppsynth.core.arguments import one_of
from dpppsynth.core.errors import InputError
from dpppsynth.core.types import JsonObject, JsonRead
from dpppsynth.core.wording import Rows
from dpppsynth.spatial.intensity import PiecewiseConstant, PiecewiseLinear, held
from dpppsynth.spatial.offset import Offset
from dpppsynth.spatial.simplex import norm_sub

POSTPROCESSES = ("clip", "keep-n")
# Points that noise may make up on average: its patterns would fill gigabytes, and say nothing.
MOST_MADE_UP = 1e7


@dataclass(frozen=True)
class Projection(Estimator[AdditiveStatistic]):
    """Post-processing of noised masses into a non-negative intensity.

    Attributes
    ----------
    postprocess : {"clip", "keep-n"}
        "clip" sets negative masses to zero, which adds points on average; "keep-n" projects onto the masses that sum
        to the public n.
    """

    postprocess: str
    kind: ClassVar[str] = "projection"

    def __post_init__(self) -> None:
        one_of("postprocess", self.postprocess, POSTPROCESSES)

    def require(self, plan: AdditiveStatistic) -> None:
        if self.postprocess == "keep-n" and plan.n is None:
            msg = "postprocess: 'keep-n' needs a public n, which this relation keeps secret; use 'clip'."
            raise InputError(msg)
        if self.postprocess == "clip":
            places = len(plan.mesh.elements if plan.basis == "cells" else plan.mesh.vertices)
            made_up = places * plan.noise_scale / 2
            require_few_made_up(made_up, MOST_MADE_UP, plan.epsilon, of="points", remedy="a coarser mesh")

    def intensity(self, statistic: PrivateStatistic[AdditiveStatistic]) -> PiecewiseConstant | PiecewiseLinear:
        plan = statistic.definition
        cells = plan.basis == "cells"
        measure = plan.mesh.element_measure if cells else plan.mesh.measure
        whole = held(measure)
        masses, values = statistic.masses[whole], np.zeros(len(measure))
        clip = self.postprocess == "clip"
        masses = np.maximum(masses, 0) if clip else norm_sub(masses, float(plan.n or 0))
        values[whole] = masses / measure[whole]
        return (PiecewiseConstant if cells else PiecewiseLinear)(plan.mesh, values)

    def table_rows(self) -> Rows:
        return [("intensity", f"masses made non-negative ({self.postprocess})")]

    def to_dict(self) -> JsonObject:
        return {"kind": self.kind, "postprocess": self.postprocess}

    @classmethod
    def from_dict(cls, stated: JsonRead, plan: AdditiveStatistic, offset: Offset | None) -> Self:
        return cls(stated["postprocess"])
