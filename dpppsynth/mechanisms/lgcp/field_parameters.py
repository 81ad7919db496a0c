"""Public parameters that all mechanisms about a Gaussian field state on certificates."""

from typing import Any

from dpppsynth.contract.additive_noise import LatticeStatistic
from dpppsynth.contract.effort import vertices
from dpppsynth.contract.parameter_forms import GIVEN, OBJECT, POSITIVE, Form, const
from dpppsynth.contract.statistic import Parameters, capped, require
from dpppsynth.core.types import JsonObject
from dpppsynth.models.covariances import Covariance, covariance_from_dict
from dpppsynth.models.recipes import mesh_from_recipe
from dpppsynth.privacy.bounds import LATTICE_BITS
from dpppsynth.privacy.relations import CappedRelation, Relation
from dpppsynth.release.lgcp_inference import ENGINES
from dpppsynth.spatial.domains import Domain
from dpppsynth.spatial.mesh import Mesh

# Covariances by their kinds, each with further parameters.
KINDS: dict[str, Form] = {
    "powered-exponential": {"power": POSITIVE | {"maximum": 2}},
    "matern": {"smoothness": POSITIVE | {"maximum": 20}},
    "generalised-cauchy": {"power": POSITIVE | {"maximum": 2}, "tail": POSITIVE},
}
COVARIANCE: JsonObject = {
    "type": "object",
    "properties": {"sigma": POSITIVE, "length_scale": POSITIVE, "metric": const("shortest-path")},
    "required": ["kind", "sigma", "length_scale"],
    "oneOf": [
        {
            "properties": {"kind": const(kind), "sigma": GIVEN, "length_scale": GIVEN, "metric": GIVEN, **more},
            "required": list(more),
            "additionalProperties": False,
        }
        for kind, more in KINDS.items()
    ],
}
# What all of them state.
FIELD: Form = {"mesh": OBJECT, "covariance": COVARIANCE, "lattice_bits": const(LATTICE_BITS), "delta": GIVEN}
# Square and cube of the vertices of a field.
PAIR, TRIPLE = 0.1, 7e-4
Common = tuple[Mesh, Covariance, CappedRelation, int | None, float | None, float, float]


def on_field(parameters: Parameters, relation: Relation, domain: Domain) -> Common:
    """Mesh, covariance, relation, sizes and budget: the first arguments of every plan about a Gaussian field."""
    p = parameters
    mesh, covariance = mesh_from_recipe(p["mesh"], domain), covariance_from_dict(p["covariance"])
    return mesh, covariance, capped(relation), p["n"], p["expected_n"], p["epsilon"], p["delta"]


def of_field(plan: LatticeStatistic, covariance: Covariance, delta: float) -> JsonObject:
    """The parameters that `on_field` reads, and the lattice."""
    return {
        "mesh": plan.mesh.recipe,
        "covariance": covariance.to_dict(),
        "lattice_bits": plan.bits,
        "epsilon": plan.epsilon,
        "delta": delta,
        "n": plan.n,
        "expected_n": plan.expected_n,
    }


def run_of(parameters: Parameters) -> dict[str, Any]:
    """Sampler and engine of a posterior draw; an engine is stated for NUTS alone."""
    engine = parameters["engine"]
    require(engine is None or engine in ENGINES, f"the engine is {' or '.join(ENGINES)}")
    return {"sampler": parameters["sampler"]} | ({} if engine is None else {"engine": engine})


def matrix_work(parameters: Parameters, domain: Domain) -> float:
    """Work with the matrices of a field."""
    size = vertices(parameters.get("mesh"), domain)
    return PAIR * size**2 + TRIPLE * size**3
