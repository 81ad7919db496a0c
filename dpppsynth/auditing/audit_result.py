"""`Audit`: lower bounds on privacy loss, the power of the audit, and a verdict."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from dpppsynth.auditing.examine import Finding
from dpppsynth.auditing.power import Rating
from dpppsynth.auditing.trials import Repeats
from dpppsynth.contract.audits.noise_laws import AsStated
from dpppsynth.core.errors import PrivacyCheckError
from dpppsynth.core.html_card import html_card
from dpppsynth.release.verify import Verification

CAVEAT = (
    "Not rejected is not a proof: an audit bounds the loss from below, at one pair of inputs and through the "
    "statistics it was given; the guarantee rests on the theorem."
)
# Factor of too little noise whose required number of trials is reported when there were too few.
QUOTED_FACTOR = 2.0
NO_RANDOMNESS = "no randomness from run to run: a fixed seed, or none"


@dataclass(frozen=True)
class Audit:
    """Empirical lower bounds on a mechanism's privacy loss, compared with its claim.

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
    findings : tuple of Finding
        A row per statistic, direction and epsilon.
    rating : Rating or None
        Law by which the power is simulated.
    alike : bool
        Whether the mechanism treats both inputs alike, so that nothing was tested.
    fixed : bool
        Whether each input gave one and the same release on every run, another one than the other input.
    repeats : dict of str to Repeats
        Noise that came again more often than its stated law allows.
    misfits : dict of str to float
        Deviations of the noise from its stated law, with the logarithm of their probability, at most.
    disagreements : tuple of str
        Where what a release publishes, or saves, is not made of its private statistic and public parameters; and where
        the stated noise itself gives away more than is claimed.
    verification : Verification or None
        Of the certificate, where a saved release was audited.
    words : str
        Name of the mechanism.
    """

    lower_bound: float
    claimed: float
    delta: float
    confidence: float
    trials: int
    findings: tuple[Finding, ...] = field(repr=False)
    rating: Rating | None = field(default=None, repr=False)
    alike: bool = False
    fixed: bool = False
    repeats: Mapping[str, Repeats] = field(default_factory=dict)
    misfits: Mapping[str, float] = field(default_factory=dict)
    disagreements: tuple[str, ...] = ()
    verification: Verification | None = field(default=None, repr=False)
    words: str = ""

    @property
    def violated(self) -> bool:
        """Whether the claim is refuted: at `delta`, elsewhere on its profile, or by a fault such as repeated noise."""
        refuted = self.lower_bound > self.claimed or any(finding.violated for finding in self.findings)
        return refuted or self.fixed or bool(self.repeats or self.misfits or self.disagreements)

    @cached_property
    def detectable(self) -> float:
        """Smallest factor of too little noise that this number of trials finds with probability 0.9.

        In all numbers, where their law is stated: by normal approximation; otherwise `by_ratio`.
        """
        if self.rating is None or self.alike:
            return math.inf
        return min(self.by_ratio, self.rating.noise_factor())

    @cached_property
    def by_ratio(self) -> float:
        """Smallest factor that a test of the likelihood ratio finds with probability 0.9, by simulated audits.

        Where `law_is_known` it is that of the mechanism at this pair; otherwise no mechanism of this claim has a
        smaller one. Infinite where no factor up to 64 is found.
        """
        return math.inf if self.rating is None or self.alike else self.rating.factor()

    @property
    def law_is_known(self) -> bool:
        """Whether `by_ratio` simulates the audited mechanism itself, not the easiest one to refute under that claim."""
        return self.rating is not None and self.rating.weakened is not None

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
            "by_ratio": _finite(self.by_ratio),
            "law_is_known": self.law_is_known,
            "alike": self.alike,
            "fixed": self.fixed,
            "repeats": {name: each.to_dict() for name, each in self.repeats.items()},
            "misfits": dict(self.misfits),
            "disagreements": list(self.disagreements),
            "findings": [finding.to_dict() for finding in self.findings],
            "verification": None,
            "target": self.words,
            "in_words": str(self),
        }
        if self.verification is not None:
            checks = [check.to_dict() for check in self.verification.checks]
            out["verification"] = {"holds": self.verification.holds, "checks": checks}
        return out

    def _repr_html_(self) -> str:
        return html_card("Audit", text=str(self))

    def __str__(self) -> str:
        what = f"{self.words}: " if self.words else ""
        if self.trials == 0:
            return f"{what}{self._certificate()}nothing could be run."
        runs = f"{self.trials} runs on each of two neighbouring inputs"
        return f"{what}{self._certificate()}{runs}, {self._finds()}. {self._verdict()} {self._power()} {CAVEAT}"

    def _finds(self) -> str:
        if not math.isfinite(self.detectable):
            return "which find none of the faults that an audit is rated by"
        if not self.law_is_known and self.detectable == self.by_ratio:
            return f"which find no fault smaller than {self.detectable:.2f} times too little noise"
        if self.detectable < self.by_ratio:
            return (
                f"whose numbers show noise of another law than is stated from {self.detectable:.2f} times too little "
                "on, with probability 0.9"
            )
        return f"which find {self.detectable:.2f} times too little noise with probability 0.9"

    def _power(self) -> str:
        if self.alike:
            return (
                "NOTHING IS TESTED: the mechanism treats both inputs alike, whatever its noise; take a finer mesh, or "
                "another pair."
            )
        if not math.isfinite(self.by_ratio):
            return (
                f"The likelihood ratio finds none of the faults that it is rated by: ask for more trials.{self._more()}"
            )
        fault = f"{self.by_ratio:.2f} times too little noise"
        start = "Whatever the law of the noise, " if self.detectable < self.by_ratio else ""
        if self.law_is_known:
            told = f"the likelihood ratio refutes the claimed epsilon, with probability 0.9, from {fault} on."
        else:
            told = f"no audit of so many trials finds, with probability 0.9, a fault smaller than {fault}."
        said = start + told
        return f"{said[0].upper()}{said[1:]}{self._more()}"

    def _more(self) -> str:
        """Sentence about the number of runs that reveal half of the noise, where these are too few."""
        if self.rating is None or not self.law_is_known or self.violated or self.by_ratio <= QUOTED_FACTOR:
            return ""
        needed = self.rating.trials_for(QUOTED_FACTOR)
        about = f"about {float(f'{needed:.2g}'):.0f}" if math.isfinite(needed) else "more than a million"
        return f" For {QUOTED_FACTOR:.0f} times too little it takes {about}."

    def _verdict(self) -> str:
        claim = f"{self.claimed:.4g} is claimed" if math.isfinite(self.claimed) else "no finite one is claimed"
        bounds = (
            f"epsilon at delta = {self.delta:g} is at least {self.lower_bound:.4g} "
            f"(confidence {_share(self.confidence)}), {claim}."
        )
        if not self.violated:
            return f"The claim is not rejected: {bounds}"
        worst = self.worst
        profile = f" There is {NO_RANDOMNESS}." if self.fixed else ""
        profile += "".join(f" {each}." for each in self._unsound())
        if worst is not None and worst.violated:
            known = self.rating is not None and isinstance(self.rating.claimed, AsStated)
            profile += (
                f" At epsilon = {worst.epsilon:.4g} delta is at least {worst.bound:.4g}, "
                + (f"and the stated noise gives {worst.claimed:.4g}" if known else f"{worst.claimed:.4g} is claimed")
                + f" ({worst.statistic}, {worst.event}, {worst.direction})."
            )
        return f"The claim is REFUTED: {bounds}{profile}"

    def _unsound(self) -> list[str]:
        """Faults that a sound release never shows, or nearly never."""
        often = [f"{name.capitalize()} {each}" for name, each in self.repeats.items()]
        often += [f"The {name} is not as stated ({_rarely(chance)})" for name, chance in self.misfits.items()]
        return often + [f"{each[:1].upper()}{each[1:].rstrip('.')}" for each in self.disagreements]

    def _certificate(self) -> str:
        if self.verification is None:
            return ""
        if self.verification.holds:
            return "the certificate holds; "
        rebuilt = ", what follows is about a mechanism as rebuilt from the certificate's budget" if self.trials else ""
        return f"the certificate does NOT hold{rebuilt}; "


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _rarely(log_chance: float) -> str:
    return f"by chance with probability 1e-{math.floor(-log_chance / math.log(10))} at most"


def _share(confidence: float) -> str:
    """All the digits that matter of a share near one."""
    digits = max(0, math.ceil(-math.log10(max(1 - confidence, 1e-15))) - 2) if confidence < 1 else 0
    return f"{100 * confidence:.{digits}f}%"
