"""Text on marked tents."""

from dpppsynth.contract.result import Result
from dpppsynth.contract.statistic import Statistic
from dpppsynth.contract.words import MechanismWords

TENTS = MechanismWords[Statistic, Result](
    description="Each point was shared out to the corners of a public mesh and to the nearest instants of a public "
    "range of times, for its type on a public list, and random noise was added to every sum. The synthetic points, "
    "their times and their types were drawn from an intensity made of the noisy sums alone.",
    intensity="from the noisy sums",
)
