"""Posterior sampling: one posterior draw of a log-Gaussian Cox field, released as it is (no added noise).

* `PosteriorDrawStatistic`: a posterior draw under a Gaussian prior (Theorem A).
* `LipschitzStatistic`: a posterior draw under a prior of bounded slope (Theorem D).
* `KimLimStatistic`: Kim & Lim's own synthesizer, private on average over their model only.
"""

from dpppsynth.mechanisms.lgcp.posterior_sampling.draw_statistic import ConfidentialFit, DrawStatistic
from dpppsynth.mechanisms.lgcp.posterior_sampling.kim_lim_statistic import KimLimStatistic
from dpppsynth.mechanisms.lgcp.posterior_sampling.lipschitz_statistic import LipschitzStatistic
from dpppsynth.mechanisms.lgcp.posterior_sampling.posterior_draw_statistic import PosteriorDrawStatistic

__all__ = ["ConfidentialFit", "DrawStatistic", "KimLimStatistic", "LipschitzStatistic", "PosteriorDrawStatistic"]
