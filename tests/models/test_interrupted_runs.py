"""Runs of NUTS that are interrupted."""

import itertools
import signal
import time
from _thread import interrupt_main

import pytest

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


def test_an_interrupt_ends_a_run(heard):
    """Nutpie alone returns the draws so far, which would pass for a run."""
    with pytest.raises(KeyboardInterrupt):
        Sampler(Interrupting()).sample(draws=2000, tune=100, seed=1)
