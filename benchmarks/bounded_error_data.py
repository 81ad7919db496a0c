"""Data of benchmarks/bounded_error.py: stand-ins of the published sizes, simulated from fixed public seeds."""

import numpy as np

from dpppsynth.spatial.mesh import Floats, Ints

SEED = 1729
PERSONS, FIRST_AGE, AGES = 48_842, 17, 74
STUDENTS, MOST_FRIENDS, DEGREE_EXPONENT = 32_768, 1_678, 1.6
CHECKINS, TOWNS, SIDE = 31_000, 40, 60.0
TRACKS, POSITIONS, STEP = 17_621, 100, 0.5
# Standard deviations of towns, in km, and of the normal steps of a track, per coordinate.
TOWN_SIZES = (0.5, 4.0)


def ages() -> Ints:
    """(48842,) ages from 17 to 90: gamma with the mean and spread of the census, the oldest gathered at 90."""
    drawn = np.random.default_rng([SEED, 1]).gamma(2.3, 9.4, PERSONS)
    return FIRST_AGE + np.minimum(drawn.astype(np.int64), AGES - 1)


def age_counts() -> Ints:
    """(74,) persons of each age."""
    return np.bincount(ages() - FIRST_AGE, minlength=AGES)


def degrees() -> Ints:
    """(32768,) numbers of friends from 1 to 1678 in ascending order, `P(d) ~ d^-1.6`."""
    values = np.arange(1, MOST_FRIENDS + 1)
    weights = values**-DEGREE_EXPONENT
    drawn = np.random.default_rng([SEED, 2]).choice(values, STUDENTS, p=weights / weights.sum())
    return np.sort(drawn)


def degree_counts() -> Ints:
    """(1679,) students with 0, 1, 2, ... friends."""
    return np.bincount(degrees(), minlength=MOST_FRIENDS + 1)


def checkins() -> Floats:
    """(31000, 2) places in km: 40 normal towns of unequal weight and size in a square of 60 km, in random order."""
    rng = np.random.default_rng([SEED, 3])
    centres, sizes = rng.uniform(0, SIDE, (TOWNS, 2)), rng.uniform(*TOWN_SIZES, TOWNS)
    town = rng.choice(TOWNS, CHECKINS, p=rng.dirichlet(np.full(TOWNS, 0.5)))
    return centres[town] + sizes[town, None] * rng.standard_normal((CHECKINS, 2))


def tracks(count: int) -> Floats:
    """(count, 100, 2) the first of 17,621 random walks in km, begun at places of check-ins."""
    if count > TRACKS:
        msg = f"there are {TRACKS} tracks"
        raise ValueError(msg)
    rng = np.random.default_rng([SEED, 4])
    starts = checkins()[rng.integers(CHECKINS, size=TRACKS)[:count]]
    steps = np.stack([np.random.default_rng([SEED, 5, k]).standard_normal((POSITIONS - 1, 2)) for k in range(count)])
    walked = np.concatenate([np.zeros((count, 1, 2)), STEP * steps.cumsum(axis=1)], axis=1)
    return starts[:, None] + walked
