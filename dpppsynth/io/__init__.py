"""Reading and writing of CSV, GeoJSON, GeoPackage and GeoParquet files.

- `read_window` reads a public window, `read_network` a public network, `read_pattern` a sensitive pattern,
  `read_batches` one larger than memory, `read_synthetic` a pattern that `write_pattern` wrote; `require_head` looks at
  a file's columns and CRS alone;
- `inspect_points` tells a custodian which rules a file breaks, and writes the offending rows to a confidential file;
- `pattern_from_geodataframe` stands behind `PointPattern.from_geodataframe`, `network_from_geodataframe` behind
  `LinearNetwork.from_geodataframe`.

Every reader carries the coordinate reference system, refuses degrees, and keeps quiet about the data: an error names a
rule and a remedy, never a coordinate, a cell or a number of rows.
"""

from dpppsynth.io.batches import PointBatches, read_batches
from dpppsynth.io.inspection import Inspection, inspect_points
from dpppsynth.io.networks import network_from_geodataframe, read_network
from dpppsynth.io.reading import pattern_from_geodataframe, read_pattern, read_synthetic, read_window, require_head
from dpppsynth.io.writing import write_pattern

__all__ = [
    "Inspection",
    "PointBatches",
    "inspect_points",
    "network_from_geodataframe",
    "pattern_from_geodataframe",
    "read_batches",
    "read_network",
    "read_pattern",
    "read_synthetic",
    "read_window",
    "require_head",
    "write_pattern",
]
