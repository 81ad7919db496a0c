"""Estimates from several synthetic patterns, combined by the rule for fully synthetic data."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from dpppsynth.core.arguments import instance, probability, whole
from dpppsynth.core.errors import InputError
from dpppsynth.core.html_card import html_text
from dpppsynth.core.progress import silent
from dpppsynth.core.randomness import RngLike, generator
from dpppsynth.release.cox import CoxRelease
from dpppsynth.spatial.covariates import Covariates
from dpppsynth.spatial.pattern_sources import source_of
from dpppsynth.spatial.patterns import PointPattern
from dpppsynth.spatial.sampling import binomial_pattern

Floats = NDArray[np.float64]
# Least share of a slope that patterns must keep for it to be told from them.
KEPT_AT_LEAST = 0.8
# Slope that is planted, per standard deviation of the covariate; points at least to draw trials from; posterior draws.
PLANTED, DRAWN, DRAWS = 0.5, 20_000, 50


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


def combine(
    patterns: Iterable[PointPattern | str | Path],
    estimates: ArrayLike,
    variances: ArrayLike,
    *,
    kept: ArrayLike = 1.0,
) -> Combined:
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
    kept : float or (k,) array_like
        Of slopes on a covariate what `kept_slope` says that patterns keep of them: estimates and standard errors are
        divided by it. At less than four fifths slopes cannot be told from patterns, and are refused.

    Raises
    ------
    InputError
        When patterns were drawn from one intensity, or do not state their source, shapes differ, there are fewer than
        two patterns, a number is not finite or a variance negative, or too little of a slope is kept.

    Notes
    -----
    Raghunathan, Reiter and Rubin (2003), "Multiple imputation for statistical disclosure limitation". Measured coverage
    is in docs/inference.md. Patterns of one intensity hold no variation of it: intervals would be too short. Slopes on
    covariates of short range shrink towards zero: give `kept`.

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
    share = _shares(kept, q.shape[1])
    m = len(q)
    between, within = q.var(axis=0, ddof=1), u.mean(axis=0)
    whole = (1 + 1 / m) * between
    with np.errstate(divide="ignore", invalid="ignore"):
        degrees = np.where(whole > 0, (m - 1) * (1 - within / whole) ** 2, math.inf)
    few = whole <= within
    variance = np.where(few, within, whole - within)
    degrees = np.where(few, m - 1.0, np.maximum(degrees, 1.0))
    return Combined(q.mean(axis=0) / share, np.sqrt(variance) / share, degrees, between, within, m, few)


def kept_slope(release: CoxRelease[Any], covariate: Any, rng: RngLike = None, *, trials: int = 2) -> float:
    """Share of a slope on a public covariate that patterns of a release keep; free of privacy cost.

    Points are drawn from the released intensity, tilted by a slope that is known, and released anew with the same
    settings, once up and once down. Where the covariate varies within the noise and the length scale, little of the
    tilt comes back. It takes twice the time of a release for each trial.

    Parameters
    ----------
    release : CoxRelease
    covariate : RasterLayer, pair of a GeoDataFrame and a column, or function
        Public, as in `Covariates`.
    rng : None, int or Generator
        May be seeded freely.
    trials : int
        The share is known to about .05 from one.

    Raises
    ------
    InputError
        When the release has no posterior or has marks, or the covariate is the same everywhere.

    Examples
    --------
    >>> import dpppsynth as dps
    >>> window = dps.Window.rectangle(0, 0, 1000, 1000)
    >>> pattern = dps.PointPattern(np.random.default_rng(1).uniform(0, 1000, (400, 2)), window)
    >>> release = dps.LGCPSynthesizer(1.0, alpha=20.0, inference="laplace").release(pattern, rng=1)
    >>> kept_slope(release, lambda xy: np.sin(xy[:, 0] / 10), rng=1) < 0.1
    True
    """
    instance("release", release, CoxRelease)
    if not release.estimator.has_posterior or release.mark_names:
        msg = "release: slopes from patterns need a posterior of points without marks; LGCPSynthesizer makes one."
        raise InputError(msg)
    trials, rng = whole("trials", trials, least=1), generator(rng)
    layers = Covariates({"covariate": covariate})
    layers.require_whole(release.domain)
    plan, intensity = release.statistic.definition, release.intensity
    n = round(intensity.total) if plan.n is None else plan.n
    found = [_came_back(release, layers["covariate"], n, rng) for _ in range(trials)]
    return float(np.mean(found))


def _came_back(release: CoxRelease[Any], layer: Any, n: int, rng: np.random.Generator) -> float:
    """Difference of a covariate's mean between two trials, in that between the points put into them."""
    base = binomial_pattern(release.intensity, max(DRAWN, 4 * n), rng)
    values, before = layer(base.xy), release.intensity(base.xy)
    spread = values.std()
    if not spread > 0:
        msg = "covariate: it is the same wherever points are, and has no slope; leave it out."
        raise InputError(msg)
    tilt = PLANTED * (values - values.mean()) / spread
    put, seen = np.empty(2), np.empty(2)
    for k, weight in enumerate((np.exp(tilt), np.exp(-tilt))):
        points = rng.choice(len(values), n, p=weight / weight.sum())
        measured = release.statistic.definition.measure(PointPattern.at(base.positions[points], release.domain), rng)
        trial = replace(release, statistic=measured, draws=None).finish(rng, silent)
        after = np.mean([each(base.xy) for each in trial.intensities(DRAWS, rng, source="draws")], axis=0) / before
        put[k], seen[k] = values[points].mean(), after @ values / after.sum()
    return float((seen[0] - seen[1]) / (put[0] - put[1]))


def _shares(kept: ArrayLike, quantities: int) -> Floats:
    """(k,) shares of slopes that are kept, refused where they are too small."""
    try:
        share = np.broadcast_to(np.asarray(kept, dtype=np.float64), (quantities,))
    except (TypeError, ValueError):
        share = np.full(quantities, np.nan)
    if not np.isfinite(share).all():
        msg = "kept: needs a number, or one for each quantity, as `kept_slope` finds it"
        raise InputError(msg)
    if (share < KEPT_AT_LEAST).any():
        msg = (
            f"kept: patterns keep {max(0.0, float(share.min())):.0%} of this slope, because the covariate varies "
            "within the noise and the length scale; take `release.infer(covariates={'name': layer}).effects`, which "
            "reads the same private statistic, at no privacy cost."
        )
        raise InputError(msg)
    return share


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
            'release.sample(m, source="draws"), or the names of files synthetic_draw_000 ... of `dpppsynth sample '
            "--source draws`"
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
