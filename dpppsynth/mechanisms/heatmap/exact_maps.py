"""Private heat maps against exact ones, in rehearsals and for the custodian alone."""

from dataclasses import dataclass

from dpppsynth.mechanisms.heatmap.release import HeatmapRelease
from dpppsynth.spatial.map_distances import emd
from dpppsynth.spatial.mesh import Floats
from dpppsynth.spatial.patterns import PointPattern

# Squares along each side of the window between which earth mover's distances are taken.
SIDE = 32
# Unit of such distances, since windows need not be squares.
UNIT = "of the window's sides"


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

    def moved(self, estimate: Floats) -> float:
        """Earth mover's distance of an estimate from the exact map, as a share of the window's sides."""
        return emd(self.exact, estimate, side=SIDE)


def heat_maps(release: HeatmapRelease, pattern: PointPattern) -> HeatMaps:
    """Make the maps for a release and the pattern that it was made from, marked as its plan asks."""
    plan = release.statistic.plan
    nx, ny = plan.shape
    exact = plan.users(pattern).total()[:nx, :ny]
    exact_map, uniform = (release.filtered(masses / masses.sum()) for masses in (exact, release.inside))
    return HeatMaps(exact_map, release.heatmap(), uniform)
