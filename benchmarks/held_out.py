"""Sets of points of which one half is released and the other one judges, and kernels, for several benchmarks.

Sets are files `NAME.csv.gz` of a folder, with columns x and y, beside which `NAME.json` may state a window: its `box`
and its `rings`, outer ones to the left and holes to the right. Without one the window is the box of the points, two
hundredths wider on every side. Simulated cities and tight spots come with them, and the deaths of Soho.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import city
import numpy as np
import shapely
from scipy.ndimage import gaussian_filter

import dpppsynth as dps
from dpppsynth.spatial.grid_cells import cell_places

# Windows of files whose points do not settle it, as their authors state them.
WINDOWS = {"bei": (0.0, 0.0, 1000.0, 500.0)}
WIDER = 0.02
# Numbers of points of simulated sets, and spots of tight ones: their number, and their widths in shares of the side.
CITY, SPOTS, WIDTHS = 20_000, 150, 0.004
# Bandwidths of kernels in shares of sqrt(A).
BANDWIDTHS = np.geomspace(0.002, 0.25, 30)


def files(folder: Path) -> Iterator[tuple[str, dps.PointPattern]]:
    """Patterns of the files of a folder."""
    for path in sorted(folder.glob("*.csv.gz")):
        name = path.name.removesuffix(".csv.gz")
        xy = np.loadtxt(path, delimiter=",", skiprows=1)[:, :2]
        window = stated_window(path.with_name(f"{name}.json"))
        if window is None:
            wider = WIDER * np.ptp(xy, axis=0)
            bounds = WINDOWS.get(name, (*(xy.min(axis=0) - wider), *(xy.max(axis=0) + wider)))
            window = dps.Window.rectangle(*map(float, bounds))
        yield name, dps.PointPattern(xy[window.contains(xy)], window)


def stated_window(path: Path) -> dps.Window | None:
    """The window that a file states, if it is there."""
    if not path.exists():
        return None
    stated = json.loads(path.read_text(encoding="utf-8"))
    if not stated["rings"]:
        return dps.Window.rectangle(*stated["box"])
    rings = [shapely.LinearRing(ring) for ring in stated["rings"]]
    outer, holes = (
        shapely.union_all([shapely.Polygon(r) for r in rings if r.is_ccw is left]) for left in (True, False)
    )
    return dps.Window.polygon(outer - holes)


def spots(rng: np.random.Generator, n: int) -> dps.PointPattern:
    """Points of which all but one in twenty lie in spots of very different weights and widths."""
    centre, weight = rng.uniform(0, 1, (SPOTS, 2)), rng.pareto(1.0, SPOTS) + 0.05
    width = WIDTHS * np.exp(0.8 * rng.standard_normal(SPOTS))
    spot = rng.choice(SPOTS, n, p=weight / weight.sum())
    xy = centre[spot] + rng.standard_normal((n, 2)) * width[spot, None]
    xy = np.where(rng.random((n, 1)) < 1 / 20, rng.random((n, 2)), xy)
    return dps.PointPattern(1000 * xy[((xy > 0) & (xy < 1)).all(axis=1)], dps.Window.rectangle(0, 0, 1000, 1000))


def sets(folder: Path | None, points: int = CITY) -> Iterator[tuple[str, dps.PointPattern]]:
    """All sets by name, simulated cities with this number of points."""
    yield from files(folder) if folder else ()
    for name in ("city", "narrow spots"):
        yield f"{name}, simulated", city.draw(city.truth(name, 1), points, np.random.default_rng(1))
    yield "tight spots, simulated", spots(np.random.default_rng(2), CITY // 2)
    yield "Soho", dps.datasets.soho_deaths()


def halves(pattern: dps.PointPattern, most: int | None = None) -> tuple[dps.PointPattern, np.ndarray]:
    """The half that is released, or as many points as are wanted of it, and the one that judges."""
    order = np.random.default_rng(0).permutation(len(pattern))
    known, judging = order[: len(pattern) // 2], order[len(pattern) // 2 :]
    return dps.PointPattern(pattern.xy[known[:most]], pattern.domain), pattern.xy[judging]


def score(density: np.ndarray, area: float) -> float:
    """Score of a normalised intensity at the points of the judging half."""
    return float(np.log(0.99 * density * area + 0.01).mean())


@dataclass(frozen=True, eq=False)
class Raster:
    """Pixels (nx, ny) over the box of a window."""

    window: dps.Window
    shape: tuple[int, int]

    @classmethod
    def of_squares(cls, window: dps.Window, pixels: int = 512) -> "Raster":
        """Pixels about as long as wide, so many along the longer side."""
        x0, y0, x1, y1 = window.bounds
        sides = np.array([x1 - x0, y1 - y0])
        nx, ny = np.maximum(1, np.rint(pixels * sides / sides.max()).astype(int))
        return cls(window, (int(nx), int(ny)))

    @property
    def sides(self) -> np.ndarray:
        """(2,) sides of a pixel."""
        x0, y0, x1, y1 = self.window.bounds
        return np.array([x1 - x0, y1 - y0]) / self.shape

    @cached_property
    def inside(self) -> np.ndarray:
        """(nx, ny) areas of the pixels within the window."""
        if self.window.is_rectangle:
            return np.full(self.shape, self.sides.prod())
        low = self.window.bounds[:2] + np.stack(np.indices(self.shape), axis=-1) * self.sides
        pixels, region = (
            shapely.box(*np.moveaxis(low, -1, 0), *np.moveaxis(low + self.sides, -1, 0)),
            self.window.geometry,
        )
        shapely.prepare(region)
        area = np.where(shapely.contains(region, pixels), self.sides.prod(), 0.0)
        border = shapely.intersects(region, pixels) & (area == 0)
        area[border] = shapely.area(shapely.intersection(pixels[border], region))
        return area

    @property
    def centres(self) -> np.ndarray:
        """(nx, ny, 2) centres of the pixels."""
        return self.window.bounds[:2] + (np.stack(np.indices(self.shape), axis=-1) + 0.5) * self.sides

    def counts(self, xy: np.ndarray, margin: tuple[int, int] = (0, 0)) -> np.ndarray:
        """(nx, ny) numbers of points, or more with pixels around; a point outside all counts in the nearest."""
        around = np.array(margin)
        low, high = np.reshape(self.window.bounds, (2, 2)) + np.outer((-1, 1), around * self.sides)
        nx, ny = self.shape + 2 * around
        found = np.zeros((nx, ny))
        np.add.at(found, tuple(cell_places(xy, (*low, *high), (nx, ny)).T), 1.0)
        return found

    def pixels(self, xy: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Indices of the pixels of points (n, 2)."""
        i, j = cell_places(xy, self.window.bounds, self.shape).T
        return i, j

    def density(self, masses: np.ndarray, xy: np.ndarray) -> np.ndarray:
        """(n,) normalised intensity at points (n, 2), from masses (nx, ny) of pixels, whatever their sum."""
        at = self.pixels(xy)
        area = np.maximum(self.inside[at], 1e-9 * self.sides.prod())
        return np.asarray(masses[at] / area / masses.sum())

    def smoothed(self, counts: np.ndarray, width: float) -> np.ndarray:
        """Masses (nx, ny) by a Gaussian kernel; what would leave the box is reflected at its border.

        Of a window that does not fill its box, each pixel's is divided by the part of the kernel within the window.
        """
        sigma = width / self.sides
        smooth = gaussian_filter(counts, sigma, mode="reflect")
        if self.window.is_rectangle:
            return smooth
        part = gaussian_filter(self.inside, sigma, mode="reflect")
        return np.divide(smooth, part, out=np.zeros(self.shape), where=self.inside > 0) * self.inside


def kernel(xy: np.ndarray, judging: np.ndarray, window: dps.Window) -> float:
    """Score of the best Gaussian kernel."""
    raster = Raster.of_squares(window)
    counts = raster.counts(xy)
    smoothed = (raster.smoothed(counts, width) for width in BANDWIDTHS * window.extent)
    return max(score(raster.density(masses, judging), window.area) for masses in smoothed)


def jittered(known: dps.PointPattern, alpha: float, epsilon: float) -> np.ndarray:
    """(n, 2) points moved by planar Laplace noise, alpha in shares of sqrt(A); some leave the window."""
    rng = np.random.default_rng(1)
    length = rng.gamma(2.0, alpha * known.domain.extent / epsilon, len(known))
    angle = rng.uniform(0, 2 * np.pi, len(known))
    return known.xy + length[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
