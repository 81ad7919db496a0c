"""Public parameters that all mechanisms about a Gaussian field state on certificates."""

from typing import Any

from dpppsynth.contract.measurement import Parameters, require
from dpppsynth.models.covariances import Covariance, covariance_from_dict
from dpppsynth.models.recipes import mesh_from_recipe
from dpppsynth.privacy.relations import CappedRelation
from dpppsynth.release.estimators import ENGINES
from dpppsynth.spatial.domains import Domain
from dpppsynth.spatial.mesh import Mesh

Common = tuple[Mesh, Covariance, CappedRelation, int | None, float | None, float, float]


def on_field(parameters: Parameters, relation: Any, domain: Domain) -> Common:
    """Mesh, covariance, relation, sizes and budget: the first arguments of every plan about a Gaussian field."""
    p = parameters
    mesh, covariance = mesh_from_recipe(p["mesh"], domain), covariance_from_dict(p["covariance"])
    return mesh, covariance, relation, p["n"], p["expected_n"], p["epsilon"], p["delta"]


def run_of(parameters: Parameters) -> dict[str, Any]:
    """Sampler and engine of a posterior draw; an engine is stated for NUTS alone."""
    engine = parameters["engine"]
    require(engine is None or engine in ENGINES, f"the engine is {' or '.join(ENGINES)}")
    return {"sampler": parameters["sampler"]} | ({} if engine is None else {"engine": engine})
