"""Posterior draws of Kim & Lim's model: a sampled length scale l, and sigma tied to it by a ratio R.

On windows `sigma = R l`, and the covariance is the squared exponential; on networks `sigma = R sqrt(l)`, and it is the
exponential of the resistance metric.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from dpppsynth.core.errors import InputError
from dpppsynth.models.covariances import PoweredExponential
from dpppsynth.models.draws import NutsDraw, gated_draw
from dpppsynth.models.lgcp import log_likelihood
from dpppsynth.models.quadrature import dual_measure
from dpppsynth.spatial.mesh import Floats, Ints, Mesh

if TYPE_CHECKING:
    import pymc as pm

# Standard deviation of log l under its prior, around the logarithm of the given length scale.
LOG_SCALE_SD = 0.5
# On networks: spacing in log l of the length scales at which roots are computed, how many there are on either side of
# the median (four standard deviations), and how many vertices their memory allows.
SPACING, EITHER_SIDE, MOST_VERTICES = 0.25, 8, 1000


def require_small_network(mesh: Mesh) -> None:
    """Refuse a mesh of a network with more vertices than the model can hold, with an InputError."""
    if len(mesh.vertices) > MOST_VERTICES and mesh.kind == "segment":
        msg = (
            f"mesh: Kim & Lim's scheme takes at most {MOST_VERTICES} vertices on a network, got {len(mesh.vertices)}; "
            "take a larger resolution, a part of the network, or another mechanism."
        )
        raise InputError(msg)


@dataclass(frozen=True, eq=False)
class KimLimModel:
    """`log lambda = log(n / |S|) + beta`, `beta ~ N(0, R^2 l^p exp(-(d / l)^p))`, `l` log-normal, p = 2 (networks: 1).

    On a regular mesh the correlation is a product over the two axes, whose factors have a closed form (`line_factor`).
    On a network roots of the covariance, computed at a row of length scales, are blended by the weights of a cubic
    B-spline. These are at least 0 and add up to 1, so no increment exceeds what R allows every root
    (docs/theory/network.md, section 4).

    Attributes
    ----------
    mesh : Mesh
        Regular, or a network's.
    ratio : float
        R, per unit of length (networks: per square root of it).
    length_scale : float
        Median of l under its prior.
    n : float
        Public number of points.
    """

    mesh: Mesh
    ratio: float
    length_scale: float
    n: float

    def __post_init__(self) -> None:
        for name in ("ratio", "length_scale", "n"):
            if not 0 < getattr(self, name) < np.inf:
                msg = f"{name}: must be positive and finite, got {getattr(self, name)!r}."
                raise InputError(msg)
        if self.mesh.kind == "segment":
            require_small_network(self.mesh)
        elif self.mesh.recipe["builder"] != "regular":
            msg = "mesh: Kim & Lim's scheme needs a regular one, such as regular_triangulation(window, shape=(11, 11))."
            raise InputError(msg)
        # Refused before anything is read where a vertex has no cell.
        _ = self.measure

    @cached_property
    def measure(self) -> Floats:
        """(V,) areas or lengths of the cells of the Voronoi dual mesh."""
        return dual_measure(self.mesh)

    def prepare(self) -> None:
        """Compute what a draw needs besides the masses."""
        _ = self._roots if self.mesh.kind == "segment" else self._places

    @property
    def size(self) -> int:
        """Number of standard normal values that make a field: one for l, one per place of the grid or vertex."""
        if self.mesh.kind == "segment":
            return 1 + len(self.mesh.vertices)
        return 1 + math.prod(self.mesh.recipe["shape"])

    def fields(self, z: Any, xp: Any = np) -> Any:
        """Log-intensities (..., V) from values (..., size), in NumPy or (`xp`) PyTensor."""
        field = self._along_streets(z, xp) if self.mesh.kind == "segment" else self._on_the_grid(z, xp)
        return np.log(self.n / self.mesh.domain.size) + self.ratio * field

    def _on_the_grid(self, z: Any, xp: Any) -> Any:
        nx, ny = self.mesh.recipe["shape"]
        x0, y0, x1, y1 = self.mesh.domain.bounds
        length = self.length_scale * xp.exp(LOG_SCALE_SD * z[..., 0])
        down = line_factor(ny, (y1 - y0) / (ny - 1) / length, xp)
        across = line_factor(nx, (x1 - x0) / (nx - 1) / length, xp)
        grid = z[..., np.arange(1, self.size).reshape(ny, nx)]
        return length[..., None] * (down @ grid @ xp.swapaxes(across, -1, -2))[..., *self._places]

    def _along_streets(self, z: Any, xp: Any) -> Any:
        place = EITHER_SIDE + 1 + xp.clip(LOG_SCALE_SD / SPACING * z[..., 0], -EITHER_SIDE, EITHER_SIDE)
        first = (xp.floor(place) - 1).astype("int64")
        t = place - 1 - first
        weight = xp.stack([(1 - t) ** 3, 4 - 6 * t**2 + 3 * t**3, 1 + 3 * t + 3 * t**2 - 3 * t**3, t**3], axis=-1) / 6
        if xp is not np:
            import pytensor

            roots = pytensor.shared(self._roots, name="roots")
            return weight @ (roots[first:][:4] @ z[1:])
        field = np.empty((*z.shape[:-1], self.size - 1))
        for k in np.unique(first):
            same = first == k
            at_nodes = z[same, 1:] @ self._roots[k : k + 4].swapaxes(1, 2)
            field[same] = np.einsum("nk,knv->nv", weight[same], at_nodes)
        return field

    @cached_property
    def _roots(self) -> Floats:
        """(2 EITHER_SIDE + 4, V, V) roots of `l exp(-d / l)`, a `SPACING` of log l apart."""
        scale = self.length_scale * np.exp(SPACING * (np.arange(2 * EITHER_SIDE + 4) - EITHER_SIDE - 1))
        try:
            return np.stack([np.linalg.cholesky(PoweredExponential(s**0.5, s, 1.0).matrix(self.mesh)) for s in scale])
        except np.linalg.LinAlgError:
            msg = (
                f"length_scale: {self.length_scale:g} is too long for this mesh: its field is flat to rounding. Take a "
                "smaller one."
            )
            raise InputError(msg) from None

    def build(self, masses: Floats) -> "pm.Model":
        """PyMC model given exact tent masses (V,); `fields` makes the log-intensity from its variable `z`."""
        import pymc as pm
        import pytensor.tensor as pt

        with pm.Model() as model:
            w = self.fields(pm.Normal("z", 0, 1, shape=self.size), pt)
            pm.Potential("log_likelihood", log_likelihood(w, pm.Data("masses", masses), self.measure))
        return model

    def draw(self, masses: Floats, rng: np.random.Generator, *, engine: str = "nutpie") -> NutsDraw:
        """Draw a field given exact tent masses (V,); parameters and errors as in `nuts_draw`."""
        return gated_draw(self.build(masses), self.fields, rng, engine)

    @cached_property
    def _places(self) -> tuple[Ints, Ints]:
        """Row and column (V,) of the mesh's vertices in the grid."""
        lower, upper = np.reshape(self.mesh.domain.bounds, (2, 2))
        share = (self.mesh.vertices - lower) / (upper - lower)
        column, row = np.rint(share * (np.asarray(self.mesh.recipe["shape"]) - 1)).astype(np.int64).T
        return row, column


def line_factor(count: int, step: Any, xp: Any = np) -> Any:
    """Cholesky factor of the correlation `exp(-d^2)` at places `0, step, 2 step, ...` on a line.

    `L_ij = e^(-t (i - j)^2) [i over j] sqrt((1 - q) ... (1 - q^j))` with `t = step^2`, `q = e^(-2 t)` and Gaussian
    binomial coefficients. That `L L'` is the correlation says
    `sum_j [i over j] [m over j] (1 - q) ... (1 - q^j) q^((i - j)(m - j)) = 1`. At q = 1 / Q, Q a prime power, the terms
    are the shares of rank j among the i x m matrices over the field of Q elements; so it holds for all q. Nothing
    cancels, however close the places.

    Parameters
    ----------
    count : int
        Number of places.
    step : array (...) or PyTensor scalar
        In units of the length scale.

    Returns
    -------
    array (..., count, count)
    """
    i, j = np.indices((count, count))
    top, t = np.maximum(i, j), step[..., None] ** 2
    # Sums of log(1 - q^k) over k = 1 .. m; above the diagonal they stand in for anything finite.
    s = xp.log(-xp.expm1(-2 * np.arange(1, count) * t)) @ np.tri(count, count - 1, -1).T
    log = s[..., top] - s[..., top - j] - s[..., j] / 2 - t[..., None] * (i - j) ** 2
    return np.tri(count) * xp.exp(log)
