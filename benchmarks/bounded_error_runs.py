"""Runs of benchmarks/bounded_error.py: every function makes rows of one table, from a seed of its own."""

from typing import Any, NamedTuple

import bounded_error_data as data
import numpy as np
from baselines import hay_degree, hay_tree
from bounded_error_laws import (
    GAUSSIAN,
    LAPLACE,
    THRESHOLD,
    TRUNCATED,
    TRUNCATED_PLANAR,
    WHOLE,
    Noise,
    number_noises,
    place_noises,
)
from bounded_error_scores import Known, Scores, of_numbers, of_places, summary

from dpppsynth.filters import cartesian_filter, likely_step, particle_filter, polar_filter
from dpppsynth.spatial.mesh import Floats

DATA = ("ages", "friends", "checkins", "tracks")
FILTERED, CARTESIAN, POLAR = (
    f"{TRUNCATED}, filtered",
    f"{TRUNCATED_PLANAR}, cartesian",
    f"{TRUNCATED_PLANAR}, polar",
)
TREE, DEGREES = "Hay tree", "Hay degree sequence"
SEED = 271828
# Numbers drawn at once: arrays of so many take 16 MB.
AT_ONCE = 2_000_000


class Row(NamedTuple):
    """A mechanism at one epsilon on one data set; `promised` bounds its error, and `repetitions` made the scores."""

    law: str
    epsilon: float
    delta: float
    promised: float
    repetitions: int
    scores: Scores


class Setting(NamedTuple):
    """Numbers of repetitions: noise, of check-ins; filters over ages, friends and paths; ranges; studies."""

    repetitions: int
    checkins: int
    filtered: int
    long: int
    paths: int
    ranges: int
    series: int
    grids: int
    draws: int
    particles: int


FULL = Setting(1000, 300, 1000, 6, 300, 1000, 100, 30, 2_000_000, 1000)
QUICK = Setting(50, 5, 20, 2, 10, 30, 10, 3, 100_000, 100)


def noise_row(noise: Noise, numbers: int, repetitions: int, seed: list[int], *, dimension: int = 1) -> Row:
    """Unfiltered noise on so many answers, or points in the plane, again and again."""
    rng, of = np.random.default_rng(seed), of_numbers if dimension == 1 else of_places
    at_once = max(1, AT_ONCE // (dimension * numbers))
    sizes = (min(at_once, repetitions - start) for start in range(0, repetitions, at_once))
    scores = np.concatenate([of(noise.draw((size, numbers), rng), THRESHOLD) for size in sizes])
    known = Known(noise.variance, noise.tail(THRESHOLD))
    found = summary(scores, numbers, known, dimension=dimension)
    return Row(noise.name, noise.epsilon, noise.delta, noise.max_error, repetitions, found)


def filtered_row(noise: Noise, truth: Floats, repetitions: int, particles: int, seed: list[int]) -> Row:
    """Particle filter over releases of one series (N,), with the likely step of each release."""
    rng = np.random.default_rng(seed)
    observed = truth[:, None] + noise.draw((len(truth), repetitions), rng)
    scale = 1 / noise.epsilon
    known: dict[str, Any] = {"scale": scale, "bound": noise.max_error}
    # Releases side by side would share one step, though nobody has two of them.
    steps = np.array([likely_step(one, **known) for one in observed.T])
    found = particle_filter(observed, **known, step=steps, particles=particles, rng=rng)
    scores = summary(of_numbers((found.estimate - truth[:, None]).T, THRESHOLD), len(truth))
    return Row(FILTERED, noise.epsilon, noise.delta, found.bound, repetitions, scores)


def ages(epsilon: float, setting: Setting) -> list[Row]:
    """Persons of each age: one person more or less changes one count by one."""
    truth, seed = data.age_counts().astype(float), [SEED, 1, round(1000 * epsilon)]
    noises = number_noises(epsilon)
    rows = [noise_row(noise, len(truth), setting.repetitions, [*seed, k]) for k, noise in enumerate(noises)]
    truncated = next(noise for noise in noises if noise.name == TRUNCATED)
    rows.append(filtered_row(truncated, truth, setting.filtered, setting.particles, [*seed, 20]))
    return [*rows, tree_row(epsilon, setting, seed)]


def tree_row(epsilon: float, setting: Setting, seed: list[int]) -> Row:
    """Leaves of a consistent tree over the ages."""
    truth, rng = data.age_counts(), np.random.default_rng([*seed, 30])
    trees = [hay_tree(truth, epsilon=epsilon, rng=rng) for _ in range(setting.repetitions)]
    scores = of_numbers(np.array([tree.counts for tree in trees]) - truth, THRESHOLD)
    return Row(TREE, epsilon, 0.0, np.inf, setting.repetitions, summary(scores, len(truth)))


def friends(epsilon: float, setting: Setting) -> list[Row]:
    """Numbers of friends in ascending order: one of them changes by one."""
    truth, seed = data.degrees().astype(float), [SEED, 2, round(1000 * epsilon)]
    shown = (LAPLACE, TRUNCATED, WHOLE, GAUSSIAN)
    noises = [noise for noise in number_noises(epsilon) if noise.name in shown]
    rows = [noise_row(noise, len(truth), setting.repetitions, [*seed, k]) for k, noise in enumerate(noises)]
    rows.append(filtered_row(noises[1], truth, setting.long, setting.particles, [*seed, 20]))
    rng = np.random.default_rng([*seed, 30])
    sorted_again = (hay_degree(truth, epsilon=epsilon, rng=rng).sequence for _ in range(setting.repetitions))
    scores = np.concatenate([of_numbers(each[None] - truth, THRESHOLD) for each in sorted_again])
    return [*rows, Row(DEGREES, epsilon, 0.0, np.inf, setting.repetitions, summary(scores, len(truth)))]


def checkins(epsilon: float, setting: Setting) -> list[Row]:
    """Every check-in moved; their order is that of no one's path, and a filter over it is run to show what it does."""
    truth, seed = data.checkins(), [SEED, 3, round(1000 * epsilon)]
    noises = place_noises(epsilon)
    rows = [noise_row(noise, len(truth), setting.checkins, [*seed, k], dimension=2) for k, noise in enumerate(noises)]
    paths = truth[: len(truth) // data.POSITIONS * data.POSITIONS].reshape(-1, data.POSITIONS, 2)[: setting.paths]
    return [*rows, *path_rows(noises[1], paths, setting, [*seed, 20])]


def tracks(epsilon: float, setting: Setting) -> list[Row]:
    """One track of 100 positions a repetition."""
    seed = [SEED, 4, round(1000 * epsilon)]
    noises = place_noises(epsilon)
    rows = [
        noise_row(noise, data.POSITIONS, setting.repetitions, [*seed, k], dimension=2) for k, noise in enumerate(noises)
    ]
    return [*rows, *path_rows(noises[1], data.tracks(setting.paths), setting, [*seed, 20])]


def path_rows(noise: Noise, paths: Floats, setting: Setting, seed: list[int]) -> list[Row]:
    """Both filters over releases of paths (P, N, 2), one repetition each."""
    rng = np.random.default_rng(seed)
    observed = paths + noise.draw(paths.shape[:2], rng)
    known = {"epsilon": noise.epsilon, "bound": noise.max_error, "particles": setting.particles}
    origin = (data.SIDE / 2, data.SIDE / 2)
    rows = []
    for name, run in (
        (CARTESIAN, lambda path: cartesian_filter(path, **known, rng=rng)),
        (POLAR, lambda path: polar_filter(path, origin=origin, **known, rng=rng)),
    ):
        found = [run(path) for path in observed]
        scores = of_places(np.array([each.estimate for each in found]) - paths, THRESHOLD)
        row = Row(name, noise.epsilon, noise.delta, found[0].bound, len(paths), summary(scores, 1))
        rows.append(row)
    return rows
