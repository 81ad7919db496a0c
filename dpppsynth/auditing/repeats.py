"""Tests for reused noise: draws repeated between runs, and correlated signs between levels of one release.

The points of an audit are made up, so the noise of a run is known: what is released, less the exact numbers. How often
it may be the same as in an earlier run follows from the stated law. Given all earlier draws, the next one is like any
of k earlier ones with probability at most `k p`, where no outcome is likelier than p. So the number of repeats in N
draws is no larger, in law, than a sum of independent events of mean `m <= p N (N - 1) / 2` in all, and reaches r > m
with probability at most `e^(r - m) (m / r)^r` (Chernoff's bound).

Noise of the levels of one release is independent and symmetric. So of numbers at the same place in two levels, neither
zero, the signs agree as often as a coin shows heads, whatever their scales. Levels are compared with those next to them
in the order of the release, and with those two, three and more apart.
"""

import hashlib
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import binom

from dpppsynth.contract.audits.target import Draws


class Repeats(NamedTuple):
    """Result of a test for repeated noise or correlated signs.

    Attributes
    ----------
    draws : int
        Draws that were compared with each other, or numbers whose signs were.
    repeats : int
        Those that had come before, or signs that agree, or disagree where that is more frequent.
    log_chance : float
        Logarithm of the probability, at most, of so many.
    signs : bool
    """

    draws: int
    repeats: int
    log_chance: float
    signs: bool = False

    def to_dict(self) -> dict[str, Any]:
        """JSON form."""
        return self._asdict()

    def __str__(self) -> str:
        if self.signs:
            return f"agree, or disagree, in {self.repeats} of {self.draws} numbers of two levels: they share it"
        return f"came again {self.repeats} times in {self.draws} draws: its key is too short, or shared"


class SeenNoise(NamedTuple):
    """Summary of one run's draws of one kind: digests, and agreeing signs and their number, by distance of levels."""

    digests: tuple[bytes, ...]
    agree: tuple[int, ...] = ()
    compared: tuple[int, ...] = ()


def seen(draws: Draws, side: int, released: Any) -> SeenNoise:
    """Summary that is kept of the noise of a run."""
    drawn = draws.noise(side, released)
    digests = tuple(_digest(each) for each in drawn if each is not None)
    if not draws.signs:
        return SeenNoise(digests)
    signs = [np.sign(each) for each in drawn if each is not None]
    # Products of independent signs along a chain are independent: one chain for every distance.
    products = [
        np.concatenate([one * other for one, other in zip(signs, signs[apart:], strict=False)])
        for apart in range(1, len(signs))
    ]
    agree = tuple(int((each > 0).sum()) for each in products)
    return SeenNoise(digests, agree, tuple(int(np.count_nonzero(each)) for each in products))


def repeated(draws: Draws, runs: Sequence[SeenNoise]) -> Repeats:
    """Number of repeated draws in the noise of all runs.

    Examples
    --------
    >>> from dpppsynth.contract.audits.added_noise import One
    >>> same = [SeenNoise((b"a",))] * 3
    >>> repeated(Draws("coin", One(lambda side, released: None), math.log(0.5)), same)
    Repeats(draws=3, repeats=2, log_chance=-0.07..., signs=False)
    """
    digests = [digest for run in runs for digest in run.digests]
    count = len(digests)
    again = count - len(set(digests))
    mean = min(float(count), math.exp(draws.log_likeliest) * count * (count - 1) / 2)
    return Repeats(count, again, _log_tail(again, mean, draws.log_likeliest, count))


def agreement(runs: Sequence[SeenNoise]) -> Repeats:
    """Agreement, or disagreement, of the signs of two levels' noise at the most significant distance."""
    agree, compared = (np.sum([getattr(run, name) for run in runs], axis=0) for name in ("agree", "compared"))
    most = np.maximum(agree, compared - agree)
    log_chances = math.log(2 * len(most)) + binom.logsf(most - 1, compared, 0.5)
    oddest = int(np.argmin(log_chances))
    return Repeats(int(compared[oddest]), int(most[oddest]), min(0.0, float(log_chances[oddest])), signs=True)


def _log_tail(again: int, mean: float, log_likeliest: float, count: int) -> float:
    """Logarithm of Chernoff's bound on as many repeats as were seen."""
    if again <= mean or not again:
        return 0.0
    # The mean itself may be too small for a float.
    log_mean = log_likeliest + math.log(count * (count - 1) / 2)
    return again - mean - again * (math.log(again) - log_mean)


def _digest(noise: Any) -> bytes:
    return hashlib.blake2b(np.ascontiguousarray(noise).tobytes(), digest_size=16).digest()
