"""Validation of a certificate's estimator settings: known names, each value of its kind.

No bound depends on it, so nothing else would notice what a forger adds here.
"""

import re
from collections.abc import Mapping
from typing import Any

from dpppsynth.contract.measurement import require
from dpppsynth.models.covariances import LARGEST_PARAMETER, SMALLEST_PARAMETER
from dpppsynth.models.recipes import mesh_from_recipe
from dpppsynth.spatial.domains import canonical_json
from dpppsynth.spatial.mesh import Mesh

INFERENCES, ENGINES = ("nuts", "laplace"), ("nutpie", "pymc")
POSTPROCESSES = ("clip", "keep-n")
FIELD = {"kind", "mesh", "length_scales", "sigma", "offset", "inference", "engine"}
# Length scales that one field model may average over.
MOST_SCALES = 16
DIGEST = re.compile("[0-9a-f]{64}")


def among(estimator: Any, known: list[dict[str, Any]], rule: str) -> None:
    """Refuse an estimator that is not word for word one of those known; 1 is not true here, nor 1.0."""
    require(canonical_json(estimator) in map(canonical_json, known), rule)


def projected(estimator: Mapping[str, Any], *, n_is_public: bool) -> None:
    """Refuse all but the projections that there are."""
    known = [{"kind": "projection", "postprocess": post} for post in POSTPROCESSES[: 1 + n_is_public]]
    among(estimator, known, "negative counts are clipped, or where n is public made to sum to it")


def offset_of(estimator: Mapping[str, Any]) -> str | None:
    """Fingerprint of the public offset of a field or a draw."""
    offset = estimator["offset"]
    known = offset is None or (isinstance(offset, str) and DIGEST.fullmatch(offset) is not None)
    require(known, "the offset is null or a SHA-256")
    return None if offset is None else str(offset)


def drawn(estimator: Mapping[str, Any]) -> str | None:
    """The offset of a drawn field, which has no other setting."""
    require(estimator.keys() == {"kind", "offset"}, "a drawn field has an offset and no other setting")
    return offset_of(estimator)


def fitted(estimator: Mapping[str, Any], tents: Mesh) -> tuple[Mesh, str | None]:
    """Mesh and offset of a field model for a statistic on a mesh, with all of its settings validated."""
    require(estimator.keys() == FIELD, f"a field model states exactly {', '.join(sorted(FIELD))}")
    require(_positive(estimator["sigma"]), "sigma is a positive number")
    scales = estimator["length_scales"]
    few = isinstance(scales, list) and 0 < len(scales) <= MOST_SCALES
    require(few and all(map(_positive, scales)), f"there are 1 to {MOST_SCALES} length scales, positive numbers")
    require(estimator["inference"] in INFERENCES, f"inference is {' or '.join(INFERENCES)}")
    require(estimator["engine"] in ENGINES, f"the engine is {' or '.join(ENGINES)}")
    return _field_mesh(estimator["mesh"], tents), offset_of(estimator)


def _field_mesh(recipe: Any, tents: Mesh) -> Mesh:
    """The mesh of the field: the statistic's own, a refinement of it, or along or over the same network."""
    if canonical_json(recipe) == canonical_json(tents.recipe):
        return tents
    require(isinstance(recipe, dict), "the mesh of a field is described by its recipe")
    builder, own = recipe.get("builder"), tents.recipe
    if builder == "regular":
        pairs = [] if own["builder"] != builder else list(zip(recipe["shape"], own["shape"], strict=True))
        factors = {(fine - 1) / (coarse - 1) for fine, coarse in pairs}
        nested = len(factors) == 1 and factors.pop().is_integer() and recipe["kind"] == own["kind"]
        require(nested, "the mesh of a field refines the statistic's")
    else:
        require(builder in ("network", "trace"), "the mesh of a field is the statistic's own where that is not regular")
    return mesh_from_recipe(recipe, tents.domain)


def _positive(value: Any) -> bool:
    """Whether a value is a number that a covariance takes as a positive parameter."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return number and SMALLEST_PARAMETER <= value <= LARGEST_PARAMETER
