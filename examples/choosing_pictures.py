"""Pictures of the page on choosing alpha and epsilon: a radius on a map, guesses by budget, patterns by both.

Run it with `python examples/choosing_pictures.py [folder]`; it writes docs/pictures/alpha.png, epsilon.png and
budgets.png. The deaths of Soho are public since 1854, so releases may be seeded: pictures come out the same every time.
"""

import io
import sys
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.patches import Circle
from PIL import Image
from soho_picture import HOME, INK, PAPER, SYNTHETIC, dots, note, street_map

import dpppsynth as dps

OUT = Path(__file__).parents[1] / "docs" / "pictures"
RADII = 10.0, 25.0, 50.0, 100.0
EPSILONS, ALPHAS = (0.03, 0.3, 3.0), (10.0, 25.0, 100.0)
ALPHA = "\N{GREEK SMALL LETTER ALPHA}"
COLOURS = "#0072b2", "#c1441e", "#3b7a3b"


def save(figure: Figure, path: Path) -> None:
    """Write a picture in a palette of 64 colours, which makes the file a third as large."""
    drawn = io.BytesIO()
    figure.savefig(drawn, dpi=110)
    Image.open(drawn).convert("RGB").quantize(64).save(path, optimize=True)
    print(f"written to {path}")


def addresses_within(radius: float, xy: np.ndarray) -> int:
    """Number of addresses within a radius of the pump in Broad Street, which stands for a home."""
    return int((np.hypot(*(xy - HOME).T) <= radius).sum())


def best_guess(guarantee: dps.privacy.Guarantee, alpha: float, apart: np.ndarray) -> np.ndarray:
    """Right guesses out of 100, at most, between two homes so far apart; no less than proved for the next distance."""
    reach, epsilon = np.array(guarantee.by_distance).T
    proved = epsilon[np.searchsorted(reach, apart).clip(max=len(reach) - 1)]
    proved = np.where(apart <= alpha, np.minimum(proved, guarantee.epsilon()), proved)
    return 100 / (1 + np.exp(-proved))


def alpha_picture(out: Path) -> None:
    figure = Figure(figsize=(5.6, 5.6), facecolor=PAPER, layout="constrained")
    ax = figure.subplots()
    bounds = HOME[0] - 125, HOME[1] - 125, HOME[0] + 125, HOME[1] + 125
    street_map(ax, bounds, "A radius hides a home among those around it", "Dots: addresses. Circles: radii.", 50)
    xy = pd.read_csv(dps.datasets.path("soho_addresses"))[["x", "y"]].to_numpy()
    ax.scatter(*xy.T, s=10, color=INK, linewidths=0, zorder=3)
    for radius in RADII:
        ax.add_patch(Circle(HOME, radius, fill=False, edgecolor=COLOURS[0], linewidth=1.8, zorder=4))
        note(ax, HOME[0], HOME[1] + radius, f"{radius:g} m: {addresses_within(radius, xy)} addresses", ha="center")
    ax.plot(*HOME, "o", color=COLOURS[1], markersize=8, markeredgecolor="white", zorder=5)
    save(figure, out / "alpha.png")


def epsilon_picture(out: Path) -> None:
    figure = Figure(figsize=(9.6, 3.6), facecolor=PAPER, layout="constrained")
    guesses, distances = figure.subplots(1, 2)
    epsilon = np.linspace(0, 6, 241)
    for prior, colour in zip((0.5, 0.1, 0.01), COLOURS, strict=True):
        odds = prior / (1 - prior) * np.exp(epsilon)
        guesses.plot(epsilon, 100 * odds / (1 + odds), color=colour, label=f"{prior:.0%} before")
    guesses.set(xlabel="ε", ylabel="sure at most, %", ylim=(0, 100), xlim=(0, 6))
    guesses.set_title("How sure of a place a release can make", loc="left", fontsize=11, weight="bold")
    window = dps.datasets.soho_deaths().domain
    apart = np.linspace(0, 300, 601)[1:]
    for alpha, colour in zip(ALPHAS, COLOURS, strict=True):
        guarantee = dps.LGCPSynthesizer(epsilon=1.0, alpha=alpha).check(window, n=392)
        distances.plot(apart, best_guess(guarantee, alpha, apart), color=colour, label=f"{ALPHA} = {alpha:g} m")
    distances.set(xlabel="metres between two homes", ylabel="right guesses at most, %", ylim=(50, 100), xlim=(0, 300))
    distances.set_title("Which of two homes? (ε = 1)", loc="left", fontsize=11, weight="bold")
    for ax in (guesses, distances):
        ax.grid(color="#ddd8d0", linewidth=0.6)
        ax.legend(frameon=False)
        ax.set_facecolor(PAPER)
    save(figure, out / "epsilon.png")


def budgets_picture(out: Path) -> None:
    deaths = dps.datasets.soho_deaths()
    figure = Figure(figsize=(8.4, 9.0), facecolor=PAPER, layout="constrained")
    for axes, epsilon in zip(figure.subplots(3, 3), EPSILONS, strict=True):
        for ax, alpha in zip(axes, ALPHAS, strict=True):
            release = dps.LGCPSynthesizer(epsilon=epsilon, alpha=alpha, inference="laplace").release(deaths, rng=1854)
            street_map(ax, deaths.domain.bounds, f"ε = {epsilon:g}, {ALPHA} = {alpha:g} m", "", 100)
            ax.title.set_fontsize(11)
            dots(ax, release.sample(1, rng=1854)[0], SYNTHETIC)
    save(figure, out / "budgets.png")


def main(out: Path) -> None:
    out.mkdir(parents=True, exist_ok=True)
    alpha_picture(out)
    epsilon_picture(out)
    budgets_picture(out)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else OUT)
