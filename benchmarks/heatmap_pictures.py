"""Pictures of benchmarks/heatmaps.py."""

from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator

mpl.use("Agg")

# Series: [(method, xs, means, half widths)].
Series = list[tuple[str, list[float], list[float], list[float]]]
STYLES = {
    "sparse, practical": ("#0072b2", "-", "o"),
    "sparse, least squares": ("#e7298a", "--", "*"),
    "sparse, shrunk": ("#e7298a", "-", "X"),
    "sparse, theory": ("#56b4e9", "--", "o"),
    "Laplace": ("#000000", "-", "s"),
    "top 1 %": ("#d55e00", "-", "^"),
    "top 0.1 %": ("#e69f00", "-", "v"),
    "quadtree": ("#009e73", ":", "D"),
    "quadtree, same budgets": ("#009e73", "--", "D"),
    "quadtree, shrunk": ("#00593f", "-", "d"),
    "coarse grid": ("#7b3294", "-", "P"),
    "sparse, w = 80": ("#0072b2", ":", "x"),
    "uniform": ("#555555", ":", "."),
}
BETTER = {"SIM": "higher", "CC": "higher", "KL": "lower", "EMD": "lower"}


def curves(axes: Axes, series: Series, metric: str, label: str, *, log: bool = False) -> None:
    """Means with bands of 95 % confidence, one line for each method."""
    for method, xs, means, half in series:
        colour, line, marker = STYLES[method]
        low, high = np.subtract(means, half), np.add(means, half)
        axes.plot(xs, means, color=colour, linestyle=line, marker=marker, markersize=4, linewidth=1.4, label=method)
        axes.fill_between(xs, low, high, color=colour, alpha=0.18, linewidth=0)
    if log:
        axes.set_xscale("log")
    if metric in {"KL", "EMD"}:
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.yaxis.set_major_formatter("{x:g}")
    xs = series[0][1]
    axes.set_xticks(xs, [f"{x:g}" for x in xs])
    axes.minorticks_off()
    axes.set_xlabel(label)
    axes.set_title(f"{metric} ({BETTER[metric]} is better)", fontsize=10)
    axes.grid(alpha=0.3, linewidth=0.5)


def panel(path: Path, rows: Sequence[tuple[str, str, bool, dict[str, Series]]]) -> None:
    """One row of four metrics for each (title, label of x, logarithmic x, metric -> series); one legend for all."""
    figure, axes = plt.subplots(
        len(rows), 4, figsize=(13, 3.2 * len(rows) + 0.6), squeeze=False, layout="constrained", dpi=95
    )
    for each, (title, label, log, by_metric) in zip(axes, rows, strict=True):
        for place, (metric, series) in zip(each, by_metric.items(), strict=True):
            curves(place, series, metric, label, log=log)
        each[0].set_ylabel(title)
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=6, frameon=False)
    figure.savefig(path)
    plt.close(figure)


def maps(path: Path, rows: Sequence[tuple[str, Sequence[tuple[str, np.ndarray]]]]) -> None:
    """Rows of heat maps, each divided by its maximum; x to the right, y upwards."""
    x, y = rows[0][1][0][1].shape
    size = 2.3 * len(rows[0][1]), (2.3 * y / x + 0.25) * len(rows)
    shape = len(rows), len(rows[0][1])
    figure, axes = plt.subplots(*shape, figsize=size, squeeze=False, layout="constrained", dpi=100)
    for line, (title, row) in zip(axes, rows, strict=True):
        for place, (name, heat) in zip(line, row, strict=True):
            place.imshow((heat / heat.max()).T, origin="lower", cmap="inferno", vmin=0, vmax=1, interpolation="nearest")
            place.set_xticks([])
            place.set_yticks([])
            place.set_title(name, fontsize=9)
        line[0].set_ylabel(title, fontsize=9)
    figure.savefig(path)
    plt.close(figure)
