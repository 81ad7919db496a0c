"""Whole-number answers to numeric queries, released with truncated noise that never exceeds a bound."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from dpppsynth.core.arguments import entries, finite, flag, plain_array, positive, probability, whole
from dpppsynth.core.errors import InputError
from dpppsynth.core.randomness import RngLike
from dpppsynth.inference.filters.series import Filtered
from dpppsynth.inference.filters.smoother import by_method
from dpppsynth.privacy.bounds import laplace_scale
from dpppsynth.privacy.noise import (
    TRUNCATED,
    DiscreteNoise,
    OpenDPLaplace,
    SeededLaplace,
    laplace_noise,
    truncated_laplace_noise,
)
from dpppsynth.privacy.profiles import ApproximateDP, Profile, PureDP
from dpppsynth.privacy.truncated.error_bounds import (
    LARGEST,
    WHY_DELTA,
    least_whole_epsilon,
    least_whole_error,
    require_whole,
    whole_bound,
    with_third,
)
from dpppsynth.privacy.truncated.geometric import MOST_SHIFTS, MOST_WORK, TruncatedGeometric
from dpppsynth.privacy.truncated.shifted_losses import at_least_one
from dpppsynth.privacy.truncated_profile import TruncatedLaplaceDP
from dpppsynth.spatial.mesh import Floats, Ints

__all__ = ["Answers", "BoundedErrorAnswers", "ErrorTerms"]


# Whole numbers up to here are floats without rounding.
EXACT = 2**53


def whole_values(values: Any, most: int = LARGEST) -> Ints:
    """(N,) whole numbers, kept as integers or as floats, possibly none; or InputError."""
    array = plain_array(values)
    if array is not None and array.shape == (0,):
        return np.zeros(0, dtype=np.int64)
    if array is None or not array.ndim or array.dtype.kind not in "iuf":
        kind = f" of dtype {array.dtype}" if array is not None and array.ndim else ""
        raise InputError(_message(f"got a {type(values).__name__}{kind}"))
    if array.ndim > 1:
        raise InputError(_message(f"got a table {array.shape}; give one column, or ravel it: sensitivity is of all"))
    fault = _fault(array, most)
    if fault:
        raise InputError(_message(fault))
    return array.astype(np.int64)


def _fault(array: np.ndarray, most: int) -> str:
    """Description of invalid numbers, or None."""
    if array.dtype.kind == "f":
        if not np.isfinite(array).all():
            return "but some are missing or infinite; fill them in first"
        if (array != np.floor(array)).any():
            return "but some have fractions; round them, and state the sensitivity of what that gives"
        most = EXACT
    # Not by their absolute value: that of the smallest integer is no integer of its kind.
    return "" if ((array >= -most) & (array <= most)).all() else f"but some are beyond 2^{most.bit_length() - 1}"


def _message(fault: str) -> str:
    return f"values: must be one series of whole numbers (N,), {fault}."


# Relative safety margin of a stated delta, more than all roundings. Range of probabilities as floats.
ROUND_UP, TINY = 1e-11, 1e-300
MOST_QUERIES, LARGEST_EPSILON = 100_000, 1e100


@dataclass(frozen=True, repr=False)
class ErrorTerms:
    """Epsilon, delta and error bound of a release of answers.

    Attributes
    ----------
    epsilon : float
        Budget of all answers together.
    max_error : int or float
        No answer is off by more; infinite without a bound.
    sensitivity, queries, joint
        Change of the answers between neighbouring data sets, as in `BoundedErrorAnswers`.

    Raises
    ------
    InputError
        A number breaks its rule.
    """

    epsilon: float
    max_error: float
    sensitivity: int = 1
    queries: int = 1
    joint: bool = True

    def __post_init__(self) -> None:
        epsilon = positive(
            "epsilon", self.epsilon, most=LARGEST_EPSILON, rule=f"be positive, {LARGEST_EPSILON:g} at most"
        )
        most, remedy = self.max_error, "math.inf stands for no bound"
        endless = isinstance(most, float) and most == math.inf
        most = math.inf if endless else whole_bound(most, remedy=remedy)
        remedy = "round it up to a whole number: answers are whole"
        sensitivity = require_whole("sensitivity", self.sensitivity, 1, remedy=remedy)
        queries, joint = whole("queries", self.queries, 1, most=MOST_QUERIES), flag("joint", self.joint)
        if joint and queries != 1:
            msg = (
                f"queries: sensitivity is that of all answers together, got queries={queries}; with joint=False it is "
                "that of each answer."
            )
            raise InputError(msg)
        found = {"max_error": most, "sensitivity": sensitivity, "queries": queries, "joint": joint}
        for name, value in {"epsilon": float(epsilon), **found}.items():
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        numbers = f"epsilon={self.epsilon:g}, delta={self.delta:.3g}, max_error={self.max_error:g}"
        return f"ErrorTerms({numbers}, scale={self.scale:.4g})"

    @property
    def total(self) -> int:
        """L1 sensitivity of all answers together."""
        return self.sensitivity * self.queries

    @cached_property
    def scale(self) -> float:
        """Scale b of the noise, whose law is `P(k) ~ exp(-|k| / b)` within the bound."""
        return laplace_scale(self.total, self.epsilon)

    @cached_property
    def delta(self) -> float:
        """Smallest delta at this epsilon, rounded up: probability of answers that only one data set gives."""
        if self.max_error == math.inf:
            return 0.0
        one = self._law.exposed(self.sensitivity)
        if one < TINY:
            return 2 * TINY * self.queries
        return min(1.0, at_least_one([one], self.queries) * (1 + ROUND_UP))

    @cached_property
    def _law(self) -> TruncatedGeometric:
        return TruncatedGeometric(self.scale, int(self.max_error))

    @cached_property
    def profile(self) -> Profile:
        """Privacy profile of all answers together: exact, or one pair of epsilon and delta beyond 64 queries.

        The worst that neighbours can do is to change one answer by all that is allowed, or each of them.
        """
        if self.max_error == math.inf:
            return PureDP(self.epsilon)
        if self.queries > MOST_SHIFTS or self.queries * self.total > MOST_WORK:
            return ApproximateDP(self.epsilon, self.delta)
        return TruncatedLaplaceDP(self.scale, int(self.max_error), (self.sensitivity,) * self.queries, self.delta)

    def noise(self, rng: RngLike) -> DiscreteNoise:
        """The noise; an InputError where it is practically uniform, or beyond 64-bit integers."""
        budget: dict[str, Any] = {"sensitivity": self.total, "epsilon": self.epsilon, "rng": rng}
        if self.max_error == math.inf:
            return laplace_noise(self.scale, **budget)
        return truncated_laplace_noise(self.scale, int(self.max_error), **budget)

    def require_room(self, answers: int) -> None:
        """Refuse more answers than the budget is shared by."""
        if not self.joint and answers > self.queries:
            msg = f"values: got {answers} answers, more than the {self.queries} that the budget is shared by."
            raise InputError(msg)


def least_error(epsilon: float, delta: float, **change: Any) -> int:
    """Smallest bound on the error that costs no more than delta."""
    widest = ErrorTerms(epsilon, LARGEST, **change)
    return least_whole_error(lambda most: replace(widest, max_error=most).delta, epsilon, delta)


def smallest_epsilon(delta: float, max_error: float, **change: Any) -> float:
    """Smallest epsilon, rounded up, at which the bound on the error costs no more than delta."""
    terms = ErrorTerms(float(LARGEST), max_error, **change)

    def cost(epsilon: float) -> float:
        return replace(terms, epsilon=epsilon).delta

    return least_whole_epsilon(cost, delta, terms.max_error, sensitivity=terms.total, first=terms.epsilon)


MECHANISM = "bounded-answers"
# Relative difference between computers of a number that is derived again.
DERIVED = 1e-9


@dataclass(frozen=True, eq=False, repr=False)
class Answers:
    """Released answers: public.

    Attributes
    ----------
    terms : ErrorTerms
        Terms of the release, from public parameters alone.
    raw : (N,) array of int
        Noised answers; some may be negative.
    noise : str
        Name of the sampler.
    seeded : bool
        True when the noise can be reproduced: then nothing is private.
    """

    terms: ErrorTerms
    raw: Ints
    noise: str
    seeded: bool

    def __post_init__(self) -> None:
        self.raw.flags.writeable = False

    def __repr__(self) -> str:
        return f"Answers(n={len(self.raw)}, {self.terms!r}{', seeded: not private' if self.seeded else ''})"

    @property
    def max_error(self) -> float:
        """Bound on the error of every raw answer; that of a filtered one is twice as large."""
        return self.terms.max_error

    @cached_property
    def filtered(self) -> Floats:
        """(N,) answers made smoother by `filter` with its own settings; as private as `raw`."""
        return self.filter(rng=0).estimate if len(self.raw) else np.empty(0)

    def filter(self, *, method: str = "particles", step: Any = "likely", **settings: Any) -> Filtered:
        """Series estimated from the raw answers by a filter or smoother; free, since it uses nothing else.

        It is accurate where answers change little from one to the next, beside the noise. How much they change it finds
        in the raw answers (`filters.likely_step`), unless `step` says; answers that have nothing to do with each other
        it leaves about as they are. Its own error may be twice `max_error`.

        Parameters
        ----------
        method : {"particles", "smoother"}
            A particle filter, which sees the answers up to each; or `filters.pooled_smoother`, which also sees later
            ones and knows jumps: the more accurate of the two.
        step
            As in `filters.particle_filter`.
        **settings
            Of `filters.particle_filter`: `particles`, `proposal`, `resample`, `rng` and others.
        """
        law: dict[str, Any] = {"scale": self.terms.scale, "bound": self.max_error, "step": step}
        return by_method(method, self.raw, law, settings)

    def to_dict(self) -> dict[str, Any]:
        """JSON form, inverse of `from_dict`: public answers and terms; without a bound `max_error` is null."""
        released = {"raw": self.raw.tolist(), "noise": self.noise, "seeded": self.seeded}
        promised = {**asdict(self.terms), "delta": self.terms.delta, "scale": self.terms.scale}
        most = None if self.max_error == math.inf else self.max_error
        return {"mechanism": MECHANISM, **released, **promised, "max_error": most}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "Answers":
        """Inverse of `to_dict`; delta and scale are derived again.

        Raises
        ------
        InputError
            Something is missing or wrong, or delta or scale are not those of the other numbers.
        """
        stated = ("epsilon", "max_error", "sensitivity", "queries", "joint")
        data = entries("answers", data, ("mechanism", "raw", "noise", "seeded", "delta", "scale", *stated))
        most = math.inf if data["max_error"] is None else data["max_error"]
        terms = ErrorTerms(**{name: data[name] for name in stated} | {"max_error": most})
        for name, found in (("delta", terms.delta), ("scale", terms.scale)):
            if not math.isclose(finite(name, data[name]), found, rel_tol=DERIVED):
                msg = f"{name}: {found!r} follows from the other numbers, not what is stated; the file was changed."
                raise InputError(msg)
        seeded = flag("seeded", data["seeded"])
        sampler = SeededLaplace.name if seeded else OpenDPLaplace.name
        expected = (MECHANISM, sampler if terms.max_error == math.inf else TRUNCATED + sampler)
        if (data["mechanism"], data["noise"]) != expected:
            msg = f"mechanism, noise: must be {expected[0]!r} and {expected[1]!r} here; the file was changed."
            raise InputError(msg)
        # The largest answers with the largest noise.
        raw = whole_values(data["raw"], 2 * LARGEST)
        terms.require_room(len(raw))
        return cls(terms, raw, data["noise"], seeded)


@dataclass(frozen=True, kw_only=True)
class BoundedErrorAnswers:
    """Whole-number answers with noise within `max_error`, on their own: no certificate, ledger or `verify`.

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
        """Change of the answers between neighbouring data sets, by argument of `ErrorTerms`."""
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
