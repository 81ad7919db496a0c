"""Text on the kernel mechanisms."""

from dpppsynth.contract.result import Result
from dpppsynth.contract.statistic import Statistic
from dpppsynth.contract.words import MechanismWords

SCATTERED = "Every pattern was paid for by the privacy budget. There is no released intensity: it would be the data."

KERNEL = MechanismWords[Statistic, Result](
    description="Every point was replaced by a random number of synthetic points scattered at random around it. "
    f"{SCATTERED}"
)

DIFFUSION = MechanismWords[Statistic, Result](
    description="Every point was replaced by a random number of synthetic points that walked at random along the "
    f"streets. {SCATTERED}"
)
