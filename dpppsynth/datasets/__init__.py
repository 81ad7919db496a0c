"""Example patterns, long published, with the windows in which they are studied.

- `soho_deaths`: homes of the dead of the 1854 cholera outbreak in Soho, London;
- `soho_pumps`: the water pumps of the same streets;
- `geodanet_crimes`: crimes in a town in Arizona.

The windows have round bounds that follow from the maps of the streets, not from the points. `path` gives the CSV files
behind them for the command line, and those of the two street networks. Sources: the ``README.md`` of this folder.
"""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dpppsynth.domains import Window
from dpppsynth.errors import InputError
from dpppsynth.patterns import PointPattern

__all__ = ["geodanet_crimes", "path", "soho_deaths", "soho_pumps"]

FILES = (
    "geodanet_crimes",
    "geodanet_edges",
    "geodanet_vertices",
    "soho_addresses",
    "soho_edges",
    "soho_pumps",
    "soho_vertices",
)


def soho_deaths() -> PointPattern:
    """Return the 392 deaths of John Snow's cholera map of Soho, London, 1854.

    Each death is a point at the address of the home, so points coincide. The window is a square of 670 m by 670 m.

    Returns
    -------
    PointPattern
        In EPSG:27700 (British National Grid, metres).

    Examples
    --------
    >>> deaths = soho_deaths()
    >>> deaths.domain
    Window(rectangle [529100, 529770] x [180680, 181350], EPSG:27700, metre)
    >>> len(deaths)
    392
    """
    x, y, deaths = _columns("soho_addresses")
    homes = np.repeat(np.column_stack([x, y]), deaths.astype(np.intp), axis=0)
    return PointPattern(homes, Window.rectangle(529100, 180680, 529770, 181350, "EPSG:27700"))


def soho_pumps() -> PointPattern:
    """Return the 13 water pumps of John Snow's map, in a window of the whole street map (1100 m by 1000 m).

    Returns
    -------
    PointPattern
        In EPSG:27700 (British National Grid, metres).
    """
    x, y = _columns("soho_pumps")
    return PointPattern(np.column_stack([x, y]), Window.rectangle(528900, 180500, 530000, 181500, "EPSG:27700"))


def geodanet_crimes() -> PointPattern:
    """Return 287 crimes in a town in Arizona; some share a place with others.

    The window is the bounding box of the streets, with every side moved outwards to a multiple of 1000 feet.

    Returns
    -------
    PointPattern
        In EPSG:2223 (NAD83 / Arizona Central, international feet).
    """
    x, y = _columns("geodanet_crimes")
    return PointPattern(np.column_stack([x, y]), Window.rectangle(723000, 875000, 729000, 882000, "EPSG:2223"))


def path(name: str) -> Path:
    """Return the path of the CSV file behind an example.

    Parameters
    ----------
    name : str
        ``"soho_addresses"`` (columns x, y, deaths), ``"soho_pumps"``, ``"geodanet_crimes"`` (x, y),
        ``"soho_vertices"``, ``"geodanet_vertices"`` (vertex, x, y), ``"soho_edges"`` or ``"geodanet_edges"``
        (source, target).

    Raises
    ------
    InputError
        There is no such file.
    """
    if name not in FILES:
        msg = f"name: must be one of {', '.join(FILES)}; got {name!r}"
        raise InputError(msg)
    return Path(str(files(__name__).joinpath("data", f"{name}.csv")))


def _columns(name: str) -> NDArray[np.float64]:
    return np.loadtxt(path(name), delimiter=",", skiprows=1, unpack=True)
