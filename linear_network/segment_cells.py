"""`SegmentCells`: segments of edges with functions that are constant along them and may jump from one to the next."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpppsynth.core.errors import InputError
from dpppsynth.linear_network.mesh import NetworkMesh
from dpppsynth.spatial.mesh import Floats, Ints


@dataclass(frozen=True, eq=False, repr=False)
class SegmentCells(NetworkMesh):
    """A network mesh whose T segments have one number each, in place of two ends.

    For fields alone: a street need not hold what the one that crosses it does. Nothing is measured on it, since masses
    that jump have no slope; its recipe is that of the segments.
    """

    @classmethod
    def of(cls, mesh: NetworkMesh) -> SegmentCells:
        """The segments of a network mesh."""
        return cls(mesh.domain, mesh.count, mesh.recipe)

    @cached_property
    def segments(self) -> NetworkMesh:
        """The segments with their ends, which tell where they meet."""
        return NetworkMesh(self.domain, self.count, self.recipe)

    @cached_property
    def elements(self) -> Ints:  # type: ignore[override]
        """(T, 1) the segments' own numbers."""
        return np.arange(len(self.edge))[:, None]

    @cached_property
    def positions(self) -> Floats:
        """(T, 2) positions of the segments' middles."""
        return np.column_stack([self.edge, (self.start + self.end) / 2])

    @cached_property
    def vertices(self) -> Floats:  # type: ignore[override]
        """(T, 2) coordinates of the segments' middles."""
        return self.domain.coordinates(self.positions)

    def weights(self, element: Ints, positions: Floats) -> Floats:
        """(n, 1) ones."""
        return np.ones((len(element), 1))

    @property
    def gradients(self) -> Floats:
        """Refused: there is no slope between segments."""
        msg = "mesh: tents need functions that do not jump; take a network_mesh or a trace_mesh."
        raise InputError(msg)
