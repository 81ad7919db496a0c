"""Client mechanisms (local randomizers) of local differential privacy, and estimators of shares from their reports.

* Area mechanisms: `DiskArea`, `HybridArea`; their radius: `optimal_radius`, `grid_radius`.
* Others on a grid: `SquareWave`, and `SubsetExponential`, which is geo-indistinguishable.
* Frequency oracles: `RandomizedResponse`, `SubsetSelection`, `ProjectiveResponse`, `LocalHashing`, `OptimizedUnary`,
  `SymmetricUnary`, `HadamardResponse`; `best_oracle` chooses by `total_variance`.
* On one level of a quadtree, drawn at random: `RangeHierarchyLaw`; its finest level: `hierarchy_side`.
* About a whole trajectory: `DisplacementLaw`.
* Estimation: `expectation_maximisation`, `norm_sub`, `norm_mul`, `clip`.

Each mechanism is a frozen object of public numbers with a law of integer weights, out of 2^62 but for
`SubsetExponential`, whose subsets are too many. `dpppsynth.local` puts windows, reports and releases around them.
"""

from dpppsynth.core.lazy_names import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
