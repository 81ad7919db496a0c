"""Records of the Laplace mechanisms."""

from functools import partial

from dpppsynth.contract.additive_noise import LaplaceMasses
from dpppsynth.contract.audits import counts
from dpppsynth.contract.mechanism import Mechanism
from dpppsynth.mechanisms.laplace import examples, words
from dpppsynth.mechanisms.laplace.synthesizer import LaplaceSynthesizer
from dpppsynth.release.cox import CoxRelease
from dpppsynth.release.matern_inference import MaternInference
from dpppsynth.release.projection import Projection
from dpppsynth.release.street_inference import StreetInference

CELLS = Mechanism(
    name="laplace-cells",
    settings=LaplaceSynthesizer,
    plan=LaplaceMasses,
    estimators=(Projection, MaternInference, StreetInference),
    result=CoxRelease,
    audit=counts,
    words=words.CELLS,
    examples=partial(examples.examples, "cells"),
)

TENTS = Mechanism(
    name="laplace-tents",
    settings=LaplaceSynthesizer,
    plan=LaplaceMasses,
    estimators=(Projection, MaternInference, StreetInference),
    result=CoxRelease,
    audit=counts,
    words=words.TENTS,
    examples=examples.tents,
)
