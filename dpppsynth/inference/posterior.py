"""Posterior draws of a log-intensity, diagnostics of their fit, and their file in a saved release."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.typing import NDArray

from dpppsynth.contract.estimator import POSTERIOR
from dpppsynth.contract.result import FitSummary
from dpppsynth.contract.statistic import require
from dpppsynth.core.errors import InputError, TooLargeError
from dpppsynth.inference.array_files import Variable, array_file, read_arrays
from dpppsynth.models.laplace_approximation import ApproximationCheck
from dpppsynth.spatial.mesh import Floats, Mesh

GROUP = "posterior"
# Share of the draws from which a fit counts among the worst, and probability of the intervals that are checked.
COUNTED, NOMINAL = 0.05, 0.9


@dataclass(frozen=True, eq=False)
class FitNotes:
    """Diagnostics of the fits that a posterior averages over, one for each prior; NaN where unknown.

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
        """Empty diagnostics for priors with these scales."""
        return cls(np.array(scales, dtype=np.float64), *np.full((6, len(scales)), np.nan))

    def add(self, place: int, check: ApproximationCheck) -> None:
        """Add the results of a check of the Laplace approximation with one prior."""
        self.pareto_k[place], self.profile[place] = check.pareto_k, check.profile

    @property
    def worst(self) -> FitSummary:
        """The worst diagnostics of fits with a twentieth of the draws or more; each is None where unknown."""
        counted = ~(self.weight < COUNTED)
        far = np.abs(self.profile - NOMINAL)
        return FitSummary(
            _worst(self.rhat, self.rhat, counted),
            _worst(self.ess, -self.ess, counted),
            _worst(self.pareto_k, self.pareto_k, counted),
            _worst(self.profile, far, counted),
        )

    @property
    def notes(self) -> dict[str, Floats]:
        """Diagnostics by their names in the file of draws."""
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
        chains, draws, vertices = (np.arange(size, dtype="<i4") for size in self.fields.shape)
        made = {
            "chain": Variable(("chain",), chains),
            "draw": Variable(("draw",), draws),
            "vertex": Variable(("vertex",), vertices),
            "x": Variable(("vertex",), mesh.vertices[:, 0].astype("<f8")),
            "y": Variable(("vertex",), mesh.vertices[:, 1].astype("<f8")),
            "length_scale": Variable(("chain", "draw"), self.length_scale.astype("<f8")),
            # Readers with xarray find where the vertices lie.
            "log_intensity": Variable(("chain", "draw", "vertex"), self.fields.astype("<f4"), {"coordinates": "x y"}),
        }
        if self.effects is None:
            return made
        numbers = np.arange(self.effects.shape[-1], dtype="<i4")
        effects = Variable(("chain", "draw", "covariate"), self.effects.astype("<f8"))
        return made | {"covariate": Variable(("covariate",), numbers), "effect": effects}

    def to_xarray(self, mesh: Mesh) -> Any:
        """`xarray.Dataset` in ArviZ layout: `log_intensity` (chain, draw, vertex), `length_scale` (chain, draw)."""
        import xarray as xr

        made = {name: (each.dimensions, each.values) for name, each in self.variables(mesh).items()}
        named = ("chain", "draw", "vertex", "x", "y", *(() if self.effects is None else ("covariate",)))
        coords = {name: made.pop(name) for name in named}
        return xr.Dataset(made, coords=coords, attrs={} if self.fits is None else self.fits.notes)

    def file(self, mesh: Mesh, scales: Sequence[float]) -> bytes:
        """A netCDF-4 file with the group `posterior` of draws made with some of these length scales."""
        return array_file(GROUP, self.variables(mesh), (self.fits or FitNotes.unknown(scales)).notes)


KINDS = {"chain": "<i4 1", "draw": "<i4 1", "vertex": "<i4 1", "x": "<f8 1", "y": "<f8 1"}
KINDS |= {"length_scale": "<f8 2", "log_intensity": "<f4 3"}
EFFECTS = {"covariate": "<i4 1", "effect": "<f8 3"}


def read_posterior(content: bytes, mesh: Mesh, scales: Sequence[float], effects: int = 0) -> Posterior:
    """Draws on a mesh from a netCDF file, with length scales among these and with `effects` covariates.

    Raises
    ------
    InputError
    """
    try:
        return _read(content, mesh.vertices, scales, effects)
    except TooLargeError:
        raise
    except ValueError:
        msg = f"release: {POSTERIOR} is no posterior on the mesh of this release; the folder is not whole."
        raise InputError(msg) from None


def _read(content: bytes, vertices: Floats, scales: Sequence[float], effects: int) -> Posterior:
    known = KINDS | (EFFECTS if effects else {})
    found, told = read_arrays(content, GROUP, known, dict.fromkeys(FitNotes.unknown(scales).notes, len(scales)))
    fits = FitNotes(**{name.removeprefix("fit_"): values for name, values in told.items()})
    posterior = Posterior(found["log_intensity"], found["length_scale"], fits, found.get("effect"))
    chains, draws, places = posterior.fields.shape
    require(places == len(vertices) and min(chains, draws) > 0, "draws are on the mesh of the field")
    require(posterior.length_scale.shape == (chains, draws), "every draw has a length scale")
    sizes = {"chain": chains, "draw": draws, "vertex": places} | ({"covariate": effects} if effects else {})
    numbered = all(np.array_equal(found[name], np.arange(size)) for name, size in sizes.items())
    require(numbered, "chains, draws and vertices are numbered")
    there = len(found["x"]) == len(found["y"]) == places and np.allclose(
        np.column_stack([found["x"], found["y"]]), vertices, rtol=1e-12, atol=0
    )
    require(there, "vertices lie where the mesh has them")
    finite = np.isfinite(posterior.fields).all() and np.isin(posterior.length_scale, scales).all()
    require(bool(finite), "fields are finite, and made with length scales of the model")
    if posterior.effects is not None:
        whole = posterior.effects.shape == (chains, draws, effects) and np.isfinite(posterior.effects).all()
        require(bool(whole), "effects are finite")
    noted = np.concatenate(list(fits.notes.values()))
    stated = np.array_equal(fits.length_scale, np.asarray(scales, dtype=np.float64))
    plain = bool((np.isnan(noted) | (noted >= -1)).all())
    require(stated and plain, "what is known of the fits are numbers, one for each length scale of the model")
    return posterior
