"""Evaluation of synthetic patterns against the original: statistics, distances, scores, reports, simulation studies.

================================= =================================================================================
`evaluate`                        one report on synthetic patterns beside the original: `UtilityReport`
`k_function`, `pair_correlation`  second-order statistics, in windows with edge correction and along networks
`envelope`                        where such a curve leaves what simulations give
`kernel_intensity`                the usual kernel estimate of an intensity
`total_variation`                 how far two intensities are apart
`misplaced_share`, `wasserstein`  how far two patterns are apart: between squares, and by moving points
`grid_wasserstein`                the same of masses on a grid
`mean_integrated_squared_error`   of K-functions
`propensity_mse`                  how well intensities tell synthetic points from original ones
`experiments`                     simulation studies that can be interrupted, and run on many machines
================================= =================================================================================

**Nothing here is private.** What is computed from sensitive points is as sensitive as they are. Choosing settings by it
spends privacy that nobody accounts for: rehearse on surrogate patterns instead (`Synthesizer.rehearse`).
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
