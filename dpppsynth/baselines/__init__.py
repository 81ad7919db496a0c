"""What published experiments compare with, and nobody may release with: their certificates say so.

* `PaperLaplaceSynthesizer`: Kim & Lim's Laplace synthesizer, with noise on densities.
"""

from dpppsynth.baselines.laplace import BaselineRelease, PaperLaplaceSynthesizer

__all__ = ["BaselineRelease", "PaperLaplaceSynthesizer"]
