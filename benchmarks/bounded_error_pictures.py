"""Pictures of benchmarks/bounded_error.py: gain of a filter by smoothness, and scatter of variances of 1000 draws."""

from collections.abc import Sequence
from pathlib import Path

import matplotlib.pyplot as plt
from bounded_error_scores import Figure
from bounded_error_studies import Smooth, Spread

LABELS = {
    "raw": ("released", "0.4", "-"),
    "given": ("filtered, step known", "tab:blue", "-"),
    "likely": ("filtered, likely step", "tab:orange", "-"),
    "differences": ("filtered, step by differences", "tab:purple", "-"),
    "smoother": ("smoothed, step known", "tab:green", "-"),
    "literal": ("filtered as printed, before its 1 / M", "tab:red", ":"),
}


def draw(path: Path, smooth: Sequence[Smooth], spreads: Sequence[Spread]) -> None:
    """Left: errors against the step of a walk. Right: where 95 % of the variances of 1000 draws lie."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4), width_ratios=(3, 2), layout="constrained")
    walks = [row for row in smooth if row.truth == "walk" and row.step]
    for name, (label, colour, style) in LABELS.items():
        found: list[Figure] = [getattr(row, name) for row in walks]
        steps, drawn = [row.step for row in walks], {"color": colour, "linestyle": style, "linewidth": 1}
        values, errors = [each.value for each in found], [2 * each.error for each in found]
        left.errorbar(steps, values, errors, label=label, **drawn)
    left.set(xscale="log", yscale="log", ylabel="mean squared error")
    left.set_xlabel("step of the walk (noise: standard deviation 13)")
    left.legend(fontsize=7, frameon=False)
    for k, row in enumerate(spreads):
        right.plot([row.low, row.high], [k, k], color="0.4")
        right.plot([row.variance], [k], "o", color="tab:blue", markersize=4)
        right.text(row.variance, k + 0.15, row.published, ha="center", fontsize=8)
    right.set(yticks=[], ylim=(-0.5, len(spreads)), xlabel="variance of 1000 draws, 95 % of studies")
    figure.savefig(path, dpi=110)
    plt.close(figure)
