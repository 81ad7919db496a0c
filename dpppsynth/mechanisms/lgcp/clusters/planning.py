"""Plans of pair sums beside noised masses or counts."""

from dpppsynth.contract import rules
from dpppsynth.contract.pair_settings import caps_of
from dpppsynth.mechanisms.lgcp.clusters.statistic import MassesAndPairs, require_simulated
from dpppsynth.mechanisms.lgcp.request import LGCPRequest
from dpppsynth.models.pair_limits import finest, require_radius
from dpppsynth.spatial.mesh import Mesh


def with_pairs(request: LGCPRequest, basis: str, mesh: Mesh) -> MassesAndPairs:
    """Masses or counts on a mesh, and pair sums within the radii that are given or follow from a public rule."""
    s = request.settings
    share = float(s.clusters or 0.0)
    require_simulated(request.size)
    radii, caps = rules.cluster_rules.pair_levels(
        request.domain, request.size, s.epsilon * share, secret=request.n is None
    )
    if s.cluster_radii is not None:
        radii = s.cluster_radii
        for radius in radii:
            require_radius(radius, request.domain, name="cluster_radii")
        caps = caps[:1] * len(radii)
    if s.cluster_caps is not None:
        caps = caps_of(s.cluster_caps, len(radii), name="cluster_caps")
    steps = tuple(finest(request.domain, radius, request.n) for radius in radii)
    return MassesAndPairs(*request.measured(basis, mesh), share, radii, caps, steps, s.cluster_places)
