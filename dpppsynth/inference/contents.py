"""Format checks of release files that no bound follows from: what `save` writes, and nothing else.

They may hold whatever was drawn or fitted after the noise, which nobody can derive again. Their form can be checked: a
file with room for more is a place where raw data leave the house under a certificate.
"""

import io
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpppsynth.contract.statistic import require
from dpppsynth.core.crs import crs_member
from dpppsynth.inference.posterior import CLASSIC, FitNotes, read_file
from dpppsynth.spatial.domains import Domain
from dpppsynth.spatial.mesh import Mesh

# Seventeen digits, behind up to three zeros of a number not yet written with an exponent.
NUMBER = rb"(-?\d{1,17}(?:\.\d{1,20})?(?:e[+-]\d{1,3})?)"
POINT = re.compile(
    rb'\{"type": "Feature", "properties": (\{.*?\}), "geometry": \{"type": "Point", "coordinates": \[%s, %s\]\}\}'
    % (NUMBER, NUMBER)
)
# Tolerance for coordinates outside the bounding box: a share of the diameter, for rounding.
NEAR = 1e-6
# Bytes of lines that are looked at together.
BLOCK = 2**20
# Arrays of posteriors in files of netCDF 3.
POSTERIOR = {
    "chain": ("chain",),
    "draw": ("draw",),
    "x": ("vertex",),
    "y": ("vertex",),
    "length_scale": ("draw",),
    "log_intensity": ("chain", "draw", "vertex"),
}


def require_pattern(content: bytes, domain: Domain, written: Callable[[bytes], bool]) -> None:
    """Refuse bytes that are not, line by line, those of a pattern in the domain, each with properties so `written`."""
    crs, foot = json.dumps(crs_member(domain.crs)), "\n]}\n"
    head = f'{{"type": "FeatureCollection",\n"crs": {crs},\n"features": [\n'
    whole = content.startswith(head.encode()) and content.endswith(foot.encode()) and len(content) >= len(head + foot)
    require(whole, "a pattern is a collection of features with the domain's CRS")
    (x0, y0, x1, y1), room = domain.bounds, NEAR * domain.diameter
    for lines in _lines(content, len(head.encode()), len(content) - len(foot)):
        xy = _coordinates(lines, written)
        near = (xy >= [x0 - room, y0 - room]) & (xy <= [x1 + room, y1 + room])
        require(bool(near.all()), "points lie in the domain")


def _lines(content: bytes, start: int, end: int) -> Iterator[list[bytes]]:
    """Lines between two places, some thousand at a time, without the commas and line ends between them."""
    while start < end:
        cut = content.find(b",\n", min(start + BLOCK, end), end)
        yield content[start : cut if cut >= 0 else end].split(b",\n")
        if cut == end - 2:
            # Nothing stands behind the last comma, which is no feature.
            yield [b""]
        start = cut + 2 if cut >= 0 else end


def _coordinates(lines: list[bytes], written: Callable[[bytes], bool]) -> NDArray[np.float64]:
    """(n, 2) coordinates of features, each a line, with properties so `written`."""
    points = [point.groups() for point in map(POINT.fullmatch, lines) if point is not None]
    marked = len(points) == len(lines) and all(map(written, {point[0] for point in points}))
    require(marked, "a feature is a point, with the marks that the release keeps and no other property")
    numbers = [number for point in points for number in point[1:]]
    values = [*map(float, numbers)]
    # A coordinate has one way to be written, so digits behind it have no room.
    shortest = ",".join(map(repr, values)).encode() == b",".join(numbers)
    require(shortest, "coordinates are in their shortest form")
    return np.array(values, dtype=np.float64).reshape(-1, 2)


def require_posterior(content: bytes, mesh: Mesh, length_scales: Sequence[float], effects: int = 0) -> None:
    """Refuse bytes that are not those of posterior draws on a mesh, with length scales of the priors and all effects.

    The file must be what is written of what is read there, so that nothing lies between or behind.

    Raises
    ------
    ValueError
    """
    if content.startswith(CLASSIC) and not effects:
        _require_draws(_classic(content), mesh, length_scales)
        return
    found, fits = read_file(content, len(length_scales), effects)
    _require_draws(found, mesh, length_scales)
    require(np.array_equal(found["vertex"], np.arange(len(mesh.vertices))), "vertices are numbered")
    if effects:
        shape = (*found["length_scale"].shape, effects)
        require(found["effect"].shape == shape and bool(np.isfinite(found["effect"]).all()), "effects are finite")
        require(np.array_equal(found["covariate"], np.arange(effects)), "covariates are numbered")
    stated = np.array_equal(fits.length_scale, np.asarray(length_scales, dtype=np.float64))
    require(stated and _plain(fits), "what is known of the fits are numbers, one for each length scale of the model")


def _plain(fits: FitNotes) -> bool:
    """Whether all are numbers that such figures have, or the one kind of NaN: the bits of others have room."""
    values = np.concatenate(list(fits.notes.values()))
    none = np.isnan(values)
    same = np.where(none, np.nan, values).tobytes() == values.tobytes()
    return same and bool((none | (values >= -1)).all())


def _require_draws(found: Mapping[str, Any], mesh: Mesh, length_scales: Sequence[float]) -> None:
    chains, draws, vertices = found["log_intensity"].shape
    require(vertices == len(mesh.vertices) and min(chains, draws) > 0, "draws are on the mesh of the field")
    numbered = np.array_equal(found["chain"], np.arange(chains)) and np.array_equal(found["draw"], np.arange(draws))
    placed_there = np.allclose(np.column_stack([found["x"], found["y"]]), mesh.vertices, rtol=1e-12, atol=0)
    require(numbered and placed_there, "chains and draws are numbered, and vertices lie where the mesh has them")
    finite = bool(np.isfinite(found["log_intensity"]).all()) and bool(
        np.isin(found["length_scale"], length_scales).all()
    )
    require(finite, "fields are finite, and made with length scales of the model")


def _classic(content: bytes) -> dict[str, Any]:
    """Arrays of a file of netCDF 3, as releases had before: what its library writes of them, and nothing else."""
    from scipy.io import netcdf_file

    with netcdf_file(io.BytesIO(content), mmap=False) as data:
        found = {name: np.array(variable.data) for name, variable in data.variables.items()}
        placed = {name: variable.dimensions for name, variable in data.variables.items()}
        # Whatever the writing library notes beside: names of coordinates, and what stands for a missing number.
        notes = {key: value for variable in data.variables.values() for key, value in _notes(variable).items()}
        bare, rewritten = not _notes(data), _written(data)
    require(
        bare and placed == POSTERIOR and rewritten == content, "a posterior is a file of draws, and of nothing else"
    )
    known = {"coordinates", "_FillValue"} >= notes.keys() and notes.get("coordinates", b"x y") == b"x y"
    require(known and all(np.isnan(notes[key]) for key in notes if key == "_FillValue"), "it has no notes of its own")
    kinds = {name: values.dtype.newbyteorder("=").name for name, values in found.items()}
    require(kinds == _KINDS, "its numbers are of the kinds that are written")
    return found


_KINDS = {
    "chain": "int32",
    "draw": "int32",
    "x": "float64",
    "y": "float64",
    "length_scale": "float64",
    "log_intensity": "float32",
}


def _written(data: Any) -> bytes:
    """The bytes of a netCDF file with these contents."""
    from scipy.io import netcdf_file

    out = io.BytesIO()
    copy = netcdf_file(out, "w", version=data.version_byte)
    _note(copy, _notes(data))
    for name in data._dims:  # noqa: SLF001 - the order in which dimensions are written is kept nowhere else
        copy.createDimension(name, data.dimensions[name])
    for name, variable in data.variables.items():
        made = copy.createVariable(name, variable.data.dtype, variable.dimensions)
        made[:] = variable.data
        _note(made, _notes(variable))
    copy.flush()
    written = out.getvalue()
    # Closing writes once more, and closes the buffer.
    copy.close()
    return written


def _notes(of: Any) -> dict[str, Any]:
    """Attributes of a file or a variable."""
    return dict(of._attributes)  # noqa: SLF001 - the reader lists them nowhere else


def _note(target: Any, notes: Mapping[str, Any]) -> None:
    for name, value in notes.items():
        setattr(target, name, value)
