"""Fields at the nodes of a window's lattice behind counts of moved points: the nodes, and the base of estimators."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import numpy as np

from dpppsynth.contract.additive_noise import LatticeStatistic, PrivateStatistic
from dpppsynth.core.wording import either
from dpppsynth.inference.field_inference import opened_values
from dpppsynth.inference.judged_inference import JudgedInference
from dpppsynth.inference.moved_runs import MOST_VALUES
from dpppsynth.models.moved_channels import in_blocks
from dpppsynth.models.moved_posterior import MovedLikelihood, moved_likelihood
from dpppsynth.spatial.mesh import Floats, Ints, Mesh

TINY = 1e-300


@dataclass(frozen=True, eq=False)
class MovedLattice:
    """Nodes over the bounding box of a window, at some of which a mesh has its vertices.

    Attributes
    ----------
    mesh : Mesh
        Regular triangulation of the window.
    """

    mesh: Mesh

    @property
    def shape(self) -> tuple[int, int]:
        """Nodes along both axes."""
        nx, ny = self.mesh.recipe["shape"]
        return nx, ny

    @property
    def spacing(self) -> tuple[float, float]:
        """Distances of the nodes along both axes."""
        x0, y0, x1, y1 = self.mesh.domain.bounds
        nx, ny = self.shape
        return (x1 - x0) / (nx - 1), (y1 - y0) / (ny - 1)

    @cached_property
    def nodes(self) -> Ints:
        """(V,) nodes, in C order, at which the vertices are."""
        i, j = np.rint((self.mesh.vertices - self.mesh.domain.bounds[:2]) / self.spacing).astype(np.int64).T
        return np.asarray(i * self.shape[1] + j)

    def filled(self, values: Floats) -> Floats:
        """(..., nx, ny) values (..., V) of the vertices at their nodes, and 0 at nodes without one."""
        lattice = np.zeros((*values.shape[:-1], self.shape[0] * self.shape[1]))
        lattice[..., self.nodes] = values
        return lattice.reshape(*values.shape[:-1], *self.shape)

    def averages(self, columns: Floats, measure: Floats, spacing: tuple[float, float]) -> Floats:
        """(B, p) means of columns (V, p) over blocks of nodes that are `spacing` apart, weighted by a measure (V,)."""
        side = round(spacing[0] / self.spacing[0])
        nx, ny = (-(-nodes // side) for nodes in self.shape)

        def summed(values: Floats) -> Floats:
            return in_blocks(self.filled(values), (0, 0), (nx, ny), side).ravel()

        weight = np.maximum(summed(measure), TINY)
        return np.column_stack([summed(measure * column) / weight for column in columns.T])


class LatticeInference(JudgedInference):
    """Base of estimators by a field of a window, or by one of each level, behind counts of moved points."""

    @cached_property
    def lattice(self) -> MovedLattice:
        """Nodes at which moved points were counted."""
        return MovedLattice(self.places)

    @property
    def smaller(self) -> str:
        vertices = MOST_VALUES // math.prod(self.leading)
        return f", or plan with a mesh of {vertices} vertices at most ({either('mesh=', '--spacing')})"

    def likelihood(self, statistic: PrivateStatistic[LatticeStatistic], side: int = 1) -> MovedLikelihood:
        plan = cast(Any, statistic.definition)
        wide = [nodes + 2 * plan.extension for nodes in self.lattice.shape]
        return moved_likelihood(
            statistic.lattice.reshape(*self.leading, *wide),
            self.lattice.filled(self.measure.reshape(*self.leading, -1)),
            rate=plan.rate,
            spacing=self.lattice.spacing,
            extension=plan.extension,
            side=side,
        )

    def columns(self, likelihood: MovedLikelihood) -> Floats | None:
        """Covariates at the nodes of a likelihood, times the standard deviation of their effects; means over blocks."""
        design = self.covariates
        if design is None:
            return None
        measure = self.measure.reshape(-1, len(self.places.vertices)).sum(axis=0)
        return self.lattice.averages(opened_values(design) * design.prior_sd, measure, likelihood.spacing)

    def at_vertices(self, fields: Floats) -> Floats:
        lead = fields.shape[:-1]
        return fields.reshape(*lead, *self.leading, -1)[..., self.lattice.nodes].reshape(*lead, -1)
