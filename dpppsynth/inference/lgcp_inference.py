"""Noise-aware inference of a log-Gaussian Cox process (docs/theory.md, section 6; docs/theory/field.md)."""

from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np
import scipy

from dpppsynth.contract.additive_noise import LatticeStatistic, PrivateStatistic
from dpppsynth.contract.estimator import offset_rows
from dpppsynth.contract.rules import FIELD_SIGMA
from dpppsynth.contract.statistic import mesh_words
from dpppsynth.core.arguments import flag, one_of, positive
from dpppsynth.core.errors import InputError
from dpppsynth.core.progress import Progress, Step
from dpppsynth.core.types import JsonObject, JsonRead
from dpppsynth.core.wording import Rows
from dpppsynth.inference.field_inference import (
    EVEN,
    INFERENCES,
    INTERCEPT_SD,
    NO_RANGE,
    FieldInference,
    FitNotes,
    Posterior,
    apportion,
    field_mesh,
    require_few,
    require_somewhere,
)
from dpppsynth.inference.nuts_runs import DENSE_PACE, log_masses, passed_run, sampling_words, thinned
from dpppsynth.models import nuts
from dpppsynth.models.covariances import (
    Covariance,
    PoweredExponential,
    covariance_from_dict,
    factor,
    require_few_vertices,
)
from dpppsynth.models.laplace_approximation import LaplacePosterior, check_approximation, laplace_posterior
from dpppsynth.models.likelihood import MassLikelihood, NoisyField
from dpppsynth.models.matern_search import NEGLIGIBLE
from dpppsynth.models.nuts import ENGINES, FieldDensity
from dpppsynth.spatial.mesh import Floats, Ints, Mesh
from dpppsynth.spatial.offset import Offset

# Times the covariance of a field statistic is taken again at the masses estimated with it.
ROUNDS = 2
# Draws by which each Laplace approximation is checked.
CHECKED = 400
# Draws kept for the release, all chains together, and draws per chain of every NUTS run.
KEPT_DRAWS = 2000
NUTS_DRAWS, NUTS_TUNE = 1500, 500
# Rough fields on networks diverge now and then at the usual target of 0.8.
ROUGH_ACCEPT = 0.9


@dataclass(frozen=True, eq=False, repr=False)
class LGCPInference(FieldInference):
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
    own : Covariance, optional
        Instead of the powered exponential of `sigma` and `length_scales`, which are then its own.
    even : bool
        Whether an even field is one more prior.
    """

    mesh: Mesh
    length_scales: tuple[float, ...]
    sigma: float = FIELD_SIGMA
    offset: Offset | None = None
    inference: str = "nuts"
    engine: str = "nutpie"
    own: Covariance | None = None
    even: bool = False
    kind: ClassVar[str] = "field"
    adjustable: ClassVar[frozenset[str]] = frozenset({"inference", "engine", "sigma", "length_scales", "even"})

    def __post_init__(self) -> None:
        require_few("length_scales", self.length_scales)
        object.__setattr__(self, "length_scales", tuple(map(float, self.length_scales)))
        positive("sigma", self.sigma)
        one_of("inference", self.inference, INFERENCES)
        one_of("engine", self.engine, ENGINES)
        flag("even", self.even)
        require_few_vertices(self.mesh)
        if self.own is None:
            _ = [self.covariance(scale) for scale in self.length_scales]
        else:
            self._require_own(self.own)
        require_somewhere(self.measure)

    @property
    def scales(self) -> tuple[float, ...]:
        return self.length_scales + self.even * (NO_RANGE,)

    def __repr__(self) -> str:
        return f"LGCPInference({self.mesh!r}, length_scales={self.length_scales}, inference={self.inference!r})"

    def likelihood(self, statistic: PrivateStatistic[LatticeStatistic]) -> MassLikelihood:
        """Likelihood of the field given the private statistic; a field statistic's is set to uniform masses."""
        return statistic.definition.likelihood(
            statistic, self.measure, self.mesh.shares(statistic.definition.mesh).toarray()
        )

    def _require_own(self, own: Covariance) -> None:
        if (own.sigma, (own.length_scale,)) != (self.sigma, self.length_scales):
            msg = (
                "covariance: it has a sigma and a length scale; give it alone, or sigma= and length_scales= without it."
            )
            raise InputError(msg)
        own.matrix(self.mesh)

    def covariance(self, length_scale: float) -> Covariance:
        """Prior covariance of the field."""
        return self.own or PoweredExponential(self.sigma, length_scale, self.mesh.smoothest_power)

    def prior_factor(self, length_scale: float, *, intercept: bool) -> Floats:
        """(V, r) factor of the prior covariance; a Gaussian intercept is one more column."""
        root = factor(self.covariance(length_scale).matrix(self.mesh))
        return np.hstack([root, np.full((len(root), 1), INTERCEPT_SD)]) if intercept else root

    def _fit(self, statistic: PrivateStatistic[LatticeStatistic], rng: np.random.Generator, say: Progress) -> Posterior:
        plan, likelihood, centre = statistic.definition, self.likelihood(statistic), self.centre(statistic.definition)
        say("Laplace approximations")
        roots = [self.prior_factor(scale, intercept=plan.n is None) for scale in self.length_scales]
        roots += self.even * [np.full((len(self.mesh.vertices), 1), INTERCEPT_SD)]
        fits, share = self._approximate(likelihood, roots, centre)
        if isinstance(likelihood, NoisyField):
            for _ in range(ROUNDS):
                likelihood = likelihood.at(share @ likelihood.vertex_masses(np.array([fit.field_mode for fit in fits])))
                fits, share = self._approximate(likelihood, roots, centre)
        if self.inference == "laplace":
            count, known = apportion(share, KEPT_DRAWS), FitNotes.unknown(self.scales)
            runs = [fit.draw(k, rng)[None] for fit, k in zip(fits, count, strict=True)]
        else:
            share = np.where(share >= NEGLIGIBLE, share, 0) / share[share >= NEGLIGIBLE].sum()
            count = apportion(share, KEPT_DRAWS // 4)
            runs, known = self._nuts(likelihood, fits, count, rng, say)
        fields = self.normalise(np.concatenate(runs, axis=1), plan.n)
        for i in np.flatnonzero(share >= NEGLIGIBLE):
            known.add(int(i), check_approximation(fits[i], likelihood, len(self.mesh.vertices), CHECKED, rng))
        scales = np.tile(np.repeat(self.scales, count), (len(fields), 1))
        return Posterior(fields, scales, replace(known, weight=share)).mixed(rng)

    def _approximate(
        self, likelihood: MassLikelihood, roots: list[Floats], centre: float
    ) -> tuple[list[LaplacePosterior], Floats]:
        """Laplace approximations for every prior, and their weights."""
        fits = [laplace_posterior(likelihood, root, centre) for root in roots]
        return fits, _weights(fits, self.length_scales)

    def _nuts(
        self,
        likelihood: MassLikelihood,
        fits: list[LaplacePosterior],
        count: Ints,
        rng: np.random.Generator,
        say: Progress,
    ) -> tuple[list[Floats], FitNotes]:
        """(4, k, V) draws for each length scale, evenly thinned from a run that passed its diagnostics."""
        # Rotated so that the posterior precision is about diagonal: NUTS then needs few steps a draw.
        bases = {i: fits[i].rotated_basis() for i in np.flatnonzero(count[: len(self.length_scales)])}
        centre = float(fits[0].centre[0])
        runs, known = [np.empty((4, 0, len(self.mesh.vertices)))] * len(fits), FitNotes.unknown(self.scales)
        if self.even:
            # At most its level is unknown, which has a normal law.
            runs[-1] = fits[-1].draw(4 * count[-1], rng).reshape(4, count[-1], len(self.mesh.vertices))
        if not bases:
            return runs, known
        for k, (i, basis) in enumerate(bases.items()):
            say(Step(f"NUTS, length scale {self.length_scales[i]:.4g}", k / len(bases)))
            z, passed = self._run(likelihood, basis, centre, rng)
            runs[i] = centre + thinned(z, count[i]) @ basis.T
            known.rhat[i], known.ess[i], known.divergences[i] = passed.rhat, passed.ess, passed.divergences
        return runs, known

    def _run(
        self, likelihood: MassLikelihood, basis: Floats, centre: float, rng: np.random.Generator
    ) -> tuple[Floats, nuts.Diagnostics]:
        """Draws of z (4, draws, r) of a run that passed its diagnostics."""
        from dpppsynth.models.lgcp import build_noise_aware

        density = FieldDensity if self.engine == "nutpie" else build_noise_aware
        return passed_run(
            density(likelihood, basis, centre),
            lambda z: log_masses(likelihood.expected_masses(centre + z @ basis.T)),
            rng,
            draws=NUTS_DRAWS,
            tune=NUTS_TUNE,
            engine=self.engine,
            accept=ROUGH_ACCEPT if self.mesh.smoothest_power < 2 else 0.8,
        )

    def table_rows(self) -> Rows:
        vertices, runs = len(self.mesh.vertices), len(self.length_scales)
        way = sampling_words(self.engine, runs, vertices, DENSE_PACE) if self.inference == "nuts" else self.inference
        even = ", or an even field" if self.even else ""
        kind = "" if self.own is None else f"{self.own.kind}, "
        return [
            ("field", f"log-Gaussian, {kind}sigma {self.sigma:g}, on {mesh_words(self.mesh)}"),
            ("length scales", ", ".join(f"{each:.4g}" for each in self.length_scales) + even),
            ("inference", way),
            *offset_rows(self.offset),
        ]

    def public_numbers(self) -> JsonObject:
        return {
            "field_vertices": len(self.mesh.vertices),
            "field_sigma": self.sigma,
            "length_scales": self.length_scales,
            "inference": self.inference,
        }

    def to_dict(self) -> JsonObject:
        return super().to_dict() | ({} if self.own is None else {"covariance": self.own.to_dict()})

    @classmethod
    def from_dict(cls, stated: JsonRead, plan: LatticeStatistic, offset: Offset | None) -> Self:
        return cls(
            mesh=field_mesh(stated["mesh"], plan.mesh),
            **cls.stated_settings(stated),
            offset=offset,
            own=covariance_from_dict(stated["covariance"]) if "covariance" in stated else None,
        )


def _weights(fits: list[LaplacePosterior], length_scales: tuple[float, ...]) -> Floats:
    """Posterior weights of the priors: evidence * l^2, and a small share of their sum beforehand for an even field."""
    prior = np.square(length_scales) / np.square(length_scales).sum()
    prior = np.append(prior, np.full(len(fits) - len(prior), EVEN))
    return np.asarray(scipy.special.softmax([fit.log_evidence for fit in fits] + np.log(prior)))
