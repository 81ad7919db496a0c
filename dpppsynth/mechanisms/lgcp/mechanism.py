"""Records of the log-Gaussian Cox mechanisms that follow a private statistic."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpppsynth.contract.additive_noise import LaplaceMasses
from dpppsynth.contract.audits import counts
from dpppsynth.contract.mechanism import Mechanism
from dpppsynth.mechanisms.lgcp import examples, words
from dpppsynth.mechanisms.lgcp.field_statistic import FieldMasses
from dpppsynth.mechanisms.lgcp.synthesizer import LGCPSynthesizer
from dpppsynth.release.cox import CoxRelease
from dpppsynth.release.lgcp_inference import LGCPInference
from dpppsynth.release.matern_inference import MaternInference
from dpppsynth.release.precision_inference import PrecisionInference
from dpppsynth.release.street_inference import StreetInference

if TYPE_CHECKING:
    from dpppsynth.contract.audits.statistic_audit import StatisticAudit


# Loaded when an audit is wanted.
def _field_audit(plan: FieldMasses) -> StatisticAudit:
    from dpppsynth.mechanisms.lgcp.audit import FieldStatisticAudit

    return FieldStatisticAudit(plan)


TENTS = Mechanism(
    name="lgcp-tents",
    settings=LGCPSynthesizer,
    plan=LaplaceMasses,
    estimators=(LGCPInference, MaternInference, StreetInference, PrecisionInference),
    result=CoxRelease,
    audit=counts,
    words=words.TENTS,
    examples=examples.tents,
)

CELLS = Mechanism(
    name="lgcp-cells",
    settings=LGCPSynthesizer,
    plan=LaplaceMasses,
    estimators=(StreetInference,),
    result=CoxRelease,
    audit=counts,
    words=words.CELLS,
    examples=examples.cells,
)

FIELD = Mechanism(
    name="lgcp-field",
    settings=LGCPSynthesizer,
    plan=FieldMasses,
    estimators=(LGCPInference,),
    result=CoxRelease,
    audit=_field_audit,
    words=words.FIELD,
    examples=examples.field,
)
