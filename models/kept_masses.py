"""Draws of a field, bent so that the masses of tents are those that its Gaussian approximation predicts."""

import numpy as np
import scipy

from dpppsynth.core.workers import in_threads
from dpppsynth.models.likelihood import MassLikelihood
from dpppsynth.spatial.mesh import Floats

# Share of its mass at the mode that a tent keeps at least, and times the fields are bent.
LEAST, ROUNDS = 0.05, 2
# Fields that are bent at once.
TOGETHER = 8


def kept_masses(
    likelihood: MassLikelihood,
    mode: Floats,
    fields: Floats,
    tents: "scipy.sparse.csr_array",
    rule: "tuple[scipy.sparse.csr_array, Floats]",
) -> Floats:
    """(k, V) fields drawn about a mode (V,), bent tent by tent.

    In a field finer than the tents most of a draw's variance lies within tents, of which nothing is known. Its
    exponential puts mass where that variance is largest. And masses that are taken at the vertices are not quite those
    of a field that is linear between them, which shows where many points leave little uncertainty. The approximation
    itself says what the masses are: they change by `J` times the change of the field, to first order. To each field is
    added the tents' interpolation of the logarithm of that mass over the one found by a rule of integration.

    Parameters
    ----------
    likelihood : MassLikelihood
    mode : (V,) array
    fields : (k, V) array
    tents : (K, V) sparse
        Shares of the vertices' masses in the tents: the likelihood's own, or wider ones.
    rule : (P, V) sparse, (P,) array
        Basis functions at the points of the rule, and the weights of these.
    """
    at_mode = likelihood.vertex_masses(mode)
    masses = tents @ at_mode

    def bent(some: Floats) -> Floats:
        moved = (some - mode) * at_mode
        if likelihood.n is not None:
            moved -= np.outer(moved.sum(axis=1) / likelihood.n, at_mode)
        wanted = np.maximum(masses + (tents @ moved.T).T, LEAST * masses)
        for _ in range(ROUNDS):
            found = (tents @ integrals(some, rule, likelihood.n).T).T
            # Tents that only touch the domain have no mass.
            ratio = np.divide(wanted, found, out=np.ones_like(found), where=found > 0)
            some = some + (tents.T @ np.log(ratio, out=np.zeros_like(ratio), where=ratio > 0).T).T
        return some

    parts = [fields[start : start + TOGETHER] for start in range(0, len(fields), TOGETHER)]
    return np.concatenate([fields[:0], *in_threads(bent, parts)])


def integrals(fields: Floats, rule: "tuple[scipy.sparse.csr_array, Floats]", total: float | None) -> Floats:
    """(k, V) integrals of exp of the fields (k, V) times each basis function, with a total where there is one."""
    basis, weight = rule
    exponents = basis @ fields.T
    if total is not None:
        exponents -= exponents.max(axis=0)
    masses = (basis.T @ (weight[:, None] * np.exp(exponents))).T
    return masses if total is None else masses * (total / masses.sum(axis=1, keepdims=True))
