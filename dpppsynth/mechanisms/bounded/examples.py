"""Examples of counts with bounded error."""

from collections.abc import Iterator
from functools import partial

from dpppsynth.contract.examples import RELATIONS, Example, ring, square, streets
from dpppsynth.mechanisms.bounded.synthesizer import BoundedErrorSynthesizer


def examples() -> Iterator[Example]:
    """Examples of a given delta and of a given bound."""
    for relation in RELATIONS:
        settings = partial(BoundedErrorSynthesizer, epsilon=1.0, delta=1e-6, relation=relation)
        yield Example(str(relation), settings, square())
    bound = partial(BoundedErrorSynthesizer, epsilon=1.0, max_error=40)
    for domain in (ring(), streets()):
        settings = partial(bound, spacing=200.0, postprocess="keep-n")
        yield Example(f"keep-n, {type(domain).__name__}", settings, domain)
    for domain in (ring(), streets()):
        settings = partial(bound, spacing=200.0, postprocess="field")
        yield Example(f"field, {type(domain).__name__}", settings, domain)
    yield Example("field, levels", partial(bound, spacing=300.0, postprocess="field"), square(), levels=True)
    yield Example("bounded counts", partial(bound, spacing=300.0), square(), levels=True)
