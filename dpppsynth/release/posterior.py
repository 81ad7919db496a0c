"""Posterior draws of a log-intensity, and their file in a saved release."""

import io
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpppsynth.core.errors import InputError, TooLargeError
from dpppsynth.release.certificate import POSTERIOR
from dpppsynth.spatial.mesh import Floats, Mesh


@dataclass(frozen=True, eq=False)
class Posterior:
    """Posterior draws of the log-intensity.

    Attributes
    ----------
    fields : (chains, draws, V) array of float32
        Log-intensity at the mesh's vertices (of its ratio to the offset, if there is one).
    length_scale : (draws,) array
        Length scale, or range, that each draw was made with.
    """

    fields: NDArray[np.float32]
    length_scale: Floats

    @property
    def flat(self) -> NDArray[np.float32]:
        """(chains * draws, V) fields."""
        return self.fields.reshape(-1, self.fields.shape[-1])

    def to_xarray(self, mesh: Mesh) -> Any:
        """`xarray.Dataset` in ArviZ layout: `log_intensity` (chain, draw, vertex), `length_scale` (draw)."""
        import xarray as xr

        return xr.Dataset(
            {
                "log_intensity": (("chain", "draw", "vertex"), self.fields),
                "length_scale": (("draw",), self.length_scale),
            },
            coords={
                "chain": np.arange(self.fields.shape[0]),
                "draw": np.arange(self.fields.shape[1]),
                "x": ("vertex", mesh.vertices[:, 0]),
                "y": ("vertex", mesh.vertices[:, 1]),
            },
        )


def read_posterior(content: bytes, vertices: int) -> Posterior:
    """Draws at so many vertices, from a netCDF file.

    Raises
    ------
    InputError
    """
    from scipy.io import netcdf_file

    try:
        with netcdf_file(io.BytesIO(content), mmap=False) as data:
            fields = np.array(data.variables["log_intensity"].data, dtype=np.float32)
            scales = np.array(data.variables["length_scale"].data, dtype=float)
        whole = fields.shape == (*fields.shape[:2], vertices) and scales.shape == fields.shape[1:2]
        whole = whole and fields.size > 0 and bool(np.isfinite(fields).all() and np.isfinite(scales).all())
    except TooLargeError:
        raise
    except Exception:  # noqa: BLE001 - the reader raises whatever a broken header leads to
        whole = False
    if not whole:
        msg = f"release: {POSTERIOR} is no posterior on the mesh of this release; the folder is not whole."
        raise InputError(msg)
    return Posterior(fields, scales)
