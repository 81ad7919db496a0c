"""Kim & Lim's bounds for the log-Gaussian Cox synthesizer: Theorem 3.8 and Corollary 3.9.

Their delta is a probability over patterns drawn from the model, not a promise for the pattern at hand; see
docs/theory/kim_lim.md. Kept to reproduce published experiments: Theorem A promises more and asks less.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpppsynth.core.arguments import finite, instance, positive, probability, real, shown
from dpppsynth.core.errors import InputError, PrivacyCheckError
from dpppsynth.core.wording import either
from dpppsynth.mechanisms.lgcp.bound.increments import RELATIVE, element_pairs, farthest_corners, point_sd
from dpppsynth.mechanisms.lgcp.bound.posterior_draw import SAMPLER, draw_assumptions
from dpppsynth.models.covariances import Covariance, PoweredExponential, covariance_matrix
from dpppsynth.privacy.catalogue import AVERAGED, text
from dpppsynth.privacy.guarantee import Guarantee, on_map, true_length
from dpppsynth.privacy.profiles import ApproximateDP
from dpppsynth.privacy.relations import AddRemove, CappedRelation, as_relation
from dpppsynth.spatial.domains import Window
from dpppsynth.spatial.mesh import Floats, Mesh

SILENT_SCALE = "length-scale-not-counted"
NOTHING = "no-spatial-information"
# A field with a smaller standard deviation changes the intensity by less than five per cent from place to place.
FLAT = 0.05
MESH = "models.regular_triangulation(window, spacing=100.0) makes one"
# Squared distances between farthest vertices of touching elements, in cells, and how many pairs an N x N mesh has per
# N^2 cells at most.
PAIRS = {"triangle": {2: 1, 4: 1, 5: 6, 8: 4}, "square": {5: 2, 8: 2}}
# Distance, in cells, between elements that do not touch.
GAP = {"triangle": 1 / math.sqrt(2), "square": 1.0}


def carries_no_information(sigma: float) -> bool:
    """Whether a field of this standard deviation is practically constant."""
    return finite("sigma", sigma, least=0) < FLAT


@dataclass(frozen=True)
class RandomScale:
    """Powered exponential with `sigma = ratio * l^(power / 2)` at every length scale l: `ratio * l` at power 2.

    Its increments have variance `2 sigma^2 (1 - exp(-(d/l)^power)) <= 2 ratio^2 d^power`; the matrix is one whose
    increments attain this bound.
    """

    ratio: float
    power: float = 2.0

    def __post_init__(self) -> None:
        ratio = real(self.ratio)
        if ratio is None or not ratio > 0:
            got = shown(self.ratio)
            msg = f"ratio: sigma / length_scale must be positive and finite, got {got}; kim_lim_ratio gives one."
            raise InputError(msg)
        object.__setattr__(self, "ratio", ratio)

    def at(self, length_scale: float) -> PoweredExponential:
        """Covariance where the length scale is known."""
        return PoweredExponential(self.ratio * length_scale ** (self.power / 2), length_scale, self.power)

    def matrix(self, mesh: Mesh) -> Floats:
        """(V, V) covariance matrix over the vertices: at power 2 that of a random plane."""
        if self.power == 2:
            centred = mesh.vertices - mesh.vertices.mean(axis=0)
            return np.asarray(2 * self.ratio**2 * (centred @ centred.T), dtype=np.float64)
        spread = mesh.metric**self.power
        around = spread.mean(axis=0)
        return np.asarray(self.ratio**2 * (around[:, None] + around - spread), dtype=np.float64)


def kim_lim_38(
    mesh: Mesh,
    covariance: Covariance | None,
    relation: CappedRelation | float,
    *,
    epsilon: float,
    ratio: float | None = None,
) -> Guarantee:
    """Theorem 3.8 on the mesh at hand, for moves of one point.

    Parameters
    ----------
    mesh : Mesh
    covariance : Covariance or None
        Covariance of the field; None where its length scale is random.
    relation : CappedRelation or float
        Neighbours; a number is the privacy radius of `AlphaNeighbours`.
    epsilon : float
    ratio : float, optional
        `sigma / length_scale` of a squared exponential of random length scale l; on networks `sigma / sqrt(l)` of an
        exponential.

    Raises
    ------
    PrivacyCheckError
        When the bound gives no delta below 1.
    InputError
        Under `AddRemove`, or when one person may have several points.
    """
    relation, model = _one_point_moves(relation), _model(mesh, covariance, ratio)
    epsilon = _budget(epsilon)
    delta = _sum_over_pairs(mesh, model, relation) / epsilon**2
    return _guarantee("kim-lim-3.8", mesh, model, relation, epsilon, delta)


def kim_lim_39(
    mesh: Mesh,
    covariance: Covariance | None,
    relation: CappedRelation | float,
    *,
    epsilon: float,
    ratio: float | None = None,
) -> Guarantee:
    """Corollary 3.9: Theorem 3.8 in closed form on N x N equal cells of a square window; parameters as there.

    The privacy radius must be strictly below its limit, and the constant for squares is 208 at power 2: reasons in
    docs/theory/kim_lim.md.

    Raises
    ------
    PrivacyCheckError
        When the bound gives no delta below 1.
    InputError
        On other meshes, or when the privacy radius is not below the distance between elements that do not touch.
    """
    relation, model = _one_point_moves(relation), _model(mesh, covariance, ratio)
    epsilon = _budget(epsilon)
    power, slope = _growth(model)
    delta = _closed_form(mesh, relation, power) * slope**2 / epsilon**2
    return _guarantee("kim-lim-3.9", mesh, model, relation, epsilon, delta)


def kim_lim_ratio(
    mesh: Mesh, relation: CappedRelation | float, *, epsilon: float, delta: float, corollary: bool = False
) -> float:
    """Largest `sigma / length_scale` of a squared exponential within (epsilon, delta), rounded down.

    On networks `sigma / sqrt(length_scale)` of an exponential. Whatever the length scale: by Theorem 3.8 on the mesh at
    hand, or by Corollary 3.9.
    """
    relation = _one_point_moves(relation)
    epsilon, delta = positive("epsilon", epsilon), probability("delta", delta)
    instance("mesh", mesh, Mesh, MESH)
    unit = _closed_form(mesh, relation, 2.0) if corollary else _sum_over_pairs(mesh, _model(mesh, None, 1.0), relation)
    return epsilon * math.sqrt(delta / unit) * (1 - 1e-12)


def _budget(epsilon: Any) -> float:
    """Epsilon, which must have a square that is a floating-point number."""
    number = real(epsilon)
    if number is None or not 1e-150 <= number <= 1e150:
        msg = f"epsilon: must lie between 1e-150 and 1e150, got {shown(epsilon)}; 1 is a usual start."
        raise InputError(msg)
    return number


def _sum_over_pairs(mesh: Mesh, covariance: Covariance | RandomScale, relation: CappedRelation) -> float:
    """`4 sum sup Var` over pairs of different elements within reach; delta is this over epsilon squared."""
    i, j = element_pairs(mesh, on_map(relation, mesh.domain).reach * RELATIVE)
    different = i < j
    matrix = covariance_matrix(covariance, mesh)
    return 4 * float(farthest_corners(mesh.elements, matrix, i[different], j[different]).sum())


def _closed_form(mesh: Mesh, relation: CappedRelation, power: float) -> float:
    """`8 B^p N^(2-p) sum of counts times distances^p`; delta is this times `sigma^2 / (epsilon^2 l^p)`."""
    x0, y0, x1, y1 = mesh.domain.bounds
    nx, ny = mesh.recipe.get("shape", (0, 1))
    rectangle = isinstance(mesh.domain, Window) and mesh.domain.is_rectangle
    if nx != ny or not rectangle or not math.isclose(x1 - x0, y1 - y0, rel_tol=1e-12):
        msg = (
            f"mesh: Corollary 3.9 needs N x N equal cells on a square window, and no linear network; use {_other()}, "
            "which takes any mesh."
        )
        raise InputError(msg)
    side, cells = x1 - x0, nx - 1
    limit = GAP[mesh.kind] * side / cells
    if on_map(relation, mesh.domain).reach * RELATIVE >= limit:
        most = true_length(limit, mesh.domain)
        msg = (
            f"alpha: Corollary 3.9 needs less than {most:.6g}, the distance between elements that do not touch, got "
            f"{relation.reach:g}; use a coarser mesh or {_other()}."
        )
        raise InputError(msg)
    pairs = sum(count * squared ** (power / 2) for squared, count in PAIRS[mesh.kind].items())
    return float(8 * side**power * cells ** (2 - power) * pairs)


def _guarantee(
    theorem: str,
    mesh: Mesh,
    model: Covariance | RandomScale,
    relation: CappedRelation,
    epsilon: float,
    delta: float,
) -> Guarantee:
    if delta >= 1:
        msg = (
            f"epsilon: {text(theorem)} gives delta = {delta:.3g} at epsilon = {epsilon:g}, which promises nothing; "
            f"lower sigma by a factor of {math.sqrt(delta):.3g} and more, or use Theorem A."
        )
        raise PrivacyCheckError(msg)
    silent = (SILENT_SCALE,) if isinstance(model, RandomScale) else ()
    # At most that of a length scale as large as the domain where it is random.
    largest = model.at(mesh.domain.diameter).sigma if isinstance(model, RandomScale) else point_sd(model.matrix(mesh))
    flat = (NOTHING,) if carries_no_information(largest) else ()
    assumed = (AVERAGED, *silent, *flat, *draw_assumptions(relation, SAMPLER["nuts"], mesh.domain))
    return Guarantee(relation, ApproximateDP(epsilon, delta), theorem, assumed)


def _growth(model: Covariance | RandomScale) -> tuple[float, float]:
    """Power p and `sigma / l^(p/2)`: increments over d have variance at most `2 sigma^2 (d/l)^p`."""
    if isinstance(model, RandomScale):
        return model.power, model.ratio
    if isinstance(model, PoweredExponential):
        return model.power, model.sigma / model.length_scale ** (model.power / 2)
    msg = f"covariance: Corollary 3.9 needs a PoweredExponential, got {type(model).__name__}; use {_other()}."
    raise InputError(msg)


def _other() -> str:
    return either("kim_lim_38", "--mechanism lgcp-kim-lim-3.8")


def _one_point_moves(relation: CappedRelation | float) -> CappedRelation:
    relation = as_relation(relation)
    if isinstance(relation, AddRemove) or relation.max_points_per_person > 1:
        msg = f"relation: Kim & Lim's bounds cover the move of one point per person, got {relation!r}; use Theorem A."
        raise InputError(msg)
    return relation


def _model(mesh: Mesh, covariance: Covariance | None, ratio: float | None) -> Covariance | RandomScale:
    instance("mesh", mesh, Mesh, MESH)
    if covariance is not None and ratio is None:
        return covariance
    if covariance is None and ratio is not None:
        return RandomScale(ratio, mesh.smoothest_power)
    msg = "ratio: give either a covariance, or the ratio of sigma to a random length scale."
    raise InputError(msg)
