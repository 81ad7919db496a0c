"""Whole-number answers computed elsewhere, released with noise that never exceeds a bound."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from dpppsynth.arguments import entries, flag, plain_array, positive, probability, whole
from dpppsynth.errors import InputError
from dpppsynth.filters import Filtered, particle_filter
from dpppsynth.mesh import Floats, Ints
from dpppsynth.privacy.bounded import require_positive
from dpppsynth.privacy.noise import (
    LARGEST,
    WIDEST,
    DiscreteNoise,
    laplace_noise,
    laplace_scale,
    truncated_laplace_noise,
)
from dpppsynth.privacy.profiles import ApproximateDP, Profile, PureDP
from dpppsynth.privacy.truncated import TruncatedLaplaceDP
from dpppsynth.randomness import RngLike
from dpppsynth.truncated import TruncatedGeometric
from dpppsynth.truncated.geometric import MOST_SHIFTS, MOST_WORK

__all__ = ["Answers", "BoundedErrorAnswers", "ErrorTerms"]

# Noise this many times wider than its bound is nearly uniform: no smaller epsilon is looked for.
WIDE = WIDEST / 2
# Relative width at which the search for an epsilon stops.
CLOSE = 1e-12
# What a stated delta exceeds the computed one by, relative: more than all roundings. Where probabilities are floats.
ROUND_UP, TINY = 1e-11, 1e-300
MOST_QUERIES = 100_000
# Whole numbers up to here are floats without rounding.
EXACT = 2**53


@dataclass(frozen=True)
class ErrorTerms:
    """What a release of answers promises: privacy and accuracy together.

    Attributes
    ----------
    epsilon, delta : float
        Budget of all answers together. No smaller delta holds at this epsilon.
    log_delta : float
        Natural logarithm of delta, of use where it is tiny; minus infinity without a bound.
    max_error : int or float
        No answer is off by more; infinite without a bound.
    scale : float
        Of the noise.
    """

    epsilon: float
    delta: float
    log_delta: float
    max_error: float
    scale: float


@dataclass(frozen=True, kw_only=True)
class BoundedErrorAnswers:
    """Discrete Laplace noise on whole-number answers, drawn again where it exceeds `max_error`.

    For counts that were computed elsewhere, such as a series of daily counts. Points belong in
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
        A larger delta is refused, given or found.

    Raises
    ------
    InputError
        Not two of the three are given, an argument breaks its rule, or they do not fit together.

    Examples
    --------
    >>> daily = BoundedErrorAnswers(epsilon=0.5, max_error=30)
    >>> f"{daily.check().delta:.3g} {daily.check().scale:.3g}"
    '7.49e-08 2'
    >>> answers = daily.release([12, 14, 13, 17])
    >>> bool((abs(answers.raw - [12, 14, 13, 17]) <= 30).all())
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
        remedy = "round it up to a whole number: answers are whole"
        whole("sensitivity", self.sensitivity, 1, most=LARGEST, remedy=remedy)
        whole("queries", self.queries, 1, most=MOST_QUERIES)
        if flag("joint", self.joint) and self.queries != 1:
            msg = (
                f"queries: sensitivity is that of all answers together, got queries={self.queries}; with joint=False "
                "it is that of each answer."
            )
            raise InputError(msg)
        probability("delta_max", self.delta_max, remedy="1e-3 is the default")
        self._require_two()
        self.terms  # noqa: B018 - what does not fit together is refused at once

    def check(self) -> ErrorTerms:
        """What a release promises, from public parameters alone."""
        return self.terms

    @property
    def scale(self) -> float:
        """Scale b of the noise, whose law is `P(k) ~ exp(-|k| / b)` within the bound."""
        return self.terms.scale

    @cached_property
    def terms(self) -> ErrorTerms:
        """Epsilon, delta and max_error, of which one follows from the other two; and the scale."""
        if self.max_error == math.inf:
            epsilon = float(self.epsilon or 0)
            return self._possible(ErrorTerms(epsilon, 0.0, -math.inf, math.inf, laplace_scale(self._total, epsilon)))
        epsilon, most = self._settled()
        scale = laplace_scale(self._total, epsilon)
        delta, log_delta = self._cost(epsilon, most)
        if delta > self.delta_max:
            msg = (
                f"delta: errors of at most {most} at epsilon = {epsilon:g} cost delta = {delta:.4g}, more than "
                f"delta_max = {self.delta_max:g}; take a larger max_error or epsilon, or state a larger delta_max."
            )
            raise InputError(msg)
        return self._possible(ErrorTerms(epsilon, delta, log_delta, most, scale))

    @cached_property
    def profile(self) -> Profile:
        """Privacy profile of all answers together: exact, or one pair of epsilon and delta beyond 64 queries.

        The worst that neighbours can do is to change one answer by all that is allowed, or each of them.
        """
        terms, shifts = self.terms, (int(self.sensitivity),) * int(self.queries)
        if terms.max_error == math.inf:
            return PureDP(terms.epsilon)
        if len(shifts) > MOST_SHIFTS or len(shifts) * sum(shifts) > MOST_WORK:
            return ApproximateDP(terms.epsilon, terms.delta)
        return TruncatedLaplaceDP(terms.scale, int(terms.max_error), shifts, terms.delta)

    def release(self, values: Any, rng: RngLike = None) -> "Answers":
        """Spend the budget: add noise to the answers.

        Parameters
        ----------
        values : (N,) array of int
            True answers in the order of time, possibly none; at most `queries` of them unless `joint`.
        rng : None, int or Generator
            None: secret noise. Anything else makes the run reproducible and therefore not private.

        Raises
        ------
        InputError
            Values are not whole numbers, or too many.
        """
        true = _whole_values(values)
        if not self.joint and len(true) > self.queries:
            msg = f"values: got {len(true)} answers, more than the {self.queries} that the budget is shared by."
            raise InputError(msg)
        noise = self._noise(self.terms, rng)
        return Answers(self, noise.add(true), noise.name, noise.seeded)

    def _require_two(self) -> None:
        given = [name for name in ("epsilon", "delta", "max_error") if getattr(self, name) is not None]
        if self.epsilon is not None:
            positive("epsilon", self.epsilon)
        if self.delta is not None:
            require_positive(self.delta)
        endless = isinstance(self.max_error, float) and self.max_error == math.inf
        if self.max_error is not None and not endless:
            whole("max_error", self.max_error, 1, most=LARGEST, remedy="math.inf stands for noise without a bound")
        if len(given) != 2 or (endless and "epsilon" not in given):
            found = ", ".join(given) or "none of them"
            aside = "; max_error = inf goes with epsilon" if endless else ""
            msg = f"epsilon, delta, max_error: give two of them, and the third follows; got {found}{aside}."
            raise InputError(msg)

    @property
    def _total(self) -> int:
        """L1 sensitivity of all answers together."""
        return int(self.sensitivity) * int(self.queries)

    def _settled(self) -> tuple[float, int]:
        """Epsilon and max_error."""
        if self.epsilon is not None and self.max_error is not None:
            return float(self.epsilon), int(self.max_error)
        asked = float(self.delta or 0)
        if self.epsilon is not None:
            epsilon = float(self.epsilon)
            return epsilon, _least_error(lambda most: self._cost(epsilon, most)[0] <= asked)
        most = int(self.max_error or 0)
        return self._least_epsilon(most, asked), most

    def _least_epsilon(self, most: int, asked: float) -> float:
        low = self._total / (WIDE * most)
        if self._cost(low, most)[0] <= asked:
            msg = (
                f"max_error: noise that is as good as uniform within {most} keeps to delta = {asked:g}, and epsilon "
                "promises nothing; take a smaller max_error or a smaller delta."
            )
            raise InputError(msg)
        high = max(1.0, 2 * low)
        while self._cost(high, most)[0] > asked:
            high *= 2
            if high > LARGEST:
                msg = (
                    f"max_error: no epsilon keeps errors of at most {most} to delta = {asked:g} where an answer "
                    f"changes by {self.sensitivity}; take a larger max_error."
                )
                raise InputError(msg)
        while high - low > CLOSE * high:
            middle = (low + high) / 2
            low, high = (low, middle) if self._cost(middle, most)[0] <= asked else (middle, high)
        return high

    def _cost(self, epsilon: float, most: int) -> tuple[float, float]:
        """Delta, rounded up, and its logarithm: the probability that any answer gives its data set away."""
        scale, moved = laplace_scale(self._total, epsilon), int(self.sensitivity)
        one = TruncatedGeometric(scale, most).exposed(moved)
        if one < TINY:
            # What the noise's law tends to far from its bound, whose own exponential is no float any more.
            log_one = (
                -(most - moved + 1) / scale + math.log(-math.expm1(-moved / scale)) - math.log1p(math.exp(-1 / scale))
            )
            return 2 * TINY * self.queries, log_one + math.log(self.queries)
        any_of_them = 1.0 if one == 1 else -math.expm1(int(self.queries) * math.log1p(-one))
        delta = min(1.0, any_of_them * (1 + ROUND_UP))
        return delta, math.log(delta)

    def _possible(self, terms: ErrorTerms) -> ErrorTerms:
        """The terms, unless their noise is refused: as good as uniform, or beyond 64-bit integers."""
        self._noise(terms, 0)
        return terms

    def _noise(self, terms: ErrorTerms, rng: RngLike) -> DiscreteNoise:
        budget: dict[str, Any] = {"sensitivity": self._total, "epsilon": terms.epsilon, "rng": rng}
        if terms.max_error == math.inf:
            return laplace_noise(terms.scale, **budget)
        return truncated_laplace_noise(terms.scale, int(terms.max_error), **budget)


@dataclass(frozen=True, eq=False, repr=False)
class Answers:
    """Released answers: public.

    Attributes
    ----------
    mechanism : BoundedErrorAnswers
        Public parameters.
    raw : (N,) array of int
        Noised answers; some may be negative.
    noise : str
        Name of the sampler.
    seeded : bool
        True when the noise can be reproduced: then nothing is private.
    """

    mechanism: BoundedErrorAnswers
    raw: Ints
    noise: str
    seeded: bool

    def __post_init__(self) -> None:
        self.raw.flags.writeable = False

    def __repr__(self) -> str:
        budget = f"epsilon={self.epsilon:g}, delta={self.delta:.3g}, max_error={self.max_error:g}"
        return f"Answers(n={len(self.raw)}, {budget})"

    @property
    def epsilon(self) -> float:
        """Budget of all answers together."""
        return self.mechanism.terms.epsilon

    @property
    def delta(self) -> float:
        """Budget of all answers together."""
        return self.mechanism.terms.delta

    @property
    def log_delta(self) -> float:
        """Natural logarithm of delta."""
        return self.mechanism.terms.log_delta

    @property
    def max_error(self) -> float:
        """No raw answer is off by more."""
        return self.mechanism.terms.max_error

    @property
    def filtered_bound(self) -> float:
        """No filtered answer is off by more: twice `max_error`."""
        return 2 * self.max_error

    @property
    def profile(self) -> Profile:
        """Privacy profile of all answers together."""
        return self.mechanism.profile

    @cached_property
    def filtered(self) -> Floats:
        """(N,) answers made smoother by `filter` with its own settings; as private as `raw`."""
        return self.filter(rng=0).estimate if len(self.raw) else np.empty(0)

    def filter(self, **settings: Any) -> Filtered:
        """Series that a particle filter finds behind the raw answers; free, since it sees nothing else.

        It is accurate where answers change little from one to the next, beside the noise, and less so than `raw` where
        they have nothing to do with each other. Its own error may be twice `max_error`.

        Parameters
        ----------
        **settings
            Of `filters.particle_filter`: `step`, `particles`, `proposal`, `resample`, `rng` and others.
        """
        return particle_filter(self.raw, scale=self.mechanism.scale, bound=self.max_error, **settings)

    def to_dict(self) -> dict[str, Any]:
        """JSON form, inverse of `from_dict`; a `max_error` of None stands for none."""
        terms, stated = self.mechanism.terms, self.mechanism
        endless = terms.max_error == math.inf
        return {
            "mechanism": "bounded-answers",
            "raw": self.raw.tolist(),
            "epsilon": terms.epsilon,
            "delta": terms.delta,
            "max_error": None if endless else int(terms.max_error),
            "scale": terms.scale,
            "sensitivity": int(stated.sensitivity),
            "queries": int(stated.queries),
            "joint": bool(stated.joint),
            "delta_max": float(stated.delta_max),
            "noise": self.noise,
            "seeded": self.seeded,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "Answers":
        """Inverse of `to_dict`; delta and scale are derived again.

        Raises
        ------
        InputError
            Something is missing or wrong, or delta or scale are not those of the other numbers.
        """
        stated = ("sensitivity", "queries", "joint", "delta_max")
        data = entries("answers", data, ("raw", "epsilon", "delta", "max_error", "scale", *stated, "noise", "seeded"))
        most = math.inf if data["max_error"] is None else data["max_error"]
        public = {name: data[name] for name in stated}
        mechanism = BoundedErrorAnswers(epsilon=data["epsilon"], max_error=most, **public)
        if (data["delta"], data["scale"]) != (mechanism.terms.delta, mechanism.terms.scale):
            msg = (
                "answers: delta and scale do not follow from epsilon, max_error and sensitivity; the file was changed."
            )
            raise InputError(msg)
        if not isinstance(data["noise"], str):
            msg = "noise: must be the name of a sampler."
            raise InputError(msg)
        return cls(mechanism, _whole_values(data["raw"]), data["noise"], flag("seeded", data["seeded"]))


def _least_error(enough: Callable[[int], bool]) -> int:
    """Smallest whole bound that is enough; larger ones are, too."""
    low, high = 0, 1
    while not enough(high):
        low, high = high, 2 * high
        if high > LARGEST:
            msg = "epsilon: with this delta it asks for errors beyond 64-bit integers; take more of both."
            raise InputError(msg)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def _whole_values(values: Any) -> Ints:
    """(N,) whole numbers, or InputError; messages never show them."""
    array = plain_array(values)
    if array is not None and array.shape == (0,):
        return np.zeros(0, dtype=np.int64)
    right = array is not None and array.ndim == 1 and array.dtype.kind in "iuf"
    if array is None or not right or not _fit(array):
        msg = f"values: must be whole numbers (N,), at most 2^{LARGEST.bit_length() - 1} in absolute value."
        raise InputError(msg)
    return array.astype(np.int64)


def _fit(array: np.ndarray) -> bool:
    if array.dtype.kind == "f":
        return bool((np.abs(array) <= EXACT).all() and (array == np.floor(array)).all())
    # Not by their absolute value: that of the smallest integer is no integer of its kind.
    return bool(((array >= -LARGEST) & (array <= LARGEST)).all())
