"""Draws of a field, bent so that the masses of wide tents are those that its Gaussian approximation predicts."""

import numpy as np

from dpppsynth.models.likelihood import MassLikelihood
from dpppsynth.spatial.mesh import Floats

# Share of its mass at the mode that a tent keeps at least, and times the fields are bent.
LEAST, ROUNDS = 0.05, 2


def kept_masses(likelihood: MassLikelihood, mode: Floats, fields: Floats) -> Floats:
    """(k, V) fields drawn about a mode (V,), bent tent by tent.

    In a field finer than the tents most of a draw's variance lies within tents, of which nothing is known. Its
    exponential puts mass where that variance is largest. The approximation itself says otherwise: masses change by `J`
    times the change of the field, to first order. To each field is added the tents' interpolation of the logarithm of
    that mass over the one found.
    """
    tents, at_mode = likelihood.tents, likelihood.vertex_masses(mode)
    moved = (fields - mode) * at_mode
    if likelihood.n is not None:
        moved -= np.outer(moved.sum(axis=1) / likelihood.n, at_mode)
    masses = tents @ at_mode
    wanted = np.maximum(masses + (tents @ moved.T).T, LEAST * masses)
    for _ in range(ROUNDS):
        found = (tents @ likelihood.vertex_masses(fields).T).T
        # Tents that only touch the domain have no mass.
        ratio = np.divide(wanted, found, out=np.ones_like(found), where=found > 0)
        fields = fields + (tents.T @ np.log(ratio, out=np.zeros_like(ratio), where=ratio > 0).T).T
    return fields
