"""Posterior sampling: one posterior draw of a log-Gaussian Cox field, released as it is (no added noise).

* `PosteriorDrawPlan`: a posterior draw under a Gaussian prior (Theorem A).
* `LipschitzPlan`: a posterior draw under a prior of bounded slope (Theorem D).
* `KimLimPlan`: Kim & Lim's own synthesizer, private on average over their model only.
"""

from dpppsynth.draw.base import ConfidentialFit, DrawPlan
from dpppsynth.draw.kim_lim import KimLimPlan
from dpppsynth.draw.lipschitz import LipschitzPlan
from dpppsynth.draw.posterior import PosteriorDrawPlan

__all__ = ["ConfidentialFit", "DrawPlan", "KimLimPlan", "LipschitzPlan", "PosteriorDrawPlan"]
