"""Distance of releases to the truth on the streets of cities, with time and memory.

A city has crossings 100 m apart, jittered by 20 m; the intensity is that of Gaussian hot spots of 400 m with weights
uniform on the simplex, and a tenth of it anywhere, times a factor exp(N(0, s^2)) of each street (a row or a column).
Other cities have equal streets, few wide spots, narrow ones, or a factor exp(N(0, 1)) of each edge's own. The shipped
streets are those of Soho and of a town in Arizona, with the published points smoothed over a tenth of the extent, and a
factor for each stretch of street between bends of more than 45 degrees. Total variation distance on edges, privacy
radius 30 m (shipped streets: an extent / 40).

    python benchmarks/streets.py --out docs/results/streets.md
"""

import sys

import numpy as np
import scipy.sparse as sp
from measuring import in_fresh_process, memory, run_case, timed
from pages import command_line, fill, table

import dpppsynth as dps
from dpppsynth.linear_network import LinearNetwork, network_mesh
from dpppsynth.models.street_fields import street_ties
from dpppsynth.spatial.intensity import Intensity

STEP, JITTER = 100.0, 20.0
# Crossings along a side, spots, their width in metres, standard deviation of a street's factor.
CITIES = {
    "city": (110, 60, 400.0, 1.2),
    "equal streets": (60, 20, 400.0, 0.0),
    "few wide spots": (60, 4, 1000.0, 0.6),
    "narrow spots": (60, 60, 150.0, 0.6),
    "50 000 edges": (159, 120, 400.0, 1.2),
    "own factors": (16, 8, 160.0, 0.0),
}
# Standard deviation of a factor of each edge's own.
OWN = {"own factors": 1.0}
RUNS: list[tuple[str, int, float]] = [
    ("city", 5_000, 1.0),
    ("city", 50_000, 1.0),
    ("city", 50_000, 0.1),
    ("city", 500_000, 1.0),
    *((name, 20_000, 1.0) for name in ("equal streets", "few wide spots", "narrow spots")),
    ("50 000 edges", 100_000, 1.0),
    *(("own factors", n, 1.0) for n in (300, 2000, 8000, 30_000)),
    *((name, n, 1.0) for name in ("Soho", "Arizona") for n in (500, 2000, 8000, 50_000)),
]
HEADS = ("city", "edges", "n", "eps", "uniform", "plain counts", "before", "default", "cells", "mechanism")
HEADS += ("counts, not private", "seconds", "MB")


def city(name: str, seed: int) -> tuple[LinearNetwork, np.ndarray]:
    """Streets, and the shares of the edges."""
    if name in ("Soho", "Arizona"):
        return shipped(name, seed)
    side, spots, width, spread = CITIES[name]
    rng = np.random.default_rng([seed, side, spots])
    place = np.stack(np.meshgrid(np.arange(side), np.arange(side), indexing="ij"), axis=-1).reshape(-1, 2)
    number = np.arange(side**2).reshape(side, side)
    rows, columns = (np.stack([m[:-1].ravel(), m[1:].ravel()], axis=1) for m in (number, number.T))
    network = LinearNetwork(STEP * place + rng.uniform(-JITTER, JITTER, place.shape), np.concatenate([rows, columns]))
    street = np.tile(np.arange(side), side - 1)
    factor = np.exp(spread * rng.standard_normal((2, side)))
    middle = network.vertices[network.edges].mean(axis=1)
    centres, shares = rng.uniform(0, STEP * side, (spots, 2)), rng.dirichlet(np.ones(spots))
    hills = np.zeros(len(middle))
    for centre, share in zip(centres, shares, strict=True):
        hills += share * np.exp(-((middle - centre) ** 2).sum(axis=1) / (2 * width**2))
    level = 0.9 * hills / (hills @ network.lengths) + 0.1 / network.length
    own = np.exp(OWN.get(name, 0.0) * rng.standard_normal(len(level)))
    mass = level * own * np.concatenate([factor[0][street], factor[1][street]]) * network.lengths
    return network, mass / mass.sum()


def shipped(name: str, seed: int) -> tuple[LinearNetwork, np.ndarray]:
    """Streets of a shipped pattern, and the shares of the edges."""
    source = dps.datasets.soho_deaths if name == "Soho" else dps.datasets.geodanet_crimes
    pattern = source(on="streets")
    network, ties = pattern.domain, street_ties(network_mesh(pattern.domain, 1e6))
    count = len(ties.pair)
    edges = len(network.edges)
    joined = sp.coo_array((ties.street > 0, ties.pair.T), shape=(edges, edges))
    _, street = sp.csgraph.connected_components(joined, directed=False)
    rng = np.random.default_rng([seed, count])
    middle = network.vertices[network.edges].mean(axis=1)
    near = ((middle[:, None] - pattern.xy) ** 2).sum(axis=2)
    level = np.exp(-near / (2 * (0.1 * network.extent) ** 2)).sum(axis=1) + 1e-3
    mass = level * np.exp(0.6 * rng.standard_normal(street.max() + 1))[street] * network.lengths
    return network, mass / mass.sum()


def distance(mass: np.ndarray, share: np.ndarray) -> float:
    return float(np.abs(mass / mass.sum() - share).sum() / 2)


def on_edges(intensity: Intensity, network: LinearNetwork) -> np.ndarray:
    """Masses of the edges, by eight places on each."""
    edge = np.repeat(np.arange(len(network.edges)), 8)
    along = np.tile((np.arange(8) + 0.5) / 8, len(network.edges)) * network.lengths[edge]
    at = np.column_stack([edge, along])
    element = intensity.mesh.locate(at)
    value = intensity.at(element, np.clip(intensity.mesh.weights(element, at), 0, None), at)
    return np.bincount(edge, value) * network.lengths / 8


def run(name: str, n: int, epsilon: float, seed: int, kind: str) -> dict[str, float | str]:
    """Distance, seconds and megabytes of one release with one synthetic pattern."""
    network, share = city(name, seed)
    rng = np.random.default_rng([seed, n])
    pattern = network.pattern(rng.choice(len(share), n, p=share), rng.random(n))
    relation = dps.AlphaNeighbours(network.extent / 40 if name in ("Soho", "Arizona") else 30.0)
    if kind == "plain":
        # Counts of the same segments, made to sum to n.
        plan = dps.LGCPSynthesizer(epsilon, relation=relation, mechanism="cells").plan(network, n=n)
        plain = dps.LaplaceSynthesizer(epsilon, relation=relation, mesh=plan.statistic.mesh, postprocess="plain")
        made = plain.release(pattern, rng)
        exact = np.bincount(pattern.positions[:, 0].astype(int), minlength=len(share))
        found = {"counts": distance(exact, share), "uniform": distance(network.lengths, share)}
        return found | {"distance": distance(on_edges(made.intensity, network), share)}
    given = {"before": {"prior": "dense", "mechanism": "tents"}, "default": {}, "cells": {"mechanism": "cells"}}[kind]
    settings = dps.LGCPSynthesizer(epsilon, relation=relation, inference="laplace", **given)

    def whole() -> dps.CoxRelease:
        settings.check(network, n=n)
        made = settings.release(pattern, rng)
        made.sample(1, rng, source="released")
        return made

    release, seconds = timed(whole)
    found = {"seconds": seconds, "MB": memory(), "mechanism": release.mechanism}
    return found | {"distance": distance(on_edges(release.intensity, network), share)}


def row(name: str, n: int, epsilon: float, seed: int) -> list[str]:
    """Distances of all, and time and memory of the default."""
    plain, before, default = (
        in_fresh_process(__file__, "run", name, n, epsilon, seed, kind) for kind in ("plain", "before", "default")
    )
    same = default["mechanism"] == "lgcp-cells"
    cells = default if same else in_fresh_process(__file__, "run", name, n, epsilon, seed, "cells")
    edges = len(city(name, seed)[1])
    scores = (plain["uniform"], plain["distance"], before["distance"], default["distance"], cells["distance"])
    words = [name, f"{edges}", f"{n}", f"{epsilon:g}", *(f"{score:.3f}" for score in scores), default["mechanism"]]
    return [*words, f"{plain['counts']:.3f}", f"{default['seconds']:.0f}", f"{default['MB']:.0f}"]


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("--seed", type=int, default=17)
    parser.add_argument("--most", type=int, default=10**6, help="points at most")
    parser.add_argument("--cities", nargs="+", help="names of cities, instead of all")
    parser.add_argument("--case", help="for its own processes")
    given = parser.parse_args()
    if given.case:
        return run_case(given.case, run)
    rows = []
    for each in RUNS:
        if each[1] <= given.most and (not given.cities or each[0] in given.cities):
            rows.append(row(*each, given.seed))
            print(rows[-1], flush=True)
    lines = table(HEADS, rows)
    print("\n".join(lines))
    return fill(given.out, "distances", lines)


if __name__ == "__main__":
    sys.exit(main())
