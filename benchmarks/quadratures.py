"""Quadratures of a log-Gaussian Cox likelihood, by mesh: Voronoi and barycentric dual mesh beside exact integrals.

The integral of exp(w) of smooth fields w (standard deviation 1, length scale a fifth of the extent): sums over vertices
against the exact integral of the field that is interpolated on the mesh, and all of them against the field itself. Then
the total intensity of the posterior mode behind 10 000 uniform points, which should be 10 000.

    OMP_NUM_THREADS=1 python benchmarks/quadratures.py --out docs/results/quadratures.md
"""

import numpy as np
import shapely
from pages import command_line, fill, table

import dpppsynth as dps
from dpppsynth.core.errors import InputError
from dpppsynth.linear_network import network_mesh
from dpppsynth.models import (
    NoisyMasses,
    PoweredExponential,
    factor,
    laplace_posterior,
    regular_squares,
    regular_triangulation,
    trace_mesh,
)
from dpppsynth.models.quadrature import Quadrature
from dpppsynth.spatial.mesh import Floats, Mesh

KINDS = ("voronoi", "basis")
FIELDS = 100
HOLED = shapely.box(0, 0, 10, 10).difference(shapely.Polygon([(3.1, 2.3), (7.7, 3.9), (5.2, 6.1), (3.4, 8.9)]))
WINDOWS = {
    "square": dps.Window.rectangle(0, 0, 10, 10),
    "disc": dps.Window.polygon(shapely.Point(5, 5).buffer(5)),
    "triangle": dps.Window.polygon(shapely.Polygon([(0, 0), (10, 2), (4, 8)])),
    "square with a hole": dps.Window.polygon(HOLED),
}
N = 10_000


def waves(extent: float, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Frequencies (K, 60, 2) and phases (K, 60) of fields that are nearly Gaussian, of length scale extent / 5."""
    # The squared exponential exp(-(d / l)^2) has a normal spectrum of standard deviation sqrt(2) / l.
    return rng.normal(0, np.sqrt(2) * 5 / extent, (FIELDS, 60, 2)), rng.uniform(0, 2 * np.pi, (FIELDS, 60))


def field(xy: Floats, frequency: Floats, phase: Floats) -> Floats:
    """(K, V) values of the fields, of standard deviation 1."""
    return np.array([np.sqrt(2 / 60) * np.cos(xy @ f.T + p).sum(axis=1) for f, p in zip(frequency, phase, strict=True)])


def errors(mesh: Mesh, w: Floats, true: Floats) -> list[str]:
    """Root mean square relative errors in per cent.

    Of sums over vertices against the interpolated field; of all against the field itself, with integrals `true` (K,).
    """
    exact = np.array([Quadrature.of(mesh, "exact").integral(each) for each in w])
    sums = []
    for kind in KINDS:
        try:
            rule = Quadrature.of(mesh, kind)
        except InputError:
            sums.append(None)
            continue
        sums.append(np.array([rule.integral(each) for each in w]))
    pairs = [(got, exact) for got in sums] + [(got, true) for got in (*sums, exact)]
    return ["refused" if got is None else f"{100 * np.sqrt(np.mean((got / of - 1) ** 2)):.2f} %" for got, of in pairs]


def domains() -> dict[str, list[tuple[str, Mesh]]]:
    """Meshes of each domain, from coarse to fine."""
    sides, soho = (6, 11, 21, 41), dps.datasets.soho_deaths(on="streets").domain
    out = {}
    for name, window in WINDOWS.items():
        out[f"{name}, triangles"] = [(f"{m} x {m}", regular_triangulation(window, shape=(m, m))) for m in sides]
    out["disc, squares"] = [(f"{m} x {m}", regular_squares(WINDOWS["disc"], shape=(m, m))) for m in sides]
    out["Soho, segments"] = [(f"{s:g} m", network_mesh(soho, s)) for s in (200.0, 100.0, 50.0, 25.0)]
    out["Soho, triangles over streets"] = [(f"{m} x {m}", trace_mesh(soho, shape=(m, m))) for m in sides]
    return out


def by_mesh(seed: int) -> list[list[str]]:
    rows = []
    for name, meshes in domains().items():
        domain = meshes[0][1].domain
        x0, y0, x1, y1 = domain.bounds
        extent = max(x1 - x0, y1 - y0)
        frequency, phase = waves(extent, np.random.default_rng(seed))
        if isinstance(domain, dps.Window):
            fine: Mesh = regular_triangulation(domain, shape=(101, 101))
        else:
            fine = network_mesh(domain, extent / 200)
        xy, weight = fine.midpoints()
        true = np.exp(field(xy, frequency, phase)) @ weight
        for label, mesh in meshes:
            w = field(mesh.vertices, frequency, phase)
            rows.append([name, label, str(len(mesh.vertices)), *errors(mesh, w, true)])
    return rows


def fitted_total(mesh: Mesh, kind: str, sigma: float, share: float) -> str:
    """Total intensity of the posterior mode given the tent masses of a perfectly uniform pattern of N points."""
    area = mesh.domain.size
    areas = mesh.measure if kind == "exact" else Quadrature.of(mesh, kind).weight
    root = factor(PoweredExponential(sigma, share * np.sqrt(area)).matrix(mesh))
    likelihood = NoisyMasses(N * mesh.measure / area, 0.0, areas, np.eye(len(areas)), None)
    mode = laplace_posterior(likelihood, root, np.log(N / area)).field_mode
    return f"{Quadrature.of(mesh, 'exact').integral(mode):.0f}"


def totals() -> list[list[str]]:
    rows = []
    for name in ("square", "disc", "triangle", "square with a hole"):
        mesh = regular_triangulation(WINDOWS[name], shape=(11, 11))
        for sigma, share in ((1.6, 0.1), (2.0, 0.05)):
            rows.append([name, f"{sigma:g}", f"{share:g}", *(fitted_total(mesh, kind, sigma, share) for kind in KINDS)])
    return rows


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    own, all_kinds = [f"{kind}: sum alone" for kind in KINDS], [f"{kind}: field" for kind in (*KINDS, "exact")]
    heads = ["domain", "mesh", "vertices", *own, *all_kinds]
    lines = table(heads, by_mesh(arguments.seed))
    print("\n".join(lines))
    fill(arguments.out, "errors", lines)
    lines = table(["window", "sigma", "l / sqrt area", *KINDS], totals())
    print("\n".join(lines))
    fill(arguments.out, "totals", lines)


if __name__ == "__main__":
    main()
