"""`MovedCounts`: counts of points that were each moved by planar Laplace noise, on a public lattice.

The moved points are private by Theorem M (docs/theory/bounded_error.md), along streets as well (moved_points.md);
counting them looks at nothing else, or at marks that are public.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from dpppsynth.contract.additive_noise import LatticeStatistic, PrivateStatistic
from dpppsynth.contract.parameter_forms import NULL, OBJECT, POSITIVE, WHOLE, Form, const
from dpppsynth.contract.statistic import Parameters, require
from dpppsynth.core.arguments import instance, positive, whole
from dpppsynth.core.errors import InputError
from dpppsynth.core.randomness import RngLike, generator
from dpppsynth.core.rounding import multiples
from dpppsynth.core.units import short_unit
from dpppsynth.core.wording import Rows
from dpppsynth.linear_network import LinearNetwork
from dpppsynth.models.recipes import around, mesh_from_recipe
from dpppsynth.privacy.catalogue import Code
from dpppsynth.privacy.guarantee import Guarantee
from dpppsynth.privacy.planar_moves import RELATION, moved_points
from dpppsynth.privacy.planar_noise import PlanarNoise, moves_name
from dpppsynth.privacy.relations import AlphaNeighbours, Relation
from dpppsynth.spatial.domains import Domain
from dpppsynth.spatial.mesh import Floats, Ints, Mesh
from dpppsynth.spatial.patterns import PointPattern

# Length in scales of the noise, 1 / rate, that one move in a million exceeds: (1 + t) e^(-t) is 1e-6 there.
LONGEST = 16.7
# Nodes of a lattice with its extension, at most.
MOST_NODES = 2**20
# Moved points that are counted at once.
BATCH = 2**20


@dataclass(frozen=True, eq=False, repr=False)
class MovedCounts(LatticeStatistic):
    """Counts of moved points at the nodes of a lattice over the domain's box, and of its extension on every side.

    Every point is moved by planar Laplace noise and counted at the nearest node. The extension holds all but one move
    in a million, or is as wide as the domain's extent where that is less; what lies further is counted at its border.

    Attributes
    ----------
    mesh : Mesh
        Regular triangulation of a window, or of a network's box: its vertices are nodes of the lattice.
    relation : AlphaNeighbours
    n : int
        Public number of points.
    epsilon : float
        Budget: of all points of a person together, each moved by alpha at most.

    Raises
    ------
    InputError
        Where points of the domain cannot be moved exactly, or the lattice has too many nodes.
    """

    mesh: Mesh
    relation: AlphaNeighbours
    n: int
    epsilon: float
    keeps_cap: ClassVar[bool] = True
    basis: ClassVar[str] = "moved counts"
    bits: ClassVar[int] = 0
    expected_n: ClassVar[None] = None
    form: ClassVar[Form] = {
        "basis": const("moved counts"),
        "mesh": OBJECT,
        "n": WHOLE,
        "expected_n": NULL,
        "rate": POSITIVE,
        "extension": WHOLE,
    }
    attributes: ClassVar[Mapping[str, str]] = {}

    def __post_init__(self) -> None:
        instance("relation", self.relation, AlphaNeighbours, RELATION)
        whole("n", self.n, 1, most=2**53)
        positive("epsilon", self.epsilon)
        require_lattice(self.mesh)
        self.noise  # noqa: B018 - what cannot be moved exactly is refused before the data are touched
        if self.size > MOST_NODES:
            (nx, ny), r = self.shape, self.extension
            levels = f", times {self.levels} kinds of points" if self.levels > 1 else ""
            msg = (
                f"mesh: {nx} x {ny} nodes, and {r} more on every side for the noise{levels}, are more than "
                f"{MOST_NODES}; take a larger spacing."
            )
            raise InputError(msg)
        self.guarantee.require(self.epsilon, 0.0)

    def __repr__(self) -> str:
        return f"MovedCounts({self.mesh!r}, {self.relation!r}, epsilon={self.epsilon:g})"

    @property
    def box(self) -> tuple[float, float, float, float]:
        """Bounds (x0, y0, x1, y1) of the lattice without its extension."""
        return around(self.domain) if isinstance(self.domain, LinearNetwork) else self.domain.bounds

    @cached_property
    def noise(self) -> PlanarNoise:
        """The noise on every point."""
        return PlanarNoise(self.domain, self.relation, self.epsilon)

    @property
    def rate(self) -> float:
        """Epsilon of one point per unit of length on the map."""
        return self.noise.rate

    @property
    def shape(self) -> tuple[int, int]:
        """Nodes along x and y over the box."""
        nx, ny = self.mesh.recipe["shape"]
        return int(nx), int(ny)

    @property
    def spacing(self) -> tuple[float, float]:
        """Distance of one node from the next along x and y."""
        x0, y0, x1, y1 = self.box
        nx, ny = self.shape
        return (x1 - x0) / (nx - 1), (y1 - y0) / (ny - 1)

    @cached_property
    def extension(self) -> int:
        """Nodes beyond the box on every side."""
        return nodes_beyond(1 / self.rate, self.domain, max(self.spacing))

    @property
    def sides(self) -> tuple[int, int]:
        """Nodes along x and y with the extension."""
        nx, ny = self.shape
        return nx + 2 * self.extension, ny + 2 * self.extension

    @property
    def levels(self) -> int:
        """Numbers at each node: one, or one for each kind of public marks."""
        return 1

    @property
    def size(self) -> int:
        return self.levels * math.prod(self.sides)

    @property
    def assumed(self) -> tuple[Code, ...]:
        """Assumptions beside those of all moved points."""
        return ()

    @cached_property
    def guarantee(self) -> Guarantee:
        lengths = {"rate": self.rate, "bound": math.inf, "farthest": self.domain.diameter}
        return moved_points(self.relation, **lengths, domain=self.domain, assumed=self.assumed)

    @classmethod
    def from_parameters(cls, parameters: Parameters, relation: Relation, domain: Domain, *, mechanism: str) -> Self:
        p = parameters
        shape = p["mesh"].get("shape")
        sides = isinstance(shape, list) and all(type(side) is int for side in shape)
        # Before a mesh is made of them.
        require(sides and math.prod(shape) <= MOST_NODES, f"the lattice has at most {MOST_NODES} nodes")
        near: AlphaNeighbours = instance("relation", relation, AlphaNeighbours, RELATION)
        more = cls.further(p)
        return cls(mesh_from_recipe(p["mesh"], domain), near, p["n"], p["epsilon"], **more)

    @classmethod
    def further(cls, parameters: Parameters) -> dict[str, Any]:
        """Attributes that a statistic derived from this one has beside its own, from public parameters."""
        return {}

    def measure(self, pattern: PointPattern, rng: RngLike = None) -> PrivateStatistic[Self]:
        secret, seeded = generator(rng), rng is not None
        pattern = self.admitted(pattern, secret if seeded else None)
        moved = self.apply_noise(self.noise.sampler(secret), self.domain.coordinates(pattern.positions))
        counts = self.counted(moved, self.levels_of(pattern))
        return PrivateStatistic(self, counts, self.noise_name(seeded=seeded), seeded)

    def levels_of(self, pattern: PointPattern) -> Ints:
        """(n,) level of each point, from public marks alone."""
        return np.zeros(len(pattern), dtype=np.int64)

    def counted(self, moved: Ints, levels: Ints | int = 0) -> Ints:
        """(size,) numbers of moved points, level by level, at each node in C order.

        Parameters
        ----------
        moved : (n, 2) array
            Places on the public grid.
        levels : (n,) array or int
        """
        levels = np.broadcast_to(levels, len(moved))
        found, nodes = np.zeros(self.size, dtype=np.int64), math.prod(self.sides)
        for part in (slice(start, start + BATCH) for start in range(0, len(moved), BATCH)):
            at = self.node_of(multiples(moved[part], self.noise.step))
            found += np.bincount(levels[part] * nodes + at, minlength=self.size)
        return found

    def node_of(self, positions: Floats) -> Ints:
        """(n,) nearest nodes of positions (n, 2), in C order: along x first, y running faster."""
        i, j = (np.rint((positions - self.box[:2]) / self.spacing) + self.extension).T
        nx, ny = self.sides
        column, row = np.clip(i, 0, nx - 1).astype(np.int64), np.clip(j, 0, ny - 1).astype(np.int64)
        return column * ny + row

    @property
    def nodes(self) -> Floats:
        """(size, 2) positions of the nodes of all levels, in C order."""
        lines = (
            low + (np.arange(count) - self.extension) * step
            for low, count, step in zip(self.box[:2], self.sides, self.spacing, strict=True)
        )
        return np.tile(np.stack(np.meshgrid(*lines, indexing="ij"), axis=-1).reshape(-1, 2), (self.levels, 1))

    def noise_name(self, *, seeded: bool = False) -> str:
        return moves_name(seeded=seeded)

    def validate_released(self, lattice: Ints) -> None:
        # Whole numbers of Python: forged ones may add up to n in 64 bits.
        require(bool((lattice >= 0).all()) and sum(lattice.tolist()) == self.n, "counts are of n points, none negative")

    def table_rows(self) -> Rows:
        (nx, ny), unit = self.shape, short_unit(self.domain.unit)
        kind = "streets" if isinstance(self.domain, LinearNetwork) else "window"
        apart = " x ".join(f"{side:.4g}" for side in self.spacing)
        return [
            ("measured", f"counts of moved points at {nx} x {ny} nodes, {apart} {unit} apart"),
            (f"beyond the {kind}", f"{self.extension} more nodes on every side"),
            ("noise", self.noise.words),
        ]


def nodes_beyond(scale: float, domain: Domain, spacing: float) -> int:
    """Nodes of a lattice beyond a domain's box on every side, for noise of a scale on the map."""
    return max(1, math.ceil(min(LONGEST * scale, domain.extent) / spacing))


def require_lattice(mesh: Mesh) -> None:
    """Refuse a mesh whose vertices are no nodes of a lattice over a domain's box, with an InputError."""
    instance("mesh", mesh, Mesh, "models.regular_triangulation(window, spacing=100.0) makes one")
    if mesh.recipe.get("builder") not in ("regular", "trace") or mesh.kind != "triangle":
        msg = (
            "mesh: moved points are counted at the vertices of regular triangles, such as "
            "models.regular_triangulation(window, spacing=100.0) makes, and trace_mesh(network, spacing=100.0)."
        )
        raise InputError(msg)
