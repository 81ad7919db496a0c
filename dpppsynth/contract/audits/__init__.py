"""Audit parts that mechanisms supply: `StatisticAudit` and its components.

Audits that several mechanisms share stand here by what is released, and are loaded when one is wanted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dpppsynth.contract.additive_noise import LaplaceMasses
    from dpppsynth.contract.audits.statistic_audit import StatisticAudit


def counts(plan: LaplaceMasses) -> StatisticAudit:
    """Audit of counts or masses with added noise."""
    from dpppsynth.contract.audits.additive_audits import CountsAudit

    return CountsAudit(plan)


def masses_and_pairs(plan: Any) -> StatisticAudit:
    """Audit of masses and sums over pairs."""
    from dpppsynth.contract.audits.additive_audits import MassesAndPairsAudit

    return MassesAndPairsAudit(plan)
