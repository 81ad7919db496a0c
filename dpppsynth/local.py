"""Local differential privacy: each person's device randomises its own location; the aggregator is not trusted.

A mechanism has two sides. The client needs nobody else's data: `client(cell)` gives a `Report`, a few integers that go
into JSON. The aggregator keeps counts: `aggregate(reports)` gives `Counts`, which add up (`+`) over machines, and
`counts.release(domain)` makes of them what all mechanisms give: a private intensity, a certificate, synthetic patterns.
`simulate(pattern)` runs all clients in one process, for studies and audits; `release(pattern)` does so for a custodian
who holds the points.

* On a square grid: `DiskAreaMechanism`, `HybridUniformExponential`, `MultidimensionalSquareWave`, and `SEMGeoI`, which
  is geo-indistinguishable and not local.
* For range queries: `RangeHierarchy` and `UniformGrid`, and in two rounds `PrivAG` and `AdvancedAdaptiveGrid`.
* For trajectories: `LineTrace`, by one report a person, and `LDPTrace` in two rounds, as published.
* Reports in files, of any size and partition: `write_reports`, `perturb_file`; `aggregate_files` reads them.
* Devices: `write_description` makes the public file from which `dpppsynth.client` draws reports, with NumPy alone.
* Counts in files, which merge exactly over machines: `count_files`, `merge_counts`, `write_counts`.
* Errors: `wasserstein2` between grids.

The laws, their radii and estimators are in `dpppsynth.randomizers`, cells and cuts in `dpppsynth.grids`.
"""

from dpppsynth.core.lazy_names import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
