from dpppsynth.evaluation.simulated_patterns import lgcp as lgcp
from dpppsynth.evaluation.simulated_patterns import poisson as poisson
from dpppsynth.evaluation.simulated_patterns import thomas as thomas
