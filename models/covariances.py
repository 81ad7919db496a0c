"""Covariance functions and matrices of Gaussian fields, in the plane and on linear networks.

One function builds every covariance matrix; PyMC receives the matrix (or its factor), because its own `ExpQuad` means
`exp(-d^2 / (2 l^2))` where the field's convention, and ours, is `exp(-(d / l)^2)`.

On networks few functions are covariances: completely monotone ones of the resistance metric, after Anderes, Moeller and
Rasmussen (2020), *Isotropic covariance functions on graphs and their edges* (docs/theory/network.md, section 3).
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar, cast

import numpy as np
import scipy

from dpppsynth.core.arguments import LARGEST, entries, instance, one_of, positive, shown
from dpppsynth.core.errors import InputError, PrivacyCheckError
from dpppsynth.core.wording import either, named
from dpppsynth.linear_network.mesh import NetworkMesh
from dpppsynth.linear_network.network import LinearNetwork
from dpppsynth.spatial.domains import as_reals
from dpppsynth.spatial.mesh import Floats, Mesh

# Beyond this a covariance matrix and its factors take gigabytes.
MOST_POINTS = 6000
# Range of sigma and length scale, whose squares are floats.
SMALLEST_PARAMETER, LARGEST_PARAMETER = 1e-150, 1e150
# Share of its trace by which the square of `square_root` may miss a covariance, in spectral norm.
ROOT_ERROR = 1e-12
# Smoother fields cannot be told from the squared exponential, and the Bessel function overflows.
LARGEST_SMOOTHNESS = 20.0
METRICS = ("resistance", "shortest-path")
SQUARE = "covariance: must be a square matrix of finite numbers; covariance.matrix(mesh) gives one."

# A covariance that is one on every network.
GENTLE = "PoweredExponential(sigma, length_scale, power=1), or "


@dataclass(frozen=True)
class Covariance:
    """A covariance `sigma^2 correlation(d)` that depends on a distance alone; base of those below.

    The distance is the Euclidean one on windows.

    Attributes
    ----------
    sigma : float
        Standard deviation of the field.
    length_scale : float
        In the domain's unit of length.
    metric : {"resistance", "shortest-path"}
        The distance on networks. Shortest paths are for networks whose blocks are single edges and cycles: trees, and
        trees and cycles joined at single vertices.

    Raises
    ------
    InputError
        When a parameter is outside its range.
    """

    sigma: float
    length_scale: float
    metric: str = field(default="resistance", kw_only=True)

    kind: ClassVar[str]

    def __post_init__(self) -> None:
        for name in ("sigma", "length_scale"):
            self._require(name)
            if not SMALLEST_PARAMETER <= getattr(self, name) <= LARGEST_PARAMETER:
                rule = f"lie between {SMALLEST_PARAMETER:g} and {LARGEST_PARAMETER:g}, so that its square is a number"
                msg = f"{name}: must {rule}, got {getattr(self, name)!r}."
                raise InputError(msg)
        one_of("metric", self.metric, METRICS)

    def _require(self, name: str, largest: float = LARGEST, rule: str = "be positive and finite") -> None:
        object.__setattr__(self, name, positive(name, getattr(self, name), rule=rule, most=largest))

    @property
    def exponent(self) -> float:
        """Power of d with which the correlation leaves 1 near d = 0: a mesh allows at most its `smoothest_power`."""
        raise NotImplementedError

    def correlation(self, distance: Floats) -> Floats:
        """Correlation at distances (...), in the unit of `length_scale`."""
        raise NotImplementedError

    def matrix(self, mesh: Mesh) -> Floats:
        """(V, V) covariance matrix over the vertices of a mesh.

        Raises
        ------
        InputError
            When the mesh is too large, or the function is not a covariance on its domain.
        PrivacyCheckError
            When the matrix on a network is not positive semi-definite.
        """
        instance("mesh", mesh, Mesh, "regular_triangulation(window, spacing=100.0) makes one")
        require_few_vertices(mesh)
        if self.exponent > mesh.smoothest_power:
            msg = (
                f"covariance: {either(repr(self), 'this function')} is not a covariance on linear networks, where some "
                f"differences would get a negative variance; take {either(GENTLE, '')}a {named('power')} of at most 1, "
                f"or a {named('smoothness')} of at most 0.5."
            )
            raise InputError(msg)
        matrix: Floats = self.sigma**2 * self.correlation(self._distances(mesh))
        if mesh.kind == "segment":
            # Network distances come from sums in two orders.
            matrix = (matrix + matrix.T) / 2
            require_semidefinite(matrix)
        return matrix

    def _distances(self, mesh: Mesh) -> Floats:
        if self.metric == "resistance":
            return mesh.metric
        if mesh.kind != "segment" or not _is_cactus(mesh.domain):
            msg = (
                "metric: 'shortest-path' is for linear networks in which no two cycles share an edge; elsewhere "
                "functions of shortest paths can give negative variances. Take metric='resistance'."
            )
            raise InputError(msg)
        return cast(NetworkMesh, mesh).path_lengths

    def to_dict(self) -> dict[str, Any]:
        """JSON form, inverse of `covariance_from_dict`."""
        data = {"kind": self.kind} | asdict(self)
        metric = data.pop("metric")
        return data if metric == "resistance" else data | {"metric": metric}


@dataclass(frozen=True)
class PoweredExponential(Covariance):
    """Covariance `sigma^2 exp(-(d / length_scale)^power)`, 0 < power <= 2: squared exponential at 2, exponential at 1.

    On networks the power is at most 1.
    """

    power: float = 2.0

    kind: ClassVar[str] = "powered-exponential"

    def __post_init__(self) -> None:
        super().__post_init__()
        self._require("power", 2, "lie in (0, 2] for a valid covariance (2 is the squared exponential)")

    @property
    def exponent(self) -> float:
        return self.power

    def correlation(self, distance: Floats) -> Floats:
        with np.errstate(over="ignore"):
            return np.asarray(np.exp(-((distance / self.length_scale) ** self.power)))


@dataclass(frozen=True)
class Matern(Covariance):
    """Covariance `sigma^2 2^(1 - nu) / Gamma(nu) (d / length_scale)^nu K_nu(d / length_scale)`, 0 < nu <= 20.

    At nu = 1/2 the exponential. On networks nu is at most 1/2.
    """

    smoothness: float

    kind: ClassVar[str] = "matern"

    def __post_init__(self) -> None:
        super().__post_init__()
        rule = f"lie in (0, {LARGEST_SMOOTHNESS:g}] (smoother fields: PoweredExponential)"
        self._require("smoothness", LARGEST_SMOOTHNESS, rule)

    @property
    def exponent(self) -> float:
        return min(2 * self.smoothness, 2.0)

    def correlation(self, distance: Floats) -> Floats:
        # Far out the Bessel function is 0, and its factor must not overflow.
        with np.errstate(invalid="ignore", over="ignore"):
            t = np.minimum(distance / self.length_scale, 1e3)
            value = (
                2 ** (1 - self.smoothness)
                / scipy.special.gamma(self.smoothness)
                * t**self.smoothness
                * scipy.special.kv(self.smoothness, t)
            )
        # The Bessel function is infinite at 0, and overflows only where the correlation is 1 to all digits.
        return np.where(np.isfinite(value), np.minimum(value, 1), 1.0)


@dataclass(frozen=True)
class GeneralisedCauchy(Covariance):
    """Covariance `sigma^2 (1 + (d / length_scale)^power)^(-tail / power)`, 0 < power <= 2, tail > 0, of tail `d^-tail`.

    On networks the power is at most 1.
    """

    power: float
    tail: float

    kind: ClassVar[str] = "generalised-cauchy"

    def __post_init__(self) -> None:
        super().__post_init__()
        self._require("power", 2, "lie in (0, 2] for a valid covariance")
        self._require("tail")

    @property
    def exponent(self) -> float:
        return self.power

    def correlation(self, distance: Floats) -> Floats:
        with np.errstate(over="ignore"):
            growth = np.log1p((distance / self.length_scale) ** self.power)
        return np.asarray(np.exp(-self.tail / self.power * growth))


KINDS: dict[str, type[Covariance]] = {c.kind: c for c in (PoweredExponential, Matern, GeneralisedCauchy)}


def covariance_from_dict(data: Mapping[str, Any]) -> Covariance:
    """Covariance from its JSON form; InputError for a kind this version does not know, or wrong parameters."""
    found = KINDS.get(str(entries("covariance", data).get("kind")))
    if found is None:
        msg = (
            f"covariance: kind {shown(data.get('kind'))} is not known to this version; expected one of "
            f"{', '.join(map(repr, KINDS))}."
        )
        raise InputError(msg)
    try:
        return found(**{name: value for name, value in data.items() if name != "kind"})
    except TypeError:
        msg = f"covariance: {sorted(data)} are not the parameters of {found.__name__}."
        raise InputError(msg) from None


def covariance_matrix(covariance: Any, mesh: Any) -> Floats:
    """(V, V) matrix over the vertices of a mesh; InputError where one of the two is something else."""
    instance("mesh", mesh, Mesh, "regular_triangulation(window, spacing=100.0) makes one")
    if isinstance(covariance, type) or not callable(getattr(covariance, "matrix", None)):
        msg = f"covariance: needs one such as PoweredExponential(sigma, length_scale), got {type(covariance).__name__}."
        raise InputError(msg)
    matrix: Floats = covariance.matrix(mesh)
    return matrix


def require_few_vertices(mesh: Mesh) -> None:
    """Refuse a mesh whose covariance matrix would not fit into memory, with an InputError."""
    if len(mesh.vertices) > MOST_POINTS:
        msg = (
            f"mesh: a covariance over {len(mesh.vertices)} vertices is too large; take at most {MOST_POINTS} vertices."
        )
        raise InputError(msg)


def require_semidefinite(covariance: Floats) -> None:
    """Refuse an eigenvalue below `-ROOT_ERROR / 2` of the trace, with a PrivacyCheckError.

    Every bound on the variance of a difference takes the matrix for the covariance of a field that exists.
    """
    lifted = covariance.copy()
    lifted[np.diag_indices(len(lifted))] += ROOT_ERROR / 2 * np.trace(covariance)
    try:
        scipy.linalg.cholesky(lifted, lower=True, overwrite_a=True)
    except (scipy.linalg.LinAlgError, ValueError):
        msg = "covariance: its matrix has a negative eigenvalue on this mesh, so that no field has it; take another."
        raise PrivacyCheckError(msg) from None


def _is_cactus(domain: Any) -> bool:
    """Whether a network is a cactus (each block one edge or one cycle): shortest paths then embed into an L1 space."""
    import networkx

    if not isinstance(domain, LinearNetwork):
        return False
    # A loop is a cycle of its own, whatever else happens at its vertex.
    ends = np.sort(domain.edges[domain.edges[:, 0] != domain.edges[:, 1]], axis=1)
    pairs, count = np.unique(ends, axis=0, return_counts=True)
    graph = networkx.Graph()
    graph.add_weighted_edges_from(zip(*pairs.T.tolist(), count.tolist(), strict=True))
    # A block with as many edges as vertices, parallel ones counted, is a cycle; with fewer, a single edge.
    blocks = (graph.subgraph(block) for block in networkx.biconnected_components(graph))
    return all(block.size(weight="weight") <= len(block) for block in blocks)


def factor(covariance: Floats, lost: float = 1e-3) -> Floats:
    """(V, r) matrix M with `M M'` the covariance but for a share `lost` of its trace, in the smallest eigenvalues.

    Leaving eigenvectors out only lowers the field's variance, and shortens a sampler's state a lot.
    """
    value, vector = np.linalg.eigh(square_matrix(covariance))
    keep = np.cumsum(value) > lost * value.sum()
    return vector[:, keep] * np.sqrt(value[keep])


def square_root(covariance: Floats) -> Floats:
    """(V, V) symmetric root: unlike a matrix of eigenvectors, the same on every machine.

    Raises
    ------
    PrivacyCheckError
        When its square misses the covariance by more than `ROOT_ERROR / 2` of the trace.
    """
    covariance = square_matrix(covariance)
    value, vector = np.linalg.eigh(covariance)
    with np.errstate(over="ignore", invalid="ignore"):
        root = (vector * np.sqrt(np.clip(value, 0, None))) @ vector.T
        root = (root + root.T) / 2
        found = np.linalg.norm(root @ root - covariance) <= ROOT_ERROR / 2 * np.trace(covariance)
    if not found:
        msg = "covariance: its square root was not found to working precision; take a coarser mesh."
        raise PrivacyCheckError(msg)
    return root


def square_matrix(covariance: Any) -> Floats:
    """(V, V) copy as an array; InputError unless it is square and finite, as a covariance matrix is."""
    matrix = as_reals(covariance, SQUARE)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not matrix.size or not np.isfinite(matrix).all():
        raise InputError(SQUARE)
    return matrix
