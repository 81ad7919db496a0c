"""Pictures of benchmarks/local.py."""

from pathlib import Path

import local_areas
import local_ranges
import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from heatmap_tables import distinct
from local_areas import SETTINGS
from local_data import source
from local_ranges import EPSILONS, RHOS
from local_tables import BEST, Areas, Ranges
from matplotlib.axes import Axes
from matplotlib.collections import PatchCollection
from matplotlib.colors import PowerNorm
from matplotlib.patches import Rectangle

from dpppsynth.local import AdvancedAdaptiveGrid, PrivAG, UniformGrid

mpl.use("Agg")

STYLES = {
    "DAM": ("#0072b2", "-", "o"),
    "DAM-NS": ("#56b4e9", "--", "s"),
    "HUEM": ("#009e73", "-", "^"),
    "HUEM as printed": ("#009e73", ":", "v"),
    "MDSW": ("#d55e00", "-", "D"),
    "SEM": ("#7b3294", "-", "X"),
    "SEM, other side": ("#7b3294", ":", "x"),
    "uniform": ("#555555", ":", "."),
    "answer 0": ("#000000", ":", "."),
    "constant density": ("#888888", ":", "x"),
    BEST: ("#e69f00", "-", "s"),
    "UG, rule": ("#e69f00", "--", "D"),
    "PrivAG": ("#009e73", "-", "^"),
    "AAG": ("#0072b2", "-", "o"),
    "AAG, consistent": ("#56b4e9", "-", "X"),
    "AAG, unscaled": ("#d55e00", "--", "v"),
}
GRIDS = tuple(name for name in STYLES if name not in local_areas.METHODS)


def draw(out: Path, areas: Areas, ranges: Ranges) -> None:
    area_curves(out / "local_areas.png", areas)
    area_maps(out / "local_maps.png")
    range_curves(out / "local_ranges.png", ranges)
    grid_cells(out / "local_grids.png")


def line(axes: Axes, name: str, xs: list[float], means: list[float], errors: list[float]) -> None:
    colour, dash, marker = STYLES[name]
    axes.errorbar(
        xs, means, yerr=errors, color=colour, linestyle=dash, marker=marker, markersize=3.5, linewidth=1.2, label=name
    )


def finish(figure: plt.Figure, axes: np.ndarray, path: Path) -> None:
    """One legend for all panels, and the file."""
    labels = {}
    for each in axes.ravel():
        each.grid(alpha=0.3, linewidth=0.5)
        labels |= {label: handle for handle, label in zip(*each.get_legend_handles_labels(), strict=True)}
    figure.legend(labels.values(), labels.keys(), loc="outside lower center", ncols=5, frameon=False)
    figure.savefig(path)
    plt.close(figure)


def area_curves(path: Path, areas: Areas) -> None:
    """W2 by d or epsilon: experiments down, data across."""
    names = distinct(areas, 0)
    figure, axes = plt.subplots(
        len(SETTINGS), len(names), figsize=(13, 10.5), sharey="row", layout="constrained", dpi=80
    )
    for row, (title, settings) in zip(axes, SETTINGS.items(), strict=True):
        by_d = title.endswith("d")
        fixed = f"epsilon {settings[0][1]:g}" if by_d else f"d = {settings[0][0]}"
        for place, data in zip(row, names, strict=True):
            for method in (name for name in STYLES if name in local_areas.METHODS):
                found = [(s, areas[data, *s, method]) for s in settings if (data, *s, method) in areas]
                if found:
                    xs = [d if by_d else epsilon for (d, epsilon), _ in found]
                    line(place, method, xs, [float(m) for _, (m, _) in found], [float(e) for _, (_, e) in found])
            place.set_yscale("log")
            place.set_title(f"{data}, {fixed}", fontsize=9)
            place.set_xlabel("d, cells along a side" if by_d else "epsilon")
            place.set_xticks([d if by_d else epsilon for d, epsilon in settings])
        row[0].set_ylabel("W2 in cells")
    finish(figure, axes, path)


def area_maps(path: Path) -> None:
    """Estimates of one run beside the truth."""
    d, epsilon = 15, 5.0
    names = ["truth", "DAM", "HUEM as printed", "MDSW", "SEM"]
    figure, axes = plt.subplots(3, len(names), figsize=(11, 7), layout="constrained", dpi=80)
    for row, points in zip(axes, local_areas.data()[:3], strict=True):
        truth = local_areas.truth(points, d)
        made = {name: make(epsilon, d) for name, make in local_areas.AREAS.items()}
        made |= local_areas.subset_mechanisms(epsilon, d)
        for place, name in zip(row, names, strict=True):
            heat = truth
            if name != "truth":
                counts = made[name].counts(points.values(d), source("map", points.name, name), fast=name != "SEM")
                heat = made[name].estimate(counts)
            place.imshow(heat.T, origin="lower", cmap="inferno", vmin=0, vmax=truth.max(), interpolation="nearest")
            place.set_title(f"{points.name}: {name}", fontsize=9)
            place.set_xlabel("i, along x", fontsize=8)
        row[0].set_ylabel("j, along y", fontsize=8)
    figure.savefig(path)
    plt.close(figure)


def range_curves(path: Path, ranges: Ranges) -> None:
    """Average query error over that of answering 0: by area at epsilon 1, and by epsilon at 4 %."""
    names = distinct(ranges, 0)
    figure, axes = plt.subplots(2, len(names), figsize=(14, 6.5), sharey="row", layout="constrained", dpi=80)
    place = RHOS.index(0.04)
    for above, below, data in zip(*axes, names, strict=True):
        zero = ranges[data, 1.0, "answer 0"][1]
        for method in GRIDS:
            _, means, errors = ranges[data, 1.0, method]
            line(above, method, [100 * rho for rho in RHOS], list(means / zero), list(errors / zero))
            found = [ranges[data, epsilon, method] for epsilon in EPSILONS]
            line(below, method, list(EPSILONS), [each[1][place] for each in found], [each[2][place] for each in found])
        above.set_xscale("log")
        above.set_xlabel("area of a query, % of the window")
        above.set_title(f"{data}, epsilon 1", fontsize=9)
        below.set_xlabel("epsilon")
        below.set_xticks(EPSILONS)
        below.set_title(f"{data}, area 4 %", fontsize=9)
        for each in (above, below):
            each.set_yscale("log")
    axes[0, 0].set_ylabel("AQE over that of answering 0")
    axes[1, 0].set_ylabel("AQE")
    finish(figure, axes, path)


def grid_cells(path: Path) -> None:
    """Cells of the grids on the stand-in for Porto at epsilon 1, shaded by the root of the estimated density."""
    points = local_ranges.workloads()[1].points
    made = {
        "UG, rule": UniformGrid.sized(points.bounds, epsilon=1.0, n=len(points.xy)),
        "PrivAG": PrivAG(points.bounds, epsilon=1.0, consistent=False),
        "AAG": AdvancedAdaptiveGrid(points.bounds, epsilon=1.0, consistent=False),
    }
    figure, axes = plt.subplots(1, 4, figsize=(14, 3.3), sharey=True, layout="constrained", dpi=80)
    x0, y0, x1, y1 = points.bounds
    counts = np.histogram2d(*points.xy.T, bins=100, range=[[x0, x1], [y0, y1]])[0]
    true = counts * 100**2 / ((x1 - x0) * (y1 - y0))
    # Square roots, so that thin places show; estimates beyond the densest true cell are drawn like it.
    norm = PowerNorm(0.5, vmin=0, vmax=true.max())
    axes[0].imshow(true.T, origin="lower", extent=(x0, x1, y0, y1), cmap="inferno", norm=norm, aspect="auto")
    axes[0].set_title(f"{points.name}: all points", fontsize=9)
    axes[0].set_ylabel("latitude")
    for place, (name, mechanism) in zip(axes[1:], made.items(), strict=True):
        fitted = mechanism.simulate(points.xy, source("cells", name), fast=True).fitted
        cells, density = fitted.grid.cells, np.maximum(fitted.masses, 0) / fitted.grid.areas
        boxes = [Rectangle((a, b), c - a, d - b) for a, b, c, d in cells]
        shades = {"array": density, "cmap": "inferno", "norm": norm}
        place.add_collection(PatchCollection(boxes, edgecolor="#808080", linewidth=0.3, **shades))
        place.set_xlim(x0, x1)
        place.set_ylim(y0, y1)
        place.set_title(f"{name}, {len(cells)} cells", fontsize=9)
    for each in axes:
        each.set_xlabel("longitude")
        each.ticklabel_format(useOffset=False)
        each.tick_params(labelsize=7)
    figure.savefig(path)
    plt.close(figure)
