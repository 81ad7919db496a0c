"""Audit targets: a mechanism, two neighbouring inputs, its privacy claim, and the test statistics."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from numpy.typing import ArrayLike

from dpppsynth.core.arguments import several
from dpppsynth.core.errors import InputError
from dpppsynth.privacy.profiles import Profile
from dpppsynth.spatial.mesh import Floats, Ints

# What one run gives: a release of any mechanism, or what else a caller's own function returns.
Released = Any
# Noise of a run: whole numbers, or coordinates.
Noise = Ints | Floats
# Input of a run: a pattern, a client's value, or what a caller's own function takes.
Input = Any
# Scores (N,), (N,) of runs on either input, and the way to them from a factor of too little noise.
Scores = tuple[Floats, Floats]
Weakened = Callable[[float], Scores]
# Factor of too little noise at which pairs are compared.
HALF = 2.0


@dataclass(frozen=True, eq=False)
class AuditStatistic:
    """Test statistic: one or more numbers computed from the output of a run.

    Whatever is computed from a release alone is post-processing, so no choice of statistic can make a mechanism look
    worse than it is; a bad one only sees less.

    Attributes
    ----------
    name : str
    features : callable
        From the output of one run to a number or a (k,) array. Picklable, for it is called where the run is.
    learned : bool
        False: the number itself is the score, k = 1. True: a direction in the k features is learned on the training
        trials, which are not tested on.
    alone : bool
        With `learned`: instead of a direction, the one feature that tells most is picked.
    claimed : Profile, optional
        What the statistic may tell at most, where the law of what it reads is known at the pair; otherwise the target's
        claim holds for it.
    """

    name: str
    features: Callable[[Released], ArrayLike]
    learned: bool = False
    alone: bool = False
    claimed: Profile | None = None


@dataclass(frozen=True, eq=False)
class Draws:
    """Noise draws of a run, for the test of repeats.

    Attributes
    ----------
    name : str
    noise : callable
        From an input, 0 or 1, and what was released of it to the noise in it, one draw or several: arrays, or None for
        one that does not count. Picklable.
    log_likeliest : float
        Logarithm of a bound on the probability of every outcome of a draw.
    signs : bool
        Whether the several draws of a run are independent and symmetric, number by number.
    """

    name: str
    noise: Callable[[int, Released], Sequence[Noise | None]]
    log_likeliest: float
    signs: bool = False


class Number(Protocol):
    """Noise test statistic of each run, whose total over all runs has a stated law. Picklable."""

    def __call__(self, side: int, released: Released, /) -> tuple[float, int]:
        """Value for a run on an input, 0 or 1, and its number of draws; NaN where it cannot be told."""

    def log_chance(self, total: float, count: int, runs: tuple[int, int], /) -> float:
        """Upper bound on the log-probability of so extreme a total, over the runs on either input."""

    def finds(self, factor: float, runs: tuple[int, int], log_level: float, /) -> bool:
        """Whether a factor of too little noise brings `log_chance` to a level, with probability 0.9."""


@dataclass(frozen=True, eq=False)
class StatedLaw:
    """Stated laws of the noise in a release.

    Attributes
    ----------
    name : str
    number : Number
    level : str, optional
        Of a stratified release, the level whose noise it is.
    """

    name: str
    number: Number
    level: str | None = None


class CountedRuns(Protocol):
    """Whole releases by many clients, of two made-up inputs."""

    @property
    def run(self) -> Callable[[Input], Released]:
        """One whole release, from an input."""

    @property
    def pair(self) -> tuple[Input, Input]:
        """The inputs."""

    @property
    def opened(self) -> bool:
        """Whether releases are saved and opened again."""

    def misfits(self, chance: float, /) -> dict[str, float]:
        """Deviations from the stated law of log-probability below a threshold, with that log-probability."""


@dataclass(frozen=True, eq=False)
class Target:
    """A mechanism at its two neighbouring inputs.

    Attributes
    ----------
    run : callable
        One run of the mechanism, from an input to what is released, with fresh secret randomness each time. Picklable.
    pair : tuple of two
        Neighbouring inputs, made up from public parameters.
    claimed : Profile
        Claimed privacy profile.
    statistics : tuple of AuditStatistic
        At least one, with names of their own.
    words : str
        Name of the mechanism, for readers.
    weakened : callable, optional
        The law of the first statistic where it is known: from a factor f >= 1 to many scores (N,), (N,) of a mechanism
        with f times too little noise, for either input, from a fixed seed. It tells how large a fault the audit finds.
    alike : bool
        Whether the mechanism treats both inputs alike, so that nothing is tested.
    draws : tuple of Draws
        The noise in what is released, where it can be told.
    laws : tuple of StatedLaw
        Stated laws of its noise.
    excess : tuple of str
        Where the stated noise itself gives away more at this pair than is claimed.
    counted : CountedRuns, optional
        Whole releases, where trials run one client alone.
    """

    run: Callable[[Input], Released]
    pair: tuple[Input, Input]
    claimed: Profile
    statistics: tuple[AuditStatistic, ...]
    words: str = ""
    weakened: Weakened | None = None
    alike: bool = False
    draws: tuple[Draws, ...] = ()
    laws: tuple[StatedLaw, ...] = ()
    excess: tuple[str, ...] = ()
    counted: CountedRuns | None = None

    def __post_init__(self) -> None:
        named = several("statistics", self.statistics, AuditStatistic, "AuditStatistic(name, features) makes one")
        names = [statistic.name for statistic in named]
        if not names or len(set(names)) < len(names):
            msg = (
                f"statistics: expected at least one, each with a name of its own, got {names!r}; AuditStatistic(name, "
                "features) gives a function another name."
            )
            raise InputError(msg)
        require_two(self.pair)


def require_two(pair: object) -> tuple[Input, Input]:
    """The two of a pair; InputError unless it is a tuple or list of two."""
    if not isinstance(pair, tuple | list) or len(pair) != 2:
        got = f"{len(pair)} of them" if isinstance(pair, tuple | list) else type(pair).__name__
        msg = f"pair: expected a tuple of two neighbouring inputs, got {got}."
        raise InputError(msg)
    return pair[0], pair[1]
