"""Examples of the Laplace mechanisms."""

from collections.abc import Iterator
from functools import partial

from dpppsynth.contract.examples import RELATIONS, Example, ring, square, streets
from dpppsynth.mechanisms.laplace.synthesizer import LaplaceSynthesizer


def examples(basis: str) -> Iterator[Example]:
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


def tents() -> Iterator[Example]:
    """Examples of tents, also by levels."""
    yield from examples("tents")
    build = partial(LaplaceSynthesizer, 1.0, basis="tents", postprocess="plain")
    for relation in RELATIONS:
        yield Example(f"tents, {relation}", partial(build, relation=relation), square(), levels=True)
    yield Example("streets, tents", partial(build, alpha=25.0, spacing=150.0), streets(), levels=True)
