"""Runs of NUTS that are interrupted."""

import itertools
import signal
import time
from _thread import interrupt_main

import pymc as pm
import pytest

from dpppsynth.models.density_op import GivenDensity
from dpppsynth.models.nuts import Density, Sampler


class Interrupting(Density):
    """A standard normal law whose density takes a while, and interrupts the program where it is known 200 times."""

    size = 3

    def __init__(self):
        self.calls = itertools.count(1)  # of all chains

    def function(self):
        def slow(z):
            time.sleep(0.002)
            if next(self.calls) == 200:
                interrupt_main()
            return -float(z @ z) / 2, -z

        return slow


@pytest.fixture
def heard():
    """An interrupt is heard as in a user's session: what a shell starts in the background ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def of_pymc(density):
    with pm.Model() as model:
        pm.Potential("density", GivenDensity(density.function())(pm.Flat("z", shape=density.size))[0])
    return model


@pytest.mark.parametrize(("engine", "form"), [("nutpie", lambda density: density), ("pymc", of_pymc)])
def test_an_interrupt_ends_a_run(heard, engine, form):
    """Nutpie alone returns the draws so far, which would pass for a run; PyMC ends one chain and runs three others."""
    density = Interrupting()
    with pytest.raises(KeyboardInterrupt):
        Sampler(form(density), engine).sample(draws=2000, tune=100, seed=1)
    assert next(density.calls) < 1000
