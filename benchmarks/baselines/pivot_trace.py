"""PivotTrace: anchor-based pivot sampling of trajectories as its published code runs it, which is not private.

Its reports are points of interest, and those are the points of the trajectories themselves: whoever sees a report sees
a place where somebody was. The number of sectors is chosen from the private directions as well, budgets are split by
the private lengths, and everything is drawn in floating point. The epsilon it names holds for none of that.

Points of interest count once, however many trajectories have a point there: drawn with their multiplicity, reports
would show the truth whatever the budget. In the last step the summed distance to the two copies' points is least at
either of them, so one of the two is drawn.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from baselines.trajectories import Trajectories
from dpppsynth.core.arguments import instance, positive
from dpppsynth.core.randomness import RngLike, generator
from dpppsynth.spatial.mesh import Floats, Ints

SECTORS = (5, 10, 15, 20)
# Shares of the budget: of regions against points; of a region's centre; of directions, pivots and the rest.
REGION, CENTRE, DIRECTIONS, PIVOTS, OTHERS = 0.25, 0.25, 0.75, 0.125, 0.125
COPIES = 2
# Beyond it exponentials overflow; nothing is hidden long before.
LARGEST_EPSILON = 500.0


@dataclass(frozen=True, eq=False, repr=False)
class PivotTrace:
    """Result of `pivot_trace`: never to be released.

    Attributes
    ----------
    trajectories : Trajectories
        One for each of the given ones, with as many points.
    epsilon : float
        Named for a trajectory; see the module why it does not hold.
    seeded : bool
    """

    trajectories: Trajectories
    epsilon: float
    seeded: bool

    def __repr__(self) -> str:
        return f"PivotTrace(epsilon={self.epsilon:g}: not to be released)"


def pivot_trace(trajectories: Trajectories, *, epsilon: float, rng: RngLike = None) -> PivotTrace:
    """Perturbed trajectories, for comparisons only.

    Parameters
    ----------
    trajectories : Trajectories
        Their points are the points of interest.
    epsilon : float
    rng : None, int or Generator

    Examples
    --------
    >>> walks = Trajectories.of([[[0, 0], [1, 0], [1, 1]], [[2, 2], [0, 1]]])
    >>> result = pivot_trace(walks, epsilon=1.0, rng=1)
    >>> result.trajectories.lengths
    array([3, 2])
    """
    instance("trajectories", trajectories, Trajectories, "Trajectories.of makes them")
    epsilon = float(positive("epsilon", epsilon, most=LARGEST_EPSILON))
    source = generator(rng)
    places = np.unique(trajectories.xy, axis=0)
    paths = (trajectories.path(k) for k in range(len(trajectories)))
    found = [_perturbed(path, places, epsilon, source) for path in paths]
    return PivotTrace(Trajectories.of(found), epsilon, rng is not None)


def _perturbed(path: Floats, places: Floats, epsilon: float, rng: np.random.Generator) -> Floats:
    """(n, 2) one trajectory of points of interest, merged from two copies."""
    region, points = epsilon * REGION / COPIES, epsilon * (1 - REGION) / COPIES
    sectors = _best_sectors(path, _per_direction(points, len(path)))
    copies = [
        _copy(path, shift, places[_region(path, places, region, rng)], points, sectors, rng) for shift in range(COPIES)
    ]
    chosen: Floats = np.where(rng.random(len(path))[:, None] < 0.5, *copies)
    return chosen


def _per_direction(epsilon: float, n: int) -> float:
    return DIRECTIONS * epsilon / (2 * max(n - 1, 1))


def _best_sectors(path: Floats, epsilon: float) -> int:
    """Number of sectors that keeps most of the reported directions near the true ones, from private data.

    The mean over the directions of the path and over angles `pi / g` of the probability that a report leaves to
    directions within that angle, g over all numbers of sectors.
    """
    way = np.diff(path, axis=0)
    angle = np.arctan2(way[:, 1], way[:, 0]) % (2 * math.pi)
    if not len(angle):
        return SECTORS[0]
    scores = [np.mean([_kept(angle, math.pi / near, gs, epsilon) for near in SECTORS]) for gs in SECTORS]
    return SECTORS[int(np.argmax(scores))]


def _kept(angle: Floats, near: float, sectors: int, epsilon: float) -> float:
    """Mean over directions of the overlaps of sectors and the angles near, in sectors, times their probabilities."""
    width = 2 * math.pi / sectors
    within = angle % width
    own = (np.minimum(within + near, width) - np.maximum(within - near, 0)) / width
    other = 1 / (sectors - 1 + math.exp(epsilon))
    return float(np.mean(own * math.exp(epsilon) * other + (2 * near / width - own) * other))


def _region(path: Floats, places: Floats, epsilon: float, rng: np.random.Generator) -> Ints:
    """Points of interest near the trajectory, about as far as its own points are from a noisy centre."""
    mean = places[_distances(places, path.mean(axis=0)).argmin()]
    centre = places[_exponential(mean, places, CENTRE * epsilon, rng)]
    far = _distances(places, centre)
    reach = far.max()
    if reach == 0:
        return np.arange(len(places))
    ratio = _distances(path, centre).max() / reach
    radius = reach * _calibrated(ratio, far / reach, (1 - CENTRE) * epsilon, rng)
    return np.flatnonzero(far <= radius) if radius > 0 else np.arange(len(places))


def _calibrated(ratio: float, places: Floats, epsilon: float, rng: np.random.Generator) -> float:
    """A ratio by the square wave, moved towards the mean ratio of the points of interest that it makes likely."""
    half = _half_width(epsilon)
    noisy = _square_wave(ratio, half, epsilon, rng)
    found = (noisy + half) / (1 + 2 * half)
    kept = [each / 10 for each in range(1, 11) if abs(each / 10 - noisy) <= half]
    weights = np.ones(len(places))
    if kept:
        # A density serves as a weight here; where it exceeds one, the others have none.
        likely = min(1 / (2 * half + math.exp(-epsilon)), 1.0)
        weights = np.where((places >= kept[0]) & (places <= kept[-1]), likely, 1 - likely)
    eta = float(np.average(places, weights=weights)) if weights.any() else float(places.mean())
    room = eta if found <= eta else 1 - eta
    beta = abs(eta - found) / room if room > 0 else 0.0
    if beta == 0:
        return found
    return found - (eta - found) / math.expm1(-beta / 2) * math.exp(-epsilon)


def _half_width(epsilon: float) -> float:
    """Best half-width of a square wave on [0, 1]: `(eps e^eps - e^eps + 1) / (2 e^eps (e^eps - 1 - eps))`."""
    if epsilon < 1e-4:
        # Both differences cancel; the next term of the series is below 1e-4.
        return 0.5
    return (epsilon + math.expm1(-epsilon)) / (2 * (math.expm1(epsilon) - epsilon))


def _square_wave(value: float, half: float, epsilon: float, rng: np.random.Generator) -> float:
    """A report in [-half, 1 + half] of a value in [0, 1]: near it with `e^epsilon` times the density of elsewhere."""
    near = 2 * half / (2 * half + math.exp(-epsilon))
    if rng.random() < near:
        return value + rng.uniform(-half, half)
    # The range less the part near the value has length 1.
    elsewhere = rng.uniform(0, 1)
    return elsewhere - half if elsewhere < value else elsewhere + half


def _copy(path: Floats, shift: int, region: Floats, epsilon: float, sectors: int, rng: np.random.Generator) -> Floats:
    """(n, 2) points of the region in place of the path's: every other one a pivot, the rest in directions from them."""
    n = len(path)
    copy = np.empty_like(path)
    for k in range(shift, n, 2):
        copy[k] = region[_exponential(path[k], region, PIVOTS * epsilon / n, rng)]
    for k in range(1 - shift, n, 2):
        pivots = [copy[each] for each in (k - 1, k + 1) if 0 <= each < n]
        inside = np.ones(len(region), dtype=bool)
        for low, high, pivot in _noisy_sectors(path[k], pivots, sectors, _per_direction(epsilon, n), rng):
            inside &= _in_sector(region - pivot, low, high)
        candidates = region[inside] if inside.any() else region
        copy[k] = candidates[_exponential(path[k], candidates, OTHERS * epsilon / n, rng)]
    return copy


def _noisy_sectors(
    point: Floats, pivots: list[Floats], sectors: int, epsilon: float, rng: np.random.Generator
) -> Iterator[tuple[float, float, Floats]]:
    """Angles (low, high) of the sector reported for the point as seen from each pivot, and the pivot."""
    width = 2 * math.pi / sectors
    for pivot in pivots:
        angle = math.atan2(point[1] - pivot[1], point[0] - pivot[0]) % (2 * math.pi)
        true = min(int(angle / width), sectors - 1)
        keep = 1 / (1 + (sectors - 1) * math.exp(-epsilon))
        sector = true if rng.random() < keep else (true + int(rng.integers(1, sectors))) % sectors
        yield sector * width, (sector + 1) * width, pivot


def _in_sector(ways: Floats, low: float, high: float) -> np.ndarray:
    """(n,) whether directions (n, 2) lie between two angles less than pi apart, by the signs of cross products."""
    left = math.cos(low) * ways[:, 1] - math.sin(low) * ways[:, 0] >= 0
    right = math.cos(high) * ways[:, 1] - math.sin(high) * ways[:, 0] <= 0
    return left & right


def _distances(places: Floats, point: Floats) -> Floats:
    # Thrice as fast as np.hypot, and coordinates do not overflow when squared.
    return np.sqrt((places[:, 0] - point[0]) ** 2 + (places[:, 1] - point[1]) ** 2)


def _exponential(point: Floats, places: Floats, epsilon: float, rng: np.random.Generator) -> int:
    """One of the places by the exponential mechanism, the nearer to the point the likelier.

    The utility is minus the distance, and its largest difference between places stands for its sensitivity.
    """
    far = _distances(places, point)
    far -= far.min()
    largest = far.max()
    if largest == 0:
        return int(rng.integers(len(places)))
    steps = np.cumsum(np.exp(far / largest * (-epsilon / 2)))
    return int(min(np.searchsorted(steps, rng.random() * steps[-1], side="right"), len(places) - 1))
