"""Kim & Lim's Laplace synthesizer as printed: floating-point noise on cell densities, clamped at zero.

Every cell gets the noise of the two smallest, and clamping adds about `1 / epsilon` points per empty cell: their tables
show it. On a network one short segment is enough to drown all others. `LaplaceSynthesizer` is what to release with.
"""

from dataclasses import KW_ONLY, dataclass

import numpy as np

from dpppsynth.contract.additive_noise import cell_counts
from dpppsynth.core.arguments import positive
from dpppsynth.core.errors import InputError
from dpppsynth.core.randomness import RngLike, generator
from dpppsynth.linear_network import LinearNetwork, network_mesh
from dpppsynth.models.regular_meshes import regular_squares
from dpppsynth.spatial.domains import Domain
from dpppsynth.spatial.intensity import PiecewiseConstant
from dpppsynth.spatial.mesh import Floats, Mesh
from dpppsynth.spatial.patterns import PointPattern, require_match
from dpppsynth.spatial.sampling import poisson_pattern


def density_sensitivity(area: Floats) -> float:
    """L1 sensitivity of cell densities under replace-one: `max over p != q of 1/|S_p| + 1/|S_q|`."""
    smallest = np.sort(area)[:2]
    return float((1 / smallest).sum())


@dataclass(frozen=True)
class PaperLaplaceSynthesizer:
    """Densities `max(0, count / |S_i| + Laplace(Delta / epsilon))` on cells (Kim & Lim, Theorem 3.10).

    Parameters
    ----------
    epsilon : float
    shape : (int, int), optional
        On windows: vertices of the grid of cells along x and y, as in `regular_squares`; at least two cells.
    resolution : float, optional
        On networks: longest segment, as in `network_mesh`; at least two segments.

    Examples
    --------
    >>> from dpppsynth.spatial.domains import Window
    >>> window = Window.rectangle(0, 0, 10, 10)
    >>> PaperLaplaceSynthesizer(1.0, shape=(11, 11)).release(PointPattern([[5, 5]], window), 1)
    BaselineRelease(epsilon=1: not to be released)
    """

    epsilon: float
    _: KW_ONLY
    shape: tuple[int, int] | None = None
    resolution: float | None = None

    def __post_init__(self) -> None:
        positive("epsilon", self.epsilon)
        if self.resolution is not None:
            positive("resolution", self.resolution)
        if (self.shape is None) == (self.resolution is None):
            msg = "shape, resolution: give one of them, shape=(11, 11) on a window or resolution=50.0 on a network."
            raise InputError(msg)

    def release(self, pattern: PointPattern, rng: RngLike = None) -> "BaselineRelease":
        """Noised densities of a pattern, for comparisons only.

        Raises
        ------
        InputError
            When the cells do not suit the pattern's domain, or there is only one; or the pattern is marked.
        """
        mesh = self._cells(pattern.domain)
        require_match(pattern, mesh.domain, None)
        area = mesh.element_measure
        scale = density_sensitivity(area) / self.epsilon
        noisy = cell_counts(mesh, pattern.positions) / area + generator(rng).laplace(0, scale, len(area))
        intensity = PiecewiseConstant(mesh, np.maximum(noisy, 0))
        return BaselineRelease(intensity, float(self.epsilon), rng is not None)

    def _cells(self, domain: Domain) -> Mesh:
        """Squares of a window or segments of a network, at least two."""
        name = "shape" if self.resolution is None else "resolution"
        if (name == "resolution") != isinstance(domain, LinearNetwork):
            msg = f"{name}: cells of a window are squares, as many as shape= says; those of a network are segments, at "
            raise InputError(msg + "most resolution= long. Give the other one.")
        mesh: Mesh
        if isinstance(domain, LinearNetwork):
            mesh = network_mesh(domain, self.resolution)  # type: ignore[arg-type]
        else:
            mesh = regular_squares(domain, shape=self.shape)  # type: ignore[arg-type]
        if len(mesh.elements) < 2:
            remedy = "for instance (11, 11)" if name == "shape" else "take a smaller one"
            msg = f"{name}: needs at least two cells, got {getattr(self, name)!r}; {remedy}."
            raise InputError(msg)
        return mesh


@dataclass(frozen=True, eq=False, repr=False)
class BaselineRelease:
    """Result of a baseline, which no certificate goes with: never to be released."""

    intensity: PiecewiseConstant
    epsilon: float
    seeded: bool

    def __repr__(self) -> str:
        return f"BaselineRelease(epsilon={self.epsilon:g}: not to be released)"

    def sample(self, m: int = 1, rng: RngLike = None) -> list[PointPattern]:
        """Poisson patterns with the noised intensity."""
        rng = generator(rng)
        return [poisson_pattern(self.intensity, rng) for _ in range(m)]
