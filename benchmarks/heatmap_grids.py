"""Heat maps by the default beside plain grids, PrivTree and plain hierarchical least squares.

Fills a table of docs/results/heatmaps.md, in some minutes:

    OMP_NUM_THREADS=1 python benchmarks/heatmap_grids.py --out docs/results/heatmaps.md

Nothing here is private: truths are compared with estimates, and the noise is seeded. Rivals get what suits them: the
grids the side that is better, hierarchies the depth that is, and PrivTree, whose proof is for one point a person, the
whole mass of every person.
"""

import math
from collections.abc import Callable, Iterator

import heatmap_tables as tables
import numpy as np
from baselines.heatmap_arrays import Users, aggregate, normalised
from heatmap_fields import data, rule
from heatmap_rivals import coarse_grid, equal_budgets, noisy, quadtree
from heatmaps import SEED, drawn, scores

from dpppsynth.mechanisms.heatmap.tree import pyramid

DEFAULT = "default: two levels by rule, field"
# Fan of PrivTree, its share of the budget for the tree, and the count below which a cell is not split.
FAN, FOR_TREE, THRESHOLD = 4, 0.5, 0.0


def grid(users: Users, level: int, epsilon: float, rng: np.random.Generator) -> np.ndarray:
    """One histogram with 2^level cells along each side, negative ones 0, spread evenly within."""
    counts = np.maximum(noisy(pyramid(users.lattice())[level], epsilon, rng), 0)
    return normalised(spread(counts, users))


def spread(counts: np.ndarray, users: Users) -> np.ndarray:
    """Counts (m, m) laid evenly on the cells of the picture."""
    block = 2**users.depth // len(counts)
    fine = np.kron(counts, np.full((block, block), 1 / block**2))
    return fine[: users.shape[0], : users.shape[1]]


def privtree(users: Users, epsilon: float, rng: np.random.Generator) -> np.ndarray:
    """PrivTree (Zhang, Xiao and Xie 2016) with half of the budget for the tree, half for the counts of its leaves."""
    scale = (2 * FAN - 1) / (FAN - 1) / (FOR_TREE * epsilon)
    bias = scale * math.log(FAN)
    levels = pyramid(users.lattice())
    unit = float(levels[0].sum()) / max(float(users.total().sum()), 1e-12)
    found = np.zeros(levels[-1].shape)
    live = np.ones((1, 1), dtype=bool)
    for depth, counts in enumerate(levels):
        exact = counts / unit
        score = np.maximum(exact - depth * bias, THRESHOLD - bias) + rng.laplace(0, scale, exact.shape)
        split = live & (score > THRESHOLD) & (depth < len(levels) - 1)
        leaf = live & ~split
        counted = np.where(leaf, np.maximum(noisy(counts, (1 - FOR_TREE) * epsilon, rng), 0), 0.0)
        block = len(found) // len(counts)
        found += np.kron(counted, np.full((block, block), 1 / block**2))
        if depth < len(levels) - 1:
            live = np.kron(split, np.ones((2, 2))).astype(bool)
    return normalised(found[: users.shape[0], : users.shape[1]])


def hierarchy(users: Users, depth: int, epsilon: float, rng: np.random.Generator) -> np.ndarray:
    """All levels down to one, equal budgets, least squares (Hay et al. 2010)."""
    return quadtree(users, equal_budgets(epsilon, depth), rng)


def default(users: Users, epsilon: float, rng: np.random.Generator) -> np.ndarray:
    """The default of `HeatmapSynthesizer`, whose public guess of the number of persons is right."""
    settings = {"measure": 2 ** rule(users, epsilon), "variant": "two-level", "fit": "field"}
    return aggregate(users, epsilon=epsilon, rng=rng, **settings)  # type: ignore[arg-type]


METHODS: dict[str, Callable[[Users, float, np.random.Generator], np.ndarray]] = {
    DEFAULT: default,
    "grid of 8 x 8": lambda users, epsilon, rng: grid(users, 3, epsilon, rng),
    "grid of 16 x 16": lambda users, epsilon, rng: grid(users, 4, epsilon, rng),
    "grid by the rule for a public n": lambda users, epsilon, rng: coarse_grid(
        users, round(float(users.total().sum())), epsilon, rng
    ),
    "PrivTree": privtree,
    "hierarchy, all levels, least squares": lambda users, epsilon, rng: hierarchy(users, users.depth, epsilon, rng),
}


def rows() -> Iterator[list]:
    """Scores of every method on every data set: [data, epsilon, method, SIM, CC, KL, EMD]."""
    for name, epsilon, users, key in data():
        truth = drawn(users.total(), users)
        for number, (method, estimate) in enumerate(METHODS.items()):
            rng = np.random.default_rng([SEED, 29, *key, number])
            yield [name, epsilon, method, *scores(truth, drawn(estimate(users, epsilon, rng), users))]


if __name__ == "__main__":
    tables.of_methods(__doc__, "grids", rows, METHODS)
