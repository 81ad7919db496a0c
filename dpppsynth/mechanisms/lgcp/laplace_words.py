"""Text on the Laplace mechanisms."""

from dpppsynth.contract.result import Result
from dpppsynth.contract.statistic import Statistic
from dpppsynth.contract.words import MechanismWords

NOISY = "from the noisy numbers"

CELLS = MechanismWords[Statistic, Result](
    description="The points in every cell of a public grid were counted, and random noise was added to every count. "
    "The synthetic points were drawn from an intensity made of the noisy counts alone.",
    intensity=NOISY,
)

TENTS = MechanismWords[Statistic, Result](
    description="The points were shared out to the corners of a public mesh, and random noise was added to every "
    "corner's sum. The synthetic points were drawn from an intensity made of the noisy sums alone.",
    intensity=NOISY,
)
