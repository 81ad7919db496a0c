"""Public terms of a release in one line, for titles of its pictures."""

import math

from dpppsynth.core.crs import NAMELESS, crs_label
from dpppsynth.core.rounding import downward, stated
from dpppsynth.core.units import short_unit
from dpppsynth.release import Release, StratifiedRelease


def terms_of(release: Release | StratifiedRelease) -> str:
    """Number of points where it is public, budget, privacy radius and coordinate system.

    Examples
    --------
    >>> from dpppsynth import AddRemove, LaplaceSynthesizer, PointPattern, Window
    >>> square = Window.rectangle(0, 0, 1000, 1000, "EPSG:27700")
    >>> pattern = PointPattern([[400, 300], [500, 700]], square)
    >>> terms_of(LaplaceSynthesizer(1.0, alpha=25.0).release(pattern))
    'n = 2, ε = 1, α = 25 m, EPSG:27700'
    >>> terms_of(LaplaceSynthesizer(1.0, relation=AddRemove()).plan(square, expected_n=9).release(pattern))
    'ε = 1, EPSG:27700'
    """
    sizes = [part.size[0] for part in release.parts.values()]
    guarantee, domain = release.guarantee, release.domain
    found = [f"ε = {stated(guarantee.epsilon(), 3)}"]
    if not any(size is None for size in sizes):
        found.insert(0, f"n = {sum(size or 0 for size in sizes):,}")
    if guarantee.profile.at:
        found.append(f"δ = {guarantee.profile.at:g}")
    if math.isfinite(guarantee.relation.reach):
        found.append(f"α = {downward(guarantee.relation.reach, 6)} {short_unit(domain.unit)}")  # noqa: RUF001 - alpha
    if domain.crs is not None and (label := crs_label(domain.crs)) != NAMELESS:
        found.append(label)
    return ", ".join(found)
