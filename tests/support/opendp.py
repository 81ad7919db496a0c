"""A stand-in for OpenDP's discrete Laplace noise, which records what it is asked for."""

from contextlib import contextmanager

import opendp.prelude as dp
import pytest


class Sampler:
    """Noise of one scale: `values` are what it was added to, one after the other."""

    def __init__(self, scale, noised):
        self.scale, self.noised, self.sensitivity, self.values = scale, noised, None, []

    def map(self, sensitivity):
        self.sensitivity = sensitivity
        return sensitivity / self.scale

    def __call__(self, values):
        self.values.append(values)
        return self.noised(self.scale, values)


@contextmanager
def laplace_by(noised=lambda scale, values: values):
    """The samplers that are made meanwhile and used; noised values are `noised(scale, values)`."""
    made = []

    def make(*_space, scale):
        made.append(Sampler(scale, noised))
        return made[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dp.m, "make_laplace", make)
        yield made
