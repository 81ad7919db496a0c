"""Picture of the model page: mesh and dual cells, noised tent masses, posterior intensity, a synthetic pattern.

Run it with `python examples/model_picture.py [file]`; it writes docs/pictures/model.png. The deaths are public since
1854, so the release may be seeded, and its noised masses stand beside the true ones.
"""

import io
import sys
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from PIL import Image
from soho_picture import ALPHA, DEATH, EPSILON, INK, PAPER, RADIUS, SYNTHETIC, dots, street_map

import dpppsynth as dps
from dpppsynth.spatial.mesh import Mesh

OUT = Path(__file__).parents[1] / "docs" / "pictures" / "model.png"


def mesh_and_cells(ax: Axes, mesh: Mesh) -> None:
    """Draw a mesh, and its dual cells dashed."""
    corner = mesh.vertices[mesh.elements]
    for each in np.concatenate([corner, corner[:, :1]], axis=1):
        ax.plot(*each.T, color=INK, linewidth=0.5, zorder=2)
    for cell in dps.models.dual_mesh(mesh.domain, mesh):
        ax.plot(*np.transpose(cell.exterior.coords), color=SYNTHETIC, linewidth=0.9, linestyle=(0, (3, 2)), zorder=3)
    ax.plot(*mesh.vertices.T, "o", color=INK, markersize=3, zorder=4)


def masses(ax: Axes, mesh: Mesh, exact: np.ndarray, noised: np.ndarray) -> None:
    """Draw a circle at each vertex with an area in proportion to its mass: true ones, and noised ones."""
    ax.scatter(*mesh.vertices.T, s=14 * np.maximum(exact, 0), color=DEATH, alpha=0.35, linewidths=0, zorder=3)
    edge = np.where(noised < 0, "#8a8580", INK)
    style = {"facecolors": "none", "linewidths": 1.1, "zorder": 4}
    ax.scatter(*mesh.vertices.T, s=14 * np.abs(noised), edgecolors=edge, **style)


def intensity(ax: Axes, release: dps.CoxRelease) -> None:
    """Colour the window by the released intensity."""
    x0, y0, x1, y1 = release.domain.bounds
    side = (np.arange(200) + 0.5) / 200
    place = np.stack(np.meshgrid(x0 + side * (x1 - x0), y0 + side * (y1 - y0)), axis=-1).reshape(-1, 2)
    value = release.intensity(place).reshape(200, 200)
    ax.imshow(value, cmap="YlOrBr", extent=(x0, x1, y0, y1), origin="lower", zorder=0)


def main(out: Path) -> None:
    deaths = dps.datasets.soho_deaths()
    settings = dps.LGCPSynthesizer(epsilon=EPSILON, alpha=ALPHA, inference="laplace")
    release = settings.release(deaths, rng=1854)
    tents = settings.plan(deaths.domain, n=len(deaths)).statistic.mesh
    figure = Figure(figsize=(13.4, 4.1), facecolor=PAPER, layout="constrained")
    axes = figure.subplots(1, 4)
    words = (
        ("Mesh", "Public. Each tent φ is 1 at its vertex.\nDashed: cells of the dual mesh."),
        ("Statistic", "Circles: masses T = Σ φ(x) + noise.\nFilled: without noise, seen by nobody."),
        ("Posterior", f"Median of λ given T alone,\nε = {EPSILON:g}, {RADIUS}."),
        ("Synthetic", "A Poisson pattern of λ.\nMore cost nothing."),
    )
    for ax, (title, below) in zip(axes, words, strict=True):
        street_map(ax, deaths.domain.bounds, title, below, 100)
    mesh_and_cells(axes[0], tents)
    masses(axes[1], tents, dps.models.tent_masses(deaths, tents), release.statistic.values)
    intensity(axes[2], release)
    dots(axes[3], release.sample(1, rng=1854)[0], SYNTHETIC)
    drawn = io.BytesIO()
    figure.savefig(drawn, dpi=130)
    out.parent.mkdir(parents=True, exist_ok=True)
    Image.open(drawn).convert("RGB").quantize(128).save(out, optimize=True)
    print(f"written to {out}")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else OUT)
