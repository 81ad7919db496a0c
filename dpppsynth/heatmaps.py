"""Pictures of heat maps and distances between them, as functions of plain arrays.

`HeatmapSynthesizer` makes private ones of people who may have many points each; `HeatmapStatistic` is what it measures,
with the budgets of `level_budgets`. docs/theory/heatmaps.md has the proofs.

============================== ======================================================================================
`gaussian_heatmap`             the picture of masses on a grid
`emd`, `similarity`, ...       how far a heat map is from the truth: `pearson`, `kl`
============================== ======================================================================================

References
----------
Ghazi, He, Kohlhoff, Kumar, Manurangsi, Navalpakkam and Valliappan (2023), Differentially private heatmaps, AAAI.
"""

from dpppsynth.core.lazy_names import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
