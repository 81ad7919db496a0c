"""Intensities of points with marks: log-linear in space and time for each type, and means of such."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from dpppsynth.core.arguments import one_of, real_array
from dpppsynth.core.errors import InputError
from dpppsynth.spatial.domains import Domain
from dpppsynth.spatial.mark_space import Marks, Times
from dpppsynth.spatial.marked_offset import AnyOffset, MarkedOffset
from dpppsynth.spatial.mesh import Floats, Ints, Mesh, chunks, gathered_rule, gauss_rule, mean_exp_segment
from dpppsynth.spatial.offset import Offset
from dpppsynth.spatial.second_order import checked_coordinates

# Points along a side of an element, and between two instants, at which exponentials of fields are integrated.
POINTS = 2


@dataclass(frozen=True, eq=False)
class MarkedMesh:
    """Product of types, hats in time and tents in space; values stand in this order.

    Attributes
    ----------
    space : Mesh
    marks : Marks
    offset : Offset or MarkedOffset, optional
        Public base intensity of places: the same for all types and times, or one for each.
    """

    space: Mesh
    marks: Marks
    offset: AnyOffset | None = None

    @property
    def domain(self) -> Domain:
        """Public window or network."""
        return self.space.domain

    @property
    def recipe(self) -> dict[str, Any]:
        """Recipe of the mesh in space."""
        return self.space.recipe

    @property
    def shape(self) -> tuple[int, int, int]:
        """Numbers of types, hats and vertices."""
        return (*self.marks.shape, len(self.space.vertices))

    @cached_property
    def vertices(self) -> Floats:
        """(C K V, 2) coordinates of all values."""
        types, hats, _ = self.shape
        return np.tile(self.space.vertices, (types * hats, 1))

    @cached_property
    def labels(self) -> dict[str, tuple[NDArray[Any], str]]:
        """(C K V,) number of the type, and instant, of each value, and what they are; only those that points have."""
        shape, types, times, found = self.shape, self.marks.types, self.marks.times, {}
        numbers, instants, _ = (each.ravel() for each in np.indices(shape, dtype="<i4"))
        if types is not None:
            named = ", ".join(f"{k} {each}" for k, each in enumerate(types.values))
            found["type"] = numbers, f"{types.name}: {named}"
        if times is not None:
            unit = f" in {times.unit}" if times.unit else ""
            found["time"] = times.nodes.astype("<f8")[instants], f"{times.name}{unit}"
        return found

    @cached_property
    def layers(self) -> list[tuple[Offset | None, Floats]]:
        """Public offsets in space, and the share (C, M) that each has of every type and while between instants."""
        if isinstance(self.offset, MarkedOffset):
            return list(zip(self.offset.parts, self.offset.shares, strict=True))
        times = self.marks.times
        return [(self.offset, np.ones((self.shape[0], 1 if times is None else times.whiles)))]

    def base(self, xy: Floats) -> Floats:
        """(C, M, n) offset at coordinates (n, 2), of every type and while; ones where there is none."""
        parts = (share[:, :, None] * (np.ones(len(xy)) if each is None else each(xy)) for each, share in self.layers)
        return np.asarray(sum(parts), dtype=np.float64)

    @cached_property
    def nearby(self) -> Floats:
        """(C, M, V) integrals over space of the tents times the offset, of every type and while."""
        parts = (
            share[:, :, None] * self.space.integrate(self.space.weighted_pieces(each)) for each, share in self.layers
        )
        return np.asarray(sum(parts), dtype=np.float64)

    @cached_property
    def measure(self) -> Floats:
        """(C K V,) integrals of the products of basis functions, times the offset."""
        return np.einsum("cmv,mk->ckv", self.nearby, hats_between(self.marks.times)).ravel()

    @cached_property
    def rule(self) -> tuple[sp.csr_array, Floats]:
        """Basis functions (P, C K V) at the points of a rule of integration, and the points' weights (P,)."""
        time, length = time_rule(self.marks.times)
        points = len(length) // self.layers[0][1].shape[1]
        bases, weights = [], []
        for offset, share in self.layers:
            space, area = self._rule_in_space(offset)
            at = (np.repeat(share, points, axis=1) * length).ravel()
            used = at > 0
            instants = sp.kron(sp.eye_array(self.shape[0]), time, format="csr")[used]
            bases.append(sp.kron(instants, space, format="csr"))
            weights.append(np.kron(at[used], area))
        return sp.vstack(bases, format="csr"), np.concatenate(weights)

    def _rule_in_space(self, offset: Offset | None) -> tuple[sp.csr_array, Floats]:
        """Basis functions (P, V) at the points of a rule in space, and the points' weights (P,), times an offset."""
        pieces = self.space.weighted_pieces(offset)
        if self.space.elements.shape[1] == 1:
            # A number of each segment: its integral is known.
            return sp.eye_array(len(self.space.vertices), format="csr"), self.space.integrate(pieces)
        return (gauss_rule if offset is None else gathered_rule)(self.space, pieces, POINTS)


def time_basis(times: Times | None, at: Floats) -> sp.csr_array:
    """Sparse (n, K) values of the hats at times (n,); ones where there are no times."""
    if times is None:
        return sp.csr_array(np.ones((len(at), 1)))
    hat, value = times.values(at)
    rows = np.arange(0, 2 * len(at) + 1, 2)
    return sp.csr_array((value.ravel(), hat.ravel(), rows), shape=(len(at), times.hats))


def time_rule(times: Times | None) -> tuple[sp.csr_array, Floats]:
    """Hats (P, K) at the points of a Gauss-Legendre rule between the instants, and the points' weights (P,)."""
    if times is None:
        return time_basis(None, np.zeros(1)), np.ones(1)
    x, w = np.polynomial.legendre.leggauss(POINTS)
    at = times.start + times.spacing * (np.arange(times.whiles)[:, None] + (x + 1) / 2)
    return time_basis(times, at.ravel()), np.tile(w / 2 * times.spacing, times.whiles)


def hats_between(times: Times | None) -> Floats:
    """(M, K) integrals of the hats over each while between two instants; one where there are no times."""
    if times is None:
        return np.ones((1, 1))
    sooner = np.arange(times.whiles)
    found = np.zeros((times.whiles, times.hats))
    found[sooner, sooner] = found[sooner, (sooner + 1) % times.hats] = times.spacing / 2
    return found


# Standard normal numbers in the middle of equally likely parts: of ten, so that the ends of 90 % are met.
PARTS = 10
LIKELY = np.array([NormalDist().inv_cdf((k + 0.5) / PARTS) for k in range(PARTS)])
# Candidates at once: where few people live in most places, few are kept.
MOST_TRIES = 1_000_000
# Positions (n, 2), type numbers (n,) and times (n,).
Points = tuple[Floats, Ints, Floats]


@dataclass(frozen=True, eq=False, repr=False)
class MarkedIntensity:
    """Expected points per unit area (or length), per unit of time and for each type.

    Attributes
    ----------
    grid : MarkedMesh
    log_values : (C, K, V) array
        Logarithm, of the ratio to the grid's offset where there is one, at all types, instants and vertices; linear
        between instants, and between vertices.
    """

    grid: MarkedMesh
    log_values: Floats

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.grid.space!r}, {self.grid.marks!r})"

    @property
    def mesh(self) -> Mesh:
        """Mesh in space."""
        return self.grid.space

    def __call__(
        self,
        xy: ArrayLike,
        *,
        time: ArrayLike | None = None,
        type: str | None = None,  # noqa: A002
        during: tuple[float, float] | None = None,
    ) -> Floats:
        """(n,) values at coordinates (n, 2).

        Parameters
        ----------
        xy : (n, 2) array_like
            A point outside the domain takes the value of the nearest element.
        time : float or (n,) array_like, optional
            Then per unit of time as well; else over all times.
        type : str, optional
            Then of this type alone; else of all.
        during : (float, float), optional
            Then over the times from the first to the second, in place of all; not with `time`.
        """
        positions = self.mesh.domain.positions(checked_coordinates(xy))
        return self.at(*self.mesh.values(positions), positions, time=time, type=type, during=during)

    def at(
        self,
        element: Ints,
        weight: Floats,
        positions: Floats,
        *,
        time: ArrayLike | None = None,
        type: str | None = None,  # noqa: A002
        during: tuple[float, float] | None = None,
    ) -> Floats:
        """(n,) values at positions in the given elements; other parameters as in a call."""
        kinds = chosen_types(self.grid, type)
        logs = np.einsum("nk,ctnk->ctn", weight, self.log_values[kinds][:, :, self.mesh.elements[element]])
        base = self.grid.base(self.mesh.domain.coordinates(positions))[kinds]
        when = When.of(self.grid, time, during, len(element))
        return np.asarray(when.values(self.grid.marks.times, logs, base).sum(axis=0))

    @cached_property
    def masses(self) -> Floats:
        """(C, K, V) expected points near each type, instant and vertex."""
        basis, weight = self.grid.rule
        near = basis.T @ (weight * np.exp(basis @ self.log_values.ravel()))
        return np.asarray(near).reshape(self.log_values.shape)

    @property
    def total(self) -> float:
        """Expected number of points."""
        return float(self.masses.sum())

    def draw_points(self, n: int, rng: np.random.Generator) -> Points:
        """Positions (n, 2), type numbers (n,) and times (n,) of n independent points, exact by rejection."""
        bound, cells = self._bounds, self._bounds.shape
        chance = bound.ravel() / bound.sum()
        parts, have = [self._thin(tuple(np.empty((3, 0), dtype=np.int64)), rng)], 0
        while have < n:
            tries = min(MOST_TRIES, int((n - have) * bound.sum() / self.total * 1.1) + 16)
            positions, kinds, times = self._thin(np.unravel_index(rng.choice(chance.size, tries, p=chance), cells), rng)
            # Candidates come in random order, so keeping the first ones biases nothing.
            parts.append((positions[: n - have], kinds[: n - have], times[: n - have]))
            have += len(parts[-1][1])
        return joined(parts)

    @cached_property
    def _bounds(self) -> Floats:
        """(C, cells in time, Q) upper bounds of the expected points in each type, time between instants and piece."""
        times, pieces = self.grid.marks.times, self.mesh.pieces
        corner = self.log_values[:, :, self.mesh.elements].max(axis=-1)
        if times is not None:
            corner = np.maximum(corner, np.roll(corner, -1, axis=1))
            corner = corner if times.periodic else corner[:, :-1]
        length = 1.0 if times is None else times.spacing
        count = len(self.mesh.elements)
        highest = sum(
            share[:, :, None] * np.broadcast_to(1.0 if each is None else each.bounds(self.mesh), (count,))
            for each, share in self.grid.layers
        )
        return np.asarray((highest * np.exp(corner))[:, :, pieces.element] * (pieces.weight * length))

    def _thin(self, cell: tuple[Ints, ...], rng: np.random.Generator) -> Points:
        """Uniform candidates in types, times and pieces, kept in proportion to the intensity and inside the domain."""
        kind, interval, piece = cell
        mesh, times = self.mesh, self.grid.marks.times
        cuts = np.sort(rng.random((mesh.pieces.sides - 1, len(piece))), axis=0)
        share = np.diff(cuts, axis=0, prepend=0.0, append=1.0)
        positions = mesh.domain.on_grid(np.einsum("cn,ncd->nd", share, mesh.pieces.corners[piece]))
        later = rng.random(len(piece))
        element = mesh.pieces.element[piece]
        weight = np.clip(mesh.weights(element, positions), 0, 1)
        nodes = mesh.elements[element]
        after = interval if times is None else (interval + 1) % times.hats
        sooner, later_on = (self.log_values[kind[:, None], at[:, None], nodes] for at in (interval, after))
        log = np.einsum("nk,nk->n", weight, sooner + later[:, None] * (later_on - sooner))
        length = 1.0 if times is None else times.spacing
        value = np.exp(log) * mesh.pieces.weight[piece] * length
        if self.grid.offset is not None:
            xy = mesh.domain.coordinates(positions)
            value *= sum(share[kind, interval] * (each(xy) if each else 1.0) for each, share in self.grid.layers)
        kept = rng.random(len(piece)) * self._bounds[cell] < value
        kept[kept] = mesh.domain.holds(positions[kept])
        at = np.zeros(len(piece)) if times is None else times.start + times.spacing * (interval + later)
        return positions[kept], kind[kept], at[kept]


@dataclass(frozen=True, eq=False, repr=False)
class MarkedMean:
    """Average of intensities, each given by its logarithms.

    Attributes
    ----------
    grid : MarkedMesh
    fields : (k, C K V) array of float32
    between : (k,) array, optional
        Standard deviations, on the log scale, of what each has at a place beside its values at vertices: quantiles
        have it, averages do not.
    """

    grid: MarkedMesh
    fields: NDArray[np.float32]
    between: Floats | None = None

    def draw(self, k: int) -> MarkedIntensity:
        """The k-th intensity."""
        return MarkedIntensity(self.grid, np.asarray(self.fields[k], dtype=np.float64).reshape(self.grid.shape))

    def draws(self) -> Iterator[MarkedIntensity]:
        """All intensities."""
        return (self.draw(k) for k in range(len(self.fields)))

    def __call__(self, xy: ArrayLike, **marks: Any) -> Floats:
        """(n,) average values at coordinates (n, 2); parameters as in `MarkedIntensity`."""
        found = [each.mean(axis=0) for each in self._of_draws(checked_coordinates(xy), **marks)]
        return np.concatenate([np.empty(0), *found])

    def quantiles(self, xy: ArrayLike, levels: Floats, **marks: Any) -> Floats:
        """(len(levels), n) quantiles of the values; `marks` are those of a call."""
        found = [
            np.quantile(self._rough(each), levels, axis=0) for each in self._of_draws(checked_coordinates(xy), **marks)
        ]
        return np.concatenate([np.empty((len(levels), 0)), *found], axis=1)

    def _rough(self, values: Floats) -> Floats:
        """(k r, m) values of draws (k, m), times r equally likely factors of mean 1 for what lies between vertices."""
        if self.between is None:
            return values
        sd = self.between[:, None]
        factors = np.exp(sd * LIKELY - sd**2 / 2)
        return np.asarray((values[:, None] * factors[:, :, None]).reshape(-1, values.shape[1]))

    def _of_draws(
        self,
        xy: Floats,
        *,
        time: ArrayLike | None = None,
        type: str | None = None,  # noqa: A002
        during: tuple[float, float] | None = None,
    ) -> Iterator[Floats]:
        """(k, m) values of all draws at some places after the other, which are looked up once."""
        mesh, (_, hats, _) = self.grid.space, self.grid.shape
        kinds, when = chosen_types(self.grid, type), When.of(self.grid, time, during, len(xy))
        positions = mesh.domain.positions(xy)
        element, weight = mesh.values(positions)
        fields = self.fields.reshape(len(self.fields), *self.grid.shape)
        for part in chunks(len(positions), len(fields) * hats * mesh.elements.shape[1]):
            nodes, now = mesh.elements[element[part]], when.part(part)
            base = self.grid.base(mesh.domain.coordinates(positions[part]))
            found = np.zeros((len(fields), len(nodes)))
            for kind in kinds:
                logs = np.einsum("nk,dtnk->dtn", weight[part], fields[:, kind][:, :, nodes])
                found += now.values(self.grid.marks.times, logs, base[[kind]])
            yield found

    @cached_property
    def totals(self) -> Floats:
        """(k,) expected numbers of points."""
        basis, weight = self.grid.rule
        return np.array([weight @ np.exp(basis @ field) for field in np.asarray(self.fields, dtype=np.float64)])

    @property
    def total(self) -> float:
        """Average of the expected numbers of points."""
        return float(self.totals.mean())

    def draw_points(self, n: int, rng: np.random.Generator) -> Points:
        """Points of the average: each of a draw of its own."""
        counts = rng.multinomial(n, self.totals / self.totals.sum())
        parts = [self.draw(k).draw_points(int(count), rng) for k, count in enumerate(counts) if count or not k]
        positions, kinds, times = joined(parts)
        order = rng.permutation(n)
        return positions[order], kinds[order], times[order]


def while_of(times: Times | None, at: Floats) -> Ints:
    """(n,) numbers of the whiles that times (n,) lie in; 0 where there are no times."""
    return np.zeros(len(at), dtype=np.int64) if times is None else times.values(at)[0][:, 0]


def over_whiles(times: Times | None, logs: Floats) -> Floats:
    """(C, M, n) integrals over each while of exp of logarithms (C, K, n), which are linear between instants."""
    if times is None:
        return np.exp(logs)
    later = np.roll(logs, -1, axis=1) if times.periodic else logs[:, 1:]
    sooner = logs if times.periodic else logs[:, :-1]
    pairs = np.stack([sooner, later], axis=-1)
    return times.spacing * mean_exp_segment(pairs.reshape(-1, 2)).reshape(sooner.shape)


def over_period(times: Times, logs: Floats, base: Floats, start: float, end: float) -> Floats:
    """(C, n) integrals over a period of exp of logarithms (C, K, n), linear between instants, times a base (C, M, n).

    The base is even within each of the M whiles between two instants.
    """
    cuts = np.r_[start, times.nodes[(times.nodes > start) & (times.nodes < end)], end]
    basis = time_basis(times, cuts).toarray()
    used = basis.any(axis=0)
    at = np.einsum("mk,ckn->cmn", basis[:, used], logs[:, used])
    means = mean_exp_segment(np.stack([at[:, :-1], at[:, 1:]], axis=-1).reshape(-1, 2)).reshape(at[:, 1:].shape)
    since = while_of(times, (cuts[1:] + cuts[:-1]) / 2)
    return np.asarray((np.diff(cuts)[:, None] * base[:, since] * means).sum(axis=1))


@dataclass(frozen=True, eq=False)
class When:
    """Times at which an intensity is asked for: all unless there are instants (n,), one a place, or a period."""

    instants: Floats | None = None
    period: tuple[float, float] | None = None

    @classmethod
    def of(cls, grid: MarkedMesh, time: ArrayLike | None, during: tuple[float, float] | None, n: int) -> "When":
        """Those that arguments ask for."""
        if during is None:
            return cls(None if time is None else chosen_times(grid, time, n))
        if time is not None:
            msg = "during: the times of a period, where time is one instant; leave out one of them."
            raise InputError(msg)
        start, end = chosen_times(grid, during, 2, name="during").tolist()
        if not start < end:
            msg = f"during: must be two times, the earlier first, got {during!r}; of a night add those of two periods."
            raise InputError(msg)
        return cls(period=(start, end))

    def part(self, places: slice) -> "When":
        """The times of some places."""
        return self if self.instants is None else When(self.instants[places])

    def values(self, times: Times | None, logs: Floats, base: Floats) -> Floats:
        """(C, n) values, or integrals, of exp of logarithms (C, K, n) times a base (C, M, n) of each while."""
        if times is not None and self.period is not None:
            return over_period(times, logs, base, *self.period)
        if self.instants is None:
            return np.asarray((base * over_whiles(times, logs)).sum(axis=1))
        at_time = np.einsum("nt,ctn->cn", time_basis(times, self.instants).toarray(), logs)
        return np.asarray(base[:, while_of(times, self.instants), np.arange(len(self.instants))] * np.exp(at_time))


def joined(parts: Sequence[Points]) -> Points:
    """Points of all parts, one after the other."""
    positions, kinds, times = zip(*parts, strict=True)
    return np.concatenate(positions), np.concatenate(kinds), np.concatenate(times)


def chosen_types(grid: MarkedMesh, type_: str | None) -> Ints:
    """Number of the type that is asked for, or of all; InputError."""
    types = grid.marks.types
    if type_ is None:
        return np.arange(grid.shape[0])
    if types is None:
        msg = "type: the points have none; leave it out."
        raise InputError(msg)
    return np.array([types.values.index(one_of("type", type_, types.values))])


def chosen_times(grid: MarkedMesh, time: ArrayLike, n: int, name: str = "time") -> Floats:
    """(n,) times that are asked for; InputError."""
    times = grid.marks.times
    if times is None:
        msg = f"{name}: the points have no times; leave it out."
        raise InputError(msg)
    given = real_array(time)
    if given is None or given.shape not in ((), (n,)):
        msg = f"{name}: must be one number, or one for each of the {n} {'places' if name == 'time' else 'ends'}."
        raise InputError(msg)
    return times.require(np.broadcast_to(given, (n,)))
