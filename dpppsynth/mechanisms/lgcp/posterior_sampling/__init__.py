"""Posterior sampling: one posterior draw of a log-Gaussian Cox field, released as it is (no added noise).

* `PosteriorDrawPlan`: a posterior draw under a Gaussian prior (Theorem A).
* `LipschitzPlan`: a posterior draw under a prior of bounded slope (Theorem D).
* `KimLimPlan`: Kim & Lim's own synthesizer, private on average over their model only.
"""

from dpppsynth.mechanisms.lgcp.posterior_sampling.draw_plan import ConfidentialFit, DrawPlan
from dpppsynth.mechanisms.lgcp.posterior_sampling.kim_lim_plan import KimLimPlan
from dpppsynth.mechanisms.lgcp.posterior_sampling.lipschitz_plan import LipschitzPlan
from dpppsynth.mechanisms.lgcp.posterior_sampling.posterior_draw_plan import PosteriorDrawPlan

__all__ = ["ConfidentialFit", "DrawPlan", "KimLimPlan", "LipschitzPlan", "PosteriorDrawPlan"]
