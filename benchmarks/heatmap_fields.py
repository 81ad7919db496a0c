"""Heat maps with levels counted by rule and a field behind them, beside what was the default before.

Fills a table of docs/results/heatmaps.md, in some minutes:

    OMP_NUM_THREADS=1 python benchmarks/heatmap_fields.py --out docs/results/heatmaps.md

Nothing here is private: truths are compared with estimates, and the noise is seeded. Rule and prior were chosen on
cities and images of other seeds.
"""

from collections.abc import Iterator

import heatmap_tables as tables
import numpy as np
from baselines.heatmap_arrays import Users, aggregate
from heatmap_data import cities, city, gaussians
from heatmaps import PEOPLE, SEED, SIDE, drawn, gazers, scores

from dpppsynth.mechanisms.heatmap.bound import measured_depth
from dpppsynth.mechanisms.heatmap.tree import pyramid

# Arguments of each method, and the number of its noise: two that share it fit the same noised counts.
METHODS: dict[str, tuple[int, dict[str, object]]] = {
    "before: practical at 256 x 256, least squares": (0, {"fit": "least-squares"}),
    "practical by rule, least squares": (1, {"measure": True, "fit": "least-squares"}),
    "practical by rule, field": (1, {"measure": True, "fit": "field"}),
    "practical at 64 x 64, w = 64, least squares": (2, {"measure": 64, "w": 64, "fit": "least-squares"}),
    "two levels by rule, least squares": (3, {"measure": True, "variant": "two-level", "fit": "least-squares"}),
    "two levels by rule, field": (3, {"measure": True, "variant": "two-level", "fit": "field"}),
}


def estimate(users: Users, epsilon: float, method: str, key: list[int]) -> np.ndarray:
    """Masses by a method; the public guess of the number of persons is right."""
    noise, settings = METHODS[method]
    if settings.get("measure") is True:
        settings = settings | {"measure": 2 ** rule(users, epsilon)}
    rng = np.random.default_rng([SEED, 19, *key, noise])
    return aggregate(users, epsilon=epsilon, rng=rng, **settings)  # type: ignore[arg-type]


def rule(users: Users, epsilon: float) -> int:
    inside = np.ones((users.side, users.side)) if users.inside is None else users.inside
    cells = [int(np.count_nonzero(level)) for level in pyramid(inside.astype(float))]
    return measured_depth(cells, epsilon, float(users.total().sum()))


def data() -> Iterator[tuple[str, float, Users, list[int]]]:
    """Names, epsilons and persons of all runs, with the key of their noise."""
    scenes = cities(30, SEED, [])
    for which, scene in enumerate(scenes):
        for run in range(2):
            users = scene.sample(PEOPLE, np.random.default_rng([SEED, 2, which, run])).users(SIDE)
            yield "cities, 200 persons", 1.0, users, [1, which, run]
            if not run and which < 20:
                yield "cities, 200 persons", 0.2, users, [2, which]
                yield "cities, 200 persons", 5.0, users, [3, which]
    for which in range(6):
        rng = np.random.default_rng([SEED, 20, which])
        yield "cities, 5000 persons", 1.0, city(rng, 5000, 5001).users(SIDE), [4, which]
    for which in range(30):
        yield "gaze, 50 persons", 2.0, gazers(which), [5, which]
    for components, points in ((20, 5), (80, 700)):
        for run in range(8):
            rng = np.random.default_rng([SEED, 8, components, points, run])
            users = gaussians(components, PEOPLE, points, rng).users(SIDE)
            yield f"{components} Gaussians, 200 persons", 1.0, users, [6, components, run]


def rows() -> Iterator[list]:
    """Scores of every method on every data set: [data, epsilon, method, SIM, CC, KL, EMD]."""
    for name, epsilon, users, key in data():
        truth = drawn(users.total(), users)
        for method in METHODS:
            yield [name, epsilon, method, *scores(truth, drawn(estimate(users, epsilon, method, key), users))]


if __name__ == "__main__":
    tables.of_methods(__doc__, "fields", rows, METHODS)
