"""Colour scales of maps: linear, or by square root or logarithm where one hot spot would hide the rest."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dpppsynth.spatial.mesh import Floats

if TYPE_CHECKING:
    from matplotlib.colors import Normalize

LINEAR, ROOT, LOG = "linear", "square-root", "log"
# The rest of a map: this share of its area or streets.
REST = 0.95
# Shares of the top that the rest must reach for a linear scale, and for one by square root.
SEEN, FAINT = 0.2, 0.02
# A log scale begins at the median, rounded down to a decade, but within so many decades of the top.
DECADES = 4
# Ticks of a colour bar lie at least so far apart, as shares of its length.
APART = 0.09
# Letters of a label that stand along an inch of a picture's height, and the arrows of a colour bar.
LETTERS_PER_INCH = 11
EXTEND = {(False, False): "neither", (False, True): "max", (True, False): "min", (True, True): "both"}


@dataclass(frozen=True, eq=False)
class Shades:
    """Values of a map as they are seen.

    Attributes
    ----------
    values : ndarray, shape (m,)
        At places spread over the map.
    extent : ndarray, shape (m,)
        Area or length that each stands for, in any unit.
    top : float
        Largest value that is reached along enough of the map to be seen.
    """

    values: Floats
    extent: Floats
    top: float


@dataclass(frozen=True)
class ColourScale:
    """Values at the ends of a colour scale, and how colours run from one to the other.

    Attributes
    ----------
    low, top : float
        Ends; `low` is zero but for a log scale.
    kind : {"linear", "square-root", "log"}
    rest : float
        Value that 95 % of the map does not exceed.
    under, beyond : bool
        Whether some values lie below or above the ends.
    """

    top: float
    low: float = 0.0
    kind: str = LINEAR
    rest: float = 0.0
    under: bool = False
    beyond: bool = False

    @classmethod
    def of(cls, maps: Sequence[Shades], *, log: bool = True) -> ColourScale:
        """Find one scale for several maps, from the values that they show and nothing else.

        It is linear unless 95 % of the maps stay below a fifth of the top, by square root where they do, and
        logarithmic (if `log`) where they stay below a fiftieth.

        Examples
        --------
        >>> ColourScale.of([Shades(np.full(100, 50.0), np.ones(100), 50.0)]).kind
        'linear'
        >>> ColourScale.of([Shades(np.append(np.ones(99), 1000.0), np.ones(100), 1000.0)]).kind
        'log'
        """
        values = np.concatenate([each.values for each in maps])
        extent = np.concatenate([each.extent for each in maps])
        top = max(each.top for each in maps) or 1.0
        rest, middle = _quantile(values, extent, REST), _quantile(values, extent, 0.5)
        beyond = bool(values.max(initial=0.0) > top)
        if rest >= SEEN * top:
            return cls(top, rest=rest, beyond=beyond)
        if rest >= FAINT * top or not log:
            return cls(top, kind=ROOT, rest=rest, beyond=beyond)
        low = max(10.0 ** np.floor(np.log10(middle)) if middle > 0 else 0.0, top * 10.0**-DECADES)
        return cls(top, float(low), LOG, rest, bool(values.min(initial=low) < low), beyond)

    def norm(self) -> Normalize:
        """The scale as Matplotlib has it."""
        from matplotlib.colors import LogNorm, Normalize, PowerNorm

        if self.kind == LOG:
            return LogNorm(self.low, self.top, clip=True)
        return Normalize(0.0, self.top) if self.kind == LINEAR else PowerNorm(0.5, 0.0, self.top)

    def shares(self, values: Floats) -> Floats:
        """Places of values along the scale, from 0 to 1."""
        return np.asarray(self.norm()(np.maximum(values, self.low)), dtype=np.float64).clip(0.0, 1.0)

    def words(self, along: str) -> str:
        """Statement of the scale and of its rule for a legend; empty for a linear one.

        Examples
        --------
        >>> ColourScale(100.0, 0.0, "square-root", 12.3).words("area")
        'square-root scale: 95 % of the area is below 13 % of the top'
        """
        if self.kind == LINEAR:
            return ""
        share = 100 * self.rest / self.top
        told = f"{np.ceil(share):.0f}" if share > 1 else f"{np.ceil(10 * share) / 10:.1f}"
        return f"{self.kind} scale: {REST:.0%} of the {along} is below {told} % of the top".replace("95%", "95 %")

    def ticks(self) -> list[float]:
        """Round values for a colour bar, far enough apart to be read."""
        if self.kind == LINEAR:
            from matplotlib.ticker import MaxNLocator

            return [float(each) for each in MaxNLocator(6).tick_values(0.0, self.top) if 0 <= each <= self.top]
        norm = self.norm()
        decade = np.floor(np.log10(self.top))
        steps = (1.0,) if self.kind == LOG and self.top > 1e3 * self.low else (5.0, 2.0, 1.0)
        found: list[float] = []
        for power in 10.0 ** np.arange(decade, decade - DECADES - 1, -1):
            for step in steps:
                value = float(step * power)
                if not max(self.low * (1 - 1e-9), 0) <= value <= self.top:
                    continue
                if all(abs(float(norm(value)) - float(norm(each))) >= APART for each in found):
                    found.append(value)
        if self.kind == ROOT:
            found = [*(each for each in found if float(norm(each)) >= APART), 0.0]
        return sorted(found)


def draw_colour_bar(shown: Any, axes: Any, label: str, scale: ColourScale, along: str) -> None:
    """Draw a colour bar beside one map or several; a scale that is not linear stands under its label."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    figure: Any = (axes[0] if isinstance(axes, list) else axes).figure
    letters = int(LETTERS_PER_INCH * figure.get_size_inches()[1])
    lines = [label, *textwrap.wrap(scale.words(along), letters)]
    extend = EXTEND[scale.under, scale.beyond]
    bar: Any = figure.colorbar(shown, ax=axes, shrink=0.8, pad=0.02, label="\n".join(lines), extend=extend)
    bar.outline.set_visible(False)
    bar.ax.yaxis.set_major_locator(FixedLocator(scale.ticks()))
    bar.ax.yaxis.set_minor_locator(NullLocator())
    bar.ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _place: f"{value:,.6g}"))


def _quantile(values: Floats, extent: Floats, share: float) -> float:
    """Smallest value that the given share of the map does not exceed."""
    order = np.argsort(values, kind="stable")
    covered = np.cumsum(extent[order])
    place = int(np.searchsorted(covered, share * covered[-1] * (1 - 1e-12)))
    return float(values[order[min(place, len(values) - 1)]])
