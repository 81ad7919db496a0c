"""Differentially private heat maps of people who may have many points each: plain arrays in, plain arrays out.

`aggregate` estimates the average of many persons' distributions over a square grid, privately; `HeatmapSynthesizer`
does the same for point patterns in a window, with a certificate. Inside, from data to picture:

============================== ======================================================================================
`Users`, `user_distribution`   sparse distributions, each person's rounded to whole units that add up to one
`pyramid`                      sums over ever smaller squares
`measure_tree`                 the one step that spends the budget: noised counts of the cells that selection looks at
`grow`, `CellTree`, `Level`    which cells are looked at, and which are kept
`select_cells`, `solve`        the fullest cells of full levels, and the masses that fit their counts in l1
`least_squares`                masses by weighted least squares on all that was looked at; `fitted` takes either
`aggregate`                    all of it; `sparse_aggregate` keeps what lies between
`gaussian_heatmap`             the picture; `infinite_heatmap` without borders
`emd`, `similarity`, ...       how far a heat map is from the truth: `emd_norm`, `pearson`, `kl`
============================== ======================================================================================

docs/theory/heatmaps.md has the proofs.

References
----------
Ghazi, He, Kohlhoff, Kumar, Manurangsi, Navalpakkam and Valliappan (2023), Differentially private heatmaps, AAAI.
"""

from dpppsynth.core.lazy_names import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
