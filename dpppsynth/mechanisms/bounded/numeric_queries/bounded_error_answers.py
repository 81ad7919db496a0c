"""`BoundedErrorAnswers`: release of whole-number answers with noise that never exceeds a bound."""

from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

from dpppsynth.core.arguments import probability
from dpppsynth.core.errors import InputError
from dpppsynth.core.randomness import RngLike
from dpppsynth.mechanisms.bounded.numeric_queries.released_answers import Answers
from dpppsynth.mechanisms.bounded.numeric_queries.terms import ErrorTerms, least_error, smallest_epsilon
from dpppsynth.mechanisms.bounded.numeric_queries.values import whole_values
from dpppsynth.privacy.profiles import Profile
from dpppsynth.privacy.truncated.error_bounds import WHY_DELTA, with_third


@dataclass(frozen=True, kw_only=True)
class BoundedErrorAnswers:
    """Noise within `max_error` on whole-number answers, by itself: no certificate, ledger or `verify` knows of it.

    Discrete Laplace noise is drawn again where it exceeds the bound, and the budget it spends is the caller's to keep.

    For counts that were computed elsewhere, such as a series of monthly counts. Points belong in
    `BoundedErrorSynthesizer`, which knows how far one person changes their counts: here the guarantee is about the
    sensitivity stated, and whoever states it vouches for it. Replacing one person, who is counted once, changes two
    counts of a histogram: its sensitivity is 2, not 1.

    Give two of epsilon, delta and max_error: the third follows. A bound cannot be had with delta = 0: some answers
    would tell two neighbouring data sets apart with certainty.

    Parameters
    ----------
    epsilon, delta : float, optional
        Budget of everything that is released.
    max_error : int, optional
        No answer is off by more; infinite for plain discrete Laplace noise, which is purely private.
    sensitivity : int
        With `joint`, the most that the absolute changes of all answers sum to between neighbouring data sets;
        otherwise the most that each answer changes by.
    queries : int
        Without `joint`, how many answers there are; each has its share of the budget.
    joint : bool
        Whether `sensitivity` is that of all answers together.
    delta_max : float
        A larger delta is refused, given or found. State one well below one over the number of persons, which is not
        known here: from that on a delta promises nothing.

    Raises
    ------
    InputError
        Not two of the three are given, an argument breaks its rule, or they do not fit together.

    Examples
    --------
    Each person is counted in one month, and being there or not changes that count by 1:

    >>> import numpy as np
    >>> monthly = BoundedErrorAnswers(epsilon=0.5, max_error=30)
    >>> monthly.check()
    ErrorTerms(epsilon=0.5, delta=7.49e-08, max_error=30, scale=2)
    >>> counts = np.array([112, 118, 132, 129])
    >>> answers = monthly.release(counts)
    >>> bool((abs(answers.raw - counts) <= 30).all())
    True
    """

    epsilon: float | None = None
    delta: float | None = None
    max_error: float | None = None
    sensitivity: int = 1
    queries: int = 1
    joint: bool = True
    delta_max: float = 1e-3

    def __post_init__(self) -> None:
        probability("delta_max", self.delta_max, remedy="1e-3 is the default")
        if self.delta is not None:
            remedy = f"it cannot be 0: {WHY_DELTA}. Take 1e-6, or epsilon and max_error=math.inf"
            probability("delta", self.delta, remedy=remedy)
        # Inconsistent settings are refused at once, and so is noise that promises nothing.
        self.check().noise(0)

    def check(self) -> ErrorTerms:
        """Guarantee and error bound of a release, from public parameters alone."""
        return self._terms

    @property
    def scale(self) -> float:
        """Scale b of the noise, whose law is `P(k) ~ exp(-|k| / b)` within the bound."""
        return self._terms.scale

    @property
    def profile(self) -> Profile:
        """Privacy profile of all answers together."""
        return self._terms.profile

    def release(self, values: Any, rng: RngLike = None) -> Answers:
        """Spend the budget: add noise to the answers.

        Parameters
        ----------
        values : (N,) array, list or Series
            True answers in the order of time, possibly none; at most `queries` of them unless `joint`. Whole numbers,
            also where they are kept as floats. An index is not kept.
        rng : None, int or Generator
            None: secret noise. Anything else makes the run reproducible and therefore not private.

        Raises
        ------
        InputError
            Values are not whole numbers, or too many.
        """
        true, noise = whole_values(values), self._terms.noise(rng)
        self._terms.require_room(len(true))
        return Answers(self._terms, noise.add(true), noise.name, noise.seeded)

    @property
    def _change(self) -> dict[str, Any]:
        """Sentence about the difference between the answers of neighbouring data sets."""
        return {"sensitivity": self.sensitivity, "queries": self.queries, "joint": self.joint}

    @cached_property
    def _terms(self) -> ErrorTerms:
        terms = self._settled()
        if terms.delta > self.delta_max:
            least = least_error(terms.epsilon, self.delta_max, **self._change)
            msg = (
                f"delta: errors of at most {terms.max_error} at epsilon = {terms.epsilon:g} cost delta = "
                f"{terms.delta:.4g}, more than delta_max = {self.delta_max:g}; take max_error = {least} or more, a "
                "larger epsilon, or state a larger delta_max."
            )
            raise InputError(msg)
        return terms

    def _settled(self) -> ErrorTerms:
        """Epsilon and max_error, of which one may follow from delta and the other."""
        change = self._change
        found = with_third(
            self.epsilon,
            self.delta,
            self.max_error,
            cost=lambda epsilon, most: ErrorTerms(epsilon, most, **change).delta,
            least_error=partial(least_error, **change),
            smallest_epsilon=partial(smallest_epsilon, **change),
        )
        return ErrorTerms(found.epsilon, found.max_error, **change)
