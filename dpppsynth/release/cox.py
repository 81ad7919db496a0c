"""`CoxRelease`: a private intensity, its guarantee, and as many synthetic patterns as wanted."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import cached_property
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, Self, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike

from dpppsynth.contract.additive_noise import LaplaceMasses, LatticeStatistic, PrivateStatistic
from dpppsynth.contract.estimator import COVARIATES, POSTERIOR, Estimator, assumed_of
from dpppsynth.contract.result import UNFITTED, FitSummary, Saved
from dpppsynth.core.arguments import one_of, probability
from dpppsynth.core.errors import InputError, QualityError
from dpppsynth.core.progress import Progress, ProgressLike, announced
from dpppsynth.core.randomness import RngLike, generator
from dpppsynth.core.rounding import stated
from dpppsynth.core.types import JsonObject
from dpppsynth.inference.array_files import covariates_file
from dpppsynth.inference.field_inference import FieldInference, FitNotes, Posterior
from dpppsynth.privacy.guarantee import Guarantee
from dpppsynth.release.offset_file import write_offset
from dpppsynth.release.release import StatisticRelease
from dpppsynth.spatial.intensity import Intensity
from dpppsynth.spatial.mesh import Floats, Mesh
from dpppsynth.spatial.pattern_sources import SOURCES
from dpppsynth.spatial.patterns import PointPattern
from dpppsynth.spatial.sampling import binomial_pattern, poisson_pattern
from dpppsynth.spatial.second_order import checked_coordinates

if TYPE_CHECKING:
    from dpppsynth.inference.risk import Effects, RelativeRisk

L = TypeVar("L", bound=LatticeStatistic)
FAILED = (
    "inference: it ended in an error. Nothing is lost: the private statistic is kept on this error; "
    "`error.release.infer()` tries again with other settings, `error.release.save(path, patterns=0)` keeps it"
)


@dataclass(frozen=True)
class CredibleInterval:
    """Pointwise credible interval of the intensity: `lower` and `upper` (n,), at probability `level`."""

    lower: Floats
    upper: Floats
    level: float


def both_kinds(
    release: Any, patterns: int, draws: int, rng: RngLike, source: str, *, fixed_n: bool
) -> list[PointPattern]:
    """Patterns of a source to look at, and those of further posterior draws to combine; none of each where 0."""
    if draws and not all(
        getattr(part, "estimator", None) and part.estimator.has_posterior for part in release.parts.values()
    ):
        msg = f"draws: a {release.mechanism} release has no posterior; leave it out."
        raise InputError(msg)
    rng = generator(rng)
    found = release.sample(patterns, rng, source=source, fixed_n=fixed_n) if patterns else []
    return found + (release.sample(draws, rng, source="draws", fixed_n=fixed_n) if draws else [])


def tails(level: float) -> Floats:
    """(2,) cumulative probabilities at the ends of a central interval of probability `level`."""
    probability("level", level, remedy="0.9 is the default")
    return np.array([(1 - level) / 2, (1 + level) / 2])


@dataclass(frozen=True, eq=False, repr=False)
class CoxRelease(StatisticRelease[L]):
    """Result of a release with an intensity: everything in it is public.

    Attributes
    ----------
    mechanism : str
        For instance "lgcp-tents".
    statistic : PrivateStatistic
        What the budget was spent on.
    estimator : Projection, FieldInference or Drawn
        How the intensity was made from it.
    draws : Posterior or None
        Posterior draws, where the estimator has a posterior; None also when inference has not succeeded yet.
    """

    estimator: Estimator[L]
    draws: Posterior | None = None

    @classmethod
    def of(
        cls, mechanism: str, measured: PrivateStatistic[L], estimator: Estimator[L], *, entry: str | None = None
    ) -> Self:
        return cls(mechanism, measured, estimator, entry=entry)

    def finish(self, rng: RngLike, say: Progress) -> Self:
        return self.infer(rng, progress=say) if self.estimator.has_posterior else self

    def reopened(self, saved: Saved) -> Self:
        if not self.estimator.has_posterior:
            return self
        model = self._field_model().reopened(saved.content(COVARIATES))
        return replace(self, estimator=model, draws=model.draws(saved.content(POSTERIOR)))

    def write(self, folder: Path, start: str = "") -> None:
        super().write(folder, start)
        offset = getattr(self.estimator, "offset", None)
        if offset is not None:
            write_offset(offset, folder)
        covariates = getattr(self.estimator, "covariates", None)
        if covariates is not None and covariates.values is not None:
            (folder / (start + COVARIATES)).write_bytes(covariates_file(covariates.values))
        if self.draws is not None:
            model = self._field_model()
            (folder / (start + POSTERIOR)).write_bytes(self.draws.file(model.mesh, model.scales))

    def parameters(self) -> JsonObject:
        return super().parameters() | {"estimator": self.estimator.to_dict()}

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee, proved before the data were touched, with the assumptions of the estimator added."""
        return super().guarantee.assuming(assumed_of(self.estimator.to_dict()))

    @property
    def mesh(self) -> Mesh:
        """Mesh of the statistic."""
        return self.statistic.definition.mesh

    @cached_property
    def intensity(self) -> Intensity:
        """Private intensity per unit area or length, callable at points (n, 2): of a posterior its middle."""
        if self.estimator.has_posterior:
            return self._field_model().released(self._require_draws(), self.statistic.definition)
        return self.estimator.intensity(self.statistic)

    @property
    def inferred(self) -> bool:
        """Whether inference has run, so that there is an intensity."""
        return not self.estimator.has_posterior or self.draws is not None

    @cached_property
    def posterior(self) -> Any:
        """`xarray.Dataset` of posterior draws in ArviZ layout, for `arviz.summary` and others; no observed data in it.

        Its attributes hold what is known of the fits (`FitNotes` of `dpppsynth.inference`), a number each prior.
        """
        mesh = self._field_model().mesh
        return self._require_draws().to_xarray(mesh)

    @property
    def effects(self) -> "Effects":
        """Posterior draws of the effects of covariates, by name; `effects.summary()` is a table.

        Behind `infer(by_type=True)` of a release with types they have names such as "slope, theft".

        Raises
        ------
        InputError
            Without covariates.
        """
        from dpppsynth.inference.risk import Effects, require_effects

        design = require_effects(getattr(self.estimator, "told", None))
        effects = self._require_draws().effects
        # A posterior of a model with covariates has them.
        return Effects(design, cast(Floats, effects).reshape(-1, len(design.names)))

    @property
    def has_risk(self) -> bool:
        """Whether the posterior uses an offset or covariates, so that the relative risk differs from the intensity."""
        model = self.estimator
        public = getattr(model, "offset", None) is not None or getattr(model, "covariates", None) is not None
        return public and model.has_posterior and self.inferred

    @cached_property
    def risk(self) -> "RelativeRisk":
        """Posterior of the relative risk: the intensity without the offset, on average 1 over the population."""
        from dpppsynth.inference.risk import RelativeRisk

        model = self._field_model()
        return RelativeRisk(model.mesh, self._require_draws().flat.astype(float), model.offset, terms=self.terms)

    @property
    def terms(self) -> str:
        """Budget, and number of points where it is public, for titles of pictures: "ε = 1, n = 1,500"."""
        n = self.statistic.definition.n
        return f"ε = {stated(self.guarantee.epsilon(), 3)}" + ("" if n is None else f", n = {n:,}")

    def risk_of(self) -> "RelativeRisk":
        """`risk`; of points with marks that of a type, or at a time, which the next three methods then take as well."""
        return self.risk

    def relative_risk(self, xy: ArrayLike, **marks: Any) -> Floats:
        """(n,) posterior mean of the relative risk at coordinates (n, 2): `release.risk` has more.

        `exp(effects + field)` without the offset, divided in every draw by its average over the offset: 1 is the
        average risk of the population, or without an offset the average intensity over the area.
        """
        return self.risk_of(**marks)(checked_coordinates(xy))

    def risk_interval(self, *_: Any, **__: Any) -> NoReturn:
        """Refused: where risk varies more finely than the noise resolves, 90 % intervals held 26 to 81 % of places.

        Raises
        ------
        InputError
            Always; it names what holds.
        """
        msg = (
            "risk_interval: no interval of the risk at a place is told, as it may vary more finely than the noise "
            "resolves, and 90 % intervals held as little as 26 %. Intervals of effects of covariates hold: "
            "effects.summary(); exceedance(1.5, xy) gives the model's probability of a high risk."
        )
        raise InputError(msg)

    def exceedance(self, threshold: float, xy: ArrayLike, **marks: Any) -> Floats:
        """(n,) posterior probability that the relative risk is above a threshold at coordinates (n, 2)."""
        return self.risk_of(**marks).exceedance(threshold)(checked_coordinates(xy))

    @property
    def diagnostics(self) -> Any:
        """`pandas.DataFrame` of diagnostics of the fits (`FitNotes` of `dpppsynth.inference`), a row for each."""
        import pandas as pd

        fits = self._require_draws().fits or FitNotes.unknown(self._field_model().scales)
        return pd.DataFrame(asdict(fits))

    @property
    def fit(self) -> FitSummary:
        """The worst of the diagnostics; none known without a posterior."""
        fits = None if self.draws is None else self.draws.fits
        return UNFITTED if fits is None else fits.worst

    def interval(self, xy: ArrayLike, level: float = 0.9, **marks: Any) -> CredibleInterval:
        """Pointwise credible interval of the intensity at points (n, 2); of points with marks as `intensity` has it.

        Measured coverage is in docs/limitations.md; NUTS covers better than the Laplace approximation. With an offset
        it holds as seldom as an interval of the risk would (`risk_interval`).
        """
        mean = self._field_model().posterior_mean(self._require_draws())
        lower, upper = mean.quantiles(checked_coordinates(xy), tails(level), **marks)
        return CredibleInterval(lower, upper, level)

    def sample(
        self, m: int = 1, rng: RngLike = None, *, source: str = "released", fixed_n: bool = False
    ) -> list[PointPattern]:
        """Draw synthetic patterns; free, because the release is already private.

        Parameters
        ----------
        m : int
            Number of patterns.
        rng : None, int or Generator
            May be seeded freely.
        source : {"released", "mean", "draws"}
            With a posterior: the released intensity, which is nearest to the truth; the posterior mean; or m different
            draws, for patterns that are combined for inference (docs/inference.md). Without a posterior all
            are the intensity itself. Patterns remember it as their `source`.
        fixed_n : bool
            Give every pattern exactly the public number of points instead of a Poisson number.
        """
        one_of("source", source, SOURCES)
        if isinstance(m, bool) or not isinstance(m, Real) or not 0 <= m < float("inf") or m != int(m):
            msg = f"m: needs a whole number of patterns, got {m!r}."
            raise InputError(msg)
        n = self.statistic.definition.n
        if fixed_n and n is None:
            msg = "fixed_n: the relation keeps the number of points secret; leave it out."
            raise InputError(msg)
        rng, m = generator(rng), int(m)
        fixed, told = n if fixed_n else None, source if self.estimator.has_posterior else SOURCES[0]
        return [self.drawn(each, fixed, rng, source).told(told) for each in self.intensities(m, rng, source=source)]

    def drawn(self, intensity: Intensity, n: int | None, rng: np.random.Generator, source: str) -> PointPattern:
        """One pattern of an intensity with n points, or with a Poisson number."""
        return poisson_pattern(intensity, rng) if n is None else binomial_pattern(intensity, n, rng)

    def intensities(self, m: int, rng: np.random.Generator, *, source: str = "released") -> Sequence[Intensity]:
        """The intensities that `sample` draws m patterns from, for studies that compare patterns with their own."""
        if source == "released" or not self.estimator.has_posterior:
            return [self.intensity] * m
        mean = self._field_model().posterior_mean(self._require_draws())
        if source == "mean":
            return [mean] * m
        total = len(mean.fields)
        return [mean.draw(int(k)) for k in rng.choice(total, size=m, replace=m > total)]

    def infer(self, rng: RngLike = None, *, progress: ProgressLike = None, **changes: Any) -> Self:
        """Run inference again on the same private statistic, at no privacy cost.

        Parameters
        ----------
        rng : None, int or Generator
        progress : callable, optional
        **changes
            New settings of the estimator: those that its `adjustable` names, such as `sigma`. With `covariates=` the
            posterior has their `effects`, and a sparse prior.

        Raises
        ------
        QualityError
            When NUTS fails its diagnostics; `error.release` keeps the private statistic.
        """
        model, rng = self._explained(changes.pop("covariates", None)), generator(rng)
        model = model.changed(changes, self.statistic.definition) if changes else model
        try:
            with announced(progress) as say:
                return self.with_posterior(model, rng, say)
        except (ArithmeticError, MemoryError, OSError, RuntimeError, ValueError, QualityError) as error:
            # The statistic was paid for, and must outlive whatever went wrong with it.
            kept = replace(self, estimator=model, draws=None)
            reason = str(error) if isinstance(error, QualityError) else f"{FAILED} ({type(error).__name__})."
            raise QualityError(reason, kept) from None

    def _explained(self, covariates: Any) -> FieldInference:
        """The model with public covariates, in place of those it may have; without any as it is."""
        from dpppsynth.inference.field_by_rule import field_by_rule
        from dpppsynth.spatial.covariates import covariates_from

        model, plan = self._field_model(), self.statistic.definition
        if covariates is None:
            return model
        layers = covariates_from(covariates)
        if "covariates" in {each.name for each in fields(cast(Any, model))}:
            explained: FieldInference = replace(cast(Any, model), covariates=layers.on(model.places, model.offset))
            return explained
        if isinstance(plan, LaplaceMasses):
            return field_by_rule(plan, offset=model.offset, covariates=layers)
        msg = f"covariates: they stand behind noised tents, counts or moved points, which {self.mechanism} has not."
        raise InputError(msg)

    def with_posterior(self, model: FieldInference, rng: np.random.Generator, say: Progress) -> Self:
        """The release with the posterior of a model."""
        return replace(self, estimator=model, draws=model.fit(self.statistic, rng, say))

    def save(
        self,
        path: str | Path,
        *,
        patterns: int = 1,
        draws: int = 0,
        rng: RngLike = None,
        source: str = "released",
        fixed_n: bool = False,
        progress: ProgressLike = None,
    ) -> Path:
        """Write the release to a new or empty folder: synthetic patterns, statistic, posterior, domain, certificate.

        Parameters
        ----------
        path : str or Path
            The folder appears whole or not at all.
        patterns : int
            Number of synthetic patterns to draw and write.
        draws : int
            Number of further ones, each of another posterior draw, to be combined for inference.
        rng : None, int or Generator
        source : {"released", "mean", "draws"}
            As in `sample`; names of the files tell "mean" and "draws".
        fixed_n : bool
            As in `sample`.
        progress : callable or bool, optional
            Told in words which share of the patterns is written.

        Returns
        -------
        Path
            The folder.
        """
        return self._save(path, both_kinds(self, patterns, draws, rng, source, fixed_n=fixed_n), progress=progress)

    def _field_model(self) -> FieldInference:
        if not self.estimator.has_posterior:
            msg = (
                f"posterior: a {self.mechanism} release has none; mechanisms 'tents' and 'field' of LGCPSynthesizer "
                "have one, and intensities made with postprocess 'field'."
            )
            raise InputError(msg)
        # Or what stands in for one, with its methods, in an audit.
        return cast(FieldInference, self.estimator)

    def _require_draws(self) -> Posterior:
        if self.draws is None:
            msg = "release: inference has not been run on its private statistic; call `release.infer(...)` first."
            raise InputError(msg)
        return self.draws
