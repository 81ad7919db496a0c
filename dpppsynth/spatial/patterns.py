"""Point patterns: points, possibly sensitive, in a public domain.

Nothing in this module shows a coordinate or a number of points: not in a `repr`, not in a message.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import shapely
from numpy.typing import ArrayLike, NDArray

from dpppsynth.core.arguments import elements, instance
from dpppsynth.core.crs import same_crs
from dpppsynth.core.errors import InputError
from dpppsynth.core.html_card import html_card
from dpppsynth.core.wording import either, mention
from dpppsynth.spatial.domains import LARGEST, Domain, as_reals, require_domain
from dpppsynth.spatial.marks import column

if TYPE_CHECKING:
    import geopandas

    from dpppsynth.core.crs import CRSLike
    from dpppsynth.spatial.mark_space import Marks
    from dpppsynth.spatial.tables.points import Points


ANOTHER_NUMBER = "n: the release was planned for another number of points; plan with that of this pattern."


@dataclass(frozen=True, eq=False, repr=False)
class PointPattern:
    """A finite set of points in a domain; points may coincide.

    Parameters
    ----------
    xy : array_like, shape (n, 2)
        Coordinates in the CRS of the domain, at least one row. Copied, and read-only afterwards.
    domain : Window or LinearNetwork
        The public region. It must not be derived from the points.
    marks : mapping of str to array_like, shape (n,), optional
        Attributes of the points.

    Attributes
    ----------
    source : str or None
        Of a synthetic pattern the intensity that it was drawn from, "released", "mean" or "draws"; None if not known.
    snap : float or None
        Public tolerance within which points were moved onto the domain, as certificates state it; None without one.

    Raises
    ------
    InputError
        A coordinate is not finite, a point lies outside the domain, the pattern is empty or a mark has another length.
        Messages never say which points, where, or how many.

    Examples
    --------
    >>> from dpppsynth.spatial.domains import Window
    >>> PointPattern([[0.25, 0.5], [0.75, 0.5]], Window.rectangle(0, 0, 1, 1))
    PointPattern(Window(rectangle [0, 1] x [0, 1], no CRS, unit))
    """

    xy: NDArray[np.float64]
    domain: Domain
    marks: dict[str, NDArray[Any]] | None = None
    source: str | None = field(default=None, init=False)
    snap: float | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self._settle()
        _require_points(self.xy)

    @classmethod
    def synthetic(cls, xy: ArrayLike, domain: Domain, marks: Mapping[str, ArrayLike] | None = None) -> Self:
        """Build a synthetic pattern, which unlike an observed one may be empty: a Poisson pattern can be."""
        return cls._settled(xy, domain, marks)

    @classmethod
    def at(
        cls,
        positions: ArrayLike,
        domain: Domain,
        marks: Mapping[str, Any] | None = None,
        *,
        synthetic: bool = False,
    ) -> Self:
        """Build a pattern from positions (n, 2) in the domain; a synthetic one may be empty."""
        rule = "positions: must be numbers of shape (n, 2)"
        places = as_reals(positions, rule)
        if places.size % 2:
            raise InputError(rule)
        places = places.reshape(-1, 2)
        require_domain(domain)
        place = domain.released_coordinates if synthetic else domain.coordinates
        # Coordinates of positions that a domain holds lie in it: finding them there again takes long on a network.
        pattern = cls._settled(place(places), domain, marks, held=domain.holds(places))
        if not synthetic:
            _require_points(pattern.xy)
        # Where two edges of a network cross, coordinates alone would not tell which of them is meant.
        pattern.__dict__["positions"] = _frozen(places)
        return pattern

    @classmethod
    def drawn(cls, positions: NDArray[np.float64], domain: Domain) -> Self:
        """Build a synthetic pattern from positions (n, 2) that the domain holds; they are not tested again."""
        pattern = object.__new__(cls)
        fields = {"xy": _frozen(domain.released_coordinates(positions)), "domain": domain, "marks": None}
        for name, value in {**fields, "positions": _frozen(positions)}.items():
            object.__setattr__(pattern, name, value)
        return pattern

    @classmethod
    def _settled(cls, xy: Any, domain: Domain, marks: Any, held: NDArray[np.bool_] | None = None) -> Self:
        """Pattern of these fields, checked, which may be empty."""
        pattern = object.__new__(cls)
        for name, value in (("xy", xy), ("domain", domain), ("marks", marks)):
            object.__setattr__(pattern, name, value)
        pattern._settle(held)
        return pattern

    def told(self, source: str | None) -> Self:
        """The same points, with the source of what they were drawn from."""
        return self._with(source=source)

    def snapped(self, snap: float | None) -> Self:
        """The same points, with the public tolerance within which they were moved onto the domain."""
        return self._with(snap=None if snap is None else float(snap))

    def _with(self, **stated: Any) -> Self:
        pattern = object.__new__(type(self))
        pattern.__dict__.update(self.__dict__, **stated)
        return pattern

    @cached_property
    def positions(self) -> NDArray[np.float64]:
        """(n, 2) positions in the domain: coordinates on a window, edge number and distance along it on a network."""
        return _frozen(self.domain.positions(self.xy))

    @staticmethod
    def checked(xy: ArrayLike) -> NDArray[np.float64]:
        """(n, 2) finite coordinates, copied; InputError otherwise."""
        found = as_reals(xy, "xy: must be numbers of shape (n, 2)")
        if found.ndim != 2 or found.shape[1] != 2:
            if found.size == 0:
                return _frozen(found.reshape(0, 2))
            msg = "xy: must have shape (n, 2): one row per point, one column per coordinate"
            raise InputError(msg)
        if not (np.abs(found) <= LARGEST).all():
            msg = (
                "xy: every coordinate must be finite; some are missing (NaN), infinite or as good as that. Repair or "
                "leave out these points"
            )
            raise InputError(msg)
        return _frozen(found)

    @staticmethod
    def from_geodataframe(
        gdf: geopandas.GeoDataFrame,
        domain: Domain,
        *,
        count: str | None = None,
        marks: Iterable[str] = (),
        described: Marks | None = None,
        user: str | None = None,
        to_crs: CRSLike | None = None,
        snap: float | None = None,
        skip_outside: bool = False,
    ) -> PointPattern:
        """Take the points of a GeoDataFrame.

        Parameters
        ----------
        gdf : geopandas.GeoDataFrame
            Points; a MultiPoint counts as its points.
        domain : Window or LinearNetwork
            The public region.
        count : str, optional
            Column of non-negative integers: a row with k stands for k coincident points, 0 for none.
        marks : iterable of str
            Columns kept as marks.
        described : Marks, optional
            Types and times, whose columns are kept as marks; see `dpppsynth.io.read_pattern`.
        user : str, optional
            Column that says whose point a row is, in texts or whole numbers; kept as a mark of text, and no row may
            leave it out.
        to_crs : str, int or pyproj.CRS, optional
            Re-project the points to this CRS, which must be the one of the domain.
        snap : float, optional
            Largest distance a point may be moved to the nearest place of the domain, in the domain's unit, chosen
            without looking at the points. Without it every point must lie in a window, or on a network to rounding.
        skip_outside : bool
            Leave out points that are not in the domain, as by `dpppsynth.io.read_pattern`.

        Raises
        ------
        InputError
            The CRS differs from the one of the domain, a column is missing, or a row breaks a rule (not a point,
            missing or infinite coordinate, outside the domain or too far from it, bad count).
        """
        from dpppsynth.spatial.tables.points import points_of_frame

        reading: dict[str, Any] = {"count": count, "user": user, "to_crs": to_crs, "snap": snap}
        reading["skip_outside"] = skip_outside
        points = points_of_frame(gdf, domain, marks=marks, described=described, **reading)
        return pattern_of(points, domain, snap)

    def unmarked(self) -> PointPattern:
        """Return the same points without marks."""
        return self if self.marks is None else self.part(np.full(len(self), True))

    def part(self, chosen: NDArray[np.bool_], *, synthetic: bool = False) -> PointPattern:
        """Return the points that are chosen, a boolean array (n,), without marks; a synthetic part may be empty."""
        if synthetic:
            # Positions along streets would round their coordinates anew.
            part = PointPattern.synthetic(self.xy[chosen], self.domain)
        else:
            part = PointPattern.at(self.positions[chosen], self.domain)
        return part.told(self.source).snapped(self.snap)

    def to_geodataframe(self) -> geopandas.GeoDataFrame:
        """Return the points and their marks as a GeoDataFrame in the CRS of the domain."""
        import geopandas

        return geopandas.GeoDataFrame(dict(self.marks or {}), geometry=shapely.points(self.xy), crs=self.domain.crs)

    def _settle(self, held: NDArray[np.bool_] | None = None) -> None:
        """Check the fields and replace them by read-only copies; `held` (n,) tells which points the domain holds."""
        require_domain(self.domain)
        xy = self.checked(self.xy)
        if not (self.domain.contains(xy) if held is None else held).all():
            msg = (
                f"xy: every point {self.domain.rule}. `dpppsynth inspect` writes the offending rows to a CONFIDENTIAL "
                "file"
            )
            raise InputError(msg)
        object.__setattr__(self, "xy", xy)
        marks = None if self.marks is None else _marks(self.marks, len(xy))
        object.__setattr__(self, "marks", marks or None)

    def __len__(self) -> int:
        return len(self.xy)

    def _repr_html_(self) -> str:
        rows = [("domain", repr(self.domain)), ("marks", ", ".join(self.marks or {}) or "none")]
        return html_card(type(self).__name__, rows, text="Points and their number are not shown.")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.domain!r})"


def require_match(pattern: Any, domain: Domain, n: int | None, mark: str | None = None) -> None:
    """Refuse a pattern that is not the one a release was planned for, with an InputError.

    That is one with other marks than the one that is needed, in another domain, or of another number than the public n.
    """
    instance("pattern", pattern, PointPattern)
    if mark is None and pattern.marks:
        few = "a relation with max_points_per_person= and user="
        msg = (
            "pattern: marks are not protected by this mechanism; pass `pattern.unmarked()`. Where one tells persons, "
            f"{either(few, '--user with --max-points-per-person')} lets a few points of each count."
        )
        raise InputError(msg)
    if mark is not None and set(pattern.marks or {}) != {mark}:
        msg = (
            f"pattern: needs the mark {mark!r}, which tells the persons, and no other; name yours with "
            f"{mention('user')}, or say {either('user=None', '--no-user')} where every point is a person of its own."
        )
        raise InputError(msg)
    require_place(pattern, domain, n)


def require_place(pattern: Any, domain: Domain, n: int | None) -> None:
    """Refuse a pattern in another domain, or with another number of points, than a release was planned for."""
    instance("pattern", pattern, PointPattern)
    if pattern.domain.fingerprint() != domain.fingerprint():
        msg = "pattern: its domain differs from the one the release was planned for; plan again with its own."
        raise InputError(msg)
    require_number(pattern, n)


def require_number(pattern: PointPattern, n: int | None) -> None:
    """Refuse a pattern with another number of points than the public n, where there is one."""
    if n is not None and len(pattern) != n:
        raise InputError(ANOTHER_NUMBER)


def _require_points(xy: NDArray[np.float64]) -> None:
    if not len(xy):
        msg = "xy: a pattern must hold at least one point; check the file or the filter that made it"
        raise InputError(msg)


def pattern_of(points: Points, domain: Domain, snap: float | None) -> PointPattern:
    """Pattern of the points of a table, moved onto the domain where there is a tolerance."""
    if snap is None:
        return PointPattern(points.xy, domain, points.marks)
    return PointPattern.at(domain.nearest(points.xy), domain, points.marks).snapped(snap)


def pattern_of_frame(points: Any, domain: Domain, argument: str) -> PointPattern | None:
    """Pattern of the points of a GeoDataFrame or a GeoSeries, as they stand; None of what is neither.

    InputError, with the call that takes them, where they are in another coordinate system or not in the domain.
    """
    if not (hasattr(points, "to_crs") and hasattr(points, "geometry")):
        return None
    from dpppsynth.spatial.tables.rows import PLACES

    frame = points.geometry.to_frame("geometry")
    try:
        return PointPattern.from_geodataframe(frame, domain)
    except InputError as error:
        reason = error
    other = frame.crs is not None and domain.crs is not None and not same_crs(frame.crs, domain.crs)
    if not other and not any(rule in str(reason) for rule in PLACES):
        raise reason
    what = "they are in another coordinate system" if other else "some are not in the domain"
    moved = f", to_crs={domain.crs!r}" if other else ""
    msg = (
        f"{argument}: {what}; take PointPattern.from_geodataframe(points, domain{moved}, snap=15.0), which moves them "
        "by up to a public tolerance"
    )
    raise InputError(msg)


def _marks(marks: Mapping[str, Any], n: int) -> dict[str, NDArray[Any]]:
    if not isinstance(marks, Mapping):
        msg = f"marks: must be a dictionary of arrays by name; got {type(marks).__name__}"
        raise InputError(msg)
    settled = {}
    for name, values in marks.items():
        mark = _mark(values)
        if mark is None or mark.shape != (n,):
            msg = f"marks: {name!r} must hold exactly one value per point"
            raise InputError(msg)
        settled[str(name)] = _frozen(mark)
    return settled


def _mark(values: Any) -> NDArray[Any] | None:
    """A copy that keeps the kind of an array and the values of a list; None for what is no column of values."""
    if hasattr(values, "ndim") and hasattr(values, "to_numpy"):
        return np.array(values.to_numpy())
    if hasattr(values, "__array__"):
        return None if np.ma.is_masked(values) else np.array(values)
    found = None if isinstance(values, AbstractSet) else elements(values)
    if found is None or any(isinstance(value, list | tuple | np.ndarray) for value in found):
        return None
    return column(found)


def _frozen(array: NDArray[Any]) -> NDArray[Any]:
    array.setflags(write=False)
    return array
