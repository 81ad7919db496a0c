"""Posterior sampling: one posterior draw of a log-Gaussian Cox field, released as it is (no added noise).

* `PosteriorDrawPlan`: a posterior draw under a Gaussian prior (Theorem A).
* `LipschitzPlan`: a posterior draw under a prior of bounded slope (Theorem D).
* `KimLimPlan`: Kim & Lim's own synthesizer, private on average over their model only.
"""

from dpppsynth.mechanisms.lgcp.posterior_sampling.base import ConfidentialFit, DrawPlan
from dpppsynth.mechanisms.lgcp.posterior_sampling.kim_lim import KimLimPlan
from dpppsynth.mechanisms.lgcp.posterior_sampling.lipschitz import LipschitzPlan
from dpppsynth.mechanisms.lgcp.posterior_sampling.posterior import PosteriorDrawPlan

__all__ = ["ConfidentialFit", "DrawPlan", "KimLimPlan", "LipschitzPlan", "PosteriorDrawPlan"]
