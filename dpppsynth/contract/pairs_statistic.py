"""`PairsStatistic`: base of plans that release noised pair sums, alone or after other noised numbers."""

from typing import TYPE_CHECKING, Self

from dpppsynth.contract.additive_noise import LatticeStatistic, PrivateStatistic
from dpppsynth.contract.noised_pairs import NoiseGroup
from dpppsynth.contract.statistic import Parameters
from dpppsynth.core.errors import InputError
from dpppsynth.core.types import JsonRead
from dpppsynth.linear_network import LinearNetwork
from dpppsynth.models.pair_limits import pieces_work
from dpppsynth.privacy.relations import Relation
from dpppsynth.spatial.domains import Domain
from dpppsynth.spatial.mesh import Ints
from dpppsynth.spatial.patterns import PointPattern


class PairsStatistic(LatticeStatistic):
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

    @classmethod
    def work(cls, parameters: Parameters, domain: Domain) -> float:
        """Work of a mesh, if any, and of finding how many places of a network are near each other."""
        found, radii = super().work(parameters, domain), parameters.get("radii")
        if not isinstance(domain, LinearNetwork) or not isinstance(radii, list):
            return found
        return found + sum(pieces_work(domain, float(each)) for each in radii if isinstance(each, int | float))

    def restore(self, data: JsonRead) -> PrivateStatistic[Self]:
        """The released numbers from their JSON form.

        Raises
        ------
        InputError
            When there are more or fewer than the plan has.
        """
        statistic = super().restore(data)
        if len(statistic.lattice) != self.size:
            msg = "statistic: it has another number of values than its plan; the file is not whole."
            raise InputError(msg)
        return statistic

    def exact_numbers(self, pattern: PointPattern) -> Ints:
        """(size,) numbers in lattice units, without noise."""
        raise NotImplementedError

    def noise_groups(self) -> tuple[NoiseGroup, ...]:
        """Numbers with noise of one scale, from the first to the last."""
        raise NotImplementedError
