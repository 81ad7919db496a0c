"""Warnings about public parameters, before a budget is spent.

Nothing here refuses: what is proved stays proved. All follows from what is public: the promise, the domain and the
number of points or its guess, never from the points.
"""

import math

from dpppsynth.core.crs import remedy, utm_zone
from dpppsynth.core.local_crs import degrees_outside, middle
from dpppsynth.core.rounding import downward, upward
from dpppsynth.core.units import lengths_in
from dpppsynth.core.wording import mention
from dpppsynth.privacy.guarantee import Guarantee
from dpppsynth.privacy.relations import GeoIndistinguishability
from dpppsynth.spatial.domains import Domain

# Budgets outside hide nobody, or show nothing.
LARGEST_EPSILON, SMALLEST_EPSILON = 10.0, 0.01
# Share of 1/n above which a delta promises little.
LARGE_DELTA = 0.1
# Share of the diameter below which a privacy radius is hardly one.
SMALL_RADIUS = 1e-3
# Points below which noise hides all but the number.
FEW_POINTS = 80
# Diameter in degrees, and coordinates and diameter in metres of a map projection, below which a domain looks mistaken
# for another unit: kilometres of a national grid are four digits at most.
DEGREES, METRES, ACROSS = 70.0, 10_000.0, 2000.0
# Degrees by which a domain may lie outside the area that its CRS is made for.
MARGIN = 1.0


def cautions(guarantee: Guarantee, domain: Domain, n: float | None) -> tuple[str, ...]:
    """Warning sentences; empty where nothing is doubtful.

    Parameters
    ----------
    guarantee : Guarantee
        Of the release that is planned.
    domain : Window or LinearNetwork
    n : float or None
        Public number of points, or the guess of it; None where neither is known yet.

    Examples
    --------
    >>> from dpppsynth.privacy import AlphaNeighbours, PureDP, Guarantee
    >>> from dpppsynth.spatial.domains import Window
    >>> promise = Guarantee(AlphaNeighbours(25.0), PureDP(1.0), "theorem", ())
    >>> cautions(promise, Window.rectangle(0, 0, 1000, 1000), 40)
    ('n: with fewer than 80 points the noise often hides most of what distinguishes places.',)
    """
    found = [
        _of_epsilon(guarantee),
        _of_delta(guarantee, n),
        _of_radius(guarantee, domain),
        _of_coordinates(domain),
        _of_number(n),
    ]
    return (*(each for each in found if each), *_of_gaps(guarantee, domain))


def _of_epsilon(guarantee: Guarantee) -> str | None:
    # Of a report epsilon is spent by distance.
    if isinstance(guarantee.relation, GeoIndistinguishability):
        return None
    epsilon = guarantee.epsilon()
    said = upward(epsilon)
    if epsilon > LARGEST_EPSILON:
        return (
            f"epsilon: {said} promises little: what is released may be e^{said} times as likely with one person's "
            "data as with another's. Common budgets lie between 0.1 and 3."
        )
    if epsilon < SMALLEST_EPSILON:
        return f"epsilon: {said} is so small that little but noise is released; common budgets start at 0.1."
    return None


def _of_delta(guarantee: Guarantee, n: float | None) -> str | None:
    """Warning about a delta near 1/n; of larger ones the certificate itself warns."""
    delta = guarantee.profile.at
    if n is None or not LARGE_DELTA < delta * n < 1:
        return None
    return (
        f"delta: {upward(delta)} is {upward(delta * n)} of 1/n, at which publishing one random record whole would be "
        "allowed; take one far below, such as 1e-6."
    )


def _of_radius(guarantee: Guarantee, domain: Domain) -> str | None:
    radius, whole = guarantee.relation.reach, domain.diameter
    if not math.isfinite(radius):
        return None
    words, across = lengths_in(radius, domain.unit), _across(domain)
    if radius > whole:
        return (
            f"alpha: a privacy radius of {words} exceeds the whole domain, {across} across; is it in the domain's "
            "unit? ReplaceOne() (--relation replace-one) promises as much."
        )
    if radius < SMALL_RADIUS * whole:
        return (
            f"alpha: a privacy radius of {words} is less than a thousandth of the domain, {across} across; a person is "
            "hidden among places that near alone. Is it in the domain's unit?"
        )
    return None


def _of_gaps(guarantee: Guarantee, domain: Domain) -> tuple[str, ...]:
    """Gaps across which no move is protected; where everybody is hidden everywhere there are none."""
    reach = guarantee.relation.reach
    return domain.severed(reach * domain.scale_factor) if math.isfinite(reach) else ()


def _across(domain: Domain) -> str:
    return lengths_in(float(downward(domain.diameter, 3)), domain.unit)


def _of_coordinates(domain: Domain) -> str | None:
    x0, y0, x1, y1 = domain.bounds
    if domain.crs is None:
        on_globe = max(abs(x0), abs(x1)) <= 180 and max(abs(y0), abs(y1)) <= 90
        if on_globe and not _drawn(domain) and domain.diameter < DEGREES:
            return (
                f"domain: its coordinates look like degrees, in which distances are wrong; "
                f"{remedy(utm_zone(4326, middle(domain.bounds)))}. {mention('crs', repr('EPSG:4326'))} says what a "
                "file is in, and corners of a rectangle are given in the new system."
            )
        return None
    small = max(map(abs, domain.bounds)) < METRES and domain.diameter < ACROSS
    if domain.unit == "metre" and small and not _drawn(domain):
        return (
            f"domain: it is {_across(domain)} across in {domain.crs}, which is in metres; are "
            "its coordinates kilometres, or degrees?"
        )
    if degrees_outside(domain.crs, middle(domain.bounds)) > MARGIN:
        return (
            f"domain: it lies outside the area that {domain.crs} is made for; is this the CRS of its coordinates, and "
            "are latitude and longitude in the right order?"
        )
    return None


def _drawn(domain: Domain) -> bool:
    """Whether a domain begins at zero or has it in its middle: such ones are drawn, not located."""
    x0, y0, x1, y1 = domain.bounds
    return (x0, y0) in {(0, 0), (-x1, -y1)}


def _of_number(n: float | None) -> str | None:
    if n is None or n >= FEW_POINTS:
        return None
    return f"n: with fewer than {FEW_POINTS} points the noise often hides most of what distinguishes places."
