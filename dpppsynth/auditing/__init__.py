"""Privacy audits: empirical lower bounds on privacy loss, from many releases of two neighbouring inputs."""

from dpppsynth.auditing.audit_result import Audit
from dpppsynth.auditing.auditor import Required, audit, required
from dpppsynth.auditing.examine import Finding
from dpppsynth.contract.audits.target import AuditStatistic, Target

__all__ = ["Audit", "AuditStatistic", "Finding", "Required", "Target", "audit", "required"]
