"""`PairsPlan`: base of plans that release noised pair sums, alone or after other noised numbers."""

from typing import TYPE_CHECKING

from dpppsynth.contract.additive_noise import LatticePlan
from dpppsynth.contract.noised_pairs import NoiseGroup
from dpppsynth.privacy.relations import Relation
from dpppsynth.spatial.mesh import Ints
from dpppsynth.spatial.patterns import PointPattern


class PairsPlan(LatticePlan):
    """Base of plans whose last released numbers are capped sums over pairs, one for each radius.

    All have discrete Laplace noise, each of its group's scale.

    Attributes
    ----------
    relation : Relation
    radii : tuple of float
    caps : tuple of int
        One for each radius.
    """

    if TYPE_CHECKING:

        @property
        def relation(self) -> Relation:
            """Neighbouring patterns."""

        @property
        def radii(self) -> tuple[float, ...]:
            """Lengths on the map, in the domain's unit."""

        @property
        def caps(self) -> tuple[int, ...]:
            """Cap of each radius."""

    def exact_numbers(self, pattern: PointPattern) -> Ints:
        """(size,) numbers in lattice units, without noise."""
        raise NotImplementedError

    def noise_groups(self) -> tuple[NoiseGroup, ...]:
        """Numbers with noise of one scale, from the first to the last."""
        raise NotImplementedError
