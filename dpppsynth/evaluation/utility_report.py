"""`evaluate`: a confidential utility report on synthetic patterns, the same for every mechanism.

A report compares with sensitive points, so it is as confidential as they are. It is for the custodian's eyes, and what
it shows must not decide what is released: that would be a query without an account.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from dpppsynth.contract.result import HeatMapped, require_heat_map
from dpppsynth.core.arguments import elements, flag, instance, positive
from dpppsynth.core.errors import InputError
from dpppsynth.core.progress import Progress, ProgressLike, announced, each_of, inner_progress
from dpppsynth.core.randomness import RngLike, generator
from dpppsynth.evaluation.distances import Density, common_domain, quadrature_cell
from dpppsynth.evaluation.kfunction import default_distances
from dpppsynth.evaluation.mark_scores import (
    MARKS_NOTE,
    MarkComparison,
    score_marks,
    with_marks,
)
from dpppsynth.evaluation.metrics import (
    LARGEST_IN_PLANE,
    LARGEST_ON_NETWORK,
    MOST_PROPENSITIES,
    Comparison,
    KComparison,
    propensity_share,
    thins,
    transport_method,
)
from dpppsynth.evaluation.report_files import UtilityReport
from dpppsynth.evaluation.report_tables import (
    HEAT_NOTE,
    LEVELS_NOTE,
    PERSONS_NOTE,
    by_levels,
    score_heat,
)
from dpppsynth.spatial.domains import Domain
from dpppsynth.spatial.mark_space import Marks
from dpppsynth.spatial.mesh import Floats
from dpppsynth.spatial.patterns import PointPattern
from dpppsynth.spatial.second_order import checked_distances, frozen

# Patterns averaged for each reference value.
YARDSTICKS = 5
# Shares of a domain's extent: side of the misplaced share's squares, and bandwidth of kernel intensities.
SHARE = 0.1
YARDSTICK_LINES = (
    "uniform: points spread evenly, which is what no data at all would give.",
    "resampled: the original's points drawn anew with replacement, which is what chance alone costs.",
)
THINNED = (
    f"Of patterns of more than {LARGEST_IN_PLANE:,} points, on networks of more than {LARGEST_ON_NETWORK:,}, a random "
    "part is compared, but for numbers of points and misplaced shares. K stays as it is on average; compare other rows "
    "with those of the resampled original."
).replace(",000", " 000")
FEWER = f"Propensity scores are averaged at {MOST_PROPENSITIES:,} random points.".replace(",000", " 000")
SLICED = (
    "Wasserstein distances of large patterns are sliced: 2/pi of the exact ones at most; compare them in this table."
)
NO_HEAT = "Kernel intensities are left out: this network has too many or too short edges for heat flow."
EMPTY = "Synthetic patterns without points count in the rows of points, K and L alone."


def evaluate(
    original: PointPattern,
    synthetic: PointPattern | Sequence[PointPattern],
    *,
    r: npt.ArrayLike | None = None,
    side: float | None = None,
    bandwidth: float | None = None,
    synthetic_intensity: Density | None = None,
    release: HeatMapped | None = None,
    described: Marks | None = None,
    by: str | None = None,
    confidential: bool = True,
    rng: RngLike = 0,
    progress: ProgressLike = None,
) -> UtilityReport:
    """Compare synthetic patterns with the original, by eight numbers and two yardsticks.

    Each pattern is scored by itself; the table holds means over patterns. Metrics: number of points; integrated squared
    relative error of the K-function; largest difference of the L-functions, from a tenth of the distances on; share of
    the points that would have to change squares of a grid; total variation between kernel intensities, both divided by
    their totals; mean squared error of propensity scores, as printed and balanced (zero for a perfect synthesizer,
    however many points it draws); mean distance that a point must move. K and L are homogeneous, so they show where
    points gather as well as how; where points of the original coincide, K differs from that of any pattern whose points
    do not from r = 0 on, which is why L is compared from a tenth of the largest distance.

    The yardsticks are five patterns each: homogeneous Poisson patterns with the original's mean number of points
    ("uniform"), and the original's points drawn anew with replacement ("resampled"). Of patterns of more than 20 000
    points, on networks of more than 2 000, a random part of so many is compared, but for numbers of points, misplaced
    shares and, on networks, kernel intensities; propensity scores are averaged at 6 000 points of both at most. Beyond
    about 1 000 points in a window the Wasserstein distances are sliced. On networks of more than 3 000 edges, or with
    edges far shorter than the bandwidth, there are no kernel intensities, and three rows stay empty.

    On one core a pattern of 1 000 points takes a tenth of a second, and the yardsticks as much as ten patterns. One
    pattern of 2 000 points with its yardsticks takes 3 s, of 10 000 half a minute, and larger ones about a minute.

    Parameters
    ----------
    original : PointPattern
        At least two points; marks are not looked at, but for that of the persons where `release` is given, types and
        times where they are `described`, and the mark `by`.
    synthetic : PointPattern or sequence of PointPattern
        On the same domain; they may be empty.
    r : array_like, shape (b,), optional
        Distances of K, two or more, in the domain's unit. Unless given: 512 steps, in a window up to a quarter of the
        shorter side of its bounding box, on a network up to a quarter of its extent.
    side : float, optional
        Side of the squares of the misplaced share. Unless given: a tenth of the domain's extent.
    bandwidth : float, optional
        Bandwidth of the kernel intensities, no less than total variation resolves: 1/150 of a window's extent, 1/16384
        of a network's length. Unless given: a tenth of the domain's extent.
    synthetic_intensity : callable, optional
        The intensity that all synthetic patterns were drawn from, for the propensity scores, where a mechanism releases
        one; unless given the kernel intensity of each pattern.
    release : HeatmapRelease, optional
        The heat map release that the synthetic patterns were drawn from. Its heat map is set against that of the
        original's persons, who must be marked as in the release, by earth mover's distance, SIM, CC and KL.
    described : Marks, optional
        Types and times, which the original and the synthetic patterns have then: `release.marks` of a release of points
        with marks. Rows for shares of types, histograms and distances of times, K by type and misplaced shares by mark
        are added. The distance of times goes around a clock where there is one.
    by : str, optional
        Public mark of all patterns, as of a release by levels: each level with two points or more is compared as well,
        with the same squares, bandwidth and distances.
    confidential : bool
        False takes the warnings off. That is honest only where the original is no data about anybody: simulated, or
        published long ago.
    rng : None, int, numpy.random.Generator, SeedSequence or BitGenerator
        For the yardsticks and the thinning; the same report again unless given.
    progress : callable or bool, optional
        Told in words how far it is. Unless given, a line on the screen in interactive use; False is silence.

    Raises
    ------
    InputError
        A pattern lies in another domain, the original has no pair of points, there is no synthetic pattern, or a
        setting breaks its rule.

    Examples
    --------
    >>> from dpppsynth.spatial.domains import Window
    >>> window = Window.rectangle(0, 0, 10, 10)
    >>> rng = np.random.default_rng(1)
    >>> simulated, other = (PointPattern(rng.uniform(0, 10, (40, 2)), window) for _ in range(2))
    >>> report = evaluate(simulated, other, confidential=False)
    >>> float(report.table.loc["points", "synthetic"])
    40.0
    """
    flag("confidential", confidential)
    patterns = _listed(synthetic)
    _require(original, patterns)
    heat = None if release is None else score_heat(require_heat_map(release), original)
    marked = []
    if described is not None:
        instance("described", described, Marks, "such as release.marks")
        marked = [with_marks(original, described, "original")]
        marked += [with_marks(each, described, "synthetic") for each in patterns]
    parts = {} if by is None else by_levels(original, patterns, by)
    domain = original.domain
    comparison = Comparison(
        original,
        r=default_distances(domain) if r is None else _distances(r),
        side=_length("side", side, domain),
        # Between the nodes of the quadrature far narrower kernels fall.
        bandwidth=_length("bandwidth", bandwidth, domain, quadrature_cell(domain)),
        transport=transport_method(original, patterns),
        rng=generator(rng),
    )
    with announced(progress) as say:
        scored = _scored(comparison, patterns, synthetic_intensity, say)
        marks = None
        if described is not None:
            against = MarkComparison(marked[0], described, comparison.side, comparison.r, comparison.rng)
            marks = score_marks(against, marked[1:], [comparison.uniform_pattern() for _ in range(YARDSTICKS)])
        settings: dict[str, Any] = {"r": comparison.r, "side": comparison.side, "bandwidth": comparison.bandwidth}
        settings |= {"confidential": confidential, "rng": rng}
        levels = {
            level: evaluate(*part, **settings, progress=inner_progress(say, f"{by} {level}", k, len(parts)))
            for k, (level, part) in enumerate(parts.items())
        }
    return UtilityReport(
        original,
        patterns,
        KComparison(comparison.k, tuple(each.k for each in scored["synthetic"])),
        {name: frozen(np.array([one.values for one in each])) for name, each in scored.items()},
        comparison.side,
        comparison.bandwidth,
        _notes(comparison, patterns)
        + (() if heat is None else (HEAT_NOTE, PERSONS_NOTE))
        + (() if marks is None else (MARKS_NOTE,))
        + ((LEVELS_NOTE,) if parts else ()),
        confidential,
        heat,
        marks,
        levels,
    )


def _scored(
    comparison: Comparison, patterns: Sequence[PointPattern], intensity: Density | None, say: Progress
) -> dict[str, list[Any]]:
    """Scores of the patterns and of the yardsticks."""
    work: list[tuple[str, Callable[[], Any]]] = [
        *(("synthetic", partial(comparison.score, each, intensity)) for each in patterns),
        *[("uniform", comparison.uniform)] * YARDSTICKS,
        *[("resampled", comparison.resampled)] * YARDSTICKS,
    ]
    scored: dict[str, list[Any]] = {}
    for name, score in each_of(say, "comparing", work):
        scored.setdefault(name, []).append(score())
    return scored


def _listed(synthetic: Any) -> tuple[Any, ...]:
    """One pattern or several as a tuple; what a release or anything else would take is said."""
    if isinstance(synthetic, PointPattern):
        return (synthetic,)
    found = elements(synthetic)
    if found is not None:
        return tuple(found)
    remedy = "`PointPattern.synthetic(xy, domain)` makes one"
    if hasattr(synthetic, "patterns"):
        remedy = "they are its `release.patterns`"
    elif hasattr(synthetic, "sample"):
        remedy = "`release.sample(20)` draws some"
    msg = f"synthetic: must be a PointPattern or several, got {type(synthetic).__name__}; {remedy}"
    raise InputError(msg)


def _require(original: PointPattern, patterns: tuple[PointPattern, ...]) -> None:
    for each in patterns:
        common_domain(original, each, ("original", "synthetic"))
    if not patterns:
        msg = "synthetic: there is no pattern to evaluate; `release.sample(10)` draws some"
        raise InputError(msg)
    if len(original) < 2:
        msg = "original pattern: must have at least two points, K is about pairs; join patterns or enlarge the domain"
        raise InputError(msg)


def _distances(r: npt.ArrayLike) -> Floats:
    found = checked_distances(r)
    if len(found) < 2:
        msg = "r: needs two distances or more, K is integrated over them; for instance np.linspace(0, 400, 41)"
        raise InputError(msg)
    return found


def _length(name: str, value: float | None, domain: Domain, least: float = 0.0) -> float:
    if value is None:
        return SHARE * domain.extent
    rule = f"be a positive length ({domain.unit})"
    value = float(positive(name, value, rule=rule, remedy="without it, a tenth of the extent"))
    if value < least:
        msg = (
            f"{name}: the quadrature of total variation resolves no less than {least:.4g} ({domain.unit}) in this "
            f"domain, got {value!r}; take that or more, or leave it out for a tenth of the extent"
        )
        raise InputError(msg)
    return value


def _notes(comparison: Comparison, patterns: tuple[PointPattern, ...]) -> tuple[str, ...]:
    said = (
        (any(thins(each) for each in (comparison.original, *patterns)), THINNED),
        (any(propensity_share(comparison.original, each) < 1 for each in patterns), FEWER),
        (comparison.transport == "sliced", SLICED),
        (any(not len(each) for each in patterns), EMPTY),
        (comparison.intensity is None, NO_HEAT),
    )
    return (*YARDSTICK_LINES, *(note for holds, note in said if holds))
