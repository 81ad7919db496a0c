"""NUTS that fails its diagnostics is run again, longer and with shorter steps."""

import weakref

import numpy as np
import pytest
from support.chance import Apart, Chance
from support.seams import chance_for_nuts

from dpppsynth import LGCPSynthesizer, PointPattern, Window
from dpppsynth.core.errors import QualityError
from dpppsynth.inference.nuts_runs import thinned, white_steps

SQUARE = Window.rectangle(0, 0, 1000, 1000)
PATTERN = PointPattern(np.random.default_rng(1).uniform(0, 1000, (60, 2)), SQUARE)


def released(*failing):
    """A release whose runs of NUTS fail or pass in this order; rates of accepted steps and draws that they took."""
    order, asked, last = iter(failing), [], []

    def sampler(model, engine, rate):
        made = (Apart if next(order) else Chance)(model)
        plain = made.sample

        def sample(*, draws, **how):
            # Draws that failed are let go before the next, which may fill the memory.
            assert all(each() is None for each in last)
            asked.append((rate, draws))
            chains = plain(draws=draws, **how)
            last.append(weakref.ref(chains))
            return chains

        made.sample = sample
        return made

    with chance_for_nuts(sampler):
        made = LGCPSynthesizer(1.0, alpha=50.0, inference="nuts", length_scale=300.0)
        try:
            return made.release(PATTERN, 1), asked
        except QualityError as error:
            return error.release, asked


@pytest.mark.exhaustive
@pytest.mark.parametrize("failing", [[False], [True, False], [True, True, False]])
def test_a_run_that_fails_is_tried_again(failing):
    release, asked = released(*failing)
    assert release.draws is not None
    assert release.draws.fields.shape[0] == 4
    assert asked == [(0.8, 1500), (0.9, 3000), (0.99, 3000)][: len(failing)]


@pytest.mark.slow
def test_three_failed_runs_keep_the_private_statistic():
    release, asked = released(True, True, True)
    assert (release.draws, len(asked)) == (None, 3)
    assert len(release.statistic.lattice) == release.statistic.definition.size


def test_steps_are_shorter_in_thousands_of_coordinates():
    (accept, tune), many = white_steps(5999), white_steps(6000)
    assert white_steps(1) == (accept, tune)
    assert many == white_steps(20_000)
    assert (many[0] > accept, many[1] > tune) == (True, True)


def test_draws_are_kept_from_all_of_a_run():
    z = np.arange(2 * 3000 * 2).reshape(2, 3000, 2)
    assert thinned(z, 3).tolist() == z[:, [0, 1500, 2999]].tolist()
