"""netCDF-4 files of plain arrays in a release: posterior draws, covariates and rasters, without compression."""

import io
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpppsynth.contract.statistic import require
from dpppsynth.spatial.covariates import Design, fingerprint
from dpppsynth.spatial.mesh import Floats

Numbers = NDArray[Any]
COVARIATES_GROUP = "covariates"


class Variable(NamedTuple):
    """An array and its dimensions by name; one named like its only dimension is that dimension's scale."""

    dimensions: tuple[str, ...]
    values: Numbers
    notes: Mapping[str, str] = {}


def array_file(group: str, variables: Mapping[str, Variable], notes: Mapping[str, Numbers]) -> bytes:
    """A file with one group of variables, and arrays of numbers (k,) that are attributes of the group."""
    import h5netcdf

    content = io.BytesIO()
    with h5netcdf.File(content, "w") as file:
        made = file.create_group(group)
        for variable in variables.values():
            for name, size in zip(variable.dimensions, variable.values.shape, strict=True):
                if name not in made.dimensions:
                    made.dimensions[name] = size
        for name, variable in variables.items():
            stored = made.create_variable(name, variable.dimensions, data=np.ascontiguousarray(variable.values))
            stored.attrs.update(variable.notes)
        made.attrs.update(notes)
    return content.getvalue()


def read_arrays(
    content: bytes, group: str, kinds: Mapping[str, str], notes: Mapping[str, int]
) -> tuple[dict[str, Numbers], dict[str, Floats]]:
    """Arrays and notes of a file.

    Parameters
    ----------
    content : bytes
        Of unknown origin. Nothing larger than itself is made of it.
    group : str
    kinds : mapping
        Type and rank of every variable, such as "<f4 3", by name; there are no others.
    notes : mapping
        How many numbers there are in every note.

    Raises
    ------
    ValueError
        When it holds anything else.
    """
    import h5py

    try:
        with h5py.File(io.BytesIO(content), "r") as file:
            require(set(file) == {group} and set(file[group]) == set(kinds), "a file holds the arrays of one group")
            found = {name: _array(file[group][name], kind, len(content)) for name, kind in kinds.items()}
            told = {name: np.asarray(file[group].attrs[name], dtype=np.float64) for name in notes}
            known = {*notes, "_NCProperties"}
            require(set(file[group].attrs) <= known, "a file has no other notes")
    except ValueError:
        raise
    except Exception as error:
        msg = "the file holds no arrays of this kind"
        raise ValueError(msg) from error
    require(all(told[name].shape == (size,) for name, size in notes.items()), "notes have a number for each fit")
    return found, told


def _array(stored: Any, kind: str, most: int) -> Numbers:
    """Numbers of one array, stored in one piece inside the file."""
    dtype, rank = kind.split()
    plain = stored.chunks is None and not stored.external and not stored.is_virtual
    require(plain and stored.dtype == np.dtype(dtype) and stored.ndim == int(rank), "arrays are plain numbers")
    require(stored.nbytes <= most, "arrays are not larger than their file")
    return np.asarray(stored[...])


def covariates_file(values: Floats) -> bytes:
    """A file of values (V, p) of standardised covariates; their names stand on the certificate."""
    vertices, covariates = (np.arange(size, dtype="<i4") for size in values.shape)
    variables = {
        "vertex": Variable(("vertex",), vertices),
        "covariate": Variable(("covariate",), covariates),
        "value": Variable(("vertex", "covariate"), values.astype("<f8")),
    }
    return array_file(COVARIATES_GROUP, variables, {})


def read_covariates(content: bytes, design: Design, vertices: int) -> Design:
    """The covariates that a certificate states, with their values; ValueError where they are others."""
    kinds = {"vertex": "<i4 1", "covariate": "<i4 1", "value": "<f8 2"}
    values = read_arrays(content, COVARIATES_GROUP, kinds, {})[0]["value"]
    require(values.shape == (vertices, len(design.names)), "covariates have a value at each vertex of the field")
    require(bool(np.isfinite(values).all()), "covariates are finite numbers")
    require(fingerprint(design.names, values) == design.fingerprint, "covariates are those of the certificate")
    return design.holding(values)
