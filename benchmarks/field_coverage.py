"""Coverage of 90 % intervals of masses behind fields of sparse precision, in a city of 30 km and on streets.

The truth is the city of `benchmarks/city.py`, or drawn from the prior of the release itself, with a range that is known
to nobody. Epsilon 1, privacy radius 100 m, public n. Where the prior is right, what is missing to 90 % is the Laplace
approximation's, and that of averaging over ranges; in the city the prior is wrong as well. Streets are those of
`benchmarks/streets.py`, privacy radius 30 m, in towns an extent / 40.

    OMP_NUM_THREADS=1 python benchmarks/field_coverage.py --out docs/results/inference.md
"""

from typing import Any

import city
import numpy as np
import streets
from drawn_fields import at_vertices
from measuring import timed
from pages import command_line, fill, table

import dpppsynth as dps
from dpppsynth.models.sparse_fields import SparseMatern

# Numbers of points, and repeats with each.
RUNS = {400: 6, 10**4: 3, 10**6: 1}
# Side of the square cells, in those of the truth; draws are looked at in the middle of squares of so many of those.
SIDES, STEP = {"3 km": 30, "1 km": 10}, 1
LEVEL = 0.9
RANGE = 2
# Numbers of points on streets, in cities of each kind, and releases.
STREETS = {"city": ((50_000, 500_000), 1), "equal streets": ((20_000,), 1), "narrow spots": ((20_000,), 1)}
STREETS |= {"Soho": ((400, 2000), 6), "Arizona": ((400, 2000), 6)}
# Sides of squares of whose streets masses are taken, in metres, and in extents of towns.
SQUARES, OF_TOWNS = (1000.0, 300.0), (1 / 3, 1 / 10)
STREET_HEADS = ("streets", "n", "releases", "edges", "large squares", "small squares", "single edges", "seconds")
HEADS = ("truth", "n", "releases", *(f"cells of {name}" for name in SIDES), "Pareto k", "profile", "seconds")


def points(step: int) -> np.ndarray:
    """Middles of squares of so many cells of the truth."""
    ticks = np.arange(city.CELL * step / 2, city.SIDE, city.CELL * step)
    return np.stack(np.meshgrid(ticks, ticks, indexing="ij"), axis=-1).reshape(-1, 2)


def from_prior(estimator: Any, rng: np.random.Generator) -> np.ndarray:
    """Shares of the cells under a field of the release's own prior."""
    prior = SparseMatern(estimator.sigma, estimator.ranges[RANGE], estimator.smoothness[0])
    mass = np.exp(estimator.mesh.basis(points(1)) @ at_vertices(prior, estimator.mesh, rng))
    return (mass / mass.sum()).reshape(2 * [round(city.SIDE / city.CELL)])


def summed(shares: np.ndarray, side: int) -> np.ndarray:
    """(..., k) masses of square cells of so many rows and columns each."""
    count = shares.shape[-1] // side
    return (
        shares.reshape(*shares.shape[:-2], count, side, count, side).sum(axis=(-3, -1)).reshape(*shares.shape[:-2], -1)
    )


def drawn_shares(release: dps.CoxRelease) -> np.ndarray:
    """(draws, m, m) shares of the squares in which posterior draws are looked at."""
    at, size = release.estimator.mesh.basis(points(STEP)), round(city.SIDE / city.CELL) // STEP
    mass = np.exp(at.astype(np.float32) @ release.draws.flat.T).T
    return (mass / mass.sum(axis=1, keepdims=True)).reshape(-1, size, size)


def once(truth: str, n: int, seed: int) -> list[float]:
    """Shares of true masses that intervals hold, by size of cell, checks of the approximation, seconds."""
    rng = np.random.default_rng([seed, n])
    settings = dps.LGCPSynthesizer(1.0, alpha=city.ALPHA, mechanism="tents", prior="sparse")
    plan = settings.plan(city.WINDOW, n=n)
    mass = city.truth("city", seed) if truth == "city" else from_prior(plan.estimator, rng)
    release, seconds = timed(lambda: plan.release(city.draw(mass, n, rng), rng))
    drawn, tails = drawn_shares(release), [(1 - LEVEL) / 2, (1 + LEVEL) / 2]
    held = []
    for side in SIDES.values():
        low, high = np.quantile(summed(drawn, side // STEP), tails, axis=0)
        exact = summed(mass, side)
        held.append(np.mean((low <= exact) & (exact <= high)))
    best = release.diagnostics.sort_values("weight").iloc[-1]
    return [*held, best["pareto_k"], best["profile"], seconds]


def along_streets(name: str, n: int, seed: int) -> list[float]:
    """Number of edges, shares of true masses that intervals hold, by size of square and of single edges, seconds."""
    network, share = streets.city(name, seed)
    rng = np.random.default_rng([seed, n])
    pattern = network.pattern(rng.choice(len(share), n, p=share), rng.random(n))
    town = name in ("Soho", "Arizona")
    settings = dps.LGCPSynthesizer(1.0, alpha=network.extent / 40 if town else 30.0)
    release, seconds = timed(lambda: settings.release(pattern, rng))
    mesh, edges = release.estimator.mesh, len(share)
    mass = np.exp(release.draws.flat.astype(float)) * mesh.measure
    mass = np.array([np.bincount(mesh.edge, each, edges) for each in mass])
    middle = network.vertices[network.edges].mean(axis=1)
    held = []
    for side in (*(share * network.extent for share in OF_TOWNS), None) if town else (*SQUARES, None):
        square = middle // side if side else np.arange(edges)[:, None]
        _, group = np.unique(square, axis=0, return_inverse=True)
        drawn = np.array([np.bincount(group, each) for each in mass / mass.sum(axis=1, keepdims=True)])
        low, high = np.quantile(drawn, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=0)
        exact = np.bincount(group, share)
        held.append(np.mean((low <= exact) & (exact <= high)))
    return [edges, *held, seconds]


def on_streets(out: str | None) -> None:
    """Fill the table of streets."""
    rows = []
    for name, (numbers, releases) in STREETS.items():
        for n in numbers:
            edges, *held, seconds = np.mean([along_streets(name, n, 100 + k) for k in range(releases)], axis=0)
            shares = (f"{100 * each:.0f} %" for each in held)
            rows.append((name, str(n), str(releases), f"{edges:.0f}", *shares, f"{seconds:.0f}"))
            print(*rows[-1], flush=True)
    fill(out, "street coverage", table(STREET_HEADS, rows))


def main() -> None:
    args = command_line(__doc__).parse_args()
    on_streets(args.out)
    rows = []
    for truth in ("from the prior", "city"):
        for n, repeats in RUNS.items():
            found = np.array([once(truth, n, 100 + seed) for seed in range(repeats)])
            *held, k, profile, seconds = found.mean(axis=0)
            shares = [f"{100 * share:.0f} %" for share in held]
            rows.append((truth, str(n), str(repeats), *shares, f"{k:.1f}", f"{profile:.2f}", f"{seconds:.1f}"))
            print(*rows[-1], flush=True)
            fill(args.out, "field coverage", table(HEADS, rows))


if __name__ == "__main__":
    main()
