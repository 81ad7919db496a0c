"""Simulated data of many persons with several points each, for benchmarks/heatmaps.py.

Cities stand for cells of Gowalla and Brightkite, images for Salicon's gaze data, mixtures for the synthetic data of the
paper. All points lie in the unit square; persons are numbered 0, 1, ...
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from baselines.heatmap_arrays import Users
from checkins import busiest_cells, read_checkins

# Pixels of an image.
SCREEN = (320, 240)
# The box of the paper's experiment: parts of North and Central America.
AMERICA = (-135.0, 0.0, -60.0, 50.0)


@dataclass(frozen=True, eq=False)
class Scene:
    """Points (k, 2) in the unit square, and the person (k,) each belongs to."""

    xy: np.ndarray
    user: np.ndarray

    @property
    def people(self) -> np.ndarray:
        return np.unique(self.user)

    def sample(self, number: int, rng: np.random.Generator) -> "Scene":
        """Some of the persons with all their points, drawn without replacement and numbered anew."""
        chosen = np.sort(rng.choice(self.people, number, replace=False))
        kept = np.isin(self.user, chosen)
        return Scene(self.xy[kept], np.searchsorted(chosen, self.user[kept]))

    def users(self, side: int | tuple[int, int]) -> Users:
        return Users.from_points(self.xy, self.user, side=side, pad=True)


@dataclass(frozen=True, eq=False)
class Mixture:
    """A mixture of normal distributions in the plane."""

    weights: np.ndarray
    means: np.ndarray
    roots: np.ndarray

    @classmethod
    def drawn(cls, weights: np.ndarray, widths: np.ndarray, rng: np.random.Generator) -> "Mixture":
        """Means uniform in the unit square, axes of random direction; the minor one has 1/4 to 1 of the width."""
        turn = rng.uniform(0, np.pi, len(weights))
        axes = np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]]).transpose(2, 0, 1)
        widths = np.column_stack([widths, widths * rng.uniform(0.25, 1, len(weights))])
        return cls(weights, rng.uniform(size=(len(weights), 2)), axes * widths[:, None, :])

    def draw(self, component: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """One point for each component asked for, drawn again until it lies in the unit square."""
        xy, todo = np.full((len(component), 2), -1.0), np.arange(len(component))
        while len(todo):
            normal = rng.standard_normal((len(todo), 2, 1))
            xy[todo] = self.means[component[todo]] + (self.roots[component[todo]] @ normal)[..., 0]
            todo = todo[((xy[todo] < 0) | (xy[todo] >= 1)).any(axis=1)]
        return xy


def city(rng: np.random.Generator, least: int = 250, most: int = 900) -> Scene:
    """3 to 40 districts of unequal size and width; persons stay in a few of them, and few persons check in often."""
    districts = int(rng.integers(3, 41))
    weights = rng.dirichlet(np.full(districts, 0.7))
    mixture = Mixture.drawn(weights, 0.05 * rng.lognormal(0, 0.7, districts), rng)
    people = int(rng.integers(least, most))
    checkins = np.minimum(rng.zipf(1.7, people), 500)
    own = rng.dirichlet(3 * weights + 1e-3, people)
    user = np.repeat(np.arange(people), checkins)
    component = (rng.random((len(user), 1)) > own.cumsum(axis=1)[user]).sum(axis=1)
    return Scene(mixture.draw(np.minimum(component, districts - 1), rng), user)


def gaussians(components: int, people: int, points: int, rng: np.random.Generator, widest: float = 0.15) -> Scene:
    """The paper's synthetic data: a uniform mixture of normal distributions, as many points for each person."""
    mixture = Mixture.drawn(np.full(components, 1 / components), rng.uniform(0.02, widest, components), rng)
    user = np.repeat(np.arange(people), points)
    return Scene(mixture.draw(rng.integers(components, size=len(user)), rng), user)


def image(rng: np.random.Generator, people: int = 75) -> Scene:
    """Gaze at an image: 2 to 6 things to look at and its centre, 10 to 40 fixations for each person."""
    things = int(rng.integers(2, 7))
    weights = np.append(0.8 * rng.dirichlet(np.full(things, 2.0)), 0.2)
    mixture = Mixture.drawn(weights, np.append(0.06 * rng.lognormal(0, 0.4, things), 0.25), rng)
    mixture.means[-1] = 0.5
    user = np.repeat(np.arange(people), rng.integers(10, 41, people))
    xy = mixture.draw(rng.choice(things + 1, len(user), p=weights), rng)
    return Scene(xy, user)


# First days of the paper's months, and of those after them, by what a file's name holds.
MONTHS = {"gowalla": ("2010-01-01", "2010-02-01"), "brightkite": ("2008-11-01", "2009-01-01")}


def months(path: Path) -> tuple[str | None, str | None]:
    """The paper's months of a file of Gowalla or Brightkite, by its name; of another one all there are."""
    return next((found for name, found in MONTHS.items() if name in path.name.lower()), (None, None))


def cities(number: int, seed: int, files: list[Path]) -> list[Scene]:
    """Simulated cities; of files of check-ins, the busiest cells of 300 x 300 in the paper's box and months."""
    if not files:
        return [city(np.random.default_rng([seed, 1, which])) for which in range(number)]
    scenes: list[Scene] = []
    for path in files:
        since, until = months(path)
        found = read_checkins(path, since=since, until=until, box=AMERICA, incomplete="drop")
        for box in busiest_cells(found, AMERICA, most=number):
            cell = found.within(box)
            scenes.append(Scene(cell.unit_square(box), cell.user))
    fit = [scene for scene in scenes if len(scene.people) >= 200]
    return sorted(fit, key=lambda scene: -len(scene.user))[:number]
