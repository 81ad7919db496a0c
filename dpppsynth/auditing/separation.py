"""Distinguishability of two places under a mechanism: the change of its statistic that the noise has to hide.

Each kind of mechanism has a measure of its own; only its order matters, which picks the hardest pair to audit.
"""

from typing import Any

import numpy as np

from dpppsynth.contract.additive_noise import StatisticPlan
from dpppsynth.mechanisms.kernel.plan import DiffusionPlan, KernelPlan
from dpppsynth.mechanisms.lgcp.field_plan import FieldStatisticPlan
from dpppsynth.mechanisms.lgcp.posterior_sampling import DrawPlan
from dpppsynth.mechanisms.planar_laplace.plan import MovedPlan
from dpppsynth.spatial.gaussian_kernel import hull, mass
from dpppsynth.spatial.mesh import Floats, Mesh

# Rows of a stochastic matrix that are compared at a time.
BLOCK = 2000
# Weight of a move along both axes relative to one along a single axis, in which one coordinate tells nothing.
ASLANT = 0.01


def separation(plan: Any, first: Floats, second: Floats) -> Floats:
    """(P,) how much moving a point from one place to the other changes, at positions (P, 2) and (P, 2).

    Cells: 2 where they differ. Tents: the Kullback-Leibler divergence of the noised masses, which at equal L1 distance
    is larger for a change of few masses. Fields: the prior standard deviation of `Y(x) - Y(x')`. Heat flow: the L1
    distance of the laws of a child. Kernels: the distance moved, times the share of the kernel that is not cut off.
    Moved points: the distance, and among equal ones that which changes both coordinates.
    """
    match plan:
        case StatisticPlan(basis="cells"):
            return 2.0 * (plan.mesh.locate(first) != plan.mesh.locate(second))
        case StatisticPlan():
            return _divergence(abs(plan.mesh.basis(first) - plan.mesh.basis(second)) / plan.noise_scale)
        case FieldStatisticPlan() | DrawPlan():
            return _increment_sd(plan, first, second)
        case DiffusionPlan():
            return _children_apart(plan, first, second)
        case KernelPlan():
            window = hull(plan.domain)
            inside = [mass(each, window, plan.bandwidth) for each in (first, second)]
            return np.asarray(np.hypot(*(second - first).T) * np.minimum(*inside))
        case MovedPlan():
            along = np.abs(second - first)
            return np.asarray(np.hypot(*along.T) + ASLANT * along.min(axis=1))
        case _:
            apart = plan.domain.coordinates(second) - plan.domain.coordinates(first)
            return np.asarray(np.hypot(*apart.T))


def presence(plan: Any, at: Floats) -> Floats:
    """(P,) how much a point at positions (P, 2) changes by being there at all."""
    match plan:
        case StatisticPlan(basis="tents"):
            return _divergence(plan.mesh.basis(at) / plan.noise_scale)
        case FieldStatisticPlan() | DrawPlan():
            element, weight = plan.mesh.values(at)
            return _sd(plan.covariance.matrix(plan.mesh), plan.mesh.elements[element], weight)
        case _:
            return np.ones(len(at))


def _divergence(change: Any) -> Floats:
    """(P,) of sparse changes (P, V), in scales of the Laplace noise: `d + e^-d - 1` for each mass."""
    change.data += np.expm1(-change.data)
    return np.asarray(change.sum(axis=1), dtype=np.float64)


def _increment_sd(plan: Any, first: Floats, second: Floats) -> Floats:
    mesh: Mesh = plan.mesh
    (one, here), (other, there) = mesh.values(first), mesh.values(second)
    vertices = np.concatenate([mesh.elements[one], mesh.elements[other]], axis=1)
    return _sd(plan.covariance.matrix(mesh), vertices, np.concatenate([here, -there], axis=1))


def _sd(covariance: Floats, vertices: Any, weight: Floats) -> Floats:
    """(P,) standard deviations of sums of a field's values at vertices (P, k), weighted (P, k)."""
    local = covariance[vertices[:, :, None], vertices[:, None, :]]
    return np.sqrt(np.clip(np.einsum("pi,pij,pj->p", weight, local, weight), 0, None))


def _children_apart(plan: DiffusionPlan, first: Floats, second: Floats) -> Floats:
    pairs = np.column_stack([plan.mesh.locate(first), plan.mesh.locate(second)])
    different, where = np.unique(pairs, axis=0, return_inverse=True)
    apart = np.empty(len(different))
    for start in range(0, len(different), BLOCK):
        i, j = different[start : start + BLOCK].T
        apart[start : start + BLOCK] = np.abs(plan.matrix[i] - plan.matrix[j]).sum(axis=1)
    return apart[where.ravel()]
