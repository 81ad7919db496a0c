"""Runs of NUTS that are interrupted."""

import threading
import time
from _thread import interrupt_main

import pytest

from dpppsynth.models.nuts import Density, Sampler


class Slow(Density):
    """A standard normal law whose density takes a while."""

    size = 3

    def function(self):
        def slow(z):
            time.sleep(0.002)
            return -float(z @ z) / 2, -z

        return slow


def test_an_interrupt_ends_a_run():
    """Nutpie alone returns the draws so far, which would pass for a run."""
    sampler = Sampler(Slow())
    timer = threading.Timer(1.0, interrupt_main)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        sampler.sample(draws=20_000, tune=100, seed=1)
    timer.join()
