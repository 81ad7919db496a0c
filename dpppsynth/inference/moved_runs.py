"""Runs of NUTS behind moved points."""

import numpy as np

from dpppsynth.inference.nuts_runs import WHITE_ACCEPT, log_masses, passed_run, watched
from dpppsynth.models.moved_density import MovedDensity
from dpppsynth.models.moved_posterior import VertexMasses
from dpppsynth.models.nuts import CHAINS, Diagnostics
from dpppsynth.spatial.mesh import Floats

# Values of the largest field, whose matrices are dense; seconds of a run, as in `nuts_runs`.
MOST_VALUES, MOVED_PACE = 2500, (70.0, 1000, 1.45)
# Draws per chain of every run, and steps to find its pace.
DRAWS, TUNE = 1000, 100


def moved_run(
    density: MovedDensity, masses: VertexMasses, kept: int, rng: np.random.Generator, engine: str
) -> tuple[Floats, Diagnostics | None]:
    """(chains, kept, r) draws of z, evenly thinned, and diagnostics of masses at vertices all over the domain.

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

    places = watched(len(density.centre))

    def monitored(z: Floats) -> Floats:
        # One chain after the other: together their fields may fill the memory.
        seen = np.stack([masses.vertex_masses(density.fields(each))[:, places] for each in z])
        return np.concatenate([log_masses(seen), density.effects(z)], axis=-1)

    model = density if engine == "nutpie" else model_of(density)
    z, passed = passed_run(model, monitored, rng, draws=DRAWS, tune=TUNE, engine=engine, accept=WHITE_ACCEPT)
    return z[:, np.linspace(0, DRAWS - 1, kept).round().astype(int)], passed
