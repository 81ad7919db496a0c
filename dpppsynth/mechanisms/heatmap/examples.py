"""Examples of private heat maps."""

from collections.abc import Iterator
from functools import partial

import numpy as np

from dpppsynth.contract.examples import Example, ring, square
from dpppsynth.mechanisms.heatmap.synthesizer import HeatmapSynthesizer
from dpppsynth.spatial.mesh import Ints


def examples() -> Iterator[Example]:
    """Examples of all variants, of persons with three points each."""
    build = partial(HeatmapSynthesizer, epsilon=1.0)
    yield Example("two levels", partial(build, shape=(24, 16), measure=8), square(), marks=persons)
    practical = partial(build, shape=(16, 16), w=6, variant="practical", fit="least-squares")
    yield Example("practical", practical, square(), marks=persons)
    theory = partial(build, variant="theory", shape=(16, 11))
    yield Example("polygon with a hole, theory", theory, ring(), marks=persons)


def persons(n: int) -> dict[str, Ints]:
    """Marks of persons with three points each."""
    return {"user": np.arange(n) // 3}
