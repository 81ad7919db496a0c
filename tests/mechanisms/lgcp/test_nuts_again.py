"""NUTS that fails its diagnostics is run again with shorter steps."""

import numpy as np
import pytest
from support.chance import Apart, Chance
from support.seams import chance_for_nuts

from dpppsynth import LGCPSynthesizer, PointPattern, Window
from dpppsynth.core.errors import QualityError

SQUARE = Window.rectangle(0, 0, 1000, 1000)
PATTERN = PointPattern(np.random.default_rng(1).uniform(0, 1000, (60, 2)), SQUARE)


def released(*failing):
    """A release whose runs of NUTS fail or pass in this order, and the rates of accepted steps asked for."""
    order, rates = iter(failing), []

    def sampler(model, engine, rate):
        rates.append(rate)
        return (Apart if next(order) else Chance)(model)

    with chance_for_nuts(sampler):
        made = LGCPSynthesizer(1.0, alpha=50.0, inference="nuts", length_scale=300.0)
        try:
            return made.release(PATTERN, 1), rates
        except QualityError as error:
            return error.release, rates


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("failing", "rates"), [([False], [0.8]), ([True, False], [0.8, 0.95]), ([True, True, False], [0.8, 0.95, 0.99])]
)
def test_a_run_that_fails_is_tried_again(failing, rates):
    release, asked = released(*failing)
    assert release.draws is not None
    assert asked == rates


@pytest.mark.slow
def test_three_failed_runs_keep_the_private_statistic():
    release, asked = released(True, True, True)
    assert (release.draws, len(asked)) == (None, 3)
    assert len(release.statistic.lattice) == release.statistic.definition.size
