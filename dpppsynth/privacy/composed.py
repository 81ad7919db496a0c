"""Privacy profile of a sequential composition, by dp-accounting's privacy loss distributions.

A profile, which holds in both directions, is dominated by a law of losses on a lattice; the losses of releases made one
after another add up (docs/theory/composition.md). Every approximation is towards less privacy: losses between two
points of the lattice are split between both ("connect the dots"), what exceeds the lattice counts as infinite, and
rounding is paid for.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, ClassVar, NamedTuple

import numpy as np
import scipy

from dpppsynth.core.arguments import probability
from dpppsynth.core.types import Floats, Ints
from dpppsynth.privacy.losses import LossLattice, LossLaw
from dpppsynth.privacy.profiles import (
    LARGEST_RATE,
    ApproximateDP,
    GaussianDP,
    PoissonGaussianDP,
    Profile,
    profile_parts,
    smallest_epsilon,
)

__all__ = ["Composed", "LossSum", "basic_epsilon", "loss_sum", "merged_profiles", "suitable_step", "symmetric_law"]

# Hashable profiles.
Counts = Mapping[Any, int]

# Largest finite loss of one release, and most points of the lattices of all releases on one side of zero.
LARGEST_LOSS, MOST_POINTS = 60.0, 2**17
# Lattice points per standard deviation of the losses: splitting adds a 1000th to their variance at most. Largest step.
FINENESS, COARSEST = 16, 2.0**-7
# Share of delta that the ends of the lattices may cut off.
CUT = 1e-4
# Relative rounding errors of laws and of sums over them are below this.
ROUNDING = 1e-11


@dataclass(frozen=True)
class Composed(Profile):
    """Two or more releases made one after another from the same points, each with a profile settled beforehand.

    Attributes
    ----------
    parts : tuple of Profile
        One for each release.
    at : float
        The delta at which the composed profile is quoted; lattices are chosen for it.

    Examples
    --------
    >>> from dpppsynth.privacy.profiles import PureDP
    >>> both = Composed((PureDP(1.0), PureDP(1.0)), at=1e-6)
    >>> round(both.delta(1.0), 6), round(math.exp(2) * (1 - math.exp(-1)) / (1 + math.e) ** 2, 6)
    (0.337835, 0.337835)
    """

    parts: tuple[Profile, ...]
    at: float
    kind: ClassVar[str] = "composed"

    def __post_init__(self) -> None:
        object.__setattr__(self, "parts", profile_parts(self.parts))
        object.__setattr__(self, "at", probability("delta", self.at))

    def delta(self, epsilon: float) -> float:
        """Delta of the law of the summed losses; zero from the sum of pure levels on."""
        if epsilon >= basic_epsilon(self.parts, 0.0):
            return 0.0
        return self._losses.delta(epsilon)

    def epsilon(self, delta: float) -> float:
        """Inverse of `delta`, or basic composition where that is better; infinite where neither gives a bound."""
        basic, top = basic_epsilon(self.parts, delta), LARGEST_LOSS * len(self.parts) + 1
        if delta <= 0 or self._losses.delta(top) > delta:
            return basic
        return min(basic, smallest_epsilon(self._losses.delta, delta, top))

    def describe(self) -> str:
        count = f"{len(self.parts)} releases together"
        return self.quoted(f"; here the release is all {count}", f" for {count}")

    @cached_property
    def _losses(self) -> "LossSum":
        return loss_sum(merged_profiles(self.parts), self.at)


class LossSum(NamedTuple):
    """Sum of independent losses under finite measures, whose masses may exceed one.

    Attributes
    ----------
    law : dp-accounting's PLDPmf
        The finite losses. It would compose infinite ones as if all masses were one, so they are kept apart.
    norm, noise : float
        At most: the 2-norm of the finite masses, and the sum of their errors.
    total, finite : float
        Logarithms of all the mass, and of the share of it that bears finite losses.
    """

    law: Any
    norm: float
    noise: float
    total: float
    finite: float

    @classmethod
    def of(cls, single: LossLaw) -> "LossSum":
        """The sum that is a single loss."""
        from dp_accounting.pld import pld_pmf

        where, total = np.flatnonzero(single.mass), float(single.mass.sum()) + single.infinite
        # A law whose losses are all infinite still needs a place.
        places = (where - single.lattice.half).tolist()
        masses = dict(zip(places, single.mass[where].tolist(), strict=True)) or {0: 0.0}
        law = pld_pmf.create_pmf(masses, single.lattice.step, 0.0, True)
        share = single.infinite / total
        finite = math.log1p(-share) if share < 1 else -math.inf
        return cls(law, float(np.linalg.norm(single.mass)), 0.0, math.log(total), finite)

    @property
    def infinite(self) -> float:
        """Mass of the sums in which some loss is infinite: all the mass less that of finite losses alone."""
        return math.exp(self.total) * -math.expm1(self.finite)

    def delta(self, epsilon: float) -> float:
        """Upper bound of the hockey-stick divergence."""
        found = float(self.law.get_delta_for_epsilon(float(epsilon))) + self.infinite
        return min(1.0, found * (1 + ROUNDING) + self.noise)

    def plus(self, other: "LossSum") -> "LossSum":
        """Sum of this and an independent sum."""
        from dp_accounting.pld import pld_pmf

        law, mine, theirs = pld_pmf.compose_pmfs(self.law, other.law), math.exp(self.total), math.exp(other.total)
        norm = min(self.norm * theirs, other.norm * mine) * (1 + ROUNDING)
        noise = (self.noise * theirs + other.noise * mine) * (1 + ROUNDING)
        noise += _transform_noise(law, (self.norm + other.norm + norm) * mine * theirs)
        return LossSum(law, norm, noise, self.total + other.total, self.finite + other.finite)

    def times(self, count: int) -> "LossSum":
        """Sum of independent copies of this one, which must be exact."""
        if count == 1:
            return self
        law, total = self.law.self_compose(count, tail_mass_truncation=0), count * self.total
        norm = self.norm * math.exp(total) * (1 + ROUNDING)
        return LossSum(law, norm, _transform_noise(law, (count + 1) * norm), total, count * self.finite)


def loss_sum(counts: Counts, delta: float) -> LossSum:
    """Sum of the losses of releases, on a lattice suitable for `delta`.

    Parameters
    ----------
    counts : mapping of Profile to int
        Number of releases with each profile.
    delta : float
        Probability that is to be resolved.

    Returns
    -------
    LossSum
        Dominates the releases together. Those but for the last profile are remembered for the next call.
    """
    step, cut = suitable_step(counts, delta)
    *earlier, (profile, count) = counts.items()
    last = _exact(profile, step, cut).times(count)
    return _remembered(tuple(earlier), step, cut).plus(last) if earlier else last


def merged_profiles(parts: Iterable[Profile]) -> Counts:
    """Counts of equal profiles, with exact compositions merged; the profile with the last part comes last.

    Gaussian mechanisms add up by their squares. So do Poisson numbers of Gaussian mechanisms of one ratio by their
    rates: their loss depends on how many there are in all, which is a Poisson number again.
    """
    groups: dict[Any, list[Any]] = {}
    for part in reversed(tuple(parts)):
        groups.setdefault(_family(part), []).append(part)
    counts: dict[Any, int] = {}
    for group in reversed(groups.values()):
        first: Profile = group[0]
        if isinstance(first, GaussianDP):
            # Upwards: a square root of a rounded sum is off by less than this.
            counts[GaussianDP(math.sqrt(math.fsum(p.mu**2 for p in group)) * (1 + 1e-15), first.at)] = 1
        elif (
            isinstance(first, PoissonGaussianDP)
            and (rate := math.fsum(part.rate for part in group) * (1 + 1e-15)) <= LARGEST_RATE
        ):
            counts[PoissonGaussianDP(first.ratio, rate, first.at)] = 1
        else:
            counts.update(Counter(reversed(group)))
    return counts


def suitable_step(counts: Counts, delta: float) -> tuple[float, float]:
    """Step of the lattice, and the delta at which the lattice of one release may end; both powers of two.

    They bear on the precision of the bound, not on its truth. The second moment of a loss is about four times the area
    below its profile.
    """
    releases = sum(counts.values())
    cut = 2.0 ** math.floor(math.log2(max(CUT * delta / releases, 1e-40)))
    tops = {profile: _top(profile, cut) for profile in counts}
    moment = math.fsum(k * 4 * _area(profile, tops[profile]) for profile, k in counts.items()) / releases
    widest = math.fsum(k * tops[profile] for profile, k in counts.items()) / MOST_POINTS
    wanted = max(widest, min(COARSEST, math.sqrt(moment) / FINENESS), 1e-12)
    step = 2.0 ** math.floor(math.log2(wanted))
    return (2 * step if step < widest else step), cut


def symmetric_law(profile: Any, step: float, cut: float) -> LossLaw:
    """Law of losses on a lattice that dominates a profile in both directions, up to where its delta is below `cut`.

    A point of the profile's lower convex hull, in `e^epsilon`, where the slope changes by `c` bears a mass
    `c e^epsilon`; its mirror image follows from `P(-l) = e^-l P(l)`, and zero bears the rest. Masses sum to one, but
    for rounding that is paid for.
    """
    half = max(1, math.ceil(_top(profile, cut) / step))
    losses = LossLattice(step, half).losses[half:]
    curve = _attainable(losses, np.array([min(1.0, profile.delta(float(epsilon))) for epsilon in losses]))
    corner = _lower_hull(np.exp(losses), curve)
    odds, heights = np.exp(losses[corner]), curve[corner]
    slopes = np.append(np.diff(heights) / np.diff(odds), 0.0)
    mass = np.zeros(2 * half + 1)
    mass[half + corner[1:]] = odds[1:] * np.diff(slopes)
    mass[half - corner[1:]] = np.diff(slopes)
    infinite = float(heights[-1])
    rest = 1 - infinite - float(mass.sum())
    # Masses no larger than rounding are dropped, and added back below.
    mass[half] = rest if rest > ROUNDING / 100 else 0.0
    own = LossLaw(LossLattice(step, half), mass, infinite).curve()[half + corner]
    seen = heights > 0
    lift = max(1.0, float(np.max(heights[seen] / own[seen], initial=1.0))) * (1 + ROUNDING)
    return LossLaw(LossLattice(step, half), mass * lift, infinite * lift)


def _attainable(losses: Floats, heights: Floats) -> Floats:
    """Heights of a profile (m,), which bounds two laws in both directions, lowered to what it leaves possible.

    No total variation exceeds `(e^l - 1 + 2 h(l)) / (e^l + 1)` for any l.
    """
    most = float(np.min((np.expm1(losses) + 2 * heights) / (np.exp(losses) + 1)))
    return np.asarray(np.minimum.accumulate(np.minimum(heights, most)), dtype=np.float64)


def basic_epsilon(parts: tuple[Profile, ...], delta: float) -> float:
    """Epsilon of basic composition at `delta`: the sum of epsilons, each at a share of delta.

    Pure releases need none, (epsilon, delta) ones their slack, and the others share equally what is left:
    `1 - delta = prod (1 - delta_i)`. Infinite where delta does not suffice.
    """
    slacks = [part.slack if isinstance(part, ApproximateDP) else 0.0 for part in parts]
    pure = {part: part.level if isinstance(part, ApproximateDP) else part.epsilon(0.0) for part in {*parts}}
    levels = [pure[part] for part in parts]
    needy = [part for part, level in zip(parts, levels, strict=True) if level == math.inf]
    left = math.log1p(-delta) - math.fsum(map(math.log1p, (-slack for slack in slacks)))
    if left > 0:
        return math.inf
    each = -math.expm1(left / len(needy)) * (1 - 1e-9) if needy else 0.0
    shares = {part: part.epsilon(each) for part in {*needy}}
    return math.fsum([level for level in levels if level < math.inf] + [shares[part] for part in needy])


@lru_cache(maxsize=4)
def _remembered(counts: tuple[tuple[Any, int], ...], step: float, cut: float) -> LossSum:
    profile, count = counts[0]
    total = _exact(profile, step, cut).times(count)
    for profile, count in counts[1:]:
        total = total.plus(_exact(profile, step, cut).times(count))
    return total


@lru_cache(maxsize=256)
def _exact(profile: Profile, step: float, cut: float) -> LossSum:
    return LossSum.of(symmetric_law(profile, step, cut))


def _transform_noise(law: Any, norms: float) -> float:
    """Sum of the errors of a convolution by Fourier transforms of vectors whose 2-norms sum to `norms` with repetition.

    Each transform errs by a share of the 2-norm below 9 log2(points) 2^-53 (Higham 2002, Theorem 24.2, has 7); the
    transforms are bounded by the masses, which the norms are multiplied by. Sparse laws are convolved term by term,
    without loss.
    """
    from dp_accounting.pld import pld_pmf

    if isinstance(law, pld_pmf.SparsePLDPmf):
        return 0.0
    points = scipy.fft.next_fast_len(law.size, real=True)
    return 1e-15 * math.log2(points) * math.sqrt(points) * norms


def _family(part: Profile) -> Any:
    """Common kind of profiles whose composition is known in closed form, or of equal ones."""
    if isinstance(part, GaussianDP):
        return GaussianDP
    return (PoissonGaussianDP, part.ratio) if isinstance(part, PoissonGaussianDP) else part


@lru_cache(maxsize=256)
def _top(profile: Profile, cut: float) -> float:
    """Epsilon from which on delta is below `cut`, or falls no more; at most `LARGEST_LOSS`."""
    low, high = 0.0, LARGEST_LOSS
    enough = max(cut, profile.delta(high) * (1 + 1e-9))
    while high - low > 1e-3 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if profile.delta(middle) <= enough else (middle, high)
        if high < 1e-9:
            break
    return high


@lru_cache(maxsize=256)
def _area(profile: Profile, top: float) -> float:
    """Area below a profile, less what never falls."""
    nodes, weights = np.polynomial.legendre.leggauss(32)
    floor = profile.delta(top)
    # Nodes are denser near zero: x = top u^2.
    u = (nodes + 1) / 2
    heights = np.array([max(0.0, profile.delta(float(x)) - floor) for x in top * u**2])
    return float(heights @ (weights * u)) * top


def _lower_hull(x: Floats, y: Floats) -> Ints:
    """Indices of the corners of the lower convex hull of points with rising x; hardly visible ones are cut off."""
    hull: list[int] = []
    for k in range(len(x)):
        while len(hull) > 1:
            i, j = hull[-2:]
            before, after = (y[j] - y[i]) / (x[j] - x[i]), (y[k] - y[j]) / (x[k] - x[j])
            if after - before > ROUNDING * abs(before):
                break
            hull.pop()
        hull.append(k)
    return np.array(hull, dtype=np.int64)
