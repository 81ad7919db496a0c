"""Public offsets of points with types and times: one for each type, or one from each of several instants on."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, Self

import numpy as np

from dpppsynth.core.arguments import shown
from dpppsynth.core.errors import InputError
from dpppsynth.core.types import Floats, Ints
from dpppsynth.spatial.domains import Domain, canonical_json
from dpppsynth.spatial.mark_space import Marks, Times
from dpppsynth.spatial.marks import days_between
from dpppsynth.spatial.mesh import Mesh, Pieces
from dpppsynth.spatial.offset import Offset
from dpppsynth.spatial.public_layers import layer_source
from dpppsynth.spatial.raster_layers import RasterLayer


@dataclass(frozen=True, eq=False, repr=False)
class MarkedOffset:
    """Public offsets of types, or of times: that of a time is the one whose instant is the last before it.

    Around a clock the last one also holds before the first. Between two instants with a hat it is the average over that
    while, as the field knows nothing finer.

    Attributes
    ----------
    parts : tuple of Offset
        One for each type, in their order, or one for each of the instants.
    marks : Marks
    instants : tuple of float
        Increasing; none for offsets of types.
    """

    parts: tuple[Offset, ...]
    marks: Marks
    instants: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        types, times = self.marks.types, self.marks.times
        expected = len(self.instants) or (0 if types is None else len(types.values))
        if not self.parts or len(self.parts) != expected:
            msg = "offset: needs an offset for each type, or one from each of several instants on."
            raise InputError(msg)
        for each in self.parts:
            if not isinstance(each, Offset):
                msg = f"offset: each of them needs to be an Offset, got {type(each).__name__}."
                raise InputError(msg)
        if self.instants:
            _require_instants(times, self.instants)
        grids = {
            (each.layer.values.shape, each.layer.bounds_of_cells) if isinstance(each.layer, RasterLayer) else None
            for each in self.parts
        }
        if len(grids) > 1:
            msg = "offset: rasters of several types or times need the same cells; crop or resample them to one grid."
            raise InputError(msg)

    @classmethod
    def of(cls, given: Mapping[Any, Offset], marks: Marks) -> Self:
        """Offsets by the names of all types, or by instants: numbers, or texts such as "2020-01-01" where days count.

        Examples
        --------
        >>> from dpppsynth.spatial.mark_space import Types
        >>> few, many = (Offset.from_grid([[each]], (0, 0, 100, 100), "counts") for each in (10.0, 90.0))
        >>> MarkedOffset.of({"child": few, "adult": many}, Marks(Types("age", ["child", "adult"])))
        MarkedOffset(2 types)
        >>> years = Marks(times=Times.between("when", "2019-01-01", "2021-01-01"))
        >>> MarkedOffset.of({"2019-01-01": few, "2020-01-01": many}, years).instants
        (0.0, 365.0)
        """
        types = () if marks.types is None else marks.types.values
        if set(given) == set(types):
            return cls(tuple(given[each] for each in types), marks)
        if marks.times is None or set(given) & set(types):
            wanted = ", ".join(map(repr, types))
            msg = f"offset: needs one for each type, {wanted}, and no others; got {shown(', '.join(map(str, given)))}."
            raise InputError(msg)
        times = marks.times
        by_instant = sorted(((_instant(each, times), offset) for each, offset in given.items()), key=lambda at: at[0])
        return cls(tuple(offset for _, offset in by_instant), marks, tuple(at for at, _ in by_instant))

    def __repr__(self) -> str:
        return f"MarkedOffset({len(self.parts)} {'instants' if self.instants else 'types'})"

    @property
    def source(self) -> str:
        """Publication that they come from, for certificates."""
        return layer_source(", ".join(dict.fromkeys(each.source for each in self.parts if each.source)))

    def from_source(self, source: str) -> Self:
        """The same offsets, published by a source."""
        return type(self)(tuple(each.from_source(source) for each in self.parts), self.marks, self.instants)

    @property
    def totals(self) -> tuple[float | None, ...]:
        """Sums of the numbers of each in the domain; None where it was not cut for one."""
        return tuple(each.total for each in self.parts)

    def on(self, domain: Domain) -> Self:
        """The offsets on a domain, as `Offset.on` has them."""
        return type(self)(tuple(each.on(domain) for each in self.parts), self.marks, self.instants)

    @cached_property
    def shares(self) -> Floats:
        """(J, C, M) share that each has of every type, and of every while between two instants with a hat."""
        types = self.marks.shape[0]
        times = self.marks.times
        whiles = 1 if times is None else times.whiles
        if times is None or not self.instants:
            return np.repeat(np.eye(types)[:, :, None], whiles, axis=2)
        start = np.asarray(times.start + times.spacing * np.arange(whiles), dtype=np.float64)
        since, until = np.array(self.instants), np.array([*self.instants[1:], times.end])
        held = _overlap(since, until, start, times.spacing)
        # Around a clock the last one goes on after midnight.
        held[-1] += _overlap(np.array([times.start]), since[:1], start, times.spacing)[0]
        return np.repeat((held / times.spacing)[:, None], types, axis=1)

    @property
    def _weighted(self) -> list[tuple[float, Offset]]:
        """Each with its weight in the density of all types together, on average over all times."""
        weight = self.shares.sum(axis=1).mean(axis=1) / (self.marks.shape[0] if self.instants else 1)
        return list(zip(weight.tolist(), self.parts, strict=True))

    def __call__(self, xy: Floats) -> Floats:
        """(n,) density of all types together, on average over all times."""
        return np.asarray(sum(weight * each(xy) for weight, each in self._weighted), dtype=np.float64)

    def bounds(self, mesh: Mesh) -> Floats | float:
        """Upper bounds of this density on a mesh's elements (T,), or one for all."""
        return sum(weight * each.bounds(mesh) for weight, each in self._weighted)

    def restrict(self, mesh: Mesh) -> Pieces:
        """The mesh's pieces, once for each offset, with this density in their weights."""
        cut = [(weight, each.restrict(mesh)) for weight, each in self._weighted]
        corners, element = (np.concatenate([getattr(each, of) for _, each in cut]) for of in ("corners", "element"))
        return Pieces(corners, element, np.concatenate([weight * each.weight for weight, each in cut]))

    def draw(self, xy: Floats, rng: np.random.Generator) -> tuple[Ints, Floats]:
        """(n,) type numbers and (n,) times at coordinates (n, 2), in proportion to what the offsets are there."""
        likely = np.cumsum([weight * each(xy) for weight, each in self._weighted], axis=0)
        part, at = (rng.random(len(xy)) * likely[-1] > likely).sum(axis=0), np.empty(len(xy), dtype=np.int64)
        for k, share in enumerate(self.shares.reshape(len(self.parts), -1)):
            own = part == k
            at[own] = rng.choice(len(share), own.sum(), p=share / share.sum())
        kind, interval = np.divmod(at, self.shares.shape[2])
        times = self.marks.times
        start, spacing = (0.0, 0.0) if times is None else (times.start, times.spacing)
        return kind, start + spacing * (interval + rng.random(len(xy)))

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the instants and of the fingerprints of all, as quoted on certificates."""
        told = canonical_json({"instants": list(self.instants), "parts": [each.fingerprint for each in self.parts]})
        return hashlib.sha256(told.encode()).hexdigest()

    def to_geojson(self) -> dict[str, Any]:
        """GeoJSON FeatureCollection of the polygons of all, with the properties `offset`, and `type` or `since`."""
        features = [
            {**feature, "properties": {**feature["properties"], **key}}
            for key, each in zip(self._keys, self.parts, strict=True)
            for feature in each.to_geojson()["features"]
        ]
        return {"type": "FeatureCollection", "features": features}

    @property
    def _keys(self) -> list[dict[str, Any]]:
        """Properties that tell the polygons of one from those of another."""
        if self.instants:
            return [{"since": each} for each in self.instants]
        return [{"type": each} for each in ([] if self.marks.types is None else self.marks.types.values)]

    @classmethod
    def from_geojson(cls, data: Mapping[str, Any], marks: Marks) -> Self:
        """Inverse of `to_geojson`; InputError for anything else."""
        parts: dict[Any, list[Any]] = {}
        try:
            for feature in data["features"]:
                told = {key: value for key, value in feature["properties"].items() if key != "offset"}
                parts.setdefault(json.dumps(told), []).append(feature)
            keys = [json.loads(each) for each in parts]
            instants = tuple(float(each["since"]) for each in keys if "since" in each)
        except (LookupError, AttributeError, TypeError, ValueError, OverflowError):
            msg = "offset: must be a GeoJSON FeatureCollection of polygons with a type or an instant each."
            raise InputError(msg) from None
        return cls(tuple(Offset.from_geojson({"features": each}) for each in parts.values()), marks, instants)


AnyOffset = Offset | MarkedOffset


def _overlap(since: Floats, until: Floats, start: Floats, length: float) -> Floats:
    """(J, M) lengths that periods (J,) have in common with whiles that begin at (M,) and last as long."""
    first = np.maximum(since[:, None], start)
    return np.asarray(np.clip(np.minimum(until[:, None], start + length) - first, 0, None), dtype=np.float64)


def _instant(given: Any, times: Times) -> float:
    """An instant as a number, from one or from a date."""
    try:
        return float(given)
    except (TypeError, ValueError, OverflowError):
        pass
    if not times.origin or not isinstance(given, str):
        unit = f" in {times.unit}" if times.unit else ""
        msg = f"offset: an instant must be a number{unit}, or a type; got {shown(given)}."
        raise InputError(msg)
    return days_between(times.origin, given)


def _require_instants(times: Times | None, instants: tuple[float, ...]) -> None:
    if times is None:
        msg = "offset: the points have no times; give one offset for each type."
        raise InputError(msg)
    if not all(before < after for before, after in pairwise(instants)):
        msg = "offset: instants must differ, and stand in increasing order."
        raise InputError(msg)
    if not times.start <= instants[0] <= instants[-1] < times.end:
        msg = f"offset: instants must lie in the range of times, from {times.start:g} up to {times.end:g}."
        raise InputError(msg)
    if not times.periodic and instants[0] > times.start:
        msg = f"offset: the first must hold from the beginning of the range, {times.start:g}; move its instant there."
        raise InputError(msg)
