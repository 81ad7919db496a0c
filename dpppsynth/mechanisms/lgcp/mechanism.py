"""Records of the mechanisms from masses, log-Gaussian Cox and plain estimates, with their words and examples."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, TypeVar

from dpppsynth.contract.additive_noise import LaplaceMasses, LatticeStatistic
from dpppsynth.contract.estimator import Estimator
from dpppsynth.contract.examples import RELATIONS, Example, Refusal, ring, square, streets
from dpppsynth.contract.registry import HOME, Mechanism, later
from dpppsynth.contract.words import MechanismWords
from dpppsynth.inference.lgcp_inference import LGCPInference
from dpppsynth.inference.matern_inference import MaternInference
from dpppsynth.inference.projection import Projection
from dpppsynth.inference.sparse_inference import PrecisionInference
from dpppsynth.inference.street_inference import StreetInference
from dpppsynth.linear_network import network_mesh
from dpppsynth.mechanisms.lgcp.field_statistic import FieldMasses
from dpppsynth.mechanisms.lgcp.laplace import LaplaceSynthesizer
from dpppsynth.mechanisms.lgcp.synthesizer import LGCPSynthesizer
from dpppsynth.models import regular_triangulation, trace_mesh
from dpppsynth.privacy.relations import AddRemove, AlphaNeighbours
from dpppsynth.release.cox import CoxRelease
from dpppsynth.spatial.domains import Domain, Window
from dpppsynth.spatial.mesh import Mesh
from dpppsynth.spatial.offset import Offset

P = TypeVar("P", bound=LatticeStatistic)
COUNTS = later("dpppsynth.contract.audits.additive_audits:CountsAudit")


def tents() -> Iterator[Example]:
    """Examples of tents; inference by Laplace approximation, and once by NUTS."""
    build = partial(LGCPSynthesizer, 1.0, inference="laplace", length_scale=450.0)
    for relation in RELATIONS:
        yield Example(f"{relation}, laplace", partial(build, relation=relation), square())
    yield Example("offset", partial(build, alpha=25.0, offset=quarters()), square())
    yield Example("polygon with a hole", partial(build, relation=AddRemove()), ring())
    sparse = partial(LGCPSynthesizer, 1.0, mechanism="tents", prior="sparse")
    yield Example("sparse prior", partial(sparse, alpha=25.0), square())
    yield Example("sparse prior, offset", partial(sparse, relation=AddRemove(), offset=quarters()), square())
    along = partial(LGCPSynthesizer, 1.0, inference="laplace", length_scale=300.0)
    for relation in (RELATIONS[0], RELATIONS[3], RELATIONS[5]):
        yield Example(f"streets, {relation}", partial(along, relation=relation), streets())
    yield Example("streets, offset", partial(along, alpha=25.0, offset=quarters()), streets())
    # Under add/remove as well inference sees the private statistic alone.
    nuts = partial(LGCPSynthesizer, 1.0, alpha=25.0, inference="nuts", length_scale=900.0)
    yield Example("nuts", nuts, square(), slow=True)


def cells() -> Iterator[Example | Refusal]:
    """Examples of counts along streets; on windows there are none."""
    build = partial(LGCPSynthesizer, 1.0, mechanism="cells")
    for relation in RELATIONS:
        yield Example(f"streets, {relation}", partial(build, relation=relation), streets())
    yield Example("streets, offset", partial(build, alpha=25.0, offset=quarters()), streets())
    window = partial(build, alpha=25.0)
    yield Refusal(AlphaNeighbours(25.0), window, square(), r"^mechanism: 'cells' are counts along the streets")


def field() -> Iterator[Example]:
    """Examples of all relations and domains."""
    draw = partial(example, "field", delta=1e-6, inference="laplace")
    for relation in RELATIONS:
        yield draw(relation)
    yield draw(RELATIONS[0], ring())
    for relation in (RELATIONS[0], RELATIONS[3], RELATIONS[5]):
        yield draw(relation, streets())


def example(
    mechanism: str,
    relation: Any,
    domain: Domain | None = None,
    *,
    levels: bool = False,
    slow: bool = False,
    **options: Any,
) -> Example:
    """A mechanism on a small mesh."""
    domain = square() if domain is None else domain
    given: dict[str, Any] = {"epsilon": 1.0, "length_scale": 450.0, "mesh": small_mesh(mechanism, domain)} | options
    settings: Callable[[], Any] = partial(LGCPSynthesizer, **given, relation=relation, mechanism=mechanism)
    label = "polygon with a hole" if domain is ring() else ", ".join(map(str, (relation, *options.values())))
    return Example(f"streets, {label}" if domain is streets() else label, settings, domain, levels=levels, slow=slow)


def small_mesh(mechanism: str, domain: Any) -> Mesh:
    """Mesh of 36 vertices, or of 100 m street segments; fields of bounded slope are planar on streets too."""
    if isinstance(domain, Window):
        return regular_triangulation(domain, shape=(6, 6))
    return trace_mesh(domain, shape=(6, 6)) if mechanism == "lipschitz" else network_mesh(domain, 100.0)


def quarters() -> Offset:
    """A base intensity on four squares."""
    return Offset.from_grid([[1.0, 2.0], [3.0, 0.5]], (0, 0, 1000, 1000))


def laplace(basis: str) -> Iterator[Example]:
    """Examples of all relations, domains and estimates."""
    build = partial(LaplaceSynthesizer, 1.0, basis=basis)
    for relation in RELATIONS:
        for postprocess in ("clip", "keep-n")[: 1 + relation.n_is_public]:
            settings = partial(build, relation=relation, postprocess=postprocess)
            yield Example(f"{relation}, {postprocess}", settings, square())
    for relation in (RELATIONS[0], RELATIONS[4]):
        yield Example(f"{relation}, field", partial(build, relation=relation, postprocess="field"), square())
    yield Example("hole, field", partial(build, alpha=25.0, spacing=200.0, postprocess="field"), ring())
    yield Example("streets, field", partial(build, alpha=25.0, spacing=150.0, postprocess="field"), streets())
    yield Example("polygon with a hole", partial(build, alpha=25.0, postprocess="plain"), ring())
    for relation in (RELATIONS[0], RELATIONS[3], RELATIONS[5]):
        yield Example(f"streets, {relation}", partial(build, relation=relation, postprocess="plain"), streets())


def laplace_tents() -> Iterator[Example]:
    """Examples of tents, also by levels."""
    yield from laplace("tents")
    build = partial(LaplaceSynthesizer, 1.0, basis="tents", postprocess="plain")
    for relation in RELATIONS:
        yield Example(f"tents, {relation}", partial(build, relation=relation), square(), levels=True)
    yield Example("streets, tents", partial(build, alpha=25.0, spacing=150.0), streets(), levels=True)


def fitted(
    name: str,
    statistic: type[P],
    estimators: tuple[type[Estimator[P]], ...],
    examples: Callable[[], Iterator[Example | Refusal]],
    description: str,
    audit: Callable[[Any], Any],
) -> Mechanism[P, Any]:
    """Record of a mechanism whose log-Gaussian Cox model is inferred from noised numbers."""
    return Mechanism(
        name=name,
        settings=LGCPSynthesizer,
        statistic=statistic,
        estimators=estimators,
        result=CoxRelease,
        audit=audit,
        words=MechanismWords(
            description=f"The points {description} A log-Gaussian Cox model that knows the law of the noise was fitted "
            "to these numbers alone, and the synthetic points were drawn from the model.",
            intensity="middle of the posterior",
            title="Private intensity, middle of the posterior",
        ),
        examples=examples,
    )


TENTS = fitted(
    "lgcp-tents",
    LaplaceMasses,
    (LGCPInference, MaternInference, StreetInference, PrecisionInference),
    tents,
    "were shared out to the corners of a public mesh, and random noise was added to every corner's sum.",
    COUNTS,
)
CELLS = fitted(
    "lgcp-cells",
    LaplaceMasses,
    (StreetInference,),
    cells,
    "along every short stretch of the streets were counted, and random noise was added to every count.",
    COUNTS,
)
FIELD = fitted(
    "lgcp-field",
    FieldMasses,
    (LGCPInference,),
    field,
    "were reduced to smooth averages over the area, and random noise was added to each.",
    later(f"{HOME}.lgcp.audit:FieldStatisticAudit"),
)


def noised(basis: str, examples: Callable[[], Iterator[Example]], description: str) -> Mechanism[LaplaceMasses, Any]:
    """Record of a plain estimate from noised counts or masses."""
    return Mechanism(
        name=f"laplace-{basis}",
        settings=LaplaceSynthesizer,
        statistic=LaplaceMasses,
        estimators=(Projection, MaternInference, StreetInference),
        result=CoxRelease,
        audit=COUNTS,
        words=MechanismWords(description=f"The points {description} alone.", intensity="from the noisy numbers"),
        examples=examples,
    )


LAPLACE_CELLS = noised(
    "cells",
    partial(laplace, "cells"),
    "in every cell of a public grid were counted, and random noise was added to every count. The synthetic points were "
    "drawn from an intensity made of the noisy counts",
)
LAPLACE_TENTS = noised(
    "tents",
    laplace_tents,
    "were shared out to the corners of a public mesh, and random noise was added to every corner's sum. The synthetic "
    "points were drawn from an intensity made of the noisy sums",
)
