"""`FieldInference`: a log-Gaussian field inferred from a private statistic, as post-processing without privacy cost.

It makes a `Posterior`: draws, diagnostics of their fits, and the file of both. It may fail, be run again, be tuned on
the release. `LGCPInference` has dense priors, `MaternInference` sparse ones.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
import scipy
import threadpoolctl
from numpy.typing import NDArray

from dpppsynth.contract.additive_noise import LatticeStatistic, PrivateStatistic
from dpppsynth.contract.estimator import COVARIATES, POSTERIOR, Estimator, offset_stated
from dpppsynth.contract.result import FitSummary
from dpppsynth.contract.statistic import FileCheck, require
from dpppsynth.core.errors import InputError, QualityError, TooLargeError
from dpppsynth.core.progress import Progress, silent
from dpppsynth.core.randomness import RngLike, generator
from dpppsynth.core.types import Json, JsonObject, JsonRead
from dpppsynth.inference.array_files import Variable, array_file, read_arrays, read_covariates
from dpppsynth.models.laplace_approximation import ApproximationCheck
from dpppsynth.models.recipes import mesh_from_recipe
from dpppsynth.spatial.covariates import Design
from dpppsynth.spatial.domains import canonical_json
from dpppsynth.spatial.intensity import Intensity, LogLinear, LogLinearMean
from dpppsynth.spatial.mesh import Floats, Ints, Mesh, Pieces, gauss_rule, integrate_exp
from dpppsynth.spatial.offset import Offset, nowhere

INFERENCES = "nuts", "laplace"
# Standard deviation of the intercept's prior where n is secret (log scale).
INTERCEPT_SD = 2.0
# Weight of an even field before the data, in that of all others. Few originals are even, and where little is known of
# one that is not, nothing should pass for evenness; even ones soon outweigh it.
EVEN = 0.05
# What stands for the length scale, or range, of a prior that has none: an even field, or a given precision.
NO_RANGE = 0.0
# Length scales, or ranges, that one model may average over.
MOST_SCALES = 16
# Points along a side of an element at which draws are integrated.
POINTS = 2
# Group of the posterior's file.
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
        # Readers with xarray find where the vertices lie, and of which type and time they are.
        placed = {"coordinates": " ".join(["x", "y", *mesh.labels])}
        made = {
            "chain": Variable(("chain",), chains),
            "draw": Variable(("draw",), draws),
            "vertex": Variable(("vertex",), vertices),
            "x": Variable(("vertex",), mesh.vertices[:, 0].astype("<f8")),
            "y": Variable(("vertex",), mesh.vertices[:, 1].astype("<f8")),
            **{name: Variable(("vertex",), each, {"long_name": told}) for name, (each, told) in mesh.labels.items()},
            "length_scale": Variable(("chain", "draw"), self.length_scale.astype("<f8")),
            "log_intensity": Variable(("chain", "draw", "vertex"), self.fields.astype("<f4"), placed),
        }
        if self.effects is None:
            return made
        numbers = np.arange(self.effects.shape[-1], dtype="<i4")
        effects = Variable(("chain", "draw", "covariate"), self.effects.astype("<f8"))
        return made | {"covariate": Variable(("covariate",), numbers), "effect": effects}

    def to_xarray(self, mesh: Mesh) -> Any:
        """`xarray.Dataset` in ArviZ layout: `log_intensity` (chain, draw, vertex), `length_scale` (chain, draw)."""
        import xarray as xr

        told = {name: {"long_name": words} for name, (_, words) in mesh.labels.items()}
        made = {n: (each.dimensions, each.values, told.get(n)) for n, each in self.variables(mesh).items()}
        named = ("chain", "draw", "vertex", "x", "y", *told, *(() if self.effects is None else ("covariate",)))
        coords = {name: made.pop(name) for name in named}
        return xr.Dataset(made, coords=coords, attrs={} if self.fits is None else self.fits.notes)

    def file(self, mesh: Mesh, scales: Sequence[float]) -> bytes:
        """A netCDF-4 file with the group `posterior` of draws made with some of these length scales."""
        return array_file(GROUP, self.variables(mesh), (self.fits or FitNotes.unknown(scales)).notes)


KINDS = {"chain": "<i4 1", "draw": "<i4 1", "vertex": "<i4 1", "x": "<f8 1", "y": "<f8 1"}
KINDS |= {"length_scale": "<f8 2", "log_intensity": "<f4 3"}
EFFECTS = {"covariate": "<i4 1", "effect": "<f8 3"}


def read_posterior(content: bytes, mesh: Mesh, scales: Sequence[float], effects: int = 0) -> Posterior:
    """Draws on a mesh from a netCDF file, with these length scales and `effects` covariates; InputError for others."""
    try:
        return _read(content, mesh, scales, effects)
    except TooLargeError:
        raise
    except ValueError:
        msg = f"release: {POSTERIOR} is no posterior on the mesh of this release; the folder is not whole."
        raise InputError(msg) from None


def _read(content: bytes, mesh: Mesh, scales: Sequence[float], effects: int) -> Posterior:
    vertices, labels = mesh.vertices, {name: values for name, (values, _) in mesh.labels.items()}
    known = KINDS | {name: f"{each.dtype.str} 1" for name, each in labels.items()} | (EFFECTS if effects else {})
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
    same = all(np.array_equal(found[name], each) for name, each in labels.items())
    require(same, "vertices are of the types and times that the mesh has")
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


class FieldInference(Estimator[LatticeStatistic]):
    """Base of estimators by a log-Gaussian field.

    Attributes
    ----------
    mesh : Mesh
        Mesh of the field.
    offset : Offset or None
        Public base intensity.
    covariates : Design or None
        Public covariates; dense priors have none.
    """

    mesh: Mesh
    offset: Offset | None
    covariates: Design | None = None
    # Whether an even field is one more prior.
    even: bool = False
    inference: str
    has_posterior: ClassVar[bool] = True
    # Settings that `CoxRelease.infer` may change, and a certificate states.
    adjustable: ClassVar[frozenset[str]]

    @property
    def places(self) -> Mesh:
        """Mesh at whose vertices covariates are known: the field's own; with times or types, the mesh in space."""
        return self.mesh

    @property
    def told(self) -> Design | None:
        """The covariates whose effects a posterior tells."""
        return self.covariates

    def changed(self, changes: Mapping[str, Any], _plan: LatticeStatistic) -> Self:
        """A copy of the estimator with other settings, behind the same statistic.

        Raises
        ------
        InputError
            When it has no such settings.
        """
        unknown = sorted(set(changes) - self.adjustable)
        if unknown:
            msg = f"infer: unknown setting {unknown}; expected some of {sorted(self.adjustable)}."
            raise InputError(msg)
        return replace(self, **changes)  # type: ignore[type-var]

    @property
    def scales(self) -> tuple[float, ...]:
        """Length scales, or ranges, of the priors that are averaged over."""
        raise NotImplementedError

    @cached_property
    def measure(self) -> Floats:
        """(V,) integral over the domain of each basis function, times the offset."""
        return self.mesh.integrate(self.pieces)

    @cached_property
    def pieces(self) -> Pieces:
        """Pieces over which intensities integrate."""
        return self.mesh.weighted_pieces(self.offset)

    @cached_property
    def rule(self) -> "tuple[scipy.sparse.csr_array, Floats]":
        """Rule of integration over the domain, times the offset."""
        return gauss_rule(self.mesh, self.pieces, POINTS)

    def centre(self, plan: LatticeStatistic) -> float:
        """Prior mean of the field: 0 where n is public, as any value will do, else the level of the guess of n."""
        return 0.0 if plan.n is not None else float(np.log((plan.expected_n or 1.0) / self.measure.sum()))

    def fit(
        self, statistic: PrivateStatistic[LatticeStatistic], rng: RngLike = None, progress: Progress | None = None
    ) -> Posterior:
        """Posterior of the log-intensity.

        Parameters
        ----------
        statistic : PrivateStatistic
        rng : None, int or Generator
            Free to seed: this is post-processing.
        progress : callable, optional
            Told in words what is going on.

        Raises
        ------
        QualityError
            When NUTS fails its diagnostics, or no mode is found.
        """
        # Chains and small matrices gain nothing from the linear algebra library's threads, which get in their way.
        with threadpoolctl.threadpool_limits(1):
            return self._fit(statistic, generator(rng), progress or silent)

    def _fit(self, statistic: PrivateStatistic[LatticeStatistic], rng: np.random.Generator, say: Progress) -> Posterior:
        raise NotImplementedError

    def normalise(self, fields: Floats, n: float | Floats | None) -> NDArray[np.float32]:
        """Log-intensities whose exact integral is n, or one number each (unchanged without), in single precision."""
        if n is not None:
            flat = fields.reshape(-1, fields.shape[-1])
            flat = flat - flat.max(axis=1, keepdims=True)
            totals = integrate_exp(self.mesh, self.pieces, flat)
            fields = (flat + np.log(n / totals)[:, None]).reshape(fields.shape)
        return fields.astype(np.float32)

    def intensity(self, statistic: PrivateStatistic[LatticeStatistic]) -> Intensity:
        return self.released(self.fit(statistic), statistic.definition)

    def posterior_mean(self, posterior: Posterior) -> LogLinearMean:
        """Posterior mean intensity, from which single draws can be taken."""
        return LogLinearMean(self.mesh, posterior.flat.astype(float), self.offset)

    def released(self, posterior: Posterior, plan: LatticeStatistic) -> Intensity:
        """The released intensity: exp of the middle log-intensity, with the public total, or that of the mean."""
        return LogLinear(self.mesh, self.released_field(posterior, plan), self.offset)

    def released_field(self, posterior: Posterior, plan: LatticeStatistic) -> Floats:
        """(V,) logarithm of the released intensity at the vertices."""
        total = self.posterior_mean(posterior).total if plan.n is None else float(plan.n)
        return self.normalise(self.middle(posterior, plan)[None], total)[0].astype(float)

    def middle(self, posterior: Posterior, plan: LatticeStatistic) -> Floats:
        """(V,) median of the log-intensity.

        Where places are empty, the mean of exp of a field lies far above what is there.
        """
        return np.median(posterior.flat, axis=0).astype(float)

    @property
    def following(self) -> dict[str, FileCheck]:
        read: dict[str, FileCheck] = {POSTERIOR: lambda content, _: self.draws(content)}
        return read if self.covariates is None else read | {COVARIATES: lambda content, _: self.reopened(content)}

    def to_dict(self) -> JsonObject:
        own = {name: getattr(self, name) for name in sorted(self.adjustable)}
        plain = {name: list(value) if isinstance(value, tuple) else value for name, value in own.items()}
        return {"kind": self.kind, "mesh": self.mesh.recipe, **plain, **offset_stated(self.offset)}

    @classmethod
    def stated_settings(cls, stated: JsonRead) -> dict[str, Any]:
        """Settings as a certificate states them."""
        own = {name: stated[name] for name in cls.adjustable}
        return {name: tuple(value) if isinstance(value, list) else value for name, value in own.items()}

    def draws(self, content: bytes | None) -> Posterior | None:
        """Posterior draws in the file of a saved release, where there is one."""
        effects = 0 if self.told is None else len(self.told.names)
        return None if content is None else read_posterior(content, self.mesh, self.scales, effects)

    def reopened(self, content: bytes | None) -> Self:
        """The estimator with the covariates in the file of a saved release, where there is one."""
        if self.covariates is None or content is None:
            return self
        design = read_covariates(content, self.covariates, len(self.places.vertices))
        return replace(self, covariates=design)  # type: ignore[type-var]


def field_mesh(recipe: Json, tents: Mesh) -> Mesh:
    """The mesh of the field: the statistic's own, a refinement of it, or along or over the same network; InputError."""
    if canonical_json(recipe) == canonical_json(tents.recipe):
        return tents
    require(isinstance(recipe, dict), "the mesh of a field is described by its recipe")
    builder, own = recipe.get("builder"), tents.recipe
    if builder == "regular":
        pairs = [] if own["builder"] != builder else list(zip(recipe["shape"], own["shape"], strict=True))
        factors = {(fine - 1) / (coarse - 1) for fine, coarse in pairs}
        nested = len(factors) == 1 and factors.pop().is_integer() and recipe["kind"] == own["kind"]
        require(nested, "the mesh of a field refines the statistic's")
    else:
        require(builder in ("network", "trace"), "the mesh of a field is the statistic's own where that is not regular")
    return mesh_from_recipe(recipe, tents.domain)


def opened_values(design: Design) -> Floats:
    """(P, p) covariates at the places of a field; QualityError where a release states their fingerprint alone."""
    if design.values is None:
        msg = "covariates: the release states their fingerprint alone; take one that was opened with its files."
        raise QualityError(msg)
    return design.values


def require_somewhere(measure: Floats) -> None:
    """Refuse integrals (V,) of basis functions times an offset without a positive finite sum; InputError."""
    if not 0 < measure.sum() < np.inf:
        raise nowhere()


def require_few(name: str, scales: tuple[float, ...]) -> None:
    """Refuse length scales, or ranges, that are not a few positive numbers."""
    if not isinstance(scales, tuple) or not scales or not all(0 < scale < np.inf for scale in scales):
        msg = f"{name}: needs a tuple of positive numbers, such as (150.0, 300.0), got {scales!r}."
        raise InputError(msg)
    if len(scales) > MOST_SCALES:
        msg = f"{name}: needs at most {MOST_SCALES}, got {len(scales)}; leave some out."
        raise InputError(msg)


def apportion(share: Floats, seats: int) -> Ints:
    """Whole numbers in proportion to `share` that sum to `seats`, by largest remainders."""
    count = np.floor(share * seats).astype(int)
    rest = np.argsort(count - share * seats)[: seats - count.sum()]
    count[rest] += 1
    return count
