"""What an audit found, and what that means."""

import math
from dataclasses import dataclass, field
from typing import Any

from dpppsynth.auditing.examine import Finding
from dpppsynth.errors import PrivacyCheckError
from dpppsynth.privacy.verify import Verification

CAVEAT = (
    "Not rejected is not a proof: an audit bounds the loss from below, at one pair of inputs and through the "
    "statistics it was given; the guarantee rests on the theorem."
)


@dataclass(frozen=True)
class Audit:
    """Empirical lower bounds on a mechanism's privacy loss, beside what it claims.

    Attributes
    ----------
    lower_bound : float
        Lower confidence bound on epsilon at `delta`.
    claimed : float
        Claimed epsilon at `delta`; infinite where none is claimed.
    delta : float
    confidence : float
        Probability that all bounds lie below the truth.
    trials : int
        Runs on each of the two inputs; 0 where nothing could be run.
    detectable : float
        Smallest factor of too little noise that so many trials find with probability 0.9, by the best statistic.
    findings : tuple of Finding
        A row per statistic, direction and epsilon.
    verification : Verification or None
        Of the certificate, where a saved release was audited.
    words : str
        What was run.
    """

    lower_bound: float
    claimed: float
    delta: float
    confidence: float
    trials: int
    detectable: float
    findings: tuple[Finding, ...] = field(repr=False)
    verification: Verification | None = field(default=None, repr=False)
    words: str = ""

    @property
    def violated(self) -> bool:
        """Whether the claim is refuted, at `delta` or anywhere on its profile."""
        return self.lower_bound > self.claimed or any(finding.violated for finding in self.findings)

    @property
    def worst(self) -> Finding | None:
        """The finding furthest above its claim, or least below it."""
        return max(self.findings, key=lambda finding: finding.bound - finding.claimed, default=None)

    def require(self) -> None:
        """Raise `PrivacyCheckError` when the claim is refuted or the certificate does not hold."""
        if self.verification is not None:
            self.verification.require()
        if self.violated:
            msg = f"audit: {self._verdict()} Do not release with this mechanism."
            raise PrivacyCheckError(msg)

    def to_dict(self) -> dict[str, Any]:
        """JSON form; None stands for infinity."""
        out: dict[str, Any] = {
            "lower_bound": self.lower_bound,
            "claimed": _finite(self.claimed),
            "delta": self.delta,
            "confidence": self.confidence,
            "violated": self.violated,
            "trials": self.trials,
            "detectable": _finite(self.detectable),
            "findings": [finding.to_dict() for finding in self.findings],
            "verification": None,
            "target": self.words,
            "in_words": str(self),
        }
        if self.verification is not None:
            checks = [{"name": c.name, "holds": c.holds, "detail": c.detail} for c in self.verification.checks]
            out["verification"] = {"holds": self.verification.holds, "checks": checks}
        return out

    def __str__(self) -> str:
        what = f"{self.words}: " if self.words else ""
        if self.trials == 0:
            return f"{what}{self._certificate()}nothing could be run."
        factor = (
            f"a mechanism with {self.detectable:.2f} times too little noise"
            if math.isfinite(self.detectable)
            else "none of the faults it is rated by: ask for more trials"
        )
        runs = f"{self.trials} runs on each of two neighbouring inputs"
        found = f"So many runs would find, with probability 0.9 and the best statistic, {factor}."
        return f"{what}{self._certificate()}{runs}. {self._verdict()} {found} {CAVEAT}"

    def _verdict(self) -> str:
        claim = f"{self.claimed:.4g} is claimed" if math.isfinite(self.claimed) else "no finite one is claimed"
        bounds = (
            f"epsilon at delta = {self.delta:g} is at least {self.lower_bound:.4g} "
            f"(confidence {_share(self.confidence)}), {claim}."
        )
        if not self.violated:
            return f"The claim is not rejected: {bounds}"
        worst = self.worst
        profile = ""
        if worst is not None and worst.violated:
            profile = (
                f" At epsilon = {worst.epsilon:.4g} delta is at least {worst.bound:.4g}, {worst.claimed:.4g} is "
                f"claimed ({worst.statistic}, {worst.event}, {worst.direction})."
            )
        return f"The claim is REFUTED: {bounds}{profile}"

    def _certificate(self) -> str:
        if self.verification is None:
            return ""
        return "the certificate holds; " if self.verification.holds else "the certificate does NOT hold; "


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _share(confidence: float) -> str:
    """All the digits that matter of a share near one."""
    digits = max(0, math.ceil(-math.log10(max(1 - confidence, 1e-15))) - 2) if confidence < 1 else 0
    return f"{100 * confidence:.{digits}f}%"
