"""Published example patterns, with their windows and street networks.

- `soho_deaths`: homes of the dead of the 1854 cholera outbreak in Soho, London, in a window or on `soho_streets`;
- `soho_pumps`: the water pumps of the same streets;
- `geodanet_crimes`: crimes in a town in Arizona, in a window or on `geodanet_streets`.

The windows have round bounds that follow from the maps of the streets, not from the points. `path` gives the CSV files
behind them for the command line, and those of the two street networks. Sources: the ``README.md`` of this folder.
"""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dpppsynth.core.errors import InputError
from dpppsynth.linear_network import LinearNetwork
from dpppsynth.spatial.domains import Window
from dpppsynth.spatial.patterns import PointPattern

__all__ = ["geodanet_crimes", "geodanet_streets", "path", "soho_deaths", "soho_pumps", "soho_streets"]

FILES = (
    "geodanet_crimes",
    "geodanet_edges",
    "geodanet_vertices",
    "soho_addresses",
    "soho_edges",
    "soho_pumps",
    "soho_vertices",
)
# How far the published points lie from the streets at most, rounded up: 29 m, 326 ft. Data that are not yet public
# must not be asked: their tolerance comes from the map.
SOHO_SNAP, GEODANET_SNAP = 30.0, 350.0

On = Literal["window", "streets"]


def soho_deaths(on: On = "window") -> PointPattern:
    """Return the 392 deaths of John Snow's cholera map of Soho, London, 1854.

    Each death is a point at the address of the home, so points coincide. The window is a square of 670 m by 670 m.

    Parameters
    ----------
    on : {"window", "streets"}
        Homes where they stand, or moved to the nearest place of `soho_streets`, at most 30 m away. The tolerance holds
        every home; it may be read off the homes because they are long published.

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
    if _on_streets(on):
        return soho_streets().snap(homes, SOHO_SNAP)
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


def soho_streets() -> LinearNetwork:
    """Return the streets of John Snow's map.

    Returns
    -------
    LinearNetwork
        In EPSG:27700 (British National Grid, metres); straight edges.

    Examples
    --------
    >>> soho_streets()
    LinearNetwork(229 vertices, 282 edges, length 13725.05925, EPSG:27700, metre)
    """
    return _streets("soho", "EPSG:27700")


def geodanet_crimes(on: On = "window") -> PointPattern:
    """Return 287 crimes in a town in Arizona; some share a place with others.

    The window is the bounding box of the streets, with every side moved outwards to a multiple of 1000 feet.

    Parameters
    ----------
    on : {"window", "streets"}
        Crimes where they are recorded, or moved to the nearest place of `geodanet_streets`, at most 350 feet away. The
        tolerance holds every crime; it may be read off the crimes because they are long published.

    Returns
    -------
    PointPattern
        In EPSG:2223 (NAD83 / Arizona Central, international feet).
    """
    x, y = _columns("geodanet_crimes")
    crimes = np.column_stack([x, y])
    if _on_streets(on):
        return geodanet_streets().snap(crimes, GEODANET_SNAP)
    return PointPattern(crimes, Window.rectangle(723000, 875000, 729000, 882000, "EPSG:2223"))


def geodanet_streets() -> LinearNetwork:
    """Return the streets of a town in Arizona.

    Returns
    -------
    LinearNetwork
        In EPSG:2223 (NAD83 / Arizona Central, international feet); straight edges.
    """
    return _streets("geodanet", "EPSG:2223")


def path(name: str) -> Path:
    """Return the path of an example's CSV file.

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


def _on_streets(on: str) -> bool:
    if on not in ("window", "streets"):
        msg = f"on: must be 'window' or 'streets'; got {on!r}"
        raise InputError(msg)
    return on == "streets"


def _streets(town: str, crs: str) -> LinearNetwork:
    _, x, y = _columns(f"{town}_vertices")
    return LinearNetwork(np.column_stack([x, y]), _columns(f"{town}_edges").T.astype(np.int64), crs)


def _columns(name: str) -> NDArray[np.float64]:
    return np.loadtxt(path(name), delimiter=",", skiprows=1, unpack=True)
