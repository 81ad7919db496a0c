"""Meshes, covariances and log-Gaussian Cox models.

* Planar meshes: `regular_triangulation`, `regular_squares`, `refine`; laid over a network: `trace_mesh`.
* Covariances: `PoweredExponential`, `Matern`, `GeneralisedCauchy`, `factor`, `square_root`.
* Quadratures of the likelihood: `dual_mesh`, `dual_measure`.
* PyMC models: `build_lgcp` (raw data, not private), `build_noise_aware` (private statistics).
* Fast posteriors: `laplace_posterior` of `NoisyMasses` and `NoisyField`; NUTS through `Sampler`.
"""

from dpppsynth.core.lazy_names import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
