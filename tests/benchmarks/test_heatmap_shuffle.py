"""The shuffle-model protocol, message by message and as a whole."""

import math

import numpy as np
import pytest
from baselines.heatmap_arrays import select_cells
from baselines.shuffled_heatmap import (
    ShuffleProtocol,
    communication_bits,
    cropped_cells,
    message_count,
    split_cells,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from dpppsynth.core.errors import InputError
from dpppsynth.mechanisms.heatmap.reconstruction import solve

# Standard errors beyond which a mean raises an alarm: probability 5.7e-7.
ALARM = 5.0


def protocol(**changes):
    settings = {"epsilon": 4.0, "delta": 1e-5, "users": 3, "depth": 2, "w": 1, "scale": 16}
    return ShuffleProtocol(**(settings | changes))


def sent(protocol, distributions, rng):
    return np.concatenate([protocol.encode(each, rng) for each in distributions])


def corner(side):
    p = np.zeros((side, side))
    p[0, 0] = 1.0
    return p


# --- Communication ---


@pytest.mark.parametrize(
    ("cells", "megabytes"), [(split_cells(320, 240), 11.17), (349525, 27.4), (cropped_cells(320, 240), 7.14)]
)
def test_bits_of_an_image_are_those_worked_out_by_hand(cells, megabytes):
    bits = communication_bits(5.0, 1e-5, users=50, coordinates=cells, modulus=256 * 50)
    assert bits / 8e6 == pytest.approx(megabytes, rel=2e-3)


def test_messages_and_cells_of_an_image():
    assert split_cells(320, 240) == 160085
    assert split_cells(512, 512) == cropped_cells(512, 512) == 349525
    assert cropped_cells(3, 3) == 1 + 4 + 9
    assert split_cells(8, 8, first=2) == 16 + 64
    assert message_count(5.0, 1e-5, users=50, coordinates=160085, modulus=256 * 50) == 18
    # At huge epsilon e^epsilon overflows; its logarithm does not.
    assert message_count(2000.0, 0.5, users=2, coordinates=1, modulus=2) == 5775


def test_a_person_sends_what_is_announced_whatever_the_data():
    p = protocol(depth=1)
    one, other = p.encode(corner(2), 5), p.encode(np.zeros((2, 2)), 5)
    assert one.shape == (p.messages * p.coordinates, 2)
    assert p.communication_bits == len(one) * math.ceil(math.log2(p.coordinates * p.modulus))
    # All shares but the last are the same numbers for both persons: no data in them.
    np.testing.assert_array_equal(one[: -p.coordinates], other[: -p.coordinates])
    assert (one[-p.coordinates :, 1] != other[-p.coordinates :, 1]).any()
    assert (one[:, 1] >= 0).all()
    assert (one[:, 1] < p.modulus).all()


def test_shares_are_uniform():
    p = protocol(depth=5, scale=4)
    share = p.encode(corner(32), 8)[:, 1] / p.modulus
    last = share[-p.coordinates :]
    for values in (share, last):
        assert abs(values.mean() - 0.5) < ALARM / math.sqrt(12 * len(values))
        assert abs((values**2).mean() - 1 / 3) < ALARM * math.sqrt(4 / 45 / len(values)) + 1 / p.modulus


# --- From messages to counts ---


class Planted(np.random.Generator):
    """A generator whose differences of two Polya variables are -m // 2, ..., one after the other."""

    def __init__(self):
        super().__init__(np.random.PCG64(1))

    def negative_binomial(self, n, p, size):
        gained = np.arange(size[1])
        return np.array([gained, np.full_like(gained, size[1] // 2)])


def test_shares_add_up_to_the_noised_sum():
    p = protocol(users=4)
    planted = np.arange(p.coordinates) - p.coordinates // 2
    levels = p.decode(sent(p, [corner(4)] * 4, Planted()))
    exact = [np.full((1, 1), 4.0), 4 * corner(2), 4 * corner(4)]
    # Negative noise on empty cells stays small and negative; the full root does not wrap around to 0.
    np.testing.assert_array_equal(
        np.concatenate([level.ravel() for level in levels]),
        np.concatenate([level.ravel() for level in exact]) + 4 * planted / p.scale,
    )


def test_shuffling_changes_nothing():
    p, rng = protocol(), np.random.default_rng(2)
    messages = sent(p, [corner(4), np.zeros((4, 4)), np.full((4, 4), 1 / 16)], rng)
    for one, other in zip(p.decode(messages), p.decode(rng.permutation(messages)), strict=True):
        np.testing.assert_array_equal(one, other)


def test_rounding_loses_at_most_a_step_per_person():
    rng, users = np.random.default_rng(3), 5
    persons = rng.dirichlet(np.ones(16), users).reshape(users, 4, 4)
    p = protocol(epsilon=2000.0, users=users, scale=8)
    exact = [persons.sum(axis=(1, 2)).sum(), persons.reshape(5, 2, 2, 2, 2).sum(axis=(0, 2, 4)), persons.sum(axis=0)]
    for levels in (p.decode(sent(p, persons, rng)), p.simulate(persons, rng)):
        for level, truth in zip(levels, exact, strict=True):
            assert (level <= truth + 1e-9).all()
            assert (level >= truth - users / p.scale - 1e-9).all()
    np.testing.assert_array_equal(levels[1], np.floor(8 * persons.reshape(5, 2, 2, 2, 2).sum((2, 4)) + 1e-9).sum(0) / 8)


def test_counts_serve_reconstruction():
    p = protocol(epsilon=200.0, users=6, w=4, variant="theory", scale=256)
    masses = solve(select_cells(p.decode(sent(p, [corner(4)] * 6, np.random.default_rng(4))), 4))
    assert masses.sum() == pytest.approx(6, abs=0.5)
    assert masses[0, 0] == pytest.approx(6, abs=0.5)


# --- Noise ---


def noise_of_messages(p, rng):
    return np.concatenate([sum(p._noise_share(rng) for _ in range(p.users)) for _ in range(20)]) / p.scale


def noise_of_simulation(p, rng):
    nobody = [np.zeros((2**p.depth, 2**p.depth))] * p.users
    return np.concatenate([level.ravel() for _ in range(20) for level in p.simulate(nobody, rng)])


@pytest.mark.parametrize("noise", [noise_of_messages, noise_of_simulation])
@pytest.mark.parametrize(("scale", "variance"), [(1, 1.8413), (4, 1.9896), (256, 2.0)])
def test_noise_is_discrete_laplace_at_the_scale_of_the_counts(noise, scale, variance):
    # One measured level at epsilon 1; with noise of scale 1 instead of B the variance would vanish like B^-2.
    p = ShuffleProtocol(1.0, 1e-5, users=3, depth=4, w=4**4, scale=scale)
    values = noise(p, np.random.default_rng(scale))
    alpha, k = math.exp(-1 / scale), np.arange(-80 * scale, 80 * scale + 1)
    law = (1 - alpha) / (1 + alpha) * alpha ** np.abs(k)
    fourth = law @ (k / scale) ** 4.0
    assert law @ (k / scale) ** 2.0 == pytest.approx(variance, abs=6e-5)
    root = math.sqrt(len(values))
    assert abs(values.mean()) < ALARM * math.sqrt(variance) / root
    assert abs((values**2).mean() - variance) < ALARM * math.sqrt(fourth - variance**2) / root
    for most in (0, 1):
        share = law[np.abs(k) <= most * scale].sum()
        assert abs((np.abs(values) <= most).mean() - share) < ALARM * math.sqrt(share * (1 - share)) / root


def test_every_level_has_its_own_noise():
    p = ShuffleProtocol(3.0, 1e-5, users=2, depth=5, w=1, scale=64)
    rng, nobody = np.random.default_rng(6), [np.zeros((32, 32))] * 2
    epsilons = np.array(p.budgets.epsilons[-3:])
    for levels in (p.decode(sent(p, nobody, rng)), p.simulate(nobody, rng)):
        size = np.array([np.abs(level).mean() for level in levels[-3:]])
        assert (np.abs(size * epsilons - 1) < ALARM / 2.0 ** np.array([3, 4, 5]) + 2e-3).all()


def test_noise_rarely_wraps_around():
    p = protocol(depth=3)
    alphas = [math.exp(-e / p.scale) for e in p.budgets.epsilons]
    cells = [4**level for level in range(p.budgets.first, p.depth + 1)]

    def chance(most):
        return sum(m * 2 * a ** (most + 1) / (1 + a) for m, a in zip(cells, alphas, strict=True))

    assert chance(p.margin) <= 1e-9 < chance(0.8 * p.margin)
    assert p.modulus == p.scale * p.users + 2 * p.margin + 1


# --- Sensitivity ---


@settings(max_examples=30)
@given(st.lists(st.integers(0, 1000), min_size=16, max_size=16), st.integers(1, 1000))
def test_a_person_moves_a_level_by_at_most_the_scale(masses, scale):
    p = protocol(scale=scale)
    total = max(sum(masses), 1)
    floored = p._floored(np.reshape(masses, (4, 4)) / total)
    for level in np.split(floored, [1, 5]):
        assert 0 <= level.sum() <= scale


def test_forgiven_rounding_of_masses_does_not_raise_the_sensitivity():
    p = ShuffleProtocol(4.0, 1e-5, users=2, depth=1, w=1, scale=2**30)
    assert p._floored(corner(2) * (1 + 0.99e-9)).max() == 2**30


def test_replacement_halves_the_budgets():
    assert math.fsum(protocol().budgets.epsilons) == pytest.approx(4.0, rel=1e-12)
    assert math.fsum(protocol(neighbours="replaced").budgets.epsilons) == pytest.approx(2.0, rel=1e-12)


# --- Bad input ---


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("users", 1),
        ("users", 2.5),
        ("delta", 0.0),
        ("delta", 1.0),
        ("epsilon", 0.0),
        ("epsilon", math.inf),
        ("epsilon", 1e-300),
        ("epsilon", 1e308),
        ("scale", 0),
        ("scale", 2**40),
        ("depth", -1),
        ("w", 0),
        ("decay", 1.5),
        ("variant", "other"),
        ("neighbours", "moved"),
    ],
)
def test_bad_settings(name, value):
    with pytest.raises(InputError, match="scale" if value == 1e-300 else name):
        protocol(**{name: value})


def test_messages_hide_sums_within_the_smallest_delta():
    few = message_count(1.0, 1e-300, users=50, coordinates=21, modulus=20_000)
    assert few < message_count(1.0, 5e-324, users=50, coordinates=21, modulus=20_000) < 1.1 * few


HUGE = np.full((4, 4), 1e308)


@pytest.mark.parametrize(
    "bad", [np.ones((2, 2)) / 4, np.ones((4, 4)), np.full((4, 4), np.nan), -corner(4), HUGE, "text"]
)
def test_bad_distributions(bad):
    with pytest.raises(InputError, match="distribution"):
        protocol().encode(bad)


def test_bad_messages_and_persons():
    p = protocol()
    messages = sent(p, [corner(4)] * 3, np.random.default_rng(1))
    high, twice = messages.copy(), messages.copy()
    high[0, 1] = p.modulus
    twice[0, 0] = messages[1, 0]
    for bad in (messages[1:], messages.astype(float), high, twice, [[1, 2], [3]]):
        with pytest.raises(InputError, match="messages"):
            p.decode(bad)
    for few in ([corner(4)] * 2, None, 3, "abc"):
        with pytest.raises(InputError, match="distributions"):
            p.simulate(few)
    with pytest.raises(InputError, match="width"):
        split_cells(0, 4)
