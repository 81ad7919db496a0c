"""`StreetNames`: public names of streets from the file of a network, found by where the streets lie.

A network keeps no names: its edges are parts of lines, or several of them, once they were cut, joined or merged. Each
of their parts lies on a line of the file all the same, and has its name.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import shapely
from numpy.typing import NDArray

from dpppsynth.core.errors import InputError
from dpppsynth.core.wording import mention
from dpppsynth.io.reading import is_graphml
from dpppsynth.linear_network import LinearNetwork
from dpppsynth.linear_network.network_formats import read_graphml
from dpppsynth.spatial.marks import word
from dpppsynth.spatial.polygons import in_system
from dpppsynth.spatial.tables.formats import as_path, read_layer
from dpppsynth.spatial.tables.table import existing

if TYPE_CHECKING:
    from dpppsynth.core.crs import CRSLike

# Shares of a part's length at which it is compared with lines.
PLACES = np.array([0.25, 0.5, 0.75])
# Shares of the network's box within which a part lies on a line, and within which a joined or contracted end moved.
NEAR, MOVED = 1e-6, 1e-3
OF_STREETS = "names: are those of streets, and this release is on a window; leave them out"
MISSING = ("", "None", "nan", "NaN", "<NA>", "NaT")


@dataclass(frozen=True, eq=False, repr=False)
class StreetNames:
    """Names of lines, of which edges of a network are parts.

    Attributes
    ----------
    lines : (n,) array of shapely LineStrings
        In the coordinate system of the network.
    names : (n,) array of str
        Empty where a line has none.
    """

    lines: NDArray[Any]
    names: NDArray[np.str_]

    def __repr__(self) -> str:
        return f"StreetNames({len(self.lines)} lines)"

    @classmethod
    def read(cls, path: str | Path, column: str, network: LinearNetwork, *, crs: CRSLike | None = None) -> Self:
        """Read the names of a network's streets from the file that it was read from.

        Parameters
        ----------
        path : str or Path
            As for `dpppsynth.io.read_network`.
        column : str
            Column or attribute of edges with the names, such as "name"; values of a list are joined.
        network : LinearNetwork
            That of the release, however its lines were mended when it was read.
        crs : str, int or pyproj.CRS, optional
            Coordinate system of a file that does not name one; the network's unless given.

        Raises
        ------
        InputError
            The file cannot be read, has no such column, or is not that of the network: less than half of the network
            lies on its lines.
        """
        if not isinstance(network, LinearNetwork):
            raise InputError(OF_STREETS)
        rows = _of_graph(as_path(path), column) if is_graphml(path) else _of_table(path, column)
        shapes, cells, source = rows
        lines, row = shapely.get_parts(shapely.force_2d(shapes), return_index=True)
        linear = (shapely.get_type_id(lines) == shapely.GeometryType.LINESTRING) & ~shapely.is_empty(lines)
        lines, row = lines[linear], row[linear]
        lines = in_system(lines, crs if source is None else source, network.crs)
        finite = np.array([np.isfinite(shapely.get_coordinates(each)).all() for each in lines], dtype=bool)
        texts = np.array([_text(each) for each in cells], dtype=np.str_)
        found = cls(np.asarray(lines[finite], dtype=object), texts[row[finite]])
        found._require_of(network, as_path(path).name)
        return found

    def of(self, parts: NDArray[Any], network: LinearNetwork) -> NDArray[np.str_]:
        """(m,) names of parts (m,) of edges: of the nearest line, empty where none is near or it has no name."""
        size = _size(network)
        at = shapely.line_interpolate_point(parts[:, None], PLACES, normalized=True)
        part, line = shapely.STRtree(self.lines).query(at[:, 1], predicate="dwithin", distance=MOVED * size)
        away = shapely.distance(at[part], self.lines[line][:, None]).max(axis=1)
        away[away <= NEAR * size] = 0.0
        # Of lines that lie upon another, as of both directions of a street, the first one with a name.
        order = np.lexsort((line, self.names[line] == "", away, part))
        first = order[np.unique(part[order], return_index=True)[1]]
        names = np.full(len(parts), "", dtype=self.names.dtype)
        names[part[first]] = self.names[line[first]]
        return names

    def _require_of(self, network: LinearNetwork, file: str) -> None:
        middles = shapely.line_interpolate_point(network.lines, 0.5, normalized=True)
        near = shapely.STRtree(self.lines).query(middles, predicate="dwithin", distance=NEAR * _size(network))[0]
        if network.lengths[np.unique(near)].sum() < network.length / 2:
            msg = (
                f"names: the lines of {file} are not those of the release's streets; name the file that the network "
                f"was read from, and its coordinate system if it names none ({mention('crs')})"
            )
            raise InputError(msg)


def _size(network: LinearNetwork) -> float:
    """Diagonal of the network's box."""
    x0, y0, x1, y1 = network.bounds
    return float(np.hypot(x1 - x0, y1 - y0))


def _of_table(path: str | Path, column: str) -> tuple[NDArray[Any], Iterable[Any], CRSLike | None]:
    table = read_layer(path, "streets are lines")
    table.column(column, argument="names")
    return table.geometry, table.cells(column), table.crs


def _of_graph(path: Path, column: str) -> tuple[NDArray[Any], Iterable[Any], CRSLike | None]:
    graph = read_graphml(path)
    edges = [(u, v, data) for u, v, data in graph.edges(data=True)]
    known = dict.fromkeys(name for *_, data in edges for name in data)
    if column not in known:
        msg = f"names: there is no attribute {column!r} of edges; {existing(known)}"
        raise InputError(msg)
    try:
        places = {name: (float(data["x"]), float(data["y"])) for name, data in graph.nodes(data=True)}
        shapes = [
            shapely.from_wkt(data["geometry"]) if "geometry" in data else shapely.LineString([places[u], places[v]])
            for u, v, data in edges
        ]
    except (LookupError, TypeError, ValueError, shapely.errors.ShapelyError):
        msg = f"names: {path.name} is no graph with places of nodes and courses of edges, such as OSMnx writes"
        raise InputError(msg) from None
    return np.array(shapes, dtype=object), [data.get(column) for *_, data in edges], graph.graph.get("crs")


def _text(cell: Any) -> str:
    """A name as one text; several, such as OSMnx keeps in a list or in its text, with a semicolon between them."""
    if isinstance(cell, str) and cell.startswith("["):
        try:
            cell = ast.literal_eval(cell)
        except (ValueError, SyntaxError):
            return cell
    if isinstance(cell, list | tuple | np.ndarray):
        return "; ".join(filter(None, map(_text, cell)))
    text = word(cell)
    return "" if text in MISSING else text
