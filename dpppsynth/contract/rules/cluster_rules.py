"""Default radii and caps of the pair sums behind clusters, from domain, number of points and budget alone."""

from dpppsynth.linear_network import LinearNetwork
from dpppsynth.spatial.domains import Domain

# Radii in distances between points: on a window the side of the square that a point has to itself, on a network the
# length of street. The last is for budgets that are worth many points.
PLANE, STREETS = (0.4, 1.4, 4.0), (0.15, 1.2, 5.0)
CAPS = (5, 10, 40)
# Budget times points from which on there is a third radius.
RICH = 300.0
# Largest radius in extents of the domain; and where n is secret, when every place of the lattice may be occupied, the
# smallest one in sides of its box.
WIDEST, NARROWEST = 0.25, 0.006


def pair_levels(
    domain: Domain, size: float, epsilon: float, *, secret: bool = False
) -> tuple[tuple[float, ...], tuple[int, ...]]:
    """Radii and caps.

    Parameters
    ----------
    domain : Window or LinearNetwork
    size : float
        Public number of points, or guess of it.
    epsilon : float
        Budget of the pair sums.
    secret : bool
        Whether the number of points is.
    """
    streets = isinstance(domain, LinearNetwork)
    apart = domain.size / size if streets else (domain.size / size) ** 0.5
    count, most = 3 if size * epsilon >= RICH else 2, WIDEST * domain.extent
    x0, y0, x1, y1 = domain.bounds
    least = NARROWEST * ((x1 - x0) * (y1 - y0)) ** 0.5 if secret else 0.0
    levels = enumerate((STREETS if streets else PLANE)[:count], 1)
    return tuple(max(min(share * apart, most * k / count), least * k) for k, share in levels), CAPS[:count]
