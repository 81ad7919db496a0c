"""Pointwise and global simulation envelopes of summary functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np

from dpppsynth.core.arguments import elements, flag
from dpppsynth.core.errors import InputError
from dpppsynth.core.types import Floats
from dpppsynth.evaluation.kfunction import k_function
from dpppsynth.spatial.patterns import PointPattern, pattern_of_frame
from dpppsynth.spatial.second_order import Envelope, KFunction, PairCorrelation

if TYPE_CHECKING:
    import geopandas

__all__ = ["Envelope", "common_distances", "envelope", "listed_curves"]

Summary = KFunction | PairCorrelation


def envelope(
    observed: Summary | PointPattern | geopandas.GeoDataFrame | geopandas.GeoSeries,
    simulated: Sequence[Summary | PointPattern],
    *,
    of: Callable[[PointPattern], Summary] = k_function,
    rank: int = 1,
    simultaneous: bool = False,
) -> Envelope:
    """Envelope of m simulated curves around an observed one.

    Patterns stand for their curves by `of`.

    K-functions are turned into L-functions, whose spread hardly depends on r; pointwise that changes nothing.

    - *Pointwise*: from the `rank`-th smallest to the `rank`-th largest simulated value at each r. If observed and
      simulated patterns come from one model, ties apart, the observed curve is outside with probability
      `2 rank / (m + 1)` at any r fixed beforehand, and far more often somewhere.
    - *Simultaneous*: a band of constant width around the simulated mean. With `D_i` the largest distance over r of
      curve i from the mean of the m others, the observed curve (one of these m + 1) leaves the band exactly when its D
      is larger than the `rank`-th largest D of the simulated ones. Under the model all orders of the D are equally
      likely: the probability is `rank / (m + 1)`, ties apart, and the p-value
      `(1 + #{D_i >= D_observed}) / (m + 1)`.

    Parameters
    ----------
    observed : KFunction, PairCorrelation, PointPattern, GeoDataFrame or GeoSeries
        Points of a table lie in the domain of the first simulated pattern, and in its coordinate system.
    simulated : sequence of KFunction, PairCorrelation or PointPattern
        Patterns such as those of `release.sample(39)` or `dps.simulate`, or curves on the same distances r, estimated
        in the same way; of patterns that are independent of each other, all in windows or all on networks.
    of : callable
        Makes curves of patterns, on the same distances for all patterns of a domain: `k_function`, `pair_correlation`,
        or one of them with other arguments, such as ``lambda pattern: k_function(pattern, r, correction="border")``.
    rank : int
        Rank of the band's value, 1 the most extreme; pointwise below (m + 1) / 2, simultaneous at most m.
    simultaneous : bool

    Raises
    ------
    InputError
        The curves do not belong together, fewer than two are simulated, or the rank is not possible.

    References
    ----------
    Ripley (1981), Spatial Statistics, Wiley; Baddeley, Diggle, Hardegen, Lawrence, Milne and Nair (2014), On tests of
    spatial pattern based on simulation envelopes, Ecological Monographs 84, 477-489.

    Examples
    --------
    >>> r = np.array([1.0, 2.0])
    >>> runs = [KFunction(r, np.array(k), "ang", False, True) for k in ([1.0, 2.0], [1.2, 2.2], [0.8, 1.8])]
    >>> band = envelope(KFunction(r, np.array([1.1, 2.6]), "ang", False, True), runs)
    >>> band, band.outside
    (Envelope(K, pointwise, level 0.5, r from 1 to 2), array([False,  True]))
    """
    flag("simultaneous", simultaneous)
    runs = listed_curves(simulated, "simulated", KFunction, PairCorrelation, PointPattern)
    domain = next((each.domain for each in runs if isinstance(each, PointPattern)), None)
    if domain is not None:
        observed = pattern_of_frame(observed, domain, "observed") or observed
    if len(runs) < 2:
        msg = "simulated: needs at least two simulated curves; 39 make pointwise envelopes of level 0.05."
        raise InputError(msg)
    given = [*listed_curves([observed], "observed", KFunction, PairCorrelation, PointPattern), *runs]
    drawn = [of(each) if isinstance(each, PointPattern) else each for each in given]
    r = common_distances(drawn, "observed, simulated")
    curve, curves = _stacked(drawn)
    m = len(runs)
    most = m if simultaneous else m // 2
    if isinstance(rank, bool) or not isinstance(rank, Integral) or not 1 <= rank <= most:
        msg = f"rank: must be a whole number from 1 to {most} with so many simulated curves, got {rank!r}."
        raise InputError(msg)
    values, mean = curves[0], curves[1:].mean(axis=0)
    if not simultaneous:
        ordered = np.sort(curves[1:], axis=0)
        return Envelope(curve, r, values, ordered[rank - 1], ordered[-rank], mean, 2 * rank / (m + 1))
    # Distance from the mean of the others, for all m + 1 curves at once.
    farthest = (m + 1) / m * np.abs(curves - curves.mean(axis=0)).max(axis=1)
    # Ties stay ties whatever the rounding.
    reach = farthest[1:] + 1e-12 * np.abs(curves).max()
    width = np.sort(reach)[-rank]
    p_value = (1 + int((reach >= farthest[0]).sum())) / (m + 1)
    return Envelope(curve, r, values, mean - width, mean + width, mean, rank / (m + 1), p_value)


def common_distances(curves: Sequence[Summary], names: str) -> Floats:
    """(b,) distances that all curves share; InputError where they do not, or are estimates of different kinds."""
    first = curves[0]
    for each in curves:
        if _kind(each) != _kind(first):
            msg = (
                f"{names}: curves of one kind compare: same function, correction, use of an intensity and bandwidth, "
                "all in windows or all on networks."
            )
            raise InputError(msg)
        if not np.array_equal(each.r, first.r):
            msg = f"{names}: the curves are on different distances r; compute all of them on the same r."
            raise InputError(msg)
        if not np.isfinite(_values(each)).all():
            msg = f"{names}: a curve is not finite at some r; leave out distances at which its estimate is undefined."
            raise InputError(msg)
    return first.r


def listed_curves(curves: Any, name: str, *kinds: type) -> list[Any]:
    """Curves in a list; InputError unless they are a sequence of at least one, all of these kinds."""
    several = elements(curves)
    found = [curves] if several is None else several
    wrong = [type(each).__name__ for each in found if not isinstance(each, kinds)]
    if wrong or not found or several is None:
        names = " or ".join(f"{kind.__name__}s" for kind in kinds)
        got = "none" if not found else wrong[0] if wrong else f"a {type(curves).__name__} by itself"
        msg = f"{name}: needs a sequence of {names}, at least one, got {got}; `k_function(pattern, r)` makes them."
        raise InputError(msg)
    return found


def _kind(curve: Summary) -> tuple[object, ...]:
    shared = type(curve), curve.planar, curve.correction, curve.inhomogeneous, curve.inhomogeneous and curve.normalise
    return shared if isinstance(curve, KFunction) else (*shared, curve.bandwidth)


def _values(curve: Summary) -> Floats:
    return curve.k if isinstance(curve, KFunction) else curve.g


def _stacked(curves: Sequence[Summary]) -> tuple[str, Floats]:
    """Name of what is compared, and its values (m + 1, b)."""
    first = curves[0]
    name = ("L" if first.planar else "K") if isinstance(first, KFunction) else "g"
    return name, np.stack([each.l if isinstance(each, KFunction) else each.g for each in curves])
