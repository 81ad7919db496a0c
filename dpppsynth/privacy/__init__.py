"""Neighbouring relations, guarantees, bounds, noise and certificates; independent of all synthesizers.

Relations are objects (`AlphaNeighbours`, `ReplaceOne`, `AddRemove`, `AddRemovePerson`, `Local`,
`GeoIndistinguishability`). Bound functions (`counts`, `tents`, `theorem_a`, `lipschitz`, `field_statistic`,
`superposition`, `diffusion`, `kim_lim_36`, `kim_lim_38`, `kim_lim_39`, `heatmap`, `local_report`, `local_rounds`,
`bounded_counts`, `moved_points`, `parallel`) turn public numbers into a `Guarantee`, whose profile gives delta for
every epsilon. `shuffled_reports` makes a second statement on local reports that an honest shuffler mixes.
`verify` derives the bound of a certificate again. `compose` adds up the profiles of several releases.
"""

from dpppsynth.core.lazy_names import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
