"""Runs of NUTS behind moved points."""

from collections.abc import Callable

import numpy as np

from dpppsynth.inference.nuts_runs import passed_run, white_steps
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
    # PyMC is loaded where it is asked for.
    from dpppsynth.models.lgcp import model_of

    def seen(z: Floats) -> Floats:
        # A part of the draws after the other: together their fields, and white noise, may fill the memory.
        parts = np.array_split(z, -(-len(z) // TOGETHER))
        return np.concatenate([np.hstack([monitored(density.fields(each)), density.effects(each)]) for each in parts])

    accept, tune = white_steps(density.size)
    model = density if engine == "nutpie" else model_of(density)
    found, passed = passed_run(
        model,
        lambda z: np.stack([seen(each) for each in z]),
        rng,
        draws=DRAWS,
        tune=tune,
        engine=engine,
        accept=accept,
    )
    return found[:, np.linspace(0, found.shape[1] - 1, kept).round().astype(int)], passed
