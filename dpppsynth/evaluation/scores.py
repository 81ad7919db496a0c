"""Utility scores from the literature: propensity mean squared error, integrated squared error of K."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dpppsynth.core.arguments import flag
from dpppsynth.core.errors import InputError
from dpppsynth.evaluation.distances import Density, common_domain, integral, values
from dpppsynth.evaluation.envelopes import common_distances, listed_curves
from dpppsynth.spatial.patterns import PointPattern
from dpppsynth.spatial.second_order import Floats, KFunction


def propensity_mse(
    original: PointPattern,
    synthetic: PointPattern,
    original_intensity: Density,
    synthetic_intensity: Density,
    *,
    balanced: bool = False,
) -> float:
    """Propensity mean squared error (pMSE): how well the intensities tell synthetic points from original ones.

    With `f` and `f'` the intensities of the n original and the m synthetic points, each divided by its integral, a
    point x of the n + m pooled ones has the propensity `p(x) = f'(x) / (f(x) + f'(x))`, and
    `pMSE = mean (p - m / (n + m))^2`. Small is good.

    Parameters
    ----------
    original, synthetic : PointPattern
        In the same domain, at least one point each.
    original_intensity, synthetic_intensity : callable
        Non-negative functions of coordinates (n, 2). Their integral over the domain is their own `total` where they
        have one, and found as in `total_variation` otherwise.
    balanced : bool
        Weight the intensities by the numbers of points: `p = m f' / (n f + m f')`. Unlike the printed form, which only
        does for n = m, that scores 0 for a synthesizer whose intensity is proportional to the original's. At most 1.

    Returns
    -------
    float
        A point at which both intensities vanish counts as one at which they agree.

    Raises
    ------
    InputError
        The domains differ, a pattern is empty, or an intensity is negative, infinite or zero everywhere.

    References
    ----------
    Snoke, Raab, Nowok, Dibben and Slavkovic (2018), General and specific utility measures for synthetic data, Journal
    of the Royal Statistical Society A 181, 663-688; the form of the propensities is Kim and Lim's.

    Examples
    --------
    >>> from dpppsynth.spatial.domains import Window
    >>> window = Window.rectangle(0, 0, 1, 1)
    >>> ours, theirs = PointPattern([[0.5, 0.5]], window), PointPattern([[0.1, 0.5], [0.2, 0.5], [0.9, 0.5]], window)
    >>> flat = lambda xy: np.ones(len(xy))
    >>> propensity_mse(ours, theirs, flat, flat), propensity_mse(ours, theirs, flat, flat, balanced=True)
    (0.0625, 0.0)
    """
    flag("balanced", balanced)
    domain = common_domain(original, synthetic, ("original", "synthetic"))
    if not len(original) or not len(synthetic):
        msg = "original, synthetic: propensities compare points of both; leave empty patterns out."
        raise InputError(msg)
    n, m = len(original), len(synthetic)
    pooled = np.concatenate([original.xy, synthetic.xy])
    ours, theirs = (
        values(intensity, pooled, name, domain) / integral(intensity, domain, name)
        for intensity, name in (
            (original_intensity, "original_intensity"),
            (synthetic_intensity, "synthetic_intensity"),
        )
    )
    vanish = (ours == 0) & (theirs == 0)
    ours, theirs = np.where(vanish, 1.0, ours), np.where(vanish, 1.0, theirs)
    if balanced:
        ours, theirs = n * ours, m * theirs
    return float(np.mean((theirs / (ours + theirs) - m / (n + m)) ** 2))


def mean_integrated_squared_error(
    originals: KFunction | Sequence[KFunction], synthetics: KFunction | Sequence[KFunction]
) -> float:
    """Mean integrated squared error (MISE) of the K-functions of synthetic patterns, relative to the originals'.

    The mean over all pairs of an original and a synthetic pattern of the integral of `(K_syn(r) / K_ori(r) - 1)^2` over
    the distances r at which `K_ori(r) > 0`, by the trapezoidal rule between neighbouring r at which that holds.

    Parameters
    ----------
    originals, synthetics : KFunction, or sequence of them
        On the same distances r and estimated in the same way, all in windows or all on networks.

    Returns
    -------
    float
        In the domain's unit of length. It grows with the range of r, and is ruled by the smallest r at which K_ori is
        positive: compare only what was computed on the same r.

    Raises
    ------
    InputError
        The distances or the kind of estimate differ, a sequence is empty, or an original K is positive nowhere.

    Examples
    --------
    >>> r = np.array([0.0, 1.0, 3.0])
    >>> ours = KFunction(r, np.array([0.0, 1.0, 2.0]), "ang", False, True)
    >>> mean_integrated_squared_error(ours, KFunction(r, np.array([0.0, 2.0, 4.0]), "ang", False, True))
    2.0
    """
    ours, theirs = (
        listed_curves([each] if isinstance(each, KFunction) else each, name, KFunction)
        for each, name in ((originals, "originals"), (synthetics, "synthetics"))
    )
    r = common_distances([*ours, *theirs], "originals, synthetics")
    synthetic = np.stack([each.k for each in theirs])
    return float(np.mean([_integrated(r, each.k, synthetic) for each in ours]))


def _integrated(r: Floats, original: Floats, synthetic: Floats) -> float:
    """Mean over rows of synthetic K (s, b) of the integrated squared relative error."""
    known = original > 0
    panel = np.where(known[:-1] & known[1:], np.diff(r), 0.0)
    if not panel.any():
        msg = "originals: K is zero at all but one of the distances r, so that nothing compares with it; add larger r."
        raise InputError(msg)
    squared = (synthetic / np.where(known, original, 1.0) - 1) ** 2
    return float(((squared[:, :-1] + squared[:, 1:]) / 2 @ panel).mean())
