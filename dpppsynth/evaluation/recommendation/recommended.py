"""`Recommendation`: the recommended mechanism, its expected distance and its alternatives."""

from dataclasses import KW_ONLY, dataclass
from typing import Any

from dpppsynth.contract.release_plan import ReleasePlan
from dpppsynth.contract.synthesizer import AnySynthesizer
from dpppsynth.core.html_card import html_text
from dpppsynth.evaluation.recommendation.evidence import DOCUMENT, Reading

# Largest useful ratio of an expected distance to a uniform intensity's.
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
    reading : {"about", "at least", "unknown"}
        Qualification of `expected`, as in `Recommendation`.
    """

    mechanism: str
    expected: float | None
    why_not: str
    reading: Reading = "about"

    def __str__(self) -> str:
        shown = "" if self.expected is None else f" (expected {figure(self.expected, self.reading)})"
        return f"{self.mechanism}{shown}: {self.why_not}"


@dataclass(frozen=True, eq=False, repr=False)
class Recommendation:
    """A mechanism for a budget, from public parameters alone.

    Attributes
    ----------
    synthesizer : Synthesizer
        Ready to use: `synthesizer.release(pattern)`; where the number of points is secret, with `**sizes`.
    plan : ReleasePlan
        ReleasePlan by the synthesizer's rules; its guarantee was checked against the budget.
    sizes : dict
        Public size, as `check` and `plan` of the synthesizer take it: `{"n": ...}`, or `{"expected_n": ...}`.
    settings : dict
        Length scales, mesh, spacing, bandwidth, sigma: see `dpppsynth.evaluation.recommendation.plan_settings`.
    expected : float
        Total variation distance between the true normalised intensity and the released one, between 0 and 1, that the
        study lets expect, to about 10 to 20 %. With a posterior the study took its mean, and released is its median,
        which came a little closer; single posterior draws, `sample(source="draws")`, lie farther off.
    reading : {"about", "at least", "unknown"}
        Qualification of `expected`: an estimate within the study; a lower bound beyond its bad side; unknown, the
        nearest row's, where the release lies beyond good and bad sides.
    uniform : float
        The same distance of a uniform intensity, which needs no data, on the study's intensities.
    alternatives : tuple of Alternative
        The other mechanisms, and why they are not recommended.
    reasons : tuple of str
        Why this one, and what the figure rests on.
    """

    _: KW_ONLY
    synthesizer: AnySynthesizer
    plan: ReleasePlan
    sizes: dict[str, Any]
    settings: dict[str, Any]
    expected: float
    reading: Reading
    uniform: float
    alternatives: tuple[Alternative, ...]
    reasons: tuple[str, ...]
    evidence: str = DOCUMENT

    @property
    def mechanism(self) -> str:
        """Name of the mechanism on certificates."""
        return self.plan.mechanism

    @property
    def useful(self) -> bool | None:
        """Whether a smaller distance than a uniform intensity's is expected; None where it is not known."""
        return is_useful(self.expected, self.reading, self.uniform)

    @property
    def headline(self) -> str:
        """The mechanism, and what to think of it."""
        heads = {True: "Recommended", False: "Least bad, and of no use", None: "Outside the study, perhaps the best"}
        return f"{heads[self.useful]}: {self.mechanism}."

    def __repr__(self) -> str:
        expected = figure(self.expected, self.reading)
        return f"Recommendation({self.mechanism}, expected {expected}, uniform {figure(self.uniform)})"

    def _repr_html_(self) -> str:
        return html_text("Recommendation", self)

    def __str__(self) -> str:
        unit = self.plan.domain.unit
        lines = [self.headline, f"Guarantee: {self.plan.guarantee}", "Because:"]
        lines += [f"  - {reason}" for reason in self.reasons]
        lines += [f"Settled by public rules (lengths in {unit}):"]
        lines += [f"  {name}: {in_words(value)}" for name, value in self.settings.items()]
        lines += ["Not recommended:", *(f"  {each}" for each in self.alternatives)]
        return "\n".join([*lines, f"Evidence: {self.evidence}"])


def is_useful(expected: float, reading: Reading, uniform: float) -> bool | None:
    """Whether a distance is clearly below that of a uniform intensity; None where the study cannot tell.

    Examples
    --------
    >>> is_useful(0.3, "about", 0.5), is_useful(0.3, "at least", 0.5), is_useful(0.5, "at least", 0.5)
    (True, None, False)
    """
    if reading == "unknown":
        return None
    if expected >= USELESS * uniform:
        return False
    return True if reading == "about" else None


def figure(distance: float, reading: Reading = "about") -> str:
    """A distance with as many digits as the study knows, and how it is to be read.

    Examples
    --------
    >>> figure(0.1234), figure(0.1234, "at least"), figure(0.1234, "unknown")
    ('0.12', 'at least 0.12', 'unknown; nearest row 0.12')
    """
    before = {"about": "", "at least": "at least ", "unknown": "unknown; nearest row "}
    return f"{before[reading]}{distance:.2f}"


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
