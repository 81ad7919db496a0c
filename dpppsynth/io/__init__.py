"""Reading and writing of CSV, GeoJSON, GeoPackage and GeoParquet files.

- `read_window` reads a public window, `read_network` a public network, `read_pattern` a sensitive pattern,
  `read_batches` one larger than memory, `read_synthetic` a pattern that `write_pattern` wrote; `require_head` looks at
  a file's columns and CRS alone;
- `inspect_points` tells a custodian which rules a file breaks, and writes the offending rows to a confidential file.

Every reader carries the coordinate reference system, refuses degrees, and keeps quiet about the data: an error names a
rule and a remedy, never a coordinate, a cell or a number of rows.
"""

from dpppsynth.core.lazy_names import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
