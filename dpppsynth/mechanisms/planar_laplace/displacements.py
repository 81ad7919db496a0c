"""Displacements of moved points in words."""

from dpppsynth.core.rounding import upward
from dpppsynth.core.units import short_unit
from dpppsynth.spatial.domains import Domain


def farthest(most: float, domain: Domain) -> str:
    """The largest displacement or error in words, rounded up.

    Examples
    --------
    >>> from dpppsynth import Window
    >>> farthest(765.6090102, Window.rectangle(0, 0, 1000, 1000, "EPSG:27700"))
    '765.61 m'
    """
    return f"{upward(most)} {short_unit(domain.unit)}"
