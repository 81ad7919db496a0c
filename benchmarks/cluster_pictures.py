"""Pictures of benchmarks/clusters.py."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from cluster_originals import Original
from cluster_scores import FINE, excess
from matplotlib.axes import Axes

import dpppsynth as dps

mpl.use("Agg")

Draw = Callable[[str, int, int], Original]
Released = Callable[..., tuple[Any, float]]
N, CLUSTERS = 400, {"clusters": 0.3}
# Releases of each original, and patterns of each release, behind a band; and the repeat that points are shown of.
RELEASES, PATTERNS, SHOWN = 6, 5, 1
KINDS: dict[str, tuple[str, dict[str, float]]] = {
    "synthetic, without": ("#d55e00", {}),
    "synthetic, with clusters": ("#0072b2", CLUSTERS),
}
CURVES = ("Thomas 8 x 10 m", "uniform", "Soho, map", "Soho, streets")


def pictures(folder: Path, draw: Draw, released: Released) -> None:
    """All pictures of the page."""
    points(folder / "clusters.png", draw, released)
    curves(folder / "clusters_l.png", draw, released)


def sets(original: Original, released: Released, seed: list[int], count: int, **settings: float) -> list[Any]:
    """Synthetic patterns of one release."""
    release, _ = released(original, 1.0, "laplace", seed, **settings)
    return list(release.sample(count, np.random.default_rng(seed), fixed_n=True))


def points(path: Path, draw: Draw, released: Released) -> None:
    """Original and synthetic points side by side."""
    figure, axes = plt.subplots(2, 3, figsize=(12, 8.2), layout="constrained", dpi=90)
    for line, name in zip(axes, ("Thomas 8 x 10 m", "Soho, map"), strict=True):
        original = draw(name, N, SHOWN)
        shown = {"original": original.pattern}
        shown |= {word: sets(original, released, [7, SHOWN], 1, **kind)[0] for word, (_, kind) in KINDS.items()}
        for place, (word, pattern) in zip(line, shown.items(), strict=True):
            scatter(place, pattern, f"{name}: {word}")
    figure.savefig(path)
    plt.close(figure)


def scatter(axes: Axes, pattern: dps.PointPattern, title: str) -> None:
    """Points of a pattern; where several lie at one place the dot is larger."""
    places, counts = np.unique(np.round(pattern.xy, 2), axis=0, return_counts=True)
    axes.scatter(*places.T, s=5 * counts, color="#222222", linewidths=0, alpha=0.7)
    x0, y0, x1, y1 = pattern.domain.bounds
    axes.set(xlim=(x0, x1), ylim=(y0, y1), aspect="equal", xticks=[], yticks=[])
    axes.set_title(title, fontsize=10)


def curves(path: Path, draw: Draw, released: Released) -> None:
    """L(r) - r of originals, and where 90 % of synthetic patterns have theirs."""
    figure, axes = plt.subplots(1, len(CURVES), figsize=(15, 3.9), layout="constrained", dpi=90)
    for place, name in zip(axes, CURVES, strict=True):
        originals = [draw(name, N, repeat) for repeat in range(RELEASES)]
        for word, (colour, kind) in KINDS.items():
            found = [
                excess(pattern)
                for repeat, original in enumerate(originals)
                for pattern in sets(original, released, [8, repeat], PATTERNS, **kind)
            ]
            place.fill_between(FINE, *np.quantile(found, [0.05, 0.95], axis=0), color=colour, alpha=0.2, linewidth=0)
            place.plot(FINE, np.mean(found, axis=0), color=colour, label=word)
        own = np.mean([excess(original.pattern) for original in originals], axis=0)
        place.plot(FINE, own, color="#000000", linestyle="--", label="original")
        what = "K(r) - r" if name.endswith("streets") else "L(r) - r"
        place.set(xlabel="r, metres", title=f"{name}: {what}")
        place.grid(alpha=0.3, linewidth=0.5)
    axes[0].legend(frameon=False, fontsize=9)
    figure.savefig(path)
    plt.close(figure)
