"""Guarantees of Poisson patterns with a Gaussian kernel at each point: Theorem B, and Kim & Lim's Theorem 3.6.

Proofs in docs/theory/kernel.md. A pattern is the union of independent clusters, one per point; of those only the moved
point's differ, a Poisson number of Gaussian mechanisms. So the bandwidth depends neither on the number of points nor on
the size of the window.
"""

import math
from typing import Any

import numpy as np
from scipy.special import pdtrc

from dpppsynth.core.arguments import COMMON, instance, positive, probability, shown, whole, whole_number
from dpppsynth.core.errors import InputError, PrivacyCheckError
from dpppsynth.core.wording import mention
from dpppsynth.privacy.bounds import assumptions
from dpppsynth.privacy.catalogue import REALS, SEED, Code
from dpppsynth.privacy.guarantee import Guarantee, on_ground, on_map
from dpppsynth.privacy.profiles import ApproximateDP, PoissonGaussianDP
from dpppsynth.privacy.relations import AddRemove, CappedRelation, as_relation
from dpppsynth.spatial.domains import Domain, Window
from dpppsynth.spatial.gaussian_kernel import require_bandwidth

SETTLED = "public-bandwidth"
QUIET = "secret-running-times"
# Bandwidths are rounded up by more than the arithmetic can lose.
UP = 1 + 1e-12
# Beyond this many children of one person the profile takes long to sum, and the bandwidth exceeds any window.
MOST_CHILDREN = 10_000
# Larger numbers of points are no longer whole as floating-point numbers.
MOST_POINTS = 2**53
LEAST_DELTA = 1e-300


def superposition(
    window: Window, relation: CappedRelation | float, *, bandwidth: float, delta: float, patterns: int = 1
) -> Guarantee:
    """Guarantee of the kernel synthesizer, for every pattern: Theorem B.

    Parameters
    ----------
    window : Window
    relation : CappedRelation or float
        Moves only; a number is the privacy radius of `AlphaNeighbours`.
    bandwidth : float
        Standard deviation of the kernel along each axis, in the window's unit.
    delta : float
        The delta at which the guarantee is quoted; strictly between 0 and 1.
    patterns : int
        Number of patterns drawn.

    Raises
    ------
    InputError
        Under `AddRemove`, or when the bandwidth or delta is out of range.

    Examples
    --------
    >>> guarantee = superposition(Window.rectangle(0, 0, 10, 10), 0.707, bandwidth=1.706, delta=1 / 128)
    >>> round(guarantee.epsilon(), 3)
    1.0
    """
    relation = checked_moves(relation)
    require_bandwidth(bandwidth)
    bandwidth, rate = float(bandwidth), children_rate(patterns, relation)
    profile = PoissonGaussianDP(_reach(window, relation) / bandwidth, rate, delta)
    curve = [
        (d, PoissonGaussianDP(float(d) / bandwidth, patterns, delta).epsilon(delta))
        for d in np.linspace(0, window.diameter, 41)[1:]
    ]
    return Guarantee(
        relation,
        profile,
        "kernel-superposition",
        kernel_assumptions(relation, window),
        on_ground(curve, window),
    )


def smallest_bandwidth(
    window: Window, relation: CappedRelation | float, *, epsilon: float, delta: float, patterns: int = 1
) -> float:
    """Smallest bandwidth within (epsilon, delta) by Theorem B, rounded up; parameters as in `superposition`.

    Raises
    ------
    InputError
        Under `AddRemove`, or when delta is so large that every bandwidth would do.
    """
    relation = checked_moves(relation)
    rate, reach = children_rate(patterns, relation), _reach(window, relation)
    epsilon, delta = checked_budget(epsilon, delta, rate)
    return reach / _largest_ratio(epsilon, delta, rate) * UP


def kim_lim_36(
    window: Window,
    relation: CappedRelation | float,
    *,
    n: int,
    bandwidth: float,
    epsilon: float,
    delta: float,
    patterns: int = 1,
) -> Guarantee:
    """Kim & Lim's Theorem 3.6, which holds for moves of all points at once, and so for any cap on points per person.

    Parameters
    ----------
    window, relation, bandwidth, patterns
        As in `superposition`.
    n : int
        Public number of points.
    epsilon, delta : float
        Budget of all patterns together.

    Raises
    ------
    PrivacyCheckError
        When the bandwidth is below `smallest_bandwidth_36`.
    """
    require_bandwidth(bandwidth)
    bandwidth, (epsilon, delta) = float(bandwidth), checked_budget(epsilon, delta)
    smallest = smallest_bandwidth_36(window, relation, n=n, epsilon=epsilon, delta=delta, patterns=patterns)
    if bandwidth < smallest:
        msg = (
            f"bandwidth: Theorem 3.6 needs at least {smallest:.6g} {window.unit} for (epsilon, delta) = ({epsilon:g}, "
            f"{delta:g}), got {bandwidth:g}; widen the kernel, or use Theorem B."
        )
        raise PrivacyCheckError(msg)
    relation = checked_moves(relation)
    return Guarantee(
        relation,
        ApproximateDP(epsilon, delta),
        "kim-lim-3.6",
        kernel_assumptions(relation, window),
    )


def smallest_bandwidth_36(
    window: Window, relation: CappedRelation | float, *, n: int, epsilon: float, delta: float, patterns: int = 1
) -> float:
    """Smallest bandwidth within (epsilon, delta) by Theorem 3.6, rounded up; parameters as in `kim_lim_36`.

    `(2 alpha B + alpha^2) / (2 h^2) <= epsilon / k`, B the diameter, k the most points but for probability delta. The
    printed condition adds the change of the edge correction on the left, which this one already covers.
    """
    reach = _reach(window, checked_moves(relation))
    epsilon, delta = checked_budget(epsilon, delta)
    if not all(1 <= (whole_number(each) or 0) <= MOST_POINTS for each in (n, patterns)):
        msg = (
            f"n, patterns: must be at least 1 and whole, got {mention('n', shown(n))} and "
            f"{mention('patterns', shown(patterns))}."
        )
        raise InputError(msg)
    spread = reach * (2 * window.diameter + reach) / 2
    return math.sqrt(spread * _most_points(patterns * n, delta) / epsilon) * UP


def _most_points(mean: float, delta: float) -> int:
    """Smallest k of at least 1 with `P(Poisson(mean) > k) <= delta`."""
    low, high = 0, 1
    while pdtrc(high, mean) > delta:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if pdtrc(middle, mean) <= delta else (middle, high)
    return high


def _largest_ratio(epsilon: float, delta: float, rate: int) -> float:
    """Largest move, in bandwidths, whose profile passes below (epsilon, delta)."""
    from scipy.optimize import brentq

    def excess(log_ratio: float) -> float:
        profile = PoissonGaussianDP(math.exp(log_ratio), rate, delta)
        return math.log(max(profile.delta(epsilon), 5e-324) / delta)

    high = 0.0
    while excess(high) <= 0:
        high += 1.0
    # E[delta_G(0; sqrt(K) ratio)] is below sqrt(rate) ratio / 2, so this one is always allowed, but for rounding.
    low = math.log(delta / rate)
    if excess(low) > 0:
        msg = f"delta: {delta!r} is smaller than the profile of kernels can be computed for; 1e-6 is a common choice."
        raise InputError(msg)
    return math.exp(brentq(excess, low, high, xtol=1e-14))


def children_rate(patterns: int, relation: CappedRelation) -> int:
    """Mean number of children that one person's points leave."""
    rate = whole("patterns", patterns, 1) * relation.max_points_per_person
    if rate > MOST_CHILDREN:
        msg = (
            f"patterns: times the cap on points per person they must not exceed {MOST_CHILDREN}, got {rate}; plan "
            "fewer patterns."
        )
        raise InputError(msg)
    return rate


def _reach(window: Window, relation: CappedRelation) -> float:
    """Largest Euclidean displacement of a point on the map, which no path inside the window is shorter than."""
    instance("window", window, Window, "Window.rectangle(0, 0, 1000, 1000) is one")
    return min(on_map(relation, window).reach, window.diameter)


def checked_moves(relation: CappedRelation | float) -> CappedRelation:
    """The relation, refused unless it is one of moves."""
    relation = as_relation(relation)
    if isinstance(relation, AddRemove):
        msg = (
            "relation: 'add-remove' has no guarantee here, because a point that is added leaves children with "
            "probability 0.63; use private counts or tents, or a posterior draw with a Gaussian intercept."
        )
        raise InputError(msg)
    return relation


def checked_budget(epsilon: Any, delta: Any, rate: float = math.inf) -> tuple[float, float]:
    """Epsilon, which must be positive, and delta, strictly between 0 and the chance of any child at a mean number."""
    epsilon, delta = positive("epsilon", epsilon, rule="be positive and finite"), probability("delta", delta)
    if delta < LEAST_DELTA:
        msg = f"delta: must be at least {LEAST_DELTA:g}, where floating-point numbers end, got {delta:g}; {COMMON}."
        raise InputError(msg)
    if delta >= -math.expm1(-rate):
        msg = (
            f"delta: must be below {-math.expm1(-rate):.4g}, the chance that a point leaves any child, got {delta!r}; "
            "1e-6 is a common choice."
        )
        raise InputError(msg)
    return float(epsilon), float(delta)


def kernel_assumptions(relation: CappedRelation, domain: Domain) -> tuple[Code, ...]:
    """Assumptions of every guarantee of patterns around the points."""
    return assumptions(relation, (SEED, REALS, QUIET), (SETTLED,), domain=domain)
