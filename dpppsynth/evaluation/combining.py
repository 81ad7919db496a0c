"""Estimates from several synthetic patterns, combined by the rule for fully synthetic data."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from dpppsynth.core.arguments import probability
from dpppsynth.core.errors import InputError
from dpppsynth.core.html_card import html_text
from dpppsynth.spatial.pattern_sources import source_of
from dpppsynth.spatial.patterns import PointPattern

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Combined:
    """Combined estimate of k quantities.

    Attributes
    ----------
    estimate : (k,) array
        Means over the patterns.
    standard_error : (k,) array
    degrees_of_freedom : (k,) array
        Of the t distribution that intervals are taken from.
    between, within : (k,) array
        Variance of the estimates between patterns, and mean of their variances.
    patterns : int
        Number of patterns.
    too_few : (k,) array of bool
        Whether the rule's variance was not positive, and `within` stands for it: draw more patterns.
    """

    estimate: Floats
    standard_error: Floats
    degrees_of_freedom: Floats
    between: Floats
    within: Floats
    patterns: int
    too_few: NDArray[np.bool_]

    def interval(self, level: float = 0.9) -> tuple[Floats, Floats]:
        """Lower and upper ends (k,) of intervals that hold the truth with this probability."""
        probability("level", level)
        half = scipy.special.stdtrit(self.degrees_of_freedom, (1 + level) / 2) * self.standard_error
        return self.estimate - half, self.estimate + half

    def _repr_html_(self) -> str:
        return html_text("Combined", self)

    def __str__(self) -> str:
        """One line for each quantity."""
        lower, upper = self.interval()
        rows = zip(self.estimate.ravel(), self.standard_error.ravel(), lower.ravel(), upper.ravel(), strict=True)
        lines = [f"{q:.4g} (standard error {s:.2g}; 90 % interval {a:.4g} to {b:.4g})" for q, s, a, b in rows]
        few = " More patterns are needed: the rule's variance was not positive." if self.too_few.any() else ""
        return "\n".join(lines) + f"\nfrom {self.patterns} patterns, rule for fully synthetic data.{few}"


def combine(patterns: Iterable[PointPattern | str | Path], estimates: ArrayLike, variances: ArrayLike) -> Combined:
    """Combine estimates from m synthetic patterns, each analysed as if it were real.

    For patterns of different posterior draws, `release.sample(m, source="draws")`: their variation holds the noise of
    privacy, the uncertainty of the fit and the sampling of points. Others are refused. With mean q, variance b between
    the estimates and mean u of their variances, the variance of q is `(1 + 1/m) b - u`, with
    `(m - 1) (1 - u / ((1 + 1/m) b))^2` degrees of freedom, at least 1. Where that is not positive, u stands for it.

    Parameters
    ----------
    patterns : iterable of PointPattern or of str
        The patterns, or the names of their files, which both state what they were drawn from.
    estimates : array_like, shape (m,) or (m, k)
        One of each pattern, or k of each; m at least 2, and better 50.
    variances : array_like
        Their variances, of the same shape, positive or zero.

    Returns
    -------
    Combined

    Raises
    ------
    InputError
        When patterns were drawn from one intensity, or do not state their source, shapes differ, there are fewer than
        two patterns, or a number is not finite or a variance negative.

    Notes
    -----
    Raghunathan, Reiter and Rubin (2003), "Multiple imputation for statistical disclosure limitation". Measured coverage
    is in docs/inference.md. Patterns of one intensity hold no variation of it: intervals would be too short.

    Examples
    --------
    >>> names = [f"synthetic_draw_{k:03d}.csv" for k in range(4)]
    >>> found = combine(names, [0.30, 0.36, 0.33, 0.27], [0.0001] * 4)
    >>> round(float(found.estimate[0]), 3), round(float(found.standard_error[0]), 4)
    (0.315, 0.0421)
    """
    q, u = (_table(name, each) for name, each in (("estimates", estimates), ("variances", variances)))
    if q.shape != u.shape:
        msg = "variances: needs one for each estimate, in the same shape"
        raise InputError(msg)
    _require_draws([*patterns], len(q))
    if (u < 0).any():
        msg = "variances: must be positive or zero"
        raise InputError(msg)
    m = len(q)
    between, within = q.var(axis=0, ddof=1), u.mean(axis=0)
    whole = (1 + 1 / m) * between
    with np.errstate(divide="ignore", invalid="ignore"):
        degrees = np.where(whole > 0, (m - 1) * (1 - within / whole) ** 2, math.inf)
    few = whole <= within
    variance = np.where(few, within, whole - within)
    degrees = np.where(few, m - 1.0, np.maximum(degrees, 1.0))
    return Combined(q.mean(axis=0), np.sqrt(variance), degrees, between, within, m, few)


def _require_draws(patterns: Sequence[PointPattern | str | Path], m: int) -> None:
    """Refuse patterns that were not drawn from as many posterior draws, by the source that they state."""
    if len(patterns) != m:
        msg = f"patterns: needs one for each of the {m} estimates, got {len(patterns)}"
        raise InputError(msg)
    sources = {each.source if isinstance(each, PointPattern) else source_of(Path(each).name) for each in patterns}
    if sources != {"draws"}:
        told = "one intensity" if sources & {"released", "mean"} else "a source that they do not state"
        msg = (
            f"patterns: drawn from {told}, so how much they differ does not tell the error; take "
            'release.sample(m, source="draws"), or files synthetic_draw_000 ... of `dpppsynth sample --source draws`'
        )
        raise InputError(msg)


def _table(name: str, values: ArrayLike) -> Floats:
    """(m, k) finite numbers."""
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        array = np.empty(0)
    array = array[:, None] if array.ndim == 1 else array
    if array.ndim != 2 or len(array) < 2 or not array.size or not np.isfinite(array).all():
        msg = f"{name}: must be finite numbers of shape (m,) or (m, k), of at least 2 patterns"
        raise InputError(msg)
    return array
