"""Posterior draws of a log-intensity, what is known of their fit, and their file in a saved release."""

import io
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.typing import NDArray

from dpppsynth.contract.estimator import POSTERIOR
from dpppsynth.contract.result import Fit
from dpppsynth.core.errors import InputError, TooLargeError
from dpppsynth.inference import netcdf
from dpppsynth.inference.netcdf import Variable
from dpppsynth.models.laplace_approximation import ApproximationCheck
from dpppsynth.spatial.mesh import Floats, Mesh

GROUP = "posterior"
# Share of the draws from which a fit counts among the worst, and probability of the intervals that are checked.
COUNTED, NOMINAL = 0.05, 0.9
# How files of before version 4 of netCDF begin; those of stored releases are read for ever.
CLASSIC = b"CDF"


@dataclass(frozen=True, eq=False)
class FitNotes:
    """Diagnostics of the fits that a posterior averages over, one for each prior; NaN where nothing is known.

    Attributes
    ----------
    length_scale : (k,) array
        Length scale, or range, of each prior; ranges once for each smoothness.
    weight : (k,) array
        Share of the draws.
    rhat, ess, divergences : (k,) array
        Diagnostics of NUTS over all kept and unkept draws: largest R-hat, smallest effective sample size.
    pareto_k : (k,) array
        Of importance weights of draws from the Laplace approximation, over the whole field. Below 0.7 the approximation
        could be corrected by weights; above, it cannot, which by itself says little about single places.
    profile : (k,) array
        Probability of the nominal 90 % interval of the log-intensity at a place, where the posterior is followed along
        the line in which the approximation moves with that place; of some places the one farthest from 90 %.
    """

    length_scale: Floats
    weight: Floats
    rhat: Floats
    ess: Floats
    divergences: Floats
    pareto_k: Floats
    profile: Floats

    @classmethod
    def unknown(cls, scales: Sequence[float]) -> "FitNotes":
        """Diagnostics of priors with these scales, of which nothing is known."""
        return cls(np.array(scales, dtype=np.float64), *np.full((6, len(scales)), np.nan))

    def add(self, place: int, check: ApproximationCheck) -> None:
        """Note what a check of the Laplace approximation with the prior at a place has found."""
        self.pareto_k[place], self.profile[place] = check.pareto_k, check.profile

    @property
    def worst(self) -> Fit:
        """The worst diagnostics of fits with a twentieth of the draws or more; None where nothing is known."""
        counted = ~(self.weight < COUNTED)
        far = np.abs(self.profile - NOMINAL)
        return Fit(
            _worst(self.rhat, self.rhat, counted),
            _worst(self.ess, -self.ess, counted),
            _worst(self.pareto_k, self.pareto_k, counted),
            _worst(self.profile, far, counted),
        )

    @property
    def notes(self) -> dict[str, Floats]:
        """By name, as they stand beside the draws."""
        return {f"fit_{name}": values for name, values in asdict(self).items()}


def _worst(values: Floats, badness: Floats, counted: npt.NDArray[np.bool_]) -> float | None:
    known = np.flatnonzero(counted & ~np.isnan(values))
    return float(values[known[np.argmax(badness[known])]]) if len(known) else None


@dataclass(frozen=True, eq=False)
class Posterior:
    """Posterior draws of the log-intensity.

    Draws of all priors are mixed: each chain holds draws of every length scale, in random order. Chains and draws can
    so be compared and thinned like any others; autocorrelation is no longer seen in them, and was looked at before.

    Attributes
    ----------
    fields : (chains, draws, V) array of float32
        Log-intensity at the mesh's vertices (of its ratio to the offset, if there is one).
    length_scale : (chains, draws) array
        Length scale, or range, that each draw was made with.
    fits : FitNotes or None
        None where nothing is known.
    effects : (chains, draws, p) array or None
        Effects of covariates, per standard deviation of each, that went into the fields; None without covariates.
    """

    fields: NDArray[np.float32]
    length_scale: Floats
    fits: FitNotes | None = None
    effects: Floats | None = None

    @property
    def flat(self) -> NDArray[np.float32]:
        """(chains * draws, V) fields."""
        return self.fields.reshape(-1, self.fields.shape[-1])

    def mixed(self, rng: np.random.Generator) -> "Posterior":
        """The same draws, those of every chain in random order."""
        order = np.stack([rng.permutation(self.fields.shape[1]) for _ in self.fields])
        chain = np.arange(len(order))[:, None]
        effects = None if self.effects is None else self.effects[chain, order]
        return Posterior(self.fields[chain, order], self.length_scale[chain, order], self.fits, effects)

    def variables(self, mesh: Mesh) -> dict[str, Variable]:
        """Arrays by name, with their dimensions, as they are saved."""
        xy, (chains, draws, vertices) = mesh.vertices, self.fields.shape
        made = _variables(
            *(np.arange(size, dtype="<i4") for size in (chains, draws, vertices)),
            *(np.ascontiguousarray(column, dtype="<f8") for column in (xy[:, 0], xy[:, 1], self.length_scale)),
            np.ascontiguousarray(self.fields, dtype="<f4"),
        )
        return made if self.effects is None else made | _effects(self.effects)

    def to_xarray(self, mesh: Mesh) -> Any:
        """`xarray.Dataset` in ArviZ layout: `log_intensity` (chain, draw, vertex), `length_scale` (chain, draw)."""
        import xarray as xr

        made = {name: (each.dimensions, each.values) for name, each in self.variables(mesh).items()}
        named = ("chain", "draw", "vertex", "x", "y", *(() if self.effects is None else ("covariate",)))
        coords = {name: made.pop(name) for name in named}
        return xr.Dataset(made, coords=coords, attrs={} if self.fits is None else self.fits.notes)

    def file(self, mesh: Mesh, scales: Sequence[float]) -> bytes:
        """A netCDF-4 file with the group `posterior` of draws made with some of these length scales.

        It takes 4 bytes for each number of a field, 8 for each draw and chain, 20 for each vertex, 4 for each number of
        a draw within its chain, 8 for each effect of a draw, and no more than 16 KiB beside.
        """
        fits = self.fits or FitNotes.unknown(scales)
        return netcdf.written(GROUP, self.variables(mesh), fits.notes)


def _variables(*values: Any) -> dict[str, Variable]:
    dimensions = {
        "chain": ("chain",),
        "draw": ("draw",),
        "vertex": ("vertex",),
        "x": ("vertex",),
        "y": ("vertex",),
        "length_scale": ("chain", "draw"),
        "log_intensity": ("chain", "draw", "vertex"),
    }
    # Whoever reads with xarray finds where the vertices lie.
    notes = {"log_intensity": {"coordinates": "x y"}}
    named = zip(dimensions.items(), values, strict=True)
    return {name: Variable(each, array, notes.get(name, {})) for (name, each), array in named}


def _effects(effects: Floats) -> dict[str, Variable]:
    """Effects (chains, draws, p) by name, with the numbers of their covariates."""
    return {
        "covariate": Variable(("covariate",), np.arange(effects.shape[-1], dtype="<i4"), {}),
        "effect": Variable(("chain", "draw", "covariate"), np.ascontiguousarray(effects, dtype="<f8"), {}),
    }


def read_file(content: bytes, fits: int, effects: int = 0) -> tuple[Mapping[str, Any], FitNotes]:
    """Arrays of a saved posterior by name, with so many effects of covariates, and what is known of so many fits.

    Raises
    ------
    ValueError
        When the file is not byte by byte what is saved of them.
    """
    kinds = zip(("<i4",) * 3 + ("<f8",) * 3 + ("<f4",), (1, 1, 1, 1, 1, 2, 3), strict=True)
    like = _variables(*(np.zeros((1,) * rank, dtype=kind) for kind, rank in kinds))
    like |= _effects(np.zeros((1, 1, 1))) if effects else {}
    found, told = netcdf.read(content, GROUP, like, FitNotes.unknown([0.0] * fits).notes)
    return found, FitNotes(**{name.removeprefix("fit_"): values for name, values in told.items()})


def read_posterior(content: bytes, vertices: int, scales: Sequence[float], effects: int = 0) -> Posterior:
    """Draws at so many vertices, made with some of these length scales and so many covariates, from a netCDF file.

    Raises
    ------
    InputError
    """
    try:
        posterior = _classic(content) if content.startswith(CLASSIC) else _present(content, len(scales), effects)
        shape = posterior.fields.shape
        whole = shape == (*shape[:2], vertices) and posterior.length_scale.shape == shape[:2]
        finite = np.isfinite(posterior.fields).all() and np.isfinite(posterior.length_scale).all()
        whole = whole and posterior.fields.size > 0 and bool(finite)
        told = posterior.effects
        whole = whole and (told is None) == (effects == 0)
        whole = whole and (told is None or (told.shape == (*shape[:2], effects) and bool(np.isfinite(told).all())))
    except TooLargeError:
        raise
    except Exception:  # noqa: BLE001 - the reader of old files raises whatever a broken header leads to
        whole = False
    if not whole:
        msg = f"release: {POSTERIOR} is no posterior on the mesh of this release; the folder is not whole."
        raise InputError(msg)
    return posterior


def _present(content: bytes, fits: int, effects: int) -> Posterior:
    found, known = read_file(content, fits, effects)
    return Posterior(found["log_intensity"], found["length_scale"], known, found.get("effect"))


def _classic(content: bytes) -> Posterior:
    """Posterior of a file of version 3, whose length scales were the same in all chains."""
    from scipy.io import netcdf_file

    with netcdf_file(io.BytesIO(content), mmap=False) as data:
        fields = np.array(data.variables["log_intensity"].data, dtype=np.float32)
        scales = np.array(data.variables["length_scale"].data, dtype=float)
    return Posterior(fields, np.broadcast_to(scales, (len(fields), *scales.shape)))
