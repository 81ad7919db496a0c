"""Options that say how the rows of a file of points are told."""

from dataclasses import dataclass
from typing import Any

from dpppsynth.cli import common_options as o

# A tab is hard to type.
TAB = ("tab", "\\t")


@dataclass(frozen=True, kw_only=True)
class LayoutOptions:
    """Columns and signs of a CSV file, and the layer of a GeoPackage."""

    x: o.XOption = None
    y: o.YOption = None
    separator: o.SeparatorOption = None
    decimal: o.DecimalOption = None
    layer: o.LayerOption = None

    @property
    def reading(self) -> dict[str, Any]:
        """Arguments of the readers of points."""
        separator = "\t" if self.separator in TAB else self.separator
        return {"x": self.x, "y": self.y, "separator": separator, "decimal": self.decimal, "layer": self.layer}
