"""The resistance metric beside the field along streets, behind the same noised tents.

The streets of Soho and of a town in Arizona, privacy radius an extent / 40, public n. Truths are those of
`benchmarks/streets.py` (published points smoothed over a tenth of the extent, a factor of each street), and
log-Gaussian fields of standard deviation 1.6 and length scale .4 extents in the resistance metric, for which the dense
prior is right. Total variation distance to the truth on edges, and shares of the true masses of squares of a tenth of
the extent, and of single edges, that lie in their 90 % intervals.

    OMP_NUM_THREADS=1 python benchmarks/street_priors.py --out docs/results/street_priors.md
"""

from itertools import product

import numpy as np
import streets
from measuring import timed
from pages import command_line, fill, table

import dpppsynth as dps
from dpppsynth.linear_network import network_mesh
from dpppsynth.models import PoweredExponential, factor
from dpppsynth.spatial.mesh import Mesh

TOWNS, TRUTHS = ("Soho", "Arizona"), ("streets differ", "resistance field")
NUMBERS, BUDGETS = (400, 2000), (0.1, 1.0, 10.0)
PRIORS = {"resistance": "dense", "along streets": "sparse"}
LEVEL = 0.9


def truth(town: str, kind: str, seed: int) -> tuple[dps.LinearNetwork, np.ndarray]:
    """Streets, and the shares of the edges."""
    network, share = streets.city(town, seed)
    if kind == "streets differ":
        return network, share
    mesh = network_mesh(network, 0.05 * network.extent)
    covariance = PoweredExponential(1.6, 0.4 * network.extent, 1.0)
    rng = np.random.default_rng([seed, len(share)])
    root = factor(covariance.matrix(mesh))
    mass = edge_masses(mesh, root @ rng.normal(size=root.shape[1]))
    return network, mass[0] / mass.sum()


def edge_masses(mesh: Mesh, fields: np.ndarray) -> np.ndarray:
    """(K, E) masses of the edges under exp of fields (K, V), by eight places on each."""
    network = mesh.domain
    edge = np.repeat(np.arange(len(network.edges)), 8)
    along = np.tile((np.arange(8) + 0.5) / 8, len(network.edges)) * network.lengths[edge]
    value = np.exp(mesh.basis(np.column_stack([edge, along])) @ np.atleast_2d(fields).T.astype(float))
    return value.reshape(len(network.edges), 8, -1).mean(axis=1).T * network.lengths


def once(town: str, kind: str, n: int, epsilon: float, prior: str, inference: str, seed: int) -> list[float]:
    """Distance, shares held of squares and of edges, seconds."""
    network, share = truth(town, kind, seed)
    rng = np.random.default_rng([seed, n])
    pattern = network.pattern(rng.choice(len(share), n, p=share), rng.random(n))
    settings = dps.LGCPSynthesizer(
        epsilon, alpha=network.extent / 40, mechanism="tents", prior=PRIORS[prior], inference=inference
    )
    release, seconds = timed(lambda: settings.release(pattern, rng))
    distance = streets.distance(streets.on_edges(release.intensity, network), share)
    drawn = edge_masses(release.estimator.mesh, release.draws.flat)
    drawn /= drawn.sum(axis=1, keepdims=True)
    middle = network.vertices[network.edges].mean(axis=1)
    _, square = np.unique(middle // (0.1 * network.extent), axis=0, return_inverse=True)
    held = []
    for group in (square.ravel(), np.arange(len(share))):
        low, high = np.quantile(
            np.array([np.bincount(group, each) for each in drawn]), [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=0
        )
        exact = np.bincount(group, share)
        held.append(float(np.mean((low <= exact) & (exact <= high))))
    return [distance, *held, seconds]


def row(way: tuple[str, str, int, float], kinds: list[tuple[str, str]], repeats: int) -> list[str]:
    """Means over repeats, one prior and inference beside the other."""
    town, kind, n, epsilon = way
    means = [np.mean([once(*way, *each, 100 + k) for k in range(repeats)], axis=0) for each in kinds]
    cells = [" / ".join(f"{mean[0]:.3f}" for mean in means)]
    cells += [" / ".join(f"{100 * mean[k]:.0f}" for mean in means) + " %" for k in (1, 2)]
    return [town, kind, str(n), f"{epsilon:g}", *cells, " / ".join(f"{mean[3]:.0f}" for mean in means)]


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    args = parser.parse_args()
    heads = ["streets", "truth", "n", "eps", "distance", "squares held", "edges held", "seconds"]
    rows = []
    for kind, town, n, epsilon in product(TRUTHS, TOWNS, NUMBERS, BUDGETS):
        rows.append(row((town, kind, n, epsilon), [(prior, "laplace") for prior in PRIORS], args.repeats))
        print(*rows[-1], flush=True)
        fill(args.out, "priors", table(heads, rows))
    rows = []
    for kind in TRUTHS:
        ways = [("resistance", inference) for inference in ("laplace", "nuts")]
        rows.append(row(("Arizona", kind, 400, 1.0), ways, 2))
        print(*rows[-1], flush=True)
        fill(args.out, "nuts", table(heads, rows))


if __name__ == "__main__":
    main()
