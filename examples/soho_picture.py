"""Picture of the README: deaths in Soho, a synthetic pattern, and how well two homes can be told apart.

Run it with `python examples/soho_picture.py [file]`; it writes docs/pictures/soho.png. The deaths are public since
1854, so the original may be shown, and the release may be seeded: the picture comes out the same every time.
"""

import io
import math
import sys
from pathlib import Path

import numpy as np
import shapely
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Circle, Rectangle
from PIL import Image

import dpppsynth as dps

OUT = Path(__file__).parents[1] / "docs" / "pictures" / "soho.png"
EPSILON, ALPHA = 1.0, 25.0
RADIUS = f"\N{GREEK SMALL LETTER ALPHA} = {ALPHA:g} m"
# The pump of Broad Street, a public place that stands for a home; metres across its map; radii that are labelled.
HOME, ACROSS, RADII = (529390.95, 181024.57), 220.0, (25.0, 50.0, 75.0)
# Opaque paper and dark ink, which light and dark pages show alike.
PAPER, STREET, INK, DEATH, SYNTHETIC = "#fbfaf7", "#d9d4cb", "#242424", "#c1441e", "#0072b2"
GUESSED = LinearSegmentedColormap.from_list("guessed", ["#ffffff", "#fdd9a0", "#ef9a4d"])


def best_guess(guarantee: dps.privacy.Guarantee, distance: np.ndarray) -> np.ndarray:
    """Right guesses out of 100, at most, between two homes so far apart; tossing a coin is right in 50."""
    reach, epsilon = np.array(guarantee.by_distance).T
    proved = epsilon[np.searchsorted(reach, distance).clip(max=len(reach) - 1)]
    proved = np.where(distance <= ALPHA, np.minimum(proved, guarantee.epsilon()), proved)
    return np.where(distance > 0, 100 / (1 + np.exp(-proved)), 50.0)


def street_map(ax: Axes, bounds: tuple[float, float, float, float], title: str, below: str, bar: float) -> None:
    """Draw the streets within the bounds, with words and a scale bar of so many metres."""
    x0, y0, x1, y1 = bounds
    lines = [shapely.get_coordinates(line) for line in dps.datasets.soho_streets().lines]
    width = 1.6 * math.sqrt(670 / (x1 - x0))
    ax.add_collection(LineCollection(lines, colors=STREET, linewidths=width, capstyle="round", zorder=1))
    ax.set(xlim=(x0, x1), ylim=(y0, y1), aspect="equal", xticks=[], yticks=[], facecolor=PAPER)
    for side in ax.spines.values():
        side.set(color="#8a8580", linewidth=0.8)
    ax.set_title(title, loc="left", fontsize=14, weight="bold", color=INK)
    ax.set_xlabel(below, loc="left", fontsize=10.5, color=INK, labelpad=6, linespacing=1.3)
    x, y = x0 + 0.04 * (x1 - x0), y0 + 0.05 * (x1 - x0)
    ax.plot([x, x + bar], [y, y], color=INK, linewidth=2.2, solid_capstyle="butt", zorder=6)
    note(ax, x + bar + 0.015 * (x1 - x0), y, f"{bar:g} m", ha="left")


def note(ax: Axes, x: float, y: float, text: str, **style: str) -> None:
    """Write on paper of its own."""
    box = {"boxstyle": "round,pad=0.1", "facecolor": PAPER, "edgecolor": "none", "alpha": 0.85}
    ax.text(x, y, text, va="center", fontsize=10.5, color=INK, zorder=6, bbox=box, **style)


def dots(ax: Axes, pattern: dps.PointPattern, colour: str) -> None:
    """Draw one dot a place, its area in proportion to the points there."""
    place, count = np.unique(pattern.xy, axis=0, return_counts=True)
    ax.scatter(*place.T, s=9 * count, color=colour, alpha=0.7, linewidths=0, zorder=3)


def told_apart(ax: Axes, guarantee: dps.privacy.Guarantee) -> None:
    """Colour the places around a home by how well anybody could tell them from it."""
    x0, x1, y0, y1 = *ax.get_xlim(), *ax.get_ylim()
    side = (np.arange(400) + 0.5) / 400
    distance = np.hypot(*np.meshgrid(x0 + side * (x1 - x0) - HOME[0], y0 + side * (y1 - y0) - HOME[1]))
    place = {"extent": (x0, x1, y0, y1), "origin": "lower", "zorder": 0}
    ax.imshow(best_guess(guarantee, distance), cmap=GUESSED, vmin=50, vmax=100, **place)
    for radius in RADII:
        dashes = "-" if radius == ALPHA else (0, (4, 3))
        ring = {"edgecolor": INK, "linewidth": 2.0 if radius == ALPHA else 1.0, "linestyle": dashes}
        ax.add_patch(Circle(HOME, radius, fill=False, zorder=4, **ring))
        most = math.ceil(float(best_guess(guarantee, np.array(radius))))
        name = RADIUS if radius == ALPHA else f"{radius:g} m"
        note(ax, HOME[0], HOME[1] + radius, f"{name}: {most} %", ha="center")
    ax.plot(*HOME, "o", color=DEATH, markersize=8, markeredgecolor="white", zorder=5)


def main(out: Path) -> None:
    deaths = dps.datasets.soho_deaths()
    release = dps.LGCPSynthesizer(epsilon=EPSILON, alpha=ALPHA, inference="laplace").release(deaths, rng=1854)
    whole, half = deaths.domain.bounds, ACROSS / 2
    zoomed = (HOME[0] - half, HOME[1] - half, HOME[0] + half, HOME[1] + half)

    figure = Figure(figsize=(10.6, 4.25), facecolor=PAPER, layout="constrained")
    original, synthetic, guarantee = figure.subplots(1, 3)
    street_map(original, whole, "Original", "Deaths from cholera in Soho, 1854.\nA map that nobody may see.", 100)
    street_map(synthetic, whole, "Synthetic", f"Drawn with ε = {EPSILON:g}, {RADIUS}.\nMay be published.", 100)
    words = "Was it this home, or one elsewhere?\nRight guesses, at most (a coin: 50 %)."
    street_map(guarantee, zoomed, "Guarantee", words, 50)
    dots(original, deaths, DEATH)
    dots(synthetic, release.sample(1, rng=1854)[0], SYNTHETIC)
    for ax in (original, synthetic):
        ax.add_patch(Rectangle(zoomed[:2], ACROSS, ACROSS, fill=False, edgecolor=INK, linewidth=1.0, zorder=5))
        ax.add_patch(Circle(HOME, ALPHA, fill=False, edgecolor=INK, linewidth=1.2, zorder=5))
    told_apart(guarantee, release.guarantee)

    drawn = io.BytesIO()
    figure.savefig(drawn, dpi=150)
    out.parent.mkdir(parents=True, exist_ok=True)
    # A palette of 128 colours makes the file a third as large.
    Image.open(drawn).convert("RGB").quantize(128).save(out, optimize=True)
    print(f"written to {out}")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else OUT)
