"""Examples of points moved by planar Laplace noise."""

from collections.abc import Iterator
from functools import partial

from dpppsynth.contract.examples import RELATIONS, Example, N, Refusal, ring, square
from dpppsynth.mechanisms.planar_laplace.synthesizer import PlanarLaplaceSynthesizer
from dpppsynth.privacy.relations import AlphaNeighbours

DISTANCE = r"^relation: needs a AlphaNeighbours, got .*; the bound grows with the distance"


def examples() -> Iterator[Example | Refusal]:
    """Examples with and without a bound on the moves, as points and as a track."""
    build = PlanarLaplaceSynthesizer
    for relation in RELATIONS[:2]:
        yield Example(str(relation), partial(build, 1.0, relation=relation), square())
    yield Example("bounded", partial(build, 1.0, delta=1e-6, alpha=25.0), ring())
    person = AlphaNeighbours(25.0, max_points_per_person=N)
    track = partial(build, 1e3, relation=person, max_error=900.0, track=True)
    yield Example("track", track, square())
    yield Example("moved points", partial(build, 1.0, alpha=25.0, max_error=500.0), square(), levels=True)
    for relation in RELATIONS[2:]:
        yield Refusal(relation, partial(build, 1.0, delta=1e-6, relation=relation), square(), DISTANCE)
