"""Pictures of an evaluation: K-functions and maps side by side, marked CONFIDENTIAL by default."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from dpppsynth.core.units import short_unit
from dpppsynth.evaluation.metrics import KComparison
from dpppsynth.linear_network import LinearNetwork
from dpppsynth.plotting import plot_comparison, plot_pattern
from dpppsynth.plotting.canvas import INK, LANDMARK, POINT, map_figure, new_figure
from dpppsynth.plotting.picture_files import mark_confidential
from dpppsynth.plotting.second_order import dress_curves
from dpppsynth.spatial.domains import Domain
from dpppsynth.spatial.patterns import PointPattern

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_k(k: KComparison, ax: Axes | None = None, *, domain: Domain, confidential: bool = True) -> Axes:
    """Draw K of the original, the envelope of the synthetic patterns, and a Poisson process as the level line at zero.

    In a window L(r) - r is drawn, on a network K(r) - r: what is above zero gathers at scales up to r.

    Parameters
    ----------
    k : KComparison
        For instance `report.k`.
    ax : matplotlib.axes.Axes, optional
    domain : Window or LinearNetwork
        Of the patterns.
    confidential : bool
        Whether to mark the figure; `save_picture` keeps a marked one out of releases and readable by its owner alone.
    """
    ax = new_figure(6.8, 5.0).subplots() if ax is None else ax
    r = k.original.r
    band = k.envelope
    if band is not None:
        between = band.lower - r, band.upper - r
        ax.fill_between(r, *between, color=LANDMARK, alpha=0.22, linewidth=0, label="synthetic, lowest to highest")
    mean, label = (k.synthetic[0].l, "synthetic") if band is None else (band.mean, "synthetic, mean")
    ax.plot(r, mean - r, color=LANDMARK, linewidth=1.6, label=label)
    ax.plot(
        r, k.original.l - r, color=POINT, linewidth=2.2, label="original (sensitive)" if confidential else "original"
    )
    ax.axhline(0.0, color=INK, linewidth=1.0, linestyle=(0, (4, 3)), label="Poisson process")
    _dress(ax, domain)
    ax.set_xlim(0, r[-1])
    if confidential:
        mark_confidential(ax.figure, "made from sensitive points", size=48)
    return ax


def plot_patterns(
    original: PointPattern,
    synthetic: PointPattern,
    axes: Sequence[Axes] | None = None,
    *,
    confidential: bool = True,
) -> tuple[Axes, Axes]:
    """Draw the original beside a synthetic pattern, as `plotting.plot_comparison` does.

    Parameters
    ----------
    original, synthetic : PointPattern
        On the same domain.
    axes : two matplotlib.axes.Axes, optional
        Of one figure.
    confidential : bool
        Whether to mark the figure; False only where the original is no data about anybody.
    """
    if confidential:
        return plot_comparison(original, synthetic, axes)
    left, right = axes if axes is not None else map_figure(original.domain, panels=2).subplots(1, 2)
    return plot_pattern(original, left, title="Original"), plot_pattern(synthetic, right, title="Synthetic")


def _dress(ax: Axes, domain: Domain) -> None:
    streets = isinstance(domain, LinearNetwork)
    unit = short_unit(domain.unit)
    along = " along the streets" if streets else ""
    xlabel, ylabel = f"distance r{along} ({unit})", f"{'K' if streets else 'L'}(r) - r ({unit})"
    dress_curves(ax, xlabel, ylabel, "How points gather, by distance")
