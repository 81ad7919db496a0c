"""Examples of all registered mechanisms as cases that tests run."""

import functools

import numpy as np

from dpppsynth.contract import registry
from dpppsynth.contract.examples import EXPECTED, Example, N, Refusal, ring, square, streets
from dpppsynth.contract.stratified_plan import STRATA
from dpppsynth.linear_network import LinearNetwork
from dpppsynth.release.stratified_release import StratifiedRelease
from dpppsynth.spatial.patterns import PointPattern

SQUARE, RING, STREETS = square(), ring(), streets()


class Case:
    """An example of a mechanism, and how to run it."""

    levels = ("2021", "2022")

    def __init__(self, mechanism, example):
        self.kind, self.example, self.label = mechanism, example, example.label
        self.mechanism = STRATA if example.levels else mechanism
        self.window = example.domain

    @functools.cached_property
    def synthesizer(self):
        return self.example.settings()

    @property
    def hides_n(self):
        return not self.synthesizer.neighbouring().n_is_public

    @property
    def public(self):
        if self.hides_n:
            return {"expected_n": EXPECTED}
        return {"n": {"2021": N - 400, "2022": 400} if self.example.levels else N}

    def plan(self):
        if self.example.levels:
            return self.synthesizer.plan_by(self.window, by="year", levels=self.levels, **self.public)
        return self.synthesizer.plan(self.window, **self.public)

    @functools.cached_property
    def known_plan(self):
        """A plan for several tests, where none has to be new."""
        return self.plan()

    def check(self):
        return self.plan().guarantee if self.example.levels else self.synthesizer.check(self.window, **self.public)

    def release(self, pattern, rng=None, **options):
        guess = {"expected_n": EXPECTED} if self.hides_n else {}
        if self.example.levels:
            return self.synthesizer.release_by(pattern, rng, by="year", levels=self.levels, **guess, **options)
        return self.synthesizer.release(pattern, rng, **guess, **options)

    def patterns(self):
        """Two patterns that have nothing in common but the window, and n where it is public."""
        one, other = self.example.numbers or (N, 157 if self.hides_n else N)
        found = points(1, one, self.window), points(2, other, self.window, clustered=True)
        if self.example.levels:
            return tuple(by_year(pattern, 9 if self.hides_n else 400) for pattern in found)
        return tuple(self.marked(pattern) for pattern in found)

    def marked(self, pattern):
        """The pattern with the marks that the mechanism asks for."""
        marks = self.example.marks
        return pattern if marks is None else PointPattern(pattern.xy, pattern.domain, marks(len(pattern)))

    def __str__(self):
        return f"{self.mechanism}, {self.label}"


def by_year(pattern, late):
    """Mark the first `late` points as of 2022."""
    year = np.where(np.arange(len(pattern)) < late, 2022, 2021)
    return PointPattern(pattern.xy, pattern.domain, {"year": year})


def points(seed, n, window, *, clustered=False):
    rng = np.random.default_rng(seed)
    if isinstance(window, LinearNetwork):
        likely = window.lengths * (np.arange(len(window.lengths)) < 5 if clustered else 1)
        edge = rng.choice(len(likely), n, p=likely / likely.sum())
        return window.pattern(edge, rng.random(n))
    xy = rng.normal([200, 150], 30, (9 * n, 2)) if clustered else rng.uniform(0, 1000, (9 * n, 2))
    return PointPattern(xy[window.contains(xy)][:n], window)


def examples(name):
    """Cases of one mechanism."""
    return [Case(name, each) for each in registry.mechanism(name).examples() if isinstance(each, Example)]


def refusals():
    """Names of mechanisms, and settings that they refuse."""
    for name in registry.names():
        yield from ((name, each) for each in registry.mechanism(name).examples() if isinstance(each, Refusal))


def parts(release):
    """The releases of the levels, or the one release."""
    return list(release.releases.values()) if isinstance(release, StratifiedRelease) else [release]


def plans(plan):
    return [each.statistic for each in getattr(plan, "plans", {"": plan}).values()]


def save(release, folder, rng=None, patterns=1):
    """Synthetic patterns are drawn on saving, where they are free."""
    paid = any(hasattr(part, "patterns") for part in parts(release))
    return release.save(folder) if paid else release.save(folder, patterns=patterns, rng=rng)


def released(release):
    """The numbers that came out."""
    statistics = [part.statistic for part in parts(release)]
    return np.concatenate([s.patterns[0].xy.ravel() if hasattr(s, "patterns") else s.lattice for s in statistics])
