"""What is recommended, in numbers and in words."""

from dataclasses import KW_ONLY, dataclass
from typing import Any

from dpppsynth.recommendation.evidence import DOCUMENT
from dpppsynth.synthesizers import Plan, Synthesizer

# An expected distance above this share of a uniform intensity's is no use.
USELESS = 0.95


@dataclass(frozen=True)
class Alternative:
    """A mechanism that is not recommended.

    Attributes
    ----------
    mechanism : str
    expected : float or None
        Total variation distance that the study lets expect; None where it has measured none.
    why_not : str
    """

    mechanism: str
    expected: float | None
    why_not: str

    def __str__(self) -> str:
        figure = "" if self.expected is None else f" (expected {self.expected:.2g})"
        return f"{self.mechanism}{figure}: {self.why_not}"


@dataclass(frozen=True, eq=False, repr=False)
class Recommendation:
    """A mechanism for a budget, from public parameters alone.

    Attributes
    ----------
    synthesizer : Synthesizer
        Ready to use: `synthesizer.release(pattern)`; where the number of points is secret, with `**sizes`.
    plan : Plan
        What the synthesizer's rules settled; its guarantee was checked against the budget.
    sizes : dict
        Public size, as `check` and `plan` of the synthesizer take it: `{"n": ...}`, or `{"expected_n": ...}`.
    settings : dict
        Length scales, mesh, spacing, bandwidth, sigma: see `dpppsynth.recommendation.settings`.
    expected : float
        Total variation distance to the true normalised intensity that the study lets expect, between 0 and 1.
    uniform : float
        The same of a uniform intensity, which needs no data, on the study's intensities.
    alternatives : tuple of Alternative
        The other mechanisms, and why they are not recommended.
    reasons : tuple of str
        Why this one, and what the figure rests on.
    """

    _: KW_ONLY
    synthesizer: Synthesizer
    plan: Plan
    sizes: dict[str, Any]
    settings: dict[str, Any]
    expected: float
    uniform: float
    alternatives: tuple[Alternative, ...]
    reasons: tuple[str, ...]
    evidence: str = DOCUMENT

    @property
    def mechanism(self) -> str:
        """Its name, as certificates have it."""
        return self.plan.mechanism

    @property
    def useful(self) -> bool:
        """Whether the release is expected to come closer than a uniform intensity."""
        return self.expected < USELESS * self.uniform

    def __repr__(self) -> str:
        return f"Recommendation({self.mechanism}, expected {self.expected:.2g}, uniform {self.uniform:.2g})"

    def __str__(self) -> str:
        unit = self.plan.domain.unit
        lines = [f"Recommended: {self.mechanism}.", f"Guarantee: {self.plan.guarantee}", "Because:"]
        lines += [f"  - {reason}" for reason in self.reasons]
        lines += [f"Settled by public rules (lengths in {unit}):"]
        lines += [f"  {name}: {in_words(value)}" for name, value in self.settings.items()]
        lines += ["Not recommended:", *(f"  {each}" for each in self.alternatives)]
        return "\n".join([*lines, f"Evidence: {self.evidence}"])


def in_words(value: Any) -> str:
    """A setting with four digits.

    Examples
    --------
    >>> in_words((111.6666, 95.0)), in_words("laplace"), in_words(49)
    ('111.7, 95', 'laplace', '49')
    """
    if isinstance(value, tuple):
        return ", ".join(map(in_words, value))
    return f"{value:.4g}" if isinstance(value, float) else str(value)
