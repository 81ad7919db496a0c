"""What is audited: a mechanism, two neighbouring inputs, what it claims, and how to look at what it releases."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dpppsynth.errors import InputError
from dpppsynth.privacy.profiles import Profile


@dataclass(frozen=True, eq=False)
class Statistic:
    """A number, or several, read off what one run releases.

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
    """

    name: str
    features: Callable[[Any], Any]
    learned: bool = False


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
    statistics : tuple of Statistic
        At least one, with names of their own.
    words : str
        What was run, for people.
    """

    run: Callable[[Any], Any]
    pair: tuple[Any, Any]
    claimed: Profile
    statistics: tuple[Statistic, ...]
    words: str = ""

    def __post_init__(self) -> None:
        names = [statistic.name for statistic in self.statistics]
        if not names or len(set(names)) < len(names):
            msg = f"statistics: expected at least one, each with a name of its own, got {names!r}."
            raise InputError(msg)
        if len(self.pair) != 2:
            msg = f"pair: expected two neighbouring inputs, got {len(self.pair)}."
            raise InputError(msg)
