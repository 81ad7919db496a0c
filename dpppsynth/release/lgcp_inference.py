"""Noise-aware inference of a log-Gaussian Cox process (docs/theory.md, section 6; docs/theory/field.md).

Pure post-processing: it may fail, be run again, be tuned on the release, at no privacy cost.
"""

import io
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, ClassVar, Self

import numpy as np
import threadpoolctl
from numpy.typing import NDArray

from dpppsynth.contract.additive_noise import LatticePlan, PrivateStatistic
from dpppsynth.contract.effort import mesh_work
from dpppsynth.contract.estimator import Beside, Estimator
from dpppsynth.contract.measurement import Following, Parameters, require
from dpppsynth.contract.mesh_sizes import mesh_words
from dpppsynth.contract.rules import FIELD_SIGMA
from dpppsynth.core.arguments import one_of, positive
from dpppsynth.core.errors import InputError, QualityError, TooLargeError
from dpppsynth.core.json_types import Json, JsonObject, JsonRead
from dpppsynth.core.progress import Progress
from dpppsynth.core.randomness import RngLike, generator
from dpppsynth.core.wording import Rows
from dpppsynth.models.covariances import (
    LARGEST_PARAMETER,
    SMALLEST_PARAMETER,
    PoweredExponential,
    factor,
    require_few_vertices,
)
from dpppsynth.models.laplace_approximation import LaplacePosterior, laplace_posterior
from dpppsynth.models.likelihood import MassLikelihood, NoisyField
from dpppsynth.models.recipes import mesh_from_recipe
from dpppsynth.release.certificate import OFFSET, POSTERIOR
from dpppsynth.release.contents import require_posterior
from dpppsynth.release.estimators import offset_of, offset_rows
from dpppsynth.spatial.domains import Domain, canonical_json
from dpppsynth.spatial.intensity import LogLinearMean
from dpppsynth.spatial.loglinear_integrals import integrate_exp
from dpppsynth.spatial.mesh import Floats, Ints, Mesh, Pieces
from dpppsynth.spatial.offset import Offset, require_somewhere, weighted_pieces

# Standard deviation of the intercept's prior where n is secret (log scale).
INTERCEPT_SD = 2.0
INFERENCES, ENGINES = ("nuts", "laplace"), ("nutpie", "pymc")
# Settings on a certificate.
STATED = {"kind", "mesh", "length_scales", "sigma", "offset", "inference", "engine"}
# Length scales that one model may average over.
MOST_SCALES = 16
# A length scale with less posterior weight than this is not worth a run of its own.
NEGLIGIBLE = 0.01
# Times the covariance of a field statistic is taken again at the masses estimated with it.
ROUNDS = 2
# Draws kept for the release, all chains together, and draws per chain of every NUTS run.
KEPT_DRAWS = 2000
NUTS_DRAWS, NUTS_TUNE = 1500, 500
# Rough fields on networks diverge now and then at the usual target of 0.8.
ROUGH_ACCEPT = 0.9


@dataclass(frozen=True, eq=False)
class Posterior:
    """Posterior draws of the log-intensity.

    Attributes
    ----------
    fields : (chains, draws, V) array of float32
        Log-intensity at the mesh's vertices (of its ratio to the offset, if there is one).
    length_scale : (draws,) array
        Length scale each draw was made with.
    """

    fields: NDArray[np.float32]
    length_scale: Floats

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


@dataclass(frozen=True, eq=False, repr=False)
class LGCPInference(Estimator[LatticePlan]):
    """Prior and inference settings of the noise-aware posterior; all public.

    Attributes
    ----------
    mesh : Mesh
        Mesh of the field: the tents' own, or a refinement of it.
    length_scales : tuple of float
        Averaged over with weights evidence * l^2.
    sigma : float
    offset : Offset, optional
        Public base intensity.
    inference : {"nuts", "laplace"}
    engine : {"nutpie", "pymc"}
        Implementation of NUTS.
    """

    mesh: Mesh
    length_scales: tuple[float, ...]
    sigma: float = FIELD_SIGMA
    offset: Offset | None = None
    inference: str = "nuts"
    engine: str = "nutpie"
    kind: ClassVar[str] = "field"
    has_posterior: ClassVar[bool] = True

    def __post_init__(self) -> None:
        scales = self.length_scales
        if not isinstance(scales, tuple) or not scales or not all(0 < scale < np.inf for scale in scales):
            msg = f"length_scales: needs a tuple of positive numbers, such as (150.0, 300.0), got {scales!r}."
            raise InputError(msg)
        if len(scales) > MOST_SCALES:
            msg = f"length_scales: needs at most {MOST_SCALES}, got {len(scales)}; leave some out."
            raise InputError(msg)
        positive("sigma", self.sigma)
        one_of("inference", self.inference, INFERENCES)
        one_of("engine", self.engine, ENGINES)
        require_few_vertices(self.mesh)
        _ = [self.covariance(scale) for scale in scales]
        require_somewhere(self.measure)

    def __repr__(self) -> str:
        return f"LGCPInference({self.mesh!r}, length_scales={self.length_scales}, inference={self.inference!r})"

    @cached_property
    def measure(self) -> Floats:
        """(V,) integral over the window of each basis function, times the offset."""
        return self.mesh.integrate(self.pieces)

    @cached_property
    def pieces(self) -> Pieces:
        """Triangles over which intensities integrate."""
        return weighted_pieces(self.mesh, self.offset)

    def likelihood(self, statistic: PrivateStatistic[LatticePlan]) -> MassLikelihood:
        """Likelihood of the field given the private statistic; a field statistic's is set to uniform masses."""
        return statistic.plan.likelihood(statistic, self.measure, self.mesh.shares(statistic.plan.mesh))

    def covariance(self, length_scale: float) -> PoweredExponential:
        """Prior covariance of the field."""
        return PoweredExponential(self.sigma, length_scale, self.mesh.smoothest_power)

    def prior_factor(self, length_scale: float, *, intercept: bool) -> Floats:
        """(V, r) factor of the prior covariance; a Gaussian intercept is one more column."""
        root = factor(self.covariance(length_scale).matrix(self.mesh))
        return np.hstack([root, np.full((len(root), 1), INTERCEPT_SD)]) if intercept else root

    def fit(
        self, statistic: PrivateStatistic[LatticePlan], rng: RngLike = None, progress: Progress | None = None
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
            When NUTS fails its diagnostics.
        """
        # Small matrices, and chains in parallel: threads of the linear algebra library only get in each other's way.
        with threadpoolctl.threadpool_limits(1):
            return self._fit(statistic, generator(rng), progress or _silent)

    def _fit(self, statistic: PrivateStatistic[LatticePlan], rng: np.random.Generator, say: Progress) -> Posterior:
        plan, likelihood = statistic.plan, self.likelihood(statistic)
        centre = 0.0 if plan.n is not None else float(np.log((plan.expected_n or 1.0) / self.measure.sum()))
        say("Laplace approximations")
        roots = [self.prior_factor(scale, intercept=plan.n is None) for scale in self.length_scales]
        fits, share = self._approximate(likelihood, roots, centre)
        if isinstance(likelihood, NoisyField):
            for _ in range(ROUNDS):
                likelihood = likelihood.at(share @ likelihood.vertex_masses(np.array([fit.field_mode for fit in fits])))
                fits, share = self._approximate(likelihood, roots, centre)
        if self.inference == "laplace":
            count = _apportion(share, KEPT_DRAWS)
            runs = [fit.draw(k, rng)[None] for fit, k in zip(fits, count, strict=True)]
        else:
            share = np.where(share >= NEGLIGIBLE, share, 0) / share[share >= NEGLIGIBLE].sum()
            count = _apportion(share, KEPT_DRAWS // 4)
            runs = self._nuts(likelihood, fits, count, rng, say)
        fields = self.normalise(np.concatenate(runs, axis=1), plan.n)
        return Posterior(fields, np.repeat(self.length_scales, count))

    def _approximate(
        self, likelihood: MassLikelihood, roots: list[Floats], centre: float
    ) -> tuple[list[LaplacePosterior], Floats]:
        """Laplace approximations for every length scale, and their weights."""
        fits = [laplace_posterior(likelihood, root, centre) for root in roots]
        return fits, _weights(fits, self.length_scales)

    def _nuts(
        self,
        likelihood: MassLikelihood,
        fits: list[LaplacePosterior],
        count: Ints,
        rng: np.random.Generator,
        say: Progress,
    ) -> list[Floats]:
        """(4, k, V) draws for each length scale, evenly thinned from a run that passed its diagnostics."""
        from dpppsynth.models.lgcp import build_noise_aware
        from dpppsynth.models.nuts import Sampler, diagnose

        # Rotated so that the posterior precision is about diagonal: NUTS then needs few steps a draw.
        bases = {i: fits[i].rotated_basis() for i in np.flatnonzero(count)}
        width = max(basis.shape[1] for basis in bases.values())
        bases = {i: np.pad(basis, ((0, 0), (0, width - basis.shape[1]))) for i, basis in bases.items()}
        centre = float(fits[0].centre[0])
        say("compiling the model")
        model = build_noise_aware(likelihood, next(iter(bases.values())), centre)
        sampler = Sampler(model, self.engine, ROUGH_ACCEPT if self.mesh.smoothest_power < 2 else 0.8)
        runs = [np.empty((4, 0, len(self.mesh.vertices)))] * len(fits)
        for i, basis in bases.items():
            say(f"NUTS, length scale {self.length_scales[i]:.4g}")
            seed = int(rng.integers(2**31))
            chains = sampler.sample(draws=NUTS_DRAWS, tune=NUTS_TUNE, seed=seed, data={"basis": basis})
            fields = centre + chains.z @ basis.T
            masses = likelihood.expected_masses(fields)
            # Tents that only touch the domain have no mass, whatever the field.
            masses = masses[..., (masses > 0).all(axis=(0, 1))]
            complaint = diagnose(np.log(masses), chains.divergences).complaint()
            if complaint is not None:
                msg = (
                    f"inference: NUTS reached {complaint}. Nothing is lost: the private statistic is kept on this "
                    "error; `error.release.infer()` tries another seed, `error.release.infer(inference='laplace')` an "
                    "approximation, at no privacy cost."
                )
                raise QualityError(msg)
            runs[i] = fields[:, np.linspace(0, NUTS_DRAWS - 1, count[i]).round().astype(int)]
        return runs

    def normalise(self, fields: Floats, n: int | None) -> NDArray[np.float32]:
        """Log-intensities whose exact integral is the public n (unchanged where n is secret), in single precision."""
        if n is not None:
            flat = fields.reshape(-1, fields.shape[-1])
            flat = flat - flat.max(axis=1, keepdims=True)
            totals = integrate_exp(self.mesh, self.pieces, flat)
            fields = (flat + np.log(n / totals)[:, None]).reshape(fields.shape)
        return fields.astype(np.float32)

    def intensity(self, statistic: PrivateStatistic[LatticePlan]) -> LogLinearMean:
        """Posterior mean intensity of a fit of its own."""
        return self.posterior_mean(self.fit(statistic))

    def posterior_mean(self, posterior: Posterior) -> LogLinearMean:
        """Posterior mean intensity, from which single draws can be taken."""
        flat = posterior.fields.reshape(-1, posterior.fields.shape[-1]).astype(float)
        return LogLinearMean(self.mesh, flat, self.offset)

    def table_rows(self) -> Rows:
        """Prior and inference."""
        engine = f" ({self.engine})" if self.inference == "nuts" else ""
        return [
            ("field", f"log-Gaussian, sigma {self.sigma:g}, on {mesh_words(self.mesh)}"),
            ("length scales", ", ".join(f"{each:.4g}" for each in self.length_scales)),
            ("inference", self.inference + engine),
            *offset_rows(self.offset),
        ]

    def public_numbers(self) -> JsonObject:
        """Size of the field, its prior and the way of inference."""
        return {
            "field_vertices": len(self.mesh.vertices),
            "field_sigma": self.sigma,
            "length_scales": self.length_scales,
            "inference": self.inference,
        }

    def to_dict(self) -> JsonObject:
        """JSON form, as it stands on a certificate."""
        return {
            "kind": self.kind,
            "mesh": self.mesh.recipe,
            "length_scales": list(self.length_scales),
            "sigma": self.sigma,
            "offset": None if self.offset is None else self.offset.fingerprint,
            "inference": self.inference,
            "engine": self.engine,
        }

    @classmethod
    def beside(cls, stated: JsonRead, plan: LatticePlan) -> Beside:
        """The posterior draws, and the offset where there is one."""
        mesh, offset = _validated(stated, plan.mesh)
        files = {POSTERIOR} | (set() if offset is None else {OFFSET})
        check = partial(_require_posterior, mesh=mesh, length_scales=stated["length_scales"])
        return Beside(frozenset(files), offset, (Following(POSTERIOR, (), check),))

    @classmethod
    def work(cls, stated: Json, parameters: Parameters, domain: Domain) -> float:
        """Work of the field's mesh, unless it is the statistic's."""
        mesh = stated.get("mesh") if isinstance(stated, dict) else None
        return 0.0 if mesh == parameters.get("mesh") else mesh_work(mesh, domain)

    @classmethod
    def from_dict(cls, stated: JsonRead, plan: LatticePlan, offset: Offset | None) -> Self:
        """The model that is stated."""
        return cls(
            mesh=mesh_from_recipe(stated["mesh"], plan.domain),
            length_scales=tuple(stated["length_scales"]),
            sigma=stated["sigma"],
            offset=offset,
            inference=stated["inference"],
            engine=stated["engine"],
        )

    def draws(self, content: bytes | None) -> Posterior | None:
        """Posterior draws in the file of a saved release, where there is one."""
        return None if content is None else _posterior(content, len(self.mesh.vertices))


def _validated(estimator: JsonRead, tents: Mesh) -> tuple[Mesh, str | None]:
    """Mesh and offset of a field model for a statistic on a mesh, with all of its settings validated."""
    require(estimator.keys() == STATED, f"a field model states exactly {', '.join(sorted(STATED))}")
    require(_positive(estimator["sigma"]), "sigma is a positive number")
    scales = estimator["length_scales"]
    few = isinstance(scales, list) and 0 < len(scales) <= MOST_SCALES
    require(few and all(map(_positive, scales)), f"there are 1 to {MOST_SCALES} length scales, positive numbers")
    require(estimator["inference"] in INFERENCES, f"inference is {' or '.join(INFERENCES)}")
    require(estimator["engine"] in ENGINES, f"the engine is {' or '.join(ENGINES)}")
    return _field_mesh(estimator["mesh"], tents), offset_of(estimator)


def _field_mesh(recipe: Json, tents: Mesh) -> Mesh:
    """The mesh of the field: the statistic's own, a refinement of it, or along or over the same network."""
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


def _positive(value: Json) -> bool:
    """Whether a value is a number that a covariance takes as a positive parameter."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return number and SMALLEST_PARAMETER <= value <= LARGEST_PARAMETER


def _require_posterior(content: bytes, _: Ints, *, mesh: Mesh, length_scales: Sequence[float]) -> None:
    require_posterior(content, mesh, length_scales)


def _posterior(content: bytes, vertices: int) -> Posterior:
    """Draws at so many vertices, from a netCDF file."""
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


def _silent(text: str) -> None:
    """Progress callback that does nothing."""


def _weights(fits: list[LaplacePosterior], length_scales: tuple[float, ...]) -> Floats:
    """Posterior weights of the length scales, evidence * l^2, normalised."""
    log_weight = np.array([fit.log_evidence for fit in fits]) + 2 * np.log(length_scales)
    weight = np.exp(log_weight - log_weight.max())
    return weight / weight.sum()


def _apportion(share: Floats, seats: int) -> Ints:
    """Whole numbers in proportion to `share` that sum to `seats`, by largest remainders."""
    count = np.floor(share * seats).astype(int)
    rest = np.argsort(count - share * seats)[: seats - count.sum()]
    count[rest] += 1
    return count
