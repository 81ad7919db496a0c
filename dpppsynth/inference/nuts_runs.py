"""Runs of NUTS that passed their diagnostics."""

from collections.abc import Callable
from typing import Any

import numpy as np

from dpppsynth.core.errors import QualityError
from dpppsynth.models import nuts
from dpppsynth.spatial.mesh import Floats, Ints

# Seconds of a run on two idle cores at so many unknowns, and the power of their number with which these grow: fields of
# sparse precision, whitened by a sparse factor, and dense ones.
SPARSE_PACE, DENSE_PACE = (25.0, 2000, 1.17), (15.0, 1000, 1.5)
# Seconds that NUTS takes at most where nobody asks for it.
MOST_SECONDS = 120.0
# Runs that fail their diagnostics are tried again: least rates of accepted steps, and times as many draws.
TRIES = ((0.0, 1), (0.9, 2), (0.99, 2))
# Of coordinates that are standard normal, or nearly so: from how many on, rate of accepted steps, and steps that find
# their length. In more coordinates chains of long steps mix slowly.
WHITE = ((0, 0.65, 100), (6000, 0.8, 300))
# Masses at most that are monitored: of thousands the largest R-hat is above its limit by chance.
MONITORED = 100


def passed_run(
    model: Any,
    monitored: Callable[[Floats], Floats],
    rng: np.random.Generator,
    *,
    draws: int,
    tune: int,
    engine: str = "nutpie",
    accept: float = 0.8,
) -> tuple[Floats, nuts.Diagnostics]:
    """Draws of z (chains, draws, r) of a run that passed its diagnostics; where it did not, of longer ones.

    Parameters
    ----------
    model : Density or pymc.Model
    monitored : callable
        Quantities (chains, draws, q) that are looked at, of draws of z.
    rng : Generator
    draws, tune : int
        As in `nuts.Sampler.sample`, of the first run.
    engine : {"nutpie", "pymc"}
    accept : float
        Rate of accepted steps that the first run aims at.

    Raises
    ------
    QualityError
        When none did.
    """
    for least, times in TRIES:
        sampler = nuts.Sampler(model, engine, max(accept, least))
        chains = sampler.sample(draws=times * draws, tune=times * tune, seed=int(rng.integers(2**31)))
        passed = nuts.diagnose(monitored(chains.z), chains.divergences)
        complaint = passed.complaint()
        if complaint is None:
            return chains.z, passed
        # Let go before the next run, beside which it may fill the memory.
        del chains
    msg = (
        f"inference: NUTS reached {complaint}. Nothing is lost: the private statistic is kept on this error; "
        "`error.release.infer()` tries another seed, `error.release.infer(inference='laplace')` an approximation, "
        "at no privacy cost."
    )
    raise QualityError(msg)


def white_run(
    density: nuts.Density,
    monitored: Callable[[Floats], Floats],
    kept: int,
    rng: np.random.Generator,
    *,
    draws: int,
    engine: str,
) -> tuple[Floats, nuts.Diagnostics]:
    """Draws (chains, kept, r) of z that are nearly standard normal, evenly thinned, of a run that passed."""
    # PyMC is loaded where it is asked for.
    from dpppsynth.models.lgcp import model_of

    accept, tune = white_steps(density.size)
    model = density if engine == "nutpie" else model_of(density)
    z, passed = passed_run(model, monitored, rng, draws=draws, tune=tune, engine=engine, accept=accept)
    return thinned(z, kept), passed


def thinned(z: Floats, kept: int) -> Floats:
    """(chains, kept, ...) of draws (chains, draws, ...), evenly from the first to the last."""
    return z[:, np.linspace(0, z.shape[1] - 1, kept).round().astype(int)]


def white_steps(size: int) -> tuple[float, int]:
    """Rate of accepted steps, and number of those that find their length, in so many nearly standard coordinates."""
    return next((accept, tune) for least, accept, tune in reversed(WHITE) if size >= least)


def reckoned(runs: int, unknowns: int, pace: tuple[float, int, float]) -> float:
    """Seconds of so many runs of NUTS on two idle cores."""
    each, size, power = pace
    return float(runs * each * (unknowns / size) ** power)


def sampling_words(engine: str, runs: int, unknowns: int, pace: tuple[float, int, float]) -> str:
    """NUTS with its engine, and how long it takes, in words."""
    seconds = reckoned(runs, unknowns, pace)
    time = f"{max(1, round(seconds / 60))} min" if seconds > 90 else f"{5 * max(1, round(seconds / 5))} s"
    return f"nuts ({engine}), about {time} on two idle cores, or more where runs fail their diagnostics"


def watched(count: int) -> Ints:
    """Numbers of those of so many masses that are monitored, all over the domain."""
    return np.unique(np.linspace(0, count - 1, MONITORED).round().astype(int))


def log_masses(masses: Floats) -> Floats:
    """Logarithms of expected masses (chains, draws, K), but of tents that only touch the domain and have none."""
    return np.log(masses[..., (masses > 0).all(axis=(0, 1))])
