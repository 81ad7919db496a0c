"""Runs of NUTS behind moved points."""

from collections.abc import Callable

import numpy as np

from dpppsynth.inference.nuts_runs import white_run
from dpppsynth.models.moved_density import MovedDensity
from dpppsynth.models.nuts import CHAINS, Diagnostics
from dpppsynth.spatial.mesh import Floats

# Values of the largest field; seconds of a run, as in `nuts_runs`.
MOST_VALUES, MOVED_PACE = 10_000, (25.0, 1000, 1.2)
# Draws per chain of every run.
DRAWS = 800
# Draws whose fields are looked at together.
TOGETHER = 100


def moved_run(
    density: MovedDensity, monitored: Callable[[Floats], Floats], kept: int, rng: np.random.Generator, engine: str
) -> tuple[Floats, Diagnostics | None]:
    """(chains, kept, r) draws of z, evenly thinned, and diagnostics of monitored quantities (q,) of fields (..., V).

    A field that is the same everywhere, on which the points tell nothing, takes no run.

    Raises
    ------
    QualityError
        When no run passed its diagnostics.
    """
    if density.is_even:
        return rng.standard_normal((CHAINS, kept, density.size)), None

    def seen(z: Floats) -> Floats:
        # A part of the draws after the other: together their fields, and white noise, may fill the memory.
        parts = np.array_split(z, -(-len(z) // TOGETHER))
        return np.concatenate([np.hstack([monitored(density.fields(each)), density.effects(each)]) for each in parts])

    return white_run(density, lambda z: np.stack([seen(each) for each in z]), kept, rng, draws=DRAWS, engine=engine)
