"""`PlanarNoise`: the exact planar Laplace noise that moves the points of a domain, rounded to its public grid."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from dpppsynth.core.errors import InputError
from dpppsynth.core.randomness import RngLike
from dpppsynth.core.units import short_unit
from dpppsynth.privacy.planar_moves import rate
from dpppsynth.privacy.relations import AlphaNeighbours
from dpppsynth.privacy.truncated.lattice_noise import FARTHEST, FINEST, move
from dpppsynth.privacy.truncated.truncated_planar import PlanarLaplace, scaled
from dpppsynth.spatial.domains import Domain, Window
from dpppsynth.spatial.mesh import Floats, Ints

# Names of the randomness on certificates.
MOVES = "planar-laplace"
SEEDED = "seeded-planar-laplace"


@dataclass(frozen=True)
class PlanarNoise:
    """Planar Laplace noise on points of a window, or of streets, which it takes off them.

    What cannot be moved exactly is refused here: later a refusal could tell points apart.

    Attributes
    ----------
    domain : Window or LinearNetwork
    relation : AlphaNeighbours
    epsilon : float
        Of all points of a person together, each moved by alpha at most.
    bound : float
        Largest length of a move; infinite without.
    """

    domain: Domain
    relation: AlphaNeighbours
    epsilon: float
    bound: float = math.inf

    def __post_init__(self) -> None:
        scaled("epsilon", self.rate)
        # Points are within the domain's bounds; noise may take them further.
        kind = "window" if isinstance(self.domain, Window) else "network"
        if np.abs(self.domain.bounds).max() > FARTHEST / 2 * self.step:
            msg = f"{kind}: it lies too far from the origin for its size; shift the origin of its coordinates."
            raise InputError(msg)
        if min(self.bound, 1 / self.rate) > FINEST / 2 * self.step:
            msg = f"epsilon: {self.epsilon!r} asks for moves far beyond the {kind}; take a larger epsilon."
            raise InputError(msg)

    @cached_property
    def rate(self) -> float:
        """Epsilon of one point per unit of length on the map."""
        return rate(self.relation, self.epsilon, self.domain)

    @property
    def step(self) -> float:
        """Spacing of the public grid."""
        return self.domain.resolution

    @property
    def words(self) -> str:
        """The noise in words, with the mean length of a move."""
        mean = PlanarLaplace(self.rate, self.bound).mean_radius
        return f"planar Laplace: every point is moved by {mean:.4g} {short_unit(self.domain.unit)} on average"

    def sampler(self, rng: RngLike = None) -> Callable[[Floats], Ints]:
        """Function from coordinates (n, 2), each moved on its own, to places (n, 2) on the grid, in steps."""
        return partial(move, epsilon=self.rate, bound=self.bound, step=self.step, rng=rng)


def moves_name(*, seeded: bool = False) -> str:
    """Code of the randomness that moves points."""
    return SEEDED if seeded else MOVES
