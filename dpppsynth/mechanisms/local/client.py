"""`Client`: a person's device, which needs a public description of the mechanism, NumPy and nothing else.

Laws and cells are those of the package, imported one by one: neither meshes nor models are loaded.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from dpppsynth.core.arguments import entries, instance, one_of, positive, whole
from dpppsynth.core.errors import InputError
from dpppsynth.core.randomness import SystemBits
from dpppsynth.core.types import Floats, Ints
from dpppsynth.mechanisms.local.grids.rectangles import checked_bounds, reals
from dpppsynth.mechanisms.local.randomizers.randomizer import Randomizer, fingerprint, randomizer_from_dict
from dpppsynth.mechanisms.local.reports import Report
from dpppsynth.spatial.grid_cells import Bounds, cell_places

if TYPE_CHECKING:
    from dpppsynth.spatial.domains import Window

# Treatments of a person outside: both leave the number of reports unchanged.
OUTSIDE = ("raise", "clip")
DROP = "drop"


def everybody(outside: Any, *, study: bool = False) -> str:
    """Return the validated treatment of persons outside the window; leaving them out is for studies alone."""
    if one_of("outside", outside, (*OUTSIDE, DROP)) == DROP and not study:
        msg = (
            "outside: 'drop' would show in the number of reports, which is public; take 'clip', and a person outside "
            "reports the nearest cell. A study may leave them out: simulate(..., rng=1) or fast=True."
        )
        raise InputError(msg)
    return outside


def held_in_box(places: Floats, bounds: Any, outside: str) -> Floats:
    """Points (n, 2) in a box (x0, y0, x1, y1): those outside are refused, left out or moved to its border."""
    low, high = np.array(bounds[:2]), np.array(bounds[2:])
    if outside == "clip":
        return np.clip(places, low, high)
    inside = ((places >= low) & (places <= high)).all(axis=1)
    if outside == "raise" and not inside.all():
        msg = (
            "xy: some points lie outside the window's bounding box; take a public window that holds them all, or say "
            "outside='clip': then they report the nearest cell."
        )
        raise InputError(msg)
    return places[inside]


FORMAT = "dpppsynth.client"
LINES = ("columns", "rows", "inner")
# Bytes of a description.
LARGEST = 2**28


@dataclass(frozen=True, eq=False, repr=False)
class Client:
    """A person's device: takes a place, returns a randomised report, and sends nothing else.

    `Client.read` makes one of the file that a collector publishes with `write_description`, after checking it.

    Attributes
    ----------
    randomizer : Randomizer
        The law of a report; `randomizer.spent` is the epsilon that its whole-number weights certify.
    grid : dict
        Public cells: `{"bounds": [x0, y0, x1, y1], "cells": k}`, or the lines `columns`, `rows` and `inner`.
    crs : str or None
        Coordinate reference system that places are given in.
    """

    randomizer: Randomizer
    grid: Mapping[str, Any]
    crs: str | None = None

    def __post_init__(self) -> None:
        instance("randomizer", self.randomizer, Randomizer, "randomizer_from_dict() makes one")
        crs = self.crs is None or isinstance(self.crs, str)
        if set(entries("grid", self.grid)) not in ({"bounds", "cells"}, set(LINES)) or not crs:
            msg = "grid: needs bounds and cells, or columns, rows and inner lines, and crs a text; ask the collector."
            raise InputError(msg)
        held = self._squares[1] ** 2 if "cells" in self.grid else len(self._lines)
        if held != self.randomizer.inputs:
            msg = f"grid: has {held} cells, and the law is of {self.randomizer.inputs}; ask the collector."
            raise InputError(msg)

    def __repr__(self) -> str:
        return f"Client({self.randomizer.kind}, epsilon={self.randomizer.epsilon:g}, {self.randomizer.inputs} cells)"

    @classmethod
    def read(cls, path: str | Path, *, most_epsilon: float | None = None) -> Self:
        """The device that a file describes; see `from_json`."""
        name = str(path)[-80:] if isinstance(path, str | Path) else type(path).__name__
        try:
            with Path(path).open("rb") as stream:
                text = stream.read(LARGEST).decode()
        except (OSError, TypeError, ValueError):
            msg = f"path: {name} cannot be read; it is the description that a collector publishes."
            raise InputError(msg) from None
        return cls.from_json(text, most_epsilon=most_epsilon)

    @classmethod
    def from_json(cls, text: str, *, most_epsilon: float | None = None) -> Self:
        """Client from a public description.

        Parameters
        ----------
        text : str
            As `write_description` writes it.
        most_epsilon : float, optional
            Budget that the person agrees to: a mechanism that asks for more is refused.

        Raises
        ------
        InputError
            When the description is not whole, its numbers are not those of a known mechanism, or epsilon is too large.
        """
        try:
            data = json.loads(text)
        except (TypeError, ValueError, RecursionError):
            data = None
        if not isinstance(data, dict) or data.get("format") != FORMAT:
            msg = "description: is none of a mechanism; `dpppsynth local describe` writes one."
            raise InputError(msg)
        given = dict(entries("description", data, ("mechanism", "randomizer", "grid", "crs", "hash")))
        if given.pop("hash") != content_hash(given):
            msg = "description: is not whole, or was changed; fetch it again from the collector."
            raise InputError(msg)
        made = cls(randomizer_from_dict(given["randomizer"]), given["grid"], given["crs"])
        if made.mechanism != given["mechanism"]:
            msg = "description: its numbers are of another mechanism than the one it names; ask the collector."
            raise InputError(msg)
        if most_epsilon is not None and made.randomizer.epsilon > positive("most_epsilon", most_epsilon):
            msg = (
                f"most_epsilon: the mechanism asks for epsilon {made.randomizer.epsilon:g}, more than was agreed to; "
                "send no report."
            )
            raise InputError(msg)
        return made

    @cached_property
    def mechanism(self) -> str:
        """Fingerprint of the mechanism, which every report carries."""
        lines = {} if "cells" in self.grid else {name: self.grid[name] for name in LINES}
        return fingerprint(self.randomizer.parameters() | lines)

    def report(self, place: Any, rng: np.random.Generator | None = None, *, outside: str = "clip") -> Report:
        """The report to send: `report(...).to_json()` is one line of text.

        Parameters
        ----------
        place : pair
            x and y, in the coordinates of the grid.
        rng : numpy.random.Generator, optional
            None: bits of the operating system. Any other makes the report reproducible, not private, and marks it so.
        outside : {"clip", "raise"}
            A place beyond the grid reports its nearest cell, so that whether a person reports does not tell where they
            are; "raise" refuses it.
        """
        source = SystemBits() if rng is None else rng
        row = self.randomizer.draw(self._value(place, one_of("outside", outside, OUTSIDE)), source)[0]
        return Report(self.mechanism, tuple(row.tolist()), rng is not None)

    def _value(self, place: Any, outside: str) -> Ints:
        """(1,) number of the cell that holds a place."""
        xy = reals("place", place, (2,))[None, :]
        if "cells" not in self.grid:
            grid = self._lines
            return np.asarray(grid.locate(held_in_box(xy, grid.bounds, outside)))
        bounds, cells = self._squares
        i, j = cell_places(held_in_box(xy, bounds, outside), bounds, (cells, cells)).T
        return np.asarray(i * cells + j)

    @cached_property
    def _squares(self) -> tuple[Bounds, int]:
        return checked_bounds(self.grid["bounds"]), whole("cells", self.grid["cells"], 1)

    @cached_property
    def _lines(self) -> Any:
        # Grids of equal cells need none of it.
        from dpppsynth.mechanisms.local.grids.rectangles import Rectangles

        try:
            inner = tuple((x, y) for x, y in self.grid["inner"])
        except (TypeError, ValueError):
            inner = ((),)  # type: ignore[assignment]
        return Rectangles(self.grid["columns"], self.grid["rows"], inner)


def content_hash(data: Mapping[str, Any]) -> str:
    """Hash of a description without its own hash."""
    return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()


def description(mechanism: Any, window: "Window") -> str:
    """Public JSON description from which a device makes its reports.

    Parameters
    ----------
    mechanism : CellMechanism or Round
        All of whose clients report at once, such as `DiskAreaMechanism`, `RangeHierarchy`, `UniformGrid`, or one round
        of an adaptive grid.
    window : Window
        Whose cells the reports are about.

    Examples
    --------
    >>> from dpppsynth import Window
    >>> from dpppsynth.local import DiskAreaMechanism
    >>> text = description(DiskAreaMechanism(epsilon=1.0, cells=3), Window.rectangle(0, 0, 9, 9))
    >>> Client.from_json(text, most_epsilon=1.0)
    Client(disk-area, epsilon=1, 9 cells)
    """
    described = getattr(mechanism, "described_grid", None)
    if described is None:
        msg = (
            f"mechanism: needs one whose clients report at once about one place, or a round of a grid; got "
            f"{mechanism!r}. Devices that report about trajectories call LineTrace.client, or LDPTrace.first.clients."
        )
        raise InputError(msg)
    data = {
        "format": FORMAT,
        "mechanism": mechanism.fingerprint,
        "randomizer": mechanism.randomizer.parameters(),
        "grid": described(window),
        "crs": None if window.crs is None else str(window.crs),
    }
    # As a device reads it: floats are written so that they come back as they were.
    text = json.dumps(data | {"hash": content_hash(data)})
    Client.from_json(text)
    return text
