"""Data of benchmarks/local.py: simulated as published experiments describe theirs, and shipped patterns scaled up."""

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd

from dpppsynth import datasets
from dpppsynth.io import read_network
from dpppsynth.spatial.mesh import Floats, Ints

SEED = 2408
# Persons that stand for the points of a shipped pattern, in studies of area mechanisms and of range queries.
SCALED, SCALED_RANGES = 100_000, 500_000
# Standard deviation of the jitter, in the unit of the pattern: metres and feet.
JITTER = {"Soho": 20.0, "Arizona": 200.0}


@dataclass(frozen=True, eq=False)
class Points:
    """Points (n, 2) in a rectangle (x0, y0, x1, y1)."""

    name: str
    bounds: tuple[float, float, float, float]
    xy: Floats

    @cached_property
    def unit(self) -> Floats:
        """The points in the unit square."""
        low, high = np.reshape(self.bounds, (2, 2))
        return (self.xy - low) / (high - low)

    def values(self, d: int) -> Ints:
        """(n,) cells `i d + j` of a d x d grid, i along x."""
        i, j = np.clip((self.unit * d).astype(np.int64), 0, d - 1).T
        return i * d + j


# Points of one's own, in place of the shipped patterns.
OWN: Points | None = None


def own_points(path: Path, place: Path | Sequence[float], *, crs: str, x: str | None, y: str | None) -> Points:
    """Points of a file in a public square: its corner and side, or the square that holds a file's streets.

    Points outside are left out, as the paper leaves out those outside its boxes.
    """
    if isinstance(place, Path):
        bounds = read_network(place, to_crs=crs, node=True, largest_component=True).bounds
        low, side = np.array(bounds[:2]), max(np.subtract(bounds[2:], bounds[:2]))
        box = square(float(low[0]), float(low[1]), float(side))
    else:
        box = square(*place)
    # Cities leave coordinates blank where they hide or lack them.
    table = pd.read_csv(path, usecols=[x or "x", y or "y"])
    xy = table[[x or "x", y or "y"]].dropna().to_numpy(dtype=float)
    return kept(path.stem, box, xy)


def kept(name: str, bounds: tuple[float, float, float, float], xy: Floats) -> Points:
    """Points without those outside: data preparation, and no part of a mechanism."""
    inside = ((xy >= bounds[:2]) & (xy <= bounds[2:])).all(axis=1)
    return Points(name, bounds, xy[inside])


def source(*key: object) -> np.random.Generator:
    """Random numbers of one run, whatever else is run."""
    return np.random.default_rng([SEED, *(zlib.crc32(str(part).encode()) for part in key)])


def square(x0: float, y0: float, side: float) -> tuple[float, float, float, float]:
    return x0, y0, x0 + side, y0 + side


def gaussian(rho: float, mean: tuple[float, float], n: int, rng: np.random.Generator) -> Floats:
    return rng.multivariate_normal(mean, [[1, rho], [rho, 1]], n)


def area_data() -> list[Points]:
    """Normal, MNormal and SZipf with the published sizes and squares, then the shipped patterns in squares."""
    rng = np.random.default_rng([SEED, 1])
    three = [((0, 0), 0.5), ((1, 2), 0.0), ((2, 0), -0.2)]
    return [
        kept("Normal", square(-4.44, -4.87, 9.45), gaussian(0.5, (0, 0), 300_000, rng)),
        kept(
            "MNormal",
            square(-4.25, -4.32, 10.76),
            np.concatenate([gaussian(rho, mean, 100_000, rng) for mean, rho in three]),
        ),
        kept("SZipf", square(0, 0, 1), 2 ** rng.random((100_000, 2)) - 1),
        *(
            [OWN]
            if OWN
            else [
                shipped("Soho", square(529_100, 180_680, 670), SCALED, rng),
                shipped("Arizona", square(722_500, 875_000, 7000), SCALED, rng),
            ]
        ),
    ]


def shipped(name: str, bounds: tuple[float, float, float, float], n: int, rng: np.random.Generator) -> Points:
    """Points of a shipped pattern drawn with replacement, with jitter, until n of them lie inside."""
    pattern = datasets.soho_deaths() if name == "Soho" else datasets.geodanet_crimes()
    drawn = pattern.xy[rng.integers(len(pattern), size=2 * n)] + rng.normal(0, JITTER[name], (2 * n, 2))
    inside = kept(name, bounds, drawn)
    return Points(name, bounds, inside.xy[:n])


# Published boxes (longitude, latitude) and numbers of points; then clusters of the stand-in, their widths as shares of
# the box, and the share of points spread over it.
STAND_INS = {
    "Gowalla*": ((-124.26, 25.45, -71.87, 47.44), 3_451_190, 150, (0.002, 0.02), 0.02),
    "Porto*": ((-8.691294, 41.138351, -8.552009, 41.185935), 1_620_157, 60, (0.01, 0.06), 0.1),
    "Foursquare*": ((139.471, 35.510, 139.913, 35.867), 573_703, 100, (0.005, 0.04), 0.1),
}


def range_data() -> list[Points]:
    """Clusters that stand for the published check-ins and trips, of the same size, then the shipped patterns."""
    found = [clusters(name, *STAND_INS[name], np.random.default_rng([SEED, 2, k])) for k, name in enumerate(STAND_INS)]
    rng = np.random.default_rng([SEED, 3])
    if OWN:
        return [*found, OWN]
    soho, arizona = datasets.soho_deaths().domain.bounds, datasets.geodanet_crimes().domain.bounds
    return [*found, shipped("Soho", soho, SCALED_RANGES, rng), shipped("Arizona", arizona, SCALED_RANGES, rng)]


def clusters(
    name: str,
    bounds: tuple[float, float, float, float],
    n: int,
    number: int,
    widths: tuple[float, float],
    background: float,
    rng: np.random.Generator,
) -> Points:
    """Gaussian clusters with weights 1, 1/2, 1/3, ... at places that crowd in the middle, and a uniform background."""
    centres, sizes = rng.beta(2, 2, (number, 2)), rng.uniform(*widths, number)
    weights = 1 / np.arange(1, number + 1)
    made, total = [rng.random((round(background * n), 2))], round(background * n)
    while total < n:
        which = rng.choice(number, size=n, p=weights / weights.sum())
        drawn = rng.normal(centres[which], sizes[which, None])
        made.append(drawn[((drawn >= 0) & (drawn <= 1)).all(axis=1)])
        total += len(made[-1])
    low, high = np.reshape(bounds, (2, 2))
    return Points(name, bounds, np.clip(low + np.concatenate(made)[:n] * (high - low), low, high))
