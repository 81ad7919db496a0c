"""Studies and their parts, where worker processes find them."""

import functools
import math
import os
import signal
import time
from dataclasses import dataclass, replace

import numpy as np

from dpppsynth.core.errors import InputError
from dpppsynth.evaluation.experiments import Scenario, Study
from dpppsynth.spatial.domains import Window
from dpppsynth.spatial.patterns import PointPattern

SQUARE = Window.rectangle(0, 0, 1, 1)


def uniform(rng, n=20):
    return PointPattern(rng.random((n, 2)), SQUARE)


@dataclass(frozen=True)
class Jitter:
    """A quick stand-in for a mechanism: it moves points by noise of scale 1 / epsilon, modulo the square."""

    epsilon: float

    def release(self, pattern, rng):
        return Jittered(pattern, self.epsilon, rng.normal(size=2))


@dataclass(frozen=True)
class Jittered:
    pattern: PointPattern
    epsilon: float
    noise: np.ndarray

    def sample(self, m, rng):
        shape = self.pattern.xy.shape
        made = [(self.pattern.xy + (self.noise + rng.normal(size=shape)) / self.epsilon) % 1 for _ in range(m)]
        return [PointPattern.synthetic(xy, SQUARE) for xy in made]


def jitter(scenario, epsilon, delta, n):
    return Jitter(epsilon)


def laplace(scenario, epsilon, delta, n):
    from dpppsynth.synthesizers import LaplaceSynthesizer

    return LaplaceSynthesizer(epsilon, alpha=scenario.alpha, basis="cells", spacing=0.5, postprocess="plain")


def kernel(scenario, epsilon, delta, n):
    from dpppsynth.synthesizers import KernelSynthesizer

    return KernelSynthesizer(epsilon, delta=delta, alpha=scenario.alpha)


@dataclass(frozen=True)
class Refuser:
    refusal: Exception

    def release(self, pattern, rng):
        raise self.refusal


def first(outcome):
    return outcome.original.xy[0, 0]


def centre(outcome):
    return outcome.synthetic[0].xy.mean() if outcome.synthetic else math.nan


def noise(outcome):
    return outcome.release.noise[0]


def delta_n(outcome):
    return outcome.delta * len(outcome.original)


def patterns(outcome):
    return len({pattern.xy.tobytes() for pattern in outcome.synthetic})


def refuse_at_ten(outcome):
    if outcome.epsilon == 10:
        raise InputError
    return outcome.epsilon


def nap(outcome):
    time.sleep(float(os.environ.get("NAP", "0")))
    return 0.0


def sleep_long(outcome, folder):
    (folder / f"{os.getpid()}.pid").touch()
    time.sleep(60)


def die_once(outcome, flag):
    """Take the worker along, the first time that epsilon is 10."""
    if outcome.epsilon == 10 and not flag.exists():
        flag.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return 1.0


def study_of(**changes):
    base = Study(
        {"one": Scenario(SQUARE, uniform, 0.1), "two": Scenario(SQUARE, functools.partial(uniform, n=7), 0.1)},
        {"jitter": jitter, "again": jitter},
        epsilon=[1, 10],
        delta=[0, "1/n"],
        repeats=2,
        measures={"first": first, "centre": centre},
    )
    return replace(base, **changes)


def killed_study():
    return Study(
        {"square": Scenario(SQUARE, uniform, 0.1)},
        {"laplace": laplace},
        epsilon=[0.5, 1, 2],
        delta=[0],
        repeats=13,
        measures={"centre": centre, "nap": nap},
        seed=5,
    )
