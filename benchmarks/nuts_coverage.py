"""Coverage of 90 % intervals of masses: Laplace approximation and NUTS behind the same noised tents, or moved points.

The truth is drawn from the prior of the release, whose settings are known, so that what is missing to 90 % is the
approximation's. Epsilon 1; a square of 1 km with privacy radius 50 m and cells of 250 m, and the streets of Soho with a
radius of 25 m and squares of 150 m. In the plane the field lives at the vertices of the tents. Coarse streets have a
field of the plane on 15 x 15 vertices in place of 30 along the longer side. Moved points are counted on 16 x 16 nodes
of the square.

    OMP_NUM_THREADS=1 python benchmarks/nuts_coverage.py --out docs/results/nuts.md
"""

import math
import time
from dataclasses import replace
from typing import Any

import numpy as np
from measuring import timed
from pages import command_line, fill, table

import dpppsynth as dps
from dpppsynth.models import regular_triangulation
from dpppsynth.models.sparse_fields import SparseMatern
from dpppsynth.models.sparse_solver import SparseFactor
from dpppsynth.models.spectral_fields import SpectralField

WINDOW = dps.Window.rectangle(0, 0, 1000, 1000)
STREETS, COARSE, MOVED = "streets", "coarse streets", "moved points"
SQUARES = {"plane": 250.0, STREETS: 150.0, COARSE: 150.0, MOVED: 250.0}
ALPHA = {"plane": 50.0, STREETS: 25.0, COARSE: 25.0, MOVED: 50.0}
# Setting of the prior that the truth is drawn from, of those that the rule averages over.
ALONG = ("ranges", "street_sigmas", "detours", "street_ranges")
KNOWN = {"plane": ("ranges",), STREETS: ALONG, COARSE: ALONG, MOVED: ("ranges", "sigmas")}
NODES = (16, 16)
# Releases by domain and number of points: each is inferred both ways.
REPEATS = {
    ("plane", 300): 20,
    ("plane", 3000): 20,
    (COARSE, 300): 12,
    (COARSE, 3000): 8,
    (STREETS, 3000): 4,
    (STREETS, 30_000): 3,
    (MOVED, 300): 16,
    ("plane", 30_000): 4,
}
LEVEL = 0.9
HEADS = ("domain", "n", "unknowns", "inference", "releases", "held", "width", "R-hat", "ESS", "processor s")


def planned(where: str, n: int) -> Any:
    """A plan behind which one prior stands, that of the middle of the rule's settings."""
    domain = WINDOW if where in ("plane", MOVED) else dps.datasets.soho_deaths(on="streets").domain
    settings = {"mechanism": "tents", "prior": "sparse", "inference": "laplace"}
    if where == MOVED:
        settings = {"mechanism": "moved", "mesh": regular_triangulation(WINDOW, shape=NODES)}
    plan = dps.LGCPSynthesizer(1.0, alpha=ALPHA[where], **settings).plan(domain, n=n)
    estimator = plan.estimator
    middle = {name: (values[len(values) // 2],) for name in KNOWN[where] if (values := getattr(estimator, name))}
    if where == "plane":
        middle["mesh"] = plan.statistic.mesh
    elif where == COARSE:
        middle["plane"] = (15, 15)
    elif where == MOVED:
        middle["details"] = (0.0,)
    return replace(plan, estimator=replace(estimator, even=False, **middle))


def prior_of(where: str, plan: Any) -> Any:
    """The field of the plan's one prior."""
    e = plan.estimator
    if where == MOVED:
        return SpectralField(e.lattice.shape, e.lattice.spacing, e.sigmas[0], e.ranges[0], e.details[0])
    if where == "plane":
        return SparseMatern(e.sigma, e.ranges[0], e.smoothness[0]).on(e.mesh)
    return e.prior(plan.statistic, tuple(getattr(e, name)[0] for name in e.averaged))


def drawn_from(prior: Any, rng: np.random.Generator) -> Any:
    """(V,) field drawn from its prior, at the vertices of the mesh, or the nodes of the lattice of moved points."""
    if isinstance(prior, SpectralField):
        return prior.field(prior.white(1, rng)[0])
    return prior.placement @ SparseFactor(prior.precision).from_white(rng.standard_normal(prior.size))


def once(where: str, n: int, inference: str, seed: int) -> list[float]:
    """Unknowns, share of squares whose interval holds the truth, width in those of a count, R-hat, ESS, seconds."""
    rng, plan = np.random.default_rng([seed, n]), planned(where, n)
    prior, mesh = prior_of(where, plan), plan.estimator.mesh
    field = drawn_from(prior, rng)
    if where == MOVED:
        field = plan.estimator.at_vertices(field)
    basis, weight = plan.estimator.rule
    share = weight * np.exp(basis @ field)
    share /= share.sum()
    if where in ("plane", MOVED):
        at = basis @ mesh.vertices
        drawn = at[rng.choice(len(share), n, p=share)]
        pattern = dps.PointPattern(drawn, WINDOW)
    else:
        at, chosen = mesh.vertices, rng.choice(len(share), n, p=share)
        segments = mesh.segments
        along = segments.start[chosen] + rng.random(n) * (segments.end - segments.start)[chosen]
        pattern = dps.PointPattern.at(np.column_stack([segments.edge[chosen], along]), plan.domain)
    group = np.unique(at // SQUARES[where], axis=0, return_inverse=True)[1].ravel()
    statistic = plan.statistic.measure(pattern, rng)
    estimator = replace(plan.estimator, inference=inference)
    posterior, seconds = timed(lambda: estimator.fit(statistic, rng), time.process_time)
    mass = weight * np.exp(posterior.flat.astype(float) @ basis.T)
    mass = np.array([np.bincount(group, each) for each in mass / mass.sum(axis=1, keepdims=True)])
    low, high = np.quantile(mass, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=0)
    exact = np.bincount(group, share)
    width = np.mean((high - low) / np.sqrt(np.maximum(exact, 1 / n) / n))
    fits = posterior.fits
    held = np.mean((low <= exact) & (exact <= high))
    size = len(mesh.vertices) if where == MOVED else prior.size
    return [size, held, width, np.nanmax(fits.rhat, initial=0), np.nanmin(fits.ess, initial=np.inf), seconds]


def main() -> None:
    args = command_line(__doc__).parse_args()
    rows = []
    for (where, n), repeats in REPEATS.items():
        for inference in ("laplace", "nuts"):
            found = np.array([once(where, n, inference, 100 + seed) for seed in range(repeats)])
            unknowns, held, width, *_, seconds = found.mean(axis=0)
            error = found[:, 1].std(ddof=1) / math.sqrt(repeats)
            checks = (f"{found[:, 3].max():.3f}", f"{found[:, 4].min():.0f}") if inference == "nuts" else ("", "")
            shown = f"{100 * held:.0f} % ({100 * error:.0f})", f"{width:.2f}", *checks, f"{seconds:.1f}"
            rows.append((where, str(n), f"{unknowns:.0f}", inference, str(repeats), *shown))
            print(*rows[-1], flush=True)
    fill(args.out, "nuts coverage", table(HEADS, rows))


if __name__ == "__main__":
    main()
