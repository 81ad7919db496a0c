"""Relative risk of points with marks: of one type or all, at one time or over all times."""

import numpy as np

from dpppsynth.inference.risk import RelativeRisk
from dpppsynth.mechanisms.marked.intensity import MarkedMean, chosen_times, chosen_types, over_time
from dpppsynth.mechanisms.marked.marked_mesh import time_basis
from dpppsynth.spatial.mesh import Floats
from dpppsynth.spatial.offset import weighted_pieces


def marked_risk(mean: MarkedMean, time: float | None, type_: str | None) -> RelativeRisk:
    """The intensity without the offset, in every draw over its average over the offset and all times.

    Parameters
    ----------
    mean : MarkedMean
        Draws of the intensity.
    time : float or None
        All times where none is given.
    type_ : str or None
        All types where none is given.

    Raises
    ------
    InputError
    """
    grid, kinds = mean.grid, chosen_types(mean.grid, type_)
    at = None if time is None else time_basis(grid.marks.times, chosen_times(grid, time, 1)).toarray()[0]
    population = weighted_pieces(grid.space, grid.offset).weight.sum()
    length = 1.0 if grid.marks.times is None or at is None else grid.marks.times.length

    def risks(logs: Floats) -> Floats:
        """(V,) sums over types at the time, or integrals over all times, of exp of logarithms (C, K, V)."""
        found = over_time(grid.marks.times, logs) if at is None else np.exp(np.einsum("k,ckv->cv", at, logs))
        return np.asarray(found.sum(axis=0))

    draws = list(mean.draws())
    fields = np.log([risks(each.log_values[kinds]) for each in draws])
    average = np.array([each.masses[kinds].sum() for each in draws]) / (population * length)
    return RelativeRisk(grid.space, fields, grid.offset, average)
