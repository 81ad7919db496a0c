"""The file of public covariates in a release: standardised values at the vertices of the field's mesh."""

import numpy as np

from dpppsynth.contract.statistic import require
from dpppsynth.inference import netcdf
from dpppsynth.inference.netcdf import Variable
from dpppsynth.spatial.covariates import Design, fingerprint
from dpppsynth.spatial.mesh import Floats

GROUP = "covariates"


def covariates_file(values: Floats) -> bytes:
    """A netCDF-4 file of values (V, p); their names stand on the certificate."""
    return netcdf.written(GROUP, _variables(values), {})


def read_covariates(content: bytes, design: Design, vertices: int) -> Design:
    """The covariates that a certificate states, with their values.

    Raises
    ------
    ValueError
        When the file is not byte by byte what is written of such values, or they are others than those stated.
    """
    values = netcdf.read(content, GROUP, _variables(np.zeros((1, 1))), {})[0]["value"]
    require(values.shape == (vertices, len(design.names)), "covariates have a value at each vertex of the field")
    require(bool(np.isfinite(values).all()) and covariates_file(values) == content, "covariates are finite numbers")
    require(fingerprint(design.names, values) == design.fingerprint, "covariates are those of the certificate")
    return design.holding(values.astype(np.float64))


def _variables(values: Floats) -> dict[str, Variable]:
    vertices, covariates = (np.arange(size, dtype="<i4") for size in values.shape)
    return {
        "vertex": Variable(("vertex",), vertices, {}),
        "covariate": Variable(("covariate",), covariates, {}),
        "value": Variable(("vertex", "covariate"), np.ascontiguousarray(values, dtype="<f8"), {}),
    }
