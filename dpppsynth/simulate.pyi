from dpppsynth.evaluation.simulated_patterns import lgcp as lgcp
from dpppsynth.evaluation.simulated_patterns import matern_cluster as matern_cluster
from dpppsynth.evaluation.simulated_patterns import poisson as poisson
from dpppsynth.evaluation.simulated_patterns import thomas as thomas
