"""Originals of benchmarks/clusters.py: clustered, smooth, regular and uniform ones on a square of 1 km; Soho."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

import dpppsynth as dps

SIDE, STEP = 1000.0, 5.0
SQUARE = dps.Window.rectangle(0, 0, SIDE, SIDE, "EPSG:27700")
# Middles of a fine grid, on which true intensities are known, and its cells along a side of a square of 50 m.
TICKS = np.arange(STEP / 2, SIDE, STEP)
BLOCK = 10
SCALE = 100.0
Drawn = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True)
class Original:
    """A pattern, and its true intensity on the fine grid, up to a factor; None where it is not known."""

    pattern: dps.PointPattern
    truth: np.ndarray | None = None

    @property
    def shares(self) -> np.ndarray:
        """Shares of the true intensity in squares of 50 m."""
        return in_squares(self.truth)


def in_squares(values: np.ndarray) -> np.ndarray:
    """Shares in squares of 50 m of values on the fine grid."""
    k = len(TICKS) // BLOCK
    sums = values.reshape(k, BLOCK, k, BLOCK).sum(axis=(1, 3))
    return sums / sums.sum()


def clustered(rng: np.random.Generator, n: int, size: float, reach: float, kind: str) -> Drawn:
    """Poisson numbers of points about uniform parents: normal ("thomas"), or uniform in a disc ("matern")."""
    margin, parents, points, count = 4 * reach, [], [], 0
    while count < n:
        parent, k = rng.uniform(-margin, SIDE + margin, 2), rng.poisson(size)
        away = rng.standard_normal((k, 2)) if kind == "thomas" else in_disc(rng, k)
        xy = parent + reach * away
        xy = xy[((xy >= 0) & (xy <= SIDE)).all(axis=1)]
        parents.append(parent)
        points.append(xy)
        count += len(xy)
    return np.concatenate(points)[:n], about(np.array(parents), reach, kind)


def in_disc(rng: np.random.Generator, k: int) -> np.ndarray:
    angle, radius = rng.uniform(0, 2 * np.pi, k), np.sqrt(rng.random(k))
    return np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])


def about(parents: np.ndarray, reach: float, kind: str) -> np.ndarray:
    """Intensity given the parents."""
    x, y = ((TICKS - parents[:, [axis]]) ** 2 / reach**2 for axis in (0, 1))
    if kind == "thomas":
        return np.exp(-x / 2).T @ np.exp(-y / 2)
    total = np.zeros((len(TICKS), len(TICKS)))
    for each, other in zip(x, y, strict=True):
        total += each[:, None] + other <= 1
    return total


def cox(rng: np.random.Generator, n: int) -> Drawn:
    """Log-Gaussian Cox process of sd 1 and covariance exp(-d^2 / (2 * 100^2)), on a torus of twice the side."""
    m = 2 * len(TICKS)
    frequency = np.fft.fftfreq(m, STEP)
    squared = frequency[:, None] ** 2 + frequency**2
    shape = np.exp(-((np.pi * SCALE) ** 2) * squared)
    noise = np.fft.ifft2(np.fft.fft2(rng.standard_normal((m, m))) * shape).real
    field = noise / np.sqrt((shape**2).mean())
    truth = np.exp(field[: m // 2, : m // 2])
    return of_grid(truth, n, rng), truth


def of_grid(truth: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    """n points of an intensity on the fine grid."""
    cell = rng.choice(truth.size, n, p=(truth / truth.sum()).ravel())
    return STEP * (np.column_stack(np.divmod(cell, len(TICKS))) + rng.random((n, 2)))


def hard_core(rng: np.random.Generator, n: int) -> Drawn:
    """Uniform points one after the other, refused nearer than .4 of the side of a point's own square."""
    xy, nearest, count = np.full((n, 2), np.inf), 0.4 * SIDE / np.sqrt(n), 0
    while count < n:
        tried = rng.uniform(0, SIDE, 2)
        if not count or ((xy[:count] - tried) ** 2).sum(axis=1).min() > nearest**2:
            xy[count] = tried
            count += 1
    return xy, np.ones((len(TICKS), len(TICKS)))


def uniform(rng: np.random.Generator, n: int) -> Drawn:
    return rng.uniform(0, SIDE, (n, 2)), np.ones((len(TICKS), len(TICKS)))


def on_square(draw: Callable[[np.random.Generator, int], Drawn], rng: np.random.Generator, n: int) -> Original:
    xy, truth = draw(rng, n)
    return Original(dps.PointPattern(xy, SQUARE), truth)


def soho(on: str, *_: object) -> Original:
    """The deaths of Soho, whatever the number of points."""
    return Original(dps.datasets.soho_deaths(on=on))


def thomas(size: float, spread: float) -> Callable[[np.random.Generator, int], Original]:
    return partial(on_square, partial(clustered, size=size, reach=spread, kind="thomas"))


CLUSTERED = {
    "Thomas 3 x 5 m": thomas(3, 5.0),
    "Thomas 8 x 10 m": thomas(8, 10.0),
    "Thomas 8 x 25 m": thomas(8, 25.0),
    "Thomas 30 x 25 m": thomas(30, 25.0),
    "Thomas 30 x 50 m": thomas(30, 50.0),
    "Matern 10 x 30 m": partial(on_square, partial(clustered, size=10, reach=30.0, kind="matern")),
}
OTHERS = {
    "Cox, 100 m": partial(on_square, cox),
    "hard core": partial(on_square, hard_core),
    "uniform": partial(on_square, uniform),
}
SOHO = {"Soho, map": partial(soho, "window"), "Soho, streets": partial(soho, "streets")}
ORIGINALS: dict[str, Callable[[np.random.Generator, int], Original]] = CLUSTERED | OTHERS | SOHO
