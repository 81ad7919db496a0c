"""Pictures of K-functions and of envelopes, which are as confidential as the points behind them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

from dpppsynth.core.arguments import instance
from dpppsynth.core.errors import InputError
from dpppsynth.core.units import short_unit
from dpppsynth.plotting.canvas import INK, LANDMARK, POINT, new_figure, set_title
from dpppsynth.spatial.mesh import Floats
from dpppsynth.spatial.second_order import KFunction

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class Band(Protocol):
    """An observed curve and a band of simulated ones: `evaluation.Envelope`."""

    curve: str
    r: Floats
    observed: Floats
    lower: Floats
    upper: Floats
    mean: Floats
    level: float

    @property
    def simultaneous(self) -> bool:
        """Whether the level holds for the curve as a whole."""


def plot_k_function(
    k: KFunction | Mapping[str, KFunction], ax: Axes | None = None, *, unit: str = "unit", title: str | None = None
) -> Axes:
    """Draw L(r) - r of K-functions in a window, K(r) - r along streets; a Poisson process is the level line at zero.

    Parameters
    ----------
    k : KFunction, or mapping of str to KFunction
        Of `evaluation.k_function` or `linear_network.k_function`; several need names, and one kind of domain.
    ax : matplotlib.axes.Axes, optional
    unit : str
        Unit of length, `domain.unit`.
    title : str, optional

    Raises
    ------
    InputError
    """
    curves = dict(k) if isinstance(k, Mapping) else {"": instance("k", k, KFunction)}
    for each in curves.values():
        instance("k", each, KFunction)
    if len({each.planar for each in curves.values()}) != 1:
        msg = "k: needs one or several K-functions, all of windows or all of networks"
        raise InputError(msg)
    ax = new_figure(6.4, 4.4).subplots() if ax is None else ax
    for name, each in curves.items():
        ax.plot(each.r, each.l - each.r, linewidth=2.0, label=name or None)
    planar = next(iter(curves.values())).planar
    return _by_distance(ax, "L(r) - r" if planar else "K(r) - r", unit, title)


def plot_envelope(band: Band, ax: Axes | None = None, *, unit: str = "unit", title: str | None = None) -> Axes:
    """Draw an observed curve in the band of simulated ones: L- or K-functions less r, pair correlations less 1.

    Parameters
    ----------
    band : Envelope
        Of `evaluation.envelope`.
    ax : matplotlib.axes.Axes, optional
    unit : str
        Unit of length, `domain.unit`.
    title : str, optional
    """
    ax = new_figure(6.4, 4.4).subplots() if ax is None else ax
    base, what = (1.0, "g(r) - 1") if band.curve == "g" else (band.r, f"{band.curve}(r) - r")
    kind = f"simulated, {'simultaneous' if band.simultaneous else 'pointwise'} band"
    label = f"{kind} at level {band.level:.3g}"
    ax.fill_between(band.r, band.lower - base, band.upper - base, color=LANDMARK, alpha=0.22, linewidth=0, label=label)
    ax.plot(band.r, band.mean - base, color=LANDMARK, linewidth=1.6, label="simulated, mean")
    ax.plot(band.r, band.observed - base, color=POINT, linewidth=2.2, label="observed")
    return _by_distance(ax, what, unit, title)


def dress_curves(ax: Axes, xlabel: str, ylabel: str, title: str | None) -> None:
    """Axes of curves by distance: labels, lines across, a legend below, where no curve can be."""
    ax.set(xlabel=xlabel, ylabel=ylabel)
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(axis="y", color="#e4e1dc", linewidth=0.8)
    ax.set_axisbelow(True)
    ax.legend(loc="upper left", bbox_to_anchor=(-0.02, -0.16), ncols=2, frameon=False, fontsize=10)
    if title is not None:
        set_title(ax, title)


def _by_distance(ax: Axes, what: str, unit: str, title: str | None) -> Axes:
    """Add the level line of a Poisson process, and dress the axes."""
    ax.axhline(0.0, color=INK, linewidth=1.0, linestyle=(0, (4, 3)), label="Poisson process")
    ax.margins(x=0)
    dress_curves(ax, f"r ({short_unit(unit)})", what, title)
    return ax
