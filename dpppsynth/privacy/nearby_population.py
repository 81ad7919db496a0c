"""People within the privacy radius: the crowd in which a protected place is hidden.

All of it is computed from a public population, none from the points that are protected.
"""

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import cast

import numpy as np
import scipy
import shapely

from dpppsynth.core.arguments import instance, positive
from dpppsynth.core.errors import InputError
from dpppsynth.core.types import JsonObject
from dpppsynth.core.units import lengths_in
from dpppsynth.linear_network import LinearNetwork, network_mesh
from dpppsynth.linear_network.street_places import UNITS, StreetPlaces
from dpppsynth.privacy.catalogue import AVERAGED
from dpppsynth.privacy.guarantee import Guarantee
from dpppsynth.privacy.profiles import PureDP
from dpppsynth.privacy.relations import Relation
from dpppsynth.spatial.domains import Domain, Window, require_domain
from dpppsynth.spatial.mesh import Floats
from dpppsynth.spatial.offset import Offset
from dpppsynth.spatial.public_layers import PolygonLayer
from dpppsynth.spatial.raster_layers import RasterLayer

# Cells of the grid along a radius, at most; along the longer side of a window; and parts of a cell's side that tell
# which share of it a circle covers.
FINE, MOST_CELLS, PARTS = 8, 1500, 9
# Steps of a network's places along a radius, and places at most.
STEPS, MOST_PLACES = 8, 400_000
# Share of the population below which a cell is empty but for rounding.
NOBODY = 1e-12
# Epsilon from which a factor is written as a power.
LARGE = 30.0


@dataclass(frozen=True)
class Crowd:
    """Inhabitants within a radius of inhabited places.

    Attributes
    ----------
    radius : float
    unit : str
    inhabitants : float
        In all of the domain.
    typical : float
        Within the radius of half of the inhabitants no more live, and of the other half no fewer.
    fewest : float
        Within the radius of the most isolated place where anybody lives.
    along_streets : bool
        Whether distances run along streets; else they are straight, and the circle is cut by the window.
    """

    radius: float
    unit: str
    inhabitants: float
    typical: float
    fewest: float
    along_streets: bool

    def words(self, guarantee: Guarantee) -> str:
        """Text on the crowd, and on the guarantee for its inhabitants.

        Odds are bounded by pure epsilon alone: a delta leaves some outcomes without a bound, and a bound on average
        over a model says nothing about odds.
        """
        instance("guarantee", guarantee, Guarantee, "such as plan.guarantee")
        near, way = lengths_in(self.radius, self.unit), " along the streets" if self.along_streets else ""
        people = (
            f"Within {near}{way} of a typical inhabitant {_people(self.typical)}; around the most isolated place where "
            f"anybody does {_people(self.fewest)}."
        )
        if AVERAGED in guarantee.assumptions:
            return f"{people} The guarantee holds on average over a model only, and bounds nobody's odds."
        if not isinstance(guarantee.profile, PureDP):
            return (
                f"{people} The odds of one place against another within {near} have no bound that always holds, as the "
                f"guarantee allows exceptions of probability delta = {guarantee.profile.at:g}."
            )
        return (
            f"{people} Whoever sees the release, whatever else they know, can raise the odds of one place against "
            f"another within {near} by a factor of at most {_factor(guarantee.epsilon())}."
        )

    def to_dict(self) -> JsonObject:
        """JSON form."""
        return asdict(self)


def _factor(epsilon: float) -> str:
    return f"{math.exp(epsilon):.3g}" if epsilon < LARGE else f"e^{epsilon:g}"


def _people(number: float) -> str:
    # Whoever lives there is one of them: a layer of averages may tell of less.
    if number < 1.5:
        return "lives nobody else"
    return f"live about {float(f'{number:.2g}'):,.0f} people"


def people_within(population: Offset, domain: Domain, radius: float) -> Crowd:
    """Number of people within a radius of a typical and of the most isolated inhabited place of a domain.

    On a window distances are straight, and nobody outside counts; cells of a grid, an eighth of the radius wide where
    that is possible, stand for the people in them. Along a network distances are those of shortest paths, between
    stretches of an eighth of the radius. The most isolated place may be anywhere in its cell or stretch: the fewest
    are those around a corner of the cell, and no more than live around any place of the stretch.

    Parameters
    ----------
    population : Offset
        Inhabitants, made from counts: `Offset.from_geotiff("people.tif", "counts")`.
    domain : Window or LinearNetwork
    radius : float
        Such as alpha, in the domain's unit.

    Raises
    ------
    InputError
        When the population has no counts, or no values somewhere in the domain.
    """
    instance("population", population, Offset, 'such as Offset.from_grid(values, bounds, "counts")')
    require_domain(domain)
    positive("radius", radius)
    if population.meaning != "counts":
        msg = 'population: needs numbers of people, not densities; give "counts" where the layer is made.'
        raise InputError(msg)
    settled = population.on(domain)
    if isinstance(domain, LinearNetwork):
        mass, near, least = _along(settled, domain, radius)
    else:
        mass, near, least = _around(settled.layer, cast(Window, domain), radius)
    inhabited = mass > NOBODY * mass.sum()
    people, near = mass[inhabited], np.maximum(near[inhabited], 0.0)
    fewest = max(0.0, float(least[inhabited].min()))
    order = np.argsort(near)
    half = np.searchsorted(np.cumsum(people[order]), people.sum() / 2)
    typical = float(near[order][min(half, len(order) - 1)])
    found = float(mass.sum()), typical, fewest
    return Crowd(float(radius), domain.unit, *found, isinstance(domain, LinearNetwork))


def require_reach(relation: Relation) -> float:
    """The privacy radius of a relation; InputError where it has none."""
    if not math.isfinite(relation.reach):
        msg = "population: a crowd is that within a privacy radius, which this relation lacks; give alpha."
        raise InputError(msg)
    return float(relation.reach)


def _around(layer: PolygonLayer | RasterLayer, window: Window, radius: float) -> tuple[Floats, Floats, Floats]:
    """People in the cells of a grid over a window; within the radius of their middles; of their worst corners."""
    x0, y0, x1, y1 = window.bounds
    wanted = max(radius / FINE, max(x1 - x0, y1 - y0) / MOST_CELLS)
    shape = math.ceil((y1 - y0) / wanted), math.ceil((x1 - x0) / wanted)
    # Whole cells, so that the corners of the grid are those of a rectangle.
    step: Floats = np.array([(x1 - x0) / shape[1], (y1 - y0) / shape[0]])
    if isinstance(layer, RasterLayer) and layer.step.max() > step.min():
        grid = _spread(layer, window, step, shape)
    else:
        grid = np.zeros(shape)
        for xy, mass in _placed(layer, window, step, shape):
            column, row = np.clip(((xy - [x0, y0]) / step).astype(np.int64), 0, np.array(shape[::-1]) - 1).T
            grid += np.bincount(row * shape[1] + column, mass, grid.size).reshape(shape)
    near = _summed(grid, _disk(radius / step, corner=False))
    corners = _summed(grid, _disk(radius / step, corner=True))
    least = np.minimum.reduce([corners[:-1, :-1], corners[:-1, 1:], corners[1:, :-1], corners[1:, 1:]])
    return grid.ravel(), near.ravel(), np.minimum(near, least).ravel()


def _summed(grid: Floats, kernel: Floats) -> Floats:
    """Sums over the kernel's cells around each cell of a grid, or around each corner of a cell for an even kernel."""
    sides = [scipy.fft.next_fast_len(a + b - 1, real=True) for a, b in zip(grid.shape, kernel.shape, strict=True)]
    both = scipy.fft.rfft2(grid, sides) * scipy.fft.rfft2(kernel, sides)
    first = [(b - 1) // 2 for b in kernel.shape]
    rows, columns = (a + (b + 1) % 2 for a, b in zip(grid.shape, kernel.shape, strict=True))
    return np.asarray(scipy.fft.irfft2(both, sides)[first[0] : first[0] + rows, first[1] : first[1] + columns])


def _placed(
    layer: PolygonLayer | RasterLayer, window: Domain, step: Floats, shape: tuple[int, int]
) -> Iterator[tuple[Floats, Floats]]:
    """Batches of places (n, 2) in a window with people (n,)."""
    if isinstance(layer, RasterLayer):
        yield from layer.points(window)
        return
    x0, y0, _, _ = window.bounds
    for row in range(shape[0]):
        x = x0 + (np.arange(shape[1]) + 0.5) * step[0]
        xy = np.column_stack([x, np.full(shape[1], y0 + (row + 0.5) * step[1])])
        xy = xy[window.holds(xy)]
        yield xy, np.nan_to_num(layer(xy)) * step.prod()


def _spread(layer: RasterLayer, window: Window, step: Floats, shape: tuple[int, int]) -> Floats:
    """(rows, columns) people in the cells of a fine grid, among which the wide cells of a raster are shared by area."""
    x0, y0, _, _ = window.bounds
    part = layer.cropped(window.bounds)
    left, right, bottom, top = part.sides(window.bounds)
    x: Floats = x0 + step[0] * np.arange(shape[1] + 1.0)
    y: Floats = y0 + step[1] * np.arange(shape[0] + 1.0)
    people: Floats = _overlaps(y, bottom, top) @ np.nan_to_num(part.values) @ _overlaps(x, left, right).T
    if window.is_rectangle:
        return people
    return people * _shares_inside(window, x, y)


def _shares_inside(window: Window, x: Floats, y: Floats) -> Floats:
    """(rows, columns) shares of the cells between edges x and y that lie in a window."""
    shape, width, height = (len(y) - 1, len(x) - 1), x[1] - x[0], y[1] - y[0]
    across, up = np.meshgrid(x[:-1] + width / 2, y[:-1] + height / 2)
    share: Floats = window.holds(np.column_stack([across.ravel(), up.ravel()])).astype(np.float64)
    # Cells on the border are cut; they are found by points a quarter of a cell apart along it.
    border = shapely.get_coordinates(shapely.segmentize(window.geometry.boundary, min(width, height) / 4))
    column = np.clip(((border[:, 0] - x[0]) / width).astype(np.int64), 0, shape[1] - 1)
    row = np.clip(((border[:, 1] - y[0]) / height).astype(np.int64), 0, shape[0] - 1)
    cut = np.unique(row * shape[1] + column)
    row, column = np.divmod(cut, shape[1])
    boxes = shapely.box(x[column], y[row], x[column + 1], y[row + 1])
    share[cut] = shapely.area(shapely.intersection(boxes, window.geometry)) / shapely.area(boxes)
    return share.reshape(shape)


def _overlaps(edges: Floats, low: Floats, high: Floats) -> Floats:
    """(cells, intervals) lengths that the cells between edges share with intervals."""
    shared = np.minimum(edges[1:, None], high) - np.maximum(edges[:-1, None], low)
    return np.clip(shared, 0.0, None)


def _disk(radius: Floats, *, corner: bool) -> Floats:
    """(rows, columns) shares of cells, the unit of the radius, that a circle about the middle or corner of one has."""
    count = [2 * math.ceil(each) + (not corner) for each in radius]
    across, up = ((np.arange(n * PARTS) + 0.5) / PARTS - n / 2 for n in count)
    inside = ((up[:, None] / radius[1]) ** 2 + (across / radius[0]) ** 2 <= 1).astype(float)
    return np.asarray(inside.reshape(count[1], PARTS, count[0], PARTS).mean(axis=(1, 3)))


def _along(population: Offset, network: LinearNetwork, radius: float) -> tuple[Floats, Floats, Floats]:
    """People on short stretches of a network's streets; within the radius of their middles; and of all their places."""
    step = max(radius / STEPS, float(network.lengths.sum()) / MOST_PLACES)
    mesh = network_mesh(network, step)
    pieces = population.restrict(mesh)
    mass = np.bincount(pieces.element, pieces.weight, len(mesh.element_measure)).astype(np.float64)
    held = np.flatnonzero(mass > 0)
    # Middles of stretches are rounded to a quarter of a step.
    streets = StreetPlaces(network, step / 4)
    place = streets.places(np.column_stack([mesh.edge, (mesh.start + mesh.end) / 2])[held])
    known, where = np.unique(place, axis=0, return_inverse=True)
    people = np.bincount(where.ravel(), mass[held]).astype(np.float64)
    pairs = streets.near(known, math.ceil(4 * radius / step) + 2)
    apart = pairs.apart / UNITS * step / 4

    def within(reach: float) -> Floats:
        """People within a reach of the middles, with a share of those on a stretch where it ends."""
        share = np.clip((reach - apart) / step + 0.5, 0, 1)
        near: Floats = people.copy()
        near += np.bincount(pairs.first, share * people[pairs.second], len(people))
        near += np.bincount(pairs.second, share * people[pairs.first], len(people))
        return near

    # Whoever lives so near to the middle is within the radius of both ends.
    return people, within(radius), within(radius - step / 2)
