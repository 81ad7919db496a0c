"""Audits of the log-Gaussian Cox mechanisms, loaded when one is wanted."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dpppsynth.contract.audits.plan_audit import PlanAudit
    from dpppsynth.mechanisms.lgcp.field_plan import FieldStatisticPlan
    from dpppsynth.mechanisms.lgcp.posterior_sampling.draw_plan import DrawPlan
    from dpppsynth.mechanisms.lgcp.posterior_sampling.posterior_draw_plan import PosteriorDrawPlan


def field(plan: FieldStatisticPlan) -> PlanAudit:
    """Audit of smooth functionals."""
    from dpppsynth.mechanisms.lgcp.audit import FieldStatisticAudit

    return FieldStatisticAudit(plan)


def posterior_draw(plan: PosteriorDrawPlan) -> PlanAudit:
    """Audit of an exact posterior draw."""
    from dpppsynth.mechanisms.lgcp.audit import PosteriorDrawAudit

    return PosteriorDrawAudit(plan)


def draw(plan: DrawPlan) -> PlanAudit:
    """Audit of a draw by its slope."""
    from dpppsynth.mechanisms.lgcp.audit import DrawAudit

    return DrawAudit(plan)
