from dpppsynth.inference.filters.particle import particle_filter as particle_filter
from dpppsynth.inference.filters.planar import cartesian_filter as cartesian_filter
from dpppsynth.inference.filters.planar import polar_filter as polar_filter
from dpppsynth.inference.filters.series import Filtered as Filtered
from dpppsynth.inference.filters.series import estimated_step as estimated_step
from dpppsynth.inference.filters.series import likely_step as likely_step
from dpppsynth.inference.filters.smoother import pooled_smoother as pooled_smoother
