"""Records of the mechanisms from masses: log-Gaussian Cox and plain estimates."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from dpppsynth.contract.additive_noise import LaplaceMasses
from dpppsynth.contract.audits import counts, masses_and_pairs
from dpppsynth.contract.mechanism import Mechanism
from dpppsynth.inference.lgcp_inference import LGCPInference
from dpppsynth.inference.matern_inference import MaternInference
from dpppsynth.inference.projection import Projection
from dpppsynth.inference.sparse_inference import PrecisionInference
from dpppsynth.inference.street_inference import StreetInference
from dpppsynth.mechanisms.lgcp import cluster_words, examples, laplace_words, words
from dpppsynth.mechanisms.lgcp.cluster_statistic import MassesAndPairs
from dpppsynth.mechanisms.lgcp.clustered_release import ClusteredRelease
from dpppsynth.mechanisms.lgcp.draw_statistic import Drawn
from dpppsynth.mechanisms.lgcp.draw_statistics import KimLimStatistic, LipschitzStatistic, PosteriorDrawStatistic
from dpppsynth.mechanisms.lgcp.field_statistic import FieldMasses
from dpppsynth.mechanisms.lgcp.laplace import LaplaceSynthesizer
from dpppsynth.mechanisms.lgcp.synthesizer import LGCPSynthesizer
from dpppsynth.release.cox import CoxRelease

if TYPE_CHECKING:
    from dpppsynth.contract.audits.statistic_audit import StatisticAudit
    from dpppsynth.mechanisms.lgcp.draw_statistic import DrawStatistic


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


CLUSTERS = Mechanism(
    name="lgcp-clusters",
    settings=LGCPSynthesizer,
    plan=MassesAndPairs,
    estimators=(LGCPInference, MaternInference, StreetInference, PrecisionInference),
    result=ClusteredRelease,
    audit=masses_and_pairs,
    words=cluster_words.CLUSTERS,
    examples=examples.clusters,
)


# Loaded when an audit is wanted.
def _posterior_draw_audit(plan: PosteriorDrawStatistic) -> StatisticAudit:
    from dpppsynth.mechanisms.lgcp.audit import PosteriorDrawAudit

    return PosteriorDrawAudit(plan)


def _draw_audit(plan: DrawStatistic) -> StatisticAudit:
    from dpppsynth.mechanisms.lgcp.audit import DrawAudit

    return DrawAudit(plan)


POSTERIOR_DRAW = Mechanism(
    name="lgcp-posterior-draw",
    settings=LGCPSynthesizer,
    plan=PosteriorDrawStatistic,
    estimators=(Drawn,),
    result=CoxRelease,
    audit=_posterior_draw_audit,
    words=words.POSTERIOR_DRAW,
    examples=examples.posterior_draw,
)

LIPSCHITZ = Mechanism(
    name="lgcp-lipschitz",
    settings=LGCPSynthesizer,
    plan=LipschitzStatistic,
    estimators=(Drawn,),
    result=CoxRelease,
    audit=_draw_audit,
    words=words.LIPSCHITZ,
    examples=examples.lipschitz,
)

KIM_LIM_38 = Mechanism(
    name="lgcp-kim-lim-3.8",
    settings=LGCPSynthesizer,
    plan=KimLimStatistic,
    estimators=(Drawn,),
    result=CoxRelease,
    audit=_draw_audit,
    words=words.KIM_LIM_38,
    examples=partial(examples.kim_lim, "3.8"),
)

KIM_LIM_39 = Mechanism(
    name="lgcp-kim-lim-3.9",
    settings=LGCPSynthesizer,
    plan=KimLimStatistic,
    estimators=(Drawn,),
    result=CoxRelease,
    audit=_draw_audit,
    words=words.KIM_LIM_39,
    examples=partial(examples.kim_lim, "3.9"),
)


LAPLACE_CELLS = Mechanism(
    name="laplace-cells",
    settings=LaplaceSynthesizer,
    plan=LaplaceMasses,
    estimators=(Projection, MaternInference, StreetInference),
    result=CoxRelease,
    audit=counts,
    words=laplace_words.CELLS,
    examples=partial(examples.laplace, "cells"),
)

LAPLACE_TENTS = Mechanism(
    name="laplace-tents",
    settings=LaplaceSynthesizer,
    plan=LaplaceMasses,
    estimators=(Projection, MaternInference, StreetInference),
    result=CoxRelease,
    audit=counts,
    words=laplace_words.TENTS,
    examples=examples.laplace_tents,
)
