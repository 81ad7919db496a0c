"""Private heat maps against exact ones, in rehearsals and for the custodian alone."""

from dataclasses import dataclass
from typing import ClassVar

from dpppsynth.spatial.map_distances import emd
from dpppsynth.spatial.mesh import Floats


@dataclass(frozen=True, eq=False, repr=False)
class HeatMaps:
    """Heat maps (nx, ny) of mass 1 under the same filter; the exact one is as sensitive as the points.

    Attributes
    ----------
    exact : ndarray
        Of the persons' exact average distribution.
    released : ndarray
        Of the release.
    uniform : ndarray
        Of a uniform distribution over the window, which needs no data.
    """

    exact: Floats
    released: Floats
    uniform: Floats
    # Squares along each side of the window between which earth mover's distances are taken.
    side: ClassVar[int] = 32
    # Unit of such distances, since windows need not be squares.
    unit: ClassVar[str] = "of the window's sides"

    def moved(self, estimate: Floats) -> float:
        """Earth mover's distance of an estimate from the exact map, as a share of the window's sides."""
        return emd(self.exact, estimate, side=self.side)
