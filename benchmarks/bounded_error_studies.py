"""Studies of benchmarks/bounded_error.py: filters and smoothness, variances of 1000 draws, and leaks."""

import math
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
from baselines.grid_filters import grid_filter, grid_smoother
from bounded_error_runs import SEED, Setting
from bounded_error_scores import Figure, figure, share
from scipy.special import gammainc

from dpppsynth.filters import (
    cartesian_filter,
    estimated_step,
    likely_step,
    particle_filter,
    pooled_smoother,
)
from dpppsynth.privacy import truncated_laplace_noise
from dpppsynth.spatial.mesh import Floats
from dpppsynth.truncated import PlanarLaplace, TruncatedLaplace, truncated_laplace_delta

# The setting of the filter study: epsilon 0.1, sensitivity 1, bound 50, series of 200.
SCALE, BOUND, LENGTH = 10.0, 50.0, 200
WALKS = (0.0, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
# Independent answers are uniform up to here; waves have steps of 2.2 in the mean square.
WIDEST, AMPLITUDE, PERIOD = 300.0, 50.0, 100
TRUTHS = (*(("walk", step) for step in WALKS), ("sine", 2.2), ("independent", 1.0), ("independent", 300.0))
DRAWS, STUDIES = 1000, 1000
# Published mean squared errors at epsilon 0.1, and the bounds of the truncated laws with these variances.
PUBLISHED = {"187": 58.78, "197": 78.56, "199, 200": math.inf}


class Smooth(NamedTuple):
    """Mean squared errors of one kind of series, by a step that is given (0: none) and by two estimated ones."""

    truth: str
    step: float
    raw: Figure
    given: Figure | None
    gain_given: Figure | None
    likely: Figure
    gain_likely: Figure
    differences: Figure
    literal: Figure
    grid: Figure | None
    smoother: Figure | None
    restarts: float
    worst: float


def series(truth: str, step: float, runs: int, rng: np.random.Generator) -> Floats:
    """(200, runs) true answers."""
    if truth == "walk":
        return step * rng.standard_normal((LENGTH, runs)).cumsum(axis=0)
    if truth == "sine":
        turns = np.arange(LENGTH)[:, None] / PERIOD + rng.uniform(0, 1, runs)
        return AMPLITUDE * np.sin(2 * np.pi * turns)
    return rng.uniform(0, WIDEST, (LENGTH, runs))


def smoothness(truth: str, step: float, setting: Setting) -> Smooth:
    """Raw, filtered and smoothed errors of series; restarts are those with the given step, else the estimated one."""
    rng = np.random.default_rng([SEED, 7, round(10 * step), len(truth)])
    hidden = series(truth, step, setting.series, rng)
    observed = hidden + TruncatedLaplace(SCALE, BOUND).sample(hidden.shape, rng)
    known = {"scale": SCALE, "bound": BOUND}
    settings = {**known, "particles": setting.particles, "rng": rng}
    raw, of = mse(observed, hidden), partial(particle_filter, observed, **settings)
    # Every series has a step of its own: side by side they would tell more than one of them can.
    steps = {rule: np.array([rule(one, **known) for one in observed.T]) for rule in (likely_step, estimated_step)}
    guess, plain = of(step=steps[likely_step]), of(step=steps[estimated_step])
    literal = of(step=step or steps[likely_step], proposal="uniform", resample=False)
    likely = mse(guess.estimate, hidden)
    told, given, grid, smoother = guess, None, None, None
    if step:
        told = of(step=step)
        given = mse(told.estimate, hidden)
        seen, few = observed[:, : setting.grids], hidden[:, : setting.grids]
        grid, smoother = (mse(each_series(seen, step, run), few) for run in (grid_filter, grid_smoother))
    return Smooth(
        truth=truth,
        step=step,
        raw=figure(raw),
        given=None if given is None else figure(given),
        gain_given=None if given is None else figure(raw - given),
        likely=figure(likely),
        gain_likely=figure(raw - likely),
        differences=figure(mse(plain.estimate, hidden)),
        literal=figure(mse(literal.estimate, hidden)),
        grid=None if grid is None else figure(grid),
        smoother=None if smoother is None else figure(smoother),
        restarts=told.restarts / setting.series,
        worst=float(max(np.abs(each.estimate - hidden).max() for each in (guess, told))),
    )


def mse(estimate: Floats, truth: Floats) -> Floats:
    """(runs,) mean squared errors of series (200, runs)."""
    return ((estimate - truth) ** 2).mean(axis=0)


def each_series(observed: Floats, step: float, run: Callable[..., Floats]) -> Floats:
    """(200, T) a deterministic filter over every column."""
    return np.column_stack([run(one, scale=SCALE, bound=BOUND, step=step) for one in observed.T])


class Cells(NamedTuple):
    """Mean squared errors of monthly counts of one kind of cell: one step for all cells, one for each, and smoothed."""

    kind: str
    cells: int
    raw: Figure
    together: Figure
    apart: Figure
    smoother: Figure
    worst: float


def months(setting: Setting) -> list[Cells]:
    """Twelve months of 400 cells, most of them smooth: what one step for all does to those that are not."""
    rng = np.random.default_rng([SEED, 10])
    kinds = {"change by about 1 a month": 360, "jump by 40 in July": 20, "rise by 30 in November and December": 20}
    errors = np.array([one_year(list(kinds.values()), setting.particles, rng) for _ in range(setting.series // 5)])
    starts = np.cumsum([0, *kinds.values()])
    rows = []
    for k, (kind, cells) in enumerate(kinds.items()):
        own = errors[..., starts[k] : starts[k + 1]]
        means = (own**2).mean(axis=(2, 3))
        rows.append(Cells(kind, cells, *(figure(means[:, how]) for how in range(4)), float(np.abs(own[:, 2]).max())))
    return rows


def one_year(cells: list[int], particles: int, rng: np.random.Generator) -> Floats:
    """(4, 12, T) errors of released counts, filtered with one step for all and with one for each cell, and smoothed."""
    truth = rng.integers(45, 90, sum(cells)) + np.rint(rng.normal(0, 1, (12, sum(cells))).cumsum(axis=0))
    truth[6:, cells[0] : cells[0] + cells[1]] += 40
    truth[10:, cells[0] + cells[1] :] += 30
    whole = truth.astype(np.int64)
    noise = truncated_laplace_noise(2.0, 27, sensitivity=2, epsilon=1.0, rng=rng)
    raw = np.array([noise.add(month) for month in whole])
    known = {"scale": 2.0, "bound": 27}
    steps = (likely_step(raw, **known), "likely")
    found = [particle_filter(raw, **known, step=step, particles=particles, rng=rng) for step in steps]
    found.append(pooled_smoother(raw, **known))
    return np.array([raw, *(one.estimate for one in found)]) - whole


class Year(NamedTuple):
    """Mean squared errors of monthly counts of 400 cells, all of one kind: released, filtered and smoothed."""

    kind: str
    scale: float
    raw: Figure
    likely: Figure
    smoother: Figure


def years(scale: float, setting: Setting) -> list[Year]:
    """Kinds of cells that no setting of a filter or smoother was chosen by."""
    rng, rows = np.random.default_rng([SEED, 12, round(scale)]), []
    law = TruncatedLaplace(scale, 13.5 * scale)
    known = {"scale": scale, "bound": 13.5 * scale}
    for kind, drawn in KINDS.items():
        errors = np.empty((3, max(2, setting.series // 20)))
        for k in range(errors.shape[1]):
            truth = np.rint(drawn(rng))
            raw = np.rint(truth + law.sample(truth.shape, rng))
            walked = particle_filter(raw, **known, particles=setting.particles, rng=rng).estimate
            errors[:, k] = [
                ((each - truth) ** 2).mean() for each in (raw, walked, pooled_smoother(raw, **known).estimate)
            ]
        rows.append(Year(kind, scale, *map(figure, errors)))
    return rows


def seasons(rng: np.random.Generator) -> Floats:
    """(12, 400) Poisson counts with a season."""
    turns = np.arange(12)[:, None] / 12 + rng.uniform(0, 1, 400)
    return rng.poisson(30 + 15 * np.sin(2 * np.pi * turns)).astype(np.float64)


def lurches(rng: np.random.Generator) -> Floats:
    """(12, 400) counts that change by about 15 in one month of six, and by half in others."""
    size = np.where(rng.random((12, 400)) < 1 / 6, 15.0, 0.5)
    return 90 + (size * rng.standard_normal((12, 400))).cumsum(axis=0)


# Counts (12, 400), drawn by a generator.
KINDS: dict[str, Callable[[np.random.Generator], Floats]] = {
    "constant": lambda rng: np.tile(rng.uniform(0, 50, 400), (12, 1)),
    "change by about 5 a month": lambda rng: 90 + 5 * rng.standard_normal((12, 400)).cumsum(axis=0),
    "Poisson with a season": seasons,
    "lurch now and then": lurches,
    "unrelated": lambda rng: rng.uniform(0, WIDEST, (12, 400)),
}


class Walked(NamedTuple):
    """Mean squared distances of tracks by the step along each axis: released, and filtered with two steps."""

    step: float
    raw: Figure
    known: Figure
    likely: Figure


def walked(step: float, setting: Setting) -> Walked:
    """Tracks of 200 positions, moved by 18 on average."""
    rng = np.random.default_rng([SEED, 11, round(step)])
    law, runs = PlanarLaplace(0.1, BOUND), 2 * setting.series // 5
    errors = np.empty((3, runs))
    for k in range(runs):
        truth = step * rng.standard_normal((LENGTH, 2)).cumsum(axis=0)
        raw = truth + law.sample(LENGTH, rng)
        told, guess = (
            cartesian_filter(raw, epsilon=0.1, bound=BOUND, step=how, particles=setting.particles, rng=rng).estimate
            for how in (step, "likely")
        )
        errors[:, k] = [((each - truth) ** 2).sum(axis=1).mean() for each in (raw, told, guess)]
    return Walked(step, figure(errors[0], law.mean_square), figure(errors[1]), figure(errors[2]))


class Spread(NamedTuple):
    """Variances of 1000 draws: the law's own, then mean, standard deviation and quantiles over 1000 such studies."""

    published: str
    bound: float
    delta: float
    variance: float
    deviation: float
    mean: Figure
    found: float
    low: float
    high: float
    above: float


def thousand_draws() -> list[Spread]:
    """Scatter of published variances from 1000 draws; `above`: share in which the Laplace law's is the smaller one."""
    rng = np.random.default_rng([SEED, 8])
    drawn = {
        name: TruncatedLaplace(SCALE, bound).sample((STUDIES, DRAWS), rng).var(axis=1, ddof=1)
        for name, bound in PUBLISHED.items()
    }
    plain = TruncatedLaplace(SCALE, math.inf).sample((STUDIES, DRAWS), rng).var(axis=1, ddof=1)
    rows = []
    for name, found in drawn.items():
        law = TruncatedLaplace(SCALE, PUBLISHED[name])
        fourth = fourth_moment(law)
        deviation = math.sqrt((fourth - law.variance**2) / DRAWS)
        low, high = np.quantile(found, (0.025, 0.975))
        mean, above = figure(found, law.variance), float((found > plain).mean())
        delta = truncated_laplace_delta(1 / SCALE, law.bound)
        rows.append(Spread(name, law.bound, delta, law.variance, deviation, mean, found.std(ddof=1), low, high, above))
    return rows


def fourth_moment(law: TruncatedLaplace) -> float:
    """Mean of `z^4`: `24 scale^4 P(5, a) / P(1, a)`."""
    a = law.bound / law.scale
    return 24 * law.scale**4 * float(gammainc(5, a) / gammainc(1, a))


class Leak(NamedTuple):
    """Share of releases that reveal for certain which of two data sets they came from."""

    what: str
    epsilon: float
    limit: float
    seen: Figure


def leaks(draws: int) -> list[Leak]:
    """Answers that only one of two neighbours can give, counted and known."""
    rng = np.random.default_rng([SEED, 9])
    rows = []
    for epsilon, bound in ((1.0, 5.0), (0.1, 10.0), (0.9, 10.0), (1.0, 10.0)):
        seen = TruncatedLaplace(1 / epsilon, bound).sample(draws, rng) > bound - 1
        known = truncated_laplace_delta(epsilon, bound, allow_large_delta=True)
        rows.append(Leak("number, neighbour differs by 1", epsilon, bound, share(seen, known)))
    for epsilon, bound, distance in ((1.0, 5.0, 1.0), (0.1, 10.0, 1.0), (0.1, 10.0, 10.0)):
        law = PlanarLaplace(epsilon, bound)
        seen = np.hypot(*(law.sample(draws, rng) - (distance, 0)).T) > bound
        rows.append(Leak(f"place, neighbour {distance:g} away", epsilon, bound, share(seen, law.exposed(distance))))
    return rows
