"""`HeatmapStatistic`: the certified measurement of a heat map, noised counts of adaptively selected pyramid cells.

It is made from public parameters alone; `measure` spends the budget. The noised integers of all measured cells are
public, and everything after them is post-processing (docs/theory/heatmaps.md).
"""

from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from dpppsynth.contract.additive_noise import LatticeStatistic, PrivateStatistic, require_few_made_up
from dpppsynth.contract.parameter_forms import NULL, OBJECT, POSITIVE, TEXT, WHOLE, Form, const, one_among, or_null
from dpppsynth.contract.result import require_heat_map
from dpppsynth.contract.statistic import Parameters, Releasing, Trial, mesh_words, require
from dpppsynth.core.arguments import instance
from dpppsynth.core.errors import InputError
from dpppsynth.core.randomness import RngLike
from dpppsynth.core.types import JsonObject, JsonRead
from dpppsynth.core.wording import Rows
from dpppsynth.mechanisms.heatmap.aggregation import measure_tree, require_exact
from dpppsynth.mechanisms.heatmap.bound import (
    PUBLISHED,
    VARIANTS,
    LevelBudgets,
    grid_depth,
    heatmap,
    layout,
    level_budgets,
    level_scales,
    require_measure,
    require_plain,
)
from dpppsynth.mechanisms.heatmap.persons import Users
from dpppsynth.mechanisms.heatmap.tree import CellTree, grow, pyramid
from dpppsynth.models.recipes import mesh_from_recipe
from dpppsynth.models.regular_meshes import cells_along, grid_cells
from dpppsynth.privacy.bounds import LATTICE_BITS
from dpppsynth.privacy.guarantee import Guarantee
from dpppsynth.privacy.noise import OpenDPLaplace, SeededLaplace, laplace_noise
from dpppsynth.privacy.relations import Relation
from dpppsynth.spatial.domains import Domain
from dpppsynth.spatial.mesh import Floats, Ints, Mesh
from dpppsynth.spatial.patterns import PointPattern, require_match

# Persons that noise may make up on average: more would be no heat map.
MOST_MADE_UP = 1e6


@dataclass(frozen=True, eq=False, repr=False)
class HeatmapStatistic(LatticeStatistic):
    """Noised counts of persons in the cells of a pyramid over a grid of squares.

    Attributes
    ----------
    mesh : PlanarMesh
        Regular squares over the window: the grid.
    expected_n : float or None
        Public guess of the number of persons, which the mechanism does not use.
    epsilon : float
    w : int
        Cells kept per level, where not all are.
    variant : {"two-level", "practical", "theory"}
    decay : float or None
        Of the levels' budgets, as in `level_budgets`.
    user : str or None
        Mark that identifies persons; None where every point is a person.
    finest : int or None
        Cells along a side of the finest level that is counted, a power of two; None takes those of the grid.
    """

    mesh: Mesh
    expected_n: float | None
    epsilon: float
    _: KW_ONLY
    w: int = 20
    variant: str = "practical"
    decay: float | None = None
    user: str | None = "user"
    finest: int | None = None
    basis: ClassVar[str] = "heatmap"
    form: ClassVar[Form] = {
        "basis": const("heatmap"),
        "n": NULL,
        "mesh": OBJECT,
        "lattice_bits": const(LATTICE_BITS),
        "w": WHOLE,
        "variant": one_among(*VARIANTS),
        "decay": or_null(POSITIVE | {"maximum": 1}),
        "user": or_null(TEXT),
        "measure": WHOLE,
    }
    attributes: ClassVar[dict[str, str]] = {"lattice_bits": "bits", "measure": "finest"}
    # Not stated where the finest measured level is the grid.
    optional: ClassVar[frozenset[str]] = frozenset({"measure"})
    capped: ClassVar[bool] = False
    individuals: ClassVar[str] = "persons"
    distance: ClassVar[str] = "earth mover's distance"
    n: None = field(default=None, init=False)

    def __post_init__(self) -> None:
        instance("mesh", self.mesh, Mesh, "models.regular_squares(window, shape=(257, 257)) makes one")
        require_plain(self.variant, self.w, self.decay)
        # Validate the budget before the data are touched.
        require_exact(self.scales)
        self.guarantee.require(self.epsilon, 0.0)
        # Half of the first level's noise is positive, and counts as persons.
        made_up = 4**self.budgets.first * self.noise_scale / 2
        require_few_made_up(made_up, MOST_MADE_UP, self.epsilon, of="persons", remedy="a smaller w")

    def __repr__(self) -> str:
        nx, ny = self.shape
        return f"HeatmapStatistic({nx} x {ny} cells, w={self.w}, {self.variant}, epsilon={self.epsilon:g})"

    @property
    def kept(self) -> int:
        """Cells kept per level: all where levels are counted whole."""
        return self.w if self.variant in PUBLISHED else 4**self.budgets.depth

    @property
    def relation(self) -> Relation:
        """Addition or removal of one person with all their points, or of one point where every point is a person."""
        return self.guarantee.relation

    @property
    def noise_scale(self) -> float:
        """Scale of the first level's Laplace noise, in persons."""
        return self.scales[0] / 2.0**self.bits

    @property
    def bits(self) -> int:
        """Binary digits of the lattice."""
        return LATTICE_BITS

    @cached_property
    def shape(self) -> tuple[int, int]:
        """Cells (nx, ny) along x and y."""
        return cells_along(self.mesh)

    def table_rows(self) -> Rows:
        """Grid, persons, measured levels from coarse to fine, and noise."""
        (nx, ny), user = self.shape, self.user
        own = "every point is a person of its own" if user is None else f"told apart by the mark {user!r}"
        scales = ", ".join(f"{level['noise_scale']:.4g}" for level in self.levels)
        first, *_, last = 2 * self.budgets.levels
        sides = " and ".join(f"{2**level} x {2**level}" for level in self.budgets.levels)
        whole = f"all of {sides} cells over the square grid"
        some = f"levels {first} to {last} of a pyramid, at most {self.w} cells kept of each"
        return [
            ("grid", f"{nx} x {ny} cells: {mesh_words(self.mesh)}"),
            ("persons", f"{own}; each counts once, spread evenly over all points of theirs"),
            ("measured", some if self.variant in PUBLISHED else whole),
            ("noise", f"discrete Laplace of scale {scales} persons, level by level"),
        ]

    def details(self) -> JsonObject:
        """The measured levels, besides the base class's details."""
        found = super().details()
        return {"noise_scale": found.pop("noise_scale"), "levels": self.levels} | found

    @property
    def levels(self) -> list[dict[str, Any]]:
        """Budget of each measured level, and scale of its noise in persons."""
        budgets = self.budgets
        return [
            {"level": level, "epsilon": epsilon, "noise_scale": scale / 2.0**self.bits}
            for level, epsilon, scale in zip(budgets.levels, budgets.epsilons, self.scales, strict=True)
        ]

    @property
    def depth(self) -> int:
        """Depth of the smallest square grid of side `2^depth` that holds the grid in its corner."""
        return grid_depth(self.shape)

    @cached_property
    def places(self) -> Ints:
        """(T, 2) place (i, j) of every element in the grid."""
        return grid_cells(self.mesh)

    @cached_property
    def inside(self) -> Floats:
        """(2^depth, 2^depth) public share of every cell of the square grid that lies inside the window."""
        share = np.zeros((2**self.depth, 2**self.depth))
        share[tuple(self.places.T)] = self.mesh.element_measure
        return share / share.max()

    @cached_property
    def measured_inside(self) -> Floats:
        """Areas inside the window of the cells of the finest measured level, in cells of the grid."""
        return pyramid(self.inside)[self.budgets.depth]

    @property
    def lengths(self) -> tuple[float, float]:
        """Sides of the square grid, in the domain's unit."""
        x0, y0, x1, y1 = self.domain.bounds
        nx, ny = self.shape
        return (x1 - x0) / nx * 2**self.depth, (y1 - y0) / ny * 2**self.depth

    @cached_property
    def budgets(self) -> LevelBudgets:
        """Epsilons of the measured levels."""
        depth = self.depth if self.finest is None else require_measure(self.finest, self.depth)
        return level_budgets(self.epsilon, depth, self.w, variant=self.variant, decay=self.decay)

    @cached_property
    def scales(self) -> tuple[float, ...]:
        """Scales of the measured levels' noise, in lattice units."""
        return level_scales(self.budgets, self.bits)

    @cached_property
    def guarantee(self) -> Guarantee:
        """The bound that `measure` satisfies."""
        return heatmap(self.scales, bits=self.bits, user=self.user)

    @classmethod
    def from_parameters(cls, parameters: Parameters, relation: Relation, domain: Domain, *, mechanism: str) -> Self:
        p = parameters
        split = {name: p[name] for name in ("w", "variant", "decay", "user")} | {"finest": p.get("measure")}
        plan = cls(mesh_from_recipe(p["mesh"], domain), p["expected_n"], p["epsilon"], **split)
        require(relation == plan.relation, "the user is the one that the relation names")
        return plan

    @property
    def size(self) -> int:
        """Number of measured cells on all levels."""
        return sum(self.layout)

    def noise_name(self, *, seeded: bool = False) -> str:
        return (SeededLaplace if seeded else OpenDPLaplace).name

    def rehearsal_run(self, release: Releasing, pattern: PointPattern, rng: np.random.Generator) -> Trial:
        """One run on a surrogate, with distances of the release and of a uniform map to the exact one."""
        # Without an intensity: masses of single fine cells are noise.
        maps = require_heat_map(release(pattern, rng)).exact_maps(pattern)
        return Trial(None, distances=(maps.moved(maps.released), maps.moved(maps.uniform)))

    def prepare(self) -> None:
        """Make the noise of every level, whose sampler confirms what it spends."""
        for scale, epsilon in zip(self.scales, self.budgets.epsilons, strict=True):
            laplace_noise(scale, sensitivity=2**self.bits, epsilon=epsilon)

    def measure(self, pattern: PointPattern, rng: RngLike = None) -> PrivateStatistic[Self]:
        """Spend the budget: count persons and add noise.

        The pattern is marked with `user` and with nothing else, or without marks where every point is a person.
        """
        return self.noised(self.exact_numbers(self.admitted(pattern, rng)), rng)

    @property
    def additive(self) -> bool:
        """Whether every point is a person; of others all points are needed at once."""
        return self.user is None

    def exact_numbers(self, pattern: PointPattern) -> Ints:
        """(side^2,) masses of the smallest cells in lattice units, without noise."""
        return self.users(pattern).lattice(self.bits).ravel()

    def noised(self, exact: Ints, rng: RngLike = None) -> PrivateStatistic[Self]:
        public: dict[str, Any] = {"w": self.kept, "inside": self.measured_inside}
        side = 2**self.depth
        sums = pyramid(exact.reshape(side, side))
        tree = measure_tree(sums, self.budgets, **public, rng=rng, apply_noise=self.apply_noise)
        counts = np.concatenate([level.counts for level in tree.levels])
        # The sampler of all levels, for its name.
        noise = laplace_noise(self.scales[0], sensitivity=2**self.bits, epsilon=self.budgets.epsilons[0], rng=rng)
        return PrivateStatistic(self, np.rint(counts * 2.0**self.bits).astype(np.int64), noise.name, noise.seeded)

    def users(self, pattern: PointPattern) -> Users:
        """Each person's distribution over the grid: every point of theirs counts alike. As sensitive as the points."""
        require_match(pattern, self.domain, None, self.user)
        i, j = self.places[self.mesh.locate(pattern.positions)].T
        marks = np.arange(len(i)) if self.user is None else (pattern.marks or {})[self.user]
        return Users.from_columns(marks, i, j, side=2**self.depth)

    def tree(self, lattice: Ints) -> CellTree:
        """The measured cells, level by level, with their noised counts (released, in lattice units)."""
        counts = iter(np.split(lattice / 2.0**self.bits, np.cumsum(self.layout)[:-1]))
        budgets = self.budgets
        inside = self.measured_inside
        return grow(budgets.first, budgets.depth, self.kept, lambda *_: next(counts), inside, budgets.step)

    def restore(self, data: JsonRead) -> PrivateStatistic[Self]:
        statistic = super().restore(data)
        if len(statistic.lattice) != sum(self.layout):
            msg = "statistic: it has another number of values than a heat map on this grid; the file is not whole."
            raise InputError(msg)
        return statistic

    @property
    def layout(self) -> tuple[int, ...]:
        """Number of measured cells on each level."""
        return layout(self.budgets.first, self.budgets.depth, self.kept, self.budgets.step)
