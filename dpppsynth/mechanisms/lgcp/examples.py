"""Examples of the log-Gaussian Cox and the Laplace mechanisms."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from dpppsynth.contract.examples import RELATIONS, Example, Refusal, ring, square, streets
from dpppsynth.linear_network import network_mesh
from dpppsynth.mechanisms.lgcp.laplace import LaplaceSynthesizer
from dpppsynth.mechanisms.lgcp.synthesizer import LGCPSynthesizer
from dpppsynth.models import regular_triangulation, trace_mesh
from dpppsynth.privacy.relations import AddRemove, AlphaNeighbours, ReplaceOne
from dpppsynth.spatial.domains import Domain, Window
from dpppsynth.spatial.mesh import Mesh
from dpppsynth.spatial.offset import Offset

ONE_MOVE = r"^relation: Kim & Lim's bounds are for alpha-neighbours with one point per person"
SLOPE = r"^relation: 'add-remove' has no guarantee from the slope"
CONVEX = r"^relation: 'replace-one' needs a convex window here"
BUDGET: dict[str, Any] = {"epsilon": 200.0, "delta": 5e-4}


def tents() -> Iterator[Example]:
    """Examples of tents; inference by Laplace approximation, and once by NUTS."""
    build = partial(LGCPSynthesizer, 1.0, inference="laplace", length_scale=450.0)
    for relation in RELATIONS:
        yield Example(f"{relation}, laplace", partial(build, relation=relation), square())
    yield Example("offset", partial(build, alpha=25.0, offset=quarters()), square())
    yield Example("polygon with a hole", partial(build, relation=AddRemove()), ring())
    sparse = partial(LGCPSynthesizer, 1.0, prior="sparse")
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


def clusters() -> Iterator[Example]:
    """Examples of all relations, of counts along streets and of a secret number on streets."""
    settings: dict[str, Any] = {"clusters": 0.3, "cluster_radii": [40.0], "cluster_caps": 3}
    build = partial(LGCPSynthesizer, 1.0, inference="laplace", length_scale=450.0, **settings)
    for relation in RELATIONS:
        yield Example(str(relation), partial(build, relation=relation), square())
    by_rule = partial(build, alpha=25.0, cluster_radii=None, cluster_caps=None, cluster_places="shared")
    yield Example("polygon with a hole, by rule", by_rule, ring())
    along = partial(LGCPSynthesizer, 1.0, mechanism="cells", **settings)
    for relation in (RELATIONS[0], AddRemove()):
        yield Example(f"streets, {relation}", partial(along, relation=relation), streets())


def field() -> Iterator[Example]:
    """Examples of all relations and domains."""
    draw = partial(example, "field", delta=1e-6, inference="laplace")
    for relation in RELATIONS:
        yield draw(relation)
    yield draw(RELATIONS[0], ring())
    for relation in (RELATIONS[0], RELATIONS[3], RELATIONS[5]):
        yield draw(relation, streets())


def posterior_draw() -> Iterator[Example]:
    """Examples of all samplers."""
    draw = partial(example, "posterior-draw", delta=1e-6)
    for relation in RELATIONS:
        yield draw(relation, sampler="exact")
    yield draw(AddRemove(), sampler="proximal")
    yield draw(ReplaceOne(), sampler="auto", offset=quarters())
    yield draw(RELATIONS[0], ring())
    for relation in (RELATIONS[0], RELATIONS[3], RELATIONS[5]):
        yield draw(relation, streets(), sampler="exact")
    yield draw(RELATIONS[0], sampler="exact", levels=True)
    yield draw(RELATIONS[0], sampler="nuts", slow=True)


def lipschitz() -> Iterator[Example | Refusal]:
    """Examples of fields of bounded slope."""
    draw = partial(example, "lipschitz", sampler="exact")
    for relation in RELATIONS[:4]:
        yield draw(relation)
    yield draw(RELATIONS[0], ring())
    yield draw(RELATIONS[0], streets())
    for relation in RELATIONS[4:]:
        yield refusal("lipschitz", relation, square(), SLOPE)
    yield refusal("lipschitz", ReplaceOne(), ring(), CONVEX)


def kim_lim(bound: str) -> Iterator[Example | Refusal]:
    """Examples with one point per person; Corollary 3.9 on windows alone."""
    name = f"kim-lim-{bound}"
    yield example(name, RELATIONS[0], **BUDGET)
    if bound == "3.8":
        yield example(name, AlphaNeighbours(25.0), streets(), **BUDGET)
    for relation in RELATIONS[1:]:
        yield refusal(name, relation, square(), ONE_MOVE, delta=1e-6)


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


def refusal(mechanism: str, relation: Any, domain: Domain, rule: str, **options: Any) -> Refusal:
    """A mechanism under an unsupported relation."""
    return Refusal(
        relation, partial(LGCPSynthesizer, 1.0, relation=relation, mechanism=mechanism, **options), domain, rule
    )


def small_mesh(mechanism: str, domain: Any) -> Mesh:
    """36 vertices, or streets in pieces of 100 m; in the plane alone fields of bounded slope are gentle."""
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
