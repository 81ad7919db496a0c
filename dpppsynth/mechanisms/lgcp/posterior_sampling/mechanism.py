"""Records of the mechanisms that release one posterior draw."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from dpppsynth.contract.mechanism import Mechanism
from dpppsynth.mechanisms.lgcp import examples, words
from dpppsynth.mechanisms.lgcp.posterior_sampling.kim_lim_statistic import KimLimStatistic
from dpppsynth.mechanisms.lgcp.posterior_sampling.lipschitz_statistic import LipschitzStatistic
from dpppsynth.mechanisms.lgcp.posterior_sampling.posterior_draw_statistic import PosteriorDrawStatistic
from dpppsynth.mechanisms.lgcp.synthesizer import LGCPSynthesizer
from dpppsynth.release.cox import CoxRelease
from dpppsynth.release.drawn import Drawn

if TYPE_CHECKING:
    from dpppsynth.contract.audits.statistic_audit import StatisticAudit
    from dpppsynth.mechanisms.lgcp.posterior_sampling.draw_statistic import DrawStatistic


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
