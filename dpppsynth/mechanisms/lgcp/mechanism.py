"""Records of the mechanisms from masses: log-Gaussian Cox and plain estimates."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from dpppsynth.contract.additive_noise import LaplaceMasses
from dpppsynth.contract.audits import counts
from dpppsynth.contract.registry import Mechanism
from dpppsynth.inference.lgcp_inference import LGCPInference
from dpppsynth.inference.matern_inference import MaternInference
from dpppsynth.inference.projection import Projection
from dpppsynth.inference.sparse_inference import PrecisionInference
from dpppsynth.inference.street_inference import StreetInference
from dpppsynth.mechanisms.lgcp import examples, words
from dpppsynth.mechanisms.lgcp.field_statistic import FieldMasses
from dpppsynth.mechanisms.lgcp.laplace import LaplaceSynthesizer
from dpppsynth.mechanisms.lgcp.synthesizer import LGCPSynthesizer
from dpppsynth.release.cox import CoxRelease

if TYPE_CHECKING:
    from dpppsynth.contract.audits.statistic_audit import StatisticAudit


# Loaded when an audit is wanted.
def _field_audit(plan: FieldMasses) -> StatisticAudit:
    from dpppsynth.mechanisms.lgcp.audit import FieldStatisticAudit

    return FieldStatisticAudit(plan)


TENTS = Mechanism(
    name="lgcp-tents",
    settings=LGCPSynthesizer,
    statistic=LaplaceMasses,
    estimators=(LGCPInference, MaternInference, StreetInference, PrecisionInference),
    result=CoxRelease,
    audit=counts,
    words=words.TENTS,
    examples=examples.tents,
)

CELLS = Mechanism(
    name="lgcp-cells",
    settings=LGCPSynthesizer,
    statistic=LaplaceMasses,
    estimators=(StreetInference,),
    result=CoxRelease,
    audit=counts,
    words=words.CELLS,
    examples=examples.cells,
)

FIELD = Mechanism(
    name="lgcp-field",
    settings=LGCPSynthesizer,
    statistic=FieldMasses,
    estimators=(LGCPInference,),
    result=CoxRelease,
    audit=_field_audit,
    words=words.FIELD,
    examples=examples.field,
)


LAPLACE_CELLS = Mechanism(
    name="laplace-cells",
    settings=LaplaceSynthesizer,
    statistic=LaplaceMasses,
    estimators=(Projection, MaternInference, StreetInference),
    result=CoxRelease,
    audit=counts,
    words=words.LAPLACE_CELLS,
    examples=partial(examples.laplace, "cells"),
)

LAPLACE_TENTS = Mechanism(
    name="laplace-tents",
    settings=LaplaceSynthesizer,
    statistic=LaplaceMasses,
    estimators=(Projection, MaternInference, StreetInference),
    result=CoxRelease,
    audit=counts,
    words=words.LAPLACE_TENTS,
    examples=examples.laplace_tents,
)
